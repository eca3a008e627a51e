/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translate one expression of nf_tables to operations of a ruleset. An unknown expression
 * is refused by its name. [filter]
 */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/inet.h"
#include "base/log.h"
#include "filter/impl.h"
#include "netlink/attributes.h"
#include "ruleset/logged.h"

/* Append an operation. */
static struct ruleset_op *
op_add(struct build *b, enum ruleset_kind kind)
{
	struct ruleset *r = b->r;

	r->op = build_room(r->op, r->n_op, &b->room_op, sizeof(*r->op));
	r->op[r->n_op] = (struct ruleset_op){.kind = (uint8_t)kind};
	return &r->op[r->n_op++];
}

/*
 * Read the number of a register that holds `len` octets. Returns 0 and sets *word to the
 * register's first word, or returns -1.
 */
static int
register_read(const struct nlattr *a, unsigned int len, uint8_t *word)
{
	uint32_t reg;

	if (attr_be32(a, &reg) < 0)
		return -1;
	if (reg >= NFT_REG_1 && reg <= NFT_REG_4)
		reg = (reg - NFT_REG_1 + 1) * 4;
	else if (reg >= NFT_REG32_00 && reg <= NFT_REG32_15)
		reg = reg - NFT_REG32_00 + 4;
	else
		return -1;
	if (len == 0 || reg + (len + 3) / 4 > RULESET_WORDS)
		return -1;
	*word = (uint8_t)reg;
	return 0;
}

/* Read a value of exactly `len` octets, or of at most RULESET_VALUE_MAX if *len is 0. */
static int
value_read(const struct nlattr *data, uint8_t out[RULESET_VALUE_MAX], uint8_t *len)
{
	unsigned int n;
	const uint8_t *value = attr_value(data, &n);

	if (value == NULL || n > RULESET_VALUE_MAX || (*len != 0 && n != *len))
		return -1;
	*len = (uint8_t)n;
	memcpy(out, value, n);
	return 0;
}

/*
 * Return true if the last operations of the rule load the octets [at, at + len) of the IP
 * header into `word` and change bits of the traffic class only. `four`: the header is IPv4,
 * else IPv6.
 */
static bool
only_class_changes(const struct build *b, const struct ruleset_rule *rule, uint8_t word,
		   uint32_t at, uint32_t len, bool four)
{
	const uint8_t class[2] = {four ? 0x00 : 0x0f, four ? 0xff : 0xf0};
	const struct ruleset_op *load, *change;

	if (b->r->n_op < rule->op + 2)
		return false;
	load = &b->r->op[b->r->n_op - 2];
	change = load + 1;
	if (load->kind != OP_PAYLOAD || load->what != BASE_NETWORK || load->at != at ||
	    load->len != len || change->kind != OP_MASK || change->from != load->to ||
	    change->to != word || change->len != len)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if ((~change->a[i] & ~class[at + i] & 0xff) != 0 ||
		    (change->b[i] & ~class[at + i]) != 0)
			return false;
	return true;
}

static int
add_payload_write(struct build *b, const struct nlattr *data,
		  const struct ruleset_rule *rule)
{
	uint32_t base, at, len, sum = NFT_PAYLOAD_CSUM_NONE;
	struct ruleset_op *op;
	uint8_t word;

	if (attr_be32(attr_find_in(data, NFTA_PAYLOAD_BASE), &base) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_PAYLOAD_OFFSET), &at) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_PAYLOAD_LEN), &len) < 0)
		return -1;
	(void)attr_be32(attr_find_in(data, NFTA_PAYLOAD_CSUM_TYPE), &sum);
	if (len > 0 && register_read(attr_find_in(data, NFTA_PAYLOAD_SREG), len, &word) < 0)
		return -1;
	/*
	 * nft asks for a checksum only if it changes an IPv4 header: `sum` tells the
	 * family.
	 */
	if (base != NFT_PAYLOAD_NETWORK_HEADER || len == 0 || at > 1 || len > 2 - at ||
	    !only_class_changes(b, rule, word, at, len, sum == NFT_PAYLOAD_CSUM_INET))
		return build_fail(b, "changing a field other than dscp is not supported");
	op = op_add(b, OP_MARK);
	op->from = word;
	op->at = (uint16_t)at;
	op->len = (uint8_t)len;
	return 0;
}

static int
add_payload(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	uint32_t base, at, len;
	struct ruleset_op *op;
	uint8_t word;

	if (attr_find_in(data, NFTA_PAYLOAD_SREG) != NULL)
		return add_payload_write(b, data, rule);
	if (attr_be32(attr_find_in(data, NFTA_PAYLOAD_BASE), &base) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_PAYLOAD_OFFSET), &at) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_PAYLOAD_LEN), &len) < 0 || at > UINT16_MAX ||
	    len > RULESET_KEY_MAX ||
	    register_read(attr_find_in(data, NFTA_PAYLOAD_DREG), len, &word) < 0)
		return -1;
	if (base != NFT_PAYLOAD_NETWORK_HEADER && base != NFT_PAYLOAD_TRANSPORT_HEADER)
		return build_fail(b, "payload of the %s header is not supported",
				  base == NFT_PAYLOAD_LL_HEADER ? "Ethernet" : "inner");
	op = op_add(b, OP_PAYLOAD);
	op->what = base == NFT_PAYLOAD_NETWORK_HEADER ? BASE_NETWORK : BASE_TRANSPORT;
	op->to = word;
	op->at = (uint16_t)at;
	op->len = (uint8_t)len;
	return 0;
}

/* Return the name that nft has for a key of meta. */
static const char *
meta_name(uint32_t key)
{
	static const char *const name[] = {
		[NFT_META_PRIORITY] = "priority",
		[NFT_META_MARK] = "mark",
		[NFT_META_IIFTYPE] = "iiftype (an address of Ethernet needs it)",
		[NFT_META_OIFTYPE] = "oiftype",
		[NFT_META_SKUID] = "skuid",
		[NFT_META_SKGID] = "skgid",
		[NFT_META_NFTRACE] = "nftrace",
		[NFT_META_RTCLASSID] = "rtclassid",
		[NFT_META_SECMARK] = "secmark",
		[NFT_META_BRI_IIFNAME] = "ibrname",
		[NFT_META_BRI_OIFNAME] = "obrname",
		[NFT_META_PKTTYPE] = "pkttype",
		[NFT_META_CPU] = "cpu",
		[NFT_META_IIFGROUP] = "iifgroup",
		[NFT_META_OIFGROUP] = "oifgroup",
		[NFT_META_CGROUP] = "cgroup",
		[NFT_META_PRANDOM] = "random",
		[NFT_META_SECPATH] = "ipsec",
		[NFT_META_IIFKIND] = "iifkind",
		[NFT_META_OIFKIND] = "oifkind",
		[NFT_META_BRI_IIFPVID] = "ibrpvid",
		[NFT_META_BRI_IIFVPROTO] = "ibrvproto",
		[NFT_META_TIME_NS] = "time",
		[NFT_META_TIME_DAY] = "day",
		[NFT_META_TIME_HOUR] = "hour",
		[NFT_META_SDIF] = "sdif",
		[NFT_META_SDIFNAME] = "sdifname",
	};

	return key < sizeof(name) / sizeof(name[0]) && name[key] != NULL ? name[key]
									 : "of this kind";
}

static int
add_meta(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	static const struct {
		uint32_t key;
		uint8_t what, octets;
	} known[] = {
		{NFT_META_LEN, META_LENGTH, 4},       {NFT_META_PROTOCOL, META_PROTOCOL, 2},
		{NFT_META_NFPROTO, META_FAMILY, 1},   {NFT_META_L4PROTO, META_L4PROTO, 1},
		{NFT_META_IIF, META_IIF, 4},          {NFT_META_OIF, META_OIF, 4},
		{NFT_META_IIFNAME, META_IIFNAME, 16}, {NFT_META_OIFNAME, META_OIFNAME, 16},
	};
	struct ruleset_op *op;
	uint32_t key;
	uint8_t word;

	if (attr_be32(attr_find_in(data, NFTA_META_KEY), &key) < 0)
		return -1;
	if (attr_find_in(data, NFTA_META_SREG) != NULL)
		return build_fail(b, "setting meta %s is not supported", meta_name(key));
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].key != key)
			continue;
		if (register_read(attr_find_in(data, NFTA_META_DREG), known[i].octets,
				  &word) < 0)
			return -1;
		op = op_add(b, OP_META);
		op->what = known[i].what;
		op->to = word;
		return 0;
	}
	return build_fail(b, "meta %s is not supported", meta_name(key));
}

static int
add_exthdr(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	uint32_t at, len, flags = 0, kind = NFT_EXTHDR_OP_IPV6;
	struct ruleset_op *op;
	uint8_t word, type;

	(void)attr_be32(attr_find_in(data, NFTA_EXTHDR_OP), &kind);
	if (kind != NFT_EXTHDR_OP_IPV6)
		return build_fail(b, "%s are not supported",
				  kind == NFT_EXTHDR_OP_TCPOPT ? "options of TCP"
				  : kind == NFT_EXTHDR_OP_IPV4 ? "options of IPv4"
				  : kind == NFT_EXTHDR_OP_SCTP ? "chunks of SCTP"
							       : "options of this kind");
	if (attr_find_in(data, NFTA_EXTHDR_SREG) != NULL)
		return build_fail(b, "changing an extension header is not supported");
	(void)attr_be32(attr_find_in(data, NFTA_EXTHDR_FLAGS), &flags);
	if (attr_copy(attr_find_in(data, NFTA_EXTHDR_TYPE), &type, 1) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_EXTHDR_OFFSET), &at) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_EXTHDR_LEN), &len) < 0 || at > UINT8_MAX ||
	    len > RULESET_KEY_MAX ||
	    register_read(attr_find_in(data, NFTA_EXTHDR_DREG), len, &word) < 0)
		return -1;
	op = op_add(b, OP_EXTHDR);
	op->what = type;
	op->flag = (flags & NFT_EXTHDR_F_PRESENT) != 0;
	op->to = word;
	op->at = (uint16_t)at;
	op->len = (uint8_t)len;
	return 0;
}

/*
 * Translate the check of the route back to the source: `fib saddr [. iif] [. mark] oif
 * exists` or `missing`.
 */
static int
add_fib(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	const uint32_t known =
		NFTA_FIB_F_SADDR | NFTA_FIB_F_MARK | NFTA_FIB_F_IIF | NFTA_FIB_F_PRESENT;
	uint32_t result, flags;
	struct ruleset_op *op;
	uint8_t word;

	if (attr_be32(attr_find_in(data, NFTA_FIB_RESULT), &result) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_FIB_FLAGS), &flags) < 0)
		return -1;
	if ((flags & NFTA_FIB_F_SADDR) == 0 || (flags & ~known) != 0)
		return build_fail(b, "fib of anything but saddr, iif and mark is not "
				     "supported");
	if (result == NFT_FIB_RESULT_ADDRTYPE || (flags & NFTA_FIB_F_PRESENT) == 0)
		return build_fail(b, "fib is supported with exists and missing only");
	if (register_read(attr_find_in(data, NFTA_FIB_DREG), 4, &word) < 0)
		return -1;
	op = op_add(b, OP_FIB);
	op->flag = (flags & NFTA_FIB_F_IIF) != 0;
	op->to = word;
	op->len = 4;
	b->r->asks_back = true;
	return 0;
}

static int
add_immediate(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	const struct nlattr *value = attr_find_in(data, NFTA_IMMEDIATE_DATA);
	struct ruleset_op op = {.kind = OP_VERDICT};
	uint32_t reg;

	if (attr_be32(attr_find_in(data, NFTA_IMMEDIATE_DREG), &reg) < 0)
		return -1;
	if (reg == NFT_REG_VERDICT) {
		if (build_verdict(b, value, &op.verdict.code, &op.verdict.chain) < 0)
			return -1;
	} else {
		op.kind = OP_VALUE;
		if (value_read(value, op.a, &op.len) < 0 ||
		    register_read(attr_find_in(data, NFTA_IMMEDIATE_DREG), op.len, &op.to) <
			    0)
			return -1;
	}
	*op_add(b, OP_VERDICT) = op;
	return 0;
}

static int
add_cmp(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	struct ruleset_op op = {.kind = OP_COMPARE};
	uint32_t what;

	if (attr_be32(attr_find_in(data, NFTA_CMP_OP), &what) < 0 || what > NFT_CMP_GTE ||
	    value_read(attr_find_in(data, NFTA_CMP_DATA), op.a, &op.len) < 0 ||
	    register_read(attr_find_in(data, NFTA_CMP_SREG), op.len, &op.from) < 0)
		return -1;
	op.what = (uint8_t)what; /* enum ruleset_compare has the numbers of NFT_CMP_ */
	*op_add(b, OP_COMPARE) = op;
	return 0;
}

static int
add_range(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	struct ruleset_op op = {.kind = OP_RANGE};
	uint32_t what;

	if (attr_be32(attr_find_in(data, NFTA_RANGE_OP), &what) < 0 ||
	    what > NFT_RANGE_NEQ ||
	    value_read(attr_find_in(data, NFTA_RANGE_FROM_DATA), op.a, &op.len) < 0 ||
	    value_read(attr_find_in(data, NFTA_RANGE_TO_DATA), op.b, &op.len) < 0 ||
	    register_read(attr_find_in(data, NFTA_RANGE_SREG), op.len, &op.from) < 0)
		return -1;
	op.what = what == NFT_RANGE_EQ ? COMPARE_EQ : COMPARE_NE;
	*op_add(b, OP_RANGE) = op;
	return 0;
}

static int
add_bitwise(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	struct ruleset_op op = {.kind = OP_MASK};
	uint32_t what = NFT_BITWISE_BOOL, len, bits;
	unsigned int n;
	const uint8_t *value;

	(void)attr_be32(attr_find_in(data, NFTA_BITWISE_OP), &what);
	if (attr_be32(attr_find_in(data, NFTA_BITWISE_LEN), &len) < 0 ||
	    len > RULESET_VALUE_MAX ||
	    register_read(attr_find_in(data, NFTA_BITWISE_SREG), len, &op.from) < 0 ||
	    register_read(attr_find_in(data, NFTA_BITWISE_DREG), len, &op.to) < 0)
		return -1;
	op.len = (uint8_t)len;
	switch (what) {
	case NFT_BITWISE_BOOL:
		if (value_read(attr_find_in(data, NFTA_BITWISE_MASK), op.a, &op.len) < 0 ||
		    value_read(attr_find_in(data, NFTA_BITWISE_XOR), op.b, &op.len) < 0)
			return -1;
		break;
	case NFT_BITWISE_LSHIFT:
	case NFT_BITWISE_RSHIFT:
		value = attr_value(attr_find_in(data, NFTA_BITWISE_DATA), &n);
		if (value == NULL || n != sizeof(bits))
			return -1;
		memcpy(&bits, value, sizeof(bits));
		if (bits >= 32)
			return -1;
		op.kind = OP_SHIFT;
		op.flag = what == NFT_BITWISE_RSHIFT;
		op.at = (uint16_t)bits;
		break;
	default:
		return build_fail(b, "bitwise of two registers is not supported");
	}
	*op_add(b, OP_MASK) = op;
	return 0;
}

static int
add_byteorder(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	struct ruleset_op op = {.kind = OP_SWAP};
	uint32_t len, size;

	if (attr_be32(attr_find_in(data, NFTA_BYTEORDER_LEN), &len) < 0 ||
	    attr_be32(attr_find_in(data, NFTA_BYTEORDER_SIZE), &size) < 0 ||
	    len > RULESET_VALUE_MAX || (size != 2 && size != 4 && size != 8) ||
	    register_read(attr_find_in(data, NFTA_BYTEORDER_SREG), len, &op.from) < 0 ||
	    register_read(attr_find_in(data, NFTA_BYTEORDER_DREG), len, &op.to) < 0)
		return -1;
	op.len = (uint8_t)len;
	op.at = (uint16_t)size;
	*op_add(b, OP_SWAP) = op;
	return 0;
}

static int
add_lookup(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	const struct nlattr *to = attr_find_in(data, NFTA_LOOKUP_DREG);
	struct ruleset_op op = {.kind = OP_LOOKUP};
	const struct ruleset_set *set;
	uint32_t flags = 0, reg = NFT_REG_VERDICT;

	if (build_set(b, attr_find_in(data, NFTA_LOOKUP_SET), &op.set) < 0)
		return -1;
	set = &b->r->set[op.set];
	(void)attr_be32(attr_find_in(data, NFTA_LOOKUP_FLAGS), &flags);
	op.flag = (flags & NFT_LOOKUP_F_INV) != 0;
	if (register_read(attr_find_in(data, NFTA_LOOKUP_SREG), set->key_len, &op.from) < 0)
		return -1;
	if (to != NULL && attr_be32(to, &reg) < 0)
		return -1;
	/*
	 * As in the kernel: a map, and only a map, has a destination register. For a
	 * verdict map, and only for it, this is the verdict register.
	 */
	if (set->is_map != (to != NULL) ||
	    (set->is_map && set->has_verdicts != (reg == NFT_REG_VERDICT)) ||
	    (set->is_map && op.flag != 0))
		return -1;
	if (set->is_map && !set->has_verdicts &&
	    register_read(to, set->value_len, &op.to) < 0)
		return -1;
	*op_add(b, OP_LOOKUP) = op;
	return 0;
}

static int
add_counter(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	if (!rule->counts)
		op_add(b, OP_COUNT_RULE);
	rule->counts = true;
	return 0;
}

static int
add_limit(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	if (b->n_limit == sizeof(b->limit) / sizeof(b->limit[0]))
		return build_fail(b, "more than %u limits in a rule", b->n_limit);
	if (build_limit(b, data, &b->limit[b->n_limit]) < 0)
		return -1;
	b->n_limit++;
	op_add(b, OP_LIMIT); /* rule_state() sets its bucket */
	return 0;
}

/* Give a named counter or limit its state: the state that it had, or a new state. */
static int
object_add(struct build *b, struct raw_object *o)
{
	bool is_limit = o->type == NFT_OBJECT_LIMIT;
	struct ruleset_limit limit;
	struct ruleset_state *state;

	if (is_limit && build_limit(b, o->data, &limit) < 0)
		return -1;
	state = kept_take(b, o->handle, 0, is_limit);
	if (state == NULL)
		state = build_state_new(b, &limit, is_limit);
	o->number = kept_append(b, o->handle, state);
	return 0;
}

static int
add_objref(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	char name[FILTER_NAME];
	struct ruleset_op *op;
	uint32_t type;

	if (attr_be32(attr_find_in(data, NFTA_OBJREF_IMM_TYPE), &type) < 0)
		return build_fail(b, "a map of named objects is not supported");
	if (type != NFT_OBJECT_COUNTER && type != NFT_OBJECT_LIMIT)
		return build_fail(b, "a named %s is not supported",
				  type == NFT_OBJECT_QUOTA ? "quota"
							   : "object of this kind");
	attr_text(attr_find_in(data, NFTA_OBJREF_IMM_NAME), name, sizeof(name));
	for (uint32_t i = 0; i < b->n_object; i++) {
		struct raw_object *o = &b->object[i];
		struct ruleset_state *state;

		if (o->type != type || strcmp(o->name, name) != 0)
			continue;
		if (o->number == RULESET_NONE && object_add(b, o) < 0)
			return -1;
		state = b->r->stateful[o->number].state;
		op = op_add(b, type == NFT_OBJECT_LIMIT ? OP_LIMIT : OP_COUNT);
		if (type == NFT_OBJECT_LIMIT)
			op->limit = state->limit;
		else
			op->count = state->count;
		return 0;
	}
	return build_fail(b, "the named object is not there");
}

static int
add_reject(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	/*
	 * Codes of ICMP and ICMPv6 by NFT_REJECT_ICMPX_: no route, port unreachable, host
	 * unreachable, administratively prohibited.
	 */
	static const uint8_t of_4[] = {0, 3, 1, 13}, of_6[] = {0, 4, 3, 1};
	struct ruleset_op *op;
	uint32_t type;
	uint8_t code = 0;

	if (attr_be32(attr_find_in(data, NFTA_REJECT_TYPE), &type) < 0)
		return -1;
	if (type == NFT_REJECT_TCP_RST)
		return build_fail(b, "reject with tcp reset is not supported; "
				     "reject with an ICMP error is");
	if (attr_find_in(data, NFTA_REJECT_ICMP_CODE) != NULL &&
	    attr_copy(attr_find_in(data, NFTA_REJECT_ICMP_CODE), &code, 1) < 0)
		return -1;
	if (type == NFT_REJECT_ICMPX_UNREACH && code >= sizeof(of_4))
		return -1;
	op = op_add(b, OP_REJECT);
	op->reject.type[0] = 3;
	op->reject.type[1] = 1;
	op->reject.code[0] = type == NFT_REJECT_ICMPX_UNREACH ? of_4[code] : code;
	op->reject.code[1] = type == NFT_REJECT_ICMPX_UNREACH ? of_6[code] : code;
	return 0;
}

static int
add_log(struct build *b, const struct nlattr *data, struct ruleset_rule *rule)
{
	struct ruleset_log *log = calloc(1, sizeof(*log));
	uint32_t level = LOG_WARNING; /* the default of nft */
	const struct nlattr *group = attr_find_in(data, NFTA_LOG_GROUP);
	uint8_t octet[2];

	if (log == NULL)
		abort();
	b->r->logs = true;
	op_add(b, OP_LOG)->log = log;
	(void)attr_be32(attr_find_in(data, NFTA_LOG_LEVEL), &level);
	if (level > LOG_DEBUG)
		return build_fail(b, "log level audit is not supported");
	log->level = (uint8_t)level;
	attr_text(attr_find_in(data, NFTA_LOG_PREFIX), log->prefix, sizeof(log->prefix));
	if (group == NULL)
		return 0;
	if (attr_copy(group, octet, sizeof(octet)) < 0)
		return -1;
	log->has_group = true;
	log->group = get_be16(octet);
	return 0;
}

static const struct {
	const char *name;
	int (*add)(struct build *b, const struct nlattr *data, struct ruleset_rule *rule);
} expressions[] = {
	{"payload", add_payload}, {"meta", add_meta},
	{"exthdr", add_exthdr},   {"immediate", add_immediate},
	{"cmp", add_cmp},         {"range", add_range},
	{"bitwise", add_bitwise}, {"byteorder", add_byteorder},
	{"lookup", add_lookup},   {"counter", add_counter},
	{"limit", add_limit},     {"objref", add_objref},
	{"reject", add_reject},   {"log", add_log},
	{"fib", add_fib},
};

int
build_expression(struct build *b, const struct nlattr *expr, struct ruleset_rule *rule)
{
	const struct nlattr *data = attr_find_in(expr, NFTA_EXPR_DATA);
	char name[32], safe[64];

	attr_text(attr_find_in(expr, NFTA_EXPR_NAME), name, sizeof(name));
	for (unsigned int i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++)
		if (strcmp(expressions[i].name, name) == 0) {
			if (expressions[i].add(b, data, rule) == 0)
				return 0;
			return build_fail(b, "the expression %s is malformed", name);
		}
	log_escape_name(name, safe, sizeof(safe));
	return build_fail(b, "the expression %s is not supported%s", safe,
			  strcmp(name, "ct") == 0
				  ? ": no connection is kept; for answers of TCP write: "
				    "tcp flags & (ack | rst) != 0 accept"
				  : "");
}
