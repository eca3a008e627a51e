/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that forwarders may still read: collected during a round, freed after one grace
 * period. Runs in neigh.
 */
#include "neigh/internal.h"

void
neigh_retire(struct neigh *n, struct retired *r,
	     void (*free_fn)(struct neigh *n, struct retired *r))
{
	r->free_fn = free_fn;
	r->next = n->retired;
	n->retired = r;
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
