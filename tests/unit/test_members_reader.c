/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that searches a set of a ruleset while its elements change; for the thread
 * sanitizer.
 *
 * link: fpm-dataplane/ruleset/ poptrie/ fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "ruleset/members.h"

enum { CHANGES = 40 };

static struct ruleset_set shared = {.kind = SET_EXACT, .key_len = 4, .addresses = true};
static atomic_uint n_found; /* searches in which the reader found its key */
static atomic_bool over;
static struct {
	void (*fn)(void *ctx, void *old);
	void *old;
} deferred[CHANGES];
static unsigned int n_deferred;

static void
old_keep(void *ctx, void (*fn)(void *ctx, void *old), void *old)
{
	deferred[n_deferred].fn = fn;
	deferred[n_deferred++].old = old;
}

static void *
reader_run(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		uint8_t key[4] = {10, 0, 0, 1};

		if (ruleset_find(&shared, key, 0) != NULL)
			atomic_fetch_add_explicit(&n_found, 1, memory_order_relaxed);
	}
	return NULL;
}

/*
 * A reader never finds a part of a new content of a set. The thread sanitizer reports an
 * access that the store of the pointer does not order.
 */
static void
a_reader_finds_whole_contents_while_a_set_changes(void **state)
{
	const struct ruleset_reclaim later = {.defer = old_keep};
	const uint8_t member[4] = {10, 0, 0, 1};
	struct ruleset_member first = {.key = member};
	pthread_t reader;

	assert_int_equal(ruleset_members_fill(&shared, &first, 1, &later), 0);
	assert_int_equal(shared.kind, SET_EXACT);
	assert_int_equal(pthread_create(&reader, NULL, reader_run, NULL), 0);
	for (unsigned int i = 0; i < CHANGES; i++) {
		const uint8_t key[4] = {10, 1, 0, (uint8_t)i};
		struct ruleset_change change = {.m = {.key = key}};
		unsigned int before = atomic_load_explicit(&n_found, memory_order_relaxed);

		assert_int_equal(ruleset_members_change(&shared, &change, 1, 0, &later), 0);
		while (atomic_load_explicit(&n_found, memory_order_relaxed) < before + 2)
			sched_yield();
	}
	atomic_store_explicit(&over, true, memory_order_relaxed);
	pthread_join(reader, NULL);
	assert_int_equal(n_deferred, CHANGES);
	for (unsigned int i = 0; i < n_deferred; i++)
		deferred[i].fn(NULL, deferred[i].old);
	ruleset_members_free(&shared);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_finds_whole_contents_while_a_set_changes),
	};

	return cmocka_run_group_tests_name("members_reader", tests, NULL, NULL);
}
