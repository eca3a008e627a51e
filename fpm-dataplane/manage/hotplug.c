/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Add and remove ports. A port is added in this order: the device, the TAP, the slot; then
 * neigh, which publishes the port to the forwarders; then punt; last the queues. It is
 * removed in the opposite order. A grace period passes before an object that a forwarder
 * may still use is closed. All of this runs in the manage thread, which may wait.
 * hotplug_open() also runs in main, before other threads run.
 */
#include "manage/hotplug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/msg_manage.h"
#include "base/tsan.h"
#include "base/worker.h"
#include "manage/port_conf.h"
#include "restart/fdstore.h"

#define SLOW_MS 300000u /* more than any working device needs */

/*
 * Begin a slow operation: a device may need seconds to start and to stop. Grace periods do
 * not wait for this thread meanwhile, and the watchdog waits up to SLOW_MS.
 */
static void
slow_begin(void)
{
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	worker_suspend_watchdog(SLOW_MS);
}

static void
slow_end(void)
{
	worker_suspend_watchdog(0);
	urcu_qsbr_thread_online();
}

/*
 * Store the descriptor of a port's TAP. This is slow if the service manager is busy or
 * stopped.
 */
static void
tap_store(const struct port *port)
{
	slow_begin();
	fdstore_put_tap(port);
	slow_end();
}

/*
 * Inform a worker that the port is in use, or `gone`. Wait until the worker has handled the
 * message.
 */
static void
worker_send_port(struct worker *to, uint16_t ifidx, bool gone)
{
	struct msg_port *m = msg_new(MSG_PORT, sizeof(*m));
	sem_t done;

	sem_init(&done, 0, 0);
	m->ifidx = ifidx;
	m->gone = gone;
	m->done = &done;
	worker_send(to, &m->m);
	/* A grace period must not wait for this thread meanwhile. */
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	while (sem_wait(&done) < 0)
		continue;
	urcu_qsbr_thread_online();
	sem_destroy(&done);
}

void
hotplug_msg(const struct hotplug *h, struct msg *m)
{
	const struct port *port;

	if (m->type == MSG_TAP) {
		port = &h->port[caa_container_of(m, struct msg_tap, m)->ifidx - 1];
		if (port_is_there(port)) /* otherwise the port was removed meanwhile */
			tap_store(port);
	}
	msg_free(m);
}

struct port *
hotplug_find(const struct hotplug *h, const char *tap)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&h->port[i]) && strcmp(h->port[i].name, tap) == 0)
			return &h->port[i];
	return NULL;
}

/*
 * Take the next free interface number. Numbers are used in turn, so that a number is not
 * used again while any state of its last port is left.
 */
static uint16_t
ifidx_take(struct hotplug *h)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		h->last_ifidx = (uint16_t)(h->last_ifidx % PORT_SLOTS + 1);
		if (!port_is_there(&h->port[h->last_ifidx - 1]))
			return h->last_ifidx;
	}
	return 0; /* not reached: CONFIG_PORTS_MAX is less */
}

/* Return true, and a sentence in `why`, if the TAP of another port was renamed to `tap`. */
static bool
tap_name_is_taken(const struct hotplug *h, const struct config *conf, const char *tap,
		  char *why, unsigned int why_size)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		const struct port *port = &h->port[i];
		char name[IFNAMSIZ];

		if (!port_is_there(port) || tap_name(port->tap.fd, name) < 0 ||
		    strcmp(name, tap) != 0)
			continue;
		snprintf(why, why_size,
			 "the TAP of port %s has been renamed to this name%s", port->name,
			 config_port(conf, port->name) != NULL
				 ? ""
				 : "; `fpmctl restart` would use it under this name");
		return true;
	}
	return false;
}

int
hotplug_open(struct hotplug *h, const struct config *conf, const struct config_port *cp,
	     const struct hotplug_reuse *reuse, struct port **slot, char *why,
	     unsigned int why_size)
{
	struct port_conf pc = port_conf_from_config(conf, cp, h->rxq_assign->n_fwd);
	uint16_t ifidx = ifidx_take(h);
	struct port port;
	int rc;

	pc.tap_fd = reuse->tap_fd;
	pc.place = reuse->place;
	rc = port_open(&port, ifidx, &pc, h->pool, why, why_size);
	if (rc < 0)
		return rc;
	*slot = &h->port[ifidx - 1];
	port_publish(*slot, &port);
	return 0;
}

/*
 * Carry out hotplug_undo(). `kept`: a TAP was kept for the port before the port was added.
 */
static void
port_undo(struct hotplug *h, struct port *port, bool kept)
{
	bool made = port->tap_new;
	struct hotplug_reuse reuse;

	hotplug_del(h, port, made ? NULL : &reuse);
	if (made)
		return;
	if (kept && reuse.tap_fd >= 0) {
		fdstore_keep_tap_again(port->name, reuse.tap_fd);
		return;
	}
	close(reuse.tap_fd);
	hotplug_unstore(port->name);
}

int
hotplug_add(struct hotplug *h, const struct config *conf, const struct config_port *cp,
	    const struct hotplug_reuse *reuse, char *why, unsigned int why_size)
{
	struct hotplug_reuse nothing = {.tap_fd = -1};
	struct port *slot;
	uint64_t begin;
	int rc;

	if (reuse == NULL) {
		if (tap_name_is_taken(h, conf, cp->tap, why, why_size))
			return -EEXIST;
		nothing.tap_fd = fdstore_kept_tap(cp->tap);
		nothing.place = PORT_SLOTS + ++h->n_added;
		reuse = &nothing;
	}
	begin = monotonic_ms();
	slow_begin();
	rc = hotplug_open(h, conf, cp, reuse, &slot, why, why_size);
	slow_end();
	if (rc < 0)
		return rc;
	worker_send_port(h->neigh, slot->ifidx, false);
	worker_send_port(h->punt, slot->ifidx, false);
	rc = rxq_assign_begin(h->rxq_assign, slot, cp, true);
	if (rc == 0)
		rc = rxq_assign_begin(h->rxq_assign, slot, cp, false);
	if (rc < 0) {
		snprintf(why, why_size, "not enough memory for its queues");
		port_undo(h, slot, reuse == &nothing && slot->tap_kept);
		return rc;
	}
	/* An inherited TAP may have been created again since its descriptor was stored. */
	tap_store(slot);
	fdstore_use_kept_tap(slot->name);
	log_info("manage: port added name=%s device=%s ifindex=%u queues=%u took_ms=%llu",
		 slot->name, slot->device, slot->tap.ifindex, slot->n_rxq,
		 (unsigned long long)(monotonic_ms() - begin));
	return 0;
}

void
hotplug_unstore(const char *tap)
{
	slow_begin();
	fdstore_remove_tap(tap);
	slow_end();
}

void
hotplug_del(struct hotplug *h, struct port *port, struct hotplug_reuse *reuse)
{
	uint16_t ifidx = port->ifidx;
	struct port gone;
	int rc;

	rxq_assign_end(h->rxq_assign, port);
	/* neigh informs rib and the forwarders that no packet may leave by this port. */
	worker_send_port(h->neigh, ifidx, true);
	worker_send_port(h->punt, ifidx, true);
	gone = *port;
	/*
	 * Release, for the acquire in port_is_there(). A reader that sees 0 does not read
	 * the other fields. A reader that saw the number may read them until its grace
	 * period is over.
	 */
	__atomic_store_n(&port->ifidx, 0, __ATOMIC_RELEASE);
	/* No reader has the port after this. ui, trace and punt no longer see it. */
	urcu_qsbr_synchronize_rcu();
	GRACE_OVER();
	slow_begin();
	if (reuse != NULL) {
		*reuse = (struct hotplug_reuse){dup(gone.tap.fd), gone.place};
	} else {
		/*
		 * Wait for the service manager before the client gets its reply, because a
		 * new port cannot use the name of the TAP while the service manager has a
		 * descriptor of the TAP.
		 */
		fdstore_remove_tap(gone.name);
		rc = tap_destroy(&gone.tap);
		if (rc < 0)
			log_warn("port: tap not deleted name=%s error=\"%s\"", gone.name,
				 strerror(-rc));
	}
	port_close(&gone);
	slow_end();
	log_info("manage: port removed name=%s device=%s", gone.name, gone.device);
}

void
hotplug_undo(struct hotplug *h, struct port *port)
{
	port_undo(h, port, port->tap_kept);
}
