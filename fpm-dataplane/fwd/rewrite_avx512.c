/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_avx512: write the new headers of a burst that leaves by few interfaces, with
 * AVX-512. The MTU is checked once per interface, and the MAC and tag of an interface
 * become a vector once. A packet then costs a few stores and no branch. The result is that
 * of rewrite.c. The file handles only bursts without rare cases; it leaves any other burst
 * unchanged. [fwd-n]
 *
 * Tried without gain: the MAC addresses before a tag as one store, together with octets of
 * that tag; a tag's store split where a cache line ends.
 */
#include <stddef.h>

#include "fwd/avx512.h"
#include "fwd/fast.h"
#include "port/vlan.h"

FWD_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,bmi")

/* With fewer packets the checks cost more than they save. */
#define PACKETS_MIN 16

/*
 * With more interfaces the scalar code is as fast, because each interface costs a pass over
 * all entries.
 */
#define EGRESS_MAX 16

/* The first octets of a frame, for each egress interface of the burst. */
struct egress {
	__m128i frame[EGRESS_MAX];         /* without the first six octets */
	alignas(64) uint8_t at[BURST_MAX]; /* of an entry: byte offset in frame[] */
	unsigned int tag_bytes;            /* of the interfaces, equal for all */
	bool by_port;                      /* no two interfaces of one port */
	unsigned int any_ifidx;            /* OR of their numbers */
};
static_assert(EGRESS_MAX * sizeof(__m128i) <= 256, "an offset fits an octet");

/* Return the egress interfaces of 32 entries, in order. */
INLINE __m512i
hops_ifidx32(const uint64_t *hop)
{
	/* Entry 8 * j + k is the 16-bit part j of lane k. */
	const __m512i order =
		_mm512_set_epi16(31, 27, 23, 19, 15, 11, 7, 3, 30, 26, 22, 18, 14, 10, 6, 2,
				 29, 25, 21, 17, 13, 9, 5, 1, 28, 24, 20, 16, 12, 8, 4, 0);
	__m512i h0 = _mm512_loadu_si512(hop), h1 = _mm512_loadu_si512(hop + 8);
	__m512i h2 = _mm512_loadu_si512(hop + 16), h3 = _mm512_loadu_si512(hop + 24);
	__m512i lo = _mm512_mask_blend_epi16(0x22222222, h0, _mm512_slli_epi64(h1, 16));
	__m512i hi = _mm512_mask_blend_epi16(0x88888888, _mm512_slli_epi64(h2, 32),
					     _mm512_slli_epi64(h3, 48));

	return _mm512_permutexvar_epi16(order, _mm512_mask_blend_epi16(0xcccccccc, lo, hi));
}

INLINE uint64_t
masks_join(__mmask32 lo, __mmask32 hi)
{
	return lo | (uint64_t)hi << 32;
}

/* Return true if the route of an entry has an MTU. */
INLINE bool
burst_any_mtu_class(const struct burst *b)
{
	const fib_path class = (FIB_MTU_MAX - 1) << 18; /* see path_mtu_class() */
	__m512i any = _mm512_setzero_si512();
	uint64_t all = burst_all(b);

	for (unsigned int i = 0; i < BURST_MAX; i += 16)
		any = _mm512_or_si512(
			any, _mm512_maskz_loadu_epi32((__mmask16)(all >> i), &b->path[i]));
	return _mm512_test_epi32_mask(any, _mm512_set1_epi32((int)class)) != 0;
}

/*
 * Return true if packets may leave by `out`, it has at most one tag and writes it itself,
 * and its tags have the same length as those of the other interfaces.
 */
INLINE bool
iface_usable(const struct fib_iface *out, const struct egress *w, bool first)
{
	return out != NULL && out->up && out->n_written == out->n_tags &&
	       out->n_tags <= 1 && (first || fib_tag_bytes(out) == w->tag_bytes);
}

/* Fill `w` and b->out_port. Returns false if a packet needs the code of rewrite.c. */
INLINE bool
egress_find(struct burst *b, struct egress *w)
{
	/* Each half of a tag is in host order. */
	const __m128i octets =
		_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 12, 15, 14);
	__m512i lo = hops_ifidx32(b->hop), hi = hops_ifidx32(b->hop + 32);
	__m512i len_lo = _mm512_loadu_si512(b->l3_len);
	__m512i len_hi = _mm512_loadu_si512(b->l3_len + 32);
	__m512i at = _mm512_setzero_si512(), port = at;
	uint64_t todo = burst_all(b), too_long = 0, ports = 0;
	bool by_port = true, only4 = b->fast6 == 0;

	w->tag_bytes = w->any_ifidx = 0;
	for (unsigned int k = 0; todo != 0; k++) {
		uint16_t ifidx = (uint16_t)b->hop[__builtin_ctzll(todo)];
		const struct fib_iface *out = fib_iface(b->fwd->fib, ifidx);
		__m512i of = _mm512_set1_epi16((short)ifidx), mtu;
		uint64_t mine = masks_join(_mm512_cmpeq_epi16_mask(lo, of),
					   _mm512_cmpeq_epi16_mask(hi, of)) &
				todo;

		if (k == EGRESS_MAX || !iface_usable(out, w, k == 0))
			return false;
		w->tag_bytes = fib_tag_bytes(out);
		w->any_ifidx |= ifidx;
		mtu = _mm512_set1_epi16((short)(only4 ? out->mtu_bytes : out->mtu6_bytes));
		too_long |= mine & masks_join(_mm512_cmpgt_epu16_mask(len_lo, mtu),
					      _mm512_cmpgt_epu16_mask(len_hi, mtu));
		port = _mm512_mask_mov_epi8(port, mine, _mm512_set1_epi8((char)out->port));
		at = _mm512_mask_mov_epi8(at, mine, _mm512_set1_epi8((char)(k * 16)));
		w->frame[k] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)out), octets);
		/* Two ports with the same bit count as one port. */
		by_port &= (ports >> out->port % 64 & 1) == 0;
		ports |= 1ull << out->port % 64;
		todo &= ~mine;
	}
	w->by_port = by_port;
	_mm512_store_si512(w->at, at);
	_mm512_storeu_si512(b->out_port, port);
	return too_long == 0;
}

/*
 * Add `by` to the 16-bit fields of the mbuf's 32 octets from data_off on, with one load and
 * one store. This covers the reference count; no other thread has the mbuf.
 */
INLINE void
frame_shorten(struct rte_mbuf *m, __m256i by)
{
	void *at = (uint8_t *)m + offsetof(struct rte_mbuf, data_off);

	_mm256_storeu_si256(at, _mm256_add_epi16(_mm256_loadu_si256(at), by));
}

/*
 * Return the vector for frame_shorten() that moves the start of a frame by so many octets
 * and shortens it as much.
 */
INLINE __m256i
frame_shorten_vector(int octets)
{
	short by = (short)octets, less = (short)-octets;

	static_assert(offsetof(struct rte_mbuf, data_off) == 16 &&
			      offsetof(struct rte_mbuf, pkt_len) == 16 + 20 &&
			      offsetof(struct rte_mbuf, data_len) == 16 + 24,
		      "16-bit fields 0, 10 and 12");
	return _mm256_setr_epi16(by, 0, 0, 0, 0, 0, 0, 0, 0, 0, less, 0, less, 0, 0, 0);
}

/*
 * Write the headers of all entries. `families`: the burst has both families. `in`: the
 * packets came with a tag. `out`: they leave with a tag, which keeps the priority of the
 * old one. The compiler makes a separate loop for each combination.
 */
INLINE void
frames_write(struct burst *b, const struct egress *w, bool families, bool in, bool out)
{
	const __m128i octets =
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	const __m128i priority =
		_mm_setr_epi32(0, 0, 0, (int)__builtin_bswap32(VLAN_PRIORITY));
	const __m256i by = frame_shorten_vector((in ? (int)VLAN_BYTES : 0) -
						(out ? (int)VLAN_BYTES : 0));
	unsigned int hop_at = L2_LEN + burst_hop_at(b->family[0]);

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *l2 = burst_l2(b, i), *tag = l2 - VLAN_BYTES;
		__m128i mac = _mm_cvtsi64_si128((int64_t)b->hop[i]);
		__m128i x = _mm_load_si128(
			(const void *)((const uint8_t *)w->frame + w->at[i]));

		x = _mm_blend_epi16(x, _mm_shuffle_epi8(mac, octets), 7);
		if (in && out)
			x = _mm_or_si128(
				x, _mm_and_si128(_mm_loadu_si128((void *)tag), priority));
		if (out) {
			_mm_storeu_si128((void *)tag, x);
		} else {
			_mm_storel_epi64((void *)l2, x);
			_mm_storel_epi64((void *)(l2 + 4), _mm_srli_si128(x, 4));
		}
		if (in != out)
			frame_shorten(b->m[i], by);
		if (families)
			hop_at = L2_LEN + burst_hop_at(b->family[i]);
		memcpy(l2 + hop_at, &b->hop_octets[i], 4);
	}
}

INLINE void
frames_write_families(struct burst *b, const struct egress *w, bool in, bool out)
{
	if (b->fast4 != 0 && b->fast6 != 0)
		frames_write(b, w, true, in, out);
	else
		frames_write(b, w, false, in, out);
}

bool
fwd_rewrite_avx512(struct burst *b)
{
	bool in = b->tag_bytes != 0, out, named;
	struct egress w;

	if ((b->fast4 | b->fast6) != burst_all(b) || b->n < PACKETS_MIN ||
	    b->tag_bytes > VLAN_BYTES || burst_any_mtu_class(b) || !egress_find(b, &w))
		return false;
	out = w.tag_bytes != 0;
	if (out && (b->any_flags & VLAN_STRIPPED) != 0)
		return false; /* their priorities are in the mbufs */
	if (in && out)
		frames_write_families(b, &w, true, true);
	else if (out)
		frames_write_families(b, &w, false, true);
	else if (in)
		frames_write_families(b, &w, true, false);
	else
		frames_write_families(b, &w, false, false);
	/* A number from PORT_MAX on is that of a VLAN or macvlan. */
	named = w.any_ifidx >= PORT_MAX;
	b->tags_out = named;
	b->vlan_a_port = named && w.by_port;
	for (unsigned int i = 0; named && !w.by_port && i < b->n; i++)
		b->m[i]->port = (uint16_t)b->hop[i]; /* see tx_ifidx() */
	return true;
}

FWD_TARGET_END
