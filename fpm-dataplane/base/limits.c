/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of entries of each table, as its owner last reported it. Atomic words; the
 * lock protects only the log lines.
 */
#include "base/limits.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"

static const struct {
	const char *name, *key, *room, *text;
} info[N_TABLE] = {
#define TABLE(name, room, max, text) {#name, NULL, #room, text},
#define LIMIT(name, key, room, least, usual, most, text) \
	{#name, "limits." key, #room, text},
#include "base/limits.def"
#undef LIMIT
#undef TABLE
};

static struct {
	alignas(64) _Atomic uint64_t used, max, refused; /* W:owner */
	/* W:owner an entry was refused, and the table has had no room since */
	atomic_bool full;
	/* W:under `lock` the last log line about the table says that it is full */
	atomic_bool logged;
	struct log_limit limit;
} state[N_TABLE];

/* keeps the log lines about a table in order */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
table_begin(enum table table, uint64_t max)
{
	atomic_store_explicit(&state[table].max, max, memory_order_relaxed);
	atomic_store_explicit(&state[table].used, 0, memory_order_relaxed);
	atomic_store_explicit(&state[table].refused, 0, memory_order_relaxed);
	atomic_store(&state[table].full, false);
	atomic_store(&state[table].logged, false);
}

/* Return true if the log's last line about the table is out of date. */
static bool
log_is_stale(enum table table)
{
	return atomic_load_explicit(&state[table].full, memory_order_relaxed) !=
	       atomic_load_explicit(&state[table].logged, memory_order_relaxed);
}

/*
 * Log that the table is full, at most once a second while entries are refused, or that it
 * has room again, once after each such line. A table that fills again within the second is
 * reported when the second is over, by table_tell() at the latest.
 */
static void
table_log(enum table table, bool again)
{
	struct table_state now;
	unsigned int missed;
	bool full;

	pthread_mutex_lock(&lock);
	full = atomic_load(&state[table].full);
	now = table_state(table);
	if (full && (again || log_is_stale(table)) &&
	    log_allowed(&state[table].limit, &missed)) {
		atomic_store(&state[table].logged, true);
		log_warn("%s: table is full table=%s max=%llu refused=%llu%s%s",
			 info[table].room, now.name, (unsigned long long)now.max,
			 (unsigned long long)now.refused, now.key != NULL ? " key=" : "",
			 now.key != NULL ? now.key : "");
	} else if (!full && log_is_stale(table)) {
		atomic_store(&state[table].logged, false);
		log_info("%s: table has room again table=%s used=%llu max=%llu "
			 "refused=%llu",
			 info[table].room, now.name, (unsigned long long)now.used,
			 (unsigned long long)now.max, (unsigned long long)now.refused);
	}
	pthread_mutex_unlock(&lock);
}

void
table_used(enum table table, uint64_t used)
{
	uint64_t max;

	atomic_store_explicit(&state[table].used, used, memory_order_relaxed);
	if (!atomic_load_explicit(&state[table].full, memory_order_relaxed))
		return;
	max = atomic_load_explicit(&state[table].max, memory_order_relaxed);
	if (used > table_capacity(max))
		return;
	atomic_store(&state[table].full, false);
	table_log(table, false);
}

void
table_refuse(enum table table)
{
	atomic_fetch_add_explicit(&state[table].refused, 1, memory_order_relaxed);
	atomic_store(&state[table].full, true);
	table_log(table, true);
}

void
table_tell(void)
{
	for (unsigned int t = 0; t < N_TABLE; t++)
		if (log_is_stale((enum table)t))
			table_log((enum table)t, false);
}

struct table_state
table_state(enum table table)
{
	return (struct table_state){
		.name = info[table].name,
		.key = info[table].key,
		.text = info[table].text,
		.used = atomic_load_explicit(&state[table].used, memory_order_relaxed),
		.max = atomic_load_explicit(&state[table].max, memory_order_relaxed),
		.refused =
			atomic_load_explicit(&state[table].refused, memory_order_relaxed),
	};
}
