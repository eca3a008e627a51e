/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translate rules to conditions of rte_acl, build the classifiers, classify packets. The
 * operations of a rule are evaluated up to the first operation that has an effect, because
 * a counter before a comparison also counts packets that the comparison does not match.
 */
#include "ruleset/acl.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>

#include "base/inet.h"
#include "poptrie/poptrie.h"
#include "ruleset/acl_context.h"

#define SPANS_MAX  16 /* spans of a field; a set with more elements gets a bit of the key */
#define COMBOS_MAX 64 /* combinations of spans; if more, a hull replaces spans of a field */
#define BURST_MAX  64

enum field { FIELD_PROTO, FIELD_SRC, FIELD_DST, FIELD_SPORT, FIELD_DPORT, N_FIELD };

/* Values from `low` to `high`, octets in network order. */
struct span {
	uint8_t low[16], high[16];
};

/* The values of a field for which a rule may match. n == 0: any. */
struct condition {
	unsigned int n;
	struct span span[SPANS_MAX];
};

struct conditions {
	struct condition field[N_FIELD];
	uint32_t bit_mask, bit; /* bits of the key that have to be as in `bit` */
	bool never;             /* the rule matches no packet of the family */
	/* the rule matches each packet with ports that meets the conditions */
	bool exact;
	uint8_t decides; /* with `exact`: the verdict, CODE_ACCEPT or CODE_DROP */
};

/* --- fields ------------------------------------------------------------------------ */

/* The position of a field in the headers. */
struct place_of {
	uint8_t base; /* enum ruleset_base */
	uint8_t at, len;
};

static struct place_of
field_place(enum field f, uint8_t family)
{
	static const struct place_of of[2][N_FIELD] = {
		{{BASE_NETWORK, 9, 1},
		 {BASE_NETWORK, 12, 4},
		 {BASE_NETWORK, 16, 4},
		 {BASE_TRANSPORT, 0, 2},
		 {BASE_TRANSPORT, 2, 2}},
		/* With extension headers, the field next header is not the protocol. */
		{{UINT8_MAX, 0, 1}, /* no position */
		 {BASE_NETWORK, 8, 16},
		 {BASE_NETWORK, 24, 16},
		 {BASE_TRANSPORT, 0, 2},
		 {BASE_TRANSPORT, 2, 2}},
	};

	return of[family == 6][f];
}

static unsigned int
field_len(enum field f, uint8_t family)
{
	return f == FIELD_PROTO ? 1 : field_place(f, family).len;
}

/* --- conditions of a rule ----------------------------------------------------------- */

/* For each octet of the registers: the octet of the packet in it, if it is known. */
struct known {
	struct octet {
		uint8_t field; /* N_FIELD: unknown; N_FIELD + 1: the family */
		uint8_t at;    /* offset in the field */
		uint8_t mask;  /* bits of the octet of the packet; the other bits are 0 */
	} word[RULESET_WORDS * 4];
};

#define FIELD_FAMILY (N_FIELD + 1)

static void
known_forget(struct known *k, unsigned int word, unsigned int len)
{
	for (unsigned int i = 0; i < (len + 3u) / 4 * 4; i++)
		k->word[word * 4 + i] = (struct octet){N_FIELD, 0, 0};
}

/*
 * Note the octets that a load puts into a register. Return true if all of them are in
 * fields of the classifier; then the load succeeds for each packet with both ports.
 */
static bool
known_load(struct known *k, const struct ruleset_op *op, uint8_t family)
{
	unsigned int n = 0;

	known_forget(k, op->to, op->len);
	for (unsigned int i = 0; i < op->len; i++)
		for (unsigned int f = 0; f < N_FIELD; f++) {
			struct place_of p = field_place((enum field)f, family);

			if (op->what != p.base || op->at + i < p.at ||
			    op->at + i >= (unsigned int)p.at + p.len)
				continue;
			k->word[op->to * 4 + i] = (struct octet){
				(uint8_t)f, (uint8_t)(op->at + i - p.at), 0xff};
			n++;
		}
	return n == op->len;
}

static void
known_meta(struct known *k, const struct ruleset_op *op)
{
	bool name = op->what == META_IIFNAME || op->what == META_OIFNAME;

	known_forget(k, op->to, name ? 16 : 4);
	if (op->what == META_L4PROTO)
		k->word[op->to * 4] = (struct octet){FIELD_PROTO, 0, 0xff};
	if (op->what == META_FAMILY)
		k->word[op->to * 4] = (struct octet){FIELD_FAMILY, 0, 0xff};
}

static void
known_mask(struct known *k, const struct ruleset_op *op)
{
	struct octet out[RULESET_VALUE_MAX];

	for (unsigned int i = 0; i < op->len; i++) {
		out[i] = k->word[op->from * 4 + i];
		if (op->b[i] != 0)
			out[i].field = N_FIELD;
		out[i].mask &= op->a[i];
	}
	known_forget(k, op->to, op->len);
	memcpy(&k->word[op->to * 4], out, op->len * sizeof(out[0]));
}

static void
condition_widen(struct condition *c, unsigned int len)
{
	for (unsigned int i = 1; i < c->n; i++) {
		if (memcmp(c->span[i].low, c->span[0].low, len) < 0)
			memcpy(c->span[0].low, c->span[i].low, len);
		if (memcmp(c->span[i].high, c->span[0].high, len) > 0)
			memcpy(c->span[0].high, c->span[i].high, len);
	}
	c->n = c->n > 0;
}

/*
 * Add a condition of a field: its value is in one of `n` spans. A field that has a
 * condition keeps its first condition, which is a superset of both conditions together.
 * Returns true if the condition was added.
 */
static bool
condition_set(struct conditions *c, unsigned int f, const struct span *span, unsigned int n)
{
	struct condition *of = &c->field[f];

	if (of->n != 0 || n == 0 || n > SPANS_MAX)
		return false;
	of->n = n;
	memcpy(of->span, span, n * sizeof(*span));
	return true;
}

/* Return true if the register holds field `f` from its first octet on, in `len` octets. */
static bool
holds_field(const struct known *k, const struct ruleset_op *op, unsigned int f,
	    unsigned int len)
{
	for (unsigned int i = 0; i < len; i++) {
		const struct octet *o = &k->word[op->from * 4 + i];

		if (o->field != f || o->at != i || o->mask != 0xff)
			return false;
	}
	return true;
}

/*
 * Add the conditions of a comparison for equality: one for each field that the register
 * holds from the field's first octet on. Returns true if the conditions are exact.
 */
static bool
learn_equal(const struct known *k, const struct ruleset_op *op, uint8_t family,
	    struct conditions *c)
{
	bool all = true;

	for (unsigned int i = 0; i < op->len; i++) {
		const struct octet *o = &k->word[op->from * 4 + i];
		struct span span;
		unsigned int f = o->field, n;

		all &= (op->a[i] & ~o->mask) == 0;
		if (f == FIELD_FAMILY) {
			c->never |= op->a[i] != (family == 4 ? 2 : 10);
			continue;
		}
		/*
		 * If the register has the first octet of a field, the condition added for
		 * that octet covers the later octets of the field.
		 */
		all &= f < N_FIELD &&
		       (o->at == 0 || (i > 0 && o[-1].field == f && o[-1].at + 1 == o->at));
		if (f >= N_FIELD || o->at != 0)
			continue;
		memset(span.low, 0, sizeof(span.low));
		memset(span.high, 0xff, sizeof(span.high));
		for (n = 0; i + n < op->len && n < field_len((enum field)f, family); n++) {
			uint8_t mask = o[n].mask;

			/* Accept only a prefix: ones, then zeros to the end of the mask. */
			if (o[n].field != f || o[n].at != n ||
			    ((uint8_t)~mask & ((uint8_t)~mask + 1)) != 0) {
				all = false;
				break;
			}
			span.low[n] = op->a[i + n] & mask;
			span.high[n] = (uint8_t)(span.low[n] | (uint8_t)~mask);
			if (mask != 0xff) {
				for (n++; i + n < op->len &&
					  n < field_len((enum field)f, family);
				     n++)
					all &= o[n].field == f && o[n].mask == 0;
				break;
			}
		}
		all &= n > 0 && condition_set(c, f, &span, 1);
	}
	return all;
}

static void
octets_add(uint8_t *octet, unsigned int len, int by)
{
	for (unsigned int i = len; i-- > 0;) {
		octet[i] = (uint8_t)(octet[i] + by);
		if (octet[i] != (by > 0 ? 0 : 0xff))
			return;
	}
}

/* Add the condition of an ordered comparison. Returns true if the conditions are exact. */
static bool
learn_compare(const struct known *k, const struct ruleset_op *op, uint8_t family,
	      struct conditions *c)
{
	unsigned int f = k->word[op->from * 4].field;
	struct span span = {.low = {0}};
	bool low = false;

	if (op->what == COMPARE_EQ)
		return learn_equal(k, op, family, c);
	if (f >= N_FIELD || op->what == COMPARE_NE ||
	    op->len != field_len((enum field)f, family) || !holds_field(k, op, f, op->len))
		return false;
	memset(span.high, 0xff, sizeof(span.high));
	low = op->what == COMPARE_GT || op->what == COMPARE_GE;
	memcpy(low ? span.low : span.high, op->a, op->len);
	/* The span includes the value itself, which `<` and `>` do not match. */
	return condition_set(c, f, &span, 1) &&
	       (op->what == COMPARE_GE || op->what == COMPARE_LE);
}

/* Add the condition of a range. Returns true if the conditions are exact. */
static bool
learn_range(const struct known *k, const struct ruleset_op *op, uint8_t family,
	    struct conditions *c)
{
	unsigned int f = k->word[op->from * 4].field;
	struct span span = {.low = {0}};

	if (f >= N_FIELD || op->what != COMPARE_EQ ||
	    op->len != field_len((enum field)f, family) || !holds_field(k, op, f, op->len))
		return false;
	memcpy(span.low, op->a, op->len);
	memcpy(span.high, op->b, op->len);
	return condition_set(c, f, &span, 1);
}

/* Find the spans of a small set. Returns their number; 0: too many. */
static unsigned int
set_spans(const struct ruleset_set *s, const struct ruleset_content *c,
	  struct span span[SPANS_MAX])
{
	unsigned int len = s->key_len, n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const uint8_t *key = c->key + (size_t)i * len;

		if (c->element[i].end)
			continue;
		if (n == SPANS_MAX)
			return 0;
		memset(&span[n], 0, sizeof(span[n]));
		memcpy(span[n].low, key, len);
		memcpy(span[n].high, key, len);
		if (s->kind == SET_INTERVAL) {
			if (i + 1 < c->n) {
				memcpy(span[n].high, key + len, len);
				octets_add(span[n].high, len, -1);
			} else {
				memset(span[n].high, 0xff, len);
			}
		}
		n++;
	}
	return n;
}

/* Return the bit of the key for a field and a set; 0: none is left. */
static uint32_t
bit_of(struct ruleset_acl *acl, unsigned int f, uint32_t set)
{
	uint32_t i;

	for (i = 0; i < acl->n_bit; i++)
		if (acl->bit[i].field == f && acl->bit[i].set == set)
			return 1u << i;
	if (i == ACL_BITS_MAX)
		return 0;
	acl->bit[acl->n_bit++] = (struct ruleset_acl_bit){(uint8_t)f, set};
	return 1u << i;
}

/* Add the condition of a lookup. Returns true if the conditions are exact. */
static bool
learn_lookup(struct ruleset_acl *acl, const struct known *k, const struct ruleset_op *op,
	     uint8_t family, struct conditions *c)
{
	const struct ruleset_set *s = &acl->r->set[op->set];
	unsigned int f = k->word[op->from * 4].field, len, n = 0;
	const struct ruleset_content *content;
	struct span span[SPANS_MAX];
	uint32_t bit;

	if (f >= N_FIELD || s->kind == SET_RANGES || s->other != NULL)
		return false;
	len = field_len((enum field)f, family);
	if (s->key_len != len || !holds_field(k, op, f, len))
		return false;
	if (!s->changes && s->kind != SET_PREFIXES && op->flag == 0) {
		content = atomic_load_explicit(&s->content, memory_order_relaxed);
		n = set_spans(s, content, span);
		c->never |= content->n == 0;
		if (n > 0) /* the elements may expire */
			return condition_set(c, f, span, n) && !s->expires;
	}
	bit = bit_of(acl, f, op->set);
	/* The bit cannot express both "in the set" and "not in the set". */
	if ((c->bit_mask & bit) != 0 && (c->bit & bit) != (op->flag == 0 ? bit : 0))
		return false;
	c->bit_mask |= bit;
	c->bit |= op->flag == 0 ? bit : 0;
	return bit != 0;
}

/* Return true if only the rule's counter and a verdict follow, from operation `i` on. */
static bool
rest_is_plain(const struct ruleset *r, const struct ruleset_rule *rule, uint32_t i,
	      uint8_t *decides)
{
	const struct ruleset_op *op = &r->op[rule->op];

	if (i < rule->n_op && op[i].kind == OP_COUNT_RULE)
		i++;
	if (i + 1 != rule->n_op || op[i].kind != OP_VERDICT)
		return false;
	*decides = op[i].verdict.code;
	return *decides == CODE_ACCEPT || *decides == CODE_DROP;
}

/* Collect the conditions of a rule for packets of a family. */
static void
rule_conditions(struct ruleset_acl *acl, const struct ruleset_rule *rule, uint8_t family,
		struct conditions *c)
{
	const struct ruleset *r = acl->r;
	struct known k;
	bool all = true;

	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < RULESET_WORDS; i++)
		known_forget(&k, i, 4);
	for (uint32_t i = 0; i < rule->n_op; i++) {
		const struct ruleset_op *op = &r->op[rule->op + i];

		switch ((enum ruleset_kind)op->kind) {
		case OP_PAYLOAD:
			all &= known_load(&k, op, family);
			break;
		case OP_META:
			known_meta(&k, op);
			break;
		case OP_MASK:
			known_mask(&k, op);
			break;
		case OP_COMPARE:
			all &= learn_compare(&k, op, family, c);
			break;
		case OP_RANGE:
			all &= learn_range(&k, op, family, c);
			break;
		case OP_LOOKUP:
			all &= learn_lookup(acl, &k, op, family, c);
			if (r->set[op->set].is_map)
				return; /* a verdict, or a value in a register */
			break;
		case OP_EXTHDR:
		case OP_VALUE:
		case OP_SHIFT:
		case OP_SWAP:
			known_forget(&k, op->to, op->len);
			all = false;
			break;
		default: /* an operation with an effect, or OP_FIB */
			c->exact = all && rest_is_plain(r, rule, i, &c->decides);
			return;
		}
	}
}

/* Return the length of the longest prefix that covers both ends of a span. */
static unsigned int
span_prefix(const struct span *s, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		if (s->low[i] != s->high[i])
			return 8 * i +
			       (unsigned int)__builtin_clz(
				       (unsigned int)(s->low[i] ^ s->high[i])) -
			       24;
	return 8 * len;
}

/* Return true if rte_acl can express the conditions of a rule without widening. */
static bool
fits_rte_acl(const struct conditions *c, uint8_t family)
{
	unsigned int total = 1;

	for (unsigned int f = 0; f < N_FIELD; f++) {
		const struct condition *of = &c->field[f];
		unsigned int len = field_len((enum field)f, family);

		total *= of->n > 0 ? of->n : 1;
		for (unsigned int i = 0; i < of->n; i++) {
			const struct span *s = &of->span[i];
			unsigned int plen = span_prefix(s, len);
			bool prefix = true;

			for (unsigned int at = 0; at < len; at++) {
				unsigned int ones = plen >= 8 * (at + 1) ? 8
						    : plen > 8 * at      ? plen - 8 * at
									 : 0;
				uint8_t host = (uint8_t)(0xffu >> ones);

				prefix &= (s->low[at] & host) == 0 &&
					  (s->high[at] & host) == host;
			}
			if (f == FIELD_PROTO && s->low[0] != s->high[0])
				return false;
			if ((f == FIELD_SRC || f == FIELD_DST) && !prefix)
				return false;
		}
	}
	return total <= COMBOS_MAX;
}

/* --- rules of rte_acl --------------------------------------------------------------- */

static void *
rule_new(struct acl_build *b)
{
	if (b->n == b->room) {
		b->room = b->room == 0 ? 64 : b->room * 2;
		b->rule = realloc(b->rule, b->room * b->rule_bytes);
		if (b->rule == NULL)
			abort();
	}
	memset(b->rule + b->n * b->rule_bytes, 0, b->rule_bytes);
	return b->rule + b->n++ * b->rule_bytes;
}

static void
address_put(struct rte_acl_field *f, const struct span *s, unsigned int len)
{
	unsigned int prefix = s == NULL ? 0 : span_prefix(s, len);

	for (unsigned int w = 0; w < len / 4; w++) {
		f[w].value.u32 = s == NULL ? 0 : get_be32(s->low + 4 * w);
		f[w].mask_range.u32 = prefix >= 32 * (w + 1) ? 32
				      : prefix > 32 * w      ? prefix - 32 * w
							     : 0;
	}
}

static void
port_put(struct rte_acl_field *f, const struct span *s)
{
	f->value.u16 = s == NULL ? 0 : get_be16(s->low);
	f->mask_range.u16 = s == NULL ? UINT16_MAX : get_be16(s->high);
}

/* Add a rule of rte_acl for one span of each field; NULL: any value. */
static void
combo_add(struct acl_build *b, const struct span *const s[N_FIELD],
	  const struct conditions *c, uint32_t number, unsigned int segment, uint32_t order)
{
	struct rte_acl_rule_data *data = rule_new(b);
	struct rte_acl_field *f = b->family == 4 ? ((struct acl_rule4 *)data)->field
						 : ((struct acl_rule6 *)data)->field;
	unsigned int len = b->family == 4 ? 4 : 16;

	data->category_mask = 1u << segment;
	data->priority = RTE_ACL_MAX_PRIORITY - (int32_t)order;
	data->userdata = number;
	if (s[FIELD_PROTO] != NULL && s[FIELD_PROTO]->low[0] == s[FIELD_PROTO]->high[0]) {
		f[0].value.u8 = s[FIELD_PROTO]->low[0];
		f[0].mask_range.u8 = 0xff;
	}
	address_put(f + 1, s[FIELD_SRC], len);
	address_put(f + 1 + len / 4, s[FIELD_DST], len);
	port_put(f + 1 + len / 2, s[FIELD_SPORT]);
	port_put(f + 2 + len / 2, s[FIELD_DPORT]);
	for (unsigned int i = 0; i < N_FIELD_BITS; i++) {
		f[3 + len / 2 + i].value.u8 = (uint8_t)(c->bit >> 8 * i);
		f[3 + len / 2 + i].mask_range.u8 = (uint8_t)(c->bit_mask >> 8 * i);
	}
}

/* Add the rules of rte_acl for all combinations of the spans of a rule. */
static void
combos_add(struct acl_build *b, struct conditions *c, uint32_t number, unsigned int segment,
	   uint32_t order)
{
	unsigned int at[N_FIELD] = {0}, f;

	for (;;) {
		unsigned int total = 1, most = 0;

		for (f = 0; f < N_FIELD; f++) {
			total *= c->field[f].n > 0 ? c->field[f].n : 1;
			most = c->field[f].n > c->field[most].n ? f : most;
		}
		if (total <= COMBOS_MAX)
			break;
		condition_widen(&c->field[most], 16);
	}
	do {
		const struct span *s[N_FIELD];

		for (f = 0; f < N_FIELD; f++)
			s[f] = c->field[f].n > 0 ? &c->field[f].span[at[f]] : NULL;
		combo_add(b, s, c, number, segment, order);
		for (f = 0; f < N_FIELD; f++) {
			if (++at[f] < c->field[f].n)
				break;
			at[f] = 0;
		}
	} while (f < N_FIELD);
}

/* Return true if the rule ends the chain for each packet that it matches. */
static bool
rule_is_last(const struct ruleset *r, const struct ruleset_rule *rule)
{
	const struct ruleset_op *op;

	if (rule->n_op == 0)
		return false;
	op = &r->op[rule->op + rule->n_op - 1];
	return op->kind == OP_REJECT ||
	       (op->kind == OP_VERDICT &&
		(op->verdict.code == CODE_ACCEPT || op->verdict.code == CODE_DROP ||
		 op->verdict.code == CODE_GOTO || op->verdict.code == CODE_RETURN));
}

/* Cut the chain after each rule that does not end it, while categories are left. */
static void
segments_cut(const struct ruleset *r, const struct ruleset_chain *chain,
	     struct ruleset_acl *acl)
{
	uint32_t end = chain->rule + chain->n_rule;

	for (uint32_t i = chain->rule; i < end; i++)
		if (i + 1 == end || (acl->n_segment < ACL_SEGMENTS_MAX - 1 &&
				     !rule_is_last(r, &r->rule[i])))
			acl->end[acl->n_segment++] = i + 1;
	acl->n_category = acl->n_segment == 1 ? 1 : (acl->n_segment + 3) / 4 * 4;
}

/*
 * Build the classifier of a chain for a family, and subtract its time from *left_ns.
 * Returns NULL if that failed, or if it would take more time.
 */
static struct ruleset_acl *
acl_build(struct ruleset *r, const struct ruleset_chain *chain, uint8_t family,
	  int64_t *left_ns)
{
	struct ruleset_acl *acl = calloc(1, sizeof(*acl));
	struct acl_build b = {.family = family,
			      .n_field = family == 4 ? N_FIELD4 : N_FIELD6,
			      .rule_bytes = family == 4 ? sizeof(struct acl_rule4)
							: sizeof(struct acl_rule6)};
	unsigned int segment = 0;
	struct conditions c;

	if (acl == NULL)
		return NULL;
	acl->r = r;
	segments_cut(r, chain, acl);
	for (uint32_t i = chain->rule; i < chain->rule + chain->n_rule; i++) {
		while (i >= acl->end[segment])
			segment++;
		rule_conditions(acl, &r->rule[i], family, &c);
		if (c.never)
			continue;
		if (c.exact && fits_rte_acl(&c, family)) {
			r->rule[i].sure |= family == 4 ? 1 : 2;
			r->rule[i].sure_code = c.decides;
		}
		combos_add(&b, &c, i + 1, segment, i - chain->rule);
	}
	if (acl->n_bit == 0)
		b.n_field -= N_FIELD_BITS;
	if (b.n > 0)
		acl->ctx = acl_context_build(&b, acl->n_category, left_ns);
	free(b.rule);
	if (acl->ctx != NULL || b.n == 0)
		return acl;
	free(acl);
	return NULL;
}

unsigned int
ruleset_acl_build(struct ruleset *r)
{
	int64_t left_ns = ACL_BUILD_MAX_NS;
	unsigned int failed = 0;

	for (uint32_t i = 0; i < r->n_chain; i++) {
		struct ruleset_chain *c = &r->chain[i];

		if (c->n_rule < ACL_RULES_MIN || c->dormant)
			continue;
		for (unsigned int six = 0; six < 2; six++) {
			uint8_t family = six ? 6 : 4;

			if (c->family != 0 && c->family != family)
				continue;
			c->acl[six] = acl_build(r, c, family, &left_ns);
			failed += c->acl[six] == NULL;
		}
	}
	return failed;
}

void
ruleset_acl_free(struct ruleset_acl *acl)
{
	if (acl == NULL)
		return;
	rte_acl_free(acl->ctx);
	free(acl);
}

/* --- packets ------------------------------------------------------------------------ */

static void
ports_copy(const struct ruleset_packet *p, uint8_t *sport)
{
	unsigned int n = 0;

	/* A rule may match the first octets of a truncated transport header. */
	if (p->has_transport && !p->later && p->transport < p->room)
		n = p->room - p->transport < 4 ? p->room - p->transport : 4;
	memset(sport, 0, 4);
	memcpy(sport, p->ip + p->transport, n);
}

/* Return the position of a field in the key of a packet. */
static const uint8_t *
field_of(const uint8_t *key, uint8_t family, unsigned int f)
{
	static const uint8_t at[2][N_FIELD] = {
		{offsetof(struct key4, proto), offsetof(struct key4, src),
		 offsetof(struct key4, dst), offsetof(struct key4, sport),
		 offsetof(struct key4, dport)},
		{offsetof(struct key6, proto), offsetof(struct key6, src),
		 offsetof(struct key6, dst), offsetof(struct key6, sport),
		 offsetof(struct key6, dport)},
	};

	return key + at[family == 6][f];
}

/* Set bit `bit` in the keys whose field is in the set of the bit. */
static void
bit_set(const struct ruleset_acl *acl, unsigned int bit, uint8_t family, uint64_t now,
	unsigned int n, uint8_t *const *key)
{
	const struct ruleset_set *s = &acl->r->set[acl->bit[bit].set];
	const uint8_t *field[BURST_MAX];
	uint32_t address[BURST_MAX], in[BURST_MAX];
	size_t bits =
		family == 4 ? offsetof(struct key4, bits) : offsetof(struct key6, bits);

	for (unsigned int i = 0; i < n; i++)
		field[i] = field_of(key[i], family, acl->bit[bit].field);
	if (s->kind != SET_PREFIXES) {
		for (unsigned int i = 0; i < n; i++)
			in[i] = ruleset_find(s, field[i], now) != NULL;
	} else if (s->key_len == 4) {
		for (unsigned int i = 0; i < n; i++)
			address[i] = get_be32(field[i]);
		poptrie4_lookup_bulk(s->pt, address, in, n);
	} else {
		poptrie6_lookup_bulk(s->pt, field, in, n);
	}
	for (unsigned int i = 0; i < n; i++)
		key[i][bits + bit / 8] |= (uint8_t)(in[i] << bit % 8);
}

static void
part_classify(const struct ruleset_acl *acl, struct ruleset_packet *const *p,
	      unsigned int n, uint32_t *result)
{
	uint8_t *at[BURST_MAX];
	union {
		struct key4 four[BURST_MAX];
		struct key6 six[BURST_MAX];
	} key;

	if (p[0]->family == 4)
		for (unsigned int i = 0; i < n; i++) {
			key.four[i].proto = p[i]->l4proto;
			memcpy(key.four[i].src, p[i]->ip + 12, 8);
			ports_copy(p[i], key.four[i].sport);
			memset(key.four[i].bits, 0, sizeof(key.four[i].bits));
			at[i] = (uint8_t *)&key.four[i];
		}
	else
		for (unsigned int i = 0; i < n; i++) {
			key.six[i].proto = p[i]->l4proto;
			memcpy(key.six[i].src, p[i]->ip + 8, 32);
			ports_copy(p[i], key.six[i].sport);
			memset(key.six[i].bits, 0, sizeof(key.six[i].bits));
			at[i] = (uint8_t *)&key.six[i];
		}
	for (unsigned int bit = 0; bit < acl->n_bit; bit++)
		bit_set(acl, bit, p[0]->family, p[0]->now, n, at);
	rte_acl_classify(acl->ctx, (const uint8_t **)at, result, n, acl->n_category);
}

void
ruleset_acl_classify(const struct ruleset_acl *acl, struct ruleset_packet *const *p,
		     unsigned int n, uint32_t *result)
{
	if (acl->ctx == NULL) { /* no rule matches a packet of the family */
		memset(result, 0, n * acl->n_category * sizeof(*result));
		return;
	}
	for (unsigned int from = 0; from < n; from += BURST_MAX)
		part_classify(acl, p + from, n - from < BURST_MAX ? n - from : BURST_MAX,
			      result + from * acl->n_category);
}

void
ruleset_acl_classify4(const struct ruleset_acl *acl, const uint8_t *const *ip,
		      unsigned int n, uint64_t now, uint32_t *result)
{
	struct key4 key[BURST_MAX];
	uint8_t *at[BURST_MAX];

	assert(n <= BURST_MAX);
	if (acl->ctx == NULL) {
		memset(result, 0, n * acl->n_category * sizeof(*result));
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		key[i].proto = ip[i][9];
		memcpy(key[i].src, ip[i] + 12, 12); /* and both ports */
		memset(key[i].bits, 0, sizeof(key[i].bits));
		at[i] = (uint8_t *)&key[i];
	}
	for (unsigned int bit = 0; bit < acl->n_bit; bit++)
		bit_set(acl, bit, 4, now, n, at);
	rte_acl_classify(acl->ctx, (const uint8_t **)at, result, n, acl->n_category);
}
