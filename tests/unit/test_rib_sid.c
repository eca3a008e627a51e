/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End points of SRv6: the entries that forwarders see, when VRFs come and go, over a restart,
 * and what `show` tells.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c tests/fuzz/invariants.c
 */
#include "ckpt_rig.h"

#include <linux/fib_rules.h>
#include <unistd.h>

#include "base/inet.h"
#include "base/limits.h"
#include "fib/headend.h"
#include "fib/sid_entry.h"
#include "fib/sid_number.h"
#include "rib/kernel.h"
#include "rib/link_change.h"
#include "../fuzz/invariants.h"

/*
 * Announce a route to an end point, as zebra sends it: the interface is a dummy or the
 * VRF's. `sid` NULL: the end point is not supported.
 */
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

/* Check the entries of teach(). `vrf`: the VRF that has table 100, which fc00::1 uses. */
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
the_text_of_an_end_point_has_its_flavors(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_session(g, 100);
	sid_route(g, 1, "fc00::1/128",
		  &(struct srv6_sid){.action = SRV6_END,
				     .flavors = SRV6_PSP | SRV6_USD | SRV6_NEXT_CSID,
				     .block_bits = 32,
				     .node_bits = 16});
	sid_route(g, 2, "fc00::2/128",
		  &(struct srv6_sid){.action = SRV6_END_X,
				     .flavors = SRV6_USP,
				     .family = 6,
				     .hop = rig_prefix("fc00::9/128").addr});
	rig_settle(g);
	assert_string_equal(text_of(g, "fc00::1/128"), "End PSP USD NEXT-C-SID 32/16");
	assert_string_equal(text_of(g, "fc00::2/128"), "End.X USP fc00::9");
	rig_free(g);
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
			    "unsupported: more segments than a packet buffer has room for");
	rig_free(g);
}

/* The interface of End.X may come after its route, and go. */
static void
end_points_follow_the_interface_of_their_neighbor(void **state)
{
	struct rig *g = rig_two_ports();
	struct srv6_sid sid = {.action = SRV6_END_X, .family = 6, .oif = 31};
	const struct fib_sid *e;

	rig_session(g, 100);
	sid.hop = rig_prefix("fe80::9/128").addr;
	sid_route(g, 1, "fc00::1/128", &sid);
	sid.oif = 11;
	sid_route(g, 2, "fc00::2/128", &sid);
	sid.oif = 0;
	sid_route(g, 3, "fc00::3/128", &sid);
	rig_settle(g);
	assert_string_equal(text_of(g, "fc00::1/128"), "End.X fe80::9 oif 31");
	assert_string_equal(text_of(g, "fc00::3/128"), "End.X fe80::9");
	assert_int_equal(g->fib->sid[path_index(path_of(g, "fc00::3/128"))].ifidx, 0);
	assert_int_equal(g->fib->sid[path_index(path_of(g, "fc00::2/128"))].ifidx, 1);
	e = &g->fib->sid[path_index(path_of(g, "fc00::1/128"))];
	assert_int_equal(e->ifidx, SID_NO_IFACE);
	rib_must_be_sound(g);
	rig_link(g, 31, 7, true);
	rig_settle(g);
	assert_int_equal(e->ifidx, 7);
	rib_must_be_sound(g);
	rig_link(g, 31, 0, true); /* it is no interface of the dataplane any longer */
	rig_settle(g);
	assert_int_equal(e->ifidx, SID_NO_IFACE);
	assert_int_equal(g->fib->sid[path_index(path_of(g, "fc00::2/128"))].ifidx, 1);
	rib_must_be_sound(g);
	rig_free(g);
}

static const uint8_t segments[5][16] = {{0xfc, [15] = 5},
					{0xfc, [15] = 4},
					{0xfc, [15] = 3},
					{0xfc, [15] = 2},
					{0xfc, [15] = 1}};

/*
 * Announce a route, as zebra sends it, whose next hop is a headend with the last `n`
 * segments.
 */
static struct fpm_hop *
headend_route(struct rig *g, uint32_t id, const char *prefix, enum srv6_mode mode,
	      unsigned int n)
{
	struct fpm_hop *hop;

	rig_hop(g, id, "2001:db8:1::2", 11);
	hop = g->batch->ev[g->batch->n - 1].hops;
	hop->encap = HOP_SEG6;
	hop->n_labels = srv6_headend_pack(mode, segments[5 - n], n, hop->label);
	rig_route(g, prefix, id);
	return hop;
}

static fib_path
path4_of(const struct rig *g, const char *prefix)
{
	struct prefix p = rig_prefix(prefix);

	return fib_resolve(g->fib, 0, 4, &p.addr, 0);
}

/* Neither the gateway nor its link can make a headend down: the first segment decides. */
static void
headends_have_an_entry_whatever_the_gateway_is(void **state)
{
	struct rig *g = rig_two_ports();
	const struct fib_headend *h;
	fib_path path;

	rig_session(g, 100);
	headend_route(g, 1, "198.51.100.0/24", SRV6_ENCAP, 2);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "headend fc00::1");
	assert_string_equal(text_of(g, "198.51.100.0/24"), "H.Encaps fc00::1 fc00::2");
	assert_int_equal(g->rib->encaps.n_headends, 1);
	rig_link(g, 11, 1, false);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "headend fc00::1");
	rib_must_be_sound(g);
	/* Another prefix with the same segments by another gateway: the same entry. */
	path = path4_of(g, "198.51.100.1/32");
	h = &g->fib->headend[path_index(path)];
	assert_int_equal(h->bytes, 80);
	headend_route(g, 2, "203.0.113.0/24", SRV6_ENCAP, 2);
	rig_settle(g);
	assert_int_equal(path4_of(g, "203.0.113.1/32"), path);
	rib_must_be_sound(g);
	/* A label in place of the segments, and back: the entry is released. */
	rig_hop(g, 1, "192.0.2.2", 11);
	rig_hop(g, 2, "192.0.2.2", 11);
	rig_settle(g);
	assert_int_equal(g->rib->encaps.n, 0);
	assert_int_equal(g->rib->encaps.n_headends, 0);
	rib_must_be_sound(g);
	rig_free(g);
}

/* The kernel gets the packets of other modes, if routes.through-kernel is on. */
static void
other_headends_are_for_the_kernel(void **state)
{
	struct rig *g = rig_two_ports();
	struct fpm_hop *hop;

	rig_session(g, 100);
	hop = headend_route(g, 1, "198.51.100.0/24", SRV6_ENCAP, 1);
	hop->n_labels = 0;
	hop->refusal = SRV6_OTHER_MODE;
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "encap");
	assert_string_equal(text_of(g, "198.51.100.0/24"),
			    "unsupported: the mode of the headend is not supported");
	links_set_through_kernel(g->rib, true);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "kernel@0");
	assert_string_equal(text_of(g, "198.51.100.0/24"),
			    "by the kernel: the mode of the headend is not supported");
	rig_link(g, 11, 1, false);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "kernel@0");
	rib_must_be_sound(g);
	links_set_through_kernel(g->rib, false);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "encap");
	rig_free(g);
}

/* limits.encaps: the kernel gets the packets of a headend until an entry is free. */
static void
headends_without_an_entry_get_one_when_it_is_free(void **state)
{
	struct rig *g;

	rig_limit(TABLE_encaps, 1);
	g = rig_two_ports();
	links_set_through_kernel(g->rib, true);
	rig_session(g, 100);
	headend_route(g, 1, "198.51.100.0/24", SRV6_ENCAP, 1);
	headend_route(g, 2, "203.0.113.0/24", SRV6_ENCAP, 2);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "headend fc00::1");
	assert_seen(g, "203.0.113.1", "kernel@0");
	rib_must_be_sound(g);
	rig_link(g, 11, 1, false); /* the link's list lacks legs that wait for an entry */
	rig_link(g, 11, 1, true);
	rig_del(g, "198.51.100.0/24");
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "headend fc00::1");
	rig_del(g, "203.0.113.0/24");
	rig_settle(g);
	assert_int_equal(g->rib->encaps.n, 0);
	rib_must_be_sound(g);
	rig_free(g);
	rig_limits = NULL;
}

#define N_FLOWS 1024

static void
flows_see(const struct rig *g, fib_path path[N_FLOWS])
{
	struct prefix p = rig_prefix("192.88.99.1/32");

	for (uint32_t i = 0; i < N_FLOWS; i++)
		path[i] = fib_resolve(g->fib, 0, 4, &p.addr, i << 22);
}

/*
 * Three far ends are behind one gateway. One of them leaves, and comes back to its flows.
 */
static void
flows_stay_with_their_segments(void **state)
{
	fib_path before[N_FLOWS], without[N_FLOWS], after[N_FLOWS];
	struct rig *g = rig_two_ports();
	unsigned int n = 0;

	rig_session(g, 100);
	headend_route(g, 1, "198.51.100.0/26", SRV6_ENCAP, 1);
	headend_route(g, 2, "198.51.100.64/26", SRV6_ENCAP, 2);
	headend_route(g, 3, "198.51.100.128/26", SRV6_ENCAP, 3);
	rig_group(g, 9, 3, 1, 1, 2, 1, 3, 1);
	rig_route(g, "192.88.99.0/24", 9);
	rig_settle(g);
	flows_see(g, before);
	rig_group(g, 9, 2, 1, 1, 2, 1);
	rig_settle(g);
	flows_see(g, without);
	rig_group(g, 9, 3, 1, 1, 2, 1, 3, 1);
	rig_settle(g);
	flows_see(g, after);
	for (unsigned int i = 0; i < N_FLOWS; i++) {
		bool is_third = before[i] == path4_of(g, "198.51.100.129/32");

		n += is_third;
		assert_true(is_third ? without[i] != before[i] : without[i] == before[i]);
		assert_int_equal(after[i], before[i]);
	}
	assert_true(n > N_FLOWS * 32 / 100 && n < N_FLOWS * 35 / 100);
	rib_must_be_sound(g);
	rig_free(g);
}

/*
 * The checkpoint has no room for a headend that has both the longest list of segments and a
 * source of its own.
 */
static void
long_headends_are_the_kernels_after_a_restart(void **state)
{
	static const uint8_t source[16] = {0xfd, [15] = 9};
	struct rig *g = rig_begun(-1, NETNS);
	struct fpm_hop *hop;

	rig_session(g, 100);
	headend_route(g, 1, "198.51.100.0/24", SRV6_ENCAP, 3);
	hop = headend_route(g, 2, "203.0.113.0/24", SRV6_ENCAP_RED, 5);
	hop->n_labels = srv6_headend_add_source(hop->label, hop->n_labels, source);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "headend fc00::1");
	assert_string_equal(
		text_of(g, "203.0.113.0/24"),
		"H.Encaps.Red fc00::1 fc00::2 fc00::3 fc00::4 fc00::5 source fd00::9");
	g = rig_begun(ckpt_of_killed(g), NETNS);
	links_set_through_kernel(g->rib, true);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "headend fc00::1");
	assert_seen(g, "203.0.113.1", "kernel@0");
	rib_must_be_sound(g);
	rig_free(g);
}

/*
 * End.B6.Encaps has an entry for its policy, which a route with the same segments shares.
 */
static void
a_policy_is_a_headend(void **state)
{
	struct rig *g = rig_two_ports();
	struct srv6_sid sid = {.action = SRV6_END_B6_ENCAPS};
	uint32_t word[SRV6_WORDS_MAX];
	const struct fib_sid *e;

	rig_session(g, 100);
	sid.n_policy = srv6_headend_pack(SRV6_ENCAP, segments[1], 4, word);
	sid.policy = word;
	sid_route(g, 1, "fc00::1/128", &sid);
	headend_route(g, 2, "198.51.100.0/24", SRV6_ENCAP, 4);
	rig_settle(g);
	assert_string_equal(text_of(g, "fc00::1/128"),
			    "End.B6.Encaps H.Encaps fc00::1 fc00::2 fc00::3 fc00::4");
	e = &g->fib->sid[path_index(path_of(g, "fc00::1/128"))];
	assert_int_equal(e->action, SRV6_END_B6_ENCAPS);
	assert_true(path_is_headend(g->fib, e->policy));
	assert_int_equal(path4_of(g, "198.51.100.1/32"), e->policy);
	assert_int_equal(g->rib->encaps.n, 1);
	rib_must_be_sound(g);
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

static uint32_t
number_in(const struct rig *g, uint32_t table, const char *addr)
{
	struct prefix p = rig_prefix(addr);

	return fib_sid_number_find(g->fib, table, p.addr.octet);
}

static uint32_t
number_of(const struct rig *g, const char *addr)
{
	return number_in(g, RT_TABLE_MAIN, addr);
}

/* The entry is used again after the grace period, and so is the entry of its policy. */
static void
end_points_without_routes_give_their_entries_back(void **state)
{
	struct rig *g = rig_two_ports();
	struct srv6_sid b6 = {.action = SRV6_END_B6_ENCAPS};
	struct srv6_sid x = {.action = SRV6_END_X, .family = 6};
	uint32_t word[SRV6_WORDS_MAX];

	rig_session(g, 100);
	for (uint32_t i = 0; i < 3; i++) {
		x.oif = 31 + i;
		b6.n_policy = srv6_headend_pack(SRV6_ENCAP, segments[i], 1, word);
		b6.policy = word;
		sid_route(g, 1, "fc00::1/128", &b6);
		sid_route(g, 2, "fc00::2/128", &x);
		sid_route(g, 3, "fc00::3/128", &x);
		rig_settle(g);
		assert_int_equal(table_state(TABLE_end_points).used, 2);
		assert_int_equal(g->rib->encaps.n, 1);
		rib_must_be_sound(g);
		rig_del(g, "fc00::2/128");
		rig_settle(g);
		assert_int_equal(table_state(TABLE_end_points).used, 2);
		rig_del(g, "fc00::1/128");
		rig_del(g, "fc00::3/128");
		rig_settle(g);
		assert_int_equal(table_state(TABLE_end_points).used, 0);
		assert_int_equal(g->rib->encaps.n, 0);
		rib_must_be_sound(g);
	}
	assert_int_equal(g->rib->sids.high, 2);
	rig_free(g);
}

/* The kernel gets the packets of an end point until an entry is free. */
static void
end_points_without_an_entry_get_one_when_it_is_free(void **state)
{
	struct srv6_sid t = {.action = SRV6_END_T, .table = 200},
			end = {.action = SRV6_END};
	struct rig *g;

	rig_limit(TABLE_end_points, 1);
	g = rig_two_ports();
	links_set_through_kernel(g->rib, true);
	rig_session(g, 100);
	sid_route(g, 1, "fc00::1/128", &end);
	sid_route(g, 2, "fc00::2/128", &t);
	sid_route(g, 3, "fc00::3/128", &end);
	rig_settle(g);
	assert_int_equal(path_of(g, "fc00::3/128"), path_of(g, "fc00::1/128"));
	assert_int_equal(path_kind(path_of(g, "fc00::2/128")), PATH_KERNEL);
	assert_int_equal(table_state(TABLE_end_points).refused, 1);
	assert_int_equal(number_of(g, "fc00::2"), 0);
	rib_must_be_sound(g);
	rig_del(g, "fc00::1/128");
	rig_settle(g);
	assert_int_equal(path_kind(path_of(g, "fc00::2/128")), PATH_KERNEL);
	rig_del(g, "fc00::3/128");
	rig_settle(g);
	assert_int_equal(path_kind(path_of(g, "fc00::2/128")), PATH_LOCAL);
	assert_int_equal(g->fib->sid[path_index(path_of(g, "fc00::2/128"))].action,
			 SRV6_END_T);
	assert_int_not_equal(number_of(g, "fc00::2"), 0);
	assert_int_equal(table_state(TABLE_end_points).refused, 1);
	rib_must_be_sound(g);
	rig_free(g);
	rig_limits = NULL;
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
	assert_int_not_equal(number_of(g, "fc00::1"), number_of(g, "fc00::2"));
	assert_int_not_equal(number_of(g, "fc00::1"), 0);
	rig_vrf(g, RIG_RED, "red");
	rig_settle(g);
	entries_are_right(g, 1);
	rig_free(g);
}

static json_t *
sids_ask(struct rig *g, const char *prefix, bool longest)
{
	struct msg_query q = {.kind = QUERY_SIDS, .max = 10};

	q.has_prefix = prefix != NULL;
	q.longest = longest;
	if (prefix != NULL)
		q.prefix = rig_prefix(prefix);
	return rig_ask(g, &q, NULL);
}

/* Return the number of packets to the only SID that the query finds. */
static json_int_t
packets_of(struct rig *g, const char *prefix, bool longest)
{
	json_t *rows = sids_ask(g, prefix, longest);
	json_int_t n;

	assert_int_equal(json_array_size(rows), 1);
	n = json_integer_value(json_object_get(json_array_get(rows, 0), "packets"));
	json_decref(rows);
	return n;
}

/* Equal end points share an entry, but each SID has a number of its own. */
static void
each_sid_has_a_number(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct counters *c = counters_register("fwd-0");
	struct srv6_sid dt46 = {.action = SRV6_END_DT46, .table = 100};
	uint32_t one, four;
	json_t *rows;

	rig_session(g, 100);
	teach(g);
	sid_route(g, 4, "fc00::4/128", &dt46);
	rig_route(g, "fc00:0:8::/48", 4); /* same next hop and slot as fc00::4/128 */
	rig_settle(g);
	one = number_of(g, "fc00::1");
	four = number_of(g, "fc00::4");
	assert_true(one != 0 && four != 0 && one != four);
	assert_int_equal(number_of(g, "fc00:0:8:7::"), number_of(g, "fc00:0:8::"));
	assert_int_not_equal(number_of(g, "fc00:0:8::"), four);
	assert_int_equal(number_of(g, "fc00::3"), 0); /* fc00::3 is not supported */
	assert_int_equal(number_of(g, "fc00::5"), 0);
	rib_must_be_sound(g);

	c->sid[four] = (struct sid_counters){.packets = 7, .bytes = 700, .errors = 1};
	rows = sids_ask(g, NULL, false);
	assert_int_equal(json_array_size(rows), 4);
	json_decref(rows);
	rows = sids_ask(g, "fc00:0:0::/48", false);
	assert_int_equal(json_array_size(rows), 3);
	json_decref(rows);
	assert_int_equal(packets_of(g, "fc00::4/128", false), 7);
	assert_int_equal(packets_of(g, "fc00:0:8:1::1", true), 0);

	/* The next SID with the number begins at zero. */
	rig_del(g, "fc00::4/128");
	rig_settle(g);
	assert_int_equal(number_of(g, "fc00::4"), 0);
	rib_must_be_sound(g);
	rig_route(g, "fc00::5/128", 4);
	rig_settle(g);
	assert_int_equal(number_of(g, "fc00::5"), four);
	assert_int_equal(packets_of(g, "fc00::5/128", false), 0);
	c->sid[four].packets++;
	assert_int_equal(packets_of(g, "fc00::5/128", false), 1);
	/* Another action under the same prefix: the counter goes on. */
	sid_route(g, 6, "fc00::5/128", &(struct srv6_sid){.action = SRV6_END});
	rig_settle(g);
	assert_int_equal(packets_of(g, "fc00::5/128", false), 1);
	rib_must_be_sound(g);
	rig_free(g);
}

/* The next hop of two routes becomes an end point, and later a gateway. */
static void
numbers_follow_the_next_hop(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	rig_route(g, "fc00::1/128", 1); /* the next hop is not announced yet */
	rig_settle(g);
	assert_int_equal(number_of(g, "fc00::1"), 0);
	sid_route(g, 1, "fc00::2/128", &(struct srv6_sid){.action = SRV6_END});
	rig_settle(g);
	assert_int_not_equal(number_of(g, "fc00::1"), 0);
	assert_int_not_equal(number_of(g, "fc00::2"), 0);
	rib_must_be_sound(g);
	rig_hop(g, 1, "2001:db8:1::2", 11);
	rig_settle(g);
	assert_int_equal(number_of(g, "fc00::1"), 0);
	assert_int_equal(number_of(g, "fc00::2"), 0);
	rib_must_be_sound(g);
	rig_free(g);
}

/* The SIDs of a VRF's table have numbers of their own while the VRF is there. */
static void
each_sid_of_a_vrf_has_a_number(void **state)
{
	struct rig *g = rig_two_vrfs();
	struct counters *c = counters_register("fwd-0");
	uint32_t main_number, red_number;
	json_t *rows;

	rig_session(g, 100);
	sid_route(g, 1, "fc00::1/128", &(struct srv6_sid){.action = SRV6_END});
	sid_route(g, 1, "fc00::1/128", &(struct srv6_sid){.action = SRV6_END});
	g->batch->ev[g->batch->n - 1].table = 100;
	rig_settle(g);
	main_number = number_of(g, "fc00::1");
	red_number = number_in(g, 100, "fc00::1");
	assert_true(main_number != 0 && red_number != 0 && main_number != red_number);
	assert_int_equal(number_in(g, 2000, "fc00::1"), 0);
	assert_int_equal(g->fib->sid_numbers->n_not_main, 1);
	rib_must_be_sound(g);

	c->sid[red_number].packets += 7;
	rows = sids_ask(g, "fc00::1/128", true);
	assert_int_equal(json_array_size(rows), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *row = json_array_get(rows, i);
		const json_t *vrf = json_object_get(row, "vrf");
		json_int_t n = json_integer_value(json_object_get(row, "packets"));

		assert_int_equal(n, json_is_null(vrf) ? 0 : 7);
		assert_true(json_is_null(vrf) ||
			    strcmp(json_string_value(vrf), "red") == 0);
	}
	json_decref(rows);

	rig_vrf(g, RIG_RED, NULL);
	rig_settle(g);
	assert_int_equal(number_in(g, 100, "fc00::1"), 0);
	assert_int_equal(number_of(g, "fc00::1"), main_number);
	assert_int_equal(g->fib->sid_numbers->n_not_main, 0);
	rows = sids_ask(g, NULL, false);
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	rib_must_be_sound(g);
	rig_vrf(g, RIG_RED, "red"); /* its routes are still there */
	rig_settle(g);
	assert_int_not_equal(number_in(g, 100, "fc00::1"), 0);
	rib_must_be_sound(g);
	rig_free(g);
}

/*
 * Send rib a list of rules. `named`: it has a rule for table 200 before the rule for main.
 */
static void
rules_tell(struct rig *g, bool named, int32_t suppress)
{
	static const uint32_t table[] = {RT_TABLE_LOCAL, 200, RT_TABLE_MAIN};
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m) + 3 * sizeof(m->rule[0]));

	m->family = 6;
	for (unsigned int i = 0; i < 3; i++) {
		if (i == 1 && !named)
			continue;
		m->rule[m->n++] = (struct rule){.family = 6,
						.pref = 1000 * i,
						.action = FR_ACT_TO_TBL,
						.table = table[i],
						.src.family = 6,
						.dst.family = 6,
						.suppress = i == 1 ? suppress : -1,
						.suppress_group = RULE_NO_GROUP};
	}
	rib_on_msg(g->rib, &m->m);
	rig_settle(g);
}

/*
 * A table that rules name has a FIB, so its SIDs have numbers, until neither a rule nor a
 * VRF has the table. Meanwhile a VRF may get the table.
 */
static void
each_sid_of_a_table_of_rules_has_a_number(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t number;
	json_t *rows, *row;

	rig_session(g, 100);
	sid_route(g, 1, "fc00::1/128", &(struct srv6_sid){.action = SRV6_END});
	sid_route(g, 1, "fc00::1/128", &(struct srv6_sid){.action = SRV6_END});
	g->batch->ev[g->batch->n - 1].table = 200;
	rig_settle(g);
	assert_int_not_equal(number_of(g, "fc00::1"), 0);
	assert_int_equal(number_in(g, 200, "fc00::1"), 0);
	rules_tell(g, true, -1);
	number = number_in(g, 200, "fc00::1");
	assert_true(number != 0 && number != number_of(g, "fc00::1"));
	assert_int_equal(g->fib->sid_numbers->of[number].vrf, FIB_VRF_NONE);
	rib_must_be_sound(g);
	rules_tell(g, true, 0); /* a view has the SIDs of its table */
	assert_int_equal(number_in(g, 200, "fc00::1"), number);
	rib_must_be_sound(g);
	rows = sids_ask(g, "fc00::1/128", true);
	assert_int_equal(json_array_size(rows), 2);
	row = json_array_get(rows, 1);
	assert_int_equal(json_integer_value(json_object_get(row, "table")), 200);
	assert_true(json_is_null(json_object_get(row, "vrf")));
	json_decref(rows);

	rig_vrf(g, 7, 200, "green");
	rig_settle(g);
	assert_int_equal(number_in(g, 200, "fc00::1"), number);
	assert_int_equal(g->fib->sid_numbers->of[number].vrf, 7);
	rib_must_be_sound(g);
	rig_vrf(g, 7, 200, NULL);
	rig_settle(g);
	assert_int_not_equal(number_in(g, 200, "fc00::1"), 0);
	rib_must_be_sound(g);
	rules_tell(g, false, -1);
	assert_int_equal(number_in(g, 200, "fc00::1"), 0);
	assert_int_equal(g->fib->sid_numbers->n_not_main, 0);
	rib_must_be_sound(g);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_of_an_end_point_has_its_flavors),
		cmocka_unit_test(end_points_follow_the_vrf_of_their_table),
		cmocka_unit_test(end_points_follow_the_interface_of_their_neighbor),
		cmocka_unit_test(headends_have_an_entry_whatever_the_gateway_is),
		cmocka_unit_test(other_headends_are_for_the_kernel),
		cmocka_unit_test(headends_without_an_entry_get_one_when_it_is_free),
		cmocka_unit_test(flows_stay_with_their_segments),
		cmocka_unit_test(long_headends_are_the_kernels_after_a_restart),
		cmocka_unit_test(a_policy_is_a_headend),
		cmocka_unit_test(equal_end_points_share_an_entry),
		cmocka_unit_test(end_points_without_routes_give_their_entries_back),
		cmocka_unit_test(end_points_without_an_entry_get_one_when_it_is_free),
		cmocka_unit_test(end_points_are_in_force_after_a_restart),
		cmocka_unit_test(each_sid_has_a_number),
		cmocka_unit_test(each_sid_of_a_vrf_has_a_number),
		cmocka_unit_test(each_sid_of_a_table_of_rules_has_a_number),
		cmocka_unit_test(numbers_follow_the_next_hop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
