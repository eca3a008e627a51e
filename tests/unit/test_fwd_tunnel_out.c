/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets out of tunnels, octet by octet: RFC 2003, 2473, 2784, 2890, 4213, 6040.
 * The Linux kernel as far end is in tests/vm/test_tunnel.py.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "tunnel_bed.h"

/* --- out of a tunnel ------------------------------------------------------------------ */

/*
 * Write an outer header of T4 from the far end, and return where the inner packet begins.
 */
static uint8_t *
outer4(uint8_t proto, uint8_t dscp, unsigned int len, const char *gre, unsigned int n_gre)
{
	uint8_t *out = frame_begin(WAN, 4);

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = dscp;
	put_be16(out + 2, (uint16_t)(20 + n_gre + len));
	out[8] = 60;
	out[9] = proto;
	put_be32(out + 12, REMOTE4);
	put_be32(out + 16, LOCAL4);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	memcpy(out + 20, gre, n_gre);
	return out + 20 + n_gre;
}

/* Receive an outer packet of GRE. */
static void
gre_in(uint8_t family, uint8_t dscp, const char *gre, unsigned int n_gre)
{
	inner_write(outer4(47, dscp, 60, gre, n_gre), family, 60, true);
	walk(20 + n_gre + 60);
}

#define GRE4     "\0\0\x08\0"
#define GRE6     "\0\0\x86\xdd"
#define GRE4_KEY "\x20\0\x08\0\x01\x02\x03\x04"

/*
 * Let the packet that came out of tunnel `ifidx` pass the stages. Check that it leaves by
 * LAN. Return the octet behind its Ethernet header.
 */
static uint8_t *
opened_leaves(uint16_t ifidx, unsigned int bytes, uint16_t type)
{
	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	assert_int_equal(b.hop[0] & 0xffff, ifidx);
	assert_int_equal(packet.meta.outer_ifidx, WAN);
	fwd_tunnel_keep(&b, 0);
	fwd_tunnels_walk(&fwd);
	assert_int_equal(fwd.n_decap, 0);
	assert_int_equal(fwd.tx[LAN].n, 1);
	assert_ptr_equal(fwd.tx[LAN].m[0], &packet.m);
	leaves(bytes, type, LAN);
	return rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
}

static void
packets_come_out_of_gre(void **state)
{
	uint64_t rx = count.port[T4].rx_packets;
	uint8_t *ip;

	gre4(0);
	gre_in(4, 0, GRE4, 4);
	ip = opened_leaves(T4, 60, 0x0800);
	assert_int_equal(ip[8], 8);
	assert_true(ip4_checksum_ok(ip, 20));
	assert_int_equal(ip[59], 0x77);
	gre_in(6, 0, GRE6, 4);
	ip = opened_leaves(T4, 60, 0x86dd);
	assert_int_equal(ip[7], 8);
	assert_int_equal(count.port[T4].rx_packets, rx + 2);
	gre4(0x01020304);
	gre_in(4, 0, GRE4_KEY, 8);
	opened_leaves(T4, 60, 0x0800);
}

static void
what_forwarders_do_not_take_is_for_the_kernel(void **state)
{
	static const struct {
		const char *gre;
		unsigned int n;
	} other[] = {{GRE4_KEY, 8},                 /* a key, and the tunnel has none */
		     {"\x80\0\x08\0\0\0\0\0", 8},   /* checksum */
		     {"\x10\0\x08\0\0\0\0\0", 8},   /* sequence number */
		     {"\x40\0\x08\0\0\0\0\0", 8},   /* routing */
		     {"\x20\1\x88\x0b\0\0\0\0", 8}, /* version 1: PPTP */
		     {"\0\0\x88\x47", 4},           /* labels, and the kernel has no MPLS */
		     {"\0\0\x65\x58", 4}};          /* Ethernet */
	uint8_t *out;

	gre4(0);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		gre_in(4, 0, other[i].gre, other[i].n);
		assert_int_equal(b.verdict[0], PUNT_local);
	}
	/* A fragment; another remote; an inner packet that is longer than the outer one. */
	outer4(47, 0, 60, GRE4, 4);
	out = packet.buffer + 128 + 14;
	inner_write(out + 24, 4, 60, true);
	out[6] = 0x20;
	put_be16(out + 10, 0);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	outer4(47, 0, 60, GRE4, 4);
	inner_write(out + 24, 4, 60, true);
	put_be32(out + 12, REMOTE4 + 1);
	put_be16(out + 10, 0);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	outer4(47, 0, 59, GRE4, 4);
	inner_write(out + 24, 4, 60, true);
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre4(0x01020304); /* the packets have no key, or another key */
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre_in(4, 0, "\x20\0\x08\0\x01\x02\x03\x05", 8);
	assert_int_equal(b.verdict[0], PUNT_local);
	/* The key is right. The sequence number is missing. */
	gre_in(4, 0, "\x30\0\x08\0\x01\x02\x03\x04", 8);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre4(0);
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	fib->iface[T4]->up = false;
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	fib->iface[T4]->up = true;
}

/* RFC 6040, 4.2. Columns: outer Not-ECT, ECT(1), ECT(0), CE. 9: dropped. */
static void
ecn_comes_out_by_rfc_6040(void **state)
{
	static const uint8_t want[4][4] = {
		{0, 0, 0, 9}, /* inner Not-ECT */
		{1, 1, 1, 3}, /* ECT(1) */
		{2, 1, 2, 3}, /* ECT(0) */
		{3, 3, 3, 3}, /* CE */
	};

	gre4(0);
	for (uint8_t inner = 0; inner < 4; inner++)
		for (uint8_t outer = 0; outer < 4; outer++)
			for (uint8_t family = 4; family <= 6; family += 2) {
				uint8_t *ip =
					outer4(47, outer, 60, family == 4 ? GRE4 : GRE6, 4);

				inner_write(ip, family, 60, true);
				tos = 0xb8 | inner;
				set_tos(ip);
				put_be16(ip + 10, family == 4 ? 0 : get_be16(ip + 10));
				if (family == 4)
					put_be16(ip + 10,
						 (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
				walk(84);
				if (want[inner][outer] == 9) {
					assert_int_equal(b.verdict[0], DROP_ecn_ce);
					continue;
				}
				ip = opened_leaves(T4, 60, family == 4 ? 0x0800 : 0x86dd);
				assert_int_equal(ip_dsfield(ip, family),
						 0xb8 | want[inner][outer]);
				assert_true(family == 6 || ip4_checksum_ok(ip, 20));
			}
}

static void
packets_come_out_of_ip_in_ip(void **state)
{
	static const uint8_t limit[8] = {4, 0, 4, 1, 4, 1, 1, 0};
	uint8_t *out;

	ip4();
	inner_write(outer4(4, 0, 60, "", 0), 4, 60, true);
	walk(80);
	opened_leaves(T4, 60, 0x0800);
	inner_write(outer4(41, 0, 60, "", 0), 6, 60, true);
	walk(80);
	opened_leaves(T4, 60, 0x86dd);
	inner_write(outer4(4, 0, 60, "", 0), 6, 60, true); /* of another version */
	walk(80);
	assert_int_equal(b.verdict[0], PUNT_local);

	over6(false, true);
	out = frame_begin(WAN, 6);
	memset(out, 0, 40);
	out[0] = 0x60;
	put_be16(out + 4, 68);
	out[6] = PROTO_IP6_OPTS;
	out[7] = 3;
	memcpy(out + 8, remote6, 16);
	memcpy(out + 24, local6, 16);
	memcpy(out + 40, limit, 8);
	inner_write(out + 48, 4, 60, true);
	walk(108);
	opened_leaves(T6, 60, 0x0800);
}

/* An inner packet for this host goes to the kernel unchanged, with its outer header. */
static void
a_packet_inside_for_this_host_keeps_its_outer_header(void **state)
{
	struct burst inner = {0};
	uint8_t *ip, was[84 + 14];

	gre4(0);
	ip = outer4(47, 0, 60, GRE4, 4);
	inner_write(ip, 4, 60, true);
	put_be32(ip + 16, LOCAL4);
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	memcpy(was, packet.buffer + 128, sizeof(was));
	walk(84);
	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	inner.fwd = &fwd;
	inner.inside = true;
	inner.n = 1;
	inner.ifidx = T4;
	inner.m[0] = &packet.m;
	inner.l2[0] = packet.buffer + 128 + (b.hop[0] >> 16);
	fwd_walk(&inner, NULL);
	assert_int_equal(inner.verdict[0], PUNT_local);
	assert_int_equal(packet.m.data_off, 128);
	assert_memory_equal(packet.buffer + 128, was, sizeof(was));
}

/* Return the verdict on the inner packet of T4 with an octet changed. */
static uint8_t
verdict_inside(uint8_t family, unsigned int at, uint8_t octet)
{
	struct burst inner = {0};
	uint8_t *ip = outer4(47, 0, 60, family == 4 ? GRE4 : GRE6, 4);

	inner_write(ip, family, 60, true);
	ip[at] = octet;
	if (family == 4 && at != 10) {
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	}
	walk(84);
	if (b.verdict[0] != VERDICT_DECAPSULATED)
		return b.verdict[0];
	inner.fwd = &fwd;
	inner.inside = true;
	inner.n = 1;
	inner.ifidx = T4;
	inner.m[0] = &packet.m;
	inner.l2[0] = packet.buffer + 128 + (b.hop[0] >> 16);
	fwd_walk(&inner, NULL);
	return inner.verdict[0];
}

/*
 * T4, T8: inner packets with invalid sources, group addresses, low TTLs, wrong checksums.
 */
static void
a_packet_inside_is_judged_as_any_other(void **state)
{
	gre4(0);
	assert_int_equal(verdict_inside(4, 12, 127), DROP_ip4_martian_src);
	assert_int_equal(verdict_inside(4, 12, 224), DROP_ip4_martian_src);
	assert_int_equal(verdict_inside(4, 12, 0), DROP_ip4_martian_src);
	assert_int_equal(verdict_inside(4, 16, 127), DROP_ip4_martian_dst);
	assert_int_equal(verdict_inside(6, 8, 0xff), DROP_ip6_martian_src);
	assert_int_equal(verdict_inside(4, 16, 224), PUNT_local);
	assert_int_equal(verdict_inside(6, 24, 0xff), PUNT_group);
	assert_int_equal(verdict_inside(4, 10, 0x55), DROP_ip4_checksum);
	assert_int_equal(verdict_inside(4, 8, 1), PUNT_ttl_expired);
	assert_int_equal(verdict_inside(6, 7, 0), PUNT_ttl_expired);
	assert_int_equal(verdict_inside(4, 0, 0x44), DROP_ip4_ihl);
	assert_int_equal(verdict_inside(4, 3, 19), DROP_ip4_length);
}

/* The kernel never sees the outer packet, so forwarders check its source. */
static void
rp_filter_concerns_the_outer_packet(void **state)
{
	struct fib_iface *wan = iface_make(WAN, wan_mac);

	gre4(0);
	wan->urpf4 = FIB_URPF_STRICT;
	fib->egress[11] = LAN; /* the remote is behind LAN */
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], DROP_urpf);
	wan->urpf4 = FIB_URPF_LOOSE;
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	wan->urpf4 = FIB_URPF_STRICT;
	fib->egress[11] = WAN;
	gre_in(4, 0, GRE4, 4);
	opened_leaves(T4, 60, 0x0800);
}

/*
 * A packet from or to the MAC of a group gets no ICMP error. An inner packet has MACs of 0.
 */
static void
a_packet_that_came_out_has_no_addresses_of_its_outer_header(void **state)
{
	static const uint8_t none[12];
	struct fwd_decap decap;
	uint8_t *ip;

	gre4(0);
	ip = outer4(47, 0, 60, GRE4, 4);
	inner_write(ip, 4, 60, true);
	ip[8] = 1;
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	walk(84);
	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	decap = fwd_decap_of(&b, 0);
	fwd_tunnel_enter(&fwd, &b, &decap, 1);
	fwd_walk(&b, NULL);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	assert_memory_equal(rte_pktmbuf_mtod(&packet.m, uint8_t *), none, sizeof(none));
}

/* A key of 0 is not the same as no key (RFC 2890, 2.1). */
static void
a_key_of_zero_is_a_key(void **state)
{
	struct fib_tunnel *t = gre4(0);
	struct fib_tunnel_key key = {
		.local = t->local, .remote = t->remote, .family = 4, .proto = PROTO_GRE};

	assert_true(fib_tunnel_is(t, &key));
	key.has_key = true;
	assert_false(fib_tunnel_is(t, &key));
	t->has_key = true;
	assert_true(fib_tunnel_is(t, &key));
	key.family = 6;
	assert_false(fib_tunnel_is(t, &key));
}

/* A sit tunnel with `dev` receives packets by this link only, as in Linux. */
static void
a_tunnel_may_receive_by_its_link_only(void **state)
{
	struct fib_tunnel *t = ip4();

	for (unsigned int only = 0; only < 2; only++)
		for (unsigned int k = 0; k < 3; k++) {
			uint32_t link[3] = {0, fib->iface[b.ifidx]->ifindex, 99};

			t->only_link = only;
			t->link = link[k];
			inner_write(outer4(4, 0, 60, "", 0), 4, 60, true);
			walk(80);
			if (only == 1 && k == 2)
				assert_int_equal(b.verdict[0], PUNT_local);
			else
				assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
		}
}

/* Tags of the outer packet do not go on with the inner packet. */
static void
tags_stay_with_the_outer_packet(void **state)
{
	gre4(0);
	inner_write(outer4(47, 0, 60, GRE4, 4), 4, 60, true);
	packet.m.ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_VLAN;
	packet.m.vlan_tci = 0xe007;
	walk(84);
	opened_leaves(T4, 60, 0x0800);
	assert_int_equal(packet.m.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0);
}

/*
 * A device that parses tunnels reports the checksum of the inner packet, so its report is
 * not used.
 */
static void
checksums_are_verified_whatever_the_device_says(void **state)
{
	static const uint64_t said[] = {0, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
					RTE_MBUF_F_RX_IP_CKSUM_BAD};

	gre4(0);
	b.rx_cksum = true;
	for (unsigned int k = 0; k < RTE_DIM(said); k++) {
		inner_write(outer4(47, 0, 60, GRE4, 4), 4, 60, true);
		packet.m.ol_flags = said[k];
		walk(84);
		opened_leaves(T4, 60, 0x0800);
		assert_int_equal(packet.m.ol_flags, 0);
		inner_write(outer4(47, 0, 60, GRE4, 4), 4, 60, true);
		packet.buffer[128 + 14 + 10] ^= 1;
		packet.m.ol_flags = said[k];
		walk(84);
		assert_int_equal(b.verdict[0], DROP_ip4_checksum);
	}
	b.rx_cksum = false;
}

/* Outer headers and two tags must fit before the frame. */
static void
a_buffer_without_room_is_dropped(void **state)
{
	static const unsigned int room[] = {24 + 8, 24 + 7};

	gre4(0);
	for (unsigned int k = 0; k < 2; k++) {
		frame_begin(LAN, 4);
		inner_write(packet.buffer + 128 + 14, 4, 60, false);
		memmove(packet.buffer + room[k], packet.buffer + 128, 14 + 60);
		packet.m.data_off = (uint16_t)room[k];
		walk(60);
		assert_int_equal(b.verdict[0], k == 0 ? VERDICT_GO : DROP_no_headroom);
	}
}

/* Write an outer packet of a random tunnel, and return its length. */
static unsigned int
any_outer(void)
{
	static const uint8_t limit[8] = {4, 0, 4, 1, 4, 1, 1, 0};
	uint8_t family = random() % 2 == 0 ? 4 : 6, *out;

	switch (random() % 4) {
	case 0:
		inner_write(outer4(47, 1, 60, family == 4 ? GRE4 : GRE6, 4), family, 60,
			    true);
		return 84;
	case 1:
		inner_write(outer4(47, 2, 60, GRE4_KEY, 8), 4, 60, true);
		return 88;
	case 2:
		inner_write(outer4(family == 4 ? 4 : 41, 3, 60, "", 0), family, 60, true);
		return 80;
	default:
		out = frame_begin(WAN, 6);
		out[0] = 0x60;
		put_be16(out + 4, 68);
		out[6] = PROTO_IP6_OPTS;
		out[7] = 3;
		memcpy(out + 8, remote6, 16);
		memcpy(out + 24, local6, 16);
		memcpy(out + 40, limit, 8);
		inner_write(out + 48, 4, 60, true);
		return 108;
	}
}

/*
 * With random octets and lengths, nothing behind the frame is read. A sanitizer checks
 * this, because the memory ends where the frame ends. The outer checksum is corrected,
 * because a wrong checksum would stop most packets at once.
 */
static void
no_packet_is_read_beyond_its_end(void **state)
{
	unsigned int n_decap = 0, n_refused = 0;

	srandom(37);
	over6(false, true);
	for (unsigned int round = 0; round < 60000; round++) {
		unsigned int len, cut = 0;
		uint8_t *ip, *memory;

		if (random() % 2 == 0)
			gre4(random() % 2 == 0 ? 0 : 0x01020304);
		else
			ip4();
		len = any_outer();
		ip = packet.buffer + 128 + 14;
		for (unsigned int k = (unsigned int)random() % 3; k > 0; k--)
			ip[random() % len] = (uint8_t)random();
		if (random() % 3 == 0)
			cut = (unsigned int)random() % (len - 50); /* 64 or more stay */
		if (ip[0] >> 4 == 4 && (ip[0] & 15) == 5) {
			put_be16(ip + 2, (uint16_t)(random() % 4 == 0 ? len - cut
								      : get_be16(ip + 2)));
			put_be16(ip + 10, 0);
			put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
		}
		len -= cut;
		memory = malloc(128 + 14 + len);
		assert_non_null(memory);
		memcpy(memory, packet.buffer, 128 + 14 + len);
		packet.m.buf_addr = memory;
		packet.m.buf_len = (uint16_t)(128 + 14 + len);
		walk(len);
		n_decap += b.verdict[0] == VERDICT_DECAPSULATED;
		n_refused += b.verdict[0] != VERDICT_DECAPSULATED;
		if (b.verdict[0] == VERDICT_DECAPSULATED) {
			struct fwd_decap decap = fwd_decap_of(&b, 0);

			fwd_tunnel_enter(&fwd, &b, &decap, 1);
			fwd_walk(&b, NULL);
			assert_true(packet.m.data_len == packet.m.pkt_len &&
				    packet.m.data_off + packet.m.data_len <=
					    128 + 14 + len);
		}
		free(memory);
	}
	assert_true(n_decap > 5000 && n_refused > 5000);
}

static struct watch_record
explained(uint16_t ifidx, unsigned int len)
{
	struct watch_record rec;

	thread_role = ROLE_TRACE;
	fwd_explain(fib, ifidx, packet.buffer + 128, (uint16_t)(14 + len), 14 + len, &rec);
	thread_role = ROLE_NONE;
	return rec;
}

/* `fpmctl explain` follows a packet out of a tunnel, and a packet into a tunnel. */
static void
explain_follows_a_packet_through_tunnels(void **state)
{
	struct watch_record rec;

	gre4(0);
	over6(false, false);
	inner_write(outer4(47, 0, 60, GRE4, 4), 4, 60, true);
	rec = explained(WAN, 84);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.in_ifidx, T4);
	assert_int_equal(rec.outer_ifidx, WAN);
	assert_int_equal(rec.out_ifidx, LAN);
	assert_int_equal(rec.frame_bytes, 74);
	assert_int_equal(get_be16(rec.frame + 12), 0x0800);
	assert_int_equal(get_be32(rec.frame + 14 + 16), BACK4);

	inner_write(frame_begin(LAN, 4), 4, 60, false);
	rec = explained(LAN, 60);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.tunnel, T4);
	assert_int_equal(rec.mtu_bytes, 1476);
	assert_int_equal(rec.out_ifidx, WAN);
	assert_int_equal(rec.via_family, 4);
	assert_int_equal(rec.rewritten[14 + 8], 8);

	/* A later packet is explained by the changed settings of the tunnel. */
	gre4(0)->df = false;
	fib->iface[WAN]->mtu_bytes = 1000;
	inner_write(frame_begin(LAN, 4), 4, 1200, false);
	rec = explained(LAN, 1200);
	assert_int_equal(rec.verdict, PUNT_kernel_route); /* it needs fragments */
	fib->iface[WAN]->mtu_bytes = 1500;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_out_of_gre),
		cmocka_unit_test(what_forwarders_do_not_take_is_for_the_kernel),
		cmocka_unit_test(ecn_comes_out_by_rfc_6040),
		cmocka_unit_test(packets_come_out_of_ip_in_ip),
		cmocka_unit_test(a_packet_inside_for_this_host_keeps_its_outer_header),
		cmocka_unit_test(a_key_of_zero_is_a_key),
		cmocka_unit_test(a_packet_inside_is_judged_as_any_other),
		cmocka_unit_test(rp_filter_concerns_the_outer_packet),
		cmocka_unit_test(
			a_packet_that_came_out_has_no_addresses_of_its_outer_header),
		cmocka_unit_test(a_tunnel_may_receive_by_its_link_only),
		cmocka_unit_test(tags_stay_with_the_outer_packet),
		cmocka_unit_test(checksums_are_verified_whatever_the_device_says),
		cmocka_unit_test(a_buffer_without_room_is_dropped),
		cmocka_unit_test(no_packet_is_read_beyond_its_end),
		cmocka_unit_test(explain_follows_a_packet_through_tunnels),
	};

	return cmocka_run_group_tests(tests, up, down);
}
