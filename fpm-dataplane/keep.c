/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What outlives the daemon, and the signs of life by which it is told that it should not. A
 * sign is given only when every worker has gone round since the last one: a thread that
 * hangs is a daemon that hangs.                                                   [main]
 */
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/service.h"
#include "tap.h"

#define N_WORKER_MAX 8

#define KEY "tap-"

/*
 * A TAP is known by the name that its port is configured by, not by the one that it has: that
 * somebody may change. A descriptor's name must not hold ':', which TAP names do not
 * (tap_open()).
 */
static const char *
key_of(const char *tap, char buf[64])
{
	snprintf(buf, 64, KEY "%s", tap);
	return buf;
}

unsigned int
keep_list(const struct port *port, unsigned int n_port, int checkpoint_fd,
	  struct kept *into)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_port && n < CONFIG_PORTS_MAX; i++) {
		if (!port_is_there(&port[i]))
			continue;
		key_of(port[i].name, into[n].name);
		into[n++].fd = port[i].tap.fd;
	}
	if (checkpoint_fd < 0)
		return n;
	into[n].fd = checkpoint_fd;
	snprintf(into[n++].name, sizeof(into->name), KEEP_CHECKPOINT);
	return n;
}

struct wanted {
	const struct config *conf;
	const char *tap;
};

/* Of a port that is configured no more, and called by now as another is. */
static bool
has_its_name(void *ctx, const char *key, int fd)
{
	const struct wanted *want = ctx;
	char name[IFNAMSIZ];

	return strncmp(key, KEY, strlen(KEY)) == 0 &&
	       config_port(want->conf, key + strlen(KEY)) == NULL &&
	       tap_name(fd, name) == 0 && strcmp(name, want->tap) == 0;
}

int
keep_take_tap(const struct config *conf, const char *tap)
{
	struct wanted want = {conf, tap};
	char key[64];
	int fd = service_take(key_of(tap, key));

	if (fd >= 0)
		return fd;
	/* A copy: what is kept under the old key is let go when this one is kept. */
	fd = service_find(has_its_name, &want);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void
keep_tap(const struct port *port)
{
	char key[64];
	int rc;

	/* Of several of one name systemd keeps all, also those that lead nowhere any more. */
	keep_forget(port->name);
	rc = service_keep(key_of(port->name, key), port->tap.fd);
	if (rc < 0 && rc != -ENOTCONN)
		log_warn("keep: tap not kept over a restart name=%s error=%s", port->name,
			 strerror(-rc));
}

void
keep_forget(const char *tap)
{
	char key[64];

	service_forget(key_of(tap, key));
}

void
keep_ready(const struct port *port, unsigned int n_port, int checkpoint_fd)
{
	char name[128];
	int fd;

	while ((fd = service_take_rest(name, sizeof(name))) >= 0) {
		char shown[128];

		close(fd);
		service_forget(name);
		log_info("main: kept descriptor let go name=%s",
			 log_escape(name, strlen(name), shown, sizeof(shown)));
	}
	for (unsigned int i = 0; i < n_port; i++) {
		if (port_is_there(&port[i]))
			keep_tap(&port[i]);
	}
	/* The old one is not wanted even where there is no new one. */
	service_forget(KEEP_CHECKPOINT);
	if (checkpoint_fd >= 0)
		service_keep(KEEP_CHECKPOINT, checkpoint_fd);
	service_say("READY=1");
}

/* Has every worker gone round since the last call? Asks them to for the next one. */
static bool
all_alive(struct worker *w, unsigned int n_worker)
{
	static unsigned long seen[N_WORKER_MAX];
	bool all = true;

	for (unsigned int i = 0; i < n_worker && i < N_WORKER_MAX; i++) {
		unsigned long now = worker_rounds(&w[i]);

		if (now == seen[i]) {
			log_warn("main: no sign of life thread=%s", w[i].name);
			all = false;
		}
		seen[i] = now;
		worker_wake(&w[i]);
	}
	return all;
}

int
keep_wait(const sigset_t *set, struct worker *w, unsigned int n_worker)
{
	unsigned int every_ms = service_watchdog_ms();
	struct timespec wait = {.tv_sec = every_ms / 1000,
				.tv_nsec = every_ms % 1000 * 1000000L};
	int sig;

	if (every_ms == 0) {
		sigwait(set, &sig);
		return sig;
	}
	while ((sig = sigtimedwait(set, NULL, &wait)) < 0)
		if (errno == EAGAIN && all_alive(w, n_worker))
			service_say("WATCHDOG=1");
	return sig;
}
