/* SPDX-License-Identifier: BSD-3-Clause */
/* Make and free the slots of BFD sessions and the forwarders' lists of them.      [main] */
#include "port/bfd.h"

#include <stdlib.h>

#include <rte_cycles.h>

struct bfd_table *
bfd_table_create(void)
{
	struct bfd_table *t = aligned_alloc(64, sizeof(*t));

	if (t == NULL)
		return NULL;
	for (unsigned int i = 0; i < BFD_SLOTS; i++)
		t->slot[i] = (struct bfd_slot){.beat = NULL};
	memset(t->loan, 0, sizeof(t->loan));
	t->epoch = 0;
	t->end = 1;
	return t;
}

void
bfd_table_free(struct bfd_table *t)
{
	for (unsigned int i = 0; t != NULL && i < BFD_SLOTS; i++)
		free(t->slot[i].beat);
	free(t);
}

struct bfd_pace *
bfd_pace_create(struct bfd_table *t, struct rte_mempool *pool, unsigned int index,
		unsigned int n_fwd)
{
	struct bfd_pace *p = calloc(1, sizeof(*p));

	if (p == NULL || due_init(&p->due, BFD_SLOTS) < 0) {
		free(p);
		return NULL;
	}
	p->table = t;
	p->pool = pool;
	p->index = index;
	p->n_fwd = n_fwd;
	p->next = DUE_NEVER;
	p->random = rte_rdtsc() | 1;
	p->ticks_us = rte_get_tsc_hz() / 1000000;
	return p;
}

void
bfd_pace_free(struct bfd_pace *p)
{
	if (p == NULL)
		return;
	due_free(&p->due);
	free(p);
}

uint64_t
bfd_pace_sleep_ns(void *pace)
{
	const struct bfd_pace *p = pace;
	uint64_t now = rte_rdtsc();

	/* The forwarder must not sleep before it has read a change of the slots. */
	if (atomic_load_explicit(&p->table->epoch, memory_order_acquire) != p->epoch)
		return 0;
	if (p->next == DUE_NEVER)
		return UINT64_MAX;
	return p->next <= now ? 0 : (p->next - now) * 1000 / p->ticks_us;
}
