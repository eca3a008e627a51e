/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that forwarders may still read: collected during a round, freed after one grace
 * period. Runs in neigh.
 */
#include "neigh/internal.h"

void
neigh_retire(struct neigh *n, struct grave *g,
	     void (*bury)(struct neigh *n, struct grave *g))
{
	g->bury = bury;
	g->next = n->graves;
	n->graves = g;
}

static void
retired_bury(void *owner, void *arg)
{
	for (struct grave *g = arg, *next; g != NULL; g = next) {
		next = g->next;
		g->bury(owner, g);
	}
}

void
neigh_retire_flush(struct neigh *n)
{
	if (n->graves == NULL)
		return;
	worker_defer(n->worker, retired_bury, n->graves);
	n->graves = NULL;
}
