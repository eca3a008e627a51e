/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vector_avx512: an octet for each entry of a burst, as a vector of AVX-512. vector_avx2.h
 * has the same functions for AVX2.
 *
 * Private to the files *_avx512.c of fwd/. Include it behind FWD_TARGET_BEGIN().
 */
#ifndef FWD_VECTOR_AVX512_H
#define FWD_VECTOR_AVX512_H

typedef __m512i octets64;

INLINE octets64
octets_zero(void)
{
	return _mm512_setzero_si512();
}

INLINE octets64
octets_load(const uint8_t *from)
{
	return _mm512_loadu_si512((const void *)from);
}

INLINE void
octets_store(uint8_t *to, octets64 x)
{
	_mm512_storeu_si512((void *)to, x);
}

/* Return `x` with `octet` for the entries of `mine`. */
INLINE octets64
octets_put(octets64 x, uint64_t mine, uint8_t octet)
{
	return _mm512_mask_mov_epi8(x, mine, _mm512_set1_epi8((char)octet));
}

/* Return a bit for each entry that has `octet`. */
INLINE uint64_t
octets_are(octets64 x, uint8_t octet)
{
	return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8((char)octet));
}

#endif
