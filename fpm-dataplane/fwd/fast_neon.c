/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_neon: fast_lanes.h, compiled for arm64, and the functions that choose this code. All
 * arm64 CPUs have NEON. Lookups, rewrite and transmit use the scalar code, because the
 * lookups already go over a burst in passes. [fwd-n]
 */
#include <arm_neon.h>

#include "fwd/cpu.h"
#include "fwd/fast.h"

/* Return a bit for each lane that is all ones. */
static inline __attribute__((always_inline)) unsigned int
neon_bits(uint32x4_t x)
{
	const uint32x4_t bit = {1, 2, 4, 8};

	return vaddvq_u32(vandq_u32(x, bit));
}

#define LANES             4
#define LANES_MOVEMASK(x) neon_bits((uint32x4_t)(x))
#include "fwd/fast_lanes.h"

enum fwd_isa
fwd_isa_best(void)
{
	return FWD_NEON;
}
