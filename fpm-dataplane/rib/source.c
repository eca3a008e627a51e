/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of sources. There are few, so it is searched from end to end. [rib] */
#include "rib/source.h"

#include <stdlib.h>

#include "base/kernel_event.h"
#include "rib/index.h"

/* Return the place of a free entry; SOURCES_MAX: there is no room. */
static uint32_t
source_free_at(struct rib_sources *s)
{
	for (uint32_t at = 0; at < s->n; at++)
		if (s->v[at].table == 0)
			return at;
	if (s->n == SOURCES_MAX)
		return SOURCES_MAX;
	if (s->n == s->cap) {
		s->cap = s->cap == 0 ? 16 : s->cap * 2;
		s->v = mem_or_abort(realloc(s->v, s->cap * sizeof(*s->v)));
	}
	return s->n++;
}

uint32_t
source_find(struct rib_sources *s, uint32_t table, const struct prefix *src, bool add)
{
	uint32_t at;

	for (at = 0; at < s->n; at++)
		if (s->v[at].table == table && prefix_equal(&s->v[at].src, src))
			return source_table(at);
	at = add ? source_free_at(s) : SOURCES_MAX;
	if (at == SOURCES_MAX)
		return 0;
	s->v[at] = (struct source){.table = table, .src = *src};
	return source_table(at);
}

void
source_count(struct rib_sources *s, uint32_t table, int by)
{
	struct source *of = &s->v[table - SOURCE_TABLE_FIRST];

	if (of->src.family == 4)
		atomic_store_explicit(
			&kernel_status.tos_now,
			atomic_load_explicit(&kernel_status.tos_now, memory_order_relaxed) +
				(uint32_t)by,
			memory_order_relaxed);
	s->changed |= of->n == 0 || of->n + (uint32_t)by == 0;
	of->n += (uint32_t)by;
	s->n_routes += (uint32_t)by;
}

void
sources_collect(struct rib_sources *s)
{
	for (uint32_t at = 0; at < s->n; at++)
		if (s->v[at].n == 0)
			s->v[at].table = 0;
	while (s->n > 0 && s->v[s->n - 1].table == 0)
		s->n--;
}

void
sources_free(struct rib_sources *s)
{
	free(s->v);
}
