/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder: each kind of message becomes the right event. All other messages are skipped
 * by their length and counted.
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include <linux/neighbour.h>

#include "test_fpm_events.h"

static void
captured_replace_of_frr_8_4_is_a_delete_and_a_route(void **state)
{
	static const uint8_t sample[] = {
		0x01, 0x01, 0x00, 0x64,
		/* DELROUTE 198.51.100.0/24 */
		0x2c, 0x00, 0x00, 0x00, 0x19, 0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 0x00,
		0x4f, 0xfe, 0x22, 0x9e, 0x02, 0x18, 0x00, 0x00, 0xfe, 0xc4, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00, 0xc6, 0x33, 0x64, 0x00,
		0x08, 0x00, 0x06, 0x00, 0x14, 0x00, 0x00, 0x00,
		/* NEWROUTE of the same prefix, next hop 44 */
		0x34, 0x00, 0x00, 0x00, 0x18, 0x00, 0x01, 0x05, 0x00, 0x00, 0x00, 0x00,
		0x4f, 0xfe, 0x22, 0x9e, 0x02, 0x18, 0x00, 0x00, 0xfe, 0xc4, 0x00, 0x01,
		0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00, 0xc6, 0x33, 0x64, 0x00,
		0x08, 0x00, 0x06, 0x00, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x1e, 0x00,
		0x2c, 0x00, 0x00, 0x00};
	struct seen seen = decode_stream(sample, sizeof(sample));

	assert_string_equal(seen.text.s,
			    "del 198.51.100.0/24 t254;route 198.51.100.0/24 t254 nh44;");
	assert_int_equal(seen.decoded.nl_pid, 0x9e22fe4f);
	assert_int_equal(seen.decoded.messages, 2);
	free(seen.text.s);
}

/* A replay by zebra 8.4.4 of a group with one remaining member. */
static void
lone_member_of_a_group_has_no_family_but_a_gateway(void **state)
{
	static const uint8_t sample[] = {
		0x01, 0x01, 0x00, 0x34, 0x30, 0x00, 0x00, 0x00, 0x68, 0x00, 0x01, 0x05,
		0x00, 0x00, 0x00, 0x00, 0x9c, 0x03, 0x19, 0x91, 0x00, 0x00, 0x0b, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00, 0xec, 0x00, 0x00, 0x00,
		0x08, 0x00, 0x06, 0x00, 0xc6, 0x33, 0x64, 0x02, 0x08, 0x00, 0x05, 0x00,
		0x03, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x40, 0x3c, 0x00, 0x00, 0x00,
		0x68, 0x00, 0x01, 0x05, 0x00, 0x00, 0x00, 0x00, 0x9c, 0x03, 0x19, 0x91,
		0x00, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00,
		0xf1, 0x00, 0x00, 0x00, 0x14, 0x00, 0x06, 0x00, 0xfe, 0x80, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x08, 0x16, 0x37, 0xff, 0xfe, 0x86, 0x0d, 0x18,
		0x08, 0x00, 0x05, 0x00, 0x03, 0x00, 0x00, 0x00,
	};
	struct seen seen = decode_stream(sample, sizeof(sample));

	assert_string_equal(seen.text.s, "nexthop 236 [198.51.100.2 if3 w1];"
					 "nexthop 241 [fe80::816:37ff:fe86:d18 if3 w1];");
	assert_int_equal(seen.decoded.malformed, 0);
	free(seen.text.s);
}

static void
samples_of_every_shape_become_their_events(void **state)
{
	struct wire *w = wire_new();
	struct fpm_decoded t;

	put_samples(w);
	t = becomes(w, "nexthop 1 [192.0.2.1 if2 w1];"
		       "nexthop 2 [fe80::1 if3 w1];"
		       "nexthop 3 [id1 w1] [id2 w255];"
		       "nexthop 4 blackhole;"
		       "nexthop 5 [if2 w1 mpls 16];"
		       "del 198.51.100.0/24 t254;"
		       "route 198.51.100.0/24 t254 nh3;"
		       "route 2001:db8::/32 t254 nh2;"
		       "route 203.0.113.0/24 t1000 mtu1400 [fe80::2 if7 w1];"
		       "route 2001:db8:1::/48 t254 [2001:db8::1 if2 w5]"
		       " [2001:db8::2 if3 w250 seg6];"
		       "route 192.0.2.128/25 t254 type6;"
		       "nexthop-del 4;");
	assert_int_equal(t.messages, 12);
	assert_int_equal(t.routes, 5);
	assert_int_equal(t.route_dels, 1);
	assert_int_equal(t.nexthops, 5);
	assert_int_equal(t.nexthop_dels, 1);
	assert_int_equal(t.malformed + t.skipped_route + t.skipped_type, 0);
	assert_int_equal(t.nl_pid, ZEBRA_PID);
}

static void
group_weight_has_sixteen_bits(void **state)
{
	uint8_t grp[8] = {9, 0, 0, 0, 255, 255, 0, 0};
	struct wire *w = one_frame();

	nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, 3);
	attr(w, NHA_GROUP, grp, sizeof(grp));
	last_becomes(w, "nexthop 3 [id9 w65536];");
}

static void
default_route_needs_no_destination(void **state)
{
	struct rtmsg rtm = {
		.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST};
	struct wire *w = one_frame();

	msg_begin(w, RTM_NEWROUTE);
	wire_put(w, &rtm, sizeof(rtm));
	attr_u32(w, RTA_NH_ID, 1);
	last_becomes(w, "route 0.0.0.0/0 t254 nh1;");
}

static void
table_0_is_main(void **state)
{
	struct rtmsg rtm = {.rtm_family = AF_INET6, .rtm_type = RTN_UNSPEC};
	struct wire *w = one_frame();

	msg_begin(w, RTM_DELROUTE);
	wire_put(w, &rtm, sizeof(rtm));
	last_becomes(w, "del ::/0 t254;");
}

static void
onlink_is_kept_of_route_and_of_next_hop(void **state)
{
	struct wire *w = one_frame();
	struct rtmsg *rtm;
	struct nhmsg *nhm;

	route_begin(w, RTM_NEWROUTE, "192.0.2.0/24", RTN_UNICAST);
	rtm = (struct rtmsg *)(w->octet + w->msg + sizeof(struct nlmsghdr));
	rtm->rtm_flags = RTNH_F_ONLINK;
	attr_addr(w, RTA_GATEWAY, "169.254.0.1");
	attr_u32(w, RTA_OIF, 2);
	msg_end(w);
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 8);
	nhm = (struct nhmsg *)(w->octet + w->msg + sizeof(struct nlmsghdr));
	nhm->nh_flags = RTNH_F_ONLINK;
	attr_u32(w, NHA_OIF, 2);
	last_becomes(w, "route 192.0.2.0/24 t254 [169.254.0.1 if2 w1 onlink];"
			"nexthop 8 [if2 w1 onlink];");
}

static void
unicast_without_any_next_hop_is_still_an_upsert(void **state)
{
	struct wire *w = one_frame();

	route_begin(w, RTM_NEWROUTE, "192.0.2.0/24", RTN_UNICAST);
	last_becomes(w, "route 192.0.2.0/24 t254;");
}

static void
unwanted_kinds_of_routes_are_counted_as_such(void **state)
{
	static const uint8_t type[] = {RTN_LOCAL, RTN_BROADCAST, RTN_MULTICAST, RTN_THROW,
				       99};
	struct rtmsg other = {.rtm_family = AF_DECnet, .rtm_type = RTN_UNICAST};
	struct wire *w;

	w = one_frame();
	msg_begin(w, RTM_NEWROUTE);
	wire_put(w, &other, sizeof(other));
	assert_int_equal(last_is_nothing(w).skipped_route, 1);
	w = one_frame();
	route_begin(w, RTM_NEWROUTE, "192.0.2.0/24", RTN_UNICAST);
	attr_u32(w, RTA_TABLE, FPM_TABLE_NONE);
	assert_int_equal(last_is_nothing(w).skipped_route, 1);
	for (size_t i = 0; i < sizeof(type); i++) {
		w = one_frame();
		route_begin(w, RTM_NEWROUTE, "192.0.2.0/24", type[i]);
		attr_u32(w, RTA_NH_ID, 1);
		assert_int_equal(last_is_nothing(w).skipped_route, 1);
	}
	w = one_frame();
	route_begin(w, RTM_NEWROUTE, "2001:db8::/32", RTN_UNICAST);
	attr_addr(w, RTA_SRC, "2001:db8:1::");
	attr_u32(w, RTA_NH_ID, 1);
	assert_int_equal(last_is_nothing(w).skipped_route, 1);
}

static void
unknown_attributes_are_skipped_by_length(void **state)
{
	struct wire *w = one_frame();

	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 5);
	attr(w, 31, "later", 5);
	attr(w, 4000, "much later", 10);
	attr_addr(w, NHA_GATEWAY, "192.0.2.1");
	attr_u32(w, NHA_OIF, 2);
	attr(w, 0x3fff, NULL, 0);
	msg_end(w);
	route_begin(w, RTM_NEWROUTE, "192.0.2.0/24", RTN_UNICAST);
	attr(w, RTA_PREFSRC, "\xc0\0\2\1", 4);
	/*
	 * The number is above all known attributes. Its low bits are the number of a known
	 * attribute.
	 */
	attr(w, 30 | 0x2000, "no id", 5);
	attr_u32(w, RTA_NH_ID, 5);
	attr(w, 333, "x", 1);
	msg_end(w);
	frame_end(w);
	becomes(w, "nexthop 5 [192.0.2.1 if2 w1];route 192.0.2.0/24 t254 nh5;");
}

/* Add a label stack, outermost first. The last entry has the bit S (bottom of stack). */
static void
attr_labels(struct wire *w, uint16_t type, const uint32_t *label, unsigned int n)
{
	uint32_t entry[20];

	for (unsigned int i = 0; i < n; i++)
		entry[i] = htonl(label[i] << 12 | (uint32_t)(i + 1 == n) << 8);
	attr(w, type, entry, n * sizeof(entry[0]));
}

static void
label_begin(struct wire *w, uint16_t type, uint8_t len)
{
	struct rtmsg mpls = {.rtm_family = AF_MPLS,
			     .rtm_dst_len = len,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = 196,
			     .rtm_type = RTN_UNICAST};

	msg_begin(w, type);
	wire_put(w, &mpls, sizeof(mpls));
	attr_u32(w, RTA_DST, htonl(100u << 12 | 1u << 8));
}

static void
label_routes_become_routes_of_no_table(void **state)
{
	struct wire *w = one_frame();
	struct fpm_decoded t;
	size_t nest, at;

	label_begin(w, RTM_NEWROUTE, 20);
	attr_via(w, "10.0.1.2");
	attr_u32(w, RTA_OIF, 2);
	msg_end(w);
	label_begin(w, RTM_NEWROUTE, 20);
	nest = attr_nest(w, RTA_MULTIPATH);
	rtnexthop_begin(w, &at, 0, 2);
	attr_labels(w, RTA_NEWDST, (uint32_t[]){200}, 1);
	attr_via(w, "10.0.1.2");
	rtnexthop_end(w, at);
	rtnexthop_begin(w, &at, 0, 3);
	attr_via(w, "2001:db8::1");
	rtnexthop_end(w, at);
	attr_nest_end(w, nest);
	msg_end(w);
	label_begin(w, RTM_NEWROUTE, 20); /* popped and delivered: no egress */
	msg_end(w);
	label_begin(w, RTM_DELROUTE, 20);
	attr_u32(w, RTA_OIF, 2);
	msg_end(w);
	frame_end(w);
	t = becomes(w, "route label 100 t4294967295 [10.0.1.2 if2 w1 pop];"
		       "route label 100 t4294967295 [10.0.1.2 if2 w1 mpls 200]"
		       " [2001:db8::1 if3 w1 pop];"
		       "route label 100 t4294967295 [if0 w1 pop];"
		       "del label 100 t4294967295;");
	assert_int_equal(t.labels, 4);
	w = one_frame();
	label_begin(w, RTM_NEWROUTE, 19);
	assert_int_equal(last_is_nothing(w).malformed, 1);
}

/* Add a labelled next hop with id `id` as zebra sends it. */
static void
put_labelled_hop(struct wire *w, uint32_t id, const uint32_t *label, unsigned int n)
{
	size_t nest;

	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, id);
	attr_addr(w, NHA_GATEWAY, "10.0.1.2");
	attr_u32(w, NHA_OIF, 2);
	attr_u16(w, NHA_ENCAP_TYPE, 1);
	nest = attr_nest(w, NHA_ENCAP);
	attr_labels(w, 1, label, n);
	attr_nest_end(w, nest);
	msg_end(w);
}

static void
stacks_are_read_without_implicit_null_and_too_long_ones_as_no_label(void **state)
{
	static const uint32_t label[17] = {16, 17, 1048575, 3,  20, 21, 22, 23, 24,
					   25, 26, 27,      28, 29, 30, 31, 32};
	struct wire *w = one_frame();
	size_t nest;

	put_labelled_hop(w, 7, label, 3);
	put_labelled_hop(w, 8, label + 3, 1); /* implicit null alone: no label */
	put_labelled_hop(w, 9, label, 17);    /* 16 without implicit null */
	put_labelled_hop(w, 10, (uint32_t[17]){16}, 17);
	label_begin(w, RTM_NEWROUTE, 20);
	attr_labels(w, RTA_NEWDST, label + 3, 1);
	attr_via(w, "10.0.1.2");
	attr_u32(w, RTA_OIF, 2);
	msg_end(w);
	frame_end(w);
	becomes(w, "nexthop 7 [10.0.1.2 if2 w1 mpls 16/17/1048575];"
		   "nexthop 8 [10.0.1.2 if2 w1];"
		   "nexthop 9 [10.0.1.2 if2 w1 mpls"
		   " 16/17/1048575/20/21/22/23/24/25/26/27/28/29/30/31/32];"
		   "nexthop 10 [10.0.1.2 if2 w1 mpls];"
		   "route label 100 t4294967295 [10.0.1.2 if2 w1 pop];");
	w = one_frame();
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 7);
	attr_u32(w, NHA_OIF, 2);
	attr_u16(w, NHA_ENCAP_TYPE, 1);
	nest = attr_nest(w, NHA_ENCAP);
	attr(w, 1, "abcde", 5); /* not a multiple of the length of an entry */
	attr_nest_end(w, nest);
	assert_int_equal(last_is_nothing(w).malformed, 1);
}

static void
neighbor_begin(struct wire *w, uint16_t type, uint8_t family, size_t mac_octets)
{
	struct ndmsg ndm = {.ndm_family = family, .ndm_ifindex = 4, .ndm_state = 2};

	msg_begin(w, type);
	wire_put(w, &ndm, sizeof(ndm));
	attr(w, NDA_PROTOCOL, "\x0b", 1);
	attr(w, NDA_LLADDR, "\2\x11\x22\x33\x44\x55", mac_octets);
}

static void
macs_of_evpn_become_routes_of_no_table(void **state)
{
	struct wire *w = one_frame();
	struct fpm_decoded t;

	neighbor_begin(w, RTM_NEWNEIGH, AF_BRIDGE, 6);
	attr_addr(w, NDA_DST, "10.0.1.2");
	msg_end(w);
	neighbor_begin(w, RTM_NEWNEIGH, AF_BRIDGE, 6);
	attr_addr(w, NDA_DST, "2001:db8::1");
	attr_u16(w, NDA_VLAN, 300);
	msg_end(w);
	neighbor_begin(w, RTM_DELNEIGH, AF_BRIDGE, 6);
	msg_end(w);
	frame_end(w);
	t = becomes(w, "route mac 02:11:22:33:44:55 vlan 0 t4294967295"
		       " [10.0.1.2 if4 w1 other-encap];"
		       "route mac 02:11:22:33:44:55 vlan 300 t4294967295"
		       " [2001:db8::1 if4 w1 other-encap];"
		       "del mac 02:11:22:33:44:55 vlan 0 t4294967295;");
	assert_int_equal(t.macs, 3);
	w = one_frame();
	neighbor_begin(w, RTM_NEWNEIGH, AF_BRIDGE, 5);
	assert_int_equal(last_is_nothing(w).malformed, 1);
	w = one_frame();
	neighbor_begin(w, RTM_NEWNEIGH, AF_BRIDGE, 6);
	attr(w, NDA_DST, "abc", 3);
	assert_int_equal(last_is_nothing(w).malformed, 1);
	w = one_frame();
	neighbor_begin(w, RTM_NEWNEIGH, AF_INET, 6); /* ARP comes from the kernel */
	assert_int_equal(last_is_nothing(w).skipped_type, 1);
}

static void
link_local_prefixes_are_skipped_and_their_neighbors_not(void **state)
{
	static const char *const skipped[] = {"fe80::/64", "fe80::/10", "febf::1/128"};
	struct wire *w;

	for (size_t i = 0; i < 3; i++) {
		w = one_frame();
		route_begin(w, RTM_NEWROUTE, skipped[i], RTN_UNICAST);
		attr_u32(w, RTA_OIF, 1);
		assert_int_equal(last_is_nothing(w).skipped_type, 1);
	}
	w = one_frame();
	put_route(w, "fec0::/10", 1);
	put_route(w, "fe80::/9", 1);
	frame_end(w);
	becomes(w, "route fec0::/10 t254 nh1;route fe80::/9 t254 nh1;");
}

static void
other_netlink_types_are_skipped_by_length(void **state)
{
	static const uint16_t type[] = {RTM_NEWRULE, RTM_NEWLINK, NLMSG_DONE, 0xffff};
	struct wire *w = one_frame();
	struct fpm_decoded t;

	for (size_t i = 0; i < 4; i++) {
		msg_begin(w, type[i]);
		wire_put(w, "\7\0\0", 3);
		msg_end(w);
	}
	put_route(w, "192.0.2.0/24", 1);
	frame_end(w);
	t = becomes(w, "route 192.0.2.0/24 t254 nh1;");
	assert_int_equal(t.skipped_type, 4);
	assert_int_equal(t.malformed, 0);
}

static void
port_id_0_of_neighbor_messages_is_not_zebras(void **state)
{
	struct wire *w = one_frame();

	put_route(w, "192.0.2.0/24", 1);
	msg_begin(w, RTM_NEWNEIGH);
	memset(w->octet + w->msg + offsetof(struct nlmsghdr, nlmsg_pid), 0, 4);
	assert_int_equal(last_becomes(w, "route 192.0.2.0/24 t254 nh1;").nl_pid, ZEBRA_PID);
}

static int
refuse(void *arg, const struct fpm_event *ev)
{
	++*(int *)arg;
	free(ev->hops);
	return -ENOMEM;
}

static void
sink_that_refuses_ends_the_decoding(void **state)
{
	struct wire *w = one_frame();
	struct fpm_decoded t = {0};
	struct fpm_frame f;
	int calls = 0;

	put_nexthop(w, 1, "192.0.2.1", 2);
	put_nexthop(w, 2, "192.0.2.2", 2);
	frame_end(w);
	assert_true(fpm_frame_next(w->octet, w->len, &f) > 0);
	assert_int_equal(fpm_decode(&f, refuse, &calls, &t), -ENOMEM);
	assert_int_equal(calls, 1);
	free(w);
}

static void
every_alignment_gives_the_same_events(void **state)
{
	struct wire *w = wire_new(), *shifted = wire_new();
	struct seen a, b;

	put_samples(w);
	a = decode_stream(w->octet, w->len);
	for (size_t shift = 1; shift < 4; shift++) {
		memcpy(shifted->octet + shift, w->octet, w->len);
		b = decode_stream(shifted->octet + shift, w->len);
		assert_string_equal(a.text.s, b.text.s);
		free(b.text.s);
	}
	free(a.text.s);
	free(w);
	free(shifted);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_replace_of_frr_8_4_is_a_delete_and_a_route),
		cmocka_unit_test(lone_member_of_a_group_has_no_family_but_a_gateway),
		cmocka_unit_test(samples_of_every_shape_become_their_events),
		cmocka_unit_test(group_weight_has_sixteen_bits),
		cmocka_unit_test(default_route_needs_no_destination),
		cmocka_unit_test(table_0_is_main),
		cmocka_unit_test(onlink_is_kept_of_route_and_of_next_hop),
		cmocka_unit_test(unicast_without_any_next_hop_is_still_an_upsert),
		cmocka_unit_test(unwanted_kinds_of_routes_are_counted_as_such),
		cmocka_unit_test(unknown_attributes_are_skipped_by_length),
		cmocka_unit_test(label_routes_become_routes_of_no_table),
		cmocka_unit_test(
			stacks_are_read_without_implicit_null_and_too_long_ones_as_no_label),
		cmocka_unit_test(macs_of_evpn_become_routes_of_no_table),
		cmocka_unit_test(link_local_prefixes_are_skipped_and_their_neighbors_not),
		cmocka_unit_test(other_netlink_types_are_skipped_by_length),
		cmocka_unit_test(port_id_0_of_neighbor_messages_is_not_zebras),
		cmocka_unit_test(sink_that_refuses_ends_the_decoding),
		cmocka_unit_test(every_alignment_gives_the_same_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
