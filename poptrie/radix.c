/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Path-compressed binary radix trees that map prefixes to values. Writer thread only;
 * lookups never read them. A node has a value, or two children, or both, so a tree of n
 * prefixes has less than 2n nodes. The code must never change a tree before it has all the
 * memory that the change needs.
 */
#include <errno.h>
#include <string.h>
#include "poptrie/radix.h"

#define CHUNK_NODES (1u << PT_CHUNK_SHIFT)
#define CHUNK_BYTES (CHUNK_NODES * sizeof(struct pt_rnode))

int
pt_radix_init(struct pt_radix *rx, const struct pt_mem *mem, unsigned int mem_flags)
{
	memset(rx, 0, sizeof(*rx));
	rx->mem = mem;
	rx->mem_flags = mem_flags;
	rx->top = 1;
	return 0;
}

void
pt_radix_fini(struct pt_radix *rx)
{
	for (uint32_t i = 0; i < rx->n_chunks; i++)
		pt_mem_put(rx->mem, rx->chunk[i], CHUNK_BYTES);
	pt_mem_put(rx->mem, rx->chunk, rx->cap_chunks * sizeof(*rx->chunk));
	memset(rx, 0, sizeof(*rx));
}

/* Add a chunk of nodes. */
static int
arena_grow(struct pt_radix *rx)
{
	if (rx->n_chunks == rx->cap_chunks) {
		uint32_t cap = rx->cap_chunks ? rx->cap_chunks * 2 : 16;
		struct pt_rnode **chunk =
			pt_mem_get(rx->mem, cap * sizeof(*chunk), sizeof(void *), 0);

		if (!chunk)
			return -ENOMEM;
		if (rx->chunk)
			memcpy(chunk, rx->chunk, rx->n_chunks * sizeof(*chunk));
		pt_mem_put(rx->mem, rx->chunk, rx->cap_chunks * sizeof(*chunk));
		rx->chunk = chunk;
		rx->cap_chunks = cap;
	}
	rx->chunk[rx->n_chunks] = pt_mem_get(rx->mem, CHUNK_BYTES, 64, rx->mem_flags);
	if (!rx->chunk[rx->n_chunks])
		return -ENOMEM;
	rx->n_chunks++;
	return 0;
}

static int
arena_reserve(struct pt_radix *rx, uint32_t n)
{
	while (rx->n_free + rx->n_chunks * CHUNK_NODES - rx->top < n || rx->n_chunks == 0) {
		int rc = arena_grow(rx);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Return a new node. Cannot fail after arena_reserve(). */
static uint32_t
node_new(struct pt_radix *rx, struct pt_key key, unsigned int len, uint32_t value)
{
	uint32_t i = rx->free;
	struct pt_rnode *n;

	if (i) {
		rx->free = pt_rnode(rx, i)->child[0];
		rx->n_free--;
	} else {
		i = rx->top++;
	}
	n = pt_rnode(rx, i);
	*n = (struct pt_rnode){.key = key, .len = len, .value = value};
	return i;
}

static void
node_free(struct pt_radix *rx, uint32_t i)
{
	pt_rnode(rx, i)->child[0] = rx->free;
	rx->free = i;
	rx->n_free++;
}

/* Return how many leading bits two keys share, at most `max`. */
static unsigned int
key_common_bits(struct pt_key a, struct pt_key b, unsigned int max)
{
	unsigned int n = 128;

	if (a.hi != b.hi)
		n = (unsigned int)__builtin_clzll(a.hi ^ b.hi);
	else if (a.lo != b.lo)
		n = 64 + (unsigned int)__builtin_clzll(a.lo ^ b.lo);
	return n < max ? n : max;
}

static unsigned int
min_len(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

int
pt_radix_set(struct pt_radix *rx, uint32_t *root, struct pt_key key, unsigned int len,
	     uint32_t value, uint32_t *old)
{
	uint32_t *link = root, i, leaf, glue;
	struct pt_rnode *n = NULL;
	unsigned int share = 0;

	*old = 0;
	while ((i = *link) != 0) {
		n = pt_rnode(rx, i);
		share = key_common_bits(n->key, key, min_len(n->len, len));
		if (share < n->len)
			break;
		if (n->len == len) {
			*old = n->value;
			n->value = value;
			return 0;
		}
		link = &n->child[pt_key_bit(key, n->len)];
	}
	/* `link` is in the root or in a node; neither moves when the arena grows. */
	if (arena_reserve(rx, 2) < 0)
		return -ENOMEM;
	leaf = node_new(rx, key, len, value);
	if (i == 0) {
		*link = leaf;
	} else if (share == len) {
		pt_rnode(rx, leaf)->child[pt_key_bit(n->key, len)] = i;
		*link = leaf;
	} else {
		glue = node_new(rx, pt_key_edge(key, share, false), share, 0);
		pt_rnode(rx, glue)->child[pt_key_bit(key, share)] = leaf;
		pt_rnode(rx, glue)->child[pt_key_bit(n->key, share)] = i;
		*link = glue;
	}
	return 0;
}

uint32_t
pt_radix_del(struct pt_radix *rx, uint32_t *root, struct pt_key key, unsigned int len)
{
	uint32_t *link = root, *up = NULL, i, value;
	struct pt_rnode *n, *p;

	for (;;) {
		if ((i = *link) == 0)
			return 0;
		n = pt_rnode(rx, i);
		if (n->len > len || key_common_bits(n->key, key, n->len) < n->len)
			return 0;
		if (n->len == len)
			break;
		up = link;
		link = &n->child[pt_key_bit(key, n->len)];
	}
	value = n->value;
	if (value == 0)
		return 0;
	n->value = 0;
	if (n->child[0] && n->child[1])
		return value;
	*link = n->child[0] | n->child[1];
	node_free(rx, i);
	if (*link || !up)
		return value;
	/* The parent lost a child. Without a value it no longer branches, so remove it. */
	i = *up;
	p = pt_rnode(rx, i);
	if (p->value == 0) {
		*up = p->child[0] | p->child[1];
		node_free(rx, i);
	}
	return value;
}

uint32_t
pt_radix_exact(const struct pt_radix *rx, uint32_t root, struct pt_key key,
	       unsigned int len)
{
	uint32_t i = pt_radix_match(rx, root, key, len);

	return i && pt_rnode(rx, i)->len == len ? pt_rnode(rx, i)->value : 0;
}

uint32_t
pt_radix_match(const struct pt_radix *rx, uint32_t root, struct pt_key key,
	       unsigned int len)
{
	uint32_t best = 0;

	for (uint32_t i = root; i;) {
		const struct pt_rnode *n = pt_rnode(rx, i);

		if (n->len > len || key_common_bits(n->key, key, n->len) < n->len)
			break;
		if (n->value)
			best = i;
		if (n->len == len)
			break;
		i = n->child[pt_key_bit(key, n->len)];
	}
	return best;
}

uint32_t
pt_radix_under(const struct pt_radix *rx, uint32_t root, struct pt_key key,
	       unsigned int len)
{
	for (uint32_t i = root; i;) {
		const struct pt_rnode *n = pt_rnode(rx, i);
		unsigned int share = key_common_bits(n->key, key, min_len(n->len, len));

		if (share == len)
			return i;
		if (share < n->len)
			return 0;
		i = n->child[pt_key_bit(key, n->len)];
	}
	return 0;
}

static uint32_t
node_first_value(const struct pt_radix *rx, uint32_t i)
{
	while (i && pt_rnode(rx, i)->value == 0)
		i = pt_rnode(rx, i)->child[0];
	return i;
}

uint32_t
pt_radix_next(const struct pt_radix *rx, uint32_t root, struct pt_key key, unsigned int len,
	      bool inclusive)
{
	uint32_t later = 0; /* the nearest subtree that is wholly after the key */

	for (uint32_t i = root; i;) {
		const struct pt_rnode *n = pt_rnode(rx, i);
		unsigned int share = key_common_bits(n->key, key, min_len(n->len, len));

		if (share == len && n->len == len) {
			if (inclusive && n->value)
				return i;
			i = n->child[0] ? n->child[0] : n->child[1];
			return node_first_value(rx, i ? i : later);
		}
		if (share == len)
			return node_first_value(rx, i);
		if (share < n->len) {
			if (pt_key_bit(n->key, share))
				later = i;
			break;
		}
		if (pt_key_bit(key, n->len) == 0) {
			if (n->child[1])
				later = n->child[1];
			i = n->child[0];
		} else {
			i = n->child[1];
		}
	}
	return node_first_value(rx, later);
}
