/* SPDX-License-Identifier: BSD-3-Clause */
/* Count zebra's routes for each table. [rib] */
#ifndef RIB_TABLE_COUNT_H
#define RIB_TABLE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;

/* Counts of a table other than main. */
struct table_count {
	uint32_t table;
	uint32_t n;           /* routes; 0: entry is free */
	uint32_t stale;       /* routes among n that session.gen has not sent */
	uint32_t gen;         /* session in which zebra last mentioned the table */
	char removed_vrf[16]; /* name of the removed VRF that had these routes; "": none */
	bool foreign;         /* routes up to session foreign_gen belong to that VRF */
	uint32_t foreign_gen;
};

struct rib_table_counts {
	uint32_t n_zebra[2];   /* IPv4, IPv6 */
	uint32_t n_labels;     /* labels among tables.n_not_ip */
	uint32_t stale;        /* routes of main and labels not sent in session.gen */
	uint32_t stale_other;  /* stale routes of all other tables */
	struct table_count *v; /* by number, from 1 */
	uint32_t high, cap;
	struct vec32 unused;
	struct hidx by_table;
	bool any_foreign; /* some table has routes of a removed VRF */
};

/* Count a route that zebra sends now. Call it before the route gets its new slot. */
void table_count_confirm(struct rib *rib, struct route *r);
void table_count_remove(struct rib *rib, const struct route *r);
/* Record that zebra mentioned the table, if zebra has a route in it. */
void table_count_mention(struct rib *rib, uint32_t table);
/* Start a session: all routes are stale. */
void table_counts_begin_session(struct rib *rib);
/* Return the counts of a table, or NULL if zebra has no route there. */
const struct table_count *table_count_find(const struct rib *rib, uint32_t table);
/* Return true if the table of a VRF was not replayed, or not yet while the replay runs. */
bool table_count_not_replayed(const struct rib *rib, const struct table_count *t);
/*
 * Record that the VRF of a table was removed, or that a VRF with the table was added. If
 * zebra is connected, it sends the resulting changes itself. If not, its earlier routes
 * belong only to a VRF of the same name. For a VRF of another name they are foreign:
 * resync_round() withdraws them before the FIB of this VRF is published.
 */
void table_count_vrf_removed(struct rib *rib, uint32_t table, const char *name);
void table_count_vrf_added(struct rib *rib, uint32_t table, const char *name);
bool table_count_is_foreign(const struct rib *rib, const struct route *r);
void table_counts_clear_foreign(struct rib *rib); /* all foreign routes are withdrawn */
void table_counts_free(struct rib *rib);

#endif
