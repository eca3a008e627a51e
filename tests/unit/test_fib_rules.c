/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk over the rules: which packets each selector takes, and what each action does.
 * link: fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/kernel_event.h"
#include "fib/rules.h"

#define TABLE     (FIB_VRF_MAX + 1) /* a table that rules name */
#define EMPTY     (FIB_VRF_MAX + 2) /* a table without routes */
#define NOT_THERE (FIB_VRF_MAX + 3) /* a table that was removed */
#define VRF       5

/*
 * Groups of routes. Each has the name of the table of its route, or of the kind of its
 * path.
 */
enum { MAIN = 1, OF_TABLE, OF_VRF, OWN, THROWS };

static struct fib *fib;
static struct fib_rules *rules;
static uint8_t ip[96];
static struct fib_rules_key key;

static void
route_add(struct poptrie *pt, const char *text, uint32_t group)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	assert_int_equal(poptrie_add(pt, p.addr.octet, p.len, group), 0);
	assert_int_equal(poptrie_commit(pt), 0);
}

static struct fib_vrf *
table_add(unsigned int number)
{
	struct fib_vrf *vrf = fib_vrf_new(fib, number, "");

	assert_non_null(vrf);
	fib_vrf_publish(fib, number, vrf);
	return vrf;
}

static int
set_up(void **state)
{
	struct fib_vrf *table, *vrf;

	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	table = table_add(TABLE);
	vrf = table_add(VRF);
	table_add(EMPTY);
	fib->vrfs_told = true;
	fib->group[MAIN] = PATH(PATH_ADJ, MAIN);
	fib->group[OF_TABLE] = PATH(PATH_ADJ, OF_TABLE);
	fib->group[OF_VRF] = PATH(PATH_ADJ, OF_VRF);
	fib->group[OWN] = PATH(PATH_LOCAL, 0);
	fib->group[THROWS] = PATH(PATH_THROW, 0);
	route_add(fib->copy[0].pt4, "198.51.100.0/24", MAIN);
	route_add(fib->copy[0].pt4, "198.51.100.1/32", OWN);
	route_add(fib->copy[0].pt6, "2001:db8:100::/48", MAIN);
	route_add(table->tries.pt4, "0.0.0.0/0", OF_TABLE);
	route_add(table->tries.pt4, "198.51.100.7/32", THROWS);
	route_add(table->tries.pt6, "::/0", OF_TABLE);
	route_add(vrf->tries.pt4, "198.51.100.0/24", OF_VRF);
	rules = calloc(1, sizeof(*rules) + 16 * sizeof(rules->rule[0]));
	assert_non_null(rules);
	return 0;
}

static int
tear_down(void **state)
{
	free(rules);
	fib_destroy(fib);
	return 0;
}

/*
 * Begin a list of rules. The packet is UDP from port 1000 to port 53, from 192.0.2.9 to
 * 198.51.100.9 or from 2001:db8:9:: to 2001:db8:100::.
 */
static void
begin(uint8_t family)
{
	rules->n = rules->n_sources = 0;
	rules->source = NULL;
	memset(rules->rule, 0, 16 * sizeof(rules->rule[0]));
	memset(ip, 0, sizeof(ip));
	if (family == 4) {
		ip[0] = 0x45;
		ip[9] = 17;
		memcpy(ip + 12, (uint8_t[]){192, 0, 2, 9, 198, 51, 100, 9}, 8);
		put_be16(ip + 20, 1000);
		put_be16(ip + 22, 53);
	} else {
		ip[0] = 0x60;
		ip[6] = 17;
		memcpy(ip + 8, (uint8_t[]){0x20, 1, 0xd, 0xb8, 0, 9}, 6);
		memcpy(ip + 24, (uint8_t[]){0x20, 1, 0xd, 0xb8, 1, 0}, 6);
		put_be16(ip + 40, 1000);
		put_be16(ip + 42, 53);
	}
	key = (struct fib_rules_key){.main = &fib->copy[0],
				     .ip = ip,
				     .room = sizeof(ip),
				     .ifindex = 11,
				     .family = family};
}

/* Append a rule that matches every packet. `number`: the table of the action. */
static struct fib_rule *
rule_add(enum fib_rule_action action, uint16_t number)
{
	struct fib_rule *rule = &rules->rule[rules->n++];

	rule->action = (uint8_t)action;
	rule->number = number;
	rule->src.family = rule->dst.family = key.family;
	return rule;
}

/* Begin a list of two rules: for TABLE, then for main. Return the rule for TABLE. */
static struct fib_rule *
one_rule(uint8_t family)
{
	struct fib_rule *rule;

	begin(family);
	rule = rule_add(FIB_RULE_TABLE, TABLE);
	rule_add(FIB_RULE_TABLE, 0);
	return rule;
}

static struct fib_rules_hit
walk(void)
{
	struct fib_rules_hit hit;

	fib_rules_walk(fib, rules, &key, &hit);
	return hit;
}

static uint32_t
group(void)
{
	return walk().group;
}

static struct prefix
prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	return p;
}

static void
addresses_select(void **state)
{
	struct fib_rule *rule = one_rule(4);

	assert_int_equal(group(), OF_TABLE);
	rule->src = prefix("192.0.2.8/30");
	assert_int_equal(group(), OF_TABLE);
	rule->src = prefix("192.0.2.0/29");
	assert_int_equal(group(), MAIN);
	rule->src.len = 0;
	rule->dst = prefix("198.51.100.9/32");
	assert_int_equal(group(), OF_TABLE);
	rule->dst = prefix("198.51.100.10/32");
	assert_int_equal(group(), MAIN);
	rule = one_rule(6);
	rule->src = prefix("2001:db8:9::/48");
	rule->dst = prefix("2001:db8:100::/40");
	assert_int_equal(group(), OF_TABLE);
	rule->src = prefix("2001:db8:8::/48");
	assert_int_equal(group(), MAIN);
}

static void
interfaces_select(void **state)
{
	struct fib_rule *rule = one_rule(4);

	rule->ifindex = 11;
	assert_int_equal(group(), OF_TABLE);
	key.ifindex = 12;
	assert_int_equal(group(), MAIN);
	rule->ifindex = UINT32_MAX; /* the interface of the rule does not exist */
	assert_int_equal(group(), MAIN);
}

/*
 * Return the group of the route for a packet from an interface; NULL: a packet of our own.
 */
static uint32_t
group_from(const struct fib_iface *in)
{
	fib_path path;

	fib->rules[0] = rules;
	path = fib_resolve_packet(fib, in, VRF, 4, ip, sizeof(ip));
	fib->rules[0] = NULL;
	return path_index(path);
}

/*
 * Two VRFs with one table have one number. A rule for one VRF matches no packet of the
 * other.
 */
static void
a_vrf_selects_its_members(void **state)
{
	struct fib_iface member = {
		.ifindex = 11, .hook_ifindex = 21, .vrf = VRF, .rules4 = true};
	struct fib_iface other = {
		.ifindex = 12, .hook_ifindex = 22, .vrf = VRF, .rules4 = true};

	one_rule(4)->ifindex = 21;
	assert_int_equal(group_from(&member), OF_TABLE);
	assert_int_equal(group_from(&other), MAIN);
	assert_int_equal(group_from(NULL), MAIN);
	member.vrf = 0;
	member.hook_ifindex = 11;
	assert_int_equal(group_from(&member), MAIN);
}

static void
tos_selects(void **state)
{
	struct fib_rule *rule = one_rule(4);

	rule->tos = 0x10;
	rule->tos_mask = 0x1c;
	assert_int_equal(group(), MAIN);
	ip[1] = 0x10;
	assert_int_equal(group(), OF_TABLE);
	ip[1] = 0xf3; /* other bits do not count */
	assert_int_equal(group(), OF_TABLE);
	rule = one_rule(6);
	rule->tos = 0xb8;
	rule->tos_mask = 0xfc;
	ip[0] = 0x6b;
	ip[1] = 0x80;
	assert_int_equal(group(), OF_TABLE);
	ip[1] = 0x40;
	assert_int_equal(group(), MAIN);
}

static void
the_flow_label_selects(void **state)
{
	struct fib_rule *rule = one_rule(6);

	rule->label = (struct rule_bits){0x12345, 0xf00ff};
	assert_int_equal(group(), MAIN);
	memcpy(ip, (uint8_t[]){0x6f, 0xf1, 0xff, 0x45}, 4);
	assert_int_equal(group(), OF_TABLE);
	ip[3] = 0x44;
	assert_int_equal(group(), MAIN);
	rule->invert = true;
	assert_int_equal(group(), OF_TABLE);
}

static void
protocol_and_ports_select(void **state)
{
	struct fib_rule *rule = one_rule(4);

	rule->ip_proto = 17;
	rule->dport = (struct rule_ports){53, 53, 0};
	rule->sport = (struct rule_ports){999, 1000, 0};
	assert_int_equal(group(), OF_TABLE);
	put_be16(ip + 6, 0x2000); /* a fragment has no ports */
	assert_int_equal(group(), MAIN);
	put_be16(ip + 6, 0x4000);
	assert_int_equal(group(), OF_TABLE);
	rule->sport = (struct rule_ports){1001, 1010, 0};
	assert_int_equal(group(), MAIN);
	rule->sport = (struct rule_ports){0x03e0, 0x03e0, 0xfff0};
	assert_int_equal(group(), OF_TABLE);
	rule->sport.mask = 0xffff;
	assert_int_equal(group(), MAIN);
	rule->sport.last = 0;
	key.room = 22;
	assert_int_equal(group(), MAIN);
	rule->dport.last = 0;
	rule->ip_proto = 6;
	assert_int_equal(group(), MAIN);
}

/*
 * As in Linux, the halves of the SPI of ESP and of AH count as ports, and DCCP has ports.
 */
static void
headers_of_ipsec_and_dccp_have_ports(void **state)
{
	static const struct {
		uint8_t proto;
		unsigned int at; /* offset of the ports in the header; 8: no ports */
	} of[] = {{33, 0}, {50, 0}, {51, 4}, {1, 8}, {47, 8}};

	for (unsigned int i = 0; i < 2 * sizeof(of) / sizeof(of[0]); i++) {
		uint8_t family = i % 2 == 0 ? 4 : 6, *l4 = ip + (family == 4 ? 20 : 40);
		struct fib_rule *rule = one_rule(family);

		memset(l4, 0, 12);
		put_be16(l4 + of[i / 2].at + 2, 53);
		ip[family == 4 ? 9 : 6] = of[i / 2].proto;
		rule->dport = (struct rule_ports){53, 53, 0};
		assert_int_equal(group(), of[i / 2].at == 8 ? MAIN : OF_TABLE);
		key.room = (unsigned int)(l4 - ip) + of[i / 2].at +
			   3; /* one octet is missing */
		assert_int_equal(group(), MAIN);
	}
}

static void
extension_headers_are_passed_over(void **state)
{
	struct fib_rule *rule = one_rule(6);

	rule->dport = (struct rule_ports){53, 53, 0};
	assert_int_equal(group(), OF_TABLE);
	ip[6] = 60; /* destination options of 16 octets */
	memset(ip + 40, 0, 24);
	ip[40] = 17;
	ip[41] = 1;
	put_be16(ip + 58, 53);
	assert_int_equal(group(), OF_TABLE);
	key.room = 58;
	assert_int_equal(group(), MAIN);
	key.room = sizeof(ip);
	ip[6] = 44; /* a fragment: its protocol is known, its ports are not */
	assert_int_equal(group(), MAIN);
	rule->dport.last = 0;
	rule->ip_proto = 17;
	assert_int_equal(group(), OF_TABLE);
}

static void
not_takes_all_other_packets(void **state)
{
	struct fib_rule *rule = one_rule(4);

	rule->invert = true;
	assert_int_equal(group(), MAIN);
	rule->src = prefix("192.0.2.0/29");
	assert_int_equal(group(), OF_TABLE);
	rule->never = true;
	rule->src.len = 0;
	assert_int_equal(group(), OF_TABLE);
	rule->invert = false;
	assert_int_equal(group(), MAIN);
}

static void
a_table_without_an_answer_leaves_the_next_rule(void **state)
{
	begin(4);
	rule_add(FIB_RULE_TABLE, EMPTY);
	rule_add(FIB_RULE_TABLE, NOT_THERE);
	rule_add(FIB_RULE_TABLE, TABLE);
	rule_add(FIB_RULE_TABLE, 0);
	assert_int_equal(group(), OF_TABLE);
	assert_int_equal(walk().at, 2);
	assert_int_equal(walk().number, TABLE);
	ip[19] = 7; /* a route of type throw */
	assert_int_equal(group(), MAIN);
	assert_int_equal(walk().number, 0);
	rules->n = 2;
	assert_int_equal(path_kind(walk().path), PATH_NONE);
	assert_int_equal(walk().at, rules->n);
}

static void
own_addresses_are_those_of_the_local_rule(void **state)
{
	begin(4);
	rule_add(FIB_RULE_LOCAL, 0);
	rule_add(FIB_RULE_TABLE, TABLE);
	assert_int_equal(group(), OF_TABLE);
	ip[19] = 1;
	assert_int_equal(path_kind(walk().path), PATH_LOCAL);
	assert_int_equal(walk().at, 0);
	for (unsigned int turn = 0; turn < 2; turn++) {
		enum path_kind kind = turn == 0 ? PATH_LOCAL : PATH_BCAST;

		fib->group[OWN] = path_with_mtu(PATH(kind, 0), PATH_CLASS_NOT_OF_LOCAL);
		assert_int_equal(group(), OF_TABLE);
	}
	fib->group[OWN] = PATH(PATH_LOCAL, 0);
}

static void
vrfs_have_their_own_table(void **state)
{
	begin(4);
	rule_add(FIB_RULE_VRF, 0);
	rule_add(FIB_RULE_TABLE, 0);
	assert_int_equal(group(), MAIN);
	key.vrf = VRF;
	assert_int_equal(group(), OF_VRF);
	assert_int_equal(walk().number, VRF);
}

/*
 * Without rules such a packet has the path PATH_NO_FIB, too (test_fwd_tags.c). A rule of
 * all interfaces must not lead it out of its VRF.
 */
static void
a_packet_of_a_vrf_without_its_routes_does_not_get_to_main(void **state)
{
	begin(4);
	rule_add(FIB_RULE_VRF, 0);
	rule_add(FIB_RULE_TABLE, TABLE);
	key.vrf = VRF;
	put_be32(ip + 16, 0xcb007109); /* 203.0.113.9, to which the VRF has no route */
	assert_int_equal(group(), OF_TABLE);
	fib->vrfs_told = false;
	assert_int_equal(group(), 0);
	assert_int_equal(path_kind(walk().path), PATH_NO_FIB);
	assert_int_equal(walk().at, 0);
	fib->vrfs_told = true;
	key.vrf = FIB_VRF_NONE;
	assert_int_equal(path_kind(walk().path), PATH_NO_FIB);
	key.vrf = 0; /* the rule is for all VRFs, and this packet has none */
	assert_int_equal(group(), OF_TABLE);
}

static void
a_rule_may_be_the_answer(void **state)
{
	static const enum path_kind kind[] = {PATH_BLACKHOLE, PATH_PROHIBIT, PATH_NONE};

	for (unsigned int i = 0; i < 3; i++) {
		begin(4);
		rule_add(FIB_RULE_PATH, 0)->path = (uint8_t)kind[i];
		rule_add(FIB_RULE_TABLE, 0);
		assert_int_equal(path_kind(walk().path), kind[i]);
		assert_int_equal(walk().at, 0);
		assert_int_equal(group(), 0);
	}
}

static void
goto_leaves_out_the_rules_between(void **state)
{
	struct fib_rule *jump;

	begin(4);
	jump = rule_add(FIB_RULE_GOTO, 0);
	rule_add(FIB_RULE_TABLE, TABLE);
	rule_add(FIB_RULE_NOP, 0);
	rule_add(FIB_RULE_TABLE, 0);
	jump->next = 2;
	assert_int_equal(group(), MAIN);
	jump->src = prefix("10.0.0.0/8");
	assert_int_equal(group(), OF_TABLE);
	jump->src.len = 0;
	jump->next = 4; /* the end */
	assert_int_equal(walk().at, rules->n);
}

static void
a_source_has_another_fib(void **state)
{
	struct fib_rules_source source[] = {
		{.base = 0, .number = EMPTY, .src = prefix("2001:db8:9:1::/64")},
		{.base = 0, .number = TABLE, .src = prefix("2001:db8:9::/48")},
		{.base = VRF, .number = EMPTY, .src = prefix("2001:db8::/32")},
	};

	begin(6);
	rule_add(FIB_RULE_TABLE, 0);
	rules->source = source;
	rules->n_sources = 3;
	assert_int_equal(group(), OF_TABLE);
	ip[15] = 1; /* 2001:db8:9:1::/64 */
	assert_int_equal(group(), 0);
	ip[13] = 8; /* another source */
	assert_int_equal(group(), MAIN);
}

static void
a_tos_has_another_fib(void **state)
{
	struct fib_rules_source source[] = {
		{.base = 0, .number = TABLE, .src = tos_condition(0x10)},
		{.base = VRF, .number = EMPTY, .src = tos_condition(0x08)},
	};

	begin(4);
	rule_add(FIB_RULE_TABLE, 0);
	rules->source = source;
	rules->n_sources = 2;
	assert_int_equal(group(), MAIN);
	ip[1] = 0xf3; /* Linux compares the bits 0x1c */
	assert_int_equal(group(), OF_TABLE);
	ip[1] = 0x18;
	assert_int_equal(group(), MAIN);
	ip[1] = 0x08; /* only the FIB of VRF has routes for this TOS */
	assert_int_equal(group(), MAIN);
}

static void
one_packet_is_resolved_by_the_published_rules(void **state)
{
	struct fib_iface in = {.ifindex = 11, .rules4 = true};

	one_rule(4)->ifindex = 11;
	assert_int_equal(fib_resolve_packet(fib, &in, 0, 4, ip, sizeof(ip)),
			 PATH(PATH_ADJ, MAIN));
	atomic_store(&fib->rules[0], rules);
	assert_int_equal(fib_resolve_packet(fib, &in, 0, 4, ip, sizeof(ip)),
			 PATH(PATH_ADJ, OF_TABLE));
	/* This host's own packets came by no port. */
	assert_int_equal(fib_resolve_packet(fib, NULL, 0, 4, ip, sizeof(ip)),
			 PATH(PATH_ADJ, MAIN));
	in.rules4 = false;
	assert_int_equal(fib_resolve_packet(fib, &in, 0, 4, ip, sizeof(ip)),
			 PATH(PATH_ADJ, MAIN));
	atomic_store(&fib->rules[0], NULL);
}

/* Return true if an ICMP error of this host takes the route of the rule's table. */
static bool
error_obeys(uint8_t family)
{
	return fib_resolve_error(fib, 0, family, ip) == PATH(PATH_ADJ, OF_TABLE);
}

/* Linux chooses the source of an IPv4 error after the lookup. */
static void
an_error_of_ipv4_has_no_source_for_rules(void **state)
{
	struct fib_rule *rule = one_rule(4);

	atomic_store(&fib->rules[0], rules);
	assert_true(error_obeys(4));
	rule->src = prefix("192.0.2.0/24");
	assert_false(error_obeys(4));
	rule->invert = true;
	assert_true(error_obeys(4));
	rule->invert = false;
	rule->src = prefix("0.0.0.0/8");
	assert_true(error_obeys(4));
	atomic_store(&fib->rules[0], NULL);
	rule = one_rule(6);
	atomic_store(&fib->rules[1], rules);
	rule->src = prefix("2001:db8::/32");
	assert_true(error_obeys(6));
	atomic_store(&fib->rules[1], NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_select),
		cmocka_unit_test(interfaces_select),
		cmocka_unit_test(a_vrf_selects_its_members),
		cmocka_unit_test(tos_selects),
		cmocka_unit_test(the_flow_label_selects),
		cmocka_unit_test(protocol_and_ports_select),
		cmocka_unit_test(headers_of_ipsec_and_dccp_have_ports),
		cmocka_unit_test(extension_headers_are_passed_over),
		cmocka_unit_test(not_takes_all_other_packets),
		cmocka_unit_test(a_table_without_an_answer_leaves_the_next_rule),
		cmocka_unit_test(own_addresses_are_those_of_the_local_rule),
		cmocka_unit_test(vrfs_have_their_own_table),
		cmocka_unit_test(a_packet_of_a_vrf_without_its_routes_does_not_get_to_main),
		cmocka_unit_test(a_rule_may_be_the_answer),
		cmocka_unit_test(goto_leaves_out_the_rules_between),
		cmocka_unit_test(a_source_has_another_fib),
		cmocka_unit_test(a_tos_has_another_fib),
		cmocka_unit_test(one_packet_is_resolved_by_the_published_rules),
		cmocka_unit_test(an_error_of_ipv4_has_no_source_for_rules),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
