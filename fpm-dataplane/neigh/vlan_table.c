/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of interfaces that are no ports, and the tables of VLANs and macvlans. Runs
 * in neigh.
 *
 * Numbers are assigned in turn, and reused only when no forwarder and no neighbor record
 * has the old one. A frame that still waits with the old number is then dropped, and not
 * sent by another VLAN.
 */
#include "neigh/internal.h"

#include <stdlib.h>

#include "base/limits.h"

#define VLANS_MAX (IFIDX_MAX - PORT_MAX)

uint16_t
vlan_take_number(struct neigh *n)
{
	for (unsigned int tries = 0; n->n_vlans < n->max_vlans && tries < VLANS_MAX;
	     tries++) {
		uint16_t i = n->next_vlan;

		n->next_vlan = i + 1 < IFIDX_MAX ? i + 1 : PORT_MAX;
		if (n->iface[i].port == NULL && !n->iface[i].number_retired &&
		    n->nb_on[i].next == NULL)
			return i;
	}
	return 0;
}

struct fib_vlans *
vlan_table(struct neigh *n, uint16_t ifidx)
{
	struct fib_vlans *t =
		atomic_load_explicit(&n->fib->vlans[ifidx], memory_order_relaxed);

	if (t == NULL) {
		t = calloc(1, sizeof(*t));
		/* Release: a forwarder that sees the table sees it empty. */
		atomic_store_explicit(&n->fib->vlans[ifidx], t, memory_order_release);
	}
	return t;
}

struct retired_vlan {
	struct retired retired;
	uint16_t ifidx;
};

static void
vlan_free_number(struct neigh *n, struct retired *r)
{
	struct retired_vlan *vlan = caa_container_of(r, struct retired_vlan, retired);

	n->iface[vlan->ifidx].number_retired = false;
	table_used(TABLE_vlans, --n->n_vlans);
	free(vlan);
}

/* Remove the interface from the lists of interfaces that borrow or lend addresses. */
static void
iface_drop_sources(struct neigh *n, uint16_t ifidx)
{
	for (unsigned int v = V4; v <= V6; v++) {
		set_put(&n->lenders[v], ifidx, false);
		set_put(&n->good_lenders[v], ifidx, false);
		set_put(&n->borrowers[v], ifidx, false);
	}
}

void
vlan_retire_number(struct neigh *n, uint16_t ifidx)
{
	struct retired_vlan *vlan = calloc(1, sizeof(*vlan));

	if (vlan == NULL)
		abort(); /* out of memory for a few octets */
	iface_drop_sources(n, ifidx);
	n->iface[ifidx] = (struct iface){.number_retired = true};
	vlan->ifidx = ifidx;
	neigh_retire(n, &vlan->retired, vlan_free_number);
}
