/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets to VTEPs and from them, octet by octet: RFC 7348, 6040, 9135. The Linux kernel as
 * the other router is in tests/system/test_vxlan.py.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "vxlan_bed.h"

/* --- to a VTEP ------------------------------------------------------------------------ */

/* Check all headers of a packet that leaves, and return the inner packet. */
static uint8_t *
headers(const uint8_t *out, uint8_t family, uint8_t inner, unsigned int len)
{
	unsigned int bytes = family == 4 ? 50 : 70;
	const uint8_t *udp = out + bytes - 30;

	leaves(len + bytes, family == 4 ? 0x0800 : 0x86dd, WAN);
	if (family == 4) {
		assert_int_equal(get_be16(out + 2), len + 50);
		assert_int_equal(out[8], 64);
		assert_int_equal(get_be32(out + 16), REMOTE4);
		assert_true(ip4_checksum_ok(out, 20));
	} else {
		assert_int_equal(get_be16(out + 4), len + 30);
		assert_int_equal(out[7], 64);
		assert_memory_equal(out + 24, remote6, 16);
	}
	assert_true(get_be16(udp) >= 49152);
	assert_int_equal(get_be16(udp + 2), PORT);
	assert_int_equal(get_be16(udp + 4), len + 30);
	assert_int_equal(get_be32(udp + 8), 0x08000000);
	assert_int_equal(get_be32(udp + 12), VNI << 8);
	assert_memory_equal(udp + 16, rmac, 6);
	assert_memory_equal(udp + 22, svi_mac, 6);
	assert_int_equal(get_be16(udp + 28), inner == 4 ? 0x0800 : 0x86dd);
	return (uint8_t *)(uintptr_t)(udp + 30);
}

static void
a_packet_to_a_vtep_gets_all_headers(void **state)
{
	uint64_t tx = count.port[SVI].tx_packets;

	for (uint8_t family = 4; family <= 6; family += 2)
		for (uint8_t inner = 4; inner <= 6; inner += 2) {
			uint8_t *out, *ip;

			over(family);
			out = into(inner, 100, NULL);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			assert_int_equal(b.hop[0] & 0xffff, WAN);
			ip = headers(out, family, inner, 100);
			assert_int_equal(ip[inner == 4 ? 8 : 7], 8);
			assert_int_equal(ip[99], 0x77);
			assert_true(inner == 6 || ip4_checksum_ok(ip, 20));
			assert_int_equal(get_be16(ip - 24 + 0), 0); /* no checksum */
		}
	assert_int_equal(count.port[SVI].tx_packets, tx + 4);
}

/* A neighbor of the connected subnet of the bridge. */
static void
an_on_link_host_is_found_too(void **state)
{
	static struct fib_host host = {.ifidx = SVI, .family = 4, .adj = ADJ};
	struct fib_host_key key = {.ifidx = SVI, .family = 4};

	over(4);
	host.addr = key.addr = ipaddr_from_v4(HOST4);
	cds_lfht_node_init(&host.node);
	cds_lfht_add(fib->hosts, fib_host_hash(fib, &key), &host.node);
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, SVI));
	headers(into(4, 100, NULL), 4, 4, 100);
	fib->group[10] = group_word_single(PATH(PATH_ADJ, ADJ));
	cds_lfht_del(fib->hosts, &host.node);
}

static uint16_t port_of_it;

static void
set_port(uint8_t *ip)
{
	put_be16(ip + (ip[0] >> 4 == 4 ? 20 : 40), port_of_it);
}

/*
 * All packets of a flow have one source port. Most other flows have other ports. The port
 * is in the range of the device.
 */
static void
the_source_port_is_that_of_the_flow(void **state)
{
	unsigned int n_ports = 0;
	static bool seen[65536];

	over(4);
	for (port_of_it = 1; port_of_it <= 200; port_of_it++) {
		uint16_t from = get_be16(into(4, 60, set_port) + 20);

		n_ports += !seen[from];
		seen[from] = true;
		assert_int_equal(get_be16(into(4, 60, set_port) + 20), from);
		hop.from_low = 6000;
		hop.n_from = 4;
		from = get_be16(into(4, 60, set_port) + 20);
		assert_true(from >= 6000 && from < 6004);
		hop.from_low = 49152;
		hop.n_from = 16384;
	}
	assert_true(n_ports > 180);
}

static void
a_checksum_is_right(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2)
		for (unsigned int len = 60; len < 64; len++) {
			unsigned int bytes = family == 4 ? 50 : 70;
			uint8_t *out;

			over(family);
			hop.csum = true;
			out = into(4, len, NULL);
			assert_int_not_equal(get_be16(out + bytes - 24), 0);
			assert_int_equal(
				inet_fold(inet_sum(out + bytes - 30, len + 30,
						   udp_pseudo_sum(out, family, len + 30))),
				0xffff);
		}
	hop.csum = false;
}

static uint8_t ttl_of_it;

static void
set_ttl(uint8_t *ip)
{
	ip[ip[0] >> 4 == 4 ? 8 : 7] = ttl_of_it;
}

static void
set_df(uint8_t *ip)
{
	ip[6] |= 0x40;
}

static void
what_cannot_go_has_a_reason(void **state)
{
	struct fib_iface *i = over(4);

	ttl_of_it = 1;
	into(4, 60, set_ttl);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	into(4, 1450, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1451, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1450);
	i->mtu_bytes = i->mtu6_bytes = 1500; /* the MTU of the underlay is smaller */
	into(4, 1451, set_df);
	assert_int_equal(packet.meta.mtu_bytes, 1450);
	fib->iface[WAN]->mtu_bytes = 1300;
	into(6, 1280, NULL); /* only the kernel fragments outer packets */
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	into(4, 1280, set_df);
	assert_int_equal(packet.meta.mtu_bytes, 1250);
	fib->iface[WAN]->mtu_bytes = 1500;
	fib->group[11] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_no_route);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, ADJ)); /* into itself */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN)); /* not resolved */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ADJ, ADJ));
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	hop.t.link = 99;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	hop.t.link = WAN + 10;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	hop.t.bytes = 0; /* no VTEP is known */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	over(4);
	fib->group[12] =
		group_word_single(PATH(PATH_NONE, 0)); /* the local address is gone */
	into(4, 60, NULL);
	assert_int_equal(b.cause[0], DROP_egress_down);
	fib->group[12] = group_word_single(PATH(PATH_LOCAL, 0));
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	fib->iface[SVI]->up = false;
	into(4, 60, NULL);
	assert_int_equal(b.cause[0], DROP_egress_down);
	fib->iface[SVI]->up = true;
	fib->vxlan_hop[ADJ] = NULL; /* the neighbor is not resolved */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
}

/*
 * `df inherit`: the outer header has DF if an inner IPv4 packet has DF, and for each IPv6
 * packet, as in Linux. `df set`: it always has DF.
 */
static void
df_of_the_outer_header_is_as_the_device_says(void **state)
{
	static const struct {
		bool ignore, set, df6, want4, want4_df, want6;
	} row[] = {{true, false, false, false, false, false},
		   {true, true, false, true, true, true},
		   {false, false, true, false, true, true}};

	for (unsigned int k = 0; k < 3; k++) {
		over(4);
		hop.t.ignore_df = row[k].ignore;
		hop.t.df = row[k].set;
		hop.df6 = row[k].df6;
		assert_int_equal(into(4, 60, NULL)[6], row[k].want4 ? 0x40 : 0);
		assert_int_equal(into(4, 60, set_df)[6], row[k].want4_df ? 0x40 : 0);
		assert_int_equal(into(6, 60, NULL)[6], row[k].want6 ? 0x40 : 0);
		assert_true(ip4_checksum_ok(
			rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14), 20));
	}
}

/* The kernel gets packets into a GRE tunnel whose outer packets would go by VXLAN. */
static void
a_tunnel_over_a_vxlan_stays_with_the_kernel(void **state)
{
	over(4);
	gre4(0);
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, T4));
	fib->group[11] = group_word_single(PATH(PATH_ADJ, ADJ));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->group[10] = group_word_single(PATH(PATH_ADJ, ADJ));
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/* The headers and two tags must fit before the frame. */
static void
a_buffer_without_room_is_dropped(void **state)
{
	static const unsigned int room[] = {70 + 8, 70 + 7};

	over(6);
	for (unsigned int k = 0; k < 2; k++) {
		frame_begin(LAN, 4);
		inner_write(packet.buffer + 128 + 14, 4, 60, false);
		memmove(packet.buffer + room[k], packet.buffer + 128, 14 + 60);
		packet.m.data_off = (uint16_t)room[k];
		walk(60);
		assert_int_equal(b.verdict[0], k == 0 ? VERDICT_GO : DROP_no_headroom);
	}
}

/* --- from a VTEP ---------------------------------------------------------------------- */

/*
 * Write a VXLAN packet from the far end. Return its UDP header. *len: of the outer packet.
 */
static uint8_t *
outer_write(uint8_t family, uint8_t inner, unsigned int *len)
{
	uint8_t *out = frame_begin(WAN, family), *udp = out + (family == 4 ? 20 : 40);

	memset(out, 0, 80);
	*len = (unsigned int)(udp - out) + 30 + 60;
	if (family == 4) {
		out[0] = 0x45;
		put_be16(out + 2, (uint16_t)*len);
		out[8] = 60;
		out[9] = 17;
		put_be32(out + 12, REMOTE4);
		put_be32(out + 16, LOCAL4);
		put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	} else {
		out[0] = 0x60;
		put_be16(out + 4, (uint16_t)(*len - 40));
		out[6] = 17;
		out[7] = 60;
		memcpy(out + 8, remote6, 16);
		memcpy(out + 24, local6, 16);
	}
	put_be16(udp, 50000);
	put_be16(udp + 2, PORT);
	put_be16(udp + 4, 90);
	udp[8] = 8;
	put_be32(udp + 12, VNI << 8);
	memcpy(udp + 16, svi_mac, 6);
	memcpy(udp + 22, rmac, 6);
	put_be16(udp + 28, inner == 4 ? 0x0800 : 0x86dd);
	inner_write(udp + 30, inner, 60, true);
	return udp;
}

static void
packets_come_out(void **state)
{
	uint64_t rx = count.port[SVI].rx_packets;

	for (uint8_t family = 4; family <= 6; family += 2)
		for (uint8_t inner = 4; inner <= 6; inner += 2)
			for (unsigned int sum = 0; sum < 2; sum++) {
				unsigned int len;
				uint8_t *udp, *ip;

				over(family);
				udp = outer_write(family, inner, &len);
				ip = packet.buffer + 128 + 14;
				if (sum != 0)
					put_be16(udp + 6,
						 (uint16_t)~inet_fold(inet_sum(
							 udp, 90,
							 udp_pseudo_sum(ip, family, 90))));
				walk(len);
				assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
				assert_int_equal(b.hop[0] & 0xffff, SVI);
				assert_int_equal(packet.meta.outer_ifidx, WAN);
				fwd_tunnel_keep(&b, 0);
				fwd_tunnels_walk(&fwd);
				assert_int_equal(fwd.tx[LAN].n, 1);
				leaves(60, inner == 4 ? 0x0800 : 0x86dd, LAN);
				ip = rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
				assert_int_equal(ip[inner == 4 ? 8 : 7], 8);
				assert_int_equal(ip[59], 0x77);
			}
	assert_int_equal(count.port[SVI].rx_packets, rx + 8);
}

/*
 * Receive a VXLAN packet with `octet` at offset `at` from its UDP header. Return the
 * verdict.
 */
static uint8_t
with(int at, uint8_t octet)
{
	unsigned int len;
	uint8_t *udp = outer_write(4, 4, &len);

	udp[at] = octet;
	if (at < 0) {
		put_be16(udp - 10, 0);
		put_be16(udp - 10, (uint16_t)~inet_fold(inet_sum(udp - 20, 20, 0)));
	}
	walk(len);
	return b.verdict[0];
}

/* X4 to X7: a packet is dropped with a reason, or the kernel gets it unchanged. */
static void
what_is_not_for_the_interface_has_a_reason(void **state)
{
	struct fib_iface *i = over(4);
	unsigned int len;

	assert_int_equal(with(8, 8), VERDICT_DECAPSULATED);
	assert_int_equal(with(8, 0xff), VERDICT_DECAPSULATED); /* reserved bits */
	assert_int_equal(with(11, 0xff), VERDICT_DECAPSULATED);
	assert_int_equal(with(15, 0xff), VERDICT_DECAPSULATED);
	assert_int_equal(with(8, 0), DROP_vxlan_flags);
	assert_int_equal(with(14, 0), DROP_vxlan_vni);
	assert_int_equal(with(21, 9), DROP_l2_foreign);
	assert_int_equal(with(22, 3), DROP_l2_group_source);
	assert_int_equal(with(28, 0x81), DROP_vlan_unknown);
	assert_int_equal(with(7, 1), DROP_udp_checksum);
	assert_int_equal(with(-19, 3), DROP_ecn_ce);
	assert_int_equal(with(16, 0xff), PUNT_local);  /* a group address */
	assert_int_equal(with(29, 0x06), PUNT_local);  /* ARP */
	assert_int_equal(with(3, 1), PUNT_local);      /* another port */
	assert_int_equal(with(5, 89), PUNT_local);     /* another length */
	assert_int_equal(with(30, 0x65), PUNT_local);  /* IPv6 with the type of IPv4 */
	assert_int_equal(with(-14, 0x20), PUNT_local); /* a fragment */
	fib->vxlans->one_end = 0;                      /* the kernel may know the VNI */
	assert_int_equal(with(14, 0), PUNT_local);
	i->up = false;
	assert_int_equal(with(8, 8), PUNT_local);
	i->up = true;
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	assert_int_equal(with(8, 8), PUNT_local);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	i->vxlan.local = ipaddr_from_v4(LOCAL4 + 1);
	assert_int_equal(with(8, 8), PUNT_local);
	i = over(6);
	i->vxlan.zero_csum6 = false;
	outer_write(6, 4, &len);
	walk(len);
	assert_int_equal(b.verdict[0], DROP_udp_checksum);
}

/*
 * A device that parses VXLAN may report the checksum of the inner packet, or verify UDP
 * without a request. So its report is used for neither header.
 */
static void
flags_of_the_device_are_not_taken_for_the_outer_packet(void **state)
{
	static const uint64_t said[] = {
		0, RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD,
		RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_BAD,
		RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD |
			RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD};
	unsigned int len;
	uint8_t *udp;

	over(4);
	b.rx_cksum = true;
	for (unsigned int k = 0; k < RTE_DIM(said); k++) {
		outer_write(4, 4, &len);
		packet.m.ol_flags = said[k];
		walk(len);
		assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
		fwd_tunnel_keep(&b, 0);
		fwd_tunnels_walk(&fwd);
		assert_int_equal(fwd.tx[LAN].n, 1);
		assert_int_equal(packet.m.ol_flags, 0);
		udp = outer_write(4, 4, &len);
		put_be16(udp - 10, (uint16_t)(get_be16(udp - 10) ^ 1)); /* outer checksum */
		packet.m.ol_flags = said[k];
		walk(len);
		assert_int_equal(b.verdict[0], DROP_ip4_checksum);
		udp = outer_write(4, 4, &len);
		put_be16(udp + 6, 0x1234);
		packet.m.ol_flags = said[k];
		walk(len);
		assert_int_equal(b.verdict[0], DROP_udp_checksum);
		udp = outer_write(4, 4, &len);
		udp[30 + 10] ^= 1; /* checksum of the inner header */
		packet.m.ol_flags = said[k];
		walk(len);
		assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
		fwd_tunnel_keep(&b, 0);
		fwd_tunnels_walk(&fwd);
		assert_int_equal(fwd.tx[LAN].n, 0);
	}
	b.rx_cksum = false;
}

/*
 * With random octets and lengths, nothing behind the frame is read. A sanitizer checks
 * this, because the memory ends where the frame ends.
 */
static void
no_packet_is_read_beyond_its_end(void **state)
{
	unsigned int n_decap = 0, n_refused = 0;

	srandom(73);
	for (unsigned int round = 0; round < 40000; round++) {
		uint8_t family = random() % 2 == 0 ? 4 : 6, *ip, *memory;
		unsigned int len, cut = 0;

		over(family);
		outer_write(family, random() % 2 == 0 ? 4 : 6, &len);
		ip = packet.buffer + 128 + 14;
		for (unsigned int k = (unsigned int)random() % 3; k > 0; k--)
			ip[random() % len] = (uint8_t)random();
		if (random() % 3 == 0)
			cut = (unsigned int)random() % (len - 50);
		if (family == 4 && ip[0] == 0x45) {
			put_be16(ip + 2, (uint16_t)(random() % 2 == 0 ? len - cut
								      : get_be16(ip + 2)));
			put_be16(ip + 10, 0);
			put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
		} else if (random() % 2 == 0) {
			put_be16(ip + 4, (uint16_t)(len - cut - 40));
		}
		if (random() % 2 == 0)
			put_be16(ip + (family == 4 ? 24 : 44),
				 (uint16_t)(len - cut - (family == 4 ? 20 : 40)));
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
		}
		free(memory);
	}
	assert_true(n_decap > 5000 && n_refused > 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_to_a_vtep_gets_all_headers),
		cmocka_unit_test(an_on_link_host_is_found_too),
		cmocka_unit_test(the_source_port_is_that_of_the_flow),
		cmocka_unit_test(a_checksum_is_right),
		cmocka_unit_test(what_cannot_go_has_a_reason),
		cmocka_unit_test(df_of_the_outer_header_is_as_the_device_says),
		cmocka_unit_test(a_tunnel_over_a_vxlan_stays_with_the_kernel),
		cmocka_unit_test(a_buffer_without_room_is_dropped),
		cmocka_unit_test(packets_come_out),
		cmocka_unit_test(what_is_not_for_the_interface_has_a_reason),
		cmocka_unit_test(flags_of_the_device_are_not_taken_for_the_outer_packet),
		cmocka_unit_test(no_packet_is_read_beyond_its_end),
	};

	return cmocka_run_group_tests(tests, vxlan_up, down);
}
