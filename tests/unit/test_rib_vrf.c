/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VRFs: each table has its own FIB, in any order of events, also when a VRF is removed.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "grace.h"
#include "rib_rig.h"

#include <linux/fib_rules.h>
#include <stdio.h>
#include <unistd.h>

#include "fib/rules.h"

static void
the_same_prefix_has_a_path_in_each_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_route_in(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	rig_route_in(g, 100, "2001:db8:f::/48", "2001:db8::9", 11);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.9@2");
	assert_seen(g, "198.51.100.1", "none");
	assert_seen_in(g, 1, "2001:db8:f::1", "2001:db8::9@1");
	assert_seen_in(g, 2, "2001:db8:f::1", "none");
	rig_del(g, "198.51.100.0/24");
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "none");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.9@2");
	rig_free(g);
}

static void
addresses_and_subnets_are_those_of_the_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();

	assert_seen_in(g, 1, "192.0.2.1", "local");
	assert_seen_in(g, 1, "192.0.2.9", "onlink@1");
	assert_seen_in(g, 2, "192.0.2.1", "local");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	assert_seen_in(g, 2, "192.0.2.255", "bcast");
	assert_seen(g, "192.0.2.1", "none");
	assert_seen(g, "192.0.2.9", "none");
	assert_int_equal(g->rib->tables.n_main[0], 0);
	/*
	 * The interface leaves the VRF: its routes are in main, which answers for the VRF.
	 */
	rig_addr_in(g, 100, 11, "192.0.2.1/24", true);
	rig_addr(g, 11, "192.0.2.1/24", false);
	assert_seen_in(g, 1, "192.0.2.1", "local");
	assert_seen_in(g, 1, "192.0.2.9", "onlink@1");
	assert_seen_in(g, 1, "192.0.3.1", "none");
	assert_seen(g, "192.0.2.9", "onlink@1");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	rig_free(g);
}

static void
a_route_may_leave_by_an_interface_of_another_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 12);
	rig_route_in(g, 100, "203.0.113.0/24", NULL, 13);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@2");
	assert_seen_in(g, 1, "203.0.113.1", "onlink@3");
	rig_free(g);
}

/*
 * FRR 8.5 and later leak connected routes in this way: "the kernel will lookup ... later".
 */
static void
a_route_may_lead_to_another_vrf_and_not_round(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 100, "203.0.113.0/24", NULL, 50);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 50);
	rig_route_in(g, 2000, "203.0.113.0/24", NULL, 12);
	rig_route_in(g, 2000, "198.51.100.0/24", "192.0.2.8", 12);
	rig_route_inline(g, "203.0.113.0/24", NULL, 50);
	rig_go(g);
	assert_seen_in(g, 1, "203.0.113.1", "down");
	rig_link_of_vrf(g, 50, 2, true);
	assert_seen_in(g, 1, "203.0.113.1", "onlink@2");
	assert_seen(g, "203.0.113.1", "onlink@2");
	/* By the route in that VRF. */
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.8@2");
	/* Each VRF leads to the other. */
	rig_link_of_vrf(g, 51, 1, true);
	rig_route_in(g, 2000, "203.0.113.0/24", NULL, 51);
	rig_go(g);
	assert_seen_in(g, 1, "203.0.113.1", "vrf");
	assert_seen_in(g, 2, "203.0.113.1", "vrf");
	rig_link_of_vrf(g, 50, 2, false);
	assert_seen_in(g, 1, "203.0.113.1", "down");
	assert_seen_in(g, 2, "203.0.113.1", "down");
	rig_link_of_vrf(g, 50, 2, true);
	rig_vrf(g, RIG_BLUE, NULL);
	assert_seen_in(g, 1, "203.0.113.1", "no fib");
	rig_link_gone(g, 50);
	assert_seen_in(g, 1, "203.0.113.1", "down");
	rig_free(g);
}

/* Return the listed state of a prefix in a VRF. */
static const char *
state_in(struct rig *g, uint16_t vrf, const char *prefix)
{
	static char text[32];
	struct msg_query q = {
		.kind = QUERY_ROUTES, .vrf = vrf, .has_prefix = true, .max = 10};
	json_t *rows;

	assert_int_equal(prefix_parse(prefix, &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	snprintf(text, sizeof(text), "%s",
		 json_string_value(json_object_get(json_array_get(rows, 0), "state")));
	json_decref(rows);
	return text;
}

/*
 * A VRF's own interface is no egress: a subnet on it has no hosts, and a route by it does
 * not leave the VRF. Nothing is forwarded.
 */
static void
a_vrfs_own_interface_is_no_egress_of_it(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_link_of_vrf(g, 51, 1, true);
	rig_addr_in(g, 100, 51, "10.255.0.1/24", false);
	rig_route_in(g, 100, "198.51.100.0/24", NULL, 51);
	rig_route_in(g, 2000, "198.51.100.0/24", NULL, 51);
	rig_route_in(g, 2000, "10.255.0.0/24", NULL, 51);
	rig_go(g);
	assert_string_equal(state_in(g, 1, "10.255.0.0/24"), "foreign");
	assert_seen_in(g, 1, "10.255.0.9", "foreign");
	assert_seen_in(g, 1, "10.255.0.1", "local");
	assert_string_equal(state_in(g, 1, "198.51.100.0/24"), "foreign");
	/* A route of another VRF by it does lead to the VRF. */
	assert_string_equal(state_in(g, 2, "198.51.100.0/24"), "forwarding");
	assert_string_equal(state_in(g, 2, "10.255.0.0/24"), "forwarding");
	assert_seen_in(g, 2, "10.255.0.1", "local");
	/* The VRF's number comes late, because there was none left. */
	rig_link_of_vrf(g, 51, 0, true);
	assert_seen_in(g, 2, "10.255.0.1", "foreign");
	assert_seen_in(g, 1, "10.255.0.9", "foreign");
	rig_link_of_vrf(g, 51, 1, true);
	assert_seen_in(g, 2, "10.255.0.1", "local");
	assert_seen_in(g, 1, "10.255.0.9", "foreign");
	rig_free(g);
}

static void
a_fib_is_published_when_all_that_came_before_it_is_in(void **state)
{
	struct rig *g = rig_new();
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	rig_link(g, 11, 1, true);
	for (unsigned int i = 0; i < RIB_SLICE + 10; i++)
		rig_route_in(g, 100, rig_net(i), "192.0.2.9", 11);
	rig_go(g);
	m->number = 1;
	m->table = 100;
	rib_on_msg(g->rib, &m->m);
	assert_true(rib_round(g->rib));
	assert_null(fib_vrf(g->fib, 1));
	rig_go(g);
	assert_non_null(fib_vrf(g->fib, 1));
	assert_seen_in(g, 1, "10.0.0.1", "192.0.2.9@1");
	assert_seen_in(g, 1, rig_net(RIB_SLICE + 9), "192.0.2.9@1");
	rig_free(g);
}

static void
a_removed_vrf_has_no_fib_and_its_routes_stay_zebras(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct msg_query q = {.kind = QUERY_ROUTES, .all_tables = true, .max = 100};
	json_t *rows;

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_addr_in(g, 100, 11, "192.0.2.1/24", true);
	rig_vrf(g, RIG_RED, NULL);
	assert_null(fib_vrf(g->fib, 1));
	assert_seen_in(g, 1, "198.51.100.1", "no fib");
	rig_settle(g);
	assert_int_equal(g->rib->reclaims.n, 0);
	q.has_prefix = true;
	assert_int_equal(prefix_parse("198.51.100.0/24", &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "state")),
		"not-installed");
	json_decref(rows);
	/* The VRF comes again and gets another number. */
	rig_vrf(g, 7, 100, "red");
	assert_seen_in(g, 7, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	rig_free(g);
}

static void
a_reused_number_has_nothing_of_the_last_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_flush_batch(g); /* staged, but not committed */
	rig_vrf(g, RIG_RED, NULL);
	rig_vrf(g, 1, 300, "green");
	assert_seen_in(g, 1, "198.51.100.1", "none");
	rig_route_in(g, 300, "198.51.100.0/24", "192.0.2.9", 12);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@2");
	assert_int_equal(g->rib->vrfs.staged.n, 0);
	rig_free(g);
}

static void
a_new_name_is_shown_and_nothing_else_changes(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_vrf(g, RIG_RED, "crimson");
	assert_int_equal(fib_vrf_named(g->fib, "crimson"), 1);
	assert_int_equal(fib_vrf_named(g->fib, "red"), 0);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_settle(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

/* The large trie has all routes of the small one, and those of the same commit. */
static void
a_small_fib_that_is_outgrown_becomes_a_large_one(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct poptrie_stats before, after;
	const struct poptrie *small = fib_vrf(g->fib, 1)->tries.pt4;
	char text[32];

	poptrie_stats(small, &before);
	rig_route_in(g, 100, "0.0.0.0/0", "192.0.2.8", 11);
	for (unsigned int i = 0; i < 5000; i++) {
		rig_route_in(g, 100, rig_net(i), "192.0.2.9", 11);
		if (i % 100 == 0)
			rig_go(g);
	}
	rig_go(g);
	assert_ptr_not_equal(fib_vrf(g->fib, 1)->tries.pt4, small);
	assert_true(g->rib->vrfs.v[1]->large[0]);
	assert_false(g->rib->vrfs.v[1]->large[1]);
	poptrie_stats(fib_vrf(g->fib, 1)->tries.pt4, &after);
	assert_true(before.direct_bytes * 100 < after.direct_bytes);
	assert_int_equal(after.routes, 5001 + 3); /* and those of the address */
	for (unsigned int i = 0; i < 5000; i += 7) {
		snprintf(text, sizeof(text), "10.%u.%u.1", i >> 8, i & 255);
		assert_seen_in(g, 1, text, "192.0.2.9@1");
	}
	assert_seen_in(g, 1, "11.0.0.1", "192.0.2.8@1");
	assert_seen_in(g, 1, "192.0.2.1", "local");
	assert_seen_in(g, 2, "10.0.0.1", "none");
	rig_settle(g);
	assert_seen_in(g, 1, "10.0.0.1", "192.0.2.9@1");
	rig_free(g);
}

/*
 * Return the resident octets of this process. They include rib's memory for VRFs and
 * routes.
 */
static size_t
resident(void)
{
	unsigned long all, here = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &here), 2);
	fclose(f);
	return here * (size_t)sysconf(_SC_PAGESIZE);
}

#ifdef __SANITIZE_ADDRESS__
#define RESIDENT_MAX SIZE_MAX /* mostly used by the sanitizer */
#else
#define RESIDENT_MAX (8u << 20)
#endif

static void
many_vrfs_with_ten_routes_each_take_a_few_mib(void **state)
{
	struct rig *g = rig_new();
	size_t bytes = 0, before, grown;
	char text[32];

	rig_link(g, 11, 1, true);
	/* Memory for the first VRF and route is not part of the cost of more. */
	rig_vrf(g, 257, 999, "first");
	rig_route_in(g, 999, "10.0.0.0/24", "192.0.2.9", 11);
	rig_go(g);
	before = resident();
	for (uint16_t vrf = 1; vrf <= 256; vrf++) {
		snprintf(text, sizeof(text), "vrf%u", vrf);
		rig_vrf(g, vrf, 1000u + vrf, text);
		for (unsigned int i = 0; i < 10; i++) {
			snprintf(text, sizeof(text), "10.%u.%u.0/24", vrf & 255, i);
			rig_route_in(g, 1000u + vrf, text, "192.0.2.9", 11);
		}
	}
	rig_go(g);
	for (uint16_t vrf = 1; vrf <= 256; vrf++) {
		const struct fib_copy *tries = &fib_vrf(g->fib, vrf)->tries;

		for (unsigned int v = 0; v < 2; v++) {
			struct poptrie_stats st;

			poptrie_stats(fib_trie(tries, v == 0 ? 4 : 6), &st);
			bytes += st.direct_bytes + st.node_bytes + st.leaf_bytes +
				 st.radix_bytes;
		}
		snprintf(text, sizeof(text), "10.%u.9.1", vrf & 255);
		assert_seen_in(g, vrf, text, "192.0.2.9@1");
	}
	grown = resident() - before;
	print_message("%zu octets a vrf, with all that rib has of it %zu\n", bytes / 256,
		      grown / 256);
	assert_true(bytes < 8u << 20);
	assert_true(grown < RESIDENT_MAX);
	rig_free(g);
}

static void
a_table_without_a_vrf_is_in_no_fib(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_route_in(g, 55, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "none");
	assert_seen_in(g, 1, "198.51.100.1", "none");
	assert_null(vrf_find(g->rib, 55));
	rig_free(g);
}

static void
a_vrf_is_listed_alone_in_order_or_by_longest_match(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct msg_query q = {.kind = QUERY_ROUTES, .all_tables = true, .vrf = 2, .max = 3};
	json_t *rows;

	rig_route_in(g, 2000, "10.1.0.0/16", "192.0.2.9", 12);
	rig_route_in(g, 2000, "10.0.0.0/8", "192.0.2.9", 12);
	rig_route_in(g, 100, "10.2.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 5); /* three are of the address */
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "prefix")),
		"10.0.0.0/8");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "vrf")), "blue");
	json_decref(rows);
	q.has_prefix = q.longest = true;
	assert_int_equal(prefix_parse("10.2.0.1", &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "prefix")),
		"10.0.0.0/8");
	json_decref(rows);
	q.vrf = 3;
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
	rig_free(g);
}

static void
the_audit_looks_into_vrfs_and_mends_them(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct msg_query q = {.kind = QUERY_AUDIT, .repair = true, .max = 16};
	const uint8_t net[4] = {198, 51, 100, 0};
	json_t *rows;

	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	assert_int_equal(poptrie_del(fib_vrf(g->fib, 1)->tries.pt4, net, 24), 0);
	assert_int_equal(poptrie_commit(fib_vrf(g->fib, 1)->tries.pt4), 0);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(rows, 0), "table")), 100);
	json_decref(rows);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

static void
acknowledgements_have_the_table_of_the_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();
	const struct msg_feedback *f;
	struct msg *m;

	g->rib->conf.fpm = &g->fpm;
	g->rib->conf.feedback = true;
	rig_route_in(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	rig_route_in(g, 55, "198.51.100.0/24", "192.0.2.9", 12);
	rig_go(g);
	rig_settle(g);
	m = worker_take(&g->fpm);
	assert_non_null(m);
	f = (const struct msg_feedback *)m;
	assert_int_equal(f->n, 1);
	assert_int_equal(f->route[0].table, 2000);
	assert_false(f->route[0].failed);
	msg_free(m);
	assert_null(worker_take(&g->fpm));
	rig_free(g);
}

static json_t *
vrf_rows(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_VRFS, .max = 64};

	return rig_ask(g, &q, NULL);
}

static void
thousands_of_vrfs_are_listed_a_slice_at_a_time(void **state)
{
	struct rig *g = rig_new();
	struct msg_query q = {.kind = QUERY_FIB, .max = 100};
	unsigned int slices;
	json_t *rows;
	char text[32];

	for (uint16_t vrf = 1; vrf <= 1000; vrf++) {
		snprintf(text, sizeof(text), "vrf%u", vrf);
		rig_vrf(g, vrf, 1000u + vrf, text);
	}
	rows = rig_ask(g, &q, &slices);
	assert_int_equal(json_array_size(rows), 2 + 2 * 1000);
	assert_true(slices > 20);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "vrf")));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 2001), "vrf")),
		"vrf1000");
	json_decref(rows);
	rows = vrf_rows(g);
	assert_int_equal(json_array_size(rows), 1000);
	json_decref(rows);
	assert_int_equal(rig_summary_int(g, "vrfs"), 1000);
	rig_free(g);
}

static json_int_t
first_int(struct rig *g, const char *key)
{
	json_t *rows = vrf_rows(g);
	json_int_t n = json_integer_value(json_object_get(json_array_get(rows, 0), key));

	json_decref(rows);
	return n;
}

static void
a_vrf_counts_from_its_start_and_not_from_that_of_its_number(void **state)
{
	struct rig *g = rig_new();
	struct counters *c = counters_register("fwd-0");

	c->vrf[1] = (struct vrf_counters){.rx_packets = 5, .rx_bytes = 500, .dropped = 1};
	rig_vrf(g, RIG_RED, "red");
	assert_int_equal(first_int(g, "rx_packets"), 0);
	c->vrf[1].rx_packets += 7;
	c->vrf[1].rx_bytes += 700;
	c->vrf[1].dropped += 2;
	rig_vrf(g, RIG_RED, "crimson");
	assert_int_equal(first_int(g, "rx_packets"), 7);
	assert_int_equal(first_int(g, "rx_bytes"), 700);
	assert_int_equal(first_int(g, "dropped"), 2);
	rig_vrf(g, RIG_RED, NULL);
	rig_vrf(g, 1, 300, "green");
	assert_int_equal(first_int(g, "rx_packets"), 0);
	assert_int_equal(first_int(g, "dropped"), 0);
	rig_free(g);
}

/* While this is set, calloc() fails for FIBs of VRFs, and for nothing else. */
static bool no_fibs;

#ifdef __SANITIZE_ADDRESS__
#define CALLOC __interceptor_calloc
#else
#define CALLOC __libc_calloc
#endif
void *CALLOC(size_t n, size_t bytes);

void *
calloc(size_t n, size_t bytes)
{
	return no_fibs && bytes == sizeof(struct fib_vrf) ? NULL : CALLOC(n, bytes);
}

static void
a_fib_that_found_no_memory_is_tried_again(void **state)
{
	struct rig *g = rig_two_vrfs();

	no_fibs = true;
	rig_vrf(g, 3, 300, "green");
	rig_vrf(g, 4, 400, "gone");
	rig_vrf(g, 5, 500, "old");
	rig_vrf(g, 5, 500, "new");
	rig_vrf(g, 4, 400, NULL);
	rig_route_in(g, 300, "198.51.100.0/24", "192.0.2.9", 11);
	rig_settle(g);
	rig_later(g, 1);
	assert_null(fib_vrf(g->fib, 3));
	no_fibs = false;
	rig_settle(g); /* rib tries again after a second */
	assert_null(fib_vrf(g->fib, 3));
	rig_later(g, 1);
	assert_non_null(fib_vrf(g->fib, 3));
	assert_seen_in(g, 3, "198.51.100.1", "192.0.2.9@1");
	assert_null(fib_vrf(g->fib, 4));
	assert_int_equal(fib_vrf_named(g->fib, "new"), 5);
	assert_null(g->rib->vrfs.retries);
	rig_free(g);
}

/* Return the pages of the address space of this process. */
static unsigned long
pages_mapped(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long n = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &n), 1);
	fclose(file);
	return n;
}

/* The routes are in mappings, so that no leak checker sees whether they are freed. */
static void
a_rib_that_ends_unmaps_its_routes(void **state)
{
	unsigned long before = 0;

	for (unsigned int i = 0; i < 9; i++) {
		struct rig *g = rig_two_vrfs();

		rig_route_in(g, 254, "198.51.100.0/24", "192.0.2.9", 11);
		rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
		rig_go(g);
		rig_free(g);
		if (i == 0)
			before = pages_mapped();
	}
#ifndef __SANITIZE_ADDRESS__ /* it keeps freed memory for a while */
	assert_true(pages_mapped() <
		    before + (8ul << 20) / (unsigned long)sysconf(_SC_PAGESIZE));
#else
	assert_true(before > 0);
#endif
}

/* --- tables of rules ------------------------------------------------------------------ */

/*
 * Tell rib the rules of the kernel, with a rule for table 100 of this preference; 0: without
 * it.
 */
static void
tell_rules_with(struct rig *g, uint32_t pref)
{
	const struct {
		uint32_t pref, table;
	} rules[] = {{0, RT_TABLE_LOCAL}, {pref, 100}, {1000, 0}, {32766, RT_TABLE_MAIN}};
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m) + 4 * sizeof(m->rule[0]));

	m->family = 4;
	for (unsigned int i = 0; i < 4; i++)
		if (pref != 0 || rules[i].table != 100)
			m->rule[m->n++] = (struct rule){.family = 4,
							.src.family = 4,
							.dst.family = 4,
							.action = FR_ACT_TO_TBL,
							.pref = rules[i].pref,
							.table = rules[i].table,
							.l3mdev = rules[i].table == 0,
							.suppress = -1,
							.suppress_group = RULE_NO_GROUP};
	rib_on_msg(g->rib, &m->m);
}

static void
tell_rules(struct rig *g, bool with)
{
	tell_rules_with(g, with ? 100 : 0);
	rig_settle(g);
}

/* Two ports, a rule for table 100, and a prefix with routes in main and in table 100. */
static struct rig *
rig_with_rule(void)
{
	struct rig *g = rig_two_ports();

	rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, "192.0.2.1", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "198.51.100.0/24", 0, "192.0.2.129", 12)
		->route.table = 100;
	rig_settle(g);
	tell_rules(g, true);
	return g;
}

/* Check the path of a packet to 198.51.100.9 by the published rules. */
static void
assert_by_rule(const struct rig *g, const char *want)
{
	struct fib_iface in = {.ifindex = 11, .rules4 = true};
	uint8_t ip[64] = {0x45, [12] = 192, 0, 2, 9, 198, 51, 100, 9};
	char text[80];

	rig_path_text(g, fib_resolve_packet(g->fib, &in, 0, 4, ip, sizeof(ip)), text,
		      sizeof(text));
	assert_string_equal(text, want);
}

static void
tell_vrf(struct rig *g, uint16_t number, bool gone)
{
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	m->number = number;
	m->table = 100;
	m->gone = gone;
	snprintf(m->name, sizeof(m->name), "%s", gone ? "" : "red");
	rib_on_msg(g->rib, &m->m);
}

/*
 * A VRF gets the table that a rule names, and is deleted. Until the next list is published,
 * packets of the rule follow the routes of the table, including new routes.
 */
static void
packets_of_a_rule_never_miss_the_table_of_a_vrf(void **state)
{
	struct rig *g = rig_with_rule();

	rig_kernel_type(g, KERNEL_ROUTE, "203.0.113.1/32", 0, RTN_LOCAL);
	for (unsigned int i = 0; i < 20000; i++)
		rig_kernel_route(g, KERNEL_ROUTE, rig_net(i), 0, "192.0.2.129", 12)
			->route.table = 100;
	rig_settle(g);
	for (uint16_t number = 1; number < 4; number++) {
		tell_vrf(g, number, false);
		assert_by_rule(g, "192.0.2.129@2");
		rig_kernel_type(g, KERNEL_ROUTE, "198.51.100.0/25", 0, RTN_PROHIBIT)
			->route.table = 100;
		rig_flush_batch(g);
		for (unsigned int round = 0; rib_round(g->rib) && round < 100; round++)
			assert_by_rule(g, "prohibit");
		assert_by_rule(g, "prohibit");
		rig_settle(g);
		assert_int_equal(g->rib->vrfs.n_for_rules, 0);
		assert_int_equal(g->rib->vrfs.views.n, 0);
		assert_by_rule(g, "prohibit");
		tell_vrf(g, number, true);
		assert_by_rule(g, "prohibit");
		rig_kernel_type(g, KERNEL_ROUTE_DEL, "198.51.100.0/25", 0, RTN_PROHIBIT)
			->route.table = 100;
		rig_flush_batch(g);
		for (unsigned int round = 0; rib_round(g->rib) && round < 100; round++)
			assert_by_rule(g, "192.0.2.129@2");
		rig_settle(g);
		assert_by_rule(g, "192.0.2.129@2");
		assert_int_equal(g->rib->vrfs.n_for_rules, 1);
		assert_null(fib_vrf(g->fib, number));
	}
	tell_rules(g, false);
	assert_int_equal(g->rib->vrfs.n, 0);
	rig_free(g);
}

/* The device of a VRF is deleted and made again within one burst of events. */
static void
a_vrf_made_again_keeps_the_routes_of_a_rule(void **state)
{
	for (uint16_t again = 1; again < 3; again++) {
		struct rig *g = rig_with_rule();

		rig_vrf(g, 1, 100, "red");
		rig_settle(g);
		tell_vrf(g, 1, true);
		tell_vrf(g, again, false);
		tell_vrf(g, again, true);
		tell_vrf(g, 3, false);
		if (again != 1)
			assert_by_rule(g, "192.0.2.129@2");
		rig_settle(g);
		assert_by_rule(g, "192.0.2.129@2");
		assert_int_equal(g->rib->vrfs.n_for_rules, 0);
		assert_int_equal(g->rib->vrfs.n, 1);
		tell_vrf(g, 3, true);
		rig_free(g);
	}
}

/* A VRF whose FIB got memory late takes the table that a rule names, as other VRFs do. */
static void
a_vrf_that_got_memory_late_takes_the_table_of_a_rule(void **state)
{
	struct rig *g = rig_with_rule();
	struct vrf_retry *retry = calloc(1, sizeof(*retry));

	*retry = (struct vrf_retry){.number = 1, .table = 100, .name = "red"};
	g->rib->vrfs.retries = retry;
	rig_settle(g);
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "198.51.100.0/24", 0, "192.0.2.129", 12)
		->route.table = 100;
	rig_settle(g);
	assert_by_rule(g, "192.0.2.1@1");
	rig_free(g);
}

/*
 * Three lists are published: the second still names the FIB, the third does not. The
 * message that the grace period of the first list is over comes after the third list.
 * Readers may still have the second list, so the FIB stays.
 */
static void
the_fib_of_a_rule_waits_for_the_readers_of_its_last_list(void **state)
{
	struct rig *g = rig_with_rule();
	struct msg *m;

	tell_rules_with(g, 101);
	rig_go(g);
	grace_over();
	tell_rules_with(g, 0);
	rig_go(g);
	assert_int_equal(g->rib->vrfs.n_for_rules, 1);
	while ((m = worker_take(&g->w)) != NULL)
		rib_on_msg(g->rib, m);
	assert_int_equal(g->rib->vrfs.n_for_rules, 1);
	rig_settle(g);
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	rig_free(g);
}

/* A route of table local that refuses packets precedes the rules behind table local. */
static void
a_refusal_of_table_local_precedes_a_rule(void **state)
{
	struct rig *g = rig_with_rule();
	struct kernel_event *ev;

	rig_kernel_type(g, KERNEL_ROUTE, "198.51.100.0/24", 0, RTN_PROHIBIT)->is_local =
		true;
	rig_settle(g);
	assert_by_rule(g, "prohibit");
	rig_kernel_type(g, KERNEL_ROUTE_DEL, "198.51.100.0/24", 0, RTN_PROHIBIT)->is_local =
		true;
	rig_kernel_type(g, KERNEL_ROUTE, "198.51.0.0/16", 0, RTN_BLACKHOLE)->is_local =
		true;
	rig_settle(g);
	assert_by_rule(g, "blackhole");
	rig_kernel_type(g, KERNEL_ROUTE_DEL, "198.51.0.0/16", 0, RTN_BLACKHOLE)->is_local =
		true;
	ev = rig_kernel(g, KERNEL_NEXTHOP);
	ev->route.nhid = 5;
	ev->route.blackhole = true;
	ev = rig_kernel_type(g, KERNEL_ROUTE, "198.51.0.0/16", 0, RTN_BLACKHOLE);
	ev->route.nhid = 5;
	ev->is_local = true;
	rig_settle(g);
	assert_by_rule(g, "blackhole");
	/* Linux sends the route again when its object has changed. */
	rig_kernel_nexthop(g, 5, "192.0.2.3", 11);
	ev = rig_kernel_by_id(g, KERNEL_ROUTE, "198.51.0.0/16", 0, 5);
	ev->is_local = true;
	ev->order = KERNEL_REPLACE;
	rig_settle(g);
	assert_by_rule(g, "192.0.2.129@2");
	ev = rig_kernel(g, KERNEL_NEXTHOP);
	ev->route.nhid = 5;
	ev->route.blackhole = true;
	ev = rig_kernel_type(g, KERNEL_ROUTE, "198.51.0.0/16", 0, RTN_BLACKHOLE);
	ev->route.nhid = 5;
	ev->is_local = true;
	ev->order = KERNEL_REPLACE;
	rig_settle(g);
	assert_by_rule(g, "blackhole");
	ev = rig_kernel_type(g, KERNEL_ROUTE_DEL, "198.51.0.0/16", 0, RTN_BLACKHOLE);
	ev->route.nhid = 5;
	ev->is_local = true;
	rig_kernel_type(g, KERNEL_ROUTE, "198.51.100.0/25", 0, RTN_UNREACHABLE);
	rig_settle(g);
	assert_by_rule(g, "192.0.2.129@2"); /* table main refuses behind the rule */
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_prefix_has_a_path_in_each_vrf),
		cmocka_unit_test(addresses_and_subnets_are_those_of_the_vrf),
		cmocka_unit_test(a_route_may_leave_by_an_interface_of_another_vrf),
		cmocka_unit_test(a_route_may_lead_to_another_vrf_and_not_round),
		cmocka_unit_test(a_vrfs_own_interface_is_no_egress_of_it),
		cmocka_unit_test(a_fib_is_published_when_all_that_came_before_it_is_in),
		cmocka_unit_test(a_removed_vrf_has_no_fib_and_its_routes_stay_zebras),
		cmocka_unit_test(a_reused_number_has_nothing_of_the_last_vrf),
		cmocka_unit_test(a_new_name_is_shown_and_nothing_else_changes),
		cmocka_unit_test(a_small_fib_that_is_outgrown_becomes_a_large_one),
		cmocka_unit_test(many_vrfs_with_ten_routes_each_take_a_few_mib),
		cmocka_unit_test(a_table_without_a_vrf_is_in_no_fib),
		cmocka_unit_test(a_vrf_is_listed_alone_in_order_or_by_longest_match),
		cmocka_unit_test(the_audit_looks_into_vrfs_and_mends_them),
		cmocka_unit_test(acknowledgements_have_the_table_of_the_vrf),
		cmocka_unit_test(thousands_of_vrfs_are_listed_a_slice_at_a_time),
		cmocka_unit_test(
			a_vrf_counts_from_its_start_and_not_from_that_of_its_number),
		cmocka_unit_test(a_fib_that_found_no_memory_is_tried_again),
		cmocka_unit_test(a_rib_that_ends_unmaps_its_routes),
		cmocka_unit_test(packets_of_a_rule_never_miss_the_table_of_a_vrf),
		cmocka_unit_test(a_vrf_made_again_keeps_the_routes_of_a_rule),
		cmocka_unit_test(a_vrf_that_got_memory_late_takes_the_table_of_a_rule),
		cmocka_unit_test(the_fib_of_a_rule_waits_for_the_readers_of_its_last_list),
		cmocka_unit_test(a_refusal_of_table_local_precedes_a_rule),
	};

	return cmocka_run_group_tests_name("rib_vrf", tests, NULL, NULL);
}
