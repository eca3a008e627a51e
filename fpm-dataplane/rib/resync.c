/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk that completes tries: a prefix is missing or wrong in its trie because memory
 * was out, or because the trie is a new VRF's. [rib]. It compares all routes with the
 * tries, a slice a round, stages the differing ones, and withdraws foreign routes
 * (table_count.h).
 */
#include "rib/resync.h"

#include "base/log.h"
#include "rib/rib_impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/table_count.h"
#include "rib/zebra.h"

/* Compare the next route inside a prefix. Return false after the last one. */
static bool
inside_step(struct rib *rib, struct resync_inside *walk)
{
	const struct routes *of = &rib->tables.main;
	unsigned int len = walk->at.len, n;
	const struct fib_copy *copy = rib_tries(rib, RIB_TABLE_MAIN, &n);
	const struct route *r;

	if (poptrie_next(fib_trie(copy, walk->of.family), walk->at.addr.octet, &len,
			 !walk->begun) == POPTRIE_NONE ||
	    !prefix_covers(&walk->of, &walk->at.addr))
		return false;
	walk->at.len = (uint8_t)len;
	walk->begun = true;
	r = routes_find(of, RIB_TABLE_MAIN, &walk->at,
			routes_hash(of, RIB_TABLE_MAIN, &walk->at));
	/* Without memory a walk over all routes follows. */
	if (r != NULL && !route_is_staged(rib, r))
		(void)route_stage(rib, r);
	return true;
}

/* Compare a slice of the routes inside prefixes. Return true if more are due. */
static bool
inside_round(struct rib *rib)
{
	struct rib_resync *s = &rib->resync;

	for (uint32_t n = 0; n < RIB_SLICE && s->n_inside > 0; n++)
		if (!inside_step(rib, &s->inside[s->n_inside - 1]))
			s->n_inside--;
	return s->n_inside > 0;
}

bool
resync_round(struct rib *rib)
{
	bool inside = inside_round(rib);
	uint32_t end;

	if (inside)
		return true;
	end = rib->resync.next > UINT32_MAX - RIB_SLICE ? UINT32_MAX
							: rib->resync.next + RIB_SLICE;
	for (; rib->resync.next < end && rib->resync.next <= tables_walk_end(&rib->tables);
	     rib->resync.next++) {
		struct route *r = tables_walk_at(&rib->tables, rib->resync.next);
		uint32_t at = rib->resync.next;

		if (r != NULL && table_count_is_foreign(rib, r)) {
			zebra_withdraw(rib, r);
			r = tables_walk_at(&rib->tables, at);
		}
		if (r == NULL || route_is_staged(rib, r)) {
			if (r != NULL && route_effective(r) == 0)
				route_settle(rib, r, 0);
			continue;
		}
		if (route_stage(rib, r) < 0) {
			rib->resync.next = at;
			return false; /* the next round or tick tries again */
		}
		if (route_effective(r) == 0)
			route_settle(rib, r, 0);
	}
	if (rib->resync.next <= tables_walk_end(&rib->tables))
		return true;
	rib->resync.due = false;
	table_counts_clear_foreign(rib);
	if (rib->resync.nomem)
		log_info("rib: tries complete again");
	rib->resync.nomem = false;
	return false;
}
