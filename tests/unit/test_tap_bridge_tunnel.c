/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor for tunnels. The test makes the messages as the modules ip_gre, ipip,
 * sit, ip6_gre and ip6_tunnel send them, because most kernels of developers do not have
 * these modules.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/ip6_tunnel.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

/*
 * An RTM_NEWLINK of a link of `kind`. Its IFLA_INFO_DATA is open: attributes can be added.
 */
struct link_msg {
	struct nl_msg *msg;
	struct nlattr *info, *data;
};

static struct link_msg
link_begin(const char *kind)
{
	struct ifinfomsg body = {
		.ifi_family = AF_UNSPEC, .ifi_index = 9, .ifi_flags = IFF_UP};
	struct link_msg m = {.msg = nlmsg_alloc_simple(RTM_NEWLINK, 0)};

	assert_non_null(m.msg);
	nlmsg_set_proto(m.msg, NETLINK_ROUTE);
	assert_int_equal(nlmsg_append(m.msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
	nla_put_string(m.msg, IFLA_IFNAME, "t0");
	nla_put_u32(m.msg, IFLA_MTU, 1476);
	m.info = nla_nest_start(m.msg, IFLA_LINKINFO);
	nla_put_string(m.msg, IFLA_INFO_KIND, kind);
	m.data = nla_nest_start(m.msg, IFLA_INFO_DATA);
	return m;
}

/* Close the message, parse it, and return the tunnel. */
static struct kmon_tunnel
link_end(struct link_msg *m, bool other_namespace)
{
	struct kmon_change change;

	nla_nest_end(m->msg, m->data);
	nla_nest_end(m->msg, m->info);
	if (other_namespace)
		nla_put_s32(m->msg, IFLA_LINK_NETNSID, 3);
	assert_true(kmon_parse(m->msg, &change));
	assert_int_equal(change.kind, KMON_LINK);
	assert_int_equal(change.item.link.ifindex, 9);
	assert_string_equal(change.item.link.name, "t0");
	nlmsg_free(m->msg);
	return change.item.link.tunnel;
}

static void
put_be16(struct nl_msg *msg, int type, uint16_t v)
{
	nla_put_u16(msg, type, htons(v));
}

static void
put_be32(struct nl_msg *msg, int type, uint32_t v)
{
	nla_put_u32(msg, type, htonl(v));
}

static void
put_addr6(struct nl_msg *msg, int type, const char *text)
{
	struct in6_addr a;

	assert_int_equal(inet_pton(AF_INET6, text, &a), 1);
	nla_put(msg, type, sizeof(a), &a);
}

/* Begin the message about link t0 of `type gre local 192.0.2.1 remote 192.0.2.2`. */
static struct link_msg
gre_begin(uint16_t flags)
{
	struct link_msg m = link_begin("gre");

	nla_put_u32(m.msg, IFLA_GRE_LINK, 0);
	put_be16(m.msg, IFLA_GRE_IFLAGS, flags);
	put_be16(m.msg, IFLA_GRE_OFLAGS, flags);
	put_be32(m.msg, IFLA_GRE_IKEY, 70000);
	put_be32(m.msg, IFLA_GRE_OKEY, 4000000000);
	put_be32(m.msg, IFLA_GRE_LOCAL, 0xc0000201);
	put_be32(m.msg, IFLA_GRE_REMOTE, 0xc0000202);
	nla_put_u8(m.msg, IFLA_GRE_TTL, 64);
	nla_put_u8(m.msg, IFLA_GRE_TOS, 0xb9);
	nla_put_u8(m.msg, IFLA_GRE_PMTUDISC, 1);
	nla_put_u32(m.msg, IFLA_GRE_FWMARK, 0);
	nla_put_u16(m.msg, IFLA_GRE_ENCAP_TYPE, TUNNEL_ENCAP_NONE);
	nla_put_u8(m.msg, IFLA_GRE_IGNORE_DF, 0);
	return m;
}

static void
test_gre(void **state)
{
	struct link_msg m = gre_begin(0);
	struct kmon_tunnel t = link_end(&m, false);

	assert_int_equal(t.kind, KMON_GRE);
	assert_int_equal(t.cannot, KMON_TUNNEL_CAN);
	assert_int_equal(t.family, 4);
	assert_memory_equal(t.local, "\xc0\x00\x02\x01", 4);
	assert_memory_equal(t.remote, "\xc0\x00\x02\x02", 4);
	assert_false(t.has_in_key || t.has_out_key);
	assert_int_equal(t.ttl, 64);
	assert_true(t.tos_inherit);
	assert_int_equal(t.tos, 0);
	assert_true(t.df && !t.ignore_df);
	m = gre_begin(0x2000);
	t = link_end(&m, false);
	assert_true(t.has_in_key && t.has_out_key);
	assert_true(t.in_key == 70000 && t.out_key == 4000000000);
}

/* Each setting that forwarders do not obey leaves the tunnel to the kernel. */
static void
test_gre_of_the_kernel(void **state)
{
	static const struct {
		uint16_t flags;
		int attr;
		enum kmon_tunnel_cannot cannot;
	} row[] = {{0x8000, 0, KMON_TUNNEL_CHECKSUM},
		   {0x1000, 0, KMON_TUNNEL_SEQUENCE},
		   {0xb000, 0, KMON_TUNNEL_CHECKSUM},
		   {0, IFLA_GRE_COLLECT_METADATA, KMON_TUNNEL_EXTERNAL},
		   {0, IFLA_GRE_FWMARK, KMON_TUNNEL_FWMARK},
		   {0, IFLA_GRE_ENCAP_TYPE, KMON_TUNNEL_ENCAP},
		   {0, IFLA_LINK_NETNSID, KMON_TUNNEL_NAMESPACE}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct link_msg m = gre_begin(row[i].flags);
		struct kmon_tunnel t;

		if (row[i].attr == IFLA_GRE_COLLECT_METADATA)
			nla_put_flag(m.msg, IFLA_GRE_COLLECT_METADATA);
		if (row[i].attr == IFLA_GRE_FWMARK)
			nla_put_u32(m.msg, IFLA_GRE_FWMARK, 1);
		if (row[i].attr == IFLA_GRE_ENCAP_TYPE)
			nla_put_u16(m.msg, IFLA_GRE_ENCAP_TYPE, TUNNEL_ENCAP_FOU);
		t = link_end(&m, row[i].attr == IFLA_LINK_NETNSID);
		assert_int_equal(t.kind, KMON_GRE);
		assert_int_equal(t.cannot, row[i].cannot);
	}
}

static struct kmon_tunnel
iptun(const char *kind, int proto, uint16_t flags)
{
	struct link_msg m = link_begin(kind);

	nla_put_u32(m.msg, IFLA_IPTUN_LINK, 5);
	put_be32(m.msg, IFLA_IPTUN_LOCAL, 0xc0000201);
	put_be32(m.msg, IFLA_IPTUN_REMOTE, 0xc0000202);
	nla_put_u8(m.msg, IFLA_IPTUN_TTL, 0);
	nla_put_u8(m.msg, IFLA_IPTUN_TOS, 0x22);
	if (proto >= 0)
		nla_put_u8(m.msg, IFLA_IPTUN_PROTO, (uint8_t)proto);
	nla_put_u8(m.msg, IFLA_IPTUN_PMTUDISC, 0);
	nla_put_u16(m.msg, IFLA_IPTUN_FLAGS, flags);
	return link_end(&m, false);
}

static void
test_ipip_and_sit(void **state)
{
	struct kmon_tunnel t = iptun("ipip", 4, 0);

	assert_int_equal(t.kind, KMON_IPIP);
	assert_true(t.cannot == KMON_TUNNEL_CAN && t.proto == 4 && t.family == 4);
	assert_int_equal(t.link, 5);
	/* TOS without the bits of ECN, not inherited. */
	assert_true(t.tos == 0x20 && !t.tos_inherit && !t.df && t.ttl == 0);
	assert_int_equal(iptun("ipip", -1, 0).proto, 4);
	assert_int_equal(iptun("ipip", 0, 0).proto, 0);
	assert_int_equal(iptun("ipip", 137, 0).cannot, KMON_TUNNEL_MPLS);
	t = iptun("sit", -1, 0);
	assert_true(t.kind == KMON_SIT && t.proto == 41 && t.cannot == KMON_TUNNEL_CAN);
	assert_int_equal(iptun("sit", 41, SIT_ISATAP).cannot, KMON_TUNNEL_ISATAP);
	/* A link of another kind is no tunnel. */
	assert_int_equal(iptun("si", -1, 0).kind, KMON_NO_TUNNEL);
}

static struct kmon_tunnel
over6(const char *kind, uint32_t info, uint32_t flags)
{
	bool gre = strcmp(kind, "ip6gre") == 0;
	struct link_msg m = link_begin(kind);

	put_addr6(m.msg, gre ? (int)IFLA_GRE_LOCAL : (int)IFLA_IPTUN_LOCAL, "2001:db8::1");
	put_addr6(m.msg, gre ? (int)IFLA_GRE_REMOTE : (int)IFLA_IPTUN_REMOTE,
		  "2001:db8::2");
	nla_put_u8(m.msg, gre ? (int)IFLA_GRE_TTL : (int)IFLA_IPTUN_TTL, 33);
	nla_put_u8(m.msg, gre ? (int)IFLA_GRE_ENCAP_LIMIT : (int)IFLA_IPTUN_ENCAP_LIMIT, 4);
	put_be32(m.msg, gre ? (int)IFLA_GRE_FLOWINFO : (int)IFLA_IPTUN_FLOWINFO, info);
	nla_put_u32(m.msg, gre ? (int)IFLA_GRE_FLAGS : (int)IFLA_IPTUN_FLAGS, flags);
	if (!gre)
		nla_put_u8(m.msg, IFLA_IPTUN_PROTO, 0);
	return link_end(&m, false);
}

static void
test_over_ipv6(void **state)
{
	static const char *const kind[] = {"ip6gre", "ip6tnl"};

	for (size_t i = 0; i < 2; i++) {
		struct kmon_tunnel t = over6(kind[i], 0x0b812345, 0);

		assert_int_equal(t.kind, i == 0 ? KMON_IP6GRE : KMON_IP6TNL);
		assert_int_equal(t.cannot, KMON_TUNNEL_CAN);
		assert_true(t.family == 6 && t.ttl == 33 && t.remote[15] == 2);
		assert_true(t.tos == 0xb8 && t.flow_label == 0x12345);
		assert_true(t.has_encap_limit && t.encap_limit == 4);
		t = over6(kind[i], 0,
			  IP6_TNL_F_IGN_ENCAP_LIMIT | IP6_TNL_F_USE_ORIG_TCLASS |
				  IP6_TNL_F_USE_ORIG_FLOWLABEL);
		assert_true(!t.has_encap_limit && t.tos_inherit && t.flow_inherit);
		assert_int_equal(t.cannot, KMON_TUNNEL_CAN);
		assert_int_equal(over6(kind[i], 0, IP6_TNL_F_RCV_DSCP_COPY).cannot,
				 KMON_TUNNEL_DSCP_COPY);
		assert_int_equal(over6(kind[i], 0, IP6_TNL_F_MIP6_DEV).cannot,
				 KMON_TUNNEL_MIP6);
		assert_int_equal(over6(kind[i], 0, IP6_TNL_F_USE_ORIG_FWMARK).cannot,
				 KMON_TUNNEL_FWMARK);
	}
}

static unsigned int n_reports;

static void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
	n_reports++;
}

/*
 * A tunnel with other settings (`ip link change`) is reported, the same settings are not.
 */
static void
test_a_change_is_reported(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link};
	struct kmon km = {.ops = ops};
	struct kmon_change change = {.kind = KMON_LINK, .item.link.ifindex = 9};

	change.item.link.tunnel = iptun("ipip", 4, 0);
	assert_int_equal(kmon_apply(&km, &change), 0);
	assert_int_equal(n_reports, 1);
	change.item.link.tunnel = iptun("ipip", 4, 0);
	assert_int_equal(kmon_apply(&km, &change), 0);
	assert_int_equal(n_reports, 1);
	change.item.link.tunnel = iptun("ipip", 0, 0);
	assert_int_equal(kmon_apply(&km, &change), 0);
	assert_int_equal(n_reports, 2);
	mirror_free(&km.mirror[KMON_LINK]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gre),
		cmocka_unit_test(test_gre_of_the_kernel),
		cmocka_unit_test(test_ipip_and_sit),
		cmocka_unit_test(test_over_ipv6),
		cmocka_unit_test(test_a_change_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
