/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's routes in the checkpoint: in force before the kernel is read, confirmed or
 * removed by the first dump.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <unistd.h>

#include "../fuzz/invariants.h"
#include "base/clock.h"
#include "rib/restore.h"

/* Report routes of all kinds. A dump whose `shows` calls this reports the same routes. */
static void
tell(struct rig *g)
{
	struct kernel_event *ev;

	rig_kernel_nexthop(g, 5, "192.0.2.2", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 20, "192.0.2.1", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 50, "192.0.2.129", 12);
	rig_kernel_type(g, KERNEL_ROUTE, "198.51.100.128/25", 0, RTN_BLACKHOLE);
	rig_kernel_by_id(g, KERNEL_ROUTE, "203.0.113.0/25", 0, 5);
	ev = rig_kernel_type(g, KERNEL_ROUTE, "203.0.113.128/25", 0, RTN_LOCAL);
	ev->is_local = true;
	ev = rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:77::/48", 1024, "2001:db8:1::1",
			      11);
	rig_kernel_hop(ev, "2001:db8:2::1", 12);
	ev = rig_kernel_route(g, KERNEL_ROUTE, "100.64.0.0/24", 0, "192.0.2.1", 11);
	ev->route.mtu_bytes = 1400;
	ev = rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, "192.0.2.1", 11);
	ev->route.table = 100;
}

static const char *const net_seen[][2] = {
	{"198.51.100.1", "192.0.2.1@1"},
	{"198.51.100.129", "blackhole"},
	{"203.0.113.1", "192.0.2.2@1"},
	{"203.0.113.129", "local"},
	{"100.64.0.1", "192.0.2.1@1 mtu 1400"},
	{"192.0.2.126", "local"},
	{"192.0.2.127", "bcast"},
	{"192.0.2.7", "onlink@1"},
};

static void
all_are_in_force(const struct rig *g)
{
	for (unsigned int i = 0; i < sizeof(net_seen) / sizeof(net_seen[0]); i++)
		assert_seen(g, net_seen[i][0], net_seen[i][1]);
	assert_seen(g, "2001:db8:77::1", "2001:db8:1::1@1*2048 2001:db8:2::1@2*2048");
}

static int
taught(void)
{
	struct rig *g = rig_begun(-1, NETNS);

	tell(g);
	rig_settle(g);
	all_are_in_force(g);
	rib_must_be_sound(g);
	return ckpt_of_killed(g);
}

/*
 * Make a rig with the checkpoint and links that are up. The kernel has not reported routes.
 */
static struct rig *
begun_from(int fd, enum routes_from from)
{
	struct rig *g = rig_new();

	g->rib->conf.from = from;
	g->rib->conf.checkpoint = true;
	g->rib->conf.checkpoint_max_age_s = 60;
	g->rib->conf.netns_id = NETNS;
	checkpoint_begin(g->rib, fd);
	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_settle(g);
	return g;
}

static void
dump(struct rig *g, void (*shows)(struct rig *g))
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		rig_kernel_dump(g, true, family, 0);
		if (shows != NULL)
			shows(g);
		rig_kernel_dump(g, false, family, 0);
	}
	rig_settle(g);
}

static void
routes_are_in_force_before_the_kernel_is_read(void **state)
{
	struct rig *g = begun_from(taught(), ROUTES_FROM_BOTH);

	all_are_in_force(g);
	rib_must_be_sound(g);
	rig_vrf(g, 1, 100, "red");
	rig_settle(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
they_are_in_the_checkpoint_of_the_next_daemon_too(void **state)
{
	struct rig *g = begun_from(ckpt_of_killed(begun_from(taught(), ROUTES_FROM_BOTH)),
				   ROUTES_FROM_BOTH);

	all_are_in_force(g);
	rig_free(g);
}

/* The first dump may be seconds away. Until then the mark of Linux counts, too. */
static void
a_dead_next_hop_is_dead_for_the_next_daemon(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	struct kernel_event *ev =
		rig_kernel_route(g, KERNEL_ROUTE, "100.64.0.0/24", 0, "192.0.2.1", 11);

	rig_kernel_hop(ev, "192.0.2.129", 12);
	ev->route.hops[1].dead = true;
	rig_settle(g);
	g = begun_from(ckpt_of_killed(g), ROUTES_FROM_BOTH);
	assert_string_not_equal(rig_seen(g, "100.64.0.1"), "192.0.2.1@1");
	rig_link_ipv4(g, 12, 2, false);
	assert_seen(g, "100.64.0.1", "192.0.2.1@1");
	rig_free(g);
}

static void
addresses(struct rig *g)
{
	rig_addr(g, 11, "192.0.2.126/25", false);
	rig_addr(g, 12, "192.0.2.254/25", false);
	tell(g);
}

static void
a_dump_that_shows_them_changes_nothing(void **state)
{
	struct rig *g = begun_from(taught(), ROUTES_FROM_BOTH);
	uint32_t n = g->rib->kroutes.n;

	dump(g, addresses);
	all_are_in_force(g);
	assert_int_equal(g->rib->kroutes.n, n);
	rib_must_be_sound(g);
	rig_free(g);
}

static void
a_dump_removes_what_it_does_not_show(void **state)
{
	struct rig *g = begun_from(taught(), ROUTES_FROM_BOTH);

	dump(g, NULL);
	for (unsigned int i = 0; i < sizeof(net_seen) / sizeof(net_seen[0]); i++)
		assert_seen(g, net_seen[i][0], "none");
	assert_seen(g, "2001:db8:77::1", "none");
	assert_int_equal(g->rib->kroutes.n, 0);
	rib_must_be_sound(g);
	rig_free(g);
}

static void
of_equal_metrics_the_order_is_kept(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);

	for (unsigned int i = 1; i <= 3; i++) {
		static const char *const gw[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3"};

		rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, gw[i - 1], 11)
			->order = i == 2 ? KERNEL_FIRST : KERNEL_LAST;
	}
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.2@1");
	g = begun_from(ckpt_of_killed(g), ROUTES_FROM_BOTH);
	assert_seen(g, "198.51.100.1", "192.0.2.2@1");
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "198.51.100.0/24", 0, "192.0.2.2", 11);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, "192.0.2.9", 11);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

/*
 * The slots of zebra's routes must stay for its replay. Otherwise it rewrites each prefix.
 */
static void
a_route_of_the_kernel_takes_no_slot_from_zebra(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	uint64_t writes;

	ckpt_teach(g);
	rig_kernel_route(g, KERNEL_ROUTE, "100.64.0.0/16", 0, "192.0.2.1", 11);
	rig_settle(g);
	g = begun_from(ckpt_of_killed(g), ROUTES_FROM_BOTH);
	rig_kernel_route(g, KERNEL_ROUTE, "100.64.0.0/16", 0, "192.0.2.1", 11);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	rig_session(g, 100);
	rig_hop(g, 1007, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 1007);
	rig_settle(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
routes_of_a_source_that_is_off_are_left_out(void **state)
{
	struct rig *g = begun_from(taught(), ROUTES_FROM_FPM);

	assert_seen(g, "198.51.100.1", "none");
	assert_seen(g, "192.0.2.7", "onlink@1");
	rig_free(g);
}

/*
 * zebra replays no tables but main and those of VRFs, so its routes in the tables of rules
 * come from the kernel. A rule without these routes would lead packets to another table
 * until the kernel's tables are read.
 */
static void
routes_of_zebra_in_a_table_of_rules_are_in_force(void **state)
{
	static const struct {
		uint32_t table;
		enum routes_from from;
		uint32_t n;
	} c[] = {{200, ROUTES_FROM_BOTH, 1},
		 {200, ROUTES_FROM_KERNEL, 1},
		 {200, ROUTES_FROM_FPM, 0},
		 {RT_TABLE_MAIN, ROUTES_FROM_BOTH, 0}, /* `from: kernel` was taken away */
		 {RT_TABLE_DEFAULT, ROUTES_FROM_BOTH, 0}};

	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rig *g = rig_begun(-1, NETNS);
		struct kernel_event *ev;
		uint32_t n;

		ev = rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", ZEBRA_METRIC,
				      "192.0.2.1", 11);
		ev->route.table = c[i].table;
		ev->route.protocol = 196; /* static routes of FRR */
		rig_settle(g);
		n = g->rib->kroutes.n - 1;
		g = begun_from(ckpt_of_killed(g), c[i].from);
		assert_int_equal(g->rib->kroutes.n, n + c[i].n);
		if (c[i].n == 1) {
			rig_vrf(g, 1, 200, "red");
			rig_settle(g);
			assert_seen_in(g, 1, "203.0.113.9", "192.0.2.1@1");
		}
		dump(g, NULL);
		assert_int_equal(g->rib->kroutes.n, 0);
		rib_must_be_sound(g);
		rig_free(g);
	}
}

static void
octets_of_both_records_count(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);
	struct ckpt_route *one = ckpt_nth(c, CKPT_KERNEL, 1),
			  *two = ckpt_nth(c, CKPT_KERNEL, 3);

	ckpt_octets_count(fd, (uint8_t *)one, (uint8_t *)two, sizeof(*one));
	ckpt_octets_count(fd, (uint8_t *)&c->kernel[one - c->route[CKPT_KERNEL]],
			  (uint8_t *)&c->kernel[two - c->route[CKPT_KERNEL]],
			  sizeof(*c->kernel));
	ckpt_free(c);
	close(fd);
}

/* The last version wrote layout 2, without routes of the kernel. */
static void
the_layout_before_is_read(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	struct ckpt *c;
	int fd;

	ckpt_teach(g);
	fd = ckpt_of_killed(g);
	c = ckpt_opened(fd);
	c->head->layout = CKPT_LAYOUT_2;
	c->head->crc = CKPT_CRC(c->head);
	c->head->kernel_high = c->head->n_kernel = 0;
	ckpt_free(c);
	assert_int_equal(ftruncate(fd, (off_t)ckpt_file_bytes(CKPT_LAYOUT_2)), 0);
	g = begun_from(dup(fd), ROUTES_FROM_BOTH);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "192.0.2.7", "none");
	assert_int_equal(g->rib->count.restored, 6);
	rib_must_be_sound(g);
	rig_free(g);
	/* A file of layout 2 ends before the kernel's routes, whatever its header says. */
	assert_int_equal(pwrite(fd, &(uint32_t){7}, sizeof(uint32_t),
				offsetof(struct ckpt_header, kernel_high)),
			 sizeof(uint32_t));
	g = begun_from(fd, ROUTES_FROM_BOTH);
	assert_int_equal(g->rib->count.restore_refused, 1);
	rig_free(g);
}

/*
 * A layout adds its records behind the file of the layout before. An older version wrote
 * that file, so the place where the new records begin must not change.
 */
static void
records_of_a_layout_begin_where_the_file_before_ends(void **state)
{
	struct ckpt *c = ckpt_new(NETNS);
	const char *begin;

	assert_non_null(c);
	begin = (const char *)c->head;
	assert_ptr_equal(&c->route[CKPT_KERNEL][1], begin + ckpt_file_bytes(CKPT_LAYOUT_2));
	assert_ptr_equal(&c->stack[1], begin + ckpt_file_bytes(CKPT_LAYOUT_3));
	ckpt_free(c);
}

/*
 * rtnl puts off its first dump only if rib restored a table of more than KERNEL_LARGE
 * routes, because then the routes are in force already.
 */
static void
only_a_large_table_puts_the_dump_off(void **state)
{
	struct rig *g = begun_from(taught(), ROUTES_FROM_BOTH);

	assert_int_equal(kernel_status.restored, 0);
	for (unsigned int i = 0; i <= KERNEL_LARGE; i++)
		rig_kernel_route(g, KERNEL_ROUTE, rig_net(i), 0, "192.0.2.1", 11);
	rig_settle(g);
	g = begun_from(ckpt_of_killed(g), ROUTES_FROM_BOTH);
	assert_int_equal(kernel_status.restored, 1);
	assert_seen(g, "10.99.0.1", "192.0.2.1@1");
	rib_must_be_sound(g);
	rig_free(g);
	kernel_status.restored = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_are_in_force_before_the_kernel_is_read),
		cmocka_unit_test(they_are_in_the_checkpoint_of_the_next_daemon_too),
		cmocka_unit_test(a_dead_next_hop_is_dead_for_the_next_daemon),
		cmocka_unit_test(a_dump_that_shows_them_changes_nothing),
		cmocka_unit_test(a_dump_removes_what_it_does_not_show),
		cmocka_unit_test(of_equal_metrics_the_order_is_kept),
		cmocka_unit_test(a_route_of_the_kernel_takes_no_slot_from_zebra),
		cmocka_unit_test(routes_of_a_source_that_is_off_are_left_out),
		cmocka_unit_test(routes_of_zebra_in_a_table_of_rules_are_in_force),
		cmocka_unit_test(octets_of_both_records_count),
		cmocka_unit_test(the_layout_before_is_read),
		cmocka_unit_test(records_of_a_layout_begin_where_the_file_before_ends),
		cmocka_unit_test(only_a_large_table_puts_the_dump_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
