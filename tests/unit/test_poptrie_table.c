/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real full tables at all prefix edges, and a real update stream. The data is not part of
 * the project. Without it the tests are skipped.
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "poptrie/impl.h"
#include "oracle.h"

#define DATA "../shared/data/"
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 13 }; /* check a part of the edges, because sanitizers are slow */
#else
enum { EVERY = 1 };
#endif

/* Read lines of an xz file. Skip the test if the file or the tool does not exist. */
static FILE *
open_table(const char *name)
{
	char path[256], cmd[300];
	FILE *f;

	snprintf(path, sizeof(path), DATA "%s", name);
	if (access(path, R_OK) != 0) {
		print_message("skipped: no table %s (not part of the project)\n", path);
		skip();
	}
	snprintf(cmd, sizeof(cmd), "xzcat %s", path);
	f = popen(cmd, "r");
	assert_non_null(f);
	return f;
}

static uint32_t
hash_value(const uint8_t *addr, unsigned int len, uint32_t n)
{
	uint64_t h = len;

	for (int i = 0; i < 16; i++)
		h = (h ^ addr[i]) * 0x100000001b3ull;
	return 1 + (uint32_t)(h >> 20) % n;
}

struct loaded {
	struct poptrie *pt;
	struct oracle *o;
	bool ip6;
};

static struct loaded
load(const char *name, bool ip6, enum pt_layout layout, uint32_t values)
{
	struct poptrie_conf conf = {.family = ip6 ? POPTRIE_IP6 : POPTRIE_IP4};
	struct loaded t = {.ip6 = ip6};
	char line[128], prefix[64];
	FILE *f = open_table(name);

	assert_int_equal(pt_create(&t.pt, &conf, layout, pt_isa_best()), 0);
	t.o = oracle_new(ip6);
	while (fgets(line, sizeof(line), f)) {
		unsigned int len;
		uint8_t a[16];
		uint32_t v;

		if (sscanf(line, "%63s", prefix) != 1)
			continue;
		len = oracle_prefix(prefix, a);
		v = hash_value(a, len, values);
		assert_int_equal(poptrie_add(t.pt, a, len, v), 0);
		oracle_set(t.o, a, len, v);
	}
	pclose(f);
	assert_int_equal(poptrie_commit(t.pt), 0);
	return t;
}

/* Compare the edges of every n-th prefix by bulk and single lookups. */
static void
edges_agree(struct loaded *t, uint32_t every)
{
	enum { N = 6 * 64 };
	struct oracle_route *all = oracle_sorted(t->o);
	unsigned int bytes = t->ip6 ? 16 : 4, n = 0;
	static uint8_t addr[N][16];
	static const uint8_t *key[N];
	static uint32_t ip4[N], got[N];

	for (uint32_t i = 0; i < t->o->routes; i++) {
		if (i % every && i + 1 < t->o->routes)
			continue;
		for (int e = 0; e < 6; e++) {
			uint8_t *a = addr[n];

			memcpy(a, all[i].addr, 16);
			oracle_mask(a, bytes, all[i].len, e & 1);
			oracle_step(a, bytes, e / 2 - 1);
			ip4[n] = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
			key[n++] = a;
		}
		if (n < N && i + 1 < t->o->routes)
			continue;
		if (t->ip6)
			poptrie6_lookup_bulk(t->pt, key, got, n);
		else
			poptrie4_lookup_bulk(t->pt, ip4, got, n);
		for (unsigned int j = 0; j < n; j++) {
			uint32_t want = oracle_match(t->o, addr[j], bytes * 8, NULL);

			if (got[j] != want)
				assert_int_equal(got[j], want);
			got[j] = t->ip6 ? poptrie6_lookup(t->pt, key[j])
					: poptrie4_lookup(t->pt, ip4[j]);
			if (got[j] != want)
				assert_int_equal(got[j], want);
		}
		n = 0;
	}
	free(all);
}

static void
unload(struct loaded *t)
{
	struct poptrie_stats st;

	poptrie_stats(t->pt, &st);
	print_message(
		"%llu routes: direct %zu, nodes %zu, leaves %zu, free %zu, radix %zu\n",
		(unsigned long long)st.routes, st.direct_bytes, st.node_bytes,
		st.leaf_bytes, st.free_bytes, st.radix_bytes);
	assert_int_equal(st.routes, t->o->routes);
	assert_true(t->o->routes < 100000 || st.radix_bytes / st.routes < 200);
	poptrie_destroy(t->pt);
	oracle_free(t->o);
}

static void
a_full_ipv4_table_agrees_at_all_edges(void **state)
{
	struct loaded t = load("bart-v4.txt.xz", false, PT_FUSED, 64);

	edges_agree(&t, EVERY);
	unload(&t);
}

static void
a_full_ipv4_table_with_wide_values_agrees(void **state)
{
	struct loaded t = load("pyasn-20140513-v4.txt.xz", false, PT_WIDE, 300000);

	edges_agree(&t, 8 * EVERY);
	unload(&t);
}

static void
a_full_ipv6_table_agrees_at_all_edges(void **state)
{
	struct loaded t = load("bart-v6.txt.xz", true, PT_WIDE, 64);

	edges_agree(&t, EVERY);
	unload(&t);
}

/* Commits of 1 to 32 changes of a recorded feed, and the table at the end. */
static void
a_real_update_stream_agrees(void **state)
{
	struct rnd r = rnd_seeded(__func__);
	struct loaded t[2];
	char line[128], prefix[64], what;
	unsigned int value, burst = 0;
	FILE *f = open_table("ripe-update-20160811.txt.xz");

	for (int ip6 = 0; ip6 < 2; ip6++) {
		struct poptrie_conf conf = {.family = ip6 ? POPTRIE_IP6 : POPTRIE_IP4};

		t[ip6].ip6 = ip6;
		t[ip6].o = oracle_new(ip6);
		assert_int_equal(poptrie_create(&t[ip6].pt, &conf), 0);
	}
	while (fgets(line, sizeof(line), f)) {
		struct loaded *at;
		unsigned int len;
		uint8_t a[16];
		int n = sscanf(line, "%c %63s %u", &what, prefix, &value);

		assert_true(n >= 2);
		at = &t[strchr(prefix, ':') != NULL];
		len = oracle_prefix(prefix, a);
		if ((what | 0x20) == 'a') {
			assert_int_equal(poptrie_add(at->pt, a, len, value + 1), 0);
			oracle_set(at->o, a, len, value + 1);
		} else {
			int rc = poptrie_del(at->pt, a, len);

			assert_int_equal(rc == 0, oracle_del(at->o, a, len) != 0);
		}
		if (burst-- > 0)
			continue;
		burst = rnd_below(&r, 32);
		for (int ip6 = 0; ip6 < 2; ip6++)
			assert_int_equal(poptrie_commit(t[ip6].pt), 0);
	}
	pclose(f);
	for (int ip6 = 0; ip6 < 2; ip6++) {
		assert_int_equal(poptrie_commit(t[ip6].pt), 0);
		edges_agree(&t[ip6], 1);
		unload(&t[ip6]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ipv4_table_agrees_at_all_edges),
		cmocka_unit_test(a_full_ipv4_table_with_wide_values_agrees),
		cmocka_unit_test(a_full_ipv6_table_agrees_at_all_edges),
		cmocka_unit_test(a_real_update_stream_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
