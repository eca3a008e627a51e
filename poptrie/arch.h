/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arch: the functions of a CPU that the library needs and C11 lacks. arch_decl.h describes
 * them. No other file of poptrie/ depends on the architecture, except the files *_avx2.c
 * and *_avx512.c, which only the build for x86-64 compiles.
 */
#ifndef POPTRIE_ARCH_H
#define POPTRIE_ARCH_H

#ifdef __x86_64__
#include "poptrie/arch_x86.h"
#elif defined(__aarch64__)
#include "poptrie/arch_arm64.h"
#else
#error "no poptrie/arch_*.h for this architecture"
#endif

#endif
