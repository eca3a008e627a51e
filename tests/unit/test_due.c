/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heap of times. Its first time must be the earliest time of a list, which the test
 * searches from begin to end.
 *
 * link: fpm-dataplane/base/due.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/due.h"

#define IDS   200u
#define STEPS 20000u

static void
test_the_first_of_the_heap_is_the_earliest_of_a_list(void **state)
{
	uint64_t list[IDS];
	struct due d;

	assert_int_equal(due_init(&d, IDS), 0);
	srand(1);
	for (unsigned int i = 0; i < IDS; i++)
		list[i] = DUE_NEVER;
	for (unsigned int n = 0; n < STEPS; n++) {
		uint32_t id = (uint32_t)rand() % IDS;
		uint64_t least = DUE_NEVER;

		list[id] = rand() % 4 == 0 ? DUE_NEVER : (uint64_t)rand() % 1000;
		due_set(&d, id, list[id]);
		for (unsigned int i = 0; i < IDS; i++) {
			assert_int_equal(due_when(&d, i), list[i]);
			least = list[i] < least ? list[i] : least;
		}
		assert_int_equal(due_first(&d), least);
		if (least != DUE_NEVER)
			assert_int_equal(list[d.heap[0]], least);
	}
	due_free(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_of_the_heap_is_the_earliest_of_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
