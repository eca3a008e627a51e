/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the configuration with which a port is opened.
 *
 * link: fpm-dataplane/manage/port_conf.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "manage/port_conf.h"

static void
values_of_the_file_arrive_unchanged(void **state)
{
	static const struct config conf = {.control_netns = "r1", .poll_always = true};
	static const struct config_port cp = {
		.tap = "wan0",
		.device = "0000:03:00.0",
		.mtu_bytes = 9000,
		.n_rxq = 3,
		.options = {.vlan_off = true, .cksum_off = true},
	};
	struct port_conf pc = port_conf_from_config(&conf, &cp, 4);

	assert_string_equal(pc.tap, "wan0");
	assert_string_equal(pc.netns, "r1");
	assert_string_equal(pc.device, "0000:03:00.0");
	assert_int_equal(pc.mtu_bytes, 9000);
	assert_int_equal(pc.n_rxq, 3);
	assert_int_equal(pc.n_txq, 4);
	assert_false(pc.interrupts);
	assert_memory_equal(&pc.options, &cp.options, sizeof(pc.options));
}

static void
no_tap_is_inherited_and_no_place_taken(void **state)
{
	static const struct config conf;
	static const struct config_port cp = {.tap = "wan0"};
	struct port_conf pc = port_conf_from_config(&conf, &cp, 1);

	assert_int_equal(pc.tap_fd, -1);
	assert_int_equal(pc.place, 0);
	assert_false(pc.shared);
	assert_true(pc.interrupts);
}

static void
cores_of_a_port_are_its_queues_unless_queues_are_given(void **state)
{
	static const struct config conf;
	struct config_port cp = {.core = {1, 2}, .n_core = 2};

	assert_int_equal(port_conf_from_config(&conf, &cp, 4).n_rxq, 2);
	cp.n_core = 0;
	assert_int_equal(port_conf_from_config(&conf, &cp, 4).n_rxq, 0);
}

/* An option has no effect if the device lacks the feature. */
static void
other_options_count_where_the_device_has_them(void **state)
{
	static const struct port_options on = {0}, no_vlan = {.vlan_off = true},
					 no_cksum = {.cksum_off = true};
	struct port port = {.vlan_able = true};

	assert_false(port_options_differ(&port, &on, &on));
	assert_true(port_options_differ(&port, &on, &no_vlan));
	assert_false(port_options_differ(&port, &on, &no_cksum));
	port = (struct port){.cksum_able = true};
	assert_false(port_options_differ(&port, &on, &no_vlan));
	assert_true(port_options_differ(&port, &no_cksum, &on));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_the_file_arrive_unchanged),
		cmocka_unit_test(no_tap_is_inherited_and_no_place_taken),
		cmocka_unit_test(cores_of_a_port_are_its_queues_unless_queues_are_given),
		cmocka_unit_test(other_options_count_where_the_device_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
