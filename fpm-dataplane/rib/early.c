/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replayed routes that arrived before the nexthop object that they name. [rib]
 *
 * Live updates interleave with a replay, and groups arrive before their members
 * (doc/fpm.md, 5). A replay may thus confirm a working route with an id that is not
 * announced yet. The route keeps its old slot until the id, and each member of a group, is
 * known; at the latest until the replay is over, because then zebra has sent everything. A
 * route without an old slot does not need this: it is bound at once, and late binding
 * completes it (nexthop.c).
 */
#include "rib/early.h"

#include <stdlib.h>

#include "rib/content.h"
#include "rib/feedback.h"
#include "rib/index.h"
#include "rib/nexthop.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"

static uint64_t
early_hash(const struct route *r)
{
	return hash32((uint32_t)((uintptr_t)r / sizeof(void *)));
}

static uint32_t
early_find(const struct rib *rib, const struct route *r)
{
	uint32_t i = hidx_first(&rib->early.by_route, early_hash(r));

	while (i != 0 && rib->early.v[i].route != r)
		i = hidx_next(&rib->early.by_route, i);
	return i;
}

static bool
nh_is_unresolved(struct rib *rib, struct nh *nh)
{
	if (nh == NULL || !nh->known)
		return true;
	/*
	 * Each route of a replay needs this result, so keep it until an id changes. Most
	 * ids arrive before their routes.
	 */
	if (nh->checked != rib->nhs.n_changes) {
		nh_hops(rib, nh, 0, &rib->scratch);
		nh->unresolved = rib->scratch.unresolved;
		nh->checked = rib->nhs.n_changes;
	}
	return nh->unresolved;
}

/* Return true while the replay that confirms routes of this kind runs. */
static bool
route_is_awaited(const struct rib *rib, const struct route *r)
{
	if (route_is_replayed(r))
		return rib->session.replaying;
	return rib->session.vrfs_replaying && route_is_swept(rib, r);
}

bool
early_put(struct rib *rib, struct route *r, uint32_t nhid, uint16_t mtu_class)
{
	uint32_t i;

	if (r == NULL || r->zslot == 0 || !route_is_awaited(rib, r))
		return false;
	i = rib->early.n == 0 ? 0 : early_find(rib, r);
	/* The route waits only with a slot that is older than this session. */
	if (r->gen == rib->session.gen && i == 0)
		return false;
	if (!nh_is_unresolved(rib, nh_find(rib, nhid)))
		return false;
	if (i == 0) {
		i = number_get(&rib->early.unused, &rib->early.high);
		rib->early.v =
			table_grow(rib->early.v, &rib->early.cap, i, sizeof(*rib->early.v));
		hidx_add(&rib->early.by_route, early_hash(r), i);
		rib->early.n++;
	}
	rib->early.v[i] = (struct early){.route = r, .nhid = nhid, .mtu_class = mtu_class};
	return true;
}

static void
early_drop(struct rib *rib, uint32_t i)
{
	hidx_del(&rib->early.by_route, i);
	rib->early.v[i].route = NULL;
	vec32_push(&rib->early.unused, i);
	rib->early.n--;
}

void
early_forget(struct rib *rib, const struct route *r)
{
	uint32_t i = rib->early.n == 0 ? 0 : early_find(rib, r);

	if (i != 0)
		early_drop(rib, i);
}

void
early_bind(struct rib *rib, enum early_due due)
{
	for (uint32_t i = 1; rib->early.n > 0 && i <= rib->early.high; i++) {
		struct route *r = rib->early.v[i].route;
		uint32_t nhid = rib->early.v[i].nhid;
		uint16_t mtu_class = rib->early.v[i].mtu_class;

		if (r == NULL ||
		    (!(due == EARLY_ALL || (due == EARLY_MAIN && route_is_replayed(r))) &&
		     nh_is_unresolved(rib, nh_find(rib, nhid))))
			continue;
		early_drop(rib, i);
		route_bind(rib, r, slot_for_id(rib, nhid, mtu_class, r->zslot));
		feedback_put(rib, r);
	}
	rib->nhs.changed = false;
}

void
early_clear(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->early.high; i++)
		if (rib->early.v[i].route != NULL)
			early_drop(rib, i);
}

void
early_free(struct rib *rib)
{
	free(rib->early.v);
	vec32_free(&rib->early.unused);
	hidx_free(&rib->early.by_route);
}
