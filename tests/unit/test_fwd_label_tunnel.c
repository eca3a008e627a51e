/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets with MPLS labels into tunnels, octet by octet: RFC 4023, 3.2.
 * The Linux kernel as far end is in tests/vm/test_tunnel.py.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "base/mpls_entry.h"
#include "fib/label.h"
#include "tunnel_bed.h"

#define GROUP 50
#define KEY   0x01020304u

enum { SWAP = 100, PHP }; /* received labels; both lead into the tunnel of labels_into() */

static const uint32_t pushed[LABELS_MAX] = {700, 701, 702, 703, 704, 705, 706, 707,
					    708, 709, 710, 711, 712, 713, 714, 715};

/* Let the routes to the hosts behind a tunnel push `n` labels. Return the tunnel. */
static struct fib_tunnel *
labels_into(uint16_t ifidx, uint32_t key, unsigned int n)
{
	gre4(key);
	over6(true, true);
	fib->mpls_known = true;
	fib->label_ttl = 0;
	fib->iface[LAN]->mpls = fib->iface[T6]->mpls = true;
	encap_set(&fib->encap[1], PATH(PATH_ONLINK, ifidx), pushed, n, 0);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ENCAP, 1));
	fib->group[GROUP] = group_word_single(PATH(PATH_ENCAP, 1));
	fib->group[GROUP + 1] = group_word_single(PATH(PATH_ONLINK, ifidx));
	fib->label[SWAP] = GROUP;
	fib->label[PHP] = GROUP + 1;
	return &fib->iface[ifidx]->tunnel;
}

/*
 * Receive by LAN a packet of 60 octets behind label `first` and, if `more`, label 999.
 * Return the address behind the Ethernet header.
 */
static uint8_t *
labelled(uint32_t first, bool more, uint8_t family, uint8_t ttl)
{
	uint8_t *p = frame_begin(LAN, 4);

	put_be16(p - 2, MPLS_TYPE);
	put_be32(p, label_entry(first, 5, !more, ttl));
	p += 4;
	if (more)
		put_be32(p, label_entry(999, 3, true, 200));
	p += more ? 4 : 0;
	inner_write(p, family, 60, false);
	walk((unsigned int)(p + 60 - packet.buffer) - 128 - 14);
	return rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
}

static void
labels_go_behind_the_header_of_gre(void **state)
{
	static const unsigned int counts[] = {1, 2, LABEL_WORDS, LABELS_MAX};
	static const uint32_t keys[] = {0, KEY};

	for (unsigned int k = 0; k < RTE_DIM(counts) * 2; k++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			unsigned int n = counts[k / 2], head = k % 2 == 0 ? 24 : 28;
			uint64_t sent, octets;
			uint8_t *out, *p;

			labels_into(T4, keys[k % 2], n)->tos_inherit = true;
			sent = count.port[T4].tx_packets;
			octets = count.port[T4].tx_bytes;
			out = into(family, 60, NULL);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			leaves(head + 4 * n + 60, 0x0800, WAN);
			assert_int_equal(get_be16(out), 0x4500);
			assert_int_equal(get_be16(out + 2), head + 4 * n + 60);
			assert_int_equal(get_be16(out + 6), 0x4000);
			/* The outer header inherits neither TTL nor class from labels. */
			assert_int_equal(out[8], 64);
			assert_int_equal(out[9], PROTO_GRE);
			assert_true(ip4_checksum_ok(out, 20));
			assert_int_equal(get_be32(out + 12), LOCAL4);
			assert_int_equal(get_be32(out + 16), REMOTE4);
			assert_memory_equal(
				out + 20,
				keys[k % 2] == 0 ? "\0\0\x88\x47" : "\x20\0\x88\x47", 4);
			assert_true(keys[k % 2] == 0 || get_be32(out + 24) == KEY);
			p = out + head;
			for (unsigned int i = 0; i < n; i++, p += 4)
				assert_int_equal(get_be32(p),
						 label_entry(pushed[i], 5, i + 1 == n, 8));
			assert_int_equal(p[family == 4 ? 8 : 7], 8);
			assert_true(family == 6 || ip4_checksum_ok(p, 20));
			assert_int_equal(p[59], 0x77);
			assert_int_equal(count.port[T4].tx_packets, sent + 1);
			assert_int_equal(count.port[T4].tx_bytes, octets + 4 * n + 60);
		}
}

static void
ttl_tos_and_df_are_those_of_the_tunnel(void **state)
{
	struct fib_tunnel *t = labels_into(T4, 0, 1);
	uint8_t *out;

	t->ttl = 77;
	t->tos = 0x20;
	tos = 0xbb;
	out = into(4, 60, set_tos);
	assert_int_equal(out[8], 77);
	assert_int_equal(out[1], 0x20);
	t->df = false;
	out = into(4, 60, NULL);
	assert_int_equal(get_be16(out + 6), 0);
}

static void
labels_go_behind_gre_over_ipv6(void **state)
{
	static const uint8_t limit[8] = {PROTO_GRE, 0, 4, 1, 4, 1, 1, 0};
	struct fib_tunnel *t = labels_into(T6, 0, 2);
	uint32_t flow;
	uint8_t *out;

	t->flow_inherit = t->tos_inherit = true;
	out = into(6, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(52 + 8 + 60, 0x86dd, WAN);
	assert_int_equal(get_be32(out) >> 20, 0x600);
	flow = get_be32(out) & 0xfffff;
	assert_true(flow != 0 && flow != 0x54321);
	assert_int_equal(get_be16(out + 4), 12 + 8 + 60);
	assert_int_equal(out[6], PROTO_IP6_OPTS);
	assert_int_equal(out[7], 64);
	assert_memory_equal(out + 8, local6, 16);
	assert_memory_equal(out + 24, remote6, 16);
	assert_memory_equal(out + 40, limit, 8);
	assert_memory_equal(out + 48, "\0\0\x88\x47", 4);
	assert_int_equal(get_be32(out + 52), label_entry(700, 5, false, 8));
	/* All packets of a flow have one flow label. */
	assert_int_equal(get_be32(into(6, 90, NULL)) & 0xfffff, flow);
	t->ttl = 33;
	t->tos = 0x40;
	t->tos_inherit = false;
	put_be32(t->head, 0x60012345);
	out = into(4, 60, NULL);
	assert_int_equal(get_be32(out), 0x64012345);
	assert_int_equal(out[7], 33);
}

static void
labels_are_swapped_and_popped_into_a_tunnel(void **state)
{
	uint64_t mpls = count.forwarded[2];
	uint8_t *out;

	labels_into(T4, 0, 2);
	out = labelled(SWAP, true, 4, 7);
	leaves(24 + 12 + 60, 0x0800, WAN);
	assert_memory_equal(out + 20, "\0\0\x88\x47", 4);
	assert_int_equal(get_be32(out + 24), label_entry(700, 5, false, 6));
	assert_int_equal(get_be32(out + 28), label_entry(701, 5, false, 6));
	assert_int_equal(get_be32(out + 32), label_entry(999, 3, true, 200));
	assert_int_equal(out[36 + 8], 9);
	out = labelled(PHP, true, 6, 7);
	leaves(24 + 4 + 60, 0x0800, WAN);
	assert_memory_equal(out + 20, "\0\0\x88\x47", 4);
	assert_int_equal(get_be32(out + 24), label_entry(999, 3, true, 6));
	/*
	 * If a packet loses its only label, the outer header inherits from its IP header.
	 */
	out = labelled(PHP, false, 4, 7);
	leaves(24 + 60, 0x0800, WAN);
	assert_memory_equal(out + 20, "\0\0\x08\0", 4);
	assert_int_equal(out[8], 6);
	assert_int_equal(out[24 + 8], 6);
	out = labelled(PHP, false, 6, 7);
	assert_memory_equal(out + 20, "\0\0\x86\xdd", 4);
	assert_int_equal(out[24 + 7], 6);
	assert_int_equal(count.forwarded[2], mpls); /* only the dispatch stage counts */
}

/* A hub: labels come out of one tunnel and leave by another. */
static void
labels_go_from_tunnel_to_tunnel(void **state)
{
	struct fwd_decap decap;
	uint8_t *out;

	labels_into(T4, KEY, 1);
	out = frame_begin(WAN, 6);
	memset(out, 0, 40);
	out[0] = 0x60;
	put_be16(out + 4, 4 + 4 + 60);
	out[6] = PROTO_GRE;
	memcpy(out + 8, remote6, 16);
	memcpy(out + 24, local6, 16);
	memcpy(out + 40, "\0\0\x88\x47", 4);
	put_be32(out + 44, label_entry(SWAP, 5, true, 7));
	inner_write(out + 48, 4, 60, false);
	packet.m.ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_VLAN;
	walk(108);
	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	decap = fwd_decap_of(&b, 0);
	fwd_tunnel_enter(&fwd, &b, &decap, 1);
	fwd_walk(&b, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(28 + 4 + 60, 0x0800, WAN);
	out = rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
	assert_memory_equal(out + 20, "\x20\0\x88\x47\x01\x02\x03\x04", 8);
	assert_int_equal(get_be32(out + 28), label_entry(700, 5, true, 6));
	assert_int_equal(packet.m.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0);
}

static void
labels_too_big_for_the_tunnel_are_told_its_mtu(void **state)
{
	struct fib_tunnel *t = labels_into(T4, 0, 1);

	into(4, 1472, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1473, NULL);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1472);
	/* The link of the outer packets has a smaller MTU now. */
	fib->iface[WAN]->mtu_bytes = 1400;
	into(6, 1372, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(6, 1373, NULL);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1372);
	/* An outer packet without DF may be fragmented, which the kernel does. */
	t->df = false;
	into(4, 1373, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	into(4, 1473, NULL);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	fib->iface[WAN]->mtu_bytes = 1500;
}

static void
labels_that_forwarders_cannot_send_have_a_reason(void **state)
{
	struct fib_tunnel *t = labels_into(T4, 0, 1);

	t->gre = false; /* the kernel may write labels behind IP */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	labelled(PHP, true, 4, 7);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	t->gre = true;
	fib->iface[T4]->up = false;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_egress_down);
	labelled(SWAP, true, 4, 7);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.family[0], 4);
	fib->iface[T4]->up = true;
	labelled(SWAP, false, 6, 1);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	labelled(PHP, false, 4, 1);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	/*
	 * If IPv6 is off, an IPv6 packet leaves with labels, but not without its last
	 * label.
	 */
	fib->iface[T4]->ipv6_off = true;
	into(6, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	labelled(PHP, false, 6, 7);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_ipv6_off);
}

static uint8_t ttl_of_it;

static void
set_ttl(uint8_t *ip)
{
	ip[ip[0] >> 4 == 4 ? 8 : 7] = ttl_of_it;
}

static void
a_packet_without_hops_left_gets_no_label(void **state)
{
	labels_into(T4, 0, 1);
	for (ttl_of_it = 0; ttl_of_it < 3; ttl_of_it++) {
		into(4, 60, set_ttl);
		assert_int_equal(b.verdict[0],
				 ttl_of_it < 2 ? PUNT_ttl_expired : VERDICT_GO);
		into(6, 60, set_ttl);
		assert_int_equal(b.verdict[0],
				 ttl_of_it < 2 ? PUNT_ttl_expired : VERDICT_GO);
	}
}

/* The packet waits for the neighbor of the outer packet, by the path of the tunnel. */
static void
a_packet_waits_for_the_neighbor_of_its_outer_packet(void **state)
{
	uint64_t hop = fib->adj[2].hop;

	labels_into(T4, 0, 1);
	fib->adj[2].hop = 0;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ONLINK, T4));
	labelled(SWAP, false, 4, 7);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	fib->adj[2].hop = hop;
	fib->adj_used[2] = ADJ_UNUSED; /* no packet waits any longer */
}

static void
labels_and_outer_headers_need_room(void **state)
{
	labels_into(T4, 0, 2);
	for (unsigned int k = 0; k < 2; k++) {
		unsigned int room = 24 + 8 + 8 - k;

		frame_begin(LAN, 4);
		inner_write(packet.buffer + 128 + 14, 4, 60, false);
		memmove(packet.buffer + room, packet.buffer + 128, 14 + 60);
		packet.m.data_off = (uint16_t)room;
		walk(60);
		assert_int_equal(b.verdict[0], k == 0 ? VERDICT_GO : DROP_no_headroom);
	}
}

/*
 * After an ICMP error about an outer packet, the kernel gets the next packet of the tunnel.
 */
static void
the_kernel_tells_an_error_about_the_outer_packet(void **state)
{
	labels_into(T4, 0, 1);
	fib_tunnel_tell(fib, T4);
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
}

static void
outer_packets_with_labels_get_the_tags_of_their_vlan(void **state)
{
	const uint8_t *eth;

	labels_into(T4, 0, 1);
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 1;
	fib->iface[WAN]->tag[0] = (struct fib_tag){VLAN_C_TYPE, 300};
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);
	assert_int_equal(packet.m.data_len, 14 + 4 + 24 + 4 + 60);
	assert_memory_equal(eth, wan_peer, 6);
	assert_memory_equal(eth + 12, "\x81\x00\x01\x2c\x08\x00\x45", 7);
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 0;
}

static void
explain_follows_labels_into_a_tunnel(void **state)
{
	struct watch_record rec;

	labels_into(T4, 0, 1);
	inner_write(frame_begin(LAN, 4), 4, 60, false);
	thread_role = ROLE_TRACE;
	fwd_explain(fib, LAN, packet.buffer + 128, 74, 74, &rec);
	thread_role = ROLE_NONE;
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.path, PATH(PATH_ENCAP, 1));
	assert_int_equal(rec.tunnel, T4);
	assert_int_equal(rec.out_ifidx, WAN);
	assert_int_equal(rec.mtu_bytes, 1476);
	assert_int_equal(rec.rewritten[14 + 8], 64);

	/* It shows an error about the tunnel, and leaves it to the next packet. */
	fib_tunnel_tell(fib, T4);
	thread_role = ROLE_TRACE;
	fwd_explain(fib, LAN, packet.buffer + 128, 74, 74, &rec);
	thread_role = ROLE_NONE;
	assert_int_equal(rec.verdict, PUNT_kernel_route);
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_go_behind_the_header_of_gre),
		cmocka_unit_test(ttl_tos_and_df_are_those_of_the_tunnel),
		cmocka_unit_test(labels_go_behind_gre_over_ipv6),
		cmocka_unit_test(labels_are_swapped_and_popped_into_a_tunnel),
		cmocka_unit_test(labels_go_from_tunnel_to_tunnel),
		cmocka_unit_test(labels_too_big_for_the_tunnel_are_told_its_mtu),
		cmocka_unit_test(labels_that_forwarders_cannot_send_have_a_reason),
		cmocka_unit_test(a_packet_without_hops_left_gets_no_label),
		cmocka_unit_test(a_packet_waits_for_the_neighbor_of_its_outer_packet),
		cmocka_unit_test(labels_and_outer_headers_need_room),
		cmocka_unit_test(the_kernel_tells_an_error_about_the_outer_packet),
		cmocka_unit_test(outer_packets_with_labels_get_the_tags_of_their_vlan),
		cmocka_unit_test(explain_follows_labels_into_a_tunnel),
	};

	return cmocka_run_group_tests(tests, up, down);
}
