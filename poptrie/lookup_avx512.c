/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk lookups with AVX-512 (F, BW, DQ, VL, VPOPCNTDQ), 16 IPv4 or 8 IPv6 keys a vector.
 * Any reader thread. A direct entry is taken by one aligned 16-byte load a key, never by
 * gathers, which could meet the halves of two entries.
 *
 * One load a node and a transpose in registers beat three gathers a node by far, and
 * scalar loads beat the other gathers too: those of the keys and direct entries of IPv6
 * halved its rate (82 against 195 M/s), those of the leaves made no difference on a CPU
 * where gathers are fast and cost dearly where microcode slows them. Levels that few keys
 * reach (IPv4 beyond /24, IPv6 beyond /60 or outside 2000::/3) are left to the scalar
 * walk, lane by lane.
 *
 * Lanes of IPv6 become addresses by a store and scalar loads, behind a barrier: left alone,
 * the compiler extracts them from registers (193 against 235 M/s). Indices of leaves it may
 * extract: there the barrier costs (IPv4 678 against 730). On the way down of IPv6 16
 * octets of a node do; the leaf runs of all eight lanes are taken once, at the end.
 *
 * Tried without gain for IPv6: 26 direct bits (a level less for a /32, but a table four
 * times as long), collecting keys and entries in arrays before (a third slower: the vector
 * loads wait for the stores), and prefetching the nodes of the next level (192 against
 * 250: 16 more instructions a step, for what the reorder buffer does anyway).
 *
 * Prototyped and left as too little (inprefix / zipf of 160 k real routes, against the loop
 * below in the same run; one to four runs each, among which that loop itself went from 258
 * to 325 M/s zipf, so read them as hints):
 * - the last node of a /48 loaded whole, which saves the step that only learns that there is
 *   no child, and keys kept complemented, which makes the rank of a child shorter: 1.02 /
 *   1.07; in the library 0.97 / 1.07, less than its spread;
 * - eight bits a level, two direct and six counted (three levels instead of four, but
 *   4.6 MiB of nodes instead of 2.1): 1.09 / 1.09, with the former 1.08 / 1.14;
 * - two plain tables before the nodes: 22 and 10 bits, then eight a level, 0.8 to 1.07 / 1.0
 *   to 1.27, the least steady (8.6 MiB of second tables); 24 and 8, then eight, 0.7 / 0.86;
 *   22 and 8, then six, no better than one table with the first of these;
 * - broadcasts under a mask instead of inserts: 1.0.
 * Even 64 keys that stay in the L1 gained 1.09 by the first and 1.17 by the first two.
 */
#include <string.h>
#include <immintrin.h>
#include "impl.h"
#ifdef __clang__
#pragma clang attribute push(                                                          \
	__attribute__((target(                                                         \
		"avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi,bmi2"))), \
	apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi,bmi2")
#endif
#include "walk.h"

/* Lanes that become addresses go through memory: the compiler knows a dearer way. */
#define IN_MEMORY(x) __asm__("" : "+m"(x))
#define GROUPS6      8 /* of 8 keys, all at the same level, so that 64 misses overlap */

/* The compiler must neither split nor widen it; VMOVDQA is atomic, other forms may not. */
PT_INLINE __m128i
entry_load(const struct pt_fused *f)
{
	return *(const volatile __m128i *)f;
}

/* Entries of keys a, b, c, d, one after the other. */
PT_INLINE __m512i
entries4(const struct pt_fused *f, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const unsigned int s = 32 - PT4_BITS;
	__m256i lo = _mm256_inserti128_si256(_mm256_castsi128_si256(entry_load(&f[a >> s])),
					     entry_load(&f[b >> s]), 1);
	__m256i hi = _mm256_inserti128_si256(_mm256_castsi128_si256(entry_load(&f[c >> s])),
					     entry_load(&f[d >> s]), 1);

	return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

/* Leaf indices of 8 keys. */
PT_INLINE __m256i
fused_index8(const struct pt_fused *f, const uint32_t *addr)
{
	__m512i even = entries4(f, addr[0], addr[2], addr[4], addr[6]);
	__m512i odd = entries4(f, addr[1], addr[3], addr[5], addr[7]);
	__m512i run = _mm512_unpacklo_epi64(even, odd);
	__m512i base = _mm512_unpackhi_epi64(even, odd);
	__m512i key = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)addr));
	/* 63 - slot: the complement, of which the shift takes six bits. */
	__m512i up = _mm512_andnot_si512(_mm512_srli_epi64(key, 26 - PT4_BITS),
					 _mm512_set1_epi64(63));

	run = _mm512_popcnt_epi64(_mm512_sllv_epi64(run, up));
	return _mm512_cvtepi64_epi32(_mm512_add_epi64(base, run));
}

PT_INLINE __m512i
fused_index16(const struct pt_fused *f, const uint32_t *addr)
{
	return _mm512_inserti64x4(_mm512_castsi256_si512(fused_index8(f, addr)),
				  fused_index8(f, addr + 8), 1);
}

/* Eight leaves: scalar loads, see above. */
PT_INLINE __m256i
leaves8(const void *leaf, __m256i index, bool leaf32)
{
	const uint32_t *l32 = leaf;
	const uint16_t *l16 = leaf;
	uint32_t at[8] __attribute__((aligned(32)));

	_mm256_store_si256((void *)at, index);
	if (leaf32)
		return _mm256_set_epi32((int)l32[at[7]], (int)l32[at[6]], (int)l32[at[5]],
					(int)l32[at[4]], (int)l32[at[3]], (int)l32[at[2]],
					(int)l32[at[1]], (int)l32[at[0]]);
	return _mm256_cvtepu16_epi32(_mm_set_epi16((short)l16[at[7]], (short)l16[at[6]],
						   (short)l16[at[5]], (short)l16[at[4]],
						   (short)l16[at[3]], (short)l16[at[2]],
						   (short)l16[at[1]], (short)l16[at[0]]));
}

PT_INLINE __m512i
leaves16(const void *leaf, __m512i index, bool leaf32)
{
	__m256i lo = leaves8(leaf, _mm512_castsi512_si256(index), leaf32);
	__m256i hi = leaves8(leaf, _mm512_extracti64x4_epi64(index, 1), leaf32);

	return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

/* Fetch 16 leaves and finish: children by the scalar walk, zeros by the default. */
PT_INLINE void
fused_finish16(const struct pt_view *v, __m512i index, const uint32_t *addr,
	       uint32_t *value, __m512i dflt, bool leaf32)
{
	__m512i leaf = leaves16(v->leaf, index, leaf32);
	__mmask16 child = _mm512_test_epi32_mask(
		leaf, _mm512_set1_epi32(leaf32 ? (int)PT_CHILD : 0x8000));

	leaf = _mm512_mask_mov_epi32(leaf, _mm512_testn_epi32_mask(leaf, leaf), dflt);
	_mm512_storeu_si512(value, leaf);
	for (unsigned int m = child; __builtin_expect(m, 0); m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		value[i] =
			or_dflt(fused4(v, addr[i], leaf32),
				(uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(dflt)));
	}
}

PT_INLINE void
fused_bulk(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	   uint64_t dflt, bool leaf32)
{
	const __m512i d = _mm512_set1_epi32((int)(uint32_t)dflt);
	unsigned int i = 0;

	/* All entries first, then all leaves: the misses of 64 keys overlap. */
	for (; n - i >= 64; i += 64) {
		__m512i a = fused_index16(v->fused, addr + i);
		__m512i b = fused_index16(v->fused, addr + i + 16);
		__m512i c = fused_index16(v->fused, addr + i + 32);
		__m512i e = fused_index16(v->fused, addr + i + 48);

		fused_finish16(v, a, addr + i, value + i, d, leaf32);
		fused_finish16(v, b, addr + i + 16, value + i + 16, d, leaf32);
		fused_finish16(v, c, addr + i + 32, value + i + 32, d, leaf32);
		fused_finish16(v, e, addr + i + 48, value + i + 48, d, leaf32);
	}
	for (; n - i >= 16; i += 16)
		fused_finish16(v, fused_index16(v->fused, addr + i), addr + i, value + i, d,
			       leaf32);
	for (; i < n; i++)
		value[i] = or_dflt(fused4(v, addr[i], leaf32), dflt);
}

void
pt_bulk4_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		unsigned int n)
{
	uint64_t dflt;

	for (unsigned int i = 0, m; i < n; i += m) {
		m = n - i > PT_BLOCK ? PT_BLOCK : n - i;
		do {
			dflt = dflt_now(v);
			if (v->leaf32)
				fused_bulk(v, addr + i, value + i, m, dflt, true);
			else
				fused_bulk(v, addr + i, value + i, m, dflt, false);
		} while (dflt_changed(v, dflt));
	}
}

/* Eight keys on their way down. */
struct group6 {
	uint64_t at[8];  /* octet where the node reached begins */
	uint64_t key[8]; /* the next six bits on top */
	__m256i entry;   /* direct entries */
	__mmask8 active; /* there may be a node below */
	__mmask8 other;  /* to be walked lane by lane */
} __attribute__((aligned(64)));

/* The upper half of a key that lies in a packet, unaligned. */
PT_INLINE int64_t
key_hi(const uint8_t *addr)
{
	int64_t x;

	memcpy(&x, addr, sizeof(x));
	return x;
}

PT_INLINE int
entry6(const _Atomic uint32_t *entry, int64_t slot)
{
	return (int)atomic_load_explicit(&entry[slot], memory_order_acquire);
}

PT_INLINE void
group_start(const struct pt_view *v, struct group6 *g, const uint8_t *const *addr)
{
	const __m512i swap = _mm512_set_epi8(
		56, 57, 58, 59, 60, 61, 62, 63, 48, 49, 50, 51, 52, 53, 54, 55, 40, 41, 42,
		43, 44, 45, 46, 47, 32, 33, 34, 35, 36, 37, 38, 39, 24, 25, 26, 27, 28, 29,
		30, 31, 16, 17, 18, 19, 20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1,
		2, 3, 4, 5, 6, 7);
	const _Atomic uint32_t *e = v->entry + (1u << (PT6_OTHER - 3));
	int64_t at[8] __attribute__((aligned(64)));
	__m512i hi, slot, node;
	__m256i entry;

	hi = _mm512_set_epi64(key_hi(addr[7]), key_hi(addr[6]), key_hi(addr[5]),
			      key_hi(addr[4]), key_hi(addr[3]), key_hi(addr[2]),
			      key_hi(addr[1]), key_hi(addr[0]));
	hi = _mm512_shuffle_epi8(hi, swap);
	_mm512_store_si512(g->key, _mm512_slli_epi64(hi, PT6_BITS));
	g->other =
		_mm512_cmpneq_epi64_mask(_mm512_srli_epi64(hi, 61), _mm512_set1_epi64(1));
	slot = _mm512_srli_epi64(_mm512_slli_epi64(hi, 3), 67 - PT6_BITS);
	_mm512_store_si512(at, slot);
	IN_MEMORY(at);
	entry = _mm256_set_epi32(entry6(e, at[7]), entry6(e, at[6]), entry6(e, at[5]),
				 entry6(e, at[4]), entry6(e, at[3]), entry6(e, at[2]),
				 entry6(e, at[1]), entry6(e, at[0]));
	g->entry = entry;
	g->active = _mm256_movepi32_mask(entry) & (__mmask8)~g->other;
	node = _mm512_cvtepu32_epi64(entry);
	node = _mm512_maskz_srli_epi64(g->active, _mm512_slli_epi64(node, 33), 28);
	_mm512_store_si512(g->at, node);
}

/* 16 octets of 8 nodes, from octet `from` on, as two vectors of their halves. */
PT_INLINE void
nodes8(const void *node, const uint64_t *at, size_t from, __m512i *lo, __m512i *hi)
{
	const uint8_t *n = (const uint8_t *)node + from;
	__m128i x[8];
	__m256i y[4];
	__m512i even, odd;

	for (int i = 0; i < 8; i++)
		x[i] = _mm_loadu_si128((const void *)(n + at[i]));
	for (int i = 0; i < 2; i++) {
		y[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(x[4 * i]),
					       x[4 * i + 2], 1);
		y[i + 2] = _mm256_inserti128_si256(_mm256_castsi128_si256(x[4 * i + 1]),
						   x[4 * i + 3], 1);
	}
	even = _mm512_inserti64x4(_mm512_castsi256_si512(y[0]), y[1], 1);
	odd = _mm512_inserti64x4(_mm512_castsi256_si512(y[2]), y[3], 1);
	*lo = _mm512_unpacklo_epi64(even, odd);
	*hi = _mm512_unpackhi_epi64(even, odd);
}

/* One level down, by the top six bits of `key`, for the lanes that have a child there. */
PT_INLINE void
group_step(const struct pt_view *v, struct group6 *g)
{
	const __m512i one = _mm512_set1_epi64(1);
	__m512i child, base, bit, key, at;
	__mmask8 down;

	nodes8(v->node, g->at, 0, &child, &base);
	key = _mm512_load_si512(g->key);
	at = _mm512_load_si512(g->at);
	bit = _mm512_sllv_epi64(one, _mm512_srli_epi64(key, 58));
	down = _mm512_mask_test_epi64_mask(g->active, child, bit);
	child = _mm512_popcnt_epi64(_mm512_and_si512(child, _mm512_sub_epi64(bit, one)));
	base = _mm512_and_si512(base, _mm512_set1_epi64(0xffffffff));
	at = _mm512_mask_slli_epi64(at, down, _mm512_add_epi64(base, child), 5);
	_mm512_store_si512(g->at, at);
	_mm512_store_si512(g->key, _mm512_mask_slli_epi64(key, down, key, PT_STRIDE));
	g->active = down;
}

PT_INLINE void
group_finish(const struct pt_view *v, struct group6 *g, const uint8_t *const *addr,
	     uint32_t *value, uint64_t dflt)
{
	__m512i key = _mm512_load_si512(g->key), base, run, up;
	__mmask8 node;
	__m256i r, leaf;

	nodes8(v->node, g->at, offsetof(struct pt_wide, child_base), &base, &run);
	/* 63 - slot: the complement, of which the shift takes six bits. */
	up = _mm512_andnot_si512(_mm512_srli_epi64(key, 58), _mm512_set1_epi64(63));
	run = _mm512_popcnt_epi64(_mm512_sllv_epi64(run, up));
	base = _mm512_add_epi64(_mm512_srli_epi64(base, 32), run);
	node = _mm256_movepi32_mask(g->entry) & (__mmask8)~g->other;
	leaf = _mm256_maskz_mov_epi32(node, _mm512_cvtepi64_epi32(base));
	r = _mm256_mask_mov_epi32(g->entry, node, leaves8(v->leaf, leaf, v->leaf32));
	r = _mm256_mask_mov_epi32(r, _mm256_testn_epi32_mask(r, r),
				  _mm256_set1_epi32((int)(uint32_t)dflt));
	_mm256_storeu_si256((void *)value, r);
	for (unsigned int m = g->other | g->active; __builtin_expect(m, 0); m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		value[i] = or_dflt(wide6(v, addr[i]), dflt);
	}
}

static void
wide6_groups(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
	     unsigned int groups, uint64_t dflt)
{
	struct group6 g[GROUPS6];
	bool more = true;

	for (unsigned int i = 0; i < groups; i++)
		group_start(v, &g[i], addr + 8 * i);
	for (int level = 0; level < (64 - PT6_BITS) / PT_STRIDE && more; level++) {
		more = false;
		for (unsigned int i = 0; i < groups; i++) {
			if (g[i].active == 0)
				continue;
			group_step(v, &g[i]);
			more |= g[i].active != 0;
		}
	}
	for (unsigned int i = 0; i < groups; i++)
		group_finish(v, &g[i], addr + 8 * i, value + 8 * i, dflt);
}

void
pt_bulk6_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		unsigned int n)
{
	uint64_t dflt;

	for (unsigned int i = 0, m; i < n; i += m) {
		m = n - i > 8 * GROUPS6 ? 8 * GROUPS6 : n - i;
		do {
			dflt = dflt_now(v);
			wide6_groups(v, addr + i, value + i, m / 8, dflt);
			for (unsigned int j = i + (m & ~7u); j < i + m; j++)
				value[j] = or_dflt(wide6(v, addr[j]), dflt);
		} while (dflt_changed(v, dflt));
	}
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
