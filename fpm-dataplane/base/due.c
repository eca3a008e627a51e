/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of due.h. */
#include "base/due.h"

#include <errno.h>
#include <stdlib.h>

int
due_init(struct due *d, uint32_t end)
{
	*d = (struct due){.heap = calloc(end, sizeof(*d->heap)),
			  .at = calloc(end, sizeof(*d->at)),
			  .when = calloc(end, sizeof(*d->when))};
	if (d->heap != NULL && d->at != NULL && d->when != NULL)
		return 0;
	due_free(d);
	return -ENOMEM;
}

void
due_free(struct due *d)
{
	free(d->heap);
	free(d->at);
	free(d->when);
	*d = (struct due){0};
}

static void
heap_put(struct due *d, uint32_t place, uint32_t id)
{
	d->heap[place] = id;
	d->at[id] = place + 1;
}

/* Move `id` from `place` towards the first place while it is due before its parent. */
static void
heap_up(struct due *d, uint32_t place, uint32_t id)
{
	while (place > 0) {
		uint32_t parent = (place - 1) / 2;

		if (d->when[d->heap[parent]] <= d->when[id])
			break;
		heap_put(d, place, d->heap[parent]);
		place = parent;
	}
	heap_put(d, place, id);
}

/* Move `id` from `place` away from the first place while a child is due before it. */
static void
heap_down(struct due *d, uint32_t place, uint32_t id)
{
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= d->n)
			break;
		if (child + 1 < d->n &&
		    d->when[d->heap[child + 1]] < d->when[d->heap[child]])
			child++;
		if (d->when[d->heap[child]] >= d->when[id])
			break;
		heap_put(d, place, d->heap[child]);
		place = child;
	}
	heap_put(d, place, id);
}

static void
heap_settle(struct due *d, uint32_t place, uint32_t id)
{
	if (place > 0 && d->when[d->heap[(place - 1) / 2]] > d->when[id])
		heap_up(d, place, id);
	else
		heap_down(d, place, id);
}

void
due_set(struct due *d, uint32_t id, uint64_t when)
{
	uint32_t place = d->at[id] - 1, last;

	if (d->at[id] == 0) {
		if (when == DUE_NEVER)
			return;
		d->when[id] = when;
		heap_up(d, d->n++, id);
		return;
	}
	if (when != DUE_NEVER) {
		d->when[id] = when;
		heap_settle(d, place, id);
		return;
	}
	d->at[id] = 0;
	last = d->heap[--d->n];
	if (last != id)
		heap_settle(d, place, last);
}
