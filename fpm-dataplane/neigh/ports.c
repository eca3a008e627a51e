/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adds and removes ports, and creates TAPs again that were deleted or moved away. Runs in
 * neigh, because neigh must know a new ifindex before the kernel reports it. The new TAP
 * takes the number of the old descriptor, so a thread that uses the number never finds it
 * closed or used by another file.
 *
 * AF_PACKET ports always report their link as up, so the carrier of their kernel interface
 * is taken from the kernel. The link state of all other devices is polled.
 */
#include "neigh/internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tap-bridge/tap.h"

#define LINK_WAIT_S 4.0 /* time for a copper link to negotiate its speed again */
#define LACP_WAIT_S 3.0 /* further time for LACP to negotiate with the peer */

/* --- devices and their links ---------------------------------------------------------- */

/*
 * Take the MTU of the kernel interface behind a port. The kernel drops longer frames that
 * AF_PACKET sends, and counts them nowhere.
 */
static void
port_below_mtu(struct neigh *n, struct iface *ifc, unsigned int mtu_bytes)
{
	unsigned int was_bytes = iface_dev_mtu(ifc);

	ifc->below_mtu_bytes = mtu_bytes;
	if (iface_dev_mtu(ifc) == was_bytes)
		return;
	if (mtu_bytes < ifc->dev_mtu_bytes)
		log_warn("neigh: device mtu below port mtu port=%s device=%s mtu=%u "
			 "port_mtu=%u",
			 ifc->port->name, ifc->port->kernel_if, mtu_bytes,
			 ifc->dev_mtu_bytes);
	iface_refresh(n, ifc->port->ifidx);
}

static void
ports_device_event(void *ctx, const struct kmon_link *kl, bool gone)
{
	struct neigh *n = ctx;
	bool up;

	for (uint16_t i = 1; i < PORT_MAX; i++) {
		struct iface *ifc = &n->iface[i];
		struct port_link link = {.up = true}; /* of net_af_packet: always */

		if (ifc->port == NULL || ifc->port->kernel_if[0] == '\0')
			continue;
		if (!gone && ifc->dev_ifindex == 0 && !ifc->dev_lost &&
		    strcmp(ifc->port->kernel_if, kl->name) == 0)
			ifc->dev_ifindex = kl->ifindex;
		if (ifc->dev_ifindex != kl->ifindex)
			continue;
		if (gone) {
			log_warn("neigh: device deleted port=%s device=%s", ifc->port->name,
				 ifc->port->kernel_if);
			ifc->dev_ifindex = 0;
			ifc->dev_lost = true;
			__atomic_store_n(&ifc->port->without_if, true, __ATOMIC_RELAXED);
		}
		port_below_mtu(n, ifc, gone ? 0 : kl->mtu_bytes);
		up = !gone && kl->admin_up && kl->carrier;
		if (up) {
			link = port_link(ifc->port);
			carrier_follow_speed(ifc, link);
		}
		port_link_publish(ifc->port, link);
		carrier_set(n, i, up);
	}
}

static const struct kmon_ops device_ops = {.on_link = ports_device_event};

static bool
ports_have_devices(const struct neigh *n, bool of_kernel)
{
	for (unsigned int i = 0; i < n->conf.n_port; i++)
		if (port_is_there(&n->conf.port[i]) &&
		    (n->conf.port[i].kernel_if[0] != '\0') == of_kernel)
			return true;
	return false;
}

/* Watch or poll the link of a port's device. Returns 0 or -errno. */
static int
ports_watch_device(struct neigh *n, const struct port *port)
{
	int rc;

	if (port->kernel_if[0] == '\0') {
		if (!ev_is_active(&n->carrier_timer))
			neigh_start_timer(n, &n->carrier_timer, CARRIER_POLL_S);
		return 0;
	}
	if (n->device_mon != NULL)
		return kmon_reset_link(n->device_mon, if_nametoindex(port->kernel_if),
				       true);
	rc = kmon_open(&n->device_mon, NULL, &device_ops, n);
	if (rc == 0)
		neigh_start_io(n, &n->device_io, n->device_mon);
	return rc;
}

/*
 * Turn IPv6 off every second, because `sysctl net.ipv6.conf.all.disable_ipv6=0` turns it on
 * for each interface.
 */
void
ports_quiet_kernel(struct neigh *n)
{
	static struct log_limit limit;
	unsigned int missed;
	char why[256];

	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].port->kernel_if[0] != '\0' &&
		    port_quiet_kernel(n->iface[i].port, why, sizeof(why)) < 0 &&
		    log_allowed(&limit, &missed))
			log_warn("neigh: ipv6 on in the kernel port=%s reason=\"%s\" "
				 "missed=%u",
				 n->iface[i].port->name, why, missed);
}

void
ports_watch(struct neigh *n)
{
	if (n->device_mon != NULL)
		neigh_start_io(n, &n->device_io, n->device_mon);
	if (ports_have_devices(n, false))
		neigh_start_timer(n, &n->carrier_timer, CARRIER_POLL_S);
}

/* --- adding and removing ports -------------------------------------------------------- */

static void
port_begin(struct neigh *n, struct port *port)
{
	struct iface *ifc = &n->iface[port->ifidx];

	assert(port->ifidx > 0 && port->ifidx < PORT_MAX && ifc->port == NULL);
	*ifc = (struct iface){.port = port,
			      .tap = port->tap,
			      .lost = port->tap.ifindex == 0,
			      .forward4 = true};
	counters_interface_begin(port->ifidx);
	ifc->dev_mtu_bytes = ifc->tap_mtu_bytes = port->mtu_bytes;
	memcpy(ifc->dev_mac, port->mac, sizeof(ifc->dev_mac));
	/* A device with a kernel interface has kept its link. */
	if (port->tap_kept && port->kernel_if[0] == '\0')
		ifc->link_wait_until_s = monotonic_s() + LINK_WAIT_S +
					 (port->bond == BOND_LACP ? LACP_WAIT_S : 0);
}

int
ports_setup(struct neigh *n)
{
	n->forward6_all = true;
	for (unsigned int i = 0; i < n->conf.n_port; i++)
		if (port_is_there(&n->conf.port[i]))
			port_begin(n, &n->conf.port[i]);
	return ports_have_devices(n, true) ? kmon_open(&n->device_mon, NULL, &device_ops, n)
					   : 0;
}

void
ports_add(struct neigh *n, struct port *port)
{
	uint16_t ifidx = port->ifidx;
	int rc;

	port_begin(n, port);
	/*
	 * Read the link before the TAP is reported, as at start, so that the TAP's first
	 * report has the final state.
	 */
	rc = ports_watch_device(n, port);
	if (rc < 0)
		log_warn("neigh: link events of device not read port=%s error=\"%s\"",
			 port->name, strerror(-rc));
	if (port->kernel_if[0] == '\0')
		carrier_read(n, ifidx);
	else if (!n->iface[ifidx].carrier_set)
		carrier_set(n, ifidx, false);
	/*
	 * The kernel may have reported the TAP and its VLANs before, as interfaces that are
	 * not ours.
	 */
	if (!n->iface[ifidx].lost) {
		link_forget_vlans(n, n->iface[ifidx].tap.ifindex);
		if (kmon_reset_link(n->control, n->iface[ifidx].tap.ifindex, true) < 0)
			n->resync = true;
	}
	iface_publish(n, ifidx);
}

void
ports_remove(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];

	if (ifc->port == NULL)
		return;
	ifc->leaving = true;
	/* From here on next hops and neighbors on it are dead. */
	carrier_set(n, ifidx, false);
	/* Announce it now, not in carrier_announce(): this function clears `ifc`. */
	if (n->control != NULL && ifc->present)
		kmon_operstate(n->control, ifc->kernel.ifindex, false);
	kmon_reset_link(n->control, ifc->tap.ifindex, false);
	ifc->present = false;
	ifc->lost = true;
	/*
	 * Publish the interface as down, because a forwarder that is between two stages may
	 * still read it. The forwarder then sends nothing.
	 */
	iface_publish(n, ifidx);
	mac_release(ifc);
	*ifc = (struct iface){.port = NULL};
}

/* --- deleted TAPs --------------------------------------------------------------------- */

void
ports_check_taps(struct neigh *n)
{
	n->taps_unchecked = kmon_is_lost(n->control);
	for (uint16_t i = 1; i < PORT_MAX; i++) {
		const struct iface *ifc = &n->iface[i];

		if (ifc->port == NULL)
			continue;
		if (ifc->present || ifc->lost || n->taps_unchecked)
			iface_publish(n, i);
		else
			iface_tap_gone(n, i);
	}
}

static void
port_tell_tap(struct worker *to, const struct iface *ifc)
{
	struct msg_tap *m = msg_new(MSG_TAP, sizeof(*m));

	m->ifidx = ifc->port->ifidx;
	m->ifindex = ifc->tap.ifindex;
	worker_send(to, &m->m);
}

static void
port_reopen_tap(struct neigh *n, struct iface *ifc)
{
	struct tap tap;
	int rc = tap_open(&tap, ifc->port->name, n->conf.netns, ifc->dev_mac,
			  ifc->tap_mtu_bytes, NULL);

	if (rc == 0) {
		rc = tap_move(&tap, ifc->tap.fd);
		if (rc < 0)
			tap_close(&tap); /* created again at the next try */
	}
	if (rc < 0) {
		if (rc != ifc->lost_error)
			log_warn("neigh: tap not recreated port=%s error=\"%s\" retry=yes",
				 ifc->port->name, strerror(-rc));
		ifc->lost_error = rc;
		return;
	}
	ifc->tap = tap;
	ifc->lost = false;
	ifc->lost_error = 0;
	log_warn("neigh: tap recreated port=%s ifindex=%u effect=addresses-lost",
		 ifc->port->name, tap.ifindex);
	port_tell_tap(n->conf.punt, ifc);
	port_tell_tap(n->conf.manage, ifc);
	/*
	 * Make the kernel report the TAP again, because it may have reported the TAP before
	 * this thread knew it.
	 */
	carrier_set_speed(ifc, &ifc->speed);
	tap_carrier(&ifc->tap, ifc->carrier);
}

void
ports_reopen_lost(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL && n->iface[i].lost)
			port_reopen_tap(n, &n->iface[i]);
}

/* --- settings of devices that are due ------------------------------------------------- */

void
ports_set_again(struct neigh *n)
{
	for (uint16_t i = 1; i < PORT_MAX; i++) {
		struct iface *ifc = &n->iface[i];
		int fd;

		if (ifc->port == NULL || !ifc->dev_due || !ifc->present)
			continue;
		fd = fcntl(ifc->tap.fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return; /* still without a descriptor */
		close(fd);
		ifc->dev_due = false;
		carrier_set_speed(ifc, &ifc->speed);
		if (ifc->port->kernel_if[0] != '\0')
			iface_set_dev_again(n, ifc);
	}
}
