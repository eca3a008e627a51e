/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Macvlans as the kernel reports them, and the tables by which forwarders find them. The
 * test plays the kernel. All runs in one thread; the test ends grace periods.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "log_said.h"
#include "neigh_bed.h"

static const uint8_t vmac[6] = {0, 0, 0x5e, 0, 1, 5};

static struct kmon_link
macvlan_of(uint32_t ifindex, unsigned int on, const uint8_t mac[6])
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "m%u", ifindex);
	l = link_of(ifindex, name);
	l.on = on;
	l.macvlan = KMON_MACVLAN_BY_MAC;
	memcpy(l.mac, mac, sizeof(l.mac));
	return l;
}

/* Return the ifindex of the macvlan on interface `ifidx` with this MAC; 0: none. */
static uint32_t
found(uint16_t ifidx, const uint8_t mac[6])
{
	uint16_t in = fib_macvlan(fib, ifidx, mac);

	return in == ifidx ? 0 : fib_iface(fib, in)->ifindex;
}

static void
a_macvlan_is_found_by_its_mac_until_it_goes(void **state)
{
	const struct kmon_link m = macvlan_of(20, TAP, vmac);
	const struct fib_iface *iface;

	assert_null(fib_vlans(fib, PORT));
	add(m);
	round_over();
	assert_int_equal(found(PORT, vmac), 20);
	assert_int_equal(found(PORT, mac_a), 0);
	iface = fib_iface(fib, fib_macvlan(fib, PORT, vmac));
	assert_true(iface->up);
	assert_int_equal(iface->port, PORT);
	assert_int_equal(iface->n_tags, 0);
	assert_memory_equal(iface->mac, vmac, sizeof(vmac));
	assert_int_equal(fib->out_special, FIB_OUT_MACVLAN);
	del(m);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	assert_null(fib_macs(fib, PORT));
}

static void
a_macvlan_that_is_down_is_not_found(void **state)
{
	struct kmon_link m = macvlan_of(20, TAP, vmac), tap = link_of(TAP, "wan0");

	add(m);
	round_over();
	m.admin_up = false;
	tell(&m, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	m.admin_up = true;
	m.carrier = false; /* protodown */
	tell(&m, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	m.carrier = true;
	tell(&m, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 20);
	tap.admin_up = false;
	tell(&tap, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
}

static void
a_changed_mac_replaces_the_former_one(void **state)
{
	struct kmon_link m = macvlan_of(20, TAP, vmac);

	device.n_removed_macs = 0;
	add(m);
	round_over();
	assert_int_equal(device.n_added_macs, 1);
	tell(&m, false); /* an event without a change costs the device nothing */
	memcpy(m.mac, mac_b, sizeof(mac_b));
	tell(&m, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	assert_int_equal(found(PORT, mac_b), 20);
	assert_int_equal(device.n_added_macs, 2);
	assert_memory_equal(device.added_mac, mac_b, sizeof(mac_b));
	assert_int_equal(device.n_removed_macs, 1);
}

/*
 * Virtual routers (VRRP) on VLANs of one port often have the same number, and therefore the
 * same MAC.
 */
static void
the_same_mac_on_port_and_vlan_is_of_two_macvlans(void **state)
{
	const struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	const struct kmon_link on_port = macvlan_of(21, TAP, vmac);
	const struct kmon_link on_vlan = macvlan_of(22, 20, vmac);
	const struct fib_iface *iface;
	uint16_t vlan;

	device.n_removed_macs = 0;
	add(on_vlan); /* before its VLAN, as after a resync */
	add(v);
	add(on_port);
	round_over();
	vlan = iface_of(VLAN_C_TYPE, 100)->ifidx;
	assert_int_equal(found(PORT, vmac), 21);
	assert_int_equal(found(vlan, vmac), 22);
	assert_true(fib_vlans(fib, PORT)->any_macs);
	iface = fib_iface(fib, fib_macvlan(fib, vlan, vmac));
	assert_int_equal(iface->n_tags, 1);
	assert_int_equal(iface->tag[0].id, 100);
	del(on_port);
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	assert_int_equal(device.n_removed_macs, 0); /* the other macvlan needs the MAC */
	del(v); /* the VLAN is gone, and only its macvlan is left */
	round_over();
	assert_null(fib_macs(fib, vlan));
	assert_int_equal(device.n_removed_macs, 1);
}

static void
hundreds_of_macvlans_are_all_found(void **state)
{
	enum { N = 600 };
	uint8_t mac[6] = {0, 0, 0x5e, 0, 0, 0};

	for (unsigned int i = 0; i < N; i++) {
		struct kmon_link m;

		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		m = macvlan_of(1000 + i, TAP, mac);
		tell(&m, false);
	}
	round_over();
	for (unsigned int i = 0; i < N; i++) {
		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		assert_int_equal(found(PORT, mac), 1000 + i);
	}
	mac[3] = 1;
	assert_int_equal(found(PORT, mac), 0);
}

/* Return the next pseudo-random number below `n`. The sequence is the same in each run. */
static unsigned int
next_below(unsigned int n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)((state >> 33) % n);
}

/*
 * Macvlans come, go, change their state and their MAC. Some have the same MAC for a while.
 */
static void
macvlans_are_found_by_their_macs_after_each_change(void **state)
{
	enum { N = 60, MACS = 90, CHANGES = 6000 };
	struct kmon_link m[N] = {{.ifindex = 0}};
	bool there[N] = {false};
	uint8_t mac[6] = {0, 0, 0x5e, 0, 1, 0};

	for (unsigned int i = 0; i < CHANGES; i++) {
		/*
		 * Half of the changes are of few macvlans, so that the table becomes empty.
		 */
		unsigned int k = next_below(i / 500 % 2 == 0 ? N : 3);
		unsigned int n_on[MACS] = {0};

		mac[5] = (uint8_t)next_below(MACS);
		if (there[k] && next_below(3) == 0) {
			tell(&m[k], true);
			there[k] = false;
		} else {
			m[k] = macvlan_of(1000 + k, TAP, mac);
			m[k].admin_up = next_below(4) != 0;
			tell(&m[k], false);
			there[k] = true;
		}
		if (next_below(3) != 0)
			continue;
		round_over();
		for (k = 0; k < N; k++)
			n_on[m[k].mac[5]] += there[k] && m[k].admin_up;
		for (k = 0; k < MACS; k++) {
			uint32_t at;

			mac[5] = (uint8_t)k;
			at = found(PORT, mac);
			assert_int_equal(at != 0, n_on[k] != 0);
			assert_true(at == 0 || memcmp(m[at - 1000].mac, mac, 6) == 0);
		}
	}
}

/*
 * When the port loses its link, neigh visits each interface a few times. It does not visit
 * all interfaces for each interface.
 */
static void
a_flap_of_the_port_costs_steps_in_proportion_to_its_interfaces(void **state)
{
	enum { N = 500 };
	struct kmon_link tap = link_of(TAP, "wan0");
	const struct neigh *n = neigh.ctx;
	uint64_t began;

	for (uint16_t i = 0; i < N; i++) {
		struct kmon_link v = vlan_of(1000 + i, TAP, VLAN_C_TYPE, i + 1);
		struct kmon_link m = macvlan_of(3000 + i, 1000 + i, vmac);

		tell(&v, false);
		tell(&m, false);
	}
	round_over();
	assert_int_equal(found(iface_of(VLAN_C_TYPE, N)->ifidx, vmac), 3000 + N - 1);
	began = n->n_steps;
	for (unsigned int up = 0; up < 2; up++) {
		tap.admin_up = up != 0;
		tell(&tap, false);
		round_over();
		assert_int_equal(found(iface_of(VLAN_C_TYPE, N)->ifidx, vmac),
				 up ? 3000 + N - 1 : 0);
	}
	assert_in_range(n->n_steps - began, 2 * 2 * N, 2 * 20 * N);
	for (uint16_t i = 0; i < N; i += 2) { /* remove half: the list stays whole */
		struct kmon_link m = macvlan_of(3000 + i, 1000 + i, vmac);
		struct kmon_link v = vlan_of(1000 + i, TAP, VLAN_C_TYPE, i + 1);

		tell(&m, true);
		tell(&v, true);
	}
	tap.admin_up = false;
	tell(&tap, false);
	round_over();
	for (uint16_t i = 1; i < N; i += 2)
		assert_int_equal(found(iface_of(VLAN_C_TYPE, i + 1)->ifidx, vmac), 0);
}

static void
some_are_not_followed_and_the_log_says_so(void **state)
{
	struct kmon_link m = macvlan_of(20, TAP, vmac);

	m.macvlan = KMON_MACVLAN_BY_SOURCE;
	add(m);
	add(macvlan_of(21, OTHER, vmac)); /* on no port: nothing is logged */
	add(macvlan_of(22, TAP, mac_b));
	add(vlan_of(23, 22, VLAN_C_TYPE, 100));
	round_over();
	assert_int_equal(found(PORT, vmac), 0);
	assert_int_equal(found(PORT, mac_b), 22);
	assert_null(fib_vlans(fib, fib_macvlan(fib, PORT, mac_b)));
}

/* The monitor has reported the macvlan, its sysctls and neighbors already. */
static void
a_macvlan_that_leaves_mode_source_gets_its_sysctls_and_neighbors(void **state)
{
	struct kmon_conf conf = {.ifindex = 20, .family = 4};
	struct kmon_link m = macvlan_of(20, TAP, vmac);

	m.macvlan = KMON_MACVLAN_BY_SOURCE;
	add(m);
	monitor.ops.on_conf(monitor.ctx, &conf, false);
	round_over();
	reported.n = 0;
	m.macvlan = KMON_MACVLAN_BY_MAC;
	tell(&m, false);
	round_over();
	assert_int_equal(found(PORT, vmac), 20);
	assert_false(fib_iface(fib, fib_macvlan(fib, PORT, vmac))->forward4);
	assert_int_equal(reported.n, 1);
	assert_int_equal(reported.last, 20);
	tell(&m, false);
	round_over();
	assert_int_equal(reported.n, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_macvlan_is_found_by_its_mac_until_it_goes),
		bed_test(a_macvlan_that_is_down_is_not_found),
		bed_test(a_changed_mac_replaces_the_former_one),
		bed_test(the_same_mac_on_port_and_vlan_is_of_two_macvlans),
		bed_test(hundreds_of_macvlans_are_all_found),
		bed_test(macvlans_are_found_by_their_macs_after_each_change),
		bed_test(a_flap_of_the_port_costs_steps_in_proportion_to_its_interfaces),
		bed_test(some_are_not_followed_and_the_log_says_so),
		bed_test(a_macvlan_that_leaves_mode_source_gets_its_sysctls_and_neighbors),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("neigh: macvlans", tests, NULL, NULL);
}
