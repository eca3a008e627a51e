/* SPDX-License-Identifier: BSD-3-Clause */
/* What zebra has in each table, counted. [rib]. */
#ifndef RIB_TABLE_COUNT_H
#define RIB_TABLE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;

/* What zebra has in a table other than main. */
struct table_count {
	uint32_t table;
	uint32_t n;     /* routes; 0: entry is free */
	uint32_t stale; /* of those not seen in session.gen */
	uint32_t gen;   /* session in which zebra spoke of the table last */
	char removed_vrf
		[16]; /* name of the VRF that went and had these routes; "": none did */
	bool foreign; /* those said up to this session are still that one's */
	uint32_t foreign_gen;
};

struct rib_table_counts {
	uint32_t n_zebra[2];   /* IPv4, IPv6 */
	uint32_t n_labels;     /* of tables.n_not_ip */
	uint32_t stale;        /* of n_zebra and n_labels not seen in session.gen */
	uint32_t stale_other;  /* the same of all tallies */
	struct table_count *v; /* by number, from 1 */
	uint32_t high, cap;
	struct vec32 unused;
	struct hidx by_table;
	bool any_foreign; /* routes of VRFs that went */
};

/* zebra says the route now; it has its new slot after that. */
void table_count_confirm(struct rib *rib, struct route *r);
void table_count_remove(struct rib *rib, const struct route *r);
/* zebra spoke of the table, if it has a route there. */
void table_count_mention(struct rib *rib, uint32_t table);
/* Another session: all routes are stale. */
void table_counts_begin_session(struct rib *rib);
/* NULL: zebra has no route there. */
const struct table_count *table_count_find(const struct rib *rib, uint32_t table);
/* Of a VRF's table: was it not replayed? (While the replay runs: not yet.) */
bool table_count_not_replayed(const struct rib *rib, const struct table_count *t);
/*
 * The VRF of a table goes; a VRF comes. zebra, when it is there, says itself what becomes of the
 * routes. When it is not, those that it said before belong to a VRF of that name alone: of
 * another they are foreign, which resync_round() takes out before that one's FIB is published.
 */
void table_count_vrf_removed(struct rib *rib, uint32_t table, const char *name);
void table_count_vrf_added(struct rib *rib, uint32_t table, const char *name);
bool table_count_is_foreign(const struct rib *rib, const struct route *r);
void table_counts_clear_foreign(struct rib *rib); /* all foreign ones are out */
void table_counts_free(struct rib *rib);

#endif
