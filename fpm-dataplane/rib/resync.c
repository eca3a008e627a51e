/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walks that complete tries. A trie can lack a prefix, or have an old value for it. The
 * cause is that memory ran out, that the VRF is new, or that a route of table local began
 * or ceased to hide other routes. The walk over all routes also withdraws foreign routes
 * (table_count.h).                                                                    [rib]
 */
#include "rib/resync.h"

#include <errno.h>

#include "base/log.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/sid_number.h"
#include "rib/table_count.h"
#include "rib/withdraw.h"

/* --- routes inside a prefix ----------------------------------------------------------- */

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
	/* If memory is out, route_stage() requests the walk over all routes. */
	if (r != NULL && !route_is_staged(rib, r))
		(void)route_stage(rib, r);
	return true;
}

/* Compare a slice of the routes of one walk. */
static void
inside_slice(struct rib *rib, uint32_t i)
{
	struct rib_resync *s = &rib->resync;
	struct resync_inside *walk = &s->inside[i];

	for (uint32_t n = 0; n < RIB_SLICE; n++)
		if (!inside_step(rib, walk)) {
			if (walk->again)
				*walk = (struct resync_inside){.of = walk->of,
							       .at = walk->of};
			else
				*walk = s->inside[--s->n_inside];
			return;
		}
}

/* --- all routes ----------------------------------------------------------------------- */

/* Compare the route at a place of the walk. Return 0 or -ENOMEM. */
static int
all_step(struct rib *rib, uint32_t at)
{
	struct route *r = tables_walk_at(&rib->tables, at);

	if (r != NULL && table_count_is_foreign(rib, r)) {
		zebra_withdraw(rib, r);
		r = tables_walk_at(&rib->tables, at);
	}
	if (r == NULL)
		return 0;
	sid_number_settle(rib, r);
	if (!route_is_staged(rib, r) && route_stage(rib, r) < 0)
		return -ENOMEM;
	if (route_effective(r) == 0)
		route_settle(rib, r, 0);
	return 0;
}

/* End a lap. Another one follows if routes that this lap has passed are due again. */
static void
lap_end(struct rib *rib)
{
	struct rib_resync *s = &rib->resync;

	s->laps++;
	if (s->nomem && resync_has_passed(s, s->nomem_lap)) {
		s->nomem = false;
		log_info("rib: tries complete again");
	}
	s->all = s->again_from != 0;
	s->next = s->again_from;
	s->again_from = 0;
	if (!s->all)
		table_counts_clear_foreign(rib);
}

/* Compare a slice of all routes. Return false if memory is out. */
static bool
all_slice(struct rib *rib)
{
	struct rib_resync *s = &rib->resync;

	for (uint32_t n = 0; n < RIB_SLICE && s->next <= tables_walk_end(&rib->tables);
	     n++, s->next++)
		if (all_step(rib, s->next) < 0)
			return false; /* the next round or tick tries again */
	if (s->next > tables_walk_end(&rib->tables))
		lap_end(rib);
	return true;
}

bool
resync_round(struct rib *rib)
{
	struct rib_resync *s = &rib->resync;
	bool go_on = true;

	if (s->turn >= s->n_inside && s->all)
		go_on = all_slice(rib);
	else if (s->n_inside > 0)
		inside_slice(rib, s->turn % s->n_inside);
	s->turn = s->turn < s->n_inside ? s->turn + 1 : 0;
	s->due = s->all || s->n_inside > 0;
	return s->due && (go_on || s->n_inside > 0);
}
