/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor remembers the kernel's objects in a hash table. An attacker that chooses
 * addresses cannot choose chains, and a link that is removed costs no walk over the entries
 * of other links.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <netlink/errno.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define HOSTS 1000

/* Neighbors 10.0.0.0 to 10.0.3.231 of interface 7. */
static struct kmon_key
host(unsigned int n)
{
	struct kmon_key key = {.ifindex = 7, .family = 4};

	memcpy(key.addr, (uint8_t[]){10, 0, (uint8_t)(n >> 8), (uint8_t)n}, 4);
	return key;
}

static void
fill(struct mirror *m)
{
	for (unsigned int n = 0; n < HOSTS; n++) {
		struct kmon_key key = host(n);

		assert_non_null(mirror_add(m, &key));
	}
	assert_int_equal(m->n_entries, HOSTS);
}

static size_t
chain_of(const struct mirror *m, unsigned int n)
{
	const struct kmon_key key = host(n);
	const struct mirror_entry *e = mirror_find(m, &key);

	assert_non_null(e);
	for (size_t b = 0; b < m->n_buckets; b++)
		for (const struct mirror_entry *at = m->bucket[b]; at != NULL;
		     at = at->next)
			if (at == e)
				return b;
	fail();
	return 0;
}

static void
a_table_that_has_grown_is_still_seeded(void **state)
{
	struct mirror a = {.seed = 0x1234567890abcdef}, b = {.seed = 0xfedcba0987654321};
	unsigned int n_same = 0;

	fill(&a);
	fill(&b);
	assert_int_equal(a.n_buckets, b.n_buckets);
	for (unsigned int n = 0; n < HOSTS; n++)
		n_same += chain_of(&a, n) == chain_of(&b, n);
	assert_in_range(n_same, 0, HOSTS / 50); /* 1 of 1024 by chance */
	mirror_free(&a);
	mirror_free(&b);
}

static unsigned int n_gone;

static void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
	n_gone += gone;
}

static void
on_neigh(void *ctx, const struct kmon_neigh *neigh, bool gone)
{
	n_gone += gone;
}

/* Add or remove a link with a neighbor. */
static void
link_apply(struct kmon *km, uint32_t ifindex, bool gone)
{
	struct kmon_change link = {
		.kind = KMON_LINK, .gone = gone, .item.link.ifindex = ifindex};
	struct kmon_change neigh = {
		.kind = KMON_NEIGH,
		.item.neigh = {.ifindex = ifindex, .family = 4, .addr = {192, 0, 2, 1}}};

	assert_int_equal(kmon_apply(km, &link), 0);
	if (!gone)
		assert_int_equal(kmon_apply(km, &neigh), 0);
}

static void
removing_links_walks_over_their_own_entries(void **state)
{
	struct kmon km = {.ops = {.on_link = on_link, .on_neigh = on_neigh}};
	uint64_t n_steps = 0;

	for (uint32_t i = 1; i <= HOSTS; i++)
		link_apply(&km, i, false);
	n_gone = 0;
	for (uint32_t i = 1; i <= HOSTS; i++)
		link_apply(&km, i, true);
	assert_int_equal(n_gone, 2 * HOSTS);
	for (int kind = 0; kind < KMON_N_KINDS; kind++) {
		assert_int_equal(km.mirror[kind].n_entries, 0);
		n_steps += km.mirror[kind].n_steps;
		mirror_free(&km.mirror[kind]);
	}
	assert_in_range(n_steps, HOSTS, 4 * HOSTS);
}

/* kmon_open() accepts -EAGAIN, because an event of the change leads to a new dump. */
static void
a_dump_without_an_answer_differs_from_a_disturbed_one(void **state)
{
	assert_int_equal(kmon_errno(-NLE_DUMP_INTR), -EAGAIN);
	assert_int_equal(kmon_errno(-NLE_AGAIN), -ETIMEDOUT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_that_has_grown_is_still_seeded),
		cmocka_unit_test(removing_links_walks_over_their_own_entries),
		cmocka_unit_test(a_dump_without_an_answer_differs_from_a_disturbed_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
