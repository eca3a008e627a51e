/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of the kernel: local, connected and broadcast routes, which precede routes of
 * zebra; the order of the routes of a prefix. test_rib_kroute.c has all other routes of the
 * kernel.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include <stdio.h>

#include "rib_rig.h"

#include "rib/link_change.h"

static void
an_own_address_is_local_and_its_subnet_on_link(void **state)
{
	struct rig *g = rig_two_ports();

	assert_seen(g, "192.0.2.126", "local");
	assert_seen(g, "192.0.2.1", "onlink@1");
	assert_seen(g, "192.0.2.129", "onlink@2");
	assert_seen(g, "2001:db8:1::ff", "local");
	assert_seen(g, "2001:db8:1::1", "onlink@1");
	rig_addr(g, 11, "192.0.2.126/25", true);
	assert_seen(g, "192.0.2.126", "none");
	assert_seen(g, "192.0.2.1", "none");
	assert_seen(g, "192.0.2.127", "none");
	rig_free(g);
}

static void
the_last_address_of_ipv4_subnets_up_to_30_is_broadcast_the_first_is_a_host(void **state)
{
	struct rig *g = rig_two_ports();

	assert_seen(g, "192.0.2.0", "onlink@1");
	assert_seen(g, "192.0.2.127", "bcast");
	assert_seen(g, "192.0.2.128", "onlink@2");
	assert_seen(g, "192.0.2.255", "bcast");
	rig_addr(g, 11, "203.0.113.1/30", false);
	assert_seen(g, "203.0.113.0", "onlink@1");
	assert_seen(g, "203.0.113.1", "local");
	assert_seen(g, "203.0.113.2", "onlink@1");
	assert_seen(g, "203.0.113.3", "bcast");
	rig_addr(g, 11, "203.0.113.17/31", false);
	assert_seen(g, "203.0.113.16", "onlink@1");
	rig_addr(g, 11, "203.0.113.33/32", false);
	assert_seen(g, "203.0.113.33", "local");
	assert_seen(g, "203.0.113.32", "none");
	assert_seen(g, "2001:db8:1::", "local"); /* IPv6: anycast */
	rig_free(g);
}

static void
local_beats_connected_beats_zebra(void **state)
{
	struct rig *g = rig_two_ports();

	rig_route_inline(g, "192.0.2.0/25", "192.0.2.200", 12);
	rig_route_inline(g, "192.0.2.126/32", "192.0.2.200", 12);
	rig_route_inline(g, "192.0.2.127/32", "192.0.2.200", 12);
	rig_go(g);
	assert_seen(g, "192.0.2.126", "local");
	assert_seen(g, "192.0.2.1", "onlink@1");
	assert_seen(g, "192.0.2.127", "bcast");
	assert_int_equal(g->rib->tables.n_main[0], 6);
	rig_addr(g, 11, "192.0.2.126/25", true);
	assert_seen(g, "192.0.2.126", "192.0.2.200@2");
	assert_seen(g, "192.0.2.1", "192.0.2.200@2");
	assert_seen(g, "192.0.2.127", "192.0.2.200@2");
	rig_addr(g, 11, "192.0.2.126/25", false);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_del(g, "192.0.2.0/25");
	rig_go(g);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_free(g);
}

static void
a_subnet_whose_link_is_down_yields_to_zebras_route(void **state)
{
	struct rig *g = rig_two_ports();

	/* OSPF sends a route around the link that is down. */
	rig_route_inline(g, "192.0.2.0/25", "192.0.2.200", 12);
	rig_go(g);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_link(g, 11, 1, false);
	assert_seen(g, "192.0.2.1", "192.0.2.200@2");
	assert_seen(g, "192.0.2.126", "local");
	rig_link(g, 11, 1, true);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_free(g);
}

/*
 * The sysctl ignore_routes_with_linkdown, with groups whose members are on several links.
 */
static void
routes_by_links_without_carrier_count_as_the_sysctl_says(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_nexthop(g, 1, "192.0.2.1", 11);
	rig_kernel_nexthop(g, 2, "192.0.2.200", 12);
	rig_kernel_group(g, 10, 1, 2);
	rig_kernel_by_id(g, KERNEL_ROUTE, "198.51.100.0/24", 5, 10);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/25", 5, "192.0.2.1", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/25", 50, "192.0.2.200", 12);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.201", 12);
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:f::/48", 5, "2001:db8:1::5", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:f::/48", 50, "2001:db8:2::5", 12);
	rig_go(g);
	assert_seen(g, "203.0.113.9", "192.0.2.1@1");
	rig_link(g, 11, 1, false);
	assert_seen(g, "203.0.113.9", "down");
	rig_link_ignoring(g, 11, 1, false, 4);
	assert_seen(g, "203.0.113.9", "192.0.2.200@2");
	assert_seen(g, "198.51.100.9", "192.0.2.200@2");
	assert_seen(g, "2001:db8:f::9", "down");
	rig_link_ignoring(g, 11, 1, false, 6);
	assert_seen(g, "203.0.113.9", "down");
	assert_seen(g, "2001:db8:f::9", "2001:db8:2::5@2");

	/* A route may come while its link is down. */
	rig_link_ignoring(g, 11, 1, false, 4);
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "203.0.113.0/25", 50, "192.0.2.200", 12);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/26", 0, "192.0.2.1", 11);
	rig_go(g);
	assert_seen(g, "203.0.113.9", "192.0.2.201@2");
	rig_link_ignoring(g, 12, 2, false, 4);
	assert_seen(g, "203.0.113.9", "none");
	assert_seen(g, "198.51.100.9", "none");
	rig_link_ignoring(g, 11, 1, true, 4);
	assert_seen(g, "203.0.113.9", "192.0.2.1@1");
	assert_seen(g, "198.51.100.9", "192.0.2.1@1");
	rig_free(g);
}

/*
 * Linux also ignores the broadcast addresses of a link without carrier. It ignores neither
 * the link's own addresses nor IPv4 routes with `scope host` (fib_sync_down_dev()).
 */
static void
routes_with_scope_host_count_without_carrier(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev =
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/25", 5, NULL, 11);

	ev->scope = RT_SCOPE_HOST;
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.128/25", 5, NULL, 11);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.201", 12);
	rig_link_ignoring(g, 11, 1, false, 4);
	assert_seen(g, "203.0.113.9", "down");
	assert_seen(g, "203.0.113.129", "192.0.2.201@2");
	rig_free(g);
}

static void
broadcasts_by_links_without_carrier_count_as_the_sysctl_says(void **state)
{
	struct rig *g = rig_two_ports();

	for (unsigned int i = 0; i < 2; i++) {
		struct kernel_event *ev = rig_kernel_type(
			g, KERNEL_ROUTE, i == 0 ? "203.0.113.255/32" : "203.0.113.1/32", 0,
			i == 0 ? RTN_BROADCAST : RTN_LOCAL);

		ev->is_local = true;
		ev->ifindex = 11;
	}
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.201", 12);
	rig_link(g, 11, 1, false);
	assert_seen(g, "203.0.113.255", "bcast");
	rig_link_ignoring(g, 11, 1, false, 4);
	assert_seen(g, "203.0.113.255", "192.0.2.201@2");
	assert_seen(g, "203.0.113.1", "local");
	rig_link_ignoring(g, 11, 1, true, 4);
	assert_seen(g, "203.0.113.255", "bcast");
	rig_free(g);
}

/*
 * Linux keeps the next hops of a joined route in one list with the other routes of the
 * metric. If the first next hop is deleted, another route may be the first of the list.
 * Only a dump shows this.
 */
static void
a_route_between_two_next_hops_counts_when_the_first_is_deleted(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	(void)rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, "2001:db8:1::1", 11);
	(void)rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, NULL, 12);
	(void)rig_kernel_type(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, RTN_UNREACHABLE);
	ev = rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, "2001:db8:1::2", 11);
	rig_kernel_hop(ev, "2001:db8:1::1", 11);
	rig_go(g);
	assert_seen(g, "2001:db8:9::1", "2001:db8:1::1@1*2048 2001:db8:1::2@1*2048");
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, "2001:db8:9::/48", 5, "2001:db8:1::1",
			       11);
	for (unsigned int i = 0; i < 2; i++) {
		rig_kernel_dump(g, true, 6, 0);
		rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, NULL, 12)->order =
			KERNEL_LISTED;
		rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, "2001:db8:1::2", 11)
			->order = KERNEL_LISTED;
		rig_kernel_type(g, KERNEL_ROUTE, "2001:db8:9::/48", 5, RTN_UNREACHABLE)
			->order = KERNEL_LISTED;
		rig_kernel_dump(g, false, 6, 0);
		rig_go(g);
		assert_seen(g, "2001:db8:9::1", "onlink@2");
	}
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, "2001:db8:9::/48", 5, NULL, 12);
	rig_go(g);
	assert_seen(g, "2001:db8:9::1", "2001:db8:1::2@1");
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, "2001:db8:9::/48", 5, "2001:db8:1::2",
			       11);
	rig_go(g);
	assert_seen(g, "2001:db8:9::1", "unreachable");
	rig_free(g);
}

#define ORDERED "2001:db8:7::/48"

/* Add or delete a route that Linux does not join with others. */
static struct kernel_event *
by_interface(struct rig *g, enum kernel_event_kind kind, uint32_t metric, uint32_t ifindex)
{
	return rig_kernel_route(g, kind, ORDERED, metric, NULL, ifindex);
}

#define assert_by_ingress(g, n)                                              \
	do {                                                                 \
		rig_go(g);                                                   \
		assert_int_equal(atomic_load(&kernel_status.by_ingress), n); \
	} while (0)

/*
 * Among routes of one metric and preference, Linux prefers the route by the interface on
 * which the packet came.
 */
static void
routes_that_linux_chooses_by_the_ingress_interface_are_counted(void **state)
{
	struct rig *g = rig_two_ports();

	atomic_store(&kernel_status.by_ingress, 0); /* routes of earlier tests */
	(void)by_interface(g, KERNEL_ROUTE, 5, 11);
	assert_by_ingress(g, 0);
	(void)by_interface(g, KERNEL_ROUTE, 6, 12);
	assert_by_ingress(g, 0);
	(void)by_interface(g, KERNEL_ROUTE, 5, 12);
	assert_by_ingress(g, 1);
	(void)by_interface(g, KERNEL_ROUTE, 5, 13);
	assert_by_ingress(g, 2);
	/* A better preference decides before the interface. */
	(void)by_interface(g, KERNEL_ROUTE_DEL, 5, 13);
	by_interface(g, KERNEL_ROUTE, 5, 13)->preference = 2;
	assert_by_ingress(g, 1);
	/* Now there is only one route of the metric. */
	(void)by_interface(g, KERNEL_ROUTE_DEL, 5, 11);
	assert_by_ingress(g, 0);
	(void)by_interface(g, KERNEL_ROUTE, 4, 11);
	(void)by_interface(g, KERNEL_ROUTE, 4, 12);
	assert_by_ingress(g, 1);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 4, 12);
	assert_by_ingress(g, 0);
	/* No packet takes the routes while a route of zebra or of table local precedes. */
	(void)by_interface(g, KERNEL_ROUTE, 1024, 11);
	(void)by_interface(g, KERNEL_ROUTE, 1024, 12);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 4, 11);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 5, 12);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 5, 13);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 6, 12);
	assert_by_ingress(g, 1);
	rig_route_inline(g, ORDERED, "2001:db8:1::1", 11);
	assert_by_ingress(g, 0);
	rig_del(g, ORDERED);
	assert_by_ingress(g, 1);
	by_interface(g, KERNEL_ROUTE, 4000, 11)->is_local = true;
	assert_by_ingress(g, 0);
	by_interface(g, KERNEL_ROUTE_DEL, 4000, 11)->is_local = true;
	assert_by_ingress(g, 1);
	(void)by_interface(g, KERNEL_ROUTE_DEL, 1024, 12);
	/* Each interface has a route of fe80::/64. IPv4 has no such order. */
	for (uint32_t ifindex = 11; ifindex <= 12; ifindex++) {
		(void)rig_kernel_route(g, KERNEL_ROUTE, "fe80::/64", 256, NULL, ifindex);
		(void)rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 5, NULL, ifindex);
	}
	assert_by_ingress(g, 0);
	rig_free(g);
}

/* Send an event about a route with two next hops. `dead`: Linux marks the second as dead. */
static void
two_hops(struct rig *g, enum kernel_event_kind kind, bool dead, uint32_t details)
{
	struct kernel_event *ev =
		rig_kernel_route(g, kind, "198.51.100.0/24", 0, "192.0.2.1", 11);

	rig_kernel_hop(ev, "192.0.2.200", 12);
	ev->route.hops[1].dead = dead;
	ev->details = details;
	rig_settle(g);
}

/*
 * Linux marks the IPv4 next hops by a link as dead when its last IPv4 address goes, and
 * when it is set down.
 */
static void
a_dead_next_hop_is_not_used_while_its_link_has_no_ipv4_address(void **state)
{
	static const char both[] = "192.0.2.1@1*2048 192.0.2.200@2*2048";
	struct rig *g = rig_two_ports();
	uint32_t n;

	two_hops(g, KERNEL_ROUTE, false, 7);
	n = g->rib->kroutes.n;
	rig_link_ipv4(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", both); /* the mark of Linux decides */
	two_hops(g, KERNEL_ROUTE, true, 7);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link_ipv4(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", both);
	rig_link_ipv4(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	two_hops(g, KERNEL_ROUTE, false, 7);
	assert_seen(g, "198.51.100.1", both);
	assert_int_equal(g->rib->kroutes.n, n);
	rig_free(g);
}

/* Also if its packets need no link here: Linux does not use it. */
static void
a_dead_next_hop_with_an_encapsulation_is_not_used(void **state)
{
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	links_set_through_kernel(g->rib, true);
	for (unsigned int dead = 0; dead < 2; dead++) {
		ev = rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, "192.0.2.1",
				      11);
		rig_kernel_hop(ev, "192.0.2.200", 12);
		ev->route.hops[1].encap = HOP_LWTUNNEL;
		ev->route.hops[1].dead = dead != 0;
		ev->details = 7;
		rig_link_ipv4(g, 12, 2, false);
		assert_seen(g, "198.51.100.1",
			    dead == 0 ? "192.0.2.1@1*2048 kernel@0*2048" : "192.0.2.1@1");
	}
	rig_link_ipv4(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1*2048 kernel@0*2048");
	rig_link(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1*2048 kernel@0*2048");
	rig_free(g);
}

/* A dead next hop, and one without carrier while the sysctl is set: Linux uses neither. */
static void
a_route_of_dead_next_hops_and_links_without_carrier_does_not_count(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_route(g, KERNEL_ROUTE, "198.51.0.0/16", 0, "192.0.2.201", 12);
	two_hops(g, KERNEL_ROUTE, true, 7);
	rig_link_ipv4(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link(g, 11, 1, false);
	assert_seen(g, "198.51.100.1", "down");
	rig_link_ignoring(g, 11, 1, false, 4);
	assert_seen(g, "198.51.100.1", "192.0.2.201@2");
	rig_link_ipv4(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.200@2");
	rig_free(g);
}

/* A dead next hop of a link that is set down and keeps its IPv4 address. */
static void
a_route_of_a_link_set_down_and_one_without_carrier_does_not_count(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link(g, 13, 3, true);
	rig_addr(g, 13, "203.0.113.1/25", false);
	rig_kernel_route(g, KERNEL_ROUTE, "198.51.0.0/16", 0, "203.0.113.5", 13);
	two_hops(g, KERNEL_ROUTE, false, 7);
	rig_link(g, 12, 2, false);
	two_hops(g, KERNEL_ROUTE, true, 7);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link_ignoring(g, 11, 1, false, 4);
	assert_seen(g, "198.51.100.1", "203.0.113.5@3");
	rig_link(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.200@2");
	rig_free(g);
}

/* The message of a deletion has the marks of its time. */
static void
a_route_is_deleted_whichever_of_its_next_hops_are_dead(void **state)
{
	struct rig *g = rig_two_ports();

	for (unsigned int dead = 0; dead < 4; dead++) {
		two_hops(g, KERNEL_ROUTE, (dead & 1) != 0, 7);
		assert_string_not_equal(rig_seen(g, "198.51.100.1"), "none");
		two_hops(g, KERNEL_ROUTE_DEL, (dead & 2) != 0, 8); /* another route */
		assert_string_not_equal(rig_seen(g, "198.51.100.1"), "none");
		two_hops(g, KERNEL_ROUTE_DEL, (dead & 2) != 0, 7);
		assert_seen(g, "198.51.100.1", "none");
	}
	rig_free(g);
}

#define assert_several_mtus(g, n)                                              \
	do {                                                                   \
		rig_go(g);                                                     \
		assert_int_equal(atomic_load(&kernel_status.several_mtus), n); \
	} while (0)

/* Send the event about `n_hops` joined next hops. The last next hop is new. */
static struct kernel_event *
joined(struct rig *g, unsigned int n_hops, uint32_t mtu_bytes)
{
	static const char *const gw[] = {"2001:db8:1::1", "2001:db8:1::2", "2001:db8:1::3"};
	struct kernel_event *ev = rig_kernel_route(g, KERNEL_ROUTE, ORDERED, 5, gw[0], 11);

	for (unsigned int i = 1; i < n_hops; i++)
		rig_kernel_hop(ev, gw[i], 11);
	ev->route.mtu_bytes = mtu_bytes;
	return ev;
}

/* The message of an appended next hop has the MTU of this next hop alone. */
static void
an_appended_next_hop_of_another_mtu_is_counted(void **state)
{
	struct rig *g = rig_two_ports();

	atomic_store(&kernel_status.several_mtus, 0);
	(void)joined(g, 1, 1400);
	(void)joined(g, 2, 1400);
	assert_several_mtus(g, 0);
	(void)joined(g, 3, 1300);
	assert_several_mtus(g, 1);
	/* A dump has the MTU of the first next hop. */
	rig_kernel_dump(g, true, 6, 0);
	joined(g, 3, 1400)->order = KERNEL_LISTED;
	rig_kernel_dump(g, false, 6, 0);
	assert_several_mtus(g, 1);
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, ORDERED, 5, "2001:db8:1::1", 11);
	assert_several_mtus(g, 1);
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, ORDERED, 5, "2001:db8:1::2", 11);
	assert_several_mtus(g, 0);
	(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, ORDERED, 5, "2001:db8:1::3", 11);
	/* A route that replaces another has one MTU. A deleted route is not counted. */
	(void)joined(g, 1, 1400);
	(void)joined(g, 2, 1300);
	assert_several_mtus(g, 1);
	joined(g, 2, 1200)->order = KERNEL_REPLACE;
	assert_several_mtus(g, 0);
	(void)joined(g, 3, 1300);
	assert_several_mtus(g, 1);
	for (unsigned int i = 1; i <= 3; i++) {
		char gw[32];

		snprintf(gw, sizeof(gw), "2001:db8:1::%u", i);
		(void)rig_kernel_route(g, KERNEL_ROUTE_DEL, ORDERED, 5, gw, 11);
	}
	assert_several_mtus(g, 0);
	rig_free(g);
}

static void
one_slot_serves_all_subnets_of_an_interface(void **state)
{
	struct rig *g = rig_two_ports();

	rig_addr(g, 11, "203.0.113.1/24", false);
	assert_int_equal(rig_group_of(g, "192.0.2.1"), rig_group_of(g, "203.0.113.9"));
	assert_int_equal(rig_group_of(g, "192.0.2.126"), rig_group_of(g, "2001:db8:1::ff"));
	rig_free(g);
}

static void
an_address_reported_twice_counts_once(void **state)
{
	struct rig *g = rig_two_ports();

	rig_addr(g, 11, "192.0.2.126/25", false);
	rig_addr(g, 11, "192.0.2.126/25", true);
	assert_seen(g, "192.0.2.1", "none");
	rig_addr(g, 11, "192.0.2.126/25", true);
	rig_free(g);
}

static void
a_second_address_in_a_subnet_keeps_it_when_the_first_goes(void **state)
{
	struct rig *g = rig_two_ports();

	rig_addr(g, 11, "192.0.2.125/25", false);
	rig_addr(g, 11, "192.0.2.126/25", true);
	assert_seen(g, "192.0.2.1", "onlink@1");
	assert_seen(g, "192.0.2.127", "bcast");
	assert_seen(g, "192.0.2.126", "onlink@1");
	rig_free(g);
}

static void
addresses_may_come_before_their_link(void **state)
{
	struct rig *g = rig_new();

	rig_addr(g, 11, "192.0.2.126/25", false);
	assert_seen(g, "192.0.2.126", "local");
	assert_seen(g, "192.0.2.1", "none");
	rig_link(g, 11, 1, true);
	assert_seen(g, "192.0.2.1", "onlink@1");
	rig_free(g);
}

static void
addresses_go_with_their_interface(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link_gone(g, 11);
	assert_seen(g, "192.0.2.126", "none");
	assert_seen(g, "192.0.2.1", "none");
	assert_seen(g, "192.0.2.254", "local");
	/* Link 12 has two addresses, two subnets, broadcast, anycast. */
	assert_int_equal(g->rib->kroutes.n, 6);
	/* A deletion that comes twice changes nothing. */
	(void)rig_kernel_type(g, KERNEL_ROUTE_DEL, "192.0.2.126/32", 0, RTN_LOCAL);
	rig_go(g);
	assert_int_equal(g->rib->kroutes.n, 6);
	rig_settle(g);
	assert_null(rib_link_find(&g->rib->links, 11));
	rig_free(g);
}

static void
the_subnet_router_anycast_address_is_ours_also_without_a_carrier(void **state)
{
	struct rig *g = rig_two_ports();

	assert_seen(g, "2001:db8:1::", "local");
	assert_seen(g, "2001:db8:1::1", "onlink@1");
	rig_link(g, 11, 1, false);
	rig_go(g);
	assert_seen(g, "2001:db8:1::", "local");
	assert_seen(g, "2001:db8:1::1", "none");
	assert_seen(g, "2001:db8:1::ff", "local");
	rig_link(g, 11, 1, true);
	rig_addr(g, 11, "2001:db8:3::1/127", false);
	rig_go(g);
	assert_seen(g, "2001:db8:1::", "local");
	assert_seen(g, "2001:db8:3::", "onlink@1"); /* RFC 6164: the other end */
	rig_addr(g, 11, "2001:db8:1::ff/64", true);
	rig_settle(g);
	assert_seen(g, "2001:db8:1::", "none");
	rig_free(g);
}

static void
thousands_of_addresses_come_and_go_in_a_subnet_and_in_subnets_of_their_own(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t routes = g->rib->tables.n_main[0];
	char text[32];

	for (int gone = 0; gone < 2; gone++) {
		for (unsigned int i = 0; i < 4000; i++) {
			snprintf(text, sizeof(text), "10.1.%u.%u/16", i / 250, i % 250 + 1);
			rig_addr(g, 11, text, gone);
			snprintf(text, sizeof(text), "172.%u.%u.1/24", 16 + i / 256,
				 i % 256);
			rig_addr(g, 11, text, gone);
		}
		if (gone == 0) {
			assert_seen(g, "10.1.15.200", "local");
			assert_seen(g, "172.31.100.2", "onlink@1");
			assert_int_equal(g->rib->tables.n_main[0],
					 routes + 4000 + 2 + 4000 * 3);
			rig_link(g, 11, 1, false);
			rig_go(g);
			assert_seen(g, "172.31.100.1", "local");
			assert_seen(g, "172.31.100.2", "none");
			rig_link(g, 11, 1, true);
			rig_go(g);
			assert_seen(g, "172.31.100.2", "onlink@1");
		}
	}
	rig_settle(g);
	assert_int_equal(g->rib->tables.n_main[0], routes);
	rig_free(g);
}

static void
own_addresses_of_interfaces_that_are_no_ports_are_local_too(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link(g, 1, 0, true);
	rig_addr(g, 1, "203.0.113.254/32", false);
	rig_addr(g, 1, "10.0.0.1/8", false);
	assert_seen(g, "203.0.113.254", "local");
	assert_seen(g, "10.0.0.1", "local");
	assert_seen(g, "10.0.0.2", "foreign");
	rig_free(g);
}

static void
a_point_to_point_peer_is_on_link(void **state)
{
	struct rig *g = rig_two_ports();

	rig_addr_peer(g, 0, 12, "203.0.113.1", "203.0.113.2/32", false);
	assert_seen(g, "203.0.113.1", "local");
	assert_seen(g, "203.0.113.2", "onlink@2");
	rig_free(g);
}

/* A router that runs for weeks gets more than 2^32 routes. */
static void
routes_of_other_prefixes_take_no_places_of_a_prefix(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t order[2];

	for (unsigned int i = 0; i < 2; i++) {
		struct prefix p = rig_prefix(rig_net(i));
		const struct route *r;

		(void)rig_kernel_route(g, KERNEL_ROUTE, rig_net(i), 0, "192.0.2.1", 11);
		rig_settle(g);
		r = tables_find(&g->rib->tables, RIB_TABLE_MAIN, &p);
		order[i] = g->rib->kroutes.v[kroute_first(&g->rib->kroutes, r)].order;
	}
	assert_int_equal(order[0], order[1]);
	rig_free(g);
}

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

/*
 * The sysctl ignore_routes_with_linkdown decides which next hops Linux shows as dead. Linux
 * sends no message about them when it changes.
 */
static void
the_sysctl_of_a_link_with_next_hops_asks_for_all(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link_ignoring(g, 12, 2, false, 4);
	assert_false(rtnl_is_asked(g));
	two_hops(g, KERNEL_ROUTE, true, 7);
	rig_link(g, 12, 2, false);
	assert_true(rtnl_is_asked(g));
	rig_link_ignoring(g, 12, 2, false, 6);
	assert_false(rtnl_is_asked(g));
	rig_free(g);
}

/* The dump of the first protocol was over when the route was replaced. */
static void
a_replace_between_the_dumps_of_two_protocols_asks_for_all(void **state)
{
	static const uint8_t protocol[] = {RTPROT_BOOT, RTPROT_STATIC};
	static const char *const gw[] = {"192.0.2.1", "192.0.2.2"};
	struct rig *g = rig_two_ports();
	struct kernel_event *ev;

	for (unsigned int i = 0; i < 3; i++) {
		if (i < 2)
			rig_kernel_dump(g, true, 4, protocol[i]);
		ev = rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0,
				      gw[i == 0 ? 0 : 1], 11);
		ev->order = i < 2 ? KERNEL_LISTED : KERNEL_REPLACE;
		ev->route.protocol = protocol[i == 0 ? 0 : 1];
		if (i < 2)
			rig_kernel_dump(g, false, 4, protocol[i]);
		rig_settle(g);
		assert_int_equal(rtnl_is_asked(g), i == 2);
	}
	rig_free(g);
}

/* A dump has shown the route that replaces another before the events of both arrive. */
static void
an_ipv6_replace_that_a_newer_dump_overtook_asks_for_all(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_dump(g, true, 6, 0);
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 1024, NULL, 12)->order =
		KERNEL_LISTED;
	rig_kernel_dump(g, false, 6, 0);
	rig_settle(g);
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 1024, NULL, 11)->order =
		KERNEL_LAST;
	rig_settle(g);
	assert_false(rtnl_is_asked(g));
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 1024, NULL, 12)->order =
		KERNEL_REPLACE;
	rig_settle(g);
	assert_true(rtnl_is_asked(g));
	rig_free(g);
}

/* Send a dump of one protocol; 0: of all. It shows these gateways of a joined route. */
static void
joined_dump(struct rig *g, uint8_t protocol, uint8_t of, const char *one, const char *other)
{
	struct kernel_event *ev;

	rig_kernel_dump(g, true, 6, protocol);
	if (one != NULL) {
		ev = rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:9::/48", 1024, one, 11);
		ev->order = KERNEL_LISTED;
		ev->route.protocol = of;
		if (other != NULL)
			rig_kernel_hop(ev, other, 11);
	}
	rig_kernel_dump(g, false, 6, protocol);
	rig_settle(g);
}

/*
 * The dump at the start does not show that the second next hop has another protocol than
 * the first one, which is deleted later.
 */
static void
the_rest_of_a_joined_route_may_be_of_another_protocol(void **state)
{
	struct rig *g = rig_two_ports();

	joined_dump(g, 0, RTPROT_STATIC, "2001:db8:1::1", "2001:db8:1::2");
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "2001:db8:9::/48", 1024, "2001:db8:1::1", 11)
		->route.protocol = RTPROT_STATIC;
	rig_settle(g);
	joined_dump(g, RTPROT_STATIC, 0, NULL, NULL);
	assert_seen(g, "2001:db8:9::1", "2001:db8:1::2@1");
	joined_dump(g, RTPROT_BOOT, RTPROT_BOOT, "2001:db8:1::2", NULL);
	joined_dump(g, RTPROT_STATIC, 0, NULL, NULL);
	assert_seen(g, "2001:db8:9::1", "2001:db8:1::2@1");
	joined_dump(g, RTPROT_BOOT, 0, NULL, NULL);
	assert_seen(g, "2001:db8:9::1", "none");
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_own_address_is_local_and_its_subnet_on_link),
		cmocka_unit_test(routes_of_other_prefixes_take_no_places_of_a_prefix),
		cmocka_unit_test(the_rest_of_a_joined_route_may_be_of_another_protocol),
		cmocka_unit_test(a_replace_between_the_dumps_of_two_protocols_asks_for_all),
		cmocka_unit_test(an_ipv6_replace_that_a_newer_dump_overtook_asks_for_all),
		cmocka_unit_test(
			the_last_address_of_ipv4_subnets_up_to_30_is_broadcast_the_first_is_a_host),
		cmocka_unit_test(local_beats_connected_beats_zebra),
		cmocka_unit_test(a_subnet_whose_link_is_down_yields_to_zebras_route),
		cmocka_unit_test(routes_by_links_without_carrier_count_as_the_sysctl_says),
		cmocka_unit_test(routes_with_scope_host_count_without_carrier),
		cmocka_unit_test(
			broadcasts_by_links_without_carrier_count_as_the_sysctl_says),
		cmocka_unit_test(
			a_route_between_two_next_hops_counts_when_the_first_is_deleted),
		cmocka_unit_test(
			routes_that_linux_chooses_by_the_ingress_interface_are_counted),
		cmocka_unit_test(
			a_dead_next_hop_is_not_used_while_its_link_has_no_ipv4_address),
		cmocka_unit_test(a_dead_next_hop_with_an_encapsulation_is_not_used),
		cmocka_unit_test(
			a_route_of_dead_next_hops_and_links_without_carrier_does_not_count),
		cmocka_unit_test(
			a_route_of_a_link_set_down_and_one_without_carrier_does_not_count),
		cmocka_unit_test(a_route_is_deleted_whichever_of_its_next_hops_are_dead),
		cmocka_unit_test(the_sysctl_of_a_link_with_next_hops_asks_for_all),
		cmocka_unit_test(an_appended_next_hop_of_another_mtu_is_counted),
		cmocka_unit_test(one_slot_serves_all_subnets_of_an_interface),
		cmocka_unit_test(an_address_reported_twice_counts_once),
		cmocka_unit_test(a_second_address_in_a_subnet_keeps_it_when_the_first_goes),
		cmocka_unit_test(addresses_may_come_before_their_link),
		cmocka_unit_test(addresses_go_with_their_interface),
		cmocka_unit_test(
			the_subnet_router_anycast_address_is_ours_also_without_a_carrier),
		cmocka_unit_test(
			thousands_of_addresses_come_and_go_in_a_subnet_and_in_subnets_of_their_own),
		cmocka_unit_test(
			own_addresses_of_interfaces_that_are_no_ports_are_local_too),
		cmocka_unit_test(a_point_to_point_peer_is_on_link),
	};

	return cmocka_run_group_tests_name("rib kernel", tests, NULL, NULL);
}
