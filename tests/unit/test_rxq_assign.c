/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assignment of queues to forwarders, on machines with one node and with two.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/start/cpus.c fpm-dataplane/manage/rxq_assign.c
 * link: fpm-dataplane/port/rxq.c fpm-dataplane/port/rxq_set.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manage/rxq_assign.h"
#include "start/cpus.h"

static void
every_forwarder_gets_as_many_queues(void **state)
{
	struct rxq_plan plan = {.n_fwd = 3, .n_port = 4, .fwd_node = {0, 0, -1}};

	for (unsigned int q = 0; q < 12; q++)
		rxq_plan_queue(&plan, q / 3);
	for (unsigned int f = 0; f < 3; f++)
		assert_int_equal(plan.n_queue[f], 4);
}

static void
a_queue_goes_to_the_node_where_its_packets_leave(void **state)
{
	/* Two ports on two nodes: packets that come in by one port leave by the other. */
	struct rxq_plan plan = {
		.n_fwd = 2, .n_port = 2, .fwd_node = {0, 1}, .port_node = {0, 1}};

	assert_int_equal(rxq_plan_queue(&plan, 0), 1);
	assert_int_equal(rxq_plan_queue(&plan, 1), 0);
}

static void
with_all_ports_on_one_node_its_cores_come_first(void **state)
{
	struct rxq_plan plan = {
		.n_fwd = 4, .n_port = 2, .fwd_node = {0, 0, 1, 1}, .port_node = {1, 1}};

	assert_int_equal(rxq_plan_queue(&plan, 0), 2);
	assert_int_equal(rxq_plan_queue(&plan, 0), 3);
	/* A far core is better than two queues on one core. */
	assert_int_equal(rxq_plan_queue(&plan, 1), 0);
}

static void
queues_that_are_served_already_count(void **state)
{
	struct rxq_plan plan = {
		.n_fwd = 2, .n_port = 1, .port_node = {-1}, .n_queue = {2, 0}};

	assert_int_equal(rxq_plan_queue(&plan, 0), 1);
	assert_int_equal(rxq_plan_queue(&plan, 0), 1);
	assert_int_equal(rxq_plan_queue(&plan, 0), 0);
}

static void
the_node_of_a_cpu_is_the_kernels(void **state)
{
	/* On any machine: the folder of a CPU names its node, or no folder has one. */
	for (unsigned int cpu = 0; cpu < (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
	     cpu++) {
		char pattern[64];
		glob_t found = {0};
		int node = 0;

		snprintf(pattern, sizeof(pattern), "/sys/devices/system/cpu/cpu%u/node*",
			 cpu);
		if (glob(pattern, 0, NULL, &found) == 0)
			node = atoi(strstr(found.gl_pathv[0], "/node") + 5);
		globfree(&found);
		assert_int_equal(cpus_node(cpu), node);
	}
	assert_int_equal(cpus_node(100000), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_forwarder_gets_as_many_queues),
		cmocka_unit_test(a_queue_goes_to_the_node_where_its_packets_leave),
		cmocka_unit_test(with_all_ports_on_one_node_its_cores_come_first),
		cmocka_unit_test(queues_that_are_served_already_count),
		cmocka_unit_test(the_node_of_a_cpu_is_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
