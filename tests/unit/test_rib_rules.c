/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of the kernel as lists for forwarders: which lists are published, which FIBs
 * they have, which interfaces they concern, and what becomes of the FIBs when rules go.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <linux/fib_rules.h>

#include "fib/rules.h"

static struct rule list[1200];
static uint32_t n_list;

/* Append a rule for all packets. */
static struct rule *
add(uint32_t pref, uint8_t action, uint32_t table)
{
	struct rule *rule = &list[n_list++];

	*rule = (struct rule){.pref = pref,
			      .action = action,
			      .table = table,
			      .suppress = -1,
			      .suppress_group = RULE_NO_GROUP};
	return rule;
}

static struct rule *
lookup(uint32_t pref, uint32_t table)
{
	return add(pref, FR_ACT_TO_TBL, table);
}

/*
 * Send rib the list of rules: the default rules of the kernel, and the rules that the test
 * has added.
 */
static void
tell(struct rig *g, uint8_t family)
{
	struct msg_rules *m;
	uint32_t n;

	lookup(32766, RT_TABLE_MAIN);
	lookup(32767, RT_TABLE_DEFAULT);
	n = n_list + 1;
	m = msg_new(MSG_RULES, sizeof(*m) + n * sizeof(m->rule[0]));
	m->family = family;
	m->n = n;
	m->rule[0] = (struct rule){.action = FR_ACT_TO_TBL,
				   .table = RT_TABLE_LOCAL,
				   .suppress = -1,
				   .suppress_group = RULE_NO_GROUP};
	for (uint32_t i = 0; i < n_list; i++) {
		uint32_t at = i + 1;

		for (; m->rule[at - 1].pref > list[i].pref; at--)
			m->rule[at] = m->rule[at - 1];
		m->rule[at] = list[i];
	}
	for (uint32_t i = 0; i < n; i++)
		m->rule[i].family = m->rule[i].src.family = m->rule[i].dst.family = family;
	n_list = 0;
	rib_on_msg(g->rib, &m->m);
	rig_settle(g);
}

static void
route(struct rig *g, enum kernel_event_kind kind, uint32_t table, const char *prefix,
      const char *gw, uint32_t ifindex)
{
	rig_kernel_route(g, kind, prefix, 0, gw, ifindex)->route.table = table;
}

static void
route_from(struct rig *g, enum kernel_event_kind kind, const char *prefix, const char *src,
	   const char *gw, uint32_t ifindex)
{
	rig_kernel_route(g, kind, prefix, 1024, gw, ifindex)->src = rig_prefix(src);
}

/* Return the path of a packet from the port 11 in a VRF by the published list. */
static const char *
seen_in(const struct rig *g, uint16_t vrf, const char *src, const char *dst)
{
	static char text[80];
	struct fib_iface in = {.ifindex = 11, .rules4 = true, .rules6 = true};
	struct prefix s = rig_prefix(src), d = rig_prefix(dst);
	unsigned int octets = s.family == 4 ? 4 : 16, at = s.family == 4 ? 12 : 8;
	uint8_t ip[64] = {s.family == 4 ? 0x45 : 0x60};

	memcpy(ip + at, s.addr.octet, octets);
	memcpy(ip + at + octets, d.addr.octet, octets);
	rig_path_text(g, fib_resolve_packet(g->fib, &in, vrf, s.family, ip, sizeof(ip)),
		      text, sizeof(text));
	return text;
}

static const char *
seen(const struct rig *g, const char *src, const char *dst)
{
	return seen_in(g, 0, src, dst);
}

static void
assert_in_red(const struct rig *g, uint8_t family, const char *want4, const char *want6)
{
	if (family == 4)
		assert_string_equal(seen_in(g, 1, "192.0.2.9", "198.51.100.9"), want4);
	else
		assert_string_equal(seen_in(g, 1, "2001:db8:1::9", "2001:db8:100::1"),
				    want6);
}

#define assert_from(g, src, dst, want) assert_string_equal(seen(g, src, dst), want)

/* Two ports with a route of main by port 11 and a route of table 100 by port 12. */
static struct rig *
rig_with_table(void)
{
	struct rig *g = rig_two_ports();

	route(g, KERNEL_ROUTE, 254, "198.51.100.0/24", "192.0.2.1", 11);
	route(g, KERNEL_ROUTE, 254, "2001:db8:100::/48", "2001:db8:1::1", 11);
	route(g, KERNEL_ROUTE, 100, "198.51.100.0/24", "192.0.2.129", 12);
	route(g, KERNEL_ROUTE, 100, "2001:db8:100::/48", "2001:db8:2::1", 12);
	rig_settle(g);
	return g;
}

static void
the_rules_of_every_kernel_publish_nothing(void **state)
{
	struct rig *g = rig_with_table();

	tell(g, 4);
	tell(g, 6);
	lookup(1000, 0)->l3mdev = true;
	tell(g, 4);
	assert_null(fib_rules(g->fib, 4));
	assert_null(fib_rules(g->fib, 6));
	assert_null(g->rule_ifaces);
	assert_int_equal(g->rib->vrfs.n, 0);
	rig_free(g);
}

/* Send rib a list without any rule. */
static void
tell_none(struct rig *g, uint8_t family)
{
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m));

	m->family = family;
	rib_on_msg(g->rib, &m->m);
	rig_settle(g);
}

/* Linux then has no route, not even to its own addresses: ENETUNREACH. */
static void
without_any_rule_there_is_no_route(void **state)
{
	struct rig *g = rig_with_table();

	for (unsigned int v = 0; v < 2; v++) {
		uint8_t family = v ? 6 : 4;
		const char *src = v ? "2001:db8:1::9" : "192.0.2.9";
		const char *dst = v ? "2001:db8:100::1" : "198.51.100.9";

		assert_null(fib_rules(g->fib, family)); /* not read yet */
		assert_from(g, src, dst, v ? "2001:db8:1::1@1" : "192.0.2.1@1");
		tell_none(g, family);
		assert_non_null(fib_rules(g->fib, family));
		assert_true(g->rule_ifaces->of[v].all);
		assert_from(g, src, dst, "none");
		assert_from(g, src, v ? "2001:db8:1::" : "192.0.2.126", "none");
		tell(g, family);
		assert_null(fib_rules(g->fib, family));
		assert_false(g->rule_ifaces->of[v].all);
		tell_none(g, family);
		assert_from(g, src, dst, "none");
	}
	rig_free(g);
}

/* `ip rule flush` removes the rule of VRFs. Linux then looks up main alone. */
static void
vrfs_need_their_rule_before_main(void **state)
{
	struct rig *g = rig_with_table();

	rig_vrf(g, 1, 100, "red");
	for (unsigned int v = 0; v < 2; v++) {
		uint8_t family = v ? 6 : 4;

		lookup(1000, 0)->l3mdev = true;
		tell(g, family);
		assert_null(fib_rules(g->fib, family));
		tell(g, family);
		assert_non_null(fib_rules(g->fib, family));
		assert_true(g->rule_ifaces->of[v].all);
		assert_in_red(g, family, "192.0.2.1@1", "2001:db8:1::1@1");
		lookup(40000, 0)->l3mdev = true;
		tell(g, family);
		assert_in_red(g, family, "192.0.2.1@1", "2001:db8:1::1@1");
		lookup(1000, 0)->l3mdev = true;
		tell(g, family);
		assert_null(fib_rules(g->fib, family));
		assert_in_red(g, family, "192.0.2.129@2", "2001:db8:2::1@2");
		tell(g, family);
	}
	rig_vrf(g, 1, 100, NULL);
	rig_settle(g);
	assert_null(fib_rules(g->fib, 4));
	assert_null(fib_rules(g->fib, 6));
	rig_free(g);
}

static void
a_table_of_a_rule_gets_a_fib_and_loses_it(void **state)
{
	struct rig *g = rig_with_table();

	lookup(100, 100)->src = rig_prefix("192.0.2.0/28");
	tell(g, 4);
	assert_non_null(fib_rules(g->fib, 4));
	assert_null(fib_rules(g->fib, 6));
	assert_int_equal(g->rib->vrfs.n_for_rules, 1);
	assert_true(g->rule_ifaces->of[0].all);
	assert_false(g->rule_ifaces->of[1].all);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	assert_from(g, "192.0.2.99", "198.51.100.9", "192.0.2.1@1");
	assert_from(g, "192.0.2.9", "192.0.2.126", "local");
	route(g, KERNEL_ROUTE_DEL, 100, "198.51.100.0/24", "192.0.2.129", 12);
	rig_settle(g);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
	tell(g, 4);
	assert_null(fib_rules(g->fib, 4));
	assert_false(g->rule_ifaces->of[0].all);
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	rig_free(g);
}

static void
a_rule_that_goes_at_once_leaves_no_fib(void **state)
{
	struct rig *g = rig_with_table();

	for (unsigned int i = 0; i < 3000; i++) {
		lookup(100, 1000 + i);
		tell(g, 4);
		assert_int_equal(g->rib->vrfs.n_for_rules, 1);
	}
	tell(g, 4);
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	rig_free(g);
}

static void
only_the_named_interface_is_concerned(void **state)
{
	struct rig *g = rig_with_table();
	char name[16];

	memcpy(name, rib_link_find(&g->rib->links, 12)->name, sizeof(name));
	memcpy(lookup(100, 100)->iif, name, sizeof(name));
	tell(g, 4);
	assert_false(g->rule_ifaces->of[0].all);
	assert_int_equal(g->rule_ifaces->of[0].n, 1);
	assert_int_equal(g->rule_ifaces->of[0].ifindex[0], 12);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
	strcpy(lookup(100, 100)->iif, "absent");
	tell(g, 4);
	assert_false(g->rule_ifaces->of[0].all);
	assert_int_equal(g->rule_ifaces->of[0].n, 0);
	strcpy(lookup(100, 100)->iif, "absent");
	list[0].invert = true;
	tell(g, 4);
	assert_true(g->rule_ifaces->of[0].all);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	rig_free(g);
}

static void
a_selector_that_no_packet_has_concerns_nothing(void **state)
{
	struct rig *g = rig_with_table();

	lookup(100, 100)->lacks = RULE_LACKS_MARK;
	strcpy(lookup(101, 100)->oif, "wan0");
	add(102, FR_ACT_NOP, 0);
	tell(g, 4);
	assert_null(fib_rules(g->fib, 4));
	assert_null(g->rule_ifaces);
	rig_free(g);
}

static void
table_default_counts_once_it_has_a_route(void **state)
{
	struct rig *g = rig_with_table();

	tell(g, 4);
	route(g, KERNEL_ROUTE, 253, "203.0.113.0/24", "192.0.2.129", 12);
	rig_settle(g);
	assert_true(g->rule_ifaces->of[0].all);
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.129@2");
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
	route(g, KERNEL_ROUTE_DEL, 253, "203.0.113.0/24", "192.0.2.129", 12);
	rig_settle(g);
	assert_null(fib_rules(g->fib, 4));
	rig_free(g);
}

static void
short_prefixes_are_suppressed(void **state)
{
	struct rig *g = rig_with_table();

	route(g, KERNEL_ROUTE, 254, "0.0.0.0/0", "192.0.2.2", 11);
	route(g, KERNEL_ROUTE, 100, "0.0.0.0/0", "192.0.2.129", 12);
	lookup(100, 254)->suppress = 0;
	lookup(101, 100);
	tell(g, 4);
	assert_int_equal(g->rib->vrfs.views.n, 1);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.129@2");
	route(g, KERNEL_ROUTE, 254, "203.0.113.0/25", "192.0.2.3", 11);
	rig_settle(g);
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.3@1");
	lookup(100, 254)->suppress = 24;
	lookup(101, 100);
	tell(g, 4);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.3@1");
	tell(g, 4);
	assert_int_equal(g->rib->vrfs.views.n, 0);
	rig_free(g);
}

/* As in Linux, a rule suppresses only routes that forward. */
static void
errors_are_not_suppressed(void **state)
{
	static const struct {
		uint8_t type;
		const char *seen;
	} error[] = {{RTN_BLACKHOLE, "blackhole"},
		     {RTN_UNREACHABLE, "unreachable"},
		     {RTN_PROHIBIT, "prohibit"}};
	struct rig *g = rig_with_table();
	struct kernel_event *ev;

	for (unsigned int i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		for (unsigned int v = 0; v < 2; v++) {
			rig_kernel_type(g, KERNEL_ROUTE, v ? "::/0" : "0.0.0.0/0", 10,
					error[i].type)
				->route.table = 100;
			lookup(100, 100)->suppress = v ? 48 : 24;
			tell(g, v ? 6 : 4);
		}
		assert_from(g, "192.0.2.9", "203.0.113.9", error[i].seen);
		assert_from(g, "2001:db8:1::9", "2001:db8:900::1", error[i].seen);
		/* The longest prefix counts, although it is suppressed. */
		assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
		assert_from(g, "2001:db8:1::9", "2001:db8:100::1", "2001:db8:1::1@1");
		for (unsigned int v = 0; v < 2; v++)
			rig_kernel_type(g, KERNEL_ROUTE_DEL, v ? "::/0" : "0.0.0.0/0", 10,
					error[i].type)
				->route.table = 100;
	}
	/* The object of a short route becomes a blackhole. */
	rig_kernel_nexthop(g, 5, "192.0.2.3", 11);
	rig_kernel_by_id(g, KERNEL_ROUTE, "0.0.0.0/0", 10, 5)->route.table = 100;
	rig_settle(g);
	assert_from(g, "192.0.2.9", "203.0.113.9", "none");
	ev = rig_kernel(g, KERNEL_NEXTHOP);
	ev->route.nhid = 5;
	ev->route.blackhole = true;
	rig_settle(g);
	assert_from(g, "192.0.2.9", "203.0.113.9", "blackhole");
	rig_free(g);
}

/* As in Linux, where the table of a packet without a VRF is 0, which stands for main. */
static void
an_inverted_rule_of_vrfs_is_for_main(void **state)
{
	struct rig *g = rig_with_table();
	struct rule *rule = lookup(100, 0);

	rule->l3mdev = rule->invert = true;
	add(101, FR_ACT_PROHIBIT, 0);
	tell(g, 4);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.1@1");
	assert_from(g, "192.0.2.9", "203.0.113.9", "prohibit");
	rig_free(g);
}

static void
table_default_counts_for_a_source(void **state)
{
	struct rig *g = rig_with_table();

	tell(g, 6);
	route_from(g, KERNEL_ROUTE, "2001:db8:900::/48", "2001:db8:9::/48", "2001:db8:2::9",
		   12);
	g->kernel_batch->ev[0].route.table = RT_TABLE_DEFAULT;
	rig_settle(g);
	assert_from(g, "2001:db8:9::1", "2001:db8:900::1", "2001:db8:2::9@2");
	assert_from(g, "2001:db8:8::1", "2001:db8:900::1", "none");
	route_from(g, KERNEL_ROUTE_DEL, "2001:db8:900::/48", "2001:db8:9::/48",
		   "2001:db8:2::9", 12);
	g->kernel_batch->ev[0].route.table = RT_TABLE_DEFAULT;
	rig_settle(g);
	assert_null(fib_rules(g->fib, 6));
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	rig_free(g);
}

static void
goto_finds_the_number_of_its_target(void **state)
{
	struct rig *g = rig_with_table();

	add(100, FR_ACT_GOTO, 0)->target = 300;
	add(200, FR_ACT_PROHIBIT, 0);
	lookup(300, 100);
	tell(g, 4);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	add(100, FR_ACT_GOTO, 0)->target = 301; /* no such rule */
	add(200, FR_ACT_PROHIBIT, 0);
	lookup(300, 100);
	tell(g, 4);
	assert_from(g, "192.0.2.9", "198.51.100.9", "prohibit");
	rig_free(g);
}

static void
a_vrf_takes_the_table_of_a_rule_and_gives_it_back(void **state)
{
	struct rig *g = rig_with_table();

	lookup(100, 100);
	tell(g, 4);
	rig_vrf(g, 1, 100, "red");
	rig_settle(g);
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	assert_seen_in(g, 1, "198.51.100.9", "192.0.2.129@2");
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	rig_vrf(g, 1, 100, NULL);
	rig_settle(g);
	assert_int_equal(g->rib->vrfs.n_for_rules, 1);
	assert_from(g, "192.0.2.9", "198.51.100.9", "192.0.2.129@2");
	rig_free(g);
}

static void
source_specific_routes_count_for_their_sources(void **state)
{
	struct rig *g = rig_with_table();

	tell(g, 6);
	route_from(g, KERNEL_ROUTE, "2001:db8:100::/48", "2001:db8:9::/48", "2001:db8:2::9",
		   12);
	rig_settle(g);
	assert_true(g->rule_ifaces->of[1].all);
	assert_from(g, "2001:db8:9::1", "2001:db8:100::1", "2001:db8:2::9@2");
	/* As in Linux, the plain route of the same prefix is not for other sources. */
	assert_from(g, "2001:db8:8::1", "2001:db8:100::1", "none");
	route_from(g, KERNEL_ROUTE, "2001:db8:100::/48", "2001:db8:9:1::/64",
		   "2001:db8:1::9", 11);
	route(g, KERNEL_ROUTE, 254, "2001:db8:100:1::/64", "2001:db8:1::7", 11);
	rig_settle(g);
	assert_from(g, "2001:db8:9::1", "2001:db8:100::1", "2001:db8:2::9@2");
	assert_from(g, "2001:db8:9:1::1", "2001:db8:100::1", "2001:db8:1::9@1");
	assert_from(g, "2001:db8:9:1::1", "2001:db8:100:1::1", "2001:db8:1::7@1");
	assert_from(g, "2001:db8:8::1", "2001:db8:100:1::1", "2001:db8:1::7@1");
	route_from(g, KERNEL_ROUTE_DEL, "2001:db8:100::/48", "2001:db8:9:1::/64",
		   "2001:db8:1::9", 11);
	rig_settle(g);
	assert_from(g, "2001:db8:9:1::1", "2001:db8:100::1", "2001:db8:2::9@2");
	route_from(g, KERNEL_ROUTE_DEL, "2001:db8:100::/48", "2001:db8:9::/48",
		   "2001:db8:2::9", 12);
	rig_settle(g);
	assert_null(fib_rules(g->fib, 6));
	assert_int_equal(g->rib->vrfs.n_for_rules, 0);
	assert_int_equal(g->rib->sources.n, 0);
	assert_seen(g, "2001:db8:100::1", "2001:db8:1::1@1");
	rig_free(g);
}

static void
a_default_route_for_a_source_leaves_the_plain_one(void **state)
{
	struct rig *g = rig_with_table();

	tell(g, 6);
	route(g, KERNEL_ROUTE, 254, "::/0", "2001:db8:1::1", 11);
	route_from(g, KERNEL_ROUTE, "::/0", "2001:db8:9::/48", "2001:db8:2::9", 12);
	rig_settle(g);
	assert_from(g, "2001:db8:9::1", "2001:db8:900::1", "2001:db8:2::9@2");
	assert_from(g, "2001:db8:8::1", "2001:db8:900::1", "2001:db8:1::1@1");
	assert_from(g, "2001:db8:9::1", "2001:db8:100::1", "2001:db8:1::1@1");
	rig_free(g);
}

/* Add or delete a route in table local. */
static void
local(struct rig *g, enum kernel_event_kind kind, const char *prefix, uint8_t rtm_type)
{
	rig_kernel_type(g, kind, prefix, 0, rtm_type)->is_local = true;
}

/* Linux looks up table local before the routes of main that have a source or a TOS. */
static void
a_local_prefix_hides_routes_for_a_source_or_a_tos(void **state)
{
	struct rig *g = rig_with_table();

	lookup(100, 100);
	tell(g, 4);
	lookup(100, 100)->src = rig_prefix("2001:db8:77::/48");
	tell(g, 6);
	route_from(g, KERNEL_ROUTE, "2001:db8:200:1::/64", "2001:db8:9::/48",
		   "2001:db8:2::9", 12);
	route_from(g, KERNEL_ROUTE, "2001:db8:200::/48", "2001:db8:9::/48", "2001:db8:2::9",
		   12);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.128/25", 0, "192.0.2.129", 12)->src =
		tos_condition(0);
	rig_settle(g);
	assert_from(g, "2001:db8:9::1", "2001:db8:200:1::1", "2001:db8:2::9@2");
	assert_from(g, "192.0.2.9", "203.0.113.200", "192.0.2.129@2");
	for (int turn = 0; turn < 3; turn++) {
		local(g, KERNEL_ROUTE, "2001:db8:200::/48", RTN_LOCAL);
		local(g, KERNEL_ROUTE, "203.0.113.0/24", RTN_LOCAL);
		rig_settle(g);
		assert_from(g, "2001:db8:9::1", "2001:db8:200:1::1", "local");
		assert_from(g, "2001:db8:9::1", "2001:db8:200:2::1", "local");
		assert_from(g, "2001:db8:8::1", "2001:db8:200:1::1", "local");
		assert_from(g, "192.0.2.9", "203.0.113.200", "local");
		local(g, KERNEL_ROUTE_DEL, "2001:db8:200::/48", RTN_LOCAL);
		local(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", RTN_LOCAL);
		rig_settle(g);
		assert_from(g, "2001:db8:9::1", "2001:db8:200:1::1", "2001:db8:2::9@2");
		assert_from(g, "2001:db8:9::1", "2001:db8:200:2::1", "2001:db8:2::9@2");
		assert_from(g, "2001:db8:8::1", "2001:db8:200:1::1", "none");
		assert_from(g, "192.0.2.9", "203.0.113.200", "192.0.2.129@2");
	}
	rig_free(g);
}

/* Once the rules of IPv4 were changed, routes of table local of all types precede main. */
static void
all_types_of_table_local_hide_routes(void **state)
{
	static const struct {
		uint8_t type;
		const char *before, *after;
	} of[] = {{RTN_LOCAL, "local", "local"},
		  {RTN_BLACKHOLE, "blackhole", "blackhole"},
		  {RTN_UNREACHABLE, "unreachable", "unreachable"},
		  {RTN_PROHIBIT, "prohibit", "prohibit"},
		  {RTN_BROADCAST, "bcast", "bcast"},
		  {RTN_THROW, "throw", "192.0.2.1@1"}};
	struct rig *g = rig_two_ports();
	struct kernel_event *of_tos;

	rig_kernel_route(g, KERNEL_ROUTE, "203.0.112.0/20", 0, "192.0.2.1", 11);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.128/25", 0, "192.0.2.129", 12);
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		local(g, KERNEL_ROUTE, "203.0.113.0/24", of[i].type);
		rig_settle(g);
		assert_seen(g, "203.0.113.9", of[i].before);
		assert_seen(g, "203.0.113.200", "192.0.2.129@2");
		local(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", of[i].type);
	}
	local(g, KERNEL_ROUTE, "203.0.113.0/24", RTN_THROW);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.114.0/24", 0, "192.0.2.129", 12)->src =
		tos_condition(0);
	of_tos = rig_kernel_type(g, KERNEL_ROUTE, "203.0.114.0/24", 0, RTN_THROW);
	of_tos->is_local = true;
	of_tos->src = tos_condition(0);
	rig_settle(g);
	lookup(100, 100)->iif[0] = 'x';
	tell(g, 4);
	assert_seen(g, "203.0.113.9", "192.0.2.1@1");
	assert_from(g, "192.0.2.9", "203.0.114.9", "192.0.2.129@2");
	local(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", RTN_THROW);
	tell(g, 4);
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		bool throws = of[i].type == RTN_THROW;

		local(g, KERNEL_ROUTE, "203.0.113.0/24", of[i].type);
		rig_settle(g);
		assert_seen(g, "203.0.113.9", of[i].after);
		assert_seen(g, "203.0.113.200", throws ? "192.0.2.129@2" : of[i].after);
		local(g, KERNEL_ROUTE, "203.0.113.192/26", RTN_THROW);
		rig_settle(g);
		assert_seen(g, "203.0.113.130", throws ? "192.0.2.129@2" : of[i].after);
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.224/27", 0, "192.0.2.129", 12);
		rig_settle(g);
		assert_seen(g, "203.0.113.230", "192.0.2.129@2");
		rig_kernel_route(g, KERNEL_ROUTE_DEL, "203.0.113.224/27", 0, "192.0.2.129",
				 12);
		local(g, KERNEL_ROUTE_DEL, "203.0.113.192/26", RTN_THROW);
		local(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", of[i].type);
		rig_settle(g);
		assert_seen(g, "203.0.113.200", "192.0.2.129@2");
	}
	rig_free(g);
}

/*
 * A route of table local for the prefix of a hidden route counts, although it has the
 * content of the hidden one.
 */
static void
a_local_route_with_the_content_of_a_hidden_one_counts(void **state)
{
	struct rig *g = rig_two_ports();

	lookup(100, 100)->iif[0] = 'x';
	tell(g, 4);
	local(g, KERNEL_ROUTE, "203.0.112.0/20", RTN_BLACKHOLE);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.129", 12);
	rig_settle(g);
	assert_seen(g, "203.0.113.9", "blackhole");
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.129", 12)
		->is_local = true;
	rig_settle(g);
	assert_seen(g, "203.0.113.9", "192.0.2.129@2");
	rig_kernel_route(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", 0, "192.0.2.129", 12)
		->is_local = true;
	rig_settle(g);
	assert_seen(g, "203.0.113.9", "blackhole");
	rig_free(g);
}

/* In a view, too, a route of table local counts before a route with a TOS. */
static void
a_local_route_counts_before_one_of_a_tos(void **state)
{
	struct rig *g = rig_two_ports();

	tell(g, 4);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.129", 12);
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.1", 11)->src =
		tos_condition(0);
	rig_settle(g);
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.1@1");
	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.129", 12)
		->is_local = true;
	rig_settle(g);
	assert_from(g, "192.0.2.9", "203.0.113.9", "192.0.2.129@2");
	rig_free(g);
}

/*
 * A route of type throw in table local leaves its prefix to main. Then the longest covering
 * route of main counts, even if a shorter prefix of table local decides for the addresses
 * around.
 */
static void
a_throw_of_table_local_leaves_its_prefix_to_main(void **state)
{
	static const char dst[] = "203.0.113.200", around[] = "203.0.113.9";

	for (unsigned int order = 0; order < 2; order++) {
		struct rig *g = rig_two_ports();

		lookup(100, 100)->src = rig_prefix("192.0.2.77/32");
		lookup(200, RT_TABLE_MAIN)->suppress = 0;
		route(g, KERNEL_ROUTE, 100, "198.51.100.0/24", "192.0.2.129", 12);
		tell(g, 4);
		if (order == 0)
			local(g, KERNEL_ROUTE, "203.0.113.192/26", RTN_THROW);
		local(g, KERNEL_ROUTE, "203.0.112.0/20", RTN_BLACKHOLE);
		if (order == 1)
			local(g, KERNEL_ROUTE, "203.0.113.192/26", RTN_THROW);
		rig_settle(g);
		assert_seen(g, dst, "throw");
		assert_seen(g, around, "blackhole");
		rig_kernel_route(g, KERNEL_ROUTE, "0.0.0.0/0", 0, "192.0.2.1", 11);
		rig_settle(g);
		assert_seen(g, dst, "192.0.2.1@1");
		assert_from(g, "192.0.2.9", dst, "192.0.2.1@1");
		assert_seen(g, around, "blackhole");
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.0.0/16", 0, "192.0.2.129", 12);
		/*
		 * The hiding prefix gets another route of main. The hidden routes stay
		 * hidden.
		 */
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.112.0/20", 0, "192.0.2.1", 11);
		rig_settle(g);
		assert_seen(g, dst, "192.0.2.1@1");
		rig_kernel_route(g, KERNEL_ROUTE_DEL, "203.0.112.0/20", 0, "192.0.2.1", 11);
		rig_settle(g);
		assert_seen(g, dst, "192.0.2.129@2");
		assert_from(g, "192.0.2.9", dst, "192.0.2.129@2");
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.0/24", 0, "192.0.2.1", 11);
		rig_settle(g);
		assert_seen(g, dst, "192.0.2.1@1"); /* its own prefix is hidden */
		assert_seen(g, around, "blackhole");
		rig_kernel_route(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", 0, "192.0.2.1", 11);
		local(g, order == 0 ? KERNEL_ROUTE_DEL : KERNEL_ROUTE, "203.0.113.192/26",
		      RTN_THROW);
		local(g, order == 1 ? KERNEL_ROUTE_DEL : KERNEL_ROUTE, "203.0.112.0/20",
		      RTN_BLACKHOLE);
		rig_settle(g);
		assert_seen(g, dst, order == 0 ? "blackhole" : "192.0.2.129@2");
		assert_from(g, "192.0.2.9", dst,
			    order == 0 ? "blackhole" : "192.0.2.129@2");
		rig_free(g);
	}
}

/* A prefix of table local costs a walk over the routes inside it, not over all routes. */
static void
a_local_prefix_costs_what_it_hides(void **state)
{
	struct rig *g = rig_two_ports();

	rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.128/25", 0, "192.0.2.129", 12);
	rig_settle(g);
	local(g, KERNEL_ROUTE, "203.0.113.0/24", RTN_LOCAL);
	rig_settle(g);
	local(g, KERNEL_ROUTE_DEL, "203.0.113.0/24", RTN_LOCAL);
	rig_flush_batch(g);
	assert_false(g->rib->resync.due); /* Linux has one trie for both tables */
	lookup(100, 100)->iif[0] = 'x';
	tell(g, 4);
	for (int turn = 0; turn < 2; turn++) {
		local(g, turn == 0 ? KERNEL_ROUTE : KERNEL_ROUTE_DEL, "203.0.113.0/24",
		      RTN_LOCAL);
		rig_flush_batch(g);
		assert_true(g->rib->resync.due);
		assert_int_equal(g->rib->resync.n_inside, 1);
		assert_false(g->rib->resync.all);
		rig_settle(g);
		assert_false(g->rib->resync.due);
		assert_seen(g, "203.0.113.200", turn == 0 ? "local" : "192.0.2.129@2");
	}
	rig_free(g);
}

/* Delete and add again a route of table local that hides 10,000 routes, and run a round. */
static void
flap(struct rig *g)
{
	local(g, KERNEL_ROUTE_DEL, "10.0.0.0/8", RTN_LOCAL);
	local(g, KERNEL_ROUTE, "10.0.0.0/8", RTN_LOCAL);
	rig_flush_batch(g);
	rib_round(g->rib);
}

static struct msg_vrf *
vrf_new(uint16_t number, uint32_t table, const char *name)
{
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	m->number = number;
	m->table = table;
	snprintf(m->name, sizeof(m->name), "%s", name);
	return m;
}

/*
 * A route of table local that comes and goes in each round delays the other walks little.
 */
static void
a_flapping_local_prefix_starves_nothing(void **state)
{
	for (int views = 0; views < 2; views++) {
		struct rig *g = rig_two_ports();

		rig_session(g, 100);
		rig_hop(g, 7, "192.0.2.1", 11);
		rig_routes(g, 10000, 7);
		rig_kernel_route(g, KERNEL_ROUTE, "203.0.113.128/25", 0, "192.0.2.129", 12);
		route(g, KERNEL_ROUTE, 300, "198.51.100.0/24", "192.0.2.129", 12);
		lookup(100, RT_TABLE_MAIN)->suppress = views == 0 ? -1 : 0;
		lookup(101, 100)->iif[0] = 'x';
		tell(g, 4);
		assert_seen(g, "10.39.15.1", "192.0.2.1@1");
		flap(g);
		local(g, KERNEL_ROUTE, "203.0.113.0/24", RTN_LOCAL);
		flap(g);
		rib_on_msg(g->rib, &vrf_new(3, 300, "green")->m);
		for (unsigned int round = 0; round < 24; round++)
			flap(g);
		assert_true(g->rib->resync.due);
		assert_seen(g, "10.0.0.1", "local");
		assert_seen(g, "10.39.15.1", "local"); /* the last of the 10,000 routes */
		assert_seen(g, "203.0.113.200", "local");
		assert_seen_in(g, 3, "198.51.100.1", "192.0.2.129@2");
		rig_settle(g);
		assert_false(g->rib->resync.due);
		assert_seen(g, "10.39.15.1", "local");
		rig_free(g);
	}
}

/*
 * A rule whose FIB has no room is not obeyed, and the list says so. All others are obeyed.
 */
static void
more_fibs_than_numbers_are_refused_by_name(void **state)
{
	struct rig *g = rig_with_table();
	uint64_t refused = table_state(TABLE_rule_fibs).refused;
	json_t *rows;

	for (uint32_t i = 0; i < FIB_RULE_TABLES; i++)
		lookup(2 + i, 1000 + i);
	tell(g, 4);
	assert_int_equal(table_state(TABLE_rule_fibs).used, FIB_RULE_TABLES);
	assert_int_equal(table_state(TABLE_rule_fibs).refused, refused);
	lookup(1, 100);
	add(1, FR_ACT_PROHIBIT, 0)->src = rig_prefix("192.0.2.77/32");
	for (uint32_t i = 0; i < FIB_RULE_TABLES; i++)
		lookup(2 + i, 1000 + i);
	tell(g, 4);
	assert_int_equal(table_state(TABLE_rule_fibs).used, FIB_RULE_TABLES);
	assert_int_equal(table_state(TABLE_rule_fibs).refused, refused + 1);
	assert_from(g, "192.0.2.9", "198.51.100.1", "192.0.2.1@1");
	assert_from(g, "192.0.2.77", "198.51.100.1", "prohibit");
	rows = rig_ask(g, &(struct msg_query){.kind = QUERY_RULES, .max = 2000}, NULL);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
			json_is_true(json_object_get(json_array_get(rows, i), "obeyed")),
			i != 1);
	json_decref(rows);
	lookup(1, 100);
	for (uint32_t i = 1; i < FIB_RULE_TABLES; i++)
		lookup(2 + i, 1000 + i);
	tell(g, 4);
	rig_later(g, 2); /* the number of the FIB that has no rule any longer is free */
	assert_from(g, "192.0.2.9", "198.51.100.1", "192.0.2.129@2");
	tell(g, 4);
	assert_from(g, "192.0.2.9", "198.51.100.1", "192.0.2.1@1");
	assert_int_equal(table_state(TABLE_rule_fibs).used, 0);
	rig_free(g);
}

static void
rows_name_what_a_rule_lacks(void **state)
{
	struct rig *g = rig_with_table();
	json_t *rows;

	lookup(100, 100)->lacks = RULE_LACKS_MARK;
	tell(g, 4);
	rows = rig_ask(g, &(struct msg_query){.kind = QUERY_RULES, .max = 2}, NULL);
	assert_int_equal(json_array_size(rows), 4);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "lacks")),
		"fwmark");
	assert_true(json_is_false(json_object_get(json_array_get(rows, 1), "obeyed")));
	assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "obeyed")));
	json_decref(rows);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_of_every_kernel_publish_nothing),
		cmocka_unit_test(without_any_rule_there_is_no_route),
		cmocka_unit_test(vrfs_need_their_rule_before_main),
		cmocka_unit_test(a_table_of_a_rule_gets_a_fib_and_loses_it),
		cmocka_unit_test(a_rule_that_goes_at_once_leaves_no_fib),
		cmocka_unit_test(only_the_named_interface_is_concerned),
		cmocka_unit_test(a_selector_that_no_packet_has_concerns_nothing),
		cmocka_unit_test(table_default_counts_once_it_has_a_route),
		cmocka_unit_test(short_prefixes_are_suppressed),
		cmocka_unit_test(errors_are_not_suppressed),
		cmocka_unit_test(an_inverted_rule_of_vrfs_is_for_main),
		cmocka_unit_test(table_default_counts_for_a_source),
		cmocka_unit_test(goto_finds_the_number_of_its_target),
		cmocka_unit_test(a_vrf_takes_the_table_of_a_rule_and_gives_it_back),
		cmocka_unit_test(source_specific_routes_count_for_their_sources),
		cmocka_unit_test(a_default_route_for_a_source_leaves_the_plain_one),
		cmocka_unit_test(a_local_prefix_hides_routes_for_a_source_or_a_tos),
		cmocka_unit_test(all_types_of_table_local_hide_routes),
		cmocka_unit_test(a_local_route_with_the_content_of_a_hidden_one_counts),
		cmocka_unit_test(a_local_route_counts_before_one_of_a_tos),
		cmocka_unit_test(a_throw_of_table_local_leaves_its_prefix_to_main),
		cmocka_unit_test(a_local_prefix_costs_what_it_hides),
		cmocka_unit_test(a_flapping_local_prefix_starves_nothing),
		cmocka_unit_test(more_fibs_than_numbers_are_refused_by_name),
		cmocka_unit_test(rows_name_what_a_rule_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
