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
/* Set instead of LISTEN_PID, because the process id of the successor was not known. */
#define FOR_SUCCESSOR "FPM_DATAPLANE_SUCCESSOR"
#define ORPHAN        "0" /* its value when the supervisor has ended */

static struct {
	struct sockaddr_un addr;
	socklen_t addr_len; /* 0: there is no manager */
	int to; /* connected to the manager for good; -1: each datagram goes to its path */
	bool deaf; /* the manager did not read within SERVICE_TELL_MS */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* as in NOTIFY_SOCKET */
	unsigned int watchdog_ms;
	bool mute; /* the predecessor is still the daemon: send nothing */
	struct {
		int fd; /* -1: taken */
		char name[104];
	} in[FDS_MAX];
	unsigned int n_in;
} service = {.to = -1};

/* The restarts that were asked for and refused. */
static struct {
	pthread_mutex_t lock;
	unsigned int n;
	char why[SERVICE_WHY_STRLEN];
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
 * Return true if the manager's variables are for this process, as LISTEN_PID or
 * WATCHDOG_PID tells.
 */
static bool
is_for_us(const char *pid_name, bool must_be_there)
{
	if (getenv(FOR_SUCCESSOR) != NULL)
		return true;
	if (getenv(pid_name) == NULL)
		return !must_be_there;
	return env_number(pid_name) == (unsigned long)getpid();
}

static void
inherit_fds(void)
{
	unsigned long n = env_number("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");

	if (!is_for_us("LISTEN_PID", true))
		return;
	if (n > FDS_MAX)
		n = FDS_MAX;
	for (unsigned int i = 0; i < n; i++) {
		size_t len = names == NULL ? 0 : strcspn(names, ":");
		int fd = SERVICE_FIRST_FD + (int)i;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			break; /* fewer than promised */
		service.in[i].fd = fd;
		snprintf(service.in[i].name, sizeof(service.in[i].name), "%.*s", (int)len,
			 len == 0 ? "" : names);
		service.n_in++;
		names = names == NULL || names[len] == '\0' ? NULL : names + len + 1;
	}
}

/*
 * Connect to the manager. When the owner of a name in the abstract namespace ends, any
 * program can take the name, and would receive our TAPs. A connected socket sends to the
 * first owner only.
 */
static void
stay_with_manager(void)
{
	service.to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (service.to >= 0)
		(void)connect(service.to, (struct sockaddr *)&service.addr,
			      service.addr_len);
}

static void
find_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *successor = getenv(FOR_SUCCESSOR);
	size_t len = path == NULL ? 0 : strlen(path);

	if (successor != NULL && strcmp(successor, ORPHAN) == 0) {
		/*
		 * The predecessor's manager has ended: pretend to have one, with a socket
		 * on which each send fails.
		 */
		service.to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		service.addr_len = service.to >= 0 ? sizeof(service.addr.sun_family) : 0;
		return;
	}
	if (len < 2 || len >= sizeof(service.addr.sun_path) ||
	    strchr("/@", path[0]) == NULL)
		return;
	service.addr.sun_family = AF_UNIX;
	memcpy(service.path, path, len);
	memcpy(service.addr.sun_path, path, len);
	if (path[0] == '@') /* in the abstract namespace the length is part of the name */
		service.addr.sun_path[0] = '\0';
	service.addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
				       (path[0] == '/'));
	if (path[0] == '@')
		stay_with_manager();
}

void
service_init(void)
{
	static const char *const ours[] = {
		"LISTEN_PID",   "LISTEN_FDS",    "LISTEN_FDNAMES", "NOTIFY_SOCKET",
		"WATCHDOG_PID", "WATCHDOG_USEC", FOR_SUCCESSOR};

	inherit_fds();
	find_manager();
	service.mute = getenv(FOR_SUCCESSOR) != NULL;
	if (is_for_us("WATCHDOG_PID", false))
		service.watchdog_ms = (unsigned int)(env_number("WATCHDOG_USEC") / 2000);
	for (unsigned int i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		unsetenv(ours[i]);
}

/* Format a text into new memory; NULL when memory is out. */
static char *
text(const char *fmt, ...)
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
service_env(const char *names, unsigned int n)
{
	unsigned int n_old = 0, at;
	bool whole = true, orphan = service_is_kept() && !service_is_heard();
	char **env;

	while (environ[n_old] != NULL)
		n_old++;
	env = calloc(n_old + 6, sizeof(*env));
	if (env == NULL)
		return NULL;
	char *const said[5] = {
		/* The name of a manager that has ended is not passed on. */
		text("NOTIFY_SOCKET=%s", orphan ? "" : service.path),
		text("WATCHDOG_USEC=%llu", service.watchdog_ms * 2000ull),
		text("LISTEN_FDS=%u", n),
		text("LISTEN_FDNAMES=%s", names),
		text(FOR_SUCCESSOR "=%s", orphan ? ORPHAN : "1"),
	};
	for (unsigned int i = 0; i < 5; i++)
		whole &= said[i] != NULL;
	if (!whole) {
		for (unsigned int i = 0; i < 5; i++)
			free(said[i]);
		free(env);
		return NULL;
	}
	memcpy(env, environ, n_old * sizeof(*env));
	at = n_old;
	for (unsigned int i = 0; i < 5; i++)
		env[at++] = said[i];
	return env;
}

void
service_env_free(char **env)
{
	unsigned int i = 0;

	while (environ[i] != NULL && env[i] == environ[i])
		i++;
	for (; env[i] != NULL; i++)
		free(env[i]);
	free(env);
}

bool
service_is_kept(void)
{
	return service.addr_len != 0;
}

static bool
is_of_its_end(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOENT;
}

/*
 * Send on the connected socket, as send_state(). Other threads may send at the same time,
 * so the options of the socket stay as they are.
 */
static int
send_connected(const struct msghdr *msg, int flags, unsigned int most_ms)
{
	uint64_t end_ms = monotonic_ms() + most_ms, now;
	struct pollfd p = {.fd = service.to, .events = POLLOUT};

	if (most_ms > 0)
		flags |= MSG_DONTWAIT;
	while (sendmsg(service.to, msg, MSG_NOSIGNAL | flags) < 0) {
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
send_within(const char *state, int fd, int flags, unsigned int most_ms)
{
	const struct timeval most = {.tv_sec = most_ms / 1000,
				     .tv_usec = most_ms % 1000 * 1000};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(unsigned long)state,
			    .iov_len = strlen(state)};
	struct msghdr msg = {.msg_name = service.to < 0 ? &service.addr : NULL,
			     .msg_namelen = service.to < 0 ? service.addr_len : 0,
			     .msg_iov = &iov,
			     .msg_iovlen = 1};
	int sock, rc;

	if (!service_is_kept())
		return -ENOTCONN;
	if (service.mute)
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
	if (service.to >= 0)
		return send_connected(&msg, flags, most_ms);
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (most_ms > 0)
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	do
		rc = sendmsg(sock, &msg, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
	while (rc == -EINTR);
	close(sock);
	return rc;
}

static int
send_state(const char *state, int fd, int flags, unsigned int most_ms)
{
	int rc = send_within(state, fd, flags, most_ms);

	/* A datagram that does not wait for room tells nothing about the manager. */
	if (rc != -EAGAIN || most_ms > 0)
		__atomic_store_n(&service.deaf, rc == -EAGAIN, __ATOMIC_RELAXED);
	return rc;
}

/*
 * Send a datagram and wait for room. A manager that is stopped costs the full time only
 * once.
 */
static int
tell(const char *state, int fd)
{
	bool deaf = __atomic_load_n(&service.deaf, __ATOMIC_RELAXED);

	return send_state(state, fd, 0, deaf ? 1 : haste_ms(SERVICE_TELL_MS));
}

bool
service_is_heard(void)
{
	int sock, rc = 0;

	if (!service_is_kept())
		return false;
	if (service.to >= 0) /* any datagram would do */
		return !is_of_its_end(send_state("WATCHDOG=1", -1, MSG_DONTWAIT, 0));
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return true; /* nothing shows that the manager has ended */
	if (connect(sock, (struct sockaddr *)&service.addr, service.addr_len) < 0)
		rc = -errno;
	close(sock);
	return !is_of_its_end(rc);
}

unsigned int
service_watchdog_ms(void)
{
	return service.watchdog_ms;
}

bool
service_is_next(void)
{
	return service.n_in > 0 && !service.mute;
}

int
service_take(const char *name)
{
	int fd = -1;

	for (unsigned int i = 0; i < service.n_in; i++) {
		if (service.in[i].fd < 0 || strcmp(service.in[i].name, name) != 0)
			continue;
		if (fd >= 0)
			close(fd);
		fd = service.in[i].fd;
		service.in[i].fd = -1;
	}
	return fd;
}

int
service_find(bool (*is_it)(void *ctx, const char *name, int fd), void *ctx)
{
	for (unsigned int i = 0; i < service.n_in; i++)
		if (service.in[i].fd >= 0 &&
		    is_it(ctx, service.in[i].name, service.in[i].fd))
			return service.in[i].fd;
	return -1;
}

int
service_take_rest(char *name, unsigned int size)
{
	for (unsigned int i = 0; i < service.n_in; i++) {
		if (service.in[i].fd < 0)
			continue;
		snprintf(name, size, "%s", service.in[i].name);
		return service_take(service.in[i].name);
	}
	return -1;
}

int
service_say(const char *state)
{
	return tell(state, -1);
}

int
service_mainpid(pid_t successor, unsigned int most_ms)
{
	char state[32];
	int rc;

	snprintf(state, sizeof(state), "MAINPID=%d", (int)successor);
	rc = send_state(state, -1, 0, most_ms);
	return rc == -ENOTCONN || is_of_its_end(rc) ? 0 : rc;
}

void
service_speak(void)
{
	service.mute = false;
}

void
service_hint(const char *state)
{
	static bool gone;
	bool was_gone = gone;

	gone = is_of_its_end(send_state(state, -1, MSG_DONTWAIT, 0));
	if (gone && !was_gone)
		log_warn("service: supervisor ended, no automatic restart");
}

void
service_goes_on(void)
{
	char state[64];

	/*
	 * After MAINPID= systemd still expects WATCHDOG=1 of a service that was ready.
	 * Send the two in separate datagrams: within one, systemd applies WATCHDOG=1 after
	 * EXTEND_TIMEOUT_USEC= and cancels it.
	 */
	service_hint("WATCHDOG=1");
	snprintf(state, sizeof(state), "EXTEND_TIMEOUT_USEC=%u000000", SERVICE_STEP_S);
	service_hint(state);
}

void
service_refused(const char *why)
{
	pthread_mutex_lock(&refusal.lock);
	refusal.n++;
	snprintf(refusal.why, sizeof(refusal.why), "%s", why);
	pthread_mutex_unlock(&refusal.lock);
}

unsigned int
service_refusals(char why[SERVICE_WHY_STRLEN])
{
	unsigned int n;

	pthread_mutex_lock(&refusal.lock);
	n = refusal.n;
	memcpy(why, refusal.why, SERVICE_WHY_STRLEN);
	pthread_mutex_unlock(&refusal.lock);
	return n;
}

int
service_keep(const char *name, int fd)
{
	char state[160];

	/*
	 * FDPOLL=0: the manager must keep the descriptor even after an error or hangup on
	 * it; the next daemon checks it.
	 */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	return tell(state, fd);
}

static const char *
forgetting(const char *name, char state[160])
{
	snprintf(state, 160, "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return state;
}

int
service_forget(const char *name)
{
	char state[160];

	return tell(forgetting(name, state), -1);
}

/*
 * Wait until the manager has processed all datagrams sent before: it then closes the
 * descriptor that comes with BARRIER=1.
 */
static int
barrier(uint64_t end_ms)
{
	/* only POLLHUP: every copy of the other end is closed */
	struct pollfd p = {.events = 0};
	uint64_t now = monotonic_ms();
	int pair[2], rc;

	if (now >= end_ms)
		return -ETIMEDOUT;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	rc = send_state("BARRIER=1", pair[1], 0, (unsigned int)(end_ms - now));
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
service_let_go(const char *name, unsigned int most_ms)
{
	uint64_t end_ms = monotonic_ms() + most_ms;
	char state[160];
	int rc = send_state(forgetting(name, state), -1, 0, most_ms);

	if (rc == 0)
		rc = barrier(end_ms);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}
