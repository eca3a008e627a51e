/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next-hop ids: late binding, any order, deletions, and slots that live longer than a
 * session.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

static void
a_changed_nexthop_changes_its_routes_without_touching_a_prefix(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "2001:db8:f::/48", 7);
	rig_go(g);
	writes = g->rib->count.trie_writes;
	rig_hop(g, 7, "192.0.2.129", 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	assert_seen(g, "2001:db8:f::1", "192.0.2.129@2");
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_free(g);
}

static void
a_changed_singleton_changes_every_group_that_names_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_group(g, 21, 1, 7, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 21);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");
	rig_hop(g, 7, "192.0.2.2", 11);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.2@1*2048");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	rig_free(g);
}

static void
a_group_edited_in_place_grows_under_its_routes(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_group(g, 185483868, 1, 7, 1);
	rig_route(g, "198.51.100.0/24", 185483868);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_group(g, 185483868, 2, 7, 1, 8, 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");
	rig_free(g);
}

static void
groups_may_come_before_their_members_and_routes_before_groups(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "unresolved");
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "unresolved");
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");
	rig_free(g);
}

static void
an_id_never_announced_is_unresolved_and_counted(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route(g, "198.51.100.0/24", 4711);
	rig_route(g, "198.51.101.0/24", 4711);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "unresolved");
	assert_int_equal(rig_summary_int(g, "unresolved"), 2);
	rig_free(g);
}

static void
delnexthop_deletes_no_route_and_keeps_the_last_content(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 7);
	rig_go(g);
	rig_nh_del(g, 20);
	rig_nh_del(g, 7);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_int_equal(rig_summary_int(g, "nexthop_ids_absent"), 2);
	rig_hop(g, 7, "192.0.2.3", 11); /* announced again: in force at once */
	rig_go(g);
	assert_seen(g, "203.0.113.1", "192.0.2.3@1");
	assert_int_equal(rig_summary_int(g, "nexthop_ids_absent"), 1);
	rig_free(g);
}

static void
a_deleted_id_is_forgotten_with_its_last_user(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_group(g, 20, 1, 7, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	rig_nh_del(g, 20);
	rig_nh_del(g, 7);
	rig_nh_del(g, 4711);
	rig_del(g, "198.51.100.0/24");
	rig_settle(g);
	assert_int_equal(g->rib->nhs.n, 0);
	assert_int_equal(g->rib->count.nh_del_unknown, 1);
	rig_free(g);
}

static void
a_long_chain_of_groups_is_forgotten_without_recursion(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t n = 200000;

	for (uint32_t i = 1; i <= n; i++)
		rig_group(g, i, 1, i + 1, 1);
	for (uint32_t i = n; i >= 1; i--)
		rig_nh_del(g, i);
	rig_go(g);
	assert_int_equal(g->rib->nhs.n, 0);
	rig_free(g);
}

static void
a_group_in_a_group_stands_for_its_next_hops(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route(g, "198.51.100.0/24", 21);
	rig_group(g, 21, 2, 20, 3, 9, 2);
	rig_hop(g, 9, "192.0.2.129", 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2"); /* group 20 is not known */
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*1536 192.0.2.2@1*1536");
	rig_group(g, 20, 2, 7, 2, 8, 1); /* weights 6 : 3 : 2 */
	rig_go(g);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*768 192.0.2.1@1*2208 192.0.2.2@1*1120");
	rig_group(g, 20, 1, 8, 1);
	rig_hop(g, 8, "192.0.2.3", 11);
	rig_group(g, 21, 1, 20, 3);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.3@1");
	/* A third level is not followed. */
	rig_group(g, 22, 2, 21, 1, 9, 1);
	rig_route(g, "203.0.113.0/24", 22);
	rig_go(g);
	assert_seen(g, "203.0.113.1", "192.0.2.129@2");
	rig_free(g);
}

static void
a_group_in_a_group_or_in_itself_does_no_harm(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_group(g, 20, 2, 20, 1, 7, 1);
	rig_group(g, 21, 1, 20, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 21);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_nh_del(g, 20);
	rig_nh_del(g, 21);
	rig_session(g, 1);
	rig_settle(g);
	rig_free(g);
}

static void
a_blackhole_nexthop_and_an_id_that_changes_kind(void **state)
{
	struct rig *g = rig_two_ports();
	struct fpm_event *ev;

	ev = rig_event(g, FPM_NEXTHOP);
	ev->nhid = 7;
	ev->blackhole = true;
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "blackhole");
	rig_hop(g, 8, "192.0.2.1", 11);
	rig_group(g, 7, 1, 8, 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_hop(g, 7, NULL, 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "onlink@2");
	rig_free(g);
}

static void
two_ids_of_one_session_never_share_a_slot(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "203.0.113.0/24", 8);
	rig_go(g);
	assert_int_not_equal(rig_group_of(g, "198.51.100.1"),
			     rig_group_of(g, "203.0.113.1"));
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	rig_free(g);
}

/* Send 1000 routes over two groups and one single next hop. Ids start at `base`. */
static void
full_feed(struct rig *g, uint32_t base)
{
	rig_group(g, base + 2, 2, base, 1, base + 1, 3);
	rig_hop(g, base, "192.0.2.1", 11);
	rig_hop(g, base + 1, "192.0.2.129", 12);
	for (unsigned int i = 0; i < 1000; i++)
		rig_route(g, rig_net(i), base + i % 3);
}

static void
a_replay_with_new_ids_adopts_the_slots_and_rewrites_no_prefix(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes, words;
	struct poptrie_stats before, after;

	rig_session(g, 100);
	full_feed(g, 40);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	words = g->rib->count.word_writes;
	poptrie_stats(g->fib->copy[0].pt4, &before);

	rig_session(g, 200);
	full_feed(g, 3); /* 42 was the group; now 5 is the group, and 42 is unused */
	rig_settle(g);
	poptrie_stats(g->fib->copy[0].pt4, &after);
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_int_equal(g->rib->count.word_writes, words);
	assert_int_equal(after.commits, before.commits);
	assert_int_equal(g->rib->count.adopted, 3);
	assert_int_equal(g->rib->contents.n_orphans, 0);
	assert_int_equal(g->rib->table_counts.stale, 0);

	/* The new id of an adopted slot binds late. */
	rig_hop(g, 3, "192.0.2.2", 11);
	rig_go(g);
	assert_seen(g, "10.0.0.1", "192.0.2.2@1");
	rig_free(g);
}

static void
equal_contents_under_two_ids_are_adopted_apart(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes;
	uint32_t group[2];

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "203.0.113.0/24", 8);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	group[0] = rig_group_of(g, "198.51.100.1");
	group[1] = rig_group_of(g, "203.0.113.1");
	rig_session(g, 200);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.1", 11);
	rig_route(g, "203.0.113.0/24", 2);
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_int_equal(rig_group_of(g, "198.51.100.1"), group[0]);
	assert_int_equal(rig_group_of(g, "203.0.113.1"), group[1]);
	rig_free(g);
}

static void
which_of_two_equal_slots_is_taken_over_does_not_depend_on_order(void **state)
{
	for (unsigned int swap = 0; swap < 2; swap++) {
		struct rig *g = rig_two_ports();
		uint64_t writes;

		rig_session(g, 100);
		rig_hop(g, 7, "192.0.2.1", 11);
		rig_hop(g, 8, "192.0.2.1", 11);
		rig_route(g, "198.51.100.0/24", 7);
		rig_route(g, "203.0.113.0/24", 8);
		rig_settle(g);
		writes = g->rib->count.trie_writes;
		rig_session(g, 200);
		rig_hop(g, 1, "192.0.2.1", 11);
		rig_hop(g, 2, "192.0.2.1", 11);
		rig_route(g, swap ? "203.0.113.0/24" : "198.51.100.0/24", 1);
		rig_route(g, swap ? "198.51.100.0/24" : "203.0.113.0/24", 2);
		rig_settle(g);
		assert_int_equal(g->rib->count.trie_writes, writes);
		rig_free(g);
	}
}

static void
the_last_word_of_a_session_stays_in_force_after_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	rig_hop(g, 7, "192.0.2.129", 12);
	rig_session_down(g);
	rig_session(g, 200); /* all in one batch, without a round in between */
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

static void
an_old_id_with_a_new_meaning_does_not_bend_old_routes(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	rig_session(g, 200);
	rig_hop(g, 7, "192.0.2.129", 12);
	rig_route(g, "203.0.113.0/24", 7);
	rig_settle(g);
	/* Not replayed yet: the route is as before. */
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "192.0.2.129@2");
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

static void
orphans_still_follow_their_links(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	full_feed(g, 40);
	rig_settle(g);
	rig_session_down(g);
	rig_go(g);
	rig_link(g, 11, 1, false);
	assert_seen(g, "10.0.2.1", "192.0.2.129@2");
	assert_seen(g, "10.0.0.1", "down");
	rig_session(g, 200);
	rig_go(g);
	rig_link(g, 11, 1, true);
	assert_seen(g, "10.0.2.1", "192.0.2.129@2*3072 192.0.2.1@1*1024");
	assert_seen(g, "10.0.0.1", "192.0.2.1@1");
	rig_free(g);
}

static void
leaving_nexthop_ids_for_inline_hops_rewrites_no_prefix(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t writes;

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	rig_session(g, 100); /* as with "no fpm use-next-hop-groups" */
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.1", 11);
	rig_settle(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_changed_nexthop_changes_its_routes_without_touching_a_prefix),
		cmocka_unit_test(a_changed_singleton_changes_every_group_that_names_it),
		cmocka_unit_test(a_group_edited_in_place_grows_under_its_routes),
		cmocka_unit_test(
			groups_may_come_before_their_members_and_routes_before_groups),
		cmocka_unit_test(an_id_never_announced_is_unresolved_and_counted),
		cmocka_unit_test(delnexthop_deletes_no_route_and_keeps_the_last_content),
		cmocka_unit_test(a_deleted_id_is_forgotten_with_its_last_user),
		cmocka_unit_test(a_long_chain_of_groups_is_forgotten_without_recursion),
		cmocka_unit_test(a_group_in_a_group_stands_for_its_next_hops),
		cmocka_unit_test(a_group_in_a_group_or_in_itself_does_no_harm),
		cmocka_unit_test(a_blackhole_nexthop_and_an_id_that_changes_kind),
		cmocka_unit_test(two_ids_of_one_session_never_share_a_slot),
		cmocka_unit_test(
			a_replay_with_new_ids_adopts_the_slots_and_rewrites_no_prefix),
		cmocka_unit_test(equal_contents_under_two_ids_are_adopted_apart),
		cmocka_unit_test(
			which_of_two_equal_slots_is_taken_over_does_not_depend_on_order),
		cmocka_unit_test(the_last_word_of_a_session_stays_in_force_after_it),
		cmocka_unit_test(an_old_id_with_a_new_meaning_does_not_bend_old_routes),
		cmocka_unit_test(orphans_still_follow_their_links),
		cmocka_unit_test(leaving_nexthop_ids_for_inline_hops_rewrites_no_prefix),
	};

	return cmocka_run_group_tests_name("rib nexthops", tests, NULL, NULL);
}
