/* SPDX-License-Identifier: BSD-3-Clause */
/* spread_sse4: spread_vectors.h, compiled for x86-64-v2.                         [fwd-n] */
#include "fwd/tx.h"

#define INLINE static inline __attribute__((always_inline))

#include "fwd/vector_sse4.h"

#include "fwd/spread_vectors.h"

INLINE void
burst_copy(struct rte_mbuf **m, const struct burst *b, uint64_t mine)
{
	for (; mine != 0; mine &= mine - 1)
		*m++ = b->m[__builtin_ctzll(mine)];
}

uint64_t
fwd_spread_sse4(struct burst *b)
{
	return spread_vectors(b);
}
