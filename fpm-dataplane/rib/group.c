/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divide the buckets of a group among its members. Pure functions. [any thread]
 *
 * The shares follow the weights by largest remainder. The assignment is resilient: when
 * members are added, removed or change weight, a bucket changes its member only if that
 * member was removed or has more buckets than its new share. The bucket number is the top
 * bits of the flow hash, so that a block of twice the size keeps every flow on its member.
 */
#include "rib/group.h"

#include <stdbool.h>
#include <stdlib.h>

#include "rib/index.h"

#define LOG2_MIN 1u
#define LOG2_MAX 12u

struct remainder {
	uint64_t rest;
	uint32_t member;
};

static int
remainder_order(const void *a, const void *b)
{
	const struct remainder *x = a, *y = b;

	if (x->rest != y->rest)
		return x->rest < y->rest ? 1 : -1;
	return x->member < y->member ? -1 : 1;
}

static uint64_t
members_weight(const struct bucket_member *m, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += m[i].weight;
	return sum;
}

/* Set m[].target so that the targets add up to 2^log2_n. */
static void
members_set_targets(struct bucket_member *m, uint32_t n, unsigned int log2_n)
{
	uint64_t total = members_weight(m, n);
	uint32_t left = 1u << log2_n;
	struct remainder *rest = mem_or_abort(malloc(n * sizeof(*rest)));

	for (uint32_t i = 0; i < n; i++) {
		uint64_t share = m[i].weight << log2_n;

		m[i].target = (uint32_t)(share / total);
		rest[i] = (struct remainder){.rest = share % total, .member = i};
		left -= m[i].target;
	}
	qsort(rest, n, sizeof(*rest), remainder_order);
	for (uint32_t i = 0; i < left; i++)
		m[rest[i].member].target++;
	free(rest);
}

/* Return true if each member's share is within 2 % of its weight. */
static bool
members_are_fair(const struct bucket_member *m, uint32_t n, unsigned int log2_n)
{
	uint64_t total = members_weight(m, n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t want = m[i].weight << log2_n, got = m[i].target * total;
		uint64_t off = want > got ? want - got : got - want;

		if (off * 50 >= want)
			return false;
	}
	return true;
}

unsigned int
group_log2(struct bucket_member *m, uint32_t n, unsigned int old_log2)
{
	uint32_t least = n <= 8 ? 16 * n : 4 * n < 128 ? 128 : 4 * n;
	unsigned int k = LOG2_MIN;

	while (k < LOG2_MAX && 1u << k < least)
		k++;
	members_set_targets(m, n, k);
	while (k < LOG2_MAX && !members_are_fair(m, n, k))
		members_set_targets(m, n, ++k);
	/*
	 * Keep a block that is somewhat larger: a smaller one would merge buckets and move
	 * flows.
	 */
	if (old_log2 > k && old_log2 <= k + 3) {
		k = old_log2;
		members_set_targets(m, n, k);
	}
	return k;
}

static uint32_t
member_of_path(const struct bucket_member *m, uint32_t n, fib_path path, uint32_t guess)
{
	if (guess < n && m[guess].path == path)
		return guess;
	for (uint32_t i = 0; i < n; i++)
		if (m[i].path == path)
			return i;
	return n;
}

void
group_fill(fib_path *out, unsigned int log2_n, struct bucket_member *m, uint32_t n,
	   const fib_path *old, unsigned int old_log2)
{
	uint32_t n_buckets = 1u << log2_n, next = 0, guess = 0;

	for (uint32_t i = 0; i < n; i++)
		m[i].have = 0;
	for (uint32_t b = 0; b < n_buckets; b++) {
		out[b] = PATH(PATH_NONE, 0);
		if (old == NULL)
			continue;
		guess = member_of_path(m, n,
				       old[log2_n >= old_log2 ? b >> (log2_n - old_log2)
							      : b << (old_log2 - log2_n)],
				       guess);
		if (guess < n && m[guess].have < m[guess].target) {
			out[b] = m[guess].path;
			m[guess].have++;
		}
	}
	/*
	 * Deal the remaining buckets out in turn, so that neighboring buckets have
	 * different members.
	 */
	for (uint32_t b = 0; b < n_buckets; b++) {
		if (out[b] != PATH(PATH_NONE, 0))
			continue;
		while (m[next].have >= m[next].target)
			next = (next + 1) % n;
		out[b] = m[next].path;
		m[next].have++;
		next = (next + 1) % n;
	}
}
