/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: the messages of FPM, the source that wins, the paths of forwarders.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

static void
a_route_by_nexthop_id_is_seen_after_one_round(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "203.0.113.0/24", 7);
	rig_go(g); /* a new gateway needs the answer of neigh and a second round */
	rig_route(g, "198.51.100.0/24", 7);
	rig_flush_batch(g);
	assert_seen(g, "198.51.100.9", "none");
	rib_round(g->rib);
	assert_seen(g, "198.51.100.9", "192.0.2.1@1");
	rig_free(g);
}

static void
newroute_replaces_whatever_protocol_and_del_needs_no_nexthop(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_route(g, "198.51.100.0/24", 7);
	rig_event(g, FPM_ROUTE)->protocol = 188;
	g->batch->ev[g->batch->n - 1].prefix = g->batch->ev[g->batch->n - 2].prefix;
	g->batch->ev[g->batch->n - 1].nhid = 8;
	rig_go(g);
	assert_seen(g, "198.51.100.9", "192.0.2.129@2");
	assert_int_equal(g->rib->table_counts.n_zebra[0], 1);
	rig_del(g, "198.51.100.0/24");
	rig_go(g);
	assert_seen(g, "198.51.100.9", "none");
	assert_int_equal(g->rib->table_counts.n_zebra[0], 0);
	rig_free(g);
}

static void
delete_of_an_unknown_route_is_normal(void **state)
{
	struct rig *g = rig_two_ports();

	rig_del(g, "198.51.100.0/24");
	rig_go(g);
	assert_int_equal(g->rib->count.del_unknown, 1);
	rig_free(g);
}

static void
an_identical_newroute_writes_nothing(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes, words, commits;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route_inline(g, "198.51.100.0/25", "192.0.2.2", 11);
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	words = g->rib->count.word_writes;
	commits = g->rib->count.commits;
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route_inline(g, "198.51.100.0/25", "192.0.2.2", 11);
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_settle(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_int_equal(g->rib->count.word_writes, words);
	assert_int_equal(g->rib->count.commits, commits);
	rig_free(g);
}

static void
del_and_new_in_one_batch_is_one_replace(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	writes = g->rib->count.trie_writes;
	rig_del(g, "198.51.100.0/24");
	rig_route(g, "198.51.100.0/24", 8);
	rig_go(g);
	assert_int_equal(g->rib->count.trie_writes, writes + 1);
	assert_seen(g, "198.51.100.9", "192.0.2.129@2");
	rig_free(g);
}

static void
del_and_new_that_is_not_taken_is_a_delete(void **state)
{
	struct rig *g = rig_two_ports();
	struct fpm_event *ev;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 9, NULL, 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	rig_del(g, "198.51.100.0/24");
	rig_route(g, "198.51.100.0/24", 9);
	ev = &g->batch->ev[g->batch->n - 1];
	ev->protocol = RTPROT_KERNEL;
	rig_go(g);
	assert_seen(g, "198.51.100.9", "none");
	rig_free(g);
}

static void
routes_without_id_forward_blackhole_reject_and_prohibit(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, "198.51.100.0/26", "192.0.2.1", 11);
	rig_route_inline(g, "198.51.100.64/26", NULL, 12);
	rig_route_type(g, "198.51.100.128/27", RTN_BLACKHOLE);
	rig_route_type(g, "198.51.100.160/27", RTN_UNREACHABLE);
	rig_route_type(g, "198.51.100.192/27", RTN_PROHIBIT);
	rig_route_inline(g, "2001:db8:f::/48", "fe80::1", 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "198.51.100.65", "onlink@2");
	assert_seen(g, "198.51.100.129", "blackhole");
	assert_seen(g, "198.51.100.161", "unreachable");
	assert_seen(g, "198.51.100.193", "prohibit");
	assert_seen(g, "2001:db8:f::1", "fe80::1@2");
	rig_free(g);
}

static void
an_ipv4_route_may_have_an_ipv6_gateway(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "fe80::1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "2001:db8:f::/48", 7);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "fe80::1@1");
	assert_seen(g, "2001:db8:f::1", "fe80::1@1");
	assert_int_equal(g->rib->adjs.n, 1);
	rig_free(g);
}

static void
inline_routes_of_equal_content_share_a_slot(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, "198.51.100.0/26", "192.0.2.1", 11);
	rig_route_inline(g, "203.0.113.0/24", "192.0.2.1", 11);
	rig_go(g);
	assert_int_equal(rig_group_of(g, "198.51.100.1"), rig_group_of(g, "203.0.113.1"));
	rig_free(g);
}

static void
an_interface_that_is_no_port_is_foreign(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link(g, 3, 0, true);
	rig_hop(g, 7, "10.9.9.9", 3);
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "foreign");
	assert_int_equal(g->rib->adjs.n, 0);
	rig_free(g);
}

static void
an_encapsulation_is_unsupported_not_forwarded_plain(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	g->batch->ev[g->batch->n - 1].hops->encap = HOP_MPLS;
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "encap");
	rig_free(g);
}

static void
a_gateway_without_interface_goes_where_its_subnet_is(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, "198.51.100.0/24", "192.0.2.130", 0);
	rig_route_inline(g, "203.0.113.0/24", "10.0.0.1", 0);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.130@2");
	assert_seen(g, "203.0.113.1", "unresolved");

	rig_addr(g, 11, "10.0.0.254/24", false);
	assert_seen(g, "203.0.113.1", "10.0.0.1@1");
	/* The subnet is on two links, so the interface is unknown. */
	rig_addr(g, 12, "10.0.0.253/24", false);
	assert_seen(g, "203.0.113.1", "unresolved");
	rig_addr(g, 11, "10.0.0.254/24", true);
	assert_seen(g, "203.0.113.1", "10.0.0.1@2");
	rig_free(g);
}

static void
kernel_routes_of_zebra_are_ignored_because_rtnl_tells_them(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 9, NULL, 11);
	rig_route(g, "10.1.0.0/16", 9);
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_route_inline(g, "10.2.0.0/16", NULL, 11);
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_route(g, "10.3.0.0/16", 4711); /* never announced, as by FRR 10.3 */
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_route_inline(g, "10.4.0.0/16", "192.0.2.1", 11);
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_go(g);
	assert_seen(g, "10.1.0.1", "none");
	assert_seen(g, "10.2.0.1", "none");
	assert_seen(g, "10.3.0.1", "none");
	assert_seen(g, "10.4.0.1", "none");
	assert_int_equal(g->rib->count.ignored_kernel, 4);
	rig_free(g);
}

static void
with_routes_from_fpm_kernel_routes_with_a_gateway_are_zebras(void **state)
{
	struct rig *g = rig_two_ports();

	g->rib->conf.from = ROUTES_FROM_FPM;
	rig_route_inline(g, "10.2.0.0/16", NULL, 11);
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_route_inline(g, "10.4.0.0/16", "192.0.2.1", 11);
	g->batch->ev[g->batch->n - 1].protocol = RTPROT_KERNEL;
	rig_go(g);
	assert_seen(g, "10.2.0.1", "none");
	assert_seen(g, "10.4.0.1", "192.0.2.1@1");
	assert_int_equal(g->rib->count.ignored_kernel, 1);
	rig_free(g);
}

static void
link_local_prefixes_from_fpm_are_ignored(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, "fe80::/64", NULL, 11);
	rig_del(g, "fe80::/64");
	rig_go(g);
	assert_seen(g, "fe80::1", "none");
	assert_int_equal(g->rib->count.ignored_linklocal, 2);
	rig_free(g);
}

static void
other_tables_are_kept_apart_and_table_0_is_main(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_route(g, "203.0.113.0/24", 7);
	g->batch->ev[g->batch->n - 1].table = 0;
	rig_go(g);
	assert_seen(g, "198.51.100.1", "none");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_int_equal(g->rib->tables.other.n, 1);
	rig_del(g, "198.51.100.0/24");
	rig_del(g, "203.0.113.0/24"); /* table 254 */
	rig_go(g);
	assert_int_equal(g->rib->tables.other.n, 1);
	assert_seen(g, "203.0.113.1", "none");
	rig_free(g);
}

static void
bytes_of_a_batch_are_given_back_when_it_is_applied(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t before = atomic_load(&fpm_status.queue_bytes_out);

	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "203.0.113.0/24", 7);
	rig_flush_batch(g);
	assert_int_equal(atomic_load(&fpm_status.queue_bytes_out) - before, 112);
	rig_free(g);
}

static void
a_long_round_commits_in_between(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "203.0.113.0/24", 7);
	rig_go(g);
	rig_routes(g, RIB_COMMIT_EVENTS + 200, 7);
	/* No round has ended. */
	assert_seen(g, "10.0.0.1", "192.0.2.1@1");
	rig_free(g);
}

static void
routes_survive_growth_and_removal_of_the_table(void **state)
{
	struct rig *g = rig_two_ports();
	struct routes *t = &g->rib->tables.main;
	uint32_t base = t->n, n = 100000;
	struct prefix p = {.family = 4, .len = 32};

	for (uint32_t i = 0; i < n; i++) {
		p.addr = ipaddr_from_v4(0x0a000000 + i * 7);
		assert_non_null(routes_insert(t, 254, &p, routes_hash(t, 254, &p)));
	}
	for (uint32_t i = 0; i < n; i += 2) {
		p.addr = ipaddr_from_v4(0x0a000000 + i * 7);
		routes_remove(t, routes_find(t, 254, &p, routes_hash(t, 254, &p)));
	}
	assert_int_equal(t->n, base + n / 2);
	for (uint32_t i = 0; i < n; i++) {
		p.addr = ipaddr_from_v4(0x0a000000 + i * 7);
		assert_true((routes_find(t, 254, &p, routes_hash(t, 254, &p)) != NULL) ==
			    (i % 2 == 1));
		assert_null(routes_find(t, 253, &p, routes_hash(t, 253, &p)));
	}
	for (uint32_t i = 1; i < n; i += 2) {
		p.addr = ipaddr_from_v4(0x0a000000 + i * 7);
		routes_remove(t, routes_find(t, 254, &p, routes_hash(t, 254, &p)));
	}
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_by_nexthop_id_is_seen_after_one_round),
		cmocka_unit_test(
			newroute_replaces_whatever_protocol_and_del_needs_no_nexthop),
		cmocka_unit_test(delete_of_an_unknown_route_is_normal),
		cmocka_unit_test(an_identical_newroute_writes_nothing),
		cmocka_unit_test(del_and_new_in_one_batch_is_one_replace),
		cmocka_unit_test(del_and_new_that_is_not_taken_is_a_delete),
		cmocka_unit_test(routes_without_id_forward_blackhole_reject_and_prohibit),
		cmocka_unit_test(an_ipv4_route_may_have_an_ipv6_gateway),
		cmocka_unit_test(inline_routes_of_equal_content_share_a_slot),
		cmocka_unit_test(an_interface_that_is_no_port_is_foreign),
		cmocka_unit_test(an_encapsulation_is_unsupported_not_forwarded_plain),
		cmocka_unit_test(a_gateway_without_interface_goes_where_its_subnet_is),
		cmocka_unit_test(
			kernel_routes_of_zebra_are_ignored_because_rtnl_tells_them),
		cmocka_unit_test(
			with_routes_from_fpm_kernel_routes_with_a_gateway_are_zebras),
		cmocka_unit_test(link_local_prefixes_from_fpm_are_ignored),
		cmocka_unit_test(other_tables_are_kept_apart_and_table_0_is_main),
		cmocka_unit_test(bytes_of_a_batch_are_given_back_when_it_is_applied),
		cmocka_unit_test(a_long_round_commits_in_between),
		cmocka_unit_test(routes_survive_growth_and_removal_of_the_table),
	};

	return cmocka_run_group_tests_name("rib", tests, NULL, NULL);
}
