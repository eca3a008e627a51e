/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoding of the kernel's messages about devices, qdiscs and chains of nf_tables:
 * complete messages, messages that are cut at each octet, and messages with each octet
 * changed.
 * link: fpm-dataplane/netlink/ fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/device_message.h"
#include "netlink/nft_message.h"

static _Alignas(8) uint8_t octets[4096];
static struct nlmsghdr *nlh;

static void
begin(uint16_t type, size_t head_bytes, const void *head)
{
	memset(octets, 0, sizeof(octets));
	nlh = mnl_nlmsg_put_header(octets);
	nlh->nlmsg_type = type;
	memcpy(mnl_nlmsg_put_extra_header(nlh, head_bytes), head, head_bytes);
}

static void
link_make(void)
{
	struct ifinfomsg info = {.ifi_index = 7, .ifi_flags = IFF_UP};
	uint32_t conf4[IPV4_DEVCONF_MAX] = {[IPV4_DEVCONF_RP_FILTER - 1] = 2};
	uint32_t conf6[DEVCONF_MAX] = {[DEVCONF_IOAM6_ENABLED] = 1};
	struct nlattr *outer, *inner;

	begin(RTM_NEWLINK, sizeof(info), &info);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "lan0");
	mnl_attr_put_u32(nlh, IFLA_MASTER, 9);
	outer = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_SLAVE_KIND, "bridge");
	mnl_attr_nest_end(nlh, outer);
	outer = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u8(nlh, IFLA_XDP_ATTACHED, XDP_ATTACHED_SKB);
	mnl_attr_nest_end(nlh, outer);
	outer = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	inner = mnl_attr_nest_start(nlh, AF_INET);
	mnl_attr_put(nlh, IFLA_INET_CONF, sizeof(conf4), conf4);
	mnl_attr_nest_end(nlh, inner);
	inner = mnl_attr_nest_start(nlh, AF_INET6);
	mnl_attr_put(nlh, IFLA_INET6_CONF, sizeof(conf6), conf6);
	mnl_attr_nest_end(nlh, inner);
	mnl_attr_nest_end(nlh, outer);
}

static void
a_link_has_its_master_program_and_sysctls(void **state)
{
	struct device_message m;

	link_make();
	assert_int_equal(device_message_decode(nlh, &m), 0);
	assert_int_equal(m.ifindex, 7);
	assert_true(m.admin_up);
	assert_int_equal(m.master, 9);
	assert_string_equal(m.name, "lan0");
	assert_string_equal(m.master_kind, "bridge");
	assert_true(m.xdp);
	assert_int_equal(device_conf4(&m, IPV4_DEVCONF_RP_FILTER), 2);
	assert_int_equal(device_conf4(&m, IPV4_DEVCONF_LOG_MARTIANS), 0);
	assert_int_equal(device_conf6(&m, DEVCONF_IOAM6_ENABLED), 1);
	assert_int_equal(device_conf6(&m, DEVCONF_FORWARDING), 0);
	/* Sysctls that the kernel or libc does not know. */
	assert_int_equal(device_conf4(&m, 0), 0);
	assert_int_equal(device_conf4(&m, 4000), 0);
	assert_int_equal(device_conf6(&m, 4000), 0);
}

static void
a_vlan_tells_whether_it_maps_priorities(void **state)
{
	struct ifla_vlan_qos_mapping mapping = {.from = 0, .to = 5};
	struct ifinfomsg info = {.ifi_index = 7};
	struct device_message m;

	for (unsigned int i = 0; i < 3; i++) {
		struct nlattr *outer, *inner, *map;

		begin(RTM_NEWLINK, sizeof(info), &info);
		outer = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
		mnl_attr_put_strz(nlh, IFLA_INFO_KIND, i == 2 ? "macvlan" : "vlan");
		inner = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
		mnl_attr_put_u16(nlh, IFLA_VLAN_ID, 100);
		if (i > 0) {
			map = mnl_attr_nest_start(nlh, IFLA_VLAN_EGRESS_QOS);
			mnl_attr_put(nlh, IFLA_VLAN_QOS_MAPPING, sizeof(mapping), &mapping);
			mnl_attr_nest_end(nlh, map);
		}
		mnl_attr_nest_end(nlh, inner);
		mnl_attr_nest_end(nlh, outer);
		assert_int_equal(device_message_decode(nlh, &m), 0);
		assert_int_equal(m.egress_qos, i == 1);
	}
}

static void
a_plain_link_has_nothing(void **state)
{
	struct ifinfomsg info = {.ifi_index = 7};
	struct device_message m;

	begin(RTM_NEWLINK, sizeof(info), &info);
	mnl_attr_put(nlh, IFLA_IFNAME, 20, "a name without an end");
	assert_int_equal(device_message_decode(nlh, &m), 0);
	assert_string_equal(m.name, "a name without ");
	assert_int_equal(m.master, 0);
	assert_false(m.xdp);
	assert_int_equal(device_conf4(&m, IPV4_DEVCONF_RP_FILTER), 0);
	mnl_attr_put(nlh, IFLA_MASTER, 3, "abc");
	assert_int_equal(device_message_decode(nlh, &m), -EBADMSG);
}

static void
a_mac_of_a_device_is_told_from_that_of_its_master(void **state)
{
	struct ndmsg nd = {
		.ndm_family = AF_BRIDGE, .ndm_ifindex = 7, .ndm_flags = NTF_SELF};
	static const uint8_t mac[6] = {2, 0xaa, 0, 0, 0, 1};
	struct mac_message m;

	begin(RTM_NEWNEIGH, sizeof(nd), &nd);
	assert_int_equal(mac_message_decode(nlh, &m), -EBADMSG);
	mnl_attr_put(nlh, NDA_LLADDR, sizeof(mac), mac);
	assert_int_equal(mac_message_decode(nlh, &m), 0);
	assert_int_equal(m.ifindex, 7);
	assert_true(m.self);
	assert_memory_equal(m.mac, mac, sizeof(mac));

	nd.ndm_flags = NTF_MASTER;
	begin(RTM_NEWNEIGH, sizeof(nd), &nd);
	mnl_attr_put(nlh, NDA_LLADDR, sizeof(mac), mac);
	assert_int_equal(mac_message_decode(nlh, &m), 0);
	assert_false(m.self);

	begin(RTM_NEWNEIGH, sizeof(nd), &nd);
	mnl_attr_put(nlh, NDA_LLADDR, 4, mac);
	assert_int_equal(mac_message_decode(nlh, &m), -EBADMSG);
	nd.ndm_family = AF_INET;
	begin(RTM_NEWNEIGH, sizeof(nd), &nd);
	assert_int_equal(mac_message_decode(nlh, &m), -EBADMSG);
}

static void
a_qdisc_has_its_place_and_kind(void **state)
{
	struct tcmsg tc = {
		.tcm_ifindex = 7, .tcm_handle = 0x10000, .tcm_parent = TC_H_ROOT};
	struct qdisc_message m;

	begin(RTM_NEWQDISC, sizeof(tc), &tc);
	mnl_attr_put_strz(nlh, TCA_KIND, "tbf");
	assert_int_equal(qdisc_message_decode(nlh, &m), 0);
	assert_int_equal(m.ifindex, 7);
	assert_int_equal(m.handle, 0x10000);
	assert_int_equal(m.parent, TC_H_ROOT);
	assert_string_equal(m.kind, "tbf");
}

static void
chain_make(void)
{
	struct nfgenmsg nf = {.nfgen_family = NFPROTO_NETDEV};
	struct nlattr *hook, *devices;

	begin(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, sizeof(nf), &nf);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, "t\x9b");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "c");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TYPE, "filter");
	mnl_attr_put_u32(nlh, NFTA_CHAIN_POLICY, htonl(NF_DROP));
	mnl_attr_put_u32(nlh, NFTA_CHAIN_USE, htonl(3));
	hook = mnl_attr_nest_start(nlh, NFTA_CHAIN_HOOK);
	mnl_attr_put_u32(nlh, NFTA_HOOK_HOOKNUM, htonl(NF_INET_FORWARD));
	devices = mnl_attr_nest_start(nlh, NFTA_HOOK_DEVS);
	mnl_attr_put_strz(nlh, NFTA_DEVICE_NAME, "lan0");
	mnl_attr_put_strz(nlh, 2, "wan"); /* all names that begin so */
	mnl_attr_nest_end(nlh, devices);
	mnl_attr_nest_end(nlh, hook);
}

static void
a_chain_has_its_hook_policy_and_devices(void **state)
{
	struct nft_chain c;

	chain_make();
	assert_int_equal(nft_chain_decode(nlh, &c), 0);
	assert_int_equal(c.family, NFPROTO_NETDEV);
	assert_true(c.is_base);
	assert_true(c.drops);
	assert_int_equal(c.hook, NF_INET_FORWARD);
	assert_int_equal(c.rules, 3);
	assert_string_equal(c.table, "t\x9b");
	assert_string_equal(c.name, "c");
	assert_string_equal(c.type, "filter");
	assert_true(nft_chain_is_at(&c, "lan0"));
	assert_true(nft_chain_is_at(&c, "wan7"));
	assert_false(nft_chain_is_at(&c, "lan"));
	assert_false(nft_chain_is_at(&c, "ext0"));
}

static void
a_chain_without_a_hook_is_no_base_chain(void **state)
{
	struct nfgenmsg nf = {.nfgen_family = NFPROTO_IPV4};
	struct nft_chain c;

	begin(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, sizeof(nf), &nf);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "c");
	assert_int_equal(nft_chain_decode(nlh, &c), 0);
	assert_false(c.is_base);
	assert_false(c.drops);
	assert_false(nft_chain_is_at(&c, "lan0"));
}

/*
 * Decode a message as each kind, in memory of its exact size, so that a sanitizer sees
 * overruns.
 */
static void
decode_all(const uint8_t *message, size_t len)
{
	struct nlmsghdr *copy = malloc(len);
	struct device_message device;
	struct qdisc_message qdisc;
	struct nft_chain chain;

	memcpy(copy, message, len);
	copy->nlmsg_len = (uint32_t)len;
	if (device_message_decode(copy, &device) == 0) {
		assert_true(strlen(device.name) < sizeof(device.name));
		assert_true(strlen(device.master_kind) < sizeof(device.master_kind));
		for (unsigned int key = 0; key < 100; key++) {
			(void)device_conf4(&device, key);
			(void)device_conf6(&device, key);
		}
	}
	if (qdisc_message_decode(copy, &qdisc) == 0)
		assert_true(strlen(qdisc.kind) < sizeof(qdisc.kind));
	if (nft_chain_decode(copy, &chain) == 0) {
		assert_true(strlen(chain.table) < sizeof(chain.table));
		(void)nft_chain_is_at(&chain, "lan0");
	}
	free(copy);
}

/* Decode the present message cut at each length, and with each octet changed. */
static void
message_spoil(void)
{
	static const uint8_t change[] = {0x00, 0x01, 0x03, 0x04, 0x7f, 0x80, 0xff};
	size_t len = nlh->nlmsg_len;

	for (size_t n = MNL_NLMSG_HDRLEN; n <= len; n++)
		decode_all(octets, n);
	for (size_t i = MNL_NLMSG_HDRLEN; i < len; i++)
		for (size_t c = 0; c < sizeof(change); c++) {
			uint8_t was = octets[i];

			octets[i] = change[c];
			decode_all(octets, len);
			octets[i] = was;
		}
}

static void
nonsense_is_read_within_its_octets(void **state)
{
	link_make();
	message_spoil();
	chain_make();
	message_spoil();
	srandom(7);
	for (unsigned int round = 0; round < 20000; round++) {
		size_t len = MNL_NLMSG_HDRLEN + (size_t)random() % 200;

		for (size_t i = 0; i < len; i++)
			octets[i] = (uint8_t)(random() % 3 == 0 ? random() : random() % 24);
		decode_all(octets, len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_has_its_master_program_and_sysctls),
		cmocka_unit_test(a_vlan_tells_whether_it_maps_priorities),
		cmocka_unit_test(a_plain_link_has_nothing),
		cmocka_unit_test(a_mac_of_a_device_is_told_from_that_of_its_master),
		cmocka_unit_test(a_qdisc_has_its_place_and_kind),
		cmocka_unit_test(a_chain_has_its_hook_policy_and_devices),
		cmocka_unit_test(a_chain_without_a_hook_is_no_base_chain),
		cmocka_unit_test(nonsense_is_read_within_its_octets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
