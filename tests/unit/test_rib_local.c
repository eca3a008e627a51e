/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table local in the FIBs of VRFs: its prefixes precede the routes of each VRF while its rule
 * precedes the rule of VRFs.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <linux/fib_rules.h>
#include <stdio.h>

#include "fib/rules.h"
#include "log_said.h"

#define IPV4_ADDR "10.9.0.1/24"
#define IPV6_ADDR "2001:db8:9::1/64"

/* Send rib the rules of table local, of VRFs and of main. */
static void
tell(struct rig *g, uint8_t family, uint32_t local_pref)
{
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m) + 3 * sizeof(m->rule[0]));
	struct rule of[3] = {{.pref = local_pref, .table = RT_TABLE_LOCAL},
			     {.pref = 1000, .table = RT_TABLE_UNSPEC, .l3mdev = true},
			     {.pref = 32766, .table = RT_TABLE_MAIN}};

	m->family = family;
	m->n = 3;
	for (uint32_t i = 0; i < 3; i++) {
		of[i].action = FR_ACT_TO_TBL;
		of[i].suppress = -1;
		of[i].suppress_group = RULE_NO_GROUP;
		of[i].family = of[i].src.family = of[i].dst.family = family;
	}
	m->rule[0] = of[local_pref < 1000 ? 0 : 1];
	m->rule[1] = of[local_pref < 1000 ? 1 : 0];
	m->rule[2] = of[2];
	rib_on_msg(g->rib, &m->m);
	rig_settle(g);
}

/* Add or delete a route in table local. */
static void
local(struct rig *g, enum kernel_event_kind kind, const char *prefix, uint8_t rtm_type)
{
	rig_kernel_type(g, kind, prefix, 0, rtm_type)->is_local = true;
}

/* Two VRFs with the kernel's rules. Red has default routes and host routes by port 11. */
static struct rig *
rig_with_routes(void)
{
	struct rig *g = rig_two_vrfs();

	tell(g, 4, 0);
	tell(g, 6, 0);
	rig_route_in(g, 100, "0.0.0.0/0", "192.0.2.9", 11);
	rig_route_in(g, 100, "10.9.0.1/32", "192.0.2.7", 11);
	rig_route_in(g, 100, "::/0", "2001:db8::9", 11);
	rig_route_in(g, 100, "2001:db8:9::1/128", "2001:db8::7", 11);
	rig_settle(g);
	return g;
}

static void
address(struct rig *g, bool gone)
{
	rig_addr(g, 13, IPV4_ADDR, gone);
	rig_addr(g, 13, IPV6_ADDR, gone);
	rig_settle(g);
}

static json_int_t
differences(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_AUDIT, .max = 100};
	json_t *rows = rig_ask(g, &q, NULL);
	json_int_t n = json_integer_value(json_object_get(
		json_array_get(rows, json_array_size(rows) - 1), "differences"));

	json_decref(rows);
	return n;
}

static void
assert_vrf_decides(struct rig *g)
{
	assert_seen_in(g, 1, "10.9.0.1", "192.0.2.7@1");
	assert_seen_in(g, 1, "10.9.0.255", "192.0.2.9@1");
	assert_seen_in(g, 1, "2001:db8:9::1", "2001:db8::7@1");
	assert_int_equal(differences(g), 0);
}

static void
assert_local_decides(struct rig *g)
{
	assert_seen_in(g, 1, "10.9.0.1", "local");
	assert_seen_in(g, 1, "10.9.0.255", "bcast");
	/* The subnet is in main, which comes after the VRF. */
	assert_seen_in(g, 1, "10.9.0.7", "192.0.2.9@1");
	assert_seen_in(g, 1, "2001:db8:9::1", "local");
	assert_seen_in(g, 1, "2001:db8:9::7", "2001:db8::9@1");
	/* An address of a VRF is none of another. */
	assert_seen_in(g, 2, "192.0.2.1", "local");
	assert_int_equal(differences(g), 0);
}

static void
an_address_in_no_vrf_precedes_the_routes_of_each_vrf_while_it_exists(void **state)
{
	struct rig *g = rig_with_routes();

	assert_vrf_decides(g);
	for (int turn = 0; turn < 2; turn++) {
		address(g, false);
		assert_local_decides(g);
		address(g, true);
		assert_vrf_decides(g);
	}
	rig_free(g);
}

/* The route of the VRF waits behind that of table local, whichever came first. */
static void
a_route_of_the_vrf_for_a_local_prefix_may_come_and_go(void **state)
{
	struct rig *g = rig_with_routes();

	address(g, false);
	for (int turn = 0; turn < 2; turn++) {
		rig_del(g, "10.9.0.1/32");
		g->batch->ev[g->batch->n - 1].table = 100;
		rig_settle(g);
		assert_local_decides(g);
		rig_route_in(g, 100, "10.9.0.1/32", "192.0.2.7", 11);
		rig_settle(g);
		assert_local_decides(g);
	}
	address(g, true);
	assert_vrf_decides(g);
	rig_free(g);
}

static void
the_vrf_precedes_while_the_rule_of_table_local_is_behind_its_rule(void **state)
{
	struct rig *g = rig_with_routes();

	address(g, false);
	for (int turn = 0; turn < 2; turn++) {
		tell(g, 4, 32765);
		tell(g, 6, 32765);
		assert_vrf_decides(g);
		assert_seen_in(g, 2, "10.9.0.1", "local"); /* by main */
		address(g, true);
		address(g, false);
		assert_vrf_decides(g);
		tell(g, 4, 0);
		tell(g, 6, 0);
		assert_local_decides(g);
	}
	/* Each family has its own rules. */
	tell(g, 4, 32765);
	assert_seen_in(g, 1, "10.9.0.1", "192.0.2.7@1");
	assert_seen_in(g, 1, "2001:db8:9::1", "local");
	rig_free(g);
}

/* A match in table local ends the search, although the VRF has a longer prefix. */
static void
a_short_prefix_of_table_local_hides_longer_routes_of_a_vrf(void **state)
{
	struct rig *g = rig_with_routes();

	rig_route_in(g, 100, "10.8.1.0/24", "192.0.2.7", 11);
	rig_settle(g);
	for (int turn = 0; turn < 2; turn++) {
		local(g, KERNEL_ROUTE, "10.8.0.0/16", RTN_BLACKHOLE);
		rig_settle(g);
		assert_seen_in(g, 1, "10.8.1.1", "blackhole");
		assert_seen_in(g, 1, "10.8.2.1", "blackhole");
		assert_seen_in(g, 2, "10.8.1.1", "blackhole");
		assert_int_equal(differences(g), 0);
		/* A route of type throw leaves its prefix to the rules that follow. */
		local(g, KERNEL_ROUTE, "10.8.1.128/25", RTN_THROW);
		rig_settle(g);
		assert_seen_in(g, 1, "10.8.1.1", "blackhole");
		assert_seen_in(g, 1, "10.8.1.129", "192.0.2.7@1");
		assert_seen_in(g, 2, "10.8.1.129", "throw");
		rig_del(g, "10.8.1.0/24");
		g->batch->ev[g->batch->n - 1].table = 100;
		rig_settle(g);
		assert_seen_in(g, 1, "10.8.1.129", "192.0.2.9@1");
		assert_int_equal(differences(g), 0);
		rig_route_in(g, 100, "10.8.1.0/24", "192.0.2.7", 11);
		local(g, KERNEL_ROUTE_DEL, "10.8.0.0/16", RTN_BLACKHOLE);
		rig_settle(g);
		assert_seen_in(g, 1, "10.8.1.1", "192.0.2.7@1");
		assert_seen_in(g, 1, "10.8.1.129", "192.0.2.7@1");
		local(g, KERNEL_ROUTE_DEL, "10.8.1.128/25", RTN_THROW);
		rig_settle(g);
		assert_seen_in(g, 1, "10.8.1.129", "192.0.2.7@1");
		assert_seen_in(g, 1, "10.8.2.1", "192.0.2.9@1");
		assert_int_equal(differences(g), 0);
	}
	rig_free(g);
}

static void
a_new_vrf_has_the_prefixes_of_table_local_from_its_first_packet(void **state)
{
	struct rig *g = rig_with_routes();

	address(g, false);
	rig_route_in(g, 300, "10.9.0.1/32", "192.0.2.7", 13);
	rig_settle(g);
	rig_vrf(g, 3, 300, "green");
	assert_seen_in(g, 3, "10.9.0.1", "local");
	rig_vrf(g, 3, 300, NULL);
	rig_settle(g);
	address(g, true);
	rig_vrf(g, 3, 300, "green");
	rig_settle(g);
	assert_seen_in(g, 3, "10.9.0.1", "192.0.2.7@3");
	assert_int_equal(differences(g), 0);
	rig_free(g);
}

/* Packets of a TOS have a view of the VRF, which lacks the prefixes of table local. */
static void
a_local_address_precedes_the_routes_of_a_vrf_for_one_tos(void **state)
{
	struct rig *g = rig_with_routes();
	struct fib_iface in = {.ifindex = 11, .rules4 = true};
	uint8_t ip[64] = {0x45, [16] = 10, [17] = 9, [19] = 1};
	struct kernel_event *ev;
	char text[80];

	ev = rig_kernel_route(g, KERNEL_ROUTE, "10.9.0.1/32", 0, "192.0.2.5", 11);
	ev->route.table = 100;
	ev->src = tos_condition(0);
	rig_settle(g);
	rig_path_text(g, fib_resolve_packet(g->fib, &in, 1, 4, ip, sizeof(ip)), text,
		      sizeof(text));
	assert_string_equal(text, "192.0.2.5@1");
	address(g, false);
	rig_path_text(g, fib_resolve_packet(g->fib, &in, 1, 4, ip, sizeof(ip)), text,
		      sizeof(text));
	assert_string_equal(text, "local");
	rig_free(g);
}

/* Return true if rib reports that packets of VRFs do not use table local as in Linux. */
static bool
local_source_is_told(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_LINKS, .max = 100};
	json_t *rows, *row;
	bool told = false;
	size_t i;

	rig_settle(g);
	rows = rig_ask(g, &q, NULL);
	json_array_foreach (rows, i, row)
		told |= strcmp(json_string_value(json_object_get(row, "why")),
			       "local-source") == 0;
	json_decref(rows);
	return told;
}

/* Add or delete a route in table local, of `kind`, for packets from a source. */
static void
local_from(struct rig *g, enum kernel_event_kind kind, const char *prefix,
	   struct prefix src, uint8_t rtm_type)
{
	struct kernel_event *ev = rig_kernel_type(g, kind, prefix, 0, rtm_type);

	ev->is_local = true;
	ev->src = src;
}

/*
 * The plain route takes packets for which Linux goes on to the next rules: it is reported.
 */
static void
a_local_route_for_a_source_is_told_beside_vrfs(void **state)
{
	static const char *const net[] = {"10.9.7.0/24", "2001:db8:7::/48"};
	struct prefix src[] = {tos_condition(8), rig_prefix("2001:db8:e::/48")};
	static const uint8_t type[] = {RTN_THROW, RTN_BLACKHOLE};
	struct rig *g = rig_with_routes();

	for (unsigned int i = 0; i < 2; i++) {
		uint8_t family = i == 0 ? 4 : 6;

		local_from(g, KERNEL_ROUTE, net[i], src[i], type[i]);
		assert_false(local_source_is_told(g)); /* no route for all packets */
		local(g, KERNEL_ROUTE, net[i], RTN_BLACKHOLE);
		assert_true(local_source_is_told(g));
		tell(g, family, 2000); /* VRFs precede table local */
		assert_false(local_source_is_told(g));
		tell(g, family, 0);
		assert_true(local_source_is_told(g));
		local_from(g, KERNEL_ROUTE_DEL, net[i], src[i], type[i]);
		assert_false(local_source_is_told(g));
		/* An IPv4 route for one TOS that takes its packets is used as in Linux. */
		local_from(g, KERNEL_ROUTE, net[0], src[0], RTN_BLACKHOLE);
		assert_false(local_source_is_told(g));
	}
	local_from(g, KERNEL_ROUTE, net[1], src[1], RTN_THROW);
	assert_true(local_source_is_told(g));
	rig_vrf(g, 1, 100, NULL);
	rig_vrf(g, 2, 2000, NULL);
	assert_false(local_source_is_told(g));
	rig_free(g);
}

/* Assert the path of a packet with a TOS from port 11 in a VRF, or in none (0). */
static void
assert_tos(const struct rig *g, uint16_t vrf, uint8_t tos, const char *want)
{
	struct fib_iface in = {.ifindex = 11, .rules4 = true};
	uint8_t ip[64] = {0x45, tos, [16] = 10, [17] = 9, [19] = 1};
	char text[80];

	rig_path_text(g, fib_resolve_packet(g->fib, &in, vrf, 4, ip, sizeof(ip)), text,
		      sizeof(text));
	assert_string_equal(text, want);
}

static void
a_route_of_table_local_for_a_tos_precedes_that_for_all(void **state)
{
	struct rig *g = rig_with_routes();
	struct kernel_event *ev;

	rig_kernel_route(g, KERNEL_ROUTE, "10.9.0.0/24", 0, "192.0.2.5", 11);
	for (int turn = 0; turn < 2; turn++) {
		ev = rig_kernel_type(g, KERNEL_ROUTE, "10.9.0.1/32", 0, RTN_BLACKHOLE);
		ev->is_local = true;
		ev->src = tos_condition(8);
		rig_settle(g);
		for (uint16_t vrf = 0; vrf < 3; vrf++)
			assert_tos(g, vrf, 8, "blackhole");
		assert_tos(g, 0, 0, "192.0.2.5@1");
		assert_tos(g, 1, 0, "192.0.2.7@1");
		local(g, KERNEL_ROUTE, "10.9.0.1/32", RTN_UNREACHABLE);
		rig_settle(g);
		for (uint16_t vrf = 0; vrf < 3; vrf++) {
			assert_tos(g, vrf, 8, "blackhole");
			assert_tos(g, vrf, 0, "unreachable");
		}
		ev = rig_kernel_type(g, KERNEL_ROUTE_DEL, "10.9.0.1/32", 0, RTN_BLACKHOLE);
		ev->is_local = true;
		ev->src = tos_condition(8);
		rig_settle(g);
		assert_tos(g, 0, 8, "unreachable");
		local(g, KERNEL_ROUTE_DEL, "10.9.0.1/32", RTN_UNREACHABLE);
		rig_settle(g);
		assert_tos(g, 0, 8, "192.0.2.5@1");
	}
	rig_free(g);
}

/* Assert the table and the state of row `at` in a list of routes of red. */
static void
assert_row(struct rig *g, const char *dst, bool longest, size_t at, json_int_t table,
	   const char *state_name)
{
	struct msg_query q = {.kind = QUERY_ROUTES,
			      .vrf = 1,
			      .has_prefix = true,
			      .longest = longest,
			      .max = 10};
	json_t *rows, *row;

	assert_int_equal(prefix_parse(dst, &q.prefix, NULL), 0);
	rows = rig_ask(g, &q, NULL);
	row = json_array_get(rows, at);
	assert_int_equal(json_integer_value(json_object_get(row, "table")), table);
	assert_string_equal(json_string_value(json_object_get(row, "state")), state_name);
	json_decref(rows);
}

static void
lists_of_a_vrf_name_table_local_and_the_hidden_route(void **state)
{
	struct rig *g = rig_with_routes();

	assert_row(g, "10.9.0.1/32", true, 0, 100, "forwarding");
	address(g, false);
	assert_row(g, "10.9.0.1/32", true, 0, RT_TABLE_LOCAL, "local");
	assert_row(g, "10.9.0.1/32", false, 0, RT_TABLE_LOCAL, "local");
	assert_row(g, "10.9.0.1/32", false, 1, 100, "not-installed");
	assert_row(g, "10.9.0.255/32", true, 0, RT_TABLE_LOCAL, "broadcast");
	assert_row(g, "10.9.0.7/32", true, 0, 100, "forwarding");
	rig_free(g);
}

/* The audit finds a prefix of table local that a VRF lacks, or has for no reason. */
static void
the_audit_compares_table_local_in_vrfs_and_repairs_it(void **state)
{
	struct rig *g = rig_with_routes();
	struct vrf *blue = g->rib->vrfs.v[2];
	struct prefix p = rig_prefix("10.9.0.1/32"), no = rig_prefix("10.7.0.1/32");
	struct poptrie *pt = blue->fib->tries.pt4;
	struct msg_query repair = {.kind = QUERY_AUDIT, .max = 100, .repair = true};
	uint32_t slot;

	address(g, false);
	slot = poptrie_exact(pt, p.addr.octet, p.len);
	assert_int_not_equal(slot, 0);
	assert_int_equal(poptrie_del(pt, p.addr.octet, p.len), 0);
	assert_int_equal(poptrie_add(pt, no.addr.octet, no.len, slot), 0);
	vrf_staged(g->rib, blue, 4);
	rig_settle(g);
	assert_int_equal(differences(g), 2);
	json_decref(rig_ask(g, &repair, NULL));
	rig_settle(g);
	assert_int_equal(differences(g), 0);
	assert_seen_in(g, 2, "10.9.0.1", "local");
	assert_seen_in(g, 2, "10.7.0.1", "none");
	rig_free(g);
}

#define N_ADDRESSES 100u

/*
 * Add or delete the addresses from `from` up to, not including, `to`. They are in no VRF.
 */
static void
addresses(struct rig *g, unsigned int from, unsigned int to, bool gone)
{
	char text[32];

	for (unsigned int i = from; i < to; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1/32", 20 + i / 256, i % 256);
		rig_addr(g, 13, text, gone);
	}
}

/*
 * Assert that in a VRF only the addresses from `from` up to, not including, `to` are local.
 */
static void
assert_addresses(struct rig *g, uint16_t vrf, unsigned int from, unsigned int to)
{
	char text[32];

	for (unsigned int i = 0; i < N_ADDRESSES; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1", 20 + i / 256, i % 256);
		assert_seen_in(g, vrf, text, i >= from && i < to ? "local" : "none");
	}
}

/* The trie of red lacks memory, and that of blue does not. */
static void
a_vrf_without_memory_gets_what_table_local_has_when_there_is_some_again(void **state)
{
	struct rig *g = rig_new();
	unsigned int said = log_said("rib: out of memory in=local"),
		     again = log_said("rib: tries complete again");

	rig_vrf_poor(g, RIG_RED, "red");
	rig_vrf(g, RIG_BLUE, "blue");
	rig_link(g, 13, 3, true);
	tell(g, 4, 0);
	rig_no_memory = true;
	addresses(g, 0, N_ADDRESSES, false);
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_int_equal(g->rib->locals.n_left, N_ADDRESSES);
	assert_true(log_said("rib: out of memory in=local") > said);
	assert_addresses(g, 2, 0, N_ADDRESSES);
	/* Some addresses are deleted before the trie of red had them. */
	addresses(g, 60, N_ADDRESSES, true);
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_true(g->rib->locals.n_left > 0);
	rig_no_memory = false;
	rig_settle(g);
	assert_int_equal(g->rib->locals.n_left, 0);
	assert_int_equal(log_said("rib: tries complete again"), again + 1);
	assert_addresses(g, 1, 0, 60);
	assert_addresses(g, 2, 0, 60);
	assert_int_equal(differences(g), 0);
	rig_free(g);
}

/*
 * The prefixes that wait for memory are found by a hash, and a commit tries some of them
 * again: the work for an event does not depend on their number.
 */
static void
work_for_addresses_without_memory_is_linear(void **state)
{
	const unsigned int n = 6000;
	struct rig *g = rig_new();
	const struct rib_locals *l = &g->rib->locals;

	rig_vrf_poor(g, RIG_RED, "red");
	rig_link(g, 13, 3, true);
	tell(g, 4, 0);
	rig_no_memory = true;
	addresses(g, 0, n, false);
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_int_equal(l->n_left, n);
	assert_in_range(l->n_left_steps, n, 20 * n); /* a commit tries 16 */
	/* Each address is deleted and added again, while its prefix waits for memory. */
	addresses(g, 0, n, true);
	addresses(g, 0, n, false);
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_int_equal(l->n_left, n);
	assert_in_range(l->n_left_steps, n, 80 * n);
	rig_no_memory = false;
	rig_settle(g);
	assert_int_equal(l->n_left, 0);
	assert_int_equal(differences(g), 0);
	rig_free(g);
}

static void
a_new_vrf_without_memory_has_no_fib_until_it_has_all_of_table_local(void **state)
{
	struct rig *g = rig_new();

	rig_link(g, 13, 3, true);
	tell(g, 4, 0);
	addresses(g, 0, N_ADDRESSES, false);
	rig_settle(g);
	rig_vrf_poor(g, RIG_RED, "red");
	rig_no_memory = true;
	for (int turn = 0; turn < 3; turn++) {
		rib_round(g->rib);
		assert_true(g->rib->vrfs.lack_local);
		assert_null(fib_vrf(g->fib, 1));
	}
	rig_no_memory = false;
	rig_settle(g);
	assert_false(g->rib->vrfs.lack_local);
	assert_non_null(fib_vrf(g->fib, 1));
	assert_addresses(g, 1, 0, N_ADDRESSES);
	assert_int_equal(differences(g), 0);
	rig_free(g);
}

/* Return the octets of the tries of all VRFs. */
static size_t
trie_bytes(const struct rig *g, uint16_t n_vrfs)
{
	size_t bytes = 0;

	for (uint16_t vrf = 1; vrf <= n_vrfs; vrf++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			struct poptrie_stats st;

			poptrie_stats(fib_trie(&fib_vrf(g->fib, vrf)->tries, family), &st);
			bytes += st.direct_bytes + st.node_bytes + st.leaf_bytes +
				 st.radix_bytes;
		}
	return bytes;
}

static void
ten_addresses_in_no_vrf_cost_each_vrf_a_few_kib(void **state)
{
	struct rig *g = rig_new();
	const uint16_t n_vrfs = 256;
	size_t before, grown;
	char text[32];

	rig_link(g, 11, 1, true);
	for (uint16_t vrf = 1; vrf <= n_vrfs; vrf++) {
		snprintf(text, sizeof(text), "vrf%u", vrf);
		rig_vrf(g, vrf, 1000u + vrf, text);
		for (unsigned int i = 0; i < 10; i++) {
			snprintf(text, sizeof(text), "10.%u.%u.0/24", vrf & 255u, i);
			rig_route_in(g, 1000u + vrf, text, "192.0.2.9", 11);
		}
	}
	rig_go(g);
	before = trie_bytes(g, n_vrfs);
	for (unsigned int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "172.16.%u.1/24", i);
		rig_addr(g, 11, text, false);
	}
	rig_settle(g);
	assert_seen_in(g, 200, "172.16.9.1", "local");
	grown = (trie_bytes(g, n_vrfs) - before) / n_vrfs;
	print_message("%zu octets a vrf, of %zu\n", grown, before / n_vrfs);
	assert_true(grown < 8192);
	rig_free(g);
}

/* Readers that look up only the table of a VRF must know that its FIB has such a route. */
static void
readers_know_that_table_local_had_an_ipv6_route_that_refuses(void **state)
{
	static const uint8_t types[] = {RTN_UNREACHABLE, RTN_PROHIBIT, RTN_BLACKHOLE};

	for (unsigned int k = 0; k < sizeof(types); k++) {
		struct rig *g = rig_with_routes();

		address(g, false);
		local(g, KERNEL_ROUTE, "10.8.0.0/24", types[k]);
		rig_kernel_type(g, KERNEL_ROUTE, "2001:db8:7::/48", 0, types[k]);
		rig_settle(g);
		assert_false(g->fib->local_refuses6); /* IPv4, and table main */
		local(g, KERNEL_ROUTE, "2001:db8:8::/48", types[k]);
		rig_settle(g);
		assert_true(g->fib->local_refuses6);
		rig_free(g);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_address_in_no_vrf_precedes_the_routes_of_each_vrf_while_it_exists),
		cmocka_unit_test(a_route_of_the_vrf_for_a_local_prefix_may_come_and_go),
		cmocka_unit_test(
			the_vrf_precedes_while_the_rule_of_table_local_is_behind_its_rule),
		cmocka_unit_test(
			a_short_prefix_of_table_local_hides_longer_routes_of_a_vrf),
		cmocka_unit_test(
			a_new_vrf_has_the_prefixes_of_table_local_from_its_first_packet),
		cmocka_unit_test(a_local_address_precedes_the_routes_of_a_vrf_for_one_tos),
		cmocka_unit_test(a_route_of_table_local_for_a_tos_precedes_that_for_all),
		cmocka_unit_test(a_local_route_for_a_source_is_told_beside_vrfs),
		cmocka_unit_test(lists_of_a_vrf_name_table_local_and_the_hidden_route),
		cmocka_unit_test(the_audit_compares_table_local_in_vrfs_and_repairs_it),
		cmocka_unit_test(
			a_vrf_without_memory_gets_what_table_local_has_when_there_is_some_again),
		cmocka_unit_test(work_for_addresses_without_memory_is_linear),
		cmocka_unit_test(
			a_new_vrf_without_memory_has_no_fib_until_it_has_all_of_table_local),
		cmocka_unit_test(
			readers_know_that_table_local_had_an_ipv6_route_that_refuses),
		cmocka_unit_test(ten_addresses_in_no_vrf_cost_each_vrf_a_few_kib),
	};

	return cmocka_run_group_tests_name("rib_local", tests, NULL, NULL);
}
