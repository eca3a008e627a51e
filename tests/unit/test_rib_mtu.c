/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MTU of a route (RTAX_MTU) is in the path of its packets. It does not affect other
 * routes.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"
#include "log_said.h"

#include <stdio.h>

static void
route(struct rig *g, const char *prefix, uint32_t nhid, uint32_t mtu_bytes)
{
	rig_route(g, prefix, nhid);
	g->batch->ev[g->batch->n - 1].mtu_bytes = mtu_bytes;
}

static struct rig *
one_next_hop(void)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	return g;
}

static void
it_is_one_routes_and_not_its_next_hops(void **state)
{
	struct rig *g = one_next_hop();

	route(g, "10.1.0.0/16", 7, 0);
	route(g, "10.2.0.0/16", 7, 1400);
	route(g, "10.3.0.0/16", 7, 1300);
	rig_go(g);
	assert_seen(g, "10.1.0.1", "192.0.2.1@1");
	assert_seen(g, "10.2.0.1", "192.0.2.1@1 mtu 1400");
	assert_seen(g, "10.3.0.1", "192.0.2.1@1 mtu 1300");
	assert_int_equal(g->n_watch, 1); /* one neighbor, one adjacency */
	rig_free(g);
}

static void
a_changed_mtu_is_a_changed_route(void **state)
{
	struct rig *g = one_next_hop();
	uint64_t writes;

	route(g, "10.2.0.0/16", 7, 1400);
	rig_go(g);
	writes = g->rib->count.trie_writes;
	route(g, "10.2.0.0/16", 7, 1400);
	rig_go(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	route(g, "10.2.0.0/16", 7, 1300);
	rig_go(g);
	assert_seen(g, "10.2.0.1", "192.0.2.1@1 mtu 1300");
	route(g, "10.2.0.0/16", 7, 0);
	rig_go(g);
	assert_seen(g, "10.2.0.1", "192.0.2.1@1");
	rig_free(g);
}

static void
a_changed_id_changes_the_routes_of_every_mtu(void **state)
{
	struct rig *g = one_next_hop();

	rig_group(g, 20, 1, 7, 1);
	route(g, "10.1.0.0/16", 20, 0);
	route(g, "10.2.0.0/16", 20, 1400);
	route(g, "10.3.0.0/16", 20, 1300);
	rig_go(g);
	rig_hop(g, 7, "192.0.2.129", 12);
	rig_go(g);
	assert_seen(g, "10.1.0.1", "192.0.2.129@2");
	assert_seen(g, "10.2.0.1", "192.0.2.129@2 mtu 1400");
	assert_seen(g, "10.3.0.1", "192.0.2.129@2 mtu 1300");
	rig_free(g);
}

static void
all_paths_of_a_route_have_it(void **state)
{
	struct rig *g = one_next_hop();

	rig_hop(g, 8, "192.0.2.129", 12);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	route(g, "10.1.0.0/16", 20, 1400);
	rig_hop(g, 9, NULL, 11);
	route(g, "10.2.0.0/16", 9, 1400);
	rig_route_inline(g, "10.3.0.0/16", "192.0.2.1", 11);
	g->batch->ev[g->batch->n - 1].mtu_bytes = 1400;
	rig_route_inline(g, "10.4.0.0/16", "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, "10.1.0.1", "192.0.2.129@2 mtu 1400*2048 192.0.2.1@1 mtu 1400*2048");
	assert_seen(g, "10.2.0.1", "onlink@1 mtu 1400");
	assert_seen(g, "10.3.0.1", "192.0.2.1@1 mtu 1400");
	assert_seen(g, "10.4.0.1", "192.0.2.1@1");
	rig_link(g, 11, 1, false);
	rig_go(g);
	assert_seen(g, "10.1.0.1", "192.0.2.129@2 mtu 1400");
	rig_free(g);
}

/*
 * A route to another VRF has two MTUs: that of the route and that of the route in the VRF.
 */
static void
the_smaller_mtu_of_two_lookups_counts(void **state)
{
	static const struct {
		const char *prefix, *dst;
		uint32_t to_mtu, there_mtu;
		const char *want;
	} c[] = {
		{"10.1.0.0/16", "10.1.0.1", 0, 0, "192.0.2.9@2"},
		{"10.2.0.0/16", "10.2.0.1", 1400, 0, "192.0.2.9@2 mtu 1400"},
		{"10.3.0.0/16", "10.3.0.1", 0, 1300, "192.0.2.9@2 mtu 1300"},
		{"10.4.0.0/16", "10.4.0.1", 1400, 1300, "192.0.2.9@2 mtu 1300"},
		{"10.5.0.0/16", "10.5.0.1", 1300, 1400, "192.0.2.9@2 mtu 1300"},
		{"10.6.0.0/16", "10.6.0.1", 1400, 1400, "192.0.2.9@2 mtu 1400"},
	};
	struct rig *g = rig_two_vrfs();

	rig_link_of_vrf(g, 50, 2, true);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		rig_route_in(g, 100, c[i].prefix, NULL, 50);
		g->batch->ev[g->batch->n - 1].mtu_bytes = c[i].to_mtu;
		rig_route_in(g, 2000, c[i].prefix, "192.0.2.9", 12);
		g->batch->ev[g->batch->n - 1].mtu_bytes = c[i].there_mtu;
	}
	rig_route_in(g, 100, "192.0.2.64/26", NULL, 50);
	g->batch->ev[g->batch->n - 1].mtu_bytes = 1200;
	rig_go(g);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_seen_in(g, 1, c[i].dst, c[i].want);
	assert_seen_in(g, 1, "192.0.2.65", "onlink@2 mtu 1200");
	rig_free(g);
}

static void
every_link_carries_the_least_of_its_family(void **state)
{
	static const struct {
		const char *prefix, *dst;
		uint32_t mtu_bytes;
		const char *want;
	} c[] = {
		{"10.1.0.0/16", "10.1.0.1", 20, "192.0.2.1@1 mtu 68"},
		{"2001:db8:f::/48", "2001:db8:f::1", 20, "192.0.2.1@1 mtu 1280"},
		{"10.2.0.0/16", "10.2.0.1", 65534, "192.0.2.1@1 mtu 65534"},
		{"10.3.0.0/16", "10.3.0.1", 65535, "192.0.2.1@1"},
		{"10.4.0.0/16", "10.4.0.1", UINT32_MAX, "192.0.2.1@1"},
	};
	struct rig *g = one_next_hop();

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		route(g, c[i].prefix, 7, c[i].mtu_bytes);
	rig_go(g);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_seen(g, c[i].dst, c[i].want);
	rig_free(g);
}

static void
a_replay_by_other_ids_rewrites_no_prefix(void **state)
{
	struct rig *g = one_next_hop();
	uint64_t writes;

	route(g, "10.1.0.0/16", 7, 0);
	route(g, "10.2.0.0/16", 7, 1400);
	rig_sentinel(g);
	rig_go(g);
	rig_session_down(g);
	rig_settle(g);
	writes = g->rib->count.trie_writes;

	rig_session(g, 200);
	route(g, "10.1.0.0/16", 3, 0);
	route(g, "10.2.0.0/16", 3, 1400);
	rig_go(g);
	assert_seen(g, "10.2.0.1", "192.0.2.1@1 mtu 1400"); /* its id is not known yet */
	rig_hop(g, 3, "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, "10.1.0.1", "192.0.2.1@1");
	assert_seen(g, "10.2.0.1", "192.0.2.1@1 mtu 1400");
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_free(g);
}

static void
more_mtus_than_there_is_room_for_are_counted(void **state)
{
	struct rig *g = one_next_hop();

	for (uint32_t i = 0; i < FIB_CLASS_PIPE; i++)
		route(g, rig_net(i), 7, 100 + i);
	rig_go(g);
	assert_seen(g, "10.0.0.1", "192.0.2.1@1 mtu 100");
	assert_seen(g, "10.3.252.1", "192.0.2.1@1 mtu 1120");
	assert_seen(g, "10.3.253.1", "192.0.2.1@1");
	assert_int_equal(rig_summary_int(g, "mtus_full"), 1);
	assert_true(log_said("rib: table is full table=mtus") > 0);
	for (uint32_t i = 0; i < FIB_CLASS_PIPE; i++)
		rig_del(g, rig_net(i));
	rig_nh_del(g, 7);
	rig_settle(g);
	assert_int_equal(g->rib->nhs.n, 0);
	rig_free(g);
}

static void
it_is_shown(void **state)
{
	struct rig *g = one_next_hop();
	struct msg_query q = {.kind = QUERY_ROUTES, .has_prefix = true, .max = 10};
	json_t *rows;

	route(g, "10.2.0.0/16", 7, 1400);
	rig_go(g);
	assert_int_equal(prefix_parse("10.2.0.0/16", &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(rows, 0), "mtu")), 1400);
	json_decref(rows);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_one_routes_and_not_its_next_hops),
		cmocka_unit_test(a_changed_mtu_is_a_changed_route),
		cmocka_unit_test(a_changed_id_changes_the_routes_of_every_mtu),
		cmocka_unit_test(all_paths_of_a_route_have_it),
		cmocka_unit_test(the_smaller_mtu_of_two_lookups_counts),
		cmocka_unit_test(every_link_carries_the_least_of_its_family),
		cmocka_unit_test(a_replay_by_other_ids_rewrites_no_prefix),
		cmocka_unit_test(more_mtus_than_there_is_room_for_are_counted),
		cmocka_unit_test(it_is_shown),
	};

	return cmocka_run_group_tests_name("rib mtu", tests, NULL, NULL);
}
