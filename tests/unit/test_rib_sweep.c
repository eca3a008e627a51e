/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: routes that are missing in a replay are swept at its end. Some routes are never
 * swept.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#include "rib/replay.h"

/*
 * Begin a session of `zebra`. Its first messages are next hop `id` and a route by this id.
 */
static void
session_begin(struct rig *g, uint32_t zebra, uint32_t id)
{
	rig_session(g, zebra);
	rig_hop(g, id, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", id);
}

/* Zebra 100 taught two routes and ended its session. */
static struct rig *
taught(void)
{
	struct rig *g = rig_two_ports();

	session_begin(g, 100, 7);
	rig_route(g, "203.0.113.0/24", 7);
	rig_sentinel(g);
	rig_go(g);
	assert_false(g->rib->session.replaying);
	rig_session_down(g);
	rig_settle(g);
	return g;
}

static void
routes_stay_while_zebra_is_away_however_long(void **state)
{
	struct rig *g = taught();

	rig_later(g, 100000);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
the_sentinel_ends_a_replay_and_missing_routes_are_swept(void **state)
{
	struct rig *g = taught();

	session_begin(g, 100, 7);
	rig_go(g);
	assert_int_equal(g->rib->table_counts.stale, 2); /* one of them is the sentinel */
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_sentinel(g);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	assert_int_equal(g->rib->table_counts.stale, 0);
	assert_int_equal(g->rib->count.sweeps, 1);
	assert_int_equal(g->rib->count.swept_routes, 1);
	assert_false(g->rib->session.replaying);
	rig_free(g);
}

static void
a_sentinel_before_any_other_route_ends_nothing(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_sentinel(g);
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	assert_true(g->rib->session.replaying);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_free(g);
}

static void
quiet_time_ends_a_replay_without_sentinel(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route(g, "198.51.100.0/24", 7);
	rig_go(g);
	rig_later(g, 4);
	rig_hop(g, 7, "192.0.2.1", 11); /* any event starts the time again */
	rig_go(g);
	rig_later(g, 4);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_int_equal(sweep_in_ms(g->rib, rig_now_ms), 1000);
	rig_later(g, 1);
	assert_seen(g, "203.0.113.1", "none");
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
events_in_the_queue_are_no_silence(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_go(g);
	/*
	 * rib has no time for ten seconds, while the rest of the replay waits in the queue.
	 */
	fpm_status.queue_bytes_in = fpm_status.queue_bytes_out + 1000;
	rig_later(g, 10);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_later(g, 1000); /* not even at the upper bound */
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_string_equal(session_phase(g->rib), "replaying");

	rig_route(g, "203.0.113.0/24", 7);
	rig_go(g);
	fpm_status.queue_bytes_out = fpm_status.queue_bytes_in;
	rig_later(g, 5);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_seen(g, "198.51.100.1", "none");
	rig_free(g);
}

static void
silence_from_the_start_sweeps_nothing(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_go(g);
	rig_later(g, 1000);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_true(g->rib->session.replaying);
	rig_free(g);
}

static void
a_stream_that_never_pauses_is_swept_at_the_upper_bound(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_go(g);
	for (unsigned int s = 0; s < 119; s++) {
		rig_route(g, "198.51.100.0/24", 7);
		rig_later(g, 1);
	}
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_route(g, "198.51.100.0/24", 7);
	rig_later(g, 1);
	assert_seen(g, "203.0.113.1", "none");
	rig_free(g);
}

static void
a_restarted_zebra_is_given_the_hold_time(void **state)
{
	struct rig *g = taught();

	session_begin(g, 200, 1);
	rig_sentinel(g);
	rig_go(g);
	rig_later(g, 59);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	assert_int_equal(sweep_in_ms(g->rib, rig_now_ms), 1000);
	rig_later(g, 1);
	assert_seen(g, "203.0.113.1", "none");
	rig_free(g);
}

static void
a_restarted_zebra_that_knows_all_again_needs_no_sweep(void **state)
{
	struct rig *g = taught();

	session_begin(g, 200, 1);
	rig_route(g, "203.0.113.0/24", 1);
	rig_sentinel(g);
	rig_go(g);
	assert_false(g->rib->session.replaying);
	assert_int_equal(g->rib->count.sweeps, 0);
	rig_free(g);
}

static void
a_session_lost_during_the_sweep_stops_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_routes(g, 20000, 7);
	rig_sentinel(g);
	rig_go(g);
	session_begin(g, 100, 7);
	rig_sentinel(g);
	rig_flush_batch(g);
	assert_true(rib_round(g->rib)); /* one slice */
	assert_true(g->rib->table_counts.stale > 0 && g->rib->table_counts.stale < 20000);
	rig_session_down(g);
	rig_flush_batch(g);
	assert_false(rib_round(g->rib));
	assert_true(g->rib->table_counts.stale >= 20000 - RIB_SLICE);
	rig_free(g);
}

static void
live_updates_between_slices_are_not_swept(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_routes(g, 20000, 7);
	rig_go(g);
	session_begin(g, 100, 7);
	rig_sentinel(g);
	rig_flush_batch(g);
	rib_round(g->rib);
	rig_route(g, "10.78.0.0/24", 7); /* position 19968: not visited yet */
	rig_go(g);
	assert_int_equal(g->rib->table_counts.stale, 0);
	assert_int_equal(g->rib->count.swept_routes, 19999);
	assert_seen(g, "10.78.0.1", "192.0.2.1@1");
	assert_seen(g, "10.1.0.1", "none");
	rig_settle(g);
	rig_free(g);
}

static void
a_sweep_of_main_leaves_other_tables_and_the_kernels_routes(void **state)
{
	struct rig *g = taught();

	rig_route(g, "198.51.100.0/24", 7);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_go(g);
	session_begin(g, 100, 7);
	rig_sentinel(g);
	rig_go(g);
	assert_int_equal(g->rib->count.sweeps, 1);
	assert_int_equal(g->rib->tables.other.n, 1);
	assert_seen(g, "192.0.2.126", "local");
	rig_free(g);
}

static void
beside(struct rig *g, uint8_t family, uint8_t key)
{
	struct fpm_event *ev = rig_event(g, FPM_ROUTE);

	ev->table = FPM_TABLE_NONE;
	ev->rtm_type = RTN_UNICAST;
	ev->prefix = (struct prefix){.family = family, .len = 32};
	ev->prefix.addr.octet[3] = key;
	ev->hops = calloc(1, sizeof(*ev->hops));
	ev->n_hops = 1;
	*ev->hops = (struct fpm_hop){.ifindex = 11, .weight = 1, .encap = HOP_MPLS};
}

static void
labels_are_replayed_and_swept_and_macs_are_neither(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	beside(g, FAMILY_LABEL, 16);
	beside(g, FAMILY_LABEL, 17);
	beside(g, FAMILY_MAC, 2);
	rig_sentinel(g);
	rig_go(g);
	assert_int_equal(rig_summary_int(g, "unsupported"), 3);
	assert_int_equal(rig_summary_int(g, "other_tables"), 0);

	rig_session(g, 100);
	rig_go(g);
	assert_int_equal(g->rib->table_counts.stale, 3); /* labels and the sentinel */
	beside(g, FAMILY_LABEL, 17);
	rig_route_type(g, "10.0.0.0/8", RTN_BLACKHOLE);
	rig_sentinel(g);
	rig_go(g);
	assert_int_equal(g->rib->table_counts.n_labels, 1);
	assert_int_equal(g->rib->tables.n_not_ip, 2);
	assert_int_equal(g->rib->table_counts.stale, 0);
	assert_int_equal(rig_summary_int(g, "unsupported"), 2);
	rig_free(g);
}

static void
a_stale_route_deleted_or_refreshed_is_counted_once(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_go(g);
	assert_int_equal(g->rib->table_counts.stale, 3);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "198.51.100.0/24", 7);
	rig_del(g, "203.0.113.0/24");
	rig_del(g, "203.0.113.0/24");
	rig_go(g);
	assert_int_equal(g->rib->table_counts.stale, 1);
	rig_free(g);
}

static void
a_route_that_the_replay_hides_behind_the_kernels_is_swept_behind_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_route_inline(g, "192.0.2.0/25", "192.0.2.200", 12);
	rig_go(g);
	rig_session(g, 100);
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.200", 12);
	rig_sentinel(g);
	rig_go(g);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_addr(g, 11, "192.0.2.126/25", true);
	assert_seen(g, "192.0.2.1", "none");
	rig_free(g);
}

static void
the_session_tells_where_it_stands(void **state)
{
	struct rig *g = rig_two_ports();
	json_t *row;

	assert_string_equal(session_phase(g->rib), "away");
	session_begin(g, 100, 7);
	rig_route(g, "203.0.113.0/24", 7);
	rig_go(g);
	assert_string_equal(session_phase(g->rib), "replaying");
	rig_later(g, 5);
	assert_string_equal(session_phase(g->rib), "in-step");
	rig_session_down(g);
	rig_go(g);
	assert_string_equal(session_phase(g->rib), "away");

	session_begin(g, 200, 1); /* another zebra */
	rig_go(g);
	rig_later(g, 7);
	assert_string_equal(session_phase(g->rib), "holding");
	row = rig_summary(g);
	assert_string_equal(json_string_value(json_object_get(row, "phase")), "holding");
	assert_true(json_is_true(json_object_get(row, "zebra_restarted")));
	assert_true(json_is_false(json_object_get(row, "sentinel")));
	assert_int_equal(json_integer_value(json_object_get(row, "replay_before")), 2);
	assert_int_equal(json_integer_value(json_object_get(row, "replay_confirmed")), 1);
	assert_int_equal(json_integer_value(json_object_get(row, "stale")), 1);
	assert_true(json_real_value(json_object_get(row, "replay_s")) == 7.0);
	json_decref(row);
	rig_later(g, 53);
	assert_string_equal(session_phase(g->rib), "in-step");
	assert_int_equal(rig_summary_int(g, "replay_confirmed"), 1);
	assert_int_equal(rig_summary_int(g, "swept_routes"), 1);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_stay_while_zebra_is_away_however_long),
		cmocka_unit_test(the_sentinel_ends_a_replay_and_missing_routes_are_swept),
		cmocka_unit_test(a_sentinel_before_any_other_route_ends_nothing),
		cmocka_unit_test(quiet_time_ends_a_replay_without_sentinel),
		cmocka_unit_test(events_in_the_queue_are_no_silence),
		cmocka_unit_test(silence_from_the_start_sweeps_nothing),
		cmocka_unit_test(a_stream_that_never_pauses_is_swept_at_the_upper_bound),
		cmocka_unit_test(a_restarted_zebra_is_given_the_hold_time),
		cmocka_unit_test(a_restarted_zebra_that_knows_all_again_needs_no_sweep),
		cmocka_unit_test(a_session_lost_during_the_sweep_stops_it),
		cmocka_unit_test(live_updates_between_slices_are_not_swept),
		cmocka_unit_test(
			a_sweep_of_main_leaves_other_tables_and_the_kernels_routes),
		cmocka_unit_test(labels_are_replayed_and_swept_and_macs_are_neither),
		cmocka_unit_test(the_session_tells_where_it_stands),
		cmocka_unit_test(a_stale_route_deleted_or_refreshed_is_counted_once),
		cmocka_unit_test(
			a_route_that_the_replay_hides_behind_the_kernels_is_swept_behind_it),
	};

	return cmocka_run_group_tests_name("rib sweep", tests, NULL, NULL);
}
