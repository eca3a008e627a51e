/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of the kernel's routes: found by the route of their prefix and table, or by
 * number. [rib]. kernel.c applies the events and decides which record is in force. This file
 * does not use struct rib.
 */
#include "rib/kroute.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "rib/link.h"
#include "rib/routes.h"

#define ORDER_MIDDLE (1u << 31)

static uint64_t
kroute_hash(const struct route *r)
{
	return hash32((uint32_t)((uintptr_t)r / sizeof(void *)));
}

static uint32_t
kroute_find_from(const struct rib_kroutes *k, uint32_t i, const struct route *r)
{
	while (i != 0 && k->v[i].route != r)
		i = hidx_next(&k->by_route, i);
	return i;
}

uint32_t
kroute_first(const struct rib_kroutes *k, const struct route *r)
{
	return kroute_find_from(k, hidx_first(&k->by_route, kroute_hash(r)), r);
}

uint32_t
kroute_next(const struct rib_kroutes *k, uint32_t number)
{
	return kroute_find_from(k, hidx_next(&k->by_route, number), k->v[number].route);
}

uint32_t
kroute_add(struct rib_kroutes *k, struct route *r)
{
	uint32_t i = number_get(&k->unused, &k->high);

	k->v = table_grow(k->v, &k->cap, i, sizeof(*k->v));
	k->v[i] = (struct kroute){.route = r};
	k->n++;
	hidx_add(&k->by_route, kroute_hash(r), i);
	return i;
}

static void
connected_remove(struct rib_kroutes *k, uint32_t number)
{
	uint32_t last = k->connected.v[--k->connected.n];

	k->connected.v[k->v[number].on_list] = last;
	k->v[last].on_list = k->v[number].on_list;
	k->v[number].connected = false;
}

void
kroute_set_connected(struct rib_kroutes *k, uint32_t number, bool connected)
{
	struct kroute *kr = &k->v[number];

	if (kr->connected && !connected)
		connected_remove(k, number);
	if (kr->connected || !connected)
		return;
	kr->on_list = k->connected.n;
	kr->connected = true;
	vec32_push(&k->connected, number);
}

/*
 * Begin or end to count the record as a route that hides other routes in Linux but not
 * here.
 */
static void
kroute_set_short_local(struct kroute *kr, bool short_local)
{
	uint32_t n = atomic_load_explicit(&kernel_status.short_local, memory_order_relaxed);

	if (kr->short_local != short_local)
		atomic_store_explicit(&kernel_status.short_local,
				      short_local ? n + 1 : n - 1, memory_order_relaxed);
	kr->short_local = short_local;
}

static bool
type_ends_lookup(uint8_t rtm_type)
{
	return rtm_type == RTN_UNICAST || rtm_type == RTN_BLACKHOLE ||
	       rtm_type == RTN_UNREACHABLE || rtm_type == RTN_PROHIBIT ||
	       rtm_type == RTN_ANYCAST;
}

static void
wide_remove(struct rib_kroutes *k, uint32_t number)
{
	uint32_t at = 0;

	while (k->wide.v[at] != number)
		at++;
	k->wide.v[at] = k->wide.v[--k->wide.n];
	k->v[number].wide = false;
}

bool
kroute_set_wide(struct rib_kroutes *k, uint32_t number)
{
	struct kroute *kr = &k->v[number];
	const struct route *r = kr->route;
	bool is_short = kr->is_local && r->table == RIB_TABLE_MAIN &&
			r->len < family_bits(r->family);
	bool wide = is_short && kr->rtm_type == RTN_LOCAL;

	kroute_set_short_local(kr, is_short && r->family == 6 &&
					   type_ends_lookup(kr->rtm_type));
	if (wide == kr->wide)
		return false;
	kr->wide = wide;
	if (wide)
		vec32_push(&k->wide, number);
	else
		wide_remove(k, number);
	return r->family == 6 || k->split4;
}

bool
kroute_hides(const struct rib_kroutes *k, const struct rib_links *links,
	     const struct route *r)
{
	uint32_t best;
	bool covered = false;

	if (k->wide.n == 0 || r->table != RIB_TABLE_MAIN ||
	    !(r->family == 6 || (r->family == 4 && k->split4)))
		return false;
	for (uint32_t i = 0; i < k->wide.n && !covered; i++) {
		struct prefix p = route_prefix(k->v[k->wide.v[i]].route);
		struct ipaddr addr = route_addr(r);

		covered =
			p.family == r->family && p.len < r->len && prefix_covers(&p, &addr);
	}
	if (!covered)
		return false;
	best = kroute_best(k, links, r);
	return best == 0 || !k->v[best].is_local;
}

void
kroute_remove(struct rib_kroutes *k, uint32_t number)
{
	if (k->v[number].connected)
		connected_remove(k, number);
	if (k->v[number].wide)
		wide_remove(k, number);
	kroute_set_short_local(&k->v[number], false);
	hidx_del(&k->by_route, number);
	k->v[number] = (struct kroute){0};
	k->n--;
	vec32_push(&k->unused, number);
}

void
kroute_set_order(struct rib_kroutes *k, uint32_t number, enum kernel_order order)
{
	if (k->last == 0)
		k->first = k->last = ORDER_MIDDLE;
	k->v[number].order = order == KERNEL_FIRST ? --k->first : ++k->last;
}

void
kroute_note_order(struct rib_kroutes *k, uint32_t order)
{
	if (k->last == 0)
		k->first = k->last = ORDER_MIDDLE;
	if (order < k->first)
		k->first = order;
	if (order > k->last)
		k->last = order;
}

bool
kroute_precedes(const struct kroute *a, const struct kroute *b)
{
	if (a->is_local != b->is_local)
		return a->is_local;
	if (a->metric != b->metric)
		return a->metric < b->metric;
	return a->preference != b->preference ? a->preference < b->preference
					      : a->order < b->order;
}

/*
 * Return true for a route of type throw in table local of IPv6: Linux then looks up main. (IPv4
 * has both tables in one trie.)
 */
static bool
kroute_leads_to_main(const struct kroute *kr)
{
	return kr->is_local && kr->rtm_type == RTN_THROW && kr->route->family == 6;
}

bool
kroute_is_usable(const struct kroute *kr, const struct rib_links *links)
{
	const struct link *link;

	if (kroute_leads_to_main(kr))
		return false;
	if (!kr->connected)
		return !kr->ignored;
	link = rib_link_find(links, kr->ifindex);
	return link != NULL && link->known && link->up;
}

uint32_t
kroute_best(const struct rib_kroutes *k, const struct rib_links *links,
	    const struct route *r)
{
	uint32_t best = 0;

	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i))
		if ((links == NULL || kroute_is_usable(&k->v[i], links)) &&
		    (best == 0 || kroute_precedes(&k->v[i], &k->v[best])))
			best = i;
	return best;
}

uint32_t
kroute_ifindex_of(const struct rib_kroutes *k, uint8_t family, const struct ipaddr *addr)
{
	uint32_t ifindex = 0;
	int best = -1;

	for (uint32_t i = 0; i < k->connected.n; i++) {
		const struct kroute *kr = &k->v[k->connected.v[i]];
		struct prefix p;

		/*
		 * A next hop has no table. A next hop without an interface is assumed to be
		 * in main.
		 */
		if (kr->route->table != RIB_TABLE_MAIN || kr->route->family != family ||
		    kr->route->len < best)
			continue;
		p = route_prefix(kr->route);
		if (!prefix_covers(&p, addr))
			continue;
		if (p.len > best)
			ifindex = kr->ifindex;
		else if (ifindex != kr->ifindex)
			ifindex = 0; /* two links: it is ambiguous */
		best = p.len;
	}
	return ifindex;
}

size_t
kroutes_bytes(const struct rib_kroutes *k)
{
	return k->cap * sizeof(*k->v) + hidx_bytes(&k->by_route) +
	       (k->unused.cap + k->connected.cap + k->wide.cap) * sizeof(uint32_t);
}

void
kroutes_free(struct rib_kroutes *k)
{
	free(k->v);
	vec32_free(&k->unused);
	vec32_free(&k->connected);
	vec32_free(&k->wide);
	hidx_free(&k->by_route);
}
