/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl has a line of advice for each reason of a drop.
 *
 * link: fpm-dataplane/ctl/advice.c fpm-dataplane/base/counters.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/counters.h"
#include "ctl/print_rows.h"

static void
every_drop_has_advice(void **state)
{
	unsigned int missing = 0;

	for (unsigned int r = 0; r < N_DROP; r++)
		if (advice(reason_info[r].name) == NULL) {
			print_error("no advice for %s\n", reason_info[r].name);
			missing++;
		}
	assert_int_equal(missing, 0);
}

static void
advice_fits_a_line(void **state)
{
	for (unsigned int r = 0; r < N_REASON; r++) {
		const char *text = advice(reason_info[r].name);

		if (text != NULL && strlen(text) > 80)
			fail_msg("%s: %zu columns", reason_info[r].name, strlen(text));
	}
}

static void
an_unknown_reason_has_no_advice(void **state)
{
	assert_null(advice(""));
	assert_null(advice("nonsense"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_drop_has_advice),
		cmocka_unit_test(advice_fits_a_line),
		cmocka_unit_test(an_unknown_reason_has_no_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
