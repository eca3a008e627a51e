/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small containers: a vector and a queue of numbers, and a chained hash over records that
 * have small dense numbers (slots, ids, links, adjacencies). [rib]. Do not use the hash for
 * routes: when it doubles, it rehashes everything at once, which is fast enough for
 * thousands and not for millions.
 */
#include "rib/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/inet.h"

void *
mem_or_abort(void *mem)
{
	if (mem == NULL)
		abort();
	return mem;
}

void
vec32_push(struct vec32 *vec, uint32_t value)
{
	if (vec->n == vec->cap) {
		vec->cap = vec->cap == 0 ? 16 : vec->cap * 2;
		vec->v = mem_or_abort(realloc(vec->v, vec->cap * sizeof(*vec->v)));
	}
	vec->v[vec->n++] = value;
}

void
vec32_free(struct vec32 *vec)
{
	free(vec->v);
	*vec = (struct vec32){0};
}

/*
 * Make room at the end. If at least half of the array lies before the queue, move the queue
 * to the front of the array: at most as many numbers move as were popped before. Else
 * double the array.
 */
static void
fifo32_make_room(struct fifo32 *q)
{
	if (q->at > 0 && q->at >= q->cap / 2) {
		memmove(q->v, q->v + q->at, fifo32_len(q) * sizeof(*q->v));
		q->n = fifo32_len(q);
		q->at = 0;
		return;
	}
	q->cap = q->cap == 0 ? 16 : q->cap * 2;
	q->v = mem_or_abort(realloc(q->v, q->cap * sizeof(*q->v)));
}

void
fifo32_push(struct fifo32 *q, uint32_t value)
{
	if (q->n == q->cap)
		fifo32_make_room(q);
	q->v[q->n++] = value;
}

uint32_t
fifo32_pop(struct fifo32 *q)
{
	uint32_t value = q->v[q->at++];

	if (q->at == q->n)
		q->at = q->n = 0;
	return value;
}

void
fifo32_free(struct fifo32 *q)
{
	free(q->v);
	*q = (struct fifo32){0};
}

uint32_t
number_get(struct vec32 *unused, uint32_t *high)
{
	return unused->n > 0 ? unused->v[--unused->n] : ++*high;
}

void *
table_grow(void *table, uint32_t *cap, uint32_t number, size_t record_bytes)
{
	if (number < *cap)
		return table;
	*cap = *cap == 0 ? 64 : *cap * 2;
	return mem_or_abort(realloc(table, *cap * record_bytes));
}

uint64_t
hash32(uint32_t x)
{
	return mix64(x + 0x9e3779b97f4a7c15u);
}

static void
hidx_rehash(struct hidx *h, uint32_t n_heads)
{
	uint32_t *old = h->head;
	uint32_t n_old = old == NULL ? 0 : h->mask + 1;

	h->head = mem_or_abort(calloc(n_heads, sizeof(*h->head)));
	h->mask = n_heads - 1;
	for (uint32_t b = 0; b < n_old; b++)
		for (uint32_t i = old[b], next; i != 0; i = next) {
			uint32_t *head = &h->head[h->hash[i] & h->mask];

			next = h->next[i];
			h->next[i] = *head;
			*head = i;
		}
	free(old);
}

void
hidx_add(struct hidx *h, uint64_t hash, uint32_t number)
{
	uint32_t *head;

	if (h->head == NULL || h->n > h->mask)
		hidx_rehash(h, h->head == NULL ? 64 : (h->mask + 1) * 2);
	if (number >= h->cap) {
		uint32_t cap = h->cap == 0 ? 64 : h->cap * 2;

		while (cap <= number)
			cap *= 2;
		h->next = mem_or_abort(realloc(h->next, cap * sizeof(*h->next)));
		h->hash = mem_or_abort(realloc(h->hash, cap * sizeof(*h->hash)));
		h->cap = cap;
	}
	h->hash[number] = (uint32_t)hash;
	head = &h->head[h->hash[number] & h->mask];
	h->next[number] = *head;
	*head = number;
	h->n++;
}

void
hidx_del(struct hidx *h, uint32_t number)
{
	uint32_t *at = &h->head[h->hash[number] & h->mask];

	while (*at != number)
		at = &h->next[*at];
	*at = h->next[number];
	h->n--;
}

static uint32_t
hidx_same_hash(const struct hidx *h, uint32_t number, uint32_t hash)
{
	while (number != 0 && h->hash[number] != hash)
		number = h->next[number];
	return number;
}

uint32_t
hidx_first(const struct hidx *h, uint64_t hash)
{
	if (h->head == NULL)
		return 0;
	return hidx_same_hash(h, h->head[(uint32_t)hash & h->mask], (uint32_t)hash);
}

uint32_t
hidx_next(const struct hidx *h, uint32_t number)
{
	return hidx_same_hash(h, h->next[number], h->hash[number]);
}

void
hidx_free(struct hidx *h)
{
	free(h->head);
	free(h->next);
	free(h->hash);
	*h = (struct hidx){0};
}

size_t
hidx_bytes(const struct hidx *h)
{
	return (h->head == NULL ? 0 : (h->mask + 1) * sizeof(*h->head)) +
	       h->cap * (sizeof(*h->next) + sizeof(*h->hash));
}
