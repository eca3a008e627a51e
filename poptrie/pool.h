/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for readers: a pool hands out blocks of 1..64 adjacent elements of one array. The
 * array never moves while readers use it. When it is full, the caller builds a larger one.
 */
#ifndef POPTRIE_POOL_H
#define POPTRIE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PT_NIL        UINT32_MAX
#define PT_MEM_HOT    1u /* often read: ask for huge pages, on the NUMA nodes of lookups */
#define PT_MEM_SPARSE 2u /* mostly never touched: ask for no huge pages */

/* The caller's memory hooks, or mmap and malloc when `alloc` is NULL. */
struct pt_mem {
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *mem);
	void *ctx;
	uint64_t nodes; /* see struct poptrie_conf */
};

/* Return zeroed memory or NULL.                                             [writer] */
void *pt_mem_get(const struct pt_mem *m, size_t bytes, size_t align, unsigned int flags);

/* Free memory; `bytes` is as in pt_mem_get(). NULL is allowed. */
void pt_mem_put(const struct pt_mem *m, void *mem, size_t bytes);

/* One page of a pool. It holds blocks of one size only. */
struct pt_page {
	uint64_t free[16]; /* a bit for each free block */
	uint32_t next, prev;
	uint16_t n_free;
	uint8_t size; /* elements of a block; 0: the page is free */
	bool leaving; /* its blocks move to other pages, and no new block is put here */
};

struct pt_pool {
	void *mem;
	struct pt_page *page;
	uint32_t elem_bytes;
	uint32_t page_elems; /* a power of two, at most 1024 */
	uint32_t n_pages;    /* capacity */
	uint32_t top;        /* pages ever used, those of `skip` included */
	uint32_t skip;       /* pages at the start that are never handed out */
	uint32_t free_pages; /* list of pages that became free again */
	uint32_t n_free_pages;
	/* For each size of blocks: list of pages with a free block that are not leaving. */
	uint32_t partial[65];
	uint32_t leaving; /* list of leaving pages */
	uint32_t live;    /* elements handed out */
};

/*
 * Reserve room for `cap` elements; the first `skip` are never handed out. Returns 0 or
 * -ENOMEM.
 */
int pt_pool_init(struct pt_pool *p, const struct pt_mem *m, uint32_t elem_bytes,
		 uint32_t page_elems, uint32_t cap, uint32_t skip);
void pt_pool_fini(struct pt_pool *p, const struct pt_mem *m);

/*
 * Return the index of the first of `n` (1..64) elements, or PT_NIL when the pool is full.
 */
uint32_t pt_pool_alloc(struct pt_pool *p, uint32_t n);
void pt_pool_free(struct pt_pool *p, uint32_t idx, uint32_t n);

/*
 * For each block size, mark the pages that are less than three quarters full as leaving, if
 * moving their blocks frees `gain` pages or more. A leaving page gets no new block. When
 * all its blocks have been moved and freed, the page can take blocks of any size. Returns
 * true if any page is leaving.
 */
bool pt_pool_mark_leaving(struct pt_pool *p, uint32_t gain);

/*
 * Cancel pt_pool_mark_leaving(): the pages take blocks again. pt_pool_alloc() calls this
 * function when the pool is full.
 */
void pt_pool_unmark_leaving(struct pt_pool *p);

/* Return true if the block is in a leaving page. */
static inline bool
pt_pool_is_leaving(const struct pt_pool *p, uint32_t idx)
{
	return p->page[idx / p->page_elems].leaving;
}

/* Return the number of octets of the pages that were ever used. */
size_t pt_pool_bytes(const struct pt_pool *p);

/* Return the number of octets of free blocks in pages that are partly used. */
size_t pt_pool_frag(const struct pt_pool *p);

#endif
