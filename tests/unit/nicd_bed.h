/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of test_nicd: the test program plays the daemon, and starts itself again as
 * fpm-nics and as a successor. DPDK is real, with net_null devices and without hugepages:
 * each process has its own memory. The functions of DPDK that are defined here take
 * precedence over the library, and note the calls of fpm-nics in a file that all processes
 * map.
 */
#ifndef NICD_BED_H
#define NICD_BED_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "nicd/nicd.h"
#include "patience.h"
#include "port/nicd_client.h"
#include "restart/spawn.h"
#include "start/eal.h"
#include "start/privileges.h"

#define N_RING 40 /* more rings than fpm-nics frees at a time */

/* W:fpm-nics, except `dir`, `refuse` and `mac_end`. */
static struct notes {
	char dir[64];     /* for all files of the test */
	int refuse;       /* rte_errno with which its EAL refuses to start; 0: it starts */
	int n_dropped;    /* calls of privilege_drop() */
	char words[4096]; /* the arguments of its EAL */
	unsigned int n_closed, n_freed[NICD_CLIENTS];
	pid_t pid;
	unsigned int mtu, n_link_up, n_link_down;
	uint8_t mac[6], added[6], removed[6];
	uint8_t mac_end; /* the last octet of the MAC address of each device */
} * notes;

static bool is_nics;
static bool is_hasty; /* poll() waits a 50th of the requested time */

static struct config
conf_make(void)
{
	return (struct config){.file = "file of the configuration",
			       .keep_nics = true,
			       .memory_mib = 32,
			       .n_port = 1,
			       .port = {{.mtu_bytes = 1500}}};
}

/* --- functions that this program replaces --------------------------------------------- */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int
privilege_drop(bool real_time)
{
	notes->n_dropped++;
	return 0;
}

static char daemon_words[4096];

static void
rings_leave(unsigned int client)
{
	for (unsigned int i = 0; i < N_RING; i++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "left-%u.%u", i, client);
		if (rte_ring_create(name, 8, 0, 0) == NULL)
			abort();
	}
}

/* Note the arguments, and start DPDK without hugepages. */
int
rte_eal_init(int argc, char **argv)
{
	const char *prefix = is_nics ? eal_prefix() : "test_nicd";
	const char *ours[] = {"test",
			      "--no-huge",
			      "-m",
			      "32",
			      "--file-prefix",
			      prefix,
			      "--no-pci",
			      "--no-telemetry",
			      "--lcores",
			      "0",
			      "--log-level=*:critical"};
	char *words = is_nics ? notes->words : daemon_words;
	size_t n = 0;
	int rc;

	for (int i = 0; i < argc; i++)
		n += (size_t)snprintf(words + n, 4096 - n, "%s%s", i > 0 ? " " : "",
				      argv[i]);
	if (argv[argc] != NULL)
		abort();
	if (is_nics && notes->refuse != 0) {
		rte_errno = notes->refuse;
		return -1;
	}
	rc = REAL(rte_eal_init)(sizeof(ours) / sizeof(ours[0]), (char **)(uintptr_t)ours);
	if (is_nics)
		notes->pid = getpid();
	for (unsigned int i = 0; is_nics && i < NICD_CLIENTS; i++)
		rings_leave(i);
	return rc;
}

int
poll(struct pollfd *fds, nfds_t n, int max_ms)
{
	return REAL(poll)(fds, n, is_hasty && max_ms > 0 ? max_ms / 50 : max_ms);
}

/* DPDK measures the clock for 100 ms when it starts. 5 ms are enough for a test. */
int
nanosleep(const struct timespec *request, struct timespec *remain)
{
	const struct timespec less = {request->tv_sec, request->tv_nsec / 20};

	return REAL(nanosleep)(is_nics ? &less : request, remain);
}

void
rte_ring_free(struct rte_ring *r)
{
	const char *client = r != NULL ? strchr(r->name, '.') : NULL;

	if (client != NULL && strncmp(r->name, "left-", 5) == 0)
		notes->n_freed[atoi(client + 1)]++;
	REAL(rte_ring_free)(r);
}

/* The real function attaches a device in all processes that share DPDK. Here it fails. */
int
rte_dev_probe(const char *devargs)
{
	return -EIO;
}

int
rte_eth_dev_close(uint16_t port_id)
{
	notes->n_closed += is_nics;
	return REAL(rte_eth_dev_close)(port_id);
}

int
rte_eth_dev_set_mtu(uint16_t port_id, uint16_t mtu)
{
	assert_true(is_nics);
	notes->mtu = mtu;
	return mtu == 99 ? -EINVAL : 0;
}

int
rte_eth_dev_default_mac_addr_set(uint16_t port_id, struct rte_ether_addr *addr)
{
	memcpy(notes->mac, addr, sizeof(notes->mac));
	return 0;
}

int
rte_eth_macaddr_get(uint16_t port_id, struct rte_ether_addr *addr)
{
	*addr = (struct rte_ether_addr){{2, 1, 2, 3, 4, notes->mac_end}};
	return 0;
}

int
rte_eth_dev_mac_addr_add(uint16_t port_id, struct rte_ether_addr *addr, uint32_t pool)
{
	memcpy(notes->added, addr, sizeof(notes->added));
	return 0;
}

int
rte_eth_dev_mac_addr_remove(uint16_t port_id, struct rte_ether_addr *addr)
{
	memcpy(notes->removed, addr, sizeof(notes->removed));
	return 0;
}

int
rte_eth_dev_set_link_up(uint16_t port_id)
{
	notes->n_link_up++;
	return 0;
}

int
rte_eth_dev_set_link_down(uint16_t port_id)
{
	notes->n_link_down++;
	return -ENOTSUP;
}

int
rte_eth_stats_get(uint16_t port_id, struct rte_eth_stats *stats)
{
	*stats = (struct rte_eth_stats){.ipackets = 11, .opackets = 22, .imissed = 33};
	return port_id == 0 ? 0 : -EIO;
}

/* The machine has one mount of hugetlbfs: the folder `huge` of the test. */
static unsigned int n_mount;

FILE *
setmntent(const char *file, const char *type)
{
	n_mount = 0;
	return stdin;
}

struct mntent *
getmntent(FILE *stream)
{
	static char dir[2][80];
	static struct mntent mount[] = {
		{.mnt_dir = dir[0], .mnt_type = (char *)(uintptr_t) "tmpfs"},
		{.mnt_dir = dir[1], .mnt_type = (char *)(uintptr_t) "hugetlbfs"},
	};

	snprintf(dir[0], sizeof(dir[0]), "%s/tmpfs", notes->dir);
	snprintf(dir[1], sizeof(dir[1]), "%s/huge", notes->dir);
	return n_mount < 2 ? &mount[n_mount++] : NULL;
}

int
endmntent(FILE *stream)
{
	return 1;
}

/* --- the processes -------------------------------------------------------------------- */

static struct config conf;
static pid_t nics;      /* process id of fpm-nics */
static char prefix[64]; /* file prefix of its DPDK */

static void
file_make(const char *folder, const char *prefix_, const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s%s", notes->dir, folder, prefix_, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static bool
file_exists(const char *folder, const char *prefix_, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s/%s%s", notes->dir, folder, prefix_, name);
	return access(path, F_OK) == 0;
}

static int
nics_try(pid_t old)
{
	char *const argv[] = {(char *)(uintptr_t) "/proc/self/exe", NULL};
	sigset_t none;

	sigemptyset(&none);
	return nicd_start(&conf, argv, old, &none);
}

/* Start fpm-nics. */
static int
nics_begin(void **state)
{
	char dir[64], *at;
	unsigned int more;

	snprintf(dir, sizeof(dir), "%s", notes->dir);
	memset(notes, 0, sizeof(*notes));
	snprintf(notes->dir, sizeof(notes->dir), "%s", dir);
	conf = conf_make();
	assert_int_equal(nics_try(0), 0);
	at = strstr(notes->words, "--file-prefix ");
	assert_non_null(at);
	snprintf(prefix, sizeof(prefix), "%s", at + strlen("--file-prefix "));
	assert_int_equal(sscanf(prefix, EAL_PREFIX, &nics, &more), 2);
	return 0;
}

/* Wait until fpm-nics has exited. */
static void
nics_ended(void)
{
	int status;

	assert_int_equal(waitpid(nics, &status, 0), nics);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_false(file_exists("run/dpdk", prefix, ""));
}

static int
nics_end(void **state)
{
	nicd_stop();
	nics_ended();
	return 0;
}

static void
conf_of(struct port_conf *c, const char *device)
{
	*c = (struct port_conf){.tap = "tap0",
				.tap_fd = -1,
				.mtu_bytes = 1400,
				.n_txq = 2,
				.interrupts = true};
	snprintf(c->device, sizeof(c->device), "%s", device);
}

/* Detach a device in this process alone. */
static void
port_detach(const struct port *port)
{
	struct rte_eth_dev_info info;

	assert_int_equal(rte_eth_dev_info_get(port->port_id, &info), 0);
	rte_eth_dev_close(port->port_id);
	assert_int_equal(rte_dev_remove(info.device), 0);
}

/* Become a second daemon, as soon as fpm-nics has forgotten an earlier second daemon. */
static int
second_begin(void)
{
	int sock;

	while ((sock = nicd_pair()) < 0)
		usleep(1000);
	return sock;
}

/* Send a request with the content that the test chose. Return the result of fpm-nics. */
static int
ask_on(int sock, struct nicd_request *q, int fd, struct nicd_reply *a)
{
	int rc;

	q->layout = NICD_LAYOUT;
	assert_int_equal(nicd_send(sock, q, sizeof(*q), fd), 0);
	rc = nicd_recv(sock, a, sizeof(*a), NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(a->layout, NICD_LAYOUT);
	return a->rc;
}

static int
open_on(int sock, enum nicd_op op, const char *device, struct nicd_reply *a)
{
	struct nicd_request q = {.op = op};

	conf_of(&q.conf, device);
	return ask_on(sock, &q, -1, a);
}

static bool
is_closed(int sock)
{
	struct pollfd p = {.fd = sock};

	return poll(&p, 1, PATIENCE_MS) == 1 && (p.revents & POLLHUP) != 0;
}

/* --- files --- */

static void
notes_map(const char *path, int flags)
{
	int fd = open(path, O_RDWR | flags, 0600);

	if (fd < 0 || (flags != 0 && ftruncate(fd, sizeof(*notes)) < 0))
		abort();
	notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (notes == MAP_FAILED)
		abort();
	close(fd);
}

static int
dir_make(void **state)
{
	char dir[] = "/tmp/test_nicdXXXXXX", path[80];

	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/notes", dir);
	notes_map(path, O_CREAT);
	setenv("TEST_NICD", path, 1);
	snprintf(notes->dir, sizeof(notes->dir), "%s", dir);
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const name[] = {"run", "huge", "tmpfs"};

		snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	snprintf(path, sizeof(path), "%s/run", dir);
	setenv("RUNTIME_DIRECTORY", path, 1);
	return 0;
}

static int
dir_remove(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", notes->dir);
	return system(command);
}

#endif
