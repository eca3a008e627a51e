/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_lanes: the code of fast.c for a group of packets at once, in vectors of 32-bit
 * lanes, one lane per packet. It is written with the vector extensions of gcc and clang. A
 * file that includes it compiles it for a kind of CPU (fast_avx2.c, fast_sse4.c,
 * fast_neon.c). That file defines LANES, 8 or 4: as many as a register of the CPU has,
 * because gcc splits the shuffles of wider vectors into single lanes. If the CPU has
 * instructions for lanes_bits(), the file defines them as LANES_MOVEMASK. As in
 * fast_avx512.c, 32 octets of each header, from the third octet on, are transposed into
 * eight vectors, one per word.
 *
 * A comparison of lanes gives all ones or 0 in each lane. The result is that of fast.c.
 *
 * Tried without gain, on Zen 1, in cycles per packet of the stage parse:
 * - constants that are made once before the loop instead of in each group, from general
 *   registers: 15.1 instead of 13.1 (IPv4), 11.7 instead of 10.5 (IPv6). They do not fit the
 *   registers, and a load of 32 octets is two operations there;
 * - the destinations of IPv6 checked as OR and AND of octets in general registers: 10.8
 *   instead of 10.3.
 *                                                                               [fwd-n]
 */
#ifndef FWD_FAST_LANES_H
#define FWD_FAST_LANES_H

#include <string.h>

#include "base/mpls_entry.h"
#include "fwd/fast.h"

#define LANES_ALL ((1u << LANES) - 1)
/* The name of a function of fast.h for this number of lanes. */
#if LANES == 8
#define LANES_FUNCTION(name) name##_lanes8
#else
#define LANES_FUNCTION(name) name##_lanes4
#endif
/* The least number of packets with which a group is faster than fwd_fast_one(). */
#define TAIL_MIN    (LANES / 2 + 1)
#define LANE_INLINE static inline __attribute__((always_inline))

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_signed __attribute__((vector_size(4 * LANES)));
typedef uint64_t halves __attribute__((vector_size(4 * LANES)));
typedef uint8_t lane_octets __attribute__((vector_size(4 * LANES)));
typedef uint32_t quarter __attribute__((vector_size(16)));
typedef uint16_t lanes16 __attribute__((vector_size(2 * LANES)));
typedef uint8_t lanes8 __attribute__((vector_size(LANES)));

/*
 * Words of the headers of a group, little-endian as loaded: [0] octets 2 to 5, ... [7] 30
 * to 33.
 */
struct lane_words {
	lanes w[8];
};

LANE_INLINE lanes
lanes_of(uint32_t x)
{
	return (lanes){} + x;
}

/* Return true in the lanes with `x` < `y`; both are below 2^31. */
LANE_INLINE lanes
lanes_below(lanes x, lanes y)
{
	return (lanes)((lanes_signed)x < (lanes_signed)y);
}

/* Swap the octets of each lane. The compilers know an instruction for it. */
LANE_INLINE lanes
lanes_swap32(lanes x)
{
	lane_octets o = (lane_octets)x;

#if LANES == 8
	return (lanes)__builtin_shufflevector(o, o, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
					      15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21,
					      20, 27, 26, 25, 24, 31, 30, 29, 28);
#else
	return (lanes)__builtin_shufflevector(o, o, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
					      15, 14, 13, 12);
#endif
}

/* Return a bit for each lane that is all ones. */
LANE_INLINE unsigned int
lanes_bits(lanes x)
{
#ifdef LANES_MOVEMASK
	return LANES_MOVEMASK(x);
#else
	unsigned int bits = 0;

	for (unsigned int i = 0; i < LANES; i++)
		bits |= x[i] & 1u << i;
	return bits;
#endif
}

/*
 * Return the lower halves of the lanes. Without an instruction for it, gcc handles lane by
 * lane.
 */
LANE_INLINE lanes16
lanes_to_16(lanes x)
{
#ifdef LANES_TO_16
	return (lanes16)LANES_TO_16(x & 0xffff);
#else
	return __builtin_convertvector(x, lanes16);
#endif
}

/* Return the lanes, which are below 256, as octets. */
LANE_INLINE lanes8
lanes_to_8(lanes x)
{
#ifdef LANES_TO_8
	return (lanes8)LANES_TO_8(x);
#else
	return __builtin_convertvector(x, lanes8);
#endif
}

#if LANES == 8
/* Load 16 octets of two headers. */
LANE_INLINE lanes
headers_load_two(const uint8_t *a, const uint8_t *b)
{
	quarter lo, hi;

	memcpy(&lo, a, sizeof(lo));
	memcpy(&hi, b, sizeof(hi));
	return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Transpose four words, from octet `from` on, of the headers. Lane k is packet k. */
LANE_INLINE void
words_load_four(lanes *w, uint8_t *const *p, unsigned int from)
{
	lanes r[4], t[4];

	for (unsigned int j = 0; j < 4; j++)
		r[j] = headers_load_two(p[j] + from, p[j + 4] + from);
	for (unsigned int j = 0; j < 2; j++) {
		t[j] = __builtin_shufflevector(r[2 * j], r[2 * j + 1], 0, 8, 1, 9, 4, 12, 5,
					       13);
		t[j + 2] = __builtin_shufflevector(r[2 * j], r[2 * j + 1], 2, 10, 3, 11, 6,
						   14, 7, 15);
	}
	for (unsigned int j = 0; j < 2; j++) {
		halves a = (halves)t[2 * j], b = (halves)t[2 * j + 1];

		w[2 * j] = (lanes)__builtin_shufflevector(a, b, 0, 4, 2, 6);
		w[2 * j + 1] = (lanes)__builtin_shufflevector(a, b, 1, 5, 3, 7);
	}
}

/* Load pkt_len and data_len of the buffers. */
LANE_INLINE void
mbufs_lengths(struct rte_mbuf *const *m, lanes *pkt_len, lanes *data_len)
{
	/* In this order, no shuffle crosses the halves of a register. */
	lanes lo = (lanes)(halves){mbuf_lengths(m[0]), mbuf_lengths(m[1]),
				   mbuf_lengths(m[4]), mbuf_lengths(m[5])};
	lanes hi = (lanes)(halves){mbuf_lengths(m[2]), mbuf_lengths(m[3]),
				   mbuf_lengths(m[6]), mbuf_lengths(m[7])};

	*pkt_len = __builtin_shufflevector(lo, hi, 0, 2, 8, 10, 4, 6, 12, 14);
	*data_len = __builtin_shufflevector(lo, hi, 1, 3, 9, 11, 5, 7, 13, 15) & 0xffff;
}
#else
/* Transpose four words, from octet `from` on, of the headers. Lane k is packet k. */
LANE_INLINE void
words_load_four(lanes *w, uint8_t *const *p, unsigned int from)
{
	lanes r[4], t[4];

	for (unsigned int j = 0; j < 4; j++)
		memcpy(&r[j], p[j] + from, sizeof(r[j]));
	for (unsigned int j = 0; j < 2; j++) {
		t[j] = __builtin_shufflevector(r[2 * j], r[2 * j + 1], 0, 4, 1, 5);
		t[j + 2] = __builtin_shufflevector(r[2 * j], r[2 * j + 1], 2, 6, 3, 7);
	}
	for (unsigned int j = 0; j < 2; j++) {
		halves a = (halves)t[2 * j], b = (halves)t[2 * j + 1];

		w[2 * j] = (lanes)__builtin_shufflevector(a, b, 0, 2);
		w[2 * j + 1] = (lanes)__builtin_shufflevector(a, b, 1, 3);
	}
}

/* Load pkt_len and data_len of the buffers. */
LANE_INLINE void
mbufs_lengths(struct rte_mbuf *const *m, lanes *pkt_len, lanes *data_len)
{
	lanes lo = (lanes)(halves){mbuf_lengths(m[0]), mbuf_lengths(m[1])};
	lanes hi = (lanes)(halves){mbuf_lengths(m[2]), mbuf_lengths(m[3])};

	*pkt_len = __builtin_shufflevector(lo, hi, 0, 2, 4, 6);
	*data_len = __builtin_shufflevector(lo, hi, 1, 3, 5, 7) & 0xffff;
}
#endif

/* addr4_passes() of fast.c. */
LANE_INLINE lanes
addrs4_pass(lanes addr)
{
	lanes top = addr >> 24;

	return lanes_below(lanes_of(0), top) & lanes_below(top, lanes_of(224)) &
	       (lanes)(top != 127) & (lanes)(addr >> 16 != 0xa9fe);
}

/* Return the lanes whose one's complement sum of ten 16-bit words is all ones. */
LANE_INLINE lanes
words_checksum_ok(const struct lane_words *x)
{
	lanes s = lanes_of(0);

	for (unsigned int c = 3; c < 8; c++)
		s += (x->w[c] & 0xffff) + (x->w[c] >> 16);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (lanes)(s == 0xffff);
}

/* The entries of a burst that group_fast() checks. */
struct group {
	unsigned int from, n; /* `n` entries, at most LANES, from `from` on */
	/* LANES pointers: those of the entries, and the last one again. */
	struct rte_mbuf *const *m;
	uint8_t *const *l2;
};

/* The kind of packets that group_fast() checks. */
struct group_kind {
	bool four, six; /* families that may be on the fast path */
	bool payload; /* see struct fwd_payload; the EtherType says nothing about the packet */
	bool uniform; /* payload: the TTL of the label counts if it is lower */
};

/*
 * Return a bit mask of the packets with a right checksum. Use the result of the port if
 * there is one, else compute the sum. The port has no results for payloads.
 */
LANE_INLINE unsigned int
group_checksums_ok(const struct burst *b, const struct group *g, const struct lane_words *x,
		   struct group_kind kind)
{
	unsigned int ok;

	if (!kind.payload && b->rx_cksum && burst_cksums_good(b))
		return LANES_ALL;
	ok = lanes_bits(words_checksum_ok(x));
	if (kind.payload || !b->rx_cksum ||
	    (b->any_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == 0)
		return ok; /* the port verifies none, or none of these */
	for (unsigned int j = 0; j < g->n; j++) {
		uint64_t said = burst_cksum(b, g->from + j);

		if (said == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
			ok |= 1u << j;
		else if (said == RTE_MBUF_F_RX_IP_CKSUM_BAD)
			ok &= ~(1u << j);
	}
	return ok;
}

/* ip4_hop_spent() of a group: TTL minus `by`, checksum by RFC 1624. */
LANE_INLINE lanes
words_hop_spent(const struct lane_words *x, lanes by)
{
	lanes sum = (x->w[5] >> 16) + by;

	/* A true comparison is -1. */
	sum -= lanes_below(lanes_of(0xfffe), sum);
	return ((x->w[5] - by) & 0xffff) | sum << 16;
}

/*
 * Return the number by which the hop count falls. `own` is the hop count of the IP packets.
 */
LANE_INLINE lanes
hops_spent(const struct lane_words *x, lanes own, struct group_kind kind)
{
	lanes less = own - (x->w[2] >> 24), one = lanes_of(1);

	return kind.payload && kind.uniform
		       ? one + (less & ~((lanes)((lanes_signed)less < 0)))
		       : one;
}

/* len_fits_room() of fast.c. `room` is the room of the frames. */
LANE_INLINE lanes
lens_fit_room(lanes len, lanes room)
{
	lanes small = lanes_below(room, lanes_of(FAST_PADDED_MAX + 1));
	lanes least = (room & ~small) | (small & 20);

	return ~lanes_below(room, len) & ~lanes_below(len, least);
}

/*
 * Return a bit mask of the packets of `k` with fast-path IPv4. Sets their dst4, their src4
 * if sources are checked, and their lanes of *len and *hop.
 */
LANE_INLINE unsigned int
group_fast4(struct burst *b, const struct group *g, const struct lane_words *x, lanes k,
	    lanes room, struct group_kind kind, lanes *len, lanes *hop)
{
	lanes src, dst, mine;
	unsigned int bits;

	/* Octets 12 and 13 are the EtherType, octet 14 version and header length. */
	if (!kind.payload)
		k &= (lanes)(x->w[2] >> 16 == 0x0008);
	if (lanes_bits(k) == 0)
		return 0;
	mine = lanes_swap32(x->w[3]) & 0xffff;
	src = lanes_swap32(x->w[6]);
	dst = lanes_swap32(x->w[7]);
	k &= (lanes)((x->w[3] & 0xff) == 0x45) & lens_fit_room(mine, room) &
	     lanes_below(lanes_of(1), x->w[5] & 0xff) & addrs4_pass(src) & addrs4_pass(dst);
	bits = lanes_bits(k) & group_checksums_ok(b, g, x, kind);
	memcpy(&b->dst4[g->from], &dst, sizeof(dst));
	if (iface_checks_sources(b->in))
		memcpy(&b->src4[g->from], &src, sizeof(src));
	*hop = words_hop_spent(x, hops_spent(x, x->w[5] & 0xff, kind));
	*len = (*len & ~k) | (mine & k);
	return bits;
}

/* addr6_passes() of fast.c, by the first octet of the address in memory. */
LANE_INLINE lanes
addrs6_pass(lanes addr)
{
	return (lanes)((addr & 0xe0) == 0x20) | (lanes)((addr & 0xfe) == 0xfc);
}

/*
 * Return a bit mask of the packets of `k` with fast-path IPv6. Sets their lanes of *len and
 * *hop.
 */
LANE_INLINE unsigned int
group_fast6(const struct group *g, const struct lane_words *x, lanes k, lanes room,
	    struct group_kind kind, lanes *len, lanes *hop)
{
	lanes mine, dst;

	if (!kind.payload)
		k &= (lanes)(x->w[2] >> 16 == 0xdd86);
	if (lanes_bits(k) == 0)
		return 0;
	mine = (lanes_swap32(x->w[4]) >> 16) + 40;
	/* The destination is beyond the words. */
	for (unsigned int j = 0; j < LANES; j++)
		dst[j] = g->l2[j][L2_LEN + 24];
	k &= (lanes)((x->w[3] & 0xf0) == 0x60) & lens_fit_room(mine, room) &
	     (lanes)((x->w[4] & 0xff0000) != 0) & (lanes)(x->w[4] >> 25 != 0) &
	     addrs6_pass(x->w[5]) & addrs6_pass(dst);
	*hop = (*hop & ~k) | ((x->w[4] - (hops_spent(x, x->w[4] >> 24, kind) << 24)) & k);
	*len = (*len & ~k) | (mine & k);
	return lanes_bits(k);
}

/* fwd_look_tags(). It makes b->heads_differ exact. */
LANE_INLINE uint64_t
lanes_look(struct burst *b, uint8_t tag_bytes)
{
	struct look look = {.all_flags = UINT64_MAX};
	const uint8_t *frame0 = rte_pktmbuf_mtod(b->m[0], const uint8_t *);
	uint64_t head, head0, tags, tags0, heads_differ = 0, tags_differ = 0;

	memcpy(&head0, frame0, sizeof(head0));
	tags0 = burst_tags(frame0);
#pragma GCC unroll 4
	for (unsigned int i = 0; i < b->n; i++) {
		const uint8_t *frame = look_at(&look, b, i, tag_bytes);

		memcpy(&head, frame, sizeof(head));
		tags = burst_tags(frame);
		heads_differ |= head ^ head0;
		tags_differ |= tags ^ tags0;
	}
	look_end(&look, b, tag_bytes);
	b->head = head0;
	b->heads_differ = heads_differ;
	return tags_differ;
}

/* Bit masks of the packets of a group, by family. */
struct group_found {
	unsigned int four, six;
};

/*
 * Check the packets of `ok` in a group. Their headers begin behind `l2_len` octets of the
 * frames. Writes LANES entries of the burst; those behind the group have no meaning.
 */
LANE_INLINE struct group_found
group_fast(struct burst *b, const struct group *g, lanes ok, uint32_t l2_len,
	   struct group_kind kind)
{
	const unsigned int i = g->from, all = (1u << g->n) - 1;
	struct group_found found = {0, 0};
	lanes hop = lanes_of(0), pkt_len, data_len, room, len, is6;
	struct lane_words x;
	lanes16 len16;
	lanes8 family;

	words_load_four(x.w, g->l2, 2);
	words_load_four(x.w + 4, g->l2, 18);
	mbufs_lengths(g->m, &pkt_len, &data_len);
	len = room = pkt_len - l2_len;
	ok &= (lanes)(pkt_len == data_len) & ~lanes_below(pkt_len, lanes_of(l2_len + 20));
	if (kind.four)
		found.four = group_fast4(b, g, &x, ok, room, kind, &len, &hop) & all;
	if (kind.six)
		found.six = group_fast6(g, &x, ok, room, kind, &len, &hop) & all;
	b->padded |= (uint64_t)(lanes_bits((lanes)(len != room)) & (found.four | found.six))
		     << i;
	memcpy(&b->hop_octets[i], &hop, sizeof(hop));
	len16 = lanes_to_16(len);
	memcpy(&b->l3_len[i], &len16, sizeof(len16));
	is6 = kind.payload ? (lanes)((x.w[3] & 0xf0) == 0x60)
			   : (lanes)(x.w[2] >> 16 == 0xdd86);
	family = lanes_to_8(4 + (is6 & 2));
	memcpy(&b->family[i], &family, sizeof(family));
	return found;
}

/*
 * Copy the pointers of the last entries of the burst, and fill the group with the last one.
 */
LANE_INLINE void
group_fill(const struct burst *b, unsigned int from, struct rte_mbuf **m, uint8_t **l2)
{
	for (unsigned int j = 0; j < LANES; j++) {
		unsigned int at = from + j < b->n ? from + j : b->n - 1u;

		m[j] = b->m[at];
		l2[j] = b->l2[at];
	}
}

/*
 * fwd_fast() for complete groups and a long last group. Returns the number of entries done.
 */
LANE_INLINE unsigned int
lanes_fast(struct burst *b)
{
	const struct group_kind kind = {.four = b->in->fast4, .six = b->in->fast6};
	const uint32_t l2_len = L2_LEN + b->tag_bytes;
	struct rte_mbuf *m[LANES];
	struct group_found found;
	uint8_t *l2[LANES];
	uint64_t mac = 0;
	unsigned int i;

	memcpy(&mac, b->in->mac, sizeof(b->in->mac));
	for (i = 0; i + LANES <= b->n; i += LANES) {
		const struct group g = {i, LANES, &b->m[i], &b->l2[i]};
		lanes ours = lanes_of(frames_are_ours(b, i, LANES, mac) ? UINT32_MAX : 0);

		found = group_fast(b, &g, ours, l2_len, kind);
		b->fast4 |= (uint64_t)found.four << i;
		b->fast6 |= (uint64_t)found.six << i;
	}
	if (b->n < i + TAIL_MIN || !frames_are_ours(b, i, b->n - i, mac))
		return i;
	group_fill(b, i, m, l2);
	found = group_fast(b, &(struct group){i, b->n - i, m, l2}, lanes_of(UINT32_MAX),
			   l2_len, kind);
	b->fast4 |= (uint64_t)found.four << i;
	b->fast6 |= (uint64_t)found.six << i;
	return b->n;
}

/*
 * Check the complete groups in `of` as fwd_fast_payloads() does. Returns bit masks of the
 * packets that pass. *done: the packets that were checked.
 */
LANE_INLINE struct fwd_families
lanes_payloads(struct burst *b, uint64_t of, struct fwd_payload payload, uint64_t *done)
{
	const struct group_kind kind = {payload.four, payload.six, true, payload.uniform};
	struct fwd_families pass = {0, 0};

	*done = 0;
	for (unsigned int i = 0; i + LANES <= b->n; i += LANES) {
		const struct group g = {i, LANES, &b->m[i], &b->l2[i]};
		struct group_found found;

		if ((of >> i & LANES_ALL) != LANES_ALL)
			continue;
		found = group_fast(b, &g, lanes_of(UINT32_MAX), payload.at, kind);
		pass.four |= (uint64_t)found.four << i;
		pass.six |= (uint64_t)found.six << i;
		*done |= (uint64_t)LANES_ALL << i;
	}
	return pass;
}

/* --- the functions of fast.h ---------------------------------------------------------- */

uint64_t
LANES_FUNCTION(fwd_look)(struct burst *b, uint8_t tag_bytes)
{
	return lanes_look(b, tag_bytes);
}

unsigned int
LANES_FUNCTION(fwd_fast)(struct burst *b)
{
	return lanes_fast(b);
}

struct fwd_families
LANES_FUNCTION(fwd_fast_payloads)(struct burst *b, uint64_t of, struct fwd_payload kind,
				  uint64_t *done)
{
	return lanes_payloads(b, of, kind, done);
}

#endif
