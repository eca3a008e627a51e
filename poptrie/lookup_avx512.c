/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk lookups with AVX-512 (F, BW, DQ, VL, VPOPCNTDQ), 16 IPv4 or 8 IPv6 keys a vector.
 * Any reader thread. A direct entry is read by one aligned 16-byte load for each key, never
 * by gathers, which could see the halves of two entries.
 *
 * One load for a node and a transpose in registers beat three gathers by far. Scalar loads
 * beat the other gathers too: gathers of the keys and direct entries of IPv6 halved its
 * rate (82 against 195 M/s). Gathers of the leaves cost a tenth on a CPU where gathers are
 * fast, and much more where microcode slows them. Levels that few keys reach (IPv4 beyond
 * /24, IPv6 beyond /60 or outside 2000::/3) are left to the scalar walk, lane by lane.
 *
 * The loops of IPv4 are short on purpose. When the compiler unrolls them to a batch, the
 * same instructions are no slower on a table in the L1, but 0.9 / 0.8 / 0.9 times as fast
 * on a full table (random / inprefix / zipf), because prefetchers learn by the address of
 * an instruction. Eight keys a round have 1.03 to 1.06 times the rate of 4 and 16.
 *
 * 8 to 15 IPv4 keys take the passes of the scalar walk, which have 1.2 to 1.5 times the
 * rate of one key after the other (Zen 4, inprefix). If ten or more keys are left behind
 * the last sixteen, a vector that ends with the last key looks them up: 1.2 to 1.5 times
 * the rate for 26, 29 and 45 keys. Fewer keys are faster one by one. A vector with 0.0.0.0
 * in place of the missing keys was as fast, but only if it stored the values without a
 * mask: after a store under a mask, loads of the values wait, and bursts of 4 lost a tenth.
 *
 * Tried without gain for IPv4. The rates (random / inprefix / zipf) are relative to the
 * same loop without the change:
 * - prefetching the entries of all 64 keys first: 0.97 / 0.96 / 0.96; prefetching their
 *   leaves: 0.69 / 0.72 / 0.70. It takes a hundred instructions more, and the reorder
 *   buffer has the same effect;
 * - gathers of the leaves: 0.91 / 0.92 / 0.91;
 * - computing the addresses in vectors: 0.96 / 0.95 / 0.97. To load the addresses from a
 *   vector store takes the two pipes that vector loads need, and to extract them from
 *   registers is no cheaper;
 * - entries inserted from memory or broadcast under a mask: 1.0, and not always atomic;
 * - a leaf loaded and stored as a scalar, zeros and children looked for afterwards: 0.76 /
 *   0.70 / 0.73; leaves as 32-bit loads, two of which overlap: 1.0;
 * - one cache line from the L3 for a lookup instead of two: a direct table of 4-octet
 *   entries (1 MiB, which the L2 nearly holds) in front of records of one line each. A
 *   record has the run and up to 28 leaves; if there are more, it is flat: 64 leaves
 *   without a run. 0.65 / 0.74 / 0.75 if flat records are prefetched, 0.57 / 0.57 / 0.69 if
 *   not; 0.46 to 0.52 if all of it is scalar, without a branch. The three loads of a key,
 *   each of which waits for the previous load, cost more than the line that they save.
 *
 * IPv6: lanes become addresses by a store and scalar loads, behind a barrier. Without the
 * barrier the compiler extracts the addresses from registers (193 against 235 M/s). To
 * descend, 16 octets of a node are enough; the leaf runs of all eight lanes are loaded
 * once, at the end.
 *
 * The direct entries of all 64 keys are prefetched before the first is read. If all entries
 * are values, the lookup ends there. On a Xeon whose L3 other guests use, a table of four
 * short prefixes then has 2.2 times the rate (random) and a table of a thousand /48s 1.05
 * (inprefix); the rate of a router with a full table is the same (0.99). A vector that ends
 * with the last key looks up the last keys: 1.4 times the rate of one key after the other
 * for 12, 20 and 29 keys, 1.04 to 1.1 times for 9 keys (Zen 4, inprefix).
 *
 * Tried without gain for IPv6: 26 direct bits (a level less for a /32, but a table four
 * times as long), collecting keys and entries in arrays first (a third slower, because the
 * vector loads wait for the stores), and prefetching the nodes of the next level (192
 * against 250 M/s: 16 more instructions a step, and the reorder buffer has the same
 * effect).
 *
 * Tried as prototypes with too little gain. The rates (inprefix / zipf, 160 k real routes)
 * are relative to the loop below in the same run. Each change had one to four runs, in
 * which the rate of the loop below varied from 258 to 325 M/s (zipf), so the numbers are
 * hints:
 * - (1) the last node of a /48 loaded whole, which saves the step that only finds no child,
 *   and keys kept complemented, which makes the rank of a child shorter: 1.02 / 1.07; in
 *   the library 0.97 / 1.07, less than its spread;
 * - (2) eight bits a level, two direct and six counted (three levels instead of four, but
 *   4.6 MiB of nodes instead of 2.1): 1.09 / 1.09, together with (1) 1.08 / 1.14;
 * - (3) two plain tables before the nodes: tables of 22 and 10 bits, then eight bits a
 *   level: 0.8 to 1.07 / 1.0 to 1.27, the least steady (8.6 MiB of second tables); 24 and 8
 *   bits, then eight: 0.7 / 0.86; 22 and 8 bits, then six: no better than one table with
 *   (1);
 * - (4) broadcasts under a mask instead of inserts: 1.0.
 *
 * Even 64 keys whose memory stays in the L1 gained only 1.09 by (1), and 1.17 by (1) and
 * (2).
 */
#include <string.h>
#define X86_ALL_INSTRUCTIONS
#include <immintrin.h>
#include "poptrie/impl.h"
#ifdef __clang__
#pragma clang attribute push(                                                          \
	__attribute__((target(                                                         \
		"avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi,bmi2"))), \
	apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi,bmi2")
#endif
#include "poptrie/walk.h"

/*
 * Make the compiler store to memory the lanes that become addresses, because its own choice
 * costs more.
 */
#define IN_MEMORY(x) __asm__("" : "+m"(x))
/* SHRX with a key in memory is one instruction, if its count is in a register. */
#define IN_REGISTER(x) __asm__("" : "+r"(x))
#define GROUP4         64 /* keys whose misses overlap */
#define REST4_MIN      10 /* fewer keys behind the last sixteen are walked one by one */
#define GROUPS6        8 /* groups of 8 keys at the same level, so that 64 misses overlap */

/*
 * Load an entry by VMOVDQA, which is atomic where other forms may not be. The compiler
 * chooses the address, but not the instruction.
 */
PT_INLINE __m128i
entry_load(const struct pt_fused *f, uint32_t addr, unsigned int to_octet)
{
	const uint8_t *at = (const uint8_t *)f + (addr >> to_octet & ~15u);
	__m128i x;

	__asm__("vmovdqa %1, %0" : "=x"(x) : "m"(*(const __m128i *)at));
	return x;
}

/* Load the entries of keys a, b, c, d, one after the other. */
PT_INLINE __m512i
entries4(const struct pt_fused *f, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	unsigned int s = 32 - PT4_BITS - 4; /* from key to octet; an entry has 16 octets */
	__m256i lo, hi;

	IN_REGISTER(s);
	lo = _mm256_inserti128_si256(_mm256_castsi128_si256(entry_load(f, a, s)),
				     entry_load(f, b, s), 1);
	hi = _mm256_inserti128_si256(_mm256_castsi128_si256(entry_load(f, c, s)),
				     entry_load(f, d, s), 1);
	return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

/* Return the leaf indices of 8 keys. */
PT_INLINE __m256i
fused_index8(const struct pt_fused *f, const uint32_t *addr)
{
	__m512i even = entries4(f, addr[0], addr[2], addr[4], addr[6]);
	__m512i odd = entries4(f, addr[1], addr[3], addr[5], addr[7]);
	__m512i run = _mm512_unpacklo_epi64(even, odd);
	__m512i base = _mm512_unpackhi_epi64(even, odd);
	__m512i key = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)addr));
	/* Compute 63 - slot, the complement of the six bits of the slot. */
	__m512i up = _mm512_andnot_si512(_mm512_srli_epi64(key, 26 - PT4_BITS),
					 _mm512_set1_epi64(63));

	run = _mm512_popcnt_epi64(_mm512_sllv_epi64(run, up));
	return _mm512_cvtepi64_epi32(_mm512_add_epi64(base, run));
}

/* Load eight 16-bit leaves by scalar loads; see the top of the file. */
PT_INLINE __m128i
words8(const uint16_t *leaf, const uint32_t *at)
{
	__m128i x = _mm_setzero_si128();

	x = _mm_insert_epi16(x, leaf[at[0]], 0);
	x = _mm_insert_epi16(x, leaf[at[1]], 1);
	x = _mm_insert_epi16(x, leaf[at[2]], 2);
	x = _mm_insert_epi16(x, leaf[at[3]], 3);
	x = _mm_insert_epi16(x, leaf[at[4]], 4);
	x = _mm_insert_epi16(x, leaf[at[5]], 5);
	x = _mm_insert_epi16(x, leaf[at[6]], 6);
	return _mm_insert_epi16(x, leaf[at[7]], 7);
}

PT_INLINE __m256i
leaves8(const void *leaf, const uint32_t *at, bool leaf32)
{
	const uint32_t *l = leaf;

	if (!leaf32)
		return _mm256_cvtepu16_epi32(words8(leaf, at));
	return _mm256_set_epi32((int)l[at[7]], (int)l[at[6]], (int)l[at[5]], (int)l[at[4]],
				(int)l[at[3]], (int)l[at[2]], (int)l[at[1]], (int)l[at[0]]);
}

PT_INLINE __m512i
leaves16(const void *leaf, const uint32_t *at, bool leaf32)
{
	__m256i lo, hi;

	if (!leaf32) {
		lo = _mm256_castsi128_si256(words8(leaf, at));
		return _mm512_cvtepu16_epi32(
			_mm256_inserti128_si256(lo, words8(leaf, at + 8), 1));
	}
	lo = leaves8(leaf, at, true);
	hi = leaves8(leaf, at + 8, true);
	return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

/* Load 16 leaves and replace zeros by the default; children are left to the scalar walk. */
PT_INLINE void
fused_finish16(const struct pt_view *v, const uint32_t *at, const uint32_t *addr,
	       uint32_t *value, __m512i dflt, bool leaf32)
{
	__m512i leaf = leaves16(v->leaf, at, leaf32);
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

/*
 * Look up 16 to GROUP4 keys: all entries first, then all leaves, so that the misses
 * overlap. The compiler cannot unroll a loop of unknown length; see the top of the file. If
 * at least REST4_MIN keys remain after the groups of 16, the last 16 keys are looked up
 * together, some of them a second time. Fewer remaining keys are looked up one by one.
 */
PT_INLINE void
fused_group(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	    uint64_t dflt, bool leaf32)
{
	const __m512i d = _mm512_set1_epi32((int)(uint32_t)dflt);
	uint32_t at[GROUP4] __attribute__((aligned(64)));
	unsigned int in16 = n & ~15u, last = n - 16;
	bool rest = n - in16 >= REST4_MIN;

	for (unsigned int i = 0; i < in16; i += 8)
		_mm256_store_si256((void *)(at + i), fused_index8(v->fused, addr + i));
	for (unsigned int i = 0; rest && i < 16; i += 8)
		_mm256_store_si256((void *)(at + in16 + i),
				   fused_index8(v->fused, addr + last + i));
	for (unsigned int i = 0; i < in16; i += 16)
		fused_finish16(v, at + i, addr + i, value + i, d, leaf32);
	if (rest)
		fused_finish16(v, at + in16, addr + last, value + last, d, leaf32);
	else
		fused_few(v, addr + in16, value + in16, n - in16, dflt, leaf32);
}

PT_INLINE void
fused_bulk(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	   bool leaf32)
{
	uint64_t dflt;

	for (unsigned int m; n; n -= m, addr += m, value += m) {
		m = n < GROUP4 ? n : GROUP4;
		do {
			dflt = dflt_now(v);
			if (m < 16)
				fused_scalar(v, addr, value, m, dflt, leaf32);
			else
				fused_group(v, addr, value, m, dflt, leaf32);
		} while (dflt_changed(v, dflt));
	}
}

static __attribute__((noinline)) void
many4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	if (v->leaf32)
		fused_bulk(v, addr, value, n, true);
	else
		fused_bulk(v, addr, value, n, false);
}

void
pt_bulk4_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		unsigned int n)
{
	few_or_many4(v, addr, value, n, many4);
}

/* The state of eight keys during the walk. */
struct group6 {
	uint64_t at[8];  /* octet at which the reached node begins */
	uint64_t key[8]; /* unread bits of the upper half, the next bits on top */
	int64_t slot[8]; /* in the direct table, counted from entries_of() */
	__m256i entry;   /* direct entries */
	__mmask8 active; /* lanes that may have a node below */
	__mmask8 other;  /* lanes for the scalar walk */
} __attribute__((aligned(64)));

/* Load the upper half of a key from a packet, where it may be unaligned. */
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

/* Return the upper halves of 8 keys. */
PT_INLINE __m512i
keys_hi8(const uint8_t *const *addr)
{
	const __m512i swap = _mm512_set_epi8(
		56, 57, 58, 59, 60, 61, 62, 63, 48, 49, 50, 51, 52, 53, 54, 55, 40, 41, 42,
		43, 44, 45, 46, 47, 32, 33, 34, 35, 36, 37, 38, 39, 24, 25, 26, 27, 28, 29,
		30, 31, 16, 17, 18, 19, 20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1,
		2, 3, 4, 5, 6, 7);
	__m512i hi = _mm512_set_epi64(key_hi(addr[7]), key_hi(addr[6]), key_hi(addr[5]),
				      key_hi(addr[4]), key_hi(addr[3]), key_hi(addr[2]),
				      key_hi(addr[1]), key_hi(addr[0]));

	return _mm512_shuffle_epi8(hi, swap);
}

/*
 * Return the direct entry from which a group counts its slots: the first entry of the
 * table, or in a large IPv6 table the first entry of 2000::/3.
 */
PT_INLINE const _Atomic uint32_t *
entries_of(const struct pt_view *v, enum table table)
{
	return v->entry + (table == WIDE6 ? 1u << (PT6_OTHER - 3) : 0);
}

/*
 * Store the slots of the keys in the direct table. Prefetch the entries of a large table,
 * because the entries of 64 keys do not fit the reorder buffer.
 */
PT_INLINE void
group_slots(struct group6 *g, const _Atomic uint32_t *e, __m512i slot, enum table table)
{
	_mm512_store_si512(g->slot, slot);
	IN_MEMORY(g->slot);
	for (unsigned int i = 0; table == WIDE6 && i < 8; i++)
		__builtin_prefetch((const void *)&e[g->slot[i]]);
}

/* Begin at the nodes that the direct entries name. `e` is the same as in group_slots(). */
PT_INLINE void
group_enter(struct group6 *g, const _Atomic uint32_t *e)
{
	const int64_t *at = g->slot;
	__m256i entry;
	__m512i node;

	entry = _mm256_set_epi32(entry6(e, at[7]), entry6(e, at[6]), entry6(e, at[5]),
				 entry6(e, at[4]), entry6(e, at[3]), entry6(e, at[2]),
				 entry6(e, at[1]), entry6(e, at[0]));
	g->entry = entry;
	g->active = _mm256_movepi32_mask(entry) & (__mmask8)~g->other;
	node = _mm512_cvtepu32_epi64(entry);
	node = _mm512_maskz_srli_epi64(g->active, _mm512_slli_epi64(node, 33), 28);
	_mm512_store_si512(g->at, node);
}

PT_INLINE void
group_start(const struct pt_view *v, struct group6 *g, const uint8_t *const *addr)
{
	__m512i hi = keys_hi8(addr);

	_mm512_store_si512(g->key, _mm512_slli_epi64(hi, PT6_BITS));
	g->other =
		_mm512_cmpneq_epi64_mask(_mm512_srli_epi64(hi, 61), _mm512_set1_epi64(1));
	group_slots(g, entries_of(v, WIDE6),
		    _mm512_srli_epi64(_mm512_slli_epi64(hi, 3), 67 - PT6_BITS), WIDE6);
}

/* Begin in a small table. */
PT_INLINE void
group_start_small(const struct pt_view *v, struct group6 *g, __m512i hi)
{
	_mm512_store_si512(g->key, _mm512_slli_epi64(hi, PT_SMALL_BITS));
	g->other = 0;
	group_slots(g, v->entry, _mm512_srli_epi64(hi, 64 - PT_SMALL_BITS), SMALL6);
}

/* Load 16 octets of 8 nodes, from octet `from` on, as two vectors of their halves. */
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

/* Descend one level, by the top six bits of `key`, in the lanes that have a child there. */
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

/* Write leaves as values, with the default in place of 0. */
PT_INLINE void
values8_store(uint32_t *value, __m256i leaf, uint64_t dflt)
{
	leaf = _mm256_mask_mov_epi32(leaf, _mm256_testn_epi32_mask(leaf, leaf),
				     _mm256_set1_epi32((int)(uint32_t)dflt));
	_mm256_storeu_si256((void *)value, leaf);
}

/* Write the values. Returns the lanes that are left to the scalar walk. */
PT_INLINE __mmask8
group_finish(const struct pt_view *v, struct group6 *g, uint32_t *value, uint64_t dflt)
{
	__m512i key = _mm512_load_si512(g->key), base, run, up;
	uint32_t at[8] __attribute__((aligned(32)));
	__mmask8 node;
	__m256i r;

	nodes8(v->node, g->at, offsetof(struct pt_wide, child_base), &base, &run);
	/* Compute 63 - slot, the complement of the six bits of the slot. */
	up = _mm512_andnot_si512(_mm512_srli_epi64(key, 58), _mm512_set1_epi64(63));
	run = _mm512_popcnt_epi64(_mm512_sllv_epi64(run, up));
	base = _mm512_add_epi64(_mm512_srli_epi64(base, 32), run);
	node = _mm256_movepi32_mask(g->entry) & (__mmask8)~g->other;
	_mm256_store_si256((void *)at,
			   _mm256_maskz_mov_epi32(node, _mm512_cvtepi64_epi32(base)));
	r = _mm256_mask_mov_epi32(g->entry, node, leaves8(v->leaf, at, v->leaf32));
	values8_store(value, r, dflt);
	return g->other | g->active;
}

/* Descend while there are nodes and the upper halves of the keys have bits left. */
PT_INLINE void
groups_walk(const struct pt_view *v, struct group6 *g, unsigned int groups,
	    unsigned int bits)
{
	bool more = true;

	for (unsigned int level = 0; level < (64 - bits) / PT_STRIDE && more; level++) {
		more = false;
		for (unsigned int i = 0; i < groups; i++) {
			if (g[i].active == 0)
				continue;
			group_step(v, &g[i]);
			more |= g[i].active != 0;
		}
	}
}

/* Begin the walk of keys `i` to `i` + 7. */
PT_INLINE void
keys_start(const struct pt_view *v, struct group6 *g, union keys key, unsigned int i,
	   enum table table)
{
	if (table == WIDE6)
		group_start(v, g, key.ip6 + i);
	else if (table == SMALL6)
		group_start_small(v, g, keys_hi8(key.ip6 + i));
	else
		group_start_small(
			v, g,
			_mm512_slli_epi64(_mm512_cvtepu32_epi64(_mm256_loadu_si256(
						  (const void *)(key.ip4 + i))),
					  32));
}

/*
 * Look up 8 to 8 * GROUPS6 keys. The last group ends with the last key, so that it may look
 * up some keys a second time. An IPv4 address has an upper half only, so that no lane is
 * left to the scalar walk.
 */
PT_INLINE void
groups_find(const struct pt_view *v, union keys key, unsigned int from, uint32_t *value,
	    unsigned int n, uint64_t dflt, enum table table)
{
	const unsigned int groups = (n + 7) / 8, last = from + n - 8;
	struct group6 g[GROUPS6];
	unsigned int any = 0;

	for (unsigned int i = 0, at = from; i < groups; i++, at += 8)
		keys_start(v, &g[i], key, at < last ? at : last, table);
	for (unsigned int i = 0; i < groups; i++) {
		group_enter(&g[i], entries_of(v, table));
		any |= g[i].active | g[i].other;
	}
	/*
	 * No entry has a node: this is nearly always so in a table of few short prefixes.
	 */
	if (any == 0) {
		for (unsigned int i = 0, at = from; i < groups; i++, at += 8)
			values8_store(value + (at < last ? at : last), g[i].entry, dflt);
		return;
	}
	groups_walk(v, g, groups, table == WIDE6 ? PT6_BITS : PT_SMALL_BITS);
	for (unsigned int i = 0, at = from; i < groups; i++, at += 8) {
		unsigned int first = at < last ? at : last;
		unsigned int m = group_finish(v, &g[i], value + first, dflt);

		for (; table != SMALL4 && __builtin_expect(m, 0); m &= m - 1) {
			unsigned int j = first + (unsigned int)__builtin_ctz(m);

			value[j] = or_dflt(key_walk(v, key, j, table), dflt);
		}
	}
}

/*
 * Look up `n` keys in batches, fewer than eight of them one by one. A batch starts again
 * when the default changed during it.
 */
PT_INLINE void
keys_bulk(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	  enum table table)
{
	uint64_t dflt;

	for (unsigned int i = 0, m; i < n; i += m) {
		m = n - i > 8 * GROUPS6 ? 8 * GROUPS6 : n - i;
		do {
			dflt = dflt_now(v);
			if (m >= 8)
				groups_find(v, key, i, value, m, dflt, table);
			for (unsigned int j = i; m < 8 && j < i + m; j++)
				value[j] = or_dflt(key_walk(v, key, j, table), dflt);
		} while (dflt_changed(v, dflt));
	}
}

void
pt_bulk4_small_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		      unsigned int n)
{
	keys_bulk(v, (union keys){.ip4 = addr}, value, n, SMALL4);
}

void
pt_bulk6_small_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		      unsigned int n)
{
	keys_bulk(v, (union keys){.ip6 = addr}, value, n, SMALL6);
}

void
pt_bulk6_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		unsigned int n)
{
	keys_bulk(v, (union keys){.ip6 = addr}, value, n, WIDE6);
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
