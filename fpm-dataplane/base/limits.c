/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fill of tables, as their owners told it last. A word each; no lock.
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
	atomic_bool full; /* W:owner  since something was refused, until there is room */
	atomic_bool
		told; /* W:under `lock`  the log's last line of it says that it is full */
	struct log_limit limit;
} state[N_TABLE];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* lines come in order */

void
table_begin(enum table table, uint64_t max)
{
	atomic_store_explicit(&state[table].max, max, memory_order_relaxed);
	atomic_store_explicit(&state[table].used, 0, memory_order_relaxed);
	atomic_store_explicit(&state[table].refused, 0, memory_order_relaxed);
	atomic_store(&state[table].full, false);
	atomic_store(&state[table].told, false);
}

/* Is it not as the log has it? */
static bool
table_is_news(enum table table)
{
	return atomic_load_explicit(&state[table].full, memory_order_relaxed) !=
	       atomic_load_explicit(&state[table].told, memory_order_relaxed);
}

/*
 * "Full" once a second at most, again and again while more is refused; room again once after
 * each. A table that filled, had room and filled again within a second is said to be full
 * when the second is over, by table_tell() at the latest.
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
	if (full && (again || table_is_news(table)) &&
	    log_allowed(&state[table].limit, &missed)) {
		atomic_store(&state[table].told, true);
		log_warn("%s: table is full table=%s max=%llu refused=%llu%s%s",
			 info[table].room, now.name, (unsigned long long)now.max,
			 (unsigned long long)now.refused, now.key != NULL ? " key=" : "",
			 now.key != NULL ? now.key : "");
	} else if (!full && table_is_news(table)) {
		atomic_store(&state[table].told, false);
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
	if (used > table_brim(max))
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
		if (table_is_news((enum table)t))
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
