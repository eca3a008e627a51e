/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * due: ids with the time at which each is due next. It is a binary heap: the first id is
 * found at once, and a change costs the logarithm of the number of ids. Times are of any
 * steady clock. A struct due belongs to one thread.
 */
#ifndef BASE_DUE_H
#define BASE_DUE_H

#include <stdbool.h>
#include <stdint.h>

#define DUE_NEVER UINT64_MAX

struct due {
	uint32_t n;     /* ids in the heap */
	uint32_t *heap; /* the ids; heap[0] is due first */
	uint32_t *at;   /* by id: place in the heap + 1; 0: not in it */
	uint64_t *when; /* by id */
};

/* Make an empty heap for ids below `end`. Returns 0 or -ENOMEM. */
int due_init(struct due *d, uint32_t end);
void due_free(struct due *d);

/* Set the time of `id`. DUE_NEVER removes it. */
void due_set(struct due *d, uint32_t id, uint64_t when);

/* Return the time of `id`; DUE_NEVER: it is not in the heap. */
static inline uint64_t
due_when(const struct due *d, uint32_t id)
{
	return d->at[id] == 0 ? DUE_NEVER : d->when[id];
}

/* Return the time of the first id; DUE_NEVER: the heap is empty. Its id is d->heap[0]. */
static inline uint64_t
due_first(const struct due *d)
{
	return d->n == 0 ? DUE_NEVER : d->when[d->heap[0]];
}

#endif
