/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of a ruleset whose elements come and go: the answers are those of a list that is
 * searched from its start to its end.
 *
 * link: fpm-dataplane/ruleset/ poptrie/ fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruleset/members.h"

#define LIST_MAX 512u
#define ROUNDS   300u

static const struct ruleset_reclaim at_once;

/* The elements that the kernel has, in any order. */
struct list {
	uint8_t key[LIST_MAX][16];
	bool end[LIST_MAX];
	uint32_t n;
	unsigned int len;
};

static struct list list;
static bool expires; /* the next set has elements with times */

static uint32_t
list_find(const uint8_t *key, bool end)
{
	uint32_t i;

	for (i = 0; i < list.n; i++)
		if (list.end[i] == end && memcmp(list.key[i], key, list.len) == 0)
			break;
	return i;
}

static void
list_add(const uint8_t *key, bool end)
{
	if (list_find(key, end) < list.n)
		return;
	assert_true(list.n < LIST_MAX);
	memcpy(list.key[list.n], key, list.len);
	list.end[list.n++] = end;
}

static void
list_del(const uint8_t *key, bool end)
{
	uint32_t i = list_find(key, end);

	if (i == list.n)
		return;
	list.n--;
	memcpy(list.key[i], list.key[list.n], list.len);
	list.end[i] = list.end[list.n];
}

/* Return true if the list has the key. The highest begin or end up to the key decides. */
static bool
list_has(const uint8_t *key, bool interval)
{
	const uint8_t *best = NULL;
	bool in = false;

	if (!interval)
		return list_find(key, false) < list.n;
	for (uint32_t i = 0; i < list.n; i++) {
		int d = best == NULL ? 1 : memcmp(list.key[i], best, list.len);

		if (memcmp(list.key[i], key, list.len) > 0 || d < 0)
			continue;
		in = d == 0 ? in || !list.end[i] : !list.end[i];
		best = list.key[i];
	}
	return in;
}

/*
 * Draw a random key out of a small number of keys, which include the first and the last
 * key.
 */
static void
key_draw(uint8_t *key)
{
	static const uint8_t high[] = {0, 0, 10, 127, 255};
	uint8_t top = high[rand() % 5];

	memset(key, top == 255 ? 0xff : 0, list.len);
	key[0] = top;
	if (rand() % 8 == 0)
		return;
	key[list.len - 2] = (uint8_t)(rand() % 2 == 0 ? 0 : 0xff);
	key[list.len - 1] = (uint8_t)rand();
}

static void
set_make(struct ruleset_set *s, bool interval)
{
	static struct ruleset_member m[LIST_MAX];

	*s = (struct ruleset_set){.key_len = (uint8_t)list.len,
				  .kind = interval ? SET_INTERVAL : SET_EXACT,
				  .interval = interval,
				  .addresses = true,
				  .expires = expires,
				  .changes = true};
	for (uint32_t i = 0; i < list.n; i++)
		m[i] = (struct ruleset_member){
			list.key[i], list.key[i], {.end = list.end[i]}};
	assert_int_equal(ruleset_members_fill(s, m, list.n, &at_once), 0);
}

static void
list_make(unsigned int len, uint32_t n, bool interval)
{
	uint8_t key[16];

	list.n = 0;
	list.len = len;
	while (list.n < n) {
		key_draw(key);
		list_add(key, interval && rand() % 2 == 0);
	}
}

static void
same_answers(const struct ruleset_set *s)
{
	uint8_t key[16];

	for (unsigned int i = 0; i < 200; i++) {
		key_draw(key);
		assert_int_equal(ruleset_find(s, key, 0) != NULL,
				 list_has(key, s->interval));
	}
	for (uint32_t i = 0; i < list.n; i++)
		assert_int_equal(ruleset_find(s, list.key[i], 0) != NULL,
				 list_has(list.key[i], s->interval));
}

/* Change some elements in one transaction. Return the result of the change. */
static int
some_change(struct ruleset_set *s)
{
	static uint8_t key[16][16];
	struct ruleset_change change[16];
	uint32_t n = 1 + (uint32_t)rand() % 16;

	for (uint32_t i = 0; i < n; i++) {
		bool end = s->interval && rand() % 2 == 0, leaves = rand() % 2 == 0;

		key_draw(key[i]);
		if (leaves && list.n > 0) {
			uint32_t k = (uint32_t)rand() % list.n;

			memcpy(key[i], list.key[k], list.len);
			end = list.end[k];
		}
		change[i] = (struct ruleset_change){{key[i], key[i], {.end = end}}, leaves};
		if (leaves)
			list_del(key[i], end);
		else
			list_add(key[i], end);
	}
	return ruleset_members_change(s, change, n, 0, &at_once);
}

static void
changes_are_those_of_a_list(unsigned int len, uint32_t n, bool interval, bool prefixes)
{
	struct ruleset_set s;

	srand(n * 31 + len);
	list_make(len, n, interval);
	set_make(&s, interval);
	assert_int_equal(s.kind == SET_PREFIXES, prefixes);
	same_answers(&s);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (some_change(&s) == -ERANGE) { /* too large: make the set again */
			ruleset_members_free(&s);
			set_make(&s, interval);
		}
		same_answers(&s);
	}
	ruleset_members_free(&s);
}

static void
a_poptrie_of_intervals_answers_as_a_list(void **state)
{
	changes_are_those_of_a_list(4, 60, true, true);
	changes_are_those_of_a_list(16, 60, true, true);
	changes_are_those_of_a_list(4, 300, true, true);
}

static void
a_poptrie_of_hosts_answers_as_a_list(void **state)
{
	changes_are_those_of_a_list(4, 60, false, true);
	changes_are_those_of_a_list(16, 100, false, true);
}

static void
an_array_answers_as_a_list(void **state)
{
	changes_are_those_of_a_list(4, 0, true, false);
	changes_are_those_of_a_list(4, 10, false, false);
	changes_are_those_of_a_list(16, 20, true, false);
}

/* One element that covers all addresses comes and goes. */
static void
the_whole_address_space_comes_and_goes(void **state)
{
	static const uint8_t zero[16];
	struct ruleset_change all = {{zero, zero, {0}}, false};
	struct ruleset_set s;

	list_make(4, 100, true);
	list_del(zero, false);
	set_make(&s, true);
	assert_int_equal(s.kind, SET_PREFIXES);
	for (unsigned int i = 0; i < 10; i++) {
		all.leaves = i % 2 != 0;
		if (all.leaves)
			list_del(zero, false);
		else
			list_add(zero, false);
		assert_int_equal(ruleset_members_change(&s, &all, 1, 0, &at_once), 0);
		same_answers(&s);
	}
	ruleset_members_free(&s);
}

/* Elements of a Poptrie cannot expire, so a set with times is an array of any size. */
static void
a_member_that_expires_is_in_an_array(void **state)
{
	static const uint8_t key[4] = {192, 0, 2, 1};
	struct ruleset_change change = {{key, key, {.until = 5}}, false};
	struct ruleset_set s;

	list_make(4, 300, false);
	expires = true;
	set_make(&s, false);
	expires = false;
	assert_int_equal(s.kind, SET_EXACT);
	assert_int_equal(ruleset_members_change(&s, &change, 1, 0, &at_once), 0);
	assert_non_null(ruleset_find(&s, key, 4));
	assert_null(ruleset_find(&s, key, 5));
	ruleset_members_free(&s);
}

/*
 * The kernel removes an expired element without a message. The next change of the set
 * removes it here. Otherwise a set grows without end.
 */
static void
expired_members_leave_with_the_next_change(void **state)
{
	struct ruleset_set s;

	list_make(4, 0, false);
	expires = true;
	set_make(&s, false);
	expires = false;
	for (uint8_t i = 0; i < 100; i++) {
		const uint8_t key[4] = {192, 0, 2, i};
		struct ruleset_change change = {{key, key, {.until = i + 10u}}, false};

		if (i == 50)
			change.m.e.until = 0;
		assert_int_equal(ruleset_members_change(&s, &change, 1, i, &at_once), 0);
		assert_in_range(atomic_load(&s.content)->n, 1, 11);
	}
	for (uint8_t i = 0; i < 100; i++) {
		const uint8_t key[4] = {192, 0, 2, i};

		assert_int_equal(ruleset_find(&s, key, 99) != NULL, i == 50 || i > 89);
	}
	ruleset_members_free(&s);
}

/* --- the kind of a set ---------------------------------------------------------------- */

/* Write number `i` as a key of four octets. */
static uint8_t *
key_of(uint32_t i, uint8_t key[4])
{
	for (int k = 0; k < 4; k++)
		key[k] = (uint8_t)(i >> 8 * (3 - k));
	return key;
}

/* Fill a set of `n` hosts or, with `kind` SET_RANGES, of `n` ranges: the numbers from 0. */
static struct ruleset_set
numbers_make(uint8_t kind, uint32_t n)
{
	struct ruleset_set s = {.kind = kind,
				.key_len = 4,
				.interval = kind == SET_RANGES,
				.addresses = kind != SET_RANGES,
				.changes = true,
				.n_field = 1,
				.field = {4}};
	struct ruleset_member *m = calloc(n, sizeof(*m));
	uint8_t(*key)[4] = calloc(n, sizeof(*key));

	assert_non_null(m);
	assert_non_null(key);
	for (uint32_t i = 0; i < n; i++)
		m[i].key = m[i].key_end = key_of(i, key[i]);
	assert_int_equal(ruleset_members_fill(&s, m, n, &at_once), 0);
	free(key);
	free(m);
	return s;
}

/* Add the `n` numbers from `from` on in one change. Return its result. */
static int
numbers_add(struct ruleset_set *s, uint32_t from, uint32_t n)
{
	struct ruleset_change *change = calloc(n, sizeof(*change));
	uint8_t(*key)[4] = calloc(n, sizeof(*key));
	int rc;

	assert_non_null(change);
	assert_non_null(key);
	for (uint32_t i = 0; i < n; i++)
		change[i].m.key = change[i].m.key_end = key_of(from + i, key[i]);
	rc = ruleset_members_change(s, change, n, 0, &at_once);
	free(key);
	free(change);
	return rc;
}

/*
 * Each kind of set has a limit: a change up to the limit succeeds, and a change beyond it
 * changes nothing and returns -ERANGE. The rows have the size of the new set, the kind that
 * it gets, and the most elements that a change can add.
 */
static void
a_set_grows_up_to_the_limit_of_its_kind(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t n;
		uint8_t becomes;
		bool small;
		uint32_t more;
	} row[] = {
		{SET_EXACT, 32, SET_EXACT, false, 256 - 32},
		{SET_EXACT, 33, SET_PREFIXES, true, 8000 - 33},
		{SET_EXACT, 1000, SET_PREFIXES, true, 8000 - 1000},
		{SET_RANGES, 10000, SET_RANGES, false, 1000},
	};

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ruleset_set s = numbers_make(row[i].kind, row[i].n);
		uint8_t key[4];

		assert_int_equal(s.kind, row[i].becomes);
		assert_int_equal(s.small, row[i].small);
		assert_int_equal(numbers_add(&s, row[i].n, row[i].more + 1), -ERANGE);
		assert_null(ruleset_find(&s, key_of(row[i].n, key), 0));
		assert_int_equal(numbers_add(&s, row[i].n, row[i].more), 0);
		key_of(row[i].n + row[i].more - 1, key);
		assert_non_null(ruleset_find(&s, key, 0));
		ruleset_members_free(&s);
	}
}

static void
a_large_poptrie_has_no_limit(void **state)
{
	struct ruleset_set s = numbers_make(SET_EXACT, 1001);

	assert_int_equal(s.kind, SET_PREFIXES);
	assert_false(s.small);
	assert_int_equal(numbers_add(&s, 1001, 7000), 0);
	ruleset_members_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poptrie_of_intervals_answers_as_a_list),
		cmocka_unit_test(a_poptrie_of_hosts_answers_as_a_list),
		cmocka_unit_test(an_array_answers_as_a_list),
		cmocka_unit_test(the_whole_address_space_comes_and_goes),
		cmocka_unit_test(a_member_that_expires_is_in_an_array),
		cmocka_unit_test(expired_members_leave_with_the_next_change),
		cmocka_unit_test(a_set_grows_up_to_the_limit_of_its_kind),
		cmocka_unit_test(a_large_poptrie_has_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
