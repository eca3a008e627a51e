/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies the carrier and the speed of a port's device to its TAP. FRR then sees a lost
 * link, and next hops on it are dead. device_link.c has the other direction. [neigh]
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "neigh/internal.h"
#include "tap-bridge/tap.h"

#define ANNOUNCE_PER_ROUND 16u /* carriers announced to FRR per round */

/* --- the log is limited, because a peer can make the carrier flap --------------------- */

static void
carrier_log(struct iface *ifc)
{
	char missed[32] = "";

	if (!carrier_log_allowed(ifc)) {
		ifc->n_unlogged++;
		return;
	}
	if (ifc->n_unlogged > 0)
		snprintf(missed, sizeof(missed), " missed=%u", ifc->n_unlogged);
	log_info("neigh: carrier %s port=%s%s", ifc->carrier ? "up" : "down",
		 ifc->port->name, missed);
	ifc->n_unlogged = 0;
}

void
carrier_log_pending(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].n_unlogged > 0) {
			n->iface[i].n_unlogged--; /* the last change is logged now */
			carrier_log(&n->iface[i]);
		}
}

/* --- to FRR and to the TAP ------------------------------------------------------------ */

/*
 * Queue the announcement of a carrier to FRR: for the TAP, and for each VLAN on it, because
 * the kernel itself updates VLANs later. Announcements are sent at the end of the round,
 * after forwarders have all carriers of the round, because each announcement takes the
 * kernel's lock for all links.
 */
static void
carrier_queue(struct neigh *n, uint16_t ifidx, bool up)
{
	struct iface *ifc = &n->iface[ifidx];

	if (!n->announce_due || ifidx < n->announce_from)
		n->announce_from = ifidx;
	n->announce_due = ifc->announce_due = true;
	ifc->announce_up = up;
	for (uint16_t i = iface_first_on(n, ifidx); i != 0; i = iface_next_on(n, i))
		carrier_queue(n, i, up);
}

void
carrier_announce(struct neigh *n)
{
	unsigned int left = ANNOUNCE_PER_ROUND;

	if (!n->announce_due || n->control == NULL)
		return;
	/* TAPs come first, because they have the lower numbers. */
	for (uint16_t i = n->announce_from; i < n->iface_end && left > 0; i++) {
		struct iface *ifc = &n->iface[i];

		n->announce_from = i + 1u;

		if (!ifc->announce_due)
			continue;
		ifc->announce_due = false;
		if (ifc->port == NULL || !ifc->present)
			continue;
		/*
		 * A link in mode dormant becomes up when a supplicant (802.1X) sets it up,
		 * not when it has a carrier.
		 */
		if (ifc->announce_up && ifc->kernel.dormant)
			continue;
		/*
		 * A failure is ignored: the link is gone, or the kernel announces the
		 * carrier within a second.
		 */
		kmon_operstate(n->control, ifc->kernel.ifindex, ifc->announce_up);
		left--;
	}
	n->announce_due = left == 0;
	if (n->announce_due)
		worker_wake(n->worker);
}

/*
 * Give the TAP the speed of the device, which decides costs of OSPF. Call this before the
 * carrier is announced, because FRR then reads the speed.
 */
void
carrier_set_speed(struct iface *ifc, const struct port_link *link)
{
	static struct log_limit limit;
	static bool is_refused_by_kernel;
	unsigned int missed;
	int rc;

	if (link->mbit_per_s == 0 || ifc->lost)
		return;
	ifc->speed = *link;
	rc = device_result(ifc, tap_speed(&ifc->tap, link->mbit_per_s, link->full_duplex));
	ifc->speed_refused = rc < 0;
	if (rc == -EOPNOTSUPP && !is_refused_by_kernel) {
		is_refused_by_kernel = true;
		log_warn("neigh: speed of taps not set error=\"%s\" effect=costs-of-ospf",
			 strerror(-rc));
	} else if (rc < 0 && rc != -EOPNOTSUPP && log_allowed(&limit, &missed)) {
		log_warn("neigh: speed not set port=%s error=\"%s\" missed=%u",
			 ifc->port->name, strerror(-rc), missed);
	}
}

void
carrier_follow_speed(struct iface *ifc, struct port_link link)
{
	if (!ifc->carrier || !ifc->carrier_set ||
	    link.mbit_per_s != ifc->speed.mbit_per_s ||
	    link.full_duplex != ifc->speed.full_duplex)
		carrier_set_speed(ifc, &link);
}

void
carrier_set(struct neigh *n, uint16_t ifidx, bool up)
{
	struct iface *ifc = &n->iface[ifidx];
	int rc;

	/*
	 * The first report is always applied: a TAP kept over a restart has its old
	 * carrier.
	 */
	if (ifc->carrier == up && ifc->carrier_set)
		return;
	ifc->carrier = up;
	ifc->carrier_set = true;
	if (!ifc->leaving)
		carrier_log(ifc);
	/*
	 * On a loss inform forwarders and rib first: setting the TAP's carrier takes the
	 * kernel's lock for all links, which other processes may hold for long.
	 */
	if (!up)
		iface_refresh(n, ifidx);
	rc = ifc->lost ? 0 : tap_carrier(&ifc->tap, up);
	if (rc < 0)
		log_warn("neigh: carrier not set port=%s error=\"%s\"", ifc->port->name,
			 strerror(-rc));
	if (up) {
		iface_refresh(n, ifidx);
		notify_send(n, ifidx);
	}
	/* Before the monitor is open no TAP is present; the first dump reads all TAPs. */
	if (n->control != NULL)
		carrier_queue(n, ifidx, up);
}

/*
 * Give the TAPs the carriers of their devices again, if another program changed them (`ip
 * link set carrier`). A difference that lasts for a whole period is not just a late report
 * of the kernel.
 */
void
carrier_restore(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++) {
		struct iface *ifc = &n->iface[i];
		bool differs = ifc->port != NULL && ifc->present && ifc->carrier_set &&
			       ifc->kernel.admin_up && ifc->kernel.carrier != ifc->carrier;

		if (differs && ifc->carrier_differs) {
			log_warn("neigh: carrier of tap changed by another program port=%s "
				 "restored=%s",
				 ifc->port->name, ifc->carrier ? "up" : "down");
			(void)tap_carrier(&ifc->tap, ifc->carrier);
			carrier_queue(n, i, ifc->carrier);
			differs = false;
		}
		ifc->carrier_differs = differs;
	}
}

/*
 * Return true if the device may still come up. A TAP kept over a restart keeps its carrier
 * until the device has its link or has had time for that, so that sessions survive. No
 * packets are sent by the port meanwhile.
 */
static bool
carrier_may_be_late(const struct iface *ifc)
{
	return !ifc->carrier_set && monotonic_s() < ifc->link_wait_until_s;
}

void
carrier_read(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];
	struct port_link link = port_link(ifc->port);

	port_link_publish(ifc->port, link);
	if (link.up)
		carrier_follow_speed(ifc, link);
	if (link.up || !carrier_may_be_late(ifc))
		carrier_set(n, ifidx, link.up);
}

void
carrier_poll(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].port->kernel_if[0] == '\0')
			carrier_read(n, i);
}

void
carrier_set_missing(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && !n->iface[i].carrier_set &&
		    !carrier_may_be_late(&n->iface[i]))
			carrier_set(n, i, false);
}
