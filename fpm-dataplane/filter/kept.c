/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept: counters and limits outlive a ruleset as long as the kernel has their rule or their named
 * object, even if no packet can reach the rule: because no rule jumps to its chain, or because the
 * table is dormant. The kernel counts the handles of rules and of named objects of a table
 * together. [filter]
 */
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "filter/impl.h"

static int
handle_compare(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

void
kept_find(struct build *b)
{
	const struct ruleset *old = b->old;

	if (old == NULL || old->n_rule + old->n_stateful == 0)
		return;
	b->kept = malloc(((size_t)old->n_rule + old->n_stateful) * sizeof(*b->kept));
	if (b->kept == NULL)
		abort();
	/* A table that is created again numbers its rules from the beginning. */
	for (uint32_t i = 0; i < old->n_rule; i++)
		if (old->chain[old->rule[i].chain].table_handle == b->table_handle)
			b->kept[b->n_kept++] = (struct kept){old->rule[i].handle,
							     old->rule[i].state, false};
	for (uint32_t i = 0; i < old->n_stateful; i++)
		if (old->stateful[i].table_handle == b->table_handle)
			b->kept[b->n_kept++] = (struct kept){old->stateful[i].handle,
							     old->stateful[i].state, false};
	qsort(b->kept, b->n_kept, sizeof(*b->kept), handle_compare);
}

static struct kept *
kept_of(const struct build *b, uint64_t handle)
{
	struct kept key = {.handle = handle};

	return b->n_kept == 0
		       ? NULL
		       : bsearch(&key, b->kept, b->n_kept, sizeof(key), handle_compare);
}

struct ruleset_state *
kept_take(const struct build *b, uint64_t handle, unsigned int n_limit)
{
	struct kept *k = kept_of(b, handle);

	if (k == NULL || k->state->n_limit != n_limit)
		return NULL;
	k->taken = true;
	return k->state;
}

uint32_t
kept_append(struct build *b, uint64_t handle, struct ruleset_state *state)
{
	struct ruleset *r = b->r;

	r->stateful = build_room(r->stateful, r->n_stateful, &b->room_stateful,
				 sizeof(*r->stateful));
	r->stateful[r->n_stateful] =
		(struct ruleset_stateful){b->table_handle, handle, state};
	state->n_used++;
	return r->n_stateful++;
}

/* Keep the state of a handle, unless the ruleset has it. */
static void
handle_keep(struct build *b, uint64_t handle)
{
	struct kept *k = kept_of(b, handle);

	if (k == NULL || k->taken)
		return;
	k->taken = true;
	(void)kept_append(b, handle, k->state);
}

void
kept_store(struct build *b)
{
	uint64_t handle;

	for (uint32_t i = 0; i < b->n_rule && b->n_kept > 0; i++)
		if (attr_be64(message_attr(b->rule[i].nlh, NFTA_RULE_HANDLE), &handle) == 0)
			handle_keep(b, handle);
	for (uint32_t i = 0; i < b->n_object && b->n_kept > 0; i++)
		handle_keep(b, b->object[i].handle);
}

void
kept_untake(struct build *b)
{
	for (uint32_t i = 0; i < b->n_kept; i++)
		b->kept[i].taken = false;
}
