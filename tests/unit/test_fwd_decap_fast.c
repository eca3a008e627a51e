/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decapsulation by the octets of the outer headers (fwd/decap_fast.c) gives the result of the stages,
 * for random bursts of tunnels, VXLAN and SRv6. The second router has the stages alone.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fwd/decap_fast.h"

#include "vxlan_bed.h"

#include "fib/sid.h"
#include "fib/sid_number.h"
#include "fib/urpf.h"

#include "fwd_sides.h"

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 400
#else
#define ROUNDS 3000
#endif
#define RED    5 /* a VRF */
#define NUMBER 3 /* of the SID in table main; NUMBER + 1: in RED */
#define TAIL   40

static const uint8_t sid6[16] = {0xfc, 0, 0, 0, 0, 1, [15] = 9};
static const uint8_t last6[16] = {0xfc, 0, 0, 0, 0, 3, [15] = 9};

/* Packets from one far end, with the same outer headers. */
enum kind { FLOW_T4, FLOW_T6, FLOW_VXLAN, FLOW_SID, N_KIND };
struct flow {
	enum kind kind;
	uint8_t inner;      /* family */
	uint8_t n_segments; /* of a routing header; 0: none */
};

/* Where a packet is after the walk. */
struct result {
	uint8_t verdict, cause;
	struct fwd_decap decap;
};

static struct result results[2][BURST_MAX];
static struct rte_mbuf tails[2];
static uint8_t tail_room[2][TAIL];
static unsigned int n_hits;
static uint64_t hit; /* packets of the last burst that matched a pattern */

/* --- tables ------------------------------------------------------------------------------- */

static void
number_give(uint32_t number, uint16_t vrf)
{
	struct fib_sid_numbers *t = fib->sid_numbers;
	struct fib_sid_number *of = &t->of[number];

	memcpy(of->addr.octet, sid6, 16);
	of->vrf = vrf;
	of->len = 128;
	of->next = 0;
	t->first[sid_bucket(fib->seed, vrf, &of->addr, 128)] = number;
	t->n_in_vrfs += vrf != 0;
	t->lens[1] |= 1ull << 63;
}

static int
decap_up(void **state)
{
	struct fib_vrf *red;
	uint8_t net[4];

	if (up_with_isa(state) != 0)
		return -1;
	route6(sid6, 128, 20, PATH(PATH_LOCAL, 1));
	red = fib_vrf_new(fib, 1001, "red");
	assert_non_null(red);
	put_be32(net, LOCAL4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 32, 12), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, local6, 128, 12), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, sid6, 128, 20), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	fib_vrf_publish(fib, RED, red);
	fib->adj[ADJ].ifidx = SVI;
	fib->adj[ADJ].family = 4;
	number_give(NUMBER, 0);
	return 0;
}

/* Publish the interface over VXLAN in the table of received packets. */
static void
vxlans_make(uint16_t vrf)
{
	memset(fib->vxlans->entry, 0, 16 * sizeof(uint16_t));
	fib->iface[SVI]->vxlan.vrf = vrf;
	fib->vxlans->one_end = 0;
	fib->vxlans->entry[fib_vxlan_hash(fib, vrf, PORT, VNI) & 15] = SVI;
}

/* Make one tunnel of each kind, of which all outer packets come in `vrf`, and a SID. */
static void
tables_make(uint16_t vrf)
{
	fib->group[12] = group_word_single(PATH(PATH_LOCAL, 0));
	fib->group[20] = group_word_single(PATH(PATH_LOCAL, 1));
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	iface_make(LAN, lan_mac);
	iface_make(WAN, wan_mac)->vrf = vrf;
	switch (below(3)) {
	case 0:
		gre4(0);
		break;
	case 1:
		gre4(0x01020304);
		break;
	default:
		ip4();
	}
	over6(below(2) == 0, below(2) == 0);
	fib->iface[T4]->tunnel.vrf = fib->iface[T6]->tunnel.vrf = vrf;
	table_make();
	over(below(2) == 0 ? 4 : 6);
	vxlans_make(vrf);
	fib->sid[1] = (struct fib_sid){.action = (uint8_t)(below(3) == 0   ? SRV6_END_DT4
							   : below(2) == 0 ? SRV6_END_DT6
									   : SRV6_END_DT46),
				       .vrf = below(2) == 0 ? RED : 0};
	fib->sid_numbers->of[NUMBER].len = 128;
}

/* --- packets ------------------------------------------------------------------------------ */

static unsigned int
tunnel_write(uint8_t *out, const struct fib_tunnel *t, uint8_t family, unsigned int len)
{
	memcpy(out, t->head, t->bytes);
	if (t->gre)
		put_be16(out + t->proto_at, family == 4 ? 0x0800 : 0x86dd);
	else
		out[t->proto_at] = family == 4 ? PROTO_IP4 : PROTO_IP6;
	if (t->family == 4) {
		put_be16(out + 2, (uint16_t)(t->bytes + len));
		out[8] = 60;
		memcpy(out + 12, t->remote.octet, 4);
		memcpy(out + 16, t->local.octet, 4);
		checksum_set(out);
	} else {
		put_be16(out + 4, (uint16_t)(t->bytes - 40 + len));
		out[7] = 60;
		memcpy(out + 8, t->remote.octet, 16);
		memcpy(out + 24, t->local.octet, 16);
	}
	return t->bytes;
}

static unsigned int
vxlan_write(uint8_t *out, uint8_t family, unsigned int len)
{
	uint8_t *udp = out + hop.t.bytes - VXLAN_HEAD_BYTES;

	tunnel_write(out, &hop.t, family, len);
	if (hop.t.family ==
	    4) { /* the template has the addresses of packets that are sent */
		put_be32(out + 12, REMOTE4);
		put_be32(out + 16, LOCAL4);
		checksum_set(out);
	} else {
		memcpy(out + 8, remote6, 16);
		memcpy(out + 24, local6, 16);
	}
	put_be16(udp, (uint16_t)(49152 + below(1000)));
	put_be16(udp + 4, (uint16_t)(len + VXLAN_HEAD_BYTES));
	memcpy(udp + 16, svi_mac, 6);
	memcpy(udp + 22, rmac, 6);
	return hop.t.bytes;
}

static unsigned int
sid_write(uint8_t *out, const struct flow *flow, unsigned int len)
{
	unsigned int n = flow->n_segments, bytes = 40 + (n == 0 ? 0 : 8 + 16 * n);
	uint8_t proto = flow->inner == 4 ? PROTO_IP4 : PROTO_IP6, *srh = out + 40;

	memset(out, 0, bytes);
	out[0] = 0x60;
	put_be16(out + 4, (uint16_t)(bytes - 40 + len));
	out[6] = n == 0 ? proto : 43;
	out[7] = 60;
	memcpy(out + 8, remote6, 16);
	memcpy(out + 24, sid6, 16);
	if (n == 0)
		return bytes;
	srh[0] = proto;
	srh[1] = (uint8_t)(2 * n);
	srh[2] = 4;
	srh[4] = (uint8_t)(n - 1);
	for (unsigned int k = 0; k < n; k++)
		memcpy(srh + 8 + 16 * k, k + 1 < n ? last6 : sid6, 16);
	return bytes;
}

/* Return the octets of the outer headers. */
static unsigned int
outer_bytes(const struct flow *flow)
{
	switch (flow->kind) {
	case FLOW_T4:
		return fib->iface[T4]->tunnel.bytes;
	case FLOW_T6:
		return fib->iface[T6]->tunnel.bytes;
	case FLOW_VXLAN:
		return hop.t.bytes;
	default:
		return flow->n_segments == 0 ? 40 : 48 + 16u * flow->n_segments;
	}
}

static uint8_t
outer_family(const struct flow *flow)
{
	return flow->kind == FLOW_T4 || (flow->kind == FLOW_VXLAN && hop.t.family == 4) ? 4
											: 6;
}

static struct flow
flow_choose(void)
{
	struct flow flow = {.kind = (enum kind)below(N_KIND),
			    .inner = below(2) == 0 ? 4 : 6,
			    .n_segments = (uint8_t)below(3)};

	if (flow.kind == FLOW_SID && fib->sid[1].action != SRV6_END_DT46)
		flow.inner = fib->sid[1].action == SRV6_END_DT4 ? 4 : 6;
	return flow;
}

/* Write packet `i` of both routers: one of the flow, without faults. */
static void
flow_write(unsigned int i, const struct flow *flow)
{
	uint8_t *eth = fast.packet[i].buffer + HEADROOM, *ip = eth + L2_LEN;
	unsigned int bytes = outer_bytes(flow), len = 60 + below(60);

	memset(&fast.packet[i], 0, sizeof(fast.packet[i]));
	inner_write(ip + bytes, flow->inner, len, true);
	if (flow->kind == FLOW_T4 || flow->kind == FLOW_T6)
		tunnel_write(ip, &fib->iface[flow->kind == FLOW_T4 ? T4 : T6]->tunnel,
			     flow->inner, len);
	else if (flow->kind == FLOW_VXLAN)
		vxlan_write(ip, flow->inner, len);
	else
		sid_write(ip, flow, len);
	memcpy(eth, wan_mac, 6);
	memcpy(eth + 6, wan_peer, 6);
	put_be16(eth + 12, outer_family(flow) == 4 ? 0x0800 : 0x86dd);
	len += L2_LEN + bytes;
	fast.packet[i].m = (struct rte_mbuf){.buf_addr = fast.packet[i].buffer,
					     .buf_len = BUFFER,
					     .data_off = HEADROOM,
					     .data_len = (uint16_t)len,
					     .pkt_len = len,
					     .nb_segs = 1,
					     .priv_size = PACKET_PRIV_BYTES};
	rte_mbuf_refcnt_set(&fast.packet[i].m, 2);
}

/* Give the second router the same packet. */
static void
flow_copy(unsigned int i)
{
	memcpy(&slow.packet[i], &fast.packet[i], sizeof(slow.packet[i]));
	slow.packet[i].m.buf_addr = slow.packet[i].buffer;
	if (fast.packet[i].m.next != NULL)
		slow.packet[i].m.next = &tails[1];
}

static void
tag_insert(struct rte_mbuf *m)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(eth - 4, eth, 12);
	put_be16(eth + 8, 0x8100);
	put_be16(eth + 10, below(2) == 0 ? 0 : 0x2000);
	m->data_off -= 4;
	m->data_len += 4;
	m->pkt_len += 4;
}

static void
tail_add(struct rte_mbuf *m)
{
	for (unsigned int s = 0; s < 2; s++) {
		tails[s] = (struct rte_mbuf){.buf_addr = tail_room[s],
					     .buf_len = TAIL,
					     .data_len = TAIL,
					     .pkt_len = TAIL,
					     .nb_segs = 1};
		rte_mbuf_refcnt_set(&tails[s], 200);
	}
	m->next = &tails[0];
	m->nb_segs = 2;
	m->pkt_len += TAIL;
}

/* Change the length of an IP header at `ip`. */
static void
length_add(uint8_t *ip, uint8_t family, int by)
{
	unsigned int at = family == 4 ? 2 : 4;

	put_be16(ip + at, (uint16_t)(get_be16(ip + at) + by));
}

static void
ecn_set(uint8_t *ip, uint8_t family, uint8_t ecn)
{
	if (family == 4)
		ip[1] = (uint8_t)((ip[1] & ~3u) | ecn);
	else
		ip[1] = (uint8_t)((ip[1] & ~0x30u) | ecn << 4);
}

#define N_FAULTS 22

/* Change packet `i` at random. Some changes leave it a packet of its flow. */
static void
flow_change(unsigned int i, const struct flow *flow)
{
	struct rte_mbuf *m = &fast.packet[i].m;
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *), *ip = eth + L2_LEN;
	unsigned int bytes = outer_bytes(flow);
	uint8_t family = outer_family(flow), *inner = ip + bytes;
	uint8_t *udp = ip + (family == 4 ? 20 : 40);
	bool sum = family == 4;
	int by = (int)below(17) - 8;

	switch (below(N_FAULTS)) {
	case 0:
	case 1:
	case 2:
	case 3:
		eth[below(L2_LEN + bytes + 20)] ^= (uint8_t)(1u << below(8));
		sum = sum && below(4) != 0;
		break;
	case 4:
		length_add(ip, family, by);
		if (flow->kind == FLOW_VXLAN && below(2) == 0)
			length_add(udp, 6, by);
		if (below(2) == 0)
			length_add(inner, flow->inner, by);
		break;
	case 5:
		length_add(inner, flow->inner, by);
		break;
	case 6:
		ip[family == 4 ? 8 : 7] = (uint8_t)below(3);
		break;
	case 7:
		ecn_set(ip, family, (uint8_t)below(4));
		ecn_set(inner, flow->inner, (uint8_t)below(4));
		if (flow->inner == 4)
			checksum_set(inner);
		break;
	case 8:
		if (family == 4)
			put_be16(ip + 6, (uint16_t)(1u << below(16)));
		break;
	case 9:
		m->data_len += 1 + below(20);
		m->pkt_len = m->data_len;
		break;
	case 10:
		m->data_len -= 1 + below(m->data_len);
		m->pkt_len = m->data_len;
		break;
	case 11:
		if (flow->kind == FLOW_VXLAN)
			put_be16(udp + (below(2) == 0 ? 6 : 4), (uint16_t)random());
		break;
	case 12:
		udp[12 + below(3)] ^= 1;
		break;
	case 13:
		ip[family == 4 ? 12 + below(4) : 8 + below(16)] ^= 1;
		break;
	case 14:
		tail_add(m);
		break;
	case 15:
		tag_insert(m);
		return;
	case 16:
		if (family == 4)
			ip[10 + below(2)] ^= (uint8_t)(1 + below(255));
		sum = false;
		break;
	case 17: /* all that may differ within a flow */
		put_be16(ip + (family == 4 ? 4 : 2), (uint16_t)random());
		ip[family == 4 ? 8 : 7] = (uint8_t)(2 + below(200));
		if (family == 4)
			ip[6] ^= 0x40;
		if (flow->kind == FLOW_VXLAN)
			put_be16(udp, (uint16_t)random());
		break;
	case 18: /* a short inner packet, where the headers end */
		by = (int)below(60);
		m->data_len = (uint16_t)(L2_LEN + bytes + (unsigned int)by);
		m->pkt_len = m->data_len;
		put_be16(ip + (family == 4 ? 2 : 4),
			 (uint16_t)(bytes + (unsigned int)by - (family == 4 ? 0 : 40)));
		put_be16(inner + (flow->inner == 4 ? 2 : 4),
			 (uint16_t)(by - (flow->inner == 4 ? 0 : 40)));
		if (flow->kind == FLOW_VXLAN)
			length_add(udp, 6,
				   m->data_len - L2_LEN - (int)(udp - ip) -
					   get_be16(udp + 4));
		break;
	case 19: /* another version */
		inner[0] ^= (uint8_t)(0x10 << below(4));
		break;
	case 20:
		inner[below(40)] ^= (uint8_t)(1u << below(8));
		break;
	default:
		return;
	}
	if (sum)
		checksum_set(ip);
}

/* --- both routers ------------------------------------------------------------------------- */

static void
epoch_next(unsigned int by)
{
	for (unsigned int s = 0; s < 2; s++) {
		struct fwd *f = s == 0 ? &fast.fwd : &slow.fwd;

		f->outer_epoch += by;
		f->found.ifidx = 0;
		f->found_svi = NULL;
	}
}

static void
side_begin(struct side *s)
{
	memset(&s->fwd, 0, offsetof(struct fwd, tx));
	memset(&s->count, 0, sizeof(s->count));
	s->fwd.fib = fib;
	s->fwd.tries = &fib->copy[0];
	s->fwd.count = &s->count;
	s->fwd.adj_used = fib->adj_used;
}

static unsigned int
index_of(const struct side *s, const struct rte_mbuf *m)
{
	return (unsigned int)((size_t)((const uint8_t *)m - (const uint8_t *)s->packet) /
			      sizeof(s->packet[0]));
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
	for (unsigned int i = 0; i < n; i++)
		at->m[i] = &s->packet[i].m;
	burst_look(at);
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
	side_begin(&fast);
	side_begin(&slow);
	epoch_next(DECAP_SAMPLE);
}

/* Let the first router make a pattern of a flow. */
static void
learn(const struct flow *flow)
{
	flow_write(0, flow);
	both_pass(1, WAN, false);
}

/* --- random bursts ------------------------------------------------------------------------ */

static const uint64_t flag_sets[] = {0, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
				     RTE_MBUF_F_RX_IP_CKSUM_BAD,
				     RTE_MBUF_F_RX_IP_CKSUM_NONE};

static void
burst_write(const struct flow flow[2], unsigned int n, bool rx_cksum)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct flow *of = &flow[below(2)];

		flow_write(i, of);
		if (below(2) == 0)
			flow_change(i, of);
		if (rx_cksum)
			fast.packet[i].m.ol_flags = flag_sets[below(4)];
	}
}

/* Change the tables, as if another thread had done it before a quiescent state. */
static void
tables_change(void)
{
	struct fib_iface *in = fib->iface[WAN];

	switch (below(21)) {
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

		tables_make(below(2) == 0 ? RED : 0);
		flow[0] = flow_choose();
		flow[1] = flow_choose();
		both_begin();
		learn(&flow[0]);
		epoch_next(below(3) == 0 ? 1 : DECAP_SAMPLE);
		learn(&flow[1]);
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
	assert_true(n_hits > n_all / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(patterns_and_stages_agree, decap_up, down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
