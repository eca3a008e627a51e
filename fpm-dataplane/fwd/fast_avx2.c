/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_avx2: fast_lanes.h, compiled for CPUs with AVX2.                           [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/fast.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

#define LANES             8
#define LANES_MOVEMASK(x) ((unsigned int)_mm256_movemask_ps((__m256)(x)))
#include "fwd/fast_lanes.h"

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

FWD_TARGET_END
