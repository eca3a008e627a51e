/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers as fpmctl prints them: the first and the last value of each unit.
 *
 * link: fpm-dataplane/ctl/text.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds_change_their_unit_at_a_minute_an_hour_and_a_day),
		cmocka_unit_test(octets_change_their_unit_at_powers_of_1024),
		cmocka_unit_test(rates_and_counts_change_their_unit_at_powers_of_1000),
	};

	return cmocka_run_group_tests_name("ctl_text", tests, NULL, NULL);
}
