/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines of tables with a limit when they are full, and hashes that an attacker cannot
 * predict.
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/prefix.h"
#include "base/limits.h"

static void
count_line(void *ctx, const char *line, size_t len)
{
	unsigned int *n = ctx;

	n[0] += memmem(line, len, "table is full table=hosts", 25) != NULL;
	n[1] += memmem(line, len, "table has room again table=mtus", 31) != NULL;
}

static void
a_full_table_counts_all_refusals_and_logs_once_a_second(void **state)
{
	unsigned int n[2] = {0};
	struct table_state s;

	table_begin(TABLE_hosts, 1000);
	table_used(TABLE_hosts, 1000);
	for (int i = 0; i < 100000; i++)
		table_refuse(TABLE_hosts);
	s = table_state(TABLE_hosts);
	assert_string_equal(s.name, "hosts");
	assert_int_equal(s.used, 1000);
	assert_int_equal(s.max, 1000);
	assert_int_equal(s.refused, 100000);
	log_recent(count_line, n);
	assert_in_range(n[0], 1, 2); /* a second may end meanwhile */
}

static void
room_again_is_logged_once_and_not_at_the_limit(void **state)
{
	unsigned int n[2] = {0};

	table_begin(TABLE_mtus, 1000);
	table_used(TABLE_mtus, 1000);
	table_refuse(TABLE_mtus);
	table_used(TABLE_mtus, 999);
	log_recent(count_line, n);
	assert_int_equal(n[1], 0);
	for (int i = 0; i < 100; i++)
		table_used(TABLE_mtus, 800);
	log_recent(count_line, n);
	assert_int_equal(n[1], 1);
	assert_int_equal(table_state(TABLE_mtus).refused, 1);
}

/* The lines about one table in order: F for full, R for room again. */
struct course {
	const char *full, *room;
	char said[16];
};

static void
follow(void *ctx, const char *line, size_t len)
{
	struct course *c = ctx;
	size_t n = strlen(c->said);

	if (memmem(line, len, c->full, strlen(c->full)) != NULL)
		c->said[n] = 'F';
	else if (memmem(line, len, c->room, strlen(c->room)) != NULL)
		c->said[n] = 'R';
}

static struct course
course_of_groups(void)
{
	struct course c = {"table is full table=groups",
			   "table has room again table=groups", ""};

	log_recent(follow, &c);
	return c;
}

static void
a_table_that_fills_again_within_a_second_is_logged_after_it(void **state)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	table_begin(TABLE_groups, 1000);
	for (int i = 0; i < 2; i++) {
		table_used(TABLE_groups, 800);
		table_used(TABLE_groups, 1000);
		table_refuse(TABLE_groups);
	}
	/* The table does not change; table_tell() is called now and then. */
	while (strcmp(course_of_groups().said, "FR") == 0) {
		table_tell();
		nanosleep(&moment, NULL);
	}
	assert_string_equal(course_of_groups().said, "FRF");
	table_tell();
	table_used(TABLE_groups, 800);
	assert_string_equal(course_of_groups().said, "FRFR");
	table_used(TABLE_groups, 1000);
	table_refuse(TABLE_groups);
	table_used(TABLE_groups, 800);
	/* The log has reported that the table was full and has room again. */
	table_tell();
	assert_int_equal(course_of_groups().said[strlen(course_of_groups().said) - 1], 'R');
}

#define FLOOD  2000
#define CHAINS 4096u

/* Return the length of the longest chain of these addresses. */
static unsigned int
longest(const struct ipaddr *addr, uint64_t seed)
{
	static unsigned int chain[CHAINS];
	unsigned int most = 0;

	memset(chain, 0, sizeof(chain));
	for (unsigned int i = 0; i < FLOOD; i++) {
		unsigned int *at = &chain[ipaddr_hash(&addr[i], seed) & (CHAINS - 1)];

		if (++*at > most)
			most = *at;
	}
	return most;
}

static void
addresses_that_meet_under_one_seed_do_not_under_another(void **state)
{
	static struct ipaddr addr[FLOOD];
	const uint64_t known = 0x1234567890abcdef;
	struct ipaddr a = {.octet = {0x20, 0x01, 0x0d, 0xb8}};
	unsigned int n = 0;

	/* An attacker that knows the seed would choose hosts of one /64 like this. */
	for (uint64_t i = 0; n < FLOOD; i++) {
		memcpy(a.octet + 8, &i, sizeof(i));
		if ((ipaddr_hash(&a, known) & (CHAINS - 1)) == 0)
			addr[n++] = a;
	}
	assert_int_equal(longest(addr, known), FLOOD);
	for (uint64_t seed = 1; seed < 100; seed++)
		assert_in_range(longest(addr, known ^ seed << 17), 1, 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_table_counts_all_refusals_and_logs_once_a_second),
		cmocka_unit_test(room_again_is_logged_once_and_not_at_the_limit),
		cmocka_unit_test(
			a_table_that_fills_again_within_a_second_is_logged_after_it),
		cmocka_unit_test(addresses_that_meet_under_one_seed_do_not_under_another),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
