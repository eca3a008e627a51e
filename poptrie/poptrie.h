/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poptrie: longest-prefix match, prefix -> 32-bit value, for IPv4 or IPv6.
 *
 * A library that needs libc only. After H. Asai and Y. Ohara, "Poptrie: A Compressed Trie
 * with Population Count for Fast and Scalable Software IP Routing Table Lookup", SIGCOMM
 * 2015, with the direct-pointing entry fused with the first-level node.
 *
 * One writer, any number of readers. The writer stages changes (add, del) and publishes
 * them with commit. Readers look up at any time. They see, for each key, the value before a
 * commit or after it, and never another value. A commit hands memory that readers may still
 * hold to the caller's `retire` hook. The caller gives the memory back with
 * poptrie_reclaim() when no reader can hold it (after a grace period). The library does not
 * depend on a flavor of RCU.
 */
#ifndef POPTRIE_H
#define POPTRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The result of a lookup when no prefix covers the key. Never a legal value. */
#define POPTRIE_NONE 0u
/* The largest legal value (31 bits). */
#define POPTRIE_VALUE_MAX 0x7fffffffu

enum poptrie_family { POPTRIE_IP4 = 4, POPTRIE_IP6 = 6 };

struct poptrie;

/*
 * The blocks that one commit replaced. Opaque; the caller may chain and queue it through
 * `user`.
 */
struct poptrie_retired {
	void *user[4]; /* W:caller  for its own bookkeeping, such as an rcu_head */
};

struct poptrie_conf {
	enum poptrie_family family;
	/*
	 * For a table of some hundred routes. The table begins with some KiB in place of
	 * MiB (a direct table of 2^8 slots, pools that grow with the routes), and a lookup
	 * reads one or two levels more. At most 64 IPv4 prefixes that make at most 64
	 * ranges of equal results are also stored as a list, which bulk lookups with AVX2
	 * or AVX-512 read in place of nodes. The results are right with any number of
	 * routes, but at thousands of routes the large form is faster in all respects.
	 */
	bool small;
	/*
	 * Memory hooks; NULL means malloc-like defaults. alloc returns `bytes` octets
	 * aligned to `align` (a power of two, at most 4096) or NULL.
	 */
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *mem);
	/*
	 * The bit of the NUMA node that the memory of lookups should be on; 0: any node.
	 * Linux uses the lowest bit if there are several. The mask is ignored if `alloc` is
	 * set. It is only a preference: the memory is on another node if the node has no
	 * room or the kernel refuses.
	 */
	uint64_t nodes;
	/*
	 * Called at most once in each commit, by the committing thread, after publication.
	 * The callee keeps `r`. It calls poptrie_reclaim(pt, r) in the writer thread when
	 * no reader can see the old blocks. NULL: there are no concurrent readers, so
	 * blocks are freed at once.
	 */
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	void *ctx;
};

/* Kinds of vector instructions. Each kind includes all earlier kinds. */
enum poptrie_isa { POPTRIE_SCALAR, POPTRIE_AVX2, POPTRIE_AVX512 };

/*
 * Let lookups use no wider instructions than these. Without a call they use the widest
 * instructions of the CPU. Call it before the first table is created, when no other thread
 * uses the library.
 */
void poptrie_use_at_most(enum poptrie_isa isa);

/* Return the kind that lookups use, and the widest kind that they could use on this CPU. */
enum poptrie_isa poptrie_isa_used(void);
enum poptrie_isa poptrie_isa_best(void);

/*
 * Create an empty table.                                                      [writer]
 * Returns 0, -EINVAL (a bad family, one of alloc and free without the other), -ENOMEM.
 */
int poptrie_create(struct poptrie **out, const struct poptrie_conf *conf);

/*
 * Free the table and all its memory. No reader and no retired batch may be left.
 *                                                                             [writer]
 */
void poptrie_destroy(struct poptrie *pt);

/*
 * Stage one route: add it, or replace its value.                              [writer]
 *
 * addr   4 or 16 octets in network order (as written: first octet first). Bits beyond
 *        `len` are ignored.
 * value  1..POPTRIE_VALUE_MAX.
 *
 * Readers see nothing of it before poptrie_commit(). Adding the value that the prefix
 * already has changes nothing and is cheap.
 * Returns 0, -EINVAL (len or value out of range), -ENOMEM (nothing changed).
 */
int poptrie_add(struct poptrie *pt, const uint8_t *addr, unsigned int len, uint32_t value);

/* Stage a removal. Returns 0, -ENOENT when the prefix is not in the table, or -EINVAL. */
int poptrie_del(struct poptrie *pt, const uint8_t *addr, unsigned int len);

/*
 * Publish all staged changes. Each touched direct slot is updated once. For each key, one
 * release store changes the result. Replaced blocks go to conf.retire.        [writer]
 *
 * A change takes about a microsecond. A prefix shorter than a direct slot (shorter than /18
 * in IPv4, than /24 in 2000::/3, than /12 elsewhere in IPv6) takes some 8 ns for each slot
 * whose results it changes: 10 us for an IPv4 /8, but 16 ms for 2000::/3. A changed default
 * route is one store. While the pools have many holes, each commit closes some of them:
 * this takes 10 to 30 us more, or as much as the commit itself. The whole table is rebuilt,
 * at 50 to 100 ns a route, when a pool is full, when the first value of more than 15 bits
 * is added, and when the default route is withdrawn together with other changes.
 *
 * Returns 0 or -ENOMEM. After -ENOMEM, slots that are not yet published give their old
 * values and stay staged; a later commit tries them again.
 */
int poptrie_commit(struct poptrie *pt);

/*
 * Free the blocks that a commit retired. The caller has waited for a grace period.
 *                                                                             [writer]
 */
void poptrie_reclaim(struct poptrie *pt, struct poptrie_retired *r);

/* Look up one IPv4 key, host order. Wait-free.                          [any reader] */
uint32_t poptrie4_lookup(const struct poptrie *pt, uint32_t addr);

/*
 * Look up `n` keys (any n; 32 and 64 are best): value[i] is the result for addr[i] (host
 * order). The arrays do not overlap.
 */
void poptrie4_lookup_bulk(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
			  unsigned int n);

/*
 * Look up `n` keys, each in a table of its own: value[i] is the result for addr[i] (host
 * order) in pt[i]. The arrays do not overlap.                              [any reader]
 */
void poptrie4_lookup_each(const struct poptrie *const *pt, const uint32_t *addr,
			  uint32_t *value, unsigned int n);

/*
 * Prefetch the cache lines that a lookup reads first. They do not depend on the key. This
 * helps if there are hundreds of tables, because a table is then in no near cache.
 *                                                                         [any reader]
 */
void poptrie_prefetch(const struct poptrie *pt);

/* Look up one IPv6 key: 16 octets in network order, any alignment.       [any reader] */
uint32_t poptrie6_lookup(const struct poptrie *pt, const uint8_t *addr);

/*
 * Look up `n` IPv6 keys: addr[i] points to key i, for example in a packet, at any
 * alignment.
 */
void poptrie6_lookup_bulk(const struct poptrie *pt, const uint8_t *const *addr,
			  uint32_t *value, unsigned int n);

/*
 * Read the staged routes (readers see them after the next commit). For the writer only.
 * exact:  value of precisely this prefix, POPTRIE_NONE when absent.
 * match:  longest prefix that covers the `len` bits of addr (len = 32/128 for an address);
 *         fills *match_len, returns its value or POPTRIE_NONE.
 * next:   first prefix after (addr, len) in (address, length) order, or at or after it when
 *         `inclusive`; overwrites addr (host bits zero) and *len. Returns its value,
 *         POPTRIE_NONE at the end. The table may change between two calls.
 */
uint32_t poptrie_exact(const struct poptrie *pt, const uint8_t *addr, unsigned int len);
uint32_t poptrie_match(const struct poptrie *pt, const uint8_t *addr, unsigned int len,
		       unsigned int *match_len);
uint32_t poptrie_next(const struct poptrie *pt, uint8_t *addr, unsigned int *len,
		      bool inclusive);

#define POPTRIE_DEPTHS 21

struct poptrie_stats {
	uint64_t routes;        /* staged prefixes */
	uint64_t nodes, leaves; /* in use, direct slots not counted */
	size_t direct_bytes;    /* the direct-pointing table */
	size_t node_bytes;      /* pages of the node pool that were ever used */
	size_t leaf_bytes;      /* pages of the leaf pool that were ever used */
	size_t free_bytes;      /* in the pools: not in use (fragmentation included) */
	size_t retired_bytes;   /* waiting for poptrie_reclaim() */
	size_t radix_bytes;     /* memory that lookups never read, like the radix trees */
	uint64_t commits, slots_rebuilt;
	/*
	 * Routes by the number of nodes that a lookup reads below the direct entry. The
	 * length of a prefix decides: in a large table, IPv4 up to /24 and IPv6 up to /24
	 * in 2000::/3 are at 0.
	 */
	uint64_t depth[POPTRIE_DEPTHS];
	/*
	 * The part of free_bytes that only blocks of certain sizes can use. Its limit is
	 * the bytes in use plus 2 MiB: from half of this limit on, each commit closes some
	 * holes.
	 */
	size_t frag_bytes;
};

/* Fill `st`. Cheap, without a walk over the table.                          [writer] */
void poptrie_stats(const struct poptrie *pt, struct poptrie_stats *st);

#endif
