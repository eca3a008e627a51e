/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One writer and several readers at the same time. A pure function of the generation g
 * decides which test prefixes exist and their values, so that a reader knows which
 * generations give an answer. It also knows the generations that were published before its
 * lookup and begun after it. Any other answer is a failure. A histogram shows the age of
 * the answers.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie/impl.h"
#include "oracle.h"

#if defined(__SANITIZE_THREAD__)
enum { COMMITS = 300 };
#elif defined(__SANITIZE_ADDRESS__)
enum { COMMITS = 600 };
#else
enum { COMMITS = 2500 };
#endif
enum { READERS = 2, PLACES = 48, PLACES_FEW = 16, LEVELS = 6, AGES = 8, KEYS = 64 };

/* Nested prefixes at each place. Level 0 is the default route, which all places share. */
static const unsigned int lens4[LEVELS] = {0, 10, 17, 22, 27, 32};
static const unsigned int lens6[LEVELS] = {0, 12, 23, 40, 64, 128};

struct stress {
	struct poptrie *pt;
	bool ip6;
	unsigned int places;
	atomic_uint begun, done; /* generations; W:writer R:readers */
	atomic_bool stop;
	atomic_uint passed[READERS]; /* W:its reader R:writer  quiescent states */
	uint64_t ages[READERS][AGES];
	uint64_t lookups[READERS];
	atomic_uint wrong;
	uint32_t base; /* added to all values; W:writer before a generation begins */
	struct poptrie_retired *waiting[64];
	unsigned int since[64][READERS];
	unsigned int n_waiting;
};

/*
 * Return the epoch of a prefix. Only some prefixes change from one generation to the next:
 * prefixes shorter than a direct slot change in even generations, so that leaves change in
 * place. Longer prefixes change in odd generations, and the default route in each third.
 */
static uint32_t
epoch(uint32_t gen, unsigned int place, unsigned int level)
{
	if (level == 0)
		return gen / 3;
	gen = (gen + (level >= 3)) / 2;
	return (gen + place * 7 + level * 3) / (2 + (place + level) % 5);
}

/* Return the value of a prefix in a generation, or 0 if it does not exist. */
static uint32_t
value_at(uint32_t gen, unsigned int place, unsigned int level)
{
	uint32_t e, h;

	if (level == 0)
		place = 0;
	/* A quarter of the places have one prefix, or only the default route. */
	else if (level != 3 && place / 4 % 4 == 3)
		return 0;
	e = epoch(gen, place, level);
	h = (e * 2654435761u) ^ (place * 40503u + level * 97u);
	if ((h >> 9) % 3 == 0)
		return 0;
	/* In the second half of the run values need 32-bit leaves. */
	return 1 + (h >> 5) % 32000 + (gen > COMMITS / 2 ? 1000000u * (h & 1) : 0);
}

static void
place_addr(bool ip6, unsigned int place, uint8_t *a)
{
	memset(a, 0, 16);
	if (ip6) {
		/* Prefixes inside and outside of 2000::/3. Some share a direct slot. */
		a[0] = place % 3 == 0 ? 0xfd : 0x20;
		a[1] = (uint8_t)(place / 4);
		a[15] = (uint8_t)place;
		a[7] = (uint8_t)(place % 4);
	} else {
		a[0] = (uint8_t)(10 + place / 16);
		a[1] = (uint8_t)(place / 4 % 4 * 64);
		a[2] = (uint8_t)(place % 4);
		a[3] = (uint8_t)place;
	}
}

/*
 * The first place that shares the prefix (place, level). It owns the prefix, so each prefix
 * has one owner. The table is computed once for each kind, because the masks took most of
 * the time of this program under ThreadSanitizer.
 */
static unsigned int owner[PLACES][LEVELS];

static void
owners_find(bool ip6)
{
	for (unsigned int place = 0; place < PLACES; place++) {
		for (unsigned int level = 0; level < LEVELS; level++) {
			unsigned int len = (ip6 ? lens6 : lens4)[level], p = 0;
			uint8_t a[16], b[16];

			place_addr(ip6, place, a);
			oracle_mask(a, ip6 ? 16 : 4, len, false);
			for (; p < place; p++) {
				place_addr(ip6, p, b);
				oracle_mask(b, ip6 ? 16 : 4, len, false);
				if (memcmp(a, b, 16) == 0)
					break;
			}
			owner[place][level] = p;
		}
	}
}

/* Return the answer of a generation at a place. */
static uint32_t
answer_at(uint32_t gen, unsigned int place)
{
	for (unsigned int level = LEVELS; level-- > 0;) {
		uint32_t v = value_at(gen, owner[place][level], level);

		if (v)
			return v;
	}
	return 0;
}

/*
 * answers[gen][place], computed once for each kind, because the oracle would make readers
 * slow.
 */
static uint32_t answers[COMMITS + 1][PLACES];

struct reader_arg {
	struct stress *s;
	int id;
};

static void
judge(struct stress *s, int id, unsigned int place, uint32_t got, uint32_t from,
      uint32_t to)
{
	for (uint32_t g = to;; g--) {
		if (answers[g][place] == got) {
			s->ages[id][to - g < AGES ? to - g : AGES - 1]++;
			return;
		}
		if (g == from)
			break;
	}
	if (atomic_fetch_add(&s->wrong, 1) < 5)
		print_error("place %u: got %u, begun %u, done %u\n", place, got, to, from);
}

static void *
reader(void *arg)
{
	struct stress *s = ((struct reader_arg *)arg)->s;
	int id = ((struct reader_arg *)arg)->id;
	uint8_t addr[PLACES][16];
	const uint8_t *key[KEYS];
	uint32_t ip4[KEYS], got[KEYS], from, to;
	struct rnd r = {(uint64_t)id + 12345};

	for (unsigned int p = 0; p < PLACES; p++)
		place_addr(s->ip6, p, addr[p]);
	while (!atomic_load(&s->stop)) {
		unsigned int place[KEYS], n = 1 + rnd_below(&r, KEYS);

		for (unsigned int i = 0; i < n; i++) {
			uint8_t *a = addr[place[i] = rnd_below(&r, s->places)];

			key[i] = a;
			ip4[i] = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
		}
		from = atomic_load(&s->done);
		if (n == 1 && atomic_load(&s->passed[id]) % 2 == 0)
			got[0] = s->ip6 ? poptrie6_lookup(s->pt, key[0])
					: poptrie4_lookup(s->pt, ip4[0]);
		else if (s->ip6)
			poptrie6_lookup_bulk(s->pt, key, got, n);
		else
			poptrie4_lookup_bulk(s->pt, ip4, got, n);
		to = atomic_load(&s->begun);
		for (unsigned int i = 0; i < n; i++)
			judge(s, id, place[i], got[i], from, to);
		s->lookups[id] += n;
		atomic_fetch_add(&s->passed[id], 1);
	}
	return NULL;
}

static void
reclaim_passed(struct stress *s, bool all)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < s->n_waiting; i++) {
		bool passed = true;

		for (int id = 0; id < READERS; id++)
			passed = passed && atomic_load(&s->passed[id]) != s->since[i][id];
		if (passed || all) {
			poptrie_reclaim(s->pt, s->waiting[i]);
			continue;
		}
		s->waiting[kept] = s->waiting[i];
		memcpy(s->since[kept++], s->since[i], sizeof(s->since[i]));
	}
	s->n_waiting = kept;
}

static void
hook_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	struct stress *s = ctx;

	(void)pt;
	while (s->n_waiting == 64)
		reclaim_passed(s, false);
	for (int id = 0; id < READERS; id++)
		s->since[s->n_waiting][id] = atomic_load(&s->passed[id]);
	s->waiting[s->n_waiting++] = r;
}

static void
write_generation(struct stress *s, uint32_t gen)
{
	const unsigned int *lens = s->ip6 ? lens6 : lens4;
	uint8_t a[16];

	for (unsigned int place = 0; place < s->places; place++) {
		place_addr(s->ip6, place, a);
		for (unsigned int level = 0; level < LEVELS; level++) {
			uint32_t v = value_at(gen, place, level);

			if (owner[place][level] != place)
				continue;
			if (v)
				assert_int_equal(poptrie_add(s->pt, a, lens[level], v), 0);
			else if (poptrie_exact(s->pt, a, lens[level]))
				assert_int_equal(poptrie_del(s->pt, a, lens[level]), 0);
		}
	}
	atomic_store(&s->begun, gen);
	if (gen % 16 == 1) /* blocks move while readers read */
		pt_walk_begin(pt_view(s->pt), 0);
	assert_int_equal(poptrie_commit(s->pt), 0);
	atomic_store(&s->done, gen);
	reclaim_passed(s, false);
}

/* Run the stress. Return the number of commits after which readers had a list of ranges. */
static unsigned int
stress(bool ip6, enum pt_layout layout, bool small)
{
	static struct stress s;
	struct poptrie_conf conf = {.family = ip6 ? POPTRIE_IP6 : POPTRIE_IP4,
				    .small = small,
				    .alloc = heap_alloc,
				    .free = heap_free,
				    .retire = hook_retire,
				    .ctx = &s};
	struct reader_arg arg[READERS];
	pthread_t thread[READERS];
	unsigned int listed = 0;

	memset(&s, 0, sizeof(s));
	s.ip6 = ip6;
	s.places = small ? PLACES_FEW : PLACES;
	assert_int_equal(pt_create(&s.pt, &conf, layout, pt_isa_best()), 0);
	s.pt->min_visits = PT_LEVELS + 3;
	owners_find(ip6);
	memset(answers[0], 0, sizeof(answers[0]));
	for (uint32_t gen = 1; gen <= COMMITS; gen++)
		for (unsigned int p = 0; p < PLACES; p++)
			answers[gen][p] = answer_at(gen, p);
	for (int id = 0; id < READERS; id++) {
		arg[id] = (struct reader_arg){&s, id};
		assert_int_equal(pthread_create(&thread[id], NULL, reader, &arg[id]), 0);
	}
	for (uint32_t gen = 1; gen <= COMMITS && atomic_load(&s.wrong) == 0; gen++) {
		write_generation(&s, gen);
		listed += atomic_load(&s.pt->ranges_turn) % 2 == 0;
	}
	atomic_store(&s.stop, true);
	for (int id = 0; id < READERS; id++)
		pthread_join(thread[id], NULL);
	reclaim_passed(&s, true);
	for (int id = 0; id < READERS; id++) {
		print_message("reader %d: %llu lookups, ages", id,
			      (unsigned long long)s.lookups[id]);
		for (int i = 0; i < AGES; i++)
			print_message(" %llu", (unsigned long long)s.ages[id][i]);
		print_message("\n");
	}
	poptrie_destroy(s.pt);
	assert_int_equal(atomic_load(&s.wrong), 0);
	return listed;
}

static void
ipv4_readers_see_only_tables_that_were(void **state)
{
#ifndef __SANITIZE_THREAD__ /* TSan does not support 16-byte accesses */
	stress(false, PT_FUSED, false);
#endif
}

static void
ipv4_readers_of_the_old_layout_do_too(void **state)
{
	stress(false, PT_WIDE, false);
}

static void
ipv6_readers_see_only_tables_that_were(void **state)
{
	stress(true, PT_WIDE, false);
}

/* Most generations of this table fit a few ranges. */
static void
readers_of_small_tables_do_too(void **state)
{
	unsigned int listed = stress(false, PT_WIDE, true);

	print_message("%u generations of %u as ranges\n", listed, COMMITS);
	if (pt_isa_best() >= PT_AVX2)
		assert_true(listed > COMMITS / 2);
	else
		assert_int_equal(listed, 0);
	stress(true, PT_WIDE, true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_readers_see_only_tables_that_were),
		cmocka_unit_test(ipv4_readers_of_the_old_layout_do_too),
		cmocka_unit_test(ipv6_readers_see_only_tables_that_were),
		cmocka_unit_test(readers_of_small_tables_do_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
