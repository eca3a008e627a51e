/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_fast: the stages of tunnel.c for the usual packets. Any other packet is left
 * unchanged to tunnel.c, which alone judges it. test_fwd_tunnel_fast compares the
 * two.                                                                          [fwd-n]
 */
#include "base/inet.h"
#include "fwd/fast.h"
#include "fwd/frame_header.h"
#include "fwd/outer_fast.h"
#include "fwd/sid.h"
#include "fwd/tunnel.h"
#include "port/vlan_tags.h"

/* --- out of a tunnel ------------------------------------------------------------------ */

/* Return the offset at which a frame of the inner packet would begin. */
static unsigned int
inside_at(const struct burst *b, unsigned int i)
{
	return (unsigned int)(burst_l2(b, i) - burst_frame(b, i));
}

void
fwd_tunnel_fast_parse(struct burst *b)
{
	unsigned int at = inside_at(b, 0);
	struct fwd_payload kind = {
		.at = at + L2_LEN, .four = b->in->fast4, .six = b->in->fast6};
	struct fwd_families pass;
	uint64_t of = 0;

	b->fast4 = b->fast6 = b->padded = 0;
	if (burst_has_sid_path(b)) /* an end point has chosen their path */
		return;
	for (unsigned int i = 0; i < b->n; i++)
		of |= (uint64_t)(inside_at(b, i) == at) << i;
	pass = fwd_fast_payloads(b, of, kind);
	b->fast4 = pass.four;
	b->fast6 = pass.six;
	if (b->in->unnumbered4)
		fwd_fast_except_dhcp(b);
}

void
fwd_tunnel_fast_cut(struct burst *b)
{
	for (uint64_t rest = b->fast4 | b->fast6; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint16_t by = (uint16_t)inside_at(b, i);
		struct rte_mbuf *m = b->m[i];

		if (b->goes_on) {
			fwd_tunnel_cut(b, i);
			continue;
		}
		m->data_off = (uint16_t)(m->data_off + by);
		m->data_len = (uint16_t)(m->data_len - by);
		m->pkt_len = m->data_len;
		m->ol_flags &= ~PACKET_FLAGS_OF_OUTER;
		put_be16(burst_l2(b, i) + L2_LEN - 2, b->family[i] == 4 ? 0x0800 : 0x86dd);
	}
}

/* --- into a tunnel -------------------------------------------------------------------- */

/* Return the neighbor's MAC address and interface; 0: the packet is not a usual one. */
static inline uint64_t
outer_hop(const struct burst *b, const struct fwd_outer *w)
{
	uint32_t adj = path_index(w->outer.path);

	return !w->plain ? 0
			 : atomic_load_explicit(&b->fwd->fib->adj[adj].hop,
						memory_order_acquire);
}

static inline bool
packet_enters(struct burst *b, unsigned int i, const struct fib_iface *tunnel)
{
	const struct fwd_outer *w = fwd_outer_into(b, i, tunnel->ifidx);

	return outer_hop(b, w) != 0 && b->l3_len[i] <= w->mtu &&
	       b->l3_len[i] <= fib_mtu(b->fwd->fib, b->path[i], tunnel, b->family[i]) &&
	       (b->family[i] == 4 || !tunnel->ipv6_off) &&
	       tunnel_takes(&tunnel->tunnel, burst_l3(b, i), b->family[i]) &&
	       rte_pktmbuf_headroom(b->m[i]) >= w->outer.bytes + VLAN_TAGS * VLAN_BYTES &&
	       fib_adj_touch(b->fwd->adj_used, path_index(w->outer.path));
}

uint64_t
fwd_tunnel_fast_adjacency(struct burst *b, uint64_t odd)
{
	uint64_t into = 0;

	for (; odd != 0; odd &= odd - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(odd);
		const struct fib_iface *tunnel = path_tunnel(b->fwd->fib, b->path[i]);

		if (tunnel == NULL || !packet_enters(b, i, tunnel))
			continue;
		b->hop[i] = tunnel->ifidx; /* see burst_leaves_by_tunnel() */
		into |= odd & -odd;
	}
	return into;
}

/*
 * Begin the frame of an outer packet at `eth`, with its MAC addresses. `end`: the end of
 * the packet.
 */
static inline void
frame_begin(struct burst *b, unsigned int i, uint8_t *eth, const uint8_t *end,
	    uint16_t type, uint64_t hop, const struct fib_iface *out)
{
	struct rte_mbuf *m = b->m[i];

	m->data_off = (uint16_t)(eth - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)(end - eth);
	m->pkt_len = m->data_len;
	put_be16(eth + L2_LEN - 2, type);
	frame_write_macs(eth, hop, out);
	b->l2[i] = eth;
	b->hop[i] = hop;
	b->out_port[i] = (uint8_t)out->port;
}

/*
 * Write one packet into one tunnel over IPv4, which is in no other tunnel. `hop`: the MAC
 * and interface of the outer packet's neighbor, as in an adjacency.
 */
static __attribute__((noinline)) void
packet_put4(struct burst *b, unsigned int i, const struct fwd_outer *w, uint64_t hop)
{
	const struct fib_iface *tunnel = w->outer.tunnel[0];
	const struct fib_tunnel *t = &tunnel->tunnel;
	struct if_counters *c = &b->fwd->count->port[tunnel->ifidx];
	uint8_t *ip = burst_l3(b, i), family = b->family[i];
	unsigned int len = b->l3_len[i];

	counter_add(&c->tx_packets, 1);
	counter_add(&c->tx_bytes, len);
	memcpy(ip + burst_hop_at(family), &b->hop_octets[i], 4);
	tunnel_put4(t, ip, family, len, b->fwd->ip_id++, tunnel_sets_df(t, ip, family));
	frame_begin(b, i, ip - t->bytes - L2_LEN, ip + len, 0x0800, hop, w->out);
}

/* Write one packet into any tunnel. */
static __attribute__((noinline)) void
packet_put(struct burst *b, unsigned int i, const struct fwd_outer *w, uint64_t hop)
{
	uint8_t *ip = burst_l3(b, i), family = b->family[i];
	unsigned int len = b->l3_len[i];
	const uint8_t *end = ip + len;

	memcpy(ip + burst_hop_at(family), &b->hop_octets[i], 4);
	tunnel_count_sent(b->fwd, &w->outer, len);
	ip = tunnel_put_all(b->fwd->fib, &w->outer, ip, &family, &len, b->fwd->ip_id++);
	frame_begin(b, i, ip - L2_LEN, end, family == 4 ? 0x0800 : 0x86dd, hop, w->out);
}

uint64_t
fwd_tunnel_fast_rewrite(struct burst *b, uint64_t which)
{
	uint64_t odd = 0, others = 0;

	for (; which != 0; which &= which - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(which);
		const struct fwd_outer *w;
		uint64_t hop;

		if (path_kind(b->path[i]) != PATH_ONLINK) {
			others |= which & -which;
			continue;
		}
		w = fwd_outer_into(b, i, (uint16_t)b->hop[i]);
		hop = outer_hop(b, w);
		if (hop == 0) /* the neighbor is no longer resolved */
			odd |= which & -which;
		else if (w->outer.n == 1 && w->outer.family == 4)
			packet_put4(b, i, w, hop);
		else
			packet_put(b, i, w, hop);
	}
	return others == 0 ? odd : odd | fwd_outer_fast_rewrite(b, others);
}
