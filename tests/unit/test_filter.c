/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The builder of rulesets, also with messages that the kernel would not send, and the
 * verdicts on packets. test_filter.py uses the messages of a real kernel, and compares the
 * verdicts with those of Linux.
 *
 * link: fpm-dataplane/filter/build.c fpm-dataplane/filter/part.c fpm-dataplane/filter/attr.c
 * link: fpm-dataplane/filter/messages.c fpm-dataplane/filter/expr.c fpm-dataplane/filter/kept.c
 * link: fpm-dataplane/filter/elements.c fpm-dataplane/filter/dump.c fpm-dataplane/filter/merge.c
 * link: fpm-dataplane/filter/events.c fpm-dataplane/filter/change.c poptrie/
 * link: fpm-dataplane/filter/packet_text.c fpm-dataplane/netlink/exchange.c
 * link: fpm-dataplane/ruleset/ fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "filter/packet_text.h"
#include "filter_messages.h"

static struct messages m;
static char why[FILTER_WHY];

/* IPv4, UDP from port 1 to port 53, from 10.1.2.3. */
static uint8_t packet4[28] = {0x45, 0, 0,   28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1,
			      2,    3, 192, 0,  2, 9, 0, 1, 0,  53, 0, 8, 0,  0};

static struct ruleset *
build(const struct ruleset *old)
{
	return messages_build(&m, old, 7, why);
}

static enum ruleset_back the_reverse_path;
static bool asked_by_iif;

static enum ruleset_back
reverse_path(const struct ruleset_packet *p, bool iif)
{
	asked_by_iif = iif;
	return the_reverse_path;
}

/* Judge a packet of `octets` octets at the time `now`, in ticks. */
static enum ruleset_verdict
judge_at(const struct ruleset *r, uint16_t octets, uint64_t now)
{
	static const char name[16] = "lan0";
	struct ruleset_packet p = {.ip = packet4,
				   .room = sizeof(packet4),
				   .l3_bytes = octets,
				   .family = 4,
				   .iifname = name,
				   .oifname = name,
				   .back = reverse_path,
				   .now = now};

	return ruleset_judge(r, &p);
}

static enum ruleset_verdict
judge(const struct ruleset *r)
{
	return judge_at(r, sizeof(packet4), 2000);
}

static void
begin(void)
{
	m.n = 0;
	put_chain(&m, "forward", 1, NF_INET_FORWARD, 0, false);
}

static void
rule_with_verdict(const char *chain, uint64_t handle, int code, const char *to)
{
	rule_begin(&m, chain, handle);
	put_plain(&m, "counter");
	put_immediate(&m, code, to);
	rule_end(&m);
}

/*
 * `explain` (dry) gets the verdict that packets get: a rule sees the DSCP that an earlier
 * rule has set. It changes no counter.
 */
static void
a_later_rule_sees_the_dscp_that_is_set(void **state)
{
	static const char name[16] = "lan0";
	static const uint8_t ef = 46 << 2;
	struct ruleset *r;

	begin();
	rule_begin(&m, "forward", 5);
	put_dscp_set(&m, 46);
	rule_end(&m);
	rule_begin(&m, "forward", 6);
	put_payload(&m, NFT_PAYLOAD_NETWORK_HEADER, 1, 1, NFT_REG_1);
	put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, &ef, 1);
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
	r = build(NULL);
	assert_non_null(r);
	for (int dry = 0; dry < 2; dry++) {
		uint8_t copy[sizeof(packet4)];
		struct ruleset_packet p = {.ip = copy,
					   .room = sizeof(copy),
					   .l3_bytes = sizeof(copy),
					   .family = 4,
					   .dry = dry != 0,
					   .iifname = name,
					   .oifname = name};

		memcpy(copy, packet4, sizeof(copy));
		assert_int_equal(ruleset_judge(r, &p), RULESET_DROP);
		assert_int_equal(r->rule[p.rule].handle, 6);
		assert_int_equal(r->rule[p.rule].state->count->packets, 1);
		assert_true(p.marked);
	}
	ruleset_free(r);
}

static void
put_log(const char *prefix, uint32_t level, bool group)
{
	expr_begin(&m, "log");
	mnl_attr_put_strz(m.nlh, NFTA_LOG_PREFIX, prefix);
	if (group)
		mnl_attr_put_u16(m.nlh, NFTA_LOG_GROUP, htons(7));
	else
		put_be32_attr(&m, NFTA_LOG_LEVEL, level);
	expr_end(&m);
}

static void
a_rule_with_log_copies_the_packet_before_its_verdict(void **state)
{
	static struct logged_ring ring;
	char text[PACKET_TEXT];
	struct ruleset *r;
	struct logged l;

	begin();
	rule_begin(&m, "forward", 5);
	put_log("a \"b\"\n", 7, false);
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
	rule_begin(&m, "forward", 6); /* is not reached */
	put_log("never", 4, false);
	rule_end(&m);
	r = build(NULL);
	assert_non_null(r);
	assert_true(r->logs);
	assert_int_equal(judge(r), RULESET_DROP); /* without a ring */
	r->logged = &ring;
	packet4[5] = 9;
	assert_int_equal(judge(r), RULESET_DROP);
	packet4[5] = 0;
	assert_true(logged_take(&ring, &l));
	assert_int_equal(l.log.level, 7);
	assert_string_equal(packet_text(&l, text),
			    "prefix=\"a \"b\"\\x0a\" in=lan0 out=lan0 src=10.1.2.3 "
			    "dst=192.0.2.9 bytes=28 tos=0x00 ttl=63 id=9 proto=udp sport=1 "
			    "dport=53");
	assert_false(logged_take(&ring, &l));
	for (unsigned int i = 0; i < LOGGED_SLOTS + 3; i++)
		(void)judge(r);
	assert_int_equal(ring.n_lost, 3);
	for (unsigned int i = 0; i < LOGGED_SLOTS; i++)
		assert_true(logged_take(&ring, &l));
	assert_false(logged_take(&ring, &l));
	ruleset_free(r);
}

static void
log_of_a_group_has_its_number_and_audit_is_refused(void **state)
{
	static struct logged_ring ring;
	char text[PACKET_TEXT];
	struct ruleset *r;
	struct logged l;

	begin();
	rule_begin(&m, "forward", 5);
	put_log("", 0, true);
	rule_end(&m);
	r = build(NULL);
	assert_non_null(r);
	r->logged = &ring;
	assert_int_equal(judge(r), RULESET_PASS);
	assert_true(logged_take(&ring, &l));
	assert_int_equal(l.log.level, 4);
	assert_memory_equal(packet_text(&l, text), "prefix=\"\" group=7 in=lan0 ", 26);
	ruleset_free(r);

	begin();
	rule_begin(&m, "forward", 5);
	put_log("x", 8, false);
	rule_end(&m);
	assert_null(build(NULL));
	assert_non_null(strstr(why, "audit"));
}

static struct logged
logged_of(const uint8_t *ip, unsigned int octets)
{
	struct ruleset_packet p = {
		.ip = (uint8_t *)(uintptr_t)ip, .room = octets, .family = ip[0] >> 4};
	struct logged l = {.family = p.family, .octets = (uint16_t)octets};

	ruleset_look(&p);
	l.later = p.later;
	l.has_transport = p.has_transport;
	l.l4proto = p.l4proto;
	l.transport = p.transport;
	memcpy(l.ip, ip, octets);
	return l;
}

/* Return true if the text about a packet ends with `end`. */
static bool
text_ends(const struct logged *l, const char *end)
{
	char text[PACKET_TEXT];
	size_t n = strlen(packet_text(l, text));

	return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

static void
the_text_of_a_packet_has_what_its_headers_have(void **state)
{
	uint8_t syn[40] = {0x45, 0xb8, 0, 40, 0, 1, 0x40, 0, 9, 6, 0, 0, 10, 1, 2, 3, 192,
			   0,    2,    9, 0,  5, 0, 80,   0, 0, 0, 0, 0, 0,  0, 0, 5, 0x12};
	uint8_t ping[48] = {0x6b, 0x80, 0, 0, 0, 8, 58, 2, [40] = 128};
	struct logged l = logged_of(syn, 40);

	assert_true(text_ends(&l, " tos=0xb8 ttl=8 id=1 df=yes proto=tcp sport=5 dport=80 "
				  "flags=syn,ack"));
	l = logged_of(syn, 24); /* cut behind the ports */
	assert_true(text_ends(&l, " proto=tcp sport=5 dport=80"));
	l = logged_of(syn, 20);
	assert_true(text_ends(&l, " proto=tcp"));
	syn[6] = 0x20;
	syn[7] = 2; /* a later fragment */
	l = logged_of(syn, 40);
	assert_true(text_ends(&l, " id=1 fragment=16 proto=tcp"));
	l = logged_of(ping, 48);
	assert_true(text_ends(&l,
			      " src=:: dst=:: bytes=0 tos=0xb8 ttl=1 proto=icmp6 type=128 "
			      "code=0"));
	l = logged_of(ping, 40);
	assert_true(text_ends(&l, " proto=icmp6"));
	/* The longest possible text is not cut. */
	memset(l.log.prefix, '\n', LOGGED_PREFIX - 1);
	memset(l.iifname, 1, 15);
	memset(l.oifname, 1, 15);
	memset(l.ip + 8, 0xfd, 32);
	assert_true(text_ends(&l, " proto=icmp6"));
}

static void
chains_in_a_circle_are_refused(void **state)
{
	begin();
	put_chain(&m, "a", 2, -1, 0, false);
	put_chain(&m, "b", 3, -1, 0, false);
	rule_with_verdict("forward", 10, NFT_JUMP, "a");
	rule_with_verdict("a", 11, NFT_GOTO, "b");
	rule_with_verdict("b", 12, NFT_JUMP, "a");
	assert_null(build(NULL));
	assert_string_equal(why, "chain a leads back to itself");
}

static void
a_circle_that_no_packet_reaches_does_not_matter(void **state)
{
	struct ruleset *r;

	begin();
	put_chain(&m, "a", 2, -1, 0, false);
	rule_with_verdict("a", 11, NFT_JUMP, "a");
	r = build(NULL);
	assert_non_null(r);
	assert_int_equal(r->n_chain, 1);
	ruleset_free(r);
}

static void
chains_too_far_away_are_refused(void **state)
{
	char name[16], next[16];

	for (int last = 15; last <= 17; last++) {
		struct ruleset *r;

		begin();
		rule_with_verdict("forward", 100, NFT_JUMP, "c0");
		for (int i = 0; i <= last; i++) {
			snprintf(name, sizeof(name), "c%d", i);
			snprintf(next, sizeof(next), "c%d", i + 1);
			put_chain(&m, name, 2u + (unsigned int)i, -1, 0, false);
		}
		for (int i = 0; i < last; i++) {
			snprintf(name, sizeof(name), "c%d", i);
			snprintf(next, sizeof(next), "c%d", i + 1);
			rule_with_verdict(name, 101u + (unsigned int)i, NFT_JUMP, next);
		}
		snprintf(name, sizeof(name), "c%d", last);
		rule_with_verdict(name, 200, NF_DROP, NULL);
		r = build(NULL);
		assert_int_equal(r != NULL, last < RULESET_JUMPS_MAX);
		if (r != NULL)
			assert_int_equal(judge(r), RULESET_DROP);
		else
			assert_non_null(strstr(why, "16 chains away"));
		ruleset_free(r);
	}
}

/*
 * Build a ruleset of `n` chains. Each chain jumps three times to the next chain. The last
 * chain has one rule, which drops the packet.
 */
static struct ruleset *
chains_of_three_jumps(int n)
{
	char name[16], next[16];
	uint64_t handle = 100;

	begin();
	rule_with_verdict("forward", 99, NFT_JUMP, "c0");
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		put_chain(&m, name, 2u + (unsigned int)i, -1, 0, false);
	}
	for (int i = 0; i < n - 1; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(next, sizeof(next), "c%d", i + 1);
		for (int k = 0; k < 3; k++)
			rule_with_verdict(name, handle++, NFT_JUMP, next);
	}
	snprintf(name, sizeof(name), "c%d", n - 1);
	rule_with_verdict(name, handle, NF_DROP, NULL);
	return build(NULL);
}

static void
jumps_that_lead_through_too_many_rules_are_refused(void **state)
{
	/*
	 * The jumps of the first of twelve chains lead a packet through 442,866 rules. Each
	 * further chain multiplies this number by about three.
	 */
	struct ruleset *r = chains_of_three_jumps(12);

	assert_non_null(r);
	assert_int_equal(judge(r), RULESET_DROP);
	ruleset_free(r);
	assert_null(chains_of_three_jumps(16));
	assert_string_equal(why, "the jumps of chain c3 lead a packet through more than "
				 "1000000 rules");
}

/*
 * Build `limit rate [over] RATE/second burst 1 drop`. `type`: NFT_LIMIT_PKTS or
 * NFT_LIMIT_PKT_BYTES.
 */
static struct ruleset *
limit_of(uint64_t rate, uint32_t type, bool over)
{
	begin();
	rule_begin(&m, "forward", 10);
	expr_begin(&m, "limit");
	mnl_attr_put_u64(m.nlh, NFTA_LIMIT_RATE, htobe64(rate));
	mnl_attr_put_u64(m.nlh, NFTA_LIMIT_UNIT, htobe64(1));
	put_be32_attr(&m, NFTA_LIMIT_BURST, 1);
	put_be32_attr(&m, NFTA_LIMIT_TYPE, type);
	put_be32_attr(&m, NFTA_LIMIT_FLAGS, over ? NFT_LIMIT_F_INV : 0);
	expr_end(&m);
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
	return build(NULL);
}

/*
 * Packets of 64 or 1500 octets come for ten seconds at three times the rate. The number of
 * packets within the rate is the rate times ten seconds, with an error of at most 1 %. A
 * limit in octets lets pass the octets of one more second, because its bucket is full at
 * the start, as in Linux.
 */
static void
a_limit_has_its_rate_over_ten_seconds(void **state)
{
	static const uint16_t octets[] = {64, 1500};

	for (unsigned int i = 0; i < 8; i++) {
		bool over = (i & 1) != 0, by_octets = (i & 2) != 0;
		uint16_t size = octets[i >> 2];
		uint64_t rate = by_octets ? 1250000 : 9973, within = 0, want;
		uint64_t offered = by_octets ? 3 * rate / size : 3 * rate;
		struct ruleset *r = limit_of(
			rate, by_octets ? NFT_LIMIT_PKT_BYTES : NFT_LIMIT_PKTS, over);

		assert_non_null(r);
		for (uint64_t n = 0; n < 10 * offered; n++) {
			uint64_t now = 2000 + n * 1000000000u / offered;

			/* `over`: the rule drops the packets that are not within. */
			within += (judge_at(r, size, now) == RULESET_DROP) != over;
		}
		want = by_octets ? 11 * rate / size : 10 * rate;
		assert_in_range(within, want - want / 100, want + want / 100);
		ruleset_free(r);
	}
}

static void
an_unknown_expression_is_named_with_its_rule(void **state)
{
	static const uint8_t comment[] = "\x00\x04hey";

	begin();
	rule_begin(&m, "forward", 42);
	put_plain(&m, "teleport");
	mnl_attr_nest_end(m.nlh, m.list);
	mnl_attr_put(m.nlh, NFTA_RULE_USERDATA, sizeof(comment), comment);
	message_end(&m);
	assert_null(build(NULL));
	assert_string_equal(why,
			    "chain forward, handle 42 (hey): the expression teleport is "
			    "not supported");
}

static void
base_chains_are_in_the_order_of_the_kernel(void **state)
{
	struct ruleset *r;

	m.n = 0;
	put_chain(&m, "late", 1, NF_INET_FORWARD, 10, true);
	put_chain(&m, "old", 2, NF_INET_FORWARD, 0, false);
	put_chain(&m, "new", 3, NF_INET_FORWARD, 0, false);
	put_chain(&m, "early", 4, NF_INET_FORWARD, -5, false);
	put_chain(&m, "input", 5, NF_INET_LOCAL_IN, -9, true);
	r = build(NULL);
	assert_non_null(r);
	assert_int_equal(r->n_base, 4);
	assert_string_equal(r->chain[r->base[0]].name, "early");
	assert_string_equal(r->chain[r->base[1]].name, "new");
	assert_string_equal(r->chain[r->base[2]].name, "old");
	assert_string_equal(r->chain[r->base[3]].name, "late");
	assert_int_equal(judge(r), RULESET_DROP);
	ruleset_free(r);
}

static void
base_chains_of_two_tables_are_joined(void **state)
{
	struct ruleset *part[2], *r;

	for (int i = 0; i < 2; i++) {
		m.n = 0;
		put_chain(&m, "late", 1, NF_INET_FORWARD, 10, i == 1);
		put_chain(&m, "forward", 2, NF_INET_FORWARD, i == 0 ? 0 : -5, false);
		put_chain(&m, "a", 3, -1, 0, false);
		rule_with_verdict("forward", 10, NFT_JUMP, "a");
		rule_with_verdict("a", 11, NF_ACCEPT, NULL);
		part[i] = messages_build(&m, NULL, 7 + i, why);
		assert_non_null(part[i]);
	}
	r = filter_merge(part, 2);
	assert_int_equal(r->n_base, 4);
	assert_int_equal(r->chain[r->base[0]].table_handle, 8);
	assert_string_equal(r->chain[r->base[0]].name, "forward");
	assert_int_equal(r->chain[r->base[1]].table_handle, 7);
	assert_string_equal(r->chain[r->base[1]].name, "forward");
	assert_int_equal(r->chain[r->base[2]].table_handle, 7);
	assert_int_equal(r->chain[r->base[3]].table_handle, 8);
	for (uint32_t i = 0; i < r->n_chain; i++) {
		const struct ruleset_chain *c = &r->chain[i];

		for (uint32_t k = c->rule; k < c->rule + c->n_rule; k++)
			assert_int_equal(r->rule[k].chain, i);
	}
	assert_int_equal(judge(r), RULESET_DROP); /* by the policy of the last chain */
	assert_int_equal(r->rule[r->chain[r->base[0]].rule].state->count->packets, 1);
	ruleset_free(r);
}

static void
rule_of_set_with(uint32_t flags)
{
	begin();
	put_set(&m, "s", flags, 4);
	rule_begin(&m, "forward", 10);
	put_payload(&m, NFT_PAYLOAD_NETWORK_HEADER, 12, 4, NFT_REG_1);
	put_lookup(&m, "s", NFT_REG_1);
	put_plain(&m, "counter");
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
}

static void
rule_of_set(void)
{
	rule_of_set_with(NFT_SET_INTERVAL);
}

static void
an_interval_ends_before_its_end(void **state)
{
	static const uint8_t a[] = {10, 1, 2, 0}, b[] = {10, 1, 2, 4}, c[] = {10, 1, 2, 3};
	struct ruleset *r;

	rule_of_set(); /* 10.1.2.0 to 10.1.2.3 */
	put_element(&m, "s", b, 4, NFT_SET_ELEM_INTERVAL_END);
	put_element(&m, "s", a, 4, 0);
	r = build(NULL);
	assert_int_equal(judge(r), RULESET_DROP);
	ruleset_free(r);

	rule_of_set(); /* 10.1.2.0 to 10.1.2.2 */
	put_element(&m, "s", c, 4, NFT_SET_ELEM_INTERVAL_END);
	put_element(&m, "s", a, 4, 0);
	r = build(NULL);
	assert_int_equal(judge(r), RULESET_PASS);
	ruleset_free(r);

	rule_of_set(); /* 10.1.2.0 to 10.1.2.2, and all addresses from 10.1.2.3 on */
	put_element(&m, "s", c, 4, 0);
	put_element(&m, "s", c, 4, NFT_SET_ELEM_INTERVAL_END);
	put_element(&m, "s", a, 4, 0);
	r = build(NULL);
	assert_int_equal(judge(r), RULESET_DROP);
	ruleset_free(r);
}

/* The kernel does not announce that an element expires. */
static void
an_element_for_all_other_keys_expires(void **state)
{
	static const uint8_t other[] = {10, 9, 9, 9};
	const uint64_t expiry = 1000 + 3 * 1000000; /* ticks: 3 ms after the build */
	struct ruleset *r;

	rule_of_set_with(NFT_SET_TIMEOUT);
	put_timed_element(&m, "s", other, 4, 60000);
	put_timed_element(&m, "s", NULL, 0, 3);
	r = build(NULL);
	assert_non_null(r);
	assert_int_equal(judge_at(r, sizeof(packet4), expiry - 1), RULESET_DROP);
	assert_int_equal(judge_at(r, sizeof(packet4), expiry), RULESET_PASS);
	ruleset_free(r);
}

/* The ticks of 9999 days have more than 64 bits. */
static void
an_element_with_a_timeout_of_decades_stays(void **state)
{
	static const uint8_t source[] = {10, 1, 2, 3};
	struct filter_dump dump = {.octet = m.octet, .table_handle = 7};
	struct filter_build_conf conf = messages_conf(NULL);
	struct ruleset *r;

	rule_of_set_with(NFT_SET_TIMEOUT);
	put_timed_element(&m, "s", source, 4, 9999ull * 24 * 3600 * 1000);
	dump.n = m.n;
	conf.ticks_s = 48e9; /* a CPU of 3 GHz */
	r = filter_build(&dump, &conf, why);
	assert_non_null(r);
	assert_int_equal(judge(r), RULESET_DROP);
	ruleset_free(r);
}

static void
counters_stay_with_the_rule_of_the_table(void **state)
{
	struct ruleset *first, *second, *other;

	begin();
	rule_with_verdict("forward", 10, NF_DROP, NULL);
	first = build(NULL);
	judge(first);
	second = build(first);
	judge(second);
	assert_ptr_equal(first->rule[0].state, second->rule[0].state);
	ruleset_free(first);
	assert_int_equal(second->rule[0].state->count[0].packets, 2);
	assert_int_equal(second->rule[0].state->count[0].octets, 56);
	/* The table was deleted and created again: its first rule has the same handle. */
	other = messages_build(&m, second, 8, why);
	assert_int_equal(other->rule[0].state->count[0].packets, 0);
	ruleset_free(second);
	ruleset_free(other);
}

/* Begin a ruleset whose chain sub has rule 20. If `reached`, chain forward jumps to sub. */
static void
chain_that_is_reached(bool reached)
{
	begin();
	put_chain(&m, "sub", 2, -1, 0, false);
	if (reached)
		rule_with_verdict("forward", 10, NFT_JUMP, "sub");
	rule_with_verdict("sub", 20, NF_DROP, NULL);
}

/* Build the ruleset of the messages, for the table with handle 7. Free `old`. */
static struct ruleset *
rebuild(struct ruleset *old, bool dormant)
{
	struct filter_dump dump = {
		.octet = m.octet, .n = m.n, .table_handle = 7, .dormant = dormant};
	struct filter_build_conf conf = messages_conf(old);
	struct ruleset *r = filter_build(&dump, &conf, why);

	assert_non_null(r);
	ruleset_free(old);
	return r;
}

/*
 * As in Linux, the counters of a rule continue after a time in which no packet reached its
 * chain, or in which its table was dormant.
 */
static void
counters_stay_while_no_packet_reaches_the_rule(void **state)
{
	struct ruleset *r;

	chain_that_is_reached(true);
	r = rebuild(NULL, false);
	assert_int_equal(judge(r), RULESET_DROP);
	chain_that_is_reached(false);
	r = rebuild(r, false);
	assert_int_equal(r->n_rule, 0);
	assert_int_equal(judge(r), RULESET_PASS);
	chain_that_is_reached(true);
	rule_begin(&m, "forward", 30);
	put_plain(&m, "unknown");
	rule_end(&m);
	r = rebuild(r, true);
	assert_int_equal(r->n_rule, 0);
	assert_int_equal(judge(r), RULESET_PASS);
	chain_that_is_reached(true);
	r = rebuild(r, true);
	assert_int_equal(r->n_rule, 2);
	assert_int_equal(judge(r), RULESET_PASS);
	r = rebuild(r, false);
	assert_int_equal(judge(r), RULESET_DROP);
	assert_int_equal(r->rule[1].state->count[0].packets, 2);
	/* A rule that the kernel deleted is forgotten. */
	begin();
	r = rebuild(r, false);
	assert_int_equal(r->n_stateful, 0);
	ruleset_free(r);
}

static void
rule_with_limit(uint64_t rate, uint32_t burst)
{
	begin();
	rule_begin(&m, "forward", 10);
	expr_begin(&m, "limit");
	mnl_attr_put_u64(m.nlh, NFTA_LIMIT_RATE, htobe64(rate));
	mnl_attr_put_u64(m.nlh, NFTA_LIMIT_UNIT, htobe64(3600));
	put_be32_attr(&m, NFTA_LIMIT_BURST, burst);
	expr_end(&m);
	put_plain(&m, "counter");
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
}

/* Linux 6.18 gives a rule the handle of the rule that it replaces. */
static void
a_rule_that_replaces_another_has_its_own_limit(void **state)
{
	struct ruleset *r;

	rule_with_limit(1, 1);
	r = rebuild(NULL, false);
	assert_int_equal(judge(r), RULESET_DROP);
	assert_int_equal(judge(r), RULESET_PASS);
	r = rebuild(r, false);
	assert_int_equal(judge(r), RULESET_PASS);
	assert_int_equal(r->rule[0].state->count[0].packets, 1);
	rule_with_limit(1, 2);
	r = rebuild(r, false);
	assert_int_equal(r->rule[0].state->count[0].packets, 0);
	assert_int_equal(judge(r), RULESET_DROP);
	assert_int_equal(judge(r), RULESET_DROP);
	assert_int_equal(judge(r), RULESET_PASS);
	ruleset_free(r);
}

static void
a_rule_names_registers_that_exist(void **state)
{
	static const uint32_t reg[] = {NFT_REG_VERDICT, 5, 7, NFT_REG32_15 + 1, UINT32_MAX};

	for (unsigned int i = 0; i < sizeof(reg) / sizeof(reg[0]); i++) {
		begin();
		rule_begin(&m, "forward", 10);
		put_payload(&m, NFT_PAYLOAD_NETWORK_HEADER, 0, 4, reg[i]);
		rule_end(&m);
		assert_null(build(NULL));
		assert_non_null(strstr(why, "payload is malformed"));
	}
	begin();
	rule_begin(&m, "forward", 10);
	put_payload(&m, NFT_PAYLOAD_NETWORK_HEADER, 0, 8, NFT_REG32_15);
	rule_end(&m);
	assert_null(build(NULL));
}

/* `fib saddr . iif oif missing drop` is strict, `fib saddr oif missing drop` is loose. */
static void
the_reverse_path_is_asked(void **state)
{
	static const struct {
		uint32_t flags;
		enum ruleset_back back;
		enum ruleset_verdict verdict;
	} cases[] = {
		{NFTA_FIB_F_IIF, RULESET_BACK_NONE, RULESET_DROP},
		{NFTA_FIB_F_IIF, RULESET_BACK_OTHER, RULESET_DROP},
		{NFTA_FIB_F_IIF, RULESET_BACK_HERE, RULESET_PASS},
		{0, RULESET_BACK_NONE, RULESET_DROP},
		{0, RULESET_BACK_OTHER, RULESET_PASS},
		{NFTA_FIB_F_MARK, RULESET_BACK_HERE, RULESET_PASS},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t flags = cases[i].flags | NFTA_FIB_F_SADDR | NFTA_FIB_F_PRESENT;
		struct ruleset *r;

		begin();
		rule_begin(&m, "forward", 10);
		put_fib(&m, NFT_FIB_RESULT_OIF, flags, NFT_REG_1);
		put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, "", 1);
		put_immediate(&m, NF_DROP, NULL);
		rule_end(&m);
		r = build(NULL);
		assert_non_null(r);
		assert_true(r->asks_back);
		the_reverse_path = cases[i].back;
		assert_int_equal(judge(r), cases[i].verdict);
		assert_int_equal(asked_by_iif, (flags & NFTA_FIB_F_IIF) != 0);
		ruleset_free(r);
	}
}

static void
other_questions_to_the_fib_are_refused(void **state)
{
	static const uint32_t present = NFTA_FIB_F_PRESENT;
	static const struct {
		uint32_t result, flags;
	} cases[] = {
		{NFT_FIB_RESULT_ADDRTYPE, NFTA_FIB_F_SADDR},
		{NFT_FIB_RESULT_OIF, NFTA_FIB_F_SADDR},
		{NFT_FIB_RESULT_OIF, NFTA_FIB_F_DADDR | present},
		{NFT_FIB_RESULT_OIF, NFTA_FIB_F_SADDR | NFTA_FIB_F_OIF | present},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		rule_begin(&m, "forward", 10);
		put_fib(&m, cases[i].result, cases[i].flags, NFT_REG_1);
		rule_end(&m);
		assert_null(build(NULL));
		assert_non_null(strstr(why, "fib"));
	}
}

/* Calls that wait for the end of a grace period, in their order. */
static struct {
	void (*fn)(void *owner, void *memory);
	void *memory;
} waits[512];
static unsigned int n_waits;

static void
wait_for_readers(void *ctx, void (*fn)(void *owner, void *memory), void *memory)
{
	assert_true(n_waits < 512);
	waits[n_waits].fn = fn;
	waits[n_waits++].memory = memory;
}

/*
 * Parts of the Poptrie of a set wait for a grace period, so the Poptrie must not be freed
 * before these parts are reclaimed.
 */
static void
a_refused_ruleset_with_a_large_set_is_freed_after_a_grace_period(void **state)
{
	static const struct ruleset_reclaim later = {wait_for_readers, NULL};
	struct filter_dump dump = {.table_handle = 7};
	struct filter_build_conf conf = messages_conf(NULL);

	rule_of_set();
	rule_begin(&m, "forward", 11);
	put_plain(&m, "teleport");
	rule_end(&m);
	for (unsigned int i = 0; i < 200; i++) {
		const uint8_t from[] = {(uint8_t)(i + 1), 7, (uint8_t)(i * 37), 4};
		const uint8_t to[] = {(uint8_t)(i + 1), 9, (uint8_t)(i * 53), 9};

		put_element(&m, "s", from, 4, 0);
		put_element(&m, "s", to, 4, NFT_SET_ELEM_INTERVAL_END);
	}
	dump.octet = m.octet;
	dump.n = m.n;
	conf.reclaim = &later;
	n_waits = 0;
	assert_null(filter_build(&dump, &conf, why));
	assert_true(n_waits > 1);
	for (unsigned int i = 0; i < n_waits; i++)
		waits[i].fn(NULL, waits[i].memory);
}

/*
 * Change each octet of good messages, and cut the messages behind each octet. The
 * sanitizers report a read beyond the messages.
 */
static void
broken_messages_break_nothing(void **state)
{
	static const uint8_t a[] = {10, 0, 0, 0}, b[] = {11, 0, 0, 0};
	static struct messages good;
	unsigned int refused = 0;

	rule_of_set();
	put_element(&m, "s", b, 4, NFT_SET_ELEM_INTERVAL_END);
	put_element(&m, "s", a, 4, 0);
	put_chain(&m, "a", 2, -1, 0, false);
	rule_with_verdict("forward", 11, NFT_JUMP, "a");
	memcpy(&good, &m, sizeof(m));
	for (size_t i = 0; i < 2 * good.n; i++) {
		struct ruleset *r;

		memcpy(m.octet, good.octet, good.n);
		m.octet[i / 2] = i % 2 == 0 ? 0xff : (uint8_t)(m.octet[i / 2] + 1);
		r = build(NULL);
		refused += r == NULL;
		if (r != NULL)
			judge(r);
		ruleset_free(r);
	}
	assert_true(refused > 50);
	memcpy(m.octet, good.octet, good.n);
	for (m.n = 0; m.n <= good.n; m.n++) {
		struct messages *cut = malloc(sizeof(*cut));

		memcpy(cut->octet, good.octet, m.n);
		cut->n = m.n;
		ruleset_free(messages_build(cut, NULL, 1, why));
		free(cut);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_with_log_copies_the_packet_before_its_verdict),
		cmocka_unit_test(log_of_a_group_has_its_number_and_audit_is_refused),
		cmocka_unit_test(the_text_of_a_packet_has_what_its_headers_have),
		cmocka_unit_test(a_later_rule_sees_the_dscp_that_is_set),
		cmocka_unit_test(the_reverse_path_is_asked),
		cmocka_unit_test(other_questions_to_the_fib_are_refused),
		cmocka_unit_test(chains_in_a_circle_are_refused),
		cmocka_unit_test(a_circle_that_no_packet_reaches_does_not_matter),
		cmocka_unit_test(chains_too_far_away_are_refused),
		cmocka_unit_test(jumps_that_lead_through_too_many_rules_are_refused),
		cmocka_unit_test(a_limit_has_its_rate_over_ten_seconds),
		cmocka_unit_test(an_unknown_expression_is_named_with_its_rule),
		cmocka_unit_test(base_chains_are_in_the_order_of_the_kernel),
		cmocka_unit_test(base_chains_of_two_tables_are_joined),
		cmocka_unit_test(an_interval_ends_before_its_end),
		cmocka_unit_test(an_element_for_all_other_keys_expires),
		cmocka_unit_test(an_element_with_a_timeout_of_decades_stays),
		cmocka_unit_test(counters_stay_with_the_rule_of_the_table),
		cmocka_unit_test(counters_stay_while_no_packet_reaches_the_rule),
		cmocka_unit_test(a_rule_that_replaces_another_has_its_own_limit),
		cmocka_unit_test(a_rule_names_registers_that_exist),
		cmocka_unit_test(
			a_refused_ruleset_with_a_large_set_is_freed_after_a_grace_period),
		cmocka_unit_test(broken_messages_break_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
