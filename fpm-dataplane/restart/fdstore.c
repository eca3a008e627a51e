/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store descriptors of the daemon with the service manager, and find the descriptors of the
 * last daemon.                                                              [main, manage]
 */
#include "restart/fdstore.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"
#include "config/load.h"
#include "tap-bridge/tap.h"

#define TAP_PREFIX "tap-"

/*
 * Checkpoints have one of two names, in turn. So a new checkpoint is stored before the
 * checkpoint of the previous daemon is removed, and a crash between the two steps leaves at
 * least one. W:main
 */
static const char *const checkpoint_name[2] = {"checkpoint", "checkpoint-2"};
static unsigned int checkpoint_at; /* index of the name of this daemon's checkpoint */

/*
 * TAPs of ports that wait for their devices. A change of ports and a handover never run at
 * the same time (restart/restart_lock.h), so no lock is needed. W:main, then manage
 */
static struct kept {
	char tap[IFNAMSIZ]; /* name of the port's TAP; "": the entry is free */
	int fd;
} kept[CONFIG_PORTS_MAX];

/* Return the entry of a port; with "", a free entry. NULL: none. */
static struct kept *
kept_find(const char *tap)
{
	for (unsigned int i = 0; i < CONFIG_PORTS_MAX; i++)
		if (strcmp(kept[i].tap, tap) == 0)
			return &kept[i];
	return NULL;
}

/*
 * Build the fdstore name of a TAP. It contains the name that the port has in the
 * configuration, because an operator may rename the interface. An fdstore name must not
 * contain ':'; TAP names do not (tap_open()).
 */
static const char *
tap_fd_name(const char *tap, char buf[64])
{
	snprintf(buf, 64, TAP_PREFIX "%.*s", IFNAMSIZ, tap);
	return buf;
}

/*
 * Return true if descriptor `fd` was stored with the key of TAP `ctx`, and the TAP exists.
 */
static bool
tap_has_key(void *ctx, const char *key, int fd)
{
	char name[IFNAMSIZ], of[64];

	return strcmp(key, tap_fd_name(ctx, of)) == 0 && tap_name(fd, name) == 0;
}

static struct {
	const struct port *port;
	unsigned int n_port;
} opened; /* W:main, before the configuration is read */

static bool
tap_is_held(const char *tap)
{
	const struct kept *k = kept_find(tap);
	char want[IFNAMSIZ], name[IFNAMSIZ];

	for (unsigned int i = 0; i < opened.n_port; i++)
		if (port_is_there(&opened.port[i]) && strcmp(opened.port[i].name, tap) == 0)
			return tap_name(opened.port[i].tap.fd, name) == 0;
	if (k != NULL)
		return tap_name(k->fd, name) == 0;
	snprintf(want, sizeof(want), "%s", tap);
	return sd_find(tap_has_key, want) >= 0;
}

void
fdstore_begin(const struct port *port, unsigned int n_port)
{
	opened.port = port;
	opened.n_port = n_port;
	config_taps_held(tap_is_held);
}

unsigned int
fdstore_list(const struct port *port, unsigned int n_port, int checkpoint_fd,
	     struct named_fd *into)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_port && n < CONFIG_PORTS_MAX; i++) {
		if (!port_is_there(&port[i]))
			continue;
		tap_fd_name(port[i].name, into[n].name);
		into[n++].fd = port[i].tap.fd;
	}
	for (unsigned int i = 0; i < CONFIG_PORTS_MAX && n < CONFIG_PORTS_MAX; i++) {
		if (kept[i].tap[0] == '\0')
			continue;
		tap_fd_name(kept[i].tap, into[n].name);
		into[n++].fd = kept[i].fd;
	}
	if (checkpoint_fd >= 0) {
		into[n].fd = checkpoint_fd;
		snprintf(into[n++].name, sizeof(into->name), "%s",
			 checkpoint_name[checkpoint_at]);
	}
	return n;
}

struct renamed {
	const struct config *conf;
	const char *tap;
};

/*
 * Return true if the descriptor's port was removed from the configuration and its TAP has
 * since been renamed to `want->tap`.
 */
static bool
tap_was_renamed(void *ctx, const char *key, int fd)
{
	const struct renamed *want = ctx;
	char name[IFNAMSIZ];

	return strncmp(key, TAP_PREFIX, strlen(TAP_PREFIX)) == 0 &&
	       config_port(want->conf, key + strlen(TAP_PREFIX)) == NULL &&
	       tap_name(fd, name) == 0 && strcmp(name, want->tap) == 0;
}

int
fdstore_take_tap(const struct config *conf, const char *tap)
{
	struct renamed want = {conf, tap};
	char key[64];
	int fd = sd_take(tap_fd_name(tap, key));

	if (fd >= 0)
		return fd;
	/*
	 * Return a copy: fdstore_put_all() closes the inherited descriptor and removes its
	 * old name.
	 */
	fd = sd_find(tap_was_renamed, &want);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int
fdstore_take_checkpoint(uint64_t (*alive_ms)(int fd))
{
	int fd[2] = {sd_take(checkpoint_name[0]), sd_take(checkpoint_name[1])};
	unsigned int last = fd[1] >= 0 && (fd[0] < 0 || alive_ms(fd[1]) > alive_ms(fd[0]));

	if (fd[!last] >= 0)
		close(fd[!last]);
	checkpoint_at = fd[last] >= 0 ? !last : 0;
	return fd[last];
}

static void
tap_put(const struct port *port)
{
	char key[64];
	int rc = sd_fdstore(tap_fd_name(port->name, key), port->tap.fd);

	if (rc < 0 && rc != -ENOTCONN)
		log_warn("fdstore: tap not stored name=%s error=\"%s\"", port->name,
			 strerror(-rc));
}

void
fdstore_put_tap(const struct port *port)
{
	char key[64];

	/*
	 * systemd keeps several descriptors of the same name, also of deleted TAPs: remove
	 * the old descriptor first.
	 */
	sd_fdremove(tap_fd_name(port->name, key));
	tap_put(port);
}

void
fdstore_keep_tap(const struct config *conf, const char *tap)
{
	int fd = fdstore_take_tap(conf, tap);

	if (fd < 0)
		return;
	fdstore_keep_tap_again(tap, fd);
	log_info("fdstore: tap kept name=%s reason=port-waits", tap);
}

void
fdstore_keep_tap_again(const char *tap, int fd)
{
	struct kept *k = kept_find(tap);

	if (k != NULL)
		close(k->fd);
	else
		k = kept_find("");
	assert(k != NULL); /* there are as many entries as ports */
	snprintf(k->tap, sizeof(k->tap), "%s", tap);
	k->fd = fd;
}

int
fdstore_kept_tap(const char *tap)
{
	const struct kept *k = kept_find(tap);

	return k == NULL ? -1 : fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
}

void
fdstore_use_kept_tap(const char *tap)
{
	struct kept *k = kept_find(tap);

	if (k == NULL)
		return;
	close(k->fd);
	*k = (struct kept){.fd = -1};
}

void
fdstore_kept_carriers_off(void)
{
	for (unsigned int i = 0; i < CONFIG_PORTS_MAX; i++)
		if (kept[i].tap[0] != '\0')
			(void)tap_fd_carrier(kept[i].fd, false);
}

void
fdstore_remove_tap(const char *tap)
{
	struct kept *k = kept_find(tap);
	char key[64];
	int rc = k != NULL ? tap_fd_destroy(k->fd) : 0;

	if (rc < 0)
		log_warn("port: tap not deleted name=%s error=\"%s\"", tap, strerror(-rc));
	if (k != NULL)
		*k = (struct kept){.fd = -1};

	if (sd_fdremove_wait(tap_fd_name(tap, key), haste_ms(SD_SEND_MS)) == -ETIMEDOUT)
		log_warn("fdstore: tap not removed yet name=%s", tap);
}

/* Remove the inherited descriptors that were not taken. */
static void
inherited_remove(void)
{
	char name[128];
	int fd;

	while ((fd = sd_take_next(name, sizeof(name))) >= 0) {
		bool of_tap = strncmp(name, TAP_PREFIX, strlen(TAP_PREFIX)) == 0;
		const char *what = of_tap ? name + strlen(TAP_PREFIX) : name;
		char shown[128];

		close(fd);
		sd_fdremove(name);
		log_escape(what, strlen(what), shown, sizeof(shown));
		if (of_tap)
			log_warn("fdstore: tap released name=%s reason=no-open-port",
				 shown);
		else
			log_info("fdstore: unused descriptor removed name=%s", shown);
	}
}

void
fdstore_put_all(const struct port *port, unsigned int n_port, int checkpoint_fd)
{
	/*
	 * Remove first, because the service manager does not store a TAP under a new name
	 * while it has the TAP under the old name.
	 */
	inherited_remove();
	for (unsigned int i = 0; i < n_port; i++) {
		if (!port_is_there(&port[i]))
			continue;
		/*
		 * The store has a kept TAP already, and must have it at all times, because
		 * the daemon may crash here. The service manager does not store it twice.
		 */
		if (port[i].tap_kept)
			tap_put(&port[i]);
		else
			fdstore_put_tap(&port[i]);
	}
	/*
	 * Remove the checkpoint of the previous daemon last, even if this daemon has none.
	 */
	sd_fdremove(checkpoint_name[checkpoint_at]);
	if (checkpoint_fd < 0 ||
	    sd_fdstore(checkpoint_name[checkpoint_at], checkpoint_fd) == 0)
		sd_fdremove(checkpoint_name[!checkpoint_at]);
}
