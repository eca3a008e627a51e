/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table by which received packets find their interface over VXLAN. Runs in neigh.
 * Thousands of interfaces may be reported one by one, so an interface is added and removed
 * in place, and the table is made again only if it is full.
 */
#include "neigh/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fib/vxlan.h"

#define ENTRIES_MIN   16u
#define ENTRY_REMOVED 1u /* the number of a port */

static bool
end_is_same(const struct fib_vxlan *a, const struct fib_vxlan *b)
{
	return a->family == b->family && a->vrf == b->vrf && a->port == b->port &&
	       ipaddr_equal(&a->local, &b->local);
}

/* Return true if the interface has an entry: it is up, and its vxlan device is known. */
static bool
entry_is_due(const struct fib_iface *fi)
{
	return fi->up && fi->vxlan.family != 0;
}

static uint32_t
entry_hash(const struct neigh *n, const struct fib_iface *fi)
{
	return fib_vxlan_hash(n->fib, fi->vxlan.vrf, fi->vxlan.port, fi->vxlan.vni);
}

static void
entry_put(struct neigh *n, struct fib_vxlans *vxlans, const struct fib_iface *fi)
{
	uint32_t i = entry_hash(n, fi);

	while (atomic_load_explicit(&vxlans->entry[i & vxlans->mask],
				    memory_order_relaxed) != 0) {
		n->n_steps++;
		i++;
	}
	/* Release: a forwarder that finds the entry finds its interface. */
	atomic_store_explicit(&vxlans->entry[i & vxlans->mask], fi->ifidx,
			      memory_order_release);
	n->n_vxlan_entries++;
	if (n->n_svis_up++ == 0) {
		n->vxlan_end = fi->vxlan;
		n->n_svis_other = 0;
	}
	n->n_svis_other += !end_is_same(&n->vxlan_end, &fi->vxlan);
}

/*
 * Free the entry of an interface. The number of a port takes its place: a port has no VNI.
 */
static void
entry_remove(struct neigh *n, struct fib_vxlans *vxlans, const struct fib_iface *fi)
{
	_Atomic uint16_t *entry;
	uint16_t ifidx;

	for (uint32_t i = entry_hash(n, fi);; i++) {
		entry = &vxlans->entry[i & vxlans->mask];
		ifidx = atomic_load_explicit(entry, memory_order_relaxed);
		n->n_steps++;
		if (ifidx == fi->ifidx)
			break;
		assert(ifidx != 0);
	}
	/*
	 * With one_end 0 the kernel decides about unknown VNIs, and so about the VNI of
	 * this interface, until the end of the round. Release: a forwarder that finds the
	 * entry removed finds one_end 0.
	 */
	atomic_store_explicit(&vxlans->one_end, 0, memory_order_relaxed);
	atomic_store_explicit(entry, ENTRY_REMOVED, memory_order_release);
	n->n_svis_up--;
	n->n_svis_other -= end_is_same(&n->vxlan_end, &fi->vxlan) ? 0 : 1;
	/* Make the table again if no interface is left that `vxlan_end` describes. */
	n->vxlans_due |= n->n_svis_up > 0 && n->n_svis_up == n->n_svis_other;
}

static bool
entry_is_same(const struct fib_iface *old, const struct fib_iface *fi)
{
	return entry_is_due(old) == entry_is_due(fi) && old->vxlan.vni == fi->vxlan.vni &&
	       end_is_same(&old->vxlan, &fi->vxlan);
}

void
svi_enter(struct neigh *n, const struct fib_iface *old, const struct fib_iface *fi)
{
	struct fib_vxlans *vxlans =
		atomic_load_explicit(&n->fib->vxlans, memory_order_relaxed);

	n->vxlans_due |= vxlans == NULL;
	if (n->vxlans_due || (old != NULL && entry_is_same(old, fi)))
		return;
	if (old != NULL && entry_is_due(old))
		entry_remove(n, vxlans, old);
	/* Make the table again if more than half of the entries would be used. */
	n->vxlans_due |= 2 * (n->n_vxlan_entries + 1) > vxlans->mask + 1;
	if (entry_is_due(fi) && !n->vxlans_due)
		entry_put(n, vxlans, fi);
}

static struct fib_vxlans *
vxlans_make(struct neigh *n)
{
	uint32_t n_entries = ENTRIES_MIN;
	struct fib_vxlans *vxlans;

	while (n_entries < 4u * n->n_svis) /* half of the entries are for later changes */
		n_entries *= 2;
	vxlans = calloc(1, sizeof(*vxlans) + n_entries * sizeof(vxlans->entry[0]));
	if (vxlans == NULL)
		abort(); /* out of memory: 8 to 16 octets an interface, or 32 for a few */
	vxlans->mask = n_entries - 1;
	n->n_svis_up = n->n_svis_other = 0;
	n->n_vxlan_entries = n->vxlan_cursor = 0;
	n->n_tables++;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		const struct fib_iface *fi = n->iface[i].svi ? fib_iface(n->fib, i) : NULL;

		n->n_steps++;
		if (fi != NULL && entry_is_due(fi))
			entry_put(n, vxlans, fi);
	}
	return vxlans;
}

/*
 * Return an interface of the table if all have the same VRF, local address and port, and
 * the kernel has no vxlan device of its own; else 0.
 */
static uint16_t
vxlans_one_end(struct neigh *n, const struct fib_vxlans *vxlans)
{
	if (n->n_svis_up == 0 || n->n_svis_other > 0 || n->n_kernels_vxlan > 0)
		return 0;
	for (;; n->vxlan_cursor++) {
		uint16_t ifidx =
			atomic_load_explicit(&vxlans->entry[n->vxlan_cursor & vxlans->mask],
					     memory_order_relaxed);

		n->n_steps++;
		if (ifidx >= PORT_MAX)
			return ifidx;
	}
}

/* Make the table again, or remove it after its last interface. */
static void
vxlans_replace(struct neigh *n, struct fib_vxlans *old)
{
	struct fib_vxlans *vxlans = n->n_svis == 0 ? NULL : vxlans_make(n);

	n->vxlans_due = false;
	if (vxlans != NULL)
		vxlans->one_end = vxlans_one_end(n, vxlans);
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&n->fib->vxlans, vxlans, memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}

void
vxlans_renew(struct neigh *n)
{
	struct fib_vxlans *old =
		atomic_load_explicit(&n->fib->vxlans, memory_order_relaxed);

	if (n->n_svis == 0 ? old != NULL : n->vxlans_due)
		vxlans_replace(n, old);
	else if (old != NULL)
		atomic_store_explicit(&old->one_end, vxlans_one_end(n, old),
				      memory_order_relaxed);
}
