/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage changes: add and del write the radix trees at once, and mark the slots that the
 * next commit has to rebuild. Writer thread only. The code must never write memory that
 * readers see.
 */
#include <errno.h>
#include <string.h>
#include "poptrie/walk.h"

/* Mark a slot in which only the cover may have changed. */
void
pt_mark_cover(struct poptrie *pt, uint32_t slot)
{
	uint32_t w = slot / 64;

	pt->full[w] |= 1ull << slot % 64;
	if (pt->full_lo >= pt->full_hi) {
		pt->full_lo = w;
		pt->full_hi = w + 1;
	}
	if (w < pt->full_lo)
		pt->full_lo = w;
	if (w >= pt->full_hi)
		pt->full_hi = w + 1;
}

/* Mark a slot in which anything may have changed. */
void
pt_mark_full(struct poptrie *pt, uint32_t slot)
{
	pt_mark_cover(pt, slot);
	pt->whole[slot / 64] |= 1ull << slot % 64;
}

/* List one changed prefix. When the list is full, mark whole slots instead. */
static void
mark_prefix(struct poptrie *pt, struct pt_key key, unsigned int len, uint32_t slot)
{
	if (pt->full[slot / 64] >> slot % 64 & 1) {
		pt->whole[slot / 64] |= 1ull << slot % 64;
		return;
	}
	if (pt->n_dirty == pt->max_dirty) {
		for (uint32_t i = 0; i < pt->n_dirty; i++)
			pt_mark_full(pt, pt->dirty[i].slot);
		pt->n_dirty = 0;
	}
	pt->dirty[pt->n_dirty++] = (struct pt_dirty){key, slot, len};
}

/*
 * Set the cover of slots lo <= s < hi: `value` is that of the longest short prefix above
 * them.
 */
static void
cover_span(struct poptrie *pt, uint32_t lo, uint32_t hi, uint32_t value)
{
	for (uint32_t s = lo; s < hi; s++) {
		if (pt->slot[s].cover == value)
			continue;
		pt->slot[s].cover = value;
		pt_mark_cover(pt, s);
	}
}

/* Set the cover of the slots from lo to hi by the short prefixes under `i`. */
static void
cover_tree(struct poptrie *pt, uint32_t i, uint32_t lo, uint32_t hi, uint32_t value)
{
	if (i) {
		const struct pt_rnode *n = pt_rnode(&pt->radix, i);
		struct pt_key last = pt_key_edge(n->key, n->len, true);
		uint32_t from = pt_slot_of(pt->shape, n->key);
		uint32_t to = pt_slot_of(pt->shape, last) + 1;
		struct pt_key mid = pt_key_edge(last, n->len + 1, false);
		uint32_t half = pt_slot_of(pt->shape, mid);

		cover_span(pt, lo, from, value);
		if (n->value) {
			cover_tree(pt, n->child[0], from, half, n->value);
			cover_tree(pt, n->child[1], half, to, n->value);
		} else {
			cover_tree(pt, n->child[0], from, half, value);
			cover_tree(pt, n->child[1], half, to, value);
		}
		lo = to;
	}
	cover_span(pt, lo, hi, value);
}

/* Set the cover of the slots under a changed prefix that is shorter than a slot. */
static void
mark_short(struct poptrie *pt, struct pt_key key, unsigned int len)
{
	uint32_t lo = pt_slot_of(pt->shape, key);
	uint32_t hi = pt_slot_of(pt->shape, pt_key_edge(key, len, true)) + 1;
	uint32_t above = pt_radix_match(&pt->radix, pt->top, key, len);
	uint32_t under = pt_radix_under(&pt->radix, pt->top, key, len);

	cover_tree(pt, under, lo, hi, above ? pt_rnode(&pt->radix, above)->value : 0);
}

static void
mark_used(struct poptrie *pt, uint32_t slot)
{
	uint64_t bit = 1ull << slot % 64;

	if (pt->slot[slot].root)
		pt->used[slot / 64] |= bit;
	else
		pt->used[slot / 64] &= ~bit;
}

/* Convert network order to a left-aligned key; bits beyond `len` become 0. */
static struct pt_key
key_of(const struct poptrie *pt, const uint8_t *addr, unsigned int len)
{
	uint64_t hi = 0, lo = 0;
	uint32_t ip4;

	if (pt->ip6) {
		memcpy(&hi, addr, 8);
		memcpy(&lo, addr + 8, 8);
		hi = __builtin_bswap64(hi);
		lo = __builtin_bswap64(lo);
	} else {
		memcpy(&ip4, addr, 4);
		hi = (uint64_t)__builtin_bswap32(ip4) << 32;
	}
	return pt_key_edge((struct pt_key){hi, lo}, len, false);
}

static void
key_write(const struct poptrie *pt, struct pt_key k, uint8_t *addr)
{
	uint64_t hi = __builtin_bswap64(k.hi), lo = __builtin_bswap64(k.lo);

	memcpy(addr, &hi, pt->ip6 ? 8 : 4);
	if (pt->ip6)
		memcpy(addr + 8, &lo, 8);
}

/*
 * Return how many nodes below the direct entry a lookup reads for a prefix of this length.
 */
static unsigned int
depth_of(const struct poptrie *pt, struct pt_key key, unsigned int len)
{
	unsigned int direct = pt_slot_bits(pt->shape, key) + (pt->wide ? 0 : PT_STRIDE);

	return len <= direct ? 0 : (len - direct + PT_STRIDE - 1) / PT_STRIDE;
}

/*
 * Follow the path of a lookup, so that the memory which the commit needs is loaded while
 * the radix tree is searched: two chains of cache misses overlap. An update then takes 0.79
 * to 0.98 of the time that it takes otherwise. The gain is least where the L3 is fast, and
 * half as large when only the entry and its first node are loaded.
 */
static void
path_prefetch(const struct poptrie *pt, struct pt_key key, const uint8_t *addr)
{
	const struct pt_view *v = pt_view(pt);
	uint32_t ip4 = (uint32_t)(key.hi >> 32), got;

	if (v->small)
		got = pt->ip6 ? small6(v, addr) : small4(v, ip4);
	else if (pt->ip6)
		got = wide6(v, addr);
	else
		got = v->wide ? wide4(v, ip4) : fused4(v, ip4, v->leaf32);
	__asm__ volatile("" : : "r"(got)); /* keep the loads */
}

int
poptrie_add(struct poptrie *pt, const uint8_t *addr, unsigned int len, uint32_t value)
{
	uint32_t old = 0, slot;
	struct pt_key key;
	int rc;

	if (len > pt->bits_max || value == POPTRIE_NONE || value > POPTRIE_VALUE_MAX)
		return -EINVAL;
	key = key_of(pt, addr, len);
	if (len == 0) {
		old = pt->dflt;
		pt->dflt = value;
	} else if (len < pt_slot_bits(pt->shape, key)) {
		rc = pt_radix_set(&pt->radix, &pt->top, key, len, value, &old);
		if (rc < 0)
			return rc;
		if (old != value)
			mark_short(pt, key, len);
	} else {
		slot = pt_slot_of(pt->shape, key);
		path_prefetch(pt, key, addr);
		rc = pt_radix_set(&pt->radix, &pt->slot[slot].root, key, len, value, &old);
		if (rc < 0)
			return rc;
		if (old != value)
			mark_prefix(pt, key, len, slot);
		mark_used(pt, slot);
	}
	if (value > PT_VALUE16)
		pt->want32 = true;
	if (old == 0) {
		pt->routes++;
		pt->depth[depth_of(pt, key, len)]++;
	}
	return 0;
}

int
poptrie_del(struct poptrie *pt, const uint8_t *addr, unsigned int len)
{
	struct pt_key key;
	uint32_t old, slot;

	if (len > pt->bits_max)
		return -EINVAL;
	key = key_of(pt, addr, len);
	if (len == 0) {
		old = pt->dflt;
		pt->dflt = 0;
	} else if (len < pt_slot_bits(pt->shape, key)) {
		old = pt_radix_del(&pt->radix, &pt->top, key, len);
		if (old)
			mark_short(pt, key, len);
	} else {
		slot = pt_slot_of(pt->shape, key);
		path_prefetch(pt, key, addr);
		old = pt_radix_del(&pt->radix, &pt->slot[slot].root, key, len);
		if (old)
			mark_prefix(pt, key, len, slot);
		mark_used(pt, slot);
	}
	if (old == 0)
		return -ENOENT;
	pt->routes--;
	pt->depth[depth_of(pt, key, len)]--;
	return 0;
}

uint32_t
poptrie_exact(const struct poptrie *pt, const uint8_t *addr, unsigned int len)
{
	struct pt_key key;

	if (len > pt->bits_max)
		return POPTRIE_NONE;
	if (len == 0)
		return pt->dflt;
	key = key_of(pt, addr, len);
	if (len < pt_slot_bits(pt->shape, key))
		return pt_radix_exact(&pt->radix, pt->top, key, len);
	return pt_radix_exact(&pt->radix, pt->slot[pt_slot_of(pt->shape, key)].root, key,
			      len);
}

uint32_t
poptrie_match(const struct poptrie *pt, const uint8_t *addr, unsigned int len,
	      unsigned int *match_len)
{
	struct pt_key key;
	uint32_t i = 0;

	*match_len = 0;
	if (len > pt->bits_max)
		return POPTRIE_NONE;
	key = key_of(pt, addr, len);
	if (len >= pt_slot_bits(pt->shape, key))
		i = pt_radix_match(&pt->radix, pt->slot[pt_slot_of(pt->shape, key)].root,
				   key, len);
	if (i == 0)
		i = pt_radix_match(&pt->radix, pt->top, key, len);
	if (i == 0)
		return pt->dflt;
	*match_len = pt_rnode(&pt->radix, i)->len;
	return pt_rnode(&pt->radix, i)->value;
}

/*
 * Return the first radix node at or after (key, len) in the trees of the slots, 0 at the
 * end.
 */
static uint32_t
next_in_slots(const struct poptrie *pt, struct pt_key key, unsigned int len, bool inclusive)
{
	uint32_t s = pt_slot_of(pt->shape, key), w, i;
	uint64_t bits;

	i = pt_radix_next(&pt->radix, pt->slot[s].root, key, len, inclusive);
	if (i || ++s == pt->n_slots)
		return i;
	w = s / 64;
	bits = pt->used[w] & ~0ull << s % 64;
	while (bits == 0) {
		if (++w == (pt->n_slots + 63) / 64)
			return 0;
		bits = pt->used[w];
	}
	s = w * 64 + (uint32_t)__builtin_ctzll(bits);
	return pt_radix_next(&pt->radix, pt->slot[s].root, (struct pt_key){0, 0}, 0, true);
}

uint32_t
poptrie_next(const struct poptrie *pt, uint8_t *addr, unsigned int *len, bool inclusive)
{
	const struct pt_rnode *a, *b;
	struct pt_key key;
	uint32_t i, j;

	if (*len > pt->bits_max)
		return POPTRIE_NONE;
	key = key_of(pt, addr, *len);
	if (inclusive && *len == 0 && (key.hi | key.lo) == 0 && pt->dflt) {
		key_write(pt, key, addr);
		return pt->dflt;
	}
	i = pt_radix_next(&pt->radix, pt->top, key, *len, inclusive);
	j = next_in_slots(pt, key, *len, inclusive);
	if ((i | j) == 0)
		return POPTRIE_NONE;
	if (i && j) {
		a = pt_rnode(&pt->radix, i);
		b = pt_rnode(&pt->radix, j);
		if (pt_key_before(b->key, b->len, a->key, a->len))
			i = 0;
	}
	a = pt_rnode(&pt->radix, i ? i : j);
	key_write(pt, a->key, addr);
	*len = a->len;
	return a->value;
}
