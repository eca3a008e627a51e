/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of routes: a hash with the key (table, prefix). It takes 24 octets for an IPv4
 * route, 36 for an IPv6 route, and 4 for a bucket. [rib]. Routes live in chunks that never
 * move, so a number or a pointer stays valid until the route is removed. Walks go by number
 * and meet free numbers, too. The buckets grow one at a time (W. Litwin, "Linear Hashing: A
 * New Tool for File and Table Addressing", 1980), so the table is never rehashed as a
 * whole.
 */
#include "rib/routes.h"

#include "rib/index.h"

#define N_BUCKETS_MIN 1024u

void
routes_init(struct routes *t, uint64_t seed)
{
	t->seed = seed;
	t->n_buckets = N_BUCKETS_MIN;
	t->mask = N_BUCKETS_MIN - 1;
	t->bucket[0] = mem_or_abort(huge_new());
	t->high = 0; /* number 0 means none */
}

void
routes_free(struct routes *t)
{
	/* Each huge page begins with a chunk. */
	for (uint32_t c = 0; c < t->n_chunks; c++)
		if ((uintptr_t)t->chunk[c] % HUGE_BYTES == 0)
			huge_free(t->chunk[c]);
	for (uint32_t i = 0; i < BUCKET_CHUNKS; i++)
		huge_free(t->bucket[i]);
}

uint64_t
routes_hash(const struct routes *t, uint32_t table, const struct prefix *p)
{
	return prefix_hash(p, t->seed ^ (uint64_t)table << 32);
}

static uint32_t *
bucket_at(const struct routes *t, uint32_t b)
{
	return &t->bucket[b / BUCKET_CHUNK][b % BUCKET_CHUNK];
}

static uint32_t *
bucket_of(const struct routes *t, uint64_t hash)
{
	uint32_t b = (uint32_t)hash & (t->mask << 1 | 1);

	if (b >= t->n_buckets)
		b &= t->mask;
	return bucket_at(t, b);
}

void
routes_prefetch_bucket(const struct routes *t, uint64_t hash)
{
	__builtin_prefetch(bucket_of(t, hash));
}

void
routes_prefetch_route(const struct routes *t, uint64_t hash)
{
	uint32_t number = *bucket_of(t, hash);

	if (number != 0)
		__builtin_prefetch(route_at(t, number));
}

static bool
route_is_of(const struct route *r, uint32_t table, const struct prefix *p)
{
	if (r->len != p->len || r->family != p->family || r->table != table)
		return false;
	/* With constant lengths the compiler inserts no call. */
	return p->family == 4 ? memcmp(r->octet, p->addr.octet, 4) == 0
			      : memcmp(r->octet, p->addr.octet, 16) == 0;
}

struct route *
routes_find(const struct routes *t, uint32_t table, const struct prefix *p, uint64_t hash)
{
	for (uint32_t i = *bucket_of(t, hash); i != 0;) {
		struct route *r = route_at(t, i);

		if (route_is_of(r, table, p))
			return r;
		i = r->next;
	}
	return NULL;
}

/*
 * Add a bucket, and move to it some routes of the bucket whose turn it is. Return false if
 * the bucket could not be added, which is no error: chains get longer.
 */
static bool
routes_split_bucket(struct routes *t)
{
	uint32_t nb = t->n_buckets, from = nb - (t->mask + 1);
	uint32_t both = t->mask << 1 | 1;
	uint32_t *old, *new;

	if (nb / BUCKET_CHUNK >= BUCKET_CHUNKS)
		return false;
	if (t->bucket[nb / BUCKET_CHUNK] == NULL) {
		t->bucket[nb / BUCKET_CHUNK] = huge_new();
		if (t->bucket[nb / BUCKET_CHUNK] == NULL)
			return false;
	}
	old = bucket_at(t, from);
	new = bucket_at(t, nb);
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
	return true;
}

void
routes_expect(struct routes *t, uint32_t n)
{
	while (t->n_buckets < t->n + n && routes_split_bucket(t))
		;
}

/*
 * Return the index into `of` for the record size of a family. All keys that are not IPv4
 * prefixes have the same length.
 */
static unsigned int
family_size(uint8_t family)
{
	return family != 4;
}

/* Add a chunk of numbers for one size. Return false when memory or numbers are out. */
static bool
routes_chunk_new(struct routes *t, uint8_t family)
{
	size_t each = sizeof(struct route) + family_octets(family);
	unsigned int v = family_size(family);
	uint32_t c = t->n_chunks;

	if (c == ROUTE_CHUNKS)
		return false;
	if (t->room_bytes < ROUTE_CHUNK * each) {
		uint8_t *room = huge_new();

		if (room == NULL)
			return false;
		t->room = room;
		t->room_bytes = HUGE_BYTES;
	}
	t->chunk[c] = t->room;
	t->route_bytes[c] = (uint8_t)each;
	t->room += ROUTE_CHUNK * each;
	t->room_bytes -= ROUTE_CHUNK * each;
	t->n_chunks++;
	t->of[v].at = c == 0 ? 1 : c * ROUTE_CHUNK;
	t->of[v].end = (c + 1) * ROUTE_CHUNK;
	return true;
}

bool
routes_make_room(struct routes *t)
{
	static const uint8_t family[] = {4, 6};

	for (unsigned int v = 0; v < 2; v++)
		if (t->of[v].free == 0 && t->of[v].at == t->of[v].end &&
		    !routes_chunk_new(t, family[v]))
			return false;
	return true;
}

/* Return a number for a new route; 0: none. */
static uint32_t
routes_number_new(struct routes *t, uint8_t family)
{
	unsigned int v = family_size(family);
	uint32_t number = t->of[v].free;

	if (number != 0) {
		t->of[v].free = route_at(t, number)->next;
		return number;
	}
	if (t->of[v].at == t->of[v].end && !routes_chunk_new(t, family))
		return 0;
	number = t->of[v].at++;
	if (number > t->high)
		t->high = number;
	return number;
}

struct route *
routes_insert(struct routes *t, uint32_t table, const struct prefix *p, uint64_t hash)
{
	uint32_t number = routes_number_new(t, p->family);
	struct route *r;
	uint32_t *bucket;

	if (number == 0)
		return NULL;
	bucket = bucket_of(t, hash);
	r = route_at(t, number);
	*r = (struct route){
		.family = p->family, .len = p->len, .table = table, .next = *bucket};
	memcpy(r->octet, p->addr.octet, family_octets(p->family));
	*bucket = number;
	if (++t->n > t->n_buckets)
		routes_split_bucket(t);
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
	r->next = t->of[family_size(p.family)].free;
	t->of[family_size(p.family)].free = number;
	t->n--;
}

/*
 * Return the number of a route of the table. Begin with the chunk of the last result,
 * because routes that change together are mostly in one chunk.
 */
uint32_t
routes_number(struct routes *t, const struct route *r)
{
	uint32_t *found = &t->of[family_size((uint8_t)r->family)].found, c = *found;
	uintptr_t at;

	/* Pointers into different objects must not be compared, but numbers may. */
	while ((at = (uintptr_t)r - (uintptr_t)t->chunk[c]) >=
	       ROUTE_CHUNK * (size_t)t->route_bytes[c])
		c = (c + 1) % t->n_chunks;
	*found = c;
	return c * ROUTE_CHUNK + (uint32_t)(at / t->route_bytes[c]);
}

size_t
routes_bytes(const struct routes *t)
{
	size_t bytes = 0;

	for (uint32_t c = 0; c < t->n_chunks; c++)
		bytes += ROUTE_CHUNK * t->route_bytes[c];
	return bytes + t->n_buckets * sizeof(uint32_t);
}
