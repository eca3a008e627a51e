/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to the ui, a slice at a time; dist/openapi.yaml has the keys. [rib]. A slice
 * costs at most q->max rows and SCAN_MAX steps, so that a list of a million routes delays
 * no other work. The cursor is the last prefix shown, not a place in memory: it stays valid
 * while the table changes. Queries change nothing, except for audits.
 */
#include "rib/query.h"

#include <inttypes.h>
#include <jansson.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "base/counters.h"
#include "base/limits.h"
#include "rib/adj.h"
#include "rib/audit.h"
#include "rib/content.h"
#include "rib/checkpoint.h"
#include "rib/index.h"
#include "rib/encap_row.h"
#include "rib/label_row.h"
#include "rib/leg.h"
#include "rib/link_row.h"
#include "rib/local.h"
#include "rib/masks.h"
#include "rib/nexthop.h"
#include "rib/packed.h"
#include "rib/replay.h"
#include "rib/kroute.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/route_row.h"
#include "rib/routes.h"
#include "rib/rule_row.h"
#include "rib/session.h"
#include "rib/sid.h"
#include "rib/sid_row.h"
#include "rib/slot.h"
#include "rib/table_count.h"
#include "rib/vrf.h"
#include "rib/nh_list.h"

#define SCAN_MAX 16384u

static void
query_add_row(struct msg_query *q, json_t *object)
{
	if (object != NULL)
		json_array_append_new(q->rows, object);
}

static void
route_row(const struct rib *rib, struct msg_query *q, const struct route *r)
{
	struct shown_route shown;

	if (r == NULL)
		return;
	shown = route_shown(rib, r, (enum query_of)q->of);
	if (shown.slot != 0)
		query_add_row(q, route_json(rib, r, &shown));
}

/* The FIB of a query: of main, of a VRF, or of rules. */
struct wanted_fib {
	uint32_t table;
	const struct fib_copy *tries;
	const struct vrf *view; /* NULL: the FIB is not of rules */
	const struct vrf *vrf;  /* NULL: the FIB is of main */
};

/*
 * List the route of table local that decides for the prefix in a VRF. Return true if there
 * is one.
 */
static bool
list_local(const struct rib *rib, struct msg_query *q, const struct vrf *vrf,
	   const struct prefix *p)
{
	const struct route *r = vrf == NULL ? NULL : local_route_in(rib, vrf, p);
	struct shown_route shown;
	json_t *row;

	if (r == NULL)
		return false;
	shown = route_shown(rib, r, OF_FIB);
	row = route_json(rib, r, &shown);
	if (row != NULL)
		json_object_set_new(row, "table", json_integer(RT_TABLE_LOCAL));
	query_add_row(q, row);
	return true;
}

static void
list_compiled(struct rib *rib, struct msg_query *q, const struct wanted_fib *of,
	      const struct prefix *p)
{
	uint32_t n = of->view == NULL ? 1 : of->view->n_chain;
	size_t before;

	/* Without q->longest, list the VRF's own route for the prefix, too, as hidden. */
	if (list_local(rib, q, of->vrf, p) && q->longest)
		return;
	before = json_array_size(q->rows);
	for (uint32_t i = 0; i < n && json_array_size(q->rows) == before; i++) {
		uint32_t table = of->view == NULL ? of->table : of->view->chain[i];

		route_row(rib, q, tables_find(&rib->tables, table, p));
	}
}

/* List routes of one trie in prefix order. Return true when the slice is full. */
static bool
list_trie(struct rib *rib, struct msg_query *q, const struct wanted_fib *of, uint8_t family)
{
	const struct poptrie *pt = fib_trie(of->tries, family);
	struct prefix p = {.family = family};
	unsigned int len = (unsigned int)q->cursor[2];

	memcpy(p.addr.octet, &q->cursor[3], sizeof(p.addr.octet));
	while (json_array_size(q->rows) < q->max) {
		if (poptrie_next(pt, p.addr.octet, &len, q->cursor[1] == 0) == POPTRIE_NONE)
			return false;
		p.len = (uint8_t)len;
		q->cursor[1] = 1;
		q->cursor[2] = len;
		memcpy(&q->cursor[3], p.addr.octet, sizeof(p.addr.octet));
		list_compiled(rib, q, of, &p);
	}
	return true;
}

static bool
route_is_wanted(const struct msg_query *q, const struct route *r)
{
	struct prefix p = route_prefix(r);

	if (r->family == 0 || (q->family != 0 && q->family != r->family))
		return false;
	if (!q->has_prefix)
		return true;
	return q->longest ? r->family == q->prefix.family && r->len <= q->prefix.len &&
				    prefix_covers(&p, &q->prefix.addr)
			  : prefix_equal(&p, &q->prefix);
}

/*
 * List routes of tables other than main, in no order. With a prefix, list equal prefixes,
 * or with q->longest all that cover it. Return true when the slice is full.
 */
static bool
list_other(const struct rib *rib, struct msg_query *q)
{
	uint32_t steps = 0;

	while (q->cursor[1] < rib->tables.other.high) {
		const struct route *r;

		if (json_array_size(q->rows) >= q->max || ++steps > SCAN_MAX)
			return true;
		r = route_at(&rib->tables.other, (uint32_t)++q->cursor[1]);
		if (route_is_wanted(q, r))
			route_row(rib, q, r);
	}
	return false;
}

static void
list_prefix(struct rib *rib, struct msg_query *q, const struct wanted_fib *of)
{
	struct prefix p = q->prefix;
	unsigned int len;

	prefix_mask(&p);
	if (q->longest) {
		const struct poptrie *pt = fib_trie(of->tries, p.family);

		if (poptrie_match(pt, p.addr.octet, p.len, &len) == POPTRIE_NONE)
			return;
		p.len = (uint8_t)len;
		prefix_mask(&p);
	}
	list_compiled(rib, q, of, &p);
}

static void
list_routes(struct rib *rib, struct msg_query *q)
{
	const struct vrf *vrf = rib->vrfs.v[q->vrf];
	struct wanted_fib of = {RIB_TABLE_MAIN, rib->fib->copy, NULL, NULL};

	if (vrf != NULL)
		of = (struct wanted_fib){vrf->fib->table, &vrf->fib->tries,
					 vrf->view != 0 ? vrf : NULL, vrf};
	q->done = q->vrf != 0 && vrf == NULL; /* the VRF was removed */
	/*
	 * cursor[0]: 0 IPv4, 1 IPv6, 2 other tables; each phase uses the other members in
	 * its own way.
	 */
	for (; q->cursor[0] < 2 && !q->done; q->cursor[0]++) {
		uint8_t family = q->cursor[0] == 0 ? 4 : 6;

		if (q->has_prefix) {
			if (family == q->prefix.family)
				list_prefix(rib, q, &of);
		} else if ((q->family == 0 || q->family == family) &&
			   list_trie(rib, q, &of, family)) {
			return;
		}
		memset(&q->cursor[1], 0, sizeof(q->cursor) - sizeof(q->cursor[0]));
	}
	if (q->vrf == 0 && q->all_tables && list_other(rib, q))
		return;
	q->done = true;
}

static bool
nh_has_absent_member(const struct nh *nh)
{
	for (uint32_t i = 0; i < nh->n_member; i++)
		if (nh->member[i].nh->absent)
			return true;
	return false;
}

/*
 * Return true if zebra has deleted the id, a member of it, or a member of a group in it, and
 * the last content stays in force. Follow the two levels that nh_hops() follows.
 */
static bool
nh_is_absent(const struct nh *nh)
{
	if (nh->absent || nh_has_absent_member(nh))
		return true;
	for (uint32_t i = 0; i < nh->n_member; i++)
		if (nh_has_absent_member(nh->member[i].nh))
			return true;
	return false;
}

/*
 * Return true if a route has the slot. rib itself holds a reference to the unresolved slot,
 * which it needs when slots run out.
 */
static bool
slot_is_used(const struct rib *rib, const struct slot *s)
{
	return s->kind != SLOT_FREE && s->kind != SLOT_RETIRED &&
	       s->refs > (s->number == rib->contents.unresolved);
}

/* --- next hops, by zebra's id ------------------------------------------------------- */

/* Make the leg that a slot with this next hop would have. Take no references. */
static struct leg
nh_leg(const struct rib *rib, const struct nh *nh)
{
	struct leg leg = {.hop = nh->hop};
	const struct next_hop *hop = &leg.hop;
	uint32_t ifindex = hop->ifindex;

	if (!nh->known)
		next_hop_special(&leg.hop, PATH_UNRESOLVED);
	if (hop->kind != PATH_NONE)
		return leg;
	if (ifindex == 0 && hop->gw_family != 0)
		ifindex = kroute_ifindex_of(&rib->kroutes, hop->gw_family, &hop->gw);
	leg.link = rib_link_find(&rib->links, ifindex);
	if (leg.link != NULL && hop->gw_family != 0)
		leg.adj = adj_number(rib, leg.link, hop->gw_family, &hop->gw);
	if (hop->encap == HOP_SEG6 && hop->stack != 0)
		leg.encap = encap_find(rib, ENCAP_HEADEND, hop->stack);
	leg.sid = sid_find(rib, hop);
	if (hop->encap == HOP_MPLS && hop->stack != 0 && leg.adj != 0)
		leg.encap = encap_find(rib, PATH(PATH_ADJ, leg.adj), hop->stack);
	else if (hop->encap == HOP_MPLS && hop->stack != 0 && leg.link != NULL &&
		 leg.link->gre)
		leg.encap = encap_find(rib, PATH(PATH_ONLINK, leg.link->ifidx), hop->stack);
	return leg;
}

static const char *
nh_state_name(const struct rib *rib, const struct leg *leg)
{
	fib_path path;

	switch (leg_path(rib, leg, &path)) {
	case LEG_FAILED:
		return rib->adjs.v[leg->adj].alive ? "bfd-down" : "failed";
	/* With a link that is up: no route uses the next hop, or no adjacency is free. */
	case LEG_DOWN:
		return leg->link->known && leg->link->up ? "no-adjacency" : "down";
	/* With an interface: the interface is missing, and no route uses the next hop. */
	case LEG_UNRESOLVED:
		return leg->hop.ifindex != 0 ? "down" : "unresolved";
	default:
		return path_state_name(path_shown_kind(path));
	}
}

static json_t *
nh_json(const struct rib *rib, const struct nh *nh)
{
	struct leg leg = nh_leg(rib, nh);
	json_t *via = json_null(), *row;
	char buf[PREFIX_STRLEN];
	json_int_t routes = 0;

	if (leg.hop.gw_family != 0)
		via = json_string(ipaddr_str(&leg.hop.gw, leg.hop.gw_family, buf));
	for (uint32_t i = nh->slot; i != 0; i = slot_at(&rib->slots, i)->sibling)
		routes += slot_at(&rib->slots, i)->refs;
	row = json_pack("{s:I, s:o, s:o, s:s, s:I, s:I, s:b, s:I}", "nexthop_id",
			(json_int_t)(uint32_t)nh->id, "via", via, "dev", dev_json(&leg),
			"state", nh_state_name(rib, &leg), "groups",
			(json_int_t)nh->n_groups, "routes", routes, "absent", nh->absent,
			"adj", (json_int_t)leg.adj);
	if (leg.hop.encap != HOP_POP)
		hop_add_encap(row, rib, &leg.hop);
	return row;
}

static void
list_nexthops(const struct rib *rib, struct msg_query *q)
{
	uint32_t steps = 0;

	while (q->cursor[0] < rib->nhs.high) {
		const struct nh *nh;

		if (json_array_size(q->rows) >= q->max || ++steps > SCAN_MAX)
			return;
		nh = rib->nhs.v[++q->cursor[0]];
		if (nh != NULL && !nh->is_group)
			query_add_row(q, nh_json(rib, nh));
	}
	q->done = true;
}

static void
list_groups(const struct rib *rib, struct msg_query *q)
{
	uint32_t steps = 0;

	while (q->cursor[0] < rib->slots.high) {
		const struct slot *s;
		const struct nh *nh;
		uint64_t word;

		if (json_array_size(q->rows) >= q->max || ++steps > SCAN_MAX)
			return;
		s = slot_at(&rib->slots, (uint32_t)++q->cursor[0]);
		if (!slot_is_used(rib, s))
			continue;
		nh = s->kind == SLOT_ID ? slot_nh(rib, s) : NULL;
		word = atomic_load_explicit(&rib->fib->group[s->number],
					    memory_order_relaxed);
		query_add_row(q,
			      json_pack("{s:I, s:I, s:I, s:s, s:I, s:b, s:o, s:o}", "group",
					(json_int_t)s->number, "nexthop_id",
					(json_int_t)s->nhid, "routes", (json_int_t)s->refs,
					"state",
					path_state_name(slot_path_kind(rib, s->number)),
					"buckets", (json_int_t)1 << group_word_log2(word),
					"absent", nh != NULL && nh_is_absent(nh), "mtu",
					mtu_json(rib, s), "nexthops", legs_json(rib, s)));
	}
	q->done = true;
}

static json_t *
trie_json(const struct poptrie *pt)
{
	struct poptrie_stats st;

	poptrie_stats(pt, &st);
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "routes", (json_int_t)st.routes,
		"nodes", (json_int_t)st.nodes, "leaves", (json_int_t)st.leaves, "bytes",
		(json_int_t)(st.direct_bytes + st.node_bytes + st.leaf_bytes), "free_bytes",
		(json_int_t)st.free_bytes, "retired_bytes", (json_int_t)st.retired_bytes,
		"radix_bytes", (json_int_t)st.radix_bytes);
}

/* --- FIBs of main and of VRFs. There may be thousands, so a slice lists a part of them --- */

/* Append one row for each family of `tries`. They belong to main if `vrf` is NULL. */
static void
fib_rows(struct msg_query *q, const struct vrf *vrf, const struct fib_copy *tries)
{
	for (unsigned int v = 0; v < 2; v++) {
		json_t *row = json_pack("{s:s, s:o}", "family", v == 0 ? "ipv4" : "ipv6",
					"vrf", vrf_json(vrf));
		json_t *trie = trie_json(fib_trie(tries, v == 0 ? 4 : 6));

		json_object_update_missing(row, trie);
		json_decref(trie);
		json_array_append_new(q->rows, row);
	}
}

/* Return the next VRF after the cursor. NULL: there is none, or the slice is full. */
static const struct vrf *
query_next_vrf(const struct rib *rib, struct msg_query *q)
{
	while (json_array_size(q->rows) + 2 <= q->max) {
		if (rib->vrfs.n == 0 || ++q->cursor[0] >= FIB_VRF_NONE) {
			q->done = true;
			return NULL;
		}
		if (rib->vrfs.v[q->cursor[0]] != NULL)
			return rib->vrfs.v[q->cursor[0]];
	}
	return NULL;
}

static void
list_fibs(const struct rib *rib, struct msg_query *q)
{
	const struct vrf *vrf;

	if (q->cursor[1] == 0)
		fib_rows(q, NULL, rib->fib->copy);
	q->cursor[1] = 1;
	while ((vrf = query_next_vrf(rib, q)) != NULL)
		fib_rows(q, vrf, &vrf->fib->tries);
}

/* Return true if the VRF has a default route of the family, which may refuse packets. */
static bool
vrf_has_default(struct rib *rib, const struct vrf *vrf, uint8_t family)
{
	const struct prefix all = {.family = family};
	const struct route *r = tables_find(&rib->tables, vrf->fib->table, &all);

	return r != NULL && route_effective(r) != 0 &&
	       slot_path_kind(rib, route_effective(r)) != PATH_THROW;
}

static json_t *
vrf_row(struct rib *rib, const struct vrf *vrf)
{
	const struct table_count *t = table_count_find(rib, vrf->fib->table);
	struct vrf_counters c;

	counters_vrf(vrf->number, &vrf->fib->base, &c);
	return json_pack(
		"{s:o, s:I, s:b, s:I, s:I, s:b, s:I, s:I, s:I, s:o, s:o, s:b, s:b}", "name",
		vrf_json(vrf), "table", (json_int_t)vrf->fib->table, "published",
		vrf->published, "zebra", (json_int_t)(t == NULL ? 0 : t->n), "stale",
		(json_int_t)(t == NULL ? 0 : t->stale), "replayed",
		t == NULL || !table_count_not_replayed(rib, t), "rx_packets",
		(json_int_t)c.rx_packets, "rx_bytes", (json_int_t)c.rx_bytes, "dropped",
		(json_int_t)c.dropped, "fib4", trie_json(vrf->fib->tries.pt4), "fib6",
		trie_json(vrf->fib->tries.pt6), "default4", vrf_has_default(rib, vrf, 4),
		"default6", vrf_has_default(rib, vrf, 6));
}

static void
list_vrfs(struct rib *rib, struct msg_query *q)
{
	const struct vrf *vrf;

	while ((vrf = query_next_vrf(rib, q)) != NULL)
		json_array_append_new(q->rows, vrf_row(rib, vrf));
}

/* --- summary -------------------------------------------------------------------------- */

/* Return the memory of the copies of the tries, one for each NUMA node. */
static json_t *
copies_json(const struct fib *fib)
{
	json_t *all = json_array();

	for (unsigned int c = 0; c < fib->n_copies; c++) {
		const struct fib_copy *copy = &fib->copy[c];

		json_array_append_new(
			all,
			json_pack("{s:o, s:b, s:o, s:o}", "node",
				  copy->node < 0 ? json_null() : json_integer(copy->node),
				  "placed", copy->refused == 0, "fib4",
				  trie_json(copy->pt4), "fib6", trie_json(copy->pt6)));
	}
	return all;
}

static size_t
rib_bytes(const struct rib *rib)
{
	return sizeof(*rib) + routes_bytes(&rib->tables.main) +
	       routes_bytes(&rib->tables.other) +
	       (rib->slots.high / SLOT_CHUNK + 1) * SLOT_CHUNK * sizeof(struct slot) +
	       rib->contents.leg_bytes + rib->words.block_bytes +
	       kroutes_bytes(&rib->kroutes) + rib->nhs.n * sizeof(struct nh) +
	       stacks_bytes(&rib->stacks) + rib->encaps.cap * sizeof(struct encap) +
	       hidx_bytes(&rib->encaps.by_key) +
	       (rib->labels.want == NULL ? 0 : LABELS_ALL * sizeof(uint32_t)) +
	       rib->adjs.high * sizeof(struct adj) + hidx_bytes(&rib->contents.by_hops) +
	       hidx_bytes(&rib->nhs.by_id) + hidx_bytes(&rib->adjs.by_key) +
	       hidx_bytes(&rib->links.by_ifindex);
}

static void
json_set_int(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

/*
 * Add counts of tables other than main: stale routes, VRFs that were not replayed, and
 * routes of tables without a VRF.
 */
static void
summary_tables(const struct rib *rib, json_t *o)
{
	uint32_t stale = 0, kept = 0, no_vrf = 0;

	for (uint32_t i = 1; i <= rib->table_counts.high; i++) {
		const struct table_count *t = &rib->table_counts.v[i];

		if (!table_is_of_vrf(rib, t->table)) {
			no_vrf += t->n;
			continue;
		}
		stale += t->stale;
		kept += !rib->session.vrfs_replaying && table_count_not_replayed(rib, t);
	}
	json_set_int(o, "vrf_stale", stale);
	json_set_int(o, "vrfs_not_replayed", kept);
	json_set_int(o, "no_vrf_routes", no_vrf);
}

/* Add the phase of the session, and its times. */
static void
summary_session(const struct rib *rib, json_t *o)
{
	const struct rib_session *s = &rib->session;
	uint64_t now = rib->clock_ms();
	uint64_t replay_ms = (s->done_ms != 0 ? s->done_ms : now) - s->up_ms;
	int64_t sweep_ms = sweep_in_ms(rib, now), vrfs_ms = sweep_vrfs_in_ms(rib, now);

	json_set_int(o, "generation", s->gen);
	json_object_set_new(o, "phase", json_string(session_phase(rib)));
	json_object_set_new(o, "replaying", json_boolean(s->replaying));
	json_object_set_new(o, "zebra_restarted", json_boolean(s->restarted));
	json_object_set_new(o, "sentinel", json_boolean(s->sentinel));
	json_set_int(o, "replay_before", s->n_before);
	json_set_int(o, "replay_confirmed",
		     s->n_before - rib->table_counts.stale - s->swept);
	json_set_int(o, "stale", rib->table_counts.stale);
	json_object_set_new(o, "replay_s",
			    s->up_ms == 0 ? json_null()
					  : json_real((double)replay_ms / 1e3));
	json_object_set_new(o, "sweep_in_s",
			    sweep_ms < 0 ? json_null() : json_real((double)sweep_ms / 1e3));
	json_object_set_new(o, "vrf_phase", json_string(session_vrf_phase(rib)));
	json_object_set_new(o, "vrf_sweep_in_s",
			    vrfs_ms < 0 ? json_null() : json_real((double)vrfs_ms / 1e3));
	summary_tables(rib, o);
	json_set_int(o, "sweeps", rib->count.sweeps);
	json_set_int(o, "swept_routes", rib->count.swept_routes);
	json_set_int(o, "sweep_quiet_s", rib->conf.sweep_quiet_s);
	json_set_int(o, "sweep_max_s", rib->conf.sweep_max_s);
	json_set_int(o, "sweep_restart_s", rib->conf.sweep_restart_s);
	json_object_set_new(o, "feedback_enabled", json_boolean(rib->conf.feedback));
}

static json_t *
checkpoint_json(const struct rib *rib)
{
	json_t *o;

	if (rib->ckpt == NULL)
		return json_null();
	o = json_object();
	json_set_int(o, "routes", rib->ckpt->head->n_routes[CKPT_MAIN]);
	json_set_int(o, "other_tables", rib->ckpt->head->n_routes[CKPT_OTHER]);
	json_set_int(o, "kernel_routes", rib->ckpt->head->n_kernel);
	json_set_int(o, "groups", rib->ckpt->head->n_slots);
	json_set_int(o, "groups_full", rib->ckpt->full);
	json_set_int(o, "bytes", ckpt_bytes(rib->ckpt));
	json_set_int(o, "restored", rib->count.restored);
	json_set_int(o, "restored_kernel", rib->count.restored_kernel);
	json_set_int(o, "restore_lost", rib->count.restore_lost);
	json_set_int(o, "discarded", rib->count.restore_refused);
	return o;
}

static void
list_summary(const struct rib *rib, struct msg_query *q)
{
	json_t *o = json_object();
	uint64_t unresolved = 0, unsupported = 0, absent = 0, groups = 0;

	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		const struct slot *s = slot_at(&rib->slots, i);

		groups += slot_is_used(rib, s);
		if (slot_path_kind(rib, i) == PATH_UNRESOLVED)
			unresolved += s->refs - (i == rib->contents.unresolved);
		if (slot_path_kind(rib, i) == PATH_ENCAP)
			unsupported += s->refs;
	}
	for (uint32_t i = 1; i <= rib->nhs.high; i++)
		absent += rib->nhs.v[i] != NULL && rib->nhs.v[i]->absent;
	json_set_int(o, "routes4", rib->tables.n_main[0]);
	json_set_int(o, "routes6", rib->tables.n_main[1]);
	json_set_int(o, "zebra4", rib->table_counts.n_zebra[0]);
	json_set_int(o, "zebra6", rib->table_counts.n_zebra[1]);
	json_set_int(o, "kernel_routes", rib->kroutes.n);
	json_set_int(o, "kernel_swept", rib->count.kernel_swept);
	json_set_int(o, "other_tables", rib->tables.other.n - rib->tables.n_not_ip);
	json_set_int(o, "unsupported", unsupported);
	json_set_int(o, "unresolved", unresolved);
	json_set_int(o, "groups", groups);
	json_set_int(o, "nexthop_ids", rib->nhs.n);
	json_set_int(o, "nexthop_ids_absent", absent);
	json_set_int(o, "adjacencies", rib->adjs.n);
	json_set_int(o, "label_routes", rib->table_counts.n_labels);
	encaps_summary(rib, o);
	summary_session(rib, o);
	json_set_int(o, "commits", rib->count.commits);
	json_set_int(o, "reclaim_pending", rib->reclaims.n);
	json_set_int(o, "ignored_kernel", rib->count.ignored_kernel);
	json_set_int(o, "ignored_linklocal", rib->count.ignored_linklocal);
	json_set_int(o, "out_of_memory", rib->count.route_nomem + rib->count.commit_nomem);
	json_set_int(o, "routes_full", table_state(TABLE_routes).refused);
	json_set_int(o, "groups_full", table_state(TABLE_groups).refused);
	json_set_int(o, "adjacencies_full", table_state(TABLE_adjacencies).refused);
	json_set_int(o, "mtus_full", table_state(TABLE_mtus).refused);
	json_set_int(o, "groups_adopted", rib->count.adopted);
	json_set_int(o, "flows_moved", rib->count.flows_moved);
	json_set_int(o, "prefix_writes", rib->count.trie_writes);
	json_set_int(o, "group_writes", rib->count.word_writes);
	json_set_int(o, "rib_bytes", rib_bytes(rib));
	json_set_int(o, "vrfs", rib->vrfs.n - rib->vrfs.n_for_rules);
	json_object_set_new(o, "fib4", trie_json(rib->fib->copy[0].pt4));
	json_object_set_new(o, "fib6", trie_json(rib->fib->copy[0].pt6));
	json_object_set_new(o, "fib_copies", copies_json(rib->fib));
	json_object_set_new(o, "checkpoint", checkpoint_json(rib));
	query_add_row(q, o);
	q->done = true;
}

/* List the kernel's interfaces that next hops name. One slice suffices: they are few. */
static void
list_through(const struct rib *rib, struct msg_query *q)
{
	for (uint32_t i = 1; i <= rib->links.high; i++) {
		struct link *link = rib->links.v[i];

		if (link != NULL && link_is_kernels(rib, link) &&
		    !cds_list_empty(&link->legs))
			query_add_row(q, json_pack("{s:I}", "ifindex",
						   (json_int_t)link->ifindex));
	}
	q->done = true;
}

static void
query_answer_slice(struct rib *rib, struct msg_query *q)
{
	if (q->rows == NULL && q->kind != QUERY_MASKS)
		q->rows = json_array();
	switch (q->kind) {
	case QUERY_ROUTES:
		if (q->of == OF_EACH)
			packed_slice(rib, q);
		else
			list_routes(rib, q);
		break;
	case QUERY_RULES:
		rule_rows(rib, q);
		break;
	case QUERY_THROUGH:
		list_through(rib, q);
		break;
	case QUERY_LINKS:
		link_rows(rib, q);
		break;
	case QUERY_NEXTHOPS:
		list_nexthops(rib, q);
		break;
	case QUERY_GROUPS:
		list_groups(rib, q);
		break;
	case QUERY_LABELS:
		labels_slice(rib, q);
		break;
	case QUERY_ENCAPS:
		encaps_slice(rib, q);
		break;
	case QUERY_SIDS:
		sids_slice(rib, q);
		break;
	case QUERY_SUMMARY:
		list_summary(rib, q);
		break;
	case QUERY_FIB:
		list_fibs(rib, q);
		break;
	case QUERY_VRFS:
		list_vrfs(rib, q);
		break;
	case QUERY_AUDIT:
		audit_slice(rib, q);
		break;
	case QUERY_BREAK:
		audit_break(rib, q);
		break;
	case QUERY_MASKS:
		masks_fill(rib, caa_container_of(q, struct msg_masks, q));
		q->done = true;
		break;
	case QUERY_NEIGHBORS:
	case QUERY_INTERFACES:
	case QUERY_TUNNELS:
	case QUERY_NEIGH_SUMMARY:
	case QUERY_WATCH:
	case QUERY_MANAGE:
	case QUERY_HOLD:
	case QUERY_FILTER:
	case QUERY_SFLOW:
	case QUERY_BFD:
	case QUERY_WARNINGS:
		q->done = true;
		break;
	}
	q->m.type = MSG_REPLY;
	worker_send(q->from, &q->m);
}

void
query_put(struct rib *rib, struct msg_query *q)
{
	if (rib->queries.n == rib->queries.cap) {
		rib->queries.cap = rib->queries.cap == 0 ? 16 : rib->queries.cap * 2;
		rib->queries.v =
			mem_or_abort(realloc(rib->queries.v, rib->queries.cap * sizeof(q)));
	}
	rib->queries.v[rib->queries.n++] = q;
}

void
query_answer_all(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->queries.n; i++)
		query_answer_slice(rib, rib->queries.v[i]);
	rib->queries.n = 0;
}
