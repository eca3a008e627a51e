/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spend the hop and write the new header: TTL (RFC 1812 5.3.1), checksum (RFC 1624),
 * MTU of egress and route, padding cut off, MACs. After this stage a packet only waits to be sent.
 * A packet that leaves before is untouched: the punt thread sees what came.     [fwd-n]
 */
#include <smmintrin.h>
#include <stddef.h>

#include "base/inet.h"
#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/vlan.h"
#include "port/vlan.h"

static_assert(offsetof(struct fib_iface, mac) == 6 && offsetof(struct fib_iface, tag) == 12,
	      "where a frame has them");

/* The MAC of `hop` in front of `rest`, which has all but the first six octets of a frame. */
static inline __m128i
frame_with_mac(uint64_t hop, __m128i rest)
{
	const __m128i octets =
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);

	return _mm_blend_epi16(
		rest, _mm_shuffle_epi8(_mm_cvtsi64_si128((int64_t)hop), octets), 7);
}

/* Both MAC addresses with two stores: `hop` has theirs, `out` ours. */
static inline void
frame_write_macs(uint8_t *eth, uint64_t hop, const struct fib_iface *out)
{
	__m128i rest = _mm_loadu_si128((const void *)out);

	_mm_storel_epi64((void *)eth, frame_with_mac(hop, rest));
	memcpy(eth + 8, out->mac + 2, 4);
}

/* First octet of the frame that leaves by `out`, tags written. */
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
	mtu = fib_mtu(b->fwd->fib, b->path[i], out);
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

static_assert(sizeof(struct fib_tag) == VLAN_BYTES && offsetof(struct fib_tag, type) == 0,
	      "two halves, in the order of a frame");

/* Tags of a burst's plain packets. */
struct tagged {
	unsigned int bytes; /* that they still have */
	bool stripped;      /* of some the buffer has those that they came with */
	bool out;           /* some got others */
};

/*
 * The priority of the outer or the inner tag that a packet came with (of one: its own), where a
 * frame has its first tag.
 */
static inline __attribute__((always_inline)) __m128i
tag_priority(const struct tagged *t, const struct rte_mbuf *m, const uint8_t *l2,
	     bool outer)
{
	const __m128i bits = _mm_setr_epi32(0, 0, 0, (int)__builtin_bswap32(VLAN_PRIORITY));
	unsigned int stripped = t->stripped ? vlan_stripped(m) : 0;
	__m128i x = _mm_setzero_si128();

	if (t->bytes != 0)
		x = _mm_loadu_si128((const void *)(l2 - (outer ? t->bytes : VLAN_BYTES)));
	else if (stripped != 0)
		x = _mm_insert_epi32(
			x,
			(int)__builtin_bswap32(outer ? vlan_outer_tci(m, stripped)
						     : m->vlan_tci),
			3);
	return _mm_and_si128(x, bits);
}

/* MAC addresses and the one or two tags of `out`, before the EtherType at `l2` + VLAN_AT. */
static inline void
frame_write_tags(const struct tagged *t, const struct rte_mbuf *m, uint8_t *l2,
		 uint64_t hop, const struct fib_iface *out)
{
	/* Tags are host order, each half. */
	const __m128i first =
		_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 12, 15, 14);
	const __m128i second = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
					     13, 12, 15, 14);
	__m128i inner = tag_priority(t, m, l2, false), outer = inner, x, y;
	int tag;

	x = _mm_shuffle_epi8(_mm_loadu_si128((const void *)out), first);
	if (out->n_written == 2) {
		outer = tag_priority(t, m, l2, true);
		y = _mm_loadu_si128((const void *)((const uint8_t *)out + VLAN_BYTES));
		tag = _mm_extract_epi32(_mm_or_si128(_mm_shuffle_epi8(y, second), inner),
					3);
		memcpy(l2 + VLAN_AT - VLAN_BYTES, &tag, sizeof(tag));
	}
	_mm_storeu_si128((void *)(l2 - fib_tag_bytes(out)),
			 _mm_or_si128(frame_with_mac(hop, x), outer));
}

/*
 * A frame that is this much shorter, or longer by less than its headroom; both of its lengths
 * are the same, and are one store.
 */
static inline void
frame_shorten(struct rte_mbuf *m, int by)
{
	uint64_t lengths;

	static_assert(offsetof(struct rte_mbuf, data_len) ==
			      offsetof(struct rte_mbuf, pkt_len) + 4,
		      "lengths side by side");
	memcpy(&lengths, &m->pkt_len, sizeof(lengths));
	lengths -= (uint64_t)by * 0x100000001u;
	memcpy(&m->pkt_len, &lengths, sizeof(lengths));
	m->data_off += by;
}

/* A plain packet that came or leaves with tags: those of `out` in place of its own. */
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
 * The tag of `out` is put in by its device, which is told; the priority is that of the inner tag
 * that the packet came with, and still has.
 */
static inline void
packet_leave_tag(struct burst *b, unsigned int i, const struct tagged *t,
		 const struct fib_iface *out)
{
	struct rte_mbuf *m = b->m[i];
	int octets = _mm_extract_epi32(tag_priority(t, m, burst_l2(b, i), false), 3);

	m->vlan_tci = (uint16_t)(out->tag[0].id | __builtin_bswap32((uint32_t)octets));
	m->ol_flags |= RTE_MBUF_F_TX_VLAN;
	m->port = out->ifidx; /* see tx_ifidx() */
	b->tags_out = b->inserts = true;
}

/*
 * Plain packets that fit their way out; the others are plain no more. `only4`: all of the burst
 * are plain IPv4, `tagged`: they came with tags, `by_device`: some device puts tags in; the compiler
 * makes a loop of its own of each.
 */
static inline __attribute__((always_inline)) void
burst_rewrite_fast(struct burst *b, bool only4, bool tagged, bool by_device)
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
		    b->l3_len[i] > fib_mtu(fib, b->path[i], out)) {
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
		memcpy(ip + burst_hop_at(only4 ? 4 : b->family[i]), &b->hop_octets[i], 4);
	}
	b->tags_out |= t.out;
	burst_to_slow(b, odd);
}

/* What Ethernet padded plain packets with is not theirs (RFC 894). */
static __attribute__((noinline)) void
burst_trim_padded(struct burst *b)
{
	for (uint64_t rest = b->padded & (b->fast4 | b->fast6); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint8_t *end = burst_l2(b, i) + L2_LEN + b->l3_len[i];
		struct rte_mbuf *m = b->m[i];

		m->data_len = (uint16_t)(end - rte_pktmbuf_mtod(m, uint8_t *));
		m->pkt_len = m->data_len;
	}
}

void
fwd_rewrite_fast(struct burst *b)
{
	b->tags_out = b->inserts = b->vlan_a_port = false;
	/* True before the first hop that leads to such an interface, and hops have been read. */
	if (fwd_uses_avx512() && fwd_rewrite_avx512(b)) /* it is done */
		;
	else if (atomic_load_explicit(&b->fwd->fib->tags_by_device, memory_order_relaxed))
		burst_rewrite_fast(b, false, b->tag_bytes != 0, true);
	else if (b->tag_bytes != 0 && b->fast4 == burst_all(b))
		burst_rewrite_fast(b, true, true, false);
	else if (b->tag_bytes != 0)
		burst_rewrite_fast(b, false, true, false);
	else if (b->fast4 == burst_all(b))
		burst_rewrite_fast(b, true, false, false);
	else
		burst_rewrite_fast(b, false, false, false);
	if (b->padded != 0)
		burst_trim_padded(b);
}

void
fwd_rewrite(struct burst *b)
{
	fwd_rewrite_fast(b);
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] == VERDICT_GO)
			packet_rewrite(b, i);
	}
}
