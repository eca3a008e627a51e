/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make the keys: random over the address space (IPv6: over 2000::/3); random inside a
 * random prefix; Zipf over a million flows, which are random inside random prefixes; and
 * one address (IPv6: one /64) after the other, beginning in the middle of the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rte_malloc.h>
#include "bench.h"

#define FLOWS 1000000u

const char *const stream_name[N_STREAMS] = {"random", "inprefix", "zipf", "sequential"};

/* Draw with popularity 1/rank in O(1): Walker's alias method. */
struct alias {
	float *keep;     /* probability of this rank */
	uint32_t *other; /* the rank to take otherwise */
};

static int
alias_make(struct alias *a, uint32_t n)
{
	uint32_t *small = malloc(n * sizeof(*small)), *large = malloc(n * sizeof(*large));
	double *w = malloc(n * sizeof(*w)), sum = 0;
	uint32_t n_small = 0, n_large = 0, s, l;

	a->keep = malloc(n * sizeof(*a->keep));
	a->other = malloc(n * sizeof(*a->other));
	if (!small || !large || !w || !a->keep || !a->other)
		abort();
	for (uint32_t i = 0; i < n; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < n; i++) {
		w[i] = n / (sum * (i + 1));
		if (w[i] < 1)
			small[n_small++] = i;
		else
			large[n_large++] = i;
		a->keep[i] = 1;
		a->other[i] = i;
	}
	while (n_small && n_large) {
		s = small[--n_small];
		l = large[n_large - 1];
		a->keep[s] = (float)w[s];
		a->other[s] = l;
		w[l] -= 1 - w[s];
		if (w[l] < 1) {
			n_large--;
			small[n_small++] = l;
		}
	}
	free(small);
	free(large);
	free(w);
	return 0;
}

static uint32_t
alias_draw(const struct alias *a, uint32_t n, struct rnd *r)
{
	uint32_t i = rnd_below(r, n);

	return rnd_unit(r) < a->keep[i] ? i : a->other[i];
}

void
table_inside(const struct table *t, struct rnd *r, uint8_t *addr)
{
	const struct prefix *p = &t->p[rnd_below(r, (uint32_t)t->n)];
	uint64_t w[2] = {rnd64(r), rnd64(r)};
	struct prefix host;

	memcpy(host.addr, w, 16);
	host.len = p->len;
	memcpy(addr, host.addr, 16);
	prefix_mask(&host);
	for (int i = 0; i < 16; i++)
		addr[i] = (uint8_t)(addr[i] ^ host.addr[i] ^ p->addr[i]);
}

static void
put(struct keys *k, size_t i, const uint8_t *addr)
{
	if (k->v4)
		k->v4[i] = addr4(addr);
	else
		memcpy(k->v6[i], addr, 16);
}

static void
fill_random(struct keys *k, struct rnd *r)
{
	for (size_t i = 0; i < k->n; i++) {
		uint64_t w[2] = {rnd64(r), rnd64(r)};
		uint8_t a[16];

		memcpy(a, w, 16);
		if (k->v6)
			a[0] = 0x20 | (a[0] & 0x1f);
		put(k, i, a);
	}
}

static void
fill_zipf(struct keys *k, const struct table *t, struct rnd *r)
{
	uint8_t(*flow)[16] = malloc(FLOWS * sizeof(*flow));
	struct alias a;

	if (!flow || alias_make(&a, FLOWS) < 0)
		abort();
	for (uint32_t i = 0; i < FLOWS; i++)
		table_inside(t, r, flow[i]);
	for (size_t i = 0; i < k->n; i++)
		put(k, i, flow[alias_draw(&a, FLOWS, r)]);
	free(a.keep);
	free(a.other);
	free(flow);
}

static void
fill_sequential(struct keys *k, const struct table *t)
{
	const uint8_t *from = t->p[t->n / 2].addr;
	uint64_t at = k->v4 ? addr4(from) : be64(from);

	for (size_t i = 0; i < k->n; i++, at++) {
		uint8_t a[16] = {0};

		if (k->v4) {
			k->v4[i] = (uint32_t)at;
			continue;
		}
		for (int b = 0; b < 8; b++)
			a[b] = (uint8_t)(at >> (56 - 8 * b));
		put(k, i, a);
	}
}

int
keys_make(struct keys *k, int stream, const struct table *t, size_t n, uint64_t seed)
{
	struct rnd r = {.at = seed + (uint64_t)stream * 1000003};
	void *mem = rte_malloc(NULL, n * (t->family == 4 ? 4 : 16), 4096);

	if (!mem)
		return -ENOMEM;
	*k = (struct keys){.stream = stream_name[stream], .n = n};
	if (t->family == 4)
		k->v4 = mem;
	else
		k->v6 = mem;
	switch (stream) {
	case STREAM_RANDOM:
		fill_random(k, &r);
		break;
	case STREAM_INPREFIX:
		for (size_t i = 0; i < n; i++) {
			uint8_t a[16];

			table_inside(t, &r, a);
			put(k, i, a);
		}
		break;
	case STREAM_ZIPF:
		fill_zipf(k, t, &r);
		break;
	default:
		fill_sequential(k, t);
	}
	return 0;
}

void
keys_free(struct keys *k)
{
	rte_free(k->v4);
	rte_free(k->v6);
	memset(k, 0, sizeof(*k));
}
