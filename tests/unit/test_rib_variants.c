/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zebra moves routes from one id or content to another. Members that are in both keep their
 * flows. For that, several slots may have the same content and different buckets
 * (variants).
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#include "rib/group.h"

#define N_FLOWS 4096u
#define N_HOPS  8u
#define ALL     0xffu

/* Paths without MTU class, by the top bits of the flow hash. */
struct flows {
	fib_path path[N_FLOWS];
};

static void
flows_of(const struct rig *g, const char *dst, struct flows *f)
{
	uint32_t group = rig_group_of(g, dst);

	for (uint32_t i = 0; i < N_FLOWS; i++) {
		fib_path path = fib_group_path(g->fib, group, i << 20);

		f->path[i] = PATH(path_kind(path), path_index(path));
	}
}

/* The i-th of eight gateways, four on each port. */
static const char *
gateway(unsigned int i)
{
	static char text[16];

	snprintf(text, sizeof(text), "192.0.2.%u", (i & 1 ? 129 : 1) + i);
	return text;
}

static uint32_t
gateway_link(unsigned int i)
{
	return i & 1 ? 12 : 11;
}

/* Announce group `id` of the gateways in the set `members`. */
static void
group_of(struct rig *g, uint32_t id, unsigned int members)
{
	struct fpm_event *ev = rig_event(g, FPM_NEXTHOP);

	ev->nhid = id;
	ev->is_group = true;
	ev->hops = calloc(N_HOPS, sizeof(*ev->hops));
	for (unsigned int i = 0; i < N_HOPS; i++)
		if (members >> i & 1)
			ev->hops[ev->n_hops++] = (struct fpm_hop){.id = 1 + i, .weight = 1};
}

/* Announce a route with inline next hops: the gateways in the set `members`. */
static void
route_by(struct rig *g, const char *prefix, unsigned int members)
{
	struct fpm_event *ev;
	struct fpm_hop hop[N_HOPS];
	uint16_t n = 0;

	for (unsigned int i = 0; i < N_HOPS; i++) {
		if ((members >> i & 1) == 0)
			continue;
		rig_route_inline(g, prefix, gateway(i), gateway_link(i));
		ev = &g->batch->ev[--g->batch->n];
		hop[n++] = ev->hops[0];
		fpm_event_clear(ev);
	}
	rig_route_inline(g, prefix, gateway(0), 11);
	ev = &g->batch->ev[g->batch->n - 1];
	fpm_event_clear(ev);
	ev->n_hops = n;
	ev->hops = calloc(n, sizeof(*ev->hops));
	memcpy(ev->hops, hop, n * sizeof(*hop));
}

static struct rig *
eight_gateways(void)
{
	struct rig *g = rig_two_ports();

	/* Routes by each gateway alone keep the adjacencies. */
	for (unsigned int i = 0; i < N_HOPS; i++) {
		rig_hop(g, 1 + i, gateway(i), gateway_link(i));
		rig_route_inline(g, rig_net(0xff00 + i), gateway(i), gateway_link(i));
	}
	rig_go(g);
	return g;
}

static fib_path
path_of(struct rig *g, unsigned int i)
{
	return PATH(PATH_ADJ, rig_adj(g, gateway(i), gateway_link(i)));
}

/* Assert that all flows of the gateways in the set `left` moved, and no others. */
static void
assert_left(struct rig *g, const struct flows *was, const struct flows *is,
	    unsigned int left)
{
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		bool leaves = false;

		for (unsigned int k = 0; k < N_HOPS; k++)
			leaves |= (left >> k & 1) && was->path[i] == path_of(g, k);
		assert_int_equal(was->path[i] != is->path[i], leaves);
	}
}

static void
assert_same(const struct flows *a, const struct flows *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

static uint32_t
slots_of(const struct rig *g, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t at = nh_find(g->rib, id)->slot; at != 0;
	     at = slot_at(&g->rib->slots, at)->sibling)
		n++;
	return n;
}

static void
a_new_id_keeps_the_flows_of_members_that_stay(void **state)
{
	struct flows before, during, after;
	struct rig *g = eight_gateways();

	group_of(g, 20, ALL);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	flows_of(g, "198.51.100.1", &before);
	group_of(g, 21, ALL & ~4u);
	rig_route(g, "198.51.100.0/24", 21);
	rig_go(g);
	flows_of(g, "198.51.100.1", &during);
	assert_left(g, &before, &during, 4);
	rig_settle(g); /* the first slot is gone */
	group_of(g, 22, ALL);
	rig_route(g, "198.51.100.0/24", 22);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &after);
	assert_same(&after, &before);
	rig_free(g);
}

static void
so_do_routes_without_ids(void **state)
{
	struct flows before, during, after;
	struct rig *g = eight_gateways();

	route_by(g, "198.51.100.0/24", ALL);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &before);
	route_by(g, "198.51.100.0/24", ALL & ~1u);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &during);
	assert_left(g, &before, &during, 1);
	route_by(g, "198.51.100.0/24", ALL);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &after);
	assert_same(&after, &before);
	rig_free(g);
}

static void
several_changes_in_one_commit_are_one(void **state)
{
	struct flows before, after;
	struct rig *g = eight_gateways();

	group_of(g, 20, ALL);
	group_of(g, 21, 3);
	group_of(g, 22, ALL & ~8u);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	flows_of(g, "198.51.100.1", &before);
	rig_route(g, "198.51.100.0/24", 21);
	rig_route(g, "198.51.100.0/24", 22);
	/* The old id changes, too; the new slot has the buckets that were published. */
	group_of(g, 20, 0xf0);
	rig_go(g);
	flows_of(g, "198.51.100.1", &after);
	assert_left(g, &before, &after, 8);
	rig_free(g);
}

static void
a_deleted_and_added_route_keeps_its_flows(void **state)
{
	struct flows before, after;
	struct rig *g = eight_gateways();

	group_of(g, 20, ALL);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	flows_of(g, "198.51.100.1", &before);
	group_of(g, 21, ALL & ~16u);
	rig_del(g, "198.51.100.0/24"); /* as FRR up to 9.0 */
	rig_route(g, "198.51.100.0/24", 21);
	rig_go(g);
	flows_of(g, "198.51.100.1", &after);
	assert_left(g, &before, &after, 16);
	rig_free(g);
}

static void
another_mtu_moves_no_flow(void **state)
{
	struct flows before, after;
	struct rig *g = eight_gateways();

	group_of(g, 20, ALL);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	group_of(g, 21, ALL & ~16u);
	rig_route(g, "198.51.100.0/24", 21);
	rig_go(g);
	flows_of(g, "198.51.100.1", &before);
	rig_route(g, "198.51.100.0/24", 21);
	g->batch->ev[g->batch->n - 1].mtu_bytes = 1400;
	rig_go(g);
	flows_of(g, "198.51.100.1", &after);
	assert_same(&after, &before);
	rig_free(g);
}

/* Give a route group 100 + i, which has all gateways but the i-th. */
static void
route_with_history(struct rig *g, const char *prefix, unsigned int i)
{
	group_of(g, 100 + i, ALL & ~(1u << i));
	rig_route(g, prefix, 100 + i);
	rig_go(g);
}

static void
routes_with_different_flows_have_variants(void **state)
{
	struct flows before[2], after[2];
	struct rig *g = eight_gateways();

	route_with_history(g, "198.51.100.0/24", 0);
	route_with_history(g, "203.0.113.0/24", 1);
	flows_of(g, "198.51.100.1", &before[0]);
	flows_of(g, "203.0.113.1", &before[1]);
	group_of(g, 20, ALL & ~3u);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 20);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &after[0]);
	flows_of(g, "203.0.113.1", &after[1]);
	assert_left(g, &before[0], &after[0], 2);
	assert_left(g, &before[1], &after[1], 1);
	assert_int_equal(slots_of(g, 20), 2);
	assert_int_equal(rig_summary_int(g, "flows_moved"), 0);
	/*
	 * A new route takes one of the variants. A route that already has a variant keeps
	 * it.
	 */
	rig_route(g, "192.88.99.0/24", 20);
	rig_route(g, "198.51.100.0/24", 20);
	rig_settle(g);
	assert_int_equal(slots_of(g, 20), 2);
	/* The members of both variants change with the id. */
	group_of(g, 20, ALL & ~7u);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &before[0]);
	assert_left(g, &after[0], &before[0], 4);
	flows_of(g, "203.0.113.1", &before[1]);
	assert_left(g, &after[1], &before[1], 4);
	/* A variant without routes is removed. */
	rig_del(g, "203.0.113.0/24");
	rig_del(g, "192.88.99.0/24");
	rig_settle(g);
	assert_int_equal(slots_of(g, 20), 1);
	rig_free(g);
}

static void
a_later_session_adopts_variants_and_rewrites_nothing(void **state)
{
	struct flows before[2], after[2];
	struct rig *g = eight_gateways();
	uint32_t group[2];

	route_with_history(g, "198.51.100.0/24", 0);
	route_with_history(g, "203.0.113.0/24", 1);
	group_of(g, 20, ALL & ~3u);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 20);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &before[0]);
	flows_of(g, "203.0.113.1", &before[1]);
	group[0] = rig_group_of(g, "198.51.100.1");
	group[1] = rig_group_of(g, "203.0.113.1");
	rig_session_down(g);
	rig_session(g, 200);
	for (unsigned int i = 0; i < N_HOPS; i++)
		rig_hop(g, 51 + i, gateway(i), gateway_link(i));
	rig_group(g, 70, 6, 53, 1, 54, 1, 55, 1, 56, 1, 57, 1, 58, 1);
	rig_route(g, "198.51.100.0/24", 70);
	rig_route(g, "203.0.113.0/24", 70);
	rig_sentinel(g);
	rig_settle(g);
	flows_of(g, "198.51.100.1", &after[0]);
	flows_of(g, "203.0.113.1", &after[1]);
	assert_same(&after[0], &before[0]);
	assert_same(&after[1], &before[1]);
	assert_int_equal(slots_of(g, 70), 2);
	assert_int_equal(rig_group_of(g, "198.51.100.1"), group[0]);
	assert_int_equal(rig_group_of(g, "203.0.113.1"), group[1]);
	rig_free(g);
}

/* Move routes of `n` different groups of five to one group of four. */
static void
many_come_to_one(struct rig *g, unsigned int n)
{
	unsigned int made = 0;

	for (unsigned int set = 0; made < n; set++) {
		if (__builtin_popcount(set) != 3)
			continue;
		group_of(g, 200 + made, ALL & ~set);
		rig_route(g, rig_net(made), 200 + made);
		made++;
	}
	rig_go(g);
	group_of(g, 20, 0x3f & ~3u);
	for (unsigned int i = 0; i < n; i++)
		rig_route(g, rig_net(i), 20);
	rig_settle(g);
}

static void
variants_have_a_limit(void **state)
{
	struct rig *g = eight_gateways();

	many_come_to_one(g, SLOT_VARIANTS + 8);
	assert_int_equal(slots_of(g, 20), SLOT_VARIANTS);
	assert_int_equal(rig_summary_int(g, "flows_moved"), 8);
	assert_seen(
		g, "10.0.14.1",
		"192.0.2.132@2*1024 192.0.2.134@2*1024 192.0.2.3@1*1024 192.0.2.5@1*1024");
	rig_free(g);
}

static void
variants_leave_half_of_the_groups_free(void **state)
{
	struct rig *g;

	rig_limit(TABLE_groups, 32);
	g = eight_gateways();
	many_come_to_one(g, 15);
	assert_int_equal(slots_of(g, 20), 1);
	assert_int_equal(rig_summary_int(g, "flows_moved"), 14);
	assert_int_equal(table_state(TABLE_groups).refused, 0);
	rig_free(g);
	rig_limits = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_id_keeps_the_flows_of_members_that_stay),
		cmocka_unit_test(so_do_routes_without_ids),
		cmocka_unit_test(several_changes_in_one_commit_are_one),
		cmocka_unit_test(a_deleted_and_added_route_keeps_its_flows),
		cmocka_unit_test(another_mtu_moves_no_flow),
		cmocka_unit_test(routes_with_different_flows_have_variants),
		cmocka_unit_test(a_later_session_adopts_variants_and_rewrites_nothing),
		cmocka_unit_test(variants_have_a_limit),
		cmocka_unit_test(variants_leave_half_of_the_groups_free),
	};

	return cmocka_run_group_tests_name("rib variants", tests, NULL, NULL);
}
