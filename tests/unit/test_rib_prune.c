/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops that BFD has found dead: groups leave them out, and take them back.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#define MAC_1 0x020000000001
#define MAC_2 0x020000000002

#define BOTH   "192.0.2.129@2*2048 192.0.2.1@1*2048"
#define BOTH_6 "fe80::1@1*2048 fe80::2@2*2048"
#define ALL_6  "2001:db8:1::1@1*2048 fe80::1@1*1024 fe80::1@2*1024"

/* Send rib the message of thread bfd that a next hop is dead or alive. Run no round. */
static void
bfd_tells(struct rig *g, const char *gw, uint32_t ifindex, bool dead)
{
	struct msg_bfd_hop *m = msg_new(MSG_BFD_HOP, sizeof(*m));
	struct prefix p = rig_prefix(gw);

	m->ifindex = ifindex;
	m->family = p.family;
	m->addr = p.addr;
	m->dead = dead;
	rib_on_msg(g->rib, &m->m);
}

static void
bfd_says(struct rig *g, const char *gw, uint32_t ifindex, bool dead)
{
	bfd_tells(g, gw, ifindex, dead);
	rig_go(g);
}

/* Send rib the message that the device with this MAC address is dead or alive. */
static void
bfd_says_device(struct rig *g, uint64_t mac, uint32_t ifindex, bool dead)
{
	struct msg_bfd_hop *m = msg_new(MSG_BFD_HOP, sizeof(*m));

	m->ifindex = ifindex;
	m->addr = ipaddr_of_mac(mac);
	m->dead = dead;
	rib_on_msg(g->rib, &m->m);
	rig_go(g);
}

/* Make a route with two next hops, one by each port. */
static struct rig *
two_paths(void)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 3, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 3);
	rig_go(g);
	assert_seen(g, "198.51.100.1", BOTH);
	return g;
}

static void
a_dead_next_hop_leaves_its_group_and_comes_back(void **state)
{
	struct rig *g = two_paths();

	bfd_says(g, "192.0.2.1", 11, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	bfd_says(g, "192.0.2.1", 11, true); /* again changes nothing */
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	bfd_says(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", BOTH);
	bfd_says(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", BOTH);
	rig_free(g);
}

static void
only_the_address_on_its_interface_is_dead(void **state)
{
	struct rig *g = two_paths();

	bfd_says(g, "192.0.2.1", 12, true);
	bfd_says(g, "192.0.2.129", 11, true);
	bfd_says(g, "192.0.2.2", 11, true);
	bfd_says(g, "2001:db8:1::1", 11, true);
	assert_seen(g, "198.51.100.1", BOTH);
	rig_free(g);
}

static void
when_all_are_dead_all_stay(void **state)
{
	struct rig *g = two_paths();

	bfd_says(g, "192.0.2.1", 11, true);
	bfd_says(g, "192.0.2.129", 12, true);
	assert_seen(g, "198.51.100.1", BOTH);
	bfd_says(g, "192.0.2.129", 12, false);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

static void
a_single_next_hop_that_is_dead_keeps_forwarding(void **state)
{
	struct rig *g = two_paths();

	rig_route(g, "203.0.113.0/24", 1);
	rig_go(g);
	bfd_says(g, "192.0.2.1", 11, true);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_free(g);
}

static void
a_route_that_comes_later_knows_of_the_dead_next_hop(void **state)
{
	struct rig *g = two_paths();

	/* The adjacency ends with its last route, and is made again. */
	bfd_says(g, "192.0.2.1", 11, true);
	rig_del(g, "198.51.100.0/24");
	rig_nh_del(g, 3);
	rig_nh_del(g, 1);
	rig_go(g);
	rig_settle(g);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_group(g, 3, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 3);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	bfd_says(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", BOTH);
	rig_free(g);
}

static void
a_neighbor_that_answers_does_not_revive_what_bfd_found_dead(void **state)
{
	struct rig *g = two_paths();

	bfd_says(g, "192.0.2.1", 11, true);
	rig_alive(g, "192.0.2.1", 11, false);
	rig_alive(g, "192.0.2.1", 11, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	bfd_says(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", BOTH);
	/*
	 * The opposite case: a next hop that BFD reports alive stays failed while ARP has
	 * failed.
	 */
	bfd_says(g, "192.0.2.1", 11, true);
	rig_alive(g, "192.0.2.1", 11, false);
	bfd_says(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

static void
a_link_that_goes_down_is_worse_than_a_dead_next_hop(void **state)
{
	struct rig *g = two_paths();

	bfd_says(g, "192.0.2.1", 11, true);
	rig_link(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

/*
 * One link-local address is a next hop on two interfaces. BFD finds it dead on one of them.
 */
static void
a_dead_next_hop_of_ipv6_leaves_its_group_and_comes_back(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "fe80::1", 11);
	rig_hop(g, 2, "fe80::1", 12);
	rig_hop(g, 3, "2001:db8:1::1", 11);
	rig_group(g, 4, 3, 1, 1, 2, 1, 3, 2);
	rig_route(g, "2001:db8:64::/48", 4);
	rig_go(g);
	assert_seen(g, "2001:db8:64::1", ALL_6);
	bfd_says(g, "fe80::1", 11, true);
	assert_seen(g, "2001:db8:64::1", "2001:db8:1::1@1*2752 fe80::1@2*1344");
	bfd_says(g, "fe80::1", 12, true);
	assert_seen(g, "2001:db8:64::1", "2001:db8:1::1@1");
	bfd_says(g, "fe80::1", 11, false);
	assert_seen(g, "2001:db8:64::1", "2001:db8:1::1@1*2752 fe80::1@1*1344");
	bfd_says(g, "2001:db8:1::1", 11, true);
	assert_seen(g, "2001:db8:64::1", "fe80::1@1");
	bfd_says(g, "fe80::1", 12, false);
	bfd_says(g, "2001:db8:1::1", 11, false);
	assert_seen(g, "2001:db8:64::1", ALL_6);
	rig_free(g);
}

/* Make an IPv6 route with a link-local next hop by each port. */
static struct rig *
two_paths_of_ipv6(void)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "fe80::1", 11);
	rig_hop(g, 2, "fe80::2", 12);
	rig_group(g, 3, 2, 1, 1, 2, 1);
	rig_route(g, "2001:db8:64::/48", 3);
	rig_go(g);
	rig_mac(g, "fe80::1", 11, MAC_1);
	rig_mac(g, "fe80::2", 12, MAC_2);
	assert_seen(g, "2001:db8:64::1", BOTH_6);
	return g;
}

/* BGP has the session by the global address, and routes by the link-local address. */
static void
a_dead_device_takes_its_ipv6_next_hops_out_of_the_group(void **state)
{
	struct rig *g = two_paths_of_ipv6();

	bfd_says_device(g, MAC_1, 12, true); /* another interface */
	bfd_says_device(g, 0x020000000009, 11, true);
	assert_seen(g, "2001:db8:64::1", BOTH_6);
	bfd_says_device(g, MAC_1, 11, true);
	assert_seen(g, "2001:db8:64::1", "fe80::2@2");
	/* The address of the next hop has a session, too. Both must be alive. */
	bfd_says(g, "fe80::1", 11, true);
	bfd_says_device(g, MAC_1, 11, false);
	assert_seen(g, "2001:db8:64::1", "fe80::2@2");
	bfd_says(g, "fe80::1", 11, false);
	assert_seen(g, "2001:db8:64::1", BOTH_6);
	rig_free(g);
}

static void
a_dead_device_is_known_by_the_mac_address_of_now(void **state)
{
	struct rig *g = two_paths_of_ipv6();

	bfd_says_device(g, MAC_1, 11, true);
	/* The neighbor fails, and is resolved again. */
	rig_alive(g, "fe80::1", 11, false);
	rig_alive(g, "fe80::1", 11, true);
	assert_seen(g, "2001:db8:64::1", "fe80::2@2");
	/* Another device takes over the address. */
	rig_mac(g, "fe80::1", 11, 0x020000000003);
	assert_seen(g, "2001:db8:64::1", BOTH_6);
	rig_mac(g, "fe80::1", 11, MAC_1);
	assert_seen(g, "2001:db8:64::1", "fe80::2@2");
	/* The adjacency ends with its last route, and is made again. */
	rig_del(g, "2001:db8:64::/48");
	rig_nh_del(g, 3);
	rig_nh_del(g, 1);
	rig_go(g);
	rig_settle(g);
	bfd_says_device(g, MAC_1, 11, false);
	bfd_says_device(g, MAC_1, 11, true);
	rig_hop(g, 1, "fe80::1", 11);
	rig_group(g, 3, 2, 1, 1, 2, 1);
	rig_route(g, "2001:db8:64::/48", 3);
	rig_go(g);
	rig_mac(g, "fe80::1", 11, MAC_1);
	assert_seen(g, "2001:db8:64::1", "fe80::2@2");
	rig_free(g);
}

static void
a_dead_device_of_ipv6_keeps_its_ipv4_next_hops(void **state)
{
	struct rig *g = two_paths();

	rig_mac(g, "192.0.2.1", 11, MAC_1);
	bfd_says_device(g, MAC_1, 11, true);
	assert_seen(g, "198.51.100.1", BOTH);
	rig_free(g);
}

static void
thousands_of_dead_next_hops_come_and_go(void **state)
{
	struct rig *g = two_paths();
	char gw[32];

	for (unsigned int turn = 0; turn < 2; turn++) {
		for (unsigned int i = 0; i < 4000; i++) {
			snprintf(gw, sizeof(gw), "10.0.%u.%u", i / 250, 1 + i % 250);
			bfd_tells(g, gw, 11, true);
		}
		bfd_says(g, "192.0.2.1", 11, true);
		assert_seen(g, "198.51.100.1", "192.0.2.129@2");
		for (unsigned int i = 0; i < 4000; i++) {
			snprintf(gw, sizeof(gw), "10.0.%u.%u", i / 250, 1 + i % 250);
			bfd_tells(g, gw, 11, false);
		}
		assert_seen(g, "198.51.100.1", "192.0.2.129@2");
		bfd_says(g, "192.0.2.1", 11, false);
		assert_seen(g, "198.51.100.1", BOTH);
	}
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_next_hop_leaves_its_group_and_comes_back),
		cmocka_unit_test(only_the_address_on_its_interface_is_dead),
		cmocka_unit_test(when_all_are_dead_all_stay),
		cmocka_unit_test(a_single_next_hop_that_is_dead_keeps_forwarding),
		cmocka_unit_test(a_route_that_comes_later_knows_of_the_dead_next_hop),
		cmocka_unit_test(
			a_neighbor_that_answers_does_not_revive_what_bfd_found_dead),
		cmocka_unit_test(a_link_that_goes_down_is_worse_than_a_dead_next_hop),
		cmocka_unit_test(a_dead_next_hop_of_ipv6_leaves_its_group_and_comes_back),
		cmocka_unit_test(a_dead_device_takes_its_ipv6_next_hops_out_of_the_group),
		cmocka_unit_test(a_dead_device_is_known_by_the_mac_address_of_now),
		cmocka_unit_test(a_dead_device_of_ipv6_keeps_its_ipv4_next_hops),
		cmocka_unit_test(thousands_of_dead_next_hops_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
