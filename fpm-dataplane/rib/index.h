/* SPDX-License-Identifier: BSD-3-Clause */
/* Small containers of [rib]: vectors of numbers, a hash over records that have numbers. */
#ifndef RIB_INDEX_H
#define RIB_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns mem; aborts when it is NULL: small control data, nothing sane is left to do. */
void *must(void *mem);

struct vec32 {
	uint32_t *v;
	uint32_t n, cap;
};
void vec32_push(struct vec32 *vec, uint32_t value);
void vec32_free(struct vec32 *vec);

/* A number for a new record, from 1: one that was given back, else the next. */
uint32_t number_get(struct vec32 *unused, uint32_t *high);
/* The table with room for record `number`; the caller's pointer is the returned one. */
void *table_grow(void *table, uint32_t *cap, uint32_t number, size_t record_bytes);

/* Hash of small dense numbers (1..): the caller keeps the records and compares them. */
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
