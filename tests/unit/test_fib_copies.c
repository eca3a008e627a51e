/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The FIB has a copy of the tries for each NUMA node. All copies give the same answers,
 * whatever zebra sends and however little memory there is. The audit finds a copy that
 * differs. The nodes of these tests need not exist: for an absent node, the kernel takes
 * memory of any node.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>
#include <time.h>

#include "rib/route.h"

#define N_COPIES 3
#define ROUNDS   300
#define CHANGES  40 /* in each round */
#define KEYS     64 /* lookups after each round, for each family */

static uint64_t state;

static uint32_t
draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

/*
 * Change the route of a random prefix. The prefixes are few and have many lengths, so most
 * changes overlap with an earlier change.
 */
static void
any_change(struct rig *g)
{
	unsigned int six = draw(2), len = six ? 20 + draw(45) : 8 + draw(25);
	uint32_t at = draw(1u << 12) * 2654435761u;
	char text[64];

	if (six)
		snprintf(text, sizeof(text), "2001:%x:%x::/%u", at >> 16 & 0xff0f,
			 at & 0xffff, len);
	else
		snprintf(text, sizeof(text), "%u.%u.%u.%u/%u", 20 + (at >> 30),
			 at >> 22 & 255, at >> 14 & 255, at >> 6 & 255, len);
	if (draw(3) == 0)
		rig_del(g, text);
	else
		rig_route(g, text, 7 + draw(2));
}

/* Assert that each copy has exactly the routes of the RIB. */
static void
expect_routes(const struct rig *g)
{
	uint64_t n[2] = {0};

	for (uint32_t i = 1; i <= g->rib->tables.main.high; i++) {
		const struct route *r = route_at(&g->rib->tables.main, i);

		if (r->family == 0)
			continue;
		n[r->family == 6]++;
		assert_true(route_is_staged(g->rib, r));
	}
	for (unsigned int c = 0; c < g->fib->n_copies; c++)
		for (unsigned int v = 0; v < 2; v++) {
			struct poptrie_stats st;

			poptrie_stats(fib_trie(&g->fib->copy[c], v == 0 ? 4 : 6), &st);
			assert_int_equal(st.routes, n[v]);
		}
}

/* Assert that all copies answer like the first, in single and bulk lookups. */
static void
expect_alike(const struct rig *g)
{
	uint8_t octet[KEYS][16] = {{0}};
	const uint8_t *key6[KEYS];
	uint32_t key4[KEYS], want[KEYS], found[KEYS];

	for (unsigned int i = 0; i < KEYS; i++) {
		uint32_t at = draw(1u << 12) * 2654435761u;

		key4[i] = (20 + (at >> 30)) << 24 | (at >> 6 & 0xffffff) | draw(64);
		memcpy(octet[i],
		       (uint8_t[]){0x20, 0x01, at >> 24, at >> 16 & 15, at >> 8, at}, 6);
		octet[i][7] = (uint8_t)draw(256);
		key6[i] = octet[i];
	}
	for (unsigned int c = 0; c < g->fib->n_copies; c++) {
		const struct fib_copy *copy = &g->fib->copy[c];

		for (unsigned int i = 0; i < KEYS; i++)
			want[i] = poptrie4_lookup(g->fib->copy[0].pt4, key4[i]);
		poptrie4_lookup_bulk(copy->pt4, key4, found, KEYS);
		assert_memory_equal(want, found, sizeof(want));
		for (unsigned int i = 0; i < KEYS; i++)
			want[i] = poptrie6_lookup(g->fib->copy[0].pt6, key6[i]);
		poptrie6_lookup_bulk(copy->pt6, key6, found, KEYS);
		assert_memory_equal(want, found, sizeof(want));
	}
}

static void
all_copies_answer_alike_after_random_changes(void **state_)
{
	struct rig *g = rig_poor(N_COPIES);

	state = (uint64_t)time(NULL);
	print_message("seed %llu\n", (unsigned long long)state);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = draw(CHANGES); i > 0; i--)
			any_change(g);
		if (draw(4) == 0)
			rig_settle(g);
		else
			rig_go(g); /* replaced blocks wait for their grace period */
		expect_alike(g);
	}
	rig_settle(g);
	expect_routes(g);
	rig_free(g);
}

static void
a_copy_without_memory_is_completed_when_there_is_some_again(void **state_)
{
	struct rig *g = rig_poor(2);
	char text[32];

	for (unsigned int i = 0; i < 60000; i++) {
		uint32_t at = i * 2654435761u;

		rig_no_memory = i >= 20000;
		snprintf(text, sizeof(text), "%u.%u.%u.%u/%u", 20 + (at >> 26),
			 at >> 18 & 255, at >> 10 & 255, i & 255, 24 + i % 9);
		rig_route(g, text, 7);
	}
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_true(g->rib->count.route_nomem + g->rib->count.commit_nomem > 0);
	rig_no_memory = false;
	rig_settle(g);
	expect_routes(g);
	for (unsigned int i = 0; i < 50; i++)
		expect_alike(g);
	rig_free(g);
}

static void
the_audit_finds_a_copy_that_differs_and_mends_it(void **state_)
{
	struct rig *g = rig_poor(2);
	struct msg_query broken = {.kind = QUERY_BREAK, .breaking = BREAK_TABLE, .max = 1};
	struct msg_query audit = {.kind = QUERY_AUDIT, .repair = true, .max = 16};
	json_t *rows;

	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "203.0.113.0/24", 8);
	rig_settle(g);
	assert_int_equal(prefix_parse("198.51.100.0/24", &broken.prefix, NULL), 0);
	json_decref(rig_ask(g, &broken, NULL));
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_int_equal(poptrie4_lookup(g->fib->copy[1].pt4, 0xc6336401), POPTRIE_NONE);

	rows = rig_ask(g, &audit, NULL);
	assert_int_equal(json_array_size(rows), 2);
	json_decref(rows);
	rig_settle(g);
	expect_routes(g);
	rig_free(g);
}

static void
each_node_that_forwards_has_one_copy(void **state_)
{
	const int node[] = {1, 0, 1, 1, 3, 0};
	struct fib_conf conf = {.n_nodes = 0};
	struct fib *fib;

	fib_conf_nodes(&conf, node, 6);
	assert_int_equal(conf.n_nodes, 3);
	assert_int_equal(fib_create(&fib, &conf), 0);
	for (unsigned int f = 0; f < 6; f++)
		assert_int_equal(fib_copy_for(fib, node[f])->node, node[f]);
	assert_ptr_not_equal(fib->copy[0].pt4, fib->copy[1].pt4);
	assert_ptr_equal(fib_copy_for(fib, 2), &fib->copy[0]);
	fib_destroy(fib);
}

static void
more_nodes_than_there_may_be_copies_share_the_first(void **state_)
{
	int node[FIB_COPIES_MAX + 2];
	struct fib_conf conf = {.n_nodes = 0};

	for (unsigned int f = 0; f < FIB_COPIES_MAX + 2; f++)
		node[f] = (int)f;
	fib_conf_nodes(&conf, node, FIB_COPIES_MAX + 2);
	assert_int_equal(conf.n_nodes, FIB_COPIES_MAX);
}

/* An attacker that knows the seed could choose flows and SIDs whose hashes are equal. */
static void
two_fibs_have_two_seeds(void **state_)
{
	struct fib_conf conf = {.n_nodes = 0};
	struct fib *a, *b;

	assert_int_equal(fib_create(&a, &conf), 0);
	assert_int_equal(fib_create(&b, &conf), 0);
	assert_int_not_equal(a->seed, b->seed);
	fib_destroy(a);
	fib_destroy(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_copies_answer_alike_after_random_changes),
		cmocka_unit_test(
			a_copy_without_memory_is_completed_when_there_is_some_again),
		cmocka_unit_test(the_audit_finds_a_copy_that_differs_and_mends_it),
		cmocka_unit_test(each_node_that_forwards_has_one_copy),
		cmocka_unit_test(more_nodes_than_there_may_be_copies_share_the_first),
		cmocka_unit_test(two_fibs_have_two_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
