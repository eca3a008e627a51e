/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes wait for missing information: a commit waits for the answer of neigh about a new
 * next hop, a replayed route waits for its next-hop object.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include <unistd.h>

#include "patience.h"
#include "rib_rig.h"

#define NET "198.51.100.0/24"
#define DST "198.51.100.9"

/* --- new next hop --------------------------------------------------------------------- */

static void
a_new_next_hop_is_used_when_neigh_has_answered(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, NET, "192.0.2.1", 11);
	rig_settle(g);
	g->hold_ready = true;
	rig_route_inline(g, NET, "192.0.2.129", 12);
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_go(g);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	rig_ready(g, "192.0.2.129", 12);
	assert_seen(g, DST, "192.0.2.129@2");
	assert_seen(g, "203.0.113.1", "blackhole");
	rig_settle(g);
	rig_free(g);
}

static void
late_binding_waits_too_and_for_all_members(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_group(g, 20, 1, 1, 1);
	rig_route(g, NET, 20);
	rig_settle(g);
	g->hold_ready = true;
	rig_hop(g, 2, "192.0.2.2", 11);
	rig_hop(g, 3, "192.0.2.129", 12);
	rig_group(g, 20, 2, 2, 1, 3, 1);
	rig_go(g);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_ready(g, "192.0.2.2", 11);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_ready(g, "192.0.2.2", 11); /* a second answer counts once */
	assert_seen(g, DST, "192.0.2.1@1");
	rig_ready(g, "192.0.2.129", 12);
	assert_seen(g, DST, "192.0.2.129@2*2048 192.0.2.2@1*2048");
	rig_settle(g);
	rig_free(g);
}

static void
listed_routes_are_the_forwarded_ones(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	struct msg *m;

	g->hold_ready = true;
	rig_route_inline(g, NET, "192.0.2.129", 12);
	rig_go(g);
	q->kind = QUERY_ROUTES;
	q->from = &g->ui;
	q->max = 10;
	rib_on_msg(g->rib, &q->m);
	rig_go(g);
	assert_null(worker_take(&g->ui));
	rig_ready(g, "192.0.2.129", 12);
	m = worker_take(&g->ui);
	assert_ptr_equal(m, &q->m);
	assert_int_not_equal(json_array_size(q->rows), 0);
	json_decref(q->rows);
	msg_free(m);
	rig_settle(g);
	rig_free(g);
}

static void
a_silent_neigh_holds_nothing_up_for_long(void **state)
{
	struct rig *g = rig_two_ports();

	g->hold_ready = true;
	rig_route_inline(g, NET, "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, DST, "none");
	rig_now_ms += 1000;
	rig_go(g);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_now_ms += 1000;
	rig_route_inline(g, NET, "192.0.2.2", 11);
	rig_go(g);
	assert_seen(g, DST, "192.0.2.2@1");
	rig_settle(g);
	rig_free(g);
}

static void
a_lost_link_waits_for_no_answer_of_neigh(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, NET, 20);
	rig_settle(g);
	g->hold_ready = true;
	rig_route_inline(g, "203.0.113.0/24", "192.0.2.7", 11);
	rig_go(g);
	rig_link(g, 12, 2, false);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	rig_ready(g, "192.0.2.7", 11);
	assert_seen(g, "203.0.113.1", "192.0.2.7@1");
	assert_seen(g, DST, "192.0.2.1@1");
	rig_settle(g);
	rig_free(g);
}

static void
a_lost_link_is_left_before_the_next_route_is_looked_at(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_link *down = msg_new(MSG_LINK, sizeof(*down));

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, NET, 20);
	rig_settle(g);
	rig_group(g, 20, 1, 2, 1); /* applied, but not committed */
	rig_flush_batch(g);
	down->ifindex = 12;
	down->ifidx = 2;
	rib_on_msg(g->rib, &down->m);
	rig_route(g, "203.0.113.0/24", 1);
	rig_flush_batch(g);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	rig_go(g);
	assert_seen(g, DST, "down");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_settle(g);
	rig_free(g);
}

static void
a_commit_does_not_wait_for_a_next_hop_that_is_gone(void **state)
{
	struct rig *g = rig_two_ports();

	g->hold_ready = true;
	rig_route_inline(g, NET, "192.0.2.1", 11);
	rig_go(g);
	rig_ready(g, "192.0.2.1", 11);
	rig_route_inline(g, NET, "192.0.2.2", 11);
	rig_go(g);
	rig_route_inline(g, NET, "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_ready(g, "192.0.2.2", 11);
	assert_int_equal(g->rib->adjs.n_asked, 0);
	g->hold_ready = false;
	rig_settle(g);
	assert_int_equal(g->rib->adjs.n, 1);
	rig_free(g);
}

/* --- replayed route ------------------------------------------------------------------- */

static struct rig *
replaying(void)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_route(g, NET, 1);
	rig_settle(g);
	rig_session_down(g);
	rig_session(g, 100);
	return g;
}

static void
a_replayed_route_keeps_its_path_until_its_id_is_known(void **state)
{
	struct rig *g = replaying();
	uint64_t writes = g->rib->count.trie_writes;

	rig_route(g, NET, 7);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_int_equal(rig_summary_int(g, "stale"), 0);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_hop(g, 7, "192.0.2.129", 12); /* the route follows the id now */
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.129@2");
	rig_free(g);
}

static void
until_all_members_of_its_group_are_known(void **state)
{
	struct rig *g = replaying();

	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_route(g, NET, 20);
	rig_hop(g, 7, "192.0.2.2", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.129@2*2048 192.0.2.2@1*2048");
	rig_free(g);
}

static void
at_the_latest_until_the_replay_is_over(void **state)
{
	struct rig *g = replaying();

	rig_route(g, NET, 7);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.1@1");
	rig_later(g, 6);
	assert_seen(g, DST, "unresolved");
	rig_hop(g, 7, "192.0.2.2", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.2@1");
	rig_free(g);
}

static void
the_next_message_about_the_route_counts(void **state)
{
	struct rig *g = replaying();

	rig_route(g, NET, 7);
	rig_settle(g);
	rig_route_inline(g, NET, "192.0.2.129", 12);
	rig_hop(g, 7, "192.0.2.2", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.129@2");

	rig_session(g, 100);
	rig_route(g, NET, 9);
	rig_settle(g);
	rig_route(g, NET, 10);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.129@2");
	rig_hop(g, 9, "192.0.2.3", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.129@2");
	rig_hop(g, 10, "192.0.2.4", 11);
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.4@1");

	rig_session(g, 100);
	rig_route(g, NET, 11);
	rig_settle(g);
	rig_del(g, NET);
	rig_settle(g);
	assert_seen(g, DST, "none");
	rig_hop(g, 11, "192.0.2.5", 11);
	rig_settle(g);
	assert_seen(g, DST, "none");
	assert_int_equal(g->rib->early.n, 0);
	rig_free(g);
}

static void
a_session_that_ends_in_between_forgets_waiting_routes(void **state)
{
	struct rig *g = replaying();

	rig_route(g, NET, 7);
	rig_settle(g);
	rig_session_down(g);
	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.2", 11); /* another object with id 7 */
	rig_settle(g);
	assert_seen(g, DST, "192.0.2.1@1");
	assert_int_equal(rig_summary_int(g, "stale"), 1);
	rig_free(g);
}

static void
outside_of_a_replay_an_unknown_id_is_unresolved(void **state)
{
	struct rig *g = replaying();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_route(g, NET, 1);
	rig_route(g, "203.0.113.0/24", 8); /* a new route has no old next hop to keep */
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "unresolved");
	rig_route(g, NET, 7); /* NET was announced before in this session */
	rig_settle(g);
	assert_seen(g, DST, "unresolved");
	rig_free(g);
}

/*
 * A route that waited once may wait again. A chain with the route twice would be endless.
 */
static void
routes_may_wait_in_each_replay(void **state)
{
	enum { ROUTES = 307, REPLAYS = 4 }; /* a prime number */
	struct rig *g = rig_two_ports();
	char net[32], to[16] = "";

	alarm(PATIENCE_S);
	for (unsigned int k = 0; k < REPLAYS; k++) {
		rig_session(g, 100);
		for (unsigned int i = 0; i < ROUTES; i++) {
			/* The order differs from replay to replay. */
			unsigned int n = (i * (2 * k + 1) + k) % ROUTES;

			snprintf(net, sizeof(net), "10.%u.%u.0/24", n / 100, n % 100);
			rig_route(g, net, 7 + k);
		}
		rig_settle(g);
		assert_int_equal(g->rib->early.n, k == 0 ? 0 : ROUTES);
		snprintf(to, sizeof(to), "192.0.2.%u", 1 + k);
		rig_hop(g, 7 + k, to, 11);
		rig_settle(g);
		assert_int_equal(g->rib->early.n, 0);
		strcat(to, "@1");
		assert_seen(g, "10.0.0.1", to);
		assert_seen(g, "10.2.99.1", to);
		rig_session_down(g);
	}
	alarm(0);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_next_hop_is_used_when_neigh_has_answered),
		cmocka_unit_test(late_binding_waits_too_and_for_all_members),
		cmocka_unit_test(listed_routes_are_the_forwarded_ones),
		cmocka_unit_test(a_lost_link_waits_for_no_answer_of_neigh),
		cmocka_unit_test(a_lost_link_is_left_before_the_next_route_is_looked_at),
		cmocka_unit_test(a_silent_neigh_holds_nothing_up_for_long),
		cmocka_unit_test(a_commit_does_not_wait_for_a_next_hop_that_is_gone),
		cmocka_unit_test(a_replayed_route_keeps_its_path_until_its_id_is_known),
		cmocka_unit_test(until_all_members_of_its_group_are_known),
		cmocka_unit_test(at_the_latest_until_the_replay_is_over),
		cmocka_unit_test(the_next_message_about_the_route_counts),
		cmocka_unit_test(a_session_that_ends_in_between_forgets_waiting_routes),
		cmocka_unit_test(routes_may_wait_in_each_replay),
		cmocka_unit_test(outside_of_a_replay_an_unknown_id_is_unresolved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
