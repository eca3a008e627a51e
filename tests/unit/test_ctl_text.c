/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers as fpmctl prints them: the first and the last value of each unit. Members of
 * rows, and arrays of rows for --json.
 *
 * link: fpm-dataplane/ctl/text.c fpm-dataplane/ctl/json_row.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

static void
seconds_change_their_unit_at_a_minute_an_hour_and_a_day(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} row[] = {
		{0, "0.0 s"},           {59.9, "59.9 s"},      {60, "1 min 00 s"},
		{119, "1 min 59 s"},    {3599, "59 min 59 s"}, {3600, "1 h 00 min"},
		{86399, "23 h 59 min"}, {86400, "1 d 00 h"},   {200000, "2 d 07 h"},
	};
	char buf[32];

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(human_seconds(row[i].seconds, buf), row[i].text);
}

static void
octets_change_their_unit_at_powers_of_1024(void **state)
{
	char buf[32];

	assert_string_equal(human_bytes(1023, buf), "1023 B");
	assert_string_equal(human_bytes(1024, buf), "1.0 KiB");
	assert_string_equal(human_bytes(1536, buf), "1.5 KiB");
	assert_string_equal(human_bytes(1024 * 1024, buf), "1.0 MiB");
	assert_string_equal(human_bytes(5LL << 40, buf), "5.0 TiB");
	assert_string_equal(human_bytes(3LL << 60, buf), "3072.0 PiB");
}

static void
rates_and_counts_change_their_unit_at_powers_of_1000(void **state)
{
	char buf[32];

	assert_string_equal(human_rate(999, buf), "999");
	assert_string_equal(human_rate(1000, buf), "1.0 k");
	assert_string_equal(human_rate(2.5e9, buf), "2.5 G");
	assert_string_equal(human_count(9999999, buf), "9999999");
	assert_string_equal(human_count(10000000, buf), "10.0 M");
}

/* --- rows ----------------------------------------------------------------------------- */

static void
a_member_that_a_row_lacks_is_empty(void **state)
{
	json_t *row = json_pack("{s:i, s:f, s:s, s:b, s:b, s:n}", "int", 7, "real", 1.5,
				"str", "x", "yes", 1, "no", 0, "null");

	assert_int_equal(row_int(row, "int"), 7);
	assert_int_equal(row_int(row, "str"), 0);
	assert_true(row_real(row, "real") == 1.5 && row_real(row, "int") == 7);
	assert_string_equal(row_str(row, "str"), "x");
	assert_string_equal(row_str(row, "int"), "");
	assert_string_equal(row_str(row, "none"), "");
	assert_true(row_true(row, "yes"));
	assert_false(row_true(row, "no") || row_true(row, "int") || row_true(row, "none"));
	assert_true(row_has(row, "int") && row_has(row, "no"));
	assert_false(row_has(row, "null") || row_has(row, "none"));
	json_decref(row);
}

static void
an_empty_text_and_a_negative_number_are_null(void **state)
{
	static const struct {
		const char *text, *json;
	} of[] = {{"", "null"},
		  {"wan0", "\"wan0\""},
		  {"a\xff\x1b", "\"a??\""}, /* malformed UTF-8 */
		  {"caf\xc3\xa9", "\"caf\xc3\xa9\""}};
	static const int number[] = {-1, 0, 1};
	static const char *const written[] = {"null", "0", "1"};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		json_t *json = text_or_null(of[i].text);
		char *text = json_dumps(json, JSON_ENCODE_ANY);

		assert_string_equal(text, of[i].json);
		free(text);
		json_decref(json);
	}
	for (unsigned int i = 0; i < 3; i++) {
		json_t *json = number_or_null(number[i]);
		char *text = json_dumps(json, JSON_ENCODE_ANY);

		assert_string_equal(text, written[i]);
		free(text);
		json_decref(json);
	}
}

static void
control_characters_leave_texts_at_any_depth(void **state)
{
	json_t *row = json_pack("{s:s, s:[s, {s:s}], s:i}", "a", "x\x1b", "b", "y\x07", "c",
				"z\x7f", "d", 1);
	char *text;

	rows_harmless(row);
	text = json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text, "{\"a\":\"x?\",\"b\":[\"y?\",{\"c\":\"z?\"}],\"d\":1}");
	free(text);
	json_decref(row);
}

/* Write an array of `n` rows as --json does. Returns the text, which the caller frees. */
static char *
array_written(unsigned int n)
{
	char *text = NULL;
	size_t len;
	FILE *was = stdout;

	stdout = open_memstream(&text, &len);
	for (unsigned int i = 0; i < n; i++)
		json_row_print(i, i == 0 ? "{}" : "{\"a\":1}");
	json_rows_end(n);
	fclose(stdout);
	stdout = was;
	return text;
}

static void
rows_are_written_as_one_array(void **state)
{
	static const char *const want[] = {"[]\n", "[{}]\n", "[{},\n{\"a\":1}]\n"};
	json_t *row = json_pack("{s:i}", "a", 1), *rows = json_array();
	char *text = NULL;
	size_t len;
	FILE *was = stdout;

	for (unsigned int n = 0; n < 3; n++) {
		text = array_written(n);
		assert_string_equal(text, want[n]);
		free(text);
	}
	assert_true(rows_keep(row, "", rows));
	json_decref(row); /* the array keeps it */
	stdout = open_memstream(&text, &len);
	json_print(rows);
	fclose(stdout);
	stdout = was;
	assert_string_equal(text, "[{\"a\":1}]\n");
	free(text);
	json_decref(rows);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_that_a_row_lacks_is_empty),
		cmocka_unit_test(an_empty_text_and_a_negative_number_are_null),
		cmocka_unit_test(control_characters_leave_texts_at_any_depth),
		cmocka_unit_test(rows_are_written_as_one_array),
		cmocka_unit_test(seconds_change_their_unit_at_a_minute_an_hour_and_a_day),
		cmocka_unit_test(octets_change_their_unit_at_powers_of_1024),
		cmocka_unit_test(rates_and_counts_change_their_unit_at_powers_of_1000),
	};

	return cmocka_run_group_tests_name("ctl_text", tests, NULL, NULL);
}
