/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for readers: a pool hands out blocks of 1..64 adjacent elements of one array.
 * The array never moves under readers; when it is full, the caller builds a larger one.
 */
#ifndef POPTRIE_POOL_H
#define POPTRIE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PT_NIL        UINT32_MAX
#define PT_MEM_HOT    1u /* read by lookups: ask for huge pages, on their node */
#define PT_MEM_SPARSE 2u /* mostly never touched: ask for no huge pages */

/* The caller's memory hooks, or mmap and malloc when `alloc` is NULL. */
struct pt_mem {
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *mem);
	void *ctx;
	uint64_t nodes; /* of struct poptrie_conf */
};

/* Zeroed memory or NULL.                                                  [writer] */
void *pt_mem_get(const struct pt_mem *m, size_t bytes, size_t align, unsigned int flags);

/* `bytes` as it was got. NULL is fine. */
void pt_mem_put(const struct pt_mem *m, void *mem, size_t bytes);

/* One page of a pool holds blocks of one size only. */
struct pt_page {
	uint64_t free[16]; /* a bit a block */
	uint32_t next, prev;
	uint16_t n_free;
	uint8_t size; /* elements a block; 0: the page is free */
	bool leaving; /* its blocks are to move elsewhere; nothing new goes there */
};

struct pt_pool {
	void *mem;
	struct pt_page *page;
	uint32_t elem_bytes;
	uint32_t page_elems; /* a power of two, at most 1024 */
	uint32_t n_pages;    /* capacity */
	uint32_t top;        /* pages ever used */
	uint32_t skip;       /* of those, never handed out */
	uint32_t free_pages; /* list of pages given back */
	uint32_t n_free_pages;
	uint32_t partial
		[65];     /* pages with a free block of that size, none of them leaving */
	uint32_t leaving; /* list of pages that are */
	uint32_t live;    /* elements handed out */
};

/* Room for `cap` elements, of which the first `skip` are never handed out. 0 or -ENOMEM. */
int pt_pool_init(struct pt_pool *p, const struct pt_mem *m, uint32_t elem_bytes,
		 uint32_t page_elems, uint32_t cap, uint32_t skip);
void pt_pool_fini(struct pt_pool *p, const struct pt_mem *m);

/* Index of the first of `n` (1..64) elements, PT_NIL when the pool is full. */
uint32_t pt_pool_alloc(struct pt_pool *p, uint32_t n);
void pt_pool_free(struct pt_pool *p, uint32_t idx, uint32_t n);

/*
 * Have the emptier pages be left, those that are less than three quarters full, where that
 * saves `gain` pages of one block size at least: nothing new goes there, and when what is
 * there has been moved and freed they can take any size. Returns whether there are any.
 */
bool pt_pool_leave(struct pt_pool *p, uint32_t gain);

/* No more of that: the pages take blocks again. Done by itself when the pool is full. */
void pt_pool_stay(struct pt_pool *p);

/* Is the block in a page that is to be left? */
static inline bool
pt_pool_leaves(const struct pt_pool *p, uint32_t idx)
{
	return p->page[idx / p->page_elems].leaving;
}

/* Octets of the pages in use so far. */
size_t pt_pool_bytes(const struct pt_pool *p);

/* Octets of blocks that are free in pages of which others are not. */
size_t pt_pool_frag(const struct pt_pool *p);

#endif
