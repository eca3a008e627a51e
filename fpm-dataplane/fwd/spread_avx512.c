/* SPDX-License-Identifier: BSD-3-Clause */
/* spread_avx512: spread_vectors.h, compiled for CPUs with AVX-512.               [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/tx.h"

FWD_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,popcnt")

#include "fwd/vector_avx512.h"

#include "fwd/spread_vectors.h"

INLINE void
burst_copy(struct rte_mbuf **m, const struct burst *b, uint64_t mine)
{
	/*
	 * Whole vectors are stored. Surplus pointers are overwritten by the next store, or
	 * lie behind the last packet.
	 */
	for (unsigned int i = 0, n = b->n; i < n; i += 8) {
		__mmask8 of = (__mmask8)(mine >> i);

		_mm512_storeu_si512(
			(void *)m, _mm512_maskz_compress_epi64(
					   of, _mm512_loadu_si512((const void *)&b->m[i])));
		m += __builtin_popcount(of);
	}
}

uint64_t
fwd_spread_avx512(struct burst *b)
{
	return spread_vectors(b);
}

FWD_TARGET_END
