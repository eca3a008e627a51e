/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies the carrier of a port's device to its TAP. FRR then sees a lost link, and next
 * hops on it are dead. [neigh]
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "neigh/internal.h"
#include "tap-bridge/tap.h"

#define SAID_A_ROUND  16u /* carriers announced to FRR per round */
#define LINES_AT_ONCE 2   /* log lines per port; then one a second */

/*
 * --- the log is limited, because a peer can let the carrier flap
 * ---------------------------
 */

static bool
carrier_may_say(struct iface *ifc)
{
	double now_s = monotonic_s();

	ifc->lines += now_s - ifc->lines_at_s;
	ifc->lines_at_s = now_s;
	if (ifc->lines > LINES_AT_ONCE)
		ifc->lines = LINES_AT_ONCE;
	if (ifc->lines < 1)
		return false;
	ifc->lines--;
	return true;
}

static void
carrier_say(struct iface *ifc)
{
	char missed[32] = "";

	if (!carrier_may_say(ifc)) {
		ifc->untold++;
		return;
	}
	if (ifc->untold > 0)
		snprintf(missed, sizeof(missed), " missed=%u", ifc->untold);
	log_info("neigh: carrier %s port=%s%s", ifc->carrier ? "up" : "down",
		 ifc->port->name, missed);
	ifc->untold = 0;
}

void
carrier_say_rest(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].untold > 0) {
			n->iface[i].untold--; /* the last change is logged now */
			carrier_say(&n->iface[i]);
		}
}

/*
 * --- to FRR and to the TAP
 * ------------------------------------------------------------------
 */

/*
 * Queue the carrier's announcement to FRR: of the TAP and of each VLAN on it, which the
 * kernel updates later. It is sent at the end of the round, because each one takes the
 * kernel's lock for all links, and forwarders shall use all carriers of the round before.
 */
static void
carrier_to_announce(struct neigh *n, uint16_t ifidx, bool up)
{
	struct iface *ifc = &n->iface[ifidx];

	if (!n->unsaid || ifidx < n->unsaid_from)
		n->unsaid_from = ifidx;
	n->unsaid = ifc->unsaid = true;
	ifc->unsaid_up = up;
	if (fib_vlans(n->fib, ifidx) == NULL)
		return;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++)
		if (n->iface[i].on == ifidx && n->iface[i].port != NULL)
			carrier_to_announce(n, i, up);
}

void
carrier_announce(struct neigh *n)
{
	unsigned int left = SAID_A_ROUND;

	if (!n->unsaid || n->control == NULL)
		return;
	/* TAPs have the lower numbers. */
	for (uint16_t i = n->unsaid_from; i < n->iface_end && left > 0; i++) {
		struct iface *ifc = &n->iface[i];

		n->unsaid_from = i + 1u;

		if (!ifc->unsaid)
			continue;
		ifc->unsaid = false;
		if (ifc->port == NULL || !ifc->present)
			continue;
		/*
		 * A failure is ignored: the link is gone, or the kernel announces it within
		 * a second.
		 */
		kmon_operstate(n->control, ifc->tap.ifindex, ifc->unsaid_up);
		left--;
	}
	n->unsaid = left == 0;
	if (n->unsaid)
		worker_wake(n->worker);
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
		carrier_say(ifc);
	/*
	 * On a loss inform forwarders and groups first: setting the TAP's carrier takes the
	 * kernel's lock for all links, which other processes may hold for long.
	 */
	if (!up)
		iface_refresh(n, ifidx);
	rc = ifc->lost ? 0 : tap_carrier(&ifc->twin, up);
	if (rc < 0)
		log_warn("neigh: carrier not set port=%s error=%s", ifc->port->name,
			 strerror(-rc));
	if (up)
		iface_refresh(n, ifidx);
	/* Before the monitor is open no TAP is present; the first dump reads all. */
	if (n->control != NULL)
		carrier_to_announce(n, ifidx, up);
}

/*
 * Return true if the device may still come up. A TAP kept over a restart keeps its carrier
 * until the device has its link or has had time for that, so that sessions survive. No
 * packets are sent there meanwhile.
 */
static bool
carrier_may_be_late(const struct iface *ifc)
{
	return !ifc->carrier_set && monotonic_s() < ifc->patience_until_s;
}

void
carrier_look(struct neigh *n, uint16_t ifidx)
{
	const struct iface *ifc = &n->iface[ifidx];
	bool up = port_link_up(ifc->port);

	if (up || !carrier_may_be_late(ifc))
		carrier_set(n, ifidx, up);
}

void
carrier_poll(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].port->kernel_if[0] == '\0')
			carrier_look(n, i);
}

void
carrier_settle(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && !n->iface[i].carrier_set &&
		    !carrier_may_be_late(&n->iface[i]))
			carrier_set(n, i, false);
}
