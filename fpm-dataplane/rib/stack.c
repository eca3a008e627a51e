/* SPDX-License-Identifier: BSD-3-Clause */
/* Label stacks, found by their labels or by number. [rib] */
#include "rib/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "rib/nexthop.h"
#include "rib/nh_list.h"
#include "rib/impl.h"
#include "rib/slot.h"

#define COLLECT_MIN 1024u

static uint64_t
labels_hash(const uint32_t *label, unsigned int n, uint16_t ttl, uint64_t seed)
{
	uint64_t h = seed + n + ((uint64_t)ttl << 32);

	for (unsigned int i = 0; i < n; i++)
		h = mix64(h ^ label[i]);
	return h;
}

const struct stack *
stack_at(const struct rib *rib, uint32_t number)
{
	return &rib->stacks.v[number];
}

uint32_t
stack_hash(const struct stack *stack)
{
	return (uint32_t)labels_hash(stack_labels(stack), stack->n, stack->ttl, 0);
}

static void
stack_write(struct rib_stacks *stacks, struct stack *s, const uint32_t *label,
	    unsigned int n, uint16_t ttl)
{
	size_t bytes = n * sizeof(*label);

	*s = (struct stack){.n = (uint8_t)n, .ttl = ttl};
	if (n > STACK_NEAR) {
		s->far = mem_or_abort(malloc(bytes));
		stacks->n_far += n;
	}
	memcpy(n > STACK_NEAR ? s->far : s->near, label, bytes);
}

static void
stack_forget(struct rib_stacks *stacks, struct stack *s)
{
	if (s->n > STACK_NEAR) {
		free(s->far);
		stacks->n_far -= s->n;
	}
	*s = (struct stack){.n = 0};
}

uint32_t
stack_number(struct rib *rib, const uint32_t *label, unsigned int n, uint16_t ttl)
{
	struct rib_stacks *s = &rib->stacks;
	uint64_t hash;
	uint32_t i;

	if (n == 0 || n > (label[0] >= LABELS_ALL ? STACK_WORDS_MAX : LABELS_MAX))
		return 0;
	hash = labels_hash(label, n, ttl, rib->fib->seed);
	for (i = hidx_first(&s->by_labels, hash); i != 0; i = hidx_next(&s->by_labels, i))
		if (s->v[i].n == n && s->v[i].ttl == ttl &&
		    memcmp(stack_labels(&s->v[i]), label, n * sizeof(*label)) == 0)
			return i;
	if (s->n + 1 >= STACKS_MAX)
		return 0;
	i = number_get(&s->unused, &s->high);
	s->v = table_grow(s->v, &s->cap, i, sizeof(*s->v));
	stack_write(s, &s->v[i], label, n, ttl);
	hidx_add(&s->by_labels, hash, i);
	s->n++;
	return i;
}

void
stack_next_hop(struct rib *rib, struct next_hop *hop, const struct fpm_hop *from)
{
	next_hop_from_fpm(hop, from);
	if (hop->kind == PATH_NONE && (hop->encap == HOP_MPLS || hop->encap == HOP_SEG6))
		hop->stack =
			stack_number(rib, from->label, from->n_labels, from->label_ttl) &
			(STACKS_MAX - 1);
}

/* Mark the stacks of next hops, and those of encap entries that readers may still use. */
static void
stacks_mark(struct rib *rib)
{
	struct stack *v = rib->stacks.v;

	for (uint32_t i = 1; i <= rib->nhs.high; i++)
		if (rib->nhs.v[i] != NULL)
			v[rib->nhs.v[i]->hop.stack].used = 1;
	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		const struct slot *s = slot_at(&rib->slots, i);

		for (uint32_t k = 0; k < s->n_legs; k++)
			v[s->leg[k].hop.stack].used = 1;
	}
	for (uint32_t i = 1; i <= rib->encaps.high; i++)
		if (rib->encaps.v[i].refs > 0)
			v[rib->encaps.v[i].stack].used = 1;
}

void
stacks_collect(struct rib *rib)
{
	struct rib_stacks *s = &rib->stacks;

	if (s->n < s->collect_at || s->n < COLLECT_MIN)
		return;
	stacks_mark(rib);
	for (uint32_t i = 1; i <= s->high; i++) {
		bool used = s->v[i].used != 0;

		s->v[i].used = 0;
		if (used || s->v[i].n == 0)
			continue;
		hidx_del(&s->by_labels, i);
		stack_forget(s, &s->v[i]);
		s->n--;
		vec32_push(&s->unused, i);
	}
	s->v[0].used = 0;
	s->collect_at = stacks_collect_next(s->n);
}

void
stacks_free(struct rib_stacks *s)
{
	for (uint32_t i = 1; i <= s->high; i++)
		stack_forget(s, &s->v[i]);
	free(s->v);
	vec32_free(&s->unused);
	hidx_free(&s->by_labels);
}

size_t
stacks_bytes(const struct rib_stacks *s)
{
	return s->cap * sizeof(*s->v) + s->n_far * sizeof(uint32_t) +
	       hidx_bytes(&s->by_labels);
}
