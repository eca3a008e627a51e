/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables with a tunnel of each kind, an interface over VXLAN and a SID, and flows of
 * packets that they decapsulate. The packets have random faults. Both routers of
 * fwd_sides.h get them.
 */
#ifndef DECAP_FLOWS_H
#define DECAP_FLOWS_H

#include <linux/rtnetlink.h>

#include "vxlan_bed.h"

#include "fib/sid_entry.h"
#include "fib/sid_number.h"

#include "fwd_sides.h"

#define RED    5 /* a VRF */
#define NUMBER 3 /* number of the SID in table main; NUMBER + 1: in RED */
#define TAIL   40

static const uint8_t sid6[16] = {0xfc, 0, 0, 0, 0, 1, [15] = 9};
static const uint8_t last6[16] = {0xfc, 0, 0, 0, 0, 3, [15] = 9};

/* The packets of a flow come from one far end and have the same outer headers. */
enum kind { FLOW_T4, FLOW_T6, FLOW_VXLAN, FLOW_SID, N_KIND };
struct flow {
	enum kind kind;
	uint8_t inner;      /* family */
	uint8_t n_segments; /* in the routing header; 0: no routing header */
};

static struct rte_mbuf tails[2];
static uint8_t tail_room[2][TAIL];

/* --- tables --------------------------------------------------------------------------- */

static inline void
number_give(uint32_t number, uint32_t table)
{
	struct fib_sid_numbers *t = fib->sid_numbers;
	struct fib_sid_number *of = &t->of[number];

	memcpy(of->addr.octet, sid6, 16);
	of->table = table;
	of->len = 128;
	of->next = 0;
	t->first[sid_bucket(fib->seed, table, &of->addr, 128)] = number;
	t->n_not_main += table != RT_TABLE_MAIN;
	t->lens[1] |= 1ull << 63;
}

static inline int
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
	number_give(NUMBER, RT_TABLE_MAIN);
	return 0;
}

/* Publish the interface over VXLAN in the table of received packets. */
static inline void
vxlans_make(uint16_t vrf)
{
	memset(fib->vxlans->entry, 0, 16 * sizeof(uint16_t));
	fib->iface[SVI]->vxlan.vrf = vrf;
	fib->vxlans->one_end = 0;
	fib->vxlans->entry[fib_vxlan_hash(fib, vrf, PORT, VNI) & 15] = SVI;
}

/*
 * Make one tunnel of each kind and a SID. The outer packets of the tunnels arrive in `vrf`.
 */
static inline void
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

/* --- packets -------------------------------------------------------------------------- */

static inline unsigned int
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

static inline unsigned int
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

static inline unsigned int
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
static inline unsigned int
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

static inline uint8_t
outer_family(const struct flow *flow)
{
	return flow->kind == FLOW_T4 || (flow->kind == FLOW_VXLAN && hop.t.family == 4) ? 4
											: 6;
}

static inline struct flow
flow_choose(void)
{
	struct flow flow = {.kind = (enum kind)below(N_KIND),
			    .inner = below(2) == 0 ? 4 : 6,
			    .n_segments = (uint8_t)below(3)};

	if (flow.kind == FLOW_SID && fib->sid[1].action != SRV6_END_DT46)
		flow.inner = fib->sid[1].action == SRV6_END_DT4 ? 4 : 6;
	return flow;
}

/* Write a packet of the flow, without faults, as packet `i` of both routers. */
static inline void
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
static inline void
flow_copy(unsigned int i)
{
	memcpy(&slow.packet[i], &fast.packet[i], sizeof(slow.packet[i]));
	slow.packet[i].m.buf_addr = slow.packet[i].buffer;
	if (fast.packet[i].m.next != NULL)
		slow.packet[i].m.next = &tails[1];
}

static inline void
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

static inline void
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
static inline void
length_add(uint8_t *ip, uint8_t family, int by)
{
	unsigned int at = family == 4 ? 2 : 4;

	put_be16(ip + at, (uint16_t)(get_be16(ip + at) + by));
}

static inline void
ecn_set(uint8_t *ip, uint8_t family, uint8_t ecn)
{
	if (family == 4)
		ip[1] = (uint8_t)((ip[1] & ~3u) | ecn);
	else
		ip[1] = (uint8_t)((ip[1] & ~0x30u) | ecn << 4);
}

#define N_FAULTS 22

/* Change packet `i` at random. Some changes keep the packet in its flow. */
static inline void
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
	case 18: /* an inner packet of 0 to 59 octets: it may end within its headers */
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

#endif
