/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end point of SRv6 (End, with and without NEXT-C-SID) passes packets on by a comparison
 * of octets (fwd/decap_fast.c). The packets leave exactly as if they had passed the stages
 * twice. The first router compares octets, the second router has the stages alone.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fwd/decap_fast.h"

#include "fib/urpf.h"

#include "decap_flows.h"

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 400
#else
#define ROUNDS 3000
#endif

/* How a packet left the stages. */
struct result {
	uint8_t verdict, cause;
	uint64_t hop; /* is set with VERDICT_GO */
};

static struct result results[2][BURST_MAX];
static unsigned int n_hits, n_gone;

/*
 * The next segments. Their routes lead to a neighbor, to another SID of this router, and to
 * this host. The last segment has no route.
 */
static const uint8_t next6[4][16] = {{0xfc, 0, 0, 0, 0, 3, [15] = 9},
				     {0xfc, 0, 0, 0, 0, 4, [15] = 9},
				     {0xfc, 0, 0, 0, 0, 5, [15] = 9},
				     {0xfc, 0, 0, 0, 0, 6, [15] = 9}};

static int
end_up(void **state)
{
	struct fib_vrf *red;

	if (decap_up(state) != 0)
		return -1;
	red = (struct fib_vrf *)(uintptr_t)fib_vrf(fib, RED);
	assert_non_null(red);
	/* All SIDs of the locator fc00:0:1::/48, for NEXT-C-SID. */
	route6(sid6, 48, 20, PATH(PATH_LOCAL, 1));
	route6(next6[0], 48, 21, PATH(PATH_ADJ, 1));
	route6(next6[1], 48, 22, PATH(PATH_LOCAL, 2));
	route6(next6[2], 48, 23, PATH(PATH_LOCAL, 0));
	assert_int_equal(poptrie_add(red->tries.pt6, sid6, 48, 20), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, next6[0], 48, 24), 0);
	fib->group[24] = group_word_single(PATH(PATH_ADJ, 2));
	for (unsigned int k = 1; k < 3; k++)
		assert_int_equal(poptrie_add(red->tries.pt6, next6[k], 48, 21 + k), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	return 0;
}

/* --- packets -------------------------------------------------------------------------- */

/* The headers of a packet that visits the end point. */
struct visit {
	struct flow flow;
	bool shift;   /* the next segment is in the destination */
	uint8_t next; /* index in next6[] */
	uint8_t left; /* segments left, when the packet arrives */
};

static struct visit
visit_choose(bool shift)
{
	struct visit w = {.flow = {.kind = FLOW_SID,
				   .inner = below(2) == 0 ? 4 : 6,
				   .n_segments = (uint8_t)(2 + below(2))},
			  .shift = shift,
			  .next = (uint8_t)(below(3) == 0 ? below(4) : 0)};

	w.left = (uint8_t)(1 + below(w.flow.n_segments - 1u));
	if (shift)
		w.flow.n_segments = (uint8_t)below(2);
	return w;
}

/* Write a packet without faults as packet `i` of the first router. */
static void
visit_write(unsigned int i, const struct visit *w)
{
	uint8_t *ip = fast.packet[i].buffer + HEADROOM + L2_LEN;

	flow_write(i, &w->flow);
	ip[1] = (uint8_t)random(); /* traffic class and flow label */
	put_be16(ip + 2, (uint16_t)random());
	ip[7] = (uint8_t)(2 + below(200));
	if (w->shift) { /* fc00:0:1:N:M::, N: the next segment, M: a further argument */
		memcpy(ip + 24, sid6, 6);
		memcpy(ip + 30, next6[w->next] + 4, 2);
		memset(ip + 32, 0, 8);
		ip[33] = w->left;
		return;
	}
	ip[40 + 3] = w->left;
	memcpy(ip + 48 + 16 * (w->left - 1), next6[w->next], 16);
	if (below(8) == 0) /* another next segment with the same headers */
		memcpy(ip + 48 + 16 * (w->left - 1), next6[below(4)], 16);
}

/* --- both routers --------------------------------------------------------------------- */

static void
epoch_next(unsigned int by)
{
	fast.fwd.outer_epoch += by;
	fast.fwd.interval += by;
	slow.fwd.outer_epoch += by;
	slow.fwd.interval += by;
}

/* Keep the results of a burst, and its decapsulated packets for the next walk. */
static void
results_take(struct side *s, struct burst *at, struct result *result)
{
	for (unsigned int i = 0; i < at->n; i++) {
		struct result r = {.verdict = at->verdict[i]};

		if (r.verdict == VERDICT_DECAPSULATED)
			fwd_tunnel_keep(at, i);
		else if (r.verdict == PUNT_unreach || r.verdict == PUNT_ttl_expired)
			r.cause = at->cause[i];
		else if (r.verdict == VERDICT_GO)
			r.hop = at->hop[i];
		result[index_of(s, at->m[i])] = r;
	}
}

/*
 * Pass `n` packets through the stages. Repeat this with the packets that an end point
 * passed on or decapsulated.
 */
static void
side_pass(struct side *s, unsigned int n, unsigned int tags, struct result *result,
	  bool by_pattern)
{
	struct fwd_decap decap[BURST_MAX];
	struct burst *at = &s->burst;

	memset((void *)fib->adj_used, 0, 4);
	memset(at, 0, offsetof(struct burst, m));
	at->fwd = &s->fwd;
	at->n = (uint16_t)n;
	at->ifidx = WAN;
	for (unsigned int i = 0; i < n; i++)
		at->m[i] = &s->packet[i].m;
	(void)fwd_look_tags(at, (uint8_t)(4 * tags));
	s->fwd.n_decap = 0;
	if (by_pattern)
		fwd_decap_fast(at);
	if (at->n > 0)
		fwd_walk(at, NULL);
	results_take(s, at, result);
	while (s->fwd.n_decap > 0) {
		unsigned int left = s->fwd.n_decap;

		memcpy(decap, s->fwd.decap, left * sizeof(decap[0]));
		s->fwd.n_decap = 0;
		while (left > 0) {
			left = fwd_tunnel_enter(&s->fwd, &s->inside, decap, left);
			fwd_walk(&s->inside, NULL);
			results_take(s, &s->inside, result);
		}
	}
}

static void
results_are_alike(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct result *a = &results[0][i], *c = &results[1][i];
		struct rte_mbuf *m = &fast.packet[i].m, *k = &slow.packet[i].m;

		assert_int_equal(a->verdict, c->verdict);
		assert_int_equal(a->cause, c->cause);
		assert_true(a->hop == c->hop);
		assert_int_equal(m->data_off, k->data_off);
		assert_int_equal(m->data_len, k->data_len);
		assert_int_equal(m->pkt_len, k->pkt_len);
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *),
				    rte_pktmbuf_mtod(k, uint8_t *), m->data_len);
		n_gone += a->verdict == VERDICT_GO;
	}
	assert_memory_equal(fast.count.sid, slow.count.sid, 8 * sizeof(fast.count.sid[0]));
	assert_memory_equal(fast.count.vrf, slow.count.vrf, 8 * sizeof(fast.count.vrf[0]));
}

/* Pass the first `n` packets through both routers, and compare. */
static void
both_pass(unsigned int n, unsigned int tags)
{
	int before = fast.fwd.decap_gain;

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < tags; k++)
			tag_insert(&fast.packet[i].m);
		flow_copy(i);
	}
	side_pass(&fast, n, tags, results[0], true);
	side_pass(&slow, n, tags, results[1], false);
	results_are_alike(n);
	if (fast.fwd.decap_gain > before && before > -DECAP_GAIN_MAX)
		n_hits++;
}

/* Let the route of the first of the next segments lead to a group. */
static void
segment_leads_to(uint32_t group)
{
	assert_int_equal(poptrie_add(fib->copy[0].pt6, next6[0], 48, group), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
}

static void
tables_choose(bool shift)
{
	tables_make(below(2) == 0 ? RED : 0);
	fib->iface[WAN]->urpf4 = FIB_URPF_OFF;
	fib->sid[1] = (struct fib_sid){.action = SRV6_END,
				       .flavors = shift ? SRV6_NEXT_CSID : 0,
				       .block_bits = 32,
				       .node_bits = 16};
	fib->sid[2] = fib->sid[1];
	if (below(4) == 0)
		fib->sid[1].flavors |= below(2) == 0 ? SRV6_PSP : SRV6_USD;
	fib->group[21] = group_word_single(PATH(PATH_ADJ, 1));
	segment_leads_to(21);
}

/* Change the tables, as if another thread had done it before a quiescent state. */
static void
tables_change(void)
{
	struct fib_iface *in = fib->iface[WAN];

	switch (below(14)) {
	case 0:
		fib->group[20] = group_word_single(PATH(PATH_LOCAL, 2));
		break;
	case 1:
		fib->group[20] = group_word_single(PATH(PATH_ADJ, 1));
		break;
	case 2:
		fib->sid[1].action = below(2) == 0 ? SRV6_END_DT46 : SRV6_END_T;
		break;
	case 3:
		fib->sid[1].flavors ^= SRV6_PSP;
		break;
	case 4:
		fib->sid[1].flavors ^= SRV6_NEXT_CSID;
		break;
	case 5:
		fib->sid[1].node_bits = 32;
		break;
	case 6:
		fib->sid_numbers->of[NUMBER].len = 0;
		break;
	case 7:
		in->fast6 = in->forward6 = false;
		break;
	case 8:
		in->mac[5] ^= 1;
		break;
	case 9:
		in->vrf = in->vrf == 0 ? RED : 0;
		break;
	case 10:
		in->up = false;
		break;
	case 11:
		fib->sid[1].family = 6;
		memcpy(fib->sid[1].hop.octet, next6[0], 16);
		break;
	case 12:
		segment_leads_to(24);
		break;
	default:
		fib->group[21] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	}
}

static void
burst_write(const struct visit visit[2], unsigned int n, unsigned int tags)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct visit *w = &visit[below(2)];

		visit_write(i, w);
		/* A changed frame has no tags: tag_insert() would move its fault. */
		if (tags == 0 && below(3) == 0)
			flow_change(i, &w->flow);
	}
}

static void
end_points_agree(void **state)
{
	srandom(61);
	n_hits = n_gone = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int n = 1 + below(BURST_MAX), tags = below(3) == 0 ? 1 : 0;
		bool shift = below(2) == 0;
		struct visit visit[2];

		tables_choose(shift);
		visit[0] = visit_choose(shift);
		visit[1] = visit_choose(shift);
		side_reset(&fast);
		side_reset(&slow);
		for (unsigned int k = 0; k < 2; k++) {
			epoch_next(DECAP_SAMPLE);
			visit_write(0, &visit[k]);
			both_pass(1, 0);
		}
		epoch_next(below(3));
		for (unsigned int k = 0; k < 2; k++) {
			burst_write(visit, n, tags);
			both_pass(n, tags);
			epoch_next(below(2));
		}
		epoch_next(1);
		tables_change();
		burst_write(visit, n, tags);
		both_pass(n, tags);
	}
	assert_true(n_hits > ROUNDS && n_gone > 10 * ROUNDS);
}

/* --- single rules --------------------------------------------------------------------- */

/* Let the first router learn from packet 0. Return the number of its patterns. */
static unsigned int
patterns_after(const struct visit *w)
{
	unsigned int n = 0;

	side_reset(&fast);
	side_reset(&slow);
	epoch_next(DECAP_SAMPLE);
	visit_write(0, w);
	both_pass(1, 0);
	for (unsigned int k = 0; k < FWD_PATTERNS; k++)
		n += fast.fwd.pattern[k].n_words != 0;
	return n;
}

/*
 * Packets of End make a pattern, because End forwards by the route of the next segment.
 * They make no pattern if End removes the routing header (PSP). Packets of other end points
 * make none.
 */
static void
other_end_points_make_no_pattern(void **state)
{
	struct visit w = {.flow = {.kind = FLOW_SID, .inner = 4, .n_segments = 3},
			  .left = 2};

	srandom(67);
	tables_choose(false);
	fib->iface[WAN]->vrf = 0;
	fib->sid[1].flavors = 0;
	assert_int_equal(patterns_after(&w), 1);
	fib->sid[1].flavors = SRV6_PSP;
	assert_int_equal(patterns_after(&w), 1);
	w.left = 1;
	assert_int_equal(patterns_after(&w), 0);
	fib->sid[1].flavors = 0;
	assert_int_equal(patterns_after(&w), 1);
	fib->sid[1].action = SRV6_END_T;
	assert_int_equal(patterns_after(&w), 0);
	fib->sid[1].action = SRV6_END_X;
	fib->sid[1].family = 6;
	memcpy(fib->sid[1].hop.octet, next6[0], 16);
	assert_int_equal(patterns_after(&w), 0);
}

/*
 * The forwarders do not pass on packets from link-local addresses, of a VRF without a FIB,
 * and of an interface that does not forward IPv6. So these packets make no pattern.
 */
static void
packets_of_the_kernel_make_no_pattern(void **state)
{
	struct visit w = {.flow = {.kind = FLOW_SID, .inner = 4, .n_segments = 3},
			  .left = 2};
	uint8_t *ip = fast.packet[0].buffer + HEADROOM + L2_LEN;

	srandom(79);
	for (unsigned int k = 0; k < 4; k++) {
		tables_choose(false);
		fib->iface[WAN]->vrf = k == 2 ? FIB_VRF_NONE : 0;
		fib->iface[WAN]->forward6 = fib->iface[WAN]->fast6 = k != 3;
		fib->sid[1].flavors = 0;
		side_reset(&fast);
		side_reset(&slow);
		epoch_next(DECAP_SAMPLE);
		for (unsigned int pass = 0; pass < 2; pass++) {
			visit_write(0, &w);
			if (k == 1)
				put_be16(ip + 8, 0xfea0);
			both_pass(1, 0);
		}
		assert_true((results[0][0].verdict == VERDICT_GO) == (k == 0));
		assert_true(fast.fwd.has_patterns == (k == 0));
	}
}

/* Cut packet 0 behind `bytes` octets of its IPv6 packet. */
static void
packet_cut_at(unsigned int bytes)
{
	struct rte_mbuf *m = &fast.packet[0].m;

	put_be16(fast.packet[0].buffer + HEADROOM + L2_LEN + 4, (uint16_t)(bytes - 40));
	m->data_len = (uint16_t)(L2_LEN + bytes);
	m->pkt_len = m->data_len;
}

/*
 * The kernel gets a packet whose headers are truncated. The stages notice this, because
 * they read all headers. A pattern matches only packets without headers behind the routing
 * header.
 */
static void
truncated_headers_are_for_the_stages(void **state)
{
	struct visit w = {.flow = {.kind = FLOW_SID, .inner = 4, .n_segments = 3},
			  .left = 2};
	uint8_t *srh = fast.packet[0].buffer + HEADROOM + L2_LEN + 40;

	srandom(73);
	tables_choose(false);
	fib->iface[WAN]->vrf = 0;
	fib->sid[1].flavors = 0;
	assert_int_equal(patterns_after(&w), 1);
	for (unsigned int bytes = 40 + 8 + 3 * 16 + 2; bytes-- > 46;) {
		visit_write(0, &w);
		packet_cut_at(bytes);
		both_pass(1, 0);
		assert_true((results[0][0].verdict == VERDICT_GO) ==
			    (bytes >= 40 + 8 + 48));
	}
	memset(fast.fwd.pattern, 0, sizeof(fast.fwd.pattern));
	for (unsigned int room = 0; room < 2;
	     room++) { /* options behind the routing header */
		epoch_next(DECAP_SAMPLE);
		visit_write(0, &w);
		srh[0] = PROTO_IP6_OPTS;
		memcpy(srh + 8 + 48, (const uint8_t[8]){PROTO_IP4, 0, 1, 4}, 8);
		if (room == 1)
			packet_cut_at(40 + 8 + 48 + 4);
		both_pass(1, 0);
		assert_true((results[0][0].verdict == VERDICT_GO) == (room == 0));
	}
}

/*
 * Packets from one source whose destinations differ in the argument of NEXT-C-SID have
 * patterns in different places of the table.
 */
static void
arguments_do_not_share_a_pattern(void **state)
{
	struct visit w = {.flow = {.kind = FLOW_SID, .inner = 4}, .shift = true};
	unsigned int n = 0;

	srandom(83);
	tables_choose(true);
	fib->iface[WAN]->vrf = 0;
	fib->sid[1].flavors = SRV6_NEXT_CSID;
	side_reset(&fast);
	side_reset(&slow);
	for (uint8_t k = 1; k <= 8; k++) {
		epoch_next(DECAP_SAMPLE);
		visit_write(0, &w);
		fast.packet[0].buffer[HEADROOM + L2_LEN + 31] = k;
		both_pass(1, 0);
	}
	for (unsigned int k = 0; k < FWD_PATTERNS; k++)
		n += fast.fwd.pattern[k].n_words != 0;
	assert_true(n >= 6); /* two patterns may have the same place by chance */
}

/*
 * A packet that an end point passes on counts as received only once, for its port and its
 * VRF.
 */
static void
a_packet_that_goes_on_counts_once_for_its_vrf(void **state)
{
	struct visit w = {.flow = {.kind = FLOW_SID, .inner = 4, .n_segments = 2},
			  .left = 1};

	srandom(71);
	tables_choose(false);
	fib->iface[WAN]->vrf = RED;
	fib->sid[1].flavors = 0;
	side_reset(&fast);
	side_reset(&slow);
	epoch_next(DECAP_SAMPLE);
	for (unsigned int k = 1; k < 4; k++) {
		visit_write(0, &w);
		both_pass(1, 0);
		assert_int_equal(fast.count.vrf[RED].rx_packets, k);
	}
}

/*
 * A lookup whose results are kept (segments_look_up()) finds the same as any other lookup:
 * for destinations that differ in either half, in two VRFs, before and after a change of the
 * routes.
 */
static void
kept_lookups_are_like_others(void **state)
{
	struct burst *at = &fast.burst;

	srandom(72);
	tables_choose(false);
	side_reset(&fast);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		fib_path kept[BURST_MAX];

		if (round % 16 == 0) {
			epoch_next(1);
			segment_leads_to(21 + below(3));
			for (uint8_t k = 1; k < 9; k++)
				route6((const uint8_t[16]){0xfc, [5] = 3, [15] = k}, 128,
				       24 + below(3), PATH(PATH_ADJ, 1 + below(2)));
		}
		fib->iface[WAN]->vrf = below(2) == 0 ? RED : 0;
		at->fwd = &fast.fwd;
		at->in = fib->iface[WAN];
		at->n = (uint16_t)(2 + below(BURST_MAX - 1));
		at->fast4 = 0;
		at->fast6 = burst_all(at);
		for (unsigned int i = 0; i < at->n; i++) {
			uint8_t *ip = fast.packet[i].buffer + HEADROOM + L2_LEN;

			at->m[i] = &fast.packet[i].m;
			at->l2[i] = ip - L2_LEN;
			memcpy(ip + 24, next6[below(4)], 16);
			ip[24 + 4] = below(2) == 0 ? 0 : (uint8_t)random();
			ip[38] = below(2) == 0 ? 0 : (uint8_t)random();
			ip[39] = (uint8_t)below(16);
		}
		at->segments = true;
		fwd_lookup(at);
		memcpy(kept, at->path, sizeof(kept));
		at->segments = false;
		fwd_lookup(at);
		assert_memory_equal(kept, at->path, at->n * sizeof(kept[0]));
	}
	fib->iface[WAN]->vrf = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(end_points_agree, end_up, down),
		cmocka_unit_test_setup_teardown(kept_lookups_are_like_others, end_up, down),
		cmocka_unit_test_setup_teardown(other_end_points_make_no_pattern, end_up,
						down),
		cmocka_unit_test_setup_teardown(packets_of_the_kernel_make_no_pattern,
						end_up, down),
		cmocka_unit_test_setup_teardown(arguments_do_not_share_a_pattern, end_up,
						down),
		cmocka_unit_test_setup_teardown(truncated_headers_are_for_the_stages,
						end_up, down),
		cmocka_unit_test_setup_teardown(
			a_packet_that_goes_on_counts_once_for_its_vrf, end_up, down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
