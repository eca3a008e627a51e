/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of routes: a hash keyed (table, prefix), 40 octets a route and 4 a bucket.
 * [rib]. Routes live in chunks that never move, so a number or a pointer stays good until
 * the route is removed; walks go by number. Buckets grow one at a time (W. Litwin, "Linear
 * Hashing: A New Tool for File and Table Addressing", 1980): never a rehash of all.
 */
#include <stdlib.h>

#include "rib/rib_impl.h"

#define N_BUCKETS_MIN 1024u

void
routes_init(struct routes *t, uint64_t seed)
{
	t->seed = seed;
	t->n_buckets = N_BUCKETS_MIN;
	t->mask = N_BUCKETS_MIN - 1;
	t->bucket[0] = must(calloc(ROUTE_CHUNK, sizeof(*t->bucket[0])));
	t->chunk[0] = must(calloc(ROUTE_CHUNK, sizeof(*t->chunk[0])));
	t->high = 0; /* number 0 means none */
}

void
routes_free(struct routes *t)
{
	for (uint32_t i = 0; i < ROUTE_CHUNKS; i++) {
		free(t->chunk[i]);
		free(t->bucket[i]);
	}
}

uint64_t
routes_hash(const struct routes *t, uint32_t table, const struct prefix *p)
{
	return prefix_hash(p, t->seed ^ (uint64_t)table << 32);
}

static uint32_t *
bucket_of(const struct routes *t, uint64_t hash)
{
	uint32_t b = (uint32_t)hash & (t->mask << 1 | 1);

	if (b >= t->n_buckets)
		b &= t->mask;
	return &t->bucket[b / ROUTE_CHUNK][b % ROUTE_CHUNK];
}

void
routes_prefetch_bucket(const struct routes *t, uint64_t hash)
{
	__builtin_prefetch(bucket_of(t, hash));
}

void
routes_prefetch_route(const struct routes *t, uint64_t hash)
{
	__builtin_prefetch(route_at(t, *bucket_of(t, hash)));
}

struct route *
routes_find(const struct routes *t, uint32_t table, const struct prefix *p, uint64_t hash)
{
	for (uint32_t i = *bucket_of(t, hash); i != 0;) {
		struct route *r = route_at(t, i);

		if (r->len == p->len && r->family == p->family && r->table == table &&
		    ipaddr_equal(&r->addr, &p->addr))
			return r;
		i = r->next;
	}
	return NULL;
}

/* One bucket more: split the next in turn. Not growing is no error, chains get longer. */
static void
split(struct routes *t)
{
	uint32_t nb = t->n_buckets, from = nb - (t->mask + 1);
	uint32_t both = t->mask << 1 | 1;
	uint32_t *old, *new;

	if (nb / ROUTE_CHUNK >= ROUTE_CHUNKS)
		return;
	if (t->bucket[nb / ROUTE_CHUNK] == NULL) {
		t->bucket[nb / ROUTE_CHUNK] = calloc(ROUTE_CHUNK, sizeof(uint32_t));
		if (t->bucket[nb / ROUTE_CHUNK] == NULL)
			return;
	}
	old = &t->bucket[from / ROUTE_CHUNK][from % ROUTE_CHUNK];
	new = &t->bucket[nb / ROUTE_CHUNK][nb % ROUTE_CHUNK];
	for (uint32_t i; (i = *old) != 0;) {
		struct route *r = route_at(t, i);
		struct prefix p = route_prefix(r);

		if (((uint32_t)routes_hash(t, r->table, &p) & both) == nb) {
			*old = r->next;
			r->next = *new;
			*new = i;
		} else {
			old = &r->next;
		}
	}
	if (++t->n_buckets == (t->mask + 1) * 2)
		t->mask = both;
}

struct route *
routes_insert(struct routes *t, uint32_t table, const struct prefix *p, uint64_t hash)
{
	uint32_t number = t->free;
	struct route *r;
	uint32_t *bucket;

	if (number != 0) {
		t->free = route_at(t, number)->next;
	} else {
		number = t->high + 1;
		if (number / ROUTE_CHUNK >= ROUTE_CHUNKS)
			return NULL;
		if (t->chunk[number / ROUTE_CHUNK] == NULL) {
			t->chunk[number / ROUTE_CHUNK] =
				calloc(ROUTE_CHUNK, sizeof(struct route));
			if (t->chunk[number / ROUTE_CHUNK] == NULL)
				return NULL;
		}
		t->high = number;
	}
	bucket = bucket_of(t, hash);
	r = route_at(t, number);
	*r = (struct route){.addr = p->addr,
			    .family = p->family,
			    .len = p->len,
			    .table = table,
			    .next = *bucket};
	*bucket = number;
	if (++t->n > t->n_buckets)
		split(t);
	return r;
}

void
routes_remove(struct routes *t, struct route *r)
{
	struct prefix p = route_prefix(r);
	uint32_t *at = bucket_of(t, routes_hash(t, r->table, &p));
	uint32_t number;

	while (route_at(t, *at) != r)
		at = &route_at(t, *at)->next;
	number = *at;
	*at = r->next;
	r->family = 0;
	r->next = t->free;
	t->free = number;
	t->n--;
}

size_t
routes_bytes(const struct routes *t)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < ROUTE_CHUNKS; i++) {
		if (t->chunk[i] != NULL)
			bytes += ROUTE_CHUNK * sizeof(struct route);
		if (t->bucket[i] != NULL)
			bytes += ROUTE_CHUNK * sizeof(uint32_t);
	}
	return bytes;
}
