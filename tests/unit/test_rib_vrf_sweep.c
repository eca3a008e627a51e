/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions with VRFs: main's part of a replay ends by its sentinel, the part of VRFs by
 * silence. Then routes are swept or kept.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include "rib/replay.h"

/*
 * Begin a session of `zebra`. It replays one of main's two routes and the sentinel.
 */
static void
session_begin(struct rig *g, uint32_t zebra)
{
	rig_session(g, zebra);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
}

/*
 * Teach main's routes, the sentinel, then routes of three tables. Then end the session.
 */
static struct rig *
taught(void)
{
	struct rig *g = rig_two_vrfs();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_route_inline(g, "10.64.0.0/16", "192.0.2.9", 11);
	rig_sentinel(g);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_route_in(g, 100, "203.0.113.0/24", "192.0.2.9", 11);
	rig_route_in(g, 2000, "203.0.113.0/24", "192.0.2.9", 12);
	rig_route_in(g, 55, "203.0.113.0/24", "192.0.2.9", 11);
	rig_go(g);
	assert_false(g->rib->session.vrfs_replaying); /* there is no replay to wait for */
	rig_session_down(g);
	rig_go(g);
	return g;
}

/* VRFs are replayed behind the sentinel, so it ends main's part only. */
static void
the_sentinel_ends_mains_replay_and_silence_that_of_vrfs(void **state)
{
	struct rig *g = taught();

	session_begin(g, 100);
	rig_go(g);
	assert_false(g->rib->session.replaying);
	assert_seen(g, "10.64.0.1", "192.0.2.9@1"); /* by 10/8 */
	assert_int_equal(g->rib->count.swept_routes, 1);
	assert_string_equal(session_phase(g->rib), "in-step");
	assert_string_equal(session_vrf_phase(g->rib), "replaying");
	assert_int_equal(rig_summary_int(g, "vrf_stale"), 3);
	assert_int_equal(rig_summary_int(g, "no_vrf_routes"), 1);
	rig_later(g, 4);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_route_in(g, 2000, "203.0.113.0/24", "192.0.2.9", 12);
	rig_go(g);
	assert_int_equal(sweep_vrfs_in_ms(g->rib, rig_now_ms), 5000);
	rig_later(g, 4);
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	/* A message about main does not extend the part of VRFs. */
	rig_route_inline(g, "10.128.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 1);
	assert_string_equal(session_vrf_phase(g->rib), "in-step");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.9@2");
	assert_int_equal(g->rib->count.swept_routes, 3);
	assert_int_equal(rig_summary_int(g, "vrf_stale"), 0);
	/* A table without a VRF is not replayed, but the kernel has its routes as well. */
	assert_int_equal(rig_summary_int(g, "no_vrf_routes"), 0);
	assert_int_equal(rig_summary_int(g, "vrfs_not_replayed"), 0);
	rig_free(g);
}

/* With `from: fpm` the kernel's copies of zebra's routes do not count. */
static void
a_table_without_a_vrf_is_kept_if_only_zebra_counts(void **state)
{
	struct rig *g = taught();

	g->rib->conf.from = ROUTES_FROM_FPM;
	session_begin(g, 100);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 5);
	assert_string_equal(session_vrf_phase(g->rib), "in-step");
	assert_int_equal(rig_summary_int(g, "no_vrf_routes"), 1);
	rig_free(g);
}

/* Before the replay of VRFs is over, zebra may still send routes of a VRF. */
static void
main_answers_for_vrfs_when_their_replay_is_over(void **state)
{
	struct rig *g = rig_two_vrfs();

	g->rib->vrfs.told = false;
	g->fib->vrfs_told = false;
	atomic_store(&kernel_status.in_step, 1);
	atomic_store(&kernel_status.of_zebra, 1); /* zebra has routes in the kernel */
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_go(g);
	assert_seen_in(g, 1, "10.0.0.1", "no fib");
	session_begin(g, 100);
	rig_go(g);
	assert_seen_in(g, 1, "10.0.0.1", "no fib");
	rig_later(g, 4);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 4);
	assert_seen_in(g, 1, "10.0.0.1", "no fib");
	rig_later(g, 1);
	assert_seen_in(g, 1, "10.0.0.1", "192.0.2.9@1");
	/* Without routes of zebra in the kernel there is nothing to wait for. */
	g->rib->vrfs.told = false;
	g->fib->vrfs_told = false;
	rig_session_down(g);
	atomic_store(&kernel_status.of_zebra, 0);
	rig_go(g);
	assert_seen_in(g, 1, "10.0.0.1", "192.0.2.9@1");
	atomic_store(&kernel_status.in_step, 0);
	rig_free(g);
}

static void
without_a_sentinel_one_silence_ends_both(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 4);
	rig_route_inline(g, "10.64.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 4);
	assert_true(g->rib->session.replaying);
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	rig_later(g, 1);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "none");
	rig_free(g);
}

static void
a_replay_of_vrfs_without_a_pause_ends_at_the_upper_bound(void **state)
{
	struct rig *g = taught();

	session_begin(g, 100);
	for (unsigned int s = 0; s < 120; s += 4) {
		assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
		rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
		rig_go(g);
		rig_later(g, 4);
	}
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

static void
a_vrf_that_is_not_replayed_keeps_its_routes_and_is_reported(void **state)
{
	struct rig *g = taught();
	struct msg_query q = {.kind = QUERY_VRFS, .max = 64};
	json_t *rows, *vrf;

	session_begin(g, 100);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 5);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.9@2");
	assert_int_equal(rig_summary_int(g, "vrfs_not_replayed"), 1);
	rows = rig_ask(g, &q, NULL);
	vrf = json_array_get(rows, 1);
	assert_string_equal(json_string_value(json_object_get(vrf, "name")), "blue");
	assert_true(json_is_false(json_object_get(vrf, "replayed")));
	assert_int_equal(json_integer_value(json_object_get(vrf, "zebra")), 1);
	assert_int_equal(json_integer_value(json_object_get(vrf, "stale")), 1);
	json_decref(rows);
	/* The next replay has the VRF: it counts as replayed now. */
	session_begin(g, 100);
	rig_route_in(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	rig_go(g);
	rig_later(g, 5);
	assert_seen_in(g, 2, "203.0.113.1", "none");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.9@2");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	assert_int_equal(rig_summary_int(g, "vrfs_not_replayed"), 1);
	rig_free(g);
}

static void
after_a_restart_of_zebra_vrfs_too_wait_for_its_peers(void **state)
{
	struct rig *g = taught();

	session_begin(g, 200);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_later(g, 59);
	assert_string_equal(session_phase(g->rib), "holding");
	assert_seen(g, "10.64.0.1", "192.0.2.9@1");
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	rig_later(g, 1);
	assert_string_equal(session_phase(g->rib), "in-step");
	assert_string_equal(session_vrf_phase(g->rib), "in-step");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	rig_free(g);
}

/*
 * A route with an unknown id keeps its next hop, in a VRF until the VRF part of the replay
 * ends.
 */
static void
a_route_of_a_vrf_that_comes_before_its_id_keeps_its_next_hop(void **state)
{
	struct rig *g = taught();

	session_begin(g, 100);
	rig_go(g);
	rig_route(g, "198.51.100.0/24", 70);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_route(g, "203.0.113.0/24", 71);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_go(g);
	assert_false(g->rib->session.replaying);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_hop(g, 70, "192.0.2.8", 11);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.8@1");
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	rig_later(g, 5);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "unresolved");
	rig_free(g);
}

/* zebra is away and cannot withdraw the routes of red, which was removed. */
static void
another_vrf_of_the_table_has_nothing_of_one_that_went(void **state)
{
	struct rig *g = taught();

	rig_vrf(g, RIG_RED, NULL);
	rig_vrf(g, 3, 100, "red"); /* made again with the same name, as after a restart */
	rig_settle(g);
	assert_seen_in(g, 3, "198.51.100.1", "192.0.2.9@1");
	rig_vrf(g, 3, 100, NULL);
	rig_vrf(g, 4, 100, "green");
	rig_addr_in(g, 100, 11, "198.51.100.7/24", false);
	rig_settle(g);
	assert_seen_in(g, 4, "203.0.113.1", "none");
	assert_seen_in(g, 4, "198.51.100.1", "onlink@1"); /* the subnet of green stays */
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.9@2");
	assert_int_equal(rig_summary_int(g, "no_vrf_routes"), 1);
	/* A later VRF called red gets the table without the routes of the first red. */
	rig_vrf(g, 4, 100, NULL);
	rig_vrf(g, 5, 100, "red");
	rig_settle(g);
	assert_seen_in(g, 5, "203.0.113.1", "none");
	/* New messages of zebra belong to the present VRF, whichever event comes first. */
	rig_session(g, 100);
	rig_route_in(g, 100, "203.0.113.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_vrf(g, 5, 100, NULL);
	rig_vrf(g, 6, 100, "violet");
	rig_settle(g);
	assert_seen_in(g, 6, "203.0.113.1", "192.0.2.9@1");
	rig_session_down(g);
	rig_go(g);
	(void)resync_from(&g->rib->resync, 1); /* a walk for another reason */
	rig_settle(g);
	assert_seen_in(g, 6, "203.0.113.1", "192.0.2.9@1");
	rig_free(g);
}

/*
 * Routes that the replay has not confirmed yet belong to the removed VRF. Confirmed routes
 * belong to the new one.
 */
static void
in_a_replay_another_vrf_has_the_confirmed_routes(void **state)
{
	struct rig *g = taught();

	rig_vrf(g, RIG_RED, NULL);
	session_begin(g, 100);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_vrf(g, 3, 100, "green");
	rig_settle(g);
	assert_seen_in(g, 3, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 3, "203.0.113.1", "none");
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sentinel_ends_mains_replay_and_silence_that_of_vrfs),
		cmocka_unit_test(a_table_without_a_vrf_is_kept_if_only_zebra_counts),
		cmocka_unit_test(main_answers_for_vrfs_when_their_replay_is_over),
		cmocka_unit_test(without_a_sentinel_one_silence_ends_both),
		cmocka_unit_test(a_replay_of_vrfs_without_a_pause_ends_at_the_upper_bound),
		cmocka_unit_test(
			a_vrf_that_is_not_replayed_keeps_its_routes_and_is_reported),
		cmocka_unit_test(after_a_restart_of_zebra_vrfs_too_wait_for_its_peers),
		cmocka_unit_test(
			a_route_of_a_vrf_that_comes_before_its_id_keeps_its_next_hop),
		cmocka_unit_test(another_vrf_of_the_table_has_nothing_of_one_that_went),
		cmocka_unit_test(in_a_replay_another_vrf_has_the_confirmed_routes),
	};

	return cmocka_run_group_tests_name("rib vrf sweep", tests, NULL, NULL);
}
