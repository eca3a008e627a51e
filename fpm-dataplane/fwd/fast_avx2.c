/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_avx2: fast_lanes.h, compiled for CPUs with AVX2.                           [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/fast.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

#define LANES             8
#define LANES_MOVEMASK(x) ((unsigned int)_mm256_movemask_ps((__m256)(x)))
#include "fwd/fast_lanes.h"

FWD_TARGET_END
