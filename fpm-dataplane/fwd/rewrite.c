/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite: decrement the hop count and write the new headers: TTL (RFC 1812, 5.3.1),
 * checksum (RFC 1624), MACs, tags. The stage checks the MTU of the egress interface and of
 * the route, and cuts off the padding. Afterwards a packet is ready to be sent. A packet
 * gets a drop or punt reason before its IP header changes, so the punt thread sees the
 * packet that was received.                                                     [fwd-n]
 */
#include <stddef.h>

#include "base/inet.h"
#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/frame_header.h"
#include "fwd/headend.h"
#include "fwd/label.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"
#include "fwd/vxlan.h"
#include "port/vlan_tags.h"

/* Write the tags of `out`. Returns the first octet of the frame that leaves by it. */
static inline uint8_t *
frame_begin(struct burst *b, unsigned int i, const struct fib_iface *out)
{
	if (out->n_tags == 0)
		return burst_l2(b, i);
	b->tags_out = true;
	return vlan_push(b->m[i], out);
}

static void
packet_rewrite(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i);
	const struct fib_iface *out = fib_iface(b->fwd->fib, b->hop[i] & 0xffff);
	uint8_t *ttl = b->family[i] == 4 ? ip + 8 : ip + 7;
	unsigned int mtu, bytes = L2_LEN + b->l3_len[i];

	if (*ttl <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = fib_mtu(b->fwd->fib, b->path[i], out, b->family[i]);
	if (b->l3_len[i] > mtu) {
		burst_leave(b, i, PUNT_too_big);
		packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
		return;
	}
	if (b->family[i] == 4)
		ip4_ttl_dec(ip);
	else
		(*ttl)--;
	if (rte_pktmbuf_pkt_len(b->m[i]) > bytes)
		packet_cut(b->m[i], bytes);
	frame_write_macs(frame_begin(b, i, out), b->hop[i], out);
}

/*
 * Cut `by` octets off the start of a frame. A negative `by` extends the frame into its
 * headroom. The two lengths in the mbuf are equal and adjacent, so one store writes both.
 */
static inline void
frame_shorten(struct rte_mbuf *m, int by)
{
	uint64_t lengths;

	static_assert(offsetof(struct rte_mbuf, data_len) ==
			      offsetof(struct rte_mbuf, pkt_len) + 4,
		      "the lengths are adjacent");
	memcpy(&lengths, &m->pkt_len, sizeof(lengths));
	lengths -= (uint64_t)by * 0x100000001u;
	memcpy(&m->pkt_len, &lengths, sizeof(lengths));
	m->data_off += by;
}

/*
 * Write the headers of a fast-path packet that came or leaves with tags: the tags of `out`
 * in place of its own.
 */
static inline void
frame_write_tagged(struct tagged *t, struct rte_mbuf *m, uint8_t *l2, uint64_t hop,
		   const struct fib_iface *out)
{
	unsigned int bytes = fib_tag_bytes(out);

	if (bytes != 0) {
		frame_write_tags(t, m, l2, hop, out);
		m->port = out->ifidx; /* see tx_ifidx() */
		t->out = true;
	} else {
		frame_write_macs(l2, hop, out);
	}
	if (bytes != t->bytes)
		frame_shorten(m, (int)t->bytes - (int)bytes);
}

/*
 * Let the device insert the tag of `out`. It gets the priority of the inner tag that the
 * packet came with, which is still in the frame or in the mbuf.
 */
static inline void
packet_leave_tag(struct burst *b, unsigned int i, const struct tagged *t,
		 const struct fib_iface *out)
{
	struct rte_mbuf *m = b->m[i];
	uint32_t octets = tag_priority_octets(t, m, burst_l2(b, i));

	m->vlan_tci = (uint16_t)(out->tag[0].id | __builtin_bswap32(octets));
	m->ol_flags |= RTE_MBUF_F_TX_VLAN;
	m->port = out->ifidx; /* see tx_ifidx() */
	b->tags_out = b->inserts = true;
}

/*
 * Rewrite the fast-path packets that fit the MTU of their egress interface. Move the other
 * packets to the slow path. In a burst of both families, IPv4 packets that exceed only the
 * MTU of IPv6 move to the slow path, too. `only4`: the whole burst is fast-path IPv4.
 * `tagged`: the packets came with tags. `by_device`: some devices insert tags. `macvlans`:
 * there are macvlans, and m->port names the macvlan of a frame for the counters. The
 * compiler makes a separate loop for each combination.
 */
static inline __attribute__((always_inline)) void
burst_rewrite_fast(struct burst *b, bool only4, bool tagged, bool by_device, bool macvlans)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t fast = b->fast4 | b->fast6, odd = 0;
	struct tagged t = {.bytes = tagged ? b->tag_bytes : 0,
			   .stripped = !tagged && (b->any_flags & VLAN_STRIPPED) != 0};

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		const struct fib_iface *out;
		uint8_t *l2 = burst_l2(b, i), *ip = l2 + L2_LEN;

		if (!only4 && (fast >> i & 1) == 0)
			continue;
		out = fib_iface(fib, b->hop[i] & 0xffff);
		if (out == NULL || !out->up ||
		    b->l3_len[i] > fib_mtu(fib, b->path[i], out, only4 ? 4 : 6)) {
			odd |= 1ull << i;
			continue;
		}
		b->out_port[i] = (uint8_t)out->port;
		if (by_device && out->n_written != out->n_tags)
			packet_leave_tag(b, i, &t, out);
		if (tagged || out->n_written != 0)
			frame_write_tagged(&t, b->m[i], l2, b->hop[i], out);
		else
			frame_write_macs(l2, b->hop[i], out);
		if (macvlans && out->ifidx >= PORT_MAX) {
			b->m[i]->port = out->ifidx; /* see tx_ifidx() */
			t.out = true;
		}
		memcpy(ip + burst_hop_at(only4 ? 4 : b->family[i]), &b->hop_octets[i], 4);
	}
	b->tags_out |= t.out;
	burst_to_slow(b, odd);
}

/* Cut off the padding of Ethernet, which is not part of the packet (RFC 894). */
static __attribute__((noinline)) void
burst_trim_padded(struct burst *b)
{
	for (uint64_t rest = b->padded & (b->fast4 | b->fast6); rest != 0; rest &= rest - 1)
		frame_trim(b, (unsigned int)__builtin_ctzll(rest));
}

/* Rewrite the fast-path packets that get no labels. */
static void
burst_rewrite_plain(struct burst *b)
{
	uint8_t special;

	if ((fwd_uses_avx512() && fwd_rewrite_avx512(b)) ||
	    (fwd_uses_avx2() && fwd_rewrite_avx2(b))) {
		if (b->padded != 0)
			burst_trim_padded(b);
		return;
	}
	/*
	 * Relaxed is enough: neigh sets the bit of a kind of interface before it stores the
	 * first hop to an interface of this kind, and this thread has read the hops with
	 * acquire.
	 */
	special = atomic_load_explicit(&b->fwd->fib->out_special, memory_order_relaxed);
	if ((special & FIB_OUT_MACVLAN) != 0)
		burst_rewrite_fast(b, false, b->tag_bytes != 0, true, true);
	else if (special != 0)
		burst_rewrite_fast(b, false, b->tag_bytes != 0, true, false);
	else if (b->tag_bytes != 0 && b->fast4 == burst_all(b))
		burst_rewrite_fast(b, true, true, false, false);
	else if (b->tag_bytes != 0)
		burst_rewrite_fast(b, false, true, false, false);
	else if (b->fast4 == burst_all(b))
		burst_rewrite_fast(b, true, false, false, false);
	else
		burst_rewrite_fast(b, false, false, false, false);
	if (b->padded != 0)
		burst_trim_padded(b);
}

/* Rewrite fast-path packets of which some get labels, or go into tunnels. */
static __attribute__((noinline)) void
burst_rewrite_mixed(struct burst *b)
{
	uint64_t mixed = b->push | b->into;
	uint64_t four = b->fast4 & mixed, six = b->fast6 & mixed;

	b->fast4 &= ~four;
	b->fast6 &= ~six;
	if ((b->fast4 | b->fast6) != 0)
		burst_rewrite_plain(b);
	b->fast4 |= four;
	b->fast6 |= six;
	if (b->push != 0)
		burst_to_slow(b, fwd_label_fast_rewrite(b, b->push));
	if (b->into != 0)
		burst_to_slow(b, fwd_tunnel_fast_rewrite(b, b->into));
}

void
fwd_rewrite_fast(struct burst *b)
{
	b->tags_out = b->inserts = b->vlan_a_port = false;
	if (__builtin_expect(b->inside, 0))
		fwd_tunnel_fast_cut(b);
	if (__builtin_expect((b->push | b->into) != 0, 0))
		burst_rewrite_mixed(b);
	else if ((b->fast4 | b->fast6) != 0)
		burst_rewrite_plain(b);
}

/* Rewrite the usual packets with a label. Leave the unusual packets to label.c. */
static void
burst_rewrite_switched(struct burst *b)
{
	uint64_t odd = fwd_label_fast_rewrite(b, b->switched);

	b->switched &= ~odd;
	for (; odd != 0; odd &= odd - 1)
		fwd_label_keep_path(b, (unsigned int)__builtin_ctzll(odd));
}

static void
label_rewrite(struct burst *b, unsigned int i)
{
	if (burst_leaves_by_tunnel(b, i))
		fwd_label_enter(b, i);
	else
		fwd_label_rewrite(b, i);
}

void
fwd_rewrite(struct burst *b)
{
	fwd_rewrite_fast(b);
	if (b->switched != 0)
		burst_rewrite_switched(b);
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6 | b->switched); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] != VERDICT_GO)
			continue;
		if (__builtin_expect(b->inside, 0) && !burst_labels_inside(b))
			fwd_tunnel_cut(b, i);
		if (path_is_headend(b->fwd->fib, b->path[i]))
			fwd_headend_rewrite(b, i);
		else if (burst_has_labels(b, i) || path_kind(b->path[i]) == PATH_ENCAP)
			label_rewrite(b, i);
		else if (burst_leaves_by_tunnel(b, i) && path_kind(b->path[i]) == PATH_ADJ)
			fwd_vxlan_rewrite(b, i);
		else if (burst_leaves_by_tunnel(b, i))
			fwd_tunnel_rewrite(b, i);
		else
			packet_rewrite(b, i);
	}
}
