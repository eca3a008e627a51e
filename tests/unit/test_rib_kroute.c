/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes and next-hop objects of the kernel in the RIB: which of several is in force, how
 * they are added, replaced and removed, and what a dump removes.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "../fuzz/invariants.h"
#include "fib/rules.h"
#include "rib_rig.h"

#define NET    "198.51.100.0/24"
#define HOST   "198.51.100.1"
#define NET6   "2001:db8:9::/48"
#define HOST6  "2001:db8:9::1"
#define NEW    KERNEL_ROUTE
#define DEL    KERNEL_ROUTE_DEL
#define GW(n)  "192.0.2." #n
#define GW6(n) "2001:db8:1::" #n
#define BOTH6  "2001:db8:1::1@1*2048 2001:db8:1::2@1*2048"

static void
end(struct rig *g)
{
	rig_settle(g);
	rib_must_be_sound(g);
	rig_free(g);
}

static void
go(struct rig *g)
{
	rig_settle(g);
	rib_must_be_sound(g);
}

static void
the_lowest_metric_is_in_force(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 100, GW(1), 11);
	(void)rig_kernel_route(g, NEW, NET, 50, GW(2), 11);
	(void)rig_kernel_route(g, NEW, NET, 200, GW(3), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.2@1");
	(void)rig_kernel_route(g, DEL, NET, 50, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	(void)rig_kernel_route(g, DEL, NET, 100, GW(1), 11);
	(void)rig_kernel_route(g, DEL, NET, 200, GW(3), 11);
	go(g);
	assert_seen(g, HOST, "none");
	end(g);
}

static void
of_equal_metrics_the_first_counts_whether_prepended_or_appended(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->order = KERNEL_LAST;
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	(void)rig_kernel_route(g, NEW, NET, 0, GW(3), 11); /* prepend */
	go(g);
	assert_seen(g, HOST, "192.0.2.3@1");
	(void)rig_kernel_route(g, DEL, NET, 0, GW(3), 11);
	(void)rig_kernel_route(g, DEL, NET, 0, GW(1), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.2@1");
	end(g);
}

static void
a_replace_takes_the_place_of_the_first_of_its_metric(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->order = KERNEL_LAST;
	rig_kernel_route(g, NEW, NET, 0, GW(3), 11)->order = KERNEL_REPLACE;
	go(g);
	assert_seen(g, HOST, "192.0.2.3@1");
	assert_int_equal(g->rib->tables.n_main[0], 7);
	(void)rig_kernel_route(g, DEL, NET, 0, GW(3), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.2@1");
	/*
	 * The route by GW(2) was replaced by a route that rtnl does not pass on, such as a
	 * route of zebra.
	 */
	(void)rig_kernel_route(g, KERNEL_ROUTE_REPLACED, NET, 0, NULL, 0);
	go(g);
	assert_seen(g, HOST, "none");
	/* If there is no route to replace, KERNEL_REPLACE adds the route. */
	rig_kernel_route(g, NEW, NET, 7, GW(3), 11)->order = KERNEL_REPLACE;
	go(g);
	assert_seen(g, HOST, "192.0.2.3@1");
	end(g);
}

static void
a_deletion_that_a_newer_dump_overtook_deletes_no_other_route(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	(void)rig_kernel_route(g, DEL, NET, 0, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	end(g);
}

static void
routes_that_differ_in_source_or_interface_alone_are_several(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	/* Two broadcast routes of one address: of two subnets, from two sources. */
	for (uint32_t source = 1; source <= 2; source++) {
		ev = rig_kernel_type(g, NEW, HOST "/32", 0, RTN_BROADCAST);
		ev->is_local = true;
		ev->source4 = source;
		ev->order = KERNEL_LAST;
	}
	go(g);
	ev = rig_kernel_type(g, DEL, HOST "/32", 0, RTN_BROADCAST);
	ev->is_local = true;
	ev->source4 = 1;
	go(g);
	assert_seen(g, HOST, "bcast");
	ev = rig_kernel_type(g, DEL, HOST "/32", 0, RTN_BROADCAST);
	ev->is_local = true;
	ev->source4 = 2;
	go(g);
	assert_seen(g, HOST, "none");
	/* An address of the router on two interfaces. */
	rig_addr(g, 11, "203.0.113.1/32", false);
	rig_addr(g, 12, "203.0.113.1/32", false);
	rig_addr(g, 11, "203.0.113.1/32", true);
	assert_seen(g, "203.0.113.1", "local");
	rig_addr(g, 12, "203.0.113.1/32", true);
	assert_seen(g, "203.0.113.1", "none");
	end(g);
}

static void
ipv4_routes_that_differ_in_details_alone_are_several(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	for (uint32_t details = 1; details <= 2; details++) {
		ev = rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
		ev->order = KERNEL_LAST;
		ev->details = details;
		if (details == 1) {
			ev = rig_kernel_route(g, NEW, NET, 0, GW(2), 11);
			ev->order = KERNEL_LAST;
			ev->details = 1;
		}
	}
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1"); /* the appended route did not take its place */
	rig_kernel_route(g, DEL, NET, 0, GW(1), 11)->details = 2;
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	rig_kernel_route(g, DEL, NET, 0, GW(1), 11)->details = 1;
	go(g);
	assert_seen(g, HOST, "192.0.2.2@1");
	end(g);
}

static void
types_without_next_hops_have_their_own_paths(void **state)
{
	static const struct {
		uint8_t type;
		const char *seen;
	} c[] = {{RTN_BLACKHOLE, "blackhole"}, {RTN_UNREACHABLE, "unreachable"},
		 {RTN_PROHIBIT, "prohibit"},   {RTN_LOCAL, "local"},
		 {RTN_BROADCAST, "bcast"},     {RTN_THROW, "throw"}};
	struct rig *g = rig_two_ports();
	struct prefix host = rig_prefix(HOST);

	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		fib_path path;

		(void)rig_kernel_type(g, NEW, NET, 5, c[i].type);
		go(g);
		assert_seen(g, HOST, c[i].seen);
		/* The rule for table local does not find this route of main. */
		path = fib_resolve(g->fib, 0, 4, &host.addr, 0);
		assert_int_equal(path_mtu_class(path) == PATH_CLASS_NOT_OF_LOCAL,
				 c[i].type == RTN_LOCAL || c[i].type == RTN_BROADCAST);
		(void)rig_kernel_type(g, DEL, NET, 5, c[i].type);
		go(g);
		assert_seen(g, HOST, "none");
	}
	end(g);
}

static void
zebras_metric_of_20_is_compared_with_that_of_the_kernel(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, NET, GW(129), 12);
	(void)rig_kernel_route(g, NEW, NET, 100, GW(1), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2");
	(void)rig_kernel_route(g, NEW, NET, 10, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.2@1");
	rig_del(g, NET);
	(void)rig_kernel_route(g, DEL, NET, 10, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	rig_route_inline(g, NET, GW(129), 12);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2");
	rig_del(g, NET);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	end(g);
}

static void
table_local_is_before_main_whatever_the_metric(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	rig_kernel_type(g, NEW, NET, 1024, RTN_LOCAL)->is_local = true; /* AnyIP */
	rig_route_inline(g, NET, GW(129), 12);
	go(g);
	assert_seen(g, HOST, "local");
	rig_kernel_type(g, DEL, NET, 1024, RTN_LOCAL)->is_local = true;
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	end(g);
}

static void
a_connected_route_yields_while_its_link_is_down(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, "192.0.2.0/25", 100, GW(129), 12);
	go(g);
	assert_seen(g, GW(1), "onlink@1");
	rig_link(g, 11, 1, false);
	go(g);
	assert_seen(g, GW(1), "192.0.2.129@2");
	(void)rig_kernel_route(g, DEL, "192.0.2.0/25", 100, GW(129), 12);
	go(g);
	assert_seen(g, GW(1), "none");
	rig_link(g, 11, 1, true);
	go(g);
	assert_seen(g, GW(1), "onlink@1");
	end(g);
}

/* --- IPv6 ----------------------------------------------------------------------------- */

static void
linux_joins_ipv6_routes_with_gateways_and_deletes_one_by_one(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	(void)rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11);
	ev = rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11); /* Linux reports both hops */
	rig_kernel_hop(ev, GW6(2), 11);
	go(g);
	assert_seen(g, HOST6, BOTH6);
	(void)rig_kernel_route(g, DEL, NET6, 1024, GW6(1), 11);
	go(g);
	assert_seen(g, HOST6, "2001:db8:1::2@1");
	(void)rig_kernel_route(g, DEL, NET6, 1024, GW6(2), 11);
	go(g);
	assert_seen(g, HOST6, "none");
	/* All at once. */
	ev = rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11);
	rig_kernel_hop(ev, GW6(2), 11);
	go(g);
	ev = rig_kernel_route(g, DEL, NET6, 1024, GW6(1), 11);
	rig_kernel_hop(ev, GW6(2), 11);
	go(g);
	assert_seen(g, HOST6, "none");
	end(g);
}

static void
ipv6_routes_without_a_gateway_of_their_own_are_not_joined(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_nexthop(g, 1, GW6(1), 11);
	rig_kernel_nexthop(g, 2, GW6(2), 11);
	(void)rig_kernel_by_id(g, NEW, NET6, 1024, 1);
	(void)rig_kernel_by_id(g, NEW, NET6, 1024, 2);
	(void)rig_kernel_route(g, NEW, NET6, 1024, NULL, 12);
	rig_kernel_route(g, NEW, NET6, 1024, GW6(3), 11)->route.protocol = RTPROT_RA;
	go(g);
	assert_int_equal(g->rib->kroutes.n, 16);
	assert_seen(g, HOST6, "2001:db8:1::1@1");
	(void)rig_kernel_by_id(g, DEL, NET6, 1024, 1);
	go(g);
	assert_seen(g, HOST6, "2001:db8:1::2@1");
	(void)rig_kernel_by_id(g, DEL, NET6, 1024, 2);
	go(g);
	assert_seen(g, HOST6, "onlink@2");
	end(g);
}

static void
an_ipv6_replace_takes_the_route_that_is_joined_as_it_is(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	(void)rig_kernel_route(g, NEW, NET6, 1024, NULL, 12);
	(void)rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11);
	rig_kernel_route(g, NEW, NET6, 1024, GW6(2), 11)->order = KERNEL_REPLACE;
	go(g);
	assert_int_equal(g->rib->kroutes.n, 14);
	assert_seen(g, HOST6, "onlink@2");
	/* A program has made it of a router advertisement: the kernel replaces no route. */
	ev = rig_kernel_route(g, NEW, NET6, 1024, GW6(3), 11);
	ev->order = KERNEL_REPLACE;
	ev->route.protocol = RTPROT_RA;
	go(g);
	assert_int_equal(g->rib->kroutes.n, 14);
	assert_seen(g, HOST6, "onlink@2");
	(void)rig_kernel_route(g, DEL, NET6, 1024, NULL, 12);
	go(g);
	assert_seen(g, HOST6, "2001:db8:1::3@1");
	end(g);
}

/* --- next-hop objects ----------------------------------------------------------------- */

static void
objects_and_groups_of_the_kernel_change_the_routes_by_them(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_nexthop(g, 1, GW(1), 11);
	rig_kernel_nexthop(g, 2, GW(129), 12);
	rig_kernel_group(g, 3, 1, 2);
	(void)rig_kernel_by_id(g, NEW, NET, 0, 3);
	(void)rig_kernel_by_id(g, NEW, "203.0.113.0/24", 0, 1);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2*2048 192.0.2.1@1*2048");
	rig_kernel_nexthop(g, 1, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2*2048 192.0.2.2@1*2048");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	/* The kernel deletes the routes with the object, IPv4 ones without an event. */
	rig_kernel_nexthop_del(g, 1);
	go(g);
	assert_seen(g, "203.0.113.1", "unresolved");
	(void)rig_kernel_by_id(g, DEL, "203.0.113.0/24", 0, 1);
	(void)rig_kernel_by_id(g, DEL, NET, 0, 3);
	rig_kernel_nexthop_del(g, 3);
	rig_kernel_nexthop_del(g, 2);
	go(g);
	assert_seen(g, HOST, "none");
	assert_int_equal(g->rib->nhs.n, 0);
	end(g);
}

static void
an_id_of_the_kernel_is_another_than_that_of_zebra(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, GW(129), 12);
	rig_route(g, NET, 7);
	rig_kernel_nexthop(g, 7, GW(1), 11);
	(void)rig_kernel_by_id(g, NEW, "203.0.113.0/24", 0, 7);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_kernel_nexthop(g, 7, GW(2), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.129@2");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	/* The end of zebra's session ends its ids, not those of the kernel. */
	rig_session(g, 101);
	rig_flush_batch(g);
	assert_int_equal(g->rib->nhs.n, 1);
	rig_hop(g, 7, GW(130), 12);
	rig_route(g, NET, 7);
	rig_sentinel(g);
	go(g);
	assert_seen(g, HOST, "192.0.2.130@2");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	end(g);
}

static void
an_id_of_the_kernel_takes_over_no_slot_of_an_ended_session(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, GW(1), 11);
	rig_route(g, NET, 7);
	go(g);
	rig_session_down(g);
	rig_session(g, 101);
	rig_kernel_nexthop(g, 9, GW(1), 11); /* with the content of the orphan */
	(void)rig_kernel_by_id(g, NEW, "203.0.113.0/24", 0, 9);
	rig_go(g);
	rig_kernel_nexthop(g, 9, GW(2), 11);
	rig_go(g);
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	assert_seen(g, HOST, "192.0.2.1@1");
	rig_settle(g);
	rig_free(g);
}

/* --- dumps ---------------------------------------------------------------------------- */

static void
routes_of_its_scope_that_a_dump_does_not_show_are_removed(void **state)
{
	struct rig *g = rig_two_ports();
	uint64_t swept = g->rib->count.kernel_swept;

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	(void)rig_kernel_route(g, NEW, "203.0.113.0/24", 0, GW(1), 11);
	rig_kernel_route(g, NEW, "10.0.0.0/8", 0, GW(1), 11)->route.protocol = RTPROT_BOOT;
	(void)rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11);
	go(g);
	rig_kernel_dump(g, true, 4, RTPROT_STATIC);
	rig_kernel_route(g, NEW, NET, 0, GW(1), 11)->order = KERNEL_LISTED;
	rig_kernel_dump(g, false, 4, RTPROT_STATIC);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	assert_seen(g, "10.0.0.1", "192.0.2.1@1");
	assert_seen(g, HOST6, "2001:db8:1::1@1");
	assert_seen(g, GW(126), "local");
	assert_int_equal(g->rib->count.kernel_swept, swept + 1);
	/* All protocols. */
	rig_kernel_dump(g, true, 4, 0);
	rig_kernel_dump(g, false, 4, 0);
	go(g);
	assert_seen(g, "10.0.0.1", "none");
	assert_seen(g, GW(126), "none");
	assert_seen(g, HOST6, "2001:db8:1::1@1");
	end(g);
}

static void
what_comes_while_a_dump_runs_or_is_swept_stays(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_dump(g, true, 4, RTPROT_STATIC);
	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	rig_kernel_dump(g, false, 4, RTPROT_STATIC);
	(void)rig_kernel_route(g, NEW, "203.0.113.0/24", 0, GW(1), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	/* The next dump begins before the sweep of the last one is over. */
	rig_kernel_dump(g, true, 4, RTPROT_STATIC);
	rig_kernel_route(g, NEW, NET, 0, GW(1), 11)->order = KERNEL_LISTED;
	rig_kernel_dump(g, false, 4, RTPROT_STATIC);
	rig_kernel_dump(g, true, 6, RTPROT_STATIC);
	rig_kernel_dump(g, false, 6, RTPROT_STATIC);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	end(g);
}

static void
a_dump_that_begins_again_counts_from_its_second_begin(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	(void)rig_kernel_route(g, NEW, "203.0.113.0/24", 0, GW(1), 11);
	rig_kernel_dump(g, true, 4, RTPROT_STATIC);
	rig_kernel_route(g, NEW, "203.0.113.0/24", 0, GW(1), 11)->order = KERNEL_LAST;
	rig_kernel_dump(g, true, 4, RTPROT_STATIC);
	go(g);
	assert_seen(g, "203.0.113.1",
		    "192.0.2.1@1"); /* only the end of a dump removes routes */
	rig_kernel_route(g, NEW, NET, 0, GW(1), 11)->order = KERNEL_LISTED;
	rig_kernel_dump(g, false, 4, RTPROT_STATIC);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	assert_seen(g, "203.0.113.1", "none");
	end(g);
}

static void
a_dump_puts_routes_of_equal_metric_in_its_order(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	(void)rig_kernel_route(g, NEW, NET, 0, GW(2), 11);
	rig_kernel_dump(g, true, 4, 0);
	rig_kernel_route(g, NEW, NET, 0, GW(1), 11)->order = KERNEL_LISTED;
	rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->order = KERNEL_LISTED;
	rig_kernel_dump(g, false, 4, 0);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	end(g);
}

/*
 * Linux passes over routes between the next hops of a joined route, so a route behind the
 * joined route stays. A route before it has been replaced, and the event about this was
 * lost.
 */
static void
of_the_routes_beside_a_joined_one_a_dump_removes_those_before_it(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;
	uint32_t n;

	(void)rig_kernel_route(g, NEW, NET6, 1024, NULL, 12);
	go(g);
	n = g->rib->kroutes.n;
	for (unsigned int i = 0; i < 2; i++) {
		rig_kernel_dump(g, true, 6, 0);
		ev = rig_kernel_route(g, NEW, NET6, 1024, GW6(1), 11);
		ev->order = KERNEL_LISTED;
		rig_kernel_hop(ev, GW6(2), 11);
		rig_kernel_dump(g, false, 6, 0);
		go(g);
		assert_seen(g, HOST6, BOTH6);
		(void)rig_kernel_route(g, NEW, NET6, 1024, NULL, 12);
		go(g);
		assert_true(i == 0 || g->rib->kroutes.n == n);
		n = g->rib->kroutes.n;
	}
	end(g);
}

/* Send a dump of one protocol. It shows a route to NET for each gateway of `gw`. */
static void
dump_of(struct rig *g, uint8_t protocol, const char *const *gw)
{
	rig_kernel_dump(g, true, 4, protocol);
	for (; *gw != NULL; gw++) {
		struct kernel_event *ev = rig_kernel_route(g, NEW, NET, 0, *gw, 11);

		ev->order = KERNEL_LISTED;
		ev->route.protocol = protocol;
	}
	rig_kernel_dump(g, false, 4, protocol);
	go(g);
}

#define DUMP_OF(g, protocol, ...) \
	dump_of(g, protocol, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* After a silent deletion the protocols are read one after the other. */
static void
a_dump_of_one_protocol_keeps_the_order_of_routes_of_several(void **state)
{
	struct rig *g = rig_two_ports();

	(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
	rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->route.protocol = RTPROT_BOOT;
	rig_kernel_route(g, NEW, NET, 0, GW(3), 11)->order = KERNEL_LAST;
	go(g);
	for (unsigned int i = 0; i < 2; i++) {
		assert_seen(g, HOST, "192.0.2.2@1");
		DUMP_OF(g, RTPROT_BOOT, GW(2));
		assert_seen(g, HOST, "192.0.2.2@1");
		DUMP_OF(g, RTPROT_STATIC, GW(1), GW(3));
	}
	DUMP_OF(g, RTPROT_BOOT);
	assert_seen(g, HOST, "192.0.2.1@1");
	DUMP_OF(g, RTPROT_STATIC, GW(3));
	assert_seen(g, HOST, "192.0.2.3@1");
	end(g);
}

/* Events that wait while rtnl dumps the kernel's routes are older than the dump. */
static void
an_event_gives_a_route_of_such_a_dump_its_place(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_route(g, NEW, NET, 0, GW(1), 11)->route.protocol = RTPROT_BOOT;
	/* GW(3) was prepended, then GW(2). Then GW(2) was replaced by GW(4). */
	DUMP_OF(g, RTPROT_STATIC, GW(4), GW(3));
	assert_seen(g, HOST, "192.0.2.1@1");
	(void)rig_kernel_route(g, NEW, NET, 0, GW(3), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.3@1");
	(void)rig_kernel_route(g, NEW, NET, 0, GW(2), 11);
	rig_kernel_route(g, NEW, NET, 0, GW(4), 11)->order = KERNEL_REPLACE;
	go(g);
	assert_seen(g, HOST, "192.0.2.4@1");
	(void)rig_kernel_route(g, DEL, NET, 0, GW(4), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.3@1");
	(void)rig_kernel_route(g, DEL, NET, 0, GW(3), 11);
	go(g);
	assert_seen(g, HOST, "192.0.2.1@1");
	end(g);
}

/*
 * A route that was added and then replaced before a dump must not stay here when the events
 * about it follow the dump. Otherwise it would be in force after the other is deleted.
 */
static void
a_replace_that_a_newer_dump_overtook_leaves_one_route(void **state)
{
	static const uint8_t protocol[] = {0, RTPROT_STATIC}; /* a dump of all, or of one */

	for (unsigned int i = 0; i < sizeof(protocol); i++) {
		struct rig *g = rig_two_ports();

		(void)rig_kernel_route(g, NEW, NET, 9, GW(9), 11);
		rig_kernel_dump(g, true, 4, protocol[i]);
		rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->order = KERNEL_LISTED;
		rig_kernel_route(g, NEW, NET, 0, GW(3), 11)->order = KERNEL_LISTED;
		rig_kernel_route(g, NEW, NET, 9, GW(9), 11)->order = KERNEL_LISTED;
		rig_kernel_dump(g, false, 4, protocol[i]);
		go(g);
		rig_kernel_route(g, NEW, NET, 0, GW(3), 11)->order = KERNEL_LAST;
		(void)rig_kernel_route(g, NEW, NET, 0, GW(1), 11);
		rig_kernel_route(g, NEW, NET, 0, GW(2), 11)->order = KERNEL_REPLACE;
		go(g);
		assert_seen(g, HOST, "192.0.2.2@1");
		(void)rig_kernel_route(g, DEL, NET, 0, GW(2), 11);
		go(g);
		assert_seen(g, HOST, "192.0.2.3@1");
		(void)rig_kernel_route(g, DEL, NET, 0, GW(3), 11);
		go(g);
		assert_seen(g, HOST, "192.0.2.9@1");
		end(g);
	}
}

static void
objects_that_a_dump_does_not_show_are_removed(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, GW(129), 12); /* of zebra */
	rig_kernel_nexthop(g, 1, GW(1), 11);
	rig_kernel_nexthop(g, 2, GW(2), 11);
	go(g);
	rig_kernel_dump(g, true, 0, 0);
	rig_kernel_nexthop(g, 2, GW(2), 11);
	rig_kernel_dump(g, false, 0, 0);
	go(g);
	assert_int_equal(g->rib->nhs.n, 2);
	assert_null(nh_find(g->rib, nh_id_of_kernel(1)));
	assert_non_null(nh_find(g->rib, 1));
	end(g);
}

static void
a_gateway_without_interface_leaves_a_subnet_that_a_sweep_removed(void **state)
{
	struct rig *g = rig_two_ports();

	rig_addr(g, 11, "10.1.0.254/24", false);
	rig_route_inline(g, NET, "10.1.0.1", 0);
	go(g);
	assert_seen(g, HOST, "10.1.0.1@1");
	rig_kernel_dump(g, true, 4, RTPROT_KERNEL);
	rig_kernel_dump(g, false, 4, RTPROT_KERNEL);
	go(g);
	assert_seen(g, HOST, "unresolved");
	end(g);
}

/* --- full tables ---------------------------------------------------------------------- */

static bool
rtnl_is_asked(struct rig *g)
{
	struct msg *m = worker_take(&g->rtnl);
	bool asked = m != NULL;

	if (asked) {
		assert_int_equal(m->type, MSG_REPLAY);
		msg_free(m);
	}
	return asked;
}

static void
a_refused_route_is_asked_for_when_there_is_room_for_it(void **state)
{
	struct rig *g;
	unsigned int before;

	rig_limit(TABLE_routes, 40);
	g = rig_two_ports();
	before = g->rib->tables.main.n;
	for (unsigned int i = 0; i < 41 - before; i++)
		(void)rig_kernel_route(g, NEW, rig_net(i), 0, GW(1), 11);
	go(g);
	assert_int_equal(g->rib->tables.main.n, 40);
	assert_int_equal(table_state(TABLE_routes).refused, 1);
	/*
	 * Another route for an existing prefix needs no room. Routes of addresses have no
	 * limit.
	 */
	(void)rig_kernel_route(g, NEW, rig_net(0), 0, GW(2), 11);
	rig_addr(g, 11, "203.0.113.1/24", false);
	go(g);
	assert_int_equal(table_state(TABLE_routes).refused, 1);
	assert_seen(g, "203.0.113.1", "local");
	assert_false(rtnl_is_asked(g));
	for (unsigned int i = 2; i < 16; i++)
		(void)rig_kernel_route(g, DEL, rig_net(i), 0, GW(1), 11);
	go(g);
	assert_true(rtnl_is_asked(g));
	assert_false(rtnl_is_asked(g));
	end(g);
}

static void
a_route_without_a_group_gets_one_with_the_dump_that_rib_asks_for(void **state)
{
	struct rig *g;
	char gw[32];

	rig_limit(TABLE_groups, 64);
	g = rig_two_ports();
	for (unsigned int i = 0; i < 65; i++) {
		snprintf(gw, sizeof(gw), "192.0.2.%u", i + 1);
		(void)rig_kernel_route(g, NEW, rig_net(i), 0, gw, 11);
	}
	(void)rig_kernel_route(g, NEW, NET6, 1024, GW6(9), 11);
	go(g);
	assert_seen(g, "10.0.64.1", "unresolved");
	assert_seen(g, HOST6, "unresolved");
	/* Its record has no next hop to compare with those of the event. */
	(void)rig_kernel_route(g, DEL, NET6, 1024, GW6(9), 11);
	go(g);
	assert_seen(g, HOST6, "none");
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(gw, sizeof(gw), "192.0.2.%u", i + 1);
		(void)rig_kernel_route(g, DEL, rig_net(i), 0, gw, 11);
	}
	go(g);
	assert_true(rtnl_is_asked(g));
	/* The event reports the same route: its record gets the group. */
	rig_kernel_route(g, NEW, rig_net(64), 0, "192.0.2.65", 11)->order = KERNEL_LAST;
	go(g);
	assert_seen(g, "10.0.64.1", "192.0.2.65@1");
	(void)rig_kernel_route(g, DEL, rig_net(64), 0, "192.0.2.65", 11);
	go(g);
	assert_seen(g, "10.0.64.1", "none");
	end(g);
}

static int
no_limit(void **state)
{
	rig_limits = NULL;
	return 0;
}

/* Add or delete own addresses, in the same order both times. */
static void
own_addresses(struct rig *g, enum kernel_event_kind kind, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct kernel_event *ev;
		char text[32];

		snprintf(text, sizeof(text), "198.51.%u.%u/32", i / 256, i % 256);
		ev = rig_kernel_route(g, kind, text, 0, NULL, 0);
		ev->is_local = true;
		ev->route.rtm_type = RTN_LOCAL;
	}
	go(g);
}

static void
a_removed_record_of_table_local_is_found_in_one_step(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t n_own = g->rib->kroutes.local.n;

	own_addresses(g, NEW, 500);
	assert_int_equal(g->rib->kroutes.local.n, n_own + 500);
	own_addresses(g, DEL, 500);
	assert_int_equal(g->rib->kroutes.local.n, n_own);
	assert_int_equal(g->rib->kroutes.n_list_steps, 500);
	end(g);
}

/* Only such a record is both in rib_kroutes.connected and in rib_kroutes.local. */
static void
a_connected_record_of_table_local_leaves_both_lists(void **state)
{
	struct rig *g = rig_two_ports();
	const struct rib_kroutes *k = &g->rib->kroutes;
	uint32_t n_own = k->local.n, n_connected = k->connected.n;
	struct kernel_event *ev;

	for (unsigned int i = 0; i < 3; i++) {
		own_addresses(g, NEW, 3);
		ev = rig_kernel_route(g, NEW, NET, 0, NULL, 11);
		ev->is_local = true;
		ev->route.protocol = RTPROT_KERNEL;
		go(g);
		assert_int_equal(k->connected.n, n_connected + 1);
		assert_int_equal(k->local.n, n_own + 4);
		own_addresses(g, DEL, i);
		ev = rig_kernel_route(g, DEL, NET, 0, NULL, 11);
		ev->is_local = true;
		ev->route.protocol = RTPROT_KERNEL;
		own_addresses(g, DEL, 3);
		assert_int_equal(k->local.n, n_own);
		assert_int_equal(k->connected.n, n_connected);
	}
	end(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_metric_is_in_force),
		cmocka_unit_test(
			of_equal_metrics_the_first_counts_whether_prepended_or_appended),
		cmocka_unit_test(a_replace_takes_the_place_of_the_first_of_its_metric),
		cmocka_unit_test(
			a_deletion_that_a_newer_dump_overtook_deletes_no_other_route),
		cmocka_unit_test(
			routes_that_differ_in_source_or_interface_alone_are_several),
		cmocka_unit_test(ipv4_routes_that_differ_in_details_alone_are_several),
		cmocka_unit_test(types_without_next_hops_have_their_own_paths),
		cmocka_unit_test(zebras_metric_of_20_is_compared_with_that_of_the_kernel),
		cmocka_unit_test(table_local_is_before_main_whatever_the_metric),
		cmocka_unit_test(a_removed_record_of_table_local_is_found_in_one_step),
		cmocka_unit_test(a_connected_record_of_table_local_leaves_both_lists),
		cmocka_unit_test(a_connected_route_yields_while_its_link_is_down),
		cmocka_unit_test(
			linux_joins_ipv6_routes_with_gateways_and_deletes_one_by_one),
		cmocka_unit_test(ipv6_routes_without_a_gateway_of_their_own_are_not_joined),
		cmocka_unit_test(an_ipv6_replace_takes_the_route_that_is_joined_as_it_is),
		cmocka_unit_test(
			objects_and_groups_of_the_kernel_change_the_routes_by_them),
		cmocka_unit_test(an_id_of_the_kernel_is_another_than_that_of_zebra),
		cmocka_unit_test(
			an_id_of_the_kernel_takes_over_no_slot_of_an_ended_session),
		cmocka_unit_test(routes_of_its_scope_that_a_dump_does_not_show_are_removed),
		cmocka_unit_test(what_comes_while_a_dump_runs_or_is_swept_stays),
		cmocka_unit_test(a_dump_that_begins_again_counts_from_its_second_begin),
		cmocka_unit_test(a_dump_puts_routes_of_equal_metric_in_its_order),
		cmocka_unit_test(
			of_the_routes_beside_a_joined_one_a_dump_removes_those_before_it),
		cmocka_unit_test(
			a_dump_of_one_protocol_keeps_the_order_of_routes_of_several),
		cmocka_unit_test(an_event_gives_a_route_of_such_a_dump_its_place),
		cmocka_unit_test(a_replace_that_a_newer_dump_overtook_leaves_one_route),
		cmocka_unit_test(objects_that_a_dump_does_not_show_are_removed),
		cmocka_unit_test(
			a_gateway_without_interface_leaves_a_subnet_that_a_sweep_removed),
		cmocka_unit_test_teardown(
			a_refused_route_is_asked_for_when_there_is_room_for_it, no_limit),
		cmocka_unit_test_teardown(
			a_route_without_a_group_gets_one_with_the_dump_that_rib_asks_for,
			no_limit),
	};

	return cmocka_run_group_tests_name("rib: routes of the kernel", tests, NULL, NULL);
}
