/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder of the kernel's messages: each verdict, type, metric, place among equal
 * metrics, and broken messages.
 * link: fpm-dataplane/netlink/ fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include <linux/lwtunnel.h>
#include <linux/mpls_iptunnel.h>

#include "base/mpls_entry.h"
#include "netlink/kernel_message.h"
#include "test_fpm_build.h"

/* One message and the result of its last decode. */
struct sample {
	struct wire w;
	struct kernel_event ev;
	uint32_t expires_ms;
};

static struct sample sample;

static void
begin(void)
{
	fpm_event_clear(&sample.ev.route);
	memset(&sample, 0, sizeof(sample));
	frame_begin(&sample.w);
}

static struct nlmsghdr *
header(void)
{
	return (struct nlmsghdr *)(sample.w.octet + sample.w.msg);
}

static struct rtmsg *
rtm(void)
{
	return (struct rtmsg *)(header() + 1);
}

static int
decode(bool dump)
{
	fpm_event_clear(&sample.ev.route);
	sample.ev = (struct kernel_event){0};
	return kernel_message_decode(header(), dump, &sample.ev, &sample.expires_ms);
}

/*
 * Begin a message about a route of protocol static by 192.0.2.1 or 2001:db8::1 on interface
 * 3. The caller ends the message.
 */
static void
route_open(uint16_t type, const char *prefix)
{
	begin();
	route_begin(&sample.w, type, prefix, RTN_UNICAST);
	rtm()->rtm_protocol = RTPROT_STATIC;
	if (strchr(prefix, ':') == NULL)
		attr_addr(&sample.w, RTA_GATEWAY, "192.0.2.1");
	else
		attr_addr(&sample.w, RTA_GATEWAY, "2001:db8::1");
	attr_u32(&sample.w, RTA_OIF, 3);
}

static void
route(const char *prefix)
{
	route_open(RTM_NEWROUTE, prefix);
	msg_end(&sample.w);
}

static void
a_route_has_its_metric_interface_source_and_hops(void **state)
{
	route_open(RTM_NEWROUTE, "198.51.100.0/24");
	attr_addr(&sample.w, RTA_PREFSRC, "192.0.2.7");
	msg_end(&sample.w);
	rtm()->rtm_scope = RT_SCOPE_LINK;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_ROUTE);
	assert_int_equal(sample.ev.metric, 20);
	assert_int_equal(sample.ev.ifindex, 3);
	assert_int_equal(sample.ev.scope, RT_SCOPE_LINK);
	assert_int_equal(sample.ev.source4, htonl(0xc0000207));
	assert_false(sample.ev.is_local);
	assert_int_equal(sample.ev.route.kind, FPM_ROUTE);
	assert_int_equal(sample.ev.route.protocol, RTPROT_STATIC);
	assert_int_equal(sample.ev.route.table, RT_TABLE_MAIN);
	assert_int_equal(sample.ev.route.n_hops, 1);
	assert_int_equal(sample.ev.route.hops[0].gw_family, 4);
	assert_int_equal(sample.expires_ms, 0);

	route_open(RTM_DELROUTE, "198.51.100.0/24");
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_ROUTE_DEL);
	assert_int_equal(sample.ev.route.n_hops, 1); /* names one of several next hops */
}

static void
lightweight_tunnels_are_data_for_a_device_or_made_by_the_kernel(void **state)
{
	static const uint8_t kind[] = {
		[LWTUNNEL_ENCAP_NONE] = HOP_PLAIN,
		[LWTUNNEL_ENCAP_IP] = HOP_PLAIN,
		[LWTUNNEL_ENCAP_IP6] = HOP_PLAIN,
		[LWTUNNEL_ENCAP_XFRM] = HOP_PLAIN,
		[LWTUNNEL_ENCAP_ILA] = HOP_LWTUNNEL,
		[LWTUNNEL_ENCAP_BPF] = HOP_LWTUNNEL,
		[LWTUNNEL_ENCAP_RPL] = HOP_LWTUNNEL,
		[LWTUNNEL_ENCAP_IOAM6] = HOP_LWTUNNEL,
		[100] = HOP_OTHER_ENCAP, /* private type of zebra */
	};

	for (uint16_t type = 0; type < sizeof(kind); type++) {
		if (type > 0 && kind[type] == HOP_PLAIN && type != LWTUNNEL_ENCAP_IP &&
		    type != LWTUNNEL_ENCAP_IP6 && type != LWTUNNEL_ENCAP_XFRM)
			continue; /* MPLS and SRv6 have tests of their own */
		route_open(RTM_NEWROUTE, "198.51.100.0/24");
		attr_u16(&sample.w, RTA_ENCAP_TYPE, type);
		attr(&sample.w, RTA_ENCAP, NULL, 0);
		msg_end(&sample.w);
		assert_int_equal(decode(false), KERNEL_TAKEN);
		assert_int_equal(sample.ev.route.n_hops, 1);
		assert_int_equal(sample.ev.route.hops[0].encap, kind[type]);
	}
}

static void
types_of_the_kernel_are_taken_others_are_not(void **state)
{
	static const uint8_t taken[] = {RTN_UNICAST,  RTN_LOCAL,     RTN_BROADCAST,
					RTN_ANYCAST,  RTN_BLACKHOLE, RTN_UNREACHABLE,
					RTN_PROHIBIT, RTN_THROW};
	static const uint8_t skipped[] = {RTN_UNSPEC, RTN_NAT, RTN_XRESOLVE, 200};
	static const uint8_t unicast6[] = {RTN_BROADCAST, RTN_MULTICAST, RTN_NAT,
					   RTN_XRESOLVE};

	for (unsigned int i = 0; i < sizeof(taken); i++) {
		route("198.51.100.0/24");
		rtm()->rtm_type = taken[i];
		assert_int_equal(decode(false), KERNEL_TAKEN);
		assert_int_equal(sample.ev.route.rtm_type, taken[i]);
		/* Only unicast routes have next hops. */
		assert_int_equal(sample.ev.route.n_hops, taken[i] == RTN_UNICAST);
	}
	for (unsigned int i = 0; i < sizeof(skipped); i++) {
		route("198.51.100.0/24");
		rtm()->rtm_type = skipped[i];
		assert_int_equal(decode(false), KERNEL_SKIP);
	}
	/*
	 * Linux drops packets to an IPv4 group, as it drops packets to a broadcast address.
	 */
	route("198.51.100.0/24");
	rtm()->rtm_type = RTN_MULTICAST;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.route.rtm_type, RTN_BROADCAST);
	/* Linux forwards by IPv6 routes of these types. */
	for (unsigned int i = 0; i < sizeof(unicast6); i++) {
		route("2001:db8:9::/48");
		rtm()->rtm_type = unicast6[i];
		assert_int_equal(decode(false), KERNEL_TAKEN);
		assert_int_equal(sample.ev.route.rtm_type, RTN_UNICAST);
		assert_int_equal(sample.ev.route.n_hops, 1);
	}
}

static void
flags_tell_the_place_among_equal_metrics(void **state)
{
	static const struct {
		const char *prefix;
		uint16_t flags;
		bool dump;
		enum kernel_order want;
	} c[] = {
		{"10.0.0.0/8", NLM_F_CREATE | NLM_F_EXCL, false, KERNEL_FIRST},
		{"10.0.0.0/8", NLM_F_CREATE, false, KERNEL_FIRST}, /* prepend */
		{"10.0.0.0/8", NLM_F_CREATE | NLM_F_APPEND, false, KERNEL_LAST},
		{"10.0.0.0/8", NLM_F_CREATE | NLM_F_REPLACE, false, KERNEL_REPLACE},
		{"10.0.0.0/8", NLM_F_REPLACE, false, KERNEL_REPLACE}, /* change */
		{"10.0.0.0/8", NLM_F_MULTI, true, KERNEL_LISTED},
		{"2001:db8::/32", NLM_F_CREATE | NLM_F_EXCL, false, KERNEL_LAST},
		{"2001:db8::/32", NLM_F_CREATE | NLM_F_APPEND, false, KERNEL_LAST},
		{"2001:db8::/32", NLM_F_REPLACE, false, KERNEL_REPLACE},
		{"2001:db8::/32", NLM_F_MULTI, true, KERNEL_LISTED},
	};

	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		route(c[i].prefix);
		header()->nlmsg_flags = c[i].flags;
		assert_int_equal(decode(c[i].dump), KERNEL_TAKEN);
		assert_int_equal(sample.ev.order, c[i].want);
	}
}

static void
table_local_is_a_mark_and_table_main(void **state)
{
	static const uint32_t reserved[] = {FPM_TABLE_NONE, TABLES_OF_RIB_FIRST,
					    TABLES_OF_RIB_FIRST + TABLES_OF_RIB - 1};

	route("198.51.100.1/32");
	rtm()->rtm_table = RT_TABLE_LOCAL;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_true(sample.ev.is_local);
	assert_int_equal(sample.ev.route.table, RT_TABLE_MAIN);

	route("198.51.100.1/32");
	rtm()->rtm_table = RT_TABLE_UNSPEC;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_false(sample.ev.is_local);
	assert_int_equal(sample.ev.route.table, RT_TABLE_MAIN);

	route_open(RTM_NEWROUTE, "198.51.100.1/32");
	attr_u32(&sample.w, RTA_TABLE, 100000);
	msg_end(&sample.w);
	rtm()->rtm_table = RT_TABLE_COMPAT;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.route.table, 100000);

	/*
	 * Numbers that the RIB uses for keys that are no IP routes, and for tables of its
	 * own.
	 */
	for (unsigned int i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		route_open(RTM_NEWROUTE, "198.51.100.1/32");
		attr_u32(&sample.w, RTA_TABLE, reserved[i]);
		msg_end(&sample.w);
		assert_int_equal(decode(false), KERNEL_SKIP);
	}
	route_open(RTM_NEWROUTE, "198.51.100.1/32");
	attr_u32(&sample.w, RTA_TABLE, TABLES_OF_RIB_FIRST - 1);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
}

static void
prefixes_of_no_fib_are_skipped(void **state)
{
	static const char *const skipped[] = {"127.0.0.0/8",  "127.0.0.1/32", "224.0.0.0/4",
					      "239.1.2.3/32", "fe80::/64",    "fe80::1/128",
					      "ff00::/8",     "ff02::1/128",  "::1/128"};
	static const char *const taken[] = {"0.0.0.0/0", "::/0", "126.0.0.0/7",
					    "2001:db8::/32", "::/128"};

	for (unsigned int i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		route(skipped[i]);
		assert_int_equal(decode(false), KERNEL_SKIP);
	}
	for (unsigned int i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		route(taken[i]);
		assert_int_equal(decode(false), KERNEL_TAKEN);
	}
	route("198.51.100.0/24");
	rtm()->rtm_flags = RTM_F_CLONED;
	assert_int_equal(decode(false), KERNEL_SKIP);
	route("198.51.100.0/24");
	rtm()->rtm_family = AF_BRIDGE;
	assert_int_equal(decode(false), KERNEL_SKIP);
}

/*
 * Make a message of `ip -f mpls route`: about the route of a label by 192.0.2.1 on
 * interface 3. `new_label` 0: the label is popped.
 */
static void
label_route(uint16_t type, uint32_t label, uint32_t new_label)
{
	struct rtmsg fixed = {.rtm_family = AF_MPLS,
			      .rtm_dst_len = 20,
			      .rtm_table = RT_TABLE_MAIN,
			      .rtm_protocol = RTPROT_BOOT,
			      .rtm_type = RTN_UNICAST};

	begin();
	msg_begin(&sample.w, type);
	wire_put(&sample.w, &fixed, sizeof(fixed));
	attr_u32(&sample.w, RTA_DST, htonl(label << 12 | 1u << 8));
	if (new_label != 0)
		attr_u32(&sample.w, RTA_NEWDST, htonl(new_label << 12 | 1u << 8));
	attr_via(&sample.w, "192.0.2.1");
	attr_u32(&sample.w, RTA_OIF, 3);
	msg_end(&sample.w);
}

static void
a_label_has_one_route_of_no_table(void **state)
{
	for (unsigned int dump = 0; dump < 2; dump++) {
		label_route(RTM_NEWROUTE, 100, 0);
		assert_int_equal(decode(dump == 1), KERNEL_TAKEN);
		assert_int_equal(sample.ev.kind, KERNEL_ROUTE);
		assert_int_equal(sample.ev.order, KERNEL_REPLACE);
		assert_int_equal(sample.ev.route.kind, FPM_ROUTE);
		assert_int_equal(sample.ev.route.table, FPM_TABLE_NONE);
		assert_int_equal(sample.ev.route.protocol, RTPROT_BOOT);
		assert_int_equal(sample.ev.route.prefix.family, FAMILY_LABEL);
		assert_int_equal(ipaddr_v4(&sample.ev.route.prefix.addr), 100);
		assert_int_equal(sample.ev.route.hops[0].encap, HOP_POP);
		assert_int_equal(sample.ev.route.hops[0].gw_family, 4);
	}
	label_route(RTM_NEWROUTE, 100, 200);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.route.hops[0].encap, HOP_MPLS);
	assert_int_equal(sample.ev.route.hops[0].label[0], 200);

	label_route(RTM_DELROUTE, 100, 200);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_ROUTE_DEL);
	assert_int_equal(sample.ev.route.n_hops, 0);

	/* Reserved labels are skipped: Linux has routes of its own for explicit null. */
	label_route(RTM_NEWROUTE, 15, 0);
	assert_int_equal(decode(true), KERNEL_SKIP);
	label_route(RTM_NEWROUTE, 100, 0);
	rtm()->rtm_dst_len = 19;
	assert_int_equal(decode(false), -EBADMSG);
}

/* `ip -f mpls route add 100 ttl-propagate enabled|disabled via ...` */
static void
a_label_may_have_a_mode(void **state)
{
	static const uint8_t value[] = {0, 1};

	for (unsigned int i = 0; i < 4; i++) {
		label_route(RTM_NEWROUTE, 100, 0);
		if (i < 2)
			attr(&sample.w, RTA_TTL_PROPAGATE, &value[i], 1);
		else if (i == 2)
			attr(&sample.w, RTA_TTL_PROPAGATE, "", 0);
		msg_end(&sample.w);
		assert_int_equal(decode(false), i == 2 ? -EBADMSG : KERNEL_TAKEN);
		if (i != 2)
			assert_int_equal(sample.ev.route.label_mode,
					 i == 0   ? LABEL_MODE_PIPE
					 : i == 1 ? LABEL_MODE_UNIFORM
						  : LABEL_MODE_DEFAULT);
	}
}

/* `ip route add 198.51.100.0/24 encap mpls 100 ttl N via ...` */
static void
labels_of_a_route_may_have_a_ttl(void **state)
{
	static const uint8_t ttl[] = {0, 7, 255};
	size_t nest;

	for (unsigned int i = 0; i <= sizeof(ttl) + 1; i++) {
		route_open(RTM_NEWROUTE, "198.51.100.0/24");
		attr_u16(&sample.w, RTA_ENCAP_TYPE, LWTUNNEL_ENCAP_MPLS);
		nest = attr_nest(&sample.w, RTA_ENCAP);
		attr_u32(&sample.w, MPLS_IPTUNNEL_DST, htonl(100u << 12 | 1u << 8));
		if (i < sizeof(ttl))
			attr(&sample.w, MPLS_IPTUNNEL_TTL, &ttl[i], 1);
		else if (i == sizeof(ttl))
			attr(&sample.w, MPLS_IPTUNNEL_TTL, "", 0);
		attr_nest_end(&sample.w, nest);
		msg_end(&sample.w);
		if (i == sizeof(ttl)) {
			assert_int_equal(decode(false), -EBADMSG);
			continue;
		}
		assert_int_equal(decode(false), KERNEL_TAKEN);
		assert_int_equal(sample.ev.route.hops[0].encap, HOP_MPLS);
		assert_int_equal(sample.ev.route.hops[0].label[0], 100);
		assert_int_equal(sample.ev.route.hops[0].label_ttl,
				 i < sizeof(ttl) ? LABEL_TTL_OWN | ttl[i] : 0);
	}
}

/* `ip -f mpls route add 100 via link 02:00:00:00:00:01 dev lan0` */
static void
a_label_by_a_mac_address_is_a_hop_that_rib_refuses(void **state)
{
	static const uint8_t via[] = {AF_PACKET, 0, 2, 0, 0, 0, 0, 1};
	struct rtmsg fixed = {.rtm_family = AF_MPLS, .rtm_dst_len = 20};

	begin();
	msg_begin(&sample.w, RTM_NEWROUTE);
	wire_put(&sample.w, &fixed, sizeof(fixed));
	attr_u32(&sample.w, RTA_DST, htonl(100u << 12 | 1u << 8));
	attr_u32(&sample.w, RTA_NEWDST, htonl(200u << 12 | 1u << 8));
	attr(&sample.w, RTA_VIA, via, sizeof(via));
	attr_u32(&sample.w, RTA_OIF, 3);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.route.n_hops, 1);
	assert_int_equal(sample.ev.route.hops[0].encap, HOP_OTHER_ENCAP);
}

static void
routes_of_some_sources_or_one_tos_have_a_condition(void **state)
{
	route_open(RTM_NEWROUTE, "2001:db8:1::/48");
	attr_addr(&sample.w, RTA_SRC, "2001:db8:2::");
	msg_end(&sample.w);
	rtm()->rtm_src_len = 48;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.src.len, 48);
	rtm()->rtm_src_len = 129;
	assert_int_equal(decode(false), -EBADMSG);
	route("198.51.100.0/24");
	rtm()->rtm_tos = 0x10;
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.src.len, 8);
	assert_int_equal(sample.ev.src.addr.octet[0], 0x10);
	route("198.51.100.0/24");
	rtm()->rtm_tos = 0xb8; /* no lookup has these bits */
	assert_int_equal(decode(false), KERNEL_SKIP);
	begin();
	msg_begin(&sample.w, RTM_NEWADDR);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_SKIP_TYPE);
}

static void
route_expiring(uint16_t type, int32_t in_ticks)
{
	struct rta_cacheinfo info = {.rta_expires = in_ticks};

	route_open(type, "2001:db8:1::/48");
	attr(&sample.w, RTA_CACHEINFO, &info, sizeof(info));
	msg_end(&sample.w);
}

static void
a_limited_life_is_told_and_an_expired_route_is_as_deleted(void **state)
{
	route_expiring(RTM_NEWROUTE, 0);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.expires_ms, 0);
	route_expiring(RTM_NEWROUTE, 1850);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.expires_ms, 18540);
	route_expiring(RTM_NEWROUTE, -5);
	assert_int_equal(decode(true), KERNEL_SKIP_EXPIRED);
	route_expiring(RTM_NEWROUTE, -5); /* the lifetime of the route was changed */
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_ROUTE_DEL);
	route_expiring(RTM_DELROUTE, -5); /* the deletion of an expired route is taken */
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_ROUTE_DEL);
}

static void
a_route_by_a_next_hop_object_has_no_hops_of_its_own(void **state)
{
	size_t nest;

	route_open(RTM_NEWROUTE, "198.51.100.0/24");
	attr_u32(&sample.w, RTA_NH_ID, 77);
	nest = attr_nest(&sample.w, RTA_METRICS);
	attr_u32(&sample.w, RTAX_MTU, 1400);
	attr_nest_end(&sample.w, nest);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.route.nhid, 77);
	assert_int_equal(sample.ev.route.n_hops, 0);
	assert_int_equal(sample.ev.route.mtu_bytes, 1400);
}

/*
 * Decode a route with two next hops, and with RTAX_ADVMSS unless it is 0. Return its
 * details.
 */
static uint32_t
details_of(const char *first, const char *second, uint8_t flags, uint32_t advmss)
{
	const char *gateway[] = {first, second};
	size_t nest, hop;

	begin();
	route_begin(&sample.w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
	nest = attr_nest(&sample.w, RTA_MULTIPATH);
	for (unsigned int n = 0; n < 2; n++) {
		rtnexthop_begin(&sample.w, &hop, 0, 3);
		((struct rtnexthop *)(sample.w.octet + hop))->rtnh_flags = flags;
		attr_addr(&sample.w, RTA_GATEWAY, gateway[n]);
		rtnexthop_end(&sample.w, hop);
	}
	attr_nest_end(&sample.w, nest);
	if (advmss != 0) {
		nest = attr_nest(&sample.w, RTA_METRICS);
		attr_u32(&sample.w, RTAX_ADVMSS, advmss);
		attr_nest_end(&sample.w, nest);
	}
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	return sample.ev.details;
}

static void
details_are_the_order_of_next_hops_and_metrics_but_no_states(void **state)
{
	uint32_t details = details_of("192.0.2.1", "192.0.2.2", 0, 0);

	assert_int_not_equal(details, 0);
	assert_false(sample.ev.route.hops[0].dead || sample.ev.route.hops[1].dead);
	assert_int_equal(details, details_of("192.0.2.1", "192.0.2.2", RTNH_F_DEAD, 0));
	assert_true(sample.ev.route.hops[0].dead && sample.ev.route.hops[1].dead);
	assert_int_not_equal(details, details_of("192.0.2.2", "192.0.2.1", 0, 0));
	assert_int_not_equal(details, details_of("192.0.2.1", "192.0.2.2", 0, 1400));
	assert_int_not_equal(details,
			     details_of("192.0.2.1", "192.0.2.2", RTNH_F_ONLINK, 0));
}

static void
next_hop_objects_are_taken_but_those_of_bridges(void **state)
{
	struct nexthop_grp grp[] = {{.id = 1}, {.id = 2, .weight = 4}};

	begin();
	put_nexthop(&sample.w, 5, "192.0.2.1", 3);
	assert_int_equal(decode(true), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_NEXTHOP);
	assert_int_equal(sample.ev.route.nhid, 5);
	assert_int_equal(sample.ev.route.hops[0].ifindex, 3);

	begin();
	nexthop_begin(&sample.w, RTM_NEWNEXTHOP, AF_UNSPEC, 6);
	attr(&sample.w, NHA_GROUP, grp, sizeof(grp));
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_true(sample.ev.route.is_group);
	assert_int_equal(sample.ev.route.n_hops, 2);
	assert_int_equal(sample.ev.route.hops[1].weight, 5);

	begin();
	nexthop_begin(&sample.w, RTM_DELNEXTHOP, AF_UNSPEC, 6);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_TAKEN);
	assert_int_equal(sample.ev.kind, KERNEL_NEXTHOP_DEL);

	begin();
	nexthop_begin(&sample.w, RTM_NEWNEXTHOP, AF_INET, 7);
	attr_addr(&sample.w, NHA_GATEWAY, "192.0.2.1");
	attr(&sample.w, NHA_FDB, NULL, 0);
	msg_end(&sample.w);
	assert_int_equal(decode(false), KERNEL_SKIP);
}

static void
contradictory_messages_are_malformed(void **state)
{
	struct nexthop_grp none = {.id = 0};

	route("198.51.100.0/24");
	rtm()->rtm_dst_len = 33;
	assert_int_equal(decode(false), -EBADMSG);
	route("198.51.100.0/24");
	rtm()->rtm_dst_len = 16; /* host bits */
	assert_int_equal(decode(false), -EBADMSG);
	route("198.51.100.0/24");
	rtm()->rtm_family = AF_INET6; /* an address of 4 octets */
	assert_int_equal(decode(false), -EBADMSG);
	route_open(RTM_NEWROUTE, "198.51.100.0/24");
	attr_u16(&sample.w, RTA_PRIORITY, 7);
	msg_end(&sample.w);
	assert_int_equal(decode(false), -EBADMSG);
	route_open(RTM_NEWROUTE, "198.51.100.0/24");
	attr_u16(&sample.w, RTA_PREFSRC, 7);
	msg_end(&sample.w);
	assert_int_equal(decode(false), -EBADMSG);
	begin();
	nexthop_begin(&sample.w, RTM_NEWNEXTHOP, AF_UNSPEC, 6);
	attr(&sample.w, NHA_GROUP, &none, sizeof(none));
	msg_end(&sample.w);
	assert_int_equal(decode(false), -EBADMSG);
	begin();
	nexthop_begin(&sample.w, RTM_NEWNEXTHOP, AF_INET, 0); /* id 0 */
	attr_u32(&sample.w, NHA_OIF, 3);
	msg_end(&sample.w);
	assert_int_equal(decode(false), -EBADMSG);
}

/*
 * A message of any length gives an error or a whole event. Nothing behind its end is read.
 */
static void
a_cut_message_is_malformed_or_decoded_up_to_the_cut(void **state)
{
	unsigned int n_bad = 0;

	for (unsigned int which = 0; which < 2; which++)
		for (uint32_t cut = 0;; cut++) {
			struct kernel_event ev = {0};
			struct nlmsghdr *copy;
			uint32_t len, expires_ms;
			int rc;

			if (which == 0) {
				route("198.51.100.0/24");
			} else {
				begin();
				put_nexthop(&sample.w, 5, "2001:db8::1", 3);
			}
			len = header()->nlmsg_len;
			if (MNL_NLMSG_HDRLEN + cut > len)
				break;
			/* The memory ends with the copy: a sanitizer sees an over-read. */
			copy = malloc(MNL_NLMSG_HDRLEN + cut);
			assert_non_null(copy);
			memcpy(copy, header(), MNL_NLMSG_HDRLEN + cut);
			copy->nlmsg_len = MNL_NLMSG_HDRLEN + cut;
			rc = kernel_message_decode(copy, false, &ev, &expires_ms);
			assert_true(rc == -EBADMSG || rc == KERNEL_TAKEN);
			n_bad += rc == -EBADMSG;
			fpm_event_clear(&ev.route);
			free(copy);
		}
	assert_true(n_bad > 20);
}

static int
samples_free(void **state)
{
	fpm_event_clear(&sample.ev.route);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_has_its_metric_interface_source_and_hops),
		cmocka_unit_test(
			lightweight_tunnels_are_data_for_a_device_or_made_by_the_kernel),
		cmocka_unit_test(types_of_the_kernel_are_taken_others_are_not),
		cmocka_unit_test(flags_tell_the_place_among_equal_metrics),
		cmocka_unit_test(table_local_is_a_mark_and_table_main),
		cmocka_unit_test(prefixes_of_no_fib_are_skipped),
		cmocka_unit_test(a_label_has_one_route_of_no_table),
		cmocka_unit_test(a_label_may_have_a_mode),
		cmocka_unit_test(labels_of_a_route_may_have_a_ttl),
		cmocka_unit_test(a_label_by_a_mac_address_is_a_hop_that_rib_refuses),
		cmocka_unit_test(routes_of_some_sources_or_one_tos_have_a_condition),
		cmocka_unit_test(a_limited_life_is_told_and_an_expired_route_is_as_deleted),
		cmocka_unit_test(a_route_by_a_next_hop_object_has_no_hops_of_its_own),
		cmocka_unit_test(
			details_are_the_order_of_next_hops_and_metrics_but_no_states),
		cmocka_unit_test(next_hop_objects_are_taken_but_those_of_bridges),
		cmocka_unit_test(contradictory_messages_are_malformed),
		cmocka_unit_test(a_cut_message_is_malformed_or_decoded_up_to_the_cut),
	};

	return cmocka_run_group_tests_name("kernel messages", tests, NULL, samples_free);
}
