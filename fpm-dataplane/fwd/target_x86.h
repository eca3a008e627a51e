/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_x86: compile the functions between FWD_TARGET_BEGIN() and FWD_TARGET_END for a CPU
 * with AVX2 or AVX-512. fwd_isa_best() (isa_x86.c) checks that the CPU has all the
 * features.
 *
 * Private to the files *_avx2.c and *_avx512.c of fwd/.
 */
#ifndef FWD_TARGET_H
#define FWD_TARGET_H

#define X86_ALL_INSTRUCTIONS
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
