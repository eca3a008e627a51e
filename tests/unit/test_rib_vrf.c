/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VRFs: each table its own FIB, whatever comes first, and whatever goes.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c
 */
#include "rib_rig.h"

#include <stdio.h>

#define RED  1, 100 /* number and table */
#define BLUE 2, 2000

static void
in_table(struct rig *g, uint32_t table, const char *prefix, const char *gw,
	 uint32_t ifindex)
{
	rig_route_inline(g, prefix, gw, ifindex);
	g->batch->ev[g->batch->n - 1].table = table;
}

/* Port 11 in red, port 12 in blue, both with 192.0.2.1/24; port 13 in none. */
static struct rig *
two_vrfs(void)
{
	struct rig *g = rig_new();

	rig_vrf(g, RED, "red");
	rig_vrf(g, BLUE, "blue");
	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_link(g, 13, 3, true);
	rig_addr_in(g, 100, 11, "192.0.2.1/24", false);
	rig_addr_in(g, 2000, 12, "192.0.2.1/24", false);
	return g;
}

static void
the_same_prefix_leads_each_vrf_its_way(void **state)
{
	struct rig *g = two_vrfs();

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	in_table(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	in_table(g, 100, "2001:db8:f::/48", "2001:db8::9", 11);
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
	struct rig *g = two_vrfs();

	assert_seen_in(g, 1, "192.0.2.1", "local");
	assert_seen_in(g, 1, "192.0.2.9", "onlink@1");
	assert_seen_in(g, 2, "192.0.2.1", "local");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	assert_seen_in(g, 2, "192.0.2.255", "bcast");
	assert_seen(g, "192.0.2.1", "none");
	assert_seen(g, "192.0.2.9", "none");
	assert_int_equal(g->rib->n_main[0], 0);
	/* The interface leaves the VRF: neigh tells its address again, of main. */
	rig_addr_in(g, 100, 11, "192.0.2.1/24", true);
	rig_addr(g, 11, "192.0.2.1/24", false);
	assert_seen_in(g, 1, "192.0.2.1", "none");
	assert_seen_in(g, 1, "192.0.2.9", "none");
	assert_seen(g, "192.0.2.9", "onlink@1");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	rig_free(g);
}

static void
a_route_may_leave_by_an_interface_of_another_vrf(void **state)
{
	struct rig *g = two_vrfs();

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 12);
	in_table(g, 100, "203.0.113.0/24", NULL, 13);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@2");
	assert_seen_in(g, 1, "203.0.113.1", "onlink@3");
	rig_free(g);
}

static void
a_fib_is_published_when_all_that_came_before_it_is_in(void **state)
{
	struct rig *g = rig_new();
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));
	char text[32];

	rig_link(g, 11, 1, true);
	for (unsigned int i = 0; i < RIB_SLICE + 10; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.0/24", i >> 8, i & 255);
		in_table(g, 100, text, "192.0.2.9", 11);
	}
	rig_go(g);
	m->number = 1;
	m->table = 100;
	rib_on_msg(g->rib, &m->m);
	assert_true(rib_round(g->rib));
	assert_null(fib_vrf(g->fib, 1));
	rig_go(g);
	assert_non_null(fib_vrf(g->fib, 1));
	assert_seen_in(g, 1, "10.0.0.1", "192.0.2.9@1");
	assert_seen_in(g, 1, text, "192.0.2.9@1");
	rig_free(g);
}

static void
a_vrf_that_goes_takes_its_fib_along_and_its_routes_stay_zebras(void **state)
{
	struct rig *g = two_vrfs();
	struct msg_query q = {.kind = QUERY_ROUTES, .all_tables = true, .max = 100};
	json_t *rows;

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_addr_in(g, 100, 11, "192.0.2.1/24", true);
	rig_vrf(g, RED, NULL);
	assert_null(fib_vrf(g->fib, 1));
	assert_seen_in(g, 1, "198.51.100.1", "none");
	rig_settle(g);
	assert_int_equal(g->rib->n_reclaims, 0);
	q.has_prefix = true;
	assert_int_equal(prefix_parse("198.51.100.0/24", &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "state")),
		"not-installed");
	json_decref(rows);
	/* It comes again, by another number. */
	rig_vrf(g, 7, 100, "red");
	assert_seen_in(g, 7, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 2, "192.0.2.9", "onlink@2");
	rig_free(g);
}

static void
a_number_that_comes_again_has_nothing_of_who_had_it(void **state)
{
	struct rig *g = two_vrfs();

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_flush_batch(g); /* staged, not committed */
	rig_vrf(g, RED, NULL);
	rig_vrf(g, 1, 300, "green");
	assert_seen_in(g, 1, "198.51.100.1", "none");
	in_table(g, 300, "198.51.100.0/24", "192.0.2.9", 12);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@2");
	assert_int_equal(g->rib->vrf_staged.n, 0);
	rig_free(g);
}

static void
a_new_name_is_shown_and_nothing_else_changes(void **state)
{
	struct rig *g = two_vrfs();

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	rig_vrf(g, RED, "crimson");
	assert_int_equal(fib_vrf_named(g->fib, "crimson"), 1);
	assert_int_equal(fib_vrf_named(g->fib, "red"), 0);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_settle(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

/* Everything in one trie that was there before, and what comes in the same commit. */
static void
a_small_fib_that_is_outgrown_becomes_a_large_one(void **state)
{
	struct rig *g = two_vrfs();
	struct poptrie_stats before, after;
	const struct poptrie *small = fib_vrf(g->fib, 1)->tries.pt4;
	char text[32];

	poptrie_stats(small, &before);
	in_table(g, 100, "0.0.0.0/0", "192.0.2.8", 11);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.0/24", i >> 8, i & 255);
		in_table(g, 100, text, "192.0.2.9", 11);
		if (i % 100 == 0)
			rig_go(g);
	}
	rig_go(g);
	assert_ptr_not_equal(fib_vrf(g->fib, 1)->tries.pt4, small);
	assert_true(g->rib->vrf[1]->large[0]);
	assert_false(g->rib->vrf[1]->large[1]);
	poptrie_stats(fib_vrf(g->fib, 1)->tries.pt4, &after);
	assert_true(before.direct_bytes * 100 < after.direct_bytes);
	assert_int_equal(after.routes, 5001 + 4); /* and those of the address */
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

static void
many_vrfs_with_ten_routes_each_take_a_few_mib(void **state)
{
	struct rig *g = rig_new();
	size_t bytes = 0;
	char text[32];

	rig_link(g, 11, 1, true);
	for (uint16_t vrf = 1; vrf <= 256; vrf++) {
		snprintf(text, sizeof(text), "vrf%u", vrf);
		rig_vrf(g, vrf, 1000u + vrf, text);
		for (unsigned int i = 0; i < 10; i++) {
			snprintf(text, sizeof(text), "10.%u.%u.0/24", vrf & 255, i);
			in_table(g, 1000u + vrf, text, "192.0.2.9", 11);
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
	print_message("%zu octets a vrf\n", bytes / 256);
	assert_true(bytes < 8u << 20);
	rig_free(g);
}

static void
a_table_without_a_vrf_is_in_no_fib(void **state)
{
	struct rig *g = two_vrfs();

	in_table(g, 55, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "none");
	assert_seen_in(g, 1, "198.51.100.1", "none");
	assert_null(vrf_find(g->rib, 55));
	rig_free(g);
}

/* What main has, the sentinel, then three tables; in step when this returns. */
static struct rig *
taught(void)
{
	struct rig *g = two_vrfs();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_route_inline(g, "10.64.0.0/16", "192.0.2.9", 11);
	rig_sentinel(g);
	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	in_table(g, 100, "203.0.113.0/24", "192.0.2.9", 11);
	in_table(g, 2000, "203.0.113.0/24", "192.0.2.9", 12);
	in_table(g, 55, "203.0.113.0/24", "192.0.2.9", 11);
	rig_go(g);
	assert_false(g->rib->session.vrfs_replaying); /* nothing to wait for */
	rig_session_down(g);
	rig_go(g);
	return g;
}

static void
later(struct rig *g, unsigned int s)
{
	rig_now_ms += s * 1000;
	rig_settle(g);
}

/* VRFs are replayed behind the sentinel: it ends main's part at once, and no more. */
static void
the_sentinel_ends_mains_replay_and_silence_that_of_vrfs(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	rig_go(g);
	assert_false(g->rib->session.replaying);
	assert_seen(g, "10.64.0.1", "192.0.2.9@1"); /* by 10/8 */
	assert_int_equal(g->rib->count.swept_routes, 1);
	assert_string_equal(session_phase(g->rib), "in-step");
	assert_string_equal(session_vrf_phase(g->rib), "replaying");
	assert_int_equal(rig_summary_int(g, "vrf_stale"), 4);
	later(g, 4);
	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	in_table(g, 2000, "203.0.113.0/24", "192.0.2.9", 12);
	rig_go(g);
	assert_int_equal(sweep_vrfs_in_ms(g->rib, rig_now_ms), 5000);
	later(g, 4);
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	/* What is said of main is no part of it. */
	rig_route_inline(g, "10.128.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	later(g, 1);
	assert_string_equal(session_vrf_phase(g->rib), "in-step");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.9@2");
	assert_int_equal(g->rib->count.swept_routes, 2);
	assert_int_equal(rig_summary_int(g, "vrf_stale"), 1); /* table 55 is not replayed */
	assert_int_equal(rig_summary_int(g, "vrfs_not_replayed"), 0);
	rig_free(g);
}

static void
without_a_sentinel_one_silence_ends_both(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	later(g, 4);
	rig_route_inline(g, "10.64.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	later(g, 4);
	assert_true(g->rib->session.replaying);
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	later(g, 1);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "none");
	rig_free(g);
}

static void
zebras_words_on_vrfs_without_a_pause_are_swept_at_the_upper_bound(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	for (unsigned int s = 0; s < 120; s += 4) {
		assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
		in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
		rig_go(g);
		later(g, 4);
	}
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_free(g);
}

static void
a_vrf_that_is_not_replayed_keeps_its_routes_and_it_is_said(void **state)
{
	struct rig *g = taught();
	json_t *row, *vrf;

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	later(g, 5);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "none");
	assert_seen_in(g, 2, "203.0.113.1", "192.0.2.9@2");
	row = rig_summary(g);
	assert_int_equal(json_integer_value(json_object_get(row, "vrfs_not_replayed")), 1);
	vrf = json_array_get(json_object_get(row, "vrfs"), 1);
	assert_string_equal(json_string_value(json_object_get(vrf, "name")), "blue");
	assert_true(json_is_false(json_object_get(vrf, "replayed")));
	assert_int_equal(json_integer_value(json_object_get(vrf, "zebra")), 1);
	assert_int_equal(json_integer_value(json_object_get(vrf, "stale")), 1);
	json_decref(row);
	/* The next replay has it: then it is one of those that are. */
	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	in_table(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	rig_go(g);
	later(g, 5);
	assert_seen_in(g, 2, "203.0.113.1", "none");
	assert_seen_in(g, 2, "198.51.100.1", "192.0.2.9@2");
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	assert_int_equal(rig_summary_int(g, "vrfs_not_replayed"), 1);
	rig_free(g);
}

static void
after_a_restart_of_zebra_vrfs_too_wait_for_its_peers(void **state)
{
	struct rig *g = taught();

	rig_session(g, 200);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
	rig_go(g);
	later(g, 59);
	assert_string_equal(session_phase(g->rib), "holding");
	assert_seen(g, "10.64.0.1", "192.0.2.9@1");
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	later(g, 1);
	assert_string_equal(session_phase(g->rib), "in-step");
	assert_string_equal(session_vrf_phase(g->rib), "in-step");
	assert_seen_in(g, 1, "203.0.113.1", "none");
	rig_free(g);
}

/* An id that is not announced yet: what works goes on, in a VRF until its part is over. */
static void
a_route_of_a_vrf_that_comes_before_its_next_hop_keeps_its_way(void **state)
{
	struct rig *g = taught();

	rig_session(g, 100);
	rig_route_inline(g, "10.0.0.0/8", "192.0.2.9", 11);
	rig_sentinel(g);
	rig_go(g);
	rig_route(g, "198.51.100.0/24", 70);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_route(g, "203.0.113.0/24", 71);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_go(g);
	assert_false(g->rib->session.replaying);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.9@1");
	rig_hop(g, 70, "192.0.2.8", 11);
	rig_go(g);
	assert_seen_in(g, 1, "198.51.100.1", "192.0.2.8@1");
	assert_seen_in(g, 1, "203.0.113.1", "192.0.2.9@1");
	later(g, 5);
	assert_false(g->rib->session.vrfs_replaying);
	assert_seen_in(g, 1, "203.0.113.1", "unresolved");
	rig_free(g);
}

static void
a_vrf_is_listed_alone_in_order_or_by_longest_match(void **state)
{
	struct rig *g = two_vrfs();
	struct msg_query q = {.kind = QUERY_ROUTES, .all_tables = true, .vrf = 2, .max = 3};
	json_t *rows;

	in_table(g, 2000, "10.1.0.0/16", "192.0.2.9", 12);
	in_table(g, 2000, "10.0.0.0/8", "192.0.2.9", 12);
	in_table(g, 100, "10.2.0.0/16", "192.0.2.9", 11);
	rig_go(g);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 6); /* four are of the address */
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
	struct rig *g = two_vrfs();
	struct msg_query q = {.kind = QUERY_AUDIT, .repair = true, .max = 16};
	const uint8_t net[4] = {198, 51, 100, 0};
	json_t *rows;

	in_table(g, 100, "198.51.100.0/24", "192.0.2.9", 11);
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
zebra_is_told_of_routes_of_a_vrf_and_their_table(void **state)
{
	struct rig *g = two_vrfs();
	const struct msg_feedback *f;
	struct msg *m;

	g->rib->conf.fpm = &g->fpm;
	g->rib->conf.feedback = true;
	in_table(g, 2000, "198.51.100.0/24", "192.0.2.9", 12);
	in_table(g, 55, "198.51.100.0/24", "192.0.2.9", 12);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_prefix_leads_each_vrf_its_way),
		cmocka_unit_test(addresses_and_subnets_are_those_of_the_vrf),
		cmocka_unit_test(a_route_may_leave_by_an_interface_of_another_vrf),
		cmocka_unit_test(a_fib_is_published_when_all_that_came_before_it_is_in),
		cmocka_unit_test(
			a_vrf_that_goes_takes_its_fib_along_and_its_routes_stay_zebras),
		cmocka_unit_test(a_number_that_comes_again_has_nothing_of_who_had_it),
		cmocka_unit_test(a_new_name_is_shown_and_nothing_else_changes),
		cmocka_unit_test(a_small_fib_that_is_outgrown_becomes_a_large_one),
		cmocka_unit_test(many_vrfs_with_ten_routes_each_take_a_few_mib),
		cmocka_unit_test(a_table_without_a_vrf_is_in_no_fib),
		cmocka_unit_test(the_sentinel_ends_mains_replay_and_silence_that_of_vrfs),
		cmocka_unit_test(without_a_sentinel_one_silence_ends_both),
		cmocka_unit_test(
			zebras_words_on_vrfs_without_a_pause_are_swept_at_the_upper_bound),
		cmocka_unit_test(
			a_vrf_that_is_not_replayed_keeps_its_routes_and_it_is_said),
		cmocka_unit_test(after_a_restart_of_zebra_vrfs_too_wait_for_its_peers),
		cmocka_unit_test(
			a_route_of_a_vrf_that_comes_before_its_next_hop_keeps_its_way),
		cmocka_unit_test(a_vrf_is_listed_alone_in_order_or_by_longest_match),
		cmocka_unit_test(the_audit_looks_into_vrfs_and_mends_them),
		cmocka_unit_test(zebra_is_told_of_routes_of_a_vrf_and_their_table),
	};

	return cmocka_run_group_tests_name("rib_vrf", tests, NULL, NULL);
}
