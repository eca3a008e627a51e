/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Label stacks over adjacencies and tunnels, as forwarders read them. Headends of SRv6 have
 * entries, too (fib/headend.h). An entry never changes while a path leads to it. leg.c
 * gives the references of legs to reclaim.h, so that an entry is reused only when no
 * forwarder can still read it. [rib]
 */
#include "rib/encap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/inet.h"
#include "base/limits.h"
#include "fib/headend.h"
#include "rib/impl.h"
#include "rib/stack.h"

static uint64_t
encap_hash(const struct rib *rib, fib_path next, uint32_t stack)
{
	return mix64(rib->fib->seed ^ ((uint64_t)next << 32 | stack));
}

static fib_path
next_of(const struct rib *rib, uint32_t number)
{
	return encap_next(&rib->fib->encap[number]);
}

static void
encap_write_entry(struct rib *rib, uint32_t number, fib_path next, uint32_t stack)
{
	const struct stack *s = stack_at(rib, stack);
	const uint32_t *label = stack_labels(s);
	struct fib_encap *e = &rib->fib->encap[number];

	if (next == ENCAP_HEADEND) {
		*e = (struct fib_encap){.next = next};
		(void)fib_headend_write(&rib->fib->headend[number], label, s->n);
		return;
	}
	encap_set(e, next, label, s->n, s->ttl);
}

uint32_t
encap_find(const struct rib *rib, fib_path next, uint32_t stack)
{
	const struct rib_encaps *t = &rib->encaps;
	uint32_t number;

	for (number = hidx_first(&t->by_key, encap_hash(rib, next, stack)); number != 0;
	     number = hidx_next(&t->by_key, number))
		if (t->v[number].stack == stack && next_of(rib, number) == next)
			break;
	return number;
}

uint32_t
encap_get(struct rib *rib, fib_path next, uint32_t stack)
{
	struct rib_encaps *t = &rib->encaps;
	uint32_t number = encap_find(rib, next, stack);

	if (number != 0) {
		t->v[number].refs++;
		return number;
	}
	if (encaps_are_full(rib)) {
		table_refuse(TABLE_encaps);
		t->refused = true;
		return 0;
	}
	number = fifo32_len(&t->unused) > 0 ? fifo32_pop(&t->unused) : ++t->high;
	t->v = table_grow(t->v, &t->cap, number, sizeof(*t->v));
	t->v[number] = (struct encap){.refs = 1, .stack = stack};
	encap_write_entry(rib, number, next, stack);
	hidx_add(&t->by_key, encap_hash(rib, next, stack), number);
	t->n_headends += next == ENCAP_HEADEND;
	table_used(TABLE_encaps, ++t->n);
	return number;
}

void
encap_put(struct rib *rib, uint32_t number)
{
	struct rib_encaps *t = &rib->encaps;

	assert(t->v[number].refs > 0);
	if (--t->v[number].refs > 0)
		return;
	hidx_del(&t->by_key, number);
	t->n_headends -= next_of(rib, number) == ENCAP_HEADEND;
	fifo32_push(&t->unused, number);
	table_used(TABLE_encaps, --t->n);
	if (t->refused)
		rib->adjs.freed = true; /* legs_retry_adjs() tries again */
	t->refused = false;
}

bool
encaps_are_full(const struct rib *rib)
{
	return rib->encaps.n + 1 >= rib->fib->encap_end;
}

void
encaps_free(struct rib_encaps *t)
{
	free(t->v);
	fifo32_free(&t->unused);
	hidx_free(&t->by_key);
}
