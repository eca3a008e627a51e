/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets with MPLS labels that the punt thread sends into tunnels, packets with labels that
 * came out of a tunnel, and labels before outer packets, octet by octet.
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
#define BELOW   21u
#define PUSH    22u
#define LABEL   100u
#define NEXT    200u /* the label that is written */

static const uint32_t one_label[1] = {LABEL};

/* Let routes, and the label, push NEXT and lead into T4. */
static void
labels_into_t4(void)
{
	gre4(0);
	encap_set(&fib->encap[PUSH], PATH(PATH_ONLINK, T4), &(uint32_t){NEXT}, 1, 0);
	fib->label[LABEL] = 30;
	fib->group[10] = fib->group[14] = fib->group[30] =
		group_word_single(PATH(PATH_ENCAP, PUSH));
}

/*
 * Return the frame that left with a label behind GRE. Write the label's entry to `entry`.
 */
static struct rte_mbuf *
labels_left(unsigned int bytes, uint32_t *entry)
{
	struct rte_mbuf *m = frame_left(24 + 4 + bytes, 0x0800, WAN);
	const uint8_t *out = l3_of(m);

	assert_int_equal(get_be16(out + 2), 24 + 4 + bytes);
	assert_int_equal(out[8], 64);
	assert_true(ip4_checksum_ok(out, 20));
	assert_int_equal(get_be32(out + 16), REMOTE4);
	assert_memory_equal(out + 20, "\0\0\x88\x47", 4);
	*entry = get_be32(out + 24);
	return m;
}

static void
labels_enter_a_tunnel(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);
	uint32_t entry;

	labels_into_t4();
	rte_pktmbuf_append(m, 3);
	forward(m);
	m = labels_left(60, &entry);
	assert_int_equal(entry, label_entry(NEXT, 5, true, 8));
	packet_is(l3_of(m) + 28, 4, 60, 8);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
	assert_ptr_equal(judged_out, fib->iface[T4]);
	assert_int_equal(count.port[T4].tx_packets, 1);
	assert_int_equal(count.port[T4].tx_bytes, 64);
	originate(packet_make(6, 60));
	m = labels_left(60, &entry);
	assert_int_equal(entry & 0xff, 9);
	packet_is(l3_of(m) + 28, 6, 60, 9);
	rte_pktmbuf_free(m);
	counted(N_REASON, 0, 0, 0);
	m = packet_make(6, 60);
	labels_add(m, one_label, 1, 7);
	forward(m);
	m = labels_left(60, &entry);
	assert_int_equal(entry, label_entry(NEXT, 0, true, 6));
	packet_is(l3_of(m) + 28, 6, 60, 9);
	rte_pktmbuf_free(m);
	assert_int_equal(count.forwarded[2], 1);
	count.forwarded[2] = 0;
	/* A packet that loses its last label is an IP packet in the tunnel. */
	fib->group[30] = group_word_single(PATH(PATH_ONLINK, T4));
	m = packet_make(4, 60);
	labels_add(m, one_label, 1, 7);
	forward(m);
	m = frame_left(24 + 60, 0x0800, WAN);
	assert_memory_equal(l3_of(m) + 20, "\0\0\x08\0", 4);
	packet_is(l3_of(m) + 24, 4, 60, 6);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
}

static void
packets_too_big_for_labels_in_a_tunnel_are_told_or_cut(void **state)
{
	struct rte_mbuf *m = packet_make(4, 1473);
	uint32_t entry;

	labels_into_t4();
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 1472);
	counted(DROP_mtu, 0, 0, 1);
	forward(packet_make(6, 1473));
	error_left(6, 2, 0, 1472);
	counted(DROP_mtu, 0, 0, 1);
	/* The link below the tunnel counts, too. */
	fib->iface[WAN]->mtu_bytes = 500;
	m = packet_make(4, 900);
	labels_add(m, one_label, 1, 7);
	forward(m);
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int bytes = i == 0 ? 20 + 448 : 20 + 880 - 448;

		m = labels_left(bytes, &entry);
		assert_int_equal(entry, label_entry(NEXT, 0, true, 6));
		assert_int_equal(get_be16(l3_of(m) + 28 + 6), i == 0 ? 0x2000 : 448 / 8);
		rte_pktmbuf_free(m);
	}
	count.forwarded[2] = 0;
	counted(N_REASON, 0, 0, 0);
	fib->iface[WAN]->mtu_bytes = 1500;
}

static void
packets_with_labels_wait_for_the_neighbor_of_the_outer_packet(void **state)
{
	uint8_t gateway[4] = {192, 0, 2, 254};
	struct rte_mbuf *m = packet_make(4, 60);

	labels_into_t4();
	memcpy(fib->adj[2].addr.octet, gateway, 4);
	atomic_store(&fib->adj[2].hop, 0);
	forward(packet_make(4, 60));
	labels_add(m, one_label, 1, 7);
	forward(m);
	assert_int_equal(sent.n_gleans, 1);
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, gateway, 4);
	assert_int_equal(p.n_waiting, 2);
	/* The kernel has the tunnel, too; it gets packets that only it can send. */
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 5));
	forward(packet_make(4, 60));
	assert_int_equal(n_delivered, 1);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	fib->iface[T4]->tunnel.gre = false;
	forward(packet_make(4, 60));
	assert_int_equal(n_delivered, 2);
	counted(N_REASON, 0, 0, 0);
}

static void
labels_without_room_for_the_outer_header_are_dropped(void **state)
{
	for (unsigned int room = 35; room <= 36; room++) {
		struct rte_mbuf *m = packet_make(4, 60);
		uint32_t entry;

		labels_into_t4();
		rte_pktmbuf_prepend(m, (uint16_t)(rte_pktmbuf_headroom(m) - room));
		memmove(rte_pktmbuf_mtod(m, uint8_t *),
			rte_pktmbuf_mtod_offset(m, uint8_t *, rte_pktmbuf_data_len(m) - 74),
			74);
		packet_cut(m, 74);
		rte_mbuf_refcnt_update(m, 1); /* a packet that is shared is not moved */
		forward(m);
		if (room == 36)
			rte_pktmbuf_free(labels_left(60, &entry));
		rte_pktmbuf_free(m);
		counted(room == 36 ? N_REASON : DROP_no_headroom, room == 36, 0, 0);
	}
}

static void
labels_out_of_a_tunnel_lose_its_headers(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);

	labels_into_t4();
	fib->group[30] = group_word_single(PATH(PATH_ADJ, 1));
	labels_add(m, one_label, 1, 7);
	rte_pktmbuf_prepend(m, 24);
	packet_meta(m)->inner_at = 24;
	punt_tunnel_take(m);
	assert_int_equal(packet_meta(m)->inner_at, 0);
	assert_int_equal(m->pkt_len, L2_LEN + 4 + 60);
	assert_int_equal(get_be16(rte_pktmbuf_mtod(m, uint8_t *) + 12), MPLS_TYPE);
	forward(m);
	m = frame_left(60, 0x0800, LAN);
	packet_is(l3_of(m), 4, 60, 6);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
}

/* --- labels before outer packets ------------------------------------------------------ */

enum kind { GRE, VXLAN, SEGMENTS, N_KIND };

static struct fib_seg6 seg6;

/*
 * Lead packets into a tunnel, to a VTEP or to a headend, and let the route to the far end
 * push NEXT and NEXT + 1. Return the octets of labels and outer headers.
 */
static unsigned int
labels_below(enum kind kind)
{
	static const unsigned int bytes[] = {8 + 24, 8 + 50, 8 + 40};
	uint32_t word[SRV6_WORDS_MAX], label[2] = {NEXT, NEXT + 1};
	fib_path path = PATH(PATH_ONLINK, T4);
	uint8_t n;

	gre4(0);
	if (kind == VXLAN) {
		over(4);
		path = PATH(PATH_ADJ, ADJ);
	} else if (kind == SEGMENTS) {
		n = srv6_headend_pack(SRV6_ENCAP_RED, remote6, 1, word);
		fib->encap[HEADEND] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
		assert_true(fib_headend_write(&fib->headend[HEADEND], word, n));
		memcpy(seg6.source.octet, local6, 16);
		fib->seg6 = &seg6;
		path = PATH(PATH_ENCAP, HEADEND);
	}
	fib->group[10] = fib->group[14] = group_word_single(path);
	encap_set(&fib->encap[BELOW], PATH(PATH_ADJ, 2), label, 2, 0);
	fib->group[11] = group_word_single(PATH(PATH_ENCAP, BELOW));
	return bytes[kind];
}

/* Check the labels of a frame that left, and free it. */
static void
labels_below_left(unsigned int bytes, enum kind kind, uint8_t ttl)
{
	struct rte_mbuf *m = frame_left(bytes, MPLS_TYPE, WAN);
	const uint8_t *at = l3_of(m);
	uint8_t tc = kind == SEGMENTS ? 5 : 0;

	ttl = kind == GRE ? ttl : 64;
	assert_int_equal(get_be32(at), label_entry(NEXT, tc, false, ttl));
	assert_int_equal(get_be32(at + 4), label_entry(NEXT + 1, tc, true, ttl));
	assert_int_equal(at[8] >> 4, kind == SEGMENTS ? 6 : 4);
	if (kind != SEGMENTS) {
		assert_true(ip4_checksum_ok(at + 8, 20));
		assert_int_equal(get_be16(at + 10), bytes - 8);
		assert_int_equal(get_be32(at + 24), REMOTE4);
	}
	rte_pktmbuf_free(m);
}

static void
outer_packets_get_the_labels_of_their_route(void **state)
{
	for (enum kind kind = 0; kind < N_KIND; kind++) {
		unsigned int head = labels_below(kind), most = 1500 - head;
		struct rte_mbuf *m;

		for (uint8_t family = 4; family <= 6; family += 2) {
			forward(packet_make(family, 60));
			labels_below_left(head + 60, kind, 8);
			counted(N_REASON, family == 4, family == 6, 0);
		}
		originate(packet_make(4, 60));
		labels_below_left(head + 60, kind, 9);
		counted(N_REASON, 0, 0, 0);
		/* The MTU of the link includes the labels. */
		if (kind == GRE)
			fib->iface[T4]->mtu_bytes = 1500;
		if (kind == VXLAN)
			fib->iface[SVI]->mtu_bytes = 1500;
		forward(packet_make(4, most));
		labels_below_left(1500, kind, 8);
		counted(N_REASON, 1, 0, 0);
		m = packet_make(4, most + 1);
		df_set(m);
		forward(m);
		error_left(4, 3, 4, most);
		counted(DROP_mtu, 0, 0, 1);
	}
	fib->seg6 = NULL; /* not allocated */
}

/* The neighbor of the labelled route may have an address of another family. */
static void
outer_packets_with_labels_wait_for_the_neighbor(void **state)
{
	uint8_t gateway[4] = {192, 0, 2, 254};

	for (enum kind kind = 0; kind < N_KIND; kind++) {
		labels_below(kind);
		memcpy(fib->adj[2].addr.octet, gateway, 4);
		atomic_store(&fib->adj[2].hop, 0);
		sent.n_gleans = 0;
		forward(packet_make(4, 60));
		assert_int_equal(p.n_waiting, kind + 1);
		assert_int_equal(sent.n_gleans, kind == 0);
		if (kind == 0)
			assert_memory_equal(sent.addr.octet, gateway, 4);
	}
	/* If the labels lead into another tunnel, the kernel writes them. */
	for (enum kind kind = 0; kind < N_KIND; kind++) {
		labels_below(kind);
		encap_set(&fib->encap[BELOW], PATH(PATH_ONLINK, T6), &(uint32_t){NEXT}, 1,
			  0);
		forward(packet_make(4, 60));
		assert_int_equal(n_delivered, kind + 1);
	}
	counted(N_REASON, 0, 0, 0);
	fib->seg6 = NULL; /* not allocated */
}

static void
outer_labels_without_room_are_dropped(void **state)
{
	for (enum kind kind = 0; kind < N_KIND; kind++)
		for (unsigned int less = 0; less <= 1; less++) {
			unsigned int head = labels_below(kind);
			struct rte_mbuf *m = packet_make(4, 60);

			rte_pktmbuf_prepend(
				m, (uint16_t)(rte_pktmbuf_headroom(m) - head - 8 + less));
			memmove(rte_pktmbuf_mtod(m, uint8_t *),
				rte_pktmbuf_mtod_offset(m, uint8_t *,
							rte_pktmbuf_data_len(m) - 74),
				74);
			packet_cut(m, 74);
			rte_mbuf_refcnt_update(m, 1); /* a shared packet is not moved */
			forward(m);
			if (less == 0)
				labels_below_left(head + 60, kind, 8);
			rte_pktmbuf_free(m);
			counted(less == 0 ? N_REASON : DROP_no_headroom, less == 0, 0, 0);
		}
	fib->seg6 = NULL; /* not allocated */
}

static int
all_up(void **state)
{
	return eal_up("test_punt_label_tunnel");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		PUNT_TEST(labels_enter_a_tunnel),
		PUNT_TEST(packets_too_big_for_labels_in_a_tunnel_are_told_or_cut),
		PUNT_TEST(packets_with_labels_wait_for_the_neighbor_of_the_outer_packet),
		PUNT_TEST(labels_without_room_for_the_outer_header_are_dropped),
		PUNT_TEST(labels_out_of_a_tunnel_lose_its_headers),
		PUNT_TEST(outer_packets_get_the_labels_of_their_route),
		PUNT_TEST(outer_packets_with_labels_wait_for_the_neighbor),
		PUNT_TEST(outer_labels_without_room_are_dropped),
	};

	return cmocka_run_group_tests_name("punt_label_tunnel", tests, all_up, all_down);
}
