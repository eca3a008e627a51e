/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arch for x86-64. Loads stay in order, and stores stay in order: acquire and release only
 * keep the compiler from moving them.
 */
#ifndef POPTRIE_ARCH_X86_H
#define POPTRIE_ARCH_X86_H

#include <emmintrin.h>
#include "poptrie/arch_decl.h"

/* Aligned vector accesses of 16 octets are atomic on every CPU that has AVX. */
static inline bool
pt_has_16_octets(void)
{
	return __builtin_cpu_supports("avx");
}

static inline enum pt_isa
pt_cpu_isa(void)
{
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512vpopcntdq"))
		return PT_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return PT_AVX2;
	return PT_SCALAR;
}

/*
 * The compiler splits a plain vector load when it wants both halves in general registers.
 */
PT_INLINE struct pair
load16(const struct pt_fused *f)
{
#ifdef __AVX__
	__m128i x = *(const volatile __m128i *)f;
#else
	__m128i x;

	__asm__("movdqa %1, %0" : "=x"(x) : "m"(*(const __m128i *)f));
#endif
	return (struct pair){(uint64_t)_mm_cvtsi128_si64(x),
			     (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x))};
}

PT_INLINE void
entry_to(struct pt_fused *to, const struct pt_fused *direct, uint32_t addr)
{
	/*
	 * Compute the offset in octets (an entry has 16), because this is less work than to
	 * scale an index.
	 */
	const uint8_t *f = (const uint8_t *)direct + (addr >> (28 - PT4_BITS) & ~15u);
	__m128i x;

#ifdef __AVX__
	__asm__("vmovdqa %1, %0" : "=x"(x) : "m"(*(const __m128i *)f));
#else
	__asm__("movdqa %1, %0" : "=x"(x) : "m"(*(const __m128i *)f));
#endif
	*(volatile __m128i *)to = x;
}

static inline void
fused_publish(struct pt_fused *slot, struct pt_fused f)
{
	__m128i x = _mm_set_epi64x((int64_t)((uint64_t)f.child_base << 32 | f.leaf_base),
				   (int64_t)f.run);

	__asm__ volatile("movdqa %1, %0" : "=m"(*(__m128i *)slot) : "x"(x) : "memory");
}

PT_INLINE void
pt_reader_fence(void)
{
	atomic_signal_fence(memory_order_acquire);
}

PT_INLINE uint32_t
or_dflt(uint32_t value, uint64_t dflt)
{
	uint32_t d = (uint32_t)dflt;

	__asm__("test %0, %0\n\tcmovz %1, %0" : "+r"(value) : "r"(d) : "cc");
	return value;
}

static inline uint64_t
pt_runs(const uint32_t value[64])
{
	uint64_t same = 0;

	for (unsigned int s = 0; s < 64; s += 4) {
		__m128i a = _mm_loadu_si128((const void *)(value + s));
		__m128i before = s ? _mm_loadu_si128((const void *)(value + s - 1))
				   : _mm_shuffle_epi32(a, 0x90); /* 0 0 1 2 */
		__m128i eq = _mm_cmpeq_epi32(a, before);

		same |= (uint64_t)_mm_movemask_ps(_mm_castsi128_ps(eq)) << s;
	}
	return ~same;
}

#endif
