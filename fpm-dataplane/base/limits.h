/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: how full is each table that has a limit, and what was refused for want of room. One
 * owner a table, who says it; read by anybody. A stranger can fill some of them: it is said
 * in the log at most once a second, whatever comes.
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

/* TABLE_MOST_hosts: how much each can be told to have room for, at most. */
enum table_most {
#define TABLE(name, room, max, text)                     TABLE_MOST_##name = (max),
#define LIMIT(name, key, room, least, usual, most, text) TABLE_MOST_##name = (most),
#include "base/limits.def"
#undef LIMIT
#undef TABLE
};

/* Of ui's sockets; preflight counts their descriptors. */
#define SCRAPES_MAX 32 /* connections to the metrics page; more wait */
#define WAITING_MAX 16 /* to the control socket when it is full, that have not asked yet */

/* Room in each table, as the file has it. */
struct table_limits {
	unsigned int max[N_TABLE];
};

struct table_state {
	const char *name; /* "adjacencies" */
	const char *key;  /* of the file, "limits.adjacencies"; NULL: none sets it */
	const char *text;
	uint64_t used, max, refused; /* max 0: it grows */
};

/* What a table may have by `limits`; by default when that is NULL. 0: it grows. [any thread] */
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
 * Up to so many in it a table that was full has room again: not at every entry that comes and
 * goes at the brim.                                                           [any thread]
 */
static inline uint64_t
table_brim(uint64_t max)
{
	return max - (max + 7) / 8;
}

/* A new, empty table for `max` entries, 0: it grows. Nothing was refused yet.     [owner] */
void table_begin(enum table table, uint64_t max);

/* There are `used` entries now. Says in the log when there is room again.         [owner] */
void table_used(enum table table, uint64_t used);

/* There was no room for one more: counts, and says so in the log.                 [owner] */
void table_refuse(enum table table);

/* Say of each table what could not be said when it was so: now and then.      [any thread] */
void table_tell(void);

/* What all of it comes to; `refused` never goes back.                        [any thread] */
struct table_state table_state(enum table table);

#endif
