/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up one key in either layout. The functions are inlined into each variant and
 * compiled for its CPU. They load a direct entry as a whole, and once for an answer.
 */
#ifndef POPTRIE_WALK_H
#define POPTRIE_WALK_H

#include <string.h>
#include "poptrie/arch.h"

#define PT_BLOCK 64 /* keys between two reads of the default */

/*
 * Load a leaf at once, because leaves may change in place (build.c). Relaxed is enough:
 * each lookup calls dflt_changed() after its leaves.
 */
PT_INLINE uint32_t
leaf_load(const void *leaf, uint32_t i, bool leaf32)
{
	return leaf32 ? atomic_load_explicit((const _Atomic uint32_t *)leaf + i,
					     memory_order_relaxed)
		      : atomic_load_explicit((const _Atomic uint16_t *)leaf + i,
					     memory_order_relaxed);
}

/* Return the leaf of `key` in node `e`; the next six bits of the key are its top ones. */
PT_INLINE uint32_t
fused_leaf(const struct pt_view *v, struct pair e, uint32_t key, bool leaf32)
{
	uint32_t i = (uint32_t)e.base +
		     (uint32_t)__builtin_popcountll(e.run << (63 - (key >> 26)));

	return leaf_load(v->leaf, i, leaf32);
}

PT_INLINE uint32_t
fused4(const struct pt_view *v, uint32_t addr, bool leaf32)
{
	const uint32_t child = leaf32 ? PT_CHILD : 0x8000u;
	const struct pt_fused *node = v->node;
	struct pair e = load16(&v->fused[addr >> (32 - PT4_BITS)]);
	uint32_t key = addr << PT4_BITS;
	uint32_t leaf = fused_leaf(v, e, key, leaf32);

	while (__builtin_expect(leaf & child, 0)) {
		e = load16(&node[(e.base >> 32) + (leaf & ~child)]);
		key <<= PT_STRIDE;
		leaf = fused_leaf(v, e, key, leaf32);
	}
	return leaf;
}

/*
 * Walk from direct entry `e` down; the key is shifted so that its unread bits come first.
 */
PT_INLINE uint32_t
wide_walk(const struct pt_view *v, uint32_t e, uint64_t hi, uint64_t lo)
{
	const struct pt_wide *n = v->node;
	unsigned int s;
	uint32_t i;

	if ((e & PT_CHILD) == 0)
		return e;
	n += e & ~PT_CHILD;
	s = hi >> 58;
	while (n->child >> s & 1) {
		i = __atomic_load_n(&n->child_base, __ATOMIC_ACQUIRE) +
		    (uint32_t)__builtin_popcountll(n->child & ((1ull << s) - 1));
		n = (const struct pt_wide *)v->node + i;
		hi = hi << PT_STRIDE | lo >> (64 - PT_STRIDE);
		lo <<= PT_STRIDE;
		s = hi >> 58;
	}
	i = __atomic_load_n(&n->leaf_base, __ATOMIC_ACQUIRE) +
	    (uint32_t)__builtin_popcountll(n->run << (63 - s));
	return leaf_load(v->leaf, i, v->leaf32);
}

PT_INLINE uint32_t
walk4(const struct pt_view *v, uint32_t addr, unsigned int bits)
{
	uint32_t e =
		atomic_load_explicit(&v->entry[addr >> (32 - bits)], memory_order_acquire);

	return wide_walk(v, e, (uint64_t)addr << (32 + bits), 0);
}

PT_INLINE uint32_t
wide4(const struct pt_view *v, uint32_t addr)
{
	return walk4(v, addr, PT4_BITS);
}

PT_INLINE uint32_t
walk6(const struct pt_view *v, const uint8_t *addr, enum pt_shape shape)
{
	unsigned int bits;
	struct pt_key k;
	uint32_t e;

	memcpy(&k.hi, addr, 8);
	memcpy(&k.lo, addr + 8, 8);
	k.hi = __builtin_bswap64(k.hi);
	k.lo = __builtin_bswap64(k.lo);
	bits = pt_slot_bits(shape, k);
	e = atomic_load_explicit(&v->entry[pt_slot_of(shape, k)], memory_order_acquire);
	return wide_walk(v, e, k.hi << bits | k.lo >> (64 - bits), k.lo << bits);
}

PT_INLINE uint32_t
wide6(const struct pt_view *v, const uint8_t *addr)
{
	return walk6(v, addr, PT_SHAPE6);
}

/* Look up a key in a small table. */
PT_INLINE uint32_t
small4(const struct pt_view *v, uint32_t addr)
{
	return walk4(v, addr, PT_SMALL_BITS);
}

PT_INLINE uint32_t
small6(const struct pt_view *v, const uint8_t *addr)
{
	return walk6(v, addr, PT_SHAPE_SMALL);
}

PT_INLINE uint64_t
dflt_now(const struct pt_view *v)
{
	return atomic_load_explicit(&v->dflt, memory_order_acquire);
}

/*
 * Return true if the default is not `dflt`, which was read before the leaves. What the writer
 * stored before a leaf that was read is visible after this.
 */
PT_INLINE bool
dflt_changed(const struct pt_view *v, uint64_t dflt)
{
	pt_reader_fence();
	return __builtin_expect(dflt != dflt_now(v), 0);
}

/* Copy the direct entries of 16 keys into memory. */
PT_INLINE void
entries16(struct pt_fused *entry, const struct pt_view *v, const uint32_t *addr)
{
	for (unsigned int j = 0; j < 16; j++)
		entry_to(&entry[j], v->fused, addr[j]);
}

/* Compute the leaf indices of 16 keys, and prefetch the leaves. */
PT_INLINE void
indices16(uint32_t *at, const struct pt_fused *entry, const struct pt_view *v,
	  const uint32_t *addr, bool leaf32)
{
	for (unsigned int j = 0; j < 16; j++) {
		uint32_t up = ~(addr[j] >> (26 - PT4_BITS)) & 63;

		at[j] = entry[j].leaf_base +
			(uint32_t)__builtin_popcountll(entry[j].run << up);
		__builtin_prefetch((const uint8_t *)v->leaf +
				   (size_t)at[j] * (leaf32 ? 4 : 2));
	}
}

/*
 * Work in passes, so that the loads of all entries are under way before the first leaf is
 * loaded: the reorder buffer alone holds a dozen keys (a fifth faster at full tables).
 * Entries go through memory: that is less work than moving halves of vector registers to
 * general ones (a tenth to a fifth). A pass has sixteen keys, a number that the compiler
 * knows. The next sixteen entries are loaded before the leaf indices of these are computed,
 * and the leaves are prefetched, so that the last pass seldom waits.
 *
 * Relative to sixteen at a time without the two, random / inprefix / zipf, scalar and AVX2:
 * - both, as here: 1.15 / 1.26 / 1.19 and 1.13 / 1.31 / 1.23;
 * - leaves prefetched only: 1.10 / 1.26 / 1.20 and 0.95 / 1.13 / 1.06; then 8 or 32 at a
 *   time is no better;
 * - all entries prefetched, then their leaves: 1.29 / 1.35 / 1.24 and 1.09 / 1.24 / 1.11,
 *   but unsteady with a second core in the L3; without the leaves: 1.0 / 0.95 / 1.0;
 * - both, and the entries behind the next sixteen prefetched, too: as both.
 *
 * Tried without gain: one test for children at the end instead of a branch for each key
 * (0.9).
 */
PT_INLINE void
fused_scalar(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	     uint64_t dflt, bool leaf32)
{
	const uint32_t child = leaf32 ? PT_CHILD : 0x8000u;
	unsigned int in16 = n & ~15u;
	struct pt_fused entry[2][16];
	uint32_t at[PT_BLOCK];

	if (in16)
		entries16(entry[0], v, addr);
	for (unsigned int i = 0; i < in16; i += 16) {
		if (i + 16 < in16)
			entries16(entry[~i >> 4 & 1], v, addr + i + 16);
		indices16(at + i, entry[i >> 4 & 1], v, addr + i, leaf32);
	}
	for (unsigned int j = 0; j < in16; j++) {
		uint32_t leaf = leaf_load(v->leaf, at[j], leaf32);

		if (__builtin_expect(leaf & child, 0))
			leaf = fused4(v, addr[j], leaf32);
		value[j] = or_dflt(leaf, dflt);
	}
	for (unsigned int j = in16; j < n; j++)
		value[j] = or_dflt(fused4(v, addr[j], leaf32), dflt);
}

/*
 * Look up keys in blocks of PT_BLOCK. A block starts again when the default changed,
 * because a 0 stands for the default that was in force when the slot was read.
 */
PT_INLINE void
scalar_bulk4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	     bool wide, bool leaf32)
{
	uint64_t dflt;

	for (unsigned int i = 0, end; i < n; i = end) {
		end = n - i > PT_BLOCK ? i + PT_BLOCK : n;
		do {
			dflt = dflt_now(v);
			if (!wide)
				fused_scalar(v, addr + i, value + i, end - i, dflt, leaf32);
			for (unsigned int j = i; wide && j < end; j++)
				value[j] = or_dflt(wide4(v, addr[j]), dflt);
		} while (dflt_changed(v, dflt));
	}
}

PT_INLINE void
scalar_bulk6(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
	     unsigned int n)
{
	uint64_t dflt;

	for (unsigned int i = 0, end; i < n; i = end) {
		end = n - i > PT_BLOCK ? i + PT_BLOCK : n;
		do {
			dflt = dflt_now(v);
			for (unsigned int j = i; j < end; j++)
				value[j] = or_dflt(wide6(v, addr[j]), dflt);
		} while (dflt_changed(v, dflt));
	}
}

#endif
