/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: how full is each table that has a limit, and what was refused for want of room. One
 * owner a table, who says it; read by anybody. A stranger can fill some of them: it is said
 * in the log at most once a second, whatever comes.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdint.h>

enum table {
#define TABLE(name, room, text) TABLE_##name,
#include "base/table.def"
#undef TABLE
	N_TABLE
};

struct table_state {
	const char *name; /* "adjacencies" */
	const char *text;
	uint64_t used, max, refused;
};

/* A new, empty table for `max` entries: nothing was refused yet.                  [owner] */
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
