/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The costs of poptrie: rebuilt slots, memory, and holes in the memory. The statistics
 * report them.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie_rig.h"

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

/*
 * Change more slots than the list of changed slots holds. Change some of them twice, and
 * change prefixes that cover them.
 */
static void
a_large_commit_rebuilds_each_slot_once_too(void **state)
{
	struct poptrie_stats st;

	FOR_LAYOUTS(pt)
	{
		for (uint32_t n = 64, before = 0; n <= PT_DIRTY; n *= 64) {
			for (uint32_t i = 0; i < 2 * n; i++) {
				uint32_t x = 10u << 24 | (i % n / 4) << 14 | (i & 3) << 5;
				uint8_t a[4] = {(uint8_t)(x >> 24), (uint8_t)(x >> 16),
						(uint8_t)(x >> 8), (uint8_t)x};

				if (i % n == n / 2)
					set(pt, "10.0.0.0/8", n + i);
				assert_int_equal(poptrie_add(pt, a, 27, 1 + n + i), 0);
				if (i % 7 == 0)
					assert_int_equal(poptrie_del(pt, a, 27), 0);
			}
			commit(pt);
			poptrie_stats(pt, &st);
			assert_int_equal(st.slots_rebuilt - before, n / 4);
			before = (uint32_t)st.slots_rebuilt;
			assert_int_equal(get(pt, "10.0.0.33"), 1 + n + n + 1);
			assert_int_equal(get(pt, "10.0.1.33"), n + n + n / 2);
		}
	}
}

struct counted {
	size_t bytes[64];
	void *mem[64];
	size_t live;
};

static void *
count_alloc(void *ctx, size_t bytes, size_t align)
{
	struct counted *c = ctx;
	int i = 0;

	while (c->mem[i])
		assert_true(++i < 64);
	c->mem[i] = heap_alloc(NULL, bytes, align);
	assert_non_null(c->mem[i]);
	c->bytes[i] = bytes;
	c->live += bytes;
	return c->mem[i];
}

static void
count_free(void *ctx, void *mem)
{
	struct counted *c = ctx;
	int i = 0;

	while (c->mem[i] != mem)
		assert_true(++i < 64);
	c->mem[i] = NULL;
	c->live -= c->bytes[i];
	free(mem);
}

/*
 * The statistics agree with the allocator of the test, except for spare room in pools and
 * arena.
 */
static void
stats_name_all_memory(void **state)
{
	for (int kind = 0; kind < 3; kind++) {
		struct counted c = {.live = 0};
		struct poptrie_conf conf = {.family = kind == 2 ? POPTRIE_IP6 : POPTRIE_IP4,
					    .alloc = count_alloc,
					    .free = count_free,
					    .ctx = &c};
		struct poptrie_stats st;
		struct poptrie *pt;
		size_t said, ahead;

		assert_int_equal(pt_create(&pt, &conf, kind, pt_isa_best()), 0);
		for (uint32_t i = 0; i < 60000; i++) {
			uint8_t a[16] = {0x20, (uint8_t)(i >> 12), (uint8_t)(i >> 4),
					 (uint8_t)(i << 4)};

			assert_int_equal(poptrie_add(pt, a, 28, 1 + i % 99), 0);
		}
		commit(pt);
		poptrie_stats(pt, &st);
		said = st.direct_bytes + st.node_bytes + st.leaf_bytes + st.radix_bytes;
		ahead = (size_t)(pt->radix.n_chunks << PT_CHUNK_SHIFT) - pt->radix.top;
		ahead *= sizeof(struct pt_rnode);
		for (int i = 0; i < 2; i++) {
			const struct pt_view *v = pt_view(pt);
			const struct pt_pool *p = i ? &v->nodes : &v->leaves;

			ahead += (size_t)(p->n_pages - p->top) * p->page_elems *
				 (p->elem_bytes + (i && !v->wide ? sizeof(*v->bare) : 0));
		}
		print_message("statistics %zu, spare %zu, of %zu octets\n", said, ahead,
			      c.live);
		assert_true(said + ahead <= c.live);
		assert_true(said + ahead >= c.live - c.live / 50);
		poptrie_destroy(pt);
		assert_int_equal(c.live, 0);
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

static void
keep_batch(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	struct poptrie_retired **first = ctx;

	r->user[0] = *first;
	*first = r;
}

/*
 * Replaced blocks are counted as waiting for readers, not as nodes and leaves of the table.
 */
static void
replaced_blocks_are_counted_until_they_are_reclaimed(void **state)
{
	for (int layout = PT_FUSED; layout <= PT_WIDE; layout++) {
		struct poptrie_retired *first = NULL, *next;
		struct poptrie_conf conf = {
			.family = POPTRIE_IP4, .retire = keep_batch, .ctx = &first};
		struct poptrie *pt, *twin = table(POPTRIE_IP4, layout);
		struct poptrie_stats st, want;

		assert_int_equal(pt_create(&pt, &conf, layout, PT_SCALAR), 0);
		for (uint32_t i = 0; i < 200; i++) {
			uint8_t a[4] = {192, 0, (uint8_t)(i % 7), (uint8_t)(i * 4)};

			assert_int_equal(poptrie_add(pt, a, 30, 1 + i), 0);
			assert_int_equal(poptrie_add(twin, a, 30, 1 + i), 0);
			commit(pt);
			commit(twin);
		}
		poptrie_stats(pt, &st);
		poptrie_stats(twin, &want);
		assert_int_equal(st.nodes, want.nodes);
		assert_int_equal(st.leaves, want.leaves);
		assert_true(st.retired_bytes > 0);
		for (; first; first = next) {
			next = first->user[0];
			poptrie_reclaim(pt, first);
		}
		poptrie_stats(pt, &st);
		assert_int_equal(st.nodes, want.nodes);
		assert_int_equal(st.leaves, want.leaves);
		assert_int_equal(st.retired_bytes, 0);
		poptrie_destroy(pt);
		poptrie_destroy(twin);
	}
}

/* A table that changes one route at a time, and its replaced blocks. */
struct churn {
	struct poptrie *pt;
	struct rnd r;
	struct poptrie_retired *first;
	size_t most; /* largest number of blocks that a commit replaced */
};

static void
note_batch(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	struct churn *c = ctx;
	struct pt_batch *batch = (struct pt_batch *)r;

	if (batch->old.n > c->most)
		c->most = batch->old.n;
	r->user[0] = c->first;
	c->first = r;
}

static void
grace_period(struct churn *c)
{
	struct poptrie_retired *next;

	for (; c->first; c->first = next) {
		next = c->first->user[0];
		poptrie_reclaim(c->pt, c->first);
	}
}

static uint8_t *
nth_prefix(uint32_t i)
{
	static uint8_t a[16];
	uint32_t x = i << 12 | (i & 7) << 4;

	memset(a, 0, sizeof(a));
	a[0] = (uint8_t)(x >> 24 & 0x1f) | 0x20;
	a[1] = (uint8_t)(x >> 16);
	a[2] = (uint8_t)(x >> 8);
	a[3] = (uint8_t)x;
	return a;
}

static uint32_t
answer(const struct poptrie *pt, const uint8_t *a)
{
	uint32_t ip4 = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];

	return pt->ip6 ? poptrie6_lookup(pt, a) : poptrie4_lookup(pt, ip4);
}

static size_t
bytes_used(const struct poptrie *pt, const struct poptrie_stats *st)
{
	const struct pt_view *v = pt_view(pt);

	return st->nodes * v->nodes.elem_bytes + st->leaves * v->leaves.elem_bytes;
}

/*
 * A few routes remain in each page. This is about the worst state of the allocator. Commits
 * of one change each close the holes again in small steps: the view stays, no commit moves
 * more than its part, and all answers stay.
 */
static void
holes_are_closed_by_small_pieces(void **state)
{
	enum {
		/* Four adjacent routes of each 64 stay. */
		N = 1 << 17,
		LEFT = 16
	};

	for (int kind = 0; kind < 3; kind++) {
		struct churn c = {.r = rnd_seeded(__func__)};
		struct poptrie_conf conf = {.family = kind == 2 ? POPTRIE_IP6 : POPTRIE_IP4,
					    .retire = note_batch,
					    .ctx = &c};
		const unsigned int len = 28;
		unsigned int commits = 0;
		struct poptrie_stats st, begin;
		const struct pt_view *v;

		assert_int_equal(pt_create(&c.pt, &conf, kind, pt_isa_best()), 0);
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(poptrie_add(c.pt, nth_prefix(i), len, 1 + i % 99),
					 0);
		commit(c.pt);
		c.pt->min_visits = 0; /* make holes first */
		for (uint32_t i = 0; i < N; i++)
			if (i / 4 % LEFT)
				assert_int_equal(poptrie_del(c.pt, nth_prefix(i), len), 0);
		commit(c.pt);
		grace_period(&c);
		poptrie_stats(c.pt, &begin);
		assert_true(begin.frag_bytes > bytes_used(c.pt, &begin) + 2u * PT_FRAG);
		v = pt_view(c.pt);
		c.most = 0;
		c.pt->min_visits = PT_VISITS;
		do {
			uint32_t i = rnd_below(&c.r, N / LEFT) / 4 * 4 * LEFT;

			assert_int_equal(poptrie_add(c.pt, nth_prefix(i), len,
						     1 + rnd_below(&c.r, 99)),
					 0);
			commit(c.pt);
			grace_period(&c);
			poptrie_stats(c.pt, &st);
			assert_true(++commits < N);
		} while (v->walk.on ||
			 st.frag_bytes >= bytes_used(c.pt, &st) + 2u * PT_FRAG);
		print_message("holes: %zu octets beside %zu used, %u commits later %zu; "
			      "a commit replaced %zu blocks at most\n",
			      begin.frag_bytes, bytes_used(c.pt, &begin), commits,
			      st.frag_bytes, c.most);
		assert_ptr_equal(v, pt_view(c.pt));
		assert_true(commits > 1 && c.most <= 3u * PT_VISITS);
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(answer(c.pt, nth_prefix(i)) != 0,
					 i / 4 % LEFT == 0);
		poptrie_destroy(c.pt);
	}
}

/* Routes change at random for a long time. Unused memory stays smaller than used memory. */
static void
holes_stay_bounded_under_churn(void **state)
{
	enum { N = 1 << 16, TURNS = 1 << 18, AT_ONCE = 64 };

	for (int kind = 0; kind < 3; kind++) {
		struct churn c = {.r = rnd_seeded(__func__)};
		struct poptrie_conf conf = {.family = kind == 2 ? POPTRIE_IP6 : POPTRIE_IP4,
					    .retire = note_batch,
					    .ctx = &c};
		const struct pt_view *v;
		struct poptrie_stats st;
		size_t most = 0;

		assert_int_equal(pt_create(&c.pt, &conf, kind, pt_isa_best()), 0);
		v = pt_view(c.pt);
		for (uint32_t i = 0; i < TURNS; i++) {
			uint8_t *a = nth_prefix(rnd_below(&c.r, N));
			uint32_t value = rnd_below(&c.r, 5);

			a[2] |= 0x0f & (uint8_t)rnd_next(&c.r);
			if (value)
				poptrie_add(c.pt, a, 26 + value, value);
			else
				poptrie_del(c.pt, a, 27 + rnd_below(&c.r, 4));
			if (i % AT_ONCE)
				continue;
			commit(c.pt);
			grace_period(&c);
			poptrie_stats(c.pt, &st);
			assert_true(st.frag_bytes < bytes_used(c.pt, &st) + 4u * PT_FRAG);
			if (st.frag_bytes > most)
				most = st.frag_bytes;
		}
		print_message("holes: %zu octets at most, at the end %zu beside %zu used\n",
			      most, st.frag_bytes, bytes_used(c.pt, &st));
		assert_ptr_equal(v, pt_view(c.pt));
		poptrie_destroy(c.pt);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_equal_value_rebuilds_nothing),
		cmocka_unit_test(a_prefix_equal_to_its_cover_takes_no_memory),
		cmocka_unit_test(one_commit_rebuilds_a_slot_once),
		cmocka_unit_test(a_large_commit_rebuilds_each_slot_once_too),
		cmocka_unit_test(all_memory_comes_back_when_the_routes_are_gone),
		cmocka_unit_test(stats_count_routes_by_the_nodes_that_lookups_read),
		cmocka_unit_test(stats_name_all_memory),
		cmocka_unit_test(replaced_blocks_are_counted_until_they_are_reclaimed),
		cmocka_unit_test(holes_are_closed_by_small_pieces),
		cmocka_unit_test(holes_stay_bounded_under_churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
