/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_avx2: fast_lanes.h, compiled for CPUs with AVX2.                          [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/fast.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

/* Return the 32-bit lanes of `x`, below 2^16, as 16-bit lanes. */
INLINE __m128i
pack_16(__m256i x)
{
	return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

#define LANES             8
#define LANES_MOVEMASK(x) ((unsigned int)_mm256_movemask_ps((__m256)(x)))
#define LANES_TO_16(x)    pack_16((__m256i)(x))
#define LANES_TO_8(x) \
	_mm_cvtsi128_si64(_mm_packus_epi16(pack_16((__m256i)(x)), _mm_setzero_si128()))
#include "fwd/fast_lanes.h"

FWD_TARGET_END
