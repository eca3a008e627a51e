/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decapsulation by patterns (fwd/decap_fast.c) gives the result of the stages, for random
 * bursts of tunnels, VXLAN and SRv6. The second router has no patterns, only the stages.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fwd/decap_fast.h"

#include "fib/hook_list.h" /* before `fib` of decap_flows.h */
#include "fib/urpf.h"

#include "decap_flows.h"

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 400
#else
#define ROUNDS 3000
#endif
/* The result for a packet after the walk. */
struct result {
	uint8_t verdict, cause;
	struct fwd_decap decap;
};

static struct result results[2][BURST_MAX];
static unsigned int n_hits;
static unsigned int tags; /* number of tags of each frame; all frames have the same tags */
static uint64_t hit;      /* bits of the packets of the last burst that matched */

/* --- both routers --------------------------------------------------------------------- */

static void
epoch_next(unsigned int by)
{
	for (unsigned int s = 0; s < 2; s++) {
		struct fwd *f = s == 0 ? &fast.fwd : &slow.fwd;

		f->outer_epoch += by;
		f->interval += by;
		f->found.ifidx = 0;
		f->found_svi = NULL;
	}
}

/* Put `tags` tags before the EtherType of a frame. */
static void
tags_put(struct rte_mbuf *m)
{
	uint8_t *from = rte_pktmbuf_mtod(m, uint8_t *), *eth = from - 4 * tags;

	memmove(eth, from, 12);
	for (unsigned int k = 0; k < tags; k++)
		put_be32(eth + 12 + 4 * k, 0x81000000u | (100 + k));
	m->data_off -= 4 * tags;
	m->data_len += 4 * tags;
	m->pkt_len += 4 * tags;
}

/* Begin a burst with the first `n` packets of a router. */
static void
burst_begin(struct side *s, unsigned int n, uint16_t in)
{
	struct burst *at = &s->burst;

	memset((void *)fib->adj_used, 0, 4);
	memset(at, 0, offsetof(struct burst, m));
	at->fwd = &s->fwd;
	at->n = (uint16_t)n;
	at->ifidx = in;
	for (unsigned int i = 0; i < n; i++) {
		at->m[i] = &s->packet[i].m;
		tags_put(at->m[i]);
	}
	(void)fwd_look_tags(at, (uint8_t)(4 * tags));
	s->fwd.n_decap = 0;
}

/* Pass a burst. `by_pattern`: packets that match patterns do not pass the stages. */
static void
side_pass(struct side *s, struct result *result, bool rx_cksum, bool by_pattern)
{
	struct burst *at = &s->burst;

	at->rx_cksum = rx_cksum;
	if (by_pattern) {
		hit = 0;
		fwd_decap_fast(at);
		for (unsigned int k = 0; k < s->fwd.n_decap; k++)
			hit |= 1ull << index_of(s, s->fwd.decap[k].m);
	}
	for (unsigned int k = 0; k < s->fwd.n_decap; k++)
		result[index_of(s, s->fwd.decap[k].m)] = (struct result){
			.verdict = VERDICT_DECAPSULATED, .decap = s->fwd.decap[k]};
	if (at->n == 0)
		return;
	fwd_walk(at, NULL);
	for (unsigned int i = 0; i < at->n; i++) {
		struct result r = {.verdict = at->verdict[i]};

		if (r.verdict == VERDICT_DECAPSULATED) {
			r.decap = fwd_decap_of(at, i);
			fwd_tunnel_keep(at, i);
		} else if (r.verdict == PUNT_unreach || r.verdict == PUNT_ttl_expired) {
			r.cause = at->cause[i];
		}
		result[index_of(s, at->m[i])] = r;
	}
}

static void
decaps_are_alike(const struct fwd_decap *a, const struct fwd_decap *c)
{
	assert_int_equal(a->ifidx, c->ifidx);
	assert_int_equal(a->at, c->at);
	assert_int_equal(a->by_sid, c->by_sid);
	assert_int_equal(a->counted, c->counted);
	assert_int_equal(a->vrf, c->vrf);
	assert_int_equal(a->path, c->path);
}

static void
results_are_alike(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct result *a = &results[0][i], *c = &results[1][i];
		struct rte_mbuf *m = &fast.packet[i].m, *k = &slow.packet[i].m;

		assert_int_equal(a->verdict, c->verdict);
		assert_int_equal(a->cause, c->cause);
		if (a->verdict == VERDICT_DECAPSULATED) {
			decaps_are_alike(&a->decap, &c->decap);
			assert_int_equal(m->ol_flags, k->ol_flags);
			assert_int_equal(m->vlan_tci, k->vlan_tci);
			assert_int_equal(fast.packet[i].meta.outer_ifidx,
					 slow.packet[i].meta.outer_ifidx);
		}
		assert_int_equal(m->data_off, k->data_off);
		assert_int_equal(m->data_len, k->data_len);
		assert_int_equal(m->pkt_len, k->pkt_len);
		if (a->verdict == VERDICT_GO) {
			id_clear(m);
			id_clear(k);
		}
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *),
				    rte_pktmbuf_mtod(k, uint8_t *), m->data_len);
	}
	assert_int_equal(fast.fwd.n_decap, slow.fwd.n_decap);
	if (fast.fwd.n_decap != 0)
		assert_int_equal(fast.fwd.decap_differs, slow.fwd.decap_differs);
	assert_memory_equal(fast.count.sid, slow.count.sid, 8 * sizeof(fast.count.sid[0]));
	assert_memory_equal(fast.count.vrf, slow.count.vrf, 8 * sizeof(fast.count.vrf[0]));
}

/* Pass the first `n` packets through both routers, and compare. */
static void
both_pass(unsigned int n, uint16_t in, bool rx_cksum)
{
	for (unsigned int i = 0; i < n; i++)
		flow_copy(i);
	burst_begin(&fast, n, in);
	side_pass(&fast, results[0], rx_cksum, true);
	burst_begin(&slow, n, in);
	side_pass(&slow, results[1], rx_cksum, false);
	results_are_alike(n);
	n_hits += (unsigned int)__builtin_popcountll(hit);
}

static void
both_begin(void)
{
	side_reset(&fast);
	side_reset(&slow);
	epoch_next(DECAP_SAMPLE);
}

/* Let the first router make a pattern of a flow. */
static void
learn(const struct flow *flow)
{
	flow_write(0, flow);
	both_pass(1, WAN, false);
}

/* The packet of the last learn_any(). */
static uint8_t seen[BUFFER];
static struct rte_mbuf seen_m;

/* Make a pattern of a packet that may have a fault. Keep the packet for seen_write(). */
static void
learn_any(const struct flow *flow)
{
	flow_write(0, flow);
	if (below(2) == 0)
		flow_change(0, flow);
	seen_m = fast.packet[0].m;
	memcpy(seen, fast.packet[0].buffer, BUFFER);
	both_pass(1, WAN, false);
}

/* Write the packet of the last learn_any(), with another ECN field in the inner header. */
static void
seen_write(unsigned int i, const struct flow *flow)
{
	struct rte_mbuf *m = &fast.packet[i].m;
	uint8_t *inner;

	memset(&fast.packet[i].meta, 0, sizeof(fast.packet[i].meta));
	*m = seen_m;
	m->buf_addr = fast.packet[i].buffer;
	memcpy(fast.packet[i].buffer, seen, BUFFER);
	inner = rte_pktmbuf_mtod(m, uint8_t *) + L2_LEN + outer_bytes(flow);
	ecn_set(inner, flow->inner, (uint8_t)below(4));
	if (flow->inner == 4)
		checksum_set(inner);
}

/* --- random bursts -------------------------------------------------------------------- */

static const uint64_t flag_sets[] = {0, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
				     RTE_MBUF_F_RX_IP_CKSUM_BAD,
				     RTE_MBUF_F_RX_IP_CKSUM_NONE};

static void
burst_write(const struct flow flow[2], unsigned int n, bool rx_cksum)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct flow *of = &flow[below(2)];

		if (of == &flow[1] && below(3) == 0)
			seen_write(i, of);
		else
			flow_write(i, of);
		if (below(2) == 0)
			flow_change(i, of);
		if (rx_cksum)
			fast.packet[i].m.ol_flags = flag_sets[below(4)];
	}
}

/* Give the end of a tunnel to another interface. */
static void
tunnel_move(void)
{
	iface_make(SVI + 1, NULL)->tunnel = fib->iface[T4]->tunnel;
	for (unsigned int k = 0; k < 64; k++)
		if (fib->tunnels->entry[k] == T4)
			fib->tunnels->entry[k] = SVI + 1;
}

/* Change the tables, as if another thread had done it before a quiescent state. */
static void
tables_change(void)
{
	struct fib_iface *in = fib->iface[WAN];

	switch (below(22)) {
	case 0:
		fib->group[12] = group_word_single(PATH(PATH_ADJ, 1));
		break;
	case 1:
		fib->group[20] = group_word_single(PATH(PATH_LOCAL, 0));
		break;
	case 2:
		fib->iface[T4]->up = fib->iface[T6]->up = fib->iface[SVI]->up = false;
		break;
	case 3:
		fib->iface[T4]->tunnel.remote = fib->iface[T6]->tunnel.remote =
			(struct ipaddr){0};
		table_make();
		break;
	case 4:
		fib->sid[1].action = (uint8_t)(below(2) == 0 ? SRV6_END_DT4 : SRV6_END_DT6);
		break;
	case 5:
		fib->sid[1].action = SRV6_END;
		break;
	case 6:
		fib->sid[1].vrf = fib->sid[1].vrf == 0 ? RED : 0;
		break;
	case 7:
		fib->sid_numbers->of[NUMBER].len = 0;
		break;
	case 8:
		in->urpf4 = FIB_URPF_LOOSE;
		break;
	case 9:
		in->fast4 = in->forward4 = false;
		break;
	case 10:
		in->fast6 = in->forward6 = false;
		break;
	case 11:
		in->up = false;
		break;
	case 12:
		in->ifindex = 0;
		break;
	case 13:
		in->mac[5] ^= 1;
		break;
	case 14:
		in->vrf = in->vrf == 0 ? RED : 0;
		break;
	case 15:
		fib->iface[SVI]->mac[5] ^= 1;
		break;
	case 16:
		fib->iface[SVI]->vxlan.zero_csum6 = false;
		break;
	case 17:
		vxlans_make((uint16_t)(RED - in->vrf));
		break;
	case 18:
		fib->tunnels_state = 0;
		break;
	case 19:
		fib->sid[1].flavors = SRV6_NEXT_CSID;
		fib->sid[1].block_bits = 32;
		fib->sid[1].node_bits = 16;
		break;
	case 20:
		tunnel_move();
		break;
	default:
		fib->group[12] = group_word_single(PATH(PATH_LOCAL, 2));
	}
}

static void
patterns_and_stages_agree(void **state)
{
	unsigned int n_all = 0;

	srandom(53);
	n_hits = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		bool rx_cksum = below(3) == 0;
		unsigned int n = 1 + below(BURST_MAX);
		struct flow flow[2];

		tags = below(2) == 0 ? 0 : below(VLAN_TAGS + 1);
		tables_make(below(2) == 0 ? RED : 0);
		flow[0] = flow_choose();
		flow[1] = flow_choose();
		both_begin();
		learn(&flow[0]);
		epoch_next(below(3) == 0 ? 1 : DECAP_SAMPLE);
		learn_any(&flow[1]);
		epoch_next(below(3));
		for (unsigned int k = 0; k < 2; k++) {
			burst_write(flow, n, rx_cksum);
			both_pass(n, WAN, rx_cksum);
			n_all += n;
			epoch_next(below(2));
		}
		/* The same frames by another port, whose lookups differ. */
		memcpy(fib->iface[LAN]->mac, wan_mac, 6);
		fib->iface[LAN]->vrf = below(2) == 0 ? RED : 0;
		burst_write(flow, n, rx_cksum);
		both_pass(n, LAN, rx_cksum);
		epoch_next(1);
		tables_change();
		burst_write(flow, n, rx_cksum);
		both_pass(n, WAN, rx_cksum);
	}
	tags = 0;
	assert_true(n_hits > n_all / 4);
}

/* --- single rules --------------------------------------------------------------------- */

/* Return the number of patterns of the first router. */
static unsigned int
patterns(void)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < FWD_PATTERNS; k++)
		n += fast.fwd.pattern[k].n_words != 0;
	return n;
}

/* Flows for tables_fix(), which makes tables without random parts. */
static const struct flow gre = {.kind = FLOW_T4, .inner = 4};
static const struct flow sid_flow = {.kind = FLOW_SID, .inner = 4, .n_segments = 1};

static void
tables_fix(void)
{
	tables_make(0);
	gre4(0);
	fib->sid[1] = (struct fib_sid){.action = SRV6_END_DT46, .vrf = RED};
	both_begin();
}

/* Change the octets of an inner header that are not its version and its length. */
static void
inner_vary(uint8_t *ip, uint8_t family)
{
	for (unsigned int k = 1; k < (family == 4 ? 20u : 40u); k++)
		if (k != (family == 4 ? 2 : 4) && k != (family == 4 ? 3 : 5))
			ip[k] = (uint8_t)random();
}

/*
 * Packets of a flow match although their outer headers differ in lengths, TTL, DF,
 * identification, DSCP, ECN and source port. Packets that met congestion match, too, so
 * that later packets do not overtake them. All packets may have tags.
 */
static void
packets_of_a_flow_match_with_and_without_tags(void **state)
{
	srandom(59);
	for (unsigned int round = 0; round < 200; round++) {
		struct flow flow;

		tags = round % (VLAN_TAGS + 1);
		tables_make(below(2) == 0 ? RED : 0);
		flow = flow_choose();
		both_begin();
		learn(&flow);
		epoch_next(below(2));
		for (unsigned int i = 0; i < BURST_MAX; i++) {
			uint8_t *ip = fast.packet[i].buffer + HEADROOM + L2_LEN,
				family = outer_family(&flow);

			flow_write(i, &flow);
			fast.packet[i].buffer[HEADROOM + 6 + 1 + below(5)] ^= 0x55;
			put_be16(ip + (family == 4 ? 4 : 2), (uint16_t)random());
			ip[family == 4 ? 8 : 7] = (uint8_t)(2 + below(254));
			if (family == 4)
				ip[1] = (uint8_t)(below(64) << 2 | below(4));
			else
				put_be16(ip, (uint16_t)(0x6000 | below(64) << 6 |
							below(4) << 4 | below(16)));
			if (family == 4) {
				ip[6] = (uint8_t)(below(4) << 6);
				checksum_set(ip);
			}
			if (flow.kind == FLOW_VXLAN)
				put_be16(ip + (family == 4 ? 20 : 40), (uint16_t)random());
			inner_vary(ip + outer_bytes(&flow), flow.inner);
			ecn_set(ip + outer_bytes(&flow), flow.inner,
				(uint8_t)(1 + below(3)));
		}
		both_pass(BURST_MAX, WAN, false);
		assert_true(hit == UINT64_MAX);
		assert_int_equal(fast.burst.n, 0);
		assert_true(fwd_decap_may_be_fast(&fast.burst));
	}
	tags = 0;
}

/* Write a burst of one flow for the first router, and pass it through the stages. */
static void
stages_pass(const struct flow *flow)
{
	for (unsigned int i = 0; i < BURST_MAX; i++)
		flow_write(i, flow);
	burst_begin(&fast, BURST_MAX, WAN);
	fwd_decap_may_be_fast(&fast.burst);
	fwd_walk(&fast.burst, NULL);
}

/* Compare bursts of a flow with patterns until attempts stop. Return their number. */
static unsigned int
tries_until_stop(const struct flow *flow)
{
	for (unsigned int n = 0;; n++) {
		for (unsigned int i = 0; i < BURST_MAX; i++)
			flow_write(i, flow);
		burst_begin(&fast, BURST_MAX, WAN);
		if (!fwd_decap_may_be_fast(&fast.burst))
			return n;
		fwd_decap_fast(&fast.burst);
		assert_true(n < 100);
	}
}

static void
attempts_stop_and_begin_again(void **state)
{
	tables_fix();
	burst_begin(&fast, 0, WAN);
	assert_false(fwd_decap_may_be_fast(&fast.burst));
	learn(&gre); /* the pattern */
	assert_int_equal(patterns(), 1);
	assert_false(fwd_decap_may_be_fast(&fast.burst));
	fast.fwd.decap_gain = 0;
	epoch_next(1); /* an interval that does not count */
	stages_pass(&gre);
	assert_int_equal(fast.fwd.decap_gain, 0);
	epoch_next(DECAP_SAMPLE - 1);
	stages_pass(&sid_flow); /* the first packet makes a pattern, the others match it */
	/* Matches are counted only until the gain is above 0. Then attempts begin. */
	assert_int_equal(fast.fwd.decap_gain, -BURST_MAX + 9 * DECAP_GAIN);
	assert_true(fast.fwd.decap_tries);
	fast.fwd.decap_gain = -DECAP_GAIN_MAX;
	fast.fwd.decap_tries = false;
	for (unsigned int n = 0; n < 3; n++) {
		assert_false(fast.fwd.decap_tries);
		stages_pass(&gre);
	}
	assert_true(fwd_decap_may_be_fast(&fast.burst));
	/* Matches raise the gain up to a limit. Attempts without a match lower it. */
	epoch_next(1);
	for (unsigned int n = 0; n < 40; n++) {
		for (unsigned int i = 0; i < BURST_MAX; i++)
			flow_write(i, &gre);
		burst_begin(&fast, BURST_MAX, WAN);
		assert_true(fwd_decap_may_be_fast(&fast.burst));
		fwd_decap_fast(&fast.burst);
		assert_int_equal(fast.burst.n, 0);
	}
	assert_int_equal(fast.fwd.decap_gain, DECAP_GAIN_MAX);
	gre4(7);
	assert_int_equal(tries_until_stop(&gre), 2 * DECAP_GAIN_MAX / BURST_MAX);
	/* Without attempts, packets are counted only in counting intervals. */
	stages_pass(&gre);
	assert_int_equal(fast.fwd.decap_gain, -DECAP_GAIN_MAX);
}

static void
an_interval_makes_one_pattern(void **state)
{
	tables_fix();
	flow_write(0, &gre);
	flow_write(1, &sid_flow);
	both_pass(2, WAN, false);
	assert_int_equal(patterns(), 1);
	for (unsigned int k = 1; k < DECAP_SAMPLE; k++) {
		epoch_next(1);
		flow_write(0, &sid_flow);
		both_pass(1, WAN, false);
		assert_int_equal(patterns(), 1);
	}
	epoch_next(1);
	flow_write(0, &sid_flow);
	both_pass(1, WAN, false);
	assert_int_equal(patterns(), 2);
}

/* Outer headers for which a pattern has no room are left to the stages. */
static void
headers_beyond_the_room_make_no_pattern(void **state)
{
	static const struct flow two = {.kind = FLOW_SID, .inner = 6, .n_segments = 2},
				 three = {.kind = FLOW_SID, .inner = 6, .n_segments = 3};

	tables_fix();
	learn(&three);
	assert_int_equal(patterns(), 0);
	learn(&two);
	assert_int_equal(patterns(), 1);
}

static void
a_pattern_in_use_is_not_replaced(void **state)
{
	struct fwd_decap_pattern *p = NULL;
	uint64_t made, value;

	tables_fix();
	learn(&gre);
	for (unsigned int k = 0; k < FWD_PATTERNS; k++)
		if (fast.fwd.pattern[k].n_words != 0)
			p = &fast.fwd.pattern[k];
	assert_non_null(p);
	/* A match renews the epoch of the pattern. */
	epoch_next(DECAP_SAMPLE);
	learn(&gre);
	assert_int_equal(hit, 1);
	assert_int_equal(p->epoch, fast.fwd.outer_epoch);
	made = p->epoch;
	value = p->value[0];
	p->value[0] ^= 1; /* as if another flow had made a pattern in the same place */
	for (;;) {
		epoch_next(DECAP_SAMPLE);
		learn(&gre);
		assert_int_equal(hit, 0);
		if (fast.fwd.outer_epoch - made >= 64)
			break;
		assert_true(p->value[0] == (value ^ 1));
	}
	assert_true(p->value[0] == value && p->epoch == fast.fwd.outer_epoch);
}

/* Try to make a pattern of packet 0 of the last burst. Return 1 on success, else 0. */
static unsigned int
learns(void)
{
	memset(fast.fwd.pattern, 0, sizeof(fast.fwd.pattern));
	fast.fwd.learn_from = 0;
	fwd_decap_learn(&fast.burst, 0, PATH(PATH_LOCAL, 0));
	return patterns();
}

/* Rounds with sessions, and interfaces with a program, take the stages alone. */
static void
bursts_that_others_see_take_the_stages(void **state)
{
	static struct fib_hook hook = {.dev = "lan0"};
	static const struct fib_hooks hooks = {.n = 1, .hook = {&hook}};
	struct fwd *f = &fast.fwd;

	tables_fix();
	learn(&gre);
	f->decap_tries = true;
	assert_true(fwd_decap_may_be_fast(&fast.burst));
	assert_int_equal(learns(), 1);
	f->watch = (const void *)&tails[0];
	assert_false(fwd_decap_may_be_fast(&fast.burst));
	assert_int_equal(learns(), 0);
	f->watch = NULL;
	f->hooks = &hooks;
	strcpy(fib->iface[fast.burst.ifidx]->name, "lan1");
	assert_true(fwd_decap_may_be_fast(&fast.burst));
	assert_int_equal(learns(), 1);
	strcpy(fib->iface[fast.burst.ifidx]->name, hook.dev);
	assert_false(fwd_decap_may_be_fast(&fast.burst));
	assert_int_equal(learns(), 0);
	f->hooks = NULL;
	fast.burst.inside = true;
	assert_int_equal(learns(), 0);
	fast.burst.inside = false;
	fast.burst.labels = 1;
	assert_int_equal(learns(), 0);
	fast.burst.labels = 0;
	fast.packet[0].m.data_len = 59;
	assert_int_equal(learns(), 0);
	fast.packet[0].m.data_len = 60;
	assert_int_equal(learns(), 1);
	f->has_patterns = false;
	assert_false(fwd_decap_may_be_fast(&fast.burst));
}

/* Packets of a burst differ if any field of struct fwd_decap except `at` differs. */
static void
packets_of_two_tunnels_differ(void **state)
{
	struct fwd_decap first = {.ifidx = T4, .vrf = 1, .path = PATH(PATH_ADJ, 1)}, other;

	for (unsigned int k = 0; k < 6; k++) {
		other = first;
		other.ifidx = k == 1 ? T6 : other.ifidx;
		other.vrf = k == 2 ? 2 : other.vrf;
		other.path = k == 3 ? PATH(PATH_ADJ, 2) : other.path;
		other.by_sid = k == 4;
		other.at = k == 5 ? 9 : 0; /* no difference */
		fast.fwd.n_decap = 0;
		fast.fwd.decap_differs = true;
		fwd_decap_compare(&fast.fwd, &first);
		assert_false(fast.fwd.decap_differs);
		fast.fwd.decap[0] = first;
		fast.fwd.n_decap = 1;
		fwd_decap_compare(&fast.fwd, &other);
		assert_int_equal(fast.fwd.decap_differs, k >= 1 && k <= 4);
		fwd_decap_compare(&fast.fwd, &first); /* the result stays */
		assert_int_equal(fast.fwd.decap_differs, k >= 1 && k <= 4);
	}
}

/* Pass packet 0 through both routers. Return true if the first router makes a pattern. */
static bool
makes_a_pattern(void)
{
	memset(fast.fwd.pattern, 0, sizeof(fast.fwd.pattern));
	fast.fwd.learn_from = 0;
	both_pass(1, WAN, false);
	assert_int_equal(results[0][0].verdict, VERDICT_DECAPSULATED);
	return patterns() == 1;
}

/* Insert hop-by-hop options behind the IPv6 header of packet 0. They are only padding. */
static void
options_insert(void)
{
	struct rte_mbuf *m = &fast.packet[0].m;
	uint8_t *ip = fast.packet[0].buffer + HEADROOM + L2_LEN;

	memmove(ip + 48, ip + 40, m->data_len - L2_LEN - 40);
	memcpy(ip + 40, (const uint8_t[8]){ip[6], 0, 1, 4}, 8);
	ip[6] = 0;
	length_add(ip, 6, 8);
	m->data_len += 8;
	m->pkt_len += 8;
}

/* Each router has to read the options of each packet: RFC 8200, 4.3. */
static void
options_before_a_sid_make_no_pattern(void **state)
{
	struct flow flow = sid_flow;

	tables_fix();
	for (flow.n_segments = 0; flow.n_segments < 2; flow.n_segments++) {
		flow_write(0, &flow);
		assert_true(makes_a_pattern());
		flow_write(0, &flow);
		options_insert();
		assert_false(makes_a_pattern());
		/* A packet with options matches no pattern of packets without options. */
		learn(&flow);
		assert_int_equal(patterns(), 1);
		epoch_next(1);
		flow_write(0, &flow);
		both_pass(1, WAN, false);
		assert_int_equal(hit, 1);
		flow_write(0, &flow);
		options_insert();
		both_pass(1, WAN, false);
		assert_int_equal(hit, 0);
		epoch_next(DECAP_SAMPLE - 1);
	}
}

/*
 * The stages verify checksums: a packet with a UDP checksum makes and matches no pattern.
 */
static void
a_udp_checksum_is_verified_by_the_stages(void **state)
{
	static const struct flow flow = {.kind = FLOW_VXLAN, .inner = 4};
	static const uint8_t families[] = {4, 6};

	for (unsigned int k = 0; k < 2; k++) {
		unsigned int head = families[k] == 4 ? 20 : 40;
		uint8_t *ip = fast.packet[0].buffer + HEADROOM + L2_LEN, *udp = ip + head;

		tables_fix();
		over(families[k]);
		vxlans_make(0);
		flow_write(0, &flow);
		assert_true(makes_a_pattern());
		for (unsigned int right = 0; right < 2; right++) {
			unsigned int len;

			flow_write(0, &flow);
			len = get_be16(udp + 4);
			put_be16(udp + 6,
				 (uint16_t)~inet_fold(inet_sum(
					 udp, len, udp_pseudo_sum(ip, families[k], len))));
			udp[6] ^= right == 0;
			both_pass(1, WAN, false);
			assert_int_equal(hit, 0);
			assert_true((results[0][0].verdict == VERDICT_DECAPSULATED) ==
				    (right == 1));
		}
		assert_false(makes_a_pattern());
	}
}

/* Policy rules or a filter for packets of an interface turn off its fast4 or fast6. */
static void
an_interface_without_a_fast_path_takes_the_stages(void **state)
{
	static const struct flow flow[] = {{.kind = FLOW_T4, .inner = 6},
					   {.kind = FLOW_SID, .inner = 4}};
	struct fib_iface *in;

	for (unsigned int k = 0; k < 2; k++) {
		tables_fix();
		in = fib->iface[WAN];
		learn(&flow[k]);
		epoch_next(1);
		for (unsigned int off = 0; off < 4; off++) {
			in->fast4 = (off & 1) == 0;
			in->fast6 = (off & 2) == 0;
			flow_write(0, &flow[k]);
			both_pass(1, WAN, false);
			assert_int_equal(hit, k == 0 ? in->fast4 : in->fast6);
			assert_int_equal(results[0][0].verdict, VERDICT_DECAPSULATED);
		}
		in->fast4 = in->fast6 = true;
	}
}

/* Attempts begin when the gain is above 0. They end when it is at its lower limit. */
static void
the_gain_decides_about_attempts(void **state)
{
	static const struct {
		int gain;
		bool tries;
		unsigned int hits, n;
		int gain_then;
		bool tries_then;
	} row[] = {
		{0, false, 1, 7, 1, true},  /* above 0: begin */
		{0, false, 1, 8, 0, false}, /* one of eight: as before */
		{0, true, 1, 8, 0, true},
		{0, true, 0, 64, -64, true}, /* between the limits: as before */
		{-100, false, 1, 0, -92, false},
		{-DECAP_GAIN_MAX + 64, true, 0, 63, -DECAP_GAIN_MAX + 1, true},
		{-DECAP_GAIN_MAX + 64, true, 0, 64, -DECAP_GAIN_MAX, false}, /* end */
		{-DECAP_GAIN_MAX, true, 0, 64, -DECAP_GAIN_MAX, false},      /* limit */
		{-DECAP_GAIN_MAX, false, 64, 0, 512 - DECAP_GAIN_MAX, false},
		{DECAP_GAIN_MAX - 8, true, 64, 64, DECAP_GAIN_MAX, true}, /* limit */
	};

	for (unsigned int k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		fast.fwd.decap_gain = row[k].gain;
		fast.fwd.decap_tries = row[k].tries;
		fwd_decap_gain(&fast.fwd, row[k].hits, row[k].n);
		assert_int_equal(fast.fwd.decap_gain, row[k].gain_then);
		assert_int_equal(fast.fwd.decap_tries, row[k].tries_then);
	}
}

/* Write packet 0: a packet of the tunnel over IPv4, in a packet of the tunnel over IPv6. */
static void
nested_write(void)
{
	static const struct flow in = {.kind = FLOW_T4, .inner = 4},
				 out = {.kind = FLOW_T6, .inner = 4};
	struct rte_mbuf *m = &fast.packet[0].m;
	uint8_t *ip = fast.packet[0].buffer + HEADROOM + L2_LEN;
	unsigned int len, by = outer_bytes(&out);

	flow_write(0, &in);
	len = m->data_len - L2_LEN;
	memmove(ip + by, ip, len);
	tunnel_write(ip, &fib->iface[T6]->tunnel, 4, len);
	put_be16(ip - 2, 0x86dd);
	m->data_len = (uint16_t)(L2_LEN + by + len);
	m->pkt_len = m->data_len;
}

/* A pattern describes the outer tunnel alone. The stages open the inner tunnel. */
static void
a_tunnel_in_a_tunnel_is_opened_by_both(void **state)
{
	tables_fix();
	over6(true, false);
	table_make();
	for (unsigned int round = 0; round < 2; round++) {
		nested_write();
		both_pass(1, WAN, false);
		assert_int_equal(hit, round);
		assert_int_equal(patterns(), 1);
		assert_int_equal(results[0][0].decap.ifidx, T6);
		for (unsigned int s = 0; s < 2; s++) {
			struct side *side = s == 0 ? &fast : &slow;

			fwd_tunnel_enter_all(&side->fwd, &side->inside);
			fwd_walk(&side->inside, NULL);
			assert_int_equal(side->inside.n, 1);
			assert_int_equal(side->inside.verdict[0], VERDICT_DECAPSULATED);
			assert_int_equal(fwd_decap_of(&side->inside, 0).ifidx, T4);
		}
		assert_int_equal(patterns(), 1); /* inner packets make no pattern */
		bursts_are_alike(&fast.inside, &slow.inside);
		epoch_next(DECAP_SAMPLE);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(patterns_and_stages_agree, decap_up, down),
		cmocka_unit_test_setup_teardown(
			packets_of_a_flow_match_with_and_without_tags, decap_up, down),
		cmocka_unit_test_setup_teardown(attempts_stop_and_begin_again, decap_up,
						down),
		cmocka_unit_test_setup_teardown(an_interval_makes_one_pattern, decap_up,
						down),
		cmocka_unit_test_setup_teardown(headers_beyond_the_room_make_no_pattern,
						decap_up, down),
		cmocka_unit_test_setup_teardown(a_pattern_in_use_is_not_replaced, decap_up,
						down),
		cmocka_unit_test_setup_teardown(bursts_that_others_see_take_the_stages,
						decap_up, down),
		cmocka_unit_test_setup_teardown(packets_of_two_tunnels_differ, decap_up,
						down),
		cmocka_unit_test_setup_teardown(options_before_a_sid_make_no_pattern,
						decap_up, down),
		cmocka_unit_test_setup_teardown(a_udp_checksum_is_verified_by_the_stages,
						decap_up, down),
		cmocka_unit_test_setup_teardown(
			an_interface_without_a_fast_path_takes_the_stages, decap_up, down),
		cmocka_unit_test_setup_teardown(the_gain_decides_about_attempts, decap_up,
						down),
		cmocka_unit_test_setup_teardown(a_tunnel_in_a_tunnel_is_opened_by_both,
						decap_up, down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
