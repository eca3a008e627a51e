/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: buckets by weight, resilience, members that fail and come back.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#include "rib/group.h"
#include "rib/kernel.h"
#include "rib/link_change.h"

#define MOST  4096
#define BLOCK (MOST * 3 / 2) /* room for the paths and the homes; homes need half as much */

/* Fill members with weights. Return log2 of the number of buckets. */
static unsigned int
plan(struct bucket_member *m, uint32_t n, const uint32_t *weight)
{
	for (uint32_t i = 0; i < n; i++)
		m[i] = (struct bucket_member){.path = PATH(PATH_ADJ, i + 1),
					      .hash = hash32(i),
					      .weight = weight == NULL ? 1 : weight[i]};
	return group_log2(m, n, 0);
}

static void
up_to_8_members_have_16_buckets_each_and_64_have_4(void **state)
{
	struct bucket_member m[64];

	for (uint32_t n = 2; n <= 64; n++) {
		unsigned int k = plan(m, n, NULL);

		assert_true(k <= 12);
		assert_true((1u << k) >= n * (n <= 8 ? 16 : 4));
	}
	assert_int_equal(plan(m, 2, NULL), 5);
	assert_int_equal(plan(m, 8, NULL), 7);
	assert_int_equal(plan(m, 64, NULL), 8);
}

static void
shares_follow_weights_within_2_percent(void **state)
{
	static const uint32_t weights[][8] = {
		{1, 1, 1},
		{1, 3},
		{1, 2, 4},
		{84, 254},
		{25, 75},
		{1, 254},
		{1, 1, 1, 1, 1, 1, 1},
		{5, 7, 11, 13},
		{100, 200, 400, 6400},
	};
	struct bucket_member m[8];

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		uint64_t total = 0;
		uint32_t n = 0, sum = 0;
		unsigned int k;

		while (n < 8 && weights[i][n] != 0)
			total += weights[i][n++];
		k = plan(m, n, weights[i]);
		for (uint32_t j = 0; j < n; j++) {
			double want = (double)weights[i][j] / (double)total;
			double got = m[j].target / (double)(1u << k);

			sum += m[j].target;
			assert_true(got > want * 0.98 && got < want * 1.02);
		}
		assert_int_equal(sum, 1u << k);
	}
}

static void
hopeless_weights_stop_at_4096_buckets(void **state)
{
	static const uint32_t weight[] = {1, 65536};
	struct bucket_member m[2];

	assert_int_equal(plan(m, 2, weight), 12);
	assert_int_equal(m[0].target + m[1].target, 4096);
}

static void
more_members_than_buckets_still_fill_the_block(void **state)
{
	static struct bucket_member m[8190];
	static fib_path out[BLOCK];

	assert_int_equal(plan(m, 8190, NULL), 12);
	group_fill(out, 12, m, 8190, NULL, 0);
	for (unsigned int b = 0; b < 4096; b++)
		assert_int_equal(path_kind(out[b]), PATH_ADJ);
}

static uint32_t
moved(const fib_path *a, unsigned int log2_a, const fib_path *b, unsigned int log2_b,
      fib_path except)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < 4096; h++) {
		fib_path was = a[h >> (12 - log2_a)];

		n += was != except && was != b[h >> (12 - log2_b)];
	}
	return n;
}

static void
a_member_that_goes_takes_only_its_own_flows_along(void **state)
{
	struct bucket_member m[16];
	static fib_path before[BLOCK], after[BLOCK];

	for (uint32_t n = 3; n <= 16; n++) {
		for (uint32_t gone = 0; gone < n; gone++) {
			unsigned int k = plan(m, n, NULL), k2;

			group_fill(before, k, m, n, NULL, 0);
			memmove(&m[gone], &m[gone + 1], (n - gone - 1) * sizeof(*m));
			k2 = group_log2(m, n - 1, k);
			group_fill(after, k2, m, n - 1, before, k);
			assert_int_equal(
				moved(before, k, after, k2, PATH(PATH_ADJ, gone + 1)), 0);
		}
	}
}

static void
a_member_that_comes_takes_its_share_and_no_flow_moves_between_others(void **state)
{
	struct bucket_member m[9];
	static fib_path before[BLOCK], after[BLOCK];

	for (uint32_t n = 2; n <= 8; n++) {
		unsigned int k = plan(m, n, NULL), k2;
		uint32_t to_new = 0;

		group_fill(before, k, m, n, NULL, 0);
		m[n] = (struct bucket_member){
			.path = PATH(PATH_ADJ, n + 1), .hash = hash32(n), .weight = 1};
		k2 = group_log2(m, n + 1, k);
		group_fill(after, k2, m, n + 1, before, k);
		for (uint32_t h = 0; h < 4096; h++) {
			fib_path was = before[h >> (12 - k)], is = after[h >> (12 - k2)];

			assert_true(is == was || is == PATH(PATH_ADJ, n + 1));
			to_new += is != was;
		}
		assert_true(to_new <= 4096 / (n + 1) * 102 / 100 + 1);
	}
}

/* A group with a random history. `in`: which of 64 possible members it has. */
struct history {
	uint32_t weight[64];
	bool in[64];
	unsigned int log2_n; /* 0: no block yet */
	fib_path block[BLOCK];
};

static uint32_t
history_members(const struct history *h, struct bucket_member *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 64; i++)
		if (h->in[i])
			m[n++] = (struct bucket_member){.path = PATH(PATH_ADJ, i + 1),
							.hash = (uint32_t)hash32(i),
							.weight = h->weight[i]};
	return n;
}

/*
 * Assert that each share is within 2 % of the weight. In the largest block it may also be
 * off by less than one bucket.
 */
static void
shares_are_fair(const struct history *h, const struct bucket_member *m, uint32_t n)
{
	uint32_t count[65] = {0};
	double total = 0;

	for (uint32_t b = 0; b < 1u << h->log2_n; b++)
		count[path_index(h->block[b])]++;
	for (uint32_t i = 0; i < n; i++)
		total += (double)m[i].weight;
	for (uint32_t i = 0; i < n; i++) {
		double want = (double)m[i].weight / total * (1u << h->log2_n);
		double got = count[path_index(m[i].path)];

		if (got >= want * 0.98 && got <= want * 1.02)
			continue;
		assert_int_equal(h->log2_n, 12);
		assert_true(got > want - 1 && got < want + 1);
	}
}

/* Give the group its present members. Return the number of flows that move without need. */
static uint32_t
history_fill(struct history *h)
{
	static fib_path now[BLOCK], again[BLOCK];
	struct bucket_member m[64];
	uint32_t n = history_members(h, m), excess = 0;
	unsigned int k = group_log2(m, n, h->log2_n);

	group_fill(now, k, m, n, h->log2_n == 0 ? NULL : h->block, h->log2_n);
	if (h->log2_n != 0)
		excess = group_excess(group_word_block(h->block, h->log2_n),
				      group_word_block(now, k));
	assert_int_equal(group_log2(m, n, k), k);
	group_fill(again, k, m, n, now, k);
	assert_memory_equal(again, now, group_block_bytes(k));
	memcpy(h->block, now, group_block_bytes(k));
	h->log2_n = k;
	shares_are_fair(h, m, n);
	return excess;
}

static uint32_t
history_count(const struct history *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 64; i++)
		n += h->in[i];
	return n;
}

/* `in`: remove `n` members from the group. Otherwise add `n` members. */
static void
history_toggle(struct history *h, bool in, uint32_t n)
{
	while (n > 0 && (in ? history_count(h) > 2 : history_count(h) < 64)) {
		uint32_t i = (uint32_t)rand() % 64;

		if (h->in[i] != in)
			continue;
		h->in[i] = !in;
		n--;
	}
}

static void
history_begin(struct history *h, uint32_t n, uint32_t weights)
{
	*h = (struct history){0};
	for (uint32_t i = 0; i < 64; i++)
		h->weight[i] = 1 + (uint32_t)rand() % weights;
	history_toggle(h, false, n);
	assert_int_equal(history_fill(h), 0);
}

/*
 * Over random groups, one member or several leave, come, or leave while others come. No
 * flow moves between two members that stay, and all shares are fair.
 */
static void
only_flows_of_members_that_leave_or_come_move(void **state)
{
	static struct history h;
	uint32_t worst = 0;

	srand(1);
	for (uint32_t run = 0; run < 150; run++) {
		uint32_t weights = run % 3 == 0 ? 1 : run % 3 == 1 ? 4 : 255;

		history_begin(&h, 2 + run % 63, weights);
		for (uint32_t step = 0; step < 12; step++) {
			uint32_t n = step % 4 == 3 ? 4 : 1, excess;

			if (step % 3 != 1)
				history_toggle(&h, true, n);
			if (step % 3 != 0)
				history_toggle(&h, false, n);
			excess = history_fill(&h);
			worst = excess > worst ? excess : worst;
		}
	}
	assert_int_equal(worst, 0);
}

/* Members that leave, one or several, get the same flows again when they return. */
static void
members_that_return_get_their_flows_again(void **state)
{
	static struct history h, before;
	uint32_t n_moved;
	bool all[64];

	srand(2);
	for (uint32_t run = 0; run < 120; run++) {
		history_begin(&h, 3 + run % 62, run % 2 == 0 ? 1 : 10);
		before = h;
		memcpy(all, h.in, sizeof(all));
		history_toggle(&h, true, 1 + run % 3);
		(void)history_fill(&h);
		history_toggle(&h, true, 1);
		(void)history_fill(&h);
		memcpy(h.in, all, sizeof(all));
		(void)history_fill(&h);
		n_moved = moved(before.block, before.log2_n, h.block, h.log2_n,
				PATH(PATH_NONE, 0));
		/* More buckets divide the flows more exactly. */
		assert_true(n_moved <= (h.log2_n == before.log2_n ? 0 : MOST / 50));
	}
}

/* The order of the members and the numbers of their adjacencies do not count. */
static void
a_group_without_history_depends_on_its_members_alone(void **state)
{
	static fib_path one[BLOCK], two[BLOCK];
	struct bucket_member a[64], b[64];

	for (uint32_t n = 2; n <= 64; n++) {
		unsigned int k = plan(a, n, NULL);

		for (uint32_t i = 0; i < n; i++) {
			b[i] = a[n - 1 - i];
			b[i].path = PATH(PATH_ADJ, 1000 + n - i);
		}
		assert_int_equal(group_log2(b, n, 0), k);
		group_fill(one, k, a, n, NULL, 0);
		group_fill(two, k, b, n, NULL, 0);
		for (uint32_t i = 0; i < 1u << k; i++)
			assert_int_equal(path_index(two[i]), 1000 + path_index(one[i]));
	}
}

static struct rig *
three_paths(void)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.2", 11);
	rig_hop(g, 3, "192.0.2.129", 12);
	rig_group(g, 20, 3, 1, 2, 2, 1, 3, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	return g;
}

static void
weights_are_seen_in_the_buckets(void **state)
{
	struct rig *g = three_paths();

	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*2048 192.0.2.2@1*1024");
	rig_free(g);
}

static void
a_next_hop_named_twice_counts_twice(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.1", 11);
	rig_hop(g, 3, "192.0.2.129", 12);
	rig_group(g, 20, 3, 1, 2, 2, 1, 3, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*1024 192.0.2.1@1*3072");
	rig_free(g);
}

static void
link_loss_takes_members_out_at_once_and_link_up_brings_them_back(void **state)
{
	struct rig *g = three_paths();
	uint64_t writes = g->rib->count.trie_writes;

	/* Remove the addresses, so that no connected prefix changes with the link. */
	rig_addr(g, 11, "192.0.2.126/25", true);
	rig_addr(g, 11, "2001:db8:1::ff/64", true);
	writes = g->rib->count.trie_writes;
	rig_link(g, 11, 1, false);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_link(g, 11, 1, true);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*2048 192.0.2.2@1*1024");
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_free(g);
}

static void
all_members_down_is_down(void **state)
{
	struct rig *g = three_paths();

	rig_link(g, 11, 1, false);
	rig_link(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "down");
	rig_link(g, 12, 2, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_free(g);
}

static void
a_failed_neighbor_leaves_the_group_and_comes_back(void **state)
{
	struct rig *g = three_paths();

	rig_alive(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.2@1*2048");
	rig_alive(g, "192.0.2.1", 11, true);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*2048 192.0.2.2@1*1024");
	rig_free(g);
}

static void
when_all_neighbors_fail_all_stay_so_that_packets_retry(void **state)
{
	struct rig *g = three_paths();

	rig_alive(g, "192.0.2.1", 11, false);
	rig_alive(g, "192.0.2.2", 11, false);
	rig_alive(g, "192.0.2.129", 12, false);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*2048 192.0.2.2@1*1024");
	/* A link that is down is worse than a neighbor that fails. */
	rig_link(g, 12, 2, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1*2752 192.0.2.2@1*1344");
	rig_free(g);
}

/* Packets take the neighbors that have answered; Linux does so with next-hop objects. */
static void
a_neighbor_that_has_not_answered_joins_the_group_when_it_does(void **state)
{
	struct rig *g = rig_two_ports();

	g->unresolved = true;
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 3, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 3);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");
	rig_alive(g, "192.0.2.1", 11, true);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_alive(g, "192.0.2.129", 12, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_alive(g, "192.0.2.129", 12, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2*2048 192.0.2.1@1*2048");

	/* A member in place of another one has to answer first, too. */
	rig_hop(g, 2, "192.0.2.140", 12);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_alive(g, "192.0.2.140", 12, true);
	assert_seen(g, "198.51.100.1", "192.0.2.140@2*2048 192.0.2.1@1*2048");
	rig_free(g);
}

static void
a_failed_single_path_keeps_its_adjacency(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	rig_route(g, "198.51.100.0/24", 1);
	rig_go(g);
	rig_alive(g, "192.0.2.1", 11, false);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
an_interface_deleted_and_made_again_works_when_zebra_says_so(void **state)
{
	struct rig *g = three_paths();

	rig_link_gone(g, 11);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	assert_int_equal(rig_adj(g, "192.0.2.1", 11), 0);
	rig_link(g, 31, 1, true);
	assert_seen(g, "198.51.100.1", "192.0.2.129@2");
	rig_hop(g, 1, "192.0.2.1", 31);
	rig_hop(g, 2, "192.0.2.2", 31);
	rig_settle(g);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2*1024 192.0.2.1@1*2048 192.0.2.2@1*1024");
	assert_null(rib_link_find(&g->rib->links, 11));
	rig_free(g);
}

static void
a_member_on_an_interface_not_seen_yet_waits_for_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 40);
	rig_route(g, "198.51.100.0/24", 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "down");
	rig_link(g, 40, 9, true);
	assert_seen(g, "198.51.100.1", "192.0.2.1@9");
	rig_free(g);
}

static void
paths_by_ports_are_preferred_to_foreign_ones(void **state)
{
	struct rig *g = rig_two_ports();

	rig_link(g, 3, 0, true);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "10.0.0.1", 3);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_link(g, 11, 1, false);
	assert_seen(g, "198.51.100.1", "foreign");
	rig_free(g);
}

/* Encapsulations that the kernel alone makes: BPF, IOAM and others. */
static void
a_lightweight_tunnel_is_for_the_kernel(void **state)
{
	struct rig *g = rig_two_ports();

	rig_hop(g, 1, "192.0.2.1", 11);
	g->batch->ev[g->batch->n - 1].hops->encap = HOP_LWTUNNEL;
	rig_route(g, "198.51.100.0/24", 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "encap");
	links_set_through_kernel(g->rib, true);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "kernel@0");
	links_set_through_kernel(g->rib, false);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "encap");
	rig_free(g);
}

static void
paths_by_the_kernel_are_equal_to_paths_by_ports(void **state)
{
	struct rig *g = rig_two_ports();
	unsigned int n_kernel = 0;
	uint64_t word;

	links_set_through_kernel(g->rib, true);
	rig_link(g, 1, 0, true); /* the loopback device */
	rig_link(g, 3, 0, true);
	rig_link(g, 1000003, 0, true);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "10.0.0.1", 3);
	rig_hop(g, 3, "10.0.0.1", 1000003);
	rig_hop(g, 4, "10.0.0.1", 1);
	rig_group(g, 20, 2, 1, 1, 2, 1);
	rig_route(g, "198.51.100.0/24", 20);
	rig_route(g, "203.0.113.0/24", 3);
	rig_route(g, "203.0.114.0/24", 4);
	rig_go(g);
	word = g->fib->group[rig_group_of(g, "198.51.100.1")];
	assert_true(group_word_is_block(word));
	for (uint32_t i = 0; i < 1u << group_word_log2(word); i++)
		n_kernel += path_kind(group_word_buckets(word)[i]) == PATH_KERNEL;
	assert_int_equal(n_kernel, 1u << (group_word_log2(word) - 1));
	assert_int_equal(kernel_status.mixed, 1);
	rig_link(g, 11, 1, false);
	assert_seen(g, "198.51.100.1", "kernel@3");
	assert_int_equal(kernel_status.mixed, 0);
	/* The index of a path has 18 bits: it is 1000003 modulo 2^18. */
	assert_seen(g, "203.0.113.1", "kernel@213571");
	assert_seen(g, "203.0.114.1", "foreign");

	links_set_through_kernel(g->rib, false);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "foreign");
	assert_seen(g, "203.0.113.1", "foreign");
	links_set_through_kernel(g->rib, true);
	rig_go(g);
	assert_seen(g, "203.0.113.1", "kernel@213571");
	rig_link(g, 3, 0, false);
	assert_seen(g, "198.51.100.1", "down");
	rig_free(g);
}

/*
 * A tunnel has no neighbors: a gateway behind it takes no adjacency. It was an interface of
 * the kernel before its first report as a tunnel, and may be one again.
 */
static void
paths_by_tunnels_have_no_adjacency(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t adjs = g->rib->adjs.high;

	links_set_through_kernel(g->rib, true);
	rig_link(g, 3, 0, true);
	rig_hop(g, 1, "10.9.0.2", 3);
	rig_route(g, "198.51.100.0/24", 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "kernel@3");
	rig_tunnel(g, 3, 300, true);
	assert_seen(g, "198.51.100.1", "onlink@300");
	assert_int_equal(g->rib->adjs.high, adjs);
	rig_tunnel(g, 3, 300, false);
	assert_seen(g, "198.51.100.1", "down");
	rig_tunnel(g, 3, 300, true);
	assert_seen(g, "198.51.100.1", "onlink@300");
	rig_link(g, 3, 0, true);
	assert_seen(g, "198.51.100.1", "kernel@3");
	rig_free(g);
}

/* The kernel removes IPv6 routes by a link on which IPv6 is switched off. */
static void
an_ipv6_path_without_a_gateway_needs_ipv6_on_its_link(void **state)
{
	struct rig *g = rig_two_ports();

	links_set_through_kernel(g->rib, true);
	rig_hop(g, 1, NULL, 11);
	rig_hop(g, 2, NULL, 12);
	rig_hop(g, 3, NULL, 13);
	rig_group(g, 4, 2, 1, 1, 2, 1);
	rig_group(g, 5, 2, 2, 1, 3, 1);
	rig_route(g, "2001:db8:f::/48", 4);
	rig_route(g, "2001:db8:e::/48", 5);
	rig_link(g, 13, 0, true); /* the kernel's */
	assert_seen(g, "2001:db8:f::1", "onlink@1*2048 onlink@2*2048");
	assert_seen(g, "2001:db8:e::1", "kernel@13*2048 onlink@2*2048");
	rig_link_ipv6(g, 11, 1, true);
	assert_seen(g, "2001:db8:f::1", "onlink@2");
	rig_link_ipv6(g, 13, 0, true);
	assert_seen(g, "2001:db8:e::1", "onlink@2");

	/* Forwarders drop the packets if no path has IPv6. */
	rig_link_ipv6(g, 12, 2, true);
	assert_seen(g, "2001:db8:f::1", "onlink@1*2048 onlink@2*2048");
	rig_link_ipv6(g, 12, 2, false);
	assert_seen(g, "2001:db8:f::1", "onlink@2");

	/* An IPv4 route uses the path of link 11, too. */
	rig_route(g, "198.51.100.0/24", 4);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "onlink@1*2048 onlink@2*2048");
	rig_link_ipv6(g, 11, 1, false);
	assert_seen(g, "2001:db8:f::1", "onlink@1*2048 onlink@2*2048");
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(up_to_8_members_have_16_buckets_each_and_64_have_4),
		cmocka_unit_test(shares_follow_weights_within_2_percent),
		cmocka_unit_test(hopeless_weights_stop_at_4096_buckets),
		cmocka_unit_test(more_members_than_buckets_still_fill_the_block),
		cmocka_unit_test(a_member_that_goes_takes_only_its_own_flows_along),
		cmocka_unit_test(
			a_member_that_comes_takes_its_share_and_no_flow_moves_between_others),
		cmocka_unit_test(only_flows_of_members_that_leave_or_come_move),
		cmocka_unit_test(members_that_return_get_their_flows_again),
		cmocka_unit_test(a_group_without_history_depends_on_its_members_alone),
		cmocka_unit_test(weights_are_seen_in_the_buckets),
		cmocka_unit_test(a_next_hop_named_twice_counts_twice),
		cmocka_unit_test(
			link_loss_takes_members_out_at_once_and_link_up_brings_them_back),
		cmocka_unit_test(all_members_down_is_down),
		cmocka_unit_test(a_failed_neighbor_leaves_the_group_and_comes_back),
		cmocka_unit_test(when_all_neighbors_fail_all_stay_so_that_packets_retry),
		cmocka_unit_test(
			a_neighbor_that_has_not_answered_joins_the_group_when_it_does),
		cmocka_unit_test(a_failed_single_path_keeps_its_adjacency),
		cmocka_unit_test(
			an_interface_deleted_and_made_again_works_when_zebra_says_so),
		cmocka_unit_test(a_member_on_an_interface_not_seen_yet_waits_for_it),
		cmocka_unit_test(paths_by_ports_are_preferred_to_foreign_ones),
		cmocka_unit_test(a_lightweight_tunnel_is_for_the_kernel),
		cmocka_unit_test(paths_by_the_kernel_are_equal_to_paths_by_ports),
		cmocka_unit_test(paths_by_tunnels_have_no_adjacency),
		cmocka_unit_test(an_ipv6_path_without_a_gateway_needs_ipv6_on_its_link),
	};

	return cmocka_run_group_tests_name("rib groups", tests, NULL, NULL);
}
