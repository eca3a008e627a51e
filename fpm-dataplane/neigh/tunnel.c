/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tunnels of the kernel (gre, ipip, sit, ip6gre, ip6tnl) as interfaces of the dataplane.
 * Runs in neigh. A tunnel has a number as a VLAN has, but it is on no port: forwarders
 * write its outer header (outer.c), and look up the destination of the header. This file
 * publishes the table by which received packets find their tunnel.
 *
 * A tunnel that forwarders cannot serve stays an interface of the kernel, which then forwards its
 * packets.
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fib/tunnel.h"

#define ENTRIES_MIN 16u

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
	tunnel_refuse(l, reason);
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

/* --- the table of received packets ---------------------------------------------------- */

static void
entry_put(struct neigh *n, struct fib_tunnels *tunnels, const struct fib_iface *fi,
	  uint8_t proto)
{
	const struct fib_tunnel *t = &fi->tunnel;
	struct fib_tunnel_key key = {.local = t->local,
				     .remote = t->remote,
				     .key = t->key,
				     .vrf = t->vrf,
				     .family = t->family,
				     .proto = proto,
				     .has_key = t->has_key};
	uint16_t *entry, ifidx;

	for (uint32_t i = fib_tunnel_hash(n->fib, &key);; i++) {
		entry = &tunnels->entry[i & tunnels->mask];
		ifidx = *entry & (uint16_t)~FIB_TUNNEL_SHARED;
		if (ifidx == 0)
			break;
		/* The other entry of this tunnel may be here. */
		if (ifidx != fi->ifidx &&
		    fib_tunnel_is(&fib_iface(n->fib, ifidx)->tunnel, &key)) {
			*entry |= FIB_TUNNEL_SHARED;
			return;
		}
	}
	*entry = fi->ifidx;
}

static struct fib_tunnels *
tunnels_make(struct neigh *n)
{
	uint32_t n_entries = ENTRIES_MIN;
	struct fib_tunnels *tunnels;

	while (n_entries < 4 * n->n_tunnels) /* two for each, and half of them free */
		n_entries *= 2;
	tunnels = calloc(1, sizeof(*tunnels) + n_entries * sizeof(tunnels->entry[0]));
	if (tunnels == NULL)
		abort(); /* out of memory for 8 octets a tunnel, or a few more */
	tunnels->mask = n_entries - 1;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		const struct fib_iface *fi =
			n->iface[i].tunnel ? fib_iface(n->fib, i) : NULL; /* SVI: none */

		if (fi == NULL || !fi->up)
			continue;
		if (fi->tunnel.gre)
			entry_put(n, tunnels, fi, PROTO_GRE);
		if (!fi->tunnel.gre && fi->tunnel.inner4)
			entry_put(n, tunnels, fi, PROTO_IP4);
		if (!fi->tunnel.gre && fi->tunnel.inner6)
			entry_put(n, tunnels, fi, PROTO_IP6);
	}
	return tunnels;
}

/* Return true if the VRF of a tunnel's outer packets has changed, or their link. */
static bool
below_changed(struct neigh *n, uint16_t ifidx)
{
	const struct fib_tunnel *t = &fib_iface(n->fib, ifidx)->tunnel;

	return tunnel_below_changed(n, n->iface[ifidx].kernel.tunnel.link, t->vrf, t->link);
}

static bool
tunnels_equal(const struct fib_tunnels *a, const struct fib_tunnels *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->mask == b->mask &&
	       memcmp(a->entry, b->entry, (a->mask + 1u) * sizeof(a->entry[0])) == 0;
}

void
tunnels_publish(struct neigh *n)
{
	struct fib_tunnels *tunnels, *old;

	for (uint16_t i = PORT_MAX; n->n_tunnels > 0 && i < n->iface_end; i++)
		if (n->iface[i].tunnel && !n->iface[i].svi && below_changed(n, i))
			iface_publish(n, i);
	tunnels = n->n_tunnels == 0 ? NULL : tunnels_make(n);
	old = atomic_load_explicit(&n->fib->tunnels, memory_order_relaxed);
	if (tunnels_equal(old, tunnels)) {
		free(tunnels);
		return;
	}
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&n->fib->tunnels, tunnels, memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}
