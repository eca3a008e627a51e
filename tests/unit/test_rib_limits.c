/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables with limits of the configuration (`limits:`): refused routes, routes that come in
 * later, and a checkpoint with more routes than its successor has room for.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <stdio.h>

#include "log_said.h"
#include "oracle.h"
#include "base/limits.h"

static int
no_limit(void **state)
{
	rig_limits = NULL;
	return 0;
}

static char *
nth(char text[32], unsigned int i)
{
	snprintf(text, 32, "11.0.%u.0/24", i);
	return text;
}

static void
teach(struct rig *g, unsigned int from, unsigned int to)
{
	char text[32];

	for (unsigned int i = from; i < to; i++)
		rig_route_inline(g, nth(text, i), "192.0.2.1", 11);
	rig_settle(g);
}

static bool
is_asked_to_say_all_again(struct rig *g)
{
	struct msg *m = worker_take(&g->fpm);
	bool is = m != NULL && m->type == MSG_REPLAY;

	if (m != NULL)
		msg_free(m);
	return is;
}

static void
routes_beyond_the_limit_are_refused_and_asked_for_when_an_eighth_is_free(void **state)
{
	unsigned int before;
	struct rig *g;
	char text[32];

	rig_limit(TABLE_routes, 40);
	g = rig_two_ports();
	g->rib->conf.fpm = &g->fpm;
	rig_session(g, 100);
	before = g->rib->tables.main.n; /* our own addresses and subnets */
	assert_in_range(before, 1, 20);
	teach(g, 0, 41 - before);
	assert_int_equal(table_state(TABLE_routes).used, 40);
	assert_int_equal(table_state(TABLE_routes).max, 40);
	assert_int_equal(table_state(TABLE_routes).refused, 1);
	assert_true(log_said("rib: table is full table=routes max=40 refused=1 "
			     "key=limits.routes") > 0);
	snprintf(text, sizeof(text), "11.0.%u.1", 39 - before);
	assert_seen(g, text, "192.0.2.1@1");
	snprintf(text, sizeof(text), "11.0.%u.1", 40 - before);
	assert_seen(g, text, "none");
	/* Existing routes may change. Own addresses always have room. */
	rig_route_inline(g, nth(text, 0), "192.0.2.129", 12);
	rig_addr(g, 11, "203.0.113.1/24", false);
	rig_settle(g);
	assert_seen(g, "11.0.0.1", "192.0.2.129@2");
	assert_seen(g, "203.0.113.1", "local");
	assert_int_equal(table_state(TABLE_routes).refused, 1);
	assert_true(table_state(TABLE_routes).used > 40);

	for (unsigned int i = 0; table_state(TABLE_routes).used > 36; i++) {
		assert_false(is_asked_to_say_all_again(g));
		rig_del(g, nth(text, i));
		rig_settle(g);
	}
	assert_false(is_asked_to_say_all_again(g));
	for (unsigned int i = 10; table_state(TABLE_routes).used > 35; i++) {
		rig_del(g, nth(text, i));
		rig_settle(g);
	}
	assert_true(is_asked_to_say_all_again(g));
	assert_true(log_said("rib: table has room again table=routes") > 0);
	teach(g, 40 - before, 41 - before);
	snprintf(text, sizeof(text), "11.0.%u.1", 40 - before);
	assert_seen(g, text, "192.0.2.1@1");
	assert_false(is_asked_to_say_all_again(g)); /* zebra is asked once */
	rig_free(g);
}

/*
 * A route needs another chunk of numbers, for which there is no memory. The route is
 * counted and logged. When there is memory, zebra and rtnl are asked for all routes once.
 */
static void
routes_without_memory_are_asked_for_when_there_is_some(void **state)
{
	unsigned int said = log_said("rib: out of memory in=routes");
	struct rig *g = rig_two_ports();
	struct routes *t = &g->rib->tables.main;
	uint32_t n_chunks, end;

	g->rib->conf.fpm = &g->fpm;
	rig_session(g, 100);
	teach(g, 0, 1);
	n_chunks = t->n_chunks;
	end = t->of[0].end;
	assert_int_equal(t->of[0].free, 0);
	t->n_chunks = ROUTE_CHUNKS;
	t->of[0].end = t->of[0].at;
	teach(g, 1, 2);
	assert_seen(g, "11.0.0.1", "192.0.2.1@1");
	assert_seen(g, "11.0.1.1", "none");
	assert_int_equal(g->rib->count.route_nomem, 1);
	assert_int_equal(log_said("rib: out of memory in=routes"), said + 1);
	rig_now_ms += 20000;
	rig_settle(g);
	assert_false(is_asked_to_say_all_again(g));

	t->n_chunks = n_chunks;
	t->of[0].end = end;
	rig_now_ms += 20000;
	rig_settle(g);
	assert_true(is_asked_to_say_all_again(g));
	teach(g, 1, 2);
	assert_seen(g, "11.0.1.1", "192.0.2.1@1");
	rig_now_ms += 20000;
	rig_settle(g);
	assert_false(is_asked_to_say_all_again(g));
	rig_free(g);
}

/* Teach `n` routes, each by a gateway of its own. */
static void
teach_paths(struct rig *g, unsigned int n)
{
	char gw[32], text[32];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(gw, sizeof(gw), "192.0.2.%u", i + 1);
		rig_route_inline(g, nth(text, i), gw, 11);
	}
	rig_settle(g);
}

static void
groups_and_adjacencies_have_the_configured_room(void **state)
{
	struct rig *g;
	char text[32];

	rig_limit(TABLE_adjacencies, 16);
	g = rig_two_ports();
	teach_paths(g, 17);
	assert_int_equal(table_state(TABLE_adjacencies).max, 16);
	assert_int_equal(table_state(TABLE_adjacencies).used, 16);
	assert_seen(g, "11.0.15.1", "192.0.2.16@1");
	assert_seen(g, "11.0.16.1", "down");
	rig_del(g, nth(text, 3));
	rig_settle(g);
	assert_seen(g, "11.0.16.1", "192.0.2.17@1");
	rig_free(g);

	rig_limit(TABLE_groups, 64);
	g = rig_two_ports();
	teach_paths(g, 100);
	assert_int_equal(table_state(TABLE_groups).used, 64);
	assert_true(table_state(TABLE_groups).refused > 0);
	assert_seen(g, "11.0.0.1", "192.0.2.1@1");
	assert_seen(g, "11.0.99.1", "unresolved");
	/* Own addresses and subnets always have room. */
	rig_link(g, 13, 3, true);
	rig_addr(g, 13, "203.0.113.1/24", false);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "local");
	assert_seen(g, "203.0.113.7", "onlink@3");
	rig_free(g);
}

static void
own_subnets_take_no_room_of_groups(void **state)
{
	char text[32];
	struct rig *g;

	rig_limit(TABLE_groups, 64);
	g = rig_two_ports();
	g->rib->conf.fpm = &g->fpm;
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "198.18.%u.1/24", i);
		rig_link(g, 100 + i, (uint16_t)(10 + i), true);
		rig_addr(g, 100 + i, text, false);
	}
	teach_paths(g, 65);
	assert_int_equal(table_state(TABLE_groups).used, 64);
	assert_seen(g, "11.0.63.1", "192.0.2.64@1");
	assert_seen(g, "11.0.64.1", "unresolved");
	/*
	 * Deleted routes make room for groups, whatever number of slots the subnets have.
	 */
	for (unsigned int i = 0; i < 8; i++)
		rig_del(g, nth(text, i));
	rig_settle(g);
	assert_true(is_asked_to_say_all_again(g));
	rig_free(g);
}

/*
 * A next hop without a neighbor uses no group, because it is small. An id uses a group,
 * because it may get any content.
 */
static void
an_orphan_is_counted_by_its_new_use(void **state)
{
	struct rig *g;
	int fd;

	rig_limit(TABLE_groups, 64);
	g = rig_begun(-1, NETNS);
	/* The link has no address, because its subnet would have the same next hop. */
	rig_link(g, 13, 3, true);
	rig_session(g, 100);
	rig_route_inline(g, "11.0.0.0/24", NULL, 13);
	rig_settle(g);
	assert_int_equal(table_state(TABLE_groups).used, 0);
	fd = ckpt_of_killed(g);
	g = rig_begun(fd, NETNS);
	rig_link(g, 13, 3, true);
	assert_int_equal(table_state(TABLE_groups).used, 0);

	rig_session(g, 200);
	rig_hop(g, 5, NULL, 13);
	rig_route(g, "11.0.0.0/24", 5);
	rig_settle(g);
	assert_seen(g, "11.0.0.1", "onlink@3");
	assert_int_equal(table_state(TABLE_groups).used, 1);
	assert_int_equal(g->rib->count.adopted, 1);

	/* zebra no longer uses ids. */
	rig_session(g, 300);
	rig_route_inline(g, "11.0.0.0/24", NULL, 13);
	rig_settle(g);
	assert_seen(g, "11.0.0.1", "onlink@3");
	assert_int_equal(table_state(TABLE_groups).used, 0);
	rig_free(g);
}

/* Return the checkpoint of a daemon that had `n` routes of teach_paths(). */
static int
left_behind(unsigned int n)
{
	struct rig *g = rig_begun(-1, NETNS);

	rig_session(g, 100);
	teach_paths(g, n);
	return ckpt_of_killed(g);
}

/*
 * zebra is not asked, because the fpm thread has not started. A zebra that connects sends
 * all routes anyway.
 */
static void
zebra_is_not_asked_for_routes_of_a_too_large_checkpoint(void **state)
{
	struct rig *g;
	int fd = left_behind(100);

	rig_limit(TABLE_groups, 64);
	rig_limits->max[TABLE_routes] = 20;
	g = rig_begun(fd, NETNS);
	rig_settle(g);
	assert_true(table_state(TABLE_groups).used < 56);
	rig_free(g);
}

/* Return how many of the `n` routes of teach_paths() forward packets. */
static unsigned int
n_forwarded(struct rig *g, unsigned int n)
{
	unsigned int n_seen = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct ipaddr dst = {{11, 0, (uint8_t)i, 1}};

		n_seen += path_kind(fib_resolve(g->fib, 0, 4, &dst, 0)) == PATH_ADJ;
	}
	return n_seen;
}

static void
a_checkpoint_of_more_than_there_is_room_for_is_restored_as_far_as_it_goes(void **state)
{
	static const struct {
		enum table table;
		unsigned int max;
	} smaller[] = {{TABLE_routes, 50}, {TABLE_groups, 64}, {TABLE_adjacencies, 16}};

	for (unsigned int i = 0; i < 3; i++) {
		struct rig *g;
		int fd;

		rig_limits = NULL;
		fd = left_behind(100);
		rig_limit(smaller[i].table, smaller[i].max);
		g = rig_begun(fd, NETNS);
		assert_int_equal(g->rib->count.restored + g->rib->count.restore_lost, 100);
		assert_in_range(n_forwarded(g, 100), 10, smaller[i].max);
		assert_true(table_state(smaller[i].table).refused > 0);
		/* The limit holds after a replay, too. */
		rig_session(g, 100);
		teach_paths(g, 100);
		rig_sentinel(g);
		rig_settle(g);
		assert_in_range(n_forwarded(g, 100), 10, smaller[i].max);
		/* A daemon with larger tables restores all routes of its checkpoint. */
		fd = ckpt_of_killed(g);
		rig_limits = NULL;
		g = rig_begun(fd, NETNS);
		assert_in_range(n_forwarded(g, 100), 10, 100);
		teach_paths(g, 100);
		assert_int_equal(n_forwarded(g, 100), 100);
		rig_free(g);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			routes_beyond_the_limit_are_refused_and_asked_for_when_an_eighth_is_free,
			no_limit),
		cmocka_unit_test_teardown(
			routes_without_memory_are_asked_for_when_there_is_some, no_limit),
		cmocka_unit_test_teardown(groups_and_adjacencies_have_the_configured_room,
					  no_limit),
		cmocka_unit_test_teardown(own_subnets_take_no_room_of_groups, no_limit),
		cmocka_unit_test_teardown(an_orphan_is_counted_by_its_new_use, no_limit),
		cmocka_unit_test_teardown(
			zebra_is_not_asked_for_routes_of_a_too_large_checkpoint, no_limit),
		cmocka_unit_test_teardown(
			a_checkpoint_of_more_than_there_is_room_for_is_restored_as_far_as_it_goes,
			no_limit),
	};

	return cmocka_run_group_tests_name("rib_limits", tests, NULL, NULL);
}
