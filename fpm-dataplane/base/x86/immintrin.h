/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector instructions that a file is compiled for, in place of the compiler's immintrin.h.
 *
 * DPDK's rte_vect.h includes immintrin.h for clang. The compiler's own file declares each
 * instruction of each CPU, which takes half a second. A file that uses AVX behind `#pragma GCC
 * target` defines X86_ALL_INSTRUCTIONS and includes immintrin.h. No guard: it may be the second
 * to include this file.
 */
#if defined(__AVX__) || defined(X86_ALL_INSTRUCTIONS)
#include_next <immintrin.h>
#else
#include <nmmintrin.h>
#endif
