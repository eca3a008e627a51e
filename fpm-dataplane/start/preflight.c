/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check the needs of a start in main, before DPDK, ports and TAPs exist, so that a refused
 * start has nothing to undo and its message names the key of the configuration.
 */
#include "start/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/rlimits.h"
#include "base/sd_notify.h"
#include "base/sockaddr.h"
#include "config/print.h"
#include "tap-bridge/netns.h"

/*
 * Descriptors for the EAL, event loops, monitors and zebra: libraries abort the process if
 * they get no descriptor. In addition each client has a descriptor; a port has its TAP, an
 * event queue and a socket per forwarder, and in a planned restart a second descriptor of
 * its TAP.
 */
#define FILES_OWN 64
#define FILES_BFD 64 /* connections to bfdd, and sockets of sessions without a port */

/*
 * A forwarder has the tables of a burst on its stack: 576 KiB. EAL and drivers need more.
 */
#define STACK_BYTES (2u << 20)

#define THREADS_TRIED 4

#define DYING_MS 2000 /* more than the kernel needs to free the memory of a killed daemon */

static int
descriptors_try(const struct config *conf)
{
	rlim_t want = FILES_OWN + (conf->bfd.on ? FILES_BFD : 0) +
		      conf->n_port * (3 + conf->n_core) +
		      table_limit(&conf->limits, TABLE_clients) +
		      table_limit(&conf->limits, TABLE_http_clients) + WAITING_MAX +
		      SCRAPES_MAX + SCRAPES_ENDING_MAX;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return -errno;
	if (lim.rlim_cur >= want)
		return 0;
	if (lim.rlim_max >= want) { /* the process may raise its soft limit itself */
		lim.rlim_cur = want;
		if (setrlimit(RLIMIT_NOFILE, &lim) == 0)
			return 0;
	}
	log_error("main: too few open files allowed=%llu needed=%llu "
		  "see=\"ulimit -n, limits.clients, limits.http-clients\"",
		  (unsigned long long)lim.rlim_max, (unsigned long long)want);
	return -EMFILE;
}

/* Give the threads that are made from now on a stack of STACK_BYTES at least. */
static int
thread_stacks_enlarge(void)
{
	pthread_attr_t attr;
	size_t bytes;
	int rc = pthread_getattr_default_np(&attr);

	if (rc != 0)
		return -rc;
	rc = pthread_attr_getstacksize(&attr, &bytes);
	if (rc == 0 && bytes < STACK_BYTES) {
		rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
		if (rc == 0)
			rc = pthread_setattr_default_np(&attr);
	}
	pthread_attr_destroy(&attr);
	return -rc;
}

int
preflight_stack(void)
{
	struct rlimit lim;
	int rc;

	if (getrlimit(RLIMIT_STACK, &lim) < 0)
		return -errno;
	if (lim.rlim_cur < STACK_BYTES && lim.rlim_max >= STACK_BYTES) {
		lim.rlim_cur = STACK_BYTES;
		if (setrlimit(RLIMIT_STACK, &lim) < 0)
			return -errno;
	}
	if (lim.rlim_cur < STACK_BYTES) {
		log_error("main: stack too small allowed_bytes=%llu needed_bytes=%u "
			  "see=\"ulimit -s\"",
			  (unsigned long long)lim.rlim_max, STACK_BYTES);
		return -ENOMEM;
	}
	rc = thread_stacks_enlarge();
	if (rc < 0)
		log_error("main: stack size of threads not set error=\"%s\"",
			  strerror(-rc));
	return rc;
}

static void *
thread_that_waits(void *end)
{
	while (sem_wait(end) < 0)
		continue; /* interrupted by a signal */
	return NULL;
}

/*
 * Start a few threads, all at the same time, and end them. Limits of address space, data or
 * threads may forbid it, and liburcu aborts the process if one of its threads does not
 * start.
 */
static int
threads_try(void)
{
	pthread_t thread[THREADS_TRIED];
	unsigned int n = 0;
	char limits[128];
	sem_t end;
	int rc = 0;

	sem_init(&end, 0, 0);
	for (; n < THREADS_TRIED && rc == 0; n += rc == 0)
		rc = pthread_create(&thread[n], NULL, thread_that_waits, &end);
	for (unsigned int i = 0; i < n; i++)
		sem_post(&end);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	sem_destroy(&end);
	if (rc != 0)
		log_error("main: thread does not start error=\"%s\" limits=\"%s\" "
			  "see=\"ulimit -a, free memory, pids.max of the cgroup\"",
			  strerror(rc), rlimits_text(limits, sizeof(limits)));
	return -rc;
}

static int
address_bind_try(const struct sockaddr_storage *addr, bool v6only)
{
	socklen_t len = sockaddr_bytes(addr);
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1, only = v6only, rc = 0;

	if (fd < 0)
		return -errno;
	/*
	 * Set SO_REUSEADDR as the listeners do, so that old connections in TIME_WAIT do not
	 * prevent the bind.
	 */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	if (bind(fd, (const struct sockaddr *)addr, len) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int
listener_try(const char *key, const char *netns, const struct sockaddr_storage *addr,
	     bool v6only)
{
	char text[CONFIG_LISTEN_STRLEN];
	struct netns_guard guard;
	int rc = netns_enter(netns, &guard);

	if (rc < 0) {
		log_error("main: control namespace not entered netns=%s error=\"%s\"",
			  netns, strerror(-rc));
		return rc;
	}
	rc = address_bind_try(addr, v6only);
	netns_leave(&guard);
	if (rc < 0)
		log_error("main: address not available key=%s address=%s error=\"%s\"%s",
			  key, config_listen_str(addr, text), strerror(-rc),
			  rc == -EADDRINUSE ? " hint=another-daemon" : "");
	return rc;
}

/*
 * Probe the control socket, and wait at most `ms` for an answer. A daemon that is being
 * killed keeps its socket, and does not answer, until the kernel has freed it. Return 1: a
 * daemon answers; 0: no answer yet; -ECONNREFUSED or another error: no daemon listens.
 */
static int
control_socket_probe(const char *path, int ms)
{
	static const char question[] = "{\"show\": \"version\"}\n";
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char octet;

	if (fd < 0)
		return -errno;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0)
		rc = errno == EAGAIN ? 0 : -errno; /* full backlog: a daemon listens */
	else if (send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) > 0 &&
		 poll(&p, 1, ms) > 0)
		rc = recv(fd, &octet, 1, 0) > 0;
	close(fd);
	return rc;
}

/*
 * Remove a socket to which this process is denied access, because an operator has changed
 * its owner or mode. Refuse this unless it is `ours`: another daemon may listen on it.
 */
static int
control_socket_remove(const char *path, bool ours)
{
	int rc = -EACCES;

	if (ours)
		rc = unlink(path) < 0 ? -errno : 0;
	if (rc < 0)
		log_error("main: control socket not opened path=%s error=\"%s\" "
			  "see=\"owner and mode of this socket\"",
			  path, strerror(-rc));
	return rc;
}

static int
control_socket_free_try(const char *path, bool ours)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t begin = monotonic_ms();
	int rc;

	while ((rc = control_socket_probe(path, DYING_MS)) == 0) {
		if (monotonic_ms() - begin >= DYING_MS)
			break;
		nanosleep(&pause, NULL);
	}
	if (rc == -EACCES)
		return control_socket_remove(path, ours);
	if (rc < 0)
		return 0; /* no socket, or the socket of a dead daemon */
	log_error("main: control socket in use path=%s hint=another-daemon", path);
	return -EADDRINUSE;
}

/* Return true if this process has the capability CAP_FOWNER. */
static bool
owner_of_all_files(void)
{
	struct __user_cap_header_struct self = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &self, set) == 0 &&
	       (set[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER)) != 0;
}

/*
 * Return true if the sticky bit of directory `dir` (as of /tmp, see unlink(2)) prevents
 * this process from removing `file`.
 */
static bool
sticky_prevents(const char *dir, const struct stat *file)
{
	uid_t me = geteuid();
	struct stat st;

	return stat(dir, &st) == 0 && (st.st_mode & S_ISVTX) != 0 && st.st_uid != me &&
	       file->st_uid != me && !owner_of_all_files();
}

/*
 * Check whether ui can make a socket at `path`, or replace the socket that is there, and
 * can make the directories above it. Return 0 or -errno.
 */
static int
control_socket_place_try(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat st;
	bool there = lstat(path, &st) == 0;
	int rc = there && !S_ISSOCK(st.st_mode) ? -EEXIST : -ENOENT;

	snprintf(dir, sizeof(dir), "%s", path);
	/* The nearest directory that exists decides. */
	for (char *slash; rc == -ENOENT && (slash = strrchr(dir, '/')) != NULL;) {
		slash[slash == dir] = '\0';
		rc = faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
		if (rc == 0 && there && sticky_prevents(dir, &st))
			rc = -EPERM;
		if (slash == dir)
			break;
	}
	if (rc < 0)
		log_error("main: control socket not opened path=%s error=\"%s\"", path,
			  strerror(-rc));
	return rc;
}

/*
 * Warn of small MTUs, because the kernel logs nothing when it removes IPv6 from an
 * interface, or creates an interface without IPv6.
 */
static void
mtu_warn(const struct config *conf)
{
	for (unsigned int i = 0; i < conf->n_port; i++)
		if (conf->port[i].mtu_bytes < CONFIG_MTU_IP6_MIN)
			log_warn("main: ipv6 disabled reason=mtu-below-1280 port=%s mtu=%u",
				 conf->port[i].tap, conf->port[i].mtu_bytes);
}

/* `ours`: if there is a socket, then it is of an earlier daemon, which has closed it. */
static int
control_socket_try(const struct config *conf, bool ours)
{
	int rc = control_socket_free_try(conf->control_socket, ours);

	return rc < 0 ? rc : control_socket_place_try(conf->control_socket);
}

int
preflight(const struct config *conf, bool successor)
{
	int rc = netns_keep(conf->control_netns);

	if (rc < 0)
		log_error("main: namespace not opened name=%s error=\"%s\"",
			  conf->control_netns, strerror(-rc));
	else
		rc = descriptors_try(conf);
	if (rc == 0)
		rc = threads_try();
	mtu_warn(conf);
	/* If a refused successor left no place, its predecessor could not listen again. */
	if (rc == 0 && successor)
		rc = control_socket_place_try(conf->control_socket);
	else if (rc == 0)
		rc = sd_is_restarted() ? control_socket_try(conf, true)
				       : preflight_listen(conf, false);
	return rc;
}

int
preflight_listen(const struct config *conf, bool successor)
{
	int rc = control_socket_try(conf, successor);

	if (rc == 0)
		rc = listener_try("fpm.listen", conf->control_netns, &conf->fpm_listen,
				  false);
	if (rc == 0 && conf->metrics_on)
		rc = listener_try("metrics", conf->control_netns, &conf->metrics_listen,
				  true);
	return rc;
}
