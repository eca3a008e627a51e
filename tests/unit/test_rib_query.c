/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to ui: rows as in dist/openapi.yaml, in slices.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

static const char *
str(const json_t *rows, size_t i, const char *key)
{
	const char *s = json_string_value(json_object_get(json_array_get(rows, i), key));

	assert_non_null(s);
	return s;
}

static json_int_t
num(const json_t *rows, size_t i, const char *key)
{
	const json_t *v = json_object_get(json_array_get(rows, i), key);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static struct msg_query
one(const char *prefix, bool longest)
{
	struct msg_query q = {
		.kind = QUERY_ROUTES, .has_prefix = true, .longest = longest, .max = 10};

	assert_int_equal(prefix_parse(prefix, &q.prefix, NULL), 0);
	return q;
}

static void
a_route_row_has_all_its_keys(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_query q;
	json_t *rows, *hop, *hops;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, NULL, 99);
	rig_group(g, 20, 2, 7, 3, 8, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	q = one("198.51.100.0/24", false);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(str(rows, 0, "prefix"), "198.51.100.0/24");
	assert_int_equal(num(rows, 0, "table"), 254);
	assert_string_equal(str(rows, 0, "source"), "zebra");
	assert_string_equal(str(rows, 0, "protocol"), "bgp");
	assert_string_equal(str(rows, 0, "type"), "unicast");
	assert_int_equal(num(rows, 0, "nexthop_id"), 20);
	assert_int_equal(num(rows, 0, "group"), rig_group_of(g, "198.51.100.1"));
	assert_string_equal(str(rows, 0, "state"), "forwarding");
	assert_true(json_is_false(json_object_get(json_array_get(rows, 0), "stale")));
	hops = json_object_get(json_array_get(rows, 0), "nexthops");
	assert_int_equal(json_array_size(hops), 2);
	for (size_t i = 0; i < 2; i++) {
		hop = json_array_get(hops, i);
		if (json_is_null(json_object_get(hop, "via"))) {
			assert_string_equal(str(hops, i, "dev"), "if99");
			assert_true(json_is_false(json_object_get(hop, "alive")));
			assert_int_equal(num(hops, i, "adj"), 0);
		} else {
			assert_string_equal(str(hops, i, "via"), "192.0.2.1");
			assert_string_equal(str(hops, i, "dev"), "p11");
			assert_true(json_is_true(json_object_get(hop, "alive")));
			assert_int_equal(num(hops, i, "weight"), 3);
			assert_int_equal(num(hops, i, "adj"), rig_adj(g, "192.0.2.1", 11));
		}
	}
	json_decref(rows);
	rig_free(g);
}

static void
states_and_sources_are_told_apart(void **state)
{
	static const struct {
		const char *prefix, *source, *protocol, *type, *what;
	} want[] = {
		{"192.0.2.126/32", "local", "kernel", "local", "local"},
		{"192.0.2.0/25", "connected", "kernel", "unicast", "onlink"},
		{"192.0.2.127/32", "connected", "kernel", "broadcast", "broadcast"},
		{"10.1.0.0/16", "zebra", "ospf", "unicast", "unresolved"},
		{"10.2.0.0/16", "zebra", "bgp", "blackhole", "blackhole"},
		{"10.3.0.0/16", "zebra", "bgp", "unreachable", "unreachable"},
		{"10.4.0.0/16", "zebra", "bgp", "prohibit", "prohibit"},
		{"10.5.0.0/16", "zebra", "bgp", "unicast", "foreign"},
		{"10.6.0.0/16", "zebra", "bgp", "unicast", "down"},
		{"10.7.0.0/16", "zebra", "77", "unicast", "unsupported"},
	};
	struct rig *g = rig_two_ports();

	rig_link(g, 3, 0, true);
	rig_route(g, "10.1.0.0/16", 4711);
	g->batch->ev[g->batch->n - 1].protocol = 188;
	rig_route_type(g, "10.2.0.0/16", RTN_BLACKHOLE);
	rig_route_type(g, "10.3.0.0/16", RTN_UNREACHABLE);
	rig_route_type(g, "10.4.0.0/16", RTN_PROHIBIT);
	rig_route_inline(g, "10.5.0.0/16", "10.0.0.1", 3);
	rig_route_inline(g, "10.6.0.0/16", "10.0.0.1", 4);
	rig_route_inline(g, "10.7.0.0/16", "10.0.0.1", 11);
	g->batch->ev[g->batch->n - 1].protocol = 77;
	g->batch->ev[g->batch->n - 1].hops->encap = HOP_SEG6;
	rig_go(g);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct msg_query q = one(want[i].prefix, false);
		json_t *rows = rig_ask(g, &q, NULL);

		assert_int_equal(json_array_size(rows), 1);
		assert_string_equal(str(rows, 0, "source"), want[i].source);
		assert_string_equal(str(rows, 0, "protocol"), want[i].protocol);
		assert_string_equal(str(rows, 0, "type"), want[i].type);
		assert_string_equal(str(rows, 0, "state"), want[i].what);
		json_decref(rows);
	}
	rig_free(g);
}

static void
exact_and_longest_match_answer_one_row_or_none(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_query q;
	json_t *rows;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "10.0.0.0/8", 7);
	rig_route(g, "10.1.0.0/16", 7);
	rig_go(g);
	q = one("10.1.2.3", true);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(str(rows, 0, "prefix"), "10.1.0.0/16");
	json_decref(rows);
	q = one("10.1.2.3", false);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
	q = one("172.16.0.1", true);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
	rig_free(g);
}

static void
routes_come_in_prefix_order_then_other_tables_in_slices(void **state)
{
	static const char *const want[] = {"0.0.0.0/0",   "10.0.0.0/8",      "10.0.0.0/16",
					   "10.1.0.0/16", "2001:db8:f::/48", "10.9.0.0/16"};
	struct rig *g = rig_new();
	unsigned int slices;

	rig_route(g, "10.1.0.0/16", 7);
	rig_route(g, "10.0.0.0/16", 7);
	rig_route(g, "10.9.0.0/16", 7);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_route(g, "2001:db8:f::/48", 7);
	rig_route(g, "0.0.0.0/0", 7);
	rig_route(g, "10.0.0.0/8", 7);
	rig_go(g);
	for (unsigned int max = 1; max < 9; max++) {
		struct msg_query q = {.kind = QUERY_ROUTES, .all_tables = true, .max = max};
		json_t *rows = rig_ask(g, &q, &slices);

		assert_int_equal(json_array_size(rows), 6);
		for (size_t i = 0; i < 6; i++)
			assert_string_equal(str(rows, i, "prefix"), want[i]);
		assert_string_equal(str(rows, 5, "state"), "not-installed");
		assert_int_equal(num(rows, 5, "table"), 100);
		assert_true(slices >= 6 / max);
		json_decref(rows);
	}
	rig_free(g);
}

static void
a_family_may_be_chosen_and_other_tables_left_out(void **state)
{
	struct rig *g = rig_new();
	struct msg_query q = {.kind = QUERY_ROUTES, .family = 6, .max = 10};
	json_t *rows;

	rig_route(g, "10.1.0.0/16", 7);
	rig_route(g, "2001:db8:f::/48", 7);
	rig_route(g, "2001:db8:e::/48", 7);
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_go(g);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	q.all_tables = true;
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 2);
	json_decref(rows);
	rig_free(g);
}

static void
a_listing_survives_a_table_that_changes_under_it(void **state)
{
	struct rig *g = rig_new();
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	size_t n = 0;

	rig_routes(g, 1000, 7);
	rig_go(g);
	q->kind = QUERY_ROUTES;
	q->from = &g->ui;
	q->max = 10;
	for (unsigned int slice = 0; !q->done; slice++) {
		q->m.type = MSG_QUERY;
		rib_on_msg(g->rib, &q->m);
		rig_go(g);
		q = (struct msg_query *)worker_take(&g->ui);
		n += json_array_size(q->rows);
		json_decref(q->rows);
		q->rows = NULL;
		/* The last listed route is deleted. */
		rig_del(g, rig_net(slice * 10 + 9));
		rig_settle(g);
	}
	assert_int_equal(n, 1000);
	msg_free(&q->m);
	rig_free(g);
}

static void
groups_are_listed_with_their_routes(void **state)
{
	struct rig *g = rig_new();
	struct msg_query q = {.kind = QUERY_GROUPS, .max = 1};
	json_t *rows;

	rig_link(g, 11, 1, true);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_route(g, "10.1.0.0/16", 20);
	rig_route(g, "10.2.0.0/16", 20);
	rig_route_type(g, "10.3.0.0/16", RTN_BLACKHOLE);
	rig_nh_del(g, 20);
	rig_go(g);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(num(rows, 0, "nexthop_id"), 20);
	assert_int_equal(num(rows, 0, "routes"), 2);
	assert_int_equal(num(rows, 0, "buckets"), 32);
	assert_string_equal(str(rows, 0, "state"), "forwarding");
	assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "absent")));
	assert_string_equal(str(rows, 1, "state"), "blackhole");
	assert_int_equal(num(rows, 1, "buckets"), 1);
	json_decref(rows);
	rig_free(g);
}

/* Return whether the only group with routes is listed as absent. */
static bool
group_is_absent(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_GROUPS, .max = 10};
	json_t *rows = rig_ask(g, &q, NULL);
	bool absent;

	assert_int_equal(json_array_size(rows), 1);
	absent = json_is_true(json_object_get(json_array_get(rows, 0), "absent"));
	json_decref(rows);
	return absent;
}

/* A group may have groups, whose next hops are the next hops of the outer group. */
static void
a_group_is_absent_with_a_member_of_its_groups(void **state)
{
	struct rig *g = rig_new();

	rig_link(g, 11, 1, true);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_hop(g, 9, "192.0.2.3", 11);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_group(g, 30, 2, 9, 1, 20, 1);
	rig_route(g, "198.51.100.0/24", 30);
	rig_go(g);
	assert_false(group_is_absent(g));
	rig_nh_del(g, 8);
	rig_go(g);
	assert_true(group_is_absent(g));
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_go(g);
	assert_false(group_is_absent(g));
	rig_nh_del(g, 20);
	rig_go(g);
	assert_true(group_is_absent(g));
	rig_free(g);
}

/* The list has the state, the gateway and the users of each next hop. It has no groups. */
static void
nexthops_are_listed_by_id_with_their_users(void **state)
{
	struct rig *g = rig_new();
	struct msg_query q = {.kind = QUERY_NEXTHOPS, .max = 1};
	json_t *rows;

	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, false);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.2", 11);
	rig_hop(g, 9, "192.0.2.9", 12);
	rig_hop(g, 10, "192.0.2.10", 13);
	rig_group(g, 20, 2, 7, 1, 8, 1);
	rig_group(g, 21, 2, 7, 1, 30, 1);
	rig_route(g, "10.1.0.0/16", 20);
	rig_route(g, "10.2.0.0/16", 7);
	rig_route(g, "10.3.0.0/16", 7);
	rig_go(g);
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(json_array_size(rows), 5);
	assert_int_equal(num(rows, 0, "nexthop_id"), 7);
	assert_string_equal(str(rows, 0, "via"), "192.0.2.1");
	assert_string_equal(str(rows, 0, "state"), "forwarding");
	assert_int_equal(num(rows, 0, "groups"), 2);
	assert_int_equal(num(rows, 0, "routes"), 2);
	assert_true(num(rows, 0, "adj") != 0);
	assert_string_equal(str(rows, 1, "state"), "forwarding");
	assert_int_equal(num(rows, 1, "groups"), 1);
	assert_int_equal(num(rows, 1, "routes"), 0);
	assert_string_equal(str(rows, 2, "state"), "down");
	assert_string_equal(str(rows, 3, "state"), "down");
	assert_string_equal(str(rows, 3, "dev"), "if13");
	assert_int_equal(num(rows, 4, "nexthop_id"), 30);
	assert_string_equal(str(rows, 4, "state"), "unresolved");
	json_decref(rows);
	/* A deleted group, and a group with other members now, no longer use next hop 7. */
	rig_group(g, 20, 1, 8, 1);
	rig_nh_del(g, 21);
	rig_link(g, 12, 2, true);
	rig_go(g);
	q = (struct msg_query){.kind = QUERY_NEXTHOPS, .max = 10};
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(num(rows, 0, "groups"), 0);
	assert_int_equal(num(rows, 1, "groups"), 1);
	assert_string_equal(str(rows, 2, "state"), "no-adjacency");
	json_decref(rows);
	rig_free(g);
}

static void
the_summary_has_every_key(void **state)
{
	static const char *const key[] = {
		"routes4",       "routes6",     "zebra4",          "zebra6",
		"other_tables",  "unresolved",  "groups",          "nexthop_ids",
		"adjacencies",   "generation",  "stale",           "sweeps",
		"swept_routes",  "commits",     "reclaim_pending", "rib_bytes",
		"sweep_max_s",   "stale",       "sweep_restart_s", "sweep_quiet_s",
		"kernel_routes", "kernel_swept"};
	static const char *const fib_key[] = {"routes",     "nodes",      "leaves",
					      "bytes",      "free_bytes", "retired_bytes",
					      "radix_bytes"};
	struct rig *g = rig_two_ports();
	json_t *row;

	rig_session(g, 100);
	rig_route(g, "10.1.0.0/16", 20);
	rig_go(g);
	row = rig_summary(g);
	for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		assert_true(json_is_integer(json_object_get(row, key[i])));
	for (size_t i = 0; i < sizeof(fib_key) / sizeof(fib_key[0]); i++) {
		assert_true(json_is_integer(
			json_object_get(json_object_get(row, "fib4"), fib_key[i])));
		assert_true(json_is_integer(
			json_object_get(json_object_get(row, "fib6"), fib_key[i])));
	}
	assert_true(json_is_true(json_object_get(row, "replaying")));
	assert_true(json_is_null(json_object_get(row, "sweep_in_s")));
	json_decref(row);
	assert_int_equal(rig_summary_int(g, "zebra4"), 1);
	assert_int_equal(rig_summary_int(g, "routes4"), 7);
	assert_int_equal(rig_summary_int(g, "generation"), 1);

	rig_session(g, 100);
	rig_hop(g, 7, NULL, 11);
	rig_go(g);
	row = rig_summary(g);
	assert_true(json_is_real(json_object_get(row, "sweep_in_s")));
	json_decref(row);
	rig_free(g);
}

/*
 * Return how often the rows for an audit have the prefix. Store the last row that has it.
 */
static unsigned int
packed_rows_of(const json_t *rows, const char *prefix, const json_t **last)
{
	const json_t *row, *at;
	unsigned int n = 0;
	size_t i, j;

	json_array_foreach (rows, i, row)
		json_array_foreach (json_object_get(row, "prefixes"), j, at)
			if (strcmp(json_string_value(at), prefix) == 0) {
				n++;
				if (last != NULL)
					*last = row;
			}
	return n;
}

/*
 * The rows for an audit have each route of every table once, with the same keys as in the
 * row of `show routes`. If a route of the kernel hides zebra's route, they have both.
 */
static void
packed_rows_have_every_route_once(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_query q = {.kind = QUERY_ROUTES, .of = OF_EACH, .max = 100};
	const json_t *row = NULL;
	unsigned int slices;
	json_t *rows;

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	for (unsigned int i = 0; i < 5000; i++)
		rig_route(g, rig_net(i), 1 + i % 2);
	rig_route_in(g, 100, "198.51.100.0/24", "192.0.2.1", 11);
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_kernel_route(g, KERNEL_ROUTE, rig_net(7), 0, "192.0.2.1", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:7::/48", 0, "2001:db8:1::1", 11)->src =
		rig_prefix("2001:db8:8::/48");
	rig_settle(g);
	rows = rig_ask(g, &q, &slices);

	assert_true(slices > 2);
	assert_true(json_array_size(rows) < 100);
	for (unsigned int i = 0; i < 5000; i++)
		assert_int_equal(packed_rows_of(rows, rig_net(i), NULL), i == 7 ? 2 : 1);
	assert_int_equal(packed_rows_of(rows, rig_net(8), &row), 1);
	assert_string_equal(json_string_value(json_object_get(row, "source")), "zebra");
	assert_true(json_is_false(json_object_get(row, "hidden")));
	assert_null(json_object_get(row, "prefix"));
	assert_int_equal(json_array_size(json_object_get(row, "nexthops")), 1);
	assert_int_equal(packed_rows_of(rows, "203.0.113.0/24", &row), 1);
	assert_string_equal(json_string_value(json_object_get(row, "state")), "blackhole");
	assert_int_equal(packed_rows_of(rows, "198.51.100.0/24", &row), 1);
	assert_int_equal(json_integer_value(json_object_get(row, "table")), 100);
	assert_int_equal(packed_rows_of(rows, "2001:db8:7::/48", &row), 1);
	assert_string_equal(json_string_value(json_object_get(row, "from")),
			    "2001:db8:8::/48");
	assert_int_equal(packed_rows_of(rows, "192.0.2.126/32", NULL), 1);
	json_decref(rows);
	q.family = 6;
	rows = rig_ask(g, &q, NULL);
	assert_int_equal(packed_rows_of(rows, rig_net(8), NULL), 0);
	assert_int_equal(packed_rows_of(rows, "2001:db8:7::/48", NULL), 1);
	json_decref(rows);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_row_has_all_its_keys),
		cmocka_unit_test(states_and_sources_are_told_apart),
		cmocka_unit_test(exact_and_longest_match_answer_one_row_or_none),
		cmocka_unit_test(routes_come_in_prefix_order_then_other_tables_in_slices),
		cmocka_unit_test(a_family_may_be_chosen_and_other_tables_left_out),
		cmocka_unit_test(a_listing_survives_a_table_that_changes_under_it),
		cmocka_unit_test(packed_rows_have_every_route_once),
		cmocka_unit_test(groups_are_listed_with_their_routes),
		cmocka_unit_test(a_group_is_absent_with_a_member_of_its_groups),
		cmocka_unit_test(nexthops_are_listed_by_id_with_their_users),
		cmocka_unit_test(the_summary_has_every_key),
	};

	return cmocka_run_group_tests_name("rib query", tests, NULL, NULL);
}
