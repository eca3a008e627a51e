/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The warnings about a device of the kernel, by the fields of its message. Kernels without
 * macvlan, VLAN or ipvlan cannot make all of these devices, so the test makes the messages.
 *
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "warn/devices.c"

static struct {
	struct warn w;
	struct own own[2];
	struct device_message m;
	uint32_t forwarding, arp_ignore; /* sysctls of the device */
	long long all_arp_ignore;
	char said[512]; /* "MACVLAN where; ..." */
	unsigned int n_sysctls;
} t;

/* --- functions that this program replaces --------------------------------------------- */

void
outer_note(struct warn *w, const struct nlmsghdr *nlh, const struct device_message *m)
{
}

int
device_message_decode(const struct nlmsghdr *nlh, struct device_message *m)
{
	*m = t.m;
	return 0;
}

uint32_t
device_conf4(const struct device_message *m, unsigned int key)
{
	return key == IPV4_DEVCONF_FORWARDING ? t.forwarding : t.arp_ignore;
}

void
list_add(struct warning_list *l, enum warning_kind kind, const char *where,
	 const char *in_linux, const char *dataplane)
{
	size_t n = strlen(t.said);

	snprintf(t.said + n, sizeof(t.said) - n, "%s %s;",
		 kind == WARNING_MACVLAN      ? "macvlan"
		 : kind == WARNING_MEMBER     ? "member"
		 : kind == WARNING_XDP        ? "xdp"
		 : kind == WARNING_TC         ? "tc"
		 : kind == WARNING_VRRP       ? "vrrp"
		 : kind == WARNING_VRF_DOWN   ? "vrf-down"
		 : kind == WARNING_FORWARDING ? "forwarding"
					      : "?",
		 where);
}

void
kernel_tunnel_add(struct warn *w, const char *kind, const char *name, const char *reason)
{
	list_add(&w->list, N_WARNING, name, kind, reason);
}

void
sysctls_of_device(struct warn *w, const struct device_message *m)
{
	t.n_sysctls++;
}

long long
sysctl_number(const char *file)
{
	assert_string_equal(file, "ipv4/conf/all/arp_ignore");
	return t.all_arp_ignore;
}

/*
 * A scan calls these functions. The tests call on_link() with messages in place of a scan.
 */
#define NOT_CALLED(type, name, args) \
	type name args               \
	{                            \
		abort();             \
	}
NOT_CALLED(int, ask_open, (int protocol))
NOT_CALLED(int, ask_dump,
	   (struct warn * w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx))
NOT_CALLED(bool, ask_is_ending, (const struct warn *w))
NOT_CALLED(void, unread_add, (struct warn * w, const char *part, int error))
NOT_CALLED(int, mac_message_decode, (const struct nlmsghdr *nlh, struct mac_message *m))
NOT_CALLED(int, qdisc_message_decode, (const struct nlmsghdr *nlh, struct qdisc_message *m))

/* --- tests ---------------------------------------------------------------------------- */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.own[0].ifindex = 7;
	t.own[1].ifindex = 9;
	strcpy(t.own[0].name, "lan0");
	t.w.own = t.own;
	t.w.n_own = 2;
	t.m = (struct device_message){.ifindex = 9, .name = "dev9", .txqlen = 1000};
	return 0;
}

/* Return the warnings about the device. */
static const char *
warned(void)
{
	const struct nlmsghdr nlh = {.nlmsg_type = RTM_NEWLINK};

	t.said[0] = '\0';
	on_link(&t.w, &nlh, NULL);
	return t.said;
}

static void
a_macvlan_that_an_operator_holds_down_is_warned_of(void **state)
{
	strcpy(t.m.kind, "macvlan");
	t.m.macvlan_mode = MACVLAN_MODE_BRIDGE;
	t.m.on = 7;
	assert_string_equal(warned(), "");
	t.m.protodown = true;
	assert_string_equal(warned(), "macvlan dev9 in protodown;");
	t.m.protodown_by = 8; /* vrrpd sets this: no fault */
	assert_string_equal(warned(), "");
	t.m.protodown_by = 0;
	strcpy(t.m.kind, "veth");
	assert_string_equal(warned(), "");
	assert_int_equal(t.n_sysctls, 4);
}

static void
a_device_that_takes_packets_of_a_port_is_warned_of(void **state)
{
	t.m.ifindex = 30;
	t.m.on = 7;
	strcpy(t.m.kind, "ipvlan");
	assert_string_equal(warned(), "macvlan ipvlan dev9 on lan0;");
	strcpy(t.m.kind, "macvlan");
	t.m.macvlan_mode = MACVLAN_MODE_BRIDGE;
	assert_string_equal(warned(), "");
	t.m.macvlan_mode = MACVLAN_MODE_PASSTHRU;
	assert_string_equal(warned(), "macvlan macvlan dev9 on lan0;");
	t.m.on = 8; /* no port */
	assert_string_equal(warned(), "");
	assert_int_equal(t.n_sysctls, 0);
	/* The device is noted once, by its index, and so is a device on top of it. */
	assert_int_equal(t.w.n_upper, 1);
	assert_int_equal(t.w.upper[0].ifindex, 30);
	t.m.ifindex = 31;
	t.m.on = 30;
	(void)warned();
	assert_int_equal(t.w.n_upper, 2);
	assert_int_equal(t.w.upper[1].ifindex, 31);
	assert_string_equal(t.w.upper[1].kind, "macvlan");
	t.m.ifindex = 32;
	t.m.on = 33;
	(void)warned();
	assert_int_equal(t.w.n_upper, 2);
}

static void
a_port_in_a_bridge_and_its_programs_are_warned_of(void **state)
{
	t.m.master = 4000000;
	strcpy(t.m.master_kind, "bridge");
	assert_string_equal(warned(), "member dev9 in bridge ?;");
	t.m.master_kind[0] = '\0';
	assert_string_equal(warned(), "member dev9 in master ?;");
	strcpy(t.m.master_kind, "vrf");
	assert_string_equal(warned(), "");
	t.m.xdp = true;
	assert_string_equal(warned(), "xdp dev9;");
	t.m.xdp = false;
	t.m.egress_qos = true;
	assert_string_equal(warned(), "tc egress-qos-map of dev9;");
}

static void
a_tap_without_a_queue_is_warned_of(void **state)
{
	strcpy(t.m.kind, "tun");
	assert_string_equal(warned(), "");
	assert_true(t.own[1].tap);
	t.m.txqlen = 0;
	assert_string_equal(warned(), "tc txqueuelen of dev9 is 0;");
	t.m.master = 4000000;
	strcpy(t.m.master_kind, "vrf");
	assert_string_equal(warned(), "tc txqueuelen of dev9 is 0;");
	strcpy(t.m.master_kind, "bond");
	assert_string_equal(warned(), "member dev9 in bond ?;");
	assert_false(t.own[1].tap);
	strcpy(t.m.kind, "vlan");
	t.m.master = 0;
	assert_string_equal(warned(), "");
}

static void
a_vrf_is_warned_of_while_its_device_is_down(void **state)
{
	t.m.ifindex = 99;
	strcpy(t.m.kind, "vrf");
	assert_string_equal(warned(), "vrf-down dev9;");
	t.m.admin_up = true;
	assert_string_equal(warned(), "");
	t.m.admin_up = false;
	strcpy(t.m.kind, "dummy");
	assert_string_equal(warned(), "");
}

static void
a_tunnel_of_an_unknown_kind_is_warned_of_while_it_is_up(void **state)
{
	static const char *const kind[] = {"gretap",    "ip6gretap", "erspan",
					   "ip6erspan", "geneve",    "bareudp",
					   "vti",       "vti6",      "gtp"};

	t.m.ifindex = 30;
	for (unsigned int i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		strcpy(t.m.kind, kind[i]);
		t.m.admin_up = false;
		assert_string_equal(warned(), "");
		t.m.admin_up = true;
		assert_string_equal(warned(), "? dev9;");
	}
	strcpy(t.m.kind, "gre");
	assert_string_equal(warned(), "");
}

static void
a_path_through_the_kernel_that_does_not_lead_back_is_warned_of(void **state)
{
	static const uint8_t conf4[4];

	t.w.through = json_pack("[{s:i}, {s:i}]", "ifindex", 29, "ifindex", 30);
	t.m.ifindex = 30;
	assert_string_equal(warned(), ""); /* the message has no sysctls */
	t.m.conf4 = conf4;
	assert_string_equal(warned(), "forwarding dev9: off for IPv4;");
	t.forwarding = 1;
	assert_string_equal(warned(), "");
	t.forwarding = 0;
	t.m.ifindex = 31;
	assert_string_equal(warned(), "");
	json_decref(t.w.through);
}

static void
a_device_below_a_virtual_router_is_warned_of_once(void **state)
{
	static const uint8_t vrrp[] = {0, 0, 0x5e, 0, 1, 9};

	strcpy(t.m.kind, "macvlan");
	t.m.macvlan_mode = MACVLAN_MODE_BRIDGE;
	t.m.on = 7;
	memcpy(t.m.mac, vrrp, sizeof(vrrp));
	assert_string_equal(warned(), "");
	assert_int_equal(t.own[1].vrrp_on, 7);
	t.all_arp_ignore = 1;
	vrrp_scan(&t.w);
	assert_string_equal(t.said, "");
	t.all_arp_ignore = 0;
	vrrp_scan(&t.w);
	vrrp_scan(&t.w);
	assert_string_equal(t.said, "vrrp arp_ignore of lan0 is 0;");
	t.own[0].told = false;
	t.own[0].arp_ignore = true;
	t.said[0] = '\0';
	vrrp_scan(&t.w);
	assert_string_equal(t.said, "");
	t.own[1].vrrp_on = 0;
	t.m.mac[4] = 2; /* VRRP for IPv6 has no ARP */
	(void)warned();
	assert_int_equal(t.own[1].vrrp_on, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(a_macvlan_that_an_operator_holds_down_is_warned_of),
		TEST(a_device_that_takes_packets_of_a_port_is_warned_of),
		TEST(a_port_in_a_bridge_and_its_programs_are_warned_of),
		TEST(a_tap_without_a_queue_is_warned_of),
		TEST(a_vrf_is_warned_of_while_its_device_is_down),
		TEST(a_tunnel_of_an_unknown_kind_is_warned_of_while_it_is_up),
		TEST(a_path_through_the_kernel_that_does_not_lead_back_is_warned_of),
		TEST(a_device_below_a_virtual_router_is_warned_of_once),
	};

	return cmocka_run_group_tests_name("warn_devices", tests, NULL, NULL);
}
