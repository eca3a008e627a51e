/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * isa_x86: check that the CPU has the features that the files *_avx2.c and *_avx512.c are
 * compiled for. This file and the files *_sse4.c are compiled for x86-64-v2. Lookups need
 * further features of AVX-512, see poptrie/arch_x86.h.                           [main]
 */
#include "fwd/cpu.h"

enum fwd_isa
fwd_isa_best(void)
{
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
	    !__builtin_cpu_supports("bmi2"))
		return FWD_SSE4;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return FWD_AVX512;
	return FWD_AVX2;
}
