/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part: parts of a ruleset that rules, expressions and sets have in common: the reason of a
 * refusal, chains, verdicts, limits, state. [filter]
 */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"
#include "netlink/attributes.h"

/* Largest number of ticks that a bucket holds: some years, and far below 2^64. */
#define ROOM_MAX 4e18

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
		abort(); /* out of memory, and a rule needs a few octets only */
	return array;
}

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
		abort(); /* out of memory for some hundred octets a rule */
	memset(s->count, 0, bytes);
	for (unsigned int i = 0; i < n_limit; i++)
		s->limit[i] = limit[i];
	s->n_limit = n_limit;
	return s;
}

int
build_chain_compare(const void *a, const void *b)
{
	const struct raw_chain *x = a, *y = b;

	return strcmp(x->name, y->name);
}

struct raw_chain *
build_chain_find(const struct build *b, const char *name)
{
	struct raw_chain key = {.name = name};

	return name == NULL || b->n_chain == 0 ? NULL
					       : bsearch(&key, b->chain, b->n_chain,
							 sizeof(key), build_chain_compare);
}

uint32_t
build_chain_reach(struct build *b, struct raw_chain *c)
{
	const struct filter_table *table = b->conf->table;

	if (c->number != RULESET_NONE)
		return c->number;
	c->number = b->r->n_chain++;
	b->reached[c->number] = (uint32_t)(c - b->chain);
	b->r->chain[c->number] =
		(struct ruleset_chain){.drops = c->drops,
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
	struct raw_chain *c = build_chain_find(b, attr_string(name));

	if (c == NULL || c->is_base)
		return build_fail(b, "a verdict names no chain");
	*number = build_chain_reach(b, c);
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
	 * the burst and the octets of one unit of time.
	 */
	if (limit->by_octets)
		room = ticks * ((double)rate + burst);
	else
		room = ticks * (burst == 0 ? BURST_DEFAULT : burst);
	limit->room = room < ROOM_MAX ? (uint64_t)room : (uint64_t)ROOM_MAX;
	return 0;
}
