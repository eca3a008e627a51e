/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPLS as the kernel reports it: which interfaces take labels, whether the kernel has MPLS,
 * and the TTL of labels, which follows the kernel's sysctls.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "log_said.h"
#include "neigh_bed.h"
#include "root_fake.h"

#define LO        1
#define VLAN      20
#define MACVLAN   21
#define PROPAGATE "/mpls/ip_ttl_propagate"
#define TTL       "/mpls/default_ttl"

static void
mpls(uint32_t ifindex, bool input, bool gone)
{
	struct kmon_mpls km = {.ifindex = ifindex, .input = input};

	monitor.ops.on_mpls(monitor.ctx, &km, gone);
}

static bool
takes_labels(uint16_t ifidx)
{
	return fib_iface(fib, ifidx)->mpls;
}

static bool
known(void)
{
	return atomic_load(&fib->mpls_known);
}

static void
a_kernel_without_mpls_reports_nothing(void **state)
{
	assert_false(known());
	assert_false(takes_labels(PORT));
	assert_int_equal(atomic_load(&fib->label_ttl), 0);
	assert_int_equal(log_said("mpls"), 0);
}

static void
ports_vlans_and_macvlans_take_labels_where_input_is_on(void **state)
{
	struct kmon_link macvlan = link_of(MACVLAN, "m0");
	uint16_t vlan_ifidx, macvlan_ifidx;

	macvlan.on = TAP;
	macvlan.macvlan = KMON_MACVLAN_BY_MAC;
	add(vlan_of(VLAN, TAP, VLAN_C_TYPE, 100));
	add(macvlan);
	vlan_ifidx = iface_by_ifindex(neigh.ctx, VLAN);
	macvlan_ifidx = iface_by_ifindex(neigh.ctx, MACVLAN);
	assert_true(vlan_ifidx != 0 && macvlan_ifidx != 0);

	mpls(TAP, false, false);
	mpls(VLAN, true, false);
	assert_true(known());
	assert_false(takes_labels(PORT));
	assert_true(takes_labels(vlan_ifidx));
	assert_int_equal(log_said("neigh: mpls input on dev=v20"), 1);
	mpls(MACVLAN, true, false);
	mpls(VLAN, false, false);
	assert_true(takes_labels(macvlan_ifidx));
	assert_false(takes_labels(vlan_ifidx));
	mpls(TAP, true, false);
	assert_true(takes_labels(PORT));
	/*
	 * When a TAP is renamed, the kernel deletes the MPLS setting of the TAP and reports
	 * it again.
	 */
	mpls(TAP, true, true);
	assert_false(takes_labels(PORT));
	mpls(TAP, true, false);
	assert_true(takes_labels(PORT));
	/* Other changes of the link leave the setting as it is. */
	tell(&(struct kmon_link){.ifindex = TAP, .name = "wan1", .mtu_bytes = 1400}, false);
	assert_true(takes_labels(PORT));
	round_over();
}

static void
mpls_is_known_as_long_as_some_link_has_it(void **state)
{
	add(link_of(LO, "lo"));
	assert_false(known());
	mpls(LO, false, false);
	assert_true(known());
	mpls(LO, true, false);
	mpls(OTHER, false, false);
	mpls(LO, true, true);
	assert_true(known());
	mpls(OTHER, false, true);
	assert_false(known());
	/* An event about a link that is not known. */
	mpls(99, true, false);
	mpls(99, true, true);
	assert_false(known());
	round_over();
}

static uint8_t
ttl_read(void)
{
	mpls_open(neigh.ctx);
	mpls_read_ttl(neigh.ctx);
	return atomic_load(&fib->label_ttl);
}

static void
the_ttl_of_labels_is_that_of_the_sysctls(void **state)
{
	struct neigh *n = neigh.ctx;
	char folder[256];

	assert_int_equal(root_make(), 0);
	snprintf(folder, sizeof(folder), "%s/mpls", root);
	n->conf.mpls_sysctls = folder;
	root_put(PROPAGATE, "0\n");
	root_put(TTL, "64\n");
	/* Without MPLS the files are not read. */
	assert_int_equal(ttl_read(), 0);
	mpls(TAP, true, false);
	assert_int_equal(atomic_load(&fib->label_ttl), 64);
	root_put(TTL, "255\n");
	assert_int_equal(ttl_read(), 255);
	root_put(PROPAGATE, "1\n");
	assert_int_equal(ttl_read(), 0);
	root_put(PROPAGATE, "0\n");
	root_put(TTL, "1\n");
	assert_int_equal(ttl_read(), 1);
	root_put(TTL, "nonsense");
	assert_int_equal(ttl_read(), 255);
	/* The module is unloaded. */
	mpls(TAP, true, true);
	assert_int_equal(atomic_load(&fib->label_ttl), 0);
	assert_int_equal(n->mpls_file[0], -1);
	assert_int_equal(root_remove(), 0);
	/* A kernel before 4.10 has no such files. */
	mpls(TAP, true, false);
	assert_int_equal(ttl_read(), 0);
	round_over();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_kernel_without_mpls_reports_nothing),
		bed_test(ports_vlans_and_macvlans_take_labels_where_input_is_on),
		bed_test(mpls_is_known_as_long_as_some_link_has_it),
		bed_test(the_ttl_of_labels_is_that_of_the_sysctls),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("neigh: MPLS", tests, NULL, NULL);
}
