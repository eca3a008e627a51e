/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up one key in either layout. The functions are inlined into each variant and
 * compiled for its CPU. They load a direct entry as a whole, and once for a lookup.
 */
#ifndef POPTRIE_WALK_H
#define POPTRIE_WALK_H

#include <string.h>
#include "poptrie/arch.h"

#define PT_BLOCK       64 /* keys between two reads of the default */
#define PT_WALK_MIN    3  /* fewer keys in a table of wide nodes are walked one by one */
#define PT_PASSES4_MIN 8  /* fewer IPv4 keys are walked one by one */

/*
 * Load a leaf at once, because leaves may change in place (build.c). Relaxed is enough,
 * because each lookup calls dflt_changed() after it has loaded its leaves.
 */
PT_INLINE uint32_t
leaf_load(const void *leaf, uint32_t i, bool leaf32)
{
	return leaf32 ? atomic_load_explicit((const _Atomic uint32_t *)leaf + i,
					     memory_order_relaxed)
		      : atomic_load_explicit((const _Atomic uint16_t *)leaf + i,
					     memory_order_relaxed);
}

/* Return the leaf in node `e` for the top six bits of `key`. */
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
 * Return true if the default is not `dflt`, which was read before the leaves. After this
 * call, the reader sees all that the writer stored before the leaves that the reader read.
 */
PT_INLINE bool
dflt_changed(const struct pt_view *v, uint64_t dflt)
{
	pt_reader_fence();
	return __builtin_expect(dflt != dflt_now(v), 0);
}

/* Look up keys one by one. */
PT_INLINE void
fused_few(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	  uint64_t dflt, bool leaf32)
{
	for (unsigned int j = 0; j < n; j++)
		value[j] = or_dflt(fused4(v, addr[j], leaf32), dflt);
}

/* Copy the direct entries of `n` keys, at most 16, into memory. */
PT_INLINE void
entries_copy(struct pt_fused *entry, const struct pt_view *v, const uint32_t *addr,
	     unsigned int n)
{
	for (unsigned int j = 0; j < n; j++)
		entry_to(&entry[j], v->fused, addr[j]);
}

/* Compute the leaf indices of `n` keys, at most 16, and prefetch the leaves. */
PT_INLINE void
indices_find(uint32_t *at, const struct pt_fused *entry, const struct pt_view *v,
	     const uint32_t *addr, unsigned int n, bool leaf32)
{
	for (unsigned int j = 0; j < n; j++) {
		uint32_t up = ~(addr[j] >> (26 - PT4_BITS)) & 63;

		at[j] = entry[j].leaf_base +
			(uint32_t)__builtin_popcountll(entry[j].run << up);
		__builtin_prefetch((const uint8_t *)v->leaf +
				   (size_t)at[j] * (leaf32 ? 4 : 2));
	}
}

/*
 * Work in passes, so that the loads of all entries are under way before the first leaf is
 * loaded, because the reorder buffer alone holds a dozen keys. This is a fifth faster at
 * full tables. Entries go through memory, because this is less work than moving halves of
 * vector registers to general ones (a tenth to a fifth). A pass has sixteen keys, a number
 * that the compiler knows. The entries of the next pass are loaded before the leaf indices
 * of a pass are computed, and the leaves are prefetched, so that the loop over the leaves
 * seldom waits.
 *
 * Rates relative to passes of sixteen keys that neither load the next entries early nor
 * prefetch leaves (random / inprefix / zipf; first scalar, then AVX2):
 * - both, as here: 1.15 / 1.26 / 1.19 and 1.13 / 1.31 / 1.23;
 * - leaves prefetched only: 1.10 / 1.26 / 1.20 and 0.95 / 1.13 / 1.06; then passes of 8 or
 *   32 keys are no better;
 * - all entries prefetched, then their leaves: 1.29 / 1.35 / 1.24 and 1.09 / 1.24 / 1.11;
 *   all entries prefetched, but no leaves: 1.0 / 0.95 / 1.0.
 *
 * In addition, all entries of the block are prefetched first. This is for hosts on which
 * other programs fill the caches: where each step through a list of pointers of 8 MiB takes
 * 150 to 190 ns, the rate relative to rte_fib (next hops of 2 octets) rises from 1.2 to 1.8
 * (inprefix) and from 1.1 to 1.4 (zipf), AVX2.
 *
 * The keys behind the last sixteen take the same passes. This has 1.2 to 1.4 times the rate
 * of a walk of these keys one by one (10 to 45 keys, AVX2 on Zen 4, inprefix).
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
	struct pt_fused entry[2][16], last[16];
	uint32_t at[PT_BLOCK];

	if (n < PT_PASSES4_MIN) {
		fused_few(v, addr, value, n, dflt, leaf32);
		return;
	}
	for (unsigned int j = 0; j < n; j++)
		__builtin_prefetch(&v->fused[addr[j] >> (32 - PT4_BITS)]);
	if (in16 > 0)
		entries_copy(entry[0], v, addr, 16);
	for (unsigned int i = 0; i < in16; i += 16) {
		if (i + 16 < in16)
			entries_copy(entry[~i >> 4 & 1], v, addr + i + 16, 16);
		indices_find(at + i, entry[i >> 4 & 1], v, addr + i, 16, leaf32);
	}
	entries_copy(last, v, addr + in16, n - in16);
	indices_find(at + in16, last, v, addr + in16, n - in16, leaf32);
	for (unsigned int j = 0; j < n; j++) {
		uint32_t leaf = leaf_load(v->leaf, at[j], leaf32);

		if (__builtin_expect(leaf & child, 0))
			leaf = fused4(v, addr[j], leaf32);
		value[j] = or_dflt(leaf, dflt);
	}
}

/*
 * Look up IPv4 keys in blocks of PT_BLOCK. A block starts again when the default changed,
 * because a 0 stands for the default that was in force when the slot was read.
 */
PT_INLINE void
scalar_bulk4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	     bool leaf32)
{
	uint64_t dflt;

	for (unsigned int i = 0, end; i < n; i = end) {
		end = n - i > PT_BLOCK ? i + PT_BLOCK : n;
		do {
			dflt = dflt_now(v);
			fused_scalar(v, addr + i, value + i, end - i, dflt, leaf32);
		} while (dflt_changed(v, dflt));
	}
}

/*
 * Look up keys with `many`, but a few keys one by one. `many` must not be inlined: its
 * arrays and registers would slow the lookup of three keys by a quarter.
 */
PT_INLINE void
few_or_many4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n,
	     void (*many)(const struct pt_view *, const uint32_t *, uint32_t *,
			  unsigned int))
{
	uint64_t dflt;

	if (n >= PT_PASSES4_MIN) {
		many(v, addr, value, n);
		return;
	}
	do {
		dflt = dflt_now(v);
		if (v->leaf32)
			fused_few(v, addr, value, n, dflt, true);
		else
			fused_few(v, addr, value, n, dflt, false);
	} while (dflt_changed(v, dflt));
}

/* The tables of wide nodes: large and small ones of each family. */
enum table { WIDE4, SMALL4, SMALL6, WIDE6 };

/* The keys of a bulk lookup: IPv4 addresses, or pointers to IPv6 addresses. */
union keys {
	const uint32_t *ip4;
	const uint8_t *const *ip6;
};

/* Look up one key. The result is 0 if only the default has the key. */
PT_INLINE uint32_t
key_walk(const struct pt_view *v, union keys key, unsigned int i, enum table table)
{
	switch (table) {
	case WIDE4:
		return wide4(v, key.ip4[i]);
	case SMALL4:
		return small4(v, key.ip4[i]);
	case SMALL6:
		return small6(v, key.ip6[i]);
	default:
		return wide6(v, key.ip6[i]);
	}
}

/* Return the upper half of a key. An IPv4 address is the top of its upper half. */
PT_INLINE uint64_t
key_upper(union keys key, unsigned int i, enum table table)
{
	uint64_t hi;

	if (table == WIDE4 || table == SMALL4)
		return (uint64_t)key.ip4[i] << 32;
	memcpy(&hi, key.ip6[i], sizeof(hi));
	return __builtin_bswap64(hi);
}

/* Return the number of direct bits of a key. IPv6 keys outside 2000::/3 have fewer. */
PT_INLINE unsigned int
key_bits(uint64_t hi, enum table table)
{
	return pt_slot_bits(table == WIDE4   ? PT_SHAPE4
			    : table == WIDE6 ? PT_SHAPE6
					     : PT_SHAPE_SMALL,
			    (struct pt_key){.hi = hi});
}

/*
 * Return the slot of a key. In a large IPv6 table only keys outside 2000::/3, which are
 * rare, need more than one subtraction.
 */
PT_INLINE uint32_t
key_slot(union keys key, unsigned int i, enum table table)
{
	const uint32_t first = 0x20000000, low = 1u << (PT6_OTHER - 3);
	uint32_t top;

	if (table == WIDE4 || table == SMALL4)
		return key.ip4[i] >> (32 - (table == WIDE4 ? PT4_BITS : PT_SMALL_BITS));
	memcpy(&top, key.ip6[i], sizeof(top));
	top = __builtin_bswap32(top);
	if (table == SMALL6)
		return top >> (32 - PT_SMALL_BITS);
	if (__builtin_expect(top - first >= first, 0))
		return pt_slot_of(PT_SHAPE6, (struct pt_key){.hi = (uint64_t)top << 32});
	return low + ((top - first) >> (32 - PT6_BITS));
}

/*
 * Keys that descend. The first `n` entries of key, node and of are keys that have a node to
 * read. The first n_leaves entries of leaf and leaf_of are keys whose leaf is known.
 */
struct walk {
	uint64_t key[PT_BLOCK]; /* unread bits of the upper half, the next bits on top */
	const struct pt_wide *node[PT_BLOCK];
	uint32_t leaf[PT_BLOCK];   /* index of a leaf that is to be read */
	uint8_t of[PT_BLOCK];      /* the number of the key that has this node */
	uint8_t leaf_of[PT_BLOCK]; /* the number of the key that has this leaf */
	unsigned int n, n_leaves;
};

/*
 * Read the direct entries into value[], the default in place of 0. Returns the OR of the
 * entries: it has PT_CHILD if one of them leads to a node. The entries of a large table are
 * prefetched before the first one is read.
 */
PT_INLINE uint32_t
entries_read(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	     uint64_t dflt, enum table table)
{
	uint32_t slot[PT_BLOCK], any = 0;

#pragma GCC unroll 4
	for (unsigned int j = 0; j < n; j++) {
		slot[j] = key_slot(key, j, table);
		if (table == WIDE4 || table == WIDE6)
			__builtin_prefetch((const void *)&v->entry[slot[j]]);
	}
#pragma GCC unroll 4
	for (unsigned int j = 0; j < n; j++) {
		uint32_t e = atomic_load_explicit(&v->entry[slot[j]], memory_order_acquire);

		any |= e;
		value[j] = or_dflt(e, dflt);
	}
	return any;
}

/*
 * Collect the keys whose direct entries, in value[], lead to nodes, and prefetch the nodes.
 */
PT_INLINE void
walk_begin(struct walk *w, const struct pt_view *v, union keys key, const uint32_t *value,
	   unsigned int n, enum table table)
{
	w->n = w->n_leaves = 0;
	for (unsigned int j = 0; j < n; j++) {
		uint64_t hi = key_upper(key, j, table);
		uint32_t e = value[j];

		w->key[w->n] = hi << key_bits(hi, table);
		w->node[w->n] = (const struct pt_wide *)v->node + (e & ~PT_CHILD);
		w->of[w->n] = (uint8_t)j;
		__builtin_prefetch(w->node[w->n]);
		w->n += e >> 31;
	}
}

/*
 * Descend one level. Each key continues in a child, or its leaf is known; both are
 * computed, because the CPU would often mispredict a branch. Prefetches the entry that the
 * key reads next.
 */
PT_INLINE void
walk_step(struct walk *w, const struct pt_view *v, bool leaf32)
{
	unsigned int n = 0, n_leaves = w->n_leaves;

	for (unsigned int j = 0; j < w->n; j++) {
		const struct pt_wide *node = w->node[j], *next;
		uint64_t key = w->key[j], child = node->child;
		unsigned int s = key >> 58;
		bool down = child >> s & 1;
		const void *read;
		uint32_t leaf;

		next = (const struct pt_wide *)v->node +
		       __atomic_load_n(&node->child_base, __ATOMIC_ACQUIRE) +
		       (uint32_t)__builtin_popcountll(child & ((1ull << s) - 1));
		leaf = __atomic_load_n(&node->leaf_base, __ATOMIC_ACQUIRE) +
		       (uint32_t)__builtin_popcountll(node->run << (63 - s));
		read = (const uint8_t *)v->leaf + (size_t)leaf * (leaf32 ? 4 : 2);
		read = down ? (const void *)next : read;
		__builtin_prefetch(read);
		w->leaf[n_leaves] = leaf;
		w->leaf_of[n_leaves] = w->of[j];
		n_leaves += !down;
		w->node[n] = next;
		w->key[n] = key << PT_STRIDE;
		w->of[n] = w->of[j];
		n += down;
	}
	w->n = n;
	w->n_leaves = n_leaves;
}

/*
 * Look up at most PT_BLOCK keys in passes. Each pass prefetches for the next pass. In a
 * lookup of one key after the other, the loads of a deep trie would not overlap: where each
 * step through a list of pointers of 8 MiB takes 150 to 190 ns, passes are 3 times as fast
 * for IPv6.
 */
PT_INLINE void
walk_block(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	   uint64_t dflt, enum table table, bool leaf32)
{
	const unsigned int bits = table == WIDE4   ? PT4_BITS
				  : table == WIDE6 ? PT6_BITS
						   : PT_SMALL_BITS;
	struct walk w;

	if ((entries_read(v, key, value, n, dflt, table) & PT_CHILD) == 0)
		return;
	walk_begin(&w, v, key, value, n, table);
	/* Descend while the upper halves of the keys have bits left for a level. */
	for (unsigned int level = 0; level < (64 - bits) / PT_STRIDE && w.n > 0; level++)
		walk_step(&w, v, leaf32);
	for (unsigned int j = 0; j < w.n_leaves; j++)
		value[w.leaf_of[j]] = or_dflt(leaf_load(v->leaf, w.leaf[j], leaf32), dflt);
	/* IPv4 keys have 32 bits, so the steps above have found all their leaves. */
	for (unsigned int j = 0; table != WIDE4 && table != SMALL4 && j < w.n; j++)
		value[w.of[j]] = or_dflt(key_walk(v, key, w.of[j], table), dflt);
}

/* Return the keys from number `i` on. */
PT_INLINE union keys
keys_from(union keys key, unsigned int i, enum table table)
{
	if (table == WIDE4 || table == SMALL4)
		return (union keys){.ip4 = key.ip4 + i};
	return (union keys){.ip6 = key.ip6 + i};
}

/* Look up keys one by one. */
PT_INLINE void
walk_few(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	 uint64_t dflt, enum table table)
{
	for (unsigned int j = 0; j < n; j++)
		value[j] = or_dflt(key_walk(v, key, j, table), dflt);
}

/*
 * Look up keys in a table of wide nodes, in blocks. Repeat a block if the default changed
 * meanwhile.
 */
PT_INLINE void
walk_bulk(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	  enum table table)
{
	uint64_t dflt;

	for (unsigned int i = 0, m; i < n; i += m) {
		union keys at = keys_from(key, i, table);

		m = n - i > PT_BLOCK ? PT_BLOCK : n - i;
		do {
			dflt = dflt_now(v);
			if (m < PT_WALK_MIN)
				walk_few(v, at, value + i, m, dflt, table);
			else if (v->leaf32)
				walk_block(v, at, value + i, m, dflt, table, true);
			else
				walk_block(v, at, value + i, m, dflt, table, false);
		} while (dflt_changed(v, dflt));
	}
}

/*
 * Look up fewer than PT_WALK_MIN keys one by one, and more keys with `many`, which calls
 * walk_bulk(). `many` must not be inlined: see few_or_many4().
 */
PT_INLINE void
few_or_walk(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n,
	    enum table table,
	    void (*many)(const struct pt_view *, union keys, uint32_t *, unsigned int))
{
	uint64_t dflt;

	if (n >= PT_WALK_MIN) {
		many(v, key, value, n);
		return;
	}
	do {
		dflt = dflt_now(v);
		walk_few(v, key, value, n, dflt, table);
	} while (dflt_changed(v, dflt));
}

#endif
