/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The audit finds exactly the differences that the test makes. A repair removes them.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <linux/fib_rules.h>
#include <stdio.h>

#include "rib/vrf.h"

/* Return all rows of an audit. The last row has the numbers of checked objects. */
static json_t *
audit(struct rig *g, bool repair)
{
	struct msg_query q = {.kind = QUERY_AUDIT, .repair = repair, .max = 16};

	return rig_ask(g, &q, NULL);
}

static json_int_t
num(const json_t *row, const char *key)
{
	assert_true(json_is_integer(json_object_get(row, key)));
	return json_integer_value(json_object_get(row, key));
}

static json_int_t
n_different(struct rig *g, bool repair)
{
	json_t *rows = audit(g, repair);
	const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
	json_int_t n = num(last, "differences");

	assert_string_equal(json_string_value(json_object_get(last, "what")), "checked");
	assert_int_equal(json_array_size(rows), n + 1);
	json_decref(rows);
	return n;
}

static void
break_it(struct rig *g, enum query_break what, const char *prefix)
{
	struct msg_query q = {.kind = QUERY_BREAK, .breaking = (uint8_t)what, .max = 1};

	assert_int_equal(prefix_parse(prefix, &q.prefix, NULL), 0);
	json_decref(rig_ask(g, &q, NULL));
	rig_settle(g);
}

/*
 * Make a rig with nested routes of both families: by ids, by groups, by inline next hops,
 * and without a next hop.
 */
static struct rig *
with_routes(void)
{
	struct rig *g = rig_two_ports();
	char text[48];

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_hop(g, 3, "2001:db8:1::1", 11);
	rig_group(g, 20, 2, 1, 3, 2, 1);
	for (unsigned int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.0/%u", i % 7, i / 7 % 256,
			 16 + i % 17);
		rig_route(g, text, i % 3 == 0 ? 20 : 1 + i % 2);
		snprintf(text, sizeof(text), "2001:db8:%x::/%u", i, 32 + i % 97);
		rig_route(g, text, 3);
	}
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.2", 11);
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_route_type(g, "0.0.0.0/0", RTN_UNREACHABLE);
	rig_route(g, "::/0", 3);
	rig_route(g, "255.255.255.255/32", 1);
	rig_settle(g);
	return g;
}

static void
a_sound_fib_has_no_differences(void **state)
{
	struct rig *g = with_routes();
	json_t *rows = audit(g, false);
	const json_t *last = json_array_get(rows, 0);

	assert_int_equal(json_array_size(rows), 1);
	assert_int_equal(num(last, "differences"), 0);
	assert_int_equal(num(last, "prefixes"), g->rib->tables.main.n);
	assert_int_equal(num(last, "lookups"), 5 * g->rib->tables.main.n);
	assert_true(num(last, "groups") >= 6);
	json_decref(rows);
	rig_free(g);
}

static void
a_prefix_that_the_fib_lost_is_found_and_mended(void **state)
{
	struct rig *g = with_routes();

	assert_seen(g, "198.51.100.7", "192.0.2.2@1");
	break_it(g, BREAK_TABLE, "198.51.100.0/24");
	assert_seen(g, "198.51.100.7", "unreachable");
	assert_int_equal(n_different(g, false), 1);
	assert_int_equal(n_different(g, true), 1);
	rig_settle(g);
	assert_seen(g, "198.51.100.7", "192.0.2.2@1");
	assert_int_equal(n_different(g, false), 0);
	rig_free(g);
}

static void
next_hops_that_are_not_the_ribs_are_found_and_mended(void **state)
{
	struct rig *g = with_routes();

	/* A single next hop, and a group. */
	break_it(g, BREAK_GROUP, "198.51.100.0/24");
	break_it(g, BREAK_GROUP, "10.0.0.0/16");
	assert_seen(g, "198.51.100.7", "blackhole");
	assert_int_equal(n_different(g, false), 2);
	assert_int_equal(n_different(g, true), 2);
	rig_settle(g);
	assert_seen(g, "198.51.100.7", "192.0.2.2@1");
	assert_int_equal(n_different(g, false), 0);
	rig_free(g);
}

static void
a_lost_route_is_not_the_fibs_fault(void **state)
{
	struct rig *g = with_routes();

	break_it(g, BREAK_ROUTE, "198.51.100.0/24");
	assert_seen(g, "198.51.100.7", "unreachable");
	assert_int_equal(n_different(g, false), 0);
	break_it(g, BREAK_ROUTE, "198.51.100.0/24"); /* the route no longer exists */
	break_it(g, BREAK_TABLE, "192.0.2.0/30");
	rig_free(g);
}

static void
more_differences_than_a_slice_holds_are_all_listed(void **state)
{
	struct rig *g = with_routes();
	unsigned int n = 0;
	char text[48];

	for (unsigned int i = 0; i < 300; i++) {
		if (i % 97 < 16)
			continue; /* several i give the same prefix */
		snprintf(text, sizeof(text), "2001:db8:%x::/%u", i, 32 + i % 97);
		break_it(g, BREAK_TABLE, text);
		n++;
	}
	assert_int_equal(n_different(g, true), n);
	rig_settle(g);
	assert_int_equal(n_different(g, false), 0);
	rig_free(g);
}

static void
a_prefix_that_no_route_has_is_found_and_mended(void **state)
{
	struct rig *g = with_routes();
	struct prefix p = rig_prefix("198.18.0.0/15"), q = rig_prefix("2001:db8:f000::/36");

	poptrie_add(g->fib->copy[0].pt4, p.addr.octet, p.len, 1);
	poptrie_add(g->fib->copy[0].pt6, q.addr.octet, q.len, 1);
	g->rib->pending.staged[0] = g->rib->pending.staged[1] = true;
	rig_settle(g);
	assert_int_equal(n_different(g, false), 2);
	assert_int_equal(n_different(g, true), 2);
	rig_settle(g);
	assert_int_equal(n_different(g, false), 0);
	assert_int_equal(poptrie_exact(g->fib->copy[0].pt4, p.addr.octet, p.len),
			 POPTRIE_NONE);
	rig_free(g);
}

/* Give rib the rules `from all lookup 100` and `lookup main suppress_prefixlength 0`. */
static void
tell_rules(struct rig *g, uint8_t family)
{
	static const struct {
		uint32_t table;
		int32_t suppress;
	} rule[] = {
		{RT_TABLE_LOCAL, -1}, {100, -1}, {RT_TABLE_MAIN, 0}, {RT_TABLE_MAIN, -1}};
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m) + 4 * sizeof(m->rule[0]));

	m->family = family;
	m->n = 4;
	for (uint32_t i = 0; i < m->n; i++) {
		m->rule[i] = (struct rule){.pref = i,
					   .action = FR_ACT_TO_TBL,
					   .table = rule[i].table,
					   .suppress = rule[i].suppress,
					   .suppress_group = RULE_NO_GROUP,
					   .family = family};
		m->rule[i].src.family = m->rule[i].dst.family = family;
	}
	rib_on_msg(g->rib, &m->m);
	rig_settle(g);
}

/*
 * Return a FIB that rules use. `view` 0: all of the table; 4, 6: a view of the table, for
 * sources with a prefix of `src_len` bits (0: for all).
 */
static struct vrf *
fib_of_rules(struct rig *g, uint32_t table, uint8_t view, uint8_t src_len)
{
	for (unsigned int i = FIB_VRF_MAX; i < FIB_NUMBERS; i++) {
		struct vrf *vrf = g->rib->vrfs.v[i];

		if (vrf != NULL && vrf->fib->table == table && vrf->view == view &&
		    vrf->src.len == src_len)
			return vrf;
	}
	fail();
	return NULL;
}

/*
 * The audit finds a lost prefix and a foreign prefix in the FIB of a table that rules name,
 * in a view without short prefixes, and in a view for a source.
 */
static void
the_fibs_of_rules_are_compared(void **state)
{
	static const struct {
		uint32_t table;
		uint8_t view, src_len;
		const char *prefix;
	} at[] = {
		{100, 0, 0, "198.51.100.0/24"},    {100, 0, 0, "2001:db8:100::/48"},
		{254, 4, 0, "203.0.113.0/24"},     {254, 6, 0, "2001:db8:200::/48"},
		{254, 6, 48, "2001:db8:200::/48"},
	};
	struct rig *g = with_routes();
	struct kernel_event *ev;

	for (unsigned int i = 0; i < 2; i++) {
		ev = rig_kernel_route(g, KERNEL_ROUTE, at[i].prefix, 0,
				      i == 0 ? "192.0.2.129" : "2001:db8:2::1", 12);
		ev->route.table = 100;
	}
	ev = rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:200::/48", 1024, "2001:db8:2::9",
			      12);
	ev->src = rig_prefix("2001:db8:9::/48");
	rig_kernel_route(g, KERNEL_ROUTE, "2001:db8:200::/48", 1024, "2001:db8:1::1", 11);
	rig_settle(g);
	tell_rules(g, 4);
	tell_rules(g, 6);
	assert_int_equal(n_different(g, false), 0);
	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct prefix p = rig_prefix(at[i].prefix),
			      foreign = rig_prefix(p.family == 4 ? "198.18.0.0/15"
								 : "2001:db8:f000::/36");
		struct vrf *vrf = fib_of_rules(g, at[i].table, at[i].view, at[i].src_len);
		struct poptrie *pt = fib_trie(&vrf->fib->tries, p.family);

		assert_int_equal(poptrie_del(pt, p.addr.octet, p.len), 0);
		assert_int_equal(poptrie_add(pt, foreign.addr.octet, foreign.len, 1), 0);
		vrf_staged(g->rib, vrf, p.family);
		rig_settle(g);
		assert_true(n_different(g, false) >= 2);
		assert_true(n_different(g, true) >= 2);
		rig_settle(g);
		assert_int_equal(n_different(g, false), 0);
	}
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_fib_has_no_differences),
		cmocka_unit_test(a_prefix_that_the_fib_lost_is_found_and_mended),
		cmocka_unit_test(next_hops_that_are_not_the_ribs_are_found_and_mended),
		cmocka_unit_test(a_lost_route_is_not_the_fibs_fault),
		cmocka_unit_test(more_differences_than_a_slice_holds_are_all_listed),
		cmocka_unit_test(a_prefix_that_no_route_has_is_found_and_mended),
		cmocka_unit_test(the_fibs_of_rules_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
