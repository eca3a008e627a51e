/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checkpoint while a successor reads it, and a successor with too little memory.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <errno.h>
#include <stdio.h>

#include "rib/replay.h"
#include "rib/withdraw.h"

static void
quiesce(struct rig *g, _Atomic bool *done)
{
	struct msg_quiesce *m = msg_new(MSG_QUIESCE, sizeof(*m));

	m->done = done;
	rib_on_msg(g->rib, &m->m);
}

/* rib quiesces within a replay that lacks routes, before the lacking routes are swept. */
static void
nothing_moves_under_a_successor(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	_Atomic bool done = false;
	uint32_t slots;

	ckpt_teach(g);
	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.3", 11);
	rig_route(g, "198.51.100.0/24", 7);
	/* The old slot is unused after the next commit. */
	rig_route(g, "203.0.113.128/25", 7);
	rig_sentinel(g);
	rig_flush_batch(g);
	quiesce(g, &done);
	assert_true(done);
	slots = g->rib->ckpt->head->n_slots;
	rig_settle(g);

	assert_int_equal(g->rib->ckpt->head->n_slots, slots);
	assert_int_equal(g->rib->count.swept_routes, 0);
	assert_string_equal(session_phase(g->rib), "away");
	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(g->rib->count.restored, 6);
	assert_int_equal(g->rib->count.restore_lost, 0);
	assert_seen(g, "203.0.113.129", "192.0.2.3@1");
	assert_seen(g, "203.0.113.1", "192.0.2.129@2*3072 192.0.2.1@1*1024");
	rig_free(g);
}

/*
 * rib quiesces in the round in which it gets the message. The message changes a next hop
 * and no route.
 */
static void
the_last_message_of_zebra_reaches_a_successor(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	_Atomic bool done = false;

	ckpt_teach(g);
	rig_hop(g, 7, "192.0.2.3", 11);
	rig_flush_batch(g);
	quiesce(g, &done);
	rig_settle(g);
	g = rig_begun(ckpt_of_killed(g), NETNS);

	assert_seen(g, "198.51.100.1", "192.0.2.3@1");
	assert_seen(g, "203.0.113.1", "192.0.2.129@2*3072 192.0.2.3@1*1024");
	rig_free(g);
}

/* If the successor does not take over, rib removes the unused slots from the checkpoint. */
static void
a_checkpoint_that_rested_is_whole_after_it(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	_Atomic bool done = false;
	uint32_t slots;

	ckpt_teach(g);
	slots = g->rib->ckpt->head->n_slots;
	rig_route(g, "203.0.113.128/25", 7); /* the last route of its old slot */
	rig_flush_batch(g);
	quiesce(g, &done);
	rig_settle(g);
	quiesce(g, NULL);
	rig_settle(g);

	assert_int_equal(g->rib->ckpt->head->n_slots, slots - 1);
	ckpt_free(ckpt_opened(ckpt_of_killed(g)));
}

/*
 * rtnl does not stop while a successor starts: rib obeys the kernel meanwhile. If the
 * successor does not take over, the checkpoint gets these changes.
 */
static void
changes_of_the_kernel_reach_a_checkpoint_that_rested(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	_Atomic bool done = false;

	ckpt_teach(g);
	rig_kernel_route(g, KERNEL_ROUTE, "10.1.0.0/16", 0, "192.0.2.5", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "10.2.0.0/16", 0, "192.0.2.5", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "10.3.0.0/16", 0, "192.0.2.1", 11);
	rig_kernel_nexthop(g, 70, "192.0.2.6", 11);
	rig_kernel_by_id(g, KERNEL_ROUTE, "10.5.0.0/16", 0, 70);
	rig_settle(g);
	quiesce(g, &done);
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "10.1.0.0/16", 0, "192.0.2.5", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "10.2.0.0/16", 0, "192.0.2.7", 11)->order =
		KERNEL_REPLACE;
	rig_kernel_route(g, KERNEL_ROUTE, "10.4.0.0/16", 0, "192.0.2.8", 11);
	rig_kernel_nexthop(g, 70, "192.0.2.9", 11);
	rig_settle(g);
	assert_true(g->rib->missed.kernel.n > 0 && g->rib->missed.slots.n > 0);
	quiesce(g, NULL);
	/*
	 * zebra's new session has a route with the next hop of a group that was made then.
	 */
	rig_session(g, 101);
	rig_route_inline(g, "203.0.113.128/25", "192.0.2.8", 11);
	rig_flush_batch(g);
	rig_settle(g);

	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(g->rib->count.restore_lost, 0);
	assert_seen(g, "10.1.0.1", "none");
	assert_seen(g, "10.2.0.1", "192.0.2.7@1");
	assert_seen(g, "10.3.0.1", "192.0.2.1@1");
	assert_seen(g, "10.4.0.1", "192.0.2.8@1");
	assert_seen(g, "10.5.0.1", "192.0.2.9@1");
	assert_seen(g, "203.0.113.129", "192.0.2.8@1");
	rig_free(g);
}

/*
 * Routes of zebra that are swept after the session has ended, or whose prefix's record is
 * used again, are not in the checkpoint.
 */
static void
routes_that_go_meanwhile_leave_a_checkpoint_that_rested(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	_Atomic bool done = false;
	struct prefix p;
	struct route *r;

	ckpt_teach(g);
	assert_int_equal(prefix_parse("203.0.113.0/24", &p, NULL), 0);
	r = routes_find(&g->rib->tables.main, RIB_TABLE_MAIN, &p,
			routes_hash(&g->rib->tables.main, RIB_TABLE_MAIN, &p));
	assert_non_null(r);
	quiesce(g, &done);
	zebra_withdraw(g->rib, r);
	/* A route of the kernel gets the record of the withdrawn route. */
	rig_kernel_route(g, KERNEL_ROUTE, "10.1.0.0/16", 0, "192.0.2.5", 11);
	rig_settle(g);
	quiesce(g, NULL);
	rig_settle(g);

	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(g->rib->count.restored, 5);
	assert_seen(g, "203.0.113.1", "none");
	assert_seen(g, "10.1.0.1", "192.0.2.5@1");
	rig_free(g);
}

/* Begin a rib whose IPv4 trie gets no memory. Return the result of its init function. */
static int
begun_poor(int fd, bool successor)
{
	struct rig *g = rig_poor(1);
	int rc;

	g->rib->conf.checkpoint = true;
	g->rib->conf.checkpoint_max_age_s = 60;
	g->rib->conf.netns_id = NETNS;
	g->rib->conf.checkpoint_fd = fd;
	g->rib->conf.successor = successor;
	rig_no_memory = true;
	rc = g->w.ops->init(&g->w);
	rig_no_memory = false;
	rig_free(g);
	return rc;
}

/*
 * A successor does not start without memory for all routes, because its predecessor
 * forwards by all of them. A daemon without a predecessor starts with the routes that fit.
 */
static void
a_successor_does_not_take_over_with_part_of_the_routes(void **state)
{
	for (unsigned int successor = 0; successor < 2; successor++) {
		struct rig *g = rig_begun(-1, NETNS);
		char prefix[32];

		ckpt_teach(g);
		for (unsigned int i = 0; i < 60000; i++) {
			snprintf(prefix, sizeof(prefix), "10.%u.%u.0/25", i >> 8 & 255,
				 i & 255);
			rig_route(g, prefix, 7);
		}
		rig_settle(g);
		assert_int_equal(begun_poor(ckpt_of_killed(g), successor == 1),
				 successor == 1 ? -ENOMEM : 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_moves_under_a_successor),
		cmocka_unit_test(the_last_message_of_zebra_reaches_a_successor),
		cmocka_unit_test(a_checkpoint_that_rested_is_whole_after_it),
		cmocka_unit_test(changes_of_the_kernel_reach_a_checkpoint_that_rested),
		cmocka_unit_test(routes_that_go_meanwhile_leave_a_checkpoint_that_rested),
		cmocka_unit_test(a_successor_does_not_take_over_with_part_of_the_routes),
	};

	return cmocka_run_group_tests_name("rib quiesce", tests, NULL, NULL);
}
