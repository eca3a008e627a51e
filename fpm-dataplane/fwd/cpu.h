/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: which code the forwarders run. fwd_cpu_init() (fwd.h) chooses the best code that
 * this CPU can run; a test stores into fwd_isa to force another choice.
 *
 * Private to fwd/ and its tests.
 */
#ifndef FWD_CPU_H
#define FWD_CPU_H

#include <stdbool.h>

enum fwd_isa {
	FWD_UNCHOSEN, /* fwd_main() refuses to start */
	FWD_SCALAR,
	FWD_AVX512,
};

extern enum fwd_isa fwd_isa; /* W:main before the threads start R:fwd,trace */

/* Return true if this CPU has all features that the files *_avx512.c are compiled for. */
bool fwd_has_avx512(void);

/* Return true if the forwarders run the code of those files. */
static inline bool
fwd_uses_avx512(void)
{
	return fwd_isa == FWD_AVX512;
}

#endif
