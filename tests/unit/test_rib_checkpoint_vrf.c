/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes of VRFs and of other tables in a checkpoint. They have the kernel's table id,
 * because the number of a VRF changes with each start.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <unistd.h>

#include "base/clock.h"

/*
 * Tables: that of red fits rtm_table, that of blue does not, the third belongs to no VRF.
 */
#define RED    100
#define BLUE   2000
#define NO_VRF 55

/* Teach routes of main, and the same prefixes in other tables. */
static int
taught_tables(void)
{
	struct rig *g = rig_begun(-1, NETNS);

	rig_vrf(g, 1, RED, "red");
	rig_vrf(g, 2, BLUE, "blue");
	rig_session(g, 100);
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.1", 11);
	rig_route_type(g, "198.51.100.128/25", RTN_BLACKHOLE);
	rig_sentinel(g);
	rig_route_in(g, RED, "198.51.100.0/24", "192.0.2.3", 11);
	rig_route_in(g, BLUE, "198.51.100.0/24", "192.0.2.131", 12);
	rig_route_in(g, BLUE, "2001:db8:77::/48", "192.0.2.131", 12);
	rig_route_in(g, RED, "203.0.113.0/24", "192.0.2.3", 11);
	rig_route_in(g, NO_VRF, "203.0.113.0/24", "192.0.2.3", 11);
	rig_go(g);
	rig_settle(g);
	return ckpt_of_killed(g);
}

static void
routes_of_vrfs_are_in_force_when_the_kernel_has_named_their_tables(void **state)
{
	struct rig *g = rig_begun(taught_tables(), NETNS);

	assert_int_equal(g->rib->count.restored, 3 + 5);
	assert_int_equal(g->rib->table_counts.n_zebra[0] + g->rib->table_counts.n_zebra[1],
			 3);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	/* The VRFs come in another order and get other numbers. */
	rig_vrf(g, 1, BLUE, "blue");
	rig_vrf(g, 2, RED, "red");
	rig_settle(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.131@2");
	assert_seen_in(g, 1, "2001:db8:77::1", "192.0.2.131@2");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.3@1");
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.3@1");
	rig_free(g);
}

static void
a_table_that_is_no_vrfs_any_more_forwards_nothing(void **state)
{
	struct rig *g = rig_begun(taught_tables(), NETNS);

	rig_vrf(g, 1, BLUE, "blue");
	rig_settle(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.131@2");
	assert_null(vrf_find(g->rib, RED));
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
a_replay_confirms_routes_of_vrfs_and_sweeps_the_rest(void **state)
{
	struct rig *g = rig_begun(taught_tables(), NETNS);
	uint64_t writes;

	rig_vrf(g, 1, RED, "red");
	rig_vrf(g, 2, BLUE, "blue");
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	rig_session(g, 100);
	rig_route_type(g, "198.51.100.128/25", RTN_BLACKHOLE);
	rig_sentinel(g);
	rig_route_in(g, RED, "198.51.100.0/24", "192.0.2.3", 11);
	rig_route_in(g, BLUE, "198.51.100.0/24", "192.0.2.131", 12);
	rig_flush_batch(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_go(g);
	rig_later(g, 5);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.3@1");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.131@2");
	assert_seen_in(g, 2, "2001:db8:77::1", "none");
	/*
	 * zebra neither sends nor withdraws routes of a table without a VRF, so they were
	 * removed.
	 */
	assert_int_equal(g->rib->tables.other.n, 2);
	rig_free(g);
}

static void
changes_in_vrfs_are_mirrored_and_labels_are_not(void **state)
{
	struct rig *g = rig_begun(taught_tables(), NETNS);
	struct fpm_event *ev;

	rig_vrf(g, 1, RED, "red");
	rig_session(g, 100);
	rig_del(g, "203.0.113.0/24");
	g->batch->ev[g->batch->n - 1].table = RED;
	rig_route_in(g, RED, "198.51.100.0/24", "192.0.2.4", 11);
	ev = rig_event(g, FPM_ROUTE);
	ev->prefix = (struct prefix){.family = FAMILY_LABEL, .len = 20};
	ev->table = FPM_TABLE_NONE;
	rig_go(g);
	rig_settle(g);
	assert_int_equal(g->rib->table_counts.n_labels, 1);
	g = rig_begun(ckpt_of_killed(g), NETNS);
	rig_vrf(g, 3, RED, "red");
	rig_settle(g);
	assert_int_equal(g->rib->count.restored, 3 + 4);
	assert_int_equal(g->rib->count.restore_lost, 0);
	assert_seen_in(g, 3, "198.51.100.1", "192.0.2.4@1");
	assert_seen_in(g, 3, "203.0.113.1", "none");
	rig_free(g);
}

/*
 * Write a record with a valid CRC, of a table that cannot be in this array. Assert that it
 * is bad.
 */
static void
table_is_refused(int fd, unsigned int part, uint32_t table)
{
	struct ckpt *c = ckpt_opened(fd), *seen;
	struct ckpt_route *r = ckpt_nth(c, part, 1), was = *r;

	r->table = table;
	r->crc = CKPT_CRC_OF((uint32_t)(r - c->route[part]), r);
	seen = ckpt_opened(fd);
	assert_int_equal(seen->n_bad, 1);
	ckpt_free(seen);
	*r = was;
	ckpt_free(c);
}

static void
a_table_in_the_wrong_array_is_not_believed(void **state)
{
	static const uint32_t wrong[] = {0, RIB_TABLE_MAIN, FPM_TABLE_NONE};
	int fd = taught_tables();

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		table_is_refused(fd, CKPT_OTHER, wrong[i]);
	table_is_refused(fd, CKPT_MAIN, RED);
	close(fd);
}

static void
each_octet_of_their_records_counts(void **state)
{
	int fd = taught_tables();
	struct ckpt *c = ckpt_opened(fd);

	ckpt_octets_count(fd, (uint8_t *)ckpt_nth(c, CKPT_OTHER, 1),
			  (uint8_t *)ckpt_nth(c, CKPT_OTHER, 3), sizeof(struct ckpt_route));
	ckpt_free(c);
	close(fd);
}

static void
a_record_at_anothers_place_is_not_believed(void **state)
{
	int fd = taught_tables();
	struct ckpt *c = ckpt_opened(fd);
	struct ckpt_route *one = ckpt_nth(c, CKPT_OTHER, 1), was = *one;
	struct ckpt_route *two = ckpt_nth(c, CKPT_OTHER, 2);
	const char *why;

	*one = *two;
	*two = was;
	assert_null(ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why));
	assert_string_equal(why, "damaged routes");
	ckpt_free(c);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			routes_of_vrfs_are_in_force_when_the_kernel_has_named_their_tables),
		cmocka_unit_test(a_table_that_is_no_vrfs_any_more_forwards_nothing),
		cmocka_unit_test(a_replay_confirms_routes_of_vrfs_and_sweeps_the_rest),
		cmocka_unit_test(changes_in_vrfs_are_mirrored_and_labels_are_not),
		cmocka_unit_test(a_table_in_the_wrong_array_is_not_believed),
		cmocka_unit_test(each_octet_of_their_records_counts),
		cmocka_unit_test(a_record_at_anothers_place_is_not_believed),
	};

	return cmocka_run_group_tests_name("rib checkpoint vrf", tests, NULL, NULL);
}
