/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up keys in the list of ranges of a small table, with AVX-512. A whole list takes
 * two, four or eight registers. A binary search finds 16 keys at once; one key is compared
 * with all ends. Any reader thread. A reader never waits for the writer; see ranges.c.
 */
#define X86_ALL_INSTRUCTIONS
#include <immintrin.h>
#include "poptrie/impl.h"
#ifdef __clang__
#pragma clang attribute push(                                                 \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt"))), \
	apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")
#endif
#include "poptrie/walk.h"

/* A list of sixteen times `n` (1, 2 or 4) ranges, in registers. */
struct ranges {
	__m512i last[PT_RANGES / 16], value[PT_RANGES / 16];
	unsigned int n;
};

/*
 * Return for each lane the element of `of` with the index `at`, of which the lowest four
 * (n = 1) or five bits count. If `n` is 4, the lanes in `upper` use the upper half of `of`.
 */
PT_INLINE __m512i
ranges_at(const __m512i *of, __m512i at, __mmask16 upper, unsigned int n)
{
	__m512i x;

	if (n == 1)
		return _mm512_permutexvar_epi32(at, of[0]);
	x = _mm512_permutex2var_epi32(of[0], at, of[1]);
	if (n == 4)
		x = _mm512_mask_mov_epi32(x, upper,
					  _mm512_permutex2var_epi32(of[2], at, of[3]));
	return x;
}

/* Look up 16 keys by a binary search. */
PT_INLINE __m512i
ranges_find16(const struct ranges *r, __m512i keys)
{
	__m512i at = _mm512_setzero_si512();
	__mmask16 upper = 0;

	if (r->n == 4)
		upper = _mm512_cmpgt_epu32_mask(
			keys, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), r->last[1]));
	for (int step = r->n == 1 ? 8 : 16; step > 0; step /= 2) {
		__m512i probe = _mm512_add_epi32(at, _mm512_set1_epi32(step - 1));
		__mmask16 beyond = _mm512_cmpgt_epu32_mask(
			keys, ranges_at(r->last, probe, upper, r->n));

		at = _mm512_mask_add_epi32(at, beyond, at, _mm512_set1_epi32(step));
	}
	return ranges_at(r->value, at, upper, r->n);
}

/* Look up `n_keys` keys in a list of sixteen times `n` ranges. */
PT_INLINE void
ranges_find(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
	    unsigned int n_keys, unsigned int n)
{
	struct ranges r = {.n = n};

	for (unsigned int i = 0; i < n; i++) {
		r.last[i] = _mm512_load_si512(pt->ranges[i].last);
		r.value[i] = _mm512_load_si512(pt->ranges[i].value);
	}
	for (unsigned int i = 0; i < n_keys; i += 16) {
		__mmask16 k =
			n_keys - i < 16 ? (__mmask16)((1u << (n_keys - i)) - 1) : 0xffff;
		__m512i keys = _mm512_maskz_loadu_epi32(k, addr + i);

		_mm512_mask_storeu_epi32(value + i, k, ranges_find16(&r, keys));
	}
}

/* See ranges_read.h. */
PT_INLINE unsigned int
ranges_below(const struct pt_ranges *r, uint32_t addr)
{
	return (unsigned int)__builtin_popcount(_mm512_cmplt_epu32_mask(
		_mm512_load_si512(r->last), _mm512_set1_epi32((int)addr)));
}

#include "poptrie/ranges_read.h"

/*
 * Look up `n` keys in the list. Returns false if there is no list or it was closed
 * meanwhile; then `value` has no valid results.
 */
bool
pt_ranges_bulk_avx512(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		      unsigned int n)
{
	uint32_t turn = atomic_load_explicit(&pt->ranges_turn, memory_order_acquire);

	if (turn & 1)
		return false;
	if (n == 1)
		value[0] = ranges_find_one(pt, addr[0]);
	else if (pt->n_ranges <= 16)
		ranges_find(pt, addr, value, n, 1);
	else if (pt->n_ranges <= 32)
		ranges_find(pt, addr, value, n, 2);
	else
		ranges_find(pt, addr, value, n, 4);
	return ranges_unchanged(pt, turn);
}

void
pt_each4_avx512(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		unsigned int n)
{
	ranges_each4(pt, addr, value, n);
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
