/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TAPs that somebody deleted or moved away, and those that are made in their place. Runs in
 * neigh, which knows a new one's ifindex before the kernel speaks of it. The new one takes the
 * number of the old one's descriptor: who has that in use, in whatever thread, never finds it
 * closed, and never another thing behind it.
 */
#include "neigh/internal.h"

#include <string.h>

#include "base/log.h"
#include "tap-bridge/tap.h"

void
iface_tap_gone(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];

	if (!ifc->leaving)
		log_warn("neigh: tap deleted port=%s", ifc->port->name);
	ifc->present = false;
	ifc->lost = true;
	iface_refresh(n, ifidx);
	iface_addresses_changed(n, ifidx);
}

void
iface_first_look(struct neigh *n, uint16_t ifidx)
{
	if (n->iface[ifidx].present)
		iface_publish(n, ifidx);
	else
		iface_tap_gone(n, ifidx);
}

static void
tell(struct worker *to, const struct iface *ifc)
{
	struct msg_tap *m = msg_new(MSG_TAP, sizeof(*m));

	m->ifidx = ifc->port->ifidx;
	m->ifindex = ifc->twin.ifindex;
	worker_send(to, &m->m);
}

static void
reopen(struct neigh *n, struct iface *ifc)
{
	struct tap tap;
	int rc = tap_open(&tap, ifc->port->name, n->conf.netns, ifc->dev_mac,
			  ifc->port->mtu_bytes, NULL);

	if (rc == 0) {
		rc = tap_move(&tap, ifc->twin.fd);
		if (rc < 0)
			tap_close(&tap); /* it is there the next time */
	}
	if (rc < 0) {
		if (rc != ifc->lost_error)
			log_warn("neigh: tap cannot be made anew port=%s error=%s, tried "
				 "every second",
				 ifc->port->name, strerror(-rc));
		ifc->lost_error = rc;
		return;
	}
	ifc->twin = tap;
	ifc->lost = false;
	ifc->lost_error = 0;
	log_warn("neigh: tap made anew port=%s ifindex=%u, without addresses",
		 ifc->port->name, tap.ifindex);
	tell(n->conf.punt, ifc);
	tell(n->conf.manage, ifc);
	/* Whatever the kernel has told of it by now is told again with this, if not before. */
	tap_carrier(&ifc->twin, ifc->carrier);
}

void
iface_reopen_lost(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].lost)
			reopen(n, &n->iface[i]);
}
