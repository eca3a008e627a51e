/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the number of a SID. Any reader; no state. */
#include "fib/sid_number.h"

uint32_t
fib_sid_number_of(const struct fib *fib, uint32_t table, const struct ipaddr *addr,
		  uint8_t len)
{
	const struct fib_sid_numbers *t = fib->sid_numbers;
	uint32_t n = atomic_load_explicit(
		&t->first[sid_bucket(fib->seed, table, addr, len)], memory_order_consume);

	while (n != 0 &&
	       (atomic_load_explicit(&t->of[n].len, memory_order_relaxed) != len ||
		t->of[n].table != table || !ipaddr_equal(&t->of[n].addr, addr)))
		n = atomic_load_explicit(&t->of[n].next, memory_order_consume);
	return n;
}

uint32_t
fib_sid_number_find(const struct fib *fib, uint32_t table, const uint8_t *dst)
{
	for (int w = 1; w >= 0; w--) {
		uint64_t lens = atomic_load_explicit(&fib->sid_numbers->lens[w],
						     memory_order_relaxed);

		while (lens != 0) {
			int bit = 63 - __builtin_clzll(lens);
			struct prefix p = {.family = 6, .len = (uint8_t)(64 * w + bit + 1)};
			uint32_t number;

			memcpy(p.addr.octet, dst, sizeof(p.addr.octet));
			prefix_mask(&p);
			number = fib_sid_number_of(fib, table, &p.addr, p.len);
			if (number != 0)
				return number;
			lens &= ~(1ull << bit);
		}
	}
	return 0;
}

struct prefix
fib_sid_number_prefix(const struct fib *fib, uint32_t number)
{
	const struct fib_sid_number *of = &fib->sid_numbers->of[number];
	struct prefix p = {.family = 6};

	/* Acquire: with the length, this thread sees the address. */
	p.len = atomic_load_explicit(&of->len, memory_order_acquire);
	if (p.len != 0)
		p.addr = of->addr;
	return p;
}
