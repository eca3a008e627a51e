/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check `srv6` of fpmctl doctor, on synthetic machines: a folder stands for /.
 *
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/doctor/srv6.c
 * link: fpm-dataplane/ctl/doctor/exam.c fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/run.c fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/conn.c fpm-dataplane/ctl/cli.c
 * link: fpm-dataplane/base/edit_distance.c fpm-dataplane/base/prefix.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"
#include "root_fake.h"

#define STRICT_MODE "/proc/sys/net/vrf/strict_mode"

static struct exam e;

static int
setup(void **state)
{
	if (root_make() < 0)
		return -1;
	e = (struct exam){.root = root,
			  .in = "",
			  .check = "srv6",
			  .about = "y",
			  .named = true,
			  .socket = "/nonexistent"};
	e.rows = json_array();
	e.version = json_object();
	e.fpm = json_pack("{s:i, s:i, s:i, s:s}", "headends", 2, "sids", 1, "vrfs", 1,
			  "srv6_source", "2001:db8::1");
	root_put(STRICT_MODE, "1\n");
	return 0;
}

static int
teardown(void **state)
{
	json_decref(e.rows);
	json_decref(e.version);
	json_decref(e.fpm);
	return root_remove();
}

/* Run the check. Return its findings: "warn SUBJECT: TEXT;" each. */
static const char *
found(void)
{
	static char text[512];
	const json_t *row;
	size_t i, n = 0;

	json_array_clear(e.rows);
	check_srv6(&e);
	text[0] = '\0';
	json_array_foreach (e.rows, i, row) {
		bool wrong = strcmp(row_str(row, "status"), "warn") == 0;

		assert_int_equal(row_has(row, "cost"), wrong);
		assert_int_equal(json_array_size(json_object_get(row, "fix")) > 0, wrong);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s: %s;",
				      row_str(row, "status"), row_str(row, "subject"),
				      row_str(row, "text"));
	}
	return text;
}

static void
a_router_with_all_it_needs(void **state)
{
	assert_string_equal(found(), "ok : forwarders serve 2 headends and 1 end point;");
	json_object_set_new(e.fpm, "srv6_source", json_string("::"));
	assert_string_equal(
		found(),
		"ok source: address of the egress interface; ip sr tunsrc sets one for all;"
		"ok : forwarders serve 2 headends and 1 end point;");
}

static void
a_router_without_segments(void **state)
{
	json_object_set_new(e.fpm, "headends", json_integer(0));
	json_object_set_new(e.fpm, "sids", json_integer(0));
	assert_string_equal(found(), "n/a : no segments in use;");
	e.named = false;
	assert_string_equal(found(), "");
}

static void
the_source_is_not_known(void **state)
{
	json_object_set_new(e.fpm, "srv6_source", json_null());
	assert_string_equal(found(),
			    "warn source: the kernel did not report ip sr tunsrc;");
	json_object_set_new(e.fpm, "headends", json_integer(0));
	assert_string_equal(found(), "ok : forwarders serve 0 headends and 1 end point;");
}

static void
the_kernel_refuses_end_points_of_vrfs(void **state)
{
	const json_t *row;

	root_put(STRICT_MODE, "0\n");
	assert_string_equal(found(), "warn vrf: net.vrf.strict_mode is 0;");
	row = json_array_get(e.rows, 0);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(row, "fix"), 0)),
		"sysctl -w net.vrf.strict_mode=1");
	json_object_set_new(e.fpm, "vrfs", json_integer(0));
	assert_string_equal(found(), "ok : forwarders serve 2 headends and 1 end point;");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_router_with_all_it_needs, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_router_without_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(the_source_is_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(the_kernel_refuses_end_points_of_vrfs,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
