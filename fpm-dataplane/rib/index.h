/* SPDX-License-Identifier: BSD-3-Clause */
/* Small containers: vectors of numbers, and a hash over records that have numbers. [rib] */
#ifndef RIB_INDEX_H
#define RIB_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return mem. Abort when it is NULL: rib cannot work without its small control data. */
void *mem_or_abort(void *mem);

struct vec32 {
	uint32_t *v;
	uint32_t n, cap;
};
void vec32_push(struct vec32 *vec, uint32_t value);
void vec32_free(struct vec32 *vec);

/* A queue of numbers, first in, first out. All zero is an empty queue. */
struct fifo32 {
	uint32_t *v;
	uint32_t at, n, cap; /* the numbers are v[at] to v[n - 1] */
};
void fifo32_push(struct fifo32 *q, uint32_t value);
uint32_t fifo32_pop(struct fifo32 *q); /* of a queue that is not empty */
void fifo32_free(struct fifo32 *q);

static inline uint32_t
fifo32_len(const struct fifo32 *q)
{
	return q->n - q->at;
}

/* Return the number for a new record, from 1: a number of `unused`, or else *high + 1. */
uint32_t number_get(struct vec32 *unused, uint32_t *high);
/* Return the table with room for record `number`. It replaces the caller's pointer. */
void *table_grow(void *table, uint32_t *cap, uint32_t number, size_t record_bytes);

/* Hash of small dense numbers from 1. The caller keeps the records and compares them. */
struct hidx {
	uint32_t *head;
	uint32_t *next, *hash; /* by number */
	uint32_t mask, cap, n;
};
void hidx_add(struct hidx *h, uint64_t hash, uint32_t number);
void hidx_del(struct hidx *h, uint32_t number);
uint32_t hidx_first(const struct hidx *h, uint64_t hash); /* 0: none */
uint32_t hidx_next(const struct hidx *h, uint32_t number);
void hidx_free(struct hidx *h);
size_t hidx_bytes(const struct hidx *h);
uint64_t hash32(uint32_t x);

#endif
