/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept: counters and limits outlive a ruleset as long as the kernel has their rule or
 * their named object, even if no packet can reach the rule: because no rule jumps to its
 * chain, or because the table is dormant. In a table, no rule has the handle of a named
 * object, because the kernel takes both from one counter. Newer kernels (6.18) give a
 * rule the handle of the rule that it replaces, so a rule keeps its state only if it also
 * has the same content. [filter]
 */
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "filter/impl.h"
#include "netlink/attributes.h"

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

struct ruleset *
kept_copy(const struct ruleset *old)
{
	struct ruleset *r;

	if (old == NULL || old->n_rule + old->n_stateful == 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r != NULL)
		r->stateful = malloc(((size_t)old->n_rule + old->n_stateful) *
				     sizeof(*r->stateful));
	if (r == NULL || r->stateful == NULL)
		abort(); /* out of memory: each rule needs only some octets */
	for (uint32_t i = 0; i < old->n_rule; i++)
		r->stateful[r->n_stateful++] = (struct ruleset_stateful){
			old->chain[old->rule[i].chain].table_handle, old->rule[i].handle,
			old->rule[i].state};
	for (uint32_t i = 0; i < old->n_stateful; i++)
		r->stateful[r->n_stateful++] = old->stateful[i];
	for (uint32_t i = 0; i < r->n_stateful; i++)
		r->stateful[i].state->n_used++;
	return r;
}

/* --- the content of a rule ---------------------------------------------------------- */

static uint32_t
attr_mix(uint32_t content, const struct nlattr *a)
{
	return a == NULL ? content
			 : fnv1a(content, (const uint8_t *)a + MNL_ATTR_HDRLEN,
				 a->nla_len - (size_t)MNL_ATTR_HDRLEN);
}

/*
 * Mix in a verdict. A jump has the handle of its chain, because the chain may be renamed.
 */
static uint32_t
verdict_mix(const struct build *b, uint32_t content, const struct nlattr *verdict)
{
	const struct raw_chain *c =
		build_chain_find(b, attr_string(attr_find_in(verdict, NFTA_VERDICT_CHAIN)));

	content = attr_mix(content, attr_find_in(verdict, NFTA_VERDICT_CODE));
	return c == NULL ? content : fnv1a(content, &c->handle, sizeof(c->handle));
}

/*
 * Mix in an expression, but not the values of a counter: they change while the rule
 * stays.
 */
static uint32_t
expression_mix(const struct build *b, uint32_t content, const struct nlattr *expr)
{
	const struct nlattr *name = attr_find_in(expr, NFTA_EXPR_NAME);
	const struct nlattr *data = attr_find_in(expr, NFTA_EXPR_DATA);
	const struct nlattr *verdict =
		attr_find_in(attr_find_in(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	const char *text = attr_string(name);

	content = attr_mix(content, name);
	if (text != NULL && strcmp(text, "counter") == 0)
		return content;
	if (text != NULL && strcmp(text, "immediate") == 0 && verdict != NULL)
		return verdict_mix(b, content, verdict);
	return attr_mix(content, data);
}

uint32_t
kept_content(const struct build *b, const struct nlmsghdr *rule)
{
	const struct nlattr *list = message_attr(rule, NFTA_RULE_EXPRESSIONS);
	const uint8_t *at = list == NULL ? NULL : (const uint8_t *)list + MNL_ATTR_HDRLEN;
	size_t left = list == NULL ? 0 : list->nla_len - MNL_ATTR_HDRLEN;
	uint32_t content = attr_mix(FNV1A_BEGIN, message_attr(rule, NFTA_RULE_USERDATA));

	while (left >= MNL_ATTR_HDRLEN) {
		const struct nlattr *expr = (const struct nlattr *)at;
		size_t step = MNL_ALIGN(expr->nla_len);

		if (expr->nla_len < MNL_ATTR_HDRLEN || expr->nla_len > left)
			break;
		content = expression_mix(b, content, expr);
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return content;
}

/* --- states ------------------------------------------------------------------------- */

static struct kept *
kept_of(const struct build *b, uint64_t handle)
{
	struct kept key = {.handle = handle};

	return b->n_kept == 0
		       ? NULL
		       : bsearch(&key, b->kept, b->n_kept, sizeof(key), handle_compare);
}

struct ruleset_state *
kept_take(const struct build *b, uint64_t handle, uint32_t content, unsigned int n_limit)
{
	struct kept *k = kept_of(b, handle);

	if (k == NULL || k->state->content != content || k->state->n_limit != n_limit)
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

/*
 * Keep the state of a handle, unless the ruleset has it. `rule`: the message of the rule;
 * NULL: a named object.
 */
static void
handle_keep(struct build *b, uint64_t handle, const struct nlmsghdr *rule)
{
	struct kept *k = kept_of(b, handle);

	if (k == NULL || k->taken)
		return;
	if (k->state->content != (rule == NULL ? 0 : kept_content(b, rule)))
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
			handle_keep(b, handle, b->rule[i].nlh);
	for (uint32_t i = 0; i < b->n_object && b->n_kept > 0; i++)
		handle_keep(b, b->object[i].handle, NULL);
}

void
kept_untake(struct build *b)
{
	for (uint32_t i = 0; i < b->n_kept; i++)
		b->kept[i].taken = false;
}
