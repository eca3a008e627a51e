/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the links whose routes Linux and forwarders use differently, for thread warn. They
 * are: a link without carrier, if another route takes over its connected subnet; a link
 * with IPv6 off, if one of several next hops of a route uses it; and the loopback device,
 * if it is the egress of a route. Also find out whether a route has a next hop whose
 * encapsulation is unsupported, and whether table local has routes for a source or a TOS
 * that packets of a VRF use differently. [rib]
 */
#include "rib/link_row.h"

#include <jansson.h>
#include <linux/rtnetlink.h>

#include "rib/kroute.h"
#include "rib/leg.h"
#include "rib/local.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/vrf.h"

static void
link_row_add(struct msg_query *q, const struct link *link, const char *why)
{
	json_array_append_new(q->rows,
			      json_pack("{s:s, s:s}", "name", link->name, "why", why));
}

/* Return true if no packet in transit takes the route: each link has fe80::/64. */
static bool
prefix_is_linklocal(const struct route *r)
{
	struct prefix p = route_prefix(r);

	return p.family == 6 && ipaddr_is_linklocal6(&p.addr);
}

/*
 * Return true if another route, for the same prefix or for a shorter prefix, forwards the
 * packets to a prefix whose connected route does not count.
 */
static bool
prefix_is_taken_over(const struct rib *rib, const struct route *r)
{
	const struct slot *s;
	unsigned int n, len;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);
	uint32_t slot =
		n == 0 ? POPTRIE_NONE
		       : poptrie_match(fib_trie(copy, r->family), r->octet, r->len, &len);
	fib_path path;

	if (slot == POPTRIE_NONE || prefix_is_linklocal(r))
		return false;
	s = slot_at(&rib->slots, slot);
	for (uint32_t i = 0; i < s->n_legs; i++)
		if (leg_path(rib, &s->leg[i], &path) <= LEG_FAILED)
			return true;
	return false;
}

/*
 * Mark each link that is not up and has a connected subnet whose packets take another route
 * here. Linux uses the connected subnet of a link without carrier. A link that is set down
 * is never marked, because the kernel deletes its subnets.
 */
static void
links_mark_lost_subnets(const struct rib *rib)
{
	const struct rib_kroutes *k = &rib->kroutes;

	for (uint32_t i = 0; i < k->connected.n; i++) {
		const struct kroute *kr = &k->v[k->connected.v[i]];
		struct link *link = rib_link_find(&rib->links, kr->ifindex);

		if (link != NULL && link->known && !link->up && !link->lost_subnet &&
		    !link->ignore_linkdown[kr->route->family == 6] &&
		    prefix_is_taken_over(rib, kr->route))
			link->lost_subnet = true;
	}
}

/*
 * Return true if a packet can take the slot, because the tries have it for a route. No
 * packet takes the slot of a hidden route: another route of the prefix is preferred, or
 * table local hides it, because the prefix is an address of this router.
 */
static bool
slot_is_taken(const struct rib *rib, const struct slot *s)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t hidden = 0;

	for (uint32_t i = 1; i <= k->high && hidden < s->refs; i++) {
		const struct route *r = k->v[i].route;

		if (r == NULL || (!k->v[i].is_local && k->v[i].slot != s->number) ||
		    route_fib_slot(rib, r) == s->number)
			continue;
		hidden += k->v[i].slot == s->number;
		hidden += r->zslot == s->number && kroute_first(k, r) == i;
	}
	return hidden < s->refs;
}

/* Return true if a packet of a route would leave by the loopback device. */
static bool
loopback_is_egress(const struct rib *rib, const struct link *link)
{
	const struct leg *leg;
	fib_path path;

	if (link->ifindex != LOOPBACK_IFINDEX)
		return false;
	cds_list_for_each_entry (leg, &link->legs, on_link)
		if (leg_path(rib, leg, &path) == LEG_FOREIGN && leg->slot != NULL &&
		    slot_is_taken(rib, leg->slot))
			return true;
	return false;
}

/*
 * Return true if the link has IPv6 off, and an IPv6 route has several next hops, one of
 * them by this link without an adjacency. The slot keeps this next hop if IPv4 routes have
 * the slot, too.
 */
static bool
link_loses_ipv6(const struct rib *rib, const struct link *link)
{
	const struct leg *leg;
	fib_path path;

	if (!link->ipv6_off)
		return false;
	cds_list_for_each_entry (leg, &link->legs, on_link)
		if (leg->slot->of_ipv6 && leg->slot->n_legs > 1 &&
		    leg_path(rib, leg, &path) == LEG_ALIVE &&
		    path_kind(path) == PATH_ONLINK)
			return true;
	return false;
}

/* Return true if a route has a next hop whose encapsulation the dataplane does not make. */
static bool
encap_is_unsupported(const struct rib *rib)
{
	fib_path path;

	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		const struct slot *s = slot_at(&rib->slots, i);

		for (uint32_t k = 0; s->refs > 0 && k < s->n_legs; k++)
			if (leg_path(rib, &s->leg[k], &path) == LEG_ENCAP)
				return true;
	}
	return false;
}

/*
 * Return true if there may be packets of a VRF that obey a plain route of table local,
 * while Linux goes on to the next rules. That is so if table local also has a route of the
 * prefix for the source or the TOS of the packet, of type throw, or (IPv6) for another
 * source.
 */
static bool
local_source_is_ignored(const struct rib *rib)
{
	const struct rib_kroutes *k = &rib->kroutes;
	bool has_vrfs = rib->vrfs.n > rib->vrfs.n_for_rules;

	for (uint32_t i = 1; has_vrfs && rib->sources.n_routes > 0 && i <= k->high; i++) {
		const struct kroute *kr = &k->v[i];
		const struct route *plain;
		struct prefix p;

		if (!kr->is_local || !source_is_table(kr->route->table) ||
		    (kr->route->family == 4 && kr->rtm_type != RTN_THROW) ||
		    rib->locals.behind[kr->route->family == 6])
			continue;
		p = route_prefix(kr->route);
		plain = tables_find(&rib->tables, RIB_TABLE_MAIN, &p);
		if (plain != NULL && local_has_records(rib, plain))
			return true;
	}
	return false;
}

void
link_rows(const struct rib *rib, struct msg_query *q)
{
	if (encap_is_unsupported(rib))
		json_array_append_new(q->rows,
				      json_pack("{s:n, s:s}", "name", "why", "encap"));
	if (local_source_is_ignored(rib))
		json_array_append_new(
			q->rows, json_pack("{s:n, s:s}", "name", "why", "local-source"));
	links_mark_lost_subnets(rib);
	for (uint32_t i = 1; i <= rib->links.high; i++) {
		struct link *link = rib->links.v[i];

		if (link == NULL || !link->known)
			continue;
		if (link->lost_subnet)
			link_row_add(q, link, "carrier");
		link->lost_subnet = false;
		if (link_loses_ipv6(rib, link))
			link_row_add(q, link, "ipv6-off");
		if (loopback_is_egress(rib, link))
			link_row_add(q, link, "loopback");
	}
	q->done = true;
}
