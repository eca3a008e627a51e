/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk lookups for CPUs with AVX2 and BMI2: the scalar loop, compiled for these CPUs
 * (three-operand shifts, VEX loads). Any reader thread.
 *
 * AVX2 has no popcount of 64-bit lanes, and its gathers are not faster than loads. A
 * popcount by a table of nibbles costs more than the scalar POPCNT, of which a CPU can
 * begin three in a cycle.
 */
#include <string.h>
#define X86_ALL_INSTRUCTIONS
#include <immintrin.h>
#include "poptrie/impl.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt"))), \
			     apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#endif
#include "poptrie/walk.h"

static __attribute__((noinline)) void
many4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	if (v->leaf32)
		scalar_bulk4(v, addr, value, n, true);
	else
		scalar_bulk4(v, addr, value, n, false);
}

void
pt_bulk4_avx2(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
	      unsigned int n)
{
	few_or_many4(v, addr, value, n, many4);
}

void
pt_bulk6_avx2(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
	      unsigned int n)
{
	walk_bulk(v, (union keys){.ip6 = addr}, value, n, WIDE6);
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
