/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of next hops, before they belong to a slot: built from what zebra says or a checkpoint
 * has, sorted, then compared. [rib]. This file knows nothing of struct rib.
 */
#include "rib/ways.h"

#include <stdlib.h>
#include <string.h>

#include "rib/index.h"

void
way_special(struct way *w, enum path_kind kind)
{
	memset(w, 0, sizeof(*w));
	w->kind = (uint8_t)kind;
}

void
way_of_hop(struct way *w, const struct fpm_hop *hop)
{
	memset(w, 0, sizeof(*w));
	w->ifindex = hop->ifindex;
	w->weight = hop->weight == 0 ? 1 : hop->weight;
	w->gw_family = hop->gw_family;
	w->encap = hop->encap;
	w->onlink = hop->onlink;
	if (hop->gw_family != 0)
		w->gw = hop->gw;
	if (hop->gw_family == 0 && hop->ifindex == 0 && hop->encap == HOP_PLAIN)
		way_special(w, PATH_UNRESOLVED);
}

void
ways_clear(struct ways *ways)
{
	ways->n = 0;
	ways->unresolved = false;
}

struct way *
ways_push(struct ways *ways)
{
	if (ways->n == ways->cap) {
		ways->cap = ways->cap == 0 ? 16 : ways->cap * 2;
		ways->v = must(realloc(ways->v, ways->cap * sizeof(*ways->v)));
	}
	return &ways->v[ways->n++];
}

static int
way_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct way));
}

void
ways_sort(struct ways *ways)
{
	if (ways->n > 1)
		qsort(ways->v, ways->n, sizeof(*ways->v), way_order);
}

void
ways_set_mtu(struct ways *ways, uint16_t mtu_class)
{
	for (uint32_t i = 0; i < ways->n; i++)
		ways->v[i].mtu_class = mtu_class;
}

uint64_t
ways_hash(const struct ways *ways, uint64_t seed)
{
	uint64_t h = seed + ways->n;

	for (uint32_t i = 0; i < ways->n; i++) {
		const struct way *w = &ways->v[i];

		h = ipaddr_hash(&w->gw, h ^ ((uint64_t)w->ifindex << 32 | w->weight)) +
		    ((uint64_t)w->mtu_class << 32 | (uint64_t)w->kind << 24 |
		     (uint64_t)w->encap << 16 | (uint64_t)w->onlink << 8 | w->gw_family);
	}
	return h ^ h >> 32;
}

bool
ways_are_small(const struct ways *ways)
{
	return ways->n == 1 && ways->v[0].gw_family == 0;
}
