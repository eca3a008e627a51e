/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply events of the kernel: its routes, its next-hop objects. [rib]
 *
 * A prefix has at most one route of zebra (route.zslot) and any number of routes of the
 * kernel (kroute.h), of which the best usable one counts (route.kslot). Between the two,
 * the lower metric wins, as in the kernel: zebra installs its routes with metric 20. Routes
 * of table local precede all others. Connected routes count while their link is up, so that
 * a route for the subnet that zebra learned from another router takes over when the carrier
 * is lost. Other routes count without a carrier, too, unless the links of all their next
 * hops have the sysctl ignore_routes_with_linkdown set. Routes of own addresses count
 * without a carrier, because the kernel decides which packets to these addresses it
 * answers.
 *
 * The route that an event deletes is found by its metric and its next hops. The kernel
 * joins IPv6 routes of equal metric that have gateways into one route with several next
 * hops, and a later deletion may name only one of these next hops.
 *
 * Linux has at most one route for an MPLS label. Its metric is 0, so it precedes zebra's
 * route.
 *
 * Each dump of the kernel's tables has a number. Each record has the number of the last
 * dump that showed it. At the end of a dump, a walk removes the records in the scope of the
 * dump that have an older number.
 */
#include "rib/kernel.h"

#include <linux/rtnetlink.h>
#include <string.h>

#include "base/kernel_event.h"
#include "base/limits.h"
#include "base/msg.h"
#include "rib/content.h"
#include "rib/kroute.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/local.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/nh_list.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/source.h"

/* --- which route is in force ---------------------------------------------------------- */

void
kernel_choose(struct rib *rib, struct route *r)
{
	kroutes_count_by_ingress(&rib->kroutes, &rib->links, r);
	/* The record holds the reference to the slot, r->kslot holds none. */
	r->kslot = kroute_slot(&rib->kroutes, &rib->links, r);
}

void
kernel_settle(struct rib *rib, struct route *r)
{
	uint32_t was = route_effective(r);
	bool local = local_has_records(rib, r);
	struct prefix p = route_prefix(r);

	kernel_choose(rib, r);
	route_settle(rib, r, was);
	if (local)
		locals_stage(rib, &p);
}

/* --- content of an event -------------------------------------------------------------- */

static bool
event_is_connected(const struct kernel_event *ev)
{
	const struct fpm_event *r = &ev->route;

	return r->protocol == RTPROT_KERNEL && r->rtm_type == RTN_UNICAST && r->nhid == 0 &&
	       r->n_hops == 1 && r->hops[0].gw_family == 0 && r->hops[0].ifindex != 0 &&
	       r->hops[0].encap == HOP_PLAIN;
}

/* Return true for an IPv6 route with a gateway of its own, not a next-hop object. */
static bool
event_has_gateway6(const struct kernel_event *ev)
{
	const struct fpm_event *r = &ev->route;

	return r->prefix.family == 6 && r->rtm_type == RTN_UNICAST && r->nhid == 0 &&
	       r->n_hops > 0 && r->hops[0].gw_family != 0;
}

/*
 * Return true if the kernel joins the route with others of its metric: it has a gateway,
 * and the kernel did not make it of a router advertisement (Linux,
 * rt6_qualify_for_ecmp()). A program makes routes of protocol ra, too, which the kernel
 * joins. An event with several next hops, or one that replaces a route, shows that a
 * program made the route.
 */
static bool
event_joins(const struct kernel_event *ev)
{
	return event_has_gateway6(ev) &&
	       (ev->route.protocol != RTPROT_RA || ev->route.n_hops > 1 ||
		ev->order == KERNEL_REPLACE);
}

static bool
event_has_hop(const struct kernel_event *ev, const struct next_hop *hop)
{
	const struct fpm_event *r = &ev->route;

	for (uint32_t i = 0; i < r->n_hops; i++)
		if (hop->ifindex == r->hops[i].ifindex &&
		    hop->gw_family == r->hops[i].gw_family &&
		    ipaddr_equal(&hop->gw, &r->hops[i].gw))
			return true;
	return false;
}

/* Collect the next hops of an event without a next-hop id in rib->scratch. */
static void
event_hops(struct rib *rib, const struct kernel_event *ev)
{
	const struct fpm_event *r = &ev->route;
	struct nh_list *hops = &rib->scratch;

	if (ev->is_local ? nh_list_set_local_type(hops, r->rtm_type)
			 : nh_list_set_type(hops, r->rtm_type))
		return;
	for (uint32_t i = 0; i < r->n_hops; i++) {
		stack_next_hop(rib, nh_list_push(hops), &r->hops[i]);
		hops->v[i].dead = r->prefix.family == 4 && r->hops[i].dead &&
				  hops->v[i].kind == PATH_NONE;
	}
	if (hops->n == 0)
		next_hop_special(nh_list_push(hops), PATH_UNRESOLVED);
	if (event_is_connected(ev))
		hops->v[0].vrf_subnet = 1;
	nh_list_set_mtu(hops, class_of_event(rib, r));
	nh_list_sort(hops);
}

static bool
event_has_id(const struct kernel_event *ev)
{
	return ev->route.rtm_type == RTN_UNICAST && ev->route.nhid != 0;
}

static uint32_t
event_slot(struct rib *rib, const struct kernel_event *ev, const struct route *route)
{
	const struct fpm_event *r = &ev->route;

	if (event_has_id(ev))
		return slot_for_id(rib, nh_id_of_kernel(r->nhid), class_of_event(rib, r),
				   route_effective(route));
	event_hops(rib, ev);
	return slot_for_hops(rib, &rib->scratch, route_effective(route));
}

/* Return the slot of a deleted route, or 0 if no route has its content. */
static uint32_t
event_slot_find(struct rib *rib, const struct kernel_event *ev)
{
	const struct fpm_event *r = &ev->route;
	const struct nh *nh;

	if (event_has_id(ev)) {
		nh = nh_find(rib, nh_id_of_kernel(r->nhid));
		return nh == NULL ? 0 : slot_of_id(rib, nh, class_of_event(rib, r));
	}
	event_hops(rib, ev);
	return slot_find_hops(rib, &rib->scratch);
}

/* --- records -------------------------------------------------------------------------- */

/*
 * Return the record of the joined route that the event is about; 0: there is none. A route
 * of protocol ra that is alone may be the kernel's own, and is not marked as joined.
 */
static uint32_t
kroute_joined(const struct rib *rib, const struct route *r, const struct kernel_event *ev)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t of_metric = kroute_of_metric(&rib->kroutes, r, ev, true);

	if (event_joins(ev) && (of_metric != 0 || ev->route.n_hops == 1))
		return of_metric;
	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i)) {
		const struct slot *s = slot_at(&rib->slots, k->v[i].slot);

		if ((i == of_metric || k->v[i].protocol == RTPROT_RA) &&
		    kroute_has_key(&k->v[i], ev) && s->kind == SLOT_INLINE &&
		    s->n_legs == 1 && event_has_hop(ev, &s->leg[0].hop))
			return i;
	}
	return 0;
}

/*
 * Return true if the details of an IPv4 route with several next hops show that the record
 * is of this route. The record's slot may differ from that of a deletion: Linux may have
 * marked a next hop as dead since the last dump.
 */
static bool
kroute_has_details(const struct kroute *kr, const struct kernel_event *ev)
{
	return kr->route->family == 4 && ev->route.n_hops > 1 && ev->route.nhid == 0 &&
	       kr->details != 0 && kr->details == ev->details;
}

static uint32_t
kroute_with_slot(const struct rib *rib, const struct route *r,
		 const struct kernel_event *ev, uint32_t slot)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t found = 0;

	for (uint32_t i = kroute_first(k, r); i != 0; i = kroute_next(k, i))
		if (kroute_has_key(&k->v[i], ev) && kroute_details_agree(&k->v[i], ev) &&
		    (slots_are_variants(rib, k->v[i].slot, slot) ||
		     kroute_has_details(&k->v[i], ev)) &&
		    kroute_has_members(&k->v[i], ev) &&
		    (found == 0 || k->v[i].details == ev->details))
			found = i;
	return found;
}

/*
 * Return the record with the event's metric and content. Own and broadcast addresses of
 * several interfaces are several routes, although their slot is the same. Records for which
 * no slot was free have the unresolved slot.
 */
static uint32_t
kroute_equal_to(const struct rib *rib, const struct route *r, const struct kernel_event *ev,
		uint32_t slot)
{
	uint32_t i = kroute_with_slot(rib, r, ev, slot);

	return i != 0 ? i : kroute_with_slot(rib, r, ev, rib->contents.unresolved);
}

static void
kroute_set_slot(struct rib *rib, uint32_t i, uint32_t slot)
{
	struct kroute *kr = &rib->kroutes.v[i];
	uint32_t old = kr->slot;

	slot_ref(rib, slot);
	slot_note_family(rib, slot, (uint8_t)kr->route->family);
	kr->slot = slot;
	kr->ignored = kroute_is_ignored(kr, slot_at(&rib->slots, slot), &rib->links);
	if (old != 0)
		slot_unref(rib, old);
}

/*
 * Compare the routes inside the prefix of `r` with the tries. Views may have routes that
 * the trie of main does not have; then compare all routes.
 */
static void
kernel_resync_inside(struct rib *rib, const struct route *r)
{
	struct prefix p = route_prefix(r);

	if (rib->vrfs.views.n > 0 || !resync_inside(&rib->resync, &p))
		(void)resync_from(&rib->resync, 1);
	else if (rib->vrfs.n > rib->vrfs.n_for_rules) /* routes of VRFs inside, too */
		(void)resync_from(&rib->resync, rib->tables.main.high + 1);
}

static void
kroute_delete(struct rib *rib, uint32_t i)
{
	struct route *r = rib->kroutes.v[i].route;
	uint32_t slot = rib->kroutes.v[i].slot;
	bool is_local = rib->kroutes.v[i].listed;
	bool is_wide = rib->kroutes.v[i].wide != RTN_UNSPEC;
	struct prefix p = route_prefix(r);

	if (rib->kroutes.v[i].connected)
		rib->kroutes.rebind = true;
	if (rib->kroutes.v[i].wide != RTN_UNSPEC &&
	    kroutes_are_split(&rib->kroutes, r->family))
		kernel_resync_inside(rib, r); /* the hidden routes count again */
	mirror_kernel_gone(rib, i);
	kroute_remove(&rib->kroutes, i);
	kernel_settle(rib, r);
	if (is_local)
		locals_stage(rib, &p);
	if (is_wide)
		locals_stage_thrown(rib, NULL, &p);
	slot_unref(rib, slot);
}

/*
 * Stage the routes inside the prefix of the record again, because the record has begun or
 * ceased to hide them.
 */
static void
kernel_hide(struct rib *rib, uint32_t i)
{
	const struct kroute *kr = &rib->kroutes.v[i];
	uint32_t *hidden = &rib->contents.hidden[kr->wide];
	struct prefix p;

	if (kr->wide != RTN_UNSPEC && kr->wide != RTN_THROW && *hidden == 0) {
		(void)nh_list_set_local_type(&rib->scratch, kr->wide);
		*hidden = slot_for_hops(rib, &rib->scratch, 0);
		slot_ref(rib, *hidden);
	}
	if (kr->wide == RTN_THROW)
		slot_make_suppressed(rib);
	kernel_resync_inside(rib, kr->route);
	p = route_prefix(kr->route);
	locals_stage_thrown(rib, NULL, &p);
}

void
kernel_split_tables(struct rib *rib)
{
	struct rib_kroutes *k = &rib->kroutes;

	if (k->split4)
		return;
	kroutes_split4(k);
	for (uint32_t at = 0; at < k->wide.n; at++)
		if (k->v[k->wide.v[at]].route->family == 4)
			kernel_hide(rib, k->wide.v[at]);
	/*
	 * Routes of type throw no longer count, neither plain routes nor those for a TOS.
	 */
	for (uint32_t i = 1; i <= k->high; i++)
		if (k->v[i].is_local && k->v[i].rtm_type == RTN_THROW)
			kernel_settle(rib, k->v[i].route);
}

/* Fill the record `i` from the event. */
static void
kroute_fill(struct rib *rib, uint32_t i, const struct kernel_event *ev, uint32_t slot)
{
	struct kroute *kr = &rib->kroutes.v[i];
	bool connected = event_is_connected(ev);

	kr->metric = ev->metric;
	kr->preference = ev->preference;
	kr->is_local = ev->is_local;
	kr->scope = ev->scope;
	kroute_set_protocol(kr, ev, event_joins(ev));
	kr->rtm_type = ev->route.rtm_type;
	kr->joins = event_joins(ev);
	kr->of_advert =
		event_has_gateway6(ev) && ev->route.protocol == RTPROT_RA && !kr->joins;
	kr->dump = rib->kroutes.dump;
	if (connected || kr->connected)
		rib->kroutes.rebind = true;
	kr->ifindex = ev->ifindex;
	kr->source4 = ev->source4;
	kr->details = ev->details;
	kroute_set_connected(&rib->kroutes, i, connected);
	if (kroute_set_wide(&rib->kroutes, i))
		kernel_hide(rib, i);
	local_note_refusal(rib, kr);
	kroute_set_slot(rib, i, slot);
}

/*
 * An event of IPv4 replaces a route, and record `i` equals the event. Return true if a dump
 * that is newer than the event has shown the record. Linux has no two equal routes of IPv4,
 * so this is the case unless no slot was free: then next hops may differ.
 */
static bool
kroute_is_of_newer_dump(const struct rib *rib, uint32_t i, uint32_t slot)
{
	const struct kroute *kr = &rib->kroutes.v[i];
	uint32_t none = rib->contents.unresolved;

	return kr->unplaced || (slot != none && kr->slot != none);
}

void
kernel_read_again(struct rib *rib)
{
	worker_send(rib->conf.rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
}

/*
 * An event of IPv4 has replaced a route by record `i`, which a newer dump has shown before.
 * If the replaced route still has a record, an event that is older than the dump has added
 * it again: delete it. Otherwise an earlier dump of another protocol may have shown it:
 * read all tables again.
 */
static void
kroute_drop_replaced(struct rib *rib, const struct kernel_event *ev, uint32_t i)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t was = kroute_of_metric(&rib->kroutes, k->v[i].route, ev, -1);

	if (was != i && k->v[was].by_event && k->v[was].dump == k->dump)
		kroute_delete(rib, was);
	else if (was != i && k->v[i].unplaced)
		kernel_read_again(rib);
}

/*
 * Return the record that an event of IPv6 replaces. `equal`: a record like the event; 0:
 * none
 */
static uint32_t
kroute_replaced6(struct rib *rib, const struct route *r, const struct kernel_event *ev,
		 uint32_t equal)
{
	uint32_t i = kroute_of_metric(&rib->kroutes, r, ev, event_joins(ev));

	if (equal != 0 && !event_joins(ev) &&
	    (equal != i || kroute_has_newcomer(&rib->kroutes, equal, ev)))
		kernel_read_again(rib);
	return i != 0 ? i : kroute_of_metric(&rib->kroutes, r, ev, -1);
}

/*
 * Return the record that the event changes; 0: the event adds a record. An event that
 * repeats a known route, as each dump does, changes nothing.
 */
static uint32_t
kroute_of_event(struct rib *rib, const struct route *r, const struct kernel_event *ev,
		uint32_t slot)
{
	uint32_t i;

	if (ev->order == KERNEL_REPLACE) {
		i = kroute_equal_to(rib, r, ev, slot);
		if (r->family == 6)
			return kroute_replaced6(rib, r, ev, i);
		if (i == 0 || !kroute_is_of_newer_dump(rib, i, slot))
			return kroute_of_metric(&rib->kroutes, r, ev, -1);
		kroute_drop_replaced(rib, ev, i);
		return i;
	}
	/* The event has all next hops of the joined route. */
	if (event_has_gateway6(ev) && (i = kroute_joined(rib, r, ev)) != 0)
		return i;
	return kroute_equal_to(rib, r, ev, slot);
}

struct route *
kernel_route_get(struct rib *rib, uint32_t table, const struct prefix *p, uint8_t protocol,
		 uint64_t hash)
{
	struct routes *of = tables_routes(&rib->tables, table);
	struct route *r = routes_find(of, table, p, hash);

	if (r != NULL)
		return r;
	if (protocol != RTPROT_KERNEL && routes_are_full(rib)) {
		table_refuse(TABLE_routes);
		rib->kroutes.refused = true;
		return NULL;
	}
	r = routes_insert(of, table, p, hash);
	if (r == NULL) {
		routes_lack_memory(rib);
		return NULL;
	}
	tables_count(&rib->tables, table, p->family, 1);
	rib->tables.n_not_ip += table == FPM_TABLE_NONE;
	if (source_is_table(table))
		source_count(&rib->sources, table, 1);
	return r;
}

static struct route *
kernel_route_find(struct rib *rib, const struct kernel_event *ev)
{
	return tables_find(&rib->tables, ev->route.table, &ev->route.prefix);
}

/*
 * Give the record `i`, which the event has added or repeats, its place among the records of
 * equal metric. A dump of all protocols shows all of them in their order. A dump of one
 * protocol shows no place among those of other protocols, so known records stay where they
 * are, and an event that follows the dump gives new records their place.
 */
static void
kroute_place(struct rib *rib, uint32_t i, const struct kernel_event *ev, bool added)
{
	struct rib_kroutes *k = &rib->kroutes;
	bool of_one = ev->order == KERNEL_LISTED && k->scope.protocol != 0;
	struct kroute *kr = &k->v[i];

	kr->by_event = ev->order != KERNEL_LISTED && (added || kr->by_event);
	if (added) {
		kroute_set_order(k, i, ev->order);
		kr->unplaced = of_one && kr->route->family == 4;
		return;
	}
	if (kr->route->family == 6 && ev->order == KERNEL_LISTED)
		kroute_move_behind_shown(k, i);
	if (kr->route->family != 4 || of_one)
		return;
	if (ev->order == KERNEL_LAST || ev->order == KERNEL_LISTED) {
		if (!kroute_is_alone(k, i))
			kroute_set_order(k, i, KERNEL_LAST);
	} else if (kr->unplaced) {
		kroute_set_order(k, i, KERNEL_FIRST);
	}
	kr->unplaced = false;
}

/*
 * Note whether a next hop with another MTU is appended to the record. The event has the MTU
 * of the appended next hop. A message of a dump has the MTU of the first next hop, so it
 * does not show whether the other next hops have the same MTU.
 */
static void
kroute_note_mtus(struct rib *rib, struct kroute *kr, const struct kernel_event *ev)
{
	const struct slot *s = slot_at(&rib->slots, kr->slot);
	bool appended = ev->order == KERNEL_LAST && ev->route.n_hops > 1 && kr->joins;

	if (ev->order == KERNEL_LISTED)
		return;
	kroute_set_several_mtus(
		kr,
		appended &&
			(kr->several_mtus ||
			 (s->kind == SLOT_INLINE && s->number != rib->contents.unresolved &&
			  s->leg[0].hop.mtu_class != class_of_event(rib, &ev->route))));
}

static void
kernel_route_upsert(struct rib *rib, const struct kernel_event *ev)
{
	const struct fpm_event *e = &ev->route;
	uint64_t hash =
		routes_hash(tables_routes(&rib->tables, e->table), e->table, &e->prefix);
	struct route *r = kernel_route_get(rib, e->table, &e->prefix, e->protocol, hash);
	uint32_t slot, i;
	bool added;

	if (r == NULL)
		return;
	slot = event_slot(rib, ev, r);
	i = kroute_of_event(rib, r, ev, slot);
	added = i == 0;
	if (added)
		i = kroute_add(&rib->kroutes, r);
	kroute_place(rib, i, ev, added);
	kroute_note_mtus(rib, &rib->kroutes.v[i], ev);
	kroute_fill(rib, i, ev, slot);
	mirror_kernel(rib, i);
	kernel_settle(rib, r);
}

bool
kernel_route_restore(struct rib *rib, struct route *r, const struct kroute *was)
{
	struct rib_kroutes *k = &rib->kroutes;
	uint32_t i;

	for (i = kroute_first(k, r); i != 0; i = kroute_next(k, i))
		if (!kroute_precedes(&k->v[i], was) && !kroute_precedes(was, &k->v[i]))
			return false;
	i = kroute_add(k, r);
	k->v[i] = *was;
	k->v[i].route = r;
	k->v[i].slot = 0;
	k->v[i].connected = false;
	kroute_set_connected(k, i, was->connected);
	k->rebind |= was->connected;
	if (kroute_set_wide(k, i))
		kernel_hide(rib, i);
	local_note_refusal(rib, &k->v[i]);
	kroute_set_slot(rib, i, was->slot);
	mirror_kernel(rib, i);
	kernel_settle(rib, r);
	return true;
}

/*
 * Remove the next hops of the event from the record, which may have more of them. Return
 * false if none is left, or if the record or the event has a next-hop id: the caller then
 * deletes the record. A record for which no slot was free has an unknown number of next
 * hops, unless it has an interface. If it has several, it stays until a dump shows which
 * are left.
 */
static bool
kroute_remove_hops(struct rib *rib, uint32_t i, const struct kernel_event *ev)
{
	const struct slot *s = slot_at(&rib->slots, rib->kroutes.v[i].slot);
	struct nh_list *hops = &rib->scratch;
	uint32_t kept = 0;

	if (s->kind != SLOT_INLINE || ev->route.nhid != 0)
		return false;
	if (s->number == rib->contents.unresolved)
		return rib->kroutes.v[i].ifindex == 0 && ev->route.n_hops == 1;
	nh_list_clear(hops);
	for (uint32_t leg = 0; leg < s->n_legs; leg++) {
		const struct next_hop *hop = &s->leg[leg].hop;

		if (event_has_hop(ev, hop))
			continue;
		*nh_list_push(hops) = *hop;
		kept++;
	}
	if (kept == 0)
		return false;
	kroute_set_slot(rib, i, slot_for_hops(rib, hops, s->number));
	kroute_lost_hops(&rib->kroutes.v[i], ev);
	if (kept == 1)
		kroute_set_several_mtus(&rib->kroutes.v[i], false);
	mirror_kernel(rib, i);
	return true;
}

static void
kroute_delete_hops(struct rib *rib, uint32_t i, const struct kernel_event *ev)
{
	if (!kroute_remove_hops(rib, i, ev)) {
		kroute_delete(rib, i);
		return;
	}
	kernel_settle(rib, rib->kroutes.v[i].route);
	if (kroute_place_is_unknown(&rib->kroutes, i))
		kernel_read_again(rib);
}

static void
kernel_route_delete(struct rib *rib, const struct kernel_event *ev)
{
	struct route *r = kernel_route_find(rib, ev);
	uint32_t i;

	if (r == NULL)
		return;
	if (event_joins(ev) && (i = kroute_of_metric(&rib->kroutes, r, ev, true)) != 0) {
		kroute_delete_hops(rib, i, ev);
		return;
	}
	if (r->family == FAMILY_LABEL) {
		/* A label has at most one record. */
		i = kroute_of_metric(&rib->kroutes, r, ev, -1);
		if (i != 0)
			kroute_delete(rib, i);
		return;
	}
	/*
	 * A route that is not found was deleted before: a dump that is newer than the event
	 * did not show it.
	 */
	i = kroute_equal_to(rib, r, ev, event_slot_find(rib, ev));
	if (i != 0)
		kroute_delete(rib, i);
	else if (event_has_gateway6(ev) &&
		 (i = kroute_of_metric(&rib->kroutes, r, ev, true)) != 0)
		kroute_delete_hops(rib, i, ev); /* one next hop of a joined route */
}

void
kernel_forget(struct rib *rib, struct route *r)
{
	uint32_t i = kroute_first(&rib->kroutes, r), next;

	for (; i != 0; i = next) {
		next = kroute_next(&rib->kroutes, i);
		kroute_delete(rib, i);
	}
	kernel_rebind(rib);
}

static void
kernel_route_replaced(struct rib *rib, const struct kernel_event *ev)
{
	struct route *r = kernel_route_find(rib, ev);
	uint32_t i = r == NULL ? 0 : kroute_of_metric(&rib->kroutes, r, ev, -1);

	if (i != 0)
		kroute_delete(rib, i);
}

/* --- dumps ---------------------------------------------------------------------------- */

static bool
kroute_is_in_scope(const struct rib *rib, const struct kroute *kr,
		   const struct kernel_scope *scope)
{
	return kr->route->family == scope->family &&
	       kroute_is_of_protocol(kr, scope->protocol) &&
	       (scope->table == 0 ||
		scope->table == source_kernel_table(&rib->sources, kr->route->table));
}

void
kernel_rebind(struct rib *rib)
{
	if (rib->kroutes.rebind)
		legs_rebind_floating(rib);
	rib->kroutes.rebind = false;
}

bool
kernel_sweep_round(struct rib *rib)
{
	struct rib_kroutes *k = &rib->kroutes;
	uint32_t end = k->sweep_at + RIB_SLICE;

	if (!k->sweeping)
		return false;
	for (; k->sweep_at < end && k->sweep_at <= k->high; k->sweep_at++) {
		const struct kroute *kr = &k->v[k->sweep_at];

		if (kr->route != NULL && kr->dump != k->dump &&
		    kroute_is_in_scope(rib, kr, &k->scope) &&
		    !kroute_may_be_passed_over(k, k->sweep_at)) {
			rib->count.kernel_swept++;
			kroute_delete(rib, k->sweep_at);
		}
	}
	k->sweeping = k->sweep_at <= k->high;
	kernel_rebind(rib);
	return k->sweeping;
}

bool
kernel_review_round(struct rib *rib)
{
	struct rib_kroutes *k = &rib->kroutes;
	uint32_t end = k->review_at + RIB_SLICE;

	if (!k->reviewing)
		return false;
	for (; k->review_at < end && k->review_at <= k->high; k->review_at++) {
		struct kroute *kr = &k->v[k->review_at];
		bool ignored;

		if (kr->route == NULL)
			continue;
		ignored =
			kroute_is_ignored(kr, slot_at(&rib->slots, kr->slot), &rib->links);
		if (kr->ignored == ignored)
			continue;
		kr->ignored = ignored;
		kernel_settle(rib, kr->route);
	}
	k->reviewing = k->review_at <= k->high;
	return k->reviewing;
}

static void
dump_begin(struct rib *rib, const struct kernel_scope *scope)
{
	while (kernel_sweep_round(rib))
		; /* the sweep compares with the number of the last dump */
	rib->kroutes.dump++;
	rib->kroutes.scope = *scope;
}

static void
dump_end(struct rib *rib)
{
	if (rib->kroutes.scope.family == 0) {
		nhs_end_dump(rib, rib->kroutes.dump);
		return;
	}
	rib->kroutes.sweeping = true;
	rib->kroutes.sweep_at = 1;
}

static void kernel_event_apply(struct rib *rib, const struct kernel_event *ev);

/* Apply the event of a route for one source or TOS to rib's table for it (source.h). */
static void
kernel_source_event(struct rib *rib, const struct kernel_event *ev)
{
	struct kernel_event of_source = *ev;

	of_source.src.len = 0;
	of_source.route.table = source_find(&rib->sources, ev->route.table, &ev->src,
					    ev->kind == KERNEL_ROUTE);
	if (of_source.route.table != 0)
		kernel_event_apply(rib, &of_source);
}

/*
 * Return true if a route of type blackhole has this type because its next-hop object is a
 * blackhole. Also return true if the kernel has deleted the object, and now deletes the
 * route. A route that is a blackhole itself may have any object. Routes of table local are
 * left out, because the type decides whether they hide other routes.
 */
static bool
blackhole_is_the_objects(struct rib *rib, const struct kernel_event *ev)
{
	const struct nh *nh = nh_find(rib, nh_id_of_kernel(ev->route.nhid));

	if (nh == NULL || ev->is_local)
		return false;
	if (!nh->known)
		return ev->kind == KERNEL_ROUTE_DEL;
	nh_hops(rib, nh, 0, &rib->scratch);
	return rib->scratch.n == 1 && rib->scratch.v[0].kind == PATH_BLACKHOLE;
}

/*
 * Apply the event of a route of type blackhole that has a next-hop object. If the type is
 * the object's, the route follows the object, which may get a next hop later.
 */
static void
kernel_blackhole_event(struct rib *rib, const struct kernel_event *ev)
{
	struct kernel_event either = *ev;

	if (blackhole_is_the_objects(rib, ev))
		either.route.rtm_type = RTN_UNICAST;
	else
		either.route.nhid = 0;
	kernel_event_apply(rib, &either);
}

static void
kernel_event_apply(struct rib *rib, const struct kernel_event *ev)
{
	if (ev->src.len != 0) {
		kernel_source_event(rib, ev);
		return;
	}
	if (ev->kind <= KERNEL_ROUTE_DEL && ev->route.rtm_type == RTN_BLACKHOLE &&
	    ev->route.nhid != 0) {
		kernel_blackhole_event(rib, ev);
		return;
	}
	switch ((enum kernel_event_kind)ev->kind) {
	case KERNEL_ROUTE:
		kernel_route_upsert(rib, ev);
		break;
	case KERNEL_ROUTE_DEL:
		kernel_route_delete(rib, ev);
		break;
	case KERNEL_ROUTE_REPLACED:
		kernel_route_replaced(rib, ev);
		break;
	case KERNEL_NEXTHOP:
		nh_upsert(rib, nh_id_of_kernel(ev->route.nhid), &ev->route);
		nh_get(rib, nh_id_of_kernel(ev->route.nhid))->dump = rib->kroutes.dump;
		break;
	case KERNEL_NEXTHOP_DEL:
		nh_remove(rib, nh_id_of_kernel(ev->route.nhid));
		break;
	case KERNEL_DUMP_BEGIN:
		dump_begin(rib, &ev->dump);
		break;
	case KERNEL_DUMP_END:
		dump_end(rib);
		break;
	}
}

void
rib_kernel_batch(struct rib *rib, const struct msg_kernel_batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		kernel_event_apply(rib, &b->ev[i]);
	kernel_rebind(rib);
	rib->pending.n_events += b->n;
}
