/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Count the cache lines that the lookups of a stream touch.
 *
 * The Poptrie's scalar lookup is compiled a second time with calls in front of its loads
 * (trace.c). DPDK's structures are arrays of aligned groups. The table determines which
 * entry of which group a key visits, wherever the groups lie.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "trace.h"

#define LINE     64u
#define SET_BITS 23

/* A set with open addressing; 0 is a free place. */
struct set {
	uint64_t *at;
	size_t n;
};

static bool
set_has(const struct set *s, uint64_t id, uint64_t **place)
{
	uint64_t i = mix64(id) >> (64 - SET_BITS);

	while (s->at[i] && s->at[i] != id)
		i = (i + 1) & ((1u << SET_BITS) - 1);
	*place = &s->at[i];
	return s->at[i] != 0;
}

static void
set_add(struct set *s, uint64_t id)
{
	uint64_t *place;

	if (s->n < (1u << SET_BITS) / 4 * 3 && !set_has(s, id, &place)) {
		*place = id;
		s->n++;
	}
}

static bool
set_make(struct set *s)
{
	s->n = 0;
	s->at = calloc(1u << SET_BITS, sizeof(*s->at));
	return s->at != NULL;
}

/* Return a name for the leading `bits` of an address; never 0. */
static uint64_t
head_id(const uint8_t *addr, unsigned int bits)
{
	struct prefix p = {.len = (uint8_t)bits};

	memcpy(p.addr, addr, 16);
	prefix_mask(&p);
	return mix64(be64(p.addr) ^ mix64(be64(p.addr + 8) + bits)) | 1;
}

static void
key_addr(const struct keys *k, size_t i, uint8_t *addr)
{
	memset(addr, 0, 16);
	if (k->v6)
		memcpy(addr, k->v6[i], 16);
	for (int b = 0; k->v4 && b < 4; b++)
		addr[b] = (uint8_t)(k->v4[i] >> (24 - 8 * b));
}

/*
 * Return the number of lines that lookups touch in a direct table of 24 bits, and in groups
 * of 256 entries for longer prefixes.
 */
static size_t
groups_touched(const struct table *t, const struct keys *k, unsigned int entry_bytes)
{
	unsigned int in_line = LINE / entry_bytes, all = t->family == 4 ? 32 : 128;
	struct set groups, lines;
	uint64_t *place;
	uint8_t a[16];

	if (!set_make(&groups) || !set_make(&lines))
		abort();
	for (size_t i = 0; i < t->n; i++)
		for (unsigned int bits = 24; bits < t->p[i].len; bits += 8)
			set_add(&groups, head_id(t->p[i].addr, bits));
	for (size_t i = 0; i < k->n; i++) {
		key_addr(k, i, a);
		for (unsigned int bits = 24; bits <= all; bits += 8) {
			uint8_t line[16];

			/*
			 * The last of these octets is the index. Clear its bits that select
			 * the entry within a line.
			 */
			memcpy(line, a, 16);
			line[bits / 8 - 1] &= (uint8_t) ~(in_line - 1);
			set_add(&lines, head_id(line, bits));
			if (!set_has(&groups, head_id(a, bits), &place))
				break;
		}
	}
	free(groups.at);
	free(lines.at);
	return lines.n;
}

static struct {
	struct set lines;
	const struct keys *keys;
	uintptr_t last;
} traced;

void
trace_load(uintptr_t addr, size_t bytes)
{
	uintptr_t here = (uintptr_t)&bytes, key = (uintptr_t)traced.keys->v6;

	if (traced.keys->v6 && addr - key < traced.keys->n * 16)
		return;
	if (addr - here + (1 << 20) < 2 << 20 || addr / LINE == traced.last)
		return; /* the stack */
	traced.last = addr / LINE;
	set_add(&traced.lines, traced.last);
}

static size_t
poptrie_touched(const void *pt, const struct keys *k)
{
	uint32_t value = 0;

	if (!set_make(&traced.lines))
		abort();
	traced.keys = k;
	traced.last = 0;
	for (size_t i = 0; i < k->n; i++)
		value ^=
			k->v4 ? traced4_lookup(pt, k->v4[i]) : traced6_lookup(pt, k->v6[i]);
	keep(&value);
	free(traced.lines.at);
	return traced.lines.n;
}

void
lines_print(const struct structure *s, const struct table *t, const struct keys *k,
	    uint32_t nexthops, const char *hash)
{
	size_t n = s->entry_bytes ? groups_touched(t, k, s->entry_bytes)
				  : poptrie_touched(s->h, k);

	printf("{\"bench\":\"lines%d\",\"impl\":\"%s\",\"table\":\"%s\",\"stream\":\"%s\","
	       "\"nexthops\":%u,\"hash\":\"%s\",\"touched\":%zu}\n",
	       t->family, s->name, t->name, k->stream, nexthops, hash, n * LINE);
	fflush(stdout);
}
