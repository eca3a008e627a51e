/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vector_avx2: an octet for each entry of a burst, as two vectors of AVX2. vector_avx512.h
 * has the same functions for AVX-512.
 *
 * Private to the files *_avx2.c of fwd/. Include it behind FWD_TARGET_BEGIN().
 */
#ifndef FWD_VECTOR_AVX2_H
#define FWD_VECTOR_AVX2_H

typedef struct {
	__m256i half[2];
} octets64;

INLINE octets64
octets_zero(void)
{
	return (octets64){{_mm256_setzero_si256(), _mm256_setzero_si256()}};
}

INLINE octets64
octets_load(const uint8_t *from)
{
	return (octets64){{_mm256_loadu_si256((const void *)from),
			   _mm256_loadu_si256((const void *)(from + 32))}};
}

INLINE void
octets_store(uint8_t *to, octets64 x)
{
	_mm256_storeu_si256((void *)to, x.half[0]);
	_mm256_storeu_si256((void *)(to + 32), x.half[1]);
}

/* Return a bit for each octet that is all ones. The others are 0. */
INLINE uint64_t
bits_of_octets(octets64 x)
{
	return (uint32_t)_mm256_movemask_epi8(x.half[0]) |
	       (uint64_t)(uint32_t)_mm256_movemask_epi8(x.half[1]) << 32;
}

/* Return an octet of all ones for each bit that is set. */
INLINE __m256i
octets_of_bits(uint32_t bits)
{
	const __m256i octet = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
						 0x0303030303030303);
	const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
	__m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), octet);

	return _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
}

INLINE octets64
octets_put(octets64 x, uint64_t mine, uint8_t octet)
{
	__m256i y = _mm256_set1_epi8((char)octet);

	for (unsigned int i = 0; i < 2; i++, mine >>= 32)
		x.half[i] =
			_mm256_blendv_epi8(x.half[i], y, octets_of_bits((uint32_t)mine));
	return x;
}

INLINE uint64_t
octets_are(octets64 x, uint8_t octet)
{
	__m256i y = _mm256_set1_epi8((char)octet);

	for (unsigned int i = 0; i < 2; i++)
		x.half[i] = _mm256_cmpeq_epi8(x.half[i], y);
	return bits_of_octets(x);
}

#endif
