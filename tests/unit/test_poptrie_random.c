/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poptrie compared with the naive table: random tables at all prefix edges, long update
 * sequences, the cursor. The tested table changes by increments and by rebuilds.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "poptrie/impl.h"
#include "oracle.h"

#ifdef __SANITIZE_ADDRESS__
#define STEPS 20000
#elif defined(__SANITIZE_THREAD__)
#define STEPS 10000
#else
#define STEPS 100000
#endif

/* A table, its naive counterpart, and the distribution of random prefixes. */
struct pair {
	struct poptrie *pt;
	struct oracle *o;
	struct rnd r;
	uint32_t values;
	unsigned int bytes;
	unsigned int walks; /* complete walks over all nodes, started by move_blocks() */
};

enum kind { FUSED4, WIDE4, FEW4, IP6, FEW6, N_KINDS };

/* The variant of bulk lookup of the next table. */
static enum pt_isa isa;

static struct pair
pair_new(const char *name, enum kind kind, uint32_t values, bool hooks)
{
	bool ip6 = kind == IP6 || kind == FEW6;
	struct poptrie_conf conf = {.family = ip6 ? POPTRIE_IP6 : POPTRIE_IP4,
				    .small = kind == FEW4 || kind == FEW6};
	struct pair p = {.r = rnd_seeded(name), .values = values};

	if (hooks) {
		conf.alloc = heap_alloc;
		conf.free = heap_free;
	}
	assert_int_equal(pt_create(&p.pt, &conf, kind == FUSED4 ? PT_FUSED : PT_WIDE, isa),
			 0);
	p.o = oracle_new(ip6);
	p.bytes = p.o->bytes;
	return p;
}

static void
pair_free(struct pair *p)
{
	poptrie_destroy(p->pt);
	oracle_free(p->o);
}

/*
 * Return a random prefix. Addresses are in few places, so that prefixes nest and share
 * nodes.
 */
static unsigned int
random_prefix(struct pair *p, uint8_t *addr)
{
	unsigned int bits = p->bytes * 8, len;
	static const uint8_t firsts[] = {0x00, 0x20, 0x2a, 0x1f, 0x3f, 0x40, 0xfe, 0xff};

	memset(addr, 0, 16);
	for (unsigned int i = 0; i < p->bytes; i++) {
		uint64_t x = rnd_next(&p->r) >> 20;

		addr[i] = x % 3 == 0 ? 0 : x % 3 == 1 ? 0xff : (uint8_t)(x >> 8);
	}
	addr[0] = firsts[rnd_below(&p->r, sizeof(firsts))];
	if (rnd_below(&p->r, 4))
		addr[1] = (uint8_t)(0xa0 + rnd_below(&p->r, 3));
	switch (rnd_below(&p->r, 8)) {
	case 0:
		return rnd_below(&p->r, bits + 1);
	case 1:
		return bits - rnd_below(&p->r, 3);
	case 2:
		return rnd_below(&p->r, 400) == 0 ? 0 : 8 + rnd_below(&p->r, 9);
	default:
		len = 14 + rnd_below(&p->r, bits - 14 + 1);
		return len;
	}
}

static void
same_answer(const struct pair *p, const uint8_t *addr)
{
	uint32_t want = oracle_match(p->o, addr, p->bytes * 8, NULL), got;

	if (p->bytes == 4)
		got = poptrie4_lookup(p->pt, (uint32_t)addr[0] << 24 | addr[1] << 16 |
						     addr[2] << 8 | addr[3]);
	else
		got = poptrie6_lookup(p->pt, addr);
	if (got != want) {
		for (unsigned int i = 0; i < p->bytes; i++)
			print_error("%02x%s", addr[i], i % 2 ? ":" : "");
		print_error(" has %u, must have %u\n", got, want);
	}
	assert_int_equal(got, want);
}

/* Compare the answers inside a prefix and next to both ends. */
static void
same_at_edges(struct pair *p, const uint8_t *addr, unsigned int len)
{
	uint8_t a[16];

	for (int end = 0; end < 2; end++) {
		for (int d = -1; d <= 1; d++) {
			memcpy(a, addr, 16);
			oracle_mask(a, p->bytes, len, end);
			oracle_step(a, p->bytes, d);
			same_answer(p, a);
		}
	}
	/* A random address inside. */
	memcpy(a, addr, 16);
	oracle_mask(a, p->bytes, len, false);
	for (unsigned int i = len; i < p->bytes * 8; i++)
		if (rnd_next(&p->r) >> 63)
			a[i / 8] |= 0x80 >> i % 8;
	same_answer(p, a);
}

static void
same_everywhere(struct pair *p)
{
	struct oracle_route *all = oracle_sorted(p->o);

	for (uint32_t i = 0; i < p->o->routes; i++)
		same_at_edges(p, all[i].addr, all[i].len);
	free(all);
	for (int i = 0; i < 1000; i++) {
		uint8_t a[16];

		random_prefix(p, a);
		same_answer(p, a);
	}
}

static void
change(struct pair *p, uint8_t *addr, unsigned int *len)
{
	uint32_t value = 1 + rnd_below(&p->r, p->values);

	*len = random_prefix(p, addr);
	if (rnd_below(&p->r, 5) < 3) {
		assert_int_equal(poptrie_add(p->pt, addr, *len, value), 0);
		oracle_set(p->o, addr, *len, value);
	} else {
		int rc = poptrie_del(p->pt, addr, *len);

		assert_int_equal(rc == 0, oracle_del(p->o, addr, *len) != 0);
	}
}

/* Remove an existing route, because random prefixes rarely match one. */
static void
remove_one(struct pair *p, uint8_t *addr, unsigned int *len)
{
	uint32_t want;

	*len = random_prefix(p, addr);
	want = poptrie_next(p->pt, addr, len, true);
	if (want == POPTRIE_NONE)
		return;
	assert_int_equal(oracle_exact(p->o, addr, *len), want);
	assert_int_equal(poptrie_del(p->pt, addr, *len), 0);
	assert_int_equal(oracle_del(p->o, addr, *len), want);
}

static void
random_tables_agree_at_all_edges(void **state)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		for (uint32_t n = 1; n <= STEPS / 5; n *= 5) {
			struct pair p = pair_new(__func__, kind, n % 2 ? 7 : 30000, false);
			unsigned int len;
			uint8_t a[16];

			for (uint32_t i = 0; i < n; i++)
				change(&p, a, &len);
			assert_int_equal(poptrie_commit(p.pt), 0);
			same_everywhere(&p);
			pair_free(&p);
		}
	}
}

/*
 * Start a walk that moves blocks during all other work. When a walk has ended, no block is
 * at a place that it had to leave.
 */
static void
move_blocks(struct pair *p)
{
	struct pt_view *v = pt_view(p->pt);

	if (v->walk.on)
		return;
	assert_int_equal(v->nodes.leaving, PT_NIL);
	assert_int_equal(v->leaves.leaving, PT_NIL);
	if (rnd_below(&p->r, 8) == 0)
		p->walks += pt_walk_begin(v, 0);
}

/*
 * Run random updates. Compare after each commit around the changes, and sometimes
 * everywhere.
 */
static void
update_sequence(enum kind kind, uint32_t steps, uint32_t values, bool hooks)
{
	struct pair p = pair_new(__func__, kind, values, hooks);
	struct poptrie_stats st;
	uint8_t a[64][16];
	unsigned int len[64];

	p.pt->min_visits = PT_LEVELS + 3; /* so few that a walk takes several calls */
	for (uint32_t step = 0; step < steps;) {
		uint32_t n = rnd_below(&p.r, 20) ? 1 + rnd_below(&p.r, 3)
						 : 1 + rnd_below(&p.r, 64);

		for (uint32_t i = 0; i < n; i++, step++) {
			/*
			 * Let the table shrink and grow between some hundred and some
			 * thousand routes.
			 */
			if (rnd_below(&p.r, 8) < 3 + step / (steps / 4) % 2)
				remove_one(&p, a[i], &len[i]);
			else
				change(&p, a[i], &len[i]);
		}
		/* The last tenth needs 32-bit leaves. */
		if (step > steps / 10 * 9)
			p.values = 100000;
		assert_int_equal(poptrie_commit(p.pt), 0);
		move_blocks(&p);
		for (uint32_t i = 0; i < n; i++)
			same_at_edges(&p, a[i], len[i]);
		if (rnd_below(&p.r, steps / 40) == 0)
			same_everywhere(&p);
	}
	same_everywhere(&p);
	poptrie_stats(p.pt, &st);
	assert_int_equal(st.routes, p.o->routes);
	assert_int_equal(st.retired_bytes, 0);
	assert_true(pt_view(p.pt)->leaf32);
	print_message("%u walks\n", p.walks);
	assert_true(p.walks > 10);
	pair_free(&p);
}

static void
long_update_sequences_agree_after_each_commit(void **state)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		update_sequence(kind, STEPS, 200, false);
		update_sequence(kind, STEPS / 10, 3, kind != IP6);
	}
}

static void
a_path_of_host_routes_is_rebuilt_alone(void **state)
{
	for (int kind = 0; kind < IP6; kind++) {
		struct pair p = pair_new(__func__, kind, 30000, false);
		uint8_t a[16] = {10, 1, 0, 0};

		/* A whole /18 of host routes, all different. */
		for (uint32_t i = 0; i < 16384; i++) {
			a[2] = (uint8_t)(i >> 8);
			a[3] = (uint8_t)i;
			assert_int_equal(poptrie_add(p.pt, a, 32, 1 + i), 0);
			oracle_set(p.o, a, 32, 1 + i);
			if (i % 1000 == 0)
				assert_int_equal(poptrie_commit(p.pt), 0);
		}
		assert_int_equal(poptrie_commit(p.pt), 0);
		same_everywhere(&p);
		for (uint32_t i = 0; i < 16384; i += 7) {
			a[2] = (uint8_t)(i >> 8);
			a[3] = (uint8_t)i;
			assert_int_equal(poptrie_del(p.pt, a, 32), 0);
			oracle_del(p.o, a, 32);
			assert_int_equal(poptrie_commit(p.pt), 0);
			same_at_edges(&p, a, 32);
		}
		same_everywhere(&p);
		pair_free(&p);
	}
}

static void
bulk_agrees(enum kind kind, uint32_t values)
{
	enum { MAX = 700 };
	static uint8_t addr[MAX][17]; /* at any alignment, as in packets */
	static const uint8_t *key[MAX];
	static uint32_t ip4[MAX], room[MAX + 2], *value = room + 1;
	static const unsigned int counts[] = {127, 128, 137, 256, 257, MAX};
	enum { EACH = 91, COUNTS = EACH + sizeof(counts) / sizeof(counts[0]) };
	struct pair p = pair_new(__func__, kind, values, false);
	unsigned int len;
	uint8_t a[16];

	for (int i = 0; i < 5000; i++)
		change(&p, a, &len);
	assert_int_equal(poptrie_commit(p.pt), 0);
	for (unsigned int c = 0; c < COUNTS; c++) {
		unsigned int n = c < EACH ? c : counts[c - EACH];

		for (unsigned int i = 0; i < n; i++) {
			random_prefix(&p, addr[i]);
			key[i] = addr[i];
			ip4[i] = (uint32_t)addr[i][0] << 24 | addr[i][1] << 16 |
				 addr[i][2] << 8 | addr[i][3];
		}
		room[0] = value[n] = 0xdeadbeef;
		if (p.bytes == 4)
			poptrie4_lookup_bulk(p.pt, ip4, value, n);
		else
			poptrie6_lookup_bulk(p.pt, key, value, n);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(value[i],
					 oracle_match(p.o, addr[i], p.bytes * 8, NULL));
		assert_int_equal(room[0], 0xdeadbeef);
		assert_int_equal(value[n], 0xdeadbeef);
	}
	pair_free(&p);
}

static void
all_bulk_variants_agree_for_any_count(void **state)
{
	for (isa = PT_SCALAR; isa <= pt_isa_best(); isa++) {
		for (int kind = 0; kind < N_KINDS; kind++) {
			bulk_agrees(kind, 500);
			bulk_agrees(kind, 200000);
		}
	}
	isa = pt_isa_best();
}

/*
 * Write addresses at and around the edges of all prefixes, and random ones, until `room` is
 * used.
 */
static unsigned int
edges(struct pair *p, uint32_t *ip4, unsigned int room)
{
	struct oracle_route *all = oracle_sorted(p->o);
	unsigned int n = 0;

	for (uint32_t i = 0; i < p->o->routes && n + 6 < room; i++)
		for (int e = 0; e < 6; e++) {
			uint8_t a[16];

			memcpy(a, all[i].addr, sizeof(a));
			oracle_mask(a, 4, all[i].len, e < 3);
			oracle_step(a, 4, e % 3 - 1);
			ip4[n++] = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
		}
	free(all);
	while (n < room)
		ip4[n++] = (uint32_t)(rnd_next(&p->r) >> 16);
	return n;
}

/* Look up keys alternately in two tables. Each answer must be that of its own table. */
static void
each_agrees(const struct pair *p, const struct pair *q, const uint32_t *ip4, unsigned int n)
{
	const struct poptrie *pt[64];
	uint32_t value[64];

	for (unsigned int from = 0; from + 64 <= n; from += 64) {
		for (unsigned int i = 0; i < 64; i++)
			pt[i] = (ip4[from + i] >> 3 ^ i) % 3 == 0 ? q->pt : p->pt;
		poptrie4_lookup_each(pt, ip4 + from, value, 64);
		for (unsigned int i = 0; i < 64; i++)
			assert_int_equal(value[i], poptrie4_lookup(pt[i], ip4[from + i]));
	}
}

/*
 * A small table also has a list of 16, 32 or 64 ranges, unless it has too many routes for a
 * list. Each case occurs, and each number of keys from 1 to 64 is looked up.
 */
static void
small_tables_agree(void)
{
	struct pair p = pair_new("small tables", FEW4, 5, false);
	struct pair large = pair_new("large table", FUSED4, 5, false);
	unsigned int seen[4] = {0}, len;
	static uint32_t ip4[800], value[800];
	uint8_t a[16];

	for (int step = 0; step < STEPS / 20; step++) {
		uint32_t want = (uint32_t)step / 8 % 8 * 8; /* each size for some time */

		for (unsigned int i = rnd_below(&p.r, 16); i > 0; i--) {
			if (p.o->routes < want)
				change(&p, a, &len);
			else
				remove_one(&p, a, &len);
		}
		assert_int_equal(poptrie_commit(p.pt), 0);
		seen[p.pt->ranges_turn % 2 != 0 ? 3
		     : p.pt->n_ranges <= 16     ? 0
		     : p.pt->n_ranges <= 32     ? 1
						: 2]++;
		for (unsigned int i = 0, n = edges(&p, ip4, 800), m; i < n; i += m) {
			m = 1 + rnd_below(&p.r, 64);
			m = m < n - i ? m : n - i;
			poptrie4_lookup_bulk(p.pt, ip4 + i, value + i, m);
		}
		for (unsigned int i = 0; i < 800; i++) {
			for (int k = 0; k < 4; k++)
				a[k] = (uint8_t)(ip4[i] >> (24 - 8 * k));
			assert_int_equal(value[i], oracle_match(p.o, a, 32, NULL));
		}
		change(&large, a, &len);
		assert_int_equal(poptrie_commit(large.pt), 0);
		each_agrees(&p, &large, ip4, 800);
	}
	print_message("ranges: %u to 16, %u to 32, %u to 64; %u none\n", seen[0], seen[1],
		      seen[2], seen[3]);
	for (int i = 0; i < 4 && isa >= PT_AVX2; i++)
		assert_true(seen[i] > 10);
	pair_free(&large);
	pair_free(&p);
}

static void
small_tables_agree_as_ranges_or_not(void **state)
{
	for (isa = PT_SCALAR; isa <= pt_isa_best(); isa++)
		small_tables_agree();
	isa = pt_isa_best();
}

static void
the_cursor_walks_all_prefixes_in_order(void **state)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct pair p = pair_new(__func__, kind, 900, false);
		uint8_t a[16] = {0}, b[16];
		struct oracle_route *all;
		unsigned int len, l;
		bool inclusive = true;

		for (int i = 0; i < STEPS / 5; i++)
			change(&p, a, &len);
		all = oracle_sorted(p.o);
		memset(a, 0, sizeof(a));
		len = 0;
		for (uint32_t i = 0; i < p.o->routes; i++) {
			uint32_t value = poptrie_next(p.pt, a, &len, inclusive);

			assert_int_equal(value, all[i].value);
			assert_int_equal(len, all[i].len);
			assert_memory_equal(a, all[i].addr, p.bytes);
			memcpy(b, a, 16);
			l = len;
			assert_int_equal(poptrie_next(p.pt, b, &l, true), value);
			assert_int_equal(l, len);
			assert_int_equal(poptrie_exact(p.pt, a, len), value);
			inclusive = false;
		}
		assert_int_equal(poptrie_next(p.pt, a, &len, false), POPTRIE_NONE);
		free(all);
		pair_free(&p);
	}
}

static void
the_cursor_starts_between_prefixes_too(void **state)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct pair p = pair_new(__func__, kind, 900, false);
		struct oracle_route *all;
		unsigned int len;
		uint8_t a[16];

		for (int i = 0; i < 300; i++)
			change(&p, a, &len);
		all = oracle_sorted(p.o);
		for (int i = 0; i < STEPS / 20; i++) {
			uint32_t j = 0, value;

			len = random_prefix(&p, a);
			oracle_mask(a, p.bytes, len, false);
			while (j < p.o->routes &&
			       (memcmp(all[j].addr, a, p.bytes) < 0 ||
				(memcmp(all[j].addr, a, p.bytes) == 0 && all[j].len < len)))
				j++;
			value = poptrie_next(p.pt, a, &len, true);
			assert_int_equal(value, j < p.o->routes ? all[j].value : 0);
			if (value)
				assert_int_equal(len, all[j].len);
		}
		free(all);
		pair_free(&p);
	}
}

static void
match_agrees_at_every_length(void **state)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct pair p = pair_new(__func__, kind, 900, false);
		unsigned int len, got_len, want_len;
		uint8_t a[16];

		for (int i = 0; i < 3000; i++)
			change(&p, a, &len);
		for (int i = 0; i < STEPS / 20; i++) {
			uint32_t got, want;

			len = random_prefix(&p, a);
			got = poptrie_match(p.pt, a, len, &got_len);
			want = oracle_match(p.o, a, len, &want_len);
			assert_int_equal(got, want);
			assert_int_equal(got_len, want_len);
			assert_int_equal(poptrie_exact(p.pt, a, len),
					 oracle_exact(p.o, a, len));
		}
		pair_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_tables_agree_at_all_edges),
		cmocka_unit_test(long_update_sequences_agree_after_each_commit),
		cmocka_unit_test(a_path_of_host_routes_is_rebuilt_alone),
		cmocka_unit_test(all_bulk_variants_agree_for_any_count),
		cmocka_unit_test(small_tables_agree_as_ranges_or_not),
		cmocka_unit_test(the_cursor_walks_all_prefixes_in_order),
		cmocka_unit_test(the_cursor_starts_between_prefixes_too),
		cmocka_unit_test(match_agrees_at_every_length),
	};

	isa = pt_isa_best();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
