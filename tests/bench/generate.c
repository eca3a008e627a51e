/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generate a table that resembles a BGP table, for runs without a table of the user. The
 * same seed gives the same table. The lengths have the distribution of a full table. Most
 * prefixes lie inside other prefixes of the same origin, or directly beside them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bench.h"

/* Prefixes of each length per 100,000, roughly those of a full table of the 2020s. */
static const struct share {
	uint8_t len;
	uint32_t of_100k;
} share4[] = {{8, 2},     {9, 2},     {10, 5},     {11, 12},    {12, 33},    {13, 64},
	      {14, 130},  {15, 220},  {16, 1480},  {17, 900},   {18, 1500},  {19, 2700},
	      {20, 4800}, {21, 5700}, {22, 12000}, {23, 10700}, {24, 59300}, {25, 40},
	      {26, 50},   {27, 30},   {28, 30},    {29, 80},    {30, 60},    {32, 162}},
  share6[] = {{20, 10},    {24, 20},   {28, 100},  {29, 3000}, {30, 400},  {31, 200},
	      {32, 13000}, {33, 1300}, {34, 1000}, {35, 500},  {36, 4000}, {38, 900},
	      {40, 11000}, {42, 2600}, {44, 9500}, {45, 500},  {46, 2100}, {47, 1800},
	      {48, 47000}, {52, 60},   {56, 250},  {64, 600},  {127, 60},  {128, 100}};

/* Draw an address from the ranges of the registries. */
static void
registry(int family, struct rnd *r, uint8_t *addr)
{
	static const uint8_t top6[][2] = {{0x20, 0x01}, {0x24, 0x00}, {0x26, 0x00},
					  {0x28, 0x00}, {0x2a, 0x00}, {0x2c, 0x00}};
	uint64_t w[2] = {rnd64(r), rnd64(r)};

	memcpy(addr, w, 16);
	if (family == 6) {
		uint32_t at = rnd_below(r, 6);

		addr[0] = top6[at][0];
		addr[1] = at == 0 ? 1 : top6[at][1] | (addr[1] & 0x0f);
		return;
	}
	do
		addr[0] = (uint8_t)(1 + rnd_below(r, 223));
	while (addr[0] == 10 || addr[0] == 127);
	memset(addr + 4, 0, 12);
}

/* Change `p` to the next prefix of the same length. */
static void
beside(struct prefix *p)
{
	unsigned int bit = p->len - 1u;
	unsigned int carry = 1u << (7 - bit % 8);

	for (int i = (int)bit / 8; i >= 0 && carry; i--) {
		carry += p->addr[i];
		p->addr[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* Move `p` inside a random shorter prefix among the first `n` of the table. */
static void
below(const struct table *t, size_t n, struct rnd *r, struct prefix *p)
{
	const struct prefix *cover = &t->p[rnd_below(r, (uint32_t)n)];
	uint64_t w[2] = {rnd64(r), rnd64(r)};
	struct prefix host = {.len = cover->len};

	memcpy(host.addr, w, 16);
	memcpy(p->addr, w, 16);
	prefix_mask(&host);
	for (int i = 0; i < 16; i++)
		p->addr[i] ^= host.addr[i] ^ cover->addr[i];
	if (t->family == 4)
		memset(p->addr + 4, 0, 12);
	p->asn = cover->asn;
}

/*
 * Draw an origin. In a full table half of the origins announce a few prefixes, and a few
 * origins announce thousands.
 */
static uint32_t
new_asn(struct rnd *r)
{
	return rnd_below(r, 4) ? 1 + rnd_below(r, 70000) : 1 + rnd_below(r, 300);
}

/* Add about `n` prefixes. The table may have some of them already. */
static int
generate(struct table *t, size_t n, struct rnd *r)
{
	int family = t->family;
	const struct share *share = family == 4 ? share4 : share6;
	size_t n_share = family == 4 ? sizeof(share4) / sizeof(*share4)
				     : sizeof(share6) / sizeof(*share6);

	for (size_t i = 0; i < n_share; i++) {
		size_t want = (n * share[i].of_100k + 50000) / 100000, shorter = t->n;
		struct prefix p = {0};

		for (size_t j = 0; j < want; j++) {
			uint32_t dice = rnd_below(r, 100);

			p.len = share[i].len;
			if (j > 0 && dice < 55 && (family == 6 || p.addr[0] < 223)) {
				beside(&p);
			} else if (shorter && dice < 88) {
				below(t, shorter, r, &p);
			} else {
				registry(family, r, p.addr);
				p.asn = new_asn(r);
			}
			prefix_mask(&p);
			if (table_push(t, &p) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

void
table_generate(struct table *t, int family, size_t n, uint64_t seed)
{
	struct rnd r = {.at = seed + (uint64_t)family};

	*t = (struct table){.family = family};
	snprintf(t->name, sizeof(t->name), "generated-v%d", family);
	while (t->n < n) { /* table_finish() removes duplicates */
		size_t missing = n - t->n;

		/*
		 * With n = 1 each length would get less than a half, which is rounded to
		 * none.
		 */
		if (generate(t, missing > 1 ? missing : 2, &r) < 0)
			return;
		table_finish(t);
	}
}
