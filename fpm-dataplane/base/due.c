/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of due.h. */
#include "base/due.h"

#include <errno.h>
#include <stdlib.h>

#define CHILDREN   4u
#define CACHE_LINE 64u

_Static_assert(CHILDREN * sizeof(struct due_entry) == CACHE_LINE,
	       "the children of a place are one cache line");

int
due_init(struct due *d, uint32_t end)
{
	/* Place 0 is the last of its cache line, so place 1 begins the next one. */
	size_t bytes = (end + CHILDREN - 1) * sizeof(struct due_entry);

	bytes = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	*d = (struct due){.memory = aligned_alloc(CACHE_LINE, bytes),
			  .at = calloc(end, sizeof(*d->at))};
	if (d->memory == NULL || d->at == NULL) {
		due_free(d);
		return -ENOMEM;
	}
	d->heap = (struct due_entry *)d->memory + CHILDREN - 1;
	return 0;
}

void
due_free(struct due *d)
{
	free(d->memory);
	free(d->at);
	*d = (struct due){0};
}

static void
heap_put(struct due *d, uint32_t place, struct due_entry e)
{
	d->heap[place] = e;
	d->at[e.id] = place + 1;
}

static uint32_t
heap_parent(uint32_t place)
{
	return (place - 1) / CHILDREN;
}

/* Move `e` from `place` towards the first place while it is due before its parent. */
static void
heap_up(struct due *d, uint32_t place, struct due_entry e)
{
	while (place > 0 && d->heap[heap_parent(place)].when > e.when) {
		heap_put(d, place, d->heap[heap_parent(place)]);
		place = heap_parent(place);
	}
	heap_put(d, place, e);
}

/* Return the child of `place` that is due first, or d->n if there is no child. */
static uint32_t
heap_child(const struct due *d, uint32_t place)
{
	uint32_t first = CHILDREN * place + 1, best = first;

	if (first >= d->n)
		return d->n;
	for (uint32_t i = 1; i < CHILDREN && first + i < d->n; i++)
		if (d->heap[first + i].when < d->heap[best].when)
			best = first + i;
	return best;
}

/* Move `e` from `place` away from the first place while a child is due before it. */
static void
heap_down(struct due *d, uint32_t place, struct due_entry e)
{
	for (;;) {
		uint32_t child = heap_child(d, place);

		if (child >= d->n || d->heap[child].when >= e.when)
			break;
		heap_put(d, place, d->heap[child]);
		place = child;
	}
	heap_put(d, place, e);
}

static void
heap_settle(struct due *d, uint32_t place, struct due_entry e)
{
	if (place > 0 && d->heap[heap_parent(place)].when > e.when)
		heap_up(d, place, e);
	else
		heap_down(d, place, e);
}

void
due_set(struct due *d, uint32_t id, uint64_t when)
{
	uint32_t place = d->at[id] - 1;
	struct due_entry last;

	if (d->at[id] == 0) {
		if (when != DUE_NEVER)
			heap_up(d, d->n++, (struct due_entry){.when = when, .id = id});
		return;
	}
	if (when != DUE_NEVER) {
		heap_settle(d, place, (struct due_entry){.when = when, .id = id});
		return;
	}
	d->at[id] = 0;
	last = d->heap[--d->n];
	if (last.id != id)
		heap_settle(d, place, last);
}
