/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VLANs, VRFs and neighbours as the kernel tells of them, also when events were missed or are
 * late: here the kernel is a table in the test, for the machine's own may have no VLANs, and
 * loses no event when a test would like it. All in one thread, grace periods by hand.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/table.h"
#include "grace.h"
#include "neigh/internal.h"
#include "neigh_kernel.h"
#include "tap.h"

#define PORT  1
#define TAP   10 /* ifindex */
#define OTHER 11 /* ifindex of no port */

static const uint8_t mac_a[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0a};
static const uint8_t mac_b[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0b};

/* --- the port ---------------------------------------------------------------------------- */

static uint8_t added_mac[6];
static unsigned int n_added_macs;

bool
port_link_up(const struct port *port)
{
	return true;
}

int
port_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	return 0;
}

int
port_set_mac(const struct port *port, const uint8_t mac[6])
{
	return 0;
}

static bool device_can;
static unsigned int n_told;

bool
port_take_tags(const struct port *port)
{
	n_told++;
	return device_can;
}

int
port_add_mac(const struct port *port, const uint8_t mac[6])
{
	memcpy(added_mac, mac, sizeof(added_mac));
	n_added_macs++;
	return 0;
}

int
tap_open(struct tap *tap, const char *name, const char *netns, const uint8_t mac[6],
	 unsigned int mtu_bytes, bool *created)
{
	return -ENODEV;
}

int
tap_carrier(struct tap *tap, bool up)
{
	return 0;
}

/* --- up and down -------------------------------------------------------------------------- */

static struct fib *fib;
static struct port port;
static struct worker neigh, rib, punt;
static struct counters count;

static struct kmon_link
link_of(uint32_t ifindex, const char *name)
{
	struct kmon_link l = {
		.ifindex = ifindex, .mtu_bytes = 1500, .admin_up = true, .carrier = true};

	memcpy(l.mac, mac_a, sizeof(mac_a));
	snprintf(l.name, sizeof(l.name), "%s", name);
	return l;
}

static struct kmon_link
vlan_of(uint32_t ifindex, unsigned int on, uint16_t type, uint16_t id)
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "v%u", ifindex);
	l = link_of(ifindex, name);
	l.vlan_on = on;
	l.vlan_type = type;
	l.vlan_id = id;
	return l;
}

/* A link is there, as is told at once. */
static void
add(struct kmon_link link)
{
	assert_true(kernel.n < LINKS_MAX);
	kernel.row[kernel.n].link = link;
	kernel.row[kernel.n++].told = true;
	tell(&link, false);
}

/* It is no more. */
static void
del(struct kmon_link link)
{
	for (unsigned int i = 0; i < kernel.n; i++)
		if (kernel.row[i].link.ifindex == link.ifindex)
			kernel.row[i--] = kernel.row[--kernel.n];
	tell(&link, true);
}

static void
empty(struct worker *inbox)
{
	struct msg *m;

	while ((m = worker_take(inbox)) != NULL)
		msg_free(m);
}

/* The end of a round, a grace period, and what neigh hears of that. */
static void
round_over(void)
{
	struct msg *m;

	neigh.on_round(&neigh);
	grace_over();
	while ((m = worker_take(&neigh)) != NULL)
		neigh.on_msg(&neigh, m);
	empty(&rib);
	empty(&punt);
}

static int
up(void **state)
{
	struct neigh_conf conf = {
		.count = &count, .rib = &rib, .punt = &punt, .port = &port, .n_port = 1};

	port = (struct port){.ifidx = PORT, .mtu_bytes = 1500, .mtu_max_bytes = 1500};
	port.tap.ifindex = TAP;
	memcpy(port.mac, mac_a, sizeof(mac_a));
	snprintf(port.name, sizeof(port.name), "wan0");
	memset(&kernel, 0, sizeof(kernel));
	kernel.row[kernel.n++].link = link_of(TAP, "wan0");
	kernel.row[kernel.n++].link = link_of(OTHER, "eth0");
	n_added_macs = n_resolves = 0;
	if (fib_create(&fib, &(struct fib_conf){.n_nodes = 0}) < 0)
		return -1;
	conf.fib = fib;
	if (worker_prepare(&rib) < 0 || worker_prepare(&punt) < 0 ||
	    neigh_setup(&neigh, &conf) < 0 || worker_prepare(&neigh) < 0)
		return -1;
	return neigh.init(&neigh);
}

static int
down(void **state)
{
	neigh.fini(&neigh);
	round_over();
	worker_free(&neigh);
	neigh_teardown(&neigh);
	worker_free(&rib);
	worker_free(&punt);
	fib_destroy(fib);
	return 0;
}

/* Whose are frames with this tag on the port? */
static const struct fib_iface *
iface_of(uint16_t type, uint16_t id)
{
	uint8_t tag[VLAN_BYTES];
	uint16_t ifidx;

	put_be16(tag, type);
	put_be16(tag + 2, id);
	ifidx = fib_vlan(fib, PORT, tag);
	return ifidx == 0 ? NULL : fib_iface(fib, ifidx);
}

/* --- tests -------------------------------------------------------------------------------- */

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

/* One tag, of 802.1Q, and none where the device has nothing to do with tags. */
static void
a_device_that_can_puts_the_tag_in(void **state)
{
	n_told = 0;
	device_can = true;
	add(vlan_of(20, TAP, VLAN_C_TYPE, 100));
	add(vlan_of(21, TAP, VLAN_S_TYPE, 101));
	add(vlan_of(22, 20, VLAN_C_TYPE, 30));
	round_over();
	assert_int_equal(n_told, 1); /* at the first VLAN, once and for all */
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_tags, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_written, 0);
	assert_int_equal(iface_of(VLAN_S_TYPE, 101)->n_written, 1);
	assert_true(fib->tags_by_device);
	for (unsigned int i = PORT_MAX; i < IFIDX_MAX; i++)
		if (fib_iface(fib, i) != NULL && fib_iface(fib, i)->n_tags == 2)
			assert_int_equal(fib_iface(fib, i)->n_written, 2);
	device_can = false;
}

static void
one_that_can_not_leaves_tags_to_software(void **state)
{
	n_told = 0;
	add(vlan_of(20, TAP, VLAN_C_TYPE, 100));
	device_can = true; /* too late: a VLAN never changes */
	add(vlan_of(21, TAP, VLAN_C_TYPE, 101));
	round_over();
	assert_int_equal(n_told, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->n_written, 1);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->n_written, 1);
	assert_false(fib->tags_by_device);
	device_can = false;
}

static void
a_successor_that_is_told_first_keeps_the_tag(void **state)
{
	const struct kmon_link was = vlan_of(20, TAP, VLAN_C_TYPE, 100);

	add(was);
	/* Deleted and made again, unheard: who reads all again hears of what is new first. */
	add(vlan_of(21, TAP, VLAN_C_TYPE, 100));
	del(was);
	round_over();
	assert_non_null(iface_of(VLAN_C_TYPE, 100));
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->ifindex, 21);
	assert_true(iface_of(VLAN_C_TYPE, 100)->up);
}

static void
one_that_is_on_another_link_all_at_once_is_ours_no_more(void **state)
{
	struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	const struct fib_iface *iface;
	uint16_t ifidx;

	add(v);
	ifidx = iface_of(VLAN_C_TYPE, 100)->ifidx;
	v.vlan_on = OTHER;
	tell(&v, false);
	round_over();
	assert_null(iface_of(VLAN_C_TYPE, 100));
	iface = fib_iface(fib, ifidx);
	assert_true(!iface->up && iface->ifindex == 0);
	/* And back. */
	v.vlan_on = TAP;
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
	assert_int_equal(n_added_macs, 0);
	memcpy(tap.mac, mac_b, sizeof(mac_b));
	tell(&tap, false);
	round_over();
	assert_int_equal(n_added_macs, 1);
	assert_memory_equal(added_mac, mac_a, sizeof(mac_a));
	assert_memory_equal(iface_of(VLAN_C_TYPE, 100)->mac, mac_a, sizeof(mac_a));
}

static void
a_vlan_that_goes_by_its_ports_mac_needs_no_other(void **state)
{
	struct kmon_link tap = link_of(TAP, "wan0");
	struct kmon_link v = vlan_of(20, TAP, VLAN_C_TYPE, 100);

	add(v);
	memcpy(tap.mac, mac_b, sizeof(mac_b));
	memcpy(v.mac, mac_b, sizeof(mac_b));
	tell(&tap, false);
	tell(&v, false);
	round_over();
	assert_int_equal(n_added_macs, 0);
}

/* All numbers in use: 802.1Q and 802.1ad on the port, then others on the first of those. */
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
	assert_int_equal(link_find(n, the_nth(most).ifindex)->ifidx, 0);

	for (unsigned int i = 0; i < most / 8 + 1; i++)
		del(the_nth(i));
	round_over();
	ev_invoke(neigh.loop, &n->retry_timer, EV_TIMER);
	round_over();
	for (unsigned int i = most; i < most + beyond; i++)
		assert_int_not_equal(link_find(n, the_nth(i).ifindex)->ifidx, 0);
	assert_int_equal(table_state(TABLE_vlans).refused, beyond);
	assert_int_equal(table_state(TABLE_vlans).used, most - (most / 8 + 1) + beyond);
}

#define vlan_test(f) cmocka_unit_test_setup_teardown(f, up, down)

static struct kmon_link
vrf_link(uint32_t ifindex, uint32_t table)
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "vrf%u", ifindex);
	l = link_of(ifindex, name);
	l.vrf_table = table;
	return l;
}

/* The port's TAP is a member of it. */
static void
enslave(uint32_t master)
{
	struct kmon_link l = link_of(TAP, "wan0");

	l.master = master;
	tell(&l, false);
}

static uint16_t
vrf_of_port(void)
{
	return fib_vrf_of(fib, PORT);
}

static void
a_member_is_never_in_main_while_its_master_is_not_known(void **state)
{
	enslave(50);
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	add(vrf_link(50, 100));
	assert_int_equal(vrf_of_port(), 1);
	del(vrf_link(50, 100));
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	enslave(0);
	assert_int_equal(vrf_of_port(), 0);
	/* A bridge is none; nor is a VRF of table main. */
	enslave(51);
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	add(link_of(51, "br0"));
	assert_int_equal(vrf_of_port(), 0);
	add(vrf_link(52, 254));
	enslave(52);
	assert_int_equal(vrf_of_port(), 0);
	round_over();
}

/* The last word to rib about a VRF: its table, 0 when it is that it went; UINT32_MAX: none. */
static char name_said[16];

static uint32_t
table_said(void)
{
	uint32_t table = UINT32_MAX;
	struct msg *m;

	while ((m = worker_take(&rib)) != NULL) {
		const struct msg_vrf *v = (const struct msg_vrf *)m;

		if (m->type == MSG_VRF)
			table = v->gone ? 0 : v->table;
		if (m->type == MSG_VRF)
			memcpy(name_said, v->name, sizeof(name_said));
		msg_free(m);
	}
	return table;
}

static void
vrfs_of_one_table_share_a_number_until_the_last_goes(void **state)
{
	add(vrf_link(50, 100));
	assert_int_equal(table_said(), 100);
	add(vrf_link(51, 100));
	add(vrf_link(52, 200));
	assert_int_equal(table_said(), 200);
	enslave(51);
	assert_int_equal(vrf_of_port(), 1);
	del(vrf_link(50, 100));
	assert_int_not_equal(table_said(), 0);
	assert_int_equal(vrf_of_port(), 1);
	enslave(52);
	assert_int_equal(vrf_of_port(), 2);
	del(vrf_link(51, 100));
	assert_int_equal(table_said(), 0);
	/* As late as can be. */
	add(vrf_link(53, 300));
	enslave(53);
	assert_int_equal(vrf_of_port(), 3);
	round_over();
}

static void
rename_to(uint32_t ifindex, const char *name)
{
	struct kmon_link l = vrf_link(ifindex, 100);

	snprintf(l.name, sizeof(l.name), "%s", name);
	tell(&l, false);
}

static void
who_shares_a_table_gives_it_its_name_when_the_first_goes(void **state)
{
	add(vrf_link(50, 100));
	add(vrf_link(51, 100));
	add(vrf_link(52, 100));
	table_said();
	assert_string_equal(name_said, "vrf50");
	rename_to(51, "red");
	assert_int_equal(table_said(), UINT32_MAX);
	rename_to(50, "blue");
	assert_int_equal(table_said(), 100);
	assert_string_equal(name_said, "blue");
	del(vrf_link(50, 100));
	assert_int_equal(table_said(), 100);
	assert_string_equal(name_said, "red");
	del(vrf_link(52, 100));
	assert_int_equal(table_said(), UINT32_MAX);
	del(vrf_link(51, 100));
	assert_int_equal(table_said(), 0);
	round_over();
}

static void
vrfs_beyond_the_numbers_have_one_when_another_goes(void **state)
{
	const uint32_t first = 1000, last = first + FIB_VRF_NONE - 1;

	for (uint32_t i = first; i < last; i++)
		add(vrf_link(i, i));
	assert_int_equal(table_state(TABLE_vrfs).used, FIB_VRF_NONE - 1);
	add(vrf_link(last, last));
	assert_int_equal(table_state(TABLE_vrfs).refused, 1);
	enslave(last);
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	del(vrf_link(first + 7, first + 7));
	assert_int_equal(vrf_of_port(), 8);
	assert_int_equal(table_state(TABLE_vrfs).used, FIB_VRF_NONE - 1);
	round_over();
}

/* It becomes a member of this VRF, 0: of none. */
static void
move(struct kmon_link l, uint32_t master)
{
	l.master = master;
	tell(&l, false);
	round_over();
}

static void
who_borrows_an_address_has_one_of_its_own_vrf(void **state)
{
	struct kmon_link one = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	struct kmon_link two = vlan_of(21, TAP, VLAN_C_TYPE, 101);
	const struct kmon_addr addr = {
		.ifindex = 20, .family = 4, .plen = 24, .addr = {192, 0, 2, 1}};

	add(one);
	add(two);
	add(vrf_link(50, 100));
	kernel.ops.addr(kernel.ctx, &addr, false);
	round_over();
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0xc0000201);
	/* IPv4 addresses stay as they are, and are not told anew. */
	move(one, 50);
	assert_int_equal(iface_of(VLAN_C_TYPE, 100)->src4, 0xc0000201);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0);
	move(two, 50);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0xc0000201);
	move(one, 0);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0);
	move(one, 50);
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0xc0000201);
}

/* Whether packets that wait for a neighbour were told to go on: 1, 0; -1: nothing yet. */
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

/* The kernel's word on a neighbour. */
static void
hear(uint16_t nud, bool gone)
{
	struct kmon_neigh kn = {.ifindex = TAP, .family = 4, .addr = {192, 0, 2, 9}};

	kn.nud = nud;
	kn.has_mac = nud == NUD_REACHABLE;
	memcpy(kn.mac, mac_b, sizeof(mac_b));
	kernel.ops.neigh(kernel.ctx, &kn, gone);
}

static void
packets_that_wait_outlive_what_the_kernel_says_of_the_entry_before(void **state)
{
	struct msg_neigh *m = msg_new(MSG_GLEAN, sizeof(*m));

	hear(NUD_REACHABLE, false);
	/* ip neigh flush: it fails, and is gone. A packet comes between the two. */
	hear(NUD_FAILED, false);
	m->ifidx = PORT;
	m->family = 4;
	m->addr = (struct ipaddr){{192, 0, 2, 9}};
	neigh.on_msg(&neigh, &m->m);
	neigh.on_round(&neigh);
	hear(0, true);
	assert_int_equal(answer(), -1);
	neigh.on_round(&neigh);
	assert_int_equal(n_resolves, 2); /* the first one went with the entry */
	hear(NUD_REACHABLE, false);
	assert_int_equal(answer(), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		vlan_test(a_vlan_is_found_by_its_tag_until_it_goes),
		vlan_test(a_device_that_can_puts_the_tag_in),
		vlan_test(one_that_can_not_leaves_tags_to_software),
		vlan_test(a_successor_that_is_told_first_keeps_the_tag),
		vlan_test(one_that_is_on_another_link_all_at_once_is_ours_no_more),
		vlan_test(a_mac_that_was_the_ports_is_still_accepted_for_a_vlan),
		vlan_test(a_vlan_that_goes_by_its_ports_mac_needs_no_other),
		vlan_test(vlans_without_a_number_are_counted_and_come_when_others_go),
		vlan_test(a_member_is_never_in_main_while_its_master_is_not_known),
		vlan_test(vrfs_of_one_table_share_a_number_until_the_last_goes),
		vlan_test(who_shares_a_table_gives_it_its_name_when_the_first_goes),
		vlan_test(vrfs_beyond_the_numbers_have_one_when_another_goes),
		vlan_test(who_borrows_an_address_has_one_of_its_own_vrf),
		vlan_test(
			packets_that_wait_outlive_what_the_kernel_says_of_the_entry_before),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("neigh: what the kernel tells", tests, NULL,
					   NULL);
}
