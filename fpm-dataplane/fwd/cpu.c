/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: choose the forwarders' code for this CPU, once, before a forwarder runs. This file
 * never calls that code: each stage calls fwd_uses_avx512() or fwd_uses_avx2() once per
 * burst.      [main]
 */
#include "fwd/cpu.h"

#include "fwd/fwd.h"

enum fwd_isa fwd_isa;

void
fwd_cpu_init(void)
{
	fwd_isa = fwd_isa_best();
}

const char *
fwd_isa_name(enum fwd_isa isa)
{
	switch (isa) {
	case FWD_AVX512:
		return "AVX-512";
	case FWD_AVX2:
		return "AVX2";
	default:
		return "scalar";
	}
}
