/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder of `fpmctl audit` for the kernel's routes: its result for each kind of route,
 * and for messages that are not as rtnetlink(7) says.
 *
 * link: fpm-dataplane/ctl/hop_push.c fpm-dataplane/ctl/json_row.c
 * link: fpm-dataplane/ctl/kernel_route.c fpm-dataplane/ctl/hops_text.c
 * link: fpm-dataplane/ctl/kernel_nexthop.c fpm-dataplane/ctl/kernel_dump.c
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/icmpv6.h>
#include <linux/lwtunnel.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel_event.h"
#include "ctl/kernel_route.h"

static const struct kernel_link links[] = {{.ifindex = 2, .name = "lan0", .flags = IFF_UP},
					   {.ifindex = 5, .name = "wan0"},
					   {.ifindex = 6, .name = "vrrp2", .below = 2},
					   {.ifindex = 7, .name = "vrrp5", .below = 5},
					   {.ifindex = 70000, .name = "far0"}};

static struct route_decoder *decoder;
static uint64_t message_room[8192];
static struct nlmsghdr *h;
static struct rtmsg *rtm;
static int rc;

/* Begin a message: a route of table main by its family and prefix length. */
static void
begin(uint8_t af, uint8_t len)
{
	h = mnl_nlmsg_put_header(message_room);
	h->nlmsg_type = RTM_NEWROUTE;
	rtm = mnl_nlmsg_put_extra_header(h, sizeof(*rtm));
	*rtm = (struct rtmsg){.rtm_family = af,
			      .rtm_dst_len = len,
			      .rtm_table = RT_TABLE_MAIN,
			      .rtm_protocol = RTPROT_STATIC,
			      .rtm_type = RTN_UNICAST};
}

static void
put_address(uint16_t type, const char *text)
{
	uint8_t octets[16];
	int af = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;

	assert_int_equal(inet_pton(af, text, octets), 1);
	mnl_attr_put(h, type, af == AF_INET ? 4 : 16, octets);
}

/* Put a gateway of another family. */
static void
put_via(const char *text)
{
	struct {
		uint16_t family;
		uint8_t octets[16];
	} via = {.family = AF_INET6};

	assert_int_equal(inet_pton(AF_INET6, text, via.octets), 1);
	mnl_attr_put(h, RTA_VIA, sizeof(via), &via);
}

static void
put_encap(void)
{
	struct nlattr *encap = mnl_attr_nest_start(h, RTA_ENCAP);

	mnl_attr_put_u32(h, 1, htonl(100 << 12 | 1 << 8));
	mnl_attr_nest_end(h, encap);
	mnl_attr_put_u16(h, RTA_ENCAP_TYPE, LWTUNNEL_ENCAP_MPLS);
}

/* Begin a next hop of RTA_MULTIPATH, whose attributes follow. */
static struct rtnexthop *
hop_begin(uint32_t ifindex, uint8_t hops, uint8_t flags)
{
	struct rtnexthop *hop = mnl_nlmsg_get_payload_tail(h);

	*hop = (struct rtnexthop){
		.rtnh_ifindex = (int)ifindex, .rtnh_hops = hops, .rtnh_flags = flags};
	h->nlmsg_len += sizeof(*hop);
	return hop;
}

static void
hop_end(struct rtnexthop *hop)
{
	hop->rtnh_len =
		(uint16_t)((uint8_t *)mnl_nlmsg_get_payload_tail(h) - (uint8_t *)hop);
}

/*
 * Decode the message from memory of exactly its length, so that AddressSanitizer sees an
 * access beyond its end.
 */
static struct kernel_route *
decode(void)
{
	void *copy = malloc(h->nlmsg_len);
	struct kernel_route *r;

	memcpy(copy, h, h->nlmsg_len);
	r = route_decode(decoder, copy, &rc);
	free(copy);
	return r;
}

static struct kernel_route *
decoded(void)
{
	struct kernel_route *r = decode();

	assert_int_equal(rc, 0);
	assert_non_null(r);
	return r;
}

static void
assert_hops(struct kernel_route *r, const char *hops)
{
	char *text = hops_join(&r->hops);

	assert_string_equal(text == NULL ? "none" : text, hops);
	free(text);
}

static void
assert_no_route(void)
{
	assert_null(decode());
	assert_int_equal(rc, 0);
}

static void
assert_bad(void)
{
	assert_null(decode());
	assert_int_equal(rc, -EBADMSG);
}

static int
setup(void **state)
{
	decoder = route_decoder_new(links, sizeof(links) / sizeof(links[0]));
	return 0;
}

static int
teardown(void **state)
{
	route_decoder_free(decoder);
	return 0;
}

/* Make the message of 198.51.100.0/24 via 10.0.0.1 dev wan0. */
static void
simple(void)
{
	begin(AF_INET, 24);
	put_address(RTA_DST, "198.51.100.0");
	put_address(RTA_GATEWAY, "10.0.0.1");
	mnl_attr_put_u32(h, RTA_OIF, 5);
}

/* Make a message with each attribute that the decoder reads. */
static void
rich(void)
{
	struct rta_cacheinfo cache = {.rta_expires = 500};
	struct nlattr *all;
	struct rtnexthop *hop;

	begin(AF_INET6, 48);
	rtm->rtm_src_len = 32;
	put_address(RTA_DST, "2001:db8:7::");
	put_address(RTA_SRC, "2001:db8::");
	mnl_attr_put_u32(h, RTA_TABLE, 1000);
	mnl_attr_put_u32(h, RTA_PRIORITY, 77);
	mnl_attr_put_u8(h, RTA_PREF, ICMPV6_ROUTER_PREF_LOW);
	mnl_attr_put(h, RTA_CACHEINFO, sizeof(cache), &cache);
	all = mnl_attr_nest_start(h, RTA_MULTIPATH);
	hop = hop_begin(70000, 2, 0);
	put_address(RTA_GATEWAY, "fe80::1");
	put_encap();
	hop_end(hop);
	hop = hop_begin(2, 0, RTNH_F_LINKDOWN);
	put_address(RTA_GATEWAY, "fe80::2");
	hop_end(hop);
	mnl_attr_nest_end(h, all);
}

/* --- good messages -------------------------------------------------------------------- */

static void
a_route_by_a_gateway(void **state)
{
	struct kernel_route *r;
	char text[PREFIX_STRLEN];

	simple();
	mnl_attr_put_u32(h, RTA_PRIORITY, 20);
	r = decoded();
	assert_string_equal(prefix_str(&r->prefix, text), "198.51.100.0/24");
	assert_hops(r, "via 10.0.0.1 dev wan0 weight 1");
	assert_int_equal(r->table, 254);
	assert_int_equal(r->metric, 20);
	assert_int_equal(r->protocol, RTPROT_STATIC);
	assert_int_equal(r->src.len, 0);
	assert_false(r->is_local || r->is_down);
}

static void
every_attribute_of_an_ipv6_route(void **state)
{
	struct kernel_route *r;
	char text[PREFIX_STRLEN];

	rich();
	r = decoded();
	assert_string_equal(prefix_str(&r->prefix, text), "2001:db8:7::/48");
	assert_string_equal(prefix_str(&r->src, text), "2001:db8::/32");
	assert_hops(
		r,
		"via fe80::1 dev far0 label 100 weight 3; via fe80::2 dev lan0 weight 1");
	assert_int_equal(r->table, 1000);
	assert_int_equal(r->metric, 77);
	assert_int_equal(r->preference, 2);
	assert_false(r->is_local || r->is_down);
}

/* Add the connected subnet of an interface to the message. */
static void
connected(uint32_t ifindex)
{
	begin(AF_INET, 24);
	rtm->rtm_protocol = RTPROT_KERNEL;
	put_address(RTA_DST, "10.9.0.0");
	mnl_attr_put_u32(h, RTA_OIF, ifindex);
}

/*
 * A macvlan keeps its carrier when the interface below it is set down. The dataplane then
 * does not use the connected subnet, as if the macvlan had no carrier.
 */
static void
a_subnet_of_a_macvlan_is_down_with_the_interface_below(void **state)
{
	connected(6);
	assert_false(decoded()->is_down);
	connected(7);
	assert_true(decoded()->is_down);
	connected(5); /* the kernel has removed the routes of this interface, or will */
	assert_false(decoded()->is_down);
}

static void
gateways_of_the_other_family_encapsulations_and_unknown_interfaces(void **state)
{
	begin(AF_INET, 0);
	put_via("fe80::9");
	mnl_attr_put_u32(h, RTA_OIF, 99);
	put_encap();
	assert_hops(decoded(), "via fe80::9 dev if99 label 100 weight 1");
}

/* Put a headend of SRv6 with segments fd00::1 and fd00::2; `mode` of seg6_iptunnel.h. */
static void
put_headend(uint32_t mode, uint8_t tag)
{
	uint8_t tunnel[4 + 8 + 32] = {[5] = 4, [6] = 4, [7] = 1, [8] = 1, [11] = tag};
	struct nlattr *encap;

	memcpy(tunnel, &mode, sizeof(mode));
	assert_int_equal(inet_pton(AF_INET6, "fd00::2", tunnel + 12), 1);
	assert_int_equal(inet_pton(AF_INET6, "fd00::1", tunnel + 28), 1);
	encap = mnl_attr_nest_start(h, RTA_ENCAP);
	mnl_attr_put(h, 1, sizeof(tunnel), tunnel);
	mnl_attr_nest_end(h, encap);
	mnl_attr_put_u16(h, RTA_ENCAP_TYPE, LWTUNNEL_ENCAP_SEG6);
}

static void
a_headend_has_its_segments(void **state)
{
	static const struct {
		uint32_t mode;
		uint8_t tag;
		const char *push;
	} of[] = {{1, 0, "H.Encaps fd00::1 fd00::2"},
		  {3, 0, "H.Encaps.Red fd00::1 fd00::2"},
		  {0, 0, "SRv6 refused"},
		  {1, 9, "SRv6 refused"}};
	char want[80];

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		begin(AF_INET6, 0);
		mnl_attr_put_u32(h, RTA_OIF, 5);
		put_headend(of[i].mode, of[i].tag);
		snprintf(want, sizeof(want), "dev wan0 %s weight 1", of[i].push);
		assert_hops(decoded(), want);
	}
}

/* zebra's copy of an IPv6 route with an IPv4 gateway (6PE) has no gateway. */
static void
a_copy_without_a_gateway_may_lack_labels(void **state)
{
	struct kernel_route *r;

	begin(AF_INET6, 0);
	mnl_attr_put_u32(h, RTA_OIF, 5);
	put_encap();
	r = decoded();
	hops_drop_bare_push(&r->hops);
	assert_hops(r, "dev wan0 weight 1");
	begin(AF_INET6, 0);
	put_address(RTA_GATEWAY, "fe80::1");
	mnl_attr_put_u32(h, RTA_OIF, 5);
	put_encap();
	r = decoded();
	hops_drop_bare_push(&r->hops);
	assert_hops(r, "via fe80::1 dev wan0 label 100 weight 1");
}

/* Put RTA_METRICS with an MTU that is locked, and an MSS. */
static void
put_mtu(uint32_t mtu_bytes)
{
	struct nlattr *metrics = mnl_attr_nest_start(h, RTA_METRICS);

	mnl_attr_put_u32(h, RTAX_LOCK, 1 << RTAX_MTU);
	mnl_attr_put_u32(h, RTAX_MTU, mtu_bytes);
	mnl_attr_put_u32(h, RTAX_ADVMSS, 1300);
	mnl_attr_nest_end(h, metrics);
}

static void
the_mtu_of_a_route_is_the_one_that_counts(void **state)
{
	static const struct {
		uint8_t af;
		uint32_t mtu_bytes;
		const char *hops;
	} of[] = {{AF_INET, 1400, "dev wan0 weight 1, mtu 1400"},
		  {AF_INET, 60, "dev wan0 weight 1, mtu 68"},
		  {AF_INET6, 1200, "dev wan0 weight 1, mtu 1280"},
		  {AF_INET6, 65535, "dev wan0 weight 1"}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		begin(of[i].af, 0);
		mnl_attr_put_u32(h, RTA_OIF, 5);
		put_mtu(of[i].mtu_bytes);
		assert_hops(decoded(), of[i].hops);
	}
	begin(AF_INET, 24);
	rtm->rtm_type = RTN_BLACKHOLE;
	put_address(RTA_DST, "10.9.0.0");
	put_mtu(1400);
	assert_hops(decoded(), "blackhole");
}

static void
a_route_of_252_next_hops(void **state)
{
	struct nlattr *all;
	struct kernel_route *r;

	begin(AF_INET6, 0);
	all = mnl_attr_nest_start(h, RTA_MULTIPATH);
	for (unsigned int i = 0; i < 252; i++) {
		struct rtnexthop *hop = hop_begin(5, (uint8_t)i, 0);
		char text[32];

		snprintf(text, sizeof(text), "fe80::%x", i + 1);
		put_address(RTA_GATEWAY, text);
		hop_end(hop);
	}
	mnl_attr_nest_end(h, all);
	r = decoded();
	assert_int_equal(r->hops.n, 252);
	assert_string_equal(r->hops.hop[251], "via fe80::fc dev wan0 weight 252");
}

/* With the sysctl nexthop_compat_mode 0 a route names its object alone. */
static void
next_hops_of_an_object(void **state)
{
	struct nexthop_grp group[] = {
		{.id = 1}, {.id = 2, .weight = 4}, {.id = 9}, {.id = 10}};
	struct kernel_nexthop v[] = {
		{.id = 1, .ifindex = 2, .via = "10.0.0.1"},
		{.id = 2, .ifindex = 5, .via = "fe80::2", .flags = RTNH_F_DEAD},
		{.id = 3},
		{.id = 10, .member = group, .n_members = 4},
	};
	struct kernel_nexthops all = {.v = v, .n = 4};

	route_decoder_set_nexthops(decoder, &all);
	begin(AF_INET, 0);
	mnl_attr_put_u32(h, RTA_NH_ID, 1);
	assert_hops(decoded(), "via 10.0.0.1 dev lan0 weight 1");
	begin(AF_INET, 0);
	mnl_attr_put_u32(h, RTA_NH_ID, 10);
	assert_hops(decoded(),
		    "via 10.0.0.1 dev lan0 weight 1; via fe80::2 dev wan0 weight 5");
	assert_false(decoded()->is_down);
	begin(AF_INET, 0);
	mnl_attr_put_u32(h, RTA_NH_ID, 2);
	assert_true(decoded()->is_down);
	for (uint32_t id = 3; id < 5; id++) { /* no interface; no object */
		begin(AF_INET, 0);
		mnl_attr_put_u32(h, RTA_NH_ID, id);
		assert_no_route();
	}
	simple(); /* a route with next hops of its own and the id of an object */
	mnl_attr_put_u32(h, RTA_NH_ID, 10);
	assert_hops(decoded(), "via 10.0.0.1 dev wan0 weight 1");
	begin(AF_INET, 0);
	mnl_attr_put_u16(h, RTA_NH_ID, 1);
	assert_bad();
}

static void
types_of_routes_have_the_words_of_the_dataplane(void **state)
{
	static const struct {
		uint8_t type;
		const char *ipv4, *ipv6;
	} row[] = {
		{RTN_LOCAL, "local", "local"},
		{RTN_BROADCAST, "broadcast", "dev wan0 weight 1"},
		{RTN_ANYCAST, "local", "local"},
		{RTN_MULTICAST, "broadcast", "dev wan0 weight 1"},
		{RTN_BLACKHOLE, "blackhole", "blackhole"},
		{RTN_UNREACHABLE, "unreachable", "unreachable"},
		{RTN_PROHIBIT, "prohibit", "prohibit"},
		{RTN_THROW, "throw", "throw"},
		{RTN_NAT, NULL, "dev wan0 weight 1"},
		{RTN_XRESOLVE, NULL, "dev wan0 weight 1"},
		{RTN_UNSPEC, NULL, NULL},
		{RTN_MAX + 1, NULL, NULL},
		{255, NULL, NULL},
	};

	for (size_t i = 0; i < 2 * sizeof(row) / sizeof(row[0]); i++) {
		const char *hops = i % 2 == 0 ? row[i / 2].ipv4 : row[i / 2].ipv6;

		begin(i % 2 == 0 ? AF_INET : AF_INET6, 0);
		rtm->rtm_type = row[i / 2].type;
		mnl_attr_put_u32(h, RTA_OIF, 5);
		if (hops == NULL)
			assert_no_route();
		else
			assert_hops(decoded(), hops);
	}
}

static void
table_local_is_before_main(void **state)
{
	simple();
	rtm->rtm_table = RT_TABLE_LOCAL;
	assert_true(decoded()->is_local);
	assert_int_equal(decoded()->table, 254);
	rich();
	rtm->rtm_table = RT_TABLE_LOCAL; /* RTA_TABLE has precedence */
	assert_false(decoded()->is_local);
	assert_int_equal(decoded()->table, 1000);
	begin(AF_INET6, 0);
	rtm->rtm_table = RT_TABLE_LOCAL;
	rtm->rtm_type = RTN_THROW;
	assert_no_route();
	for (int split = 0; split < 2; split++) {
		route_decoder_set_split4(decoder, split);
		begin(AF_INET, 0);
		rtm->rtm_table = RT_TABLE_LOCAL;
		rtm->rtm_type = RTN_THROW;
		if (split)
			assert_no_route();
		else
			assert_true(decoded()->is_local);
	}
}

static void
a_tos_is_a_condition(void **state)
{
	struct prefix tos = tos_condition(0x10);

	simple();
	rtm->rtm_tos = 0x10;
	assert_memory_equal(&decoded()->src, &tos, sizeof(tos));
	rtm->rtm_tos = 0x20; /* no lookup of Linux has this TOS */
	assert_no_route();
}

static void
preferences_of_ipv6(void **state)
{
	static const uint8_t value[] = {ICMPV6_ROUTER_PREF_HIGH, ICMPV6_ROUTER_PREF_MEDIUM,
					ICMPV6_ROUTER_PREF_LOW};

	for (uint8_t i = 0; i < 3; i++) {
		begin(AF_INET6, 0);
		mnl_attr_put_u32(h, RTA_OIF, 5);
		mnl_attr_put_u8(h, RTA_PREF, value[i]);
		assert_int_equal(decoded()->preference, i);
	}
}

static void
expired_routes_are_left_out(void **state)
{
	struct rta_cacheinfo cache = {.rta_expires = 1};

	begin(AF_INET6, 0);
	mnl_attr_put_u32(h, RTA_OIF, 5);
	mnl_attr_put(h, RTA_CACHEINFO, sizeof(cache), &cache);
	assert_non_null(decoded());
	begin(AF_INET6, 0);
	mnl_attr_put_u32(h, RTA_OIF, 5);
	cache.rta_expires = -1;
	mnl_attr_put(h, RTA_CACHEINFO, sizeof(cache), &cache);
	assert_no_route();
}

static void
routes_without_carrier_are_down(void **state)
{
	simple();
	rtm->rtm_flags = RTNH_F_LINKDOWN;
	assert_false(decoded()->is_down); /* Linux uses such a route */
	rtm->rtm_flags = RTNH_F_DEAD | RTNH_F_LINKDOWN;
	assert_true(decoded()->is_down);
	rtm->rtm_flags = RTNH_F_LINKDOWN;
	rtm->rtm_protocol = RTPROT_KERNEL;
	assert_true(decoded()->is_down);
	rtm->rtm_type = RTN_BLACKHOLE;
	assert_false(decoded()->is_down);
}

static void
one_next_hop_with_carrier_suffices(void **state)
{
	for (uint8_t flags = 0; flags <= RTNH_F_DEAD; flags += RTNH_F_DEAD) {
		struct nlattr *all;

		begin(AF_INET, 0);
		all = mnl_attr_nest_start(h, RTA_MULTIPATH);
		hop_end(hop_begin(2, 0, RTNH_F_DEAD));
		hop_end(hop_begin(5, 0, flags));
		mnl_attr_nest_end(h, all);
		assert_int_equal(decoded()->is_down, flags == RTNH_F_DEAD);
	}
}

/* Linux sends no marks that count for IPv6, and for a route by an object. */
static void
next_hops_that_the_kernel_has_marked_as_dead(void **state)
{
	static const char *const hops[] = {
		"dev lan0 weight 1 dead; dev wan0 weight 1",
		"dev lan0 weight 1; dev wan0 weight 1",
	};

	for (unsigned int i = 0; i < 3; i++) {
		struct nlattr *all;

		begin(i == 1 ? AF_INET6 : AF_INET, 0);
		all = mnl_attr_nest_start(h, RTA_MULTIPATH);
		hop_end(hop_begin(2, 0, RTNH_F_DEAD | RTNH_F_LINKDOWN));
		hop_end(hop_begin(5, 0, RTNH_F_LINKDOWN));
		mnl_attr_nest_end(h, all);
		if (i == 2)
			mnl_attr_put_u32(h, RTA_NH_ID, 9);
		assert_hops(decoded(), hops[i > 0]);
	}
}

static void
exceptions_and_prefixes_of_no_fib_are_left_out(void **state)
{
	simple();
	rtm->rtm_flags = RTM_F_CLONED;
	assert_no_route();
	begin(AF_INET6, 64);
	put_address(RTA_DST, "fe80::");
	mnl_attr_put_u32(h, RTA_OIF, 5);
	assert_no_route();
	begin(AF_INET, 8);
	put_address(RTA_DST, "127.0.0.0");
	mnl_attr_put_u32(h, RTA_OIF, 5);
	assert_no_route();
	begin(AF_INET, 0); /* no next hop */
	assert_no_route();
}

static void
notes_stay_while_only_the_prefix_changes(void **state)
{
	simple();
	assert_int_equal(decoded()->noted, 0);
	decoded()->noted = 7;
	begin(AF_INET, 16);
	put_address(RTA_DST, "10.9.0.0");
	put_address(RTA_GATEWAY, "10.0.0.1");
	mnl_attr_put_u32(h, RTA_OIF, 5);
	assert_int_equal(decoded()->noted, 7);
	assert_int_equal(decoded()->prefix.len, 16);
	rtm->rtm_protocol = RTPROT_BOOT;
	assert_int_equal(decoded()->noted, 0);
	simple();
	put_encap();
	assert_int_equal(decoded()->noted, 0);
}

/* --- bad messages --------------------------------------------------------------------- */

static void
a_message_cut_at_any_octet_is_no_other_route(void **state)
{
	unsigned int n_bad = 0, whole;
	struct kernel_route *r;

	rich();
	whole = h->nlmsg_len;
	for (unsigned int len = NLMSG_HDRLEN; len < whole; len++) {
		h->nlmsg_len = len;
		r = decode();
		assert_true(rc == 0 || rc == -EBADMSG);
		/* All next hops are in the last attribute. */
		assert_null(r);
		n_bad += rc == -EBADMSG;
	}
	/* A cut between two attributes leaves a good message. */
	assert_in_range(n_bad, whole - NLMSG_HDRLEN - 16, whole - NLMSG_HDRLEN);
}

static void
any_changed_octet_is_survived(void **state)
{
	static const uint8_t value[] = {0, 1, 3, 0x7f, 0x80, 0xff};
	unsigned int n_bad = 0;

	rich();
	for (unsigned int at = NLMSG_HDRLEN; at < h->nlmsg_len; at++)
		for (size_t i = 0; i < sizeof(value); i++) {
			rich();
			((uint8_t *)h)[at] = value[i];
			(void)decode();
			assert_true(rc == 0 || rc == -EBADMSG);
			n_bad += rc != 0;
		}
	assert_true(n_bad > 0);
}

static void
an_attribute_of_a_wrong_length_is_bad(void **state)
{
	static const struct {
		uint8_t af;
		uint16_t type;
		uint8_t len[4]; /* wrong lengths; 0: no further length */
		bool also_empty;
	} row[] = {
		{AF_INET, RTA_GATEWAY, {3, 5, 15, 17}, true},
		{AF_INET, RTA_GATEWAY, {16}, false},
		{AF_INET6, RTA_GATEWAY, {3, 4, 15, 17}, true},
		{AF_INET, RTA_VIA, {1, 2, 6, 19}, true},
		{AF_INET, RTA_TABLE, {1, 3, 5}, true},
		{AF_INET, RTA_PRIORITY, {1, 3, 5}, true},
		{AF_INET, RTA_OIF, {1, 3, 5}, true},
		{AF_INET6, RTA_PREF, {2, 4}, true},
		{AF_INET6, RTA_CACHEINFO, {1, 31}, true},
		{AF_INET, RTA_MULTIPATH, {1, 7}, false},
	};
	static const uint8_t octets[32];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (size_t k = 0; k < 4; k++) {
			if (row[i].len[k] == 0 && (k > 0 || !row[i].also_empty))
				continue;
			begin(row[i].af, 0);
			mnl_attr_put(h, row[i].type, row[i].len[k], octets);
			assert_bad();
		}
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (row[i].also_empty) {
			begin(row[i].af, 0);
			mnl_attr_put(h, row[i].type, 0, octets);
			assert_bad();
		}
}

static void
a_prefix_that_is_too_long_or_missing_is_bad(void **state)
{
	simple();
	rtm->rtm_dst_len = 33;
	assert_bad();
	begin(AF_INET, 24);
	mnl_attr_put_u32(h, RTA_OIF, 5);
	assert_bad();
	begin(AF_INET, 24);
	put_address(RTA_DST, "2001:db8::");
	assert_bad();
	begin(AF_INET6, 24);
	put_address(RTA_DST, "10.0.0.0");
	assert_bad();
	rich();
	rtm->rtm_src_len = 129;
	assert_bad();
	rich();
	rtm->rtm_family = AF_INET;
	assert_bad();
	simple();
	rtm->rtm_family = AF_BRIDGE;
	assert_bad();
}

static void
a_next_hop_of_a_wrong_length_is_bad(void **state)
{
	static const int add[] = {-12, -5, -1, 1, 100, 32000};

	for (size_t i = 0; i < sizeof(add) / sizeof(add[0]); i++) {
		struct nlattr *all;
		struct rtnexthop *hop;

		begin(AF_INET, 0);
		all = mnl_attr_nest_start(h, RTA_MULTIPATH);
		hop = hop_begin(2, 0, 0);
		put_address(RTA_GATEWAY, "10.0.0.1");
		hop_end(hop);
		hop->rtnh_len = (uint16_t)(hop->rtnh_len + add[i]);
		mnl_attr_nest_end(h, all);
		assert_bad();
	}
}

static void
a_bad_message_leaves_nothing_behind(void **state)
{
	simple();
	assert_hops(decoded(), "via 10.0.0.1 dev wan0 weight 1");
	rich();
	assert_non_null(decode());
	rich();
	((struct rtnexthop *)((uint8_t *)mnl_nlmsg_get_payload_tail(h) - 28))->rtnh_len = 3;
	assert_bad();
	rich();
	assert_hops(
		decoded(),
		"via fe80::1 dev far0 label 100 weight 3; via fe80::2 dev lan0 weight 1");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_route_by_a_gateway),
		TEST(every_attribute_of_an_ipv6_route),
		TEST(a_subnet_of_a_macvlan_is_down_with_the_interface_below),
		TEST(the_mtu_of_a_route_is_the_one_that_counts),
		TEST(a_headend_has_its_segments),
		TEST(a_copy_without_a_gateway_may_lack_labels),
		TEST(gateways_of_the_other_family_encapsulations_and_unknown_interfaces),
		TEST(a_route_of_252_next_hops),
		TEST(next_hops_of_an_object),
		TEST(types_of_routes_have_the_words_of_the_dataplane),
		TEST(table_local_is_before_main),
		TEST(a_tos_is_a_condition),
		TEST(preferences_of_ipv6),
		TEST(expired_routes_are_left_out),
		TEST(routes_without_carrier_are_down),
		TEST(one_next_hop_with_carrier_suffices),
		TEST(next_hops_that_the_kernel_has_marked_as_dead),
		TEST(exceptions_and_prefixes_of_no_fib_are_left_out),
		TEST(notes_stay_while_only_the_prefix_changes),
		TEST(a_message_cut_at_any_octet_is_no_other_route),
		TEST(any_changed_octet_is_survived),
		TEST(an_attribute_of_a_wrong_length_is_bad),
		TEST(a_prefix_that_is_too_long_or_missing_is_bad),
		TEST(a_next_hop_of_a_wrong_length_is_bad),
		TEST(a_bad_message_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
