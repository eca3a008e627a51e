/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_sse4: fast_lanes.h, compiled for x86-64-v2, the least CPU that this program runs on.
 *                                                                               [fwd-n]
 */
#include <smmintrin.h>

#include "fwd/fast.h"

/* Return the lanes of `x`, below 2^16, as 16-bit lanes, twice. */
static inline __attribute__((always_inline)) __m128i
pack_16(__m128i x)
{
	return _mm_packus_epi32(x, x);
}

#define LANES             4
#define LANES_MOVEMASK(x) ((unsigned int)_mm_movemask_ps((__m128)(x)))
#define LANES_TO_16(x)    _mm_cvtsi128_si64(pack_16((__m128i)(x)))
#define LANES_TO_8(x) \
	_mm_cvtsi128_si32(_mm_packus_epi16(pack_16((__m128i)(x)), _mm_setzero_si128()))
#include "fwd/fast_lanes.h"
