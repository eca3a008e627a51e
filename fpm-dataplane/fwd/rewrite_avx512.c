/* SPDX-License-Identifier: BSD-3-Clause */
/* rewrite_avx512: rewrite_vectors.h, compiled for CPUs with AVX-512.             [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/fast.h"
#include "port/vlan_tags.h"

FWD_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,bmi")

struct entries {
	__m512i ifidx[2], l3_len[2];
};

#include "fwd/vector_avx512.h"

#include "fwd/rewrite_vectors.h"

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

INLINE void
entries_load(struct entries *e, const struct burst *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		e->ifidx[i] = hops_ifidx32(b->hop + 32 * i);
		e->l3_len[i] = _mm512_loadu_si512(b->l3_len + 32 * i);
	}
}

INLINE uint64_t
entries_of(const struct entries *e, uint16_t ifidx)
{
	__m512i of = _mm512_set1_epi16((short)ifidx);

	return masks_join(_mm512_cmpeq_epi16_mask(e->ifidx[0], of),
			  _mm512_cmpeq_epi16_mask(e->ifidx[1], of));
}

INLINE uint64_t
entries_longer(const struct entries *e, uint16_t mtu)
{
	__m512i most = _mm512_set1_epi16((short)mtu);

	return masks_join(_mm512_cmpgt_epu16_mask(e->l3_len[0], most),
			  _mm512_cmpgt_epu16_mask(e->l3_len[1], most));
}

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

bool
fwd_rewrite_avx512(struct burst *b)
{
	return rewrite_vectors(b);
}

bool
fwd_rewrite_labels_avx512(struct burst *b, enum fwd_labels_do what)
{
	return rewrite_labels(b, what);
}

FWD_TARGET_END
