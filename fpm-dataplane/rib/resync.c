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

bool
resync_round(struct rib *rib)
{
	uint32_t end = rib->resync.next + RIB_SLICE;

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
