/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transactions of nf_tables after which the filter thread reads the tables again.
 *
 * link: fpm-dataplane/filter/attr.c fpm-dataplane/filter/build.c
 * link: fpm-dataplane/filter/change.c fpm-dataplane/filter/dump.c
 * link: fpm-dataplane/filter/elements.c fpm-dataplane/filter/events.c
 * link: fpm-dataplane/filter/expr.c fpm-dataplane/filter/kept.c
 * link: fpm-dataplane/filter/merge.c fpm-dataplane/filter/messages.c
 * link: fpm-dataplane/filter/packet_text.c fpm-dataplane/filter/packets.c
 * link: fpm-dataplane/filter/part.c fpm-dataplane/filter/rows.c
 * link: fpm-dataplane/netlink/exchange.c fpm-dataplane/ruleset/ fpm-dataplane/base/
 * link: tap-bridge/netns.c poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "filter/filter.c"

static struct fib fib;
static struct filter filter = {.conf.fib = &fib, .state = FILTER_ABSENT};

/*
 * When the last table is deleted, the module nf_tables can be unloaded. When it is loaded
 * again, the generations of the kernel begin again.
 */
static void
a_table_is_read_after_the_module_was_loaded_again(void **state)
{
	struct filter_transaction t = {.generation = 2, .ours = true};

	filter.seen = 1000;
	filter.again = true; /* the last read found no table */
	assert_false(transaction_take(&filter, &t));
	t.ours = false;
	assert_true(transaction_take(&filter, &t));
}

static void
a_change_that_was_read_needs_no_read(void **state)
{
	struct filter_transaction t = {.generation = 1000, .ours = true};

	filter.seen = 1000;
	filter.again = false;
	assert_true(transaction_take(&filter, &t));
	t.generation = 1002;
	assert_false(transaction_take(&filter, &t));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_read_after_the_module_was_loaded_again),
		cmocka_unit_test(a_change_that_was_read_needs_no_read),
	};

	return cmocka_run_group_tests_name("filter_thread", tests, NULL, NULL);
}
