/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel reports thousands of links one by one. The work of neigh must grow with the
 * number of links, not with its square. For N links and for 2 N links, a test counts the
 * records that neigh visits, the interfaces that it publishes and the tables that it makes.
 * The test plays the kernel.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "fib/tunnel.h"
#include "fib/vxlan.h"
#include "neigh_bed.h"

#define N     100u
#define FIRST 1000u /* ifindex */

static struct kmon_link
named(uint32_t ifindex, const char *word, uint32_t i)
{
	struct kmon_link l = link_of(ifindex, "");

	snprintf(l.name, sizeof(l.name), "%s%u", word, i);
	return l;
}

/* Report a link in a round of its own. */
static void
link_said(struct kmon_link l, bool gone)
{
	tell(&l, gone);
	round_over();
}

static void
neighbor_said(uint32_t ifindex, uint32_t i, bool gone)
{
	struct kmon_neigh kn = {.ifindex = ifindex,
				.family = 4,
				.mac = {2, 0, 0x5e, 0, 0x53, 0x99},
				.has_mac = !gone,
				.nud = gone ? 0 : NUD_NOARP};

	put_be32(kn.addr, 0x0a000000u + i);
	monitor.ops.on_neigh(monitor.ctx, &kn, gone);
	round_over();
}

static void
address_said(uint32_t ifindex, uint32_t i, bool gone)
{
	struct kmon_addr ka = {.ifindex = ifindex, .family = 4, .plen = 30};

	put_be32(ka.addr, 0x0a000001u + 4 * i);
	memcpy(ka.peer, ka.addr, sizeof(ka.peer));
	monitor.ops.on_addr(monitor.ctx, &ka, gone);
	round_over();
}

/* --- links, made and removed ---------------------------------------------------------- */

static struct kmon_link
tunnel_of(uint32_t i)
{
	struct kmon_link l = named(FIRST + i, "t", i);

	memset(l.mac, 0, sizeof(l.mac));
	l.tunnel = (struct kmon_tunnel){.kind = KMON_GRE, .family = 4, .link = TAP};
	put_be32(l.tunnel.local, 0xc0000201u);
	put_be32(l.tunnel.remote, 0x0a000000u + i);
	return l;
}

static void
a_tunnel(uint32_t i, bool gone)
{
	link_said(tunnel_of(i), gone);
}

/* A bridge over a vxlan device, with a neighbor behind it and an entry for its MAC. */
static void
a_vni(uint32_t i, bool gone)
{
	struct kmon_link bridge = named(FIRST + 2 * i, "br", i),
			 vxlan = named(FIRST + 1 + 2 * i, "vx", i);
	struct kmon_fdb kf = {
		.ifindex = vxlan.ifindex, .mac = {2, 0, 0x5e, 0, 0x53, 0x99}, .family = 4};

	bridge.bridge = true;
	vxlan.master = bridge.ifindex;
	vxlan.tunnel = (struct kmon_tunnel){
		.kind = KMON_VXLAN, .family = 4, .vni = 5000 + i, .port = 4789};
	put_be32(vxlan.tunnel.local, 0xcb007101u);
	put_be32(kf.remote, 0xcb007142u);
	if (gone) {
		neighbor_said(bridge.ifindex, i, true);
		link_said(vxlan, true);
		link_said(bridge, true);
		return;
	}
	link_said(bridge, false);
	link_said(vxlan, false);
	neighbor_said(bridge.ifindex, i, false);
	monitor.ops.on_fdb(monitor.ctx, &kf, false);
	round_over();
}

/* A VLAN on a bridge with a single vxlan device. The device maps the VLAN to a VNI. */
static void
a_vlan_with_a_vni(uint32_t i, bool gone)
{
	struct kmon_link bridge = named(FIRST, "br", 0), vxlan = named(FIRST + 1, "vx", 0);
	struct kmon_link vlan = vlan_of(FIRST + 2 + i, FIRST, 0x8100, (uint16_t)(i + 1));
	struct kmon_vni kv = {
		.ifindex = FIRST + 1, .vlan = (uint16_t)(i + 1), .vni = 5000 + i};
	struct kmon_fdb kf = {.ifindex = FIRST + 1,
			      .mac = {2, 0, 0x5e, 0, 0x53, 0x99},
			      .from_vni = 5000 + i,
			      .family = 4};

	bridge.bridge = bridge.vlan_filtering = true;
	vxlan.master = FIRST;
	vxlan.tunnel = (struct kmon_tunnel){
		.kind = KMON_VXLAN, .family = 4, .external = true, .port = 4789};
	put_be32(vxlan.tunnel.local, 0xcb007101u);
	if (i == 0 && !gone) {
		link_said(bridge, false);
		link_said(vxlan, false);
	}
	if (!gone)
		link_said(vlan, false);
	monitor.ops.on_vni(monitor.ctx, &kv, gone);
	round_over();
	monitor.ops.on_fdb(monitor.ctx, &kf, gone);
	round_over();
	if (gone)
		link_said(vlan, true);
}

/* A VLAN on the port, with an IPv4 address and a neighbor. */
static void
a_vlan(uint32_t i, bool gone)
{
	struct kmon_link vlan = vlan_of(FIRST + i, TAP, 0x8100, (uint16_t)(i + 1));

	if (gone) {
		neighbor_said(vlan.ifindex, i, true);
		address_said(vlan.ifindex, i, true);
		link_said(vlan, true);
		return;
	}
	link_said(vlan, false);
	address_said(vlan.ifindex, i, false);
	neighbor_said(vlan.ifindex, i, false);
}

/* A VRF with a VLAN. The VLAN has no address and borrows one. */
static void
a_vrf(uint32_t i, bool gone)
{
	struct kmon_link vrf = named(FIRST + 2 * i, "vrf", i);
	struct kmon_link vlan = vlan_of(FIRST + 1 + 2 * i, TAP, 0x8100, (uint16_t)(i + 1));

	vrf.vrf_table = 1000 + i;
	vlan.master = vrf.ifindex;
	if (!gone)
		link_said(vrf, false);
	link_said(vlan, gone);
	if (gone)
		link_said(vrf, true);
}

/*
 * A macvlan on the port. Each macvlan has another MAC, as each virtual router of VRRP has.
 */
static void
a_macvlan(uint32_t i, bool gone)
{
	struct kmon_link macvlan = named(FIRST + i, "m", i);

	macvlan.on = TAP;
	macvlan.macvlan = KMON_MACVLAN_BY_MAC;
	put_be32(macvlan.mac + 2, 0x5e000100u + i);
	link_said(macvlan, gone);
}

/* A VLAN on the port, and a macvlan on the VLAN. All macvlans have the same MAC. */
static void
a_vlan_with_a_macvlan(uint32_t i, bool gone)
{
	struct kmon_link vlan = vlan_of(FIRST + 2 * i, TAP, 0x8100, (uint16_t)(i + 1));
	struct kmon_link macvlan = named(FIRST + 1 + 2 * i, "m", i);

	macvlan.on = vlan.ifindex;
	macvlan.macvlan = KMON_MACVLAN_BY_MAC;
	put_be32(macvlan.mac + 2, 0x5e000105u);
	if (!gone)
		link_said(vlan, false);
	link_said(macvlan, gone);
	if (gone)
		link_said(vlan, true);
}

/* --- counts --------------------------------------------------------------------------- */

struct work {
	uint64_t steps, publishes, tables;
};

static struct work
work_now(void)
{
	const struct neigh *n = neigh.ctx;

	return (struct work){n->n_steps, n->n_publishes, n->n_tables};
}

static struct work
work_since(struct work then)
{
	struct work now = work_now();

	return (struct work){now.steps - then.steps, now.publishes - then.publishes,
			     now.tables - then.tables};
}

/*
 * Make `n` objects, set the port down and up, and remove the objects. Write the work of
 * each of these three steps to `work`.
 */
static void
measure(uint32_t n, void (*one)(uint32_t i, bool gone), struct work work[3])
{
	struct kmon_link port_down = link_of(TAP, "wan0");
	struct work then = work_now();

	for (uint32_t i = 0; i < n; i++)
		one(i, false);
	work[0] = work_since(then);
	then = work_now();
	port_down.admin_up = false;
	link_said(port_down, false);
	link_said(link_of(TAP, "wan0"), false);
	work[1] = work_since(then);
	then = work_now();
	for (uint32_t i = 0; i < n; i++)
		one(i, true);
	work[2] = work_since(then);
}

/*
 * Assert that twice as many objects take at most 2.5 times the work. Tolerate 20 more steps
 * for each of the N objects, because the steps in a hash table vary with its seed. A walk
 * over all N objects for each object would take 100 more.
 */
static void
assert_linear(const char *of, uint64_t once, uint64_t twice)
{
	if (twice > once * 5 / 2 + 20 * N)
		fail_msg("%s: work %llu for %u, %llu for %u", of, (unsigned long long)once,
			 N, (unsigned long long)twice, 2 * N);
}

static void
measure_both(void **state, void (*one)(uint32_t i, bool gone))
{
	static const char *const when[] = {"made", "port down and up", "removed"};
	struct work once[3], twice[3];

	measure(N, one, once);
	down(state);
	assert_int_equal(up(state), 0);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	measure(2 * N, one, twice);
	for (unsigned int k = 0; k < 3; k++) {
		print_message("%s: %llu steps, %llu publications, %llu tables\n", when[k],
			      (unsigned long long)twice[k].steps,
			      (unsigned long long)twice[k].publishes,
			      (unsigned long long)twice[k].tables);
		assert_linear(when[k], once[k].steps, twice[k].steps);
		assert_linear(when[k], once[k].publishes, twice[k].publishes);
		assert_in_range(twice[k].tables, 0, 16);
	}
}

static void
work_for_tunnels_is_linear(void **state)
{
	measure_both(state, a_tunnel);
}

static void
work_for_vnis_is_linear(void **state)
{
	measure_both(state, a_vni);
}

static void
work_for_vlans_with_vnis_is_linear(void **state)
{
	measure_both(state, a_vlan_with_a_vni);
}

static void
work_for_vlans_with_addresses_and_neighbors_is_linear(void **state)
{
	measure_both(state, a_vlan);
}

static void
work_for_vrfs_is_linear(void **state)
{
	measure_both(state, a_vrf);
}

static void
work_for_macvlans_on_one_port_is_linear(void **state)
{
	measure_both(state, a_macvlan);
}

static void
work_for_macvlans_with_one_mac_is_linear(void **state)
{
	measure_both(state, a_vlan_with_a_macvlan);
}

/* --- addresses of one interface ------------------------------------------------------- */

#define N_ADDRESSES 2000u

/*
 * Report address `i` of the port. It is the address of a /30 of its own, or a secondary
 * address of 10.0.0.0/8.
 */
static void
address4_said(uint32_t i, bool secondary, bool gone)
{
	struct kmon_addr ka = {.ifindex = TAP,
			       .family = 4,
			       .plen = secondary ? 8 : 30,
			       .secondary = secondary};

	put_be32(ka.addr, 0x0a000001u + 4 * i);
	memcpy(ka.peer, ka.addr, sizeof(ka.peer));
	monitor.ops.on_addr(monitor.ctx, &ka, gone);
	round_over();
}

static void
address6_said(uint32_t i, bool tentative, bool deprecated, bool gone)
{
	struct kmon_addr ka = {.ifindex = TAP,
			       .family = 6,
			       .plen = 64,
			       .tentative = tentative,
			       .deprecated = deprecated};

	put_be32(ka.addr, i % 3 == 0   ? 0xfe800000u
			  : i % 3 == 1 ? 0x20010db8u
				       : 0xfd000000u);
	put_be32(ka.addr + 12, i + 1);
	monitor.ops.on_addr(monitor.ctx, &ka, gone);
	round_over();
}

/*
 * Return a number below `n`. Each `i` below `n` gives another number, and the numbers are
 * in no order.
 */
static uint32_t
scattered(uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)i * 1000003u % n);
}

static void
many_ipv4_addresses(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		address4_said(i, i % 2 == 1, false);
	for (uint32_t i = 0; i < n; i++) /* reported again without a change */
		address4_said(scattered(i, n), scattered(i, n) % 2 == 1, false);
	for (uint32_t i = 0; i < n; i++)
		address4_said(i, i % 2 == 1, true);
}

static void
many_ipv6_addresses(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		address6_said(i, true, false, false);
	for (uint32_t i = 0; i < n; i++) /* DAD ends in no order */
		address6_said(scattered(i, n), false, false, false);
	for (uint32_t i = 0; i < n; i++)
		address6_said(scattered(n - 1 - i, n), false, true, false);
	for (uint32_t i = 0; i < n; i++)
		address6_said(i, false, true, true);
}

static void
assert_addresses_are_linear(void **state, const char *of, void (*many)(uint32_t n))
{
	struct work then = work_now(), once, twice;

	many(N_ADDRESSES);
	once = work_since(then);
	down(state);
	assert_int_equal(up(state), 0);
	then = work_now();
	many(2 * N_ADDRESSES);
	twice = work_since(then);
	print_message("%s: %llu steps for %u addresses, %llu for %u\n", of,
		      (unsigned long long)once.steps, N_ADDRESSES,
		      (unsigned long long)twice.steps, 2 * N_ADDRESSES);
	/*
	 * The trees are random, so the steps of two runs differ by a fifth. All events of
	 * one address together take 250 to 730 steps. With lists in place of trees they
	 * would take 3,600 steps for 2,000 addresses and 7,300 for 4,000.
	 */
	assert_in_range(once.steps / N_ADDRESSES, 1, 1500);
	assert_in_range(twice.steps / (2 * N_ADDRESSES), 1, 1500);
	assert_in_range(twice.publishes, 1, 2 * once.publishes + 16);
}

static void
work_for_addresses_of_one_interface_is_linear(void **state)
{
	assert_addresses_are_linear(state, "IPv4", many_ipv4_addresses);
	down(state);
	assert_int_equal(up(state), 0);
	assert_addresses_are_linear(state, "IPv6", many_ipv6_addresses);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(work_for_tunnels_is_linear),
		bed_test(work_for_vnis_is_linear),
		bed_test(work_for_vlans_with_vnis_is_linear),
		bed_test(work_for_vlans_with_addresses_and_neighbors_is_linear),
		bed_test(work_for_vrfs_is_linear),
		bed_test(work_for_macvlans_on_one_port_is_linear),
		bed_test(work_for_macvlans_with_one_mac_is_linear),
		bed_test(work_for_addresses_of_one_interface_is_linear),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
