/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poptrie without memory: each allocation of a script fails in turn. The call returns
 * -ENOMEM. Each answer is that of the routes before the call or, in published slots,
 * already that of the routes after it. The same call, or a later commit, succeeds when
 * there is memory again. Nothing leaks.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie/impl.h"
#include "oracle.h"

enum { N_ROUTES = 2000, N_COMMITS = 7, MAX_WAITING = 64 };

/* Allocation number `fail_at` fails, counted from 1. 0: none. */
struct hooks {
	int calls, fail_at, live;
	unsigned int keep; /* retired batches that wait; 0: there are no readers */
	struct poptrie_retired *waiting[MAX_WAITING];
	unsigned int n_waiting;
};

static void *
hook_alloc(void *ctx, size_t bytes, size_t align)
{
	struct hooks *h = ctx;
	if (++h->calls == h->fail_at)
		return NULL;
	h->live++;
	return heap_alloc(NULL, bytes, align);
}

static void
hook_free(void *ctx, void *mem)
{
	struct hooks *h = ctx;

	h->live--;
	free(mem);
}

static void
reclaim_down_to(struct hooks *h, struct poptrie *pt, unsigned int keep)
{
	while (h->n_waiting > keep) {
		poptrie_reclaim(pt, h->waiting[0]);
		h->n_waiting--;
		memmove(h->waiting, h->waiting + 1, h->n_waiting * sizeof(*h->waiting));
	}
}

static void
hook_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	struct hooks *h = ctx;

	h->waiting[h->n_waiting++] = r;
	reclaim_down_to(h, pt, h->keep);
}

static struct poptrie_conf
conf_for(bool ip6, struct hooks *h)
{
	return (struct poptrie_conf){.family = ip6 ? POPTRIE_IP6 : POPTRIE_IP4,
				     .alloc = hook_alloc,
				     .free = hook_free,
				     .retire = h->keep ? hook_retire : NULL,
				     .ctx = h};
}

static void
a_failed_create_leaves_nothing_behind(void **state)
{
	for (int ip6 = 0; ip6 < 2; ip6++) {
		struct hooks h = {0};
		struct poptrie_conf conf = conf_for(ip6, &h);
		struct poptrie *pt;
		int n;

		assert_int_equal(poptrie_create(&pt, &conf), 0);
		n = h.calls;
		poptrie_destroy(pt);
		assert_int_equal(h.live, 0);
		for (int k = 1; k <= n; k++) {
			h.calls = 0;
			h.fail_at = k;
			assert_int_equal(poptrie_create(&pt, &conf), -ENOMEM);
			assert_int_equal(h.live, 0);
		}
	}
}

/* A sequence of batches that makes each pool and list grow. */
struct script {
	bool ip6;
	bool late; /* the next commit completes a failed one */
	struct poptrie *pt;
	/* Routes of the last good commit, routes that are staged. */
	struct oracle *before, *after;
	struct rnd r;
};

static uint32_t
answer(const struct script *s, const uint8_t *a)
{
	if (s->ip6)
		return poptrie6_lookup(s->pt, a);
	return poptrie4_lookup(s->pt, (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3]);
}

static void
answers_are_before_or_after(const struct script *s)
{
	struct oracle_route *all = oracle_sorted(s->after);

	for (uint32_t i = 0; i < s->after->routes; i += 7) {
		unsigned int bits = s->ip6 ? 128 : 32;
		uint32_t got = answer(s, all[i].addr);
		uint32_t was = oracle_match(s->before, all[i].addr, bits, NULL);
		uint32_t is = oracle_match(s->after, all[i].addr, bits, NULL);

		if (got != was && got != is)
			print_error("got %u, before %u, after %u\n", got, was, is);
		assert_true(got == was || got == is);
	}
	free(all);
}

static void
answers_are_after(const struct script *s)
{
	struct oracle_route *all = oracle_sorted(s->after);

	for (uint32_t i = 0; i < s->after->routes; i += 3)
		assert_int_equal(
			answer(s, all[i].addr),
			oracle_match(s->after, all[i].addr, s->ip6 ? 128 : 32, NULL));
	free(all);
}

static void
add(struct script *s, const uint8_t *a, unsigned int len, uint32_t value)
{
	int rc = poptrie_add(s->pt, a, len, value);

	if (rc < 0) {
		uint32_t was = oracle_exact(s->after, a, len);

		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(poptrie_exact(s->pt, a, len), was);
		rc = poptrie_add(s->pt, a, len, value);
	}
	assert_int_equal(rc, 0);
	oracle_set(s->after, a, len, value);
}

static void
commit(struct script *s, bool last)
{
	struct oracle_route *all;
	int rc;

	pt_walk_begin(pt_view(s->pt), 0); /* blocks move, too */
	rc = poptrie_commit(s->pt);
	if (rc < 0) {
		assert_int_equal(rc, -ENOMEM);
		answers_are_before_or_after(s);
		if (s->late && !last)
			return;
		rc = poptrie_commit(s->pt);
	}
	assert_int_equal(rc, 0);
	answers_are_after(s);
	all = oracle_sorted(s->after);
	oracle_free(s->before);
	s->before = oracle_new(s->ip6);
	for (uint32_t i = 0; i < s->after->routes; i++)
		oracle_set(s->before, all[i].addr, all[i].len, all[i].value);
	free(all);
}

static void
play(struct script *s)
{
	for (int c = 0; c < N_COMMITS; c++) {
		uint8_t a[16] = {0};

		for (int i = 0; i < N_ROUTES; i++) {
			uint64_t x = rnd_next(&s->r);
			unsigned int len = s->ip6 ? 20 + (x >> 4) % 45 : 12 + (x >> 4) % 21;

			a[0] = s->ip6 ? 0x20 : 10;
			a[1] = (uint8_t)(x >> 16) & 3;
			memcpy(a + 2, &x, s->ip6 ? 6 : 2);
			if (x >> 62 == 0 && oracle_del(s->after, a, len))
				assert_int_equal(poptrie_del(s->pt, a, len), 0);
			else
				add(s, a, len, 1 + (uint32_t)(x >> 40) % 1000);
		}
		if (c % 3 == 1)
			add(s, a, 0, 1 + (uint32_t)c);
		if (c == N_COMMITS - 3)
			add(s, a, 20, 70000);
		commit(s, c == N_COMMITS - 1);
	}
}

static void
all_blocks_come_back(struct script *s, struct hooks *h)
{
	struct oracle_route *all = oracle_sorted(s->after);
	struct poptrie_stats st;

	for (uint32_t i = 0; i < s->after->routes; i++)
		assert_int_equal(poptrie_del(s->pt, all[i].addr, all[i].len), 0);
	free(all);
	assert_int_equal(poptrie_commit(s->pt), 0);
	reclaim_down_to(h, s->pt, 0);
	poptrie_stats(s->pt, &st);
	assert_int_equal(st.nodes, 0);
	assert_int_equal(st.leaves, 0);
	assert_int_equal(st.retired_bytes, 0);
}

static int
run(bool ip6, struct hooks *h, uint64_t seed)
{
	struct poptrie_conf conf = conf_for(ip6, h);
	struct script s = {.ip6 = ip6, .late = h->fail_at & 1, .r = {seed}};
	int fail_at = h->fail_at, calls;

	h->fail_at = 0;
	assert_int_equal(poptrie_create(&s.pt, &conf), 0);
	h->calls = 0;
	h->fail_at = fail_at;
	s.before = oracle_new(ip6);
	s.after = oracle_new(ip6);
	play(&s);
	calls = h->calls;
	h->fail_at = 0;
	all_blocks_come_back(&s, h);
	poptrie_destroy(s.pt);
	oracle_free(s.before);
	oracle_free(s.after);
	assert_int_equal(h->live, 0);
	return calls;
}

static void
any_allocation_may_fail(void **state)
{
	struct rnd r = rnd_seeded(__func__);

	for (unsigned int how = 0; how < 4; how++) {
		bool ip6 = how & 1;
		struct hooks h = {.keep = how & 2 ? 2 : 0};
		uint64_t seed = rnd_next(&r) | 1;
		int n = run(ip6, &h, seed), step = 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
		step = 7;
#endif
		print_message("%d allocations, IPv%d, %u batches wait\n", n, ip6 ? 6 : 4,
			      h.keep);
		for (int k = 1 + (int)(seed % (uint64_t)step); k <= n; k += step) {
			h.fail_at = k;
			run(ip6, &h, seed);
		}
	}
}

/*
 * The table is so small that no pool grows. If a pool grew, a new view would hide blocks
 * that were lost in the old view.
 */
static void
a_slot_half_built_leaves_no_block_behind(void **state)
{
	for (int ip6 = 0; ip6 < 2; ip6++) {
		int n = 1;

		for (int k = 1; k <= n; k++) {
			struct hooks h = {0};
			struct poptrie_conf conf = conf_for(ip6, &h);
			struct script s = {.ip6 = ip6, .after = oracle_new(ip6)};

			assert_int_equal(poptrie_create(&s.pt, &conf), 0);
			h.calls = 0;
			h.fail_at = k;
			for (uint8_t i = 0; i < 64; i++) {
				uint8_t a[16] = {0x20, 1, ip6 ? 0xd : i, ip6 ? i : 7, 0, 9};

				add(&s, a, ip6 ? 48 : 32, 1u + i);
			}
			if (poptrie_commit(s.pt) < 0)
				assert_int_equal(poptrie_commit(s.pt), 0);
			n = h.calls;
			h.fail_at = 0;
			answers_are_after(&s);
			all_blocks_come_back(&s, &h);
			poptrie_destroy(s.pt);
			oracle_free(s.after);
		}
		assert_true(n > 3);
	}
}

/*
 * Many commits within one grace period need many lists. When only few commits follow, the
 * memory of these lists is freed.
 */
static void
batches_that_waited_are_not_all_kept(void **state)
{
	enum { N = 256 };
	struct hooks h = {.keep = MAX_WAITING - 1};
	struct poptrie_conf conf = conf_for(false, &h);
	struct poptrie *pt;
	int few = 0, many;

	assert_int_equal(poptrie_create(&pt, &conf), 0);
	for (uint32_t turn = 0; turn < 2 * MAX_WAITING; turn++) {
		for (uint32_t i = 0; i < N; i++) {
			uint8_t a[4] = {10, (uint8_t)i, (uint8_t)turn, 1};

			assert_int_equal(poptrie_add(pt, a, 32, 1 + turn), 0);
		}
		assert_int_equal(poptrie_commit(pt), 0);
		if (turn == 2)
			few = h.live;
	}
	many = h.live;
	assert_int_equal(h.n_waiting, MAX_WAITING - 1);
	assert_true(many - few >= 2 * (MAX_WAITING - 4)); /* a batch and its list */
	reclaim_down_to(&h, pt, 0);
	/* Chunks of the route table are never freed. */
	assert_in_range(h.live, 1, few + 2 * PT_IDLE);
	assert_true(many - h.live >= 2 * (MAX_WAITING - 1 - (int)PT_IDLE));
	poptrie_destroy(pt);
	assert_int_equal(h.live, 0);
}

/* A list that a large commit has made long is freed, too. */
static void
a_long_list_is_not_kept(void **state)
{
	enum { N = 3 * PT_IDLE_CAP };
	struct poptrie_conf conf = {.family = POPTRIE_IP4};
	struct poptrie *pt;

	assert_int_equal(poptrie_create(&pt, &conf), 0);
	for (uint32_t turn = 1; turn <= 2; turn++) {
		for (uint32_t i = 0; i < N; i++) {
			uint8_t a[4] = {10, (uint8_t)(i >> 6), (uint8_t)(i << 2), 0};

			a[3] = (uint8_t)(i % 4 * 64 + turn);
			assert_int_equal(poptrie_add(pt, a, 32, 1 + i % 7), 0);
		}
		assert_int_equal(poptrie_commit(pt), 0);
	}
	for (struct pt_batch *b = pt->idle; b != NULL; b = b->next)
		assert_in_range(b->old.cap, 0, PT_IDLE_CAP);
	poptrie_destroy(pt);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_create_leaves_nothing_behind),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(a_slot_half_built_leaves_no_block_behind),
		cmocka_unit_test(batches_that_waited_are_not_all_kept),
		cmocka_unit_test(a_long_list_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
