/* SPDX-License-Identifier: BSD-3-Clause */
/* spread_avx2: spread_vectors.h, compiled for CPUs with AVX2.                    [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/tx.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

#include "fwd/vector_avx2.h"

#include "fwd/spread_vectors.h"

/*
 * A vector has only four pointers, and AVX2 has no compress instruction, so it is less work
 * to copy the pointers one by one. A round copies four, so that the CPU mispredicts the end
 * of the loop less often.
 */
INLINE void
burst_copy(struct rte_mbuf **m, const struct burst *b, uint64_t mine)
{
	for (; mine != 0; m += 4)
		for (unsigned int j = 0; j < 4; j++, mine &= mine - 1)
			m[j] = b->m[_tzcnt_u64(mine) % BURST_MAX];
}

uint64_t
fwd_spread_avx2(struct burst *b)
{
	return spread_vectors(b);
}

FWD_TARGET_END
