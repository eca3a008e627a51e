/* SPDX-License-Identifier: BSD-3-Clause */
/* spread_avx2: spread_vectors.h, compiled for CPUs with AVX2.                      [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/tx.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

#include "fwd/vector_avx2.h"

#include "fwd/spread_vectors.h"

/* A vector has only four pointers, and AVX2 has no compress: one by one is less work. */
INLINE void
burst_copy(struct rte_mbuf **m, const struct burst *b, uint64_t mine)
{
	for (; mine != 0; mine &= mine - 1)
		*m++ = b->m[__builtin_ctzll(mine)];
}

uint64_t
fwd_spread_avx2(struct burst *b)
{
	return spread_vectors(b);
}

FWD_TARGET_END
