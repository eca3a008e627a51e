/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The egress interfaces of groups: each interface by which a next hop leaves, dead or alive.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#include "fib/urpf.h"

/*
 * Return the egress interfaces of a source as text: "1 2 other vrf1"; valid until the next
 * call.
 */
static const char *
egress_of(const struct rig *g, const char *src)
{
	static char text[256];
	uint64_t word = fib_group_egress(g->fib, rig_group_of(g, src));
	const struct fib_egress *block =
		(word & FIB_EGRESS_BLOCK) != 0 ? fib_egress_block(word) : NULL;
	uint32_t n = block != NULL ? block->n : FIB_EGRESS_WORD;
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		unsigned int ifidx =
			block != NULL ? block->ifidx[i] : (word >> i * 16 & 0xffff);
		const char *space = at == 0 ? "" : " ";

		if (ifidx == FIB_EGRESS_OTHER)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%sother",
					       space);
		else if ((ifidx & FIB_EGRESS_VRF) != 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%svrf%u",
					       space, ifidx & ~FIB_EGRESS_VRF);
		else if (ifidx != 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", space,
					       ifidx);
	}
	return text;
}

#define assert_egress(g, src, want) assert_string_equal(egress_of(g, src), want)

static void
each_next_hop_is_an_egress_dead_or_alive(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_hop(g, 9, "192.0.2.2", 11);
	rig_group(g, 20, 3, 7, 1, 8, 1, 9, 1);
	rig_route(g, "10.1.0.0/16", 7);
	rig_route(g, "10.2.0.0/16", 20);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "1");
	assert_egress(g, "10.2.0.1", "1 2");
	assert_egress(g, "10.3.0.1", "");

	rig_alive(g, "192.0.2.129", 12, false);
	rig_link(g, 11, 1, false);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "1");
	assert_egress(g, "10.2.0.1", "1 2");

	rig_link(g, 11, 1, true);
	rig_group(g, 20, 1, 8, 1);
	rig_go(g);
	assert_egress(g, "10.2.0.1", "2");
	rig_hop(g, 8, "192.0.2.1", 11);
	rig_go(g);
	assert_egress(g, "10.2.0.1", "1");
	rig_free(g);
}

static void
a_route_that_does_not_forward_has_no_egress(void **state)
{
	static const uint8_t types[] = {RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT};
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	for (unsigned int i = 0; i < 3; i++) {
		rig_route_type(g, "10.1.0.0/16", types[i]);
		rig_go(g);
		assert_egress(g, "10.1.0.1", "");
	}
	assert_egress(g, "192.0.2.126", ""); /* an address of the router */
	assert_egress(g, "192.0.2.127", ""); /* a broadcast address */
	assert_egress(g, "192.0.2.5", "1");  /* a host on the link */
	rig_free(g);
}

static void
an_interface_that_is_no_port_is_another_egress(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_link(g, 30, 0, true);
	rig_route_inline(g, "10.1.0.0/16", "192.0.2.1", 30);
	rig_route(g, "10.2.0.0/16", 99); /* an id that zebra has not announced */
	rig_go(g);
	assert_egress(g, "10.1.0.1", "other");
	assert_egress(g, "10.2.0.1", "other");
	rig_link(g, 30, 5, true); /* it becomes a VLAN */
	rig_go(g);
	assert_egress(g, "10.1.0.1", "5");
	rig_link_gone(g, 30);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "other");
	rig_link_of_vrf(g, 30, 1, true);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "vrf1");
	rig_free(g);
}

/*
 * More than four interfaces are in a block. It changes with the group, and is freed with
 * it.
 */
static void
many_interfaces_are_a_block(void **state)
{
	struct rig *g = rig_two_ports();
	char gw[32];

	rig_session(g, 100);
	for (uint32_t i = 0; i < 7; i++) {
		rig_link(g, 40 + i, (uint16_t)(10 + i), true);
		snprintf(gw, sizeof(gw), "198.51.100.%u", i + 1);
		rig_hop(g, 10 + i, gw, 40 + i);
	}
	rig_group(g, 20, 4, 10, 1, 11, 1, 12, 1, 13, 1);
	rig_route(g, "10.1.0.0/16", 20);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "10 11 12 13");
	rig_group(g, 20, 7, 10, 1, 11, 1, 12, 1, 13, 1, 14, 1, 15, 1, 16, 1);
	rig_go(g);
	assert_egress(g, "10.1.0.1", "10 11 12 13 14 15 16");
	rig_group(g, 20, 6, 11, 1, 12, 1, 13, 1, 14, 1, 15, 1, 16, 1);
	rig_go(g);
	rig_settle(g);
	assert_egress(g, "10.1.0.1", "11 12 13 14 15 16");
	rig_group(g, 20, 2, 15, 1, 16, 1);
	rig_go(g);
	rig_settle(g);
	assert_egress(g, "10.1.0.1", "15 16");
	rig_group(g, 20, 5, 11, 1, 12, 1, 13, 1, 14, 1, 15, 1);
	rig_go(g);
	rig_del(g, "10.1.0.0/16");
	rig_go(g);
	rig_settle(g);
	assert_egress(g, "10.1.0.1", "");
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_next_hop_is_an_egress_dead_or_alive),
		cmocka_unit_test(a_route_that_does_not_forward_has_no_egress),
		cmocka_unit_test(an_interface_that_is_no_port_is_another_egress),
		cmocka_unit_test(many_interfaces_are_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
