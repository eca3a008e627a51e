/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check `srv6` of fpmctl doctor, on synthetic machines: a folder stands for /, and
 * conn_fetch() of this file takes the place of the daemon.
 *
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/doctor/srv6.c fpm-dataplane/ctl/doctor/tunnels.c
 * link: fpm-dataplane/ctl/doctor/exam.c fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/run.c fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/cli.c
 * link: fpm-dataplane/base/edit_distance.c fpm-dataplane/base/prefix.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cli.h"
#include "ctl/conn.h"
#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"
#include "root_fake.h"

#define STRICT_MODE "/proc/sys/net/vrf/strict_mode"

static struct exam e;
static const char *encaps; /* rows of `show encaps` as text; NULL: the daemon is silent */

/* Take the place of the daemon. Each segment is reached by lan0 and wan0. */
int
conn_fetch(const char *path, json_t *request, json_t *rows)
{
	const char *show = row_str(request, "show");
	json_t *answer = NULL;

	if (encaps != NULL && strcmp(show, "encaps") == 0)
		answer = json_loads(encaps, 0, NULL);
	if (encaps != NULL && strcmp(show, "routes") == 0)
		answer = json_pack("[{s:[{s:s},{s:s},{s:s}]}]", "nexthops", "dev", "lan0",
				   "dev", "wan0", "dev", "unknown");
	json_array_extend(rows, answer);
	json_decref(answer);
	json_decref(request);
	return encaps != NULL ? CTL_OK : CTL_NO_DAEMON;
}

static void
mtu_set(int wan0_mtu)
{
	json_decref(e.ports);
	e.ports = json_pack("[{s:s, s:i}, {s:s, s:i}]", "name", "lan0", "mtu", 1500, "name",
			    "wan0", "mtu", wan0_mtu);
}

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
	encaps = NULL;
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
	json_decref(e.ports);
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
a_link_that_is_too_narrow_for_a_headend(void **state)
{
	static const struct {
		const char *headend;
		int overhead;
	} of[] = {
		{"H.Encaps fc00:1::1", 40 + 8 + 16},
		{"H.Encaps fc00:1::1 fc00:2::1 source fc00::9", 40 + 8 + 32},
		{"H.Encaps.Red fc00:1::1", 40},
		{"H.Encaps.Red fc00:1::1 fc00:2::1 fc00:3::1", 40 + 8 + 32},
	};
	char rows[256], want[128];

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(rows, sizeof(rows),
			 "[{\"labels\": [17], \"srv6\": null},"
			 "{\"labels\": [], \"srv6\": \"%s\"},"
			 "{\"labels\": [], \"srv6\": \"%s\"}]",
			 of[i].headend, of[i].headend);
		encaps = rows;
		mtu_set(1280 + of[i].overhead);
		assert_string_equal(found(),
				    "ok : forwarders serve 2 headends and 1 end point;");
		mtu_set(1280 + of[i].overhead - 1);
		snprintf(want, sizeof(want),
			 "warn wan0: MTU %d, but the path to segment fc00:1::1 needs %d;",
			 1280 + of[i].overhead - 1, 1280 + of[i].overhead);
		assert_string_equal(found(), want);
	}
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
		cmocka_unit_test_setup_teardown(a_link_that_is_too_narrow_for_a_headend,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_kernel_refuses_end_points_of_vrfs,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
