/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build a ruleset from the messages of one generation. Only chains that a forwarded packet
 * can reach are built; the content of other chains does not matter. The messages are not
 * trusted. [filter]
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "filter/impl.h"
#include "netlink/attributes.h"

#define ROOM_MAX 4e18 /* ticks of a bucket: years, but far below the end of the clock */

#define BURST_DEFAULT 5 /* packets, as in the kernel */

int
build_fail(struct build *b, const char *format, ...)
{
	char what[FILTER_WHY];
	va_list ap;
	int n;

	if (b->failed)
		return -1;
	b->failed = true;
	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (b->at_chain == NULL) {
		snprintf(b->why, FILTER_WHY, "%s", what);
		return -1;
	}
	n = snprintf(b->why, FILTER_WHY, "chain %.80s%.64s, handle %llu",
		     b->conf->table->prefix, b->at_chain, (unsigned long long)b->at_handle);
	if (b->at_comment[0] != '\0' && n < FILTER_WHY)
		n += snprintf(b->why + n, (size_t)(FILTER_WHY - n), " (%s)", b->at_comment);
	if (n < FILTER_WHY)
		snprintf(b->why + n, (size_t)(FILTER_WHY - n), ": %s", what);
	return -1;
}

void *
build_room(void *array, uint32_t n, uint32_t *room, size_t size)
{
	if (n < *room)
		return array;
	*room = *room == 0 ? 16 : *room * 2;
	array = realloc(array, *room * size);
	if (array == NULL)
		abort(); /* some octets a rule */
	return array;
}

/* --- attributes --------------------------------------------------------------------- */

const struct nlattr *
message_attr(const struct nlmsghdr *nlh, unsigned int type)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh), head = sizeof(struct nfgenmsg);

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN || have < head)
		return NULL;
	return attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) + head, have - head,
			  type);
}

int
attr_be32(const struct nlattr *a, uint32_t *out)
{
	uint32_t net;

	if (a == NULL || attr_copy(a, &net, sizeof(net)) < 0)
		return -1;
	*out = ntohl(net);
	return 0;
}

int
attr_be64(const struct nlattr *a, uint64_t *out)
{
	uint64_t net;

	if (a == NULL || attr_copy(a, &net, sizeof(net)) < 0)
		return -1;
	*out = be64toh(net);
	return 0;
}

const uint8_t *
attr_value(const struct nlattr *data, unsigned int *len)
{
	const struct nlattr *value = attr_find_in(data, NFTA_DATA_VALUE);

	if (value == NULL || value->nla_len == MNL_ATTR_HDRLEN)
		return NULL;
	*len = value->nla_len - MNL_ATTR_HDRLEN;
	return (const uint8_t *)value + MNL_ATTR_HDRLEN;
}

/* Return the text of an attribute in the dump, which must have its terminator; or NULL. */
static const char *
attr_string(const struct nlattr *a)
{
	const char *text = a == NULL ? NULL : (const char *)a + MNL_ATTR_HDRLEN;

	if (text == NULL || a->nla_len == MNL_ATTR_HDRLEN ||
	    text[a->nla_len - MNL_ATTR_HDRLEN - 1] != '\0')
		return NULL;
	return text;
}

const struct filter_table *
filter_table_of(const struct filter_table *table, unsigned int n_table,
		const struct nlmsghdr *nlh, unsigned int attr)
{
	const char *name = attr_string(message_attr(nlh, attr));
	const struct nfgenmsg *nf = mnl_nlmsg_get_payload(nlh);

	for (unsigned int i = 0; name != NULL && i < n_table; i++)
		if (strcmp(name, table[i].name) == 0 && nf->nfgen_family == table[i].family)
			return &table[i];
	return NULL;
}

/* Return true if a message is of the table; `attr` is its attribute with the name. */
static bool
message_is_ours(const struct build *b, const struct nlmsghdr *nlh, unsigned int attr)
{
	return filter_table_of(b->conf->table, 1, nlh, attr) != NULL;
}

/* --- state -------------------------------------------------------------------------- */

struct ruleset_state *
build_state_new(const struct build *b, const struct ruleset_limit *limit,
		unsigned int n_limit)
{
	struct ruleset_state *s = calloc(1, sizeof(*s));
	size_t bytes = b->conf->n_thread * sizeof(*s->count);

	if (s != NULL && posix_memalign((void **)&s->count, 64, bytes) != 0)
		s->count = NULL;
	if (s != NULL && n_limit > 0)
		s->limit = malloc(n_limit * sizeof(*limit));
	if (s == NULL || s->count == NULL || (n_limit > 0 && s->limit == NULL))
		abort(); /* some hundred octets a rule */
	memset(s->count, 0, bytes);
	for (unsigned int i = 0; i < n_limit; i++)
		s->limit[i] = limit[i];
	s->n_limit = n_limit;
	return s;
}

static int
handle_compare(const void *a, const void *b)
{
	const struct ruleset_rule *const *x = a, *const *y = b;

	return (*x)->handle < (*y)->handle ? -1 : (*x)->handle > (*y)->handle;
}

/* Return the state that a rule had in the ruleset before; NULL: it is a new rule. */
static struct ruleset_state *
state_before(const struct build *b, uint64_t handle)
{
	uint32_t from = 0, to = b->n_old;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (b->old_handle[mid] < handle)
			from = mid + 1;
		else
			to = mid;
	}
	if (from == b->n_old || b->old_handle[from] != handle)
		return NULL;
	return b->old_state[from];
}

/* Sort the rules that the table had in the ruleset before by their handles. */
static void
old_sort(struct build *b)
{
	const struct ruleset *old = b->old;
	const struct ruleset_rule **rule;

	if (old == NULL || old->n_rule == 0)
		return;
	rule = malloc(old->n_rule * sizeof(*rule));
	b->old_state = malloc(old->n_rule * sizeof(*b->old_state));
	b->old_handle = malloc(old->n_rule * sizeof(*b->old_handle));
	if (rule == NULL || b->old_state == NULL || b->old_handle == NULL)
		abort();
	/* A table that is created again numbers its rules from the beginning. */
	for (uint32_t i = 0; i < old->n_rule; i++)
		if (old->chain[old->rule[i].chain].table_handle == b->table_handle)
			rule[b->n_old++] = &old->rule[i];
	qsort(rule, b->n_old, sizeof(*rule), handle_compare);
	for (uint32_t i = 0; i < b->n_old; i++) {
		b->old_state[i] = rule[i]->state;
		b->old_handle[i] = rule[i]->handle;
	}
	free(rule);
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

static int
chain_compare(const void *a, const void *b)
{
	const struct raw_chain *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Return the chain of a name, after the chains are sorted; NULL: there is none. */
static struct raw_chain *
chain_find(struct build *b, const char *name)
{
	struct raw_chain key = {.name = name};

	return name == NULL || b->n_chain == 0
		       ? NULL
		       : bsearch(&key, b->chain, b->n_chain, sizeof(key), chain_compare);
}

static void
note_rule(struct build *b, const struct nlmsghdr *nlh)
{
	struct raw_chain *c;

	if (!message_is_ours(b, nlh, NFTA_RULE_TABLE))
		return;
	c = chain_find(b, attr_string(message_attr(nlh, NFTA_RULE_CHAIN)));
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
	if (o.name == NULL || attr_be32(message_attr(nlh, NFTA_OBJ_TYPE), &o.type) < 0)
		return; /* the build fails if a rule names it */
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
	/* The messages of one set are consecutive: begin with the last set. */
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

/* --- chains ------------------------------------------------------------------------- */

static uint32_t
chain_reach(struct build *b, struct raw_chain *c)
{
	const struct filter_table *table = b->conf->table;

	if (c->number != RULESET_NONE)
		return c->number;
	c->number = b->r->n_chain++;
	b->reached[c->number] = (uint32_t)(c - b->chain);
	b->r->chain[c->number] =
		(struct ruleset_chain){.is_base = c->is_base,
				       .drops = c->drops,
				       .family = table->family == NFPROTO_IPV4   ? 4
						 : table->family == NFPROTO_IPV6 ? 6
										 : 0,
				       .priority = c->priority,
				       .table_handle = b->table_handle,
				       .handle = c->handle};
	if (asprintf(&b->r->chain[c->number].name, "%s%s", table->prefix, c->name) < 0)
		abort();
	return c->number;
}

int
build_chain_number(struct build *b, const struct nlattr *name, uint32_t *number)
{
	struct raw_chain *c = chain_find(b, attr_string(name));

	if (c == NULL || c->is_base)
		return build_fail(b, "a verdict names no chain");
	*number = chain_reach(b, c);
	return 0;
}

int
build_verdict(struct build *b, const struct nlattr *data, uint8_t *code, uint32_t *chain)
{
	const struct nlattr *verdict = attr_find_in(data, NFTA_DATA_VERDICT);
	uint32_t said;

	*chain = RULESET_NONE;
	if (attr_be32(attr_find_in(verdict, NFTA_VERDICT_CODE), &said) < 0)
		return build_fail(b, "a verdict is malformed");
	switch ((int)said) {
	case NF_ACCEPT:
		*code = CODE_ACCEPT;
		return 0;
	case NF_DROP:
		*code = CODE_DROP;
		return 0;
	case NFT_CONTINUE:
		*code = CODE_CONTINUE;
		return 0;
	case NFT_BREAK:
		*code = CODE_BREAK;
		return 0;
	case NFT_RETURN:
		*code = CODE_RETURN;
		return 0;
	case NFT_JUMP:
	case NFT_GOTO:
		*code = (int)said == NFT_JUMP ? CODE_JUMP : CODE_GOTO;
		return build_chain_number(b, attr_find_in(verdict, NFTA_VERDICT_CHAIN),
					  chain);
	default:
		return build_fail(b, "the verdict %s is not supported",
				  (said & 0xff) == NF_QUEUE ? "queue" : "of another kind");
	}
}

int
build_limit(struct build *b, const struct nlattr *data, struct ruleset_limit *limit)
{
	uint32_t burst = 0, type = NFT_LIMIT_PKTS, flags = 0;
	uint64_t rate, unit;
	double ticks, room;

	if (attr_be64(attr_find_in(data, NFTA_LIMIT_RATE), &rate) < 0 ||
	    attr_be64(attr_find_in(data, NFTA_LIMIT_UNIT), &unit) < 0 || rate == 0 ||
	    unit == 0)
		return build_fail(b, "a limit is malformed");
	(void)attr_be32(attr_find_in(data, NFTA_LIMIT_BURST), &burst);
	(void)attr_be32(attr_find_in(data, NFTA_LIMIT_TYPE), &type);
	(void)attr_be32(attr_find_in(data, NFTA_LIMIT_FLAGS), &flags);
	if (type != NFT_LIMIT_PKTS && type != NFT_LIMIT_PKT_BYTES)
		return build_fail(b, "a limit of another kind is not supported");
	ticks = (double)unit * b->conf->ticks_s / (double)rate;
	*limit = (struct ruleset_limit){.cost = ticks,
					.by_octets = type == NFT_LIMIT_PKT_BYTES,
					.over = (flags & NFT_LIMIT_F_INV) != 0};
	/*
	 * As in the kernel: a bucket of packets holds the burst; a bucket of octets holds
	 * one unit more.
	 */
	if (limit->by_octets)
		room = ticks * ((double)rate + burst);
	else
		room = ticks * (burst == 0 ? BURST_DEFAULT : burst);
	limit->room = room < ROOM_MAX ? (uint64_t)room : (uint64_t)ROOM_MAX;
	return 0;
}

/* --- rules -------------------------------------------------------------------------- */

/* Copy the comment of a rule: type 0 of the list of types, lengths and octets. */
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
rule_state(struct build *b, struct ruleset_rule *rule)
{
	unsigned int n = 0;

	rule->state = state_before(b, rule->handle);
	if (rule->state != NULL && rule->state->n_limit != b->n_limit)
		rule->state = NULL;
	if (rule->state == NULL)
		rule->state = build_state_new(b, b->limit, b->n_limit);
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
	rule_state(b, rule);
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

static int chain_walk(struct build *b, uint32_t number, unsigned int above);

static int
op_walk(struct build *b, const struct ruleset_op *op, unsigned int above, uint8_t *depth)
{
	const struct ruleset_content *c;
	uint32_t n = 0;

	if (op->kind == OP_VERDICT && op->verdict.chain != RULESET_NONE) {
		if (chain_walk(b, op->verdict.chain, above + 1) < 0)
			return -1;
		n = b->chain[b->reached[op->verdict.chain]].depth;
		*depth = n > *depth ? (uint8_t)n : *depth;
	}
	if (op->kind != OP_LOOKUP || !b->r->set[op->set].has_verdicts)
		return 0;
	/* A map is never a Poptrie. */
	c = atomic_load_explicit(&b->r->set[op->set].content, memory_order_relaxed);
	for (uint32_t i = 0; i <= c->n; i++) {
		const struct ruleset_element *e =
			i < c->n ? &c->element[i] : b->r->set[op->set].other;

		if (e == NULL || e->chain == RULESET_NONE)
			continue;
		if (chain_walk(b, e->chain, above + 1) < 0)
			return -1;
		n = b->chain[b->reached[e->chain]].depth;
		*depth = n > *depth ? (uint8_t)n : *depth;
	}
	return 0;
}

/*
 * Refuse chains with a loop, or with too many jumps in a row. The kernel refuses them, too.
 */
static int
chain_walk(struct build *b, uint32_t number, unsigned int above)
{
	struct raw_chain *raw = &b->chain[b->reached[number]];
	const struct ruleset_chain *c = &b->r->chain[number];
	uint8_t depth = 0;

	if (raw->in_walk)
		return build_fail(b, "chain %.64s leads back to itself", raw->name);
	if (above + (raw->depth > 0 ? raw->depth : 1u) > RULESET_JUMPS_MAX + 1)
		return build_fail(b, "chain %.64s is more than %d chains away", raw->name,
				  RULESET_JUMPS_MAX);
	if (raw->depth > 0)
		return 0;
	raw->in_walk = true;
	for (uint32_t i = 0; i < c->n_rule; i++) {
		const struct ruleset_rule *rule = &b->r->rule[c->rule + i];

		for (uint32_t k = 0; k < rule->n_op; k++)
			if (op_walk(b, &b->r->op[rule->op + k], above, &depth) < 0)
				return -1;
	}
	raw->in_walk = false;
	raw->depth = (uint8_t)(depth + 1);
	return 0;
}

/*
 * Reach the base chains at the hook forward, in the order of the kernel: by priority, and of
 * equal priority the newest first.
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
		(void)chain_reach(b, c);
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

struct ruleset *
filter_build(const struct filter_dump *dump, const struct filter_build_conf *conf,
	     char why[FILTER_WHY])
{
	struct build b = {.conf = conf,
			  .why = why,
			  .r = calloc(1, sizeof(*b.r)),
			  .table_handle = dump->table_handle,
			  .old = conf->old};

	why[0] = '\0';
	if (b.r == NULL)
		abort();
	/*
	 * Allocate the array even if it stays empty: rules without operations point to its
	 * end.
	 */
	b.r->op = build_room(NULL, 0, &b.room_op, sizeof(*b.r->op));
	b.r->generation = dump->generation;
	old_sort(&b);
	if (!dump->dormant) {
		filter_dump_each(dump, on_chain, &b);
		if (b.n_chain > 0)
			qsort(b.chain, b.n_chain, sizeof(*b.chain), chain_compare);
		filter_dump_each(dump, on_other, &b);
		filter_dump_each(dump, on_elements, &b);
		rules_sort(&b);
		if (!b.failed)
			(void)ruleset_build(&b);
	}
	free(b.chain);
	free(b.rule);
	free(b.set);
	free(b.elements);
	free(b.object);
	free(b.reached);
	free(b.old_state);
	free(b.old_handle);
	if (!b.failed)
		return b.r;
	ruleset_free_later(b.r, conf->reclaim);
	return NULL;
}
