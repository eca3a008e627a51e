/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Change the slot of a route: references, the checkpoint, the trie; and the limit of
 * routes. [rib]. Routes of zebra and of the kernel take the same steps. commit.c, not this
 * file, publishes the tries.
 */
#include "rib/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>

#include "base/log.h"
#include "base/limits.h"
#include "rib/kroute.h"
#include "rib/labels.h"
#include "rib/local.h"
#include "rib/mirror.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/sid_number.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/view.h"
#include "rib/vrf.h"

/*
 * Time from the last route that was not stored to the request for all routes: zebra needs
 * seconds for a replay.
 */
#define RETRY_MS 10000u

void
route_log_nomem(const char *what, uint64_t count)
{
	static struct log_limit limit;
	unsigned int missed;

	if (log_allowed(&limit, &missed))
		log_error("rib: out of memory in=%s count=%llu missed=%u", what,
			  (unsigned long long)count, missed);
}

/* Return the slot of the longest prefix of table main that covers the prefix of `r`. */
static uint32_t
route_thrown_slot(const struct rib *rib, const struct route *r)
{
	const struct routes *of = &rib->tables.main;
	struct prefix p = route_prefix(r);

	while (p.len > 0) {
		const struct route *found;
		uint32_t slot;

		p.len--;
		prefix_mask(&p);
		found = routes_find(of, RIB_TABLE_MAIN, &p,
				    routes_hash(of, RIB_TABLE_MAIN, &p));
		slot = found == NULL ? 0
				     : kroute_main_slot(&rib->kroutes, &rib->links, found);
		if (slot != 0)
			return slot;
	}
	return rib->contents.suppressed;
}

uint32_t
route_fib_slot(const struct rib *rib, const struct route *r)
{
	uint32_t slot = route_effective(r);
	uint8_t hider;

	if (r->table != RIB_TABLE_MAIN) {
		struct prefix p = route_prefix(r);

		return local_fib_slot(rib, r->table, &p, r);
	}
	if (slot == 0)
		return kroute_is_thrown(&rib->kroutes, r) ? route_thrown_slot(rib, r) : 0;
	hider = kroute_hider_of(&rib->kroutes, &rib->links, r);
	return hider != RTN_UNSPEC ? rib->contents.hidden[hider] : slot;
}

/* Stage the route in every copy. Return 0, -ENOENT when no copy changes, or -ENOMEM. */
static int
route_stage_copies(const struct rib *rib, const struct route *r)
{
	uint32_t slot = route_fib_slot(rib, r);
	int all = -ENOENT;
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	for (unsigned int c = 0; c < n; c++) {
		struct poptrie *pt = fib_trie(&copy[c], r->family);
		int rc = slot != 0 ? poptrie_add(pt, r->octet, r->len, slot)
				   : poptrie_del(pt, r->octet, r->len);

		if (all != -ENOMEM && rc != -ENOENT)
			all = rc;
	}
	return all;
}

int
route_stage(struct rib *rib, const struct route *r)
{
	int rc, views;

	if (r->family == FAMILY_LABEL) {
		label_stage(rib, r);
		return 0;
	}
	sid_number_settle(rib, r);
	rc = route_stage_copies(rib, r);
	views = rib->vrfs.views.n == 0 ? 0 : views_stage(rib, r);

	if (rc != -ENOENT) {
		rib->count.trie_writes++;
		if (r->table == RIB_TABLE_MAIN)
			rib->pending.staged[r->family == 6] = true;
		else
			vrf_staged(rib, vrf_find(rib, r->table), (uint8_t)r->family);
	}
	if (views == 0 && rc != -ENOMEM)
		return 0;
	rc = -ENOMEM;
	rib->count.route_nomem++;
	route_log_nomem("add", rib->count.route_nomem);
	resync_nomem(&rib->resync);
	return rc;
}

bool
route_is_hidden(const struct rib *rib, const struct route *r)
{
	return r->table == RIB_TABLE_MAIN
		       ? kroute_hider_of(&rib->kroutes, &rib->links, r) != RTN_UNSPEC
		       : local_hides(rib, r);
}

bool
route_is_staged(const struct rib *rib, const struct route *r)
{
	uint32_t slot = route_fib_slot(rib, r);
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	if (r->family == FAMILY_LABEL)
		return label_is_staged(rib, r);
	for (unsigned int c = 0; c < n; c++)
		if (poptrie_exact(fib_trie(&copy[c], r->family), r->octet, r->len) != slot)
			return false;
	return rib->vrfs.views.n == 0 || views_are_staged(rib, r);
}

/*
 * Stage each route of type throw of table local inside the prefix of `r`, unless it is
 * staged. A change of `r` changes the slot of these prefixes, or whether table local hides
 * them.
 */
static void
route_stage_thrown(struct rib *rib, const struct route *r)
{
	const struct rib_kroutes *k = &rib->kroutes;
	struct prefix p;

	if (k->n_throws == 0 || !family_is_ip((uint8_t)r->family))
		return;
	p = route_prefix(r);
	if (table_is_of_vrf(rib, r->table))
		locals_stage_thrown(rib, vrf_find(rib, r->table), &p);
	if (source_kernel_table(&rib->sources, r->table) != RIB_TABLE_MAIN)
		return;
	for (uint32_t i = 0; i < k->wide.n; i++) {
		const struct kroute *kr = &k->v[k->wide.v[i]];
		struct prefix of = route_prefix(kr->route);

		if (kr->wide == RTN_THROW && of.family == p.family && of.len > p.len &&
		    prefix_covers(&p, &of.addr) && !route_is_staged(rib, kr->route))
			(void)route_stage(rib, kr->route);
	}
}

/*
 * Return true if the tries may have to change although the slot of the route is the same.
 * A record of table local may have replaced a record of table main with equal content; then
 * no shorter prefix hides the route.
 */
static bool
route_has_context(const struct rib *rib, const struct route *r)
{
	return (r->table == RIB_TABLE_MAIN || source_is_table(r->table)) &&
	       r->family != FAMILY_LABEL &&
	       (route_effective(r) == 0 || rib->kroutes.wide.n > 0 ||
		rib->vrfs.views.n > 0);
}

void
route_settle(struct rib *rib, struct route *r, uint32_t was)
{
	uint32_t now = route_effective(r);

	route_stage_thrown(rib, r);
	if ((now != was || (route_has_context(rib, r) && !route_is_staged(rib, r))) &&
	    route_stage(rib, r) < 0)
		return; /* keep the empty route until the trie has dropped it */
	if (now != 0 || kroute_first(&rib->kroutes, r) != 0)
		return;
	tables_count(&rib->tables, r->table, (uint8_t)r->family, -1);
	if (source_is_table(r->table))
		source_count(&rib->sources, r->table, -1);
	rib->tables.n_not_ip -= r->table == FPM_TABLE_NONE;
	routes_remove(tables_routes(&rib->tables, r->table), r);
}

void
route_bind(struct rib *rib, struct route *r, uint32_t slot)
{
	uint32_t was = route_effective(r), old = r->zslot;

	if (slot == old)
		return;
	slot_ref(rib, slot);
	slot_note_family(rib, slot, (uint8_t)r->family);
	r->zslot = slot;
	mirror_route(rib, r);
	route_settle(rib, r, was);
	if (old != 0)
		slot_unref(rib, old);
}

bool
route_is_swept(const struct rib *rib, const struct route *r)
{
	return route_is_replayed(r) || table_is_of_vrf(rib, r->table);
}

bool
routes_are_full(const struct rib *rib)
{
	unsigned int max = table_limit(rib->conf.limits, TABLE_routes);

	return max != 0 && rib->tables.main.n + rib->tables.other.n >= max;
}

void
routes_refuse(struct rib *rib)
{
	routes_report(rib);
	table_refuse(TABLE_routes);
	rib->tables.refused = true;
}

void
routes_lack_memory(struct rib *rib)
{
	rib->count.route_nomem++;
	route_log_nomem("routes", rib->count.route_nomem);
	rib->tables.retry_ms = rib->clock_ms() + RETRY_MS;
}

/* If some routes were not stored, and there is memory for thousands, ask for all routes. */
static void
routes_ask_again(struct rib *rib)
{
	uint64_t now_ms = rib->clock_ms();

	if (rib->tables.retry_ms == 0 || now_ms < rib->tables.retry_ms || rib->stopping)
		return;
	if (!routes_make_room(&rib->tables.main) || !routes_make_room(&rib->tables.other)) {
		rib->tables.retry_ms = now_ms + RETRY_MS;
		return;
	}
	rib->tables.retry_ms = 0;
	log_info("rib: routes requested again reason=out-of-memory-before");
	worker_send(rib->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
	worker_send(rib->conf.rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
}

void
routes_report(struct rib *rib)
{
	unsigned int max = table_limit(rib->conf.limits, TABLE_routes);
	uint32_t n = rib->tables.main.n + rib->tables.other.n;

	table_used(TABLE_routes, n);
	table_used(TABLE_nexthops, rib->nhs.n);
	routes_ask_again(rib);
	/* The refused routes are not recorded: a replay sends all routes again. */
	if (rib->stopping || n > table_capacity(max))
		return;
	if (rib->tables.refused)
		worker_send(rib->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
	if (rib->kroutes.refused)
		worker_send(rib->conf.rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	rib->tables.refused = rib->kroutes.refused = false;
}
