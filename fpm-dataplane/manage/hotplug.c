/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port comes: device, TAP, its slot, at a start as later; then neigh (which publishes it to
 * forwarders), punt, and its queues last. It goes the other way round, with a grace period before
 * anything that a forwarder may still have in its hands is closed. Runs in manage, which may
 * wait; hotplug_open() also in main, before there are other threads.
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

#define SLOW_MS 300000u /* no device that works needs as long */

/* Devices take their time, starting and ending: no grace period waits for that, and nobody
 * takes it for a hang before SLOW_MS are over. */
static void
slow_begin(void)
{
	GRACE_LET_GO();
	urcu_qsbr_thread_offline();
	worker_suspend_watchdog(SLOW_MS);
}

static void
slow_end(void)
{
	worker_suspend_watchdog(0);
	urcu_qsbr_thread_online();
}

/* The service manager may be busy, or stopped. */
static void
keep(const struct port *port)
{
	slow_begin();
	fdstore_put_tap(port);
	slow_end();
}

/* Tell a worker of the port and wait until it has done what there is to do. */
static void
tell(struct worker *to, uint16_t ifidx, bool gone)
{
	struct msg_port *m = msg_new(MSG_PORT, sizeof(*m));
	sem_t done;

	sem_init(&done, 0, 0);
	m->ifidx = ifidx;
	m->gone = gone;
	m->done = &done;
	worker_send(to, &m->m);
	/* A grace period must not wait for us meanwhile. */
	GRACE_LET_GO();
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
		if (port_is_there(port)) /* else it went while the message was on its way */
			keep(port);
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

/* A number that has rested longest, so that nothing of its last port is still about. */
static uint16_t
number_take(struct hotplug *h)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		h->last_ifidx = (uint16_t)(h->last_ifidx % PORT_SLOTS + 1);
		if (!port_is_there(&h->port[h->last_ifidx - 1]))
			return h->last_ifidx;
	}
	return 0; /* CONFIG_PORTS_MAX is less */
}

/* Is a TAP of ours called so by now, that was another port's name when it was opened? */
static bool
is_renamed(const struct hotplug *h, const struct config *conf, const char *tap, char *why,
	   unsigned int why_size)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		const struct port *port = &h->port[i];
		char name[IFNAMSIZ];

		if (!port_is_there(port) || tap_name(port->tap.fd, name) < 0 ||
		    strcmp(name, tap) != 0)
			continue;
		snprintf(why, why_size,
			 "somebody has given that name to the TAP of port %s%s", port->name,
			 config_port(conf, port->name) != NULL
				 ? ""
				 : "; a restart would take it over under that name");
		return true;
	}
	return false;
}

int
hotplug_open(struct hotplug *h, const struct config *conf, const struct config_port *cp,
	     const struct hotplug_rest *rest, struct port **slot, char *why,
	     unsigned int why_size)
{
	struct port_conf pc = port_conf_from_config(conf, cp, h->deal->n_fwd);
	uint16_t ifidx = number_take(h);
	struct port port;
	int rc;

	pc.tap_fd = rest->tap_fd;
	pc.place = rest->place;
	rc = port_open(&port, ifidx, &pc, h->pool, why, why_size);
	if (rc < 0)
		return rc;
	*slot = &h->port[ifidx - 1];
	port_publish(*slot, &port);
	return 0;
}

int
hotplug_add(struct hotplug *h, const struct config *conf, const struct config_port *cp,
	    const struct hotplug_rest *rest, char *why, unsigned int why_size)
{
	struct hotplug_rest nothing = {.tap_fd = -1};
	struct port *slot;
	uint64_t begin;
	int rc;

	if (rest == NULL) {
		if (is_renamed(h, conf, cp->tap, why, why_size))
			return -EEXIST;
		nothing.place = PORT_SLOTS + ++h->n_come;
		rest = &nothing;
	}
	begin = monotonic_ms();
	slow_begin();
	rc = hotplug_open(h, conf, cp, rest, &slot, why, why_size);
	slow_end();
	if (rc < 0)
		return rc;
	tell(h->neigh, slot->ifidx, false);
	tell(h->punt, slot->ifidx, false);
	rc = deal_begin(h->deal, slot, cp, true);
	if (rc == 0)
		rc = deal_begin(h->deal, slot, cp, false);
	if (rc < 0) {
		snprintf(why, why_size, "no memory for its queues");
		hotplug_undo(h, slot);
		return rc;
	}
	/* One that was passed on may have been made anew since it was kept. */
	keep(slot);
	log_info("port: added name=%s device=%s ifindex=%u queues=%u took_ms=%llu",
		 slot->name, slot->device, slot->tap.ifindex, slot->n_rxq,
		 (unsigned long long)(monotonic_ms() - begin));
	return 0;
}

void
hotplug_forget(const char *tap)
{
	slow_begin();
	fdstore_remove_tap(tap);
	slow_end();
}

void
hotplug_del(struct hotplug *h, struct port *port, struct hotplug_rest *rest)
{
	uint16_t ifidx = port->ifidx;
	struct port gone;

	deal_end(h->deal, port);
	/* Its word to rib and to forwarders: nothing leaves by it any more. */
	tell(h->neigh, ifidx, true);
	tell(h->punt, ifidx, true);
	gone = *port;
	__atomic_store_n(&port->ifidx, 0, __ATOMIC_RELEASE);
	/* Who had it in its hands has let go; ui, trace and punt see it no more. */
	urcu_qsbr_synchronize_rcu();
	GRACE_OVER();
	slow_begin();
	if (rest != NULL) {
		*rest = (struct hotplug_rest){dup(gone.tap.fd), gone.place};
	} else {
		/* Before who asked is told: a new port of that name could not have it. */
		fdstore_remove_tap(gone.name);
		if (tap_destroy(&gone.tap) < 0)
			log_warn("port: tap not deleted name=%s", gone.name);
	}
	port_close(&gone);
	slow_end();
	log_info("port: removed name=%s device=%s", gone.name, gone.device);
}

void
hotplug_undo(struct hotplug *h, struct port *port)
{
	bool made = port->tap_new;
	struct hotplug_rest rest;

	hotplug_del(h, port, made ? NULL : &rest);
	if (made)
		return;
	close(rest.tap_fd);
	hotplug_forget(port->name);
}
