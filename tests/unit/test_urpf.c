/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reverse path to a source. An egress word is searched like a list of interfaces, and
 * VRFs and rules decide as in Linux.
 *
 * link: fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "fib/rules.h"
#include "fib/urpf.h"

static struct fib *fib;

static int
up(void **state)
{
	urcu_qsbr_register_thread();
	return fib_create(&fib, &(struct fib_conf){0});
}

static int
down(void **state)
{
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

static void
a_word_has_the_interfaces_that_are_in_it(void **state)
{
	srandom(1);
	for (unsigned int round = 0; round < 200000; round++) {
		uint16_t ifidx[FIB_EGRESS_WORD],
			asked = 1 + (uint16_t)(random() % (IFIDX_MAX - 1));
		uint64_t word = 0;
		bool in = false;

		for (unsigned int i = 0; i < FIB_EGRESS_WORD; i++) {
			switch (random() % 4) {
			case 0:
				ifidx[i] = (uint16_t)(random() % 0x8000);
				break;
			case 1:
				ifidx[i] = asked;
				break;
			case 2: /* one bit differs */
				ifidx[i] = asked ^ (uint16_t)(1 << random() % 15);
				break;
			default:
				ifidx[i] = 0;
			}
			in |= ifidx[i] == asked;
			word |= (uint64_t)ifidx[i] << i * 16;
		}
		assert_int_equal(fib_egress_have(word, fib_egress_all(asked)), in);
		/* The address of a block may look like an interface. */
		assert_false(
			fib_egress_have(word | FIB_EGRESS_BLOCK, fib_egress_all(asked)));
	}
}

static void
a_word_is_judged_by_interface_and_vrf(void **state)
{
	struct fib_iface red = {.ifidx = 7, .vrf = 3}, main = {.ifidx = 8};
	struct fib_iface *other = calloc(1, sizeof(*other));
	struct fib_egress *block = malloc(sizeof(*block) + 6 * sizeof(block->ifidx[0]));
	uint64_t word = FIB_EGRESS_BLOCK | (uint64_t)(uintptr_t)block;

	*other = (struct fib_iface){.ifidx = 9, .vrf = 3};
	fib->iface[9] = other;
	assert_int_equal(fib_egress_judge(fib, &main, 0, false), FIB_BACK_NONE);
	assert_int_equal(fib_egress_judge(fib, &main, 8, false), FIB_BACK_HERE);
	assert_int_equal(fib_egress_judge(fib, &main, 9, false), FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &main, FIB_EGRESS_OTHER, false),
			 FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &main, FIB_EGRESS_VRF | 3, false),
			 FIB_BACK_OTHER);
	/*
	 * For nft, each member of a VRF and the device of the VRF count as the reverse
	 * path.
	 */
	assert_int_equal(fib_egress_judge(fib, &red, 7, false), FIB_BACK_HERE);
	assert_int_equal(fib_egress_judge(fib, &red, 9, false), FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &red, FIB_EGRESS_VRF | 3, false),
			 FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &red, 7, true), FIB_BACK_HERE);
	assert_int_equal(fib_egress_judge(fib, &red, 9, true), FIB_BACK_HERE);
	assert_int_equal(fib_egress_judge(fib, &red, 8, true), FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &red, FIB_EGRESS_VRF | 3, true),
			 FIB_BACK_HERE);
	assert_int_equal(fib_egress_judge(fib, &red, FIB_EGRESS_VRF | 4, true),
			 FIB_BACK_OTHER);
	assert_int_equal(fib_egress_judge(fib, &red, FIB_EGRESS_OTHER, true),
			 FIB_BACK_OTHER);

	*block = (struct fib_egress){.n = 6};
	for (uint16_t i = 0; i < 6; i++)
		block->ifidx[i] = 20 + i;
	assert_int_equal(fib_egress_judge(fib, &main, word, false), FIB_BACK_OTHER);
	block->ifidx[5] = 8;
	assert_int_equal(fib_egress_judge(fib, &main, word, false), FIB_BACK_HERE);
	free(block);
}

static void
route(const struct fib_copy *tries, uint8_t first, uint32_t group)
{
	const uint8_t net4[4] = {first}, net6[16] = {first};

	assert_int_equal(poptrie_add(tries->pt4, net4, 8, group), 0);
	assert_int_equal(poptrie_add(tries->pt6, net6, 8, group), 0);
	assert_int_equal(poptrie_commit(tries->pt4), 0);
	assert_int_equal(poptrie_commit(tries->pt6), 0);
}

/*
 * Return the group of source 10.0.0.1 or a00::1 of a packet to 20.0.0.1 or 1400::1. With
 * `nft` the rules see protocol 17 and no ports.
 */
static uint32_t
group_for(const struct fib_iface *in, uint8_t family, uint32_t oif, bool nft)
{
	uint8_t ip[60] = {family == 4 ? 0x45 : 0x60};
	uint8_t *src = ip + (family == 4 ? 12 : 8), *dst = src + family_octets(family);
	struct fib_back_key key = {.main = &fib->copy[0],
				   .in = in,
				   .oif = oif,
				   .ip = ip,
				   .room = sizeof(ip),
				   .family = family,
				   .no_ports = nft,
				   .proto = nft ? 17 : 0};

	src[0] = 10;
	dst[0] = 20;
	/* UDP from port 100 to port 200 */
	ip[family == 4 ? 9 : 6] = 17;
	ip[family == 4 ? 21 : 41] = 100;
	ip[family == 4 ? 23 : 43] = 200;
	return fib_back_group(fib, &key);
}

static uint32_t
group_of(const struct fib_iface *in, uint8_t family, uint32_t oif)
{
	return group_for(in, family, oif, false);
}

static void
the_vrf_answers_and_then_main(void **state)
{
	struct fib_iface red = {.ifidx = 7, .vrf = 1}, main = {.ifidx = 8};
	struct fib_vrf *vrf = fib_vrf_new(fib, 100, "red");

	route(&fib->copy[0], 10, 2);
	fib->group[2] = group_word_single(PATH(PATH_ONLINK, 8));
	fib->group[3] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	fib->group[4] = group_word_single(PATH(PATH_THROW, 0));
	for (uint8_t family = 4; family <= 6; family += 2) {
		assert_int_equal(group_of(&main, family, 0), 2);
		assert_int_equal(group_of(&red, family, 0), 0); /* it has no FIB yet */
	}
	fib_vrf_publish(fib, 1, vrf);
	assert_int_equal(group_of(&red, 4, 0), 0);
	fib->vrfs_told = true;
	for (uint8_t family = 4; family <= 6; family += 2)
		assert_int_equal(group_of(&red, family, 0), 2);
	route(&vrf->tries, 10, 4);
	assert_int_equal(group_of(&red, 4, 0), 2);
	route(&vrf->tries, 10, 3);
	assert_int_equal(group_of(&red, 4, 0), 3);
}

/*
 * Linux looks up the reverse path with source and destination exchanged, and with the
 * egress interface as the ingress.
 */
static void
rules_are_asked_with_the_addresses_exchanged(void **state)
{
	struct fib_rules *rules = calloc(1, sizeof(*rules) + sizeof(rules->rule[0]));
	struct fib_iface in = {.ifidx = 8};
	struct fib_rule *rule = &rules->rule[0];

	rules->n = 1;
	*rule = (struct fib_rule){.action = FIB_RULE_PATH, .path = PATH_BLACKHOLE};
	assert_int_equal(prefix_parse("20.0.0.0/8", &rule->src, NULL), 0);
	assert_int_equal(prefix_parse("10.0.0.0/8", &rule->dst, NULL), 0);
	route(&fib->copy[0], 10, 2);
	fib->rules[0] = rules;
	assert_int_equal(group_of(&in, 4, 5), 0);
	fib->rules[0] = NULL;
	assert_int_equal(group_of(&in, 4, 5), 2);
	free(rules);
}

/* For rp_filter the ports are exchanged as well. nft shows the rules no ports. */
static void
rules_of_nft_see_the_protocol_and_no_ports(void **state)
{
	static const uint8_t family[] = {4, 6};
	struct fib_rules *rules = calloc(1, sizeof(*rules) + sizeof(rules->rule[0]));
	struct fib_iface in = {.ifidx = 8};
	struct fib_rule *rule = &rules->rule[0];

	rules->n = 1;
	route(&fib->copy[0], 10, 2);
	fib->group[2] = group_word_single(PATH(PATH_ONLINK, 8));
	for (unsigned int f = 0; f < 2; f++) {
		*rule = (struct fib_rule){.action = FIB_RULE_TABLE, .ip_proto = 17};
		rule->suppress_group = RULE_NO_GROUP;
		fib->rules[f] = rules;
		assert_int_equal(group_for(&in, family[f], 5, false), 2);
		assert_int_equal(group_for(&in, family[f], 5, true), 2);
		rule->sport = (struct rule_ports){200, 200, 0};
		assert_int_equal(group_for(&in, family[f], 5, false), 2);
		assert_int_equal(group_for(&in, family[f], 5, true), 0);
		rule->invert = true;
		assert_int_equal(group_for(&in, family[f], 5, true), 2);
		rule->invert = false;
		rule->sport = (struct rule_ports){0};
		rule->ip_proto = 6;
		assert_int_equal(group_for(&in, family[f], 5, true), 0);
		fib->rules[f] = NULL;
	}
	free(rules);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_has_the_interfaces_that_are_in_it),
		cmocka_unit_test_setup_teardown(a_word_is_judged_by_interface_and_vrf, up,
						down),
		cmocka_unit_test_setup_teardown(the_vrf_answers_and_then_main, up, down),
		cmocka_unit_test_setup_teardown(
			rules_are_asked_with_the_addresses_exchanged, up, down),
		cmocka_unit_test_setup_teardown(rules_of_nft_see_the_protocol_and_no_ports,
						up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
