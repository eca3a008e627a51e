/* SPDX-License-Identifier: BSD-3-Clause */
/* Join the rulesets of several nft tables. [filter] */
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"

/* Append n entries to an array of `have` entries. Aborts if out of memory. Never NULL. */
static void *
array_append(void *to, uint32_t have, const void *from, uint32_t n, size_t size)
{
	to = realloc(to, ((size_t)have + n + 1) * size);
	if (to == NULL)
		/* out of memory: the list is no longer than those of the parts together */
		abort();
	if (n > 0)
		memcpy((uint8_t *)to + have * size, from, n * size);
	return to;
}

/* Add `n_chain` to the number of the chain that an element of a verdict map names. */
static void
element_move(struct ruleset_element *e, uint32_t n_chain)
{
	if (e != NULL && e->chain != RULESET_NONE)
		e->chain += n_chain;
}

/*
 * Add to all numbers in ruleset `r` the counts of `to`, the ruleset to which `r` is
 * appended.
 */
static void
numbers_move(struct ruleset *r, const struct ruleset *to)
{
	for (uint32_t i = 0; i < r->n_chain; i++)
		r->chain[i].rule += to->n_rule;
	for (uint32_t i = 0; i < r->n_base; i++)
		r->base[i] += to->n_chain;
	for (uint32_t i = 0; i < r->n_rule; i++) {
		r->rule[i].op += to->n_op;
		r->rule[i].chain += to->n_chain;
	}
	for (uint32_t i = 0; i < r->n_op; i++) {
		struct ruleset_op *op = &r->op[i];

		if (op->kind == OP_LOOKUP)
			op->set += to->n_set;
		else if (op->kind == OP_VERDICT && op->verdict.chain != RULESET_NONE)
			op->verdict.chain += to->n_chain;
	}
	for (uint32_t i = 0; i < r->n_set; i++) {
		struct ruleset_content *c =
			atomic_load_explicit(&r->set[i].content, memory_order_relaxed);

		if (!r->set[i].has_verdicts)
			continue;
		for (uint32_t k = 0; k < c->n; k++)
			element_move(&c->element[k], to->n_chain);
		element_move(r->set[i].other, to->n_chain);
	}
}

/* Append the base chains by priority, after base chains of the same priority. */
static void
bases_append(struct ruleset *to, const struct ruleset *r)
{
	to->base = array_append(to->base, to->n_base, NULL, 0, sizeof(*to->base));
	for (uint32_t i = 0; i < r->n_base; i++) {
		int32_t priority = to->chain[r->base[i]].priority;
		uint32_t k = to->n_base;

		to->base = array_append(to->base, to->n_base, &r->base[i], 1,
					sizeof(*to->base));
		for (; k > 0 && to->chain[to->base[k - 1]].priority > priority; k--)
			to->base[k] = to->base[k - 1];
		to->base[k] = r->base[i];
		to->n_base++;
	}
}

/* Move all contents of ruleset `r` to the end of `to`, and free `r`. */
static void
ruleset_append(struct ruleset *to, struct ruleset *r)
{
	numbers_move(r, to);
	to->chain = array_append(to->chain, to->n_chain, r->chain, r->n_chain,
				 sizeof(*to->chain));
	to->rule =
		array_append(to->rule, to->n_rule, r->rule, r->n_rule, sizeof(*to->rule));
	to->op = array_append(to->op, to->n_op, r->op, r->n_op, sizeof(*to->op));
	to->set = array_append(to->set, to->n_set, r->set, r->n_set, sizeof(*to->set));
	to->stateful = array_append(to->stateful, to->n_stateful, r->stateful,
				    r->n_stateful, sizeof(*to->stateful));
	bases_append(to, r);
	to->n_chain += r->n_chain;
	to->n_rule += r->n_rule;
	to->n_op += r->n_op;
	to->n_set += r->n_set;
	to->n_stateful += r->n_stateful;
	to->asks_back |= r->asks_back;
	to->logs |= r->logs;
	r->n_chain = r->n_rule = r->n_op = r->n_set = r->n_stateful = 0;
	ruleset_free(r);
}

struct ruleset *
filter_merge(struct ruleset **part, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		ruleset_append(part[0], part[i]);
	return part[0];
}
