/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector instructions that a file is compiled for, in place of the compiler's
 * immintrin.h.
 *
 * DPDK's rte_vect.h includes immintrin.h for clang. The compiler's own file declares each
 * instruction of each CPU, which takes half a second. A file that uses AVX after `#pragma
 * GCC target` defines X86_ALL_INSTRUCTIONS and includes immintrin.h. This file has no
 * include guard, because DPDK's header may have included it before.
 *
 * DPDK 24.11 takes the instructions of transactional memory (rte_rtm.h) and of the time
 * stamp counter (rte_cycles.h) from the compiler. gcc has them in the short x86gprintrin.h,
 * clang does not. DPDK 22.11 has its own.
 */
#define X86_DPDK_TAKES_MORE (RTE_VER_YEAR > 22)
#if defined(__AVX__) || defined(X86_ALL_INSTRUCTIONS) || \
	(X86_DPDK_TAKES_MORE && defined(__clang__))
#include_next <immintrin.h>
#else
#include <nmmintrin.h>
#if X86_DPDK_TAKES_MORE
#include <x86gprintrin.h>
#endif
#endif
