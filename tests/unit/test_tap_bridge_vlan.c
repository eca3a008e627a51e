/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's message about a VLAN interface. The test makes the message, because the
 * kernel of this machine may have no VLANs.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define NO_NETNS -1

/*
 * Parse an RTM_NEWLINK of interface 7 of `kind` on interface 5 (in another namespace, if
 * `netns` is given). For a macvlan, `type` is its mode.
 */
static struct kmon_link
said(const char *kind, uint16_t type, uint16_t id, int netns)
{
	struct ifinfomsg ifi = {.ifi_index = 7};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);
	struct kmon_change change;
	struct nlattr *info, *data;

	nlmsg_set_proto(msg, NETLINK_ROUTE);
	assert_int_equal(nlmsg_append(msg, &ifi, sizeof(ifi), NLMSG_ALIGNTO), 0);
	nla_put_string(msg, IFLA_IFNAME, "wan0.100");
	nla_put_u32(msg, IFLA_LINK, 5);
	if (netns != NO_NETNS)
		nla_put_s32(msg, IFLA_LINK_NETNSID, netns);
	info = nla_nest_start(msg, IFLA_LINKINFO);
	nla_put_string(msg, IFLA_INFO_KIND, kind);
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	if (strcmp(kind, "macvlan") == 0) {
		nla_put_u32(msg, IFLA_MACVLAN_MODE, type);
	} else {
		nla_put_u16(msg, IFLA_VLAN_ID, id);
		nla_put_u16(msg, IFLA_VLAN_PROTOCOL, htons(type));
	}
	nla_nest_end(msg, data);
	nla_nest_end(msg, info);
	assert_true(kmon_parse(msg, &change));
	nlmsg_free(msg);
	assert_int_equal(change.kind, KMON_LINK);
	return change.item.link;
}

static void
a_vlan_is_on_a_link_with_type_and_id(void **state)
{
	struct kmon_link l = said("vlan", 0x88a8, 4094, NO_NETNS);

	assert_int_equal(l.ifindex, 7);
	assert_int_equal(l.on, 5);
	assert_int_equal(l.vlan_type, 0x88a8);
	assert_int_equal(l.vlan_id, 4094);
}

static void
a_vlan_on_a_link_of_another_namespace_is_on_no_link_of_ours(void **state)
{
	struct kmon_link l = said("vlan", 0x8100, 100, 0);

	assert_int_equal(l.on, 0);
}

static void
other_kinds_on_a_link_are_no_vlans(void **state)
{
	struct kmon_link l = said("dummy", 0x8100, 100, NO_NETNS);

	assert_int_equal(l.on, 0);
}

static void
a_macvlan_is_on_a_link(void **state)
{
	struct kmon_link l = said("macvlan", MACVLAN_MODE_BRIDGE, 0, NO_NETNS);

	assert_int_equal(l.on, 5);
	assert_int_equal(l.macvlan, KMON_MACVLAN_BY_MAC);
	assert_int_equal(l.vlan_type, 0);
	l = said("macvlan", MACVLAN_MODE_PRIVATE, 0, NO_NETNS);
	assert_int_equal(l.macvlan, KMON_MACVLAN_BY_MAC);
	l = said("macvlan", MACVLAN_MODE_SOURCE, 0, NO_NETNS);
	assert_int_equal(l.macvlan, KMON_MACVLAN_BY_SOURCE);
	l = said("macvlan", MACVLAN_MODE_BRIDGE, 0, 0);
	assert_int_equal(l.on, 0);
	assert_int_equal(l.macvlan, KMON_NO_MACVLAN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vlan_is_on_a_link_with_type_and_id),
		cmocka_unit_test(
			a_vlan_on_a_link_of_another_namespace_is_on_no_link_of_ours),
		cmocka_unit_test(other_kinds_on_a_link_are_no_vlans),
		cmocka_unit_test(a_macvlan_is_on_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
