/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table limits in the configuration file: allowed and refused values.
 *
 * link: fpm-dataplane/config/ fpm-dataplane/pci/devargs.c
 * link: fpm-dataplane/base/ tap-bridge/netns.c tests/unit/config_said.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "config_said.h"
#include "log_said.h"

static void
limits_are_what_tables_can_hold(void **state)
{
	assert_int_equal(load(PORT "limits: {hosts: 16, waited-for: 12, routes: 5}\n"), 0);
	assert_int_equal(conf.limits.max[TABLE_hosts], 16);
	assert_int_equal(conf.limits.max[TABLE_waited_for], 12);
	assert_int_equal(conf.limits.max[TABLE_routes], 5);
	assert_int_equal(conf.limits.max[TABLE_adjacencies], 65535);
	assert_int_equal(load(PORT), 0);
	assert_int_equal(conf.limits.max[TABLE_hosts], 131072);
	assert_int_equal(conf.limits.max[TABLE_routes], 0);
	says("limits: {groups: 1048576, hosts: 15}\n",
	     "2: limits.groups: 1048576 is out of range; expected a number from 64 to "
	     "1048575\n"
	     "2: limits.hosts: 15 is out of range; expected a number from 16 to 262127\n");
	says("limits:\n  mtus: 7\n",
	     "3: limits.mtus: unknown key; expected one of routes, groups, adjacencies, "
	     "encaps, hosts, neighbors, vlans, vrfs, asked, waited-for, waiting, clients, "
	     "http-clients\n");
	says("limits:\n", "");
	says("limits: 7\n",
	     "2: limits: is a single value; expected keys such as `routes:`\n");
}

static void
gateways_and_hosts_share_their_numbers(void **state)
{
	assert_int_equal(load(PORT "limits: {adjacencies: 262127, hosts: 16}\n"), 0);
	assert_int_equal(load(PORT "limits: {adjacencies: 16, hosts: 262127}\n"), 0);
	says("limits:\n  adjacencies: 131072\n", "2: limits.hosts: 131072 and adjacencies, "
						 "131072, are more than 262143 together; "
						 "expected at most 131071\n");
}

static void
an_old_name_of_a_key_is_accepted_and_reported(void **state)
{
	const char *told = "main: configuration key renamed key=limits.neighbours "
			   "new=neighbors accepted=";

	assert_int_equal(log_said(told), 0);
	assert_int_equal(load(PORT "limits: {neighbours: 17}\n"), 0);
	assert_int_equal(conf.limits.max[TABLE_neighbors], 17);
	assert_int_equal(log_said(told), 1);
	says("limits:\n  neighbors: 18\n  neighbours: 17\n",
	     "4: limits.neighbours: given twice, first on line 3; expected once\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_what_tables_can_hold),
		cmocka_unit_test(gateways_and_hosts_share_their_numbers),
		cmocka_unit_test(an_old_name_of_a_key_is_accepted_and_reported),
	};

	return cmocka_run_group_tests_name("config_limits", tests, NULL, NULL);
}
