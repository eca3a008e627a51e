/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * avx512: compile the functions between FWD_TARGET_BEGIN() and FWD_TARGET_END for a CPU
 * with AVX-512. fwd_has_avx512() (cpu.c) checks that the CPU has all the features.
 *
 * Private to the files *_avx512.c of fwd/.
 */
#ifndef FWD_AVX512_H
#define FWD_AVX512_H

#include <immintrin.h>

/* _Pragma() takes one string: make a string of the arguments. */
#define FWD_PRAGMA(...) _Pragma(#__VA_ARGS__)

#ifdef __clang__
#define FWD_TARGET_BEGIN(features)                                         \
	FWD_PRAGMA(clang attribute push(__attribute__((target(features))), \
					apply_to = function))
#define FWD_TARGET_END FWD_PRAGMA(clang attribute pop)
#else
#define FWD_TARGET_BEGIN(features)   \
	FWD_PRAGMA(GCC push_options) \
	FWD_PRAGMA(GCC target(features))
#define FWD_TARGET_END FWD_PRAGMA(GCC pop_options)
#endif

#define INLINE static inline __attribute__((always_inline))

#endif
