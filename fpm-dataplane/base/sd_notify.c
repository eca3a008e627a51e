/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service manager's protocol: datagrams of VARIABLE=value lines to a Unix socket, with
 * descriptors as ancillary data; inherited descriptors count from 3. The daemon does not
 * use libsystemd, because that library would load compressors and ciphers into a process
 * that must not crash.                                                              [main]
 */
#include "base/sd_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"

#define FDS_MAX 256
/*
 * Set instead of LISTEN_PID, because a predecessor does not know the process id of its
 * successor when it makes the environment.
 */
#define FOR_SUCCESSOR "FPM_DATAPLANE_SUCCESSOR"
#define ORPHAN        "0" /* value of FOR_SUCCESSOR if the supervisor has ended */

static struct {
	struct sockaddr_un addr;
	socklen_t addr_len; /* 0: there is no manager */
	int fd; /* connected to the manager; -1: each datagram goes to the path */
	/*
	 * The socket for datagrams to the path that must not wait (WATCHDOG=1). It stays
	 * open, so that they can be sent when no descriptor is free; -1: none
	 */
	int path_fd;
	bool is_stalled; /* the manager did not read within SD_SEND_MS */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* as in NOTIFY_SOCKET */
	unsigned int watchdog_ms;
	bool mute; /* the predecessor is still the daemon: send nothing */
	struct {
		int fd; /* -1: taken */
		char name[104];
	} in[FDS_MAX];
	unsigned int n_in;
} manager = {.fd = -1, .path_fd = -1};

/* The restarts that were requested and refused. */
static struct {
	pthread_mutex_t lock;
	unsigned int n;
	char why[SD_WHY_STRLEN];
} refusal = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Return a number of the environment; 0: it is missing or malformed. */
static unsigned long
env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long n;

	if (text == NULL)
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	return errno != 0 || end == text || *end != '\0' ? 0 : n;
}

/*
 * Return true if the manager's variables are for this process, by LISTEN_PID or
 * WATCHDOG_PID.
 */
static bool
variables_are_ours(const char *pid_name, bool must_be_there)
{
	if (getenv(FOR_SUCCESSOR) != NULL)
		return true;
	if (getenv(pid_name) == NULL)
		return !must_be_there;
	return env_number(pid_name) == (unsigned long)getpid();
}

static void
fds_inherit(void)
{
	unsigned long n = env_number("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");

	if (!variables_are_ours("LISTEN_PID", true))
		return;
	if (n > FDS_MAX)
		n = FDS_MAX;
	for (unsigned int i = 0; i < n; i++) {
		size_t len = names == NULL ? 0 : strcspn(names, ":");
		int fd = SD_FIRST_FD + (int)i;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			break; /* fewer descriptors than announced */
		manager.in[i].fd = fd;
		snprintf(manager.in[i].name, sizeof(manager.in[i].name), "%.*s", (int)len,
			 len == 0 ? "" : names);
		manager.n_in++;
		names = names == NULL || names[len] == '\0' ? NULL : names + len + 1;
	}
}

/*
 * Connect to the manager. When the owner of a name in the abstract namespace ends, any
 * program can take the name, and would receive the descriptors of the TAPs. A connected
 * socket sends to the first owner only.
 */
static void
manager_connect(void)
{
	manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager.fd >= 0)
		(void)connect(manager.fd, (struct sockaddr *)&manager.addr,
			      manager.addr_len);
}

static void
manager_find(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *successor = getenv(FOR_SUCCESSOR);
	size_t len = path == NULL ? 0 : strlen(path);

	if (successor != NULL && strcmp(successor, ORPHAN) == 0) {
		/*
		 * The predecessor's manager has ended. Pretend to have a manager, with a
		 * socket on which each send fails.
		 */
		manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		manager.addr_len = manager.fd >= 0 ? sizeof(manager.addr.sun_family) : 0;
		return;
	}
	if (len < 2 || len >= sizeof(manager.addr.sun_path) ||
	    strchr("/@", path[0]) == NULL)
		return;
	manager.addr.sun_family = AF_UNIX;
	memcpy(manager.path, path, len);
	memcpy(manager.addr.sun_path, path, len);
	if (path[0] == '@') /* in the abstract namespace the length is part of the name */
		manager.addr.sun_path[0] = '\0';
	manager.addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
				       (path[0] == '/'));
	if (path[0] == '@')
		manager_connect();
	else
		manager.path_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

void
sd_init(void)
{
	static const char *const ours[] = {
		"LISTEN_PID",   "LISTEN_FDS",    "LISTEN_FDNAMES", "NOTIFY_SOCKET",
		"WATCHDOG_PID", "WATCHDOG_USEC", FOR_SUCCESSOR};

	fds_inherit();
	manager_find();
	manager.mute = getenv(FOR_SUCCESSOR) != NULL;
	if (variables_are_ours("WATCHDOG_PID", false))
		manager.watchdog_ms = (unsigned int)(env_number("WATCHDOG_USEC") / 2000);
	for (unsigned int i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		unsetenv(ours[i]);
}

/* Format a text into new memory; NULL if out of memory. */
static char *
text_format(const char *fmt, ...)
{
	va_list ap;
	char *made;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&made, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : made;
}

char **
sd_env(const char *names, unsigned int n)
{
	unsigned int n_old = 0, at;
	bool complete = true, is_orphan = sd_has_manager() && !sd_manager_runs();
	char **env;

	while (environ[n_old] != NULL)
		n_old++;
	env = calloc(n_old + 6, sizeof(*env));
	if (env == NULL)
		return NULL;
	char *const added[5] = {
		/* The name of a manager that has ended is not passed on. */
		text_format("NOTIFY_SOCKET=%s", is_orphan ? "" : manager.path),
		text_format("WATCHDOG_USEC=%llu", manager.watchdog_ms * 2000ull),
		text_format("LISTEN_FDS=%u", n),
		text_format("LISTEN_FDNAMES=%s", names),
		text_format(FOR_SUCCESSOR "=%s", is_orphan ? ORPHAN : "1"),
	};
	for (unsigned int i = 0; i < 5; i++)
		complete &= added[i] != NULL;
	if (!complete) {
		for (unsigned int i = 0; i < 5; i++)
			free(added[i]);
		free(env);
		return NULL;
	}
	memcpy(env, environ, n_old * sizeof(*env));
	at = n_old;
	for (unsigned int i = 0; i < 5; i++)
		env[at++] = added[i];
	return env;
}

void
sd_env_free(char **env)
{
	unsigned int i = 0;

	while (environ[i] != NULL && env[i] == environ[i])
		i++;
	for (; env[i] != NULL; i++)
		free(env[i]);
	free(env);
}

bool
sd_has_manager(void)
{
	return manager.addr_len != 0;
}

static bool
is_manager_gone(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOENT;
}

/*
 * Send on the connected socket, as state_send(). Other threads may send at the same time,
 * so the options of the socket stay as they are.
 */
static int
state_send_connected(const struct msghdr *msg, int flags, unsigned int most_ms)
{
	uint64_t end_ms = monotonic_ms() + most_ms, now;
	struct pollfd p = {.fd = manager.fd, .events = POLLOUT};

	if (most_ms > 0)
		flags |= MSG_DONTWAIT;
	while (sendmsg(manager.fd, msg, MSG_NOSIGNAL | flags) < 0) {
		/*
		 * The kernel reports the end of the manager once as ECONNREFUSED, then as
		 * ENOTCONN.
		 */
		if (errno == ENOTCONN)
			return -ECONNREFUSED;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
		now = monotonic_ms();
		if (errno == EAGAIN && now >= end_ms)
			return -EAGAIN;
		if (errno == EAGAIN)
			(void)poll(&p, 1, (int)(end_ms - now));
	}
	return 0;
}

/* Send a datagram; wait up to `most_ms` for room in the manager's queue. */
static int
state_send_within(const char *state, int fd, int flags, unsigned int most_ms)
{
	const struct timeval most = {.tv_sec = most_ms / 1000,
				     .tv_usec = most_ms % 1000 * 1000};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(unsigned long)state,
			    .iov_len = strlen(state)};
	struct msghdr msg = {.msg_name = manager.fd < 0 ? &manager.addr : NULL,
			     .msg_namelen = manager.fd < 0 ? manager.addr_len : 0,
			     .msg_iov = &iov,
			     .msg_iovlen = 1};
	int kept = (flags & MSG_DONTWAIT) != 0 ? manager.path_fd : -1;
	int sock, rc;

	if (!sd_has_manager())
		return -ENOTCONN;
	if (manager.mute)
		return 0;
	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	if (manager.fd >= 0)
		return state_send_connected(&msg, flags, most_ms);
	sock = kept >= 0 ? kept : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (most_ms > 0)
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	do
		rc = sendmsg(sock, &msg, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
	while (rc == -EINTR);
	if (sock != kept)
		close(sock);
	return rc;
}

static int
state_send(const char *state, int fd, int flags, unsigned int most_ms)
{
	int rc = state_send_within(state, fd, flags, most_ms);

	/*
	 * A datagram that does not wait for room does not show whether the manager reads.
	 */
	if (rc != -EAGAIN || most_ms > 0)
		__atomic_store_n(&manager.is_stalled, rc == -EAGAIN, __ATOMIC_RELAXED);
	return rc;
}

/*
 * Send a datagram; wait while the manager's queue is full. If the manager is stopped, only
 * the first call waits for SD_SEND_MS; the next calls wait for 1 ms.
 */
static int
state_send_wait(const char *state, int fd)
{
	bool stalled = __atomic_load_n(&manager.is_stalled, __ATOMIC_RELAXED);

	return state_send(state, fd, 0, stalled ? 1 : haste_ms(SD_SEND_MS));
}

bool
sd_manager_runs(void)
{
	int sock, rc = 0;

	if (!sd_has_manager())
		return false;
	if (manager.fd >= 0) /* send any datagram, to see the error */
		return !is_manager_gone(state_send("WATCHDOG=1", -1, MSG_DONTWAIT, 0));
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return true; /* assume that the manager runs */
	if (connect(sock, (struct sockaddr *)&manager.addr, manager.addr_len) < 0)
		rc = -errno;
	close(sock);
	return !is_manager_gone(rc);
}

unsigned int
sd_watchdog_ms(void)
{
	return manager.watchdog_ms;
}

bool
sd_is_restarted(void)
{
	return manager.n_in > 0 && !manager.mute;
}

int
sd_take(const char *name)
{
	int fd = -1;

	for (unsigned int i = 0; i < manager.n_in; i++) {
		if (manager.in[i].fd < 0 || strcmp(manager.in[i].name, name) != 0)
			continue;
		if (fd >= 0)
			close(fd);
		fd = manager.in[i].fd;
		manager.in[i].fd = -1;
	}
	return fd;
}

int
sd_find(bool (*is_it)(void *ctx, const char *name, int fd), void *ctx)
{
	for (unsigned int i = 0; i < manager.n_in; i++)
		if (manager.in[i].fd >= 0 &&
		    is_it(ctx, manager.in[i].name, manager.in[i].fd))
			return manager.in[i].fd;
	return -1;
}

int
sd_take_next(char *name, unsigned int size)
{
	for (unsigned int i = 0; i < manager.n_in; i++) {
		if (manager.in[i].fd < 0)
			continue;
		snprintf(name, size, "%s", manager.in[i].name);
		return sd_take(manager.in[i].name);
	}
	return -1;
}

int
sd_send(const char *state)
{
	return state_send_wait(state, -1);
}

int
sd_set_mainpid(pid_t successor, unsigned int most_ms)
{
	char state[32];
	int rc;

	snprintf(state, sizeof(state), "MAINPID=%d", (int)successor);
	rc = state_send(state, -1, 0, most_ms);
	return rc == -ENOTCONN || is_manager_gone(rc) ? 0 : rc;
}

void
sd_unmute(void)
{
	manager.mute = false;
}

void
sd_send_nowait(const char *state)
{
	static bool gone;
	bool was_gone = gone;

	gone = is_manager_gone(state_send(state, -1, MSG_DONTWAIT, 0));
	if (gone && !was_gone)
		log_warn("main: supervisor ended effect=no-automatic-restart");
}

void
sd_start_step(const char *step)
{
	char state[128];

	/*
	 * After MAINPID= systemd still expects WATCHDOG=1 of a service that was ready. Send
	 * WATCHDOG=1 and EXTEND_TIMEOUT_USEC= in separate datagrams: if one datagram has
	 * both, systemd applies WATCHDOG=1 last, which cancels the extension.
	 */
	sd_send_nowait("WATCHDOG=1");
	snprintf(state, sizeof(state),
		 "EXTEND_TIMEOUT_USEC=%u000000\nSTATUS=starting: %.60s", SD_STEP_S, step);
	sd_send_nowait(state);
}

void
sd_successor_step(const char *step)
{
	char state[128];

	snprintf(state, sizeof(state), "WATCHDOG=1\nSTATUS=starting: %.60s", step);
	sd_send_nowait(state);
}

void
sd_refusal_add(const char *why)
{
	pthread_mutex_lock(&refusal.lock);
	refusal.n++;
	snprintf(refusal.why, sizeof(refusal.why), "%s", why);
	pthread_mutex_unlock(&refusal.lock);
}

unsigned int
sd_refusal_count(char why[SD_WHY_STRLEN])
{
	unsigned int n;

	pthread_mutex_lock(&refusal.lock);
	n = refusal.n;
	memcpy(why, refusal.why, SD_WHY_STRLEN);
	pthread_mutex_unlock(&refusal.lock);
	return n;
}

static const char *
fdstore_text(const char *name, char state[160])
{
	/*
	 * FDPOLL=0: the manager must keep the descriptor even after an error or hangup; the
	 * next daemon checks it.
	 */
	snprintf(state, 160, "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	return state;
}

int
sd_fdstore(const char *name, int fd)
{
	char state[160];

	return state_send_wait(fdstore_text(name, state), fd);
}

static const char *
fdremove_text(const char *name, char state[160])
{
	snprintf(state, 160, "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return state;
}

int
sd_fdremove(const char *name)
{
	char state[160];

	return state_send_wait(fdremove_text(name, state), -1);
}

int
sd_fdreplace_try(const char *name, int fd)
{
	char state[160];
	int rc = state_send(fdremove_text(name, state), -1, MSG_DONTWAIT, 0);

	if (rc < 0 || fd < 0)
		return rc;
	return state_send(fdstore_text(name, state), fd, MSG_DONTWAIT, 0);
}

/*
 * Wait until the manager has processed all datagrams sent before: it then closes the
 * descriptor that was sent with BARRIER=1.
 */
static int
manager_barrier(uint64_t end_ms)
{
	/* only POLLHUP: every copy of the other end is closed */
	struct pollfd p = {.events = 0};
	uint64_t now = monotonic_ms();
	int pair[2], rc;

	if (now >= end_ms)
		return -ETIMEDOUT;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	rc = state_send("BARRIER=1", pair[1], 0, (unsigned int)(end_ms - now));
	close(pair[1]);
	p.fd = pair[0];
	while (rc == 0 && (p.revents & POLLHUP) == 0) {
		now = monotonic_ms();
		if (now >= end_ms)
			rc = -ETIMEDOUT;
		else if (poll(&p, 1, (int)(end_ms - now)) < 0 && errno != EINTR)
			rc = -errno;
	}
	close(pair[0]);
	return rc;
}

int
sd_fdremove_wait(const char *name, unsigned int most_ms)
{
	uint64_t end_ms = monotonic_ms() + most_ms;
	char state[160];
	int rc = state_send(fdremove_text(name, state), -1, 0, most_ms);

	if (rc == 0)
		rc = manager_barrier(end_ms);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}
