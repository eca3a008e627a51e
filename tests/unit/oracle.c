/* SPDX-License-Identifier: BSD-3-Clause */
/* The naive longest-prefix match with which tests compare poptrie; see oracle.h. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "oracle.h"

struct oracle *
oracle_new(bool ip6)
{
	struct oracle *o = calloc(1, sizeof(*o));

	assert(o);
	o->bytes = ip6 ? 16 : 4;
	o->n_slots = 1024;
	o->slot = calloc(o->n_slots, sizeof(*o->slot));
	assert(o->slot);
	return o;
}

void
oracle_free(struct oracle *o)
{
	free(o->slot);
	free(o);
}

void
oracle_mask(uint8_t *addr, unsigned int bytes, unsigned int len, bool ones)
{
	for (unsigned int i = 0; i < bytes; i++) {
		unsigned int keep = len >= (i + 1) * 8 ? 8 : len <= i * 8 ? 0 : len - i * 8;
		uint8_t host = (uint8_t)(0xff >> keep);

		addr[i] = ones ? addr[i] | host : addr[i] & (uint8_t)~host;
	}
}

void
oracle_step(uint8_t *addr, unsigned int bytes, int d)
{
	for (unsigned int i = bytes; i-- > 0 && d;) {
		addr[i] = (uint8_t)(addr[i] + d);
		if (d > 0 ? addr[i] != 0 : addr[i] != 0xff)
			break;
	}
}

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

/*
 * Return the slot of the prefix, or the empty slot where it belongs. Host bits of `addr`
 * are 0.
 */
static struct oracle_route *
find(const struct oracle *o, const uint8_t *addr, unsigned int len)
{
	uint64_t hi = 0, lo = 0;
	uint32_t i;

	memcpy(&hi, addr, o->bytes == 4 ? 4 : 8);
	if (o->bytes == 16)
		memcpy(&lo, addr + 8, 8);
	i = (uint32_t)(mix(mix(hi + len) ^ lo) >> 20) & (o->n_slots - 1);
	for (;; i = (i + 1) & (o->n_slots - 1)) {
		struct oracle_route *s = &o->slot[i];

		if (s->len == 0)
			return s;
		if (s->len == len + 1 && memcmp(s->addr, addr, o->bytes) == 0)
			return s;
	}
}

/*
 * Write the table again without removed routes, and enlarge it if needed. In the table
 * `len` is one more than the length; 0 marks a slot that was never used.
 */
static void
grow(struct oracle *o)
{
	struct oracle_route *was = o->slot;
	uint32_t n = o->n_slots;

	if (o->routes * 4 > n)
		o->n_slots *= 2;
	o->slot = calloc(o->n_slots, sizeof(*o->slot));
	assert(o->slot);
	o->n_used = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (was[i].value == 0)
			continue;
		*find(o, was[i].addr, was[i].len - 1) = was[i];
		o->n_used++;
	}
	free(was);
}

uint32_t
oracle_set(struct oracle *o, const uint8_t *addr, unsigned int len, uint32_t value)
{
	uint8_t a[16] = {0};
	struct oracle_route *s;
	uint32_t old;

	memcpy(a, addr, o->bytes);
	oracle_mask(a, o->bytes, len, false);
	if (o->n_used * 2 > o->n_slots)
		grow(o);
	s = find(o, a, len);
	old = s->value;
	if (s->len == 0)
		o->n_used++;
	memcpy(s->addr, a, 16);
	s->len = len + 1;
	s->value = value;
	if (old == 0) {
		o->routes++;
		o->n_len[len]++;
	}
	return old;
}

uint32_t
oracle_del(struct oracle *o, const uint8_t *addr, unsigned int len)
{
	uint8_t a[16] = {0};
	struct oracle_route *s;
	uint32_t old;

	memcpy(a, addr, o->bytes);
	oracle_mask(a, o->bytes, len, false);
	s = find(o, a, len);
	old = s->value;
	s->value = 0;
	if (old) {
		o->routes--;
		o->n_len[len]--;
	}
	return old;
}

uint32_t
oracle_exact(const struct oracle *o, const uint8_t *addr, unsigned int len)
{
	uint8_t a[16] = {0};

	memcpy(a, addr, o->bytes);
	oracle_mask(a, o->bytes, len, false);
	return find(o, a, len)->value;
}

uint32_t
oracle_match(const struct oracle *o, const uint8_t *addr, unsigned int max,
	     unsigned int *len)
{
	uint8_t a[16] = {0};

	memcpy(a, addr, o->bytes);
	for (unsigned int l = max + 1; l-- > 0;) {
		uint32_t value;

		if (o->n_len[l] == 0)
			continue;
		oracle_mask(a, o->bytes, l, false);
		value = find(o, a, l)->value;
		if (value) {
			if (len)
				*len = l;
			return value;
		}
	}
	if (len)
		*len = 0;
	return 0;
}

static int
order(const void *x, const void *y)
{
	const struct oracle_route *a = x, *b = y;
	int d = memcmp(a->addr, b->addr, 16);

	return d ? d : (int)a->len - (int)b->len;
}

struct oracle_route *
oracle_sorted(const struct oracle *o)
{
	struct oracle_route *all = calloc(o->routes + 1, sizeof(*all));
	uint32_t n = 0;

	assert(all);
	for (uint32_t i = 0; i < o->n_slots; i++) {
		if (o->slot[i].value == 0)
			continue;
		all[n] = o->slot[i];
		all[n++].len--;
	}
	assert(n == o->routes);
	qsort(all, n, sizeof(*all), order);
	return all;
}

uint64_t
rnd_next(struct rnd *r)
{
	r->s ^= r->s >> 12;
	r->s ^= r->s << 25;
	r->s ^= r->s >> 27;
	return r->s * 0x2545f4914f6cdd1dull;
}

struct rnd
rnd_seeded(const char *name)
{
	const char *env = getenv("SEED");
	struct timespec now;
	struct rnd r;

	clock_gettime(CLOCK_REALTIME, &now);
	r.s = env ? strtoull(env, NULL, 0)
		  : (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
	if (r.s == 0)
		r.s = 1;
	printf("%s: SEED=0x%llx\n", name, (unsigned long long)r.s);
	fflush(stdout);
	return r;
}

unsigned int
oracle_prefix(const char *text, uint8_t *addr)
{
	char copy[64];
	char *slash;
	int ok;

	memset(addr, 0, 16);
	snprintf(copy, sizeof(copy), "%s", text);
	slash = strchr(copy, '/');
	if (slash)
		*slash = '\0';
	ok = inet_pton(strchr(copy, ':') ? AF_INET6 : AF_INET, copy, addr);
	assert(ok == 1);
	(void)ok;
	if (slash)
		return (unsigned int)atoi(slash + 1);
	return strchr(copy, ':') ? 128 : 32;
}

void *
heap_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p = NULL;

	(void)ctx;
	return posix_memalign(&p, align < 8 ? 8 : align, bytes) == 0 ? p : NULL;
}

void
heap_free(void *ctx, void *mem)
{
	(void)ctx;
	free(mem);
}
