/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table by which received packets find their tunnel. Runs in neigh. Thousands of
 * tunnels may be reported one by one, so a tunnel is added in place, and the table is made
 * again only if it is full, or if tunnels share a key.
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "fib/tunnel.h"

#define ENTRIES_MIN 16u

/* Return entry `i` modulo the size. A search counts `i` from the hash of a key. */
static _Atomic uint16_t *
entry_at(struct fib_tunnels *tunnels, uint32_t i)
{
	return &tunnels->entry[i & tunnels->mask];
}

static uint16_t
entry_ifidx(const _Atomic uint16_t *entry)
{
	return atomic_load_explicit(entry, memory_order_relaxed) &
	       (uint16_t)~FIB_TUNNEL_SHARED;
}

/* Return true if a tunnel that is up has the number and receives packets with the key. */
static bool
ifidx_receives(const struct neigh *n, uint16_t ifidx, const struct fib_tunnel_key *key)
{
	const struct fib_iface *fi = fib_iface(n->fib, ifidx);

	return fi != NULL && fi->up && fi->ifindex != 0 && fib_tunnel_is(&fi->tunnel, key);
}

/*
 * Put a tunnel into the table, unless it is there. If another tunnel receives packets
 * with this key, mark the entry of the other tunnel. Return false if that needs a new
 * table, because this tunnel has an entry of its own, which cannot be removed in place.
 */
static bool
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
	_Atomic uint16_t *entry, *of_other = NULL;
	bool has = false;
	uint16_t ifidx;

	for (uint32_t i = fib_tunnel_hash(n->fib, &key);; i++) {
		entry = entry_at(tunnels, i);
		ifidx = entry_ifidx(entry);
		if (ifidx == 0)
			break;
		n->n_steps++;
		has |= ifidx == fi->ifidx;
		if (ifidx != fi->ifidx && of_other == NULL &&
		    ifidx_receives(n, ifidx, &key))
			of_other = entry;
	}
	if (of_other != NULL) {
		n->tunnels_shared = true;
		atomic_fetch_or_explicit(of_other, FIB_TUNNEL_SHARED, memory_order_relaxed);
		return !has;
	}
	if (has)
		return true;
	n->n_tunnel_entries++;
	/* Release: a forwarder that finds the entry finds its interface. */
	atomic_store_explicit(entry, fi->ifidx, memory_order_release);
	return true;
}

/* Put a tunnel into the table, once for each protocol that it receives. */
static bool
entries_put(struct neigh *n, struct fib_tunnels *tunnels, const struct fib_iface *fi)
{
	const struct fib_tunnel *t = &fi->tunnel;

	if (t->gre)
		return entry_put(n, tunnels, fi, PROTO_GRE);
	return (!t->inner4 || entry_put(n, tunnels, fi, PROTO_IP4)) &&
	       (!t->inner6 || entry_put(n, tunnels, fi, PROTO_IP6));
}

/* Return true if there is no room for two entries: more than 5/8 would be used. */
static bool
table_is_full(const struct neigh *n, const struct fib_tunnels *tunnels)
{
	return 8 * (n->n_tunnel_entries + 2) > 5 * (tunnels->mask + 1);
}

/*
 * A tunnel that is down, or has another key now, keeps its old entry, which leads no packet
 * to it: forwarders compare the key of the packet with the interface.
 */
void
tunnel_enter(struct neigh *n, const struct fib_iface *old, const struct fib_iface *fi)
{
	struct fib_tunnels *tunnels =
		atomic_load_explicit(&n->fib->tunnels, memory_order_relaxed);

	if (tunnels == NULL || n->tunnels_shared)
		n->tunnels_due = true;
	if (n->tunnels_due || !fi->up ||
	    (old != NULL && old->up &&
	     memcmp(&old->tunnel, &fi->tunnel, sizeof(fi->tunnel)) == 0))
		return;
	if (table_is_full(n, tunnels) || !entries_put(n, tunnels, fi) || n->tunnels_shared)
		n->tunnels_due = true;
}

static struct fib_tunnels *
tunnels_make(struct neigh *n)
{
	uint32_t n_entries = ENTRIES_MIN;
	struct fib_tunnels *tunnels;

	/* two entries for each tunnel, and half of all entries free */
	while (n_entries < 4 * n->n_tunnels)
		n_entries *= 2;
	tunnels = calloc(1, sizeof(*tunnels) + n_entries * sizeof(tunnels->entry[0]));
	if (tunnels == NULL)
		abort(); /* out of memory: 8 to 16 octets a tunnel, or 32 for a few */
	tunnels->mask = n_entries - 1;
	n->n_tunnel_entries = 0;
	n->tunnels_shared = false;
	n->n_tables++;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		const struct fib_iface *fi = n->iface[i].tunnel && !n->iface[i].svi
						     ? fib_iface(n->fib, i)
						     : NULL;

		n->n_steps++;
		if (fi != NULL && fi->up)
			(void)entries_put(n, tunnels, fi);
	}
	return tunnels;
}

void
tunnels_renew(struct neigh *n)
{
	struct fib_tunnels *old =
		atomic_load_explicit(&n->fib->tunnels, memory_order_relaxed);

	if (n->n_tunnels == 0 ? old == NULL : !n->tunnels_due)
		return;
	n->tunnels_due = false;
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&n->fib->tunnels, n->n_tunnels == 0 ? NULL : tunnels_make(n),
			      memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}
