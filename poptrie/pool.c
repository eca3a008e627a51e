/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocate blocks of the node and leaf arrays. Each page has blocks of one size, so that a
 * block of n elements takes no more than n. (A buddy allocator would round up to the power
 * of two; this would cost a quarter of the memory that lookups need in the cache.) A page
 * whose blocks are all free can take blocks of any other size. Writer thread only. The code
 * never moves the array, because readers use it. It never writes into the array, because
 * struct pt_page has the marks of the free blocks.
 */
#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "poptrie/pool.h"

#define HUGE_BYTES ((size_t)2 << 20)
#define MMAP_BYTES ((size_t)256 << 10)

/*
 * Return the size of a page of memory: on arm64 it is 4, 16 or 64 KiB, as the kernel chose.
 */
static size_t
page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Map memory. The kernel allocates pages at first use, so a large reserve costs address
 * space only.
 */
static void *
map_pages(const struct pt_mem *m, size_t bytes, unsigned int flags)
{
	size_t align = bytes >= HUGE_BYTES ? HUGE_BYTES : page_bytes();
	size_t room = bytes + align - page_bytes();
	uint8_t *raw, *at;

	raw = mmap(NULL, room, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	at = (uint8_t *)(((uintptr_t)raw + align - 1) & ~(align - 1));
	if (at > raw)
		munmap(raw, at - raw);
	if (at + bytes < raw + room)
		munmap(at + bytes, raw + room - (at + bytes));
	if (flags & PT_MEM_HOT)
		madvise(at, bytes, MADV_HUGEPAGE); /* a hint, which may fail */
	if (flags & PT_MEM_SPARSE)
		madvise(at, bytes, MADV_NOHUGEPAGE);
	if ((flags & PT_MEM_HOT) &&
	    m->nodes != 0) /* a hint too; mbind() expects the number of bits plus one */
		syscall(SYS_mbind, at, bytes, MPOL_PREFERRED, &m->nodes, 65ul, 0u);
	return at;
}

static size_t
map_bytes(size_t bytes)
{
	return (bytes + page_bytes() - 1) & ~(page_bytes() - 1);
}

void *
pt_mem_get(const struct pt_mem *m, size_t bytes, size_t align, unsigned int flags)
{
	void *mem = NULL;

	if (m->alloc) {
		mem = m->alloc(m->ctx, bytes, align);
	} else if (bytes >= MMAP_BYTES) {
		return map_pages(m, map_bytes(bytes), flags);
	} else if (posix_memalign(&mem, align < sizeof(void *) ? sizeof(void *) : align,
				  bytes) != 0) {
		return NULL;
	}
	if (mem)
		memset(mem, 0, bytes);
	return mem;
}

void
pt_mem_put(const struct pt_mem *m, void *mem, size_t bytes)
{
	if (!mem)
		return;
	if (m->alloc)
		m->free(m->ctx, mem);
	else if (bytes >= MMAP_BYTES)
		munmap(mem, map_bytes(bytes));
	else
		free(mem);
}

static size_t
pool_bytes(const struct pt_pool *p)
{
	return (size_t)p->n_pages * p->page_elems * p->elem_bytes;
}

int
pt_pool_init(struct pt_pool *p, const struct pt_mem *m, uint32_t elem_bytes,
	     uint32_t page_elems, uint32_t cap, uint32_t skip)
{
	memset(p, 0, sizeof(*p));
	p->elem_bytes = elem_bytes;
	p->page_elems = page_elems;
	p->n_pages = (cap + page_elems - 1) / page_elems;
	p->skip = p->top = (skip + page_elems - 1) / page_elems;
	p->free_pages = PT_NIL;
	p->leaving = PT_NIL;
	memset(p->partial, 0xff, sizeof(p->partial));
	p->mem = pt_mem_get(m, pool_bytes(p), 64, PT_MEM_HOT);
	p->page = pt_mem_get(m, (size_t)p->n_pages * sizeof(*p->page), 64, 0);
	if (p->mem && p->page)
		return 0;
	pt_pool_fini(p, m);
	return -ENOMEM;
}

void
pt_pool_fini(struct pt_pool *p, const struct pt_mem *m)
{
	pt_mem_put(m, p->mem, pool_bytes(p));
	pt_mem_put(m, p->page, (size_t)p->n_pages * sizeof(*p->page));
	memset(p, 0, sizeof(*p));
}

static void
list_push(struct pt_pool *p, uint32_t *head, uint32_t i)
{
	p->page[i].prev = PT_NIL;
	p->page[i].next = *head;
	if (*head != PT_NIL)
		p->page[*head].prev = i;
	*head = i;
}

static void
list_drop(struct pt_pool *p, uint32_t *head, uint32_t i)
{
	struct pt_page *pg = &p->page[i];

	if (pg->prev != PT_NIL)
		p->page[pg->prev].next = pg->next;
	else
		*head = pg->next;
	if (pg->next != PT_NIL)
		p->page[pg->next].prev = pg->prev;
}

/* Take an unused page for blocks of `n` elements. */
static uint32_t
page_take(struct pt_pool *p, uint32_t n)
{
	uint32_t i = p->free_pages, blocks = p->page_elems / n;
	struct pt_page *pg;

	if (i != PT_NIL) {
		list_drop(p, &p->free_pages, i);
		p->n_free_pages--;
	} else if (p->top < p->n_pages) {
		i = p->top++;
	} else {
		return PT_NIL;
	}
	pg = &p->page[i];
	pg->size = n;
	pg->n_free = blocks;
	for (uint32_t w = 0; w < 16; w++, blocks -= blocks < 64 ? blocks : 64)
		pg->free[w] = blocks >= 64 ? ~0ull : (1ull << blocks) - 1;
	list_push(p, &p->partial[n], i);
	return i;
}

uint32_t
pt_pool_alloc(struct pt_pool *p, uint32_t n)
{
	uint32_t i, w = 0, b;
	struct pt_page *pg;

	assert(n >= 1 && n <= 64);
	i = p->partial[n];
	if (i == PT_NIL)
		i = page_take(p, n);
	if (i == PT_NIL && p->leaving != PT_NIL) {
		pt_pool_unmark_leaving(p);
		i = p->partial[n];
	}
	if (i == PT_NIL)
		return PT_NIL;
	pg = &p->page[i];
	while (pg->free[w] == 0)
		w++;
	b = w * 64 + (uint32_t)__builtin_ctzll(pg->free[w]);
	pg->free[w] &= pg->free[w] - 1;
	if (--pg->n_free == 0)
		list_drop(p, &p->partial[n], i);
	p->live += n;
	return i * p->page_elems + b * n;
}

void
pt_pool_free(struct pt_pool *p, uint32_t idx, uint32_t n)
{
	uint32_t i = idx / p->page_elems, b = idx % p->page_elems / n;
	struct pt_page *pg = &p->page[i];

	assert(pg->size == n && (pg->free[b / 64] >> b % 64 & 1) == 0);
	pg->free[b / 64] |= 1ull << b % 64;
	p->live -= n;
	if (pg->n_free++ == 0 && !pg->leaving)
		list_push(p, &p->partial[n], i);
	if (pg->n_free == p->page_elems / n) {
		list_drop(p, pg->leaving ? &p->leaving : &p->partial[n], i);
		pg->leaving = false;
		pg->size = 0;
		list_push(p, &p->free_pages, i);
		p->n_free_pages++;
	}
}

static bool
page_is_sparse(const struct pt_pool *p, const struct pt_page *pg)
{
	return 4u * pg->n_free > p->page_elems / pg->size;
}

bool
pt_pool_mark_leaving(struct pt_pool *p, uint32_t gain)
{
	for (uint32_t n = 1; n < sizeof(p->partial) / sizeof(p->partial[0]); n++) {
		uint32_t pages = 0, blocks = 0, each = p->page_elems / n, next;

		for (uint32_t i = p->partial[n]; i != PT_NIL; i = p->page[i].next) {
			if (!page_is_sparse(p, &p->page[i]))
				continue;
			pages++;
			blocks += each - p->page[i].n_free;
		}
		if (pages < (blocks + each - 1) / each + gain)
			continue;
		for (uint32_t i = p->partial[n]; i != PT_NIL; i = next) {
			next = p->page[i].next;
			if (!page_is_sparse(p, &p->page[i]))
				continue;
			list_drop(p, &p->partial[n], i);
			p->page[i].leaving = true;
			list_push(p, &p->leaving, i);
		}
	}
	return p->leaving != PT_NIL;
}

void
pt_pool_unmark_leaving(struct pt_pool *p)
{
	uint32_t i;

	while ((i = p->leaving) != PT_NIL) {
		list_drop(p, &p->leaving, i);
		p->page[i].leaving = false;
		if (p->page[i].n_free > 0)
			list_push(p, &p->partial[p->page[i].size], i);
	}
}

size_t
pt_pool_bytes(const struct pt_pool *p)
{
	return (size_t)p->top * p->page_elems * p->elem_bytes;
}

size_t
pt_pool_frag(const struct pt_pool *p)
{
	size_t used = (size_t)(p->top - p->skip - p->n_free_pages) * p->page_elems;

	return (used - p->live) * p->elem_bytes;
}
