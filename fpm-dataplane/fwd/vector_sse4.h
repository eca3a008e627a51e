/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vector_sse4: an octet for each entry of a burst, as four vectors of SSE4. vector_avx2.h
 * has the same functions for AVX2.
 *
 * Private to the files *_sse4.c of fwd/.
 */
#ifndef FWD_VECTOR_SSE4_H
#define FWD_VECTOR_SSE4_H

#include <smmintrin.h>

typedef struct {
	__m128i part[4];
} octets64;

INLINE octets64
octets_load(const uint8_t *from)
{
	octets64 x;

	for (unsigned int i = 0; i < 4; i++)
		x.part[i] = _mm_loadu_si128((const void *)(from + 16 * i));
	return x;
}

/* Return a bit for each entry that has `octet`. */
INLINE uint64_t
octets_are(octets64 x, uint8_t octet)
{
	__m128i y = _mm_set1_epi8((char)octet);
	uint64_t bits = 0;

	for (unsigned int i = 0; i < 4; i++)
		bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x.part[i], y))
			<< 16 * i;
	return bits;
}

#endif
