/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VRFs as the kernel reports them: number and name of each, its members, and the addresses
 * that members use of each other.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "log_said.h"
#include "fib/urpf.h"
#include "neigh_bed.h"

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

/* Make the port's TAP a member of this master. */
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
	/* A bridge is no VRF. A VRF of table main counts as main. */
	enslave(51);
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	add(link_of(51, "br0"));
	assert_int_equal(vrf_of_port(), 0);
	add(vrf_link(52, 254));
	enslave(52);
	assert_int_equal(vrf_of_port(), 0);
	round_over();
}

static char name_said[16]; /* the VRF's name in the last message that table_said() took */

/*
 * Return the table of the last message to rib about a VRF. 0: the VRF was removed;
 * UINT32_MAX: there was no message.
 */
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
	/* A freed number is used again as late as possible. */
	add(vrf_link(53, 300));
	enslave(53);
	assert_int_equal(vrf_of_port(), 3);
	round_over();
}

static void
set_rp_filter(uint32_t ifindex, uint8_t value)
{
	struct kmon_conf kc = {
		.ifindex = ifindex, .family = 4, .forwarding = true, .rp_filter = value};

	monitor.ops.on_conf(monitor.ctx, &kc, false);
}

static void
give_address(uint32_t ifindex, bool gone)
{
	struct kmon_addr ka = {.ifindex = ifindex,
			       .family = 4,
			       .plen = 32,
			       .addr = {192, 0, 2, 200},
			       .peer = {192, 0, 2, 200}};

	monitor.ops.on_addr(monitor.ctx, &ka, gone);
	round_over();
}

static unsigned int
urpf_of_port(void)
{
	return fib_iface(fib, PORT)->urpf4;
}

/* Return the published rp_filter of the VRF of the device 50. */
static unsigned int
urpf_of_vrf(void)
{
	uint64_t of_vrf = fib->vrf_device[vrf_of_port()];

	assert_int_equal(fib_vrf_device_ifindex(of_vrf), 50);
	return fib_vrf_device_urpf4(of_vrf);
}

/*
 * The rp_filter of a VRF's device counts for packets that an end point of SRv6 looks up in
 * the VRF.
 */
static void
rp_filter_of_the_device_is_published(void **state)
{
	uint16_t number;

	add(vrf_link(50, 100));
	enslave(50);
	number = (uint16_t)vrf_of_port();
	assert_int_equal(urpf_of_vrf(), FIB_URPF_OFF);
	set_rp_filter(50, 1);
	assert_int_equal(urpf_of_vrf(), FIB_URPF_STRICT);
	set_rp_filter(50, 2);
	assert_int_equal(urpf_of_vrf(), FIB_URPF_STRICT); /* it has no address */
	give_address(50, false);
	assert_int_equal(urpf_of_vrf(), FIB_URPF_LOOSE);
	give_address(50, true);
	set_rp_filter(50, 0);
	set_rp_filter(KMON_CONF_ALL, 1);
	assert_int_equal(urpf_of_vrf(), FIB_URPF_STRICT);
	set_rp_filter(KMON_CONF_ALL, 0);
	assert_int_equal(urpf_of_vrf(), FIB_URPF_OFF);
	enslave(0);
	del(vrf_link(50, 100));
	assert_int_equal(fib->vrf_device[number], 0);
	table_said();
	round_over();
}

/* As in Linux, the values of the VRF's device have no effect on packets of its members. */
static void
rp_filter_of_a_member_counts(void **state)
{
	add(vrf_link(50, 100));
	enslave(50);
	set_rp_filter(50, 1);
	assert_int_equal(urpf_of_port(), FIB_URPF_OFF);
	set_rp_filter(TAP, 1);
	assert_int_equal(urpf_of_port(), FIB_URPF_STRICT);
	set_rp_filter(TAP, 2);
	assert_int_equal(urpf_of_port(), FIB_URPF_STRICT); /* it has no address */
	give_address(50, false);
	assert_int_equal(urpf_of_port(), FIB_URPF_STRICT);
	give_address(TAP, false);
	assert_int_equal(urpf_of_port(), FIB_URPF_LOOSE);
	give_address(TAP, true);
	assert_int_equal(urpf_of_port(), FIB_URPF_STRICT);
	set_rp_filter(TAP, 0);
	assert_int_equal(urpf_of_port(), FIB_URPF_OFF);
	set_rp_filter(KMON_CONF_ALL, 1);
	assert_int_equal(urpf_of_port(), FIB_URPF_STRICT);
	set_rp_filter(KMON_CONF_ALL, 0);
	assert_int_equal(urpf_of_port(), FIB_URPF_OFF);
	give_address(50, true);
	round_over();
}

/*
 * Return the VRF that has `ifindex` as its device, as the last message to rib says.
 * UINT32_MAX: there was no message.
 */
static uint32_t
vrf_said(uint32_t ifindex)
{
	uint32_t vrf = UINT32_MAX;
	struct msg *m;

	while ((m = worker_take(&rib)) != NULL) {
		const struct msg_link *l = (const struct msg_link *)m;

		if (m->type == MSG_LINK && l->ifindex == ifindex)
			vrf = l->vrf;
		msg_free(m);
	}
	return vrf;
}

/*
 * Return true if the last message to rib about the TAP says that routes are ignored while
 * their link has no carrier.
 */
static bool
linkdown_said(uint8_t family)
{
	bool ignored = false;
	struct msg *m;

	while ((m = worker_take(&rib)) != NULL) {
		const struct msg_link *l = (const struct msg_link *)m;

		if (m->type == MSG_LINK && l->ifindex == TAP)
			ignored = l->ignore_linkdown[family == 6];
		msg_free(m);
	}
	return ignored;
}

/* ignore_routes_with_linkdown and forwarding are two sysctls. */
static void
rib_is_told_which_links_without_carrier_are_ignored(void **state)
{
	/* The value for all interfaces has an effect in IPv4 only. */
	static const struct kmon_conf of[] = {{.ifindex = TAP, .family = 6},
					      {.ifindex = TAP, .family = 4},
					      {.ifindex = KMON_CONF_ALL, .family = 4}};

	for (unsigned int i = 0; i < 6; i++) {
		struct kmon_conf kc = of[i / 2];

		kc.forwarding = i % 2 != 0;
		empty(&rib);
		kc.ignore_linkdown = true;
		monitor.ops.on_conf(monitor.ctx, &kc, false);
		assert_true(linkdown_said(kc.family));
		kc.ignore_linkdown = false;
		monitor.ops.on_conf(monitor.ctx, &kc, false);
		assert_false(linkdown_said(kc.family));
	}
	round_over();
}

/* rib needs the interface of a VRF for routes that lead to this VRF. */
static void
rib_knows_the_interface_of_each_vrf(void **state)
{
	add(vrf_link(50, 100));
	assert_int_equal(vrf_said(50), 1);
	add(vrf_link(51, 200));
	assert_int_equal(vrf_said(51), 2);
	add(vrf_link(52, 254)); /* the VRF of table main */
	assert_int_equal(vrf_said(52), 0);
	add(link_of(53, "br0"));
	assert_int_equal(vrf_said(53), 0);
	/* Another kind of link takes the ifindex. The deletion was not reported. */
	add(link_of(50, "vrf50"));
	assert_int_equal(vrf_said(50), 0);
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
a_shared_table_is_renamed_when_its_first_vrf_goes(void **state)
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
	assert_true(log_said("neigh: table is full table=vrfs") > 0);
	enslave(last);
	assert_int_equal(vrf_of_port(), FIB_VRF_NONE);
	assert_int_equal(vrf_said(last), 0);
	del(vrf_link(first + 7, first + 7));
	assert_int_equal(vrf_of_port(), 8);
	assert_int_equal(vrf_said(last), 8); /* routes may lead to it */
	assert_int_equal(table_state(TABLE_vrfs).used, FIB_VRF_NONE - 1);
	round_over();
}

/* Make the link a member of this VRF. 0: it is a member of no VRF. */
static void
move(struct kmon_link l, uint32_t master)
{
	l.master = master;
	tell(&l, false);
	round_over();
}

static void
a_borrowed_address_is_of_the_same_vrf(void **state)
{
	struct kmon_link one = vlan_of(20, TAP, VLAN_C_TYPE, 100);
	struct kmon_link two = vlan_of(21, TAP, VLAN_C_TYPE, 101);
	const struct kmon_addr addr = {
		.ifindex = 20, .family = 4, .plen = 24, .addr = {192, 0, 2, 1}};

	add(one);
	add(two);
	add(vrf_link(50, 100));
	monitor.ops.on_addr(monitor.ctx, &addr, false);
	round_over();
	assert_int_equal(iface_of(VLAN_C_TYPE, 101)->src4, 0xc0000201);
	/*
	 * IPv4 addresses stay when a link moves, and the kernel does not report them again.
	 */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_member_is_never_in_main_while_its_master_is_not_known),
		bed_test(vrfs_of_one_table_share_a_number_until_the_last_goes),
		bed_test(rp_filter_of_a_member_counts),
		bed_test(rp_filter_of_the_device_is_published),
		bed_test(rib_is_told_which_links_without_carrier_are_ignored),
		bed_test(rib_knows_the_interface_of_each_vrf),
		bed_test(a_shared_table_is_renamed_when_its_first_vrf_goes),
		bed_test(vrfs_beyond_the_numbers_have_one_when_another_goes),
		bed_test(a_borrowed_address_is_of_the_same_vrf),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("neigh: VRFs", tests, NULL, NULL);
}
