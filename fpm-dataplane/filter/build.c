/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build a ruleset from the messages of one generation. Only chains that a forwarded packet
 * can reach are built; the content of other chains does not matter. The messages are not
 * trusted. [filter]
 */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "filter/impl.h"
#include "netlink/attributes.h"

/*
 * Return true if a message is about the table that is built. `attr` has the table's name.
 */
static bool
message_is_ours(const struct build *b, const struct nlmsghdr *nlh, unsigned int attr)
{
	return filter_table_of(b->conf->table, 1, nlh, attr) != NULL;
}

/* --- messages ----------------------------------------------------------------------- */

static void
note_chain(struct build *b, const struct nlmsghdr *nlh)
{
	const struct nlattr *hook = message_attr(nlh, NFTA_CHAIN_HOOK);
	uint32_t policy = NF_ACCEPT, priority = 0;
	struct raw_chain c = {.number = RULESET_NONE};

	if (!message_is_ours(b, nlh, NFTA_CHAIN_TABLE))
		return;
	c.name = attr_string(message_attr(nlh, NFTA_CHAIN_NAME));
	c.is_base = hook != NULL;
	attr_text(message_attr(nlh, NFTA_CHAIN_TYPE), c.type, sizeof(c.type));
	if (c.name == NULL ||
	    attr_be64(message_attr(nlh, NFTA_CHAIN_HANDLE), &c.handle) < 0 ||
	    (hook != NULL &&
	     (attr_be32(attr_find_in(hook, NFTA_HOOK_HOOKNUM), &c.hook) < 0 ||
	      attr_be32(attr_find_in(hook, NFTA_HOOK_PRIORITY), &priority) < 0))) {
		build_fail(b, "a chain of the kernel is malformed");
		return;
	}
	(void)attr_be32(message_attr(nlh, NFTA_CHAIN_POLICY), &policy);
	c.drops = policy != NF_ACCEPT;
	c.priority = (int32_t)priority;
	b->chain = build_room(b->chain, b->n_chain, &b->room_chain, sizeof(*b->chain));
	b->chain[b->n_chain++] = c;
}

static void
note_rule(struct build *b, const struct nlmsghdr *nlh)
{
	struct raw_chain *c;

	if (!message_is_ours(b, nlh, NFTA_RULE_TABLE))
		return;
	c = build_chain_find(b, attr_string(message_attr(nlh, NFTA_RULE_CHAIN)));
	if (c == NULL) {
		build_fail(b, "a rule of the kernel is of no chain");
		return;
	}
	b->rule = build_room(b->rule, b->n_rule, &b->room_rule, sizeof(*b->rule));
	b->rule[b->n_rule] = (struct raw_rule){nlh, (uint32_t)(c - b->chain), b->n_rule};
	b->n_rule++;
}

static int
rule_compare(const void *a, const void *b)
{
	const struct raw_rule *x = a, *y = b;

	if (x->chain != y->chain)
		return x->chain < y->chain ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

static void
note_object(struct build *b, const struct nlmsghdr *nlh)
{
	struct raw_object o = {.number = RULESET_NONE};

	if (!message_is_ours(b, nlh, NFTA_OBJ_TABLE))
		return;
	o.name = attr_string(message_attr(nlh, NFTA_OBJ_NAME));
	o.data = message_attr(nlh, NFTA_OBJ_DATA);
	(void)attr_be64(message_attr(nlh, NFTA_OBJ_HANDLE), &o.handle);
	if (o.name == NULL || attr_be32(message_attr(nlh, NFTA_OBJ_TYPE), &o.type) < 0)
		return; /* the build fails if a rule names the object */
	b->object = build_room(b->object, b->n_object, &b->room_object, sizeof(*b->object));
	b->object[b->n_object++] = o;
}

static void
on_chain(const struct nlmsghdr *nlh, void *ctx)
{
	if ((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWCHAIN)
		note_chain(ctx, nlh);
}

static void
on_other(const struct nlmsghdr *nlh, void *ctx)
{
	struct build *b = ctx;

	switch (nlh->nlmsg_type & 0xff) {
	case NFT_MSG_NEWRULE:
		note_rule(b, nlh);
		break;
	case NFT_MSG_NEWSET:
		if (message_is_ours(b, nlh, NFTA_SET_TABLE))
			build_set_note(b, nlh);
		break;
	case NFT_MSG_NEWOBJ:
		note_object(b, nlh);
		break;
	default:
		break;
	}
}

/* Note the messages of elements of a set. They follow the message of the set. */
static void
on_elements(const struct nlmsghdr *nlh, void *ctx)
{
	struct build *b = ctx;
	const char *name;

	if ((nlh->nlmsg_type & 0xff) != NFT_MSG_NEWSETELEM ||
	    !message_is_ours(b, nlh, NFTA_SET_ELEM_LIST_TABLE))
		return;
	name = attr_string(message_attr(nlh, NFTA_SET_ELEM_LIST_SET));
	if (name == NULL)
		return;
	/*
	 * The messages have the order of the sets, and most sets have one message: begin
	 * the search at the set whose index is the number of this message.
	 */
	for (uint32_t k = 0; k < b->n_set; k++) {
		struct raw_set *s = &b->set[(b->n_elements + k) % b->n_set];

		if (strcmp(s->name, name) != 0)
			continue;
		b->elements = build_room(b->elements, b->n_elements, &b->room_elements,
					 sizeof(*b->elements));
		b->elements[b->n_elements] = (struct raw_elements){nlh, s->first};
		s->first = b->n_elements++;
		return;
	}
}

/* --- rules -------------------------------------------------------------------------- */

/*
 * Copy the comment of a rule from a list of (type, length, octets); a comment has type 0.
 */
static void
comment_find(const struct nlattr *data, char *out, size_t size)
{
	const uint8_t *at = data == NULL ? NULL : (const uint8_t *)data + MNL_ATTR_HDRLEN;
	size_t left = data == NULL ? 0 : data->nla_len - MNL_ATTR_HDRLEN;

	out[0] = '\0';
	while (left >= 2 && left - 2 >= at[1]) {
		if (at[0] == 0 && at[1] > 0) {
			size_t n = strnlen((const char *)at + 2, at[1]);

			n = n < size ? n : size - 1;
			memcpy(out, at + 2, n);
			out[n] = '\0';
			return;
		}
		left -= 2u + at[1];
		at += 2 + at[1];
	}
}

/* Give a rule its state: the state that it had, or a new state. */
static void
rule_state(struct build *b, const struct nlmsghdr *nlh, struct ruleset_rule *rule)
{
	uint32_t content = kept_content(b, nlh);
	unsigned int n = 0;

	rule->state = kept_take(b, rule->handle, content, b->n_limit);
	if (rule->state == NULL)
		rule->state = build_state_new(b, b->limit, b->n_limit);
	rule->state->content = content;
	rule->state->n_used++;
	for (uint32_t i = 0; i < rule->n_op; i++) {
		struct ruleset_op *op = &b->r->op[rule->op + i];

		if (op->kind == OP_LIMIT && op->limit == NULL)
			op->limit = &rule->state->limit[n++];
	}
}

static int
rule_build(struct build *b, const struct nlmsghdr *nlh, struct ruleset_rule *rule)
{
	const struct nlattr *list = message_attr(nlh, NFTA_RULE_EXPRESSIONS);
	const uint8_t *at = list == NULL ? NULL : (const uint8_t *)list + MNL_ATTR_HDRLEN;
	size_t left = list == NULL ? 0 : list->nla_len - MNL_ATTR_HDRLEN;
	char comment[FILTER_NAME];

	comment_find(message_attr(nlh, NFTA_RULE_USERDATA), comment, sizeof(comment));
	log_escape_name(comment, b->at_comment, sizeof(b->at_comment));
	if (attr_be64(message_attr(nlh, NFTA_RULE_HANDLE), &rule->handle) < 0)
		return build_fail(b, "a rule has no handle");
	b->at_handle = rule->handle;
	b->n_limit = 0;
	rule->op = b->r->n_op;
	while (left >= MNL_ATTR_HDRLEN) {
		const struct nlattr *expr = (const struct nlattr *)at;
		size_t step = MNL_ALIGN(expr->nla_len);

		if (expr->nla_len < MNL_ATTR_HDRLEN || expr->nla_len > left)
			return build_fail(b, "its expressions are malformed");
		if (build_expression(b, expr, rule) < 0)
			return build_fail(b, "an expression is malformed");
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	rule->n_op = b->r->n_op - rule->op;
	if (comment[0] != '\0')
		rule->comment = strdup(comment);
	rule_state(b, nlh, rule);
	return 0;
}

/* Build the rules of a chain. This may reach further chains. */
static int
chain_build(struct build *b, uint32_t number)
{
	const struct raw_chain *raw = &b->chain[b->reached[number]];
	struct ruleset *r = b->r;

	r->chain[number].rule = r->n_rule;
	b->at_chain = raw->name;
	for (uint32_t i = 0; i < raw->n_rule; i++) {
		struct ruleset_rule rule = {.chain = number};

		if (rule_build(b, b->rule[raw->first + i].nlh, &rule) < 0)
			return -1;
		r->rule[r->n_rule++] = rule;
		r->chain[number].n_rule++;
	}
	b->at_chain = NULL;
	return 0;
}

/* Properties of the chains to which an operation leads: the largest value of each. */
struct below {
	uint8_t depth;
	uint64_t passes;
};

static int chain_walk(struct build *b, uint32_t number, unsigned int above);

/* Walk a chain to which an operation leads. */
static int
target_walk(struct build *b, uint32_t number, unsigned int above, struct below *most)
{
	const struct raw_chain *raw = &b->chain[b->reached[number]];

	if (chain_walk(b, number, above + 1) < 0)
		return -1;
	most->depth = raw->depth > most->depth ? raw->depth : most->depth;
	most->passes = raw->passes > most->passes ? raw->passes : most->passes;
	return 0;
}

static int
op_walk(struct build *b, const struct ruleset_op *op, unsigned int above,
	struct below *most)
{
	const struct ruleset_content *c;

	*most = (struct below){0};
	if (op->kind == OP_VERDICT && op->verdict.chain != RULESET_NONE)
		return target_walk(b, op->verdict.chain, above, most);
	if (op->kind != OP_LOOKUP || !b->r->set[op->set].has_verdicts)
		return 0;
	/* A map is never a Poptrie. */
	c = atomic_load_explicit(&b->r->set[op->set].content, memory_order_relaxed);
	for (uint32_t i = 0; i <= c->n; i++) {
		const struct ruleset_element *e =
			i < c->n ? &c->element[i] : b->r->set[op->set].other;

		if (e == NULL || e->chain == RULESET_NONE)
			continue;
		if (target_walk(b, e->chain, above, most) < 0)
			return -1;
	}
	return 0;
}

/*
 * Refuse chains with a loop, or with too many jumps in a row. The kernel refuses them, too.
 * Refuse chains that jump to each other so often that one packet would keep a forwarder
 * busy for seconds.
 */
static int
chain_walk(struct build *b, uint32_t number, unsigned int above)
{
	struct raw_chain *raw = &b->chain[b->reached[number]];
	const struct ruleset_chain *c = &b->r->chain[number];
	struct below most;
	uint8_t depth = 0;

	if (raw->in_walk)
		return build_fail(b, "chain %.64s leads back to itself", raw->name);
	if (above + (raw->depth > 0 ? raw->depth : 1u) > RULESET_JUMPS_MAX + 1)
		return build_fail(b, "chain %.64s is more than %d chains away", raw->name,
				  RULESET_JUMPS_MAX);
	if (raw->depth > 0)
		return 0;
	raw->in_walk = true;
	raw->passes = c->n_rule;
	for (uint32_t i = 0; i < c->n_rule; i++) {
		const struct ruleset_rule *rule = &b->r->rule[c->rule + i];

		for (uint32_t k = 0; k < rule->n_op; k++) {
			if (op_walk(b, &b->r->op[rule->op + k], above, &most) < 0)
				return -1;
			depth = most.depth > depth ? most.depth : depth;
			raw->passes += most.passes;
		}
	}
	if (raw->passes > b->r->n_rule + RULESET_PASSES_MAX)
		return build_fail(b,
				  "the jumps of chain %.64s lead a packet through more "
				  "than %d rules",
				  raw->name, RULESET_PASSES_MAX);
	raw->in_walk = false;
	raw->depth = (uint8_t)(depth + 1);
	return 0;
}

/*
 * Reach the base chains at the hook forward, in the order of the kernel: by priority, and
 * with equal priority the newest chain first.
 */
static int
bases_reach(struct build *b)
{
	struct ruleset *r = b->r;

	for (uint32_t i = 0; i < b->n_chain; i++) {
		struct raw_chain *c = &b->chain[i];
		uint32_t k;

		if (!c->is_base || c->hook != NF_INET_FORWARD)
			continue;
		if (strcmp(c->type, "filter") != 0)
			return build_fail(b, "chain %.64s has the type %s; expected filter",
					  c->name, c->type);
		(void)build_chain_reach(b, c);
		for (k = r->n_base; k > 0; k--) {
			const struct ruleset_chain *before = &r->chain[r->base[k - 1]];

			if (before->priority < c->priority ||
			    (before->priority == c->priority && before->handle > c->handle))
				break;
			r->base[k] = r->base[k - 1];
		}
		r->base[k] = c->number;
		r->n_base++;
	}
	return 0;
}

static void
rules_sort(struct build *b)
{
	if (b->n_rule == 0)
		return;
	qsort(b->rule, b->n_rule, sizeof(*b->rule), rule_compare);
	for (uint32_t i = 0; i < b->n_rule; i++) {
		struct raw_chain *c = &b->chain[b->rule[i].chain];

		if (c->n_rule++ == 0)
			c->first = i;
	}
}

static int
ruleset_build(struct build *b)
{
	struct ruleset *r = b->r;

	r->chain = calloc(b->n_chain + 1, sizeof(*r->chain));
	r->base = calloc(b->n_chain + 1, sizeof(*r->base));
	r->rule = calloc(b->n_rule + 1, sizeof(*r->rule));
	b->reached = calloc(b->n_chain + 1, sizeof(*b->reached));
	r->set = calloc(b->n_set + 1, sizeof(*r->set));
	if (r->chain == NULL || r->base == NULL || r->rule == NULL || b->reached == NULL ||
	    r->set == NULL)
		return build_fail(b, "out of memory");
	if (bases_reach(b) < 0)
		return -1;
	for (uint32_t i = 0; i < r->n_chain; i++) /* chain_build() reaches more */
		if (chain_build(b, i) < 0)
			return -1;
	for (uint32_t i = 0; i < r->n_base; i++)
		if (chain_walk(b, r->base[i], 0) < 0)
			return -1;
	return 0;
}

/* Begin an empty ruleset. */
static void
ruleset_begin(struct build *b, const struct filter_dump *dump)
{
	b->r = calloc(1, sizeof(*b->r));
	if (b->r == NULL)
		abort();
	/*
	 * Allocate the array even if it stays empty: rules without operations point to its
	 * end.
	 */
	b->r->op = build_room(NULL, 0, &b->room_op, sizeof(*b->r->op));
	b->r->generation = dump->generation;
	b->failed = false;
	b->why[0] = '\0';
}

/*
 * Take the chains of a dormant table off their hooks. No packet meets its rules, but the
 * rules and their counters stay, as in Linux. If a rule is not supported, make a ruleset
 * without rules that keeps the counters.
 */
static void
ruleset_rest(struct build *b, const struct filter_dump *dump)
{
	if (b->failed) {
		log_warn("filter: dormant table has an unsupported rule table=\"%s\" "
			 "reason=\"%s\"",
			 b->conf->table->name, b->why);
		ruleset_free_later(b->r, b->conf->reclaim);
		b->room_op = b->room_stateful = 0;
		kept_untake(b);
		ruleset_begin(b, dump);
	}
	b->r->n_base = 0;
	for (uint32_t i = 0; i < b->r->n_chain; i++)
		b->r->chain[i].dormant = true;
}

struct ruleset *
filter_build(const struct filter_dump *dump, const struct filter_build_conf *conf,
	     char why[FILTER_WHY])
{
	struct build b = {.conf = conf,
			  .why = why,
			  .table_handle = dump->table_handle,
			  .old = conf->old};

	ruleset_begin(&b, dump);
	kept_find(&b);
	filter_dump_each(dump, on_chain, &b);
	if (b.n_chain > 0)
		qsort(b.chain, b.n_chain, sizeof(*b.chain), build_chain_compare);
	filter_dump_each(dump, on_other, &b);
	filter_dump_each(dump, on_elements, &b);
	rules_sort(&b);
	if (!b.failed)
		(void)ruleset_build(&b);
	if (dump->dormant)
		ruleset_rest(&b, dump);
	if (!b.failed)
		kept_store(&b);
	free(b.chain);
	free(b.rule);
	free(b.set);
	free(b.elements);
	free(b.object);
	free(b.reached);
	free(b.kept);
	if (!b.failed)
		return b.r;
	ruleset_free_later(b.r, conf->reclaim);
	return NULL;
}
