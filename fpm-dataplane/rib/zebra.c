/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply events of zebra to the tables, in the order of arrival. [rib]
 *
 * A NEWROUTE is an upsert by (table, prefix); protocol and priority are not part of the
 * key. A DELROUTE followed by the NEWROUTE of the same key is a replace, and the DELROUTE
 * is skipped: no other thread could see the gap, but it would cost two trie updates.
 *
 * Routes that rib gets from the kernel (event_is_kernel_route()) are not taken (some FRR
 * versions never delete them). Because a route message replaces the earlier one, such a
 * message withdraws the earlier route of zebra. Routes of fe80::/10 are not taken. Routes
 * of tables that are neither main nor of a VRF are kept; they are in a FIB only if a rule
 * names the table. Their next hops are bound and resolved, so that they can be shown. Keys
 * that are not IP routes (labels, MACs of EVPN) have table FPM_TABLE_NONE. Labels are in a
 * table of their own for forwarders (labels.c). MACs are in the table of routes only: no
 * FIB has them.
 */
#include "rib/zebra.h"

#include <linux/rtnetlink.h>

#include "base/rtproto.h"
#include "rib/content.h"
#include "rib/early.h"
#include "rib/feedback.h"
#include "rib/kernel.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/session.h"
#include "rib/slot.h"
#include "rib/stack.h"
#include "rib/table_count.h"
#include "rib/withdraw.h"
#include "rib/nh_list.h"

static bool
event_is_route(const struct fpm_event *ev)
{
	return ev->kind == FPM_ROUTE || ev->kind == FPM_ROUTE_DEL;
}

static bool
next_hop_is_on_link(const struct next_hop *hop)
{
	return hop->kind == PATH_NONE && hop->gw_family == 0 && hop->encap == HOP_PLAIN;
}

/*
 * Return true for a route that rib gets from the kernel, with more detail. With
 * `routes: {from: both}` these are all routes of protocol kernel, and the routes of pbrd in
 * tables other than main, because zebra does not replay these tables. Other routes of such
 * tables may be those of a VRF that rib does not know yet, so they are kept. Without
 * `from: both` they are the connected and local routes of protocol kernel.
 */
static bool
event_is_kernel_route(struct rib *rib, const struct fpm_event *ev)
{
	struct nh_list *hops = &rib->scratch;
	const struct nh *nh;

	if (ev->protocol == RTPROT_FRR_PBR && table_of_event(ev) != RIB_TABLE_MAIN)
		return rib->conf.from == ROUTES_FROM_BOTH;
	if (ev->protocol != RTPROT_KERNEL)
		return false;
	if (rib->conf.from == ROUTES_FROM_BOTH)
		return true;
	if (ev->rtm_type != RTN_UNICAST)
		return false;
	nh_list_clear(hops);
	if (ev->nhid != 0) {
		nh = nh_find(rib, ev->nhid);
		if (nh == NULL || !nh->known)
			return true; /* FRR 10.3 names ids that it never announces */
		nh_hops(rib, nh, 0, hops);
	} else {
		for (uint32_t i = 0; i < ev->n_hops; i++)
			stack_next_hop(rib, nh_list_push(hops), &ev->hops[i]);
	}
	for (uint32_t i = 0; i < hops->n; i++)
		if (!next_hop_is_on_link(&hops->v[i]))
			return false;
	return true;
}

static bool
event_has_hops(const struct fpm_event *ev)
{
	return ev->rtm_type != RTN_BLACKHOLE && ev->rtm_type != RTN_UNREACHABLE &&
	       ev->rtm_type != RTN_PROHIBIT;
}

static bool
event_is_early(struct rib *rib, const struct fpm_event *ev, struct route *r,
	       uint16_t mtu_class)
{
	return ev->nhid != 0 && event_has_hops(ev) &&
	       early_put(rib, r, ev->nhid, mtu_class);
}

static uint32_t
slot_of_event(struct rib *rib, const struct fpm_event *ev, uint16_t mtu_class,
	      uint32_t hint)
{
	struct nh_list *hops = &rib->scratch;

	if (!nh_list_set_type(hops, ev->rtm_type)) {
		if (ev->nhid != 0)
			return slot_for_id(rib, ev->nhid, mtu_class, hint);
		for (uint32_t i = 0; i < ev->n_hops; i++)
			stack_next_hop(rib, nh_list_push(hops), &ev->hops[i]);
		if (ev->n_hops == 0)
			next_hop_special(nh_list_push(hops), PATH_UNRESOLVED);
		nh_list_set_mtu(hops, mtu_class);
		nh_list_sort(hops);
	}
	return slot_for_hops(rib, hops, hint);
}

static void
route_upsert(struct rib *rib, const struct fpm_event *ev, uint64_t hash)
{
	uint32_t table = table_of_event(ev), slot;
	struct routes *t = tables_routes(&rib->tables, table);
	struct route *r = routes_find(t, table, &ev->prefix, hash);
	uint32_t was;
	uint16_t mtu_class;
	bool early, same;

	if (event_is_kernel_route(rib, ev)) {
		rib->count.ignored_kernel++;
		if (r != NULL && r->zslot != 0)
			zebra_withdraw(rib, r);
		return;
	}
	if (r == NULL && routes_are_full(rib)) {
		routes_refuse(rib);
		feedback_refuse(rib, ev);
		return;
	}
	mtu_class = class_of_event(rib, ev);
	early = r != NULL && event_is_early(rib, ev, r, mtu_class);
	if (early) {
		slot = r->zslot;
	} else {
		if (r != NULL)
			early_forget(rib, r);
		slot = slot_of_event(rib, ev, mtu_class,
				     r == NULL       ? 0
				     : r->zslot != 0 ? r->zslot
						     : r->kslot);
	}
	if (r == NULL) {
		r = routes_insert(t, table, &ev->prefix, hash);
		if (r == NULL) {
			routes_lack_memory(rib);
			feedback_refuse(rib, ev);
			return;
		}
		tables_count(&rib->tables, table, ev->prefix.family, 1);
		rib->tables.n_not_ip += table == FPM_TABLE_NONE;
	}
	table_count_confirm(rib, r);
	same = r->protocol == ev->protocol && r->rtm_type == ev->rtm_type;
	r->protocol = ev->protocol;
	r->rtm_type = ev->rtm_type;
	if (!same && slot == r->zslot)
		mirror_route(rib, r);
	was = r->zslot;
	route_bind(rib, r, slot);
	if (was == 0)
		kernel_settle(rib, r);
	if (!early)
		feedback_put(rib, r);
}

static void
route_delete(struct rib *rib, const struct fpm_event *ev, uint64_t hash)
{
	uint32_t table = table_of_event(ev);
	struct route *r =
		routes_find(tables_routes(&rib->tables, table), table, &ev->prefix, hash);

	if (r == NULL || r->zslot == 0)
		rib->count.del_unknown++;
	else
		zebra_withdraw(rib, r);
}

/*
 * Return true for a DELROUTE that the NEWROUTE of the same key follows: FRR up to 9.0
 * replaces a route this way.
 */
static bool
event_is_half_of_replace(const struct fpm_event *ev, const struct fpm_event *next)
{
	return ev->kind == FPM_ROUTE_DEL && next->kind == FPM_ROUTE &&
	       table_of_event(ev) == table_of_event(next) &&
	       prefix_equal(&ev->prefix, &next->prefix);
}

static void
event_apply(struct rib *rib, const struct fpm_event *ev, uint64_t hash)
{
	switch ((enum fpm_event_kind)ev->kind) {
	case FPM_SESSION_UP:
		session_up(rib, ev->session.gen, ev->session.nl_pid);
		return;
	case FPM_SESSION_DOWN:
		session_down(rib);
		return;
	case FPM_ZEBRA:
		rib->session.nl_pid = ev->session.nl_pid;
		mirror_zebra(rib, ev->session.nl_pid, ev->session.held_until_s);
		return;
	case FPM_ROUTE:
	case FPM_ROUTE_DEL:
		if (prefix_is_linklocal6(&ev->prefix))
			rib->count.ignored_linklocal++;
		else if (ev->kind == FPM_ROUTE)
			route_upsert(rib, ev, hash);
		else
			route_delete(rib, ev, hash);
		break;
	case FPM_NEXTHOP:
		nh_upsert(rib, ev->nhid, ev);
		break;
	case FPM_NEXTHOP_DEL:
		nh_delete(rib, ev->nhid);
		break;
	}
	session_event(rib, ev);
}

void
zebra_batch(struct rib *rib, const struct msg_fpm_batch *b)
{
	uint64_t hash[FPM_BATCH_MAX];

	/* Overlap the cache misses of the whole batch. */
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t table = table_of_event(&b->ev[i]);

		hash[i] = 0;
		if (!event_is_route(&b->ev[i]))
			continue;
		hash[i] = routes_hash(tables_routes(&rib->tables, table), table,
				      &b->ev[i].prefix);
		routes_prefetch_bucket(tables_routes(&rib->tables, table), hash[i]);
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (event_is_route(&b->ev[i]))
			routes_prefetch_route(
				tables_routes(&rib->tables, table_of_event(&b->ev[i])),
				hash[i]);
	rib->session.last_event_ms = rib->clock_ms();
	for (uint32_t i = 0; i < b->n; i++)
		if (i + 1 == b->n || !event_is_half_of_replace(&b->ev[i], &b->ev[i + 1]))
			event_apply(rib, &b->ev[i], hash[i]);
	rib->pending.n_events += b->n;
}
