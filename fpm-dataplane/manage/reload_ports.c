/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Change the ports of the running configuration to the ports of the next one. Steps that
 * can fail come first: ports are added and changed, and this is undone if a port fails.
 * Then ports are removed, which cannot fail.                                       [manage]
 */
#include "manage/reload_ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "pci/memif.h"

/*
 * Set the MTU of the TAP if it differs. The rest of the daemon reads the MTU from the TAP.
 */
static int
tap_change_mtu(const struct port *port, const struct config_port *was,
	       const struct config_port *now, char *why, unsigned int size)
{
	int rc = was->mtu_bytes != now->mtu_bytes ? tap_mtu(&port->tap, now->mtu_bytes) : 0;

	if (rc < 0)
		snprintf(why, size, "mtu not set: %s", strerror(-rc));
	return rc;
}

/*
 * Open another device behind the same TAP, or the same device with other queues, offloads
 * or a larger MTU. The MTU of the TAP is set last, because below 1280 the kernel removes
 * its IPv6 addresses. On failure the old device is opened again. If that fails too, the
 * port is lost: the configuration has it, but the daemon does not.
 */
static int
port_exchange(struct hotplug *h, const struct config *running,
	      const struct config_port *was, const struct config_port *now, char *why,
	      unsigned int size)
{
	struct hotplug_reuse reuse, spare;
	char again[256];
	int rc;

	hotplug_del(h, hotplug_find(h, now->tap), &reuse);
	spare = (struct hotplug_reuse){dup(reuse.tap_fd), reuse.place};
	rc = hotplug_add(h, running, now, &reuse, why, size);
	if (rc == 0) {
		rc = tap_change_mtu(hotplug_find(h, now->tap), was, now, why, size);
		if (rc < 0)
			hotplug_del(h, hotplug_find(h, now->tap), &reuse);
		close(rc < 0 ? reuse.tap_fd : spare.tap_fd);
	}
	if (rc < 0 && hotplug_add(h, running, was, &spare, again, sizeof(again)) < 0) {
		log_error("manage: port lost name=%s reason=\"%s\"", was->tap, again);
		hotplug_unstore(was->tap);
	}
	return rc;
}

/*
 * A daemon shares a kept NIC with fpm-nics, and so does its successor. A daemon attaches
 * such a NIC only when it starts, and detaches it only when it ends. (In DPDK 22.11 a
 * secondary process cannot detach a virtio device.)
 */
#define NEEDS_RESTART                                                                   \
	"keep-nics: NICs are added, removed and changed only by a restart: change the " \
	"file, then use `fpmctl restart`"

static int
port_set(struct hotplug *h, const struct config *running, const struct config_port *was,
	 const struct config_port *now, char *why, unsigned int size)
{
	const struct port *port = hotplug_find(h, now->tap);
	unsigned int n_was = config_port_queues(was), n_now = config_port_queues(now);
	unsigned int wanted = n_now != 0 ? n_now : h->rxq_assign->n_fwd;
	bool other = strcmp(was->device, now->device) != 0, reopen;

	if (port == NULL && memif_waits(now->device))
		return 0; /* reconnect.c opens it */
	if (port == NULL) /* the port is lost */
		return hotplug_add(h, running, now, NULL, why, size);
	/* Ask the port's own device before it is closed. */
	if (!other && port_could_be(port, n_now, now->mtu_bytes, why, size) < 0)
		return -EINVAL;
	reopen = (n_was != n_now && wanted != port->n_rxq) ||
		 port_options_differ(port, &was->options, &now->options) ||
		 port_mtu_is_beyond(port, now->mtu_bytes);
	if ((other || reopen) && running->keep_nics) {
		snprintf(why, size, NEEDS_RESTART);
		return -ENOTSUP;
	}
	if (other || reopen)
		return port_exchange(h, running, was, now, why, size);
	if (tap_change_mtu(port, was, now, why, size) < 0) /* before queues move */
		return -EIO;
	if (rxq_assign_move(h->rxq_assign, port, now) < 0) {
		(void)tap_change_mtu(port, now, was, why, size);
		snprintf(why, size, "not enough memory to move its queues");
		return -ENOMEM;
	}
	return 0;
}

static bool
kept_nic_is_removed(const struct config *running, const struct config *next)
{
	bool any = false;

	for (unsigned int i = 0; running->keep_nics && i < running->n_port; i++)
		any |= config_port(next, running->port[i].tap) == NULL;
	return any;
}

static int
port_add(struct hotplug *h, const struct config *next, const struct config_port *now,
	 char *why, unsigned int size)
{
	if (!next->keep_nics)
		return hotplug_add(h, next, now, NULL, why, size);
	snprintf(why, size, NEEDS_RESTART);
	return -ENOTSUP;
}

/* Remove a port. A port that is lost or waits for its device has at most a kept TAP. */
static void
port_drop(struct hotplug *h, const char *tap)
{
	struct port *port = hotplug_find(h, tap);

	if (port != NULL)
		hotplug_del(h, port, NULL);
	else
		hotplug_unstore(tap);
}

/* Return true if the port was open, not lost, before the reload. */
static bool
port_was_open(const struct rxq_assign_saved *seen, const char *tap)
{
	for (unsigned int i = 0; i < seen->n_port; i++)
		if (strcmp(seen->port[i].name, tap) == 0)
			return true;
	return false;
}

/* Undo the addition of a port, unless it is lost. */
static void
port_undo(struct hotplug *h, const char *tap)
{
	struct port *port = hotplug_find(h, tap);

	if (port != NULL)
		hotplug_undo(h, port);
}

/*
 * Undo the changes of the first `n` ports of `next`, and move the queues back to the
 * forwarders that served them. Returns 0, or -errno with a sentence in `why` about the
 * remaining differences.
 */
static int
ports_undo(struct hotplug *h, const struct config *running, const struct config *next,
	   unsigned int n, const struct rxq_assign_saved *seen, char *why,
	   unsigned int size)
{
	char text[256];
	int rc = 0;

	while (n-- > 0) {
		const struct config_port *now = &next->port[n];
		const struct config_port *was = config_port(running, now->tap);

		if (was == NULL || !port_was_open(seen, now->tap)) {
			port_undo(h, now->tap);
		} else if (port_set(h, running, now, was, text, sizeof(text)) < 0) {
			log_error("manage: port not restored name=%s reason=\"%s\"",
				  was->tap, text);
			snprintf(why, size, "port %s: %s", was->tap, text);
			rc = -EIO;
		}
	}
	/*
	 * With `cores: auto` the configuration does not name the forwarders of the queues.
	 */
	if (rxq_assign_restore(h->rxq_assign, seen) < 0) {
		log_error("manage: queues not restored reason=no-memory");
		snprintf(why, size, "not enough memory to move all queues");
		rc = -ENOMEM;
	}
	return rc;
}

int
reload_ports(struct hotplug *h, const struct config *running, const struct config *next,
	     char *why, unsigned int why_size)
{
	char text[256], other[320];
	struct rxq_assign_saved seen;

	if (kept_nic_is_removed(running, next)) {
		snprintf(why, why_size, REFUSED NEEDS_RESTART);
		return -ENOTSUP;
	}
	rxq_assign_save(h->rxq_assign, &seen);
	for (unsigned int i = 0; i < next->n_port; i++) {
		const struct config_port *now = &next->port[i];
		const struct config_port *was = config_port(running, now->tap);
		int rc = was == NULL ? port_add(h, next, now, text, sizeof(text))
				     : port_set(h, running, was, now, text, sizeof(text));

		if (rc == 0)
			continue;
		if (ports_undo(h, running, next, i, &seen, other, sizeof(other)) < 0)
			snprintf(why, why_size,
				 "refused, but not everything could be restored (%s): port "
				 "%s device "
				 "%s: %s",
				 other, now->tap, now->device, text);
		else if (was == NULL || hotplug_find(h, was->tap) != NULL)
			snprintf(why, why_size, REFUSED "port %s device %s: %s", now->tap,
				 now->device, text);
		else
			snprintf(why, why_size,
				 "refused, and the port is lost until `port set` names a "
				 "device that exists: port %s device %s: %s; its old "
				 "device could not be opened again",
				 now->tap, now->device, text);
		return rc;
	}
	for (unsigned int i = 0; i < running->n_port; i++)
		if (config_port(next, running->port[i].tap) == NULL)
			port_drop(h, running->port[i].tap);
	return 0;
}

int
reload_port_again(struct hotplug *h, const struct config *running,
		  const struct config_port *cp, char *why, unsigned int why_size)
{
	if (running->keep_nics) {
		snprintf(why, why_size, NEEDS_RESTART);
		return -ENOTSUP;
	}
	return hotplug_find(h, cp->tap) == NULL
		       ? hotplug_add(h, running, cp, NULL, why, why_size)
		       : port_exchange(h, running, cp, cp, why, why_size);
}
