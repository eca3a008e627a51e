/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_neon: fast_lanes.h, compiled for arm64, all CPUs of which have NEON, and the choice
 * of this code. The lookups, rewrite and transmit are the scalar code: the lookups already
 * go over a burst in passes.                                                      [fwd-n]
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

uint64_t
fwd_look_lanes(struct burst *b, uint8_t tag_bytes)
{
	return lanes_look(b, tag_bytes);
}

unsigned int
fwd_fast_lanes(struct burst *b)
{
	return lanes_fast(b);
}

struct fwd_families
fwd_fast_payloads_lanes(struct burst *b, uint64_t of, struct fwd_payload kind,
			uint64_t *done)
{
	return lanes_payloads(b, of, kind, done);
}
