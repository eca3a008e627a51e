/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sweep the routes that a replay did not confirm. [rib]
 *
 * FPM has neither an end mark nor a "delete all". Therefore each connection is a
 * generation, and forwarding continues with the old routes. The routes that the replay did
 * not confirm are removed when it is over (replay.c) and rib has handled all queued events.
 * After a restart of zebra, whose protocols need many seconds to learn their routes again,
 * nothing is swept before sweep_restart_s is over (replay_hold_ms()). Nothing is swept
 * while zebra is not connected. MACs, which zebra does not replay, are never swept.
 *
 * If zebra sends nothing for a VRF, either it does not replay the VRF, or the VRF has no
 * interface and so receives no packets (each interface has connected routes). The routes of
 * such a VRF are kept, and reported as not replayed.
 *
 * zebra does not replay tables that are neither main nor of a VRF. Their routes that the
 * session did not send are removed with the sweep of VRFs if the kernel's copies count
 * (`routes: {from: both}`), or if they come from a checkpoint, because no other step would
 * remove them.
 *
 * The sweep works in slices, so that live updates do not wait for it. Nexthop ids need no
 * sweep: they do not outlive their session (nexthop.c), and a slot is retired with its last
 * route.
 */
#include "rib/sweep.h"

#include <inttypes.h>

#include "base/log.h"
#include "rib/early.h"
#include "rib/replay.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/session.h"
#include "rib/table_count.h"
#include "rib/vrf.h"
#include "rib/withdraw.h"

/*
 * Return true if nothing is left to be confirmed: neither stale routes nor routes that wait
 * for their id.
 */
static bool
replay_is_settled(const struct rib *rib)
{
	return (rib->session.replaying ? rib->table_counts.stale
				       : rib->table_counts.stale_other) == 0 &&
	       rib->early.n == 0;
}

static void
replay_done(struct rib *rib)
{
	static struct log_limit limit;
	struct rib_session *s = &rib->session;
	unsigned int missed;

	s->replaying = s->sweeping = false;
	s->done_ms = rib->clock_ms();
	if (log_allowed(&limit, &missed))
		log_info("rib: replay done gen=%u routes=%u swept=%" PRIu64
			 " end=%s missed=%u",
			 s->gen,
			 rib->table_counts.n_zebra[0] + rib->table_counts.n_zebra[1],
			 s->swept, s->sentinel ? "sentinel" : "time", missed);
	if (replay_is_settled(rib))
		s->vrfs_replaying = false; /* no routes of VRFs, or all are confirmed */
}

static void
replay_vrfs_done(struct rib *rib)
{
	struct rib_session *s = &rib->session;
	uint32_t kept = 0, routes = 0;

	s->vrfs_replaying = s->sweeping = false;
	for (uint32_t i = 1; i <= rib->table_counts.high; i++) {
		const struct table_count *t = &rib->table_counts.v[i];
		bool not_replayed =
			table_count_not_replayed(rib, t) && table_is_of_vrf(rib, t->table);

		kept += not_replayed;
		routes += not_replayed ? t->stale : 0;
	}
	log_info("rib: vrf replay done gen=%u swept=%" PRIu64, s->gen, s->swept_vrf);
	if (kept > 0)
		log_warn("rib: routes of vrfs kept reason=not-replayed vrfs=%u routes=%u",
			 kept, routes);
}

/*
 * When the replay is over, finish it if there is nothing to sweep. Otherwise start the
 * sweep when the time replay_hold_ms() has passed.
 */
static void
replay_check_end(struct rib *rib)
{
	struct rib_session *s = &rib->session;
	bool main = s->replaying;

	if (!(main ? replay_main_is_over(rib) : replay_vrfs_are_over(rib)))
		return;
	if (replay_is_settled(rib)) {
		main ? replay_done(rib) : replay_vrfs_done(rib);
		return;
	}
	if (rib->clock_ms() < replay_hold_ms(rib))
		return;
	early_bind(rib, main ? EARLY_MAIN : EARLY_ALL);
	s->sweeping = true;
	s->sweep_at = 1;
}

/*
 * Return true if the part of the replay that is over now should have confirmed this stale
 * route.
 */
static bool
route_is_missing(const struct rib *rib, const struct route *r)
{
	if (rib->session.replaying || route_is_replayed(r))
		return rib->session.replaying && route_is_replayed(r);
	if (r->table == FPM_TABLE_NONE)
		return false;
	/*
	 * zebra does not replay the table. Its routes there are in the kernel, from which
	 * they are taken with `routes: {from: both}` while a rule names the table. Thread
	 * rtnl does not take the routes of table default (rtnl/tables.c).
	 */
	if (!table_is_of_vrf(rib, r->table))
		return r->gen == 0 /* from a checkpoint */ ||
		       (rib->conf.from == ROUTES_FROM_BOTH && r->table != RT_TABLE_DEFAULT);
	return table_count_find(rib, r->table)->gen == rib->session.gen;
}

bool
sweep_round(struct rib *rib)
{
	struct rib_session *s = &rib->session;
	uint32_t end, all = tables_walk_end(&rib->tables);
	bool main = s->replaying;

	if (!s->connected || !s->vrfs_replaying)
		return false;
	if (!s->sweeping)
		replay_check_end(rib);
	if (!s->sweeping) /* the end of VRFs may coincide with main's */
		return main && !s->replaying && s->vrfs_replaying;
	end = s->sweep_at + RIB_SLICE;
	for (; s->sweep_at < end && s->sweep_at <= all; s->sweep_at++) {
		struct route *r = tables_walk_at(&rib->tables, s->sweep_at);

		if (r == NULL || r->zslot == 0 || r->gen == s->gen ||
		    !route_is_missing(rib, r))
			continue;
		s->swept += route_is_replayed(r);
		s->swept_vrf += !route_is_replayed(r);
		zebra_withdraw(rib, r);
		rib->count.swept_routes++;
	}
	if (s->sweep_at <= all &&
	    (main ? rib->table_counts.stale : rib->table_counts.stale_other) > 0)
		return true;
	rib->count.sweeps++;
	main ? replay_done(rib) : replay_vrfs_done(rib);
	return s->vrfs_replaying;
}
