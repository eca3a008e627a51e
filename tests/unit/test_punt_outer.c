/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that the punt thread sends with labels, into tunnels, to VTEPs and behind
 * headends of SRv6, octet by octet; each drop with its reason and its ICMP error.
 *
 * link: fpm-dataplane/punt/forward.c fpm-dataplane/punt/tunnel.c fpm-dataplane/punt/headend.c
 * link: fpm-dataplane/punt/label.c fpm-dataplane/punt/out.c fpm-dataplane/punt/icmp.c
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "punt_bed.h"

#define HEADEND 20u
#define SWAP    21u
#define PUSH    22u
#define LABEL   100u
#define NEXT    200u /* the label that is written */

static struct fib_seg6 seg6;

static const uint8_t tunsrc6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xff, [15] = 1};

/* --- labels --------------------------------------------------------------------------- */

/*
 * Let LABEL lead to WAN: without a new label if `encap` is 0, otherwise by this entry of
 * encap[].
 */
static void
label_leads(unsigned int encap)
{
	fib->encap[SWAP] = (struct fib_encap){
		.next = PATH(PATH_ADJ, 2), .n = 1, .entry = {htonl(NEXT << 12)}};
	fib->label[LABEL] = 30;
	fib->group[30] =
		group_word_single(encap == 0 ? PATH(PATH_ADJ, 2) : PATH(PATH_ENCAP, encap));
}

static const uint32_t one_label[1] = {LABEL};

static void
a_label_is_removed_or_swapped(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);

	label_leads(0);
	labels_add(m, one_label, 1, 7);
	rte_pktmbuf_append(m, 3);
	forward(m);
	m = frame_left(60, 0x0800, WAN);
	packet_is(l3_of(m), 4, 60, 6);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
	label_leads(SWAP);
	m = packet_make(6, 60);
	labels_add(m, one_label, 1, 7);
	forward(m);
	m = frame_left(64, MPLS_TYPE, WAN);
	assert_int_equal(get_be32(l3_of(m)), NEXT << 12 | 0x100 | 6);
	packet_is(l3_of(m) + 4, 6, 60, 9);
	rte_pktmbuf_free(m);
	assert_int_equal(count.forwarded[2], 1);
	assert_int_equal(n_judged, 2);
}

/* Return an IPv4 packet of 60 octets, with `headroom` octets before its frame. */
static struct rte_mbuf *
packet_at(unsigned int headroom)
{
	struct rte_mbuf *m = packet_make(4, 60);

	rte_pktmbuf_prepend(m, (uint16_t)(rte_pktmbuf_headroom(m) - headroom));
	memmove(rte_pktmbuf_mtod(m, uint8_t *),
		rte_pktmbuf_mtod_offset(m, uint8_t *, rte_pktmbuf_data_len(m) - 74), 74);
	packet_cut(m, 74);
	return m;
}

static void
labels_are_put_before_a_packet(void **state)
{
	struct rte_mbuf *m;

	fib->encap[PUSH] = (struct fib_encap){
		.next = PATH(PATH_ADJ, 2), .n = 1, .entry = {htonl(NEXT << 12)}};
	fib->group[10] = group_word_single(PATH(PATH_ENCAP, PUSH));
	forward(packet_make(4, 60));
	m = frame_left(64, MPLS_TYPE, WAN);
	assert_int_equal(get_be32(l3_of(m)) >> 12, NEXT);
	packet_is(l3_of(m) + 4, 4, 60, 8);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
	originate(packet_make(4, 60));
	m = frame_left(64, MPLS_TYPE, WAN);
	packet_is(l3_of(m) + 4, 4, 60, 9);
	rte_pktmbuf_free(m);
	counted(N_REASON, 0, 0, 0);
	/* The label counts in the MTU of the link. */
	fib->iface[WAN]->mtu_bytes = 1004;
	forward(packet_make(4, 1000));
	rte_pktmbuf_free(frame_left(1004, MPLS_TYPE, WAN));
	m = packet_make(4, 1001);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1000);
	count.reason[DROP_mtu] = 0;
	/* No room for a label and two tags: the packet is moved in its buffer. */
	m = packet_at(11);
	forward(m);
	m = frame_left(64, MPLS_TYPE, WAN);
	packet_is(l3_of(m) + 4, 4, 60, 8);
	rte_pktmbuf_free(m);
	/* A buffer that has another user stays as it is. */
	m = packet_at(11);
	rte_mbuf_refcnt_update(m, 1);
	forward(m);
	assert_int_equal(count.reason[DROP_no_headroom], 1);
	assert_null(frame_next(1, 0));
	rte_pktmbuf_free(m);
}

static void
labels_that_lead_nowhere_have_their_reasons(void **state)
{
	static const uint32_t unknown[1] = {LABEL + 1}, alert[2] = {1, LABEL},
			      reserved[1] = {4};
	struct rte_mbuf *m = packet_make(4, 60);

	label_leads(0);
	labels_add(m, unknown, 1, 7);
	forward(m);
	counted(DROP_mpls_no_label, 0, 0, 0);
	m = packet_make(4, 60);
	labels_add(m, reserved, 1, 7);
	forward(m);
	counted(DROP_mpls_reserved, 0, 0, 0);
	/* The kernel gets packets with the router alert label, together with all labels. */
	m = packet_make(4, 60);
	labels_add(m, alert, 2, 7);
	forward(m);
	assert_int_equal(n_delivered, 1);
	assert_int_equal(delivered_bytes, L2_LEN + 8 + 60);
	counted(N_REASON, 0, 0, 0);
}

/*
 * The length in the header may leave out octets of the frame, but not name more than it
 * has.
 */
static void
a_wrong_length_behind_the_last_label_is_dropped(void **state)
{
	static const struct {
		uint8_t family, first; /* octet of the header */
		uint16_t length;       /* in the header */
		bool good;
	} each[] = {
		{4, 0x45, 60, true},  {4, 0x45, 59, true},  {4, 0x45, 61, false},
		{4, 0x45, 20, true},  {4, 0x45, 19, false}, {4, 0x44, 60, false},
		{4, 0x4f, 59, false}, {6, 0x60, 20, true},  {6, 0x60, 21, false},
		{6, 0x60, 0, true},
	};

	label_leads(0);
	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		struct rte_mbuf *m = packet_make(each[i].family, 60);
		uint8_t *ip = l3_of(m);

		ip[0] = each[i].first;
		put_be16(ip + (each[i].family == 4 ? 2 : 4), each[i].length);
		if (each[i].family == 4) {
			put_be16(ip + 10, 0);
			put_be16(ip + 10,
				 (uint16_t)~inet_fold(inet_sum(ip, (ip[0] & 15u) * 4, 0)));
		}
		labels_add(m, one_label, 1, 7);
		forward(m);
		if (each[i].good) {
			m = frame_next(1, WAN);
			assert_non_null(m);
			rte_pktmbuf_free(m);
		}
		counted(each[i].good ? N_REASON : DROP_mpls_payload,
			each[i].good && each[i].family == 4,
			each[i].good && each[i].family == 6, 0);
	}
}

static void
errors_about_packets_with_labels_take_their_path(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);

	/*
	 * The label leads to another router, so the error gets the new label. Its TTL is
	 * 255, less one here.
	 */
	label_leads(SWAP);
	labels_add(m, one_label, 1, 1);
	forward(m);
	m = frame_next(1, WAN);
	assert_non_null(m);
	assert_int_equal(get_be32(l3_of(m)), NEXT << 12 | 0x100 | 254);
	assert_int_equal(l3_of(m)[4 + 20], 11);
	rte_pktmbuf_free(m);
	assert_int_equal(count.reason[DROP_ttl], 1);
	count.reason[DROP_ttl] = count.forwarded[2] = 0;
	counted(N_REASON, 0, 0, 1);
	/* The label ends here: the error takes the route to the sender. */
	fib->group[30] = group_word_single(PATH(PATH_VRF, 0));
	m = packet_make(4, 60);
	ttl_write(m, 1);
	labels_add(m, one_label, 1, 7);
	forward(m);
	m = frame_next(1, LAN);
	assert_non_null(m);
	assert_int_equal(l3_of(m)[20], 11);
	rte_pktmbuf_free(m);
	assert_int_equal(count.reason[DROP_ttl], 1);
	/* Behind the labels is no IP packet: there is no sender. */
	count.reason[DROP_ttl] = 0;
	count.icmp_sent = 0;
	label_leads(SWAP);
	m = packet_make(4, 60);
	l3_of(m)[0] = 0x15;
	labels_add(m, one_label, 1, 1);
	forward(m);
	counted(DROP_ttl, 0, 0, 0);
}

/*
 * An end point of SRv6 has put the packet in a VRF. As in Linux and RFC 1812, 4.3.2.4, the
 * source is an address of the interface by which the error leaves, not of the interface by
 * which the packet would leave.
 */
static void
errors_in_the_vrf_of_a_sid_have_the_source_of_their_egress(void **state)
{
	struct fib_vrf *red = fib_vrf_new(fib, 1001, "red");
	struct rte_mbuf *m;
	uint8_t net[4];

	assert_non_null(red);
	fib_vrf_publish(fib, 5, red);
	fib->iface[LAN]->vrf = fib->iface[WAN]->vrf = 5;
	fib->iface[WAN]->src4 = 0xcb007141;
	fib->group[23] = group_word_single(PATH(PATH_ADJ, 2));
	fib->group[24] = group_word_single(PATH(PATH_ADJ, 1));
	put_be32(net, BACK4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 23), 0);
	put_be32(net, HOST4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 24), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	m = packet_make(4, 60);
	packet_meta(m)->in_ifidx = T6;
	packet_meta(m)->vrf = 5;
	ttl_write(m, 1);
	forward(m);
	m = frame_next(1, WAN);
	assert_non_null(m);
	assert_int_equal(l3_of(m)[20], 11);
	assert_int_equal(get_be32(l3_of(m) + 12), 0xcb007141);
	rte_pktmbuf_free(m);
	fib->iface[LAN]->vrf = fib->iface[WAN]->vrf = 0;
}

/*
 * RFC 4884, 7 and RFC 4950, 3: the extension begins 128 octets behind the start of the
 * quote.
 */
static void
an_error_about_a_packet_with_labels_has_them(void **state)
{
	fib->label[LABEL] = 30;
	for (uint8_t family = 4; family <= 6; family += 2) {
		unsigned int l4 = family == 4 ? 20 : 40, quote = l4 + 8;
		struct rte_mbuf *m = packet_make(family, 60);
		const uint8_t *ip;

		fib->group[30] = group_word_single(PATH(PATH_VRF, 0));
		ttl_write(m, 1);
		labels_add(m, one_label, 1, 7);
		forward(m);
		m = frame_next(1, LAN);
		assert_non_null(m);
		ip = l3_of(m);
		assert_int_equal(rte_pktmbuf_pkt_len(m), L2_LEN + quote + 128 + 12);
		/*
		 * The length of the quote: in 32-bit words, or for ICMPv6 in 64-bit words.
		 */
		assert_int_equal(ip[l4 + (family == 4 ? 5 : 4)], family == 4 ? 32 : 16);
		ip += quote + 128;
		assert_int_equal(ip[0], 0x20); /* version 2 */
		assert_int_equal(get_be16(ip + 4), 8);
		assert_int_equal(get_be16(ip + 6), 0x0101);
		assert_int_equal(get_be32(ip + 8) >> 12, LABEL);
		assert_int_equal(get_be32(ip + 8) & 0x1ff, 0x100 | 7);
		assert_int_equal((uint16_t)~inet_fold(inet_sum(ip, 12, 0)), 0);
		rte_pktmbuf_free(m);
		counted(DROP_ttl, 0, 0, 1);
	}
}

/*
 * An ICMP error of this thread is counted in its class as taken, because no ring passes it.
 */
static void
an_error_is_counted_in_its_class(void **state)
{
	const struct class_counters *c = &count.class[punt_class_icmp(4, 11, 0)];
	struct rte_mbuf *m = packet_make(4, 60);

	ttl_write(m, 1);
	forward(m);
	error_left(4, 11, 0, 0);
	assert_int_equal(c->passed, 1);
	assert_int_equal(c->taken, 1);
	assert_int_equal(c->policed + c->over_share + c->ring_full, 0);
}

static void
fragments_get_the_labels_of_the_packet(void **state)
{
	struct rte_mbuf *m = packet_make(4, 1000);

	/*
	 * The MTU of 500 octets has room for the label (4), the IP header (20) and 472
	 * octets of payload, a multiple of 8.
	 */
	label_leads(SWAP);
	fib->iface[WAN]->mtu_bytes = 500;
	labels_add(m, one_label, 1, 7);
	forward(m);
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int bytes = i == 2 ? 20 + 980 - 2 * 472 : 20 + 472;
		const uint8_t *ip;

		m = frame_left(4 + bytes, MPLS_TYPE, WAN);
		ip = l3_of(m) + 4;
		assert_int_equal(get_be32(ip - 4), NEXT << 12 | 0x100 | 6);
		assert_int_equal(get_be16(ip + 2), bytes);
		assert_int_equal(get_be16(ip + 6), (i == 2 ? 0 : 0x2000) | i * 59);
		assert_int_equal(ip[8], 9);
		assert_true(ip4_checksum_ok(ip, 20));
		rte_pktmbuf_free(m);
	}
	assert_int_equal(count.forwarded[2], 3);
	count.forwarded[2] = 0;
	counted(N_REASON, 0, 0, 0);
	/* A label and a fragment of 68 octets have to fit: RFC 791, 3.2. */
	fib->iface[WAN]->mtu_bytes = 75; /* one label more is written than removed */
	m = packet_make(4, 200);
	labels_add(m, (const uint32_t[]){LABEL, LABEL}, 2, 7);
	forward(m);
	counted(DROP_mtu, 0, 0, 0);
	/* There is no IP packet to cut. */
	m = packet_make(4, 1000);
	l3_of(m)[0] = 0x15;
	labels_add(m, one_label, 1, 7);
	forward(m);
	counted(DROP_mtu, 0, 0, 0);
}

/* --- tunnels -------------------------------------------------------------------------- */

static void
into_t4(uint32_t key)
{
	gre4(key);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T4));
}

static void
a_packet_gets_the_headers_of_its_tunnel(void **state)
{
	into_t4(0x01020304);
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);
		const uint8_t *out;

		rte_pktmbuf_append(m, 6);
		forward(m);
		m = frame_left(28 + 60, 0x0800, WAN);
		out = l3_of(m);
		assert_int_equal(out[0], 0x45);
		assert_int_equal(get_be16(out + 2), 88);
		assert_int_equal(get_be16(out + 4), family == 4 ? 0x1234 : 0x1235);
		assert_int_equal(out[9], PROTO_GRE);
		assert_true(ip4_checksum_ok(out, 20));
		assert_int_equal(get_be32(out + 12), LOCAL4);
		assert_int_equal(get_be32(out + 16), REMOTE4);
		assert_int_equal(get_be32(out + 20),
				 0x20000000u | (family == 4 ? 0x0800 : 0x86dd));
		assert_int_equal(get_be32(out + 24), 0x01020304);
		packet_is(out + 28, family, 60, 8);
		rte_pktmbuf_free(m);
		assert_ptr_equal(judged_out, fib->iface[T4]);
		counted(N_REASON, family == 4, family == 6, 0);
	}
	assert_int_equal(count.port[T4].tx_packets, 2);
	assert_int_equal(count.port[T4].tx_bytes, 120);
	originate(packet_make(4, 60));
	rte_pktmbuf_free(frame_left(88, 0x0800, WAN));
	counted(N_REASON, 0, 0, 0);
	assert_int_equal(count.port[T4].tx_packets, 3);
}

static void
a_tunnel_over_ipv6_makes_a_packet_of_ipv6(void **state)
{
	struct rte_mbuf *m;

	over6(false, false);
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, T6));
	forward(packet_make(4, 60));
	m = frame_left(100, 0x86dd, WAN);
	assert_int_equal(l3_of(m)[6], PROTO_IP4);
	assert_int_equal(get_be16(l3_of(m) + 4), 60);
	assert_memory_equal(l3_of(m) + 24, remote6, 16);
	packet_is(l3_of(m) + 40, 4, 60, 8);
	rte_pktmbuf_free(m);
	assert_int_equal(count.port[T6].tx_packets, 1);
	assert_int_equal(count.port[T6].tx_bytes, 60);
}

static void
a_tunnel_may_lead_into_another(void **state)
{
	struct rte_mbuf *m;

	over6(false, false);
	into_t4(0);
	route4(REMOTE4, 32, 15, PATH(PATH_ONLINK, T6));
	forward(packet_make(4, 60));
	m = frame_left(124, 0x86dd, WAN);
	assert_int_equal(get_be16(l3_of(m) + 4), 84);
	assert_int_equal(get_be16(l3_of(m) + 42), 84);
	packet_is(l3_of(m) + 64, 4, 60, 8);
	rte_pktmbuf_free(m);
	assert_int_equal(count.port[T4].tx_packets, 1);
	assert_int_equal(count.port[T4].tx_bytes, 60);
	assert_int_equal(count.port[T6].tx_packets, 1);
	assert_int_equal(count.port[T6].tx_bytes, 84);
}

static void
a_tunnel_has_its_mtu(void **state)
{
	struct rte_mbuf *m;

	into_t4(0);
	forward(packet_make(4, 1476));
	rte_pktmbuf_free(frame_left(1500, 0x0800, WAN));
	counted(N_REASON, 1, 0, 0);
	m = packet_make(4, 1477);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1476);
	counted(DROP_mtu, 0, 0, 1);
	/* The MTU of the egress, less the headers, is smaller. */
	fib->iface[WAN]->mtu_bytes = 1024;
	m = packet_make(4, 1001);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1000);
	counted(DROP_mtu, 0, 0, 1);
	forward(packet_make(4, 1000));
	rte_pktmbuf_free(frame_left(1024, 0x0800, WAN));
	counted(N_REASON, 1, 0, 0);
	/* The MTU of the tunnel is still smaller. */
	fib->iface[T4]->mtu_bytes = 900;
	m = packet_make(4, 901);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 900);
	counted(DROP_mtu, 0, 0, 1);
}

static void
a_packet_without_room_for_headers_is_dropped(void **state)
{
	for (unsigned int room = 24 + 8 - 1; room <= 24 + 8; room++) {
		struct rte_mbuf *m = packet_make(4, 60);

		into_t4(0);
		rte_pktmbuf_prepend(m, (uint16_t)(rte_pktmbuf_headroom(m) - room));
		memmove(rte_pktmbuf_mtod(m, uint8_t *),
			rte_pktmbuf_mtod_offset(m, uint8_t *, rte_pktmbuf_data_len(m) - 74),
			74);
		packet_cut(m, 74);
		forward(m);
		if (room == 32)
			rte_pktmbuf_free(frame_left(84, 0x0800, WAN));
		counted(room == 32 ? N_REASON : DROP_no_headroom, room == 32, 0, 0);
	}
	assert_int_equal(count.port[T4].tx_packets, 1);
}

static void
packets_wait_for_the_neighbor_of_the_outer_packet(void **state)
{
	uint8_t far[4], gateway[4] = {192, 0, 2, 254};

	into_t4(0);
	put_be32(far, REMOTE4);
	memcpy(fib->adj[2].addr.octet, gateway, 4);
	atomic_store(&fib->adj[2].hop, 0);
	forward(packet_make(4, 60));
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, gateway, 4);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN));
	forward(packet_make(6, 60));
	assert_int_equal(sent.n_gleans, 2);
	assert_int_equal(sent.family, 4);
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, far, 4);
	/* The kernel has the tunnel, too; it gets packets that only it can send. */
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 5));
	forward(packet_make(4, 60));
	assert_int_equal(n_delivered, 1);
	assert_int_equal(delivered_bytes, L2_LEN + 60);
	fib->iface[T4]->tunnel.inner6 = false;
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	forward(packet_make(6, 60));
	assert_int_equal(n_delivered, 2);
	counted(N_REASON, 0, 0, 0);
	fib->group[11] = group_word_single(PATH(PATH_UNREACHABLE, 0));
	forward(packet_make(4, 60));
	error_left(4, 3, 0, 0);
	counted(DROP_egress_down, 0, 0, 1);
}

static void
an_inner_packet_loses_its_outer_headers(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);
		static const uint8_t zero[12];

		/* The frame of the inner packet begins in the header of GRE. */
		rte_pktmbuf_prepend(m, 24);
		packet_meta(m)->inner_at = 24;
		m->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_VLAN_STRIPPED |
			      RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		punt_tunnel_take(m);
		assert_int_equal(packet_meta(m)->inner_at, 0);
		assert_int_equal(m->ol_flags, RTE_MBUF_F_RX_RSS_HASH);
		assert_int_equal(m->pkt_len, L2_LEN + 60);
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), zero, 12);
		assert_int_equal(get_be16(rte_pktmbuf_mtod(m, uint8_t *) + 12),
				 family == 4 ? 0x0800 : 0x86dd);
		packet_is(l3_of(m), family, 60, 9);
		rte_pktmbuf_free(m);
	}
}

/* --- VXLAN ---------------------------------------------------------------------------- */

static void
a_packet_gets_the_headers_of_its_vtep(void **state)
{
	struct rte_mbuf *m;
	const uint8_t *out;

	over(4);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ADJ, ADJ));
	forward(packet_make(4, 60));
	m = frame_left(110, 0x0800, WAN);
	out = l3_of(m);
	assert_int_equal(get_be16(out + 2), 110);
	assert_int_equal(get_be16(out + 4), 0x1234);
	assert_int_equal(out[9], 17);
	assert_true(ip4_checksum_ok(out, 20));
	assert_int_equal(get_be32(out + 16), REMOTE4);
	assert_int_equal(get_be16(out + 22), PORT);
	assert_int_equal(get_be16(out + 24), 90);
	assert_int_equal(get_be32(out + 32), VNI << 8);
	assert_memory_equal(out + 36, rmac, 6);
	assert_memory_equal(out + 42, svi_mac, 6);
	packet_is(out + 50, 4, 60, 8);
	rte_pktmbuf_free(m);
	assert_ptr_equal(judged_out, fib->iface[SVI]);
	assert_int_equal(count.port[SVI].tx_packets, 1);
	assert_int_equal(count.port[SVI].tx_bytes, 60);
	counted(N_REASON, 1, 0, 0);
	originate(packet_make(6, 60));
	m = frame_left(110, 0x0800, WAN);
	packet_is(l3_of(m) + 50, 6, 60, 9);
	rte_pktmbuf_free(m);
	assert_int_equal(count.port[SVI].tx_packets, 2);
	counted(N_REASON, 0, 0, 0);
	assert_int_equal(p.ip_id, 0x1236);
}

static void
a_vtep_has_an_mtu_and_a_neighbor(void **state)
{
	uint8_t far[4], gateway[4] = {192, 0, 2, 254};
	struct rte_mbuf *m;

	over(4);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ADJ, ADJ));
	forward(packet_make(4, 1450));
	rte_pktmbuf_free(frame_left(1500, 0x0800, WAN));
	counted(N_REASON, 1, 0, 0);
	m = packet_make(4, 1451);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1450);
	counted(DROP_mtu, 0, 0, 1);
	/* The interface has a smaller MTU. */
	fib->iface[SVI]->mtu_bytes = 1000;
	m = packet_make(4, 1001);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1000);
	counted(DROP_mtu, 0, 0, 1);
	/* No room for the headers. */
	forward(packet_at(40));
	counted(DROP_no_headroom, 0, 0, 0);
	/* The neighbor of the outer packet: a gateway, then the VTEP itself. */
	memcpy(fib->adj[2].addr.octet, gateway, 4);
	atomic_store(&fib->adj[2].hop, 0);
	forward(packet_make(4, 60));
	assert_int_equal(sent.n_gleans, 1);
	assert_memory_equal(sent.addr.octet, gateway, 4);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN));
	put_be32(far, REMOTE4);
	forward(packet_make(4, 60));
	assert_int_equal(sent.n_gleans, 2);
	assert_int_equal(sent.ifidx, WAN);
	assert_int_equal(sent.family, 4);
	assert_memory_equal(sent.addr.octet, far, 4);
	/* The kernel has the VXLAN, too. */
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 5));
	forward(packet_make(4, 60));
	assert_int_equal(n_delivered, 1);
	fib->group[11] = group_word_single(PATH(PATH_NONE, 0));
	forward(packet_make(4, 60));
	error_left(4, 3, 0, 0);
	counted(DROP_egress_down, 0, 0, 1);
}

/* --- headends of SRv6 ----------------------------------------------------------------- */

/* Routes to HOST4 and host6 lead to a headend with the only segment remote6. */
static void
headend_make(void)
{
	uint32_t word[SRV6_WORDS_MAX];
	uint8_t n = srv6_headend_pack(SRV6_ENCAP_RED, remote6, 1, word);

	fib->encap[HEADEND] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
	assert_true(fib_headend_write(&fib->headend[HEADEND], word, n));
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ENCAP, HEADEND));
	memcpy(seg6.source.octet, tunsrc6, 16);
	fib->seg6 = &seg6;
}

static void
a_packet_gets_the_header_of_its_headend(void **state)
{
	struct rte_mbuf *m;
	const uint8_t *out;

	headend_make();
	for (uint8_t family = 4; family <= 6; family += 2) {
		m = packet_make(family, 60);
		rte_pktmbuf_append(m, 6);
		forward(m);
		m = frame_left(100, 0x86dd, WAN);
		out = l3_of(m);
		assert_int_equal(get_be16(out + 4), 60);
		assert_int_equal(out[6], family == 4 ? 4 : 41);
		assert_memory_equal(out + 8, tunsrc6, 16);
		assert_memory_equal(out + 24, remote6, 16);
		packet_is(out + 40, family, 60, 8);
		rte_pktmbuf_free(m);
		assert_ptr_equal(judged_out, fib->iface[WAN]);
		counted(N_REASON, family == 4, family == 6, 0);
	}
	originate(packet_make(4, 60));
	m = frame_left(100, 0x86dd, WAN);
	packet_is(l3_of(m) + 40, 4, 60, 9);
	rte_pktmbuf_free(m);
	counted(N_REASON, 0, 0, 0);
	/* The MTU of the egress, less the header. */
	fib->iface[WAN]->mtu6_bytes = 1040;
	forward(packet_make(4, 1000));
	rte_pktmbuf_free(frame_left(1040, 0x86dd, WAN));
	counted(N_REASON, 1, 0, 0);
	m = packet_make(4, 1001);
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1000);
	counted(DROP_mtu, 0, 0, 1);
}

static void
a_headend_may_lead_nowhere(void **state)
{
	struct rte_mbuf *m;

	headend_make();
	/* The first segment is a neighbor. */
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN));
	forward(packet_make(4, 60));
	assert_int_equal(sent.family, 6);
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, remote6, 16);
	counted(N_REASON, 0, 0, 0);
	fib->group[11] = group_word_single(PATH(PATH_UNREACHABLE, 0));
	forward(packet_make(4, 60));
	error_left(4, 3, 1, 0);
	counted(DROP_unreachable, 0, 0, 1);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	fib->iface[WAN]->up = false;
	forward(packet_make(4, 60));
	error_left(4, 3, 0, 0);
	counted(DROP_egress_down, 0, 0, 1);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN));
	sent.n_gleans = 0;
	forward(packet_make(4, 60));
	error_left(4, 3, 0, 0);
	counted(DROP_egress_down, 0, 0, 1);
	assert_int_equal(sent.n_gleans, 0);
	/*
	 * The kernel puts the header before packets while seg6 is NULL, and before packets
	 * with labels.
	 */
	fib->iface[WAN]->up = true;
	fib->seg6 = NULL;
	forward(packet_make(4, 60));
	assert_int_equal(n_delivered, 1);
	fib->seg6 = &seg6;
	fib->label[LABEL] = 30;
	fib->group[30] = group_word_single(PATH(PATH_VRF, 0));
	m = packet_make(4, 60);
	labels_add(m, one_label, 1, 7);
	forward(m);
	assert_int_equal(n_delivered, 2);
	assert_int_equal(delivered_bytes, L2_LEN + 4 + 60);
	counted(N_REASON, 0, 0, 0);
}

static void
a_packet_without_room_for_the_header_of_a_headend_is_dropped(void **state)
{
	for (unsigned int room = 40 + 8 - 1; room <= 40 + 8; room++) {
		struct rte_mbuf *m = packet_make(4, 60);

		headend_make();
		rte_pktmbuf_prepend(m, (uint16_t)(rte_pktmbuf_headroom(m) - room));
		memmove(rte_pktmbuf_mtod(m, uint8_t *),
			rte_pktmbuf_mtod_offset(m, uint8_t *, rte_pktmbuf_data_len(m) - 74),
			74);
		packet_cut(m, 74);
		rte_mbuf_refcnt_update(m, 1); /* a packet that is shared is not moved */
		forward(m);
		if (room == 48)
			rte_pktmbuf_free(frame_left(100, 0x86dd, WAN));
		rte_pktmbuf_free(m);
		counted(room == 48 ? N_REASON : DROP_no_headroom, room == 48, 0, 0);
	}
}

static int
all_up(void **state)
{
	return eal_up("test_punt_outer");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		PUNT_TEST(a_label_is_removed_or_swapped),
		PUNT_TEST(labels_are_put_before_a_packet),
		PUNT_TEST(labels_that_lead_nowhere_have_their_reasons),
		PUNT_TEST(a_wrong_length_behind_the_last_label_is_dropped),
		PUNT_TEST(errors_about_packets_with_labels_take_their_path),
		PUNT_TEST(errors_in_the_vrf_of_a_sid_have_the_source_of_their_egress),
		PUNT_TEST(an_error_about_a_packet_with_labels_has_them),
		PUNT_TEST(an_error_is_counted_in_its_class),
		PUNT_TEST(fragments_get_the_labels_of_the_packet),
		PUNT_TEST(a_packet_gets_the_headers_of_its_tunnel),
		PUNT_TEST(a_tunnel_over_ipv6_makes_a_packet_of_ipv6),
		PUNT_TEST(a_tunnel_may_lead_into_another),
		PUNT_TEST(a_tunnel_has_its_mtu),
		PUNT_TEST(a_packet_without_room_for_headers_is_dropped),
		PUNT_TEST(packets_wait_for_the_neighbor_of_the_outer_packet),
		PUNT_TEST(an_inner_packet_loses_its_outer_headers),
		PUNT_TEST(a_packet_gets_the_headers_of_its_vtep),
		PUNT_TEST(a_vtep_has_an_mtu_and_a_neighbor),
		PUNT_TEST(a_packet_gets_the_header_of_its_headend),
		PUNT_TEST(a_headend_may_lead_nowhere),
		PUNT_TEST(a_packet_without_room_for_the_header_of_a_headend_is_dropped),
	};

	return cmocka_run_group_tests_name("punt_outer", tests, all_up, all_down);
}
