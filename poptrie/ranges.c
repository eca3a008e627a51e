/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep a copy of a small IPv4 table as a short list of ranges, beside the nodes, which give
 * the same results. Writer thread only.
 *
 * A commit closes the list before it touches a node, and opens it when all is published.
 * Meanwhile readers use the nodes, so a lookup never gives an older result than an earlier
 * lookup. A table with more than PT_RANGES prefixes or ranges has no list. After a commit
 * that failed there is no list either.
 */
#include <stdlib.h>
#include "poptrie/impl.h"

/* Close the list. From here on readers use the nodes. */
void
pt_ranges_close(struct poptrie *pt)
{
	uint32_t turn = atomic_load_explicit(&pt->ranges_turn, memory_order_relaxed);

	atomic_store_explicit(&pt->ranges_turn, turn | 1, memory_order_relaxed);
	/* Release: a reader that sees a later store to the list also sees the odd turn. */
	atomic_thread_fence(memory_order_release);
}

static int
addr_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Collect the addresses at which a range of equal results may end. `last` has room for two
 * for each prefix and one more.
 */
static uint32_t
range_ends(const struct poptrie *pt, uint32_t *last)
{
	uint8_t a[4] = {0};
	unsigned int len = 0;
	uint32_t n = 0;

	for (bool first = true; poptrie_next(pt, a, &len, first) != POPTRIE_NONE;
	     first = false) {
		uint32_t addr = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];

		if (addr != 0)
			last[n++] = addr - 1;
		last[n++] = addr | (uint32_t)((1ull << 32 >> len) - 1);
	}
	last[n++] = UINT32_MAX;
	qsort(last, n, sizeof(*last), addr_order);
	return n;
}

static uint32_t
range_value(const struct poptrie *pt, uint32_t i)
{
	return pt->ranges[i / 16].value[i % 16];
}

static void
range_put(struct poptrie *pt, uint32_t i, uint32_t last, uint32_t value)
{
	pt->ranges[i / 16].last[i % 16] = last;
	pt->ranges[i / 16].value[i % 16] = value;
}

/* Write the list and open it, if it is short enough. Call this when all is published. */
void
pt_ranges_open(struct poptrie *pt)
{
	uint32_t turn = atomic_load_explicit(&pt->ranges_turn, memory_order_relaxed);
	uint32_t last[2 * PT_RANGES + 1], n_ends, n = 0;

	if (pt->shape != PT_SHAPE_SMALL || pt->ip6 || pt->isa < PT_AVX2 ||
	    pt->routes > PT_RANGES)
		return;
	n_ends = range_ends(pt, last);
	for (uint32_t i = 0; i < n_ends; i++) {
		uint32_t value = poptrie4_lookup(pt, last[i]);

		if (n == 0 || range_value(pt, n - 1) != value)
			n++;
		if (n > PT_RANGES)
			return;
		range_put(pt, n - 1, last[i], value);
	}
	pt->n_ranges = n;
	for (; n < PT_RANGES; n++)
		range_put(pt, n, UINT32_MAX, POPTRIE_NONE);
	/* Release: a reader that sees the turn sees its list. */
	atomic_store_explicit(&pt->ranges_turn, turn + 1, memory_order_release);
}
