/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The staged routes: path-compressed binary radix trees over one arena of 32-octet nodes. A
 * tree is named by the index of its root, 0 when it is empty. Writer thread only.
 */
#ifndef POPTRIE_RADIX_H
#define POPTRIE_RADIX_H

#include <stdbool.h>
#include <stdint.h>
#include "poptrie/pool.h"

/* An address, left-aligned: IPv4 is in the top 32 bits of `hi`. */
struct pt_key {
	uint64_t hi, lo;
};

struct pt_rnode {
	struct pt_key key;
	uint32_t child[2];
	uint32_t value; /* 0: a branching point, which has both children */
	uint8_t len;
};

#define PT_CHUNK_SHIFT 16

struct pt_radix {
	struct pt_rnode **chunk;
	const struct pt_mem *mem;
	unsigned int mem_flags; /* of chunks */
	uint32_t n_chunks, cap_chunks;
	uint32_t top;  /* nodes ever used, node 0 included */
	uint32_t free; /* list of free nodes through child[0] */
	uint32_t n_free;
};

static inline struct pt_rnode *
pt_rnode(const struct pt_radix *rx, uint32_t i)
{
	return &rx->chunk[i >> PT_CHUNK_SHIFT][i & ((1u << PT_CHUNK_SHIFT) - 1)];
}

static inline unsigned int
pt_key_bit(struct pt_key k, unsigned int i)
{
	return (i < 64 ? k.hi >> (63 - i) : k.lo >> (127 - i)) & 1;
}

/* Return six bits from bit d on; bits beyond the key read as 0. */
static inline unsigned int
pt_key_bits6(struct pt_key k, unsigned int d)
{
	if (d <= 58)
		return k.hi >> (58 - d) & 63;
	if (d < 64)
		return (k.hi << (d - 58) | k.lo >> (122 - d)) & 63;
	return (d <= 122 ? k.lo >> (122 - d) : k.lo << (d - 122)) & 63;
}

/* Return the first address of (k, len), or the last if `ones`. */
static inline struct pt_key
pt_key_edge(struct pt_key k, unsigned int len, bool ones)
{
	uint64_t hi = len >= 64 ? 0 : ~0ull >> len;
	uint64_t lo = len >= 128 ? 0 : len <= 64 ? ~0ull : ~0ull >> (len - 64);

	if (ones)
		return (struct pt_key){k.hi | hi, k.lo | lo};
	return (struct pt_key){k.hi & ~hi, k.lo & ~lo};
}

/* Return true if (a, a_len) is before (b, b_len) in (address, length) order. */
static inline bool
pt_key_before(struct pt_key a, unsigned int a_len, struct pt_key b, unsigned int b_len)
{
	if (a.hi != b.hi)
		return a.hi < b.hi;
	if (a.lo != b.lo)
		return a.lo < b.lo;
	return a_len < b_len;
}

int pt_radix_init(struct pt_radix *rx, const struct pt_mem *mem, unsigned int mem_flags);
void pt_radix_fini(struct pt_radix *rx);

/*
 * Set the value of a prefix, and store the previous value in *old (0: the prefix is new).
 * Returns 0, or -ENOMEM with nothing changed.
 */
int pt_radix_set(struct pt_radix *rx, uint32_t *root, struct pt_key key, unsigned int len,
		 uint32_t value, uint32_t *old);

/* Remove a prefix. Returns its value, or 0 when the tree does not have it. */
uint32_t pt_radix_del(struct pt_radix *rx, uint32_t *root, struct pt_key key,
		      unsigned int len);

uint32_t pt_radix_exact(const struct pt_radix *rx, uint32_t root, struct pt_key key,
			unsigned int len);

/* Return the node of the longest prefix that covers (key, len), or 0. */
uint32_t pt_radix_match(const struct pt_radix *rx, uint32_t root, struct pt_key key,
			unsigned int len);

/* Return the topmost node at or under (key, len), or 0. */
uint32_t pt_radix_under(const struct pt_radix *rx, uint32_t root, struct pt_key key,
			unsigned int len);

/*
 * Return the first node with a value after (key, len), or at it if `inclusive`; 0 at the
 * end.
 */
uint32_t pt_radix_next(const struct pt_radix *rx, uint32_t root, struct pt_key key,
		       unsigned int len, bool inclusive);

#endif
