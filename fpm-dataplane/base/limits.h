/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: number of entries, limit and refusals of each table. Each table has one owner,
 * which reports the number of entries; any thread reads it. Because remote hosts can fill
 * some of the tables, the log has at most one line a second for each table.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum table {
#define TABLE(name, room, max, text)                     TABLE_##name,
#define LIMIT(name, key, room, least, usual, most, text) TABLE_##name,
#include "base/limits.def"
#undef LIMIT
#undef TABLE
	N_TABLE
};

/* The largest limits that a file may set: TABLE_MOST_hosts is that of limits.hosts. */
enum table_most {
#define TABLE(name, room, max, text)                     TABLE_MOST_##name = (max),
#define LIMIT(name, key, room, least, usual, most, text) TABLE_MOST_##name = (most),
#include "base/limits.def"
#undef LIMIT
#undef TABLE
};

/* Bounds of ui's sockets; preflight counts their descriptors. */
#define SCRAPES_MAX        32 /* connections to the metrics page; a further one ends the oldest */
#define SCRAPES_ENDING_MAX 32 /* and connections that were ended and are not closed yet */
/* connections that have sent no request yet, beyond the limit of the control socket */
#define WAITING_MAX 16

/* Limit of each table, from the configuration. */
struct table_limits {
	unsigned int max[N_TABLE];
};

struct table_state {
	const char *name; /* "adjacencies" */
	/* key of the file, "limits.adjacencies"; NULL: no key sets the limit */
	const char *key;
	const char *text;
	uint64_t used, max, refused; /* max 0: no limit, the table grows */
};

/*
 * Return the limit of a table from `limits`, or the default if `limits` is NULL. 0: no limit.
 *                                                                             [any thread]
 */
static inline unsigned int
table_limit(const struct table_limits *limits, enum table table)
{
	static const struct table_limits usual = {{
#define TABLE(name, room, max, text)                     (max),
#define LIMIT(name, key, room, least, usual, most, text) (usual),
#include "base/limits.def"
#undef LIMIT
#undef TABLE
	}};

	return (limits != NULL ? limits : &usual)->max[table];
}

/*
 * Return the fill at which a table that was full counts as having room again: 7/8 of its
 * limit. The gap avoids a log line for every entry that is added and removed at the limit.
 *                                                                             [any thread]
 */
static inline uint64_t
table_capacity(uint64_t max)
{
	return max - (max + 7) / 8;
}

/*
 * Reset the state of a table: empty, limit `max` (0: it grows), nothing refused.   [owner]
 */
void table_begin(enum table table, uint64_t max);

/* Report the number of entries. Logs when the table has room again.             [owner] */
void table_used(enum table table, uint64_t used);

/* Count a refused entry, and log it.                                            [owner] */
void table_refuse(enum table table);

/*
 * Write the log lines that the limit of one line a second delayed. Call this once a second.
 *                                                                             [any thread]
 */
void table_tell(void);

/* Return the state of a table; `refused` never decreases.                  [any thread] */
struct table_state table_state(enum table table);

#endif
