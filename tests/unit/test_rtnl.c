/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rtnl thread against a real kernel: each test has a namespace, a TAP t0 in it, the real
 * thread, and a RIB that gets its messages. What the RIB has must become what the kernel has.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/rtnl/ fpm-dataplane/netlink/ tap-bridge/netns.c tap-bridge/tap.c
 * link: tests/unit/rib_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "rtnl_scene.h"

#include <net/if.h>

/* Let the thread believe that rib is behind, so that it stops reading. */
static void
hold(struct scene *s)
{
	wait_for(s, kernel_queue_depth() == 0);
	atomic_fetch_add(&kernel_status.in, 2 * KERNEL_QUEUE_PAUSE_BYTES);
	worker_wake(&s->rtnl);
	wait_until(atomic_load(&kernel_status.paused));
}

static void
release(struct scene *s)
{
	atomic_fetch_add(&kernel_status.out, 2 * KERNEL_QUEUE_PAUSE_BYTES);
	worker_wake(&s->rtnl);
}

/* --- the first tables, and changes ---------------------------------------------------- */

static void
routes_of_the_start_are_there_before_the_threads_first_wait(void **state)
{
	struct scene *s = scene_of(state);

	ip(s->bed, "route add " NET " via 192.0.2.9 metric 7");
	ip(s->bed, "route add 203.0.113.0/24 via 192.0.2.9 proto bgp metric 20");
	ip(s->bed, "-6 route add 2001:db8:9::/48 via 2001:db8::9");
	start(s, ROUTES_FROM_BOTH);
	rig_settle(s->g); /* the thread's init has sent them */
	assert_non_null(first_of(s, NET));
	assert_int_equal(first_of(s, NET)->metric, 7);
	assert_true(gateways_are(s, NET, "192.0.2.9"));
	assert_true(first_of(s, "192.0.2.0/24")->connected);
	assert_true(first_of(s, "192.0.2.1/32")->is_local);
	assert_int_equal(first_of(s, "192.0.2.255/32")->rtm_type, RTN_BROADCAST);
	assert_int_equal(first_of(s, "2001:db8::/64")->metric, 256);
	assert_int_equal(first_of(s, "2001:db8::/128")->rtm_type, RTN_ANYCAST);
	assert_true(gateways_are(s, "2001:db8:9::/48", "2001:db8::9"));
	assert_null(first_of(s, "203.0.113.0/24")); /* FPM has it */
	assert_null(first_of(s, "127.0.0.0/8"));
	assert_null(first_of(s, "fe80::/64"));
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	stop(s);
}

static void
changes_come_as_events_in_the_kernels_order(void **state)
{
	struct scene *s = started(state);

	ip(s->bed, "route add " NET " via 192.0.2.9");
	wait_for(s, gateways_are(s, NET, "192.0.2.9"));
	ip(s->bed, "route append " NET " via 192.0.2.10");
	wait_for(s, n_of(s, NET) == 2);
	assert_true(gateways_are(s, NET, "192.0.2.9"));
	ip(s->bed, "route prepend " NET " via 192.0.2.11");
	wait_for(s, n_of(s, NET) == 3);
	assert_true(gateways_are(s, NET, "192.0.2.11"));
	ip(s->bed, "route replace " NET " via 192.0.2.12");
	wait_for(s, gateways_are(s, NET, "192.0.2.12"));
	assert_int_equal(n_of(s, NET), 3);
	ip(s->bed, "route del " NET " via 192.0.2.12");
	wait_for(s, gateways_are(s, NET, "192.0.2.9"));
	ip(s->bed, "route add blackhole " NET " metric 9");
	wait_for(s, n_of(s, NET) == 3);
	ip(s->bed, "route flush " NET);
	wait_for(s, n_of(s, NET) == 0);
	stop(s);
}

static void
a_new_dump_comes_to_the_same_order(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps;

	ip(s->bed, "route add " NET " via 192.0.2.9");
	ip(s->bed, "route append " NET " via 192.0.2.10");
	ip(s->bed, "route prepend " NET " via 192.0.2.11");
	wait_for(s, n_of(s, NET) == 3);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	dumps = count(&kernel_status.dumps);
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_for(s, count(&kernel_status.dumps) >= dumps + 3);
	wait_for(s, kernel_queue_depth() == 0);
	assert_int_equal(n_of(s, NET), 3);
	assert_true(gateways_are(s, NET, "192.0.2.11"));
	stop(s);
}

static void
routes_that_differ_in_their_source_are_several(void **state)
{
	struct scene *s = started(state);

	ip(s->bed, "addr add 192.0.2.2/24 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 192.0.2.1");
	ip(s->bed, "route append " NET " via 192.0.2.9 src 192.0.2.2");
	wait_for(s, n_of(s, NET) == 2);
	ip(s->bed, "route del " NET " via 192.0.2.9 src 192.0.2.1");
	wait_for(s, n_of(s, NET) == 1);
	stop(s);
}

static void
ipv6_routes_with_a_gateway_are_joined_those_by_objects_are_not(void **state)
{
	struct scene *s = started(state);
	const char *net = "2001:db8:9::/48";

	ip(s->bed, "-6 route add %s via 2001:db8::8 metric 50", net);
	ip(s->bed, "-6 route append %s via 2001:db8::9 metric 50", net);
	wait_for(s, gateways_are(s, net, "2001:db8::8 2001:db8::9"));
	assert_int_equal(n_of(s, net), 1);
	ip(s->bed, "-6 route del %s via 2001:db8::8 metric 50", net);
	wait_for(s, gateways_are(s, net, "2001:db8::9"));
	ip(s->bed, "-6 route del %s metric 50", net);
	wait_for(s, n_of(s, net) == 0);
	ip(s->bed, "-6 route add %s nexthop via 2001:db8::8 nexthop via 2001:db8::9", net);
	wait_for(s, gateways_are(s, net, "2001:db8::8 2001:db8::9"));
	ip(s->bed, "-6 route del %s", net);
	wait_for(s, n_of(s, net) == 0);

	ip(s->bed, "nexthop add id 8 via 2001:db8::8 dev t0");
	ip(s->bed, "nexthop add id 9 via 2001:db8::9 dev t0");
	ip(s->bed, "-6 route add %s nhid 8 metric 50", net);
	ip(s->bed, "-6 route append %s nhid 9 metric 50", net);
	wait_for(s, n_of(s, net) == 2);
	assert_true(gateways_are(s, net, "2001:db8::8"));
	ip(s->bed, "nexthop del id 8");
	wait_for(s, n_of(s, net) == 1);
	assert_true(gateways_are(s, net, "2001:db8::9"));
	stop(s);
}

static void
the_source_of_routes_decides_which_are_told(void **state)
{
	struct scene *s = scene_of(state);

	ip(s->bed, "route add " NET " via 192.0.2.9 proto static");
	ip(s->bed, "route add 203.0.113.0/24 via 192.0.2.9 proto bgp metric 20");
	start(s, ROUTES_FROM_FPM);
	ip(s->bed, "route add 198.18.0.0/24 via 192.0.2.9 proto static");
	ip(s->bed, "addr add 192.0.2.2/24 dev t0");
	wait_for(s, n_of(s, "192.0.2.2/32") == 1);
	assert_int_equal(n_of(s, NET) + n_of(s, "203.0.113.0/24"), 0);
	assert_int_equal(n_of(s, "198.18.0.0/24"), 0);
	assert_int_equal(n_of(s, "192.0.2.0/24"), 1);
	worker_stop(&s->rtnl);
	worker_free(&s->rtnl);
	rtnl_teardown(&s->rtnl);

	start(s, ROUTES_FROM_KERNEL);
	wait_for(s, n_of(s, NET) == 1 && n_of(s, "203.0.113.0/24") == 1);
	ip(s->bed, "route add 198.18.1.0/24 via 192.0.2.9 proto ospf metric 20");
	wait_for(s, n_of(s, "198.18.1.0/24") == 1);
	ip(s->bed, "route del 198.18.1.0/24 proto ospf");
	wait_for(s, n_of(s, "198.18.1.0/24") == 0);
	stop(s);
}

static void
a_route_that_zebra_replaces_is_gone(void **state)
{
	struct scene *s = started(state);
	uint64_t of_zebra;

	ip(s->bed, "route add " NET " via 192.0.2.9 metric 20");
	wait_for(s, n_of(s, NET) == 1);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	of_zebra = count(&kernel_status.of_zebra);
	ip(s->bed, "route add 203.0.113.0/24 via 192.0.2.9 proto bgp metric 20");
	ip(s->bed, "route replace " NET " via 192.0.2.9 proto bgp metric 20");
	wait_for(s, n_of(s, NET) == 0);
	/* The filter in the kernel dropped the other event. */
	assert_int_equal(count(&kernel_status.of_zebra), of_zebra + 1);
	stop(s);
}

/*
 * zebra installs IP routes with metric 20: routes with numbers of its protocols and another
 * metric are of other programs, as babeld.
 */
static void
a_route_of_a_protocol_of_zebra_with_another_metric_is_passed_on(void **state)
{
	struct scene *s = scene_of(state);
	uint64_t of_zebra;

	ip(s->bed, "route add " NET " via 192.0.2.9 proto babel");
	start(s, ROUTES_FROM_BOTH);
	wait_for(s, first_of(s, NET) != NULL);
	of_zebra = count(&kernel_status.of_zebra);
	ip(s->bed, "route add 203.0.113.0/24 via 192.0.2.9 proto bgp metric 21");
	ip(s->bed, "-6 route add 2001:db8:9::/48 via 2001:db8::9 proto ospf");
	wait_for(s, first_of(s, "203.0.113.0/24") != NULL);
	wait_for(s, first_of(s, "2001:db8:9::/48") != NULL);
	ip(s->bed, "route del " NET " proto babel");
	ip(s->bed, "-6 route del 2001:db8:9::/48 proto ospf");
	wait_for(s, first_of(s, NET) == NULL);
	wait_for(s, first_of(s, "2001:db8:9::/48") == NULL);
	assert_int_equal(count(&kernel_status.of_zebra), of_zebra);
	stop(s);
}

/*
 * zebra has no routes of a TOS: FPM does not carry such a route, whatever its protocol is.
 */
static void
a_route_of_a_tos_comes_whatever_its_protocol_is(void **state)
{
	struct scene *s = started(state);

	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	ip(s->bed, "route add " NET " via 192.0.2.9 tos 0x10 proto ospf");
	wait_for(s, s->g->rib->sources.n_routes == 1);
	ip(s->bed, "route del " NET " via 192.0.2.9 tos 0x10 proto ospf");
	wait_for(s, s->g->rib->sources.n_routes == 0);
	stop(s);
}

/* --- deletions without an event ------------------------------------------------------- */

static void
ipv4_routes_of_a_link_that_is_set_down_go(void **state)
{
	struct scene *s = started(state);

	ip(s->bed, "route add " NET " via 192.0.2.9");
	ip(s->bed, "route add 203.0.113.0/24 dev t0");
	wait_for(s, n_of(s, NET) == 1 && n_of(s, "203.0.113.0/24") == 1);
	ip(s->bed, "link set t0 down");
	wait_for(s, n_of(s, NET) == 0 && n_of(s, "203.0.113.0/24") == 0 &&
			    n_of(s, "192.0.2.0/24") == 0);
	ip(s->bed, "link set t0 up");
	wait_for(s, n_of(s, "192.0.2.0/24") == 1);
	assert_int_equal(n_of(s, NET), 0);
	stop(s);
}

static void
routes_go_with_the_address_that_is_their_source(void **state)
{
	struct scene *s = started(state);

	ip(s->bed, "addr add 203.0.113.1/32 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 203.0.113.1");
	wait_for(s, n_of(s, NET) == 1);
	ip(s->bed, "addr del 203.0.113.1/32 dev t0");
	wait_for(s, n_of(s, NET) == 0 && n_of(s, "203.0.113.1/32") == 0);
	stop(s);
}

/*
 * With this sysctl Linux sends no events of the IPv6 routes that it deletes when IPv6 ends
 * on a link.
 */
static void
ipv6_routes_go_when_ipv6_ends_on_their_link(void **state)
{
	struct scene *s = started(state);

	bed_sysctl(s->bed, "ipv6/route/skip_notify_on_dev_down", "1");
	ip(s->bed, "-6 route add " NET6 " via 2001:db8::9");
	wait_for(s, n_of(s, NET6) == 1);
	bed_sysctl(s->bed, "ipv6/conf/t0/disable_ipv6", "1");
	wait_for(s, n_of(s, NET6) == 0 && n_of(s, "2001:db8::/64") == 0);
	bed_sysctl(s->bed, "ipv6/conf/t0/disable_ipv6", "0");
	ip(s->bed, "-6 addr add 2001:db8::1/64 dev t0");
	ip(s->bed, "-6 route add " NET6 " via 2001:db8::9");
	wait_for(s, n_of(s, NET6) == 1);
	ip(s->bed, "link set t0 mtu 1000"); /* too small for IPv6 */
	wait_for(s, n_of(s, NET6) == 0);
	stop(s);
}

/*
 * Linux joins the routes that a program makes of router advertisements (systemd-networkd,
 * dhcpcd), but not its own routes of advertisements.
 */
static void
routes_of_advertisements_that_linux_joins_are_one_route(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps;

	ip(s->bed, "-6 route append " NET6 " via 2001:db8::9 proto ra");
	wait_for(s, gateways_are(s, NET6, "2001:db8::9"));
	ip(s->bed, "-6 route append " NET6 " via 2001:db8::a proto ra");
	wait_for(s, gateways_are(s, NET6, "2001:db8::9 2001:db8::a"));
	assert_int_equal(n_of(s, NET6), 1);
	ip(s->bed, "-6 route del " NET6 " via 2001:db8::9 proto ra");
	wait_for(s, gateways_are(s, NET6, "2001:db8::a"));
	ip(s->bed, "-6 route append " NET6 " via 2001:db8::b proto ra");
	wait_for(s, gateways_are(s, NET6, "2001:db8::a 2001:db8::b"));
	ip(s->bed, "-6 route del " NET6 " via 2001:db8::b proto ra");
	ip(s->bed, "-6 route del " NET6 " via 2001:db8::a proto ra");
	wait_for(s, n_of(s, NET6) == 0);

	/* Linux shows a route of two protocols in the dumps of the first one. */
	ip(s->bed, "-6 route append " NET6 " via 2001:db8::9 proto static");
	ip(s->bed, "-6 route append " NET6 " via 2001:db8::a proto ra");
	wait_for(s, gateways_are(s, NET6, "2001:db8::9 2001:db8::a"));
	dumps = count(&kernel_status.dumps);
	ip(s->bed, "-6 route append 2001:db8:7::/48 via 2001:db8::a proto ra");
	wait_for(s, count(&kernel_status.dumps) >= dumps + 6);
	rig_settle(s->g);
	assert_true(gateways_are(s, NET6, "2001:db8::9 2001:db8::a"));
	ip(s->bed, "-6 route del " NET6 " via 2001:db8::9 proto static");
	wait_for(s, gateways_are(s, NET6, "2001:db8::a"));
	ip(s->bed, "-6 route del " NET6 " via 2001:db8::a proto ra");
	wait_for(s, n_of(s, NET6) == 0);
	stop(s);
}

/*
 * Make the thread read the protocols one after the other, and wait until it has read the
 * last one.
 */
static void
dumps_of_each_protocol(struct scene *s)
{
	ip(s->bed, "addr add 203.0.113.1/32 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 203.0.113.1 proto 250");
	wait_for(s, n_of(s, NET) == 1);
	ip(s->bed, "addr del 203.0.113.1/32 dev t0");
	wait_for(s, n_of(s, NET) == 0);
}

/*
 * In a dump Linux passes over the routes of a prefix that are between the next hops of a
 * joined route.
 */
static void
a_route_between_the_next_hops_of_another_stays(void **state)
{
	static const char *const protocol[] = {"boot", "static", "ra"};
	struct scene *s = started(state);

	for (unsigned int i = 0; i < 6; i++) {
		const char *proto = protocol[i / 2];
		uint64_t dumps;

		ip(s->bed, "-6 route append " NET6 " via 2001:db8::9");
		ip(s->bed, "-6 route append " NET6 " dev t0 proto %s", proto);
		ip(s->bed, "-6 route append " NET6 " via 2001:db8::a");
		wait_for(s, gateways_are(s, NET6, "2001:db8::9 2001:db8::a"));
		wait_for(s, n_of(s, NET6) == 2 && atomic_load(&kernel_status.in_step) == 1);
		if (i % 2 == 0) {
			dumps = count(&kernel_status.dumps);
			worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
			wait_for(s, count(&kernel_status.dumps) >= dumps + 9);
		} else {
			dumps_of_each_protocol(s);
		}
		wait_for(s, kernel_queue_depth() == 0);
		assert_int_equal(n_of(s, NET6), 2);
		ip(s->bed, "-6 route del " NET6 " via 2001:db8::9");
		ip(s->bed, "-6 route del " NET6 " via 2001:db8::a");
		wait_for(s, gateways_are(s, NET6, "-"));
		ip(s->bed, "-6 route del " NET6 " dev t0 proto %s", proto);
		wait_for(s, n_of(s, NET6) == 0);
	}
	stop(s);
}

static void
routes_go_with_their_next_hop_object(void **state)
{
	struct scene *s = started(state);

	ip(s->bed, "nexthop add id 5 via 192.0.2.9 dev t0");
	ip(s->bed, "nexthop add id 6 via 192.0.2.10 dev t0");
	ip(s->bed, "nexthop add id 7 group 5/6");
	ip(s->bed, "route add " NET " nhid 5");
	ip(s->bed, "route add 203.0.113.0/24 nhid 7");
	wait_for(s, gateways_are(s, NET, "192.0.2.9"));
	wait_for(s, gateways_are(s, "203.0.113.0/24", "192.0.2.9 192.0.2.10"));
	ip(s->bed, "nexthop replace id 6 via 192.0.2.11 dev t0");
	wait_for(s, gateways_are(s, "203.0.113.0/24", "192.0.2.9 192.0.2.11"));
	ip(s->bed, "nexthop del id 5");
	wait_for(s, n_of(s, NET) == 0);
	wait_for(s, gateways_are(s, "203.0.113.0/24", "192.0.2.11"));
	ip(s->bed, "nexthop del id 7");
	wait_for(s, n_of(s, "203.0.113.0/24") == 0);
	ip(s->bed, "nexthop add id 7 group 6");
	ip(s->bed, "route add " NET " nhid 6");
	ip(s->bed, "route add 203.0.113.0/24 nhid 7");
	wait_for(s, n_of(s, NET) == 1 && n_of(s, "203.0.113.0/24") == 1);
	ip(s->bed, "nexthop flush");
	wait_for(s, n_of(s, NET) == 0 && n_of(s, "203.0.113.0/24") == 0);
	ip(s->bed, "nexthop add id 6 via 192.0.2.11 dev t0");
	wait_for(s, nh_find(s->g->rib, nh_id_of_kernel(6)) != NULL);
	ip(s->bed, "link set t0 down"); /* Linux deletes object 6, too, without an event */
	wait_for(s, nh_find(s->g->rib, nh_id_of_kernel(6)) == NULL);
	stop(s);
}

/*
 * A route by an object that is a blackhole is the same route after the object gets a next
 * hop, and when it loses it. With nexthop_compat_mode 0 no event of the route tells that.
 */
static void
routes_of_an_object_that_is_a_blackhole_follow_it(void **state)
{
	static const char *const net[] = {NET, NET6};
	struct scene *s = started(state);

	for (unsigned int compat = 0; compat < 2; compat++) {
		bed_sysctl(s->bed, "ipv4/nexthop_compat_mode", compat == 0 ? "0" : "1");
		for (unsigned int v = 0; v < 2; v++) {
			const char *gw = v == 0 ? "192.0.2.9" : "2001:db8::9";
			const char *of = v == 0 ? "" : "-6 ";

			ip(s->bed, "%snexthop add id 5 blackhole", of);
			ip(s->bed, "%sroute add %s nhid 5", of, net[v]);
			wait_for(s, n_of(s, net[v]) == 1);
			assert_true(gateways_are(s, net[v], "-"));
			ip(s->bed, "%sroute append %s via %s0", of, net[v], gw);
			wait_for(s, n_of(s, net[v]) == 2);
			ip(s->bed, "%snexthop replace id 5 via %s dev t0", of, gw);
			wait_for(s, gateways_are(s, net[v], gw));
			ip(s->bed, "%snexthop replace id 5 blackhole", of);
			wait_for(s, gateways_are(s, net[v], "-"));
			ip(s->bed, "%snexthop replace id 5 via %s dev t0", of, gw);
			wait_for(s, gateways_are(s, net[v], gw));
			ip(s->bed, "%sroute del %s nhid 5", of, net[v]);
			wait_for(s, n_of(s, net[v]) == 1);
			ip(s->bed, "%sroute del %s", of, net[v]);
			wait_for(s, n_of(s, net[v]) == 0);
			ip(s->bed, "nexthop del id 5");
		}
	}
	stop(s);
}

static void
a_route_with_a_limited_life_goes_when_it_is_over(void **state)
{
	struct scene *s = started(state);
	const char *net = "2001:db8:9::/48";

	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	/*
	 * 4 s, because a test that has no CPU until the route expires does not see the
	 * route.
	 */
	ip(s->bed, "-6 route add %s via 2001:db8::8 expires 4", net);
	wait_for(s, n_of(s, net) == 1);
	wait_for(s, n_of(s, net) == 0);
	stop(s);
}

/* Return true once no dump has ended for `ms`. */
static bool
dumps_rest_for(struct scene *s, int64_t ms)
{
	static uint64_t dumps;
	static int64_t since;

	if (count(&kernel_status.dumps) != dumps) {
		dumps = count(&kernel_status.dumps);
		since = now_ms();
	}
	return now_ms() - since >= ms;
}

static void
a_route_that_stays_expired_is_read_ever_less(void **state)
{
	struct scene *s = started(state);
	const char *net = "2001:db8:9::/48";

	bed_sysctl(s->bed, "ipv6/route/gc_interval", "3600");
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	ip(s->bed, "-6 route add %s via 2001:db8::8 expires 3", net);
	wait_for(s, n_of(s, net) == 1);
	wait_for(s, n_of(s, net) == 0);
	wait_for(s, dumps_rest_for(s, 400)); /* the route is read every 100 ms at first */
	assert_int_equal(
		run("ip -n %s -6 route show %s | grep -q expires", s->bed->netns, net), 0);
	ip(s->bed, "-6 route del %s", net);
	wait_for(s, dumps_rest_for(s, 1000)); /* no dump must run when stop() is called */
	stop(s);
}

/* --- many, and too many --------------------------------------------------------------- */

static void
add_many(const struct scene *s, unsigned int n4, unsigned int n6)
{
	assert_int_equal(run("{ for i in $(seq 0 %u); do "
			     "echo route add 10.$((i / 256)).$((i %% 256)).0/24 "
			     "via 192.0.2.9; done; for i in $(seq 1 %u); do "
			     "printf 'route add 2001:db8:%%x::/48 via 2001:db8::9\\n' "
			     "$((i + 4096)); done; } | ip -n %s -batch -",
			     n4 - 1, n6, s->bed->netns),
			 0);
}

static void
a_dump_of_several_parts_shows_all(void **state)
{
	struct scene *s = scene_of(state);
	uint32_t n;

	add_many(s, 3000, 1500);
	start(s, ROUTES_FROM_BOTH);
	rig_settle(s->g);
	assert_int_equal(n_of(s, "10.11.183.0/24"), 1);
	assert_int_equal(n_of(s, "2001:db8:15dc::/48"), 1);
	n = s->g->rib->kroutes.n;
	assert_true(n > 4500);
	/* The dump of all protocols reads all routes, and removes none. */
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	rig_settle(s->g);
	assert_int_equal(s->g->rib->kroutes.n, n);
	assert_int_equal(s->g->rib->count.kernel_swept, 0);
	stop(s);
}

/*
 * If tables are large, rtnl reads all of them after the start and after a silent deletion.
 */
static void
beside_a_large_table_the_kernels_routes_come_and_go_as_ever(void **state)
{
	struct scene *s = scene_of(state);
	uint64_t zebras;

	assert_int_equal(
		run("for i in $(seq 0 %u); do echo route add "
		    "10.$((i / 256)).$((i %% 256)).0/24 via 192.0.2.9 proto bgp metric 20; "
		    "done | ip -n %s -batch -",
		    KERNEL_LARGE, s->bed->netns),
		0);
	ip(s->bed, "addr add 203.0.113.1/32 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 203.0.113.1");
	start(s, ROUTES_FROM_BOTH);
	rig_settle(s->g);
	assert_true(first_of(s, "192.0.2.0/24")->connected);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	wait_for(s, n_of(s, NET) == 1);
	zebras = count(&kernel_status.of_zebra);
	assert_true(zebras > KERNEL_LARGE);
	ip(s->bed, "addr del 203.0.113.1/32 dev t0");
	/* An event may delete the route before the dump. */
	wait_for(s, n_of(s, NET) == 0 &&
			    count(&kernel_status.of_zebra) > zebras + KERNEL_LARGE);
	assert_int_equal(n_of(s, "10.0.0.0/24"), 0); /* FPM has them */
	stop(s);
}

/* Events alone show that the tables have become large. */
static void
tables_that_become_large_are_read_whole(void **state)
{
	struct scene *s = started(state);
	uint64_t zebras;

	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	ip(s->bed, "route add 203.0.113.0/24 via 192.0.2.9 proto bgp metric 20");
	ip(s->bed, "addr add 203.0.113.1/32 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 203.0.113.1");
	add_many(s, KERNEL_LARGE + 100, 0);
	/* Some events may be lost. Then a dump of all tables follows. */
	wait_for(s, n_of(s, NET) == 1 &&
			    table_state(TABLE_routes).used > KERNEL_LARGE + 100 &&
			    atomic_load(&kernel_status.in_step) == 1);
	zebras = count(&kernel_status.of_zebra);
	ip(s->bed, "addr del 203.0.113.1/32 dev t0");
	/* An event may delete the route before the dump, which reads one route of zebra. */
	wait_for(s, n_of(s, NET) == 0 && count(&kernel_status.of_zebra) > zebras &&
			    atomic_load(&kernel_status.in_step) == 1);
	assert_int_equal(count(&kernel_status.of_zebra), zebras + 1);
	stop(s);
}

static void
after_a_large_checkpoint_the_tables_are_read_when_main_asks(void **state)
{
	struct scene *s = scene_of(state);

	ip(s->bed, "route add " NET " via 192.0.2.9");
	ip(s->bed, "rule add pref 100 to 203.0.113.0/24 prohibit");
	atomic_store(&kernel_status.restored, 1);
	start(s, ROUTES_FROM_BOTH);
	rig_settle(s->g);
	assert_false(rules_are_default(s->g->rib, 0)); /* the rules are read at once */
	assert_int_equal(n_of(s, NET), 0);
	assert_int_equal(atomic_load(&kernel_status.in_step), 0);
	ip(s->bed, "route add 198.18.0.0/24 via 192.0.2.9"); /* events come at once */
	wait_for(s, n_of(s, "198.18.0.0/24") == 1);
	assert_int_equal(n_of(s, NET), 0);
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	wait_for(s, n_of(s, NET) == 1);
	assert_true(first_of(s, "192.0.2.0/24")->connected);
	stop(s);
	atomic_store(&kernel_status.restored, 0);
}

/* A rule that was added and deleted before the start has split the tables of IPv4. */
static void
tables_that_linux_has_split_are_known(void **state)
{
	struct scene *s = scene_of(state);

	ip(s->bed, "rule add pref 77 lookup 100");
	ip(s->bed, "rule del pref 77");
	start(s, ROUTES_FROM_BOTH);
	wait_for(s, s->g->rib->rules.list[0].n == 3);
	assert_true(s->g->rib->kroutes.split4);
	stop(s);
}

/*
 * A rule splits the tables of IPv4 in Linux, even if it is deleted before the thread reads.
 */
static void
tables_are_split_by_the_first_rule(void **state)
{
	struct scene *s = started(state);

	wait_for(s, s->g->rib->rules.list[0].n == 3);
	assert_false(s->g->rib->kroutes.split4);
	ip(s->bed, "rule add pref 77 lookup 100");
	ip(s->bed, "rule del pref 77");
	wait_for(s, s->g->rib->kroutes.split4);
	stop(s);
}

static uint32_t
n_rules(const struct scene *s, unsigned int family6)
{
	const struct rule_list *list = &s->g->rib->rules.list[family6];

	return list->known ? list->n : UINT32_MAX;
}

static void
all_rules_deleted_are_an_empty_list(void **state)
{
	struct scene *s = scene_of(state);

	assert_int_equal(n_rules(s, 0), UINT32_MAX);
	assert_true(rules_are_default(s->g->rib, 0)); /* not known yet */
	ip(s->bed, "rule flush");
	ip(s->bed, "rule del pref 0");
	start(s, ROUTES_FROM_BOTH);
	wait_for(s, n_rules(s, 0) == 0);
	assert_false(rules_are_default(s->g->rib, 0));
	assert_true(s->g->rib->kroutes.split4);
	ip(s->bed, "rule add pref 0 lookup local");
	ip(s->bed, "rule add pref 32766 lookup main");
	wait_for(s, n_rules(s, 0) == 2);
	assert_true(rules_are_default(s->g->rib, 0));
	ip(s->bed, "rule del pref 32766");
	ip(s->bed, "rule del pref 0");
	wait_for(s, n_rules(s, 0) == 0);
	assert_false(rules_are_default(s->g->rib, 0));
	stop(s);
}

/*
 * Linux obeys the rules of IPv6 from the first rule that is added (fib6_has_custom_rules).
 */
static void
deleted_rules_of_ipv6_count_once_a_rule_was_added(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps;

	ip(s->bed, "link set t0 up");
	wait_for(s, n_rules(s, 1) == 2);
	for (unsigned int i = 0; i < 2; i++) {
		dumps = count(&kernel_status.dumps);
		ip(s->bed, "-6 rule del pref %u", i == 0 ? 32766u : 0u);
		wait_for(s, count(&kernel_status.dumps) >= dumps + 5);
		rig_settle(s->g);
		assert_int_equal(n_rules(s, 1), 2);
		assert_true(rules_are_default(s->g->rib, 1));
	}
	ip(s->bed, "-6 rule add pref 9 lookup 100");
	wait_for(s, n_rules(s, 1) == 1);
	ip(s->bed, "-6 rule del pref 9");
	wait_for(s, n_rules(s, 1) == 0);
	assert_false(rules_are_default(s->g->rib, 1));
	stop(s);
}

/*
 * The thread reads events before a dump that is due. It must not ignore that events were
 * lost.
 */
static void
lost_events_make_it_read_everything_again(void **state)
{
	struct scene *s = started(state);
	uint64_t overruns = count(&kernel_status.overruns);
	struct rtnl *r = s->rtnl.ctx;
	int small = 1;

	ip(s->bed, "route add " NET " via 192.0.2.9");
	ip(s->bed, "nexthop add id 5 via 192.0.2.9 dev t0");
	wait_for(s, n_of(s, NET) == 1 && nh_find(s->g->rib, nh_id_of_kernel(5)) != NULL);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	assert_int_equal(
		setsockopt(r->events, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	hold(s);
	add_many(s, 300, 100);
	ip(s->bed, "route del " NET);
	ip(s->bed, "nexthop del id 5");
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_for(s, count(&kernel_status.overruns) > overruns);
	/* The thread counts the overrun, and clears in_step only then. */
	wait_until(atomic_load(&kernel_status.in_step) == 0);
	release(s);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	wait_for(s, n_of(s, "10.1.43.0/24") == 1 && n_of(s, NET) == 0);
	assert_int_equal(n_of(s, "2001:db8:1064::/48"), 1);
	assert_null(nh_find(s->g->rib, nh_id_of_kernel(5)));
	stop(s);
}

/* Beside large tables the next dump of routes is not due for seconds: see DUMP_REST. */
static void
rules_are_read_at_once_after_lost_events(void **state)
{
	struct scene *s = started(state);
	uint64_t overruns = count(&kernel_status.overruns);
	struct rtnl *r = s->rtnl.ctx;
	int small = 1;

	wait_for(s, n_rules(s, 0) == 3 && atomic_load(&kernel_status.in_step) == 1);
	assert_int_equal(
		setsockopt(r->events, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	hold(s);
	r->next_resync_ms = monotonic_ms() + 3600000;
	add_many(s, 300, 100);
	ip(s->bed, "rule add pref 9 lookup 100");
	ip(s->bed, "rule del pref 32767");
	ip(s->bed, "rule add pref 8 lookup 100");
	release(s);
	wait_for(s, count(&kernel_status.overruns) > overruns);
	wait_for(s, n_rules(s, 0) == 4);
	assert_int_equal(atomic_load(&kernel_status.in_step), 0);
	assert_int_equal(s->g->rib->rules.list[0].v[1].pref, 8);
	stop(s);
}

static void
a_pause_in_a_dump_ends(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps;

	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	ip(s->bed, "route add " NET " via 192.0.2.9");
	wait_for(s, n_of(s, NET) == 1);
	hold(s);
	dumps = count(&kernel_status.dumps);
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_until(count(&kernel_status.dumps) > dumps); /* the first job is over */
	release(s);
	wait_for(s, count(&kernel_status.dumps) >= dumps + 3);
	ip(s->bed, "route del " NET);
	wait_for(s, n_of(s, NET) == 0);
	stop(s);
}

static void
new_links_cause_no_dump(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps;

	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	/*
	 * Cause a dump, and wait for it: it ends after the dumps that the start of t0
	 * caused.
	 */
	ip(s->bed, "addr add 203.0.113.1/32 dev t0");
	ip(s->bed, "route add " NET " via 192.0.2.9 src 203.0.113.1");
	wait_for(s, n_of(s, NET) == 1);
	ip(s->bed, "addr del 203.0.113.1/32 dev t0");
	wait_for(s, n_of(s, NET) == 0);
	rig_settle(s->g);
	dumps = count(&kernel_status.dumps);
	for (unsigned int i = 1; i <= 20; i++) {
		assert_int_equal(run("ip -n %s link add v%u type veth peer name w%u",
				     s->bed->netns, i, i),
				 0);
		assert_int_equal(run("ip -n %s route add 198.18.%u.0/24 via 192.0.2.9",
				     s->bed->netns, i),
				 0);
	}
	wait_for(s, n_of(s, "198.18.20.0/24") == 1);
	/* The deleted address caused a dump of some protocols, which may end late. */
	assert_in_range(count(&kernel_status.dumps), dumps, dumps + 20);
	stop(s);
}

/*
 * Linux answers the request for table local with ENOENT until an interface has an address.
 */
static void
a_namespace_without_addresses_has_complete_tables(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->bed = bed_of(state);
	s->g = rig_new();
	start(s, ROUTES_FROM_BOTH);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	assert_int_equal(atomic_load(&kernel_status.cut_now), 0);
	stop(s);
}

static void
a_missing_namespace_is_an_error_at_the_start(void **state)
{
	struct scene *s = scene_of(state);
	struct rtnl_conf conf = {.rib = &s->g->w, .netns = "no-such-namespace"};

	assert_int_equal(rtnl_setup(&s->rtnl, &conf), 0);
	assert_int_equal(worker_prepare(&s->rtnl), 0);
	assert_int_equal(worker_start(&s->rtnl), -ENOENT);
	stop(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(routes_of_the_start_are_there_before_the_threads_first_wait),
		bed_test(changes_come_as_events_in_the_kernels_order),
		bed_test(a_new_dump_comes_to_the_same_order),
		bed_test(routes_that_differ_in_their_source_are_several),
		bed_test(ipv6_routes_with_a_gateway_are_joined_those_by_objects_are_not),
		bed_test(the_source_of_routes_decides_which_are_told),
		bed_test(a_route_that_zebra_replaces_is_gone),
		bed_test(a_route_of_a_protocol_of_zebra_with_another_metric_is_passed_on),
		bed_test(a_route_of_a_tos_comes_whatever_its_protocol_is),
		bed_test(ipv4_routes_of_a_link_that_is_set_down_go),
		bed_test(routes_go_with_the_address_that_is_their_source),
		bed_test(ipv6_routes_go_when_ipv6_ends_on_their_link),
		bed_test(routes_of_advertisements_that_linux_joins_are_one_route),
		bed_test(a_route_between_the_next_hops_of_another_stays),
		bed_test(routes_go_with_their_next_hop_object),
		bed_test(routes_of_an_object_that_is_a_blackhole_follow_it),
		bed_test(a_route_with_a_limited_life_goes_when_it_is_over),
		bed_test(a_route_that_stays_expired_is_read_ever_less),
		bed_test(a_dump_of_several_parts_shows_all),
		bed_test(tables_that_linux_has_split_are_known),
		bed_test(tables_are_split_by_the_first_rule),
		bed_test(all_rules_deleted_are_an_empty_list),
		bed_test(deleted_rules_of_ipv6_count_once_a_rule_was_added),
		bed_test(lost_events_make_it_read_everything_again),
		bed_test(rules_are_read_at_once_after_lost_events),
		bed_test(a_pause_in_a_dump_ends),
		bed_test(beside_a_large_table_the_kernels_routes_come_and_go_as_ever),
		bed_test(tables_that_become_large_are_read_whole),
		bed_test(after_a_large_checkpoint_the_tables_are_read_when_main_asks),
		bed_test(new_links_cause_no_dump),
		bed_test(a_namespace_without_addresses_has_complete_tables),
		bed_test(a_missing_namespace_is_an_error_at_the_start),
	};

	return cmocka_run_group_tests_name("rtnl", tests, NULL, NULL);
}
