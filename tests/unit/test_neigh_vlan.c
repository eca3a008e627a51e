/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VLANs and neighbors as the kernel reports them, also when events are late or were lost.
 * The test plays the kernel, because the kernel of this machine may have no VLANs and loses
 * no event on request. All runs in one thread; the test ends grace periods.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "log_said.h"
#include "neigh_bed.h"

/* --- tests ---------------------------------------------------------------------------- */

static void
a_vlan_is_found_by_its_tag_until_it_goes(void **state)
{
	const struct kmon_link v = vlan_of(20, TAP, VLAN_S_TYPE, 100);

	add(v);
	round_over();
	assert_non_null(iface_of(VLAN_S_TYPE, 100));
	assert_true(iface_of(VLAN_S_TYPE, 100)->up);
	assert_int_equal(iface_of(VLAN_S_TYPE, 100)->ifindex, 20);
	assert_null(iface_of(VLAN_C_TYPE, 100));
	del(v);
	round_over();
	assert_null(iface_of(VLAN_S_TYPE, 100));
}

/*
 * If the device can insert tags, it inserts the tag of VLANs with a single 802.1Q tag.
 * Forwarders write all other tags.
 */
static void
a_device_that_can_puts_the_tag_in(void **state)
{
	device.n_asked_tags = 0;
	device.takes_tags = true;
	add(vlan_of(20, TAP, VLAN_C_TYPE, 100));
	add(vlan_of(21, TAP, VLAN_S_TYPE, 101));
	add(vlan_of(22, 20, VLAN_C_TYPE, 30));
	round_over();
	/* The device is asked once, at the first VLAN. */
	assert_int_equal(device.n_asked_tags, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_tags, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_written, 0);
	assert_int_equal(iface_of(VLAN_S_TYPE, 101)->n_written, 1);
	assert_int_equal(fib->out_special, FIB_OUT_TAG_BY_DEVICE);
	for (unsigned int i = PORT_MAX; i < IFIDX_MAX; i++)
		if (fib_iface(fib, i) != NULL && fib_iface(fib, i)->n_tags == 2)
			assert_int_equal(fib_iface(fib, i)->n_written, 2);
	device.takes_tags = false;
}

static void
a_device_that_cannot_leaves_tags_to_software(void **state)
{
	device.n_asked_tags = 0;
	add(vlan_of(20, TAP, VLAN_C_TYPE, 100));
	device.takes_tags = true; /* too late: the device was asked */
	add(vlan_of(21, TAP, VLAN_C_TYPE, 101));
	round_over();
	assert_int_equal(device.n_asked_tags, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_written, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->n_written, 1);
	assert_int_equal(fib->out_special, 0);
	device.takes_tags = false;
}

static void
a_new_vlan_that_is_reported_first_keeps_the_tag(void **state)
{
	const struct kmon_link was = vlan_of(20, TAP, VLAN_C_TYPE, 100);

	add(was);
	/*
	 * The VLAN was deleted and made again, but the events were lost. A resync reports
	 * new links first.
	 */
	add(vlan_of(21, TAP, VLAN_C_TYPE, 100));
	del(was);
	round_over();
	assert_non_null(iface_of(VLAN_C_TYPE, 100));
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->ifindex, 21);
	assert_true(iface_of(VLAN_C_TYPE, 100)->up);
}

static void
a_vlan_that_is_on_another_link_is_no_longer_ours(void **state)
{
	struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	const struct fib_iface *iface;
	uint16_t ifidx;

	add(v);
	ifidx = iface_of(VLAN_C_TYPE, 100)->ifidx;
	v.on = OTHER;
	tell(&v, false);
	round_over();
	assert_null(iface_of(VLAN_C_TYPE, 100));
	iface = fib_iface(fib, ifidx);
	assert_true(!iface->up && iface->ifindex == 0);
	/* The VLAN moves back. */
	v.on = TAP;
	tell(&v, false);
	round_over();
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->ifindex, 20);
}

static void
a_mac_that_was_the_ports_is_still_accepted_for_a_vlan(void **state)
{
	struct kmon_link tap = link_of(TAP, "wan0");
	struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);

	add(v);
	round_over();
	assert_int_equal(device.n_added_macs, 0);
	memcpy(tap.mac, mac_b, sizeof(mac_b));
	tell(&tap, false);
	round_over();
	assert_int_equal(device.n_added_macs, 1);
	assert_memory_equal(device.added_mac, mac_a, sizeof(mac_a));
	assert_memory_equal(iface_of(VLAN_C_TYPE, 100)->mac, mac_a, sizeof(mac_a));
}

static void
a_vlan_that_follows_its_ports_mac_needs_no_other(void **state)
{
	struct kmon_link tap = link_of(TAP, "wan0");
	struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);

	add(v);
	memcpy(tap.mac, mac_b, sizeof(mac_b));
	memcpy(v.mac, mac_b, sizeof(mac_b));
	tell(&tap, false);
	tell(&v, false);
	round_over();
	assert_int_equal(device.n_added_macs, 0);
}

/*
 * There may be thousands of VLANs, and each report to the kernel takes the kernel's lock
 * for all links. Therefore neigh does other work between the slices.
 */
static void
carriers_are_reported_in_slices_and_the_tap_first(void **state)
{
	struct neigh *n = neigh.ctx;
	unsigned int before, rounds = 0;

	for (unsigned int i = 0; i < 100; i++)
		add(vlan_of(20 + i, TAP, VLAN_C_TYPE, (uint16_t)(1 + i)));
	round_over();
	n_states = 0;
	device.link_down = true;
	carrier_poll(n);
	assert_int_equal(n_states, 0);
	assert_false(iface_of(VLAN_C_TYPE, 100)->up);
	do {
		before = n_states;
		round_over();
		assert_in_range(n_states - before, 0, 16);
	} while (n_states > before && ++rounds < 100);
	assert_int_equal(n_states, 101);
	assert_int_equal(first_state, TAP);
}

static void
changes_of_the_carrier_that_are_not_logged_are_counted(void **state)
{
	struct neigh *n = neigh.ctx;
	unsigned int before, lines;

	before = log_said("neigh: carrier ");
	for (unsigned int i = 0; i < 40; i++) {
		device.link_down = !device.link_down;
		carrier_poll(n);
	}
	lines = log_said("neigh: carrier ") - before;
	assert_in_range(lines, 1, 30);
	assert_int_equal(n->iface[PORT].n_unlogged, 40 - lines);
	assert_int_equal(log_said("neigh: carrier up port=wan0 missed="), 0);
	n->iface[PORT].log_credit = 1; /* some time later */
	carrier_log_pending(n);
	assert_int_equal(log_said("neigh: carrier up port=wan0 missed="), 1);
	assert_int_equal(n->iface[PORT].n_unlogged, 0);
}

/*
 * Return VLAN number `n`. The first 4094 VLANs are 802.1Q on the port, the next 4094 are
 * 802.1ad on the port. All others are on these 802.1ad VLANs, 4094 on each.
 */
static struct kmon_link
the_nth(unsigned int n)
{
	const unsigned int each = 4094;

	return vlan_of(100 + n, n < 2 * each ? TAP : 100 + each + n / each - 2,
		       n / each == 1 ? VLAN_S_TYPE : VLAN_C_TYPE, (uint16_t)(1 + n % each));
}

static void
vlans_without_a_number_are_counted_and_come_when_others_go(void **state)
{
	const unsigned int most = IFIDX_MAX - PORT_MAX, beyond = 3;
	struct neigh *n = neigh.ctx;

	for (unsigned int i = 0; i < most + beyond; i++)
		add(the_nth(i));
	round_over();
	assert_int_equal(table_state(TABLE_vlans).used, most);
	assert_int_equal(table_state(TABLE_vlans).refused, beyond);
	assert_true(log_said("neigh: table is full table=vlans") > 0);
	assert_int_equal(link_find(n, the_nth(most).ifindex)->ifidx, 0);

	for (unsigned int i = 0; i < most / 8 + 1; i++)
		del(the_nth(i));
	round_over();
	assert_true(log_said("neigh: table has room again table=vlans") > 0);
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	round_over();
	for (unsigned int i = most; i < most + beyond; i++)
		assert_int_not_equal(link_find(n, the_nth(i).ifindex)->ifidx, 0);
	assert_int_equal(table_state(TABLE_vlans).refused, beyond);
	assert_int_equal(table_state(TABLE_vlans).used, most - (most / 8 + 1) + beyond);
}

/*
 * Return the answer for packets that wait for a neighbor: 1 resolved, 0 failed, -1 no
 * answer yet.
 */
static int
answer(void)
{
	struct msg *m;
	int resolved = -1;

	for (; (m = worker_take(&punt)) != NULL; msg_free(m))
		if (m->type == MSG_NEIGH)
			resolved = caa_container_of(m, struct msg_neigh, m)->resolved;
	return resolved;
}

/* Report the kernel's event of a neighbor. */
static void
hear(uint16_t nud, bool gone)
{
	struct kmon_neigh kn = {.ifindex = TAP, .family = 4, .addr = {192, 0, 2, 9}};

	kn.nud = nud;
	kn.has_mac = nud == NUD_REACHABLE;
	memcpy(kn.mac, mac_b, sizeof(mac_b));
	monitor.ops.on_neigh(monitor.ctx, &kn, gone);
}

/* Let a packet wait for 192.0.2.9. */
static void
packet_waits(void)
{
	struct msg_neigh *m = msg_new(MSG_GLEAN, sizeof(*m));

	m->ifidx = PORT;
	m->family = 4;
	m->addr = (struct ipaddr){{192, 0, 2, 9}};
	neigh.ops->on_msg(&neigh, &m->m);
	neigh.ops->on_round(&neigh);
}

static void
packets_that_wait_outlive_events_of_the_old_entry(void **state)
{
	hear(NUD_REACHABLE, false);
	/*
	 * `ip neigh flush`: the neighbor fails and is removed. A packet comes between these
	 * two events.
	 */
	hear(NUD_FAILED, false);
	packet_waits();
	hear(0, true);
	assert_int_equal(answer(), -1);
	neigh.ops->on_round(&neigh);
	assert_int_equal(n_resolves, 2); /* the first request ended with the entry */
	hear(NUD_REACHABLE, false);
	assert_int_equal(answer(), 1);
}

static void
a_neighbor_may_be_reported_within_the_request(void **state)
{
	arp_off = true;
	packet_waits();
	assert_int_equal(n_resolves, 1);
	assert_int_equal(answer(), 1);
}

/* The request came before the monitor knew `arp off`, so its answer got lost. */
static void
a_link_of_arp_off_is_asked_again(void **state)
{
	struct kmon_link link = link_of(TAP, "wan0");

	packet_waits();
	assert_int_equal(answer(), -1);
	link.arp_off = arp_off = true;
	tell(&link, false);
	neigh.ops->on_round(&neigh);
	assert_int_equal(n_resolves, 2);
	assert_int_equal(answer(), 1);
}

/* No event of the kernel reminds neigh of the events that the monitor has lost. */
static void
lost_events_are_made_up_for_within_a_second(void **state)
{
	struct neigh *n = neigh.ctx;

	kernel.row[kernel.n++].link = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	monitor_is_lost = true;
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	monitor_is_lost = false;
	round_over();
	assert_non_null(iface_of(VLAN_C_TYPE, 100));
}

static int
disturbed_up(void **state)
{
	int rc;

	first_dump_is_disturbed = true;
	rc = up(state);
	first_dump_is_disturbed = false;
	return rc;
}

/* A TAP that the first dump did not show is no deleted TAP. */
static void
a_tap_that_a_later_dump_shows_is_used(void **state)
{
	struct neigh *n = neigh.ctx;
	unsigned int n_deleted = log_said("neigh: tap deleted port=wan0");

	round_over();
	assert_false(fib_iface(fib, PORT)->up);
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	monitor_is_lost = false;
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	round_over();
	assert_true(fib_iface(fib, PORT)->up);
	assert_int_equal(fib_iface(fib, PORT)->ifindex, TAP);
	assert_int_equal(log_said("neigh: tap deleted port=wan0"), n_deleted);
}

/* A whole dump does not show the TAP. */
static void
a_tap_that_no_dump_shows_is_deleted(void **state)
{
	struct neigh *n = neigh.ctx;
	unsigned int n_deleted = log_said("neigh: tap deleted port=wan0");

	kernel.n = 0;
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	assert_int_equal(log_said("neigh: tap deleted port=wan0"), n_deleted);
	monitor_is_lost = false;
	for (unsigned int i = 0; i < 2; i++)
		ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	round_over();
	assert_int_equal(log_said("neigh: tap deleted port=wan0"), n_deleted + 1);
	assert_false(fib_iface(fib, PORT)->up);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_vlan_is_found_by_its_tag_until_it_goes),
		bed_test(a_device_that_can_puts_the_tag_in),
		bed_test(a_device_that_cannot_leaves_tags_to_software),
		bed_test(a_new_vlan_that_is_reported_first_keeps_the_tag),
		bed_test(a_vlan_that_is_on_another_link_is_no_longer_ours),
		bed_test(carriers_are_reported_in_slices_and_the_tap_first),
		bed_test(changes_of_the_carrier_that_are_not_logged_are_counted),
		bed_test(a_mac_that_was_the_ports_is_still_accepted_for_a_vlan),
		bed_test(a_vlan_that_follows_its_ports_mac_needs_no_other),
		bed_test(vlans_without_a_number_are_counted_and_come_when_others_go),
		bed_test(packets_that_wait_outlive_events_of_the_old_entry),
		bed_test(a_neighbor_may_be_reported_within_the_request),
		bed_test(a_link_of_arp_off_is_asked_again),
		bed_test(lost_events_are_made_up_for_within_a_second),
		cmocka_unit_test_setup_teardown(a_tap_that_a_later_dump_shows_is_used,
						disturbed_up, down),
		cmocka_unit_test_setup_teardown(a_tap_that_no_dump_shows_is_deleted,
						disturbed_up, down),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("neigh: what the kernel tells", tests, NULL,
					   NULL);
}
