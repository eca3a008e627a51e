/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-nics: its start, the requests over its socket, its clients, and its end. The test
 * program plays the daemon. It starts itself again as fpm-nics (`--nics`) and as a
 * successor (`--successor`). nicd_bed.h has the processes and the functions of DPDK that
 * note their calls.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/nicd/ fpm-dataplane/start/eal.c
 * link: fpm-dataplane/start/cpus.c fpm-dataplane/restart/spawn.c
 * link: fpm-dataplane/port/port.c fpm-dataplane/port/nic.c fpm-dataplane/port/rings.c
 * link: fpm-dataplane/port/nicd_client.c fpm-dataplane/port/fanout.c
 * link: fpm-dataplane/port/claim.c
 * link: fpm-dataplane/port/bond.c fpm-dataplane/port/attach.c fpm-dataplane/port/rss.c
 * link: fpm-dataplane/pci/ tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_version.h>

#include "log_said.h"
#include "nicd_bed.h"

#define STRAY_FD 200

static int manager = -1; /* the socket of the service manager */

/* Return the number of open descriptors. */
static unsigned int
fds_count(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* --- tests: records ------------------------------------------------------------------- */

static void
a_record_of_another_length_is_refused_and_a_descriptor_is_passed(void **state)
{
	char sent[8] = "sent it", got[8];
	int pair[2], other[2], fd = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(pipe(other), 0);
	assert_int_equal(nicd_send(pair[0], sent, 8, -1), 0);
	assert_int_equal(nicd_recv(pair[1], got, 8, &fd), 0);
	assert_memory_equal(sent, got, 8);
	assert_int_equal(fd, -1);
	assert_int_equal(nicd_send(pair[0], sent, 7, -1), 0);
	assert_int_equal(nicd_recv(pair[1], got, 8, &fd), -EPROTO);
	assert_int_equal(nicd_send(pair[0], sent, 8, -1), 0);
	assert_int_equal(nicd_recv(pair[1], got, 7, &fd), -EPROTO);
	assert_int_equal(nicd_send(pair[0], sent, 8, other[1]), 0);
	assert_int_equal(nicd_recv(pair[1], got, 8, &fd), 0);
	assert_true(fd > 0 && fd != other[1]);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	/* A descriptor that the caller does not take is closed. */
	assert_int_equal(nicd_send(pair[0], sent, 8, other[1]), 0);
	assert_int_equal(nicd_recv(pair[1], got, 8, NULL), 0);
	close(other[1]);
	assert_true(is_closed(other[0]));
	close(pair[0]);
	assert_int_equal(nicd_recv(pair[1], got, 8, &fd), -EPIPE);
	assert_int_equal(nicd_send(pair[1], sent, 8, -1), -EPIPE);
	close(pair[1]);
	close(other[0]);
}

/* Connect to an fpm-nics that answers the first request with `hello`. */
static int
connected_to(const struct nicd_reply *hello)
{
	struct nicd_request q;
	struct nicd_reply got;
	int pair[2], again, rc;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(nicd_send(pair[1], hello, sizeof(*hello), -1), 0);
	rc = nicd_connect(pair[0], &got);
	assert_false(nicd_is_connected());
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	again = dup(pair[1]); /* this copy has the number of the closed socket */
	assert_int_equal(again, pair[0]);
	nicd_disconnect(true);
	assert_int_equal(close(again), 0);
	assert_int_equal(nicd_recv(pair[1], &q, sizeof(q), NULL), 0);
	assert_int_equal(q.layout, NICD_LAYOUT);
	assert_int_equal(q.op, NICD_HELLO);
	assert_int_equal(nicd_recv(pair[1], &q, sizeof(q), NULL), -EPIPE);
	close(pair[1]);
	return rc;
}

static void
an_fpm_nics_of_another_version_is_left(void **state)
{
	struct nicd_reply hello = {.layout = NICD_LAYOUT + 1};
	unsigned int n_fd = fds_count();

	snprintf(hello.dpdk, sizeof(hello.dpdk), "%s", rte_version());
	assert_int_equal(connected_to(&hello), -EPROTO);
	hello.layout = NICD_LAYOUT;
	hello.dpdk[strlen(hello.dpdk) - 1] ^= 1;
	assert_int_equal(connected_to(&hello), -EPROTO);
	snprintf(hello.dpdk, sizeof(hello.dpdk), "%s", rte_version());
	hello.rc = -ENODEV;
	assert_int_equal(connected_to(&hello), -ENODEV);
	assert_int_equal(fds_count(), n_fd);
}

/* --- tests: the start ----------------------------------------------------------------- */

/* Receive a datagram that the service manager would get. Return its descriptor, or -1. */
static int
manager_hears(const char *wanted)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char text[256];
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(manager, &m, MSG_DONTWAIT);
	int fd = -1;

	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, wanted);
	if (CMSG_FIRSTHDR(&m) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/*
 * The service manager has a descriptor of fpm-nics's process. It gives the descriptor to
 * the next daemon if this daemon crashes.
 */
static void
the_manager_keeps_its_process(void)
{
	char path[64], line[128] = "";
	FILE *info;
	int fd, pid = 0;

	while (recv(manager, line, sizeof(line), MSG_DONTWAIT) > 0)
		continue;
	nicd_store_pidfd();
	assert_int_equal(manager_hears("FDSTOREREMOVE=1\nFDNAME=nics-process"), -1);
	fd = manager_hears("FDSTORE=1\nFDNAME=nics-process\nFDPOLL=0");
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "r");
	assert_non_null(info);
	while (pid == 0 && fgets(line, sizeof(line), info) != NULL)
		(void)!sscanf(line, "Pid: %d", &pid);
	fclose(info);
	close(fd);
	assert_int_equal(pid, nics);
}

/* Write the CPUs of this process, as the EAL takes them: "0,1". */
static const char *
cpus_text(char buf[1000])
{
	cpu_set_t set;
	size_t n = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && n < 900; cpu++)
		if (CPU_ISSET(cpu, &set))
			n += (size_t)sprintf(buf + n, "%s%u", n > 0 ? "," : "", cpu);
	return buf;
}

static void
fpm_nics_is_the_primary_and_the_daemon_joins_it(void **state)
{
	char path[64], name[16] = "", wanted[1100], cpus[1000];
	const char *after;
	FILE *comm;

	assert_int_equal(notes->n_dropped, 1);
	snprintf(wanted, sizeof(wanted), "fpm-dataplane --lcores 0@(%s)", cpus_text(cpus));
	assert_int_equal(strncmp(notes->words, wanted, strlen(wanted)), 0);
	after = strchr(notes->words, ')');
	assert_non_null(after);
	snprintf(wanted, sizeof(wanted),
		 ") --no-telemetry --log-level=*:error --allow=0000:00:00.0 -m 32 "
		 "--proc-type=primary --file-prefix %s",
		 prefix);
	assert_string_equal(after, wanted);
	assert_true(file_exists("run/dpdk", prefix, "/config"));
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)nics);
	comm = fopen(path, "r");
	assert_non_null(comm);
	assert_int_equal(fscanf(comm, "%15s", name), 1);
	fclose(comm);
	assert_string_equal(name, "fpm-nics");

	assert_true(nicd_is_connected());
	assert_int_equal(eal_client(), 0);
	assert_int_equal(eal_lcore(0), 2);
	conf.n_core = 2;
	conf.core[1] = 1;
	assert_int_equal(eal_start(&conf, 0), 0);
	assert_int_equal(strncmp(daemon_words, "fpm-dataplane --lcores 1@(", 26), 0);
	after = strchr(daemon_words, ')');
	snprintf(wanted, sizeof(wanted),
		 "),2@0,3@1 --no-telemetry --log-level=*:error --allow=0000:00:00.0 "
		 "--proc-type=secondary --file-prefix %s "
		 "--no-shconf --file-prefix fpm-dataplane",
		 prefix);
	assert_string_equal(after, wanted);

	the_manager_keeps_its_process();
	/* A terminal sends signals to all processes. */
	for (int sig = SIGHUP; sig <= SIGTERM; sig++)
		if (sig != SIGKILL && sig != SIGSEGV && sig != SIGBUS && sig != SIGFPE &&
		    sig != SIGILL && sig != SIGABRT && sig != SIGTRAP)
			assert_int_equal(kill(nics, sig), 0);
	close(second_begin());
}

static int
refused_with(int error, pid_t old, bool hugepages)
{
	int rc;

	notes->refuse = error;
	conf = conf_make();
	conf.hugepages = hugepages;
	rc = nics_try(old);
	assert_false(nicd_is_connected());
	notes->refuse = 0;
	return rc;
}

static void
a_start_that_fails_has_its_reason(void **state)
{
	assert_int_equal(refused_with(EIO, 0, false), -EPIPE);
	assert_int_equal(log_said("fpm-nics not started error=\"it has exited\""), 1);
	assert_int_equal(refused_with(ENOMEM, 0, false), -ENOMEM);
	assert_int_equal(log_said("fpm-nics not started error=\"Cannot allocate"), 1);
	assert_int_equal(refused_with(EACCES, 0, false), -ENOMEM);
	assert_int_equal(log_said("fpm-nics not started"), 3);
	/* When the predecessor ends, its memory is free, so nothing is logged. */
	assert_int_equal(refused_with(ENOMEM, getpid(), false), -ENOMEM);
	assert_int_equal(log_said("fpm-nics not started"), 3);
	/* No machine has that many hugepages. */
	conf = conf_make();
	conf.hugepages = true;
	conf.memory_mib = 1u << 30;
	assert_int_equal(eal_memory_error(&conf, -ENOMEM, getpid()), -EACCES);
	assert_int_equal(eal_memory_error(&conf, -EACCES, getpid()), -EACCES);
	assert_int_equal(log_said("too few hugepages wanted_mib=1073741824 "), 2);
	assert_int_equal(eal_memory_error(&conf, -EIO, getpid()), -EIO);
	conf.memory_mib = 0;
	assert_int_equal(eal_memory_error(&conf, -EACCES, getpid()), -ENOMEM);
	assert_int_equal(eal_memory_error(&conf, -EACCES, 0), -EACCES);
	/* Without keep-nics there is no fpm-nics. */
	conf.keep_nics = false;
	notes->words[0] = '\0';
	assert_int_equal(nics_try(0), 0);
	assert_false(nicd_is_connected());
	assert_int_equal(nicd_pair(), -1);
	nicd_abandon();
	assert_int_equal(notes->words[0], '\0');
}

static void
processes_that_share_dpdk_must_agree_about_its_memory(void **state)
{
	uint32_t sum;

	conf = conf_make();
	sum = eal_hash(&conf);
	conf.port[0].mtu_bytes = RTE_MBUF_DEFAULT_DATAROOM - 64;
	assert_int_equal(eal_hash(&conf), sum);
	conf.port[0].mtu_bytes++;
	assert_int_not_equal(eal_hash(&conf), sum);
	/*
	 * Buffer sizes are rounded up to whole cache lines, so 3008 needs the buffers of
	 * 3000.
	 */
	conf.port[0].mtu_bytes = 3000;
	sum = eal_hash(&conf);
	conf.port[0].mtu_bytes = 3008;
	assert_int_equal(eal_hash(&conf), sum);
	conf.port[0].mtu_bytes++;
	assert_int_not_equal(eal_hash(&conf), sum);
	conf = conf_make();
	sum = eal_hash(&conf);
	conf.memory_mib++;
	assert_int_not_equal(eal_hash(&conf), sum);
	conf = conf_make();
	conf.n_plugin = 2;
	strcpy(conf.plugin[0], "ab");
	strcpy(conf.plugin[1], "c");
	sum = eal_hash(&conf);
	strcpy(conf.plugin[0], "a");
	strcpy(conf.plugin[1], "bc");
	assert_int_not_equal(eal_hash(&conf), sum);
}

/* --- tests: devices ------------------------------------------------------------------- */

static void
a_device_is_opened_by_fpm_nics_and_attached_here(void **state)
{
	struct port port = {.ifidx = 7, .place = 9, .mtu_bytes = 1400, .tap = {.fd = 55}};
	struct rte_mempool *const pool = (struct rte_mempool *)&port;
	struct port_conf c, other;
	char why[256] = "";

	conf_of(&c, "net_null0");
	c.n_rxq = 3;
	port.pool = pool;
	strcpy(port.name, "tap0");
	strcpy(port.device, "net_null0");
	strcpy(port.kernel_if, "eth7");
	port.kernel_ifindex = 7;
	assert_false(nicd_has_open(&c));
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(port.ifidx, 7);
	assert_int_equal(port.place, 9);
	assert_int_equal(port.mtu_bytes, 1400);
	assert_int_equal(port.tap.fd, 55);
	assert_ptr_equal(port.pool, pool);
	assert_string_equal(port.name, "tap0");
	assert_string_equal(port.device, "net_null0");
	assert_string_equal(port.kernel_if, "eth7");
	assert_int_equal(port.kernel_ifindex, 7);
	assert_true(port.held);
	assert_int_equal(port.n_socket, 0);
	assert_string_equal(port.driver, "net_null");
	assert_int_equal(port.n_rxq, 3);
	assert_int_equal(port.n_txq, 2);
	assert_false(port.interrupts);
	assert_int_equal(port.mtu_max_bytes, RTE_MBUF_DEFAULT_DATAROOM - 64);

	assert_true(nicd_has_open(&c));
	other = c;
	other.n_rxq = 1;
	assert_false(nicd_has_open(&other));
	other = c;
	other.n_txq = 1;
	assert_false(nicd_has_open(&other));
	other = c;
	other.options.cksum_off = other.options.vlan_off = true; /* net_null has neither */
	other.mtu_bytes = port.mtu_max_bytes;
	assert_true(nicd_has_open(&other));
	other.mtu_bytes++;
	assert_false(nicd_has_open(&other));
	strcpy(other.device, "net_null");
	assert_false(nicd_has_open(&other));
	/* This process has attached the device already. */
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), -EBUSY);
	port_detach(&port);
}

static void
an_open_device_is_used_again_if_it_fits(void **state)
{
	struct port port = {0};
	char why[256] = "";
	struct port_conf c;

	conf_of(&c, "net_null0");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(port.n_rxq, 2); /* as many as forwarders */
	port_detach(&port);
	/* The last daemon has changed the MTU and the MAC address. */
	notes->mtu = 0;
	notes->mac_end = 5;
	c.mtu_bytes = 1300;
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(notes->mtu, 1300);
	assert_int_equal(port.mac[5], 5);
	assert_int_equal(notes->n_closed, 0);
	port_detach(&port);
	c.n_txq = 1;
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(notes->n_closed, 1);
	assert_int_equal(port.n_txq, 1);
	assert_true(nicd_has_open(&c));
	port_detach(&port);
	/* A device that is refused is closed. */
	c.mtu_bytes = port.mtu_max_bytes + 1;
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "is more than the device (net_null) takes"));
	assert_int_equal(notes->n_closed, 3);
	c.mtu_bytes = 1300;
	assert_false(nicd_has_open(&c));
	conf_of(&c, "net_nonsense0");
	assert_true(nicd_open(&port, &c, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "no such device"));
}

static void
a_device_with_another_number_is_refused(void **state)
{
	struct nicd_reply a;
	struct port port = {0}, first = {0};
	char why[256] = "";
	struct port_conf c;
	int sock = nicd_pair();

	assert_int_equal(open_on(sock, NICD_OPEN, "net_null0", &a), 0);
	assert_true(a.yes);
	assert_int_equal(a.port.port_id, 0);
	assert_string_equal(a.port.name, "tap0");
	assert_string_equal(a.port.device, "net_null0");
	assert_int_equal(open_on(sock, NICD_OPEN, "net_null1", &a), 0);
	assert_int_equal(a.port.port_id, 1);
	/* In this process net_null1 is the first device. */
	conf_of(&c, "net_null1");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), -EPROTO);
	assert_string_equal(why, "the device has another number here");
	first.port_id = 0;
	port_detach(&first);
	close(sock);
}

static void
requests_for_a_device_reach_it(void **state)
{
	static const uint8_t mac[] = {2, 0, 0, 0, 0, 1}, more[] = {2, 0, 0, 0, 0, 2},
			     less[] = {2, 0, 0, 0, 0, 3};
	struct port port = {0}, none = {.port_id = 1, .held = true};
	struct port_stats st = {0};
	struct port_link link;
	char why[256] = "";
	struct port_conf c;

	conf_of(&c, "net_null0");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(port_stats(&port, &st), 0);
	assert_int_equal(st.rx_packets, 11);
	assert_int_equal(st.tx_packets, 22);
	assert_int_equal(st.rx_missed, 33);
	link = port_link(&port);
	assert_true(link.up);
	assert_true(link.full_duplex);
	assert_int_equal(link.mbit_per_s, 10000);
	assert_int_equal(port_set_mtu(&port, 1234), 0);
	assert_int_equal(notes->mtu, 1234);
	assert_int_equal(port_set_mtu(&port, 99), -EINVAL);
	assert_int_equal(port_set_mac(&port, mac), 0);
	assert_memory_equal(notes->mac, mac, 6);
	assert_int_equal(port_add_mac(&port, more), 0);
	assert_memory_equal(notes->added, more, 6);
	port_remove_mac(&port, less);
	assert_memory_equal(notes->removed, less, 6);
	assert_int_equal(port_set_link(&port, true), 0);
	assert_int_equal(notes->n_link_up, 1);
	assert_int_equal(port_set_link(&port, false), -ENOTSUP);
	assert_int_equal(notes->n_link_down, 1);
	assert_int_equal(notes->n_link_up, 1);
	assert_false(port_take_tags(&port));

	assert_int_equal(port_stats(&none, &st), -ENODEV);
	assert_int_equal(port_set_mtu(&none, 1500), -ENODEV);
	assert_int_equal(port_set_link(&none, true), -ENODEV);
	assert_int_equal(notes->n_link_up, 1);
	assert_false(port_link(&none).up);
	port_detach(&port);
}

/* --- tests: connections --------------------------------------------------------------- */

static void
there_are_two_daemons_at_a_time(void)
{
	struct nicd_request q = {.op = NICD_PAIR, .yes = true};
	int second = second_begin(), pair[2];
	struct nicd_reply a;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(ask_on(second, &q, pair[1], &a), -EBUSY);
	close(pair[1]);
	assert_true(is_closed(pair[0])); /* fpm-nics has closed its end */
	close(pair[0]);
	/* Another connection of the same daemon has no number of its own. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	q.yes = false;
	assert_int_equal(ask_on(second, &q, pair[1], &a), 0);
	close(pair[1]);
	q.op = NICD_HELLO;
	assert_int_equal(ask_on(pair[0], &q, -1, &a), 0);
	assert_int_equal(a.client, 1);
	close(pair[0]);
	assert_int_equal(ask_on(second, &q, -1, &a), 0);
	close(second);
}

static void
a_request_that_is_not_of_this_version_is_refused(void **state)
{
	struct nicd_request q = {.layout = NICD_LAYOUT + 1, .op = NICD_HELLO};
	int sock = nicd_pair(), stray[2];
	struct nicd_reply a;

	assert_true(sock >= 0);
	assert_int_equal(nicd_send(sock, &q, sizeof(q), -1), 0);
	assert_int_equal(nicd_recv(sock, &a, sizeof(a), NULL), 0);
	assert_int_equal(a.rc, -EPROTO);
	assert_int_equal(a.layout, NICD_LAYOUT);
	q.layout = NICD_LAYOUT;
	/* The record is too short. fpm-nics closes the descriptor that came with it. */
	assert_int_equal(pipe(stray), 0);
	assert_int_equal(nicd_send(sock, &q, sizeof(q) - 1, stray[1]), 0);
	close(stray[1]);
	assert_int_equal(nicd_recv(sock, &a, sizeof(a), NULL), 0);
	assert_int_equal(a.rc, -EPROTO);
	assert_true(is_closed(stray[0]));
	close(stray[0]);
	q.op = NICD_SET_LINK + 1;
	assert_int_equal(ask_on(sock, &q, -1, &a), -ENODEV);
	assert_int_equal(open_on(sock, NICD_OPEN, "net_null0", &a), 0);
	q.port.port_id = a.port.port_id;
	assert_int_equal(ask_on(sock, &q, -1, &a), -EPROTO);
	/* A request for a pair has to have a socket. */
	q.op = NICD_PAIR;
	assert_int_equal(ask_on(sock, &q, -1, &a), -EPROTO);
	q.op = NICD_HELLO;
	assert_int_equal(ask_on(sock, &q, -1, &a), 0);
	assert_int_equal(a.client, 1);
	assert_int_equal(a.pid, nics);
	assert_string_equal(a.prefix, prefix);
	assert_string_equal(a.dpdk, rte_version());
	assert_int_equal(a.began_with, eal_hash(&conf));
	assert_int_equal(nicd_pair(), -1); /* there are two daemons at a time */
	close(sock);
	there_are_two_daemons_at_a_time();
}
static void
what_a_daemon_leaves_is_freed_with_its_last_connection(void **state)
{
	struct nicd_request q = {.op = NICD_PAIR};
	int sock = nicd_pair(), own, pair[2];
	struct port port = {0};
	struct nicd_reply a;
	struct port_conf c;
	char why[256] = "";

	conf_of(&c, "net_null0");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(open_on(sock, NICD_IS_OPEN, "net_null0", &a), 0);
	assert_true(a.yes);
	assert_int_equal(open_on(sock, NICD_OPEN, "net_null1", &a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(ask_on(sock, &q, pair[1], &a), 0);
	close(pair[1]);
	close(sock);
	assert_int_equal(open_on(pair[0], NICD_IS_OPEN, "net_null1", &a), 0);
	assert_true(a.yes);
	assert_int_equal(notes->n_freed[1], 0);
	close(pair[0]);
	/* The number of the ended daemon is free again when all that it had is freed. */
	own = second_begin();
	assert_int_equal(notes->n_freed[1], N_RING);
	assert_int_equal(notes->n_freed[0], 0);
	assert_int_equal(notes->n_closed, 1);
	assert_int_equal(open_on(own, NICD_IS_OPEN, "net_null1", &a), 0);
	assert_false(a.yes);
	assert_int_equal(open_on(own, NICD_IS_OPEN, "net_null0", &a), 0);
	assert_true(a.yes); /* the first daemon has it */
	close(own);
	port_detach(&port);
}

/* --- tests: the end ------------------------------------------------------------------- */

static void
bye_closes_the_devices_and_removes_the_files(void **state)
{
	struct nicd_reply a;
	int sock;

	nics_begin(state);
	sock = nicd_pair();
	assert_int_equal(open_on(sock, NICD_OPEN, "net_null0", &a), 0);
	assert_int_equal(open_on(sock, NICD_OPEN, "net_null1", &a), 0);
	file_make("huge", prefix, "map_0");
	file_make("huge", prefix, "other");
	file_make("huge", "x", "map_0");
	file_make("tmpfs", prefix, "map_0");
	nicd_stop();
	nics_ended();
	assert_false(nicd_is_connected());
	assert_int_equal(notes->n_closed, 2);
	assert_false(file_exists("huge", prefix, "map_0"));
	assert_true(file_exists("huge", prefix, "other"));
	assert_true(file_exists("huge", "x", "map_0"));
	assert_true(file_exists("tmpfs", prefix, "map_0"));
	assert_int_equal(log_said("fpm-nics killed"), 0);
	assert_true(is_closed(sock));
	close(sock);
}

static void
after_a_crash_no_function_of_dpdk_is_called(void **state)
{
	struct port port = {0};
	char why[256] = "";
	struct port_conf c;

	nics_begin(state);
	conf_of(&c, "net_null0");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	nicd_disconnect(false);
	nics_ended();
	assert_int_equal(notes->n_closed, 0);
	assert_int_equal(notes->n_freed[0], 0);
	port_detach(&port);
}

static void
files_of_a_killed_process_are_removed_by_the_next_and_no_others(void **state)
{
	char killed[64], path[300];
	int status;

	nics_begin(state);
	file_make("huge", prefix, "map_0");
	strcpy(killed, prefix);
	assert_int_equal(kill(nics, SIGKILL), 0);
	assert_int_equal(waitpid(nics, &status, 0), nics);
	nicd_disconnect(false);
	assert_true(file_exists("run/dpdk", killed, "/config"));
	/*
	 * One directory belongs to another program. The other has no file that shows that
	 * its process has ended.
	 */
	snprintf(path, sizeof(path), "%s/run/dpdk/rte", notes->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	file_make("run/dpdk/rte", "", "config");
	snprintf(path, sizeof(path), "%s/run/dpdk/fdp1-00000001", notes->dir);
	assert_int_equal(mkdir(path, 0700), 0);

	nics_begin(state);
	assert_false(file_exists("run/dpdk", killed, ""));
	assert_false(file_exists("huge", killed, "map_0"));
	assert_true(file_exists("run/dpdk", prefix, "/config"));
	assert_true(file_exists("run/dpdk", "rte", "/config"));
	assert_true(file_exists("run/dpdk", "fdp1-00000001", ""));
	nics_end(state);
}

/* --- tests: the successor ------------------------------------------------------------- */

static bool
refused_because(const char *reason)
{
	return nics_try(1) == -ENOMEM && !nicd_is_connected() && log_said(reason) == 1;
}

/* Return true if a process has exited, whether its parent knows it or not. */
static bool
has_exited(pid_t pid)
{
	char path[64], state = 'X';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "r");
	if (stat != NULL && fscanf(stat, "%*d (fpm-nics) %c", &state) != 1)
		state = '?';
	if (stat != NULL)
		fclose(stat);
	return state == 'Z' || state == 'X';
}

/*
 * Run as the successor: take fpm-nics over in the case that `word` names. Return the exit
 * code; 0: all is as expected.
 */
static int
successor_main(const char *word)
{
	struct port_conf c;

	if (fcntl(STRAY_FD, F_GETFD) >= 0)
		return 9;
	conf = conf_make();
	conf.keep_nics = strcmp(word, "none") != 0;
	conf.memory_mib += strcmp(word, "memory") == 0;
	if (strcmp(word, "crashed") == 0) {
		is_hasty = true;
		conf.keep_nics = false;
		return nics_try(0) == 0 ? 0 : 2;
	}
	if (strcmp(word, "none") == 0)
		return refused_because("keep-nics is false now") ? 0 : 3;
	if (strcmp(word, "memory") == 0)
		return refused_because("memory.size-mib, the largest MTU or plugins "
				       "have changed")
			       ? 0
			       : 4;
	if (nics_try(1) != 0 || !nicd_is_connected())
		return 5;
	conf_of(&c, "net_null0");
	if (eal_client() != 1 || eal_lcore(0) != 65 || !nicd_has_open(&c))
		return 6;
	if (strcmp(word, "abandon") == 0)
		nicd_abandon();
	nicd_stop(); /* "stop": wait for the end of fpm-nics, which is no child */
	return has_exited(notes->pid) && log_said("fpm-nics killed") == 0 ? 0 : 7;
}

/*
 * Start the successor with a descriptor, close the descriptor, and return the successor's
 * exit code.
 */
static int
successor_run_with(const char *word, const char *name, int fd)
{
	char *const argv[] = {(char *)(uintptr_t) "/proc/self/exe",
			      (char *)(uintptr_t) "--successor", (char *)(uintptr_t)word,
			      NULL};
	struct named_fd passed = {.fd = fd};
	int status, stray = fcntl(1, F_DUPFD, STRAY_FD); /* not inherited */
	unsigned int n_fd = fds_count();
	struct child child;
	sigset_t none;

	sigemptyset(&none);
	snprintf(passed.name, sizeof(passed.name), "%s", name);
	assert_int_equal(child_start(&child, argv, &passed, 1, "successor", &none), 0);
	assert_int_equal(fds_count(), n_fd + 1); /* the socket to the child */
	close(stray);
	close(fd);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_true(is_closed(child.sock));
	close(child.sock);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
successor_run(const char *word)
{
	return successor_run_with(word, NICD_FD, second_begin());
}

static void
the_process_of_a_daemon_that_crashed_is_ended(void **state)
{
	pid_t left = fork();
	int pidfd, status;

	if (left == 0)
		for (;;)
			pause();
	pidfd = (int)syscall(SYS_pidfd_open, left, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(successor_run_with("crashed", NICD_PIDFD_NAME, pidfd), 0);
	if (waitpid(left, &status, WNOHANG) != left) {
		kill(left, SIGKILL);
		fail();
	}
	assert_true(WIFSIGNALED(status));
}

static void
a_successor_takes_fpm_nics_over_if_it_fits(void **state)
{
	struct port port = {0};
	char why[256] = "";
	struct port_conf c;

	conf_of(&c, "net_null0");
	assert_int_equal(nicd_open(&port, &c, why, sizeof(why)), 0);
	assert_int_equal(successor_run("none"), 0);
	assert_int_equal(successor_run("memory"), 0);
	assert_int_equal(successor_run("abandon"), 1);
	assert_int_equal(successor_run("stop"), 0);
	port_detach(&port);
}

/* --- main ----------------------------------------------------------------------------- */

/* Play the service manager of this process. */
static void
manager_begin(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "@test_nicd-%d", getpid());

	setenv("NOTIFY_SOCKET", addr.sun_path, 1);
	addr.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0 ||
	    bind(manager, (struct sockaddr *)&addr,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)) < 0)
		abort();
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nics_begin, nics_end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_record_of_another_length_is_refused_and_a_descriptor_is_passed),
		cmocka_unit_test(an_fpm_nics_of_another_version_is_left),
		cmocka_unit_test(a_start_that_fails_has_its_reason),
		cmocka_unit_test(processes_that_share_dpdk_must_agree_about_its_memory),
		TEST(fpm_nics_is_the_primary_and_the_daemon_joins_it),
		TEST(a_device_is_opened_by_fpm_nics_and_attached_here),
		TEST(an_open_device_is_used_again_if_it_fits),
		TEST(a_device_with_another_number_is_refused),
		TEST(requests_for_a_device_reach_it),
		TEST(a_request_that_is_not_of_this_version_is_refused),
		TEST(what_a_daemon_leaves_is_freed_with_its_last_connection),
		TEST(a_successor_takes_fpm_nics_over_if_it_fits),
		cmocka_unit_test(the_process_of_a_daemon_that_crashed_is_ended),
		cmocka_unit_test(bye_closes_the_devices_and_removes_the_files),
		cmocka_unit_test(after_a_crash_no_function_of_dpdk_is_called),
		cmocka_unit_test(
			files_of_a_killed_process_are_removed_by_the_next_and_no_others),
	};
	const char *path = getenv("TEST_NICD");

	if (path != NULL)
		notes_map(path, 0);
	else
		manager_begin();
	sd_init();
	if (argc == 4 && strcmp(argv[3], "--nics") == 0) {
		is_nics = true;
		conf = conf_make();
		return nicd_serve(&conf);
	}
	if (argc == 3 && strcmp(argv[1], "--successor") == 0)
		return successor_main(argv[2]);
	return cmocka_run_group_tests_name("nicd", tests, dir_make, dir_remove);
}
