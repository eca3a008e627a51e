/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables and rules that decide about packets of SRv6 end points, as in Linux
 * (seg6_local.c).
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fib/rules.h"
#include "fib/urpf.h"
#include "fwd/sid.h"
#include "sid_bed.h"

/*
 * Publish a list of rules for both families: `first`, then the rules of VRFs and of main.
 */
static void
rules_begin(struct fib_rule first)
{
	static struct {
		struct fib_rules rules;
		struct fib_rule rule[3];
	} list;

	list.rules.n = 3;
	list.rule[0] = first;
	list.rule[1] =
		(struct fib_rule){.action = FIB_RULE_VRF, .suppress_group = RULE_NO_GROUP};
	list.rule[2] = (struct fib_rule){.action = FIB_RULE_TABLE,
					 .suppress_group = RULE_NO_GROUP};
	fib->rules[0] = fib->rules[1] = &list.rules;
}

static void
rules_end(void)
{
	fib->rules[0] = fib->rules[1] = NULL;
	fib->iface[WAN]->rules4 = fib->iface[WAN]->rules6 = false;
}

/*
 * In Linux (end_dt_vrf_rcv()) the device of the VRF has received the inner packet, so rules
 * without an interface and rules for this device apply to it, and rules for the port do
 * not.
 */
static void
rules_apply_to_packets_inside_by_the_device_of_the_vrf(void **state)
{
	static const uint32_t iif[] = {0, 77, 1};
	static const uint8_t families[] = {4, 6};

	fib->vrf_device[RED] = fib_vrf_device_make(77, FIB_URPF_OFF);
	for (unsigned int k = 0; k < 6; k++) {
		uint32_t ifindex = iif[k / 2] == 1 ? fib->iface[WAN]->ifindex : iif[k / 2];

		rules_begin((struct fib_rule){.action = FIB_RULE_PATH,
					      .path = PATH_BLACKHOLE,
					      .ifindex = ifindex});
		sid(SRV6_END_DT46, 0, RED);
		build(1, 0, families[k % 2]);
		assert_int_equal(pass(), iif[k / 2] == 1 ? VERDICT_GO : DROP_blackhole);
		if (iif[k / 2] == 1)
			leaves(100, families[k % 2] == 4 ? 0x0800 : 0x86dd, LAN);
	}
	rules_end();
	fib->vrf_device[RED] = 0;
}

/*
 * In Linux (seg6_lookup_nexthop(), ip_route_input()) rules see the neighbor as the
 * destination.
 */
static void
rules_apply_to_the_neighbor_of_an_end_point(void **state)
{
	static const uint8_t action[] = {SRV6_END_X, SRV6_END_DX6, SRV6_END_DX4};

	for (unsigned int k = 0; k < 6; k++) {
		struct fib_sid *e = sid(action[k / 2], 0, 0);
		uint8_t inner = action[k / 2] == SRV6_END_DX4 ? 4 : 6;
		struct fib_rule rule = {.action = FIB_RULE_PATH, .path = PATH_PROHIBIT};

		e->family = inner;
		if (inner == 4)
			put_be32(e->hop.octet, REMOTE4);
		else
			memcpy(e->hop.octet, last6, 16);
		rule.dst = (struct prefix){
			.family = inner, .len = inner == 4 ? 32 : 128, .addr = e->hop};
		if (k % 2 != 0) /* another destination */
			rule.dst.addr.octet[1] ^= 1;
		rules_begin(rule);
		/* There are no rules of the other family. */
		fib->rules[inner == 4] = NULL;
		fib->iface[WAN]->rules4 = fib->iface[WAN]->rules6 = true;
		build(action[k / 2] == SRV6_END_X ? 3 : 1,
		      action[k / 2] == SRV6_END_X ? 2 : 0, inner);
		assert_int_equal(pass(), k % 2 != 0 ? VERDICT_GO : PUNT_local);
		if (k % 2 == 0) /* unchanged, because the kernel decides */
			assert_memory_equal(sent() + 24, sid6, 16);
		rules_end();
	}
}

/*
 * Give VRF RED another FIB for packets from one source: `addr` or, if not `is_for_it`,
 * another address. Publish also a rule that drops all packets. It must not apply.
 */
static void
sources_begin(const uint8_t addr[16], bool is_for_it)
{
	static struct fib_rules_source source = {.base = RED, .number = FIB_VRF_MAX};

	source.src = (struct prefix){.family = 6, .len = 128};
	memcpy(source.src.addr.octet, addr, 16);
	source.src.addr.octet[15] ^= !is_for_it;
	rules_begin((struct fib_rule){.action = FIB_RULE_PATH, .path = PATH_BLACKHOLE});
	fib->rules[1]->source = &source;
	fib->rules[1]->n_sources = 1;
	fib->rules[0] = NULL;
}

static void
sources_end(void)
{
	fib->rules[1]->n_sources = 0;
	rules_end();
}

/* A SID that names a table uses the source-specific routes of this table, and no rules. */
static void
routes_for_some_sources_count_in_a_table_that_is_named(void **state)
{
	struct fib_vrf *view = fib_vrf_new(fib, RED_TABLE, "");

	assert_non_null(view);
	route6_of(view->tries.pt6, back6, 48, 21); /* by WAN */
	fib_vrf_publish(fib, FIB_VRF_MAX, view);
	for (unsigned int k = 0; k < 2; k++) {
		bool is_for_it = k == 0;

		sources_begin(host6, is_for_it);
		sid(SRV6_END_DT6, SRV6_TABLE_ALONE, RED);
		build(1, 0, 6);
		assert_int_equal(pass(), VERDICT_GO);
		leaves(100, 0x86dd, is_for_it ? WAN : LAN);
		sources_end();
	}
}

/*
 * An ICMP error about a packet that End.T looks up in a table is sent in the VRF of the
 * ingress port, as in Linux. An error about an inner packet is sent in the VRF of the
 * table.
 */
static void
errors_about_packets_of_end_t_belong_to_the_ingress_port(void **state)
{
	fib->vrfs_told = true; /* RED has all its routes */
	for (unsigned int is_t = 0; is_t < 2; is_t++) {
		sid(is_t ? SRV6_END_T : SRV6_END_DT6, is_t ? 0 : SRV6_TABLE_ALONE, RED);
		build(is_t ? 2 : 1, is_t ? 1 : 0, 6);
		route6_of(fib_vrf(fib, RED)->tries.pt6, back6, 48, 0);
		assert_int_equal(pass(), PUNT_unreach);
		route6_of(fib_vrf(fib, RED)->tries.pt6, back6, 48, 23);
		assert_int_equal(b.cause[0], DROP_no_route);
		assert_int_equal(b.in->vrf, RED);
		assert_int_equal(burst_icmp_vrf(&b), is_t ? 0 : RED);
	}
	fib->vrfs_told = false;
}

/*
 * The kernel would look the packet up in the VRF of the ingress port, not in the table of
 * End.T. So the kernel gets the packet unchanged if a source-specific route of this table
 * leads to an interface of the kernel.
 */
static void
the_kernel_gets_packets_of_end_t_before_their_source_chooses_it(void **state)
{
	const struct fib_vrf *view = fib_vrf(fib, FIB_VRF_MAX); /* of an earlier test */

	assert_non_null(view);
	fib->group[24] = group_word_single(PATH(PATH_KERNEL, 0));
	route6_of(view->tries.pt6, last6, 64, 24);
	route6_of(fib_vrf(fib, RED)->tries.pt6, last6, 64, 23); /* for all other sources */
	for (unsigned int k = 0; k < 2; k++) {
		bool is_for_it = k == 0;

		sources_begin(remote6, is_for_it);
		sid(SRV6_END_T, 0, RED);
		build(2, 1, 6);
		assert_int_equal(pass(), is_for_it ? PUNT_local : VERDICT_GO);
		assert_memory_equal(sent() + 24, is_for_it ? sid6 : last6, 16);
		sources_end();
	}
	route6_of(fib_vrf(fib, RED)->tries.pt6, last6, 64, 0);
}

/*
 * The FIBs of VRFs have the routes of table local, which a SID that names its table does
 * not look up. So the kernel decides about a packet if the route that refuses it may be one
 * of table local.
 */
static void
routes_of_table_local_that_refuse_are_none_of_a_table_that_is_named(void **state)
{
	struct poptrie *red = fib_vrf(fib, RED)->tries.pt6, *main = fib->copy[0].pt6;
	static const uint8_t kind[] = {PATH_UNREACHABLE, PATH_PROHIBIT, PATH_BLACKHOLE};

	for (unsigned int k = 0; k < 12; k++) {
		bool of_local = k % 2 != 0, is_t = k / 2 % 2 != 0, main_has = of_local;
		uint8_t want = k / 4 == 2 ? DROP_blackhole : PUNT_unreach;

		fib->group[24] = group_word_single(PATH((enum path_kind)kind[k / 4], 0));
		fib->local_refuses6 = true;
		route6_of(red, is_t ? last6 : back6, is_t ? 64 : 48, 24);
		if (main_has)
			route6_of(main, is_t ? last6 : back6, is_t ? 64 : 48, 24);
		sid(is_t ? SRV6_END_T : SRV6_END_DT6, is_t ? 0 : SRV6_TABLE_ALONE, RED);
		build(is_t ? 2 : 1, is_t ? 1 : 0, 6);
		assert_int_equal(pass(), of_local ? PUNT_local : want);
		if (of_local)
			assert_memory_equal(sent() + 24, sid6, 16);
		/* Table local has no such route, so the route of the VRF refuses. */
		fib->local_refuses6 = false;
		build(is_t ? 2 : 1, is_t ? 1 : 0, 6);
		assert_int_equal(pass(), want);
		route6_of(red, is_t ? last6 : back6, is_t ? 64 : 48, is_t ? 0 : 23);
		if (main_has)
			route6_of(main, is_t ? last6 : back6, is_t ? 64 : 48,
				  is_t ? 22 : 13);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_apply_to_packets_inside_by_the_device_of_the_vrf),
		cmocka_unit_test(rules_apply_to_the_neighbor_of_an_end_point),
		cmocka_unit_test(routes_for_some_sources_count_in_a_table_that_is_named),
		cmocka_unit_test(errors_about_packets_of_end_t_belong_to_the_ingress_port),
		cmocka_unit_test(
			the_kernel_gets_packets_of_end_t_before_their_source_chooses_it),
		cmocka_unit_test(
			routes_of_table_local_that_refuse_are_none_of_a_table_that_is_named),
	};

	return cmocka_run_group_tests(tests, sids_up, down);
}
