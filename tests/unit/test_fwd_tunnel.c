/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets into tunnels, octet by octet: RFC 2003, 2473, 2784, 2890, 4213, 6040.
 * The Linux kernel as far end is in tests/vm/test_tunnel.py.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fib/rules.h"
#include "tunnel_bed.h"

/* --- into a tunnel -------------------------------------------------------------------- */

static void
set_df(uint8_t *ip)
{
	ip[6] |= 0x40;
}

static void
a_gre_tunnel_writes_its_headers(void **state)
{
	uint8_t *out, *ip;

	gre4(0);
	out = into(4, 100, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	assert_int_equal(b.hop[0] & 0xffff, WAN);
	leaves(124, 0x0800, WAN);
	assert_int_equal(out[0], 0x45);
	assert_int_equal(get_be16(out + 2), 124);
	assert_int_equal(get_be16(out + 4), 0x1234);
	assert_int_equal(get_be16(out + 6), 0x4000);
	assert_int_equal(out[8], 8); /* the TTL of the packet, less one */
	assert_int_equal(out[9], 47);
	assert_int_equal(get_be32(out + 12), LOCAL4);
	assert_int_equal(get_be32(out + 16), REMOTE4);
	assert_true(ip4_checksum_ok(out, 20));
	assert_memory_equal(out + 20, "\x00\x00\x08\x00", 4);
	ip = out + 24;
	assert_true(ip4_checksum_ok(ip, 20));
	assert_int_equal(ip[8], 8);
	assert_int_equal(ip[99], 0x77);

	gre4(0x01020304);
	out = into(6, 100, NULL);
	leaves(128, 0x0800, WAN);
	assert_memory_equal(out + 20, "\x20\x00\x86\xdd\x01\x02\x03\x04", 8);
	assert_int_equal(out[28 + 7], 8);
}

static void
ip_in_ipv4_has_the_protocol_of_the_packet(void **state)
{
	uint8_t *out;

	ip4();
	out = into(4, 60, NULL);
	leaves(80, 0x0800, WAN);
	assert_int_equal(out[9], 4);
	assert_int_equal(out[20], 0x45);
	out = into(6, 60, NULL);
	assert_int_equal(out[9], 41);
	assert_int_equal(out[20] >> 4, 6);
	ip4()->inner6 = false; /* as ipip: the kernel refuses the IPv6 packet */
	into(6, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
}

/* RFC 6040, 4.1: the ECN field is copied, also CE. The DSCP is fixed or inherited. */
static void
ttl_tos_and_df_follow_the_settings(void **state)
{
	struct fib_tunnel *t = gre4(0);

	t->ttl = 77;
	for (tos = 0xb8; tos <= 0xbb; tos++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			t->tos = 0x20;
			t->tos_inherit = false;
			assert_int_equal(into(family, 60, set_tos)[1], 0x20 | (tos & 3));
			t->tos_inherit = true;
			assert_int_equal(into(family, 60, set_tos)[1], tos);
		}
	assert_int_equal(into(4, 60, NULL)[8], 77);
	t->df = false;
	assert_int_equal(get_be16(into(4, 60, NULL) + 6), 0);
	assert_int_equal(get_be16(into(4, 60, set_df) + 6), 0x4000);
	assert_int_equal(get_be16(into(6, 60, NULL) + 6), 0);
	t->ignore_df = true;
	assert_int_equal(get_be16(into(4, 60, set_df) + 6), 0);
}

static void
a_tunnel_over_ipv6_writes_its_headers(void **state)
{
	static const uint8_t limit[8] = {41, 0, 4, 1, 4, 1, 1, 0};
	struct fib_tunnel *t = over6(false, true);
	uint32_t label;
	uint8_t *out;

	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T6));
	t->ttl = 33;
	t->tos = 0x40;
	out = into(6, 100, NULL);
	leaves(148, 0x86dd, WAN);
	assert_int_equal(get_be32(out) >> 20, 0x640);
	label = get_be32(out) & 0xfffff;
	assert_true(label != 0 && label != 0x54321);
	assert_int_equal(get_be16(out + 4), 108);
	assert_int_equal(out[6], 60);
	assert_int_equal(out[7], 33);
	assert_memory_equal(out + 8, local6, 16);
	assert_memory_equal(out + 24, remote6, 16);
	assert_memory_equal(out + 40, limit, 8);
	assert_int_equal(get_be32(into(6, 100, NULL)) & 0xfffff,
			 label); /* all packets of a flow have one flow label */

	t->flow_inherit = true;
	assert_int_equal(get_be32(into(6, 100, NULL)) & 0xfffff, 0x54321);
	assert_true((get_be32(into(4, 100, NULL)) & 0xfffff) != 0);
	/* The options of a packet may contain an encapsulation limit: RFC 2473, 4.1.1. */
	out = frame_begin(LAN, 6);
	inner_write(out, 6, 100, false);
	out[6] = PROTO_IP6_OPTS;
	walk(100);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	/* The same is true in a tunnel that writes no limit (encaplimit none). */
	t->has_limit = false;
	out = frame_begin(LAN, 6);
	inner_write(out, 6, 100, false);
	out[6] = PROTO_IP6_OPTS;
	walk(100);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);

	over6(true, false);
	out = into(4, 100, NULL);
	leaves(144, 0x86dd, WAN);
	assert_int_equal(out[6], 47);
	assert_memory_equal(out + 40, "\x00\x00\x08\x00", 4);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T4));
}

/* The outer packet leaves by a VLAN: two tags before its EtherType. */
static void
outer_packets_get_the_tags_of_their_vlan(void **state)
{
	const uint8_t *eth;

	gre4(0);
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 2;
	fib->iface[WAN]->tag[0] = (struct fib_tag){VLAN_S_TYPE, 20};
	fib->iface[WAN]->tag[1] = (struct fib_tag){VLAN_C_TYPE, 300};
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);
	assert_int_equal(packet.m.data_len, 14 + 8 + 84);
	assert_memory_equal(eth, wan_peer, 6);
	assert_memory_equal(eth + 6, wan_mac, 6);
	assert_memory_equal(eth + 12, "\x88\xa8\x00\x14\x81\x00\x01\x2c\x08\x00\x45", 11);
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 0;
}

static void
packets_too_big_are_told_the_mtu_of_the_tunnel(void **state)
{
	struct fib_tunnel *t = gre4(0);

	into(4, 1476, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1477, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1476);
	/* The link of the outer packets has a smaller MTU now. */
	fib->iface[WAN]->mtu_bytes = 1400;
	into(4, 1376, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1377, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1376);
	/* Without DF the outer packet may be fragmented, which the kernel does. */
	t->df = false;
	into(4, 1377, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	into(4, 1377, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	/* IPv6 has no MTU below 1280. */
	t->df = true;
	fib->iface[WAN]->mtu_bytes = 1290;
	into(6, 1280, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->iface[WAN]->mtu_bytes = 1500;
}

static uint8_t ttl_of_it;

static void
set_ttl(uint8_t *ip)
{
	ip[ip[0] >> 4 == 4 ? 8 : 7] = ttl_of_it;
}

static void
what_cannot_go_in_has_a_reason(void **state)
{
	uint8_t verdict[8];
	struct fib_iface *i;

	gre4(0);
	ttl_of_it = 1;
	into(4, 60, set_ttl);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	fib->group[11] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_no_route);
	fib->group[11] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_blackhole);
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, T4)); /* into itself */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN)); /* not resolved */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ONLINK, T4));
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	/*
	 * The local address is gone; the route leads to another link than the tunnel's;
	 * IPsec is in use; the tunnel is down.
	 */
	fib->group[12] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	verdict[0] = b.cause[0];
	fib->group[12] = group_word_single(PATH(PATH_LOCAL, 0));
	fib->iface[T4]->tunnel.link = 99;
	into(4, 60, NULL);
	verdict[1] = b.verdict[0];
	fib->iface[T4]->tunnel.link = WAN + 10;
	into(4, 60, NULL);
	verdict[2] = b.verdict[0];
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	into(4, 60, NULL);
	verdict[3] = b.verdict[0];
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	i = fib->iface[T4];
	i->up = false;
	into(4, 60, NULL);
	verdict[4] = b.cause[0];
	i->up = true;
	assert_int_equal(verdict[0], DROP_egress_down);
	assert_int_equal(verdict[1], PUNT_kernel_route);
	assert_int_equal(verdict[2], VERDICT_GO);
	assert_int_equal(verdict[3], PUNT_kernel_route);
	assert_int_equal(verdict[4], DROP_egress_down);
}

/* With disable_ipv6, a tunnel takes no IPv6 packet, whether IPv6 is forwarded or not. */
static void
a_tunnel_without_ipv6_takes_ipv4_only(void **state)
{
	gre4(0);
	fib->iface[T4]->ipv6_off = true;
	for (unsigned int forward = 0; forward < 2; forward++) {
		fib->iface[LAN]->forward6 = forward != 0;
		ttl_of_it = 1;
		into(6, 60, set_ttl);
		assert_int_equal(b.verdict[0], PUNT_unreach);
		assert_int_equal(b.cause[0], DROP_ipv6_off);
	}
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	fib->iface[T4]->ipv6_off = false;
	into(6, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
}

static void
set_source(uint8_t *ip)
{
	memcpy(ip + (ip[0] >> 4 == 4 ? 12 : 8), remote6, ip[0] >> 4 == 4 ? 4 : 16);
}

/*
 * As in Linux, a tunnel over IPv6 takes no IPv6 packet whose source is its far end. It
 * takes IPv4 packets and packets with labels, and tunnels over IPv4 take all packets.
 */
static void
a_packet_from_the_far_end_does_not_go_back(void **state)
{
	for (unsigned int gre = 0; gre < 2; gre++)
		for (unsigned int limit = 0; limit < 2; limit++) {
			over6(gre != 0, limit != 0);
			fib->group[10] = fib->group[14] =
				group_word_single(PATH(PATH_ONLINK, T6));
			into(6, 60, set_source);
			assert_int_equal(b.verdict[0], DROP_encap_loop);
			into(6, 60, NULL);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			into(4, 60, set_source);
			assert_int_equal(b.verdict[0], VERDICT_GO);
		}
	gre4(0);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T4));
	into(6, 60, set_source);
	assert_int_equal(b.verdict[0], VERDICT_GO);
}

static void
a_tunnel_goes_through_a_tunnel(void **state)
{
	uint8_t *out;

	gre4(0);
	over6(false, false);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, T6));
	/* Both remotes had group 11. Give the remote of T6 another group. */
	route6(remote6, 128, 20, PATH(PATH_ADJ, 2));
	out = into(4, 100, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(164, 0x86dd, WAN);
	assert_int_equal(out[6], 4);
	assert_int_equal(get_be16(out + 40 + 2), 124);
	assert_int_equal(out[40 + 24 + 99], 0x77);
	/* The smallest MTU counts: of 1500 - 40 and the MTU of T6, 1440; less 24 for T4. */
	into(4, 1416, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1417, set_df);
	assert_int_equal(packet.meta.mtu_bytes, 1416);
	fib->group[20] = group_word_single(PATH(PATH_ONLINK, T6));
	into(4, 100, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[20] = fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/*
 * The kernel gets the packets of a tunnel in a tunnel if the link, the family or the
 * encapsulation limit (RFC 2473, 4.1.1) of one tunnel does not allow the other.
 */
static void
a_tunnel_in_a_tunnel_keeps_to_what_both_can_do(void **state)
{
	struct fib_tunnel *t = gre4(0), *below = over6(false, false);

	route6(remote6, 128, 20, PATH(PATH_ADJ, 2));
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, T6));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	t->link = 99;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	t->link = fib->iface[T6]->ifindex;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	below->inner4 = false;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	below->inner4 = true;
	t->has_limit = true;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	t->has_limit = false;
	t->link = 0;
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/* Return the verdict on a packet to T4 with a TOS. */
static int
verdict_for(uint8_t of)
{
	tos = of;
	into(4, 60, set_tos);
	return b.verdict[0];
}

/* As in Linux, rules select an outer packet by its own TOS, without the ECN bits. */
static void
the_outer_tos_decides_among_rules(void **state)
{
	struct fib_rules *rules = calloc(1, sizeof(*rules) + 2 * sizeof(rules->rule[0]));
	struct fib_tunnel *t = gre4(0);

	assert_non_null(rules);
	rules->n = 2;
	rules->rule[0] = (struct fib_rule){.ifindex = 1,
					   .action = FIB_RULE_PATH,
					   .path = PATH_BLACKHOLE,
					   .tos = 0x10,
					   .tos_mask = 0x1c};
	rules->rule[1] = (struct fib_rule){.action = FIB_RULE_TABLE,
					   .suppress_group = RULE_NO_GROUP};
	fib->rules[0] = rules;
	t->tos_inherit = true;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(verdict_for(0), VERDICT_GO);
		assert_int_equal(verdict_for(0x10), DROP_blackhole);
		assert_int_equal(verdict_for(0xb3), DROP_blackhole);
		assert_int_equal(verdict_for(0xb8), VERDICT_GO);
	}
	t->tos_inherit = false;
	t->tos = 0x10;
	fwd.outer_epoch++;
	assert_int_equal(verdict_for(0), DROP_blackhole);
	t->tos = 0;
	fwd.outer_epoch++;
	assert_int_equal(verdict_for(0x10), VERDICT_GO);
	fib->rules[0] = NULL;
	fwd.outer_epoch++;
	free(rules);
}

/*
 * After an ICMP error about an outer packet, the kernel gets the next packet into the
 * tunnel and sends an error to its sender, as it does after an error about its own outer
 * packets.
 */
static void
the_kernel_gets_a_packet_for_each_error_about_the_tunnel(void **state)
{
	gre4(0);
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	for (unsigned int i = 0; i < 100; i++)
		fib_tunnel_tell(fib, T4);
	for (unsigned int i = 0; i < FIB_TUNNEL_TOLD_MAX; i++) {
		fwd.outer_epoch++;
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], PUNT_kernel_route);
	}
	into(4, 60, NULL); /* its path was looked up before the last error was taken */
	assert_int_equal(b.verdict[0], VERDICT_GO);
	fwd.outer_epoch++;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gre_tunnel_writes_its_headers),
		cmocka_unit_test(ip_in_ipv4_has_the_protocol_of_the_packet),
		cmocka_unit_test(ttl_tos_and_df_follow_the_settings),
		cmocka_unit_test(a_tunnel_over_ipv6_writes_its_headers),
		cmocka_unit_test(outer_packets_get_the_tags_of_their_vlan),
		cmocka_unit_test(packets_too_big_are_told_the_mtu_of_the_tunnel),
		cmocka_unit_test(what_cannot_go_in_has_a_reason),
		cmocka_unit_test(a_tunnel_without_ipv6_takes_ipv4_only),
		cmocka_unit_test(the_kernel_gets_a_packet_for_each_error_about_the_tunnel),
		cmocka_unit_test(the_outer_tos_decides_among_rules),
		cmocka_unit_test(a_tunnel_in_a_tunnel_keeps_to_what_both_can_do),
		cmocka_unit_test(a_packet_from_the_far_end_does_not_go_back),
		cmocka_unit_test(a_tunnel_goes_through_a_tunnel),
	};

	return cmocka_run_group_tests(tests, up, down);
}
