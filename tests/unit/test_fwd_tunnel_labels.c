/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets with MPLS labels out of tunnels of GRE, octet by octet: RFC 4023, 3.2 and 4.
 * The Linux kernel as far end is in tests/vm/test_tunnel.py.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "base/mpls_entry.h"
#include "tunnel_bed.h"

enum { PHP = 100, SWAP, HERE, KERNEL }; /* labels */
#define SWAPPED   777u
#define GROUP_PHP 50
#define KEY       0x01020304u

/* Make the tables of labels, and let both tunnels accept labels. */
static void
labels_begin(uint32_t key)
{
	gre4(key);
	over6(true, true);
	fib->mpls_known = true;
	fib->label_ttl = 0;
	fib->iface[T4]->mpls = fib->iface[T6]->mpls = true;
	for (unsigned int k = 0; k < 4; k++)
		fib->label[PHP + k] = GROUP_PHP + k;
	encap_set(&fib->encap[1], PATH(PATH_ADJ, 1), &(uint32_t){SWAPPED}, 1, 0);
	fib->group[GROUP_PHP] = group_word_single(PATH(PATH_ADJ, 1));
	fib->group[GROUP_PHP + 1] = group_word_single(PATH(PATH_ENCAP, 1));
	fib->group[GROUP_PHP + 2] = group_word_single(PATH(PATH_VRF, 0));
	fib->group[GROUP_PHP + 3] = group_word_single(PATH(PATH_KERNEL, 0));
}

/*
 * Begin a frame of T4 with labels behind the header of GRE. Return where the labels begin.
 */
static uint8_t *
outer4(uint32_t key)
{
	uint8_t *out = frame_begin(WAN, 4), *gre = out + 20;

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = ECN_CE;
	out[8] = 60;
	out[9] = PROTO_GRE;
	put_be32(out + 12, REMOTE4);
	put_be32(out + 16, LOCAL4);
	memcpy(gre, key == 0 ? "\0\0\x88\x47" : "\x20\0\x88\x47", 4);
	if (key == 0)
		return gre + 4;
	put_be32(gre + 4, key);
	return gre + 8;
}

/* Begin a frame of T6 in the same manner. */
static uint8_t *
outer6(void)
{
	static const uint8_t limit[8] = {PROTO_GRE, 0, 4, 1, 4, 1, 1, 0};
	uint8_t *out = frame_begin(WAN, 6);

	memset(out, 0, 40);
	out[0] = 0x60;
	out[6] = PROTO_IP6_OPTS;
	out[7] = 60;
	memcpy(out + 8, remote6, 16);
	memcpy(out + 24, local6, 16);
	memcpy(out + 40, limit, 8);
	memcpy(out + 48, "\0\0\x88\x47", 4);
	return out + 52;
}

/* Write a label at `p` and return the octet behind it. */
static uint8_t *
label(uint8_t *p, uint32_t value, bool bottom, uint8_t ttl)
{
	put_be32(p, label_entry(value, 5, bottom, ttl));
	return p + 4;
}

/*
 * Write the lengths of the outer packet, which ends at `end`, and let it pass the stages.
 */
static void
receive(const uint8_t *end, unsigned int padding)
{
	uint8_t *out = packet.buffer + 128 + 14;
	unsigned int len = (unsigned int)(end - out);

	if (out[0] >> 4 == 6) {
		put_be16(out + 4, (uint16_t)(len - 40));
	} else {
		put_be16(out + 2, (uint16_t)len);
		put_be16(out + 10, 0);
		put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	}
	walk(len + padding);
}

/* Let the decapsulated packet pass the stages without a dispatch. Return the verdict. */
static uint8_t
verdict_inside(void)
{
	struct fwd_decap decap;

	if (b.verdict[0] != VERDICT_DECAPSULATED)
		return b.verdict[0];
	decap = fwd_decap_of(&b, 0);
	assert_int_equal(fwd_tunnel_enter(&fwd, &b, &decap, 1), 0);
	fwd_walk(&b, NULL);
	return b.verdict[0];
}

/*
 * Let the packet that came out of tunnel `ifidx` pass the stages. Check that it leaves by
 * LAN. Return the octet behind its Ethernet header.
 */
static uint8_t *
opened_leaves(uint16_t ifidx, unsigned int bytes, uint16_t type)
{
	uint64_t rx = count.port[ifidx].rx_packets;

	assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
	assert_int_equal(b.hop[0] & 0xffff, ifidx);
	fwd_tunnel_keep(&b, 0);
	fwd_tunnels_walk(&fwd);
	assert_int_equal(count.port[ifidx].rx_packets, rx + 1);
	assert_int_equal(fwd.tx[LAN].n, 1);
	assert_ptr_equal(fwd.tx[LAN].m[0], &packet.m);
	leaves(bytes, type, LAN);
	return rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
}

static void
the_last_label_behind_gre_is_popped(void **state)
{
	static const uint32_t keys[] = {0, KEY};
	uint8_t *ip;

	for (unsigned int k = 0; k < 2; k++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			labels_begin(keys[k]);
			ip = label(outer4(keys[k]), PHP, true, 7);
			receive(ip + inner_write(ip, family, 60, true), 0);
			ip = opened_leaves(T4, 60, family == 4 ? 0x0800 : 0x86dd);
			/*
			 * The lower of both TTLs, less one. The congestion mark is not
			 * copied.
			 */
			assert_int_equal(ip[family == 4 ? 8 : 7], 6);
			assert_int_equal(ip_dsfield(ip, family), 0xb8);
			assert_true(family == 6 || ip4_checksum_ok(ip, 20));
			assert_int_equal(ip[59], 0x77);
		}
	ip = label(outer6(), PHP, true, 200);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	ip = opened_leaves(T6, 60, 0x0800);
	assert_int_equal(ip[8], 8);
	assert_int_equal(packet.m.ol_flags, 0);
}

static void
a_label_behind_gre_is_swapped_or_popped_before_another(void **state)
{
	uint8_t *out, *ip;

	labels_begin(0);
	ip = label(outer4(0), SWAP, true, 7);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	out = opened_leaves(T4, 64, MPLS_TYPE);
	assert_int_equal(get_be32(out), label_entry(SWAPPED, 5, true, 6));
	assert_int_equal(out[4 + 8], 9);
	ip = label(label(outer4(0), PHP, false, 7), 999, true, 200);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	out = opened_leaves(T4, 64, MPLS_TYPE);
	assert_int_equal(get_be32(out), label_entry(999, 5, true, 6));
}

/* The packet is looked up in the table of the label. */
static void
a_packet_behind_its_last_label_is_looked_up(void **state)
{
	uint8_t *ip;

	labels_begin(KEY);
	ip = label(outer4(KEY), HERE, true, 7);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	assert_int_equal(opened_leaves(T4, 60, 0x0800)[8], 6);
	ip = label(label(outer6(), HERE, false, 7), HERE, true, 4);
	receive(ip + inner_write(ip, 6, 60, true), 0);
	assert_int_equal(opened_leaves(T6, 60, 0x86dd)[7], 3);
}

/* Octets behind the outer packet do not belong to the inner packet. */
static void
padding_of_the_outer_frame_goes_nowhere(void **state)
{
	uint8_t *p;

	labels_begin(0);
	p = label(outer4(0), SWAP, true, 7);
	memset(p, 0, 3); /* no IP packet */
	receive(p + 3, 19);
	opened_leaves(T4, 7, MPLS_TYPE);
	p = label(outer4(0), PHP, true, 7);
	inner_write(p, 4, 60, true);
	receive(p + 59, 5); /* the IP packet is longer than the outer one */
	assert_int_equal(verdict_inside(), DROP_mpls_payload);
}

static void
labels_obey_the_sysctl_input_of_the_tunnel(void **state)
{
	uint8_t *ip;

	labels_begin(0);
	for (unsigned int k = 0; k < 3; k++) {
		fib->iface[T4]->mpls = k == 0;
		fib->iface[WAN]->mpls = k == 1; /* of no effect */
		fib->mpls_known = k < 2;
		ip = label(outer4(0), PHP, true, 7);
		receive(ip + inner_write(ip, 4, 60, true), 0);
		assert_int_equal(verdict_inside(), k == 0   ? VERDICT_GO
						   : k == 1 ? DROP_mpls_off
							    : PUNT_local);
	}
	fib->iface[WAN]->mpls = false;
}

static void
bad_labels_behind_gre_have_their_drop_reasons(void **state)
{
	uint8_t *ip, *p;

	labels_begin(0);
	p = outer4(0);
	receive(p, 22); /* no label: the kernel drops such a packet */
	assert_int_equal(verdict_inside(), PUNT_local);
	memset(p = outer4(0), 0, 3);
	receive(p + 3, 19);
	assert_int_equal(verdict_inside(), DROP_mpls_malformed);
	p = label(outer4(0), PHP, false, 7);
	receive(p, 18);
	assert_int_equal(verdict_inside(), DROP_mpls_malformed);
	ip = label(outer4(0), 555, true, 7);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	assert_int_equal(verdict_inside(), DROP_mpls_no_label);
	ip = label(outer4(0), 3, true, 7);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	assert_int_equal(verdict_inside(), DROP_mpls_reserved);
	p = label(outer4(0), HERE, true, 7);
	p[0] = 0;
	receive(p + 8, 10);
	assert_int_equal(verdict_inside(), DROP_mpls_payload);
	/* Another key than that of the tunnel. */
	ip = label(outer4(KEY), PHP, true, 7);
	receive(ip + inner_write(ip, 4, 60, true), 0);
	assert_int_equal(verdict_inside(), PUNT_local);
	ip = label(outer4(0), PHP, true, 7);
	inner_write(ip, 4, 60, true);
	packet.buffer[128 + 14 + 8] ^= 1;
	walk(88);
	b.rx_cksum = true;
	receive(ip + 60, 0);
	packet.buffer[128 + 14 + 10] ^= 1;
	walk(88);
	assert_int_equal(verdict_inside(), DROP_ip4_checksum);
	b.rx_cksum = false;
}

/* The ICMP error is about the IP packet behind all labels. The frame stays unchanged. */
static void
an_expired_label_behind_gre_is_told(void **state)
{
	static const uint32_t labels[] = {PHP, SWAP, HERE};
	uint8_t was[14 + 88], *ip;

	for (unsigned int k = 0; k < 3; k++) {
		labels_begin(0);
		ip = label(outer4(0), labels[k], true, 1);
		inner_write(ip, 4, 60, true);
		receive(ip + 60, 0);
		memcpy(was, packet.buffer + 128, sizeof(was));
		assert_int_equal(verdict_inside(), PUNT_ttl_expired);
		assert_int_equal(b.cause[0], DROP_ttl);
		assert_int_equal(b.family[0], 4);
		assert_int_equal(b.l3_len[0], 60);
		assert_int_equal(packet.m.data_off, 128);
		assert_memory_equal(packet.buffer + 128, was, sizeof(was));
	}
}

static void
a_packet_too_big_behind_its_label_is_told(void **state)
{
	uint8_t *ip;

	labels_begin(0);
	fib->iface[LAN]->mtu_bytes = 1000;
	ip = label(outer4(0), SWAP, true, 9);
	receive(ip + inner_write(ip, 4, 996, true), 0);
	assert_int_equal(verdict_inside(), VERDICT_GO);
	ip = label(outer4(0), SWAP, true, 9);
	receive(ip + inner_write(ip, 4, 997, true), 0);
	assert_int_equal(verdict_inside(), PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 996);
	assert_int_equal(packet.m.data_off, 128);
	fib->iface[LAN]->mtu_bytes = 1500;
}

/* A packet that only the kernel can handle goes to the kernel with its outer headers. */
static void
a_packet_for_this_host_keeps_its_labels_and_outer_headers(void **state)
{
	uint8_t was[14 + 88], *ip;

	for (unsigned int k = 0; k < 3; k++) {
		static const uint32_t labels[] = {HERE, KERNEL, LABEL_ROUTER_ALERT};
		static const uint8_t want[] = {PUNT_local, PUNT_kernel_route, PUNT_not_ip};

		labels_begin(0);
		ip = label(outer4(0), labels[k], true, 7);
		inner_write(ip, 4, 60, true);
		put_be32(ip + 16, LOCAL4);
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
		receive(ip + 60, 0);
		memcpy(was, packet.buffer + 128, sizeof(was));
		assert_int_equal(verdict_inside(), want[k]);
		assert_int_equal(packet.m.data_off, 128);
		assert_memory_equal(packet.buffer + 128, was, sizeof(was));
	}
}

static struct watch_record
explained(uint16_t ifidx, const uint8_t *end)
{
	unsigned int bytes = (unsigned int)(end - packet.buffer - 128);
	struct watch_record rec;

	thread_role = ROLE_TRACE;
	fwd_explain(fib, ifidx, packet.buffer + 128, (uint16_t)bytes, bytes, &rec);
	thread_role = ROLE_NONE;
	return rec;
}

/* The record has a frame with the labels, as if the tunnel had received it. */
static void
explain_follows_labels_out_of_a_tunnel(void **state)
{
	struct watch_record rec;
	uint8_t *ip, *out = packet.buffer + 128 + 14;

	labels_begin(0);
	ip = label(outer4(0), PHP, true, 7);
	inner_write(ip, 4, 60, true);
	put_be16(out + 2, 88);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	rec = explained(WAN, ip + 60);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.in_ifidx, T4);
	assert_int_equal(rec.outer_ifidx, WAN);
	assert_int_equal(rec.pops, 1);
	assert_int_equal(rec.out_ifidx, LAN);
	assert_int_equal(rec.frame_bytes, 78);
	assert_int_equal(get_be16(rec.frame + 12), MPLS_TYPE);
	assert_int_equal(get_be32(rec.frame + 14), label_entry(PHP, 5, true, 7));
}

/*
 * Packets with and without labels, and with labels at other offsets, pass the stages in one
 * burst, and none is taken for another kind.
 */
static void
a_burst_mixes_labels_and_ip_packets(void **state)
{
	struct fwd_decap decap[4];
	static struct {
		struct rte_mbuf m;
		struct packet_meta meta;
		uint8_t buffer[128 + 256];
	} each[4];
	uint8_t *ip;

	labels_begin(0);
	for (unsigned int k = 0; k < 4; k++) {
		ip = k == 0   ? outer4(0)
		     : k == 3 ? outer6()
			      : label(outer4(0), PHP, true, 9);
		if (k == 0) {
			memcpy(ip - 2, "\x08\0", 2);
			packet.buffer[128 + 14 + 1] = 0; /* CE would drop it */
		}
		if (k == 3)
			ip = label(ip, PHP, true, 9);
		receive(ip + inner_write(ip, 4, 60, true), 0);
		assert_int_equal(b.verdict[0], VERDICT_DECAPSULATED);
		decap[k] = fwd_decap_of(&b, 0);
		memcpy(&each[k].m, &packet.m, sizeof(packet.m));
		memcpy(each[k].buffer, packet.buffer, sizeof(each[k].buffer));
		each[k].m.buf_addr = each[k].buffer;
		decap[k].m = &each[k].m;
	}
	for (unsigned int k = 0; k < 4; k++) {
		fwd_decap_compare(&fwd, &decap[k]);
		fwd.decap[fwd.n_decap++] = decap[k];
	}
	assert_true(fwd.decap_differs);
	fwd_tunnels_walk(&fwd);
	assert_int_equal(fwd.tx[LAN].n, 4);
	for (unsigned int k = 0; k < 4; k++) {
		const uint8_t *eth = rte_pktmbuf_mtod(&each[k].m, uint8_t *);

		assert_int_equal(each[k].m.pkt_len, 74);
		assert_int_equal(get_be16(eth + 12), 0x0800);
		assert_int_equal(eth[14 + 8], 8);
	}
}

/*
 * With random octets and lengths, nothing behind the frame is read. A sanitizer checks
 * this, because the memory ends where the frame ends.
 */
static void
no_label_is_read_beyond_the_end_of_its_packet(void **state)
{
	unsigned int n_go = 0, n_drop = 0;

	srandom(37);
	for (unsigned int round = 0; round < 30000; round++) {
		uint8_t *ip, *out, *memory;
		unsigned int len;

		labels_begin(random() % 2 == 0 ? 0 : KEY);
		ip = random() % 3 == 0 ? outer6() : outer4(fib->iface[T4]->tunnel.key);
		ip = label(ip, PHP + (uint32_t)random() % 4, random() % 4 != 0, 9);
		if (random() % 3 == 0)
			ip = label(ip, HERE, true, 9);
		inner_write(ip, random() % 2 == 0 ? 4 : 6, 60, true);
		out = packet.buffer + 128 + 14;
		len = (unsigned int)(ip + 60 - out);
		for (unsigned int k = (unsigned int)random() % 3; k > 0; k--)
			ip[random() % 40 - 8] = (uint8_t)random();
		if (random() % 3 == 0)
			len -= (unsigned int)random() % 60;
		receive(out + len, 0);
		memory = malloc(128 + 14 + len);
		assert_non_null(memory);
		memcpy(memory, packet.buffer, 128 + 14 + len);
		packet.m.buf_addr = memory;
		packet.m.buf_len = (uint16_t)(128 + 14 + len);
		walk(len);
		n_go += verdict_inside() == VERDICT_GO;
		n_drop += b.verdict[0] < N_DROP;
		assert_true(packet.m.data_len == packet.m.pkt_len &&
			    packet.m.data_off + packet.m.data_len <= 128 + 14 + len);
		free(memory);
	}
	assert_true(n_go > 3000 && n_drop > 3000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_label_behind_gre_is_popped),
		cmocka_unit_test(a_label_behind_gre_is_swapped_or_popped_before_another),
		cmocka_unit_test(a_packet_behind_its_last_label_is_looked_up),
		cmocka_unit_test(padding_of_the_outer_frame_goes_nowhere),
		cmocka_unit_test(labels_obey_the_sysctl_input_of_the_tunnel),
		cmocka_unit_test(bad_labels_behind_gre_have_their_drop_reasons),
		cmocka_unit_test(an_expired_label_behind_gre_is_told),
		cmocka_unit_test(a_packet_too_big_behind_its_label_is_told),
		cmocka_unit_test(a_packet_for_this_host_keeps_its_labels_and_outer_headers),
		cmocka_unit_test(explain_follows_labels_out_of_a_tunnel),
		cmocka_unit_test(a_burst_mixes_labels_and_ip_packets),
		cmocka_unit_test(no_label_is_read_beyond_the_end_of_its_packet),
	};

	return cmocka_run_group_tests(tests, up, down);
}
