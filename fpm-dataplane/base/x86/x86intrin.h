/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector instructions that a file is compiled for, in place of the compiler's
 * x86intrin.h.
 *
 * DPDK's rte_mbuf.h includes x86intrin.h. The compiler's own file declares each instruction
 * of each CPU, which takes half a second for each source file and each build. immintrin.h
 * beside this file declares the needed ones.
 */
#ifndef BASE_X86_X86INTRIN_H
#define BASE_X86_X86INTRIN_H

#include <immintrin.h>

#endif
