/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame_x86: the functions of frame_decl.h for x86-64. An Ethernet header is one vector
 * (SSE4.1).
 */
#ifndef FWD_FRAME_X86_H
#define FWD_FRAME_X86_H

#include <assert.h>
#include <smmintrin.h>

#include "fwd/frame_decl.h"

static_assert(offsetof(struct fib_iface, mac) == 6 && offsetof(struct fib_iface, tag) == 12,
	      "the offsets in a frame");

static_assert(sizeof(struct fib_tag) == VLAN_BYTES && offsetof(struct fib_tag, type) == 0,
	      "two halves, in the order of a frame");

/*
 * Return `rest`, the first 16 octets of a frame, with the MAC of `hop` as its first six
 * octets.
 */
static inline __m128i
frame_with_mac(uint64_t hop, __m128i rest)
{
	const __m128i octets =
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);

	return _mm_blend_epi16(
		rest, _mm_shuffle_epi8(_mm_cvtsi64_si128((int64_t)hop), octets), 7);
}

/* Write both MAC addresses with two stores. */
static inline void
frame_write_macs(uint8_t *eth, uint64_t hop, const struct fib_iface *out)
{
	__m128i rest = _mm_loadu_si128((const void *)out);

	_mm_storel_epi64((void *)eth, frame_with_mac(hop, rest));
	memcpy(eth + 8, out->mac + 2, 4);
}

/*
 * Return the priority of the outer or the inner tag that the packet came with, in the lane
 * where a frame has its first tag. A single tag is both.
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

static inline void
frame_write_tags(const struct tagged *t, const struct rte_mbuf *m, uint8_t *l2,
		 uint64_t hop, const struct fib_iface *out)
{
	/* Swap the octets of each half of a tag: struct fib_tag has them in host order. */
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

static inline uint32_t
tag_priority_octets(const struct tagged *t, const struct rte_mbuf *m, const uint8_t *l2)
{
	return (uint32_t)_mm_extract_epi32(tag_priority(t, m, l2, false), 3);
}

#endif
