/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print durations without judging them: a full table, the same table again, a restarted
 * zebra, and a link with all routes behind it. Sanitizer and debug builds use a small
 * table.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "oracle.h"
#include "rib/checkpoint.h"
#include "rib/mirror.h"
#include "rib/restore.h"

#ifdef DEBUG
#define N_V4 20000u
#define N_V6 4000u
#else
#define N_V4 1100000u /* before duplicates are removed */
#define N_V6 200000u
#endif
#define N_ID 64u

static int
prefix_order(const void *a, const void *b)
{
	const struct prefix *x = a, *y = b;
	int c = memcmp(&x->addr, &y->addr, sizeof(x->addr));

	return c != 0 ? c : x->len - y->len;
}

static uint32_t n_routes;

static uint32_t
without_twins(struct prefix *p, uint32_t n)
{
	uint32_t out = 0;

	qsort(p, n, sizeof(*p), prefix_order);
	for (uint32_t i = 0; i < n; i++)
		if (out == 0 || prefix_order(&p[out - 1], &p[i]) != 0)
			p[out++] = p[i];
	return out;
}

/*
 * Prefix lengths as in a full table: most IPv4 prefixes are /24, most IPv6 prefixes /48.
 * Sorted, as in zebra's replay.
 */
static struct prefix *
table(void)
{
	static const uint8_t len4[] = {24, 24, 24, 24, 24, 24, 23,
				       22, 22, 21, 20, 19, 18, 16};
	static const uint8_t len6[] = {48, 48, 48, 48, 44, 40, 36, 32, 32, 29};
	struct prefix *p = calloc(N_V4 + N_V6, sizeof(*p));
	struct rnd r = {4711};

	for (uint32_t i = 0; i < N_V4 + N_V6; i++) {
		uint64_t x = rnd_next(&r);

		if (i < N_V4) {
			p[i].family = 4;
			p[i].len = len4[rnd_below(&r, sizeof(len4))];
			p[i].addr = ipaddr_from_v4(0x01000000 +
						   (uint32_t)(x >> 32) % 0xde000000u);
		} else {
			p[i].family = 6;
			p[i].len = len6[rnd_below(&r, sizeof(len6))];
			memcpy(p[i].addr.octet, &x, sizeof(x));
			p[i].addr.octet[0] = 0x20 | (p[i].addr.octet[0] & 1);
			p[i].addr.octet[1] &= 0x0f;
		}
		prefix_mask(&p[i]);
	}
	n_routes = without_twins(p, N_V4);
	memmove(p + n_routes, p + N_V4, N_V6 * sizeof(*p));
	n_routes += without_twins(p + n_routes, N_V6);
	return p;
}

static void
ids(struct rig *g, uint32_t base)
{
	char gw[32];

	for (uint32_t i = 0; i < N_ID; i++) {
		snprintf(gw, sizeof(gw), "192.0.2.%u", i % 100 + 1 + (i & 1) * 128);
		rig_hop(g, base + i, gw, 11 + (i & 1));
	}
	for (uint32_t i = 0; i < N_ID; i++)
		rig_group(g, base + N_ID + i, 2, base + i, 1, base + (i + 1) % N_ID, 1);
	rig_flush_batch(g);
}

/*
 * Feed all routes into a table. Return the seconds of rib's own work. Grace periods end
 * meanwhile.
 */
static double
feed(struct rig *g, uint32_t table, const struct prefix *p, uint32_t base)
{
	struct msg *m;
	struct rnd r = {42};
	double spent = 0, start;
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_routes; i++) {
		struct fpm_event *ev = rig_event(g, FPM_ROUTE);
		bool last = i + 1 == n_routes;

		ev->table = table;
		ev->prefix = p[i];
		ev->nhid = base + rnd_below(&r, 2 * N_ID);
		if (g->batch->n < FPM_BATCH_MAX && !last)
			continue;
		start = monotonic_s();
		rig_flush_batch(g);
		if (++n % 32 == 0 || last) {
			rib_round(g->rib);
			urcu_qsbr_quiescent_state();
			while ((m = worker_take(&g->w)) != NULL)
				rib_on_msg(g->rib, m);
		}
		spent += monotonic_s() - start;
	}
	return spent;
}

static void
report(const char *what, double spent)
{
	printf("{\"bench\": \"rib %s\", \"routes\": %u, \"s\": %.3f, \"routes_per_s\": "
	       "%.0f}\n",
	       what, n_routes, spent, (n_routes) / spent);
}

static void
slot_mirror(struct rib *rib, const struct slot *s)
{
	struct nh_list hops = {0};

	for (uint32_t i = 0; i < s->n_legs; i++)
		*nh_list_push(&hops) = s->leg[i].hop;
	if (s->kind != SLOT_FREE && hops.n > 0)
		mirror_slot(rib, s->number, &hops);
	free(hops.v);
}

/* Measure a checkpoint of all routes, and a start with it. */
static void
restored(struct rig *g)
{
	struct rib_conf *conf = &g->rib->conf;
	struct rig *next = rig_new();
	double start = monotonic_s();
	int fd;

	conf->checkpoint = true;
	conf->checkpoint_max_age_s = 60;
	checkpoint_begin(g->rib, -1);
	for (uint32_t i = 1; i <= g->rib->slots.high; i++)
		slot_mirror(g->rib, slot_at(&g->rib->slots, i));
	for (uint32_t i = 1; i <= g->rib->tables.main.high; i++)
		if (route_at(&g->rib->tables.main, i)->zslot != 0)
			mirror_route(g->rib, route_at(&g->rib->tables.main, i));
	report("checkpoint written whole", monotonic_s() - start);
	fd = dup(g->rib->ckpt->fd);
	start = monotonic_s();
	next->rib->conf.checkpoint = true;
	next->rib->conf.checkpoint_max_age_s = 60;
	checkpoint_begin(next->rib, fd);
	report("restored", monotonic_s() - start);
	assert_int_equal(next->rib->count.restored, n_routes);
	rig_free(next);
}

static void
a_full_table_goes_in(void **state)
{
	struct rig *g = rig_two_ports();
	struct prefix *p = table();
	uint64_t writes;
	double start;
	json_t *row;

	rig_session(g, 100);
	ids(g, 1000);
	report("ingest", feed(g, RIB_TABLE_MAIN, p, 1000));
	rig_settle(g);
	row = rig_summary(g);
	printf("{\"bench\": \"rib memory\", \"rib_bytes\": %lld, \"trie_bytes\": %lld}\n",
	       json_integer_value(json_object_get(row, "rib_bytes")),
	       json_integer_value(json_object_get(json_object_get(row, "fib4"), "bytes")) +
		       json_integer_value(json_object_get(json_object_get(row, "fib4"),
							  "radix_bytes")) +
		       json_integer_value(
			       json_object_get(json_object_get(row, "fib6"), "bytes")) +
		       json_integer_value(json_object_get(json_object_get(row, "fib6"),
							  "radix_bytes")));
	assert_true(json_integer_value(json_object_get(row, "rib_bytes")) < 100000000);
	json_decref(row);

	writes = g->rib->count.trie_writes;
	rig_session(g, 100);
	ids(g, 1000);
	report("identical replay", feed(g, RIB_TABLE_MAIN, p, 1000));
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_session(g, 200);
	ids(g, 5000);
	report("replay of a restarted zebra", feed(g, RIB_TABLE_MAIN, p, 5000));
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_int_equal(g->rib->table_counts.stale, 0);

	restored(g);

	/* Remove the addresses, so that no connected prefix is part of the figure. */
	rig_addr(g, 11, "192.0.2.126/25", true);
	rig_addr(g, 11, "2001:db8:1::ff/64", true);
	rig_settle(g);
	writes = g->rib->count.trie_writes;
	start = monotonic_s();
	rig_link(g, 11, 1, false);
	printf("{\"bench\": \"rib link loss\", \"routes\": %u, \"us\": %.1f}\n", n_routes,
	       (monotonic_s() - start) * 1e6);
	start = monotonic_s();
	rig_hop(g, 5001, "192.0.2.200", 12);
	rig_go(g);
	printf("{\"bench\": \"rib nexthop change\", \"routes\": %u, \"us\": %.1f}\n",
	       n_routes, (monotonic_s() - start) * 1e6);
	assert_int_equal(g->rib->count.trie_writes, writes);

	rig_link(g, 11, 1, true);
	rig_settle(g);
	start = monotonic_s();
	rig_session(g, 200);
	ids(g, 5000);
	rig_event(g, FPM_ROUTE)->prefix = p[0];
	rig_sentinel(g);
	rig_go(g);
	report("sweep of all", monotonic_s() - start);
	assert_int_equal(g->rib->table_counts.stale, 0);
	free(p);
	rig_free(g);
}

/* Forwarders stop using a removed VRF in one step, however many routes it has. */
static void
a_vrf_of_a_full_table_comes_and_goes(void **state)
{
	struct rig *g = rig_two_ports();
	struct prefix *p = table();
	double start;

	rig_vrf(g, 1, 100, "red");
	rig_session(g, 100);
	ids(g, 1000);
	report("ingest into a vrf", feed(g, 100, p, 1000));
	rig_settle(g);
	start = monotonic_s();
	rig_vrf(g, 1, 100, NULL);
	printf("{\"bench\": \"rib vrf gone\", \"routes\": %u, \"us\": %.1f}\n", n_routes,
	       (monotonic_s() - start) * 1e6);
	assert_null(fib_vrf(g->fib, 1));
	start = monotonic_s();
	rig_settle(g);
	report("vrf freed", monotonic_s() - start);
	start = monotonic_s();
	rig_vrf(g, 2, 100, "red");
	report("vrf filled again", monotonic_s() - start);
	assert_non_null(fib_vrf(g->fib, 2));
	assert_int_equal(table_count_find(g->rib, 100)->n, n_routes);
	free(p);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_table_goes_in),
		cmocka_unit_test(a_vrf_of_a_full_table_comes_and_goes),
	};

	return cmocka_run_group_tests_name("rib speed", tests, NULL, NULL);
}
