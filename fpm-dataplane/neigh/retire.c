/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that forwarders may still read: collected during a round, freed after one grace
 * period. Runs in neigh.
 */
#include "neigh/internal.h"

#include <stdlib.h>

struct retired_memory {
	struct retired retired;
	void *memory;
};

void
neigh_retire(struct neigh *n, struct retired *r,
	     void (*free_fn)(struct neigh *n, struct retired *r))
{
	r->free_fn = free_fn;
	r->next = n->retired;
	n->retired = r;
}

static void
memory_free(struct neigh *n, struct retired *r)
{
	struct retired_memory *old = caa_container_of(r, struct retired_memory, retired);

	free(old->memory);
	free(old);
}

void
neigh_retire_memory(struct neigh *n, void *memory)
{
	struct retired_memory *old = calloc(1, sizeof(*old));

	if (old == NULL)
		abort(); /* out of memory for a few octets */
	old->memory = memory;
	neigh_retire(n, &old->retired, memory_free);
}

static void
retired_free_all(void *owner, void *arg)
{
	for (struct retired *r = arg, *next; r != NULL; r = next) {
		next = r->next;
		r->free_fn(owner, r);
	}
}

void
neigh_retire_flush(struct neigh *n)
{
	if (n->retired == NULL)
		return;
	worker_defer(n->worker, retired_free_all, n->retired);
	n->retired = NULL;
}
