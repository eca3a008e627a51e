/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scalar lookups, the reference for all other variants. Any reader thread, wait-free but
 * for one repetition when the default route changes underneath. They must never read a
 * direct entry in two pieces, nor go back to the table for a second look at a key.
 *
 * Tried without gain: holding back lanes that need a second level and finishing them
 * together. The out-of-order core overlaps a dozen plain lookups already.
 */
#include <string.h>
#include <emmintrin.h>
#include "impl.h"

#define BLOCK 256 /* keys between two looks at the default */

struct pair {
	uint64_t run;
	uint64_t base; /* child_base << 32 | leaf_base */
};

/* One load of 16 octets: the compiler must not make two of it. */
static inline struct pair
load16(const struct pt_fused *f)
{
	__m128i x;

	__asm__("movdqa %1, %0" : "=x"(x) : "m"(*(const __m128i *)f));
	return (struct pair){(uint64_t)_mm_cvtsi128_si64(x),
			     (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x))};
}

/* `s`: the key, whose next six bits are the top ones. */
static inline uint32_t
fused_leaf(const struct pt_view *v, struct pair e, uint32_t key, bool leaf32)
{
	uint32_t i = (uint32_t)e.base +
		     (uint32_t)__builtin_popcountll(e.run << (63 - (key >> 26)));

	return leaf32 ? ((const uint32_t *)v->leaf)[i] : ((const uint16_t *)v->leaf)[i];
}

static inline uint32_t
fused4(const struct pt_view *v, uint32_t addr, bool leaf32)
{
	const uint32_t child = leaf32 ? PT_CHILD : 0x8000u;
	const struct pt_fused *node = v->node;
	struct pair e = load16(&v->fused[addr >> (32 - PT4_BITS)]);
	uint32_t key = addr << PT4_BITS;
	uint32_t leaf = fused_leaf(v, e, key, leaf32);

	while (__builtin_expect(leaf & child, 0)) {
		const struct pt_fused *n = &node[(e.base >> 32) + (leaf & ~child)];

		key <<= PT_STRIDE;
		e = (struct pair){n->run, (uint64_t)n->child_base << 32 | n->leaf_base};
		leaf = fused_leaf(v, e, key, leaf32);
	}
	return leaf;
}

/* From direct entry `e` on, with the key shifted so that unread bits come first. */
static inline uint32_t
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
		i = n->child_base +
		    (uint32_t)__builtin_popcountll(n->child & ((1ull << s) - 1));
		n = (const struct pt_wide *)v->node + i;
		hi = hi << PT_STRIDE | lo >> (64 - PT_STRIDE);
		lo <<= PT_STRIDE;
		s = hi >> 58;
	}
	i = n->leaf_base + (uint32_t)__builtin_popcountll(n->run << (63 - s));
	return v->leaf32 ? ((const uint32_t *)v->leaf)[i] : ((const uint16_t *)v->leaf)[i];
}

static inline uint32_t
wide4(const struct pt_view *v, uint32_t addr)
{
	uint32_t e = atomic_load_explicit(&v->entry[addr >> (32 - PT4_BITS)],
					  memory_order_acquire);

	return wide_walk(v, e, (uint64_t)addr << (32 + PT4_BITS), 0);
}

static inline uint32_t
wide6(const struct pt_view *v, const uint8_t *addr)
{
	unsigned int bits;
	struct pt_key k;
	uint32_t e;

	memcpy(&k.hi, addr, 8);
	memcpy(&k.lo, addr + 8, 8);
	k.hi = __builtin_bswap64(k.hi);
	k.lo = __builtin_bswap64(k.lo);
	bits = pt_slot_bits(true, k);
	e = atomic_load_explicit(&v->entry[pt_slot_of(true, k)], memory_order_acquire);
	return wide_walk(v, e, k.hi << bits | k.lo >> (64 - bits), k.lo << bits);
}

static inline uint64_t
dflt_now(const struct pt_view *v)
{
	return atomic_load_explicit(&v->dflt, memory_order_acquire);
}

static inline uint32_t
lookup4(const struct pt_view *v, uint32_t addr)
{
	if (v->wide)
		return wide4(v, addr);
	return v->leaf32 ? fused4(v, addr, true) : fused4(v, addr, false);
}

/*
 * An answer of 0 is the default, provided that it was the same before and after: then the
 * slot was read while it was in force.
 */
uint32_t
poptrie4_lookup(const struct poptrie *pt, uint32_t addr)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t value;

	do {
		dflt = dflt_now(v);
		value = lookup4(v, addr);
		if (value)
			return value;
		atomic_signal_fence(memory_order_acquire);
	} while (__builtin_expect(dflt != dflt_now(v), 0));
	return (uint32_t)dflt;
}

uint32_t
poptrie6_lookup(const struct poptrie *pt, const uint8_t *addr)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t value;

	do {
		dflt = dflt_now(v);
		value = wide6(v, addr);
		if (value)
			return value;
	} while (__builtin_expect(dflt != dflt_now(v), 0));
	return (uint32_t)dflt;
}

void
poptrie4_lookup_bulk(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		     unsigned int n)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t r;

	for (unsigned int i = 0, end; i < n; i = end) {
		end = n - i > BLOCK ? i + BLOCK : n;
		do {
			dflt = dflt_now(v);
			if (!v->wide && !v->leaf32) {
				for (unsigned int j = i; j < end; j++) {
					r = fused4(v, addr[j], false);
					value[j] = r ? r : (uint32_t)dflt;
				}
			} else {
				for (unsigned int j = i; j < end; j++) {
					r = lookup4(v, addr[j]);
					value[j] = r ? r : (uint32_t)dflt;
				}
			}
			atomic_signal_fence(memory_order_acquire);
		} while (__builtin_expect(dflt != dflt_now(v), 0));
	}
}

void
poptrie6_lookup_bulk(const struct poptrie *pt, const uint8_t *const *addr, uint32_t *value,
		     unsigned int n)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t r;

	for (unsigned int i = 0, end; i < n; i = end) {
		end = n - i > BLOCK ? i + BLOCK : n;
		do {
			dflt = dflt_now(v);
			for (unsigned int j = i; j < end; j++) {
				r = wide6(v, addr[j]);
				value[j] = r ? r : (uint32_t)dflt;
			}
		} while (__builtin_expect(dflt != dflt_now(v), 0));
	}
}
