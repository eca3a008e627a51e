/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of the kernel's routes: found by the route of their prefix and table, or by
 * number. [rib]. kernel.c applies the events and decides which record is in force. This
 * file does not use struct rib.
 */
#include "rib/kroute.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "rib/link.h"
#include "rib/routes.h"
#include "rib/slot.h"

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

bool
kroute_has_key(const struct kroute *kr, const struct kernel_event *ev)
{
	return kr->metric == ev->metric && kr->is_local == ev->is_local;
}

uint32_t
kroute_of_metric(const struct rib_kroutes *k, const struct route *r,
		 const struct kernel_event *ev, int joins)
{
	uint32_t found = 0;

	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i))
		if (kroute_has_key(&k->v[i], ev) && (joins < 0 || k->v[i].joins == joins) &&
		    (found == 0 || kroute_precedes(&k->v[i], &k->v[found])))
			found = i;
	return found;
}

bool
kroute_has_newcomer(const struct rib_kroutes *k, uint32_t number,
		    const struct kernel_event *ev)
{
	for (uint32_t i = kroute_first(k, k->v[number].route); i != 0;
	     i = kroute_next(k, i))
		if (i != number && kroute_has_key(&k->v[i], ev) && !k->v[i].joins &&
		    k->v[i].by_event && k->v[i].dump == k->dump)
			return true;
	return false;
}

bool
kroute_is_alone(const struct rib_kroutes *k, uint32_t number)
{
	return kroute_first(k, k->v[number].route) == number && kroute_next(k, number) == 0;
}

bool
kroute_has_members(const struct kroute *kr, const struct kernel_event *ev)
{
	return (kr->ifindex == ev->ifindex || ev->route.nhid != 0) &&
	       kr->source4 == ev->source4 && kr->rtm_type == ev->route.rtm_type &&
	       kr->protocol == ev->route.protocol && kr->scope == ev->scope;
}

bool
kroute_details_agree(const struct kroute *kr, const struct kernel_event *ev)
{
	return kr->details == 0 || kr->details == ev->details;
}

bool
kroute_may_be_passed_over(const struct rib_kroutes *k, uint32_t number)
{
	const struct kroute *kr = &k->v[number];

	if (kr->route->family != 6 || kr->of_advert || kr->dump == 0)
		return false;
	for (uint32_t i = kroute_first(k, kr->route); i != 0; i = kroute_next(k, i)) {
		const struct kroute *joined = &k->v[i];

		if (joined->joins && joined->ifindex == 0 &&
		    (joined->dump == k->dump ||
		     !kroute_is_of_protocol(joined, k->scope.protocol)) &&
		    joined->metric == kr->metric && joined->is_local == kr->is_local)
			return i != number && kroute_precedes(joined, kr);
	}
	return false;
}

void
kroute_set_protocol(struct kroute *kr, const struct kernel_event *ev, bool joins)
{
	bool appended = joins && ev->order == KERNEL_LAST && kr->protocol != RTPROT_UNSPEC;

	if (appended) {
		kr->mixed |= kr->protocol != ev->route.protocol;
		return;
	}
	kr->protocol = ev->route.protocol;
	kr->mixed &= joins && ev->order == KERNEL_LISTED && ev->route.n_hops > 1;
}

/* Return the place of the record, which is `listed`, in k->local. */
static uint32_t
local_place(struct rib_kroutes *k, uint32_t number)
{
	uint32_t at = 0;

	if (!k->v[number].connected) {
		k->n_list_steps++;
		return k->v[number].on_list;
	}
	/* Linux makes no connected routes in table local; an operator can. */
	for (; k->local.v[at] != number; at++)
		k->n_list_steps++;
	return at;
}

static void
connected_remove(struct rib_kroutes *k, uint32_t number)
{
	uint32_t last = k->connected.v[--k->connected.n];

	k->connected.v[k->v[number].on_list] = last;
	k->v[last].on_list = k->v[number].on_list;
	if (k->v[number].listed)
		k->v[number].on_list = local_place(k, number);
	k->v[number].connected = false;
}

static void
local_remove(struct rib_kroutes *k, uint32_t number)
{
	uint32_t at = local_place(k, number), last = k->local.v[--k->local.n];

	k->local.v[at] = last;
	if (!k->v[last].connected)
		k->v[last].on_list = at;
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

/* Update a counter of kernel_status for a record that `was` counted before and `is` now. */
static void
status_count(_Atomic uint32_t *field, bool was, bool is)
{
	uint32_t n = atomic_load_explicit(field, memory_order_relaxed);

	if (was != is)
		atomic_store_explicit(field, is ? n + 1 : n - 1, memory_order_relaxed);
}

/*
 * Set whether kernel_status.short_local counts the record, as a route that hides other
 * routes in Linux but not here.
 */
static void
kroute_set_short_local(struct kroute *kr, bool short_local)
{
	status_count(&kernel_status.short_local, kr->short_local, short_local);
	kr->short_local = short_local;
}

static void
kroute_set_by_ingress(struct kroute *kr, bool by_ingress)
{
	status_count(&kernel_status.by_ingress, kr->by_ingress, by_ingress);
	kr->by_ingress = by_ingress;
}

void
kroute_set_several_mtus(struct kroute *kr, bool several_mtus)
{
	status_count(&kernel_status.several_mtus, kr->several_mtus, several_mtus);
	kr->several_mtus = several_mtus;
}

static void
wide_remove(struct rib_kroutes *k, uint32_t number)
{
	uint32_t at = 0;

	while (k->wide.v[at] != number)
		at++;
	k->wide.v[at] = k->wide.v[--k->wide.n];
	k->n_throws -= k->v[number].wide == RTN_THROW;
	k->v[number].wide = RTN_UNSPEC;
}

bool
kroutes_are_split(const struct rib_kroutes *k, uint8_t family)
{
	return family == 6 || (family == 4 && k->split4);
}

/* Return true for a type of route that has no next hop. */
static bool
type_is_wide(uint8_t rtm_type)
{
	return rtm_type == RTN_LOCAL || rtm_type == RTN_ANYCAST ||
	       rtm_type == RTN_BROADCAST || rtm_type == RTN_BLACKHOLE ||
	       rtm_type == RTN_UNREACHABLE || rtm_type == RTN_PROHIBIT ||
	       rtm_type == RTN_THROW;
}

/* Decide whether the record counts in kernel_status.short_local. */
static void
kroute_count_short_local(const struct rib_kroutes *k, struct kroute *kr)
{
	const struct route *r = kr->route;

	kroute_set_short_local(kr, kr->is_local && r->table == RIB_TABLE_MAIN &&
					   r->len < family_bits(r->family) &&
					   kr->rtm_type == RTN_UNICAST &&
					   kroutes_are_split(k, r->family));
}

/* Put the record on the list k->local, or take it off. */
static void
kroute_list_local(struct rib_kroutes *k, uint32_t number, bool listed)
{
	struct kroute *kr = &k->v[number];

	if (kr->listed == listed)
		return;
	kr->listed = listed;
	k->n_local[kr->route->family == 6][kr->route->len] += listed ? 1 : -1u;
	if (!listed) {
		local_remove(k, number);
		return;
	}
	if (!kr->connected)
		kr->on_list = k->local.n;
	vec32_push(&k->local, number);
}

bool
kroute_set_wide(struct rib_kroutes *k, uint32_t number)
{
	struct kroute *kr = &k->v[number];
	const struct route *r = kr->route;
	bool is_short = r->len < family_bits(r->family) || kr->rtm_type == RTN_THROW;
	bool wide = kr->is_local && r->table == RIB_TABLE_MAIN && is_short &&
		    type_is_wide(kr->rtm_type);
	uint8_t was = kr->wide, is = wide ? kr->rtm_type : RTN_UNSPEC;

	kroute_count_short_local(k, kr);
	kroute_list_local(k, number,
			  kr->is_local && r->table == RIB_TABLE_MAIN &&
				  family_is_ip((uint8_t)r->family));
	if (was == is)
		return false;
	if (was != RTN_UNSPEC)
		wide_remove(k, number);
	if (is != RTN_UNSPEC)
		vec32_push(&k->wide, number);
	k->n_throws += is == RTN_THROW;
	kr->wide = is;
	return kroutes_are_split(k, r->family);
}

void
kroutes_split4(struct rib_kroutes *k)
{
	k->split4 = true;
	for (uint32_t i = 1; i <= k->high; i++)
		if (k->v[i].route != NULL && k->v[i].is_local)
			kroute_count_short_local(k, &k->v[i]);
}

/* Return true if table local decides for the prefix of `r` itself, or leaves it to main. */
static bool
route_has_local(const struct rib_kroutes *k, const struct rib_links *links,
		const struct route *r)
{
	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i))
		if (k->v[i].is_local &&
		    (k->v[i].rtm_type == RTN_THROW || kroute_is_usable(k, &k->v[i], links)))
			return true;
	return false;
}

uint8_t
kroute_hider(const struct rib_kroutes *k, const struct rib_links *links,
	     const struct prefix *p, const struct route *plain)
{
	const struct kroute *best = NULL;

	if (k->wide.n == 0 || !kroutes_are_split(k, p->family))
		return RTN_UNSPEC;
	for (uint32_t i = 0; i < k->wide.n; i++) {
		const struct kroute *kr = &k->v[k->wide.v[i]];
		struct prefix of = route_prefix(kr->route);

		if (of.family == p->family && of.len < p->len &&
		    prefix_covers(&of, &p->addr) &&
		    (best == NULL || of.len > best->route->len ||
		     (best->route == kr->route && kroute_precedes(kr, best))))
			best = kr;
	}
	if (best == NULL || best->rtm_type == RTN_THROW ||
	    (plain != NULL && route_has_local(k, links, plain)))
		return RTN_UNSPEC;
	return best->rtm_type;
}

uint8_t
kroute_hider_of(const struct rib_kroutes *k, const struct rib_links *links,
		const struct route *r)
{
	struct prefix p;

	if (k->wide.n == 0 || r->table != RIB_TABLE_MAIN)
		return RTN_UNSPEC;
	p = route_prefix(r);
	return kroute_hider(k, links, &p, r);
}

bool
kroute_is_thrown(const struct rib_kroutes *k, const struct route *r)
{
	struct prefix p = route_prefix(r);
	bool throws = false;

	for (uint32_t i = kroute_first(k, r); k->n_throws > 0 && i != 0;
	     i = kroute_next(k, i))
		throws |= k->v[i].wide == RTN_THROW;
	return throws && kroute_hider(k, NULL, &p, NULL) != RTN_UNSPEC;
}

void
kroute_remove(struct rib_kroutes *k, uint32_t number)
{
	if (k->v[number].connected)
		connected_remove(k, number);
	if (k->v[number].wide != RTN_UNSPEC)
		wide_remove(k, number);
	kroute_set_short_local(&k->v[number], false);
	kroute_set_by_ingress(&k->v[number], false);
	kroute_set_several_mtus(&k->v[number], false);
	kroute_list_local(k, number, false);
	hidx_del(&k->by_route, number);
	k->v[number] = (struct kroute){0};
	k->n--;
	vec32_push(&k->unused, number);
}

void
kroute_set_order(struct rib_kroutes *k, uint32_t number, enum kernel_order order)
{
	const struct route *r = k->v[number].route;
	uint32_t first = ORDER_MIDDLE, last = ORDER_MIDDLE;
	bool alone = true;

	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i)) {
		if (i == number)
			continue;
		first = alone || k->v[i].order < first ? k->v[i].order : first;
		last = alone || k->v[i].order > last ? k->v[i].order : last;
		alone = false;
	}
	if (!alone)
		first = order == KERNEL_FIRST ? first - 1 : last + 1;
	k->v[number].order = first;
}

static bool
kroutes_have_one_metric(const struct kroute *a, const struct kroute *b)
{
	return a->metric == b->metric && a->is_local == b->is_local;
}

bool
kroute_place_is_unknown(const struct rib_kroutes *k, uint32_t number)
{
	const struct kroute *kr = &k->v[number];

	for (uint32_t i = kroute_first(k, kr->route); i != 0; i = kroute_next(k, i))
		if (kroutes_have_one_metric(&k->v[i], kr) && k->v[i].order > kr->order)
			return true;
	return false;
}

/* Return the first record of the metric of `number` behind the place `order`; 0: none. */
static uint32_t
kroute_behind(const struct rib_kroutes *k, uint32_t number, uint32_t order)
{
	const struct kroute *kr = &k->v[number];
	uint32_t found = 0;

	for (uint32_t i = kroute_first(k, kr->route); i != 0; i = kroute_next(k, i))
		if (i != number && kroutes_have_one_metric(&k->v[i], kr) &&
		    k->v[i].order > order &&
		    (found == 0 || k->v[i].order < k->v[found].order))
			found = i;
	return found;
}

void
kroute_move_behind_shown(struct rib_kroutes *k, uint32_t number)
{
	uint32_t order = k->v[number].order, behind = order, end, i;

	for (i = kroute_first(k, k->v[number].route); i != 0; i = kroute_next(k, i))
		if (kroutes_have_one_metric(&k->v[i], &k->v[number]) &&
		    k->v[i].dump == k->dump && k->v[i].order > behind)
			behind = k->v[i].order;
	if (behind == order)
		return;
	kroute_set_order(k, number, KERNEL_LAST);
	end = k->v[number].order;
	while ((i = kroute_behind(k, number, behind)) != 0 && k->v[i].order < end)
		kroute_set_order(k, i, KERNEL_LAST);
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

/* Return true for a route of type throw in table local if Linux then looks up main. */
static bool
kroute_leads_to_main(const struct rib_kroutes *k, const struct kroute *kr)
{
	return kr->is_local && kr->rtm_type == RTN_THROW &&
	       kroutes_are_split(k, kr->route->family);
}

bool
kroute_is_ignored(const struct kroute *kr, const struct slot *s,
		  const struct rib_links *links)
{
	const struct link *link;

	if (kr->route->family == 4 && kr->rtm_type == RTN_UNICAST &&
	    kr->scope == RT_SCOPE_HOST)
		return false;
	if (kr->rtm_type != RTN_BROADCAST || kr->ifindex == 0)
		return slot_ignored(s, (uint8_t)kr->route->family);
	link = rib_link_find(links, kr->ifindex);
	return link != NULL && link->known && !link->up && link->ignore_linkdown[0];
}

void
kroutes_review(struct rib_kroutes *k)
{
	k->reviewing = true;
	k->review_at = 1;
}

bool
kroute_is_usable(const struct rib_kroutes *k, const struct kroute *kr,
		 const struct rib_links *links)
{
	const struct link *link;

	if (kroute_leads_to_main(k, kr))
		return false;
	if (!kr->connected)
		return !kr->ignored;
	link = rib_link_find(links, kr->ifindex);
	return link != NULL && link->known && link->up;
}

/*
 * Return the first record of `r` that is usable, or the first of all if `links` is NULL;
 * 0: none. `of_main`: without the records of table local.
 */
static uint32_t
best_record(const struct rib_kroutes *k, const struct rib_links *links,
	    const struct route *r, bool of_main)
{
	uint32_t best = 0;

	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i)) {
		const struct kroute *kr = &k->v[i];

		if ((links == NULL || kroute_is_usable(k, kr, links)) &&
		    !(of_main && kr->is_local) &&
		    (best == 0 || kroute_precedes(kr, &k->v[best])))
			best = i;
	}
	return best;
}

uint32_t
kroute_best(const struct rib_kroutes *k, const struct rib_links *links,
	    const struct route *r)
{
	return best_record(k, links, r, false);
}

/* Return true if Linux chooses between the two records by the ingress of the packet. */
static bool
kroutes_differ_by_ingress(const struct kroute *a, const struct kroute *b)
{
	return kroutes_have_one_metric(a, b) && !a->is_local &&
	       a->preference == b->preference &&
	       (a->ifindex != b->ifindex || a->ifindex == 0);
}

/*
 * Return the slot of the record `best`, or 0 if there is none or zebra's route precedes it.
 */
static uint32_t
best_slot(const struct rib_kroutes *k, const struct route *r, uint32_t best)
{
	const struct kroute *kr;

	if (best == 0)
		return 0;
	kr = &k->v[best];
	return r->zslot == 0 || kr->is_local || kr->connected || kr->metric <= ZEBRA_METRIC
		       ? kr->slot
		       : 0;
}

void
kroutes_count_by_ingress(struct rib_kroutes *k, const struct rib_links *links,
			 const struct route *r)
{
	uint32_t best = r->family == 6 ? kroute_best(k, links, r) : 0;
	struct prefix p = route_prefix(r);
	/* Each interface has a route of fe80::/64, and no packet in transit takes it. */
	bool used = best_slot(k, r, best) != 0 && !ipaddr_is_linklocal6(&p.addr);
	uint32_t i = r->family == 6 ? kroute_first(k, r) : 0;

	for (; i != 0; i = kroute_next(k, i))
		kroute_set_by_ingress(
			&k->v[i], used && i != best &&
					  kroute_is_usable(k, &k->v[i], links) &&
					  kroutes_differ_by_ingress(&k->v[best], &k->v[i]));
}

uint32_t
kroute_slot(const struct rib_kroutes *k, const struct rib_links *links,
	    const struct route *r)
{
	return best_slot(k, r, kroute_best(k, links, r));
}

uint32_t
kroute_main_slot(const struct rib_kroutes *k, const struct rib_links *links,
		 const struct route *r)
{
	uint32_t slot = best_slot(k, r, best_record(k, links, r, true));

	return slot != 0 ? slot : r->zslot;
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
	       (k->unused.cap + k->connected.cap + k->wide.cap + k->local.cap) *
		       sizeof(uint32_t);
}

void
kroutes_free(struct rib_kroutes *k)
{
	free(k->v);
	vec32_free(&k->unused);
	vec32_free(&k->connected);
	vec32_free(&k->wide);
	vec32_free(&k->local);
	hidx_free(&k->by_route);
}
