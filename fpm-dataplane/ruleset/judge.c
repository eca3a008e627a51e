/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judge one packet by the operations of nf_tables, with the same results as in the kernel.
 * An operation that cannot be done (a port of a later fragment) ends its rule, and the next
 * rule follows. [RCU reader]
 */
#include <assert.h>
#include <string.h>

#include "base/counters.h"
#include "base/inet.h"
#include "ruleset/acl.h"
#include "ruleset/logged.h"
#include "ruleset/ruleset.h"

/* The state of a packet during its evaluation. */
struct judged {
	const struct ruleset *r;
	struct ruleset_packet *p;
	uint32_t word[RULESET_WORDS];
	uint8_t code;   /* enum ruleset_code */
	uint32_t chain; /* of a jump */
};

/* --- headers ------------------------------------------------------------------------ */

#define NEXT_HOP      0
#define NEXT_ROUTING  43
#define NEXT_FRAGMENT 44
#define NEXT_AUTH     51
#define NEXT_NONE     59
#define NEXT_DEST     60

static bool
next_is_extension(uint8_t next)
{
	return next == NEXT_HOP || next == NEXT_ROUTING || next == NEXT_FRAGMENT ||
	       next == NEXT_AUTH || next == NEXT_NONE || next == NEXT_DEST;
}

/*
 * Walk the headers of an IPv6 packet, as ipv6_find_hdr() of Linux does, to the header of
 * type `target` (-1: the upper layer). Returns the type of that header and sets *at to its
 * offset; -1: the packet does not have it, or a header is truncated. Sets *later if the
 * packet is a later fragment. For nf_tables an authentication header is the upper layer
 * (IP6_FH_F_AUTH).
 */
static int
ip6_walk(const struct ruleset_packet *p, int target, unsigned int *at, bool *later)
{
	uint8_t next = p->ip[6];
	unsigned int off = 40;

	*later = false;
	while (next != target) {
		unsigned int bytes;
		const uint8_t *h;

		if (!next_is_extension(next) || next == NEXT_NONE) {
			if (target >= 0)
				return -1;
			break;
		}
		if (next == NEXT_AUTH && target < 0)
			break;
		if (off + 2 > p->room)
			return -1;
		h = p->ip + off;
		if (next == NEXT_FRAGMENT) {
			if (off + 4 > p->room)
				return -1;
			if ((get_be16(h + 2) & 0xfff8) != 0) {
				if (target >= 0 ||
				    (next_is_extension(h[0]) && h[0] != NEXT_NONE))
					return -1;
				*later = true;
				*at = 0;
				return h[0];
			}
			bytes = 8;
		} else if (next == NEXT_AUTH) {
			bytes = (h[1] + 2u) * 4;
		} else {
			bytes = (h[1] + 1u) * 8;
		}
		next = h[0];
		off += bytes;
	}
	*at = off;
	return next;
}

void
ruleset_look(struct ruleset_packet *p)
{
	int next;

	p->looked = true;
	if (p->family == 4) {
		p->has_transport = true;
		p->l4proto = p->ip[9];
		p->transport = (p->ip[0] & 15u) * 4;
		p->later = (get_be16(p->ip + 6) & 0x1fff) != 0;
		return;
	}
	next = ip6_walk(p, -1, &p->transport, &p->later);
	p->has_transport = next >= 0;
	p->l4proto = (uint8_t)next;
}

/* --- loads -------------------------------------------------------------------------- */

/* Store `len` octets in registers. As in the kernel, zeros fill the last word. */
static void
word_store(struct judged *j, unsigned int to, const void *from, unsigned int len)
{
	if (len % 4 != 0)
		j->word[to + len / 4] = 0;
	memcpy(&j->word[to], from, len);
}

/*
 * Return true if the octets of the IP header are outside of the word that changes with the
 * hop: TTL, protocol and checksum of IPv4; length, next header and hop limit of IPv6.
 */
static inline bool
network_is_plain(const struct ruleset_packet *p, unsigned int at, unsigned int len)
{
	unsigned int from = p->family == 4 ? 8 : 4;

	return at >= from + 4 || at + len <= from;
}

/*
 * Copy octets of the IP header as the hook forward sees them: the hop count is one less.
 */
static void
network_copy(const struct ruleset_packet *p, unsigned int at, unsigned int len,
	     uint8_t *out)
{
	unsigned int from = p->family == 4 ? 8 : 4;
	uint8_t spent[4];
	uint32_t v;

	memcpy(out, p->ip + at, len);
	if (network_is_plain(p, at, len))
		return;
	v = p->family == 4 ? ip4_hop_spent(p->ip) : ip6_hop_spent(p->ip);
	memcpy(spent, &v, sizeof(spent));
	for (unsigned int i = 0; i < 4; i++)
		if (at <= from + i && from + i < at + len)
			out[from + i - at] = spent[i];
}

/* Load 1, 2 or 4 octets: the usual fields. */
static inline void
word_load(struct judged *j, unsigned int to, const uint8_t *from, unsigned int len)
{
	uint32_t word = 0;

	if (len == 4)
		memcpy(&word, from, 4);
	else if (len == 2)
		memcpy(&word, from, 2);
	else
		word = from[0]; /* little-endian: the first octet of the register */
	j->word[to] = word;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "registers are compared as numbers");

static bool
op_payload(struct judged *j, const struct ruleset_op *op)
{
	uint8_t octet[RULESET_KEY_MAX];
	unsigned int at = op->at;

	if (op->what == BASE_TRANSPORT) {
		if (!j->p->has_transport || j->p->later)
			return false;
		at += j->p->transport;
	}
	if (at + op->len > j->p->room)
		return false;
	if ((op->len == 4 || op->len == 2 || op->len == 1) &&
	    network_is_plain(j->p, at, op->len)) {
		word_load(j, op->to, j->p->ip + at, op->len);
		return true;
	}
	network_copy(j->p, at, op->len, octet);
	word_store(j, op->to, octet, op->len);
	return true;
}

static bool
op_exthdr(struct judged *j, const struct ruleset_op *op)
{
	unsigned int at = 0;
	bool later;
	int found;

	if (j->p->family != 6)
		return false;
	found = ip6_walk(j->p, op->what, &at, &later);
	if (op->flag != 0) {
		j->word[op->to] = 0;
		*(uint8_t *)&j->word[op->to] = found >= 0;
		return true;
	}
	if (found < 0 || at + op->at + op->len > j->p->room)
		return false;
	word_store(j, op->to, j->p->ip + at + op->at, op->len);
	return true;
}

static bool
op_meta(struct judged *j, const struct ruleset_op *op)
{
	const struct ruleset_packet *p = j->p;
	uint32_t *to = &j->word[op->to];
	uint8_t octet[2];

	switch ((enum ruleset_meta)op->what) {
	case META_LENGTH:
		*to = p->l3_bytes;
		return true;
	case META_PROTOCOL:
		put_be16(octet, p->family == 4 ? 0x0800 : 0x86dd);
		word_store(j, op->to, octet, 2);
		return true;
	case META_FAMILY:
		*to = p->family == 4 ? 2 : 10;
		return true;
	case META_L4PROTO:
		if (!p->has_transport)
			return false;
		*to = p->l4proto;
		return true;
	case META_IIF:
		*to = p->iif;
		return true;
	case META_OIF:
		*to = p->oif;
		return true;
	case META_IIFNAME:
		memcpy(to, p->iifname, 16);
		return true;
	case META_OIFNAME:
		memcpy(to, p->oifname, 16);
		return true;
	}
	return false;
}

/*
 * Check the route back to the source, as nft_fib_store_result() of Linux does for `exists`
 * and `missing`.
 */
static bool
op_fib(struct judged *j, const struct ruleset_op *op)
{
	enum ruleset_back back;

	if (j->p->back == NULL)
		return false;
	back = j->p->back(j->p, op->flag != 0);
	j->word[op->to] =
		back == RULESET_BACK_HERE || (op->flag == 0 && back == RULESET_BACK_OTHER);
	return true;
}

/* --- arithmetic --------------------------------------------------------------------- */

static void
op_mask(struct judged *j, const struct ruleset_op *op)
{
	for (unsigned int i = 0; i < (op->len + 3u) / 4; i++) {
		uint32_t mask, flip;

		memcpy(&mask, op->a + 4 * i, 4);
		memcpy(&flip, op->b + 4 * i, 4);
		j->word[op->to + i] = (j->word[op->from + i] & mask) ^ flip;
	}
}

/*
 * Shift the words as one long number whose first word is the highest, as the kernel does.
 */
static void
op_shift(struct judged *j, const struct ruleset_op *op)
{
	unsigned int n = (op->len + 3u) / 4;
	uint32_t carry = 0;

	for (unsigned int k = 0; k < n; k++) {
		unsigned int i = op->flag != 0 ? k : n - 1 - k;
		uint32_t word = j->word[op->from + i];

		if (op->flag != 0) {
			j->word[op->to + i] = carry | word >> op->at;
			carry = op->at == 0 ? 0 : word << (32 - op->at);
		} else {
			j->word[op->to + i] = word << op->at | carry;
			carry = op->at == 0 ? 0 : word >> (32 - op->at);
		}
	}
}

static void
op_swap(struct judged *j, const struct ruleset_op *op)
{
	uint8_t in[RULESET_VALUE_MAX], *to = (uint8_t *)&j->word[op->to];

	memcpy(in, &j->word[op->from], op->len);
	for (unsigned int i = 0; i + op->at <= op->len; i += op->at)
		for (unsigned int k = 0; k < op->at; k++)
			to[i + k] = in[i + op->at - 1 - k];
}

/* Compare for equality, in up to four octets: the usual case. */
static inline bool
word_equals(const struct judged *j, const struct ruleset_op *op)
{
	uint32_t value, mask = UINT32_MAX >> (32 - 8 * op->len);

	memcpy(&value, op->a, sizeof(value));
	return ((j->word[op->from] ^ value) & mask) == 0;
}

static bool
op_compare(const struct judged *j, const struct ruleset_op *op)
{
	int d;

	if (op->what <= COMPARE_NE && op->len <= 4)
		return word_equals(j, op) == (op->what == COMPARE_EQ);
	d = memcmp(&j->word[op->from], op->a, op->len);

	switch ((enum ruleset_compare)op->what) {
	case COMPARE_EQ:
		return d == 0;
	case COMPARE_NE:
		return d != 0;
	case COMPARE_LT:
		return d < 0;
	case COMPARE_LE:
		return d <= 0;
	case COMPARE_GT:
		return d > 0;
	case COMPARE_GE:
		return d >= 0;
	}
	return false;
}

static bool
op_range(const struct judged *j, const struct ruleset_op *op)
{
	bool in = memcmp(&j->word[op->from], op->a, op->len) >= 0 &&
		  memcmp(&j->word[op->from], op->b, op->len) <= 0;

	return in == (op->what == COMPARE_EQ);
}

static bool
op_lookup(struct judged *j, const struct ruleset_op *op)
{
	const struct ruleset_set *set = &j->r->set[op->set];
	const struct ruleset_element *e =
		ruleset_find(set, (const uint8_t *)&j->word[op->from], j->p->now);

	if ((e != NULL) == (op->flag != 0))
		return false;
	if (e == NULL || !set->is_map)
		return true;
	if (set->has_verdicts) {
		j->code = e->code;
		j->chain = e->chain;
	} else {
		word_store(j, op->to, e->value, set->value_len);
	}
	return true;
}

/* --- state -------------------------------------------------------------------------- */

static void
count_take(const struct ruleset_packet *p, struct ruleset_count *count)
{
	if (p->dry)
		return;
	counter_add(&count[p->thread].packets, 1);
	counter_add(&count[p->thread].octets, p->l3_bytes);
}

bool
ruleset_decide(const struct ruleset_rule *rule, unsigned int thread, uint16_t l3_bytes)
{
	counter_add(&rule->state->count[thread].packets, 1);
	counter_add(&rule->state->count[thread].octets, l3_bytes);
	return rule->sure_code == CODE_ACCEPT;
}

/* Return true if the bucket covers the packet. */
static bool
limit_take(const struct ruleset_packet *p, struct ruleset_limit *l)
{
	uint64_t cost = (uint64_t)(l->cost * (l->by_octets ? p->l3_bytes : 1));
	uint64_t full_at = atomic_load_explicit(&l->full_at, memory_order_relaxed), begin;

	do {
		begin = full_at > p->now ? full_at : p->now;
		if (begin - p->now + cost > l->room)
			return false;
	} while (!p->dry && !atomic_compare_exchange_weak_explicit(
				    &l->full_at, &full_at, begin + cost,
				    memory_order_relaxed, memory_order_relaxed));
	return true;
}

/*
 * Write the traffic class; the other bits of the two octets stay. The checksum of IPv4 is
 * updated by RFC 1624.
 */
static void
op_mark(struct judged *j, const struct ruleset_op *op)
{
	const uint8_t *value = (const uint8_t *)&j->word[op->from];
	const uint8_t mask[2] = {j->p->family == 4 ? 0x00 : 0x0f,
				 j->p->family == 4 ? 0xff : 0xf0};
	uint8_t *ip = j->p->ip, now[2] = {ip[0], ip[1]};
	uint32_t sum;

	for (unsigned int i = 0; i < op->len; i++)
		now[op->at + i] = (uint8_t)((now[op->at + i] & ~mask[op->at + i]) |
					    (value[i] & mask[op->at + i]));
	if (memcmp(now, ip, 2) == 0)
		return;
	if (j->p->family == 4) {
		sum = (uint16_t)~get_be16(ip + 10);
		sum += (uint16_t)~get_be16(ip) + get_be16(now);
		put_be16(ip + 10, (uint16_t)~inet_fold(sum));
	}
	memcpy(ip, now, 2);
	j->p->marked = true;
}

static void
op_reject(struct judged *j, const struct ruleset_op *op)
{
	bool six = j->p->family == 6;

	j->p->icmp_type = op->reject.type[six];
	j->p->icmp_code = op->reject.code[six];
	j->code = CODE_REJECT;
}

/* Execute one operation. Returns false if the rule ends here, without a verdict. */
static bool
op_do(struct judged *j, const struct ruleset_op *op, const struct ruleset_rule *rule)
{
	switch ((enum ruleset_kind)op->kind) {
	case OP_PAYLOAD:
		return op_payload(j, op);
	case OP_META:
		return op_meta(j, op);
	case OP_EXTHDR:
		return op_exthdr(j, op);
	case OP_FIB:
		return op_fib(j, op);
	case OP_VALUE:
		memcpy(&j->word[op->to], op->a, op->len);
		return true;
	case OP_MASK:
		op_mask(j, op);
		return true;
	case OP_SHIFT:
		op_shift(j, op);
		return true;
	case OP_SWAP:
		op_swap(j, op);
		return true;
	case OP_COMPARE:
		return op_compare(j, op);
	case OP_RANGE:
		return op_range(j, op);
	case OP_LOOKUP:
		return op_lookup(j, op);
	case OP_VERDICT:
		j->code = op->verdict.code;
		j->chain = op->verdict.chain;
		return true;
	case OP_REJECT:
		op_reject(j, op);
		return true;
	case OP_COUNT:
		count_take(j->p, op->count);
		return true;
	case OP_COUNT_RULE:
		count_take(j->p, rule->state->count);
		return true;
	case OP_LIMIT:
		return limit_take(j->p, op->limit) != op->limit->over;
	case OP_MARK:
		op_mark(j, op);
		return true;
	case OP_LOG:
		if (!j->p->dry && j->r->logged != NULL)
			logged_put(&j->r->logged[j->p->thread], op->log, j->p);
		return true;
	}
	return false;
}

/* Evaluate one rule. j->code is its verdict, or CODE_CONTINUE if it has none. */
static void
rule_ask(struct judged *j, const struct ruleset_rule *rule)
{
	const struct ruleset_op *op = &j->r->op[rule->op];

	j->code = CODE_CONTINUE;
	for (uint32_t i = 0; i < rule->n_op; i++) {
		if (!op_do(j, &op[i], rule))
			return;
		if (j->code == CODE_BREAK) {
			j->code = CODE_CONTINUE;
			return;
		}
		if (j->code != CODE_CONTINUE)
			break;
	}
	if (!rule->counts)
		count_take(j->p, rule->state->count);
}

/* --- chains ------------------------------------------------------------------------- */

/*
 * A place in a chain: the next rule of a segment. A chain that is walked has one segment.
 */
struct place {
	const struct ruleset_acl *acl;
	uint32_t rule, end, segment;
	bool named; /* the classifier named `rule`; false: `rule` only follows in order */
	uint32_t begin[ACL_SEGMENTS_MAX];
};

/* Begin a chain. `begins`: the first rule of each segment, or NULL if it is unknown. */
static void
chain_begin(struct judged *j, uint32_t number, const uint32_t *begins, struct place *at)
{
	const struct ruleset_chain *c = &j->r->chain[number];

	at->acl = c->acl[j->p->family == 6];
	at->named = at->acl != NULL;
	at->rule = c->rule;
	at->end = c->rule + c->n_rule;
	if (at->acl == NULL)
		return;
	if (begins != NULL)
		memcpy(at->begin, begins, at->acl->n_category * sizeof(*begins));
	else
		ruleset_acl_classify(at->acl, &j->p, 1, at->begin);
	at->segment = 0;
	at->end = at->acl->end[0];
	at->rule = at->begin[0] == 0 ? at->end : at->begin[0] - 1;
}

/*
 * Return the next rule that may match, and whether the classifier named it; or RULESET_NONE
 * at the end of the chain.
 */
static uint32_t
rule_next(struct place *at, bool *named)
{
	while (at->rule == at->end) {
		if (at->acl == NULL || ++at->segment >= at->acl->n_segment)
			return RULESET_NONE;
		at->end = at->acl->end[at->segment];
		at->rule =
			at->begin[at->segment] == 0 ? at->end : at->begin[at->segment] - 1;
		at->named = true;
	}
	*named = at->named;
	at->named = false;
	return at->rule++;
}

/*
 * Return true if a rule that the classifier named certainly matches, and only counts and
 * decides.
 */
static inline bool
rule_is_sure(const struct ruleset_rule *rule, const struct ruleset_packet *p)
{
	return (rule->sure & (p->family == 4 ? 1 : 2)) != 0 && p->has_transport &&
	       !p->later && p->transport + 4 <= p->room;
}

/* Evaluate a base chain. Return CODE_ACCEPT, CODE_DROP or CODE_REJECT. */
static uint8_t
chain_pass(struct judged *j, uint32_t base, const uint32_t *begins)
{
	struct place at, back[RULESET_JUMPS_MAX];
	unsigned int n_back = 0;

	chain_begin(j, base, begins, &at);
	for (;;) {
		bool named;
		uint32_t rule = rule_next(&at, &named);

		if (rule == RULESET_NONE) {
			if (n_back == 0)
				break;
			at = back[--n_back];
			continue;
		}
		j->p->rule = rule;
		if (named && rule_is_sure(&j->r->rule[rule], j->p)) {
			count_take(j->p, j->r->rule[rule].state->count);
			j->code = j->r->rule[rule].sure_code;
		} else {
			rule_ask(j, &j->r->rule[rule]);
		}
		switch (j->code) {
		case CODE_ACCEPT:
		case CODE_DROP:
		case CODE_REJECT:
			j->p->chain = j->r->rule[rule].chain;
			return j->code;
		case CODE_JUMP:
			if (n_back == RULESET_JUMPS_MAX)
				return CODE_DROP; /* filter_build() refuses deeper chains */
			back[n_back++] = at;
			chain_begin(j, j->chain, NULL, &at);
			break;
		case CODE_GOTO:
			chain_begin(j, j->chain, NULL, &at);
			break;
		case CODE_RETURN:
			if (n_back == 0)
				goto policy;
			at = back[--n_back];
			break;
		default:
			break;
		}
	}
policy:
	j->p->rule = RULESET_NONE;
	j->p->chain = base;
	return j->r->chain[base].drops ? CODE_DROP : CODE_ACCEPT;
}

/* Judge a packet by all base chains. */
static enum ruleset_verdict
rules_judge(const struct ruleset *r, struct ruleset_packet *p)
{
	struct judged j = {.r = r, .p = p};

	if (!p->looked)
		ruleset_look(p);
	for (uint32_t i = 0; i < r->n_base; i++) {
		const struct ruleset_chain *c = &r->chain[r->base[i]];
		uint8_t code;

		if (c->family != 0 && c->family != p->family)
			continue;
		code = chain_pass(&j, r->base[i], i == 0 ? p->begins : NULL);

		if (code == CODE_DROP)
			return RULESET_DROP;
		/* Linux sends no ICMP error for a later fragment or a truncated header. */
		if (code == CODE_REJECT)
			return p->later || !p->has_transport ? RULESET_DROP
							     : RULESET_REJECT;
	}
	return RULESET_PASS;
}

/*
 * Return true if there is one base chain and the classifier found no matching rule in it.
 */
static inline bool
none_matches(const struct ruleset *r, const struct ruleset_packet *p)
{
	return p->begins != NULL && r->n_base == 1 &&
	       ruleset_acl_is_silent(r->chain[r->base[0]].acl[p->family == 6], p->begins);
}

enum ruleset_verdict
ruleset_judge(const struct ruleset *r, struct ruleset_packet *p)
{
	p->marked = false;
	p->rule = p->chain = RULESET_NONE;
	if (r->absent)
		return RULESET_DROP;
	if (none_matches(r, p)) {
		p->chain = r->base[0];
		return r->chain[p->chain].drops ? RULESET_DROP : RULESET_PASS;
	}
	return rules_judge(r, p);
}
