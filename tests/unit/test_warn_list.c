/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of warnings: its order, its limit, its rows, and the lines of the log about its
 * changes.
 *
 * link: fpm-dataplane/warn/list.c fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "log_said.h"
#include "warn/impl.h"

static struct warn w;
static json_t *rows;

static int
setup(void **state)
{
	memset(&w, 0, sizeof(w));
	rows = json_array();
	return list_init(&w.list);
}

static int
teardown(void **state)
{
	json_decref(rows);
	list_free(&w.list);
	return 0;
}

/* Run a scan. Return the number of rows of its list. */
static size_t
scanned(void (*scan)(void))
{
	uint64_t from = 0;

	list_begin(&w.list);
	scan();
	list_end(&w.list);
	json_array_clear(rows);
	assert_true(list_rows(&w.list, &from, WARNINGS_MAX + 1, rows));
	return json_array_size(rows);
}

static const char *
text(size_t row, const char *key)
{
	return json_string_value(json_object_get(json_array_get(rows, row), key));
}

static void
many(void)
{
	char where[16];

	for (unsigned int i = 0; i < WARNINGS_MAX + 2; i++) {
		snprintf(where, sizeof(where), "%u", i);
		list_add(&w.list, i == 0 ? WARNING_TC : WARNING_NFT, where, "l", "d");
	}
}

static void
the_list_has_an_end_and_counts_the_rest(void **state)
{
	uint64_t from = 0;

	list_begin(&w.list);
	many();
	list_end(&w.list);
	assert_int_equal(atomic_load(&warning_count[WARNING_NFT]), WARNINGS_MAX + 1);
	assert_int_equal(atomic_load(&warning_count[WARNING_TC]), 1);
	/*
	 * The rows are read in pieces. The row about the rest is the last one, and needs
	 * room in a piece.
	 */
	assert_false(list_rows(&w.list, &from, 100, rows));
	assert_int_equal(json_array_size(rows), 100);
	json_array_clear(rows);
	assert_false(list_rows(&w.list, &from, WARNINGS_MAX - 100, rows));
	assert_int_equal(json_array_size(rows), WARNINGS_MAX - 100);
	json_array_clear(rows);
	assert_true(list_rows(&w.list, &from, 100, rows));
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(text(0, "kind"), "more");
	assert_string_equal(text(0, "linux"), "2 more are not listed.");
	json_array_clear(rows);
	assert_true(list_rows(&w.list, &from, 100, rows));
	assert_int_equal(json_array_size(rows), 0);
	/* The log has the first 16 changes. */
	assert_int_equal(log_said(" not obeyed kind="), 16);
	assert_int_equal(log_said("not logged changes=240 "), 1);
	/* A later scan without warnings. */
	list_begin(&w.list);
	list_end(&w.list);
	assert_int_equal(atomic_load(&warning_count[WARNING_NFT]), 0);
}

static void
strange(void)
{
	list_add(&w.list, WARNING_TC, "a\tb\nc\"d\x1b", "l", "d");
}

static void
a_repeated_dump_adds_nothing_twice_and_texts_are_harmless(void **state)
{
	struct list_mark mark;

	list_begin(&w.list);
	list_add(&w.list, WARNING_TC, "kept", "l", "d");
	mark = list_mark(&w.list);
	list_add(&w.list, WARNING_TC, "undone", "l", "d");
	list_back(&w.list, &mark);
	list_add(&w.list, WARNING_NFT, "new", "l", "d");
	list_end(&w.list);
	assert_int_equal(w.list.n_now, 2);
	assert_int_equal(atomic_load(&warning_count[WARNING_TC]), 1);
	assert_string_equal(w.list.now[0].where, "new"); /* sorted by kind */
	assert_string_equal(w.list.now[1].where, "kept");
	assert_int_equal(scanned(strange), 1);
	assert_string_equal(text(0, "where"), "a?b?c?d?");
}

static void
first_scan(void)
{
	list_add(&w.list, WARNING_TC, "in-both", "l", "d");
	list_add(&w.list, WARNING_NFT, "only-first", "l", "d");
	list_add(&w.list, WARNING_TC, "zz-in-both", "l", "d");
}

static void
second_scan(void)
{
	list_add(&w.list, WARNING_TC, "zz-in-both", "l", "d");
	list_add(&w.list, WARNING_TC, "in-both", "l", "d");
	list_add(&w.list, WARNING_XDP, "only-second", "l", "d");
}

static void
only_differences_of_two_scans_are_logged(void **state)
{
	static const char *const where[] = {"in-both", "zz-in-both", "only-first",
					    "only-second"};
	static const unsigned int added[] = {1, 1, 1, 1}, removed[] = {0, 0, 1, 0};
	uint64_t from = 0;
	char line[64];

	assert_int_equal(scanned(first_scan), 3);
	/* During a scan the list of the previous scan is shown. */
	list_begin(&w.list);
	assert_true(list_rows(&w.list, &from, WARNINGS_MAX, rows));
	assert_int_equal(json_array_size(rows), 6);
	assert_int_equal(log_said("only-second"), 0);
	assert_int_equal(scanned(second_scan), 3);
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(line, sizeof(line), " not obeyed kind=%s where=\"%s\"",
			 i == 3   ? "xdp"
			 : i == 2 ? "nft"
				  : "tc",
			 where[i]);
		assert_int_equal(log_said(line), added[i]);
		snprintf(line, sizeof(line), " removed kind=%s where=\"%s\"",
			 i == 3   ? "xdp"
			 : i == 2 ? "nft"
				  : "tc",
			 where[i]);
		assert_int_equal(log_said(line), removed[i]);
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(the_list_has_an_end_and_counts_the_rest),
		TEST(only_differences_of_two_scans_are_logged),
		TEST(a_repeated_dump_adds_nothing_twice_and_texts_are_harmless),
	};

	log_set_level(LOG_LEVEL_INFO);
	return cmocka_run_group_tests_name("warn_list", tests, NULL, NULL);
}
