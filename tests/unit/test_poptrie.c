/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The behavior of poptrie, one claim per test, with small tables as text.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie_rig.h"

static void
an_empty_table_answers_none(void **state)
{
	FOR_LAYOUTS(pt)
	{
		answers(pt, "0.0.0.0 -, 255.255.255.255 -");
		commit(pt);
		answers(pt, "192.0.2.1 -");
	}
	FOR_TABLE6(pt)
	{
		answers(pt,
			":: -, 2001:db8::1 -, ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff -");
	}
}

static void
lookup_prefers_the_longer_prefix(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.0.0.0/8 1, 10.1.0.0/16 2, 10.1.2.0/24 3, 10.1.2.128/25 4, "
			  "10.1.2.130/31 5, 10.1.2.131/32 6");
		commit(pt);
		answers(pt, "10.2.0.1 1, 10.1.3.1 2, 10.1.2.3 3, 10.1.2.128 4, "
			    "10.1.2.130 5, 10.1.2.131 6, 10.1.2.132 4, 11.0.0.0 -, "
			    "9.255.255.255 -");
	}
}

static void
nothing_is_visible_before_the_commit(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "192.0.2.0/24 7, 0.0.0.0/0 8");
		answers(pt, "192.0.2.1 -");
		commit(pt);
		answers(pt, "192.0.2.1 7");
		stage(pt, "192.0.2.0/24 -");
		answers(pt, "192.0.2.1 7");
		commit(pt);
		answers(pt, "192.0.2.1 8");
	}
}

static void
a_default_route_covers_what_no_prefix_does(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "0.0.0.0/0 1");
		commit(pt);
		stage(pt, "198.51.100.7/32 2");
		commit(pt);
		answers(pt, "0.0.0.0 1, 255.255.255.255 1, 198.51.100.6 1, "
			    "198.51.100.7 2, 198.51.100.8 1");
	}
}

static void
a_default_route_and_prefixes_can_change_in_one_commit(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "0.0.0.0/0 1, 198.51.100.0/25 2, 203.0.0.0/8 3");
		commit(pt);
		stage(pt, "0.0.0.0/0 4, 198.51.100.0/25 -, 203.0.0.0/8 -");
		commit(pt);
		answers(pt, "198.51.100.1 4, 203.1.1.1 4");
		/* The node that was expanded for that commit must not stay. */
		stage(pt, "0.0.0.0/0 5");
		commit(pt);
		answers(pt, "198.51.100.1 5, 203.1.1.1 5");
		stage(pt, "198.51.100.0/25 6, 0.0.0.0/0 -");
		commit(pt);
		answers(pt, "198.51.100.1 6, 203.1.1.1 -, 198.51.100.200 -");
	}
}

static void
a_default_that_comes_as_a_prefix_goes_leaves_no_node(void **state)
{
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		stage(pt, "198.51.100.0/24 1");
		commit(pt);
		stage(pt, "0.0.0.0/0 2, 198.51.100.0/24 -");
		commit(pt);
		answers(pt, "198.51.100.1 2, 198.51.101.1 2");
		stage(pt, "203.0.113.0/24 2, 203.0.113.0/24 -");
		commit(pt);
		poptrie_stats(pt, &st);
		assert_int_equal(st.nodes, 0);
		assert_int_equal(st.leaves, 0);
	}
}

static void
a_removed_prefix_uncovers_the_shorter_one(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.0.0.0/8 1, 10.64.0.0/10 2, 10.64.0.0/18 3, 10.64.0.0/30 4");
		commit(pt);
		answers(pt, "10.64.0.1 4");
		stage(pt, "10.64.0.0/30 -");
		commit(pt);
		answers(pt, "10.64.0.1 3");
		stage(pt, "10.64.0.0/18 -");
		commit(pt);
		answers(pt, "10.64.0.1 2");
		stage(pt, "10.64.0.0/10 -");
		commit(pt);
		answers(pt, "10.64.0.1 1");
		stage(pt, "10.0.0.0/8 -");
		commit(pt);
		answers(pt, "10.64.0.1 -");
	}
}

static void
the_last_bits_of_an_ipv4_address_count(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "255.255.255.254/31 1, 255.255.255.255/32 2, 0.0.0.0/32 3, "
			  "0.0.0.2/31 4");
		commit(pt);
		answers(pt, "255.255.255.253 -, 255.255.255.254 1, 255.255.255.255 2, "
			    "0.0.0.0 3, 0.0.0.1 -, 0.0.0.2 4, 0.0.0.3 4, 0.0.0.4 -");
	}
}

static void
the_last_bits_of_an_ipv6_address_count(void **state)
{
	FOR_TABLE6(pt)
	{
		stage(pt, "2001:db8::/127 1, 2001:db8::1/128 2, "
			  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 3, ::/128 4, "
			  "fe80::4/126 5");
		commit(pt);
		answers(pt, "2001:db8:: 1, 2001:db8::1 2, 2001:db8::2 -, "
			    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3, "
			    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe -, :: 4, ::1 -, "
			    "fe80::3 -, fe80::7 5, fe80::8 -");
	}
}

static void
ipv6_prefixes_work_inside_outside_and_around_2000_3(void **state)
{
	FOR_TABLE6(pt)
	{
		stage(pt, "::/0 1, ::/1 2, 2000::/3 3, fc00::/7 4, 2001:db8::/32 5, "
			  "1fff::/16 6");
		commit(pt);
		answers(pt, "8000:: 1, ff02::1 1, ::1 2, 4000:: 2, 7fff:: 2, 2000:: 3, "
			    "3fff:ffff:: 3, fd00::1 4, 2001:db8:1:: 5, 1fff:ffff:: 6");
		stage(pt, "::/1 -");
		commit(pt);
		answers(pt, "::1 1, 2000:: 3");
		stage(pt, "2000::/3 -");
		commit(pt);
		answers(pt, "2000:: 1, 2001:db8:1:: 5");
	}
}

static void
values_need_not_fit_16_bits(void **state)
{
	static_assert(POPTRIE_VALUE_MAX == 2147483647, "the largest of those below");

	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.0.0.0/8 32767, 10.1.2.0/24 1");
		commit(pt);
		assert_false(pt_view(pt)->leaf32);
		stage(pt, "10.1.0.0/16 32768, 10.1.2.4/30 2147483647");
		answers(pt, "10.1.2.4 1");
		commit(pt);
		assert_true(pt_view(pt)->leaf32);
		answers(pt, "10.9.0.1 32767, 10.1.2.1 1, 10.1.3.1 32768, "
			    "10.1.2.7 2147483647");
		stage(pt, "10.1.0.0/16 40000, 0.0.0.0/0 50000");
		commit(pt);
		answers(pt, "10.1.3.1 40000, 11.0.0.0 50000");
		stage(pt, "10.1.0.0/16 -");
		commit(pt);
		answers(pt, "10.1.3.1 32767");
	}
}

static void
one_value_beyond_16_bits_is_enough_for_wide_leaves(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.1.2.0/24 32768");
		commit(pt);
		answers(pt, "10.1.2.1 32768, 10.1.3.1 -");
		assert_true(pt_view(pt)->leaf32);
	}
}

static void *
no_memory(void *ctx, size_t bytes, size_t align)
{
	return NULL;
}

static void
bad_arguments_are_refused_and_change_nothing(void **state)
{
	struct poptrie_conf conf = {.family = 5};
	struct poptrie *none;
	uint8_t a[16] = {10};
	unsigned int len;

	assert_int_equal(poptrie_create(&none, &conf), -EINVAL);
	conf.family = POPTRIE_IP4;
	conf.alloc = no_memory;
	assert_int_equal(poptrie_create(&none, &conf), -EINVAL);
	FOR_LAYOUTS(pt)
	{
		assert_int_equal(poptrie_exact(pt, a, 33), POPTRIE_NONE);
		assert_int_equal(poptrie_match(pt, a, 33, &len), POPTRIE_NONE);
		len = 33;
		assert_int_equal(poptrie_next(pt, a, &len, true), POPTRIE_NONE);
		assert_int_equal(poptrie_add(pt, a, 33, 1), -EINVAL);
		assert_int_equal(poptrie_add(pt, a, 8, POPTRIE_NONE), -EINVAL);
		assert_int_equal(poptrie_add(pt, a, 8, POPTRIE_VALUE_MAX + 1u), -EINVAL);
		assert_int_equal(poptrie_del(pt, a, 33), -EINVAL);
		assert_int_equal(poptrie_del(pt, a, 8), -ENOENT);
		assert_int_equal(poptrie_del(pt, a, 0), -ENOENT);
		assert_int_equal(drop(pt, "10.0.0.0/24"), -ENOENT);
		stage(pt, "10.0.0.0/24 1");
		assert_int_equal(drop(pt, "10.0.0.0/25"), -ENOENT);
		assert_int_equal(drop(pt, "10.0.0.0/23"), -ENOENT);
	}
}

static void
host_bits_are_ignored(void **state)
{
	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.1.2.3/8 1, 10.1.2.3/23 2");
		commit(pt);
		answers(pt, "10.255.0.0 1, 10.1.3.255 2");
		stage(pt, "10.1.3.9/23 -");
		commit(pt);
		answers(pt, "10.1.3.255 1");
	}
}

static void
match_and_exact_read_the_staged_truth(void **state)
{
	unsigned int len;
	uint8_t a[16];

	FOR_LAYOUTS(pt)
	{
		stage(pt, "10.0.0.0/8 1, 10.1.2.0/24 2");
		oracle_prefix("10.1.2.3", a);
		assert_int_equal(poptrie_match(pt, a, 32, &len), 2);
		assert_int_equal(len, 24);
		assert_int_equal(poptrie_match(pt, a, 23, &len), 1);
		assert_int_equal(len, 8);
		assert_int_equal(poptrie_match(pt, a, 7, &len), POPTRIE_NONE);
		assert_int_equal(poptrie_exact(pt, a, 24), 2);
		assert_int_equal(poptrie_exact(pt, a, 25), POPTRIE_NONE);
		assert_int_equal(poptrie_exact(pt, a, 0), POPTRIE_NONE);
		stage(pt, "0.0.0.0/0 9");
		assert_int_equal(poptrie_exact(pt, a, 0), 9);
		assert_int_equal(poptrie_match(pt, a, 7, &len), 9);
		assert_int_equal(len, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_table_answers_none),
		cmocka_unit_test(lookup_prefers_the_longer_prefix),
		cmocka_unit_test(nothing_is_visible_before_the_commit),
		cmocka_unit_test(a_default_route_covers_what_no_prefix_does),
		cmocka_unit_test(a_default_route_and_prefixes_can_change_in_one_commit),
		cmocka_unit_test(a_default_that_comes_as_a_prefix_goes_leaves_no_node),
		cmocka_unit_test(a_removed_prefix_uncovers_the_shorter_one),
		cmocka_unit_test(the_last_bits_of_an_ipv4_address_count),
		cmocka_unit_test(the_last_bits_of_an_ipv6_address_count),
		cmocka_unit_test(ipv6_prefixes_work_inside_outside_and_around_2000_3),
		cmocka_unit_test(values_need_not_fit_16_bits),
		cmocka_unit_test(one_value_beyond_16_bits_is_enough_for_wide_leaves),
		cmocka_unit_test(bad_arguments_are_refused_and_change_nothing),
		cmocka_unit_test(host_bits_are_ignored),
		cmocka_unit_test(match_and_exact_read_the_staged_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
