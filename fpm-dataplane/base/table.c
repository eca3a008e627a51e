/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fill of tables, as their owners told it last. A word each; no lock.
 */
#include "base/table.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"

static const struct {
	const char *name, *room, *text;
} info[N_TABLE] = {
#define TABLE(name, room, text) {#name, #room, text},
#include "base/table.def"
#undef TABLE
};

static struct {
	alignas(64) _Atomic uint64_t used, max, refused; /* W:owner */
	bool full;                                       /* of the owner's own: was said */
	struct log_limit limit;
} state[N_TABLE];

void
table_begin(enum table table, uint64_t max)
{
	atomic_store_explicit(&state[table].max, max, memory_order_relaxed);
	atomic_store_explicit(&state[table].used, 0, memory_order_relaxed);
	atomic_store_explicit(&state[table].refused, 0, memory_order_relaxed);
	state[table].full = false;
}

void
table_used(enum table table, uint64_t used)
{
	struct table_state now;

	atomic_store_explicit(&state[table].used, used, memory_order_relaxed);
	if (!state[table].full)
		return;
	/* Not at every entry that comes and goes at the brim. */
	now = table_state(table);
	if (used > now.max - now.max / 8)
		return;
	state[table].full = false;
	log_info("%s: table has room again table=%s used=%llu max=%llu refused=%llu",
		 info[table].room, now.name, (unsigned long long)used,
		 (unsigned long long)now.max, (unsigned long long)now.refused);
}

void
table_refuse(enum table table)
{
	struct table_state now;
	unsigned int missed;

	atomic_fetch_add_explicit(&state[table].refused, 1, memory_order_relaxed);
	if (!log_allowed(&state[table].limit, &missed))
		return;
	state[table].full = true;
	now = table_state(table);
	log_warn("%s: table is full table=%s max=%llu refused=%llu", info[table].room,
		 now.name, (unsigned long long)now.max, (unsigned long long)now.refused);
}

struct table_state
table_state(enum table table)
{
	return (struct table_state){
		.name = info[table].name,
		.text = info[table].text,
		.used = atomic_load_explicit(&state[table].used, memory_order_relaxed),
		.max = atomic_load_explicit(&state[table].max, memory_order_relaxed),
		.refused =
			atomic_load_explicit(&state[table].refused, memory_order_relaxed),
	};
}
