/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier of long chains (acl.c) never changes a verdict, a deciding rule or a
 * counter, and it is exact for the rules that it calls sure. Each packet is judged by two
 * equal rulesets, of which one has the classifier.
 *
 * link: fpm-dataplane/ruleset/ poptrie/ fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <dlfcn.h>
#include <errno.h>
#include <rte_acl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/inet.h"
#include "eal.h"
#include "ruleset/acl.h"
#include "ruleset/ruleset.h"

#define RULES   24
#define OPS     10 /* room for the operations of a rule */
#define PACKETS 400
#define SETS    9

struct given {
	const char *name;
	uint8_t sure; /* true if the rule is sure, bit 0: for IPv4, bit 1: for IPv6 */
	struct ruleset_op op[OPS];
};

/* --- operations ----------------------------------------------------------------------- */

#define NETWORK(from, octets)                                                           \
	{                                                                               \
		.kind = OP_PAYLOAD, .what = BASE_NETWORK, .at = (from), .len = (octets) \
	}
#define PORTS(from, octets)                                                               \
	{                                                                                 \
		.kind = OP_PAYLOAD, .what = BASE_TRANSPORT, .at = (from), .len = (octets) \
	}
#define META(fact)                                             \
	{                                                      \
		.kind = OP_META, .what = META_##fact, .len = 1 \
	}
#define MASK(octets, ...)                                              \
	{                                                              \
		.kind = OP_MASK, .len = (octets), .a = { __VA_ARGS__ } \
	}
#define IS(how, octets, ...)                                                \
	{                                                                   \
		.kind = OP_COMPARE, .what = COMPARE_##how, .len = (octets), \
		.a = { __VA_ARGS__ }                                        \
	}
#define LOOKUP(number, inverted)                                       \
	{                                                              \
		.kind = OP_LOOKUP, .set = (number), .flag = (inverted) \
	}
#define COUNT                         \
	{                             \
		.kind = OP_COUNT_RULE \
	}
#define THE(...)            \
	{                   \
		__VA_ARGS__ \
	}
#define IN(how, octets, first, last)                                                  \
	{                                                                             \
		.kind = OP_RANGE, .what = COMPARE_##how, .len = (octets), .a = first, \
		.b = last                                                             \
	}

enum {
	SET_PORTS,
	SET_HOSTS,
	SET_MANY,
	SET_NONE,
	SET_LIVE,
	SET_EXPIRES,
	SET_SPANS,
	SET_EIGHT,
	SET_HOSTS6
};

/* --- the two rulesets ----------------------------------------------------------------- */

static struct ruleset_op op[RULES * OPS];
static struct ruleset_set set[SETS];
static uint32_t base = 0;
static struct bed {
	struct ruleset r;
	struct ruleset_chain chain, empty;
	struct ruleset_rule rule[RULES];
	struct ruleset_state state[RULES];
	struct ruleset_count count[RULES];
} with, without;
static struct ruleset_packet packet[PACKETS];
static uint8_t octets[PACKETS][60];
static unsigned int n_packet;

static void
beds_clear(void)
{
	ruleset_acl_free(with.chain.acl[0]);
	ruleset_acl_free(with.chain.acl[1]);
	memset(&with, 0, sizeof(with));
	memset(&without, 0, sizeof(without));
}

static void
bed_add(struct bed *b, unsigned int n_op)
{
	uint32_t i = b->r.n_rule++;

	b->state[i] = (struct ruleset_state){.count = &b->count[i]};
	b->rule[i] = (struct ruleset_rule){
		.op = i * OPS, .n_op = n_op, .counts = true, .state = &b->state[i]};
	b->chain.n_rule = b->r.n_rule;
	for (unsigned int k = 0; k < n_op; k++)
		if (op[i * OPS + k].kind == OP_COUNT_RULE)
			return;
	b->rule[i].counts = false; /* it counts after its last operation */
}

/* Append a rule: `given`, and behind it a verdict, unless `code` is CODE_CONTINUE. */
static void
rule_add(const struct ruleset_op *given, int code)
{
	struct ruleset_op *to = &op[with.r.n_rule * OPS];
	unsigned int n = 0;

	assert_true(with.r.n_rule < RULES);
	while (n < OPS - 1 && (given[n].kind != OP_PAYLOAD || given[n].len != 0)) {
		to[n] = given[n];
		n++;
	}
	if (code == CODE_REJECT)
		to[n++] = (struct ruleset_op){.kind = OP_REJECT};
	else if (code != CODE_CONTINUE)
		to[n++] = (struct ruleset_op){
			.kind = OP_VERDICT, .verdict = {.code = (uint8_t)code, .chain = 1}};
	bed_add(&with, n);
	bed_add(&without, n);
}

static void
bed_finish(struct bed *b)
{
	b->r.n_base = 1;
	b->r.n_chain = 2; /* the second chain is empty: rules jump to it */
	b->r.base = &base;
	b->r.chain = &b->chain;
	b->r.rule = b->rule;
	b->r.op = op;
	b->r.set = set;
	b->r.n_set = SETS;
	b->r.n_op = RULES * OPS;
}

static void
beds_build(void)
{
	bed_finish(&with);
	bed_finish(&without);
	assert_int_equal(ruleset_acl_build(&with.r), 0);
	assert_non_null(with.chain.acl[0]);
	assert_non_null(with.chain.acl[1]);
}

static enum ruleset_verdict
judge(struct bed *b, struct ruleset_packet *p)
{
	p->looked = false;
	p->begins = NULL;
	return ruleset_judge(&b->r, p);
}

/*
 * Judge all packets by both rulesets. `exact` (bit 0: for IPv4, bit 1: for IPv6): the
 * classifier has to name the deciding rule of a packet with ports, and no rule if none
 * matches.
 */
static void
packets_agree(const char *name, unsigned int exact)
{
	uint32_t all[PACKETS * ACL_SEGMENTS_MAX], one[ACL_SEGMENTS_MAX];
	struct ruleset_packet *p[PACKETS];
	const uint8_t *ip;

	for (unsigned int i = 0; i < n_packet; i++) {
		struct ruleset_packet *k = p[i] = &packet[i];
		const struct ruleset_acl *acl = with.chain.acl[k->family == 6];
		enum ruleset_verdict is = judge(&without, k);
		uint32_t rule = k->rule;
		bool ports = !k->later && k->has_transport && k->transport + 4 <= k->room;

		if (judge(&with, k) != is || k->rule != rule)
			fail_msg("%s: packet %u: rule %d, and %d with the classifier", name,
				 i, (int)rule, (int)k->rule);
		ruleset_acl_classify(acl, &p[i], 1, one);
		if ((exact >> (k->family == 6) & 1) != 0 && ports &&
		    one[0] != (rule == RULESET_NONE ? 0 : rule + 1))
			fail_msg("%s: packet %u: the classifier names %u, not %d", name, i,
				 one[0], (int)rule + 1);
		/* Judge again, now with the first rule of each segment known before. */
		k->begins = one;
		assert_int_equal(ruleset_judge(&with.r, k), is);
		assert_int_equal(k->rule, rule);
		k->begins = NULL;
		(void)judge(&without, k);
		if (k->family != 4 || !ports || k->transport != 20)
			continue;
		ip = k->ip;
		ruleset_acl_classify4(acl, &ip, 1, k->now, all);
		assert_memory_equal(all, one, acl->n_category * sizeof(*all));
	}
	/* All packets of a family together. */
	for (unsigned int from = 0, end; from < n_packet; from = end) {
		const struct ruleset_acl *acl = with.chain.acl[packet[from].family == 6];

		for (end = from;
		     end < n_packet && packet[end].family == packet[from].family;)
			end++;
		ruleset_acl_classify(acl, &p[from], end - from, all);
		for (unsigned int i = from; i < end; i++) {
			ruleset_acl_classify(acl, &p[i], 1, one);
			assert_memory_equal(all + (i - from) * acl->n_category, one,
					    acl->n_category * sizeof(*one));
		}
	}
	for (unsigned int i = 0; i < with.r.n_rule; i++)
		assert_int_equal(with.count[i].packets, without.count[i].packets);
}

/* --- packets -------------------------------------------------------------------------- */

static uint8_t *
packet_new(uint8_t family, unsigned int room)
{
	struct ruleset_packet *p = &packet[n_packet];
	static const char name[16] = "lan0";

	assert_true(n_packet < PACKETS);
	memset(octets[n_packet], 0, sizeof(octets[0]));
	*p = (struct ruleset_packet){.ip = octets[n_packet++],
				     .room = room,
				     .l3_bytes = 100,
				     .family = family,
				     .now = 1000,
				     .iifname = name,
				     .oifname = name};
	return p->ip;
}

static void
packet4(uint8_t proto, uint32_t src, uint32_t dst, unsigned int sport, unsigned int dport)
{
	uint8_t *ip = packet_new(4, 28);

	ip[0] = 0x45;
	ip[8] = 9;
	ip[9] = proto;
	put_be32(ip + 12, src);
	put_be32(ip + 16, dst);
	put_be16(ip + 20, (uint16_t)sport);
	put_be16(ip + 22, (uint16_t)dport);
}

/*
 * Addresses begin with 2001:db8. `src`, `dst`: octets 7 and 8 (from 0), and the last two.
 */
static void
packet6(uint8_t proto, uint32_t src, uint32_t dst, unsigned int sport, unsigned int dport)
{
	uint8_t *ip = packet_new(6, 48);

	ip[0] = 0x60;
	ip[6] = proto;
	ip[7] = 9;
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t v = i == 0 ? src : dst;
		uint8_t *to = ip + 8 + 16 * i;

		put_be32(to, 0x20010db8);
		put_be16(to + 7, (uint16_t)(v >> 16));
		put_be16(to + 14, (uint16_t)v);
	}
	put_be16(ip + 40, (uint16_t)sport);
	put_be16(ip + 42, (uint16_t)dport);
}

static void
packets_make(void)
{
	static const uint32_t src4[] = {0x0a000000, 0x0a000001, 0x0a000002, 0x0a00007f,
					0x0a000080, 0x0a0000ff, 0x0a000100, 0x09ffffff,
					0x0affffff, 0x0a7fffff, 0x0a800000, 0x0b000000};
	static const uint32_t src6[] = {0x00000000, 0x00000001, 0x00000002, 0x0000ffff,
					0x00800001, 0x00010001, 0x00ff0001, 0x01000001,
					0x00007fff, 0x00008000, 0x007f0001, 0xffff0001};
	static const uint32_t dst4[] = {0xc0000208, 0xc0000209, 0xc000020a};
	static const uint32_t dst6[] = {0x00000008, 0x00000009, 0x0000000a};
	static const uint16_t port[] = {0, 1, 52, 53, 54, 1023, 1024, 1025, 65535};
	static const uint8_t proto[] = {6, 17, 18};
	uint8_t *ip;

	n_packet = 0;
	for (unsigned int six = 0; six < 2; six++) {
		void (*make)(uint8_t, uint32_t, uint32_t, unsigned int, unsigned int) =
			six ? packet6 : packet4;
		const uint32_t *src = six ? src6 : src4, *dst = six ? dst6 : dst4;

		for (unsigned int i = 0; i < 12; i++)
			for (unsigned int k = 0; k < 3; k++)
				make(proto[(i + k) % 3], src[i], dst[k], 53, 53);
		for (unsigned int i = 0; i < 9; i++)
			for (unsigned int k = 0; k < 9; k++)
				make(proto[(i + k) % 3], src[1], dst[1], port[i], port[k]);
		for (unsigned int i = 0; i < 3; i++)
			make(proto[i], src[1], dst[1], 1, 53);
		if (six)
			continue;
		/* Without ports, with one, with half of one; a later fragment; options. */
		for (unsigned int room = 20; room < 25; room++) {
			make(17, src4[1], dst4[1], 53, 53);
			packet[n_packet - 1].room = room;
		}
		make(17, src4[1], dst4[1], 53, 53);
		packet[n_packet - 1].ip[7] = 1;
		make(17, src4[1], dst4[1], 1, 53);
		ip = packet[n_packet - 1].ip;
		memmove(ip + 24, ip + 20, 4);
		memset(ip + 20, 0, 4);
		ip[0] = 0x46;
	}
}

/* --- sets ----------------------------------------------------------------------------- */

static uint8_t keys[SETS][20 * 16];
static struct ruleset_element elements[SETS][20];
static struct ruleset_content content[SETS];

static void
set_make(unsigned int number, uint8_t kind, uint8_t len, uint32_t n)
{
	content[number] = (struct ruleset_content){
		.n = n, .key = keys[number], .element = elements[number]};
	set[number] = (struct ruleset_set){.kind = kind, .key_len = len};
	atomic_store(&set[number].content, &content[number]);
}

static void
sets_make(void)
{
	memset(keys, 0, sizeof(keys));
	memset(elements, 0, sizeof(elements));
	/* Ports 53 to 1023, and from 65535 on. */
	set_make(SET_PORTS, SET_INTERVAL, 2, 3);
	put_be16(keys[SET_PORTS], 53);
	put_be16(keys[SET_PORTS] + 2, 1024);
	elements[SET_PORTS][1].end = true;
	put_be16(keys[SET_PORTS] + 4, 65535);
	set_make(SET_HOSTS, SET_EXACT, 4, 2);
	put_be32(keys[SET_HOSTS], 0x0a000001);
	put_be32(keys[SET_HOSTS] + 4, 0x0a0000ff);
	set_make(SET_MANY, SET_EXACT, 4, 17);
	for (unsigned int i = 0; i < 17; i++)
		put_be32(keys[SET_MANY] + 4 * i, 0x0a000001 + i);
	set_make(SET_NONE, SET_EXACT, 4, 0);
	set_make(SET_LIVE, SET_EXACT, 4, 1);
	put_be32(keys[SET_LIVE], 0x0a000002);
	set[SET_LIVE].changes = true;
	set_make(SET_EXPIRES, SET_EXACT, 4, 2);
	put_be32(keys[SET_EXPIRES], 0x0a000001);
	put_be32(keys[SET_EXPIRES] + 4, 0x0a000002);
	elements[SET_EXPIRES][0].until = 500; /* before `now` */
	set[SET_EXPIRES].expires = true;
	/* Ten ports each, so that two fields have 100 combinations. */
	set_make(SET_SPANS, SET_EXACT, 2, 10);
	for (unsigned int i = 0; i < 10; i++)
		put_be16(keys[SET_SPANS] + 2 * i, (uint16_t)(50 + 2 * i - (i > 5)));
	set_make(SET_EIGHT, SET_EXACT, 2, 8);
	for (unsigned int i = 0; i < 8; i++)
		put_be16(keys[SET_EIGHT] + 2 * i, (uint16_t)(51 + 2 * i));
	set_make(SET_HOSTS6, SET_EXACT, 16, 1);
	put_be32(keys[SET_HOSTS6], 0x20010db8);
	keys[SET_HOSTS6][15] = 1;
}

/* --- rules ---------------------------------------------------------------------------- */

static const struct given given[] = {
	{"all packets", 3, {COUNT}},
	{"protocol", 3, {META(L4PROTO), IS(EQ, 1, 17)}},
	{"protocol in the header", 1, {NETWORK(9, 1), IS(EQ, 1, 17)}},
	{"protocols 6 to 17", 0, {META(L4PROTO), IN(EQ, 1, THE(6), THE(17))}},
	{"another protocol", 0, {META(L4PROTO), IS(NE, 1, 17)}},
	{"a host", 1, {NETWORK(12, 4), IS(EQ, 4, 10, 0, 0, 1)}},
	{"a host, counted", 1, {NETWORK(12, 4), IS(EQ, 4, 10, 0, 0, 1), COUNT}},
	{"counted before", 0, {COUNT, NETWORK(12, 4), IS(EQ, 4, 10, 0, 0, 1)}},
	{"destination", 1, {NETWORK(16, 4), IS(EQ, 4, 192, 0, 2, 9)}},
	{"/25", 1, {NETWORK(12, 4), MASK(4, 255, 255, 255, 128), IS(EQ, 4, 10, 0, 0, 128)}},
	{"/25 and bits behind",
	 0,
	 {NETWORK(12, 4), MASK(4, 255, 255, 255, 128), IS(EQ, 4, 10, 0, 0, 129)}},
	{"/24 in three octets", 1, {NETWORK(12, 3), IS(EQ, 3, 10, 0, 0)}},
	{"/9 in two octets", 1, {NETWORK(12, 2), MASK(2, 255, 128), IS(EQ, 2, 10, 128)}},
	{"/9 in four octets",
	 1,
	 {NETWORK(12, 4), MASK(4, 255, 128, 0, 0), IS(EQ, 4, 10, 128, 0, 0)}},
	{"no prefix",
	 0,
	 {NETWORK(12, 4), MASK(4, 255, 0, 255, 255), IS(EQ, 4, 10, 0, 0, 1)}},
	{"no prefix at the end",
	 0,
	 {NETWORK(12, 4), MASK(4, 255, 255, 255, 1), IS(EQ, 4, 10, 0, 0, 1)}},
	{"flipped",
	 0,
	 {NETWORK(12, 4),
	  {.kind = OP_MASK, .len = 4, .a = {255, 255, 255, 255}, .b = {0, 0, 0, 3}},
	  IS(EQ, 4, 10, 0, 0, 1)}},
	{"/25 in other registers",
	 1,
	 {{.kind = OP_PAYLOAD, .what = BASE_NETWORK, .at = 12, .len = 4, .to = 3},
	  {.kind = OP_MASK, .len = 4, .a = {255, 255, 255, 128}, .from = 3, .to = 7},
	  {.kind = OP_COMPARE,
	   .what = COMPARE_EQ,
	   .len = 4,
	   .a = {10, 0, 0, 128},
	   .from = 7}}},
	{"the register before the mask",
	 1,
	 {{.kind = OP_PAYLOAD, .what = BASE_NETWORK, .at = 12, .len = 4, .to = 3},
	  {.kind = OP_MASK, .len = 4, .a = {255, 255, 255, 128}, .from = 3, .to = 7},
	  {.kind = OP_COMPARE,
	   .what = COMPARE_EQ,
	   .len = 4,
	   .a = {10, 0, 0, 127},
	   .from = 3}}},
	{"a register that another load has changed",
	 0,
	 {NETWORK(12, 4),
	  {.kind = OP_PAYLOAD, .what = BASE_NETWORK, .at = 4, .len = 1},
	  IS(EQ, 4, 0, 0, 0, 0)}},
	{"a mask of one octet in a register of four",
	 0,
	 {NETWORK(12, 4), MASK(1, 255), IS(EQ, 2, 10, 0)}},
	{"both addresses", 1, {NETWORK(12, 8), IS(EQ, 8, 10, 0, 0, 1, 192, 0, 2, 9)}},
	{"from the second octet on", 0, {NETWORK(13, 3), IS(EQ, 3, 0, 0, 1)}},
	{"from the third octet on", 0, {NETWORK(14, 6), IS(EQ, 6, 0, 1, 192, 0, 2, 9)}},
	{"TTL, or the start of an IPv6 source", 2, {NETWORK(8, 1), IS(EQ, 1, 8)}},
	{"TTL and protocol, or the start of an IPv6 source",
	 2,
	 {NETWORK(8, 2), IS(EQ, 2, 8, 17)}},
	{"hosts of a prefix",
	 1,
	 {NETWORK(12, 4), IN(EQ, 4, THE(10, 0, 0, 0), THE(10, 0, 0, 255))}},
	{"hosts of no prefix",
	 0,
	 {NETWORK(12, 4), IN(EQ, 4, THE(10, 0, 0, 1), THE(10, 0, 0, 128))}},
	{"hosts beside",
	 0,
	 {NETWORK(12, 4), IN(NE, 4, THE(10, 0, 0, 0), THE(10, 0, 0, 255))}},
	{"hosts from", 1, {NETWORK(12, 4), IS(GE, 4, 0, 0, 0, 0)}},
	{"source port", 3, {PORTS(0, 2), IS(EQ, 2, 0, 53)}},
	{"destination port", 3, {PORTS(2, 2), IS(EQ, 2, 0, 53)}},
	{"both ports", 3, {PORTS(0, 4), IS(EQ, 4, 0, 1, 0, 53)}},
	{"UDP port", 3, {META(L4PROTO), IS(EQ, 1, 17), PORTS(2, 2), IS(EQ, 2, 0, 53)}},
	{"port up to", 3, {PORTS(2, 2), IS(LE, 2, 0, 53)}},
	{"port below", 0, {PORTS(2, 2), IS(LT, 2, 0, 53)}},
	{"port from", 3, {PORTS(0, 2), IS(GE, 2, 4, 0)}},
	{"port above", 0, {PORTS(0, 2), IS(GT, 2, 4, 0)}},
	{"ports", 3, {PORTS(2, 2), IN(EQ, 2, THE(0, 53), THE(4, 0))}},
	{"other ports", 0, {PORTS(2, 2), IN(NE, 2, THE(0, 53), THE(4, 0))}},
	{"another port", 0, {PORTS(2, 2), IS(NE, 2, 0, 53)}},
	{"ports by mask", 3, {PORTS(0, 2), MASK(2, 255, 252), IS(EQ, 2, 0, 52)}},
	{"half a port", 3, {PORTS(2, 1), IS(EQ, 1, 4)}},
	{"behind the ports", 0, {PORTS(4, 2), IS(EQ, 2, 0, 0)}},
	{"two conditions of a port",
	 0,
	 {PORTS(2, 2), IS(GE, 2, 0, 53), PORTS(2, 2), IS(LE, 2, 4, 0)}},
	{"source and destination port",
	 3,
	 {PORTS(0, 2), IS(GE, 2, 0, 53), PORTS(2, 2), IS(LE, 2, 4, 0)}},
	{"IPv4", 1, {META(FAMILY), IS(EQ, 1, 2), PORTS(2, 2), IS(EQ, 2, 0, 53)}},
	{"IPv6", 2, {META(FAMILY), IS(EQ, 1, 10), PORTS(2, 2), IS(EQ, 2, 0, 53)}},
	{"no family", 0, {META(FAMILY), IS(EQ, 1, 3)}},
	{"interface", 0, {META(IIFNAME), IS(EQ, 5, 'l', 'a', 'n', '0', 0)}},
	{"length", 0, {META(LENGTH), IS(EQ, 4, 100, 0, 0, 0)}},
	{"a register used again",
	 3,
	 {META(IIFNAME), META(L4PROTO), IS(EQ, 1, 17), PORTS(2, 2), IS(EQ, 2, 0, 53)}},
	{"a constant",
	 0,
	 {NETWORK(12, 4),
	  {.kind = OP_VALUE, .len = 4, .a = {10, 0, 0, 1}},
	  IS(EQ, 4, 10, 0, 0, 1)}},
	{"set of ports", 3, {PORTS(2, 2), LOOKUP(SET_PORTS, 0)}},
	{"not in a set of ports", 3, {PORTS(2, 2), LOOKUP(SET_PORTS, 1)}},
	{"set of source ports", 3, {PORTS(0, 2), LOOKUP(SET_PORTS, 0)}},
	{"set of hosts", 1, {NETWORK(12, 4), LOOKUP(SET_HOSTS, 0)}},
	{"not in a set of hosts", 1, {NETWORK(12, 4), LOOKUP(SET_HOSTS, 1)}},
	{"set of many hosts", 1, {NETWORK(12, 4), LOOKUP(SET_MANY, 0)}},
	{"empty set", 0, {NETWORK(12, 4), LOOKUP(SET_NONE, 0)}},
	{"not in an empty set", 1, {NETWORK(12, 4), LOOKUP(SET_NONE, 1)}},
	{"set that changes", 1, {NETWORK(12, 4), LOOKUP(SET_LIVE, 0)}},
	{"set that expires", 0, {NETWORK(12, 4), LOOKUP(SET_EXPIRES, 0)}},
	{"in and not in a set",
	 0,
	 {NETWORK(12, 4), LOOKUP(SET_LIVE, 0), NETWORK(12, 4), LOOKUP(SET_LIVE, 1)}},
	{"set of sources asked for destinations", 1, {NETWORK(16, 4), LOOKUP(SET_LIVE, 0)}},
	{"part of a host in a set", 0, {NETWORK(13, 4), LOOKUP(SET_LIVE, 0)}},
	{"more than 64 combinations",
	 0,
	 {PORTS(0, 2), LOOKUP(SET_SPANS, 0), PORTS(2, 2), LOOKUP(SET_SPANS, 0)}},
	{"64 combinations",
	 3,
	 {PORTS(0, 2), LOOKUP(SET_EIGHT, 0), PORTS(2, 2), LOOKUP(SET_EIGHT, 0)}},
	{"host of IPv6",
	 2,
	 {NETWORK(8, 16),
	  IS(EQ, 16, 0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)}},
	{"destination of IPv6",
	 2,
	 {NETWORK(24, 16),
	  IS(EQ, 16, 0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)}},
	{"/64", 2, {NETWORK(8, 8), IS(EQ, 8, 0x20, 1, 13, 0xb8, 0, 0, 0, 0)}},
	{"/65",
	 2,
	 {NETWORK(8, 9), MASK(9, 255, 255, 255, 255, 255, 255, 255, 255, 128),
	  IS(EQ, 9, 0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0x80)}},
	{"/113",
	 2,
	 {NETWORK(8, 16),
	  MASK(16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	       128),
	  IS(EQ, 16, 0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128)}},
	{"next header of IPv6", 0, {NETWORK(6, 1), IS(EQ, 1, 17)}},
	{"set of hosts of IPv6", 2, {NETWORK(8, 16), LOOKUP(SET_HOSTS6, 0)}},
	{"not in a set of hosts of IPv6", 2, {NETWORK(8, 16), LOOKUP(SET_HOSTS6, 1)}},
};

#define N_GIVEN (sizeof(given) / sizeof(given[0]))

/* A rule of IPv4 or IPv6 that no packet matches. */
static const struct ruleset_op nothing[OPS] = {PORTS(0, 4), IS(EQ, 4, 255, 254, 255, 254)};

static void
each_rule_has_exact_conditions_or_wider_ones(void **state)
{
	for (unsigned int i = 0; i < N_GIVEN; i++) {
		for (unsigned int drops = 0; drops < 2; drops++) {
			beds_clear();
			rule_add(given[i].op, drops ? CODE_DROP : CODE_ACCEPT);
			for (unsigned int k = 1; k < ACL_RULES_MIN; k++)
				rule_add(nothing, CODE_DROP);
			with.chain.drops = without.chain.drops = !drops;
			beds_build();
			if (with.rule[0].sure != given[i].sure)
				fail_msg("%s: sure %u", given[i].name, with.rule[0].sure);
			if (given[i].sure != 0)
				assert_int_equal(with.rule[0].sure_code,
						 drops ? CODE_DROP : CODE_ACCEPT);
			packets_agree(given[i].name, given[i].sure);
		}
	}
	/* The elements of a set change while the classifier stays. */
	beds_clear();
	for (unsigned int k = 1; k < ACL_RULES_MIN; k++)
		rule_add(nothing, CODE_DROP);
	rule_add((const struct ruleset_op[OPS]){NETWORK(12, 4), LOOKUP(SET_LIVE, 0)},
		 CODE_DROP);
	beds_build();
	put_be32(keys[SET_LIVE], 0x0a000001);
	packets_agree("changed set", 1);
}

/* A rule without a verdict, or with another effect, is not sure. */
static void
only_a_rule_that_counts_and_decides_is_sure(void **state)
{
	static const struct ruleset_op plain[OPS] = {PORTS(2, 2), IS(EQ, 2, 0, 53), COUNT},
				       twice[OPS] = {PORTS(2, 2), IS(EQ, 2, 0, 53), COUNT,
						     COUNT},
				       jumps[OPS] = {PORTS(2, 2), IS(EQ, 2, 0, 53)};

	beds_clear();
	rule_add(plain, CODE_CONTINUE);
	rule_add(twice, CODE_DROP);
	rule_add(jumps, CODE_RETURN);
	rule_add(plain, CODE_ACCEPT);
	beds_build();
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(with.rule[i].sure, 0);
	assert_int_equal(with.rule[3].sure, 3);
	packets_agree("effects", 0);
	/* A chain of three rules is walked. */
	beds_clear();
	for (unsigned int i = 0; i < ACL_RULES_MIN - 1; i++)
		rule_add(plain, CODE_DROP);
	bed_finish(&with);
	assert_int_equal(ruleset_acl_build(&with.r), 0);
	assert_null(with.chain.acl[0]);
	/* A chain of one family has no classifier for the other. */
	for (unsigned int family = 4; family <= 6; family += 2) {
		beds_clear();
		for (unsigned int i = 0; i < ACL_RULES_MIN; i++)
			rule_add(plain, CODE_DROP);
		with.chain.family = (uint8_t)family;
		bed_finish(&with);
		assert_int_equal(ruleset_acl_build(&with.r), 0);
		assert_int_equal(with.chain.acl[0] != NULL, family == 4);
		assert_int_equal(with.chain.acl[1] != NULL, family == 6);
	}
}

/* Chains are cut behind rules that do not end them, at most into 16 segments. */
static void
chains_of_many_rules_have_the_verdicts_of_their_rules(void **state)
{
	static const uint8_t code[] = {CODE_ACCEPT, CODE_DROP, CODE_CONTINUE, CODE_RETURN,
				       CODE_REJECT, CODE_JUMP, CODE_GOTO,     CODE_BREAK};
	uint32_t seed = 7;

	for (unsigned int round = 0; round < 40; round++) {
		unsigned int n = round < 20 ? ACL_RULES_MIN + round % 9 : RULES, soft = 0;

		beds_clear();
		for (unsigned int i = 0; i < n; i++) {
			unsigned int c;

			seed = seed * 1664525u + 1013904223u;
			c = round < 20 ? seed >> 16 & 7 : (seed >> 16) % 5 == 0 ? 1 : 2;
			soft += i + 1 < n &&
				(code[c] == CODE_CONTINUE || code[c] == CODE_JUMP ||
				 code[c] == CODE_BREAK);
			rule_add(given[(seed >> 8) % N_GIVEN].op, code[c]);
		}
		with.chain.drops = without.chain.drops = (round & 1) != 0;
		beds_build();
		assert_int_equal(with.chain.acl[0]->n_segment,
				 soft + 1 < ACL_SEGMENTS_MAX ? soft + 1 : ACL_SEGMENTS_MAX);
		packets_agree("many rules", 0);
	}
}

/* True: the library refuses each build, as if there was no memory. */
static bool refuses;
static unsigned int n_built;
static int64_t build_ms; /* CPU time that each build takes; 0: the real CPU time */

int
rte_acl_build(struct rte_acl_ctx *ctx, const struct rte_acl_config *config)
{
	__typeof__(&rte_acl_build) real =
		(__typeof__(&rte_acl_build))dlsym(RTLD_NEXT, "rte_acl_build");

	n_built++;
	return refuses ? -ENOMEM : real(ctx, config);
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	__typeof__(&clock_gettime) real =
		(__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");

	if (clock != CLOCK_THREAD_CPUTIME_ID || build_ms == 0)
		return real(clock, now);
	*now = (struct timespec){.tv_sec = n_built * build_ms / 1000,
				 .tv_nsec = n_built * build_ms % 1000 * 1000000};
	return 0;
}

/* The chain is walked: all verdicts, deciding rules and counters are the same. */
static void
a_chain_whose_build_fails_is_walked(void **state)
{
	beds_clear();
	for (unsigned int i = 0; i < RULES; i++)
		rule_add(given[i * 2 % N_GIVEN].op, i % 3 == 0 ? CODE_CONTINUE : CODE_DROP);
	bed_finish(&with);
	bed_finish(&without);
	refuses = true;
	assert_int_equal(ruleset_acl_build(&with.r), 2);
	refuses = false;
	assert_null(with.chain.acl[0]);
	assert_null(with.chain.acl[1]);
	for (unsigned int i = 0; i < n_packet; i++) {
		enum ruleset_verdict is = judge(&without, &packet[i]);
		uint32_t rule = packet[i].rule;

		assert_int_equal(judge(&with, &packet[i]), is);
		assert_int_equal(packet[i].rule, rule);
	}
	for (unsigned int i = 0; i < RULES; i++)
		assert_int_equal(with.count[i].packets, without.count[i].packets);
	/* The rules decided about some packets, and passed others on. */
	assert_in_range(with.count[0].packets, 1, PACKETS);
}

/*
 * Build the classifiers of a chain of `n` equal rules, for both families. Return the
 * failures.
 */
static unsigned int
long_chain_build(unsigned int n)
{
	struct ruleset_rule *rule = calloc(n, sizeof(*rule));

	assert_non_null(rule);
	beds_clear();
	rule_add(given[0].op, CODE_DROP);
	bed_finish(&with);
	for (unsigned int i = 0; i < n; i++)
		rule[i] = with.rule[0];
	with.r.rule = rule;
	with.r.n_rule = with.chain.n_rule = n;
	n_built = 0;
	n = ruleset_acl_build(&with.r);
	with.r.rule = with.rule;
	free(rule);
	return n;
}

static void
a_classifier_that_would_take_too_long_is_not_built(void **state)
{
	/* The first build takes all the time that there is. */
	build_ms = 13000;
	assert_int_equal(long_chain_build(100), 1);
	assert_int_equal(n_built, 1);
	assert_non_null(with.chain.acl[0]);
	assert_null(with.chain.acl[1]);
	/* 500 rules take a second: 10,000 rules would take too long. */
	build_ms = 1000;
	assert_int_equal(long_chain_build(10000), 2);
	assert_int_equal(n_built, 2);
	assert_null(with.chain.acl[0]);
	build_ms = 10;
	assert_int_equal(long_chain_build(10000), 0);
	assert_int_equal(n_built, 6);
	assert_non_null(with.chain.acl[1]);
	build_ms = 0;
}

static void
a_chain_of_a_dormant_table_has_no_classifier(void **state)
{
	beds_clear();
	for (unsigned int i = 0; i < RULES; i++)
		rule_add(given[i * 2 % N_GIVEN].op, CODE_DROP);
	bed_finish(&with);
	with.chain.dormant = true;
	assert_int_equal(ruleset_acl_build(&with.r), 0);
	assert_null(with.chain.acl[0]);
	assert_null(with.chain.acl[1]);
	with.chain.dormant = false;
	assert_int_equal(ruleset_acl_build(&with.r), 0);
	assert_non_null(with.chain.acl[0]);
	assert_non_null(with.chain.acl[1]);
}

static int
setup(void **state)
{
	if (eal_begin("ruleset_acl", "net_null0", "net_null1") < 0)
		return -1;
	sets_make();
	packets_make();
	return 0;
}

static int
teardown(void **state)
{
	beds_clear();
	return 0;
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_has_exact_conditions_or_wider_ones),
		cmocka_unit_test(only_a_rule_that_counts_and_decides_is_sure),
		cmocka_unit_test(chains_of_many_rules_have_the_verdicts_of_their_rules),
		cmocka_unit_test(a_chain_whose_build_fails_is_walked),
		cmocka_unit_test(a_classifier_that_would_take_too_long_is_not_built),
		cmocka_unit_test(a_chain_of_a_dormant_table_has_no_classifier),
	};

	return cmocka_run_group_tests_name("ruleset_acl", tests, setup, teardown);
}
