/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: which code the forwarders run. fwd_cpu_choose() (fwd.h) chooses the code when the
 * daemon starts; a test stores into fwd_isa to force another choice.
 *
 * Private to fwd/ and its tests.
 */
#ifndef FWD_CPU_H
#define FWD_CPU_H

#include <stdbool.h>

enum fwd_isa {
	FWD_UNCHOSEN, /* fwd_main() refuses to start */
	FWD_SCALAR,
	FWD_SSE4,            /* x86-64-v2 */
	FWD_NEON = FWD_SSE4, /* on arm64, which has no SSE */
	FWD_AVX2,
	FWD_AVX512,
};

extern enum fwd_isa fwd_isa; /* W:main before the threads start R:fwd,trace */

/*
 * Return the best code that this CPU can run: it has all features that the files *_avx2.c,
 * *_avx512.c, *_sse4.c or *_neon.c are compiled for.
 */
enum fwd_isa fwd_isa_best(void);

/*
 * Return the name of the instructions that the code uses: AVX-512, AVX2, SSE4, NEON or
 * scalar.
 */
const char *fwd_isa_name(enum fwd_isa isa);

/* Return true if the forwarders run the code of the files *_avx512.c. */
static inline bool
fwd_uses_avx512(void)
{
	return fwd_isa == FWD_AVX512;
}

/* Return true if the forwarders run the code of the files *_avx2.c. */
static inline bool
fwd_uses_avx2(void)
{
	return fwd_isa == FWD_AVX2;
}

/* Return true if the forwarders run the code of the files *_sse4.c. */
static inline bool
fwd_uses_sse4(void)
{
#ifdef __x86_64__
	return fwd_isa == FWD_SSE4;
#else
	return false;
#endif
}

/* Return true if the forwarders run fast_lanes.h with 4 lanes: SSE4 or NEON. */
static inline bool
fwd_uses_lanes4(void)
{
	return fwd_isa == FWD_SSE4;
}

#endif
