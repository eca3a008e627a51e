/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store descriptors of the daemon with the service manager, and find those of the last daemon.
 *                                                                          [main, manage]
 */
#include "restart/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/haste.h"
#include "restart/watchdog.h"
#include "base/log.h"
#include "tap-bridge/tap.h"

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
	  struct named_fd *into)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_port && n < CONFIG_PORTS_MAX; i++) {
		if (!port_is_there(&port[i]))
			continue;
		key_of(port[i].name, into[n].name);
		into[n++].fd = port[i].tap.fd;
	}
	if (checkpoint_fd >= 0) {
		into[n].fd = checkpoint_fd;
		snprintf(into[n++].name, sizeof(into->name), KEEP_CHECKPOINT);
	}
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
	service_forget(key_of(port->name, key));
	rc = service_keep(key, port->tap.fd);
	if (rc < 0 && rc != -ENOTCONN)
		log_warn("keep: tap not kept over a restart name=%s error=%s", port->name,
			 strerror(-rc));
}

void
keep_forget(const char *tap)
{
	char key[64];

	if (service_let_go(key_of(tap, key), haste_ms(SERVICE_TELL_MS)) == -ETIMEDOUT)
		log_warn("keep: the service manager has not let go of the tap yet name=%s",
			 tap);
}

void
keep_all(const struct port *port, unsigned int n_port, int checkpoint_fd)
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
}
