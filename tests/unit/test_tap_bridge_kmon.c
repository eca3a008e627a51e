/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor for links and addresses: the functions of kmon.h, checked with the
 * kernel.
 *
 * link: tap-bridge/
 */
#include <linux/rtnetlink.h>

#include "test_tap_bridge_model.h"

/* --- state when the monitor opens ----------------------------------------------------- */

static void
opening_reports_everything_that_is_there(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;

	bed_tap(bed);
	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "neigh add 192.0.2.2 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	m = watch(bed);

	assert_non_null(find_link(m, "lo"));
	assert_int_equal(find_link(m, "t0")->ifindex, bed->tap.ifindex);
	assert_int_equal(find_link(m, "t0")->mtu_bytes, 1500);
	assert_true(find_link(m, "t0")->admin_up);
	assert_memory_equal(find_link(m, "t0")->mac, mac_a, 6);
	assert_int_equal(find_addr(m, "192.0.2.1", 24)->ifindex, bed->tap.ifindex);
	assert_memory_equal(find_addr(m, "192.0.2.1", 24)->peer, ip_octets("192.0.2.1"),
			    16);
	assert_true(neigh_is(m, "192.0.2.2", NUD_PERMANENT, mac_b));
	unwatch(m);
}

static void
opening_in_a_namespace_that_is_not_there_is_enoent(void **state)
{
	int before = n_open_descriptors();
	struct kmon *km;

	bed_of(state);
	assert_int_equal(kmon_open(&km, "tb-no-such", &all_ops, NULL), -ENOENT);
	assert_int_equal(n_open_descriptors(), before);
}

static void
closing_leaks_no_descriptor(void **state)
{
	struct bed *bed = bed_of(state);
	int before = n_open_descriptors();

	unwatch(watch(bed));
	assert_int_equal(n_open_descriptors(), before);
}

static void
a_kind_without_a_callback_is_left_out(void **state)
{
	struct kmon_ops links_only = {.on_link = on_link};
	struct bed *bed = bed_of(state);
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	assert_int_equal(kmon_open(&m->km, bed->netns, &links_only, m), 0);
	bed_tap(bed);
	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "neigh add 192.0.2.2 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	ip(bed, "link set t0 mtu 1400");
	eventually(m, find_link(m, "t0") != NULL && find_link(m, "t0")->mtu_bytes == 1400);

	assert_int_equal(kmon_resync(m->km), 0);
	assert_int_equal(m->n_addrs + m->n_neighs, 0);
	unwatch(m);
}

/* --- forwarding ----------------------------------------------------------------------- */

static void
forwarding_of_one_and_of_all_is_followed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;
	unsigned int t0;

	bed_tap(bed);
	t0 = bed->tap.ifindex;
	bed_sysctl(bed, "ipv4/conf/all/forwarding", "0");
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "1");
	bed_sysctl(bed, "ipv6/conf/all/forwarding", "1");
	m = watch(bed);
	assert_true(is_forwarding(m, t0, 4) && !is_forwarding(m, KMON_CONF_ALL, 4));
	assert_true(is_forwarding(m, t0, 6) && is_forwarding(m, KMON_CONF_ALL, 6));

	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "0");
	bed_sysctl(bed, "ipv6/conf/all/forwarding", "0");
	eventually(m, !is_forwarding(m, t0, 4) && !is_forwarding(m, t0, 6));
	assert_false(is_forwarding(m, KMON_CONF_ALL, 6));

	bed_sysctl(bed, "ipv4/conf/t0/proxy_arp", "1"); /* not of interest: no report */
	bed_sysctl(bed, "ipv4/conf/all/forwarding", "1");
	eventually(m, is_forwarding(m, t0, 4) && is_forwarding(m, KMON_CONF_ALL, 4));
	unwatch(m);
}

/*
 * A message of the kernel has one of the two settings. It leaves the other setting as it
 * was.
 */
static void
routes_by_links_without_carrier_are_followed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;
	unsigned int t0;

	bed_tap(bed);
	t0 = bed->tap.ifindex;
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "1");
	bed_sysctl(bed, "ipv4/conf/t0/ignore_routes_with_linkdown", "1");
	m = watch(bed);
	assert_true(ignores_linkdown(m, t0, 4) && !ignores_linkdown(m, t0, 6));
	bed_sysctl(bed, "ipv4/conf/t0/ignore_routes_with_linkdown", "0");
	eventually(m, !ignores_linkdown(m, t0, 4));
	assert_true(is_forwarding(m, t0, 4));
	bed_sysctl(bed, "ipv4/conf/all/ignore_routes_with_linkdown", "1");
	bed_sysctl(bed, "ipv6/conf/all/ignore_routes_with_linkdown", "1");
	eventually(m, ignores_linkdown(m, KMON_CONF_ALL, 4) && ignores_linkdown(m, t0, 6));
	assert_false(ignores_linkdown(m, t0, 4));
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "0");
	bed_sysctl(bed, "ipv6/conf/t0/forwarding", "1");
	eventually(m, !is_forwarding(m, t0, 4) && is_forwarding(m, t0, 6));
	assert_true(ignores_linkdown(m, t0, 6));
	unwatch(m);
}

/*
 * kmon reports the value of the link and the value for all; the user takes the larger one.
 */
static void
rp_filter_is_followed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;
	unsigned int t0;

	bed_tap(bed);
	t0 = bed->tap.ifindex;
	bed_sysctl(bed, "ipv4/conf/all/rp_filter", "0");
	bed_sysctl(bed, "ipv4/conf/t0/rp_filter", "1");
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "1");
	m = watch(bed);
	assert_int_equal(rp_filter(m, t0), 1);
	assert_int_equal(rp_filter(m, KMON_CONF_ALL), 0);
	bed_sysctl(bed, "ipv4/conf/t0/rp_filter", "2");
	bed_sysctl(bed, "ipv4/conf/all/rp_filter", "1");
	eventually(m, rp_filter(m, t0) == 2 && rp_filter(m, KMON_CONF_ALL) == 1);
	assert_true(is_forwarding(m, t0, 4));
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "0");
	bed_sysctl(bed, "ipv4/conf/t0/rp_filter", "0");
	eventually(m, !is_forwarding(m, t0, 4) && rp_filter(m, t0) == 0);
	unwatch(m);
}

/* The kernel reports the sysctls of a new link once, and before the link. */
static void
forwarding_of_a_new_link_is_reported_with_it(void **state)
{
	struct bed *bed = bed_of(state);
	const struct kmon_link *f0, *f2;
	struct model *m;

	bed_sysctl(bed, "ipv4/conf/default/forwarding", "0");
	m = watch(bed);
	ip(bed, "link add f0 type veth peer name f1");
	bed_sysctl(bed, "ipv4/conf/default/forwarding", "1");
	ip(bed, "link add f2 type veth peer name f3");
	eventually(m, find_link(m, "f3") != NULL);

	f0 = find_link(m, "f0");
	f2 = find_link(m, "f2");
	assert_non_null(conf_like(m, f0->ifindex, 4));
	assert_false(is_forwarding(m, f0->ifindex, 4));
	assert_true(is_forwarding(m, f2->ifindex, 4));
	assert_non_null(conf_like(m, f2->ifindex, 6));
	ip(bed, "link del f0");
	eventually(m, find_link(m, "f1") == NULL && find_link(m, "f0") == NULL);
	unwatch(m);
}

/* --- IPv6 of links -------------------------------------------------------------------- */

/*
 * Read the IPv6 settings of all links again. Return those of a link. NULL: it has no IPv6.
 */
static const struct kmon_inet6 *
inet6_read(struct model *m, unsigned int ifindex)
{
	assert_int_equal(kmon_read_inet6(m->km), 0);
	return inet6_of(m, ifindex);
}

static void
ipv6_of_a_link_is_read_on_demand(void **state)
{
	struct bed *bed = bed_of(state);
	unsigned int t0;
	struct model *m;

	bed_tap(bed);
	t0 = bed->tap.ifindex;
	m = watch(bed);
	assert_false(inet6_of(m, t0)->off);
	assert_int_equal(inet6_of(m, t0)->mtu_bytes, 1500);

	bed_sysctl(bed, "ipv6/conf/t0/mtu", "1400");
	assert_int_equal(inet6_read(m, t0)->mtu_bytes, 1400);
	if (access("/proc/sys/net/ipv6/conf/all/force_forwarding", F_OK) == 0) {
		assert_false(inet6_of(m, t0)->force_forwarding);
		bed_sysctl(bed, "ipv6/conf/t0/force_forwarding", "1");
		assert_true(inet6_read(m, t0)->force_forwarding);
		bed_sysctl(bed, "ipv6/conf/t0/force_forwarding", "0");
		assert_false(inet6_read(m, t0)->force_forwarding);
	}
	bed_sysctl(bed, "ipv6/conf/all/disable_ipv6", "1");
	assert_true(inet6_read(m, t0)->off);
	bed_sysctl(bed, "ipv6/conf/t0/disable_ipv6", "0");
	assert_false(inet6_read(m, t0)->off);
	ip(bed, "link set t0 mtu 1279");
	assert_null(inet6_read(m, t0));
	ip(bed, "link set t0 mtu 1480");
	assert_int_equal(inet6_read(m, t0)->mtu_bytes, 1480);
	unwatch(m);
}

static void
events_that_may_tell_of_a_change_suggest_to_read_ipv6(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;

	bed_tap(bed);
	m = watch(bed);
	assert_int_equal(kmon_read_inet6(m->km), 0);
	assert_false(kmon_inet6_is_due(m->km));
	ip(bed, "addr add 2001:db8::1/64 dev t0 nodad");
	eventually(m, find_addr(m, "2001:db8::1", 64) != NULL);
	assert_false(kmon_inet6_is_due(m->km));
	ip(bed, "addr del 2001:db8::1/64 dev t0");
	eventually(m, kmon_inet6_is_due(m->km));
	assert_int_equal(kmon_read_inet6(m->km), 0);
	assert_false(kmon_inet6_is_due(m->km));
	ip(bed, "link set t0 mtu 1400");
	eventually(m, kmon_inet6_is_due(m->km));
	unwatch(m);
}

/*
 * The message has the settings, so that the kernel's tables need not be read for each of
 * many new links.
 */
static void
the_message_about_a_new_link_has_its_ipv6(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;

	bed_tap(bed);
	m = watch(bed);
	assert_int_equal(kmon_read_inet6(m->km), 0);
	ip(bed, "link add v0 type veth peer name v1");
	eventually(m, find_link(m, "v0") != NULL && find_link(m, "v1") != NULL);
	assert_false(kmon_inet6_is_due(m->km));
	assert_int_equal(inet6_of(m, find_link(m, "v0")->ifindex)->mtu_bytes, 1500);
	ip(bed, "link del v0");
	eventually(m, find_link(m, "v0") == NULL && find_link(m, "v1") == NULL);
	assert_false(kmon_inet6_is_due(m->km));
	unwatch(m);
}

/* --- links ---------------------------------------------------------------------------- */

static void
carrier_follows_tap_carrier(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	assert_int_equal(tap_carrier(&bed->tap, false), 0);
	eventually(m, !find_link(m, "t0")->carrier);
	assert_true(find_link(m, "t0")->admin_up);
	assert_int_equal(tap_carrier(&bed->tap, true), 0);
	eventually(m, find_link(m, "t0")->carrier);
	unwatch(m);
}

/* tests/system/test_tap.py checks that the kernel announces the operstate, and when. */
static void
operstate_of_an_existing_link(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	assert_int_equal(kmon_operstate(m->km, bed->tap.ifindex, false), 0);
	assert_int_equal(kmon_operstate(m->km, bed->tap.ifindex, true), 0);
	assert_true(find_link(m, "t0")->admin_up);
	assert_int_equal(kmon_operstate(m->km, 9999, true), -ENODEV);
	unwatch(m);
}

static void
a_rename_is_the_same_link_with_another_name(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "link set t0 down");
	ip(bed, "link set t0 name t9");
	eventually(m, find_link(m, "t9") != NULL);

	assert_int_equal(find_link(m, "t9")->ifindex, bed->tap.ifindex);
	assert_null(find_link(m, "t0"));
	assert_int_equal(m->n_links_gone, 0);
	unwatch(m);
}

static void
mac_mtu_and_admin_state_are_followed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "link set t0 mtu 1400 address 02:00:5e:00:53:0b");
	ip(bed, "link set t0 down");
	eventually(m, !find_link(m, "t0")->admin_up);

	assert_int_equal(find_link(m, "t0")->mtu_bytes, 1400);
	assert_memory_equal(find_link(m, "t0")->mac, mac_b, 6);
	unwatch(m);
}

static void
a_deleted_link_goes_after_its_addresses(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	unsigned int ifindex = bed->tap.ifindex;

	ip(bed, "neigh add 192.0.2.2 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	eventually(m, find_neigh(m, "192.0.2.2") != NULL);
	assert_int_equal(tap_destroy(&bed->tap), 0);
	eventually(m, find_link(m, "t0") == NULL);

	/* The model notes a wrong order. */
	assert_true(is_bare(m, ifindex));
	unwatch(m);
}

static void
leaving_a_bridge_is_not_leaving(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;

	if (run("ip -n %s link add br0 type bridge 2>/dev/null", bed->netns) != 0) {
		print_message("skipped: no bridge in this kernel\n");
		skip();
	}
	m = watched_tap(bed);
	ip(bed, "link set t0 master br0");
	ip(bed, "link set t0 nomaster");
	ip(bed, "link set t0 mtu 1400");
	eventually(m, find_link(m, "t0")->mtu_bytes == 1400);

	assert_int_equal(m->n_links_gone, 0);
	assert_non_null(find_addr(m, "192.0.2.1", 24));
	unwatch(m);
}

/* --- addresses ------------------------------------------------------------------------ */

static void
addresses_come_and_go(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "addr add 198.51.100.1/25 dev t0");
	ip(bed, "addr add 2001:db8:1::1/64 dev t0 nodad");
	eventually(m,
		   find_addr(m, "198.51.100.1", 25) && find_addr(m, "2001:db8:1::1", 64));
	assert_int_equal(find_addr(m, "198.51.100.1", 25)->family, 4);
	assert_int_equal(find_addr(m, "2001:db8:1::1", 64)->family, 6);

	ip(bed, "addr del 198.51.100.1/25 dev t0");
	ip(bed, "addr del 2001:db8:1::1/64 dev t0");
	eventually(m,
		   !find_addr(m, "198.51.100.1", 25) && !find_addr(m, "2001:db8:1::1", 64));
	unwatch(m);
}

static void
an_ipv6_address_is_tentative_until_dad_is_done(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	/*
	 * Duplicate address detection takes at least 2 s, so that the test sees the address
	 * before it is complete.
	 */
	bed_sysctl(bed, "ipv6/neigh/t0/retrans_time_ms", "2000");
	bed_sysctl(bed, "ipv6/conf/t0/accept_dad", "1");
	ip(bed, "addr add 2001:db8:2::1/64 dev t0");
	eventually(m, find_addr(m, "2001:db8:2::1", 64) != NULL);
	assert_true(find_addr(m, "2001:db8:2::1", 64)->tentative);
	eventually(m, !find_addr(m, "2001:db8:2::1", 64)->tentative);
	unwatch(m);
}

static void
one_ipv4_address_with_two_masks_is_two(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "addr add 192.0.2.1/28 dev t0");
	ip(bed, "addr add 192.0.2.7/24 dev t0");
	eventually(m, find_addr(m, "192.0.2.1", 28) && find_addr(m, "192.0.2.7", 24));
	assert_true(find_addr(m, "192.0.2.7", 24)->secondary);
	assert_non_null(find_addr(m, "192.0.2.1", 24));

	ip(bed, "addr del 192.0.2.1/28 dev t0");
	eventually(m, find_addr(m, "192.0.2.1", 28) == NULL);
	assert_non_null(find_addr(m, "192.0.2.1", 24));
	unwatch(m);
}

static void
a_peer_differs_from_the_address(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "addr add 203.0.113.1 peer 203.0.113.2/32 dev t0");
	ip(bed, "addr add 2001:db8:3::1 peer 2001:db8:3::2/128 dev t0 nodad");
	eventually(m,
		   find_addr(m, "203.0.113.1", 32) && find_addr(m, "2001:db8:3::1", 128));

	assert_memory_equal(find_addr(m, "203.0.113.1", 32)->peer, ip_octets("203.0.113.2"),
			    16);
	assert_memory_equal(find_addr(m, "2001:db8:3::1", 128)->peer,
			    ip_octets("2001:db8:3::2"), 16);
	unwatch(m);
}

static void
an_ipv6_peer_exchanged_in_place_leaves_no_old_one(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	size_t n_before = m->n_addrs;

	ip(bed, "addr add 2001:db8:3::1 peer 2001:db8:3::2/128 dev t0 nodad");
	eventually(m, find_addr(m, "2001:db8:3::1", 128) != NULL);
	ip(bed, "addr change 2001:db8:3::1 peer 2001:db8:3::3/128 dev t0 nodad");
	eventually(m, memcmp(find_addr(m, "2001:db8:3::1", 128)->peer,
			     ip_octets("2001:db8:3::3"), 16) == 0);

	assert_int_equal(m->n_addrs, n_before + 1);
	assert_model_is_the_kernels(m, bed);
	unwatch(m);
}

/*
 * Linux sends a message of up to 144 KiB about a port of a bridge with many VNIs. Here the
 * test sends a datagram of this size. The monitor ignores its content, because it is not
 * from the kernel.
 */
static void
a_large_message_loses_no_events(void **state)
{
	static struct {
		struct nlmsghdr head;
		uint8_t rest[(144 << 10) - sizeof(struct nlmsghdr)];
	} message = {.head = {.nlmsg_len = sizeof(message), .nlmsg_type = RTM_NEWLINK}};
	struct bed *bed = bed_of(state);
	struct model *m = watch(bed);
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	socklen_t len = sizeof(to);
	struct kmon_stats before, after;
	int fd = netns_socket(bed->netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(kmon_fd(m->km), (struct sockaddr *)&to, &len), 0);
	kmon_stats(m->km, &before);
	assert_int_equal(sendto(fd, &message, sizeof(message), 0, (struct sockaddr *)&to,
				sizeof(to)),
			 sizeof(message));
	close(fd);
	assert_int_equal(kmon_dispatch(m->km), 0);
	kmon_stats(m->km, &after);
	assert_int_equal(after.resyncs, before.resyncs);
	unwatch(m);
}

/*
 * Without a mask of extensions Linux ends a list of links at a message of more than 32 KiB,
 * and reports success. Alternative names make the message large, as source MACs of a
 * macvlan do.
 */
static void
a_link_with_a_large_message_hides_no_other(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m;

	bed_tap(bed);
	ip(bed, "link add br9 type bridge");
	assert_int_equal(run("for n in $(seq 400); do printf 'link property add dev t0 "
			     "altname %%0120d\\n' $n; done | ip -n %s -batch -",
			     bed->netns),
			 0);
	m = watch(bed);
	assert_non_null(find_link(m, "t0"));
	assert_non_null(find_link(m, "br9"));
	assert_false(kmon_is_lost(m->km));

	ip(bed, "link set t0 mtu 1400");
	eventually(m, find_link(m, "t0") != NULL && find_link(m, "t0")->mtu_bytes == 1400);
	assert_non_null(find_link(m, "br9"));
	assert_false(kmon_is_lost(m->km));
	assert_model_is_the_kernels(m, bed);
	unwatch(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(opening_reports_everything_that_is_there),
		bed_test(opening_in_a_namespace_that_is_not_there_is_enoent),
		bed_test(closing_leaks_no_descriptor),
		bed_test(a_kind_without_a_callback_is_left_out),
		bed_test(forwarding_of_one_and_of_all_is_followed),
		bed_test(routes_by_links_without_carrier_are_followed),
		bed_test(rp_filter_is_followed),
		bed_test(forwarding_of_a_new_link_is_reported_with_it),
		bed_test(ipv6_of_a_link_is_read_on_demand),
		bed_test(events_that_may_tell_of_a_change_suggest_to_read_ipv6),
		bed_test(the_message_about_a_new_link_has_its_ipv6),
		bed_test(carrier_follows_tap_carrier),
		bed_test(operstate_of_an_existing_link),
		bed_test(a_rename_is_the_same_link_with_another_name),
		bed_test(mac_mtu_and_admin_state_are_followed),
		bed_test(a_deleted_link_goes_after_its_addresses),
		bed_test(leaving_a_bridge_is_not_leaving),
		bed_test(addresses_come_and_go),
		bed_test(an_ipv6_address_is_tentative_until_dad_is_done),
		bed_test(one_ipv4_address_with_two_masks_is_two),
		bed_test(a_peer_differs_from_the_address),
		bed_test(an_ipv6_peer_exchanged_in_place_leaves_no_old_one),
		bed_test(a_large_message_loses_no_events),
		bed_test(a_link_with_a_large_message_hides_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
