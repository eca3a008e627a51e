/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outer packets of tunnels, VXLAN and SRv6 whose own route pushes MPLS labels, octet by
 * octet: RFC 3031, 3.27; RFC 3032, 2.1 and 2.4. In Linux, mpls_xmit() writes such labels.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fwd/note.h"

#include "vxlan_bed.h"

#define HEADEND 1 /* index in fib->encap and fib->headend */
#define BELOW   2 /* index in fib->encap: the labels of the route to the far end */
#define INTO    3 /* index in fib->encap: a label of the packet itself */

static const uint8_t tunsrc6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xff, [15] = 1};
static struct fib_seg6 seg6;

enum kind { GRE, IPIP, IP6TNL, VXLAN4, VXLAN6, SEGMENTS, N_KIND };

static const struct {
	uint8_t family; /* of the outer packet */
	uint8_t bytes;  /* of the outer headers */
	uint8_t ttl;    /* of the outer packet */
	uint8_t tc;     /* the first three bits of its TOS */
	uint16_t counted;
} of[N_KIND] = {[GRE] = {4, 24, 8, 0, T4},      [IPIP] = {4, 20, 8, 0, T4},
		[IP6TNL] = {6, 40, 8, 0, T6},   [VXLAN4] = {4, 50, 64, 0, SVI},
		[VXLAN6] = {6, 70, 64, 0, SVI}, [SEGMENTS] = {6, 40, 64, 5, 0}};

/* Lead the packets to HOST4 and host6 into a tunnel, to a VTEP or to a headend. */
static void
lead(enum kind kind)
{
	uint32_t word[SRV6_WORDS_MAX];
	fib_path path = PATH(PATH_ONLINK, T4);
	uint8_t n;

	if (kind == GRE) {
		gre4(0);
	} else if (kind == IPIP) {
		ip4();
	} else if (kind == IP6TNL) {
		over6(false, false);
		path = PATH(PATH_ONLINK, T6);
	} else if (kind != SEGMENTS) {
		over(of[kind].family);
		path = PATH(PATH_ADJ, ADJ);
	} else {
		n = srv6_headend_pack(SRV6_ENCAP_RED, remote6, 1, word);
		fib->encap[HEADEND] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
		assert_true(fib_headend_write(&fib->headend[HEADEND], word, n));
		path = PATH(PATH_ENCAP, HEADEND);
	}
	fib->group[10] = fib->group[14] = group_word_single(path);
}

/* Let the route to the far end push `n` labels: 1000, 1001 and so on. 0: none. */
static void
below(unsigned int n)
{
	uint32_t label[LABELS_MAX];

	for (unsigned int i = 0; i < n; i++)
		label[i] = 1000 + i;
	encap_set(&fib->encap[BELOW], PATH(PATH_ADJ, 2), label, n, 0);
	fib->group[11] =
		group_word_single(n == 0 ? PATH(PATH_ADJ, 2) : PATH(PATH_ENCAP, BELOW));
}

static int
labels_up(void **state)
{
	vxlan_up(state);
	memcpy(seg6.source.octet, tunsrc6, 16);
	fib->seg6 = &seg6;
	return 0;
}

static int
labels_down(void **state)
{
	fib->seg6 = NULL; /* not allocated */
	return down(state);
}

/* Check labels that were written by below(). */
static void
labels_are(const uint8_t *p, unsigned int n, uint8_t tc, uint8_t ttl)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(get_be32(p + 4 * i),
				 label_entry(1000 + i, tc, i + 1 == n, ttl));
}

/*
 * The labels precede the outer packet, which does not change. The TTL of the labels is that
 * of the outer packet, or that of the kernel's setting (pipe model).
 */
static void
labels_stand_before_the_outer_packet(void **state)
{
	static const unsigned int n_labels[] = {1, 2, LABEL_WORDS, 15};

	for (enum kind kind = 0; kind < N_KIND; kind++)
		for (unsigned int k = 0; k < 4 * RTE_DIM(n_labels); k++) {
			uint8_t family = k % 2 == 0 ? 4 : 6, plain[200];
			unsigned int n = n_labels[k / 4], bytes = of[kind].bytes + 100u;
			uint64_t sent = count.port[of[kind].counted].tx_bytes;
			bool pipe = k / 2 % 2 == 1;
			const uint8_t *out;

			lead(kind);
			below(0);
			memcpy(plain, into(family, 100, NULL), bytes);
			leaves(bytes, of[kind].family == 4 ? 0x0800 : 0x86dd, WAN);
			below(n);
			fib->label_ttl = pipe ? 99 : 0;
			out = into(family, 100, NULL);
			fib->label_ttl = 0;
			if (128 - 8 - of[kind].bytes < (int)n * 4) {
				assert_int_equal(b.verdict[0], DROP_no_headroom);
				continue;
			}
			assert_int_equal(b.verdict[0], VERDICT_GO);
			leaves(4 * n + bytes, MPLS_TYPE, WAN);
			labels_are(out, n, pipe ? 0 : of[kind].tc,
				   pipe ? 99 : of[kind].ttl);
			assert_memory_equal(out + 4 * n, plain, bytes);
			if (of[kind].counted != 0)
				assert_int_equal(count.port[of[kind].counted].tx_bytes,
						 sent + 200);
		}
}

static void
the_class_is_that_of_the_outer_packet(void **state)
{
	struct fib_tunnel *t;

	lead(GRE);
	below(1);
	t = &fib->iface[T4]->tunnel;
	t->tos = 0x60;
	labels_are(into(4, 60, NULL), 1, 3, 8);
	t->tos_inherit = true;
	labels_are(into(4, 60, NULL), 1, 5, 8);
	t->ttl = 200;
	labels_are(into(4, 60, NULL), 1, 5, 200);
}

static void
set_df(uint8_t *ip)
{
	ip[6] |= 0x40;
}

/* The MTU of the link includes the labels; the MTU of the route excludes them. */
static void
labels_lower_the_mtu(void **state)
{
	for (enum kind kind = 0; kind < N_KIND; kind++)
		for (unsigned int round = 0; round < 2; round++) {
			unsigned int most = 1400 - of[kind].bytes - (round == 0 ? 12 : 0);

			lead(kind);
			below(3);
			fib->iface[WAN]->mtu_bytes = round == 0 ? 1400 : 1500;
			fib->mtu_bytes[1] = round == 0 ? 1500 : 1400;
			fib->group[11] = group_word_single(
				path_with_mtu(PATH(PATH_ENCAP, BELOW), 1));
			into(4, most, set_df);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			into(4, most + 1, set_df);
			assert_int_equal(b.verdict[0], PUNT_too_big);
			assert_int_equal(packet.meta.mtu_bytes, most);
		}
	fib->iface[WAN]->mtu_bytes = 1500;
}

static void
only_labels_toward_a_neighbor_are_written(void **state)
{
	for (enum kind kind = 0; kind < N_KIND; kind++) {
		lead(kind);
		below(1);
		fib->iface[WAN]->up = false;
		into(4, 60, NULL);
		fib->iface[WAN]->up = true;
		assert_int_equal(b.verdict[0], PUNT_unreach);
		assert_int_equal(b.cause[0], DROP_egress_down);
		fib->adj[2].hop = 0;
		into(4, 60, NULL);
		fib->adj[2].hop = adj_hop_make(wan_peer, WAN);
		assert_int_equal(b.verdict[0], PUNT_unresolved);
		/* The punt thread looks up a waiting packet again, so it keeps its path. */
		assert_int_equal(group_word_single(b.path[0]), fib->group[10]);
		fib->adj_used[2] = ADJ_USED;
		/*
		 * The kernel gets the packet: labels in a tunnel, then an unsupported
		 * route.
		 */
		encap_set(&fib->encap[BELOW], PATH(PATH_ONLINK, T4), &(uint32_t){7}, 1, 0);
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], PUNT_kernel_route);
		fib->group[11] = group_word_single(PATH(PATH_ENCAP, 0));
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], PUNT_kernel_route);
		/* The neighbor is behind a VXLAN. */
		over(4);
		encap_set(&fib->encap[BELOW], PATH(PATH_ADJ, ADJ), &(uint32_t){7}, 1, 0);
		fib->group[11] = group_word_single(PATH(PATH_ENCAP, BELOW));
		if (kind != VXLAN4 && kind != VXLAN6) {
			into(4, 60, NULL);
			assert_int_equal(b.verdict[0], PUNT_kernel_route);
		}
	}
	lead(GRE);
	below(1);
	fib->iface[T4]->tunnel.link = 99;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
}

/* The flow selects one of two next hops to the far end: with labels or without labels. */
static void
equal_routes_have_labels_of_their_own(void **state)
{
	static fib_path both[2] = {PATH(PATH_ENCAP, BELOW), PATH(PATH_ADJ, 1)};
	unsigned int n[2] = {0};

	for (enum kind kind = VXLAN4; kind < N_KIND; kind++) {
		memset(n, 0, sizeof(n));
		lead(kind);
		below(1);
		fib->group[11] = group_word_block(both, 1);
		for (unsigned int i = 0; i < 200; i++) {
			uint8_t *ip = frame_begin(LAN, 4);
			bool labels;

			inner_write(ip, 4, 60, false);
			put_be16(ip + 20, (uint16_t)i);
			walk(60);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			labels = get_be16(rte_pktmbuf_mtod_offset(&packet.m, uint8_t *,
								  12)) == MPLS_TYPE;
			assert_int_equal(b.hop[0] & 0xffff, labels ? WAN : LAN);
			n[labels]++;
		}
		assert_true(n[0] > 50 && n[1] > 50);
	}
	below(0);
}

static void
labels_are_behind_the_tags_of_a_vlan(void **state)
{
	const uint8_t *eth;

	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 1;
	fib->iface[WAN]->tag[0] = (struct fib_tag){VLAN_C_TYPE, 300};
	for (enum kind kind = 0; kind < N_KIND; kind++) {
		lead(kind);
		below(1);
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], VERDICT_GO);
		eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);
		assert_int_equal(packet.m.data_len, 14 + 4 + 4 + of[kind].bytes + 60);
		assert_memory_equal(eth, wan_peer, 6);
		assert_memory_equal(eth + 12, "\x81\x00\x01\x2c\x88\x47", 6);
		labels_are(eth + 18, 1, of[kind].tc, of[kind].ttl);
	}
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 0;
}

/* A packet with labels in a tunnel of GRE whose outer packet gets labels, too. */
static void
labels_in_a_tunnel_and_below_it(void **state)
{
	const uint8_t *out;

	lead(GRE);
	below(2);
	encap_set(&fib->encap[INTO], PATH(PATH_ONLINK, T4), &(uint32_t){77}, 1, 0);
	fib->group[10] = group_word_single(PATH(PATH_ENCAP, INTO));
	out = into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(8 + 24 + 4 + 60, MPLS_TYPE, WAN);
	labels_are(out, 2, 0, 64);
	assert_memory_equal(out + 8 + 20, "\0\0\x88\x47", 4);
	assert_int_equal(get_be32(out + 8 + 24), label_entry(77, 5, true, 8));
	into(4, 1500 - 8 - 24 - 4, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1500 - 8 - 24 - 4 + 1, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1500 - 8 - 24 - 4);
}

/*
 * A record has the labels. The record of a sample is about the packet behind them, and its
 * making looks up nothing about the outer packet to a VTEP.
 */
static void
records_have_the_labels(void **state)
{
	struct watch_record rec;

	for (enum kind kind = 0; kind < N_KIND; kind++) {
		lead(kind);
		below(2);
		inner_write(frame_begin(LAN, 4), 4, 60, false);
		thread_role = ROLE_TRACE;
		fwd_explain(fib, LAN, packet.buffer + 128, 74, 74, &rec);
		thread_role = ROLE_NONE;
		assert_int_equal(rec.verdict, WATCH_GO);
		assert_int_equal(rec.outer_labels, BELOW);
		assert_int_equal(rec.out_ifidx, WAN);
		assert_memory_equal(rec.rewritten + 12, "\x88\x47", 2);
		below(0);
		fwd_explain(fib, LAN, packet.buffer + 128, 74, 74, &rec);
		assert_int_equal(rec.outer_labels, 0);
		below(2);
		into(4, 60, NULL);
		b.l2[0] += fwd_headend_written(&b, 0);
		assert_int_equal(burst_l3(&b, 0)[0] >> 4,
				 kind == SEGMENTS ? 4 : of[kind].family);
		memset(&rec, 0, sizeof(rec));
		fwd_note_next_hop(&b, 0, &rec);
		if (kind == VXLAN4 || kind == VXLAN6) {
			assert_int_equal(rec.outer_labels, 0);
			assert_int_equal(rec.via_family, of[kind].family);
			fwd_note_path(&b, 0, &rec);
		}
		assert_int_equal(rec.outer_labels, BELOW);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_stand_before_the_outer_packet),
		cmocka_unit_test(the_class_is_that_of_the_outer_packet),
		cmocka_unit_test(labels_lower_the_mtu),
		cmocka_unit_test(only_labels_toward_a_neighbor_are_written),
		cmocka_unit_test(equal_routes_have_labels_of_their_own),
		cmocka_unit_test(labels_are_behind_the_tags_of_a_vlan),
		cmocka_unit_test(labels_in_a_tunnel_and_below_it),
		cmocka_unit_test(records_have_the_labels),
	};

	return cmocka_run_group_tests(tests, labels_up, labels_down);
}
