/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of ranges of a small IPv4 table: its exact ends and results, its room, and when
 * readers may use it.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie_rig.h"

static int allocations_left = INT_MAX;

static void *
memory_get(void *ctx, size_t bytes, size_t align)
{
	void *mem;

	if (allocations_left == 0 || posix_memalign(&mem, align, bytes) != 0)
		return NULL;
	allocations_left--;
	return memset(mem, 0, bytes);
}

static void
memory_free(void *ctx, void *mem)
{
	free(mem);
}

static struct poptrie *
table_of(enum poptrie_family family, bool small, enum pt_isa isa)
{
	struct poptrie_conf conf = {
		.family = family, .small = small, .alloc = memory_get, .free = memory_free};
	struct poptrie *pt;

	assert_int_equal(pt_create(&pt, &conf, PT_WIDE, isa), 0);
	return pt;
}

/* Return an empty small table that can have a list. */
static struct poptrie *
listed(void)
{
	if (pt_isa_best() < PT_AVX2)
		skip();
	return table_of(POPTRIE_IP4, true, pt_isa_best());
}

static bool
is_closed(const struct poptrie *pt)
{
	return atomic_load(&pt->ranges_turn) % 2 == 1;
}

/*
 * Assert the whole list: "9.255.255.255 -, 10.255.255.255 1, ..." has the end and the
 * result of each range.
 */
static void
ranges_are(const struct poptrie *pt, const char *want)
{
	char addr[64];
	uint32_t value, n = 0;
	uint8_t a[16];

	assert_false(is_closed(pt));
	for (; rig_next(&want, addr, &value); n++) {
		assert_true(n < PT_RANGES);
		oracle_prefix(addr, a);
		assert_int_equal(pt->ranges[n / 16].last[n % 16],
				 (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3]);
		assert_int_equal(pt->ranges[n / 16].value[n % 16], value);
	}
	assert_int_equal(pt->n_ranges, n);
	for (; n < PT_RANGES; n++) {
		assert_int_equal(pt->ranges[n / 16].last[n % 16], UINT32_MAX);
		assert_int_equal(pt->ranges[n / 16].value[n % 16], POPTRIE_NONE);
	}
}

static void
a_range_ends_where_the_result_changes(void **state)
{
	struct poptrie *pt = listed();

	assert_true(is_closed(pt));
	stage(pt, "10.0.0.0/8 1");
	commit(pt);
	ranges_are(pt, "9.255.255.255 -, 10.255.255.255 1, 255.255.255.255 -");
	/* A longer prefix inside, with bits behind its length. */
	stage(pt, "10.1.2.3/16 2");
	commit(pt);
	ranges_are(pt, "9.255.255.255 -, 10.0.255.255 1, 10.1.255.255 2, "
		       "10.255.255.255 1, 255.255.255.255 -");
	/* The first and the last address have no range before and behind them. */
	stage(pt, "0.0.0.0/32 3, 255.255.255.255/32 4");
	commit(pt);
	ranges_are(pt, "0.0.0.0 3, 9.255.255.255 -, 10.0.255.255 1, 10.1.255.255 2, "
		       "10.255.255.255 1, 255.255.255.254 -, 255.255.255.255 4");
	answers(pt, "0.0.0.0 3, 0.0.0.1 -, 9.255.255.255 -, 10.0.0.0 1, 10.1.0.0 2, "
		    "10.1.255.255 2, 10.2.0.0 1, 255.255.255.254 -, 255.255.255.255 4");
	/* A shorter list has nothing of the longer one. */
	stage(pt, "0.0.0.0/32 -, 255.255.255.255/32 -, 10.1.0.0/16 -, 10.0.0.0/8 -, "
		  "0.0.0.0/0 7");
	commit(pt);
	ranges_are(pt, "255.255.255.255 7");
	stage(pt, "0.0.0.0/0 -");
	commit(pt);
	ranges_are(pt, "255.255.255.255 -");
	poptrie_destroy(pt);
}

static void
neighbors_with_equal_results_are_one_range(void **state)
{
	struct poptrie *pt = listed();

	stage(pt, "10.0.0.0/9 1, 10.128.0.0/9 1, 10.64.0.0/10 1, 11.0.0.0/8 2");
	commit(pt);
	ranges_are(
		pt,
		"9.255.255.255 -, 10.255.255.255 1, 11.255.255.255 2, 255.255.255.255 -");
	/* The default route has the value of a prefix. */
	stage(pt, "0.0.0.0/0 2");
	commit(pt);
	ranges_are(pt, "9.255.255.255 2, 10.255.255.255 1, 255.255.255.255 2");
	poptrie_destroy(pt);
}

/*
 * Stage host routes to `n` addresses: `first`, `first` + `step` and so on. All have the
 * value `value`; 0: they have the values 1, 2, ...
 */
static void
hosts_stage(struct poptrie *pt, uint32_t first, unsigned int n, unsigned int step,
	    uint32_t value)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t addr = first + i * step;
		uint8_t a[4] = {addr >> 24, addr >> 16 & 0xff, addr >> 8 & 0xff,
				addr & 0xff};

		assert_int_equal(poptrie_add(pt, a, 32, value != 0 ? value : i + 1), 0);
	}
}

static void
a_list_has_room_for_64_ranges(void **state)
{
	struct poptrie *pt = listed();

	/* 32 host routes from 0.0.0.0 on, with a range without a route behind each. */
	hosts_stage(pt, 0, 32, 2, 0);
	commit(pt);
	assert_false(is_closed(pt));
	assert_int_equal(pt->n_ranges, 64);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(pt->ranges[i / 16].last[i % 16], i == 63 ? UINT32_MAX : i);
		assert_int_equal(pt->ranges[i / 16].value[i % 16],
				 i % 2 == 0 ? i / 2 + 1 : POPTRIE_NONE);
	}
	/* One more range does not fit; the nodes have the results. */
	stage(pt, "255.255.255.255/32 99");
	commit(pt);
	assert_true(is_closed(pt));
	answers(pt, "0.0.0.0 1, 0.0.0.1 -, 0.0.0.62 32, 255.255.255.255 99");
	stage(pt, "255.255.255.255/32 -");
	commit(pt);
	assert_false(is_closed(pt));
	assert_int_equal(pt->n_ranges, 64);
	poptrie_destroy(pt);
}

static void
a_list_is_made_of_at_most_64_prefixes(void **state)
{
	struct poptrie *pt = listed();

	hosts_stage(pt, 0x0a000000, 64, 1, 5);
	commit(pt);
	ranges_are(pt, "9.255.255.255 -, 10.0.0.63 5, 255.255.255.255 -");
	stage(pt, "10.0.0.64/32 5");
	commit(pt);
	assert_true(is_closed(pt));
	answers(pt, "10.0.0.63 5, 10.0.0.64 5, 10.0.0.65 -");
	poptrie_destroy(pt);
}

static void
other_tables_have_no_list(void **state)
{
	struct poptrie *none[] = {table_of(POPTRIE_IP4, false, pt_isa_best()),
				  table_of(POPTRIE_IP6, true, pt_isa_best()),
				  table_of(POPTRIE_IP4, true, PT_SCALAR)};

	for (unsigned int i = 0; i < 3; i++) {
		stage(none[i], i == 1 ? "2001:db8::/32 1" : "10.0.0.0/8 1");
		commit(none[i]);
		assert_true(is_closed(none[i]));
		poptrie_destroy(none[i]);
	}
}

static void
the_turn_tells_a_reader_that_the_list_has_changed(void **state)
{
	struct poptrie *pt = listed();
	uint32_t turn;

	stage(pt, "10.0.0.0/8 1");
	commit(pt);
	turn = atomic_load(&pt->ranges_turn);
	assert_int_equal(turn % 2, 0);
	/* A change that is only staged, and a commit without a change, leave the list. */
	stage(pt, "11.0.0.0/8 2");
	assert_int_equal(atomic_load(&pt->ranges_turn), turn);
	commit(pt);
	assert_int_equal(atomic_load(&pt->ranges_turn), turn + 2);
	commit(pt);
	assert_int_equal(atomic_load(&pt->ranges_turn), turn + 2);
	/* A list that is closed stays closed. */
	pt_ranges_close(pt);
	assert_int_equal(atomic_load(&pt->ranges_turn), turn + 3);
	pt_ranges_close(pt);
	assert_int_equal(atomic_load(&pt->ranges_turn), turn + 3);
	pt_ranges_open(pt);
	assert_int_equal(atomic_load(&pt->ranges_turn), turn + 4);
	ranges_are(pt, "9.255.255.255 -, 10.255.255.255 1, 11.255.255.255 2, "
		       "255.255.255.255 -");
	poptrie_destroy(pt);
}

static void
a_commit_without_memory_leaves_no_list(void **state)
{
	unsigned int n_closed = 0;

	/* Each allocation of the commit fails in turn. */
	for (int left = 0, rc = -ENOMEM; rc < 0; left++) {
		struct poptrie *pt = listed();
		uint32_t turn;

		stage(pt, "10.0.0.0/8 99");
		commit(pt);
		turn = atomic_load(&pt->ranges_turn);
		hosts_stage(pt, 0x0a000001, 20, 1u << 18, 0);
		allocations_left = left;
		rc = poptrie_commit(pt);
		allocations_left = INT_MAX;
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(atomic_load(&pt->ranges_turn),
				 rc == 0 ? turn + 2 : turn + is_closed(pt));
		n_closed += rc < 0 && is_closed(pt);
		commit(pt);
		assert_false(is_closed(pt));
		assert_int_equal(pt->n_ranges, 43);
		poptrie_destroy(pt);
	}
	assert_true(n_closed > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_ends_where_the_result_changes),
		cmocka_unit_test(neighbors_with_equal_results_are_one_range),
		cmocka_unit_test(a_list_has_room_for_64_ranges),
		cmocka_unit_test(a_list_is_made_of_at_most_64_prefixes),
		cmocka_unit_test(other_tables_have_no_list),
		cmocka_unit_test(the_turn_tells_a_reader_that_the_list_has_changed),
		cmocka_unit_test(a_commit_without_memory_leaves_no_list),
	};

	return cmocka_run_group_tests_name("poptrie_ranges", tests, NULL, NULL);
}
