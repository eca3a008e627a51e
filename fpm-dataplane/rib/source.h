/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources of source-specific IPv6 routes (`ip -6 route add X from S`), and TOS of IPv4
 * routes for one TOS (`ip route add X tos N`). [rib]. The routes of one table for sources
 * in one prefix, or for one TOS, are kept as a table of their own, whose number is not the
 * kernel's. This file does not use struct rib.
 */
#ifndef RIB_SOURCE_H
#define RIB_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "base/prefix.h"

/*
 * Routes in tables of the kernel that have such a number are skipped (table_is_reserved()).
 */
#define SOURCE_TABLE_FIRST TABLES_OF_RIB_FIRST
#define SOURCES_MAX        TABLES_OF_RIB

struct source {
	uint32_t table; /* of the kernel; 0: this entry is free */
	uint32_t n;     /* routes */
	/*
	 * IPv6: the source prefix, at least one bit long. IPv4: a TOS, see tos_condition().
	 */
	struct prefix src;
};

struct rib_sources {
	struct source *v;
	uint32_t n, cap;
	uint32_t n_routes;
	bool changed; /* a source got its first route or lost its last one */
};

static inline bool
source_is_table(uint32_t table)
{
	return table - SOURCE_TABLE_FIRST < SOURCES_MAX;
}

static inline uint32_t
source_table(uint32_t at)
{
	return SOURCE_TABLE_FIRST + at;
}

/* Return the source of a table for which source_is_table() is true. */
static inline const struct source *
source_of(const struct rib_sources *s, uint32_t table)
{
	return &s->v[table - SOURCE_TABLE_FIRST];
}

/* Return the table of the kernel whose routes are in `table`, which may be rib's own. */
static inline uint32_t
source_kernel_table(const struct rib_sources *s, uint32_t table)
{
	return source_is_table(table) ? source_of(s, table)->table : table;
}

/*
 * Return the number of the table that has the routes of `table` for packets from `src`; 0:
 * none. With `add` it is created if it does not exist; then 0 means that there is no room.
 */
uint32_t source_find(struct rib_sources *s, uint32_t table, const struct prefix *src,
		     bool add);
/* Count a route that a table with source_is_table() got (`by` is 1) or lost (-1). */
void source_count(struct rib_sources *s, uint32_t table, int by);
/* Free the entries without routes. No other file may store the number of such an entry. */
void sources_collect(struct rib_sources *s);
void sources_free(struct rib_sources *s);

#endif
