/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vteps: scan the adjacencies for neighbors behind VXLANs, and keep their VTEPs in a hash
 * table. The first lookup in a second makes a scan, and so does a lookup that finds
 * nothing, up to VTEP_SCANS_MAX scans in a second. So a lookup of a made-up address is
 * cheap, and made-up addresses delay the discovery of a new VTEP by a second at most.
 * [punt]
 */
#include "punt/vteps.h"

#include <stdlib.h>

#include "fib/vxlan.h"

static bool
vtep_equal(const struct punt_vtep *a, const struct punt_vtep *b)
{
	return a->family == b->family && a->vrf == b->vrf &&
	       ipaddr_equal(&a->addr, &b->addr);
}

/* Return the place of an address, or the free place for it. The table has free places. */
static struct punt_vtep *
place_of(const struct punt_vteps *v, uint64_t seed, const struct punt_vtep *vtep)
{
	uint64_t h = ipaddr_hash(&vtep->addr, seed ^ vtep->vrf);

	while (v->place[h & v->mask].family != 0 &&
	       !vtep_equal(&v->place[h & v->mask], vtep))
		h++;
	return &v->place[h & v->mask];
}

static const struct fib_vxlan_hop *
hop_at(const struct fib *fib, uint32_t adj)
{
	const struct fib_vxlan_hop *hop = fib_vxlan_hop(fib, adj);

	return hop != NULL && hop->t.family != 0 ? hop : NULL;
}

/* Replace the table. It is empty if memory is short. */
static void
vteps_scan(struct punt_vteps *v, const struct fib *fib)
{
	uint32_t n = 0, places = 2;

	v->n_scans++;
	free(v->place);
	for (uint32_t i = 0; i < fib->adj_end; i++)
		n += hop_at(fib, i) != NULL;
	while (places < 2 * n)
		places *= 2;
	v->mask = places - 1;
	v->place = n == 0 ? NULL : calloc(places, sizeof(*v->place));
	for (uint32_t i = 0; v->place != NULL && i < fib->adj_end; i++) {
		const struct fib_vxlan_hop *hop = hop_at(fib, i);
		struct punt_vtep vtep;

		/*
		 * neigh may have added neighbors since the count. The table has room for
		 * the first `n`; the next scan finds the others.
		 */
		if (hop == NULL || n == 0)
			continue;
		n--;
		vtep = (struct punt_vtep){hop->t.remote, hop->t.vrf, hop->t.family};
		*place_of(v, fib->seed, &vtep) = vtep;
	}
}

bool
punt_vtep_is_known(struct punt_vteps *v, const struct fib *fib,
		   const struct punt_vtep *vtep)
{
	bool fresh = v->n_scans == 0;

	if (fresh)
		vteps_scan(v, fib);
	if (v->place != NULL && place_of(v, fib->seed, vtep)->family != 0)
		return true;
	if (fresh || v->n_scans >= VTEP_SCANS_MAX)
		return false;
	vteps_scan(v, fib);
	return v->place != NULL && place_of(v, fib->seed, vtep)->family != 0;
}

void
punt_vteps_age(struct punt_vteps *v)
{
	v->n_scans = 0;
}

void
punt_vteps_free(struct punt_vteps *v)
{
	free(v->place);
	*v = (struct punt_vteps){0};
}
