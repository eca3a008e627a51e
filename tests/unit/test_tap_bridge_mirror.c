/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor's memory is a hash table: an attacker that chooses addresses cannot choose
 * chains.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define HOSTS 1000

/* Neighbors 10.0.0.0 to 10.0.3.231 of interface 7. */
static struct kmon_key
host(unsigned int n)
{
	struct kmon_key key = {.ifindex = 7, .family = 4};

	memcpy(key.addr, (uint8_t[]){10, 0, (uint8_t)(n >> 8), (uint8_t)n}, 4);
	return key;
}

static void
fill(struct mirror *m)
{
	for (unsigned int n = 0; n < HOSTS; n++) {
		struct kmon_key key = host(n);

		assert_non_null(mirror_add(m, &key));
	}
	assert_int_equal(m->n_entries, HOSTS);
}

static size_t
chain_of(const struct mirror *m, unsigned int n)
{
	const struct kmon_key key = host(n);
	const struct mirror_entry *e = mirror_find(m, &key);

	assert_non_null(e);
	for (size_t b = 0; b < m->n_buckets; b++)
		for (const struct mirror_entry *at = m->bucket[b]; at != NULL;
		     at = at->next)
			if (at == e)
				return b;
	fail();
	return 0;
}

static void
a_table_that_has_grown_is_still_seeded(void **state)
{
	struct mirror a = {.seed = 0x1234567890abcdef}, b = {.seed = 0xfedcba0987654321};
	unsigned int n_same = 0;

	fill(&a);
	fill(&b);
	assert_int_equal(a.n_buckets, b.n_buckets);
	for (unsigned int n = 0; n < HOSTS; n++)
		n_same += chain_of(&a, n) == chain_of(&b, n);
	assert_in_range(n_same, 0, HOSTS / 50); /* 1 of 1024 by chance */
	mirror_free(&a);
	mirror_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_that_has_grown_is_still_seeded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
