/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoding of the kernel's rules: each attribute, the selectors that no packet has, and
 * broken messages.
 * link: fpm-dataplane/netlink/ fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/rule_message.h"

static _Alignas(8) uint8_t octets[1024];
static struct nlmsghdr *nlh;
static struct fib_rule_hdr *frh;

/* Begin a rule of main for all packets. */
static void
begin(uint8_t af)
{
	memset(octets, 0, sizeof(octets));
	nlh = mnl_nlmsg_put_header(octets);
	nlh->nlmsg_type = RTM_NEWRULE;
	frh = mnl_nlmsg_put_extra_header(nlh, sizeof(*frh));
	frh->family = af;
	frh->action = FR_ACT_TO_TBL;
	frh->table = RT_TABLE_MAIN;
}

static struct rule
decoded(void)
{
	struct rule rule = {0};

	assert_int_equal(rule_message_decode(nlh, &rule), 0);
	return rule;
}

static void
a_plain_rule_takes_all_packets(void **state)
{
	struct rule rule;

	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_PRIORITY, 32766);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, UINT32_MAX);
	mnl_attr_put_u8(nlh, FRA_PROTOCOL, RTPROT_KERNEL);
	rule = decoded();
	assert_int_equal(rule.family, 4);
	assert_int_equal(rule.pref, 32766);
	assert_int_equal(rule.table, RT_TABLE_MAIN);
	assert_int_equal(rule.suppress, -1);
	assert_int_equal(rule.lacks, 0);
	assert_int_equal(rule.src.len + rule.dst.len + rule.tos_mask + rule.ip_proto, 0);
	assert_false(rule.invert || rule.l3mdev || rule.oif[0] != 0);
}

static void
selectors_are_read(void **state)
{
	struct fib_rule_port_range range = {1000, 2000};
	struct rule rule;
	char buf[PREFIX_STRLEN];

	begin(AF_INET);
	frh->src_len = 25;
	frh->dst_len = 32;
	frh->tos = 0x10;
	frh->flags = FIB_RULE_INVERT;
	mnl_attr_put(nlh, FRA_SRC, 4, (uint8_t[]){192, 0, 2, 128});
	mnl_attr_put(nlh, FRA_DST, 4, (uint8_t[]){198, 51, 100, 9});
	mnl_attr_put_strz(nlh, FRA_IIFNAME, "lan0");
	mnl_attr_put_u32(nlh, FRA_TABLE, 100000);
	mnl_attr_put_u8(nlh, FRA_IP_PROTO, 6);
	mnl_attr_put(nlh, FRA_SPORT_RANGE, sizeof(range), &range);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, 0);
	rule = decoded();
	assert_string_equal(prefix_str(&rule.src, buf), "192.0.2.128/25");
	assert_string_equal(prefix_str(&rule.dst, buf), "198.51.100.9/32");
	assert_string_equal(rule.iif, "lan0");
	assert_int_equal(rule.table, 100000);
	assert_int_equal(rule.ip_proto, 6);
	assert_int_equal(rule.sport.first, 1000);
	assert_int_equal(rule.sport.last, 2000);
	assert_int_equal(rule.dport.last, 0);
	assert_int_equal(rule.suppress, 0);
	assert_int_equal(rule.tos, 0x10);
	assert_int_equal(rule.tos_mask, 0x1c);
	assert_true(rule.invert);
	assert_int_equal(rule.lacks, 0);
}

static void
newer_selectors_are_read(void **state)
{
	struct fib_rule_port_range range = {80, 80};
	struct rule rule;

	begin(AF_INET6);
	mnl_attr_put_u8(nlh, 25, 46); /* FRA_DSCP */
	mnl_attr_put(nlh, FRA_DPORT_RANGE, sizeof(range), &range);
	mnl_attr_put_u16(nlh, 29, 0xffff); /* FRA_DPORT_MASK */
	rule = decoded();
	assert_int_equal(rule.family, 6);
	assert_int_equal(rule.tos, 46 << 2);
	assert_int_equal(rule.tos_mask, 0xfc);
	assert_int_equal(rule.dport.mask, 0xffff);
	assert_int_equal(rule.lacks, 0);
	mnl_attr_put_u8(nlh, 30, 0x3e); /* FRA_DSCP_MASK */
	assert_int_equal(decoded().tos_mask, 0xf8);
}

static void
parts_for_display_are_read(void **state)
{
	struct fib_rule_uid_range uid = {0, 9};
	struct rule rule;

	begin(AF_INET6);
	mnl_attr_put_u32(nlh, FRA_FWMASK, 0xff);
	mnl_attr_put(nlh, FRA_UID_RANGE, sizeof(uid), &uid);
	mnl_attr_put_u32(nlh, FRA_FLOW, 3 << 16 | 4);
	mnl_attr_put_u64(nlh, FRA_TUN_ID, 0x0100000000000000);
	mnl_attr_put_u32(nlh, 26, 0x05000000); /* FRA_FLOWLABEL */
	mnl_attr_put_u32(nlh, 27, 0xff000000);
	mnl_attr_put_u8(nlh, FRA_PROTOCOL, 11);
	rule = decoded();
	assert_int_equal(rule.mark.value, 0);
	assert_int_equal(rule.mark.mask, 0xff);
	assert_true(rule.has_uid);
	assert_int_equal(rule.uid[1], 9);
	assert_int_equal(rule.realms, 3 << 16 | 4);
	assert_int_equal(rule.tunnel, 1);
	assert_int_equal(rule.label.value, 5);
	assert_int_equal(rule.label.mask, 0xff);
	assert_int_equal(rule.protocol, 11);
	assert_false(rule.by_dscp);
}

static void
actions_are_read(void **state)
{
	static const uint8_t action[] = {FR_ACT_GOTO, FR_ACT_NOP, FR_ACT_BLACKHOLE,
					 FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT};

	for (unsigned int i = 0; i < sizeof(action); i++) {
		begin(AF_INET);
		frh->action = action[i];
		mnl_attr_put_u32(nlh, FRA_GOTO, 400);
		assert_int_equal(decoded().action, action[i]);
		assert_int_equal(decoded().target, 400);
		assert_int_equal(decoded().lacks, 0);
	}
	begin(AF_INET);
	mnl_attr_put_u8(nlh, FRA_L3MDEV, 1);
	assert_true(decoded().l3mdev);
}

static void
selectors_that_no_packet_has_are_noted(void **state)
{
	struct fib_rule_uid_range uid = {1000, 2000}, all = {0, UINT32_MAX}, root = {0, 5};

	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_FWMARK, 7);
	assert_int_equal(decoded().lacks, RULE_LACKS_MARK);
	mnl_attr_put_u32(nlh, FRA_FWMASK, 8);
	assert_int_equal(decoded().lacks, 0); /* a mark of 0 matches */
	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_FWMASK, 0xff);
	assert_int_equal(decoded().lacks, 0);
	begin(AF_INET);
	mnl_attr_put(nlh, FRA_UID_RANGE, sizeof(uid), &uid);
	assert_int_equal(decoded().lacks, RULE_LACKS_UID);
	begin(AF_INET);
	mnl_attr_put(nlh, FRA_UID_RANGE, sizeof(all), &all);
	assert_int_equal(decoded().lacks, 0);
	begin(AF_INET);
	mnl_attr_put(nlh, FRA_UID_RANGE, sizeof(root), &root);
	assert_int_equal(decoded().lacks, 0); /* a forwarded packet has the user 0 */
	begin(AF_INET);
	mnl_attr_put_u64(nlh, FRA_TUN_ID, 9);
	assert_int_equal(decoded().lacks, RULE_LACKS_TUNNEL);
	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_IFGROUP, 1);
	assert_int_equal(decoded().suppress_group, 1);
	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_TABLE, 0xfff00000);
	assert_int_equal(decoded().lacks, RULE_LACKS_TABLE);
	begin(AF_INET);
	mnl_attr_put_u32(nlh, FRA_TABLE, 0xfff10000);
	assert_int_equal(decoded().lacks, 0);
	begin(AF_INET); /* beyond every prefix */
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, 200);
	assert_int_equal(decoded().suppress, 200);
	begin(AF_INET); /* Linux compares with -2, and no prefix is as short */
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, UINT32_MAX - 1);
	assert_int_equal(decoded().suppress, -1);
	begin(AF_INET);
	mnl_attr_put_u8(nlh, FRA_L3MDEV, 1);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_IFGROUP, 1);
	assert_int_equal(decoded().lacks, RULE_LACKS_IFGROUP);
	begin(AF_INET);
	frh->table = RT_TABLE_LOCAL;
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, 24);
	assert_int_equal(decoded().lacks, RULE_LACKS_SUPPRESS);
	begin(AF_INET);
	mnl_attr_put_u8(nlh, FRA_L3MDEV, 1);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, 0);
	assert_int_equal(decoded().lacks, RULE_LACKS_SUPPRESS);
	begin(AF_INET6);
	mnl_attr_put_u32(nlh, 26, 1); /* FRA_FLOWLABEL */
	mnl_attr_put_u32(nlh, 27, 1); /* FRA_FLOWLABEL_MASK */
	assert_int_equal(decoded().lacks, 0);
	begin(AF_INET);
	mnl_attr_put_u32(nlh, 31, 1);
	assert_int_equal(decoded().lacks, RULE_LACKS_UNKNOWN);
	begin(AF_INET);
	frh->action = 200;
	assert_int_equal(decoded().lacks, RULE_LACKS_UNKNOWN);
	begin(AF_INET);
	mnl_attr_put_strz(nlh, FRA_OIFNAME, "wan0");
	assert_string_equal(decoded().oif, "wan0");
}

static void
broken_messages_are_refused(void **state)
{
	struct rule rule = {0};
	char name[64];

	begin(AF_INET);
	frh->src_len = 33;
	assert_true(rule_message_decode(nlh, &rule) < 0);
	begin(AF_INET);
	frh->dst_len = 24;
	mnl_attr_put(nlh, FRA_DST, 3, "abc");
	assert_true(rule_message_decode(nlh, &rule) < 0);
	begin(AF_INET);
	mnl_attr_put_u16(nlh, FRA_PRIORITY, 1);
	assert_true(rule_message_decode(nlh, &rule) < 0);
	begin(AF_INET);
	memset(name, 'x', sizeof(name));
	mnl_attr_put(nlh, FRA_IIFNAME, sizeof(name), name);
	assert_true(rule_message_decode(nlh, &rule) < 0);
	begin(AF_INET);
	nlh->nlmsg_len = NLMSG_HDRLEN + 4;
	assert_true(rule_message_decode(nlh, &rule) < 0);
	begin(AF_UNIX);
	assert_int_equal(rule_message_decode(nlh, &rule), -EAFNOSUPPORT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_rule_takes_all_packets),
		cmocka_unit_test(selectors_are_read),
		cmocka_unit_test(newer_selectors_are_read),
		cmocka_unit_test(parts_for_display_are_read),
		cmocka_unit_test(actions_are_read),
		cmocka_unit_test(selectors_that_no_packet_has_are_noted),
		cmocka_unit_test(broken_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
