/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sorting many numbers by a key (rib/order.h).
 * link: fpm-dataplane/rib/order.c tests/unit/oracle.c
 */
#include "rib/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "oracle.h"

#define N 5000u

static int
whole_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sort keys that differ in `bits`. Each word has its position in the lower half. */
static void
sorts(struct rnd *r, uint32_t n, uint64_t bits)
{
	uint64_t *word = calloc(n + 1, sizeof(*word));
	uint64_t *spare = calloc(n + 1, sizeof(*word));
	uint64_t *want = calloc(n + 1, sizeof(*word)), *got;

	for (uint32_t i = 0; i < n; i++)
		word[i] = want[i] = (rnd_next(r) & bits) << 32 | i;
	/* Sorted by key; equal keys keep their order. */
	qsort(want, n, sizeof(*want), whole_order);

	got = order_by_key(word, spare, n);

	assert_true(got == word || got == spare);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], want[i]);
	free(word);
	free(spare);
	free(want);
}

static void
words_come_out_by_key_and_then_as_they_were(void **state)
{
	static const uint64_t bits[] = {0xffffffff, 0xffff0000, 0xff, 0x80000001,
					0x003ff800, 0xffc00000, 0};
	struct rnd r = {15};

	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		for (uint32_t n = 0; n < N; n = n * 5 + 1)
			sorts(&r, n, bits[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_come_out_by_key_and_then_as_they_were),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
