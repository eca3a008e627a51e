/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The naive twin of poptrie: one hash table of (address, length), probed length by length.
 * Nothing in common with a trie, so that the two cannot share a mistake. Plus what the
 * tests of poptrie have in common. Asserts on anything unexpected.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oracle_route {
	uint8_t addr[16]; /* network order, host bits zero; IPv4 uses the first 4 */
	uint32_t len;
	uint32_t value; /* 0: a removed one in the hash table */
};

struct oracle {
	unsigned int bytes; /* of an address: 4 or 16 */
	struct oracle_route *slot;
	uint32_t n_slots, n_used; /* used: removed ones included */
	uint32_t n_len[129];
	uint32_t routes;
};

struct oracle *oracle_new(bool ip6);
void oracle_free(struct oracle *o);

/* Returns the value that the prefix had, 0 when it is new. */
uint32_t oracle_set(struct oracle *o, const uint8_t *addr, unsigned int len,
		    uint32_t value);

/* Returns the value removed, 0 when there is no such prefix. */
uint32_t oracle_del(struct oracle *o, const uint8_t *addr, unsigned int len);
uint32_t oracle_exact(const struct oracle *o, const uint8_t *addr, unsigned int len);

/* Longest prefix of at most `max` bits; *len may be NULL. */
uint32_t oracle_match(const struct oracle *o, const uint8_t *addr, unsigned int max,
		      unsigned int *len);

/* All routes in (address, length) order; the caller frees. */
struct oracle_route *oracle_sorted(const struct oracle *o);

/* Clear the bits beyond `len`, or set them. */
void oracle_mask(uint8_t *addr, unsigned int bytes, unsigned int len, bool ones);

/* addr + d with wrap-around. */
void oracle_step(uint8_t *addr, unsigned int bytes, int d);

/* A small generator (xorshift64*), so that a printed seed repeats a failure. */
struct rnd {
	uint64_t s;
};
uint64_t rnd_next(struct rnd *r);
static inline uint32_t
rnd_below(struct rnd *r, uint32_t n)
{
	return (uint32_t)((rnd_next(r) >> 32) * n >> 32);
}

/* From the environment variable SEED or the clock; printed with the name of the test. */
struct rnd rnd_seeded(const char *name);

/* Parse "10.0.0.0/8" or "2001:db8::/32"; returns the length. */
unsigned int oracle_prefix(const char *text, uint8_t *addr);

/*
 * A caller's allocator for struct poptrie_conf, with the alignment asked for: pools that have
 * one start small and have to grow.
 */
void *heap_alloc(void *ctx, size_t bytes, size_t align);
void heap_free(void *ctx, void *mem);

#endif
