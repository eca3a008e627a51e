/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End points of SRv6: the entries that forwarders see, when VRFs come and go, over a restart,
 * and what `show` tells.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c tests/fuzz/invariants.c
 */
#include "ckpt_rig.h"

#include <unistd.h>

#include "base/inet.h"
#include "fib/sid.h"
#include "rib/kernel.h"
#include "../fuzz/invariants.h"

/* A route to an end point, as zebra sends it: the interface is a dummy or the VRF's. */
static void
sid_route(struct rig *g, uint32_t id, const char *prefix, const struct srv6_sid *sid)
{
	struct fpm_hop *hop;

	rig_hop(g, id, NULL, 77);
	hop = g->batch->ev[g->batch->n - 1].hops;
	hop->encap = HOP_SEG6;
	if (sid != NULL)
		hop->n_labels = srv6_sid_pack(sid, hop->label);
	else
		hop->refusal = SRV6_MANY_SEGMENTS;
	rig_route(g, prefix, id);
}

static fib_path
path_of(const struct rig *g, const char *prefix)
{
	struct prefix p = rig_prefix(prefix);

	return fib_resolve(g->fib, 0, 6, &p.addr, 0);
}

static void
teach(struct rig *g)
{
	sid_route(g, 1, "fc00::1/128",
		  &(struct srv6_sid){.action = SRV6_END_DT46, .table = 100});
	sid_route(g, 2, "fc00::2/128", &(struct srv6_sid){.action = SRV6_END});
	sid_route(g, 3, "fc00::3/128", NULL);
	rig_settle(g);
}

static const char *
text_of(struct rig *g, const char *prefix)
{
	struct msg_query q = {.kind = QUERY_ROUTES, .has_prefix = true, .max = 10};
	static char text[100];
	json_t *rows, *hop;

	q.prefix = rig_prefix(prefix);
	rows = rig_ask(g, &q, NULL);
	hop = json_array_get(json_object_get(json_array_get(rows, 0), "nexthops"), 0);
	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(hop, "srv6")));
	json_decref(rows);
	return text;
}

/* Check the entries of teach(). `vrf`: of the table of fc00::1. */
static void
entries_are_right(struct rig *g, uint16_t vrf)
{
	const struct fib_sid *e;
	fib_path path = path_of(g, "fc00::1/128");

	assert_int_equal(path_kind(path), PATH_LOCAL);
	assert_int_not_equal(path_index(path), 0);
	e = &g->fib->sid[path_index(path)];
	assert_int_equal(e->action, SRV6_END_DT46);
	assert_int_equal(e->vrf, vrf);
	path = path_of(g, "fc00::2/128");
	assert_int_equal(path_kind(path), PATH_LOCAL);
	e = &g->fib->sid[path_index(path)];
	assert_int_equal(e->action, SRV6_END);
	assert_true(path_is_unsupported(path_of(g, "fc00::3/128")));
	rib_must_be_sound(g);
}

static void
end_points_follow_the_vrf_of_their_table(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_session(g, 100);
	teach(g);
	entries_are_right(g, 1);
	rig_vrf(g, 1, 100, NULL);
	rig_settle(g);
	entries_are_right(g, FIB_VRF_NONE);
	rig_vrf(g, 7, 100, "red");
	rig_settle(g);
	entries_are_right(g, 7);
	assert_string_equal(text_of(g, "fc00::1/128"), "End.DT46 table 100");
	assert_string_equal(text_of(g, "fc00::2/128"), "End");
	assert_string_equal(text_of(g, "fc00::3/128"),
			    "unsupported: more than three segments");
	rig_free(g);
}

/* The kernel writes the outer header, whatever the state of the gateway is. */
static void
headends_are_for_the_kernel(void **state)
{
	static const uint8_t segment[16] = {0xfc, [15] = 1};
	struct rig *g = rig_two_ports();
	struct fpm_hop *hop;

	rig_session(g, 100);
	rig_hop(g, 1, "2001:db8:1::2", 11);
	hop = g->batch->ev[g->batch->n - 1].hops;
	hop->encap = HOP_SEG6;
	hop->n_labels = srv6_headend_pack(SRV6_ENCAP, segment, 1, hop->label);
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "encap"); /* routes.through-kernel: false */
	assert_string_equal(text_of(g, "198.51.100.0/24"), "H.Encaps fc00::1");
	links_set_through_kernel(g->rib, true);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "kernel@0");
	rig_link(g, 11, 1, false);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "kernel@0");
	rib_must_be_sound(g);
	links_set_through_kernel(g->rib, false);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "encap");
	rig_free(g);
}

static void
equal_end_points_share_an_entry(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_session(g, 100);
	teach(g);
	sid_route(g, 4, "fc00::4/128",
		  &(struct srv6_sid){.action = SRV6_END_DT46, .table = 100});
	rig_settle(g);
	assert_int_equal(path_of(g, "fc00::4/128"), path_of(g, "fc00::1/128"));
	assert_int_equal(g->rib->sids.n, 2);
	rig_free(g);
}

static void
end_points_are_in_force_after_a_restart(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);

	rig_session(g, 100);
	teach(g);
	entries_are_right(g, FIB_VRF_NONE);
	g = rig_begun(ckpt_of_killed(g), NETNS);
	rig_settle(g);
	entries_are_right(g, FIB_VRF_NONE);
	rig_vrf(g, RIG_RED, "red");
	rig_settle(g);
	entries_are_right(g, 1);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_points_follow_the_vrf_of_their_table),
		cmocka_unit_test(headends_are_for_the_kernel),
		cmocka_unit_test(equal_end_points_share_an_entry),
		cmocka_unit_test(end_points_are_in_force_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
