/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: choose the forwarders' code for this CPU, once, before a forwarder runs. This file
 * never calls that code: each stage calls fwd_uses_avx512() once per burst.      [main]
 */
#include "fwd/cpu.h"

#include "fwd/fwd.h"

enum fwd_isa fwd_isa;

void
fwd_cpu_init(void)
{
	fwd_isa = fwd_has_avx512() ? FWD_AVX512 : FWD_SCALAR;
}
