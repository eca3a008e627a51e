/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up keys in the list of ranges of a small table, with AVX2. A key is compared with
 * sixteen ends in two registers. Any reader thread.
 *
 * Tables of VRFs with ten routes each, Zen 1: cycles of all stages for a packet, relative
 * to packets in table main (first with nodes, then with ranges):
 * - 256 VRFs, each burst has packets of one VRF: 1.15 and 0.99;
 * - each burst has packets of 16 VRFs: 1.20 and 1.07;
 * - each burst has packets of 256 VRFs: 1.65 and 1.16.
 * To prefetch the lists of such a mixed burst gains nothing.
 *
 * One table, 64 keys at once, cycles for each key:
 * - addresses inside routes: 23 to 28 with nodes; 5 (16 ranges) to 13 (63 ranges) with
 *   ranges;
 * - addresses that only the default route has: 3 to 5 with nodes, 4 to 13 with ranges.
 */
#include <limits.h>
#define X86_ALL_INSTRUCTIONS
#include <immintrin.h>
#include "poptrie/impl.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt"))), \
			     apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#endif
#include "poptrie/walk.h"

/* See ranges_read.h. AVX2 compares signed numbers only. */
PT_INLINE unsigned int
ranges_below(const struct pt_ranges *r, uint32_t addr)
{
	__m256i flip = _mm256_set1_epi32(INT_MIN);
	__m256i key = _mm256_xor_si256(_mm256_set1_epi32((int)addr), flip);
	__m256i lo = _mm256_load_si256((const __m256i *)r->last);
	__m256i hi = _mm256_load_si256((const __m256i *)r->last + 1);

	lo = _mm256_cmpgt_epi32(key, _mm256_xor_si256(lo, flip));
	hi = _mm256_cmpgt_epi32(key, _mm256_xor_si256(hi, flip));
	return (unsigned int)__builtin_popcount(
		(unsigned int)_mm256_movemask_ps(_mm256_castsi256_ps(lo)) |
		(unsigned int)_mm256_movemask_ps(_mm256_castsi256_ps(hi)) << 8);
}

#include "poptrie/ranges_read.h"

/*
 * Look up `n` keys in the list. Returns false if there is no list or it was closed
 * meanwhile; then `value` has no valid results.
 */
bool
pt_ranges_bulk_avx2(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		    unsigned int n)
{
	uint32_t turn = atomic_load_explicit(&pt->ranges_turn, memory_order_acquire);

	if (turn & 1)
		return false;
	for (unsigned int i = 0; i < n; i++)
		value[i] = ranges_find_one(pt, addr[i]);
	return ranges_unchanged(pt, turn);
}

void
pt_each4_avx2(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
	      unsigned int n)
{
	ranges_each4(pt, addr, value, n);
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
