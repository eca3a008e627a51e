/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ask for the features that the files *_avx512.c are compiled for. This file is compiled
 * for any x86-64.                                                                  [main]
 */
#include "fwd/cpu.h"

bool
fwd_has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("bmi");
}
