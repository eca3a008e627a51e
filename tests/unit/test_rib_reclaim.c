/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that readers may hold stays unchanged until their grace period has ended. In some
 * tests the tries get no memory. The test thread is an online QSBR reader: no grace period
 * ends until it reports a quiescent state.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include "base/limits.h"
#include "log_said.h"

#include <stdio.h>

static void
a_slot_keeps_its_word_and_its_number_until_readers_are_done(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t slot;
	uint64_t word;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	slot = rig_group_of(g, "198.51.100.1");
	word = atomic_load(&g->fib->group[slot]);

	rig_del(g, "198.51.100.0/24");
	rig_go(g);
	rig_route(g, "203.0.113.0/24", 8);
	rig_go(g);
	assert_int_not_equal(rig_group_of(g, "203.0.113.1"), slot);
	assert_int_equal(atomic_load(&g->fib->group[slot]), word);

	rig_settle(g);
	assert_int_equal(path_kind((fib_path)atomic_load(&g->fib->group[slot])),
			 PATH_UNRESOLVED);
	rig_route(g, "203.0.113.0/25", 7);
	rig_go(g);
	assert_int_equal(rig_group_of(g, "203.0.113.1"), slot);
	rig_free(g);
}

static void
a_slot_taken_again_in_the_same_round_lives_on(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t slot;

	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	slot = rig_group_of(g, "198.51.100.1");
	rig_del(g, "198.51.100.0/24");
	rig_route(g, "203.0.113.0/24", 7);
	rig_settle(g);
	assert_int_equal(rig_group_of(g, "203.0.113.1"), slot);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rig_free(g);
}

static void
an_old_block_of_buckets_stays_readable_until_readers_are_done(void **state)
{
	struct rig *g = rig_two_ports();
	const fib_path *bucket;
	uint64_t word;

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_settle(g);
	word = atomic_load(&g->fib->group[rig_group_of(g, "198.51.100.1")]);
	assert_true(group_word_is_block(word));
	bucket = group_word_buckets(word);
	rig_link(g, 11, 1, false);
	/* AddressSanitizer checks these reads. */
	for (unsigned int i = 0; i < 1u << group_word_log2(word); i++)
		assert_int_equal(path_kind(bucket[i]), PATH_ADJ);
	rig_settle(g);
	assert_int_equal(g->rib->words.block_bytes, 0);
	rig_free(g);
}

static void
neigh_hears_of_an_adjacency_once_and_of_its_end_after_the_grace_period(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.1", 11);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 1);
	rig_route_inline(g, "203.0.113.0/25", "192.0.2.1", 11);
	rig_settle(g);
	assert_int_equal(g->n_watch, 1);
	rig_del(g, "198.51.100.0/24");
	rig_del(g, "203.0.113.0/24");
	rig_settle(g);
	assert_int_equal(g->n_unwatch, 0);
	rig_del(g, "203.0.113.0/25");
	rig_go(g);
	rig_neigh_serve(g);
	assert_int_equal(g->n_unwatch, 0);
	rig_settle(g);
	assert_int_equal(g->n_unwatch, 1);
	assert_int_equal(g->rib->adjs.n, 0);
	rig_free(g);
}

static void
an_adjacency_number_is_used_again_only_when_neigh_has_freed_it(void **state)
{
	struct rig *g = rig_two_ports();
	struct msg_adj *m;
	uint32_t adj;

	g->hold_freed = true;
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.1", 11);
	rig_settle(g);
	adj = rig_adj(g, "192.0.2.1", 11);
	rig_del(g, "198.51.100.0/24");
	rig_settle(g);
	assert_int_equal(g->n_unwatch, 1);
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.1", 11);
	rig_settle(g);
	assert_int_not_equal(rig_adj(g, "192.0.2.1", 11), adj);

	m = msg_new(MSG_ADJ_FREED, sizeof(*m));
	m->adj = adj;
	rib_on_msg(g->rib, &m->m);
	rig_route_inline(g, "203.0.113.0/24", "192.0.2.2", 11);
	rig_settle(g);
	assert_int_equal(rig_adj(g, "192.0.2.2", 11), adj);
	rig_free(g);
}

static void
a_gateway_that_stays_keeps_its_adjacency_through_any_change(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t adj;

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 20, 1, 1, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_settle(g);
	adj = rig_adj(g, "192.0.2.1", 11);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_settle(g);
	rig_group(g, 20, 2, 1, 5, 2, 1);
	rig_settle(g);
	rig_link(g, 11, 1, false);
	rig_link(g, 11, 1, true);
	rig_settle(g);
	assert_int_equal(rig_adj(g, "192.0.2.1", 11), adj);
	assert_int_equal(g->n_watch, 2);
	assert_int_equal(g->n_unwatch, 0);
	rig_free(g);
}

static void
adjacencies_that_run_out_are_counted_and_go_to_waiting_next_hops(void **state)
{
	char gw[32], text[32];
	struct rig *g;

	rig_limit(TABLE_adjacencies, 1023);
	g = rig_two_ports();
	rig_limits = NULL;

	for (unsigned int i = 0; i < g->fib->adj_hosts + 10; i++) {
		snprintf(gw, sizeof(gw), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		snprintf(text, sizeof(text), "11.%u.%u.%u/32", i >> 16, i >> 8 & 255,
			 i & 255);
		rig_route_inline(g, text, gw, 11);
	}
	rig_go(g);
	assert_int_equal(g->rib->adjs.n, g->fib->adj_hosts - 1);
	assert_int_equal(table_state(TABLE_adjacencies).refused, 11);
	assert_true(log_said("rib: table is full table=adjacencies") > 0);
	assert_seen(g, "11.0.0.1", "10.0.0.1@1");
	assert_seen(g, "11.0.4.9", "down");
	/* Another route by a gateway without an adjacency needs no adjacency of its own. */
	rig_route_inline(g, "12.0.0.0/24", "10.0.4.9", 11);
	rig_settle(g);
	assert_seen(g, "12.0.0.1", "down");

	for (unsigned int i = 0; i < 11; i++) {
		snprintf(text, sizeof(text), "11.0.0.%u/32", i);
		rig_del(g, text);
	}
	rig_settle(g);
	assert_seen(g, "11.0.4.9", "10.0.4.9@1");
	assert_seen(g, "12.0.0.1", "10.0.4.9@1");
	assert_true(cds_list_empty(&g->rib->legs.without_adj));
	assert_int_equal(table_state(TABLE_adjacencies).used, g->fib->adj_hosts - 1);
	rig_free(g);
}

/* --- no memory for a trie ------------------------------------------------------------ */

static void
feed(struct rig *g, unsigned int from, unsigned int to, uint32_t id)
{
	char text[32];

	for (unsigned int i = from; i < to; i++) {
		uint32_t a = i * 2654435761u;

		snprintf(text, sizeof(text), "%u.%u.%u.%u/%u", (a >> 24) % 223 + 1,
			 a >> 16 & 255, a >> 8 & 255, i & 255, 24 + i % 9);
		if (id == 0)
			rig_del(g, text);
		else
			rig_route(g, text, id);
	}
}

static void
expect_truth(struct rig *g)
{
	uint64_t n = 0;
	struct poptrie_stats st;

	for (uint32_t i = 1; i <= g->rib->tables.main.high; i++) {
		const struct route *r = route_at(&g->rib->tables.main, i);

		if (r->family != 4)
			continue;
		n++;
		assert_int_equal(poptrie_exact(g->fib->copy[0].pt4, r->octet, r->len),
				 route_effective(r));
	}
	poptrie_stats(g->fib->copy[0].pt4, &st);
	assert_int_equal(st.routes, n);
	assert_int_equal(g->rib->tables.n_main[0], n);
}

static void
a_trie_out_of_memory_is_completed_when_there_is_some_again(void **state)
{
	struct rig *g = rig_poor(1);
	unsigned int said = log_said("rib: out of memory in=");

	feed(g, 0, 20000, 7);
	rig_settle(g);
	rig_no_memory = true;
	feed(g, 20000, 60000, 7);
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_true(g->rib->count.route_nomem + g->rib->count.commit_nomem > 0);
	assert_true(log_said("rib: out of memory in=") > said);
	rib_round(g->rib);    /* it does not loop either */
	feed(g, 0, 30000, 8); /* some of the replaced routes never were in the trie */
	feed(g, 30000, 40000, 0);
	rig_flush_batch(g);
	rib_round(g->rib);
	rig_no_memory = false;
	rig_settle(g);
	rig_settle(g);
	assert_false(g->rib->resync.due || g->rib->pending.staged[0]);
	assert_true(log_said("rib: tries complete again") > 0);
	expect_truth(g);
	for (unsigned int i = 0; i < 30000; i += 97) {
		uint32_t a = i * 2654435761u;
		char text[32];

		snprintf(text, sizeof(text), "%u.%u.%u.%u", (a >> 24) % 223 + 1,
			 a >> 16 & 255, a >> 8 & 255, i & 255);
		assert_seen(g, text, "192.0.2.129@2");
	}
	rig_free(g);
}

static void
no_slot_dies_while_a_trie_may_still_name_it(void **state)
{
	struct rig *g = rig_poor(1);
	uint32_t slot;

	feed(g, 0, 20000, 7);
	rig_settle(g);
	slot = rig_group_of(g, "1.0.0.0/32");
	for (unsigned int i = 0; slot == 0 && i < 20000; i++) {
		uint32_t a = i * 2654435761u;
		char text[32];

		snprintf(text, sizeof(text), "%u.%u.%u.%u", (a >> 24) % 223 + 1,
			 a >> 16 & 255, a >> 8 & 255, i & 255);
		slot = rig_group_of(g, text);
	}
	rig_no_memory = true;
	feed(g, 20000, 60000, 8); /* until the trie has no memory */
	feed(g, 0, 20000, 8);     /* removes the last routes of id 7 */
	rig_flush_batch(g);
	rib_round(g->rib);
	assert_true(g->rib->resync.due || g->rib->pending.staged[0]);
	assert_int_equal(slot_at(&g->rib->slots, slot)->refs, 0);
	assert_int_equal(slot_at(&g->rib->slots, slot)->kind, SLOT_ID);
	rig_no_memory = false;
	rig_settle(g);
	rig_settle(g);
	assert_int_equal(slot_at(&g->rib->slots, slot)->kind, SLOT_FREE);
	expect_truth(g);
	rig_free(g);
}

static void
lists_of_free_numbers_stay_short_however_often_routes_flap(void **state)
{
	struct rig *g = rig_two_ports();
	char gw[32];

	for (unsigned int i = 0; i < 8; i++) { /* a peak, of which some numbers stay free */
		snprintf(gw, sizeof(gw), "192.0.2.%u", 10 + i);
		rig_route_inline(g, rig_net(i), gw, 11);
	}
	rig_settle(g);
	for (unsigned int i = 0; i < 8; i++)
		rig_del(g, rig_net(i));
	rig_settle(g);
	for (unsigned int i = 0; i < 300; i++) {
		snprintf(gw, sizeof(gw), "192.0.2.%u", 10 + i % 100);
		rig_route_inline(g, rig_net(1), gw, 11);
		rig_settle(g);
		rig_del(g, rig_net(1));
		rig_settle(g);
	}
	assert_true(fifo32_len(&g->rib->slots.unused) > 0);
	assert_true(fifo32_len(&g->rib->adjs.unused) > 0);
	assert_in_range(g->rib->slots.unused.cap, 1, 64);
	assert_in_range(g->rib->adjs.unused.cap, 1, 64);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_slot_keeps_its_word_and_its_number_until_readers_are_done),
		cmocka_unit_test(a_slot_taken_again_in_the_same_round_lives_on),
		cmocka_unit_test(
			an_old_block_of_buckets_stays_readable_until_readers_are_done),
		cmocka_unit_test(
			neigh_hears_of_an_adjacency_once_and_of_its_end_after_the_grace_period),
		cmocka_unit_test(
			an_adjacency_number_is_used_again_only_when_neigh_has_freed_it),
		cmocka_unit_test(
			a_gateway_that_stays_keeps_its_adjacency_through_any_change),
		cmocka_unit_test(
			adjacencies_that_run_out_are_counted_and_go_to_waiting_next_hops),
		cmocka_unit_test(
			a_trie_out_of_memory_is_completed_when_there_is_some_again),
		cmocka_unit_test(no_slot_dies_while_a_trie_may_still_name_it),
		cmocka_unit_test(
			lists_of_free_numbers_stay_short_however_often_routes_flap),
	};

	return cmocka_run_group_tests_name("rib reclaim", tests, NULL, NULL);
}
