/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tunnels of the kernel (gre, ipip, sit, ip6gre, ip6tnl) as interfaces of the dataplane.
 * Runs in neigh. A tunnel has a number as a VLAN has, but it is on no port: forwarders
 * write its outer header (outer.c), and look up the destination of the header.
 * tunnel_table.c has the table by which received packets find their tunnel.
 *
 * A tunnel that forwarders cannot serve stays an interface of the kernel, which then
 * forwards its packets.
 */
#include "neigh/internal.h"

#include "base/log.h"
#include "fib/tunnel.h"

/* --- numbers -------------------------------------------------------------------------- */

uint16_t
tunnel_add(struct neigh *n, struct link *l)
{
	const struct kmon_link *kl = &l->kernel;
	const char *reason;
	uint16_t ifidx;

	if (kl->tunnel.kind == KMON_NO_TUNNEL)
		return 0;
	reason = tunnel_refusal(kl);
	tunnel_refuse(n, l, reason);
	if (reason != NULL)
		return 0;
	ifidx = tunnel_take_number(n, l);
	if (ifidx == 0) {
		l->tunnel_refused = "limit";
		return 0;
	}
	n->n_tunnels++;
	iface_publish(n, ifidx);
	log_info("neigh: tunnel added dev=%s kind=%s", kl->name, tunnel_kind(kl));
	return ifidx;
}

void
tunnel_remove(struct neigh *n, uint16_t ifidx)
{
	log_info("neigh: tunnel removed dev=%s", n->iface[ifidx].kernel.name);
	n->n_tunnels--;
	tunnel_drop_number(n, ifidx);
}

/* --- once per round ------------------------------------------------------------------- */

/* Return true if the VRF of a tunnel's outer packets has changed, or their link. */
static bool
below_changed(struct neigh *n, uint16_t ifidx)
{
	const struct fib_tunnel *t = &fib_iface(n->fib, ifidx)->tunnel;

	return tunnel_below_changed(n, n->iface[ifidx].kernel.tunnel.link, t->vrf, t->link);
}

void
tunnels_publish(struct neigh *n)
{
	for (uint16_t i = PORT_MAX; n->below_due && n->n_tunnels > 0 && i < n->iface_end;
	     i++) {
		n->n_steps++;
		if (n->iface[i].tunnel && !n->iface[i].svi && below_changed(n, i))
			iface_publish(n, i);
	}
	tunnels_renew(n);
}
