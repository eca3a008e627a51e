/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A burst of which all leave, to the transmit buffers of their interfaces with AVX-512: an
 * interface at a time, eight packets at once. As dispatch.c does it one by one.     [fwd-n]
 *
 * With four interfaces 0.95 times the cycles of a whole packet's walk that it is one by one.
 * To add up the octets of each interface here, too, in place of a loop when they are sent: 1.0.
 */
#include <immintrin.h>

#include "fwd/burst.h"
#include "fwd/plain.h"

#ifdef __clang__
#pragma clang attribute push(                                          \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), \
	apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")
#endif

/* Interfaces beyond which a packet at a time is no slower: each costs a look at all entries. */
#define MOST 12

#define INLINE static inline __attribute__((always_inline))

static_assert(PORT_MAX <= 256, "an interface is an octet: none of them is a VLAN's");

/* Interfaces of sixteen entries. */
INLINE __m128i
ways16(const uint64_t *hop)
{
	return _mm_unpacklo_epi64(
		_mm512_cvtepi64_epi8(_mm512_loadu_si512((const void *)hop)),
		_mm512_cvtepi64_epi8(_mm512_loadu_si512((const void *)(hop + 8))));
}

/* Of all entries, those beyond the burst's end included. */
INLINE __m512i
ways_out(const struct burst *b)
{
	__m256i lo = _mm256_inserti128_si256(_mm256_castsi128_si256(ways16(b->hop)),
					     ways16(b->hop + 16), 1);
	__m256i hi = _mm256_inserti128_si256(_mm256_castsi128_si256(ways16(b->hop + 32)),
					     ways16(b->hop + 48), 1);

	static_assert(BURST_MAX == 64, "four times sixteen");
	return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

uint64_t
fwd_spread_avx512(struct burst *b)
{
	struct fwd *f = b->fwd;
	unsigned int n = b->n;
	uint64_t todo = burst_all(b), left = 0;
	__m512i out = ways_out(b);

	for (unsigned int k = 0; todo != 0 && k < MOST; k++) {
		uint16_t ifidx = b->hop[__builtin_ctzll(todo)] & 0xffff;
		uint64_t mine = _mm512_mask_cmpeq_epi8_mask(todo, out,
							    _mm512_set1_epi8((char)ifidx));
		struct rte_mbuf **m =
			fwd_tx_room(f, ifidx, (unsigned int)__builtin_popcountll(mine));

		todo &= ~mine;
		if (m == NULL) {
			left |= mine;
			continue;
		}
		/* Whole vectors are stored: what is too much is written over, or behind the end. */
		for (unsigned int i = 0; i < n; i += 8) {
			__mmask8 of = (__mmask8)(mine >> i);

			_mm512_storeu_si512(
				(void *)m,
				_mm512_maskz_compress_epi64(
					of, _mm512_loadu_si512((const void *)&b->m[i])));
			m += __builtin_popcount(of);
		}
		fwd_tx_full(f, ifidx);
	}
	return todo | left;
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
