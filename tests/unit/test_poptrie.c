/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What poptrie promises, one claim a test, small tables written out.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "impl.h"
#include "oracle.h"

static void
set(struct poptrie *pt, const char *prefix, uint32_t value)
{
	uint8_t a[16];
	unsigned int len = oracle_prefix(prefix, a);

	assert_int_equal(poptrie_add(pt, a, len, value), 0);
}

static int
drop(struct poptrie *pt, const char *prefix)
{
	uint8_t a[16];
	unsigned int len = oracle_prefix(prefix, a);

	return poptrie_del(pt, a, len);
}

static uint32_t
get(struct poptrie *pt, const char *addr)
{
	const uint8_t *key[1];
	uint32_t one, bulk, ip4;
	uint8_t a[16];

	oracle_prefix(addr, a);
	if (pt->ip6) {
		key[0] = a;
		one = poptrie6_lookup(pt, a);
		poptrie6_lookup_bulk(pt, key, &bulk, 1);
	} else {
		ip4 = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
		one = poptrie4_lookup(pt, ip4);
		poptrie4_lookup_bulk(pt, &ip4, &bulk, 1);
	}
	assert_int_equal(one, bulk);
	return one;
}

static struct poptrie *
table(enum poptrie_family family, enum pt_layout layout)
{
	struct poptrie_conf conf = {.family = family};
	struct poptrie *pt;

	assert_int_equal(pt_create(&pt, &conf, layout, pt_isa_best()), 0);
	return pt;
}

/* Each claim about IPv4 is checked in both layouts. */
#define FOR_LAYOUTS(pt)                                                    \
	for (int layout_ = PT_FUSED; layout_ <= PT_WIDE; layout_++)        \
		for (struct poptrie *pt = table(POPTRIE_IP4, layout_); pt; \
		     poptrie_destroy(pt), pt = NULL)

static void
commit(struct poptrie *pt)
{
	assert_int_equal(poptrie_commit(pt), 0);
}

static void
an_empty_table_answers_none(void **state)
{
	struct poptrie *pt6 = table(POPTRIE_IP6, PT_WIDE);

	FOR_LAYOUTS(pt)
	{
		assert_int_equal(get(pt, "0.0.0.0"), POPTRIE_NONE);
		assert_int_equal(get(pt, "255.255.255.255"), POPTRIE_NONE);
		commit(pt);
		assert_int_equal(get(pt, "192.0.2.1"), POPTRIE_NONE);
	}
	assert_int_equal(get(pt6, "::"), POPTRIE_NONE);
	assert_int_equal(get(pt6, "2001:db8::1"), POPTRIE_NONE);
	assert_int_equal(get(pt6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), POPTRIE_NONE);
	poptrie_destroy(pt6);
}

static void
lookup_prefers_the_longer_prefix(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "10.0.0.0/8", 1);
		set(pt, "10.1.0.0/16", 2);
		set(pt, "10.1.2.0/24", 3);
		set(pt, "10.1.2.128/25", 4);
		set(pt, "10.1.2.130/31", 5);
		set(pt, "10.1.2.131/32", 6);
		commit(pt);
		assert_int_equal(get(pt, "10.2.0.1"), 1);
		assert_int_equal(get(pt, "10.1.3.1"), 2);
		assert_int_equal(get(pt, "10.1.2.3"), 3);
		assert_int_equal(get(pt, "10.1.2.128"), 4);
		assert_int_equal(get(pt, "10.1.2.130"), 5);
		assert_int_equal(get(pt, "10.1.2.131"), 6);
		assert_int_equal(get(pt, "10.1.2.132"), 4);
		assert_int_equal(get(pt, "11.0.0.0"), POPTRIE_NONE);
		assert_int_equal(get(pt, "9.255.255.255"), POPTRIE_NONE);
	}
}

static void
nothing_is_visible_before_the_commit(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "192.0.2.0/24", 7);
		set(pt, "0.0.0.0/0", 8);
		assert_int_equal(get(pt, "192.0.2.1"), POPTRIE_NONE);
		commit(pt);
		assert_int_equal(get(pt, "192.0.2.1"), 7);
		assert_int_equal(drop(pt, "192.0.2.0/24"), 0);
		assert_int_equal(get(pt, "192.0.2.1"), 7);
		commit(pt);
		assert_int_equal(get(pt, "192.0.2.1"), 8);
	}
}

static void
a_default_route_covers_what_no_prefix_does(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "0.0.0.0/0", 1);
		commit(pt);
		set(pt, "198.51.100.7/32", 2);
		commit(pt);
		assert_int_equal(get(pt, "0.0.0.0"), 1);
		assert_int_equal(get(pt, "255.255.255.255"), 1);
		assert_int_equal(get(pt, "198.51.100.6"), 1);
		assert_int_equal(get(pt, "198.51.100.7"), 2);
		assert_int_equal(get(pt, "198.51.100.8"), 1);
	}
}

static void
a_default_route_and_prefixes_can_change_in_one_commit(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "0.0.0.0/0", 1);
		set(pt, "198.51.100.0/25", 2);
		set(pt, "203.0.0.0/8", 3);
		commit(pt);
		set(pt, "0.0.0.0/0", 4);
		assert_int_equal(drop(pt, "198.51.100.0/25"), 0);
		assert_int_equal(drop(pt, "203.0.0.0/8"), 0);
		commit(pt);
		assert_int_equal(get(pt, "198.51.100.1"), 4);
		assert_int_equal(get(pt, "203.1.1.1"), 4);
		/* What was written out for that commit must not stay behind. */
		set(pt, "0.0.0.0/0", 5);
		commit(pt);
		assert_int_equal(get(pt, "198.51.100.1"), 5);
		assert_int_equal(get(pt, "203.1.1.1"), 5);
		set(pt, "198.51.100.0/25", 6);
		assert_int_equal(drop(pt, "0.0.0.0/0"), 0);
		commit(pt);
		assert_int_equal(get(pt, "198.51.100.1"), 6);
		assert_int_equal(get(pt, "203.1.1.1"), POPTRIE_NONE);
		assert_int_equal(get(pt, "198.51.100.200"), POPTRIE_NONE);
	}
}

static void
a_default_that_comes_as_a_prefix_goes_leaves_no_node(void **state)
{
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		set(pt, "198.51.100.0/24", 1);
		commit(pt);
		set(pt, "0.0.0.0/0", 2);
		assert_int_equal(drop(pt, "198.51.100.0/24"), 0);
		commit(pt);
		assert_int_equal(get(pt, "198.51.100.1"), 2);
		assert_int_equal(get(pt, "198.51.101.1"), 2);
		set(pt, "203.0.113.0/24", 2);
		assert_int_equal(drop(pt, "203.0.113.0/24"), 0);
		commit(pt);
		poptrie_stats(pt, &st);
		assert_int_equal(st.nodes, 0);
		assert_int_equal(st.leaves, 0);
	}
}

static void
a_removed_prefix_uncovers_the_shorter_one(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "10.0.0.0/8", 1);
		set(pt, "10.64.0.0/10", 2);
		set(pt, "10.64.0.0/18", 3);
		set(pt, "10.64.0.0/30", 4);
		commit(pt);
		assert_int_equal(get(pt, "10.64.0.1"), 4);
		drop(pt, "10.64.0.0/30");
		commit(pt);
		assert_int_equal(get(pt, "10.64.0.1"), 3);
		drop(pt, "10.64.0.0/18");
		commit(pt);
		assert_int_equal(get(pt, "10.64.0.1"), 2);
		drop(pt, "10.64.0.0/10");
		commit(pt);
		assert_int_equal(get(pt, "10.64.0.1"), 1);
		drop(pt, "10.0.0.0/8");
		commit(pt);
		assert_int_equal(get(pt, "10.64.0.1"), POPTRIE_NONE);
	}
}

static void
the_last_bits_of_an_ipv4_address_count(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "255.255.255.254/31", 1);
		set(pt, "255.255.255.255/32", 2);
		set(pt, "0.0.0.0/32", 3);
		set(pt, "0.0.0.2/31", 4);
		commit(pt);
		assert_int_equal(get(pt, "255.255.255.253"), POPTRIE_NONE);
		assert_int_equal(get(pt, "255.255.255.254"), 1);
		assert_int_equal(get(pt, "255.255.255.255"), 2);
		assert_int_equal(get(pt, "0.0.0.0"), 3);
		assert_int_equal(get(pt, "0.0.0.1"), POPTRIE_NONE);
		assert_int_equal(get(pt, "0.0.0.2"), 4);
		assert_int_equal(get(pt, "0.0.0.3"), 4);
		assert_int_equal(get(pt, "0.0.0.4"), POPTRIE_NONE);
	}
}

static void
the_last_bits_of_an_ipv6_address_count(void **state)
{
	struct poptrie *pt = table(POPTRIE_IP6, PT_WIDE);

	set(pt, "2001:db8::/127", 1);
	set(pt, "2001:db8::1/128", 2);
	set(pt, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 3);
	set(pt, "::/128", 4);
	set(pt, "fe80::4/126", 5);
	commit(pt);
	assert_int_equal(get(pt, "2001:db8::"), 1);
	assert_int_equal(get(pt, "2001:db8::1"), 2);
	assert_int_equal(get(pt, "2001:db8::2"), POPTRIE_NONE);
	assert_int_equal(get(pt, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 3);
	assert_int_equal(get(pt, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"), POPTRIE_NONE);
	assert_int_equal(get(pt, "::"), 4);
	assert_int_equal(get(pt, "::1"), POPTRIE_NONE);
	assert_int_equal(get(pt, "fe80::3"), POPTRIE_NONE);
	assert_int_equal(get(pt, "fe80::7"), 5);
	assert_int_equal(get(pt, "fe80::8"), POPTRIE_NONE);
	poptrie_destroy(pt);
}

static void
ipv6_prefixes_work_inside_outside_and_around_2000_3(void **state)
{
	struct poptrie *pt = table(POPTRIE_IP6, PT_WIDE);

	set(pt, "::/0", 1);
	set(pt, "::/1", 2);
	set(pt, "2000::/3", 3);
	set(pt, "fc00::/7", 4);
	set(pt, "2001:db8::/32", 5);
	set(pt, "1fff::/16", 6);
	commit(pt);
	assert_int_equal(get(pt, "8000::"), 1);
	assert_int_equal(get(pt, "ff02::1"), 1);
	assert_int_equal(get(pt, "::1"), 2);
	assert_int_equal(get(pt, "4000::"), 2);
	assert_int_equal(get(pt, "7fff::"), 2);
	assert_int_equal(get(pt, "2000::"), 3);
	assert_int_equal(get(pt, "3fff:ffff::"), 3);
	assert_int_equal(get(pt, "fd00::1"), 4);
	assert_int_equal(get(pt, "2001:db8:1::"), 5);
	assert_int_equal(get(pt, "1fff:ffff::"), 6);
	drop(pt, "::/1");
	commit(pt);
	assert_int_equal(get(pt, "::1"), 1);
	assert_int_equal(get(pt, "2000::"), 3);
	drop(pt, "2000::/3");
	commit(pt);
	assert_int_equal(get(pt, "2000::"), 1);
	assert_int_equal(get(pt, "2001:db8:1::"), 5);
	poptrie_destroy(pt);
}

static void
values_need_not_fit_16_bits(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "10.0.0.0/8", 32767);
		set(pt, "10.1.2.0/24", 1);
		commit(pt);
		assert_false(pt_view(pt)->leaf32);
		set(pt, "10.1.0.0/16", 32768);
		set(pt, "10.1.2.4/30", POPTRIE_VALUE_MAX);
		assert_int_equal(get(pt, "10.1.2.4"), 1);
		commit(pt);
		assert_true(pt_view(pt)->leaf32);
		assert_int_equal(get(pt, "10.9.0.1"), 32767);
		assert_int_equal(get(pt, "10.1.2.1"), 1);
		assert_int_equal(get(pt, "10.1.3.1"), 32768);
		assert_int_equal(get(pt, "10.1.2.7"), POPTRIE_VALUE_MAX);
		set(pt, "10.1.0.0/16", 40000);
		set(pt, "0.0.0.0/0", 50000);
		commit(pt);
		assert_int_equal(get(pt, "10.1.3.1"), 40000);
		assert_int_equal(get(pt, "11.0.0.0"), 50000);
		drop(pt, "10.1.0.0/16");
		commit(pt);
		assert_int_equal(get(pt, "10.1.3.1"), 32767);
	}
}

static void
bad_arguments_are_refused_and_change_nothing(void **state)
{
	struct poptrie_conf conf = {.family = 5};
	struct poptrie *none;
	uint8_t a[16] = {10};

	assert_int_equal(poptrie_create(&none, &conf), -EINVAL);
	FOR_LAYOUTS(pt)
	{
		assert_int_equal(poptrie_add(pt, a, 33, 1), -EINVAL);
		assert_int_equal(poptrie_add(pt, a, 8, POPTRIE_NONE), -EINVAL);
		assert_int_equal(poptrie_add(pt, a, 8, POPTRIE_VALUE_MAX + 1u), -EINVAL);
		assert_int_equal(poptrie_del(pt, a, 33), -EINVAL);
		assert_int_equal(poptrie_del(pt, a, 8), -ENOENT);
		assert_int_equal(poptrie_del(pt, a, 0), -ENOENT);
		assert_int_equal(drop(pt, "10.0.0.0/24"), -ENOENT);
		set(pt, "10.0.0.0/24", 1);
		assert_int_equal(drop(pt, "10.0.0.0/25"), -ENOENT);
		assert_int_equal(drop(pt, "10.0.0.0/23"), -ENOENT);
	}
}

static void
host_bits_are_ignored(void **state)
{
	FOR_LAYOUTS(pt)
	{
		set(pt, "10.1.2.3/8", 1);
		set(pt, "10.1.2.3/23", 2);
		commit(pt);
		assert_int_equal(get(pt, "10.255.0.0"), 1);
		assert_int_equal(get(pt, "10.1.3.255"), 2);
		assert_int_equal(drop(pt, "10.1.3.9/23"), 0);
		commit(pt);
		assert_int_equal(get(pt, "10.1.3.255"), 1);
	}
}

static void
an_equal_value_rebuilds_nothing(void **state)
{
	struct poptrie_stats a, b;

	FOR_LAYOUTS(pt)
	{
		set(pt, "10.0.0.0/8", 1);
		set(pt, "10.0.0.0/30", 2);
		commit(pt);
		poptrie_stats(pt, &a);
		set(pt, "10.0.0.0/8", 1);
		set(pt, "10.0.0.0/30", 2);
		commit(pt);
		poptrie_stats(pt, &b);
		assert_int_equal(a.slots_rebuilt, b.slots_rebuilt);
	}
}

static void
a_prefix_equal_to_its_cover_takes_no_memory(void **state)
{
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		set(pt, "10.1.0.0/18", 1);
		set(pt, "10.1.2.0/24", 1);
		set(pt, "10.1.2.3/32", 1);
		commit(pt);
		poptrie_stats(pt, &st);
		assert_int_equal(st.routes, 3);
		assert_int_equal(st.nodes, 0);
		assert_int_equal(st.leaves, 0);
	}
}

static void
one_commit_rebuilds_a_slot_once(void **state)
{
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		for (int i = 0; i < 64; i++) {
			uint8_t a[4] = {192, 0, 2, (uint8_t)(i * 4)};

			assert_int_equal(poptrie_add(pt, a, 30, 1 + (uint32_t)i), 0);
		}
		commit(pt);
		poptrie_stats(pt, &st);
		assert_int_equal(st.slots_rebuilt, 1);
		assert_int_equal(st.commits, 1);
	}
}

static void
all_memory_comes_back_when_the_routes_are_gone(void **state)
{
	struct rnd r = rnd_seeded(__func__);
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		struct oracle *o = oracle_new(false);
		struct oracle_route *all;

		for (int i = 0; i < 5000; i++) {
			uint32_t x = rnd_below(&r, 1u << 20) << 8,
				 len = 10 + rnd_below(&r, 23);
			uint8_t a[4] = {10, (uint8_t)(x >> 20), (uint8_t)(x >> 8),
					(uint8_t)x};

			oracle_set(o, a, len, 1);
			assert_int_equal(poptrie_add(pt, a, len, 1 + rnd_below(&r, 9)), 0);
			if (i % 10 == 0)
				commit(pt);
		}
		commit(pt);
		all = oracle_sorted(o);
		for (uint32_t i = 0; i < o->routes; i++)
			assert_int_equal(poptrie_del(pt, all[i].addr, all[i].len), 0);
		commit(pt);
		poptrie_stats(pt, &st);
		assert_int_equal(st.routes, 0);
		assert_int_equal(st.nodes, 0);
		assert_int_equal(st.leaves, 0);
		assert_int_equal(st.retired_bytes, 0);
		assert_int_equal(st.free_bytes + (pt->wide ? 0 : 65536),
				 st.node_bytes + st.leaf_bytes);
		free(all);
		oracle_free(o);
	}
}

static void
stats_count_routes_by_the_nodes_that_lookups_read(void **state)
{
	struct poptrie *pt6 = table(POPTRIE_IP6, PT_WIDE);
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		unsigned int first = pt->wide ? 1 : 0; /* fused: the entry is the node */

		set(pt, "0.0.0.0/0", 1);
		set(pt, "10.0.0.0/18", 2);
		set(pt, "10.0.0.0/24", 3);
		set(pt, "10.0.0.0/25", 4);
		set(pt, "10.0.0.0/30", 5);
		set(pt, "10.0.0.0/31", 6);
		set(pt, "10.0.0.0/31", 7);
		poptrie_stats(pt, &st);
		assert_int_equal(st.depth[0], pt->wide ? 2 : 3);
		assert_int_equal(st.depth[first], pt->wide ? 1 : 3);
		assert_int_equal(st.depth[first + 1], 2);
		assert_int_equal(st.depth[first + 2], 1);
		assert_int_equal(drop(pt, "10.0.0.0/31"), 0);
		poptrie_stats(pt, &st);
		assert_int_equal(st.depth[first + 2], 0);
	}
	set(pt6, "2001:db8::/32", 1);
	set(pt6, "2001:db8::/128", 2);
	set(pt6, "ff00::/128", 3);
	poptrie_stats(pt6, &st);
	assert_int_equal(st.depth[2], 1);
	assert_int_equal(st.depth[18], 1);
	assert_int_equal(st.depth[20], 1);
	poptrie_destroy(pt6);
}

/* Each page keeps one block: the worst that the allocator can be brought to. */
static void
holes_in_the_pools_are_bounded(void **state)
{
	FOR_LAYOUTS(pt)
	{
		struct poptrie_stats st;
		size_t most = 0;

		for (int pass = 0; pass < 2; pass++) {
			for (uint32_t i = 0; i < 200000; i++) {
				uint32_t x = i << 12 | (i & 7) << 4;
				uint8_t a[4] = {(uint8_t)(x >> 24), (uint8_t)(x >> 16),
						(uint8_t)(x >> 8), (uint8_t)x};

				if (pass == 0)
					assert_int_equal(poptrie_add(pt, a, 28, 1 + i % 99),
							 0);
				else if (i % 64)
					assert_int_equal(poptrie_del(pt, a, 28), 0);
				if (i % 256 == 0)
					commit(pt);
			}
			commit(pt);
			poptrie_stats(pt, &st);
			most = st.frag_bytes > most ? st.frag_bytes : most;
		}
		for (int i = 0; i < 64; i++) {
			set(pt, "240.0.0.0/8", 1 + (uint32_t)i);
			commit(pt);
		}
		poptrie_stats(pt, &st);
		print_message("holes: at most %zu, then %zu of %zu octets\n", most,
			      st.frag_bytes, st.node_bytes + st.leaf_bytes);
		assert_true(st.frag_bytes <= 2u * PT_FRAG + st.nodes * 32 + st.leaves * 2);
		assert_true(st.frag_bytes <= st.free_bytes);
	}
}

static void
match_and_exact_read_the_staged_truth(void **state)
{
	unsigned int len;
	uint8_t a[16];

	FOR_LAYOUTS(pt)
	{
		set(pt, "10.0.0.0/8", 1);
		set(pt, "10.1.2.0/24", 2);
		oracle_prefix("10.1.2.3", a);
		assert_int_equal(poptrie_match(pt, a, 32, &len), 2);
		assert_int_equal(len, 24);
		assert_int_equal(poptrie_match(pt, a, 23, &len), 1);
		assert_int_equal(len, 8);
		assert_int_equal(poptrie_match(pt, a, 7, &len), POPTRIE_NONE);
		assert_int_equal(poptrie_exact(pt, a, 24), 2);
		assert_int_equal(poptrie_exact(pt, a, 25), POPTRIE_NONE);
		assert_int_equal(poptrie_exact(pt, a, 0), POPTRIE_NONE);
		set(pt, "0.0.0.0/0", 9);
		assert_int_equal(poptrie_exact(pt, a, 0), 9);
		assert_int_equal(poptrie_match(pt, a, 7, &len), 9);
		assert_int_equal(len, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_table_answers_none),
		cmocka_unit_test(lookup_prefers_the_longer_prefix),
		cmocka_unit_test(nothing_is_visible_before_the_commit),
		cmocka_unit_test(a_default_route_covers_what_no_prefix_does),
		cmocka_unit_test(a_default_route_and_prefixes_can_change_in_one_commit),
		cmocka_unit_test(a_default_that_comes_as_a_prefix_goes_leaves_no_node),
		cmocka_unit_test(a_removed_prefix_uncovers_the_shorter_one),
		cmocka_unit_test(the_last_bits_of_an_ipv4_address_count),
		cmocka_unit_test(the_last_bits_of_an_ipv6_address_count),
		cmocka_unit_test(ipv6_prefixes_work_inside_outside_and_around_2000_3),
		cmocka_unit_test(values_need_not_fit_16_bits),
		cmocka_unit_test(bad_arguments_are_refused_and_change_nothing),
		cmocka_unit_test(host_bits_are_ignored),
		cmocka_unit_test(an_equal_value_rebuilds_nothing),
		cmocka_unit_test(a_prefix_equal_to_its_cover_takes_no_memory),
		cmocka_unit_test(one_commit_rebuilds_a_slot_once),
		cmocka_unit_test(all_memory_comes_back_when_the_routes_are_gone),
		cmocka_unit_test(stats_count_routes_by_the_nodes_that_lookups_read),
		cmocka_unit_test(holes_in_the_pools_are_bounded),
		cmocka_unit_test(match_and_exact_read_the_staged_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
