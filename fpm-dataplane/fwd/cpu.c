/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: choose the forwarders' code for this CPU, once, before a forwarder runs. This file
 * never calls that code: each stage calls fwd_uses_avx512() or fwd_uses_avx2() once per
 * burst.                                                                         [main]
 */
#include "fwd/cpu.h"

#include <assert.h>
#include <errno.h>

#include "fwd/fwd.h"
#include "fib/fib.h"

static_assert((int)FWD_SCALAR == (int)INSTRUCTIONS_SCALAR &&
		      (int)FWD_SSE4 == (int)INSTRUCTIONS_SSE4 &&
		      (int)FWD_AVX2 == (int)INSTRUCTIONS_AVX2 &&
		      (int)FWD_AVX512 == (int)INSTRUCTIONS_AVX512,
	      "the same order");

enum fwd_isa fwd_isa;

int
fwd_cpu_choose(enum instructions most)
{
	static const enum poptrie_isa tries[] = {
		[FWD_SCALAR] = POPTRIE_SCALAR,
		[FWD_SSE4] = POPTRIE_SCALAR,
		[FWD_AVX2] = POPTRIE_AVX2,
		[FWD_AVX512] = POPTRIE_AVX512,
	};
	enum fwd_isa best = fwd_isa_best();

	if (most != INSTRUCTIONS_AUTO && (enum fwd_isa)most > best)
		return -ENOTSUP;
#ifndef __x86_64__
	if (most == INSTRUCTIONS_SSE4) /* FWD_NEON has the same number */
		return -ENOTSUP;
#endif
	fwd_isa = most == INSTRUCTIONS_AUTO ? best : (enum fwd_isa)most;
	poptrie_use_at_most(most == INSTRUCTIONS_AUTO ? POPTRIE_AVX512 : tries[fwd_isa]);
	return 0;
}

const char *
fwd_isa_name(enum fwd_isa isa)
{
	switch (isa) {
	case FWD_AVX512:
		return "AVX-512";
	case FWD_AVX2:
		return "AVX2";
	case FWD_SSE4:
#ifdef __x86_64__
		return "SSE4";
#else
		return "NEON";
#endif
	default:
		return "scalar";
	}
}

const char *
fwd_cpu_uses(void)
{
	return fwd_isa_name(fwd_isa);
}

const char *
fwd_cpu_best(void)
{
	return fwd_isa_name(fwd_isa_best());
}

static const char *
lookup_isa_name(enum poptrie_isa isa)
{
	static const enum fwd_isa same[] = {
		[POPTRIE_SCALAR] = FWD_SCALAR,
		[POPTRIE_AVX2] = FWD_AVX2,
		[POPTRIE_AVX512] = FWD_AVX512,
	};

	return fwd_isa_name(same[isa]);
}

const char *
fwd_cpu_lookups_use(void)
{
	return lookup_isa_name(poptrie_isa_used());
}

const char *
fwd_cpu_lookups_best(void)
{
	return lookup_isa_name(poptrie_isa_best());
}
