/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A naive longest-prefix match: one hash table of (address, length), probed length by
 * length. It has nothing in common with a trie, so that both cannot have the same fault.
 * This file also has other helpers that the tests of poptrie share. All functions assert on
 * unexpected input.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oracle_route {
	uint8_t addr[16]; /* network order, host bits zero; IPv4 uses the first 4 */
	uint32_t len;
	uint32_t value; /* 0: a removed route in the hash table */
};

struct oracle {
	unsigned int bytes; /* length of an address: 4 or 16 */
	struct oracle_route *slot;
	uint32_t n_slots, n_used; /* n_used includes removed routes */
	uint32_t n_len[129];
	uint32_t routes;
};

struct oracle *oracle_new(bool ip6);
void oracle_free(struct oracle *o);

/* Return the previous value of the prefix, or 0 if it is new. */
uint32_t oracle_set(struct oracle *o, const uint8_t *addr, unsigned int len,
		    uint32_t value);

/* Return the removed value, or 0 if there is no such prefix. */
uint32_t oracle_del(struct oracle *o, const uint8_t *addr, unsigned int len);
uint32_t oracle_exact(const struct oracle *o, const uint8_t *addr, unsigned int len);

/* Match the longest prefix of at most `max` bits. `len` may be NULL. */
uint32_t oracle_match(const struct oracle *o, const uint8_t *addr, unsigned int max,
		      unsigned int *len);

/* Return all routes in the order of address and length. The caller frees. */
struct oracle_route *oracle_sorted(const struct oracle *o);

/* Clear or set the bits beyond `len`. */
void oracle_mask(uint8_t *addr, unsigned int bytes, unsigned int len, bool ones);

/* Add d to the address, with wrap-around. */
void oracle_step(uint8_t *addr, unsigned int bytes, int d);

/* A small random generator (xorshift64*). A printed seed repeats a failure. */
struct rnd {
	uint64_t s;
};
uint64_t rnd_next(struct rnd *r);
static inline uint32_t
rnd_below(struct rnd *r, uint32_t n)
{
	return (uint32_t)((rnd_next(r) >> 32) * n >> 32);
}

/*
 * Take the seed from the environment variable SEED or the clock. Print it with the name of
 * the test.
 */
struct rnd rnd_seeded(const char *name);

/* Parse "10.0.0.0/8" or "2001:db8::/32". Return the length. */
unsigned int oracle_prefix(const char *text, uint8_t *addr);

/*
 * An allocator for struct poptrie_conf with the requested alignment. Pools of a caller's
 * allocator start small and must grow.
 */
void *heap_alloc(void *ctx, size_t bytes, size_t align);
void heap_free(void *ctx, void *mem);

#endif
