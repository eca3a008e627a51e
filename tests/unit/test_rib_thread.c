/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rib thread: messages by mailbox, forwarders that read at the same time, its timers.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "fib/sid_number.h"
#include "patience.h"
#include "rib/impl.h"

struct house {
	struct worker rib, neigh;
	struct fib *fib;
};

/* A neigh that resolves each neighbor at once. The last two octets of its MAC are `adj`. */
static void
neigh_on_msg(struct worker *w, struct msg *m)
{
	struct house *h = w->ctx;
	struct msg_adj *a = (struct msg_adj *)m;
	uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)(a->adj >> 8), (uint8_t)a->adj};

	if (m->type == MSG_ADJ_WATCH) {
		atomic_store(&h->fib->adj[a->adj].hop, adj_hop_make(mac, a->ifidx));
		m->type = MSG_ADJ_READY;
		a->resolved = true;
		worker_send(&h->rib, m);
	} else if (m->type == MSG_ADJ_UNWATCH) {
		atomic_store(&h->fib->adj[a->adj].hop, 0);
		m->type = MSG_ADJ_FREED;
		worker_send(&h->rib, m);
	}
}

/* Operations of rib that also count the rounds of its thread. */
static struct worker_ops counted;
static const struct worker_ops *rib_ops;
static _Atomic unsigned int n_rounds;

static void
round_count(struct worker *w)
{
	atomic_fetch_add(&n_rounds, 1);
	rib_ops->on_round(w);
}

static struct house *
house_new(void)
{
	static const struct worker_ops neigh_ops = {
		.name = "neigh", .role = ROLE_NEIGH, .on_msg = neigh_on_msg};
	struct house *h = calloc(1, sizeof(*h));
	struct rib_conf conf = {.checkpoint_fd = -1,
				.neigh = &h->neigh,
				.sweep_quiet_s = 1,
				.sweep_max_s = 5,
				.sweep_restart_s = 1};

	assert_int_equal(rib_setup(&h->rib, &conf), 0);
	rib_ops = h->rib.ops;
	counted = *rib_ops;
	counted.on_round = round_count;
	h->rib.ops = &counted;
	assert_int_equal(fib_create(&h->fib, &(struct fib_conf){.retire = rib_retire,
								.retire_ctx = &h->rib}),
			 0);
	rib_set_fib(&h->rib, h->fib);
	worker_init(&h->neigh, &neigh_ops, h);
	assert_int_equal(worker_prepare(&h->rib), 0);
	assert_int_equal(worker_prepare(&h->neigh), 0);
	assert_int_equal(worker_start(&h->rib), 0);
	assert_int_equal(worker_start(&h->neigh), 0);
	for (uint32_t i = 1; i <= 2; i++) {
		struct msg_link *m = msg_new(MSG_LINK, sizeof(*m));

		m->ifindex = 10 + i;
		m->ifidx = (uint16_t)i;
		m->up = true;
		worker_send(&h->rib, &m->m);
	}
	return h;
}

static void
house_free(struct house *h)
{
	/* The order is that of daemon/threads.c. */
	worker_stop(&h->neigh);
	worker_stop(&h->rib);
	urcu_qsbr_barrier();
	GRACE_ACQUIRE(h->rib.ctx);
	worker_free(&h->neigh);
	worker_free(&h->rib);
	rib_teardown(&h->rib);
	fib_destroy(h->fib);
	free(h);
}

static struct fpm_event *
add(struct msg_fpm_batch *b, enum fpm_event_kind kind)
{
	struct fpm_event *ev = &b->ev[b->n++];

	ev->kind = (uint8_t)kind;
	ev->rtm_type = RTN_UNICAST;
	ev->protocol = 186;
	ev->table = 254;
	return ev;
}

static void
add_hop(struct msg_fpm_batch *b, uint32_t id, uint32_t gw4, uint32_t ifindex)
{
	struct fpm_event *ev = add(b, FPM_NEXTHOP);

	ev->nhid = id;
	ev->n_hops = 1;
	ev->hops = calloc(1, sizeof(*ev->hops));
	*ev->hops = (struct fpm_hop){
		.ifindex = ifindex, .weight = 1, .gw_family = 4, .gw = ipaddr_from_v4(gw4)};
}

static void
add_route(struct msg_fpm_batch *b, enum fpm_event_kind kind, uint32_t dst, uint8_t len,
	  uint32_t id)
{
	struct fpm_event *ev = add(b, kind);

	ev->prefix = (struct prefix){.addr = ipaddr_from_v4(dst), .family = 4, .len = len};
	ev->nhid = id;
}

static void
add_session(struct msg_fpm_batch *b, uint32_t gen)
{
	struct fpm_event *ev = add(b, FPM_SESSION_UP);

	ev->session.gen = gen;
	ev->session.nl_pid = 100;
}

static struct msg_fpm_batch *
batch(void)
{
	return msg_new(MSG_FPM_BATCH, sizeof(struct msg_fpm_batch));
}

/* Look up like a forwarder. The answer is valid until the next quiescent state. */
static fib_path
ask(const struct house *h, uint32_t dst, uint32_t flow_hash)
{
	struct ipaddr a = ipaddr_from_v4(dst);

	return fib_resolve(h->fib, 0, 4, &a, flow_hash);
}

static void
quiescent(const struct house *h)
{
	GRACE_QUIESCENT();
	urcu_qsbr_quiescent_state();
}

static bool
wait_for(const struct house *h, uint32_t dst, enum path_kind kind, double seconds)
{
	double end = monotonic_s() + seconds;
	bool found;

	urcu_qsbr_thread_online();
	while (!(found = path_kind(ask(h, dst, 0)) == kind) && monotonic_s() < end) {
		quiescent(h);
		sched_yield();
	}
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	return found;
}

static void
one_route_is_in_the_fib_at_once(void **state)
{
	struct house *h = house_new();
	double sum = 0, worst = 0;

	for (uint32_t i = 0; i < 100; i++) {
		struct msg_fpm_batch *b = batch();
		double start, took;

		add_hop(b, 7, 0xc0000201, 11);
		add_route(b, FPM_ROUTE, 0x0a000000 + (i << 8), 24, 7);
		start = monotonic_s();
		worker_send(&h->rib, &b->m);
		assert_true(wait_for(h, 0x0a000001 + (i << 8), PATH_ADJ, PATIENCE_S));
		took = monotonic_s() - start;
		sum += took;
		worst = took > worst ? took : worst;
	}
	printf("{\"bench\": \"rib one route\", \"mean_us\": %.0f, \"worst_us\": %.0f}\n",
	       sum / 100 * 1e6, worst * 1e6);
	house_free(h);
}

/* The thread waits for a message or a timer, unless a walk has more to do. */
static void
a_thread_without_work_makes_no_rounds(void **state)
{
	struct house *h = house_new();
	struct msg_fpm_batch *b = batch();
	unsigned int before, quiet = 0;

	add_hop(b, 7, 0xc0000201, 11);
	add_route(b, FPM_ROUTE, 0x0a000000, 24, 7);
	worker_send(&h->rib, &b->m);
	assert_true(wait_for(h, 0x0a000001, PATH_ADJ, PATIENCE_S));
	/*
	 * Most samples must be quiet: a busy thread that is off its CPU has a few quiet
	 * ones.
	 */
	for (unsigned int i = 0; i < 25; i++) {
		before = atomic_load(&n_rounds);
		poll(NULL, 0, 20);
		quiet += atomic_load(&n_rounds) - before <= 5;
	}
	assert_in_range(quiet, 13, 25);
	house_free(h);
}

static void
a_replay_is_swept_by_the_threads_own_timer(void **state)
{
	struct house *h = house_new();
	struct msg_fpm_batch *b = batch();

	add_session(b, 1);
	add_hop(b, 7, 0xc0000201, 11);
	add_route(b, FPM_ROUTE, 0x0a000000, 24, 7);
	add_route(b, FPM_ROUTE, 0x0a000100, 24, 7);
	worker_send(&h->rib, &b->m);
	assert_true(wait_for(h, 0x0a000101, PATH_ADJ, PATIENCE_S));
	b = batch();
	add_session(b, 2);
	add_hop(b, 7, 0xc0000201, 11);
	add_route(b, FPM_ROUTE, 0x0a000000, 24, 7);
	worker_send(&h->rib, &b->m);
	assert_true(wait_for(h, 0x0a000101, PATH_NONE, PATIENCE_S));
	assert_true(wait_for(h, 0x0a000001, PATH_ADJ, 0.1));
	house_free(h);
}

/* --- forwarders read while all changes ------------------------------------------------ */

struct reader {
	pthread_t thread;
	struct house *h;
	_Atomic bool *stop;
	uint64_t n, holes, wrong;
};

static void *
reader_main(void *arg)
{
	struct reader *r = arg;
	uint32_t x = 1;

	urcu_qsbr_register_thread();
	while (!atomic_load(r->stop)) {
		for (unsigned int i = 0; i < 64; i++) {
			fib_path p;

			x = x * 1664525 + 1013904223;
			p = ask(r->h, 0x0a000001 + (x >> 24 << 8), x);
			r->n++;
			/*
			 * These routes are replaced all the time and never absent. The
			 * gateways on interface 1 are 192.0.2.x, those on interface 2 are
			 * 198.51.100.x.
			 */
			if (path_kind(p) == PATH_ADJ) {
				const struct fib_adj *a = &r->h->fib->adj[path_index(p)];
				uint32_t gw = ipaddr_v4(&a->addr);

				if ((a->ifidx == 1 && gw >> 8 != 0xc00002) ||
				    (a->ifidx == 2 && gw >> 8 != 0xc63364))
					r->wrong++;
			} else {
				r->holes++;
			}
		}
		quiescent(r->h);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

static void
add_group(struct msg_fpm_batch *b, uint32_t id, uint32_t m1, uint32_t m2)
{
	struct fpm_event *ev = add(b, FPM_NEXTHOP);

	ev->nhid = id;
	ev->is_group = true;
	ev->n_hops = 2;
	ev->hops = calloc(2, sizeof(*ev->hops));
	ev->hops[0] = (struct fpm_hop){.id = m1, .weight = 1};
	ev->hops[1] = (struct fpm_hop){.id = m2, .weight = 2};
}

static void
readers_see_no_hole_and_no_stranger_while_all_is_replaced(void **state)
{
#ifdef DEBUG
	const uint32_t rounds = 300;
#else
	const uint32_t rounds = 3000;
#endif
	struct house *h = house_new();
	struct reader reader[2];
	_Atomic bool stop = false;
	uint64_t n = 0;

	for (uint32_t round = 0; round <= rounds; round++) {
		uint32_t id = round % 7 + 1;
		struct msg_fpm_batch *b = batch();

		if (round % 50 == 0)
			add_session(b, round / 50 + 1);
		add_hop(b, 100 + id, 0xc0000201 + round % 100, 11);
		add_hop(b, 200 + id, 0xc6336401 + round % 90, 12);
		add_group(b, id, 100 + id, 200 + id);
		worker_send(&h->rib, &b->m);
		for (uint32_t half = 0; half < 4; half++) {
			b = batch();
			for (uint32_t i = half * 64; i < half * 64 + 64; i++) {
				if (i % 3 == 0) /* like a replacement by FRR 8.4 */
					add_route(b, FPM_ROUTE_DEL, 0x0a000000 + (i << 8),
						  24, 0);
				add_route(b, FPM_ROUTE, 0x0a000000 + (i << 8), 24,
					  round % 5 == 0 ? 200 + id : id);
			}
			worker_send(&h->rib, &b->m);
		}
		if (round % 11 == 5) {
			struct msg_link *m = msg_new(MSG_LINK, sizeof(*m));

			m->ifindex = 11;
			m->ifidx = 1;
			m->up = round % 2;
			worker_send(&h->rib, &m->m);
		}
		if (round > 0)
			continue;
		assert_true(wait_for(h, 0x0a00ff01, PATH_ADJ, PATIENCE_S));
		for (unsigned int i = 0; i < 2; i++) {
			reader[i] = (struct reader){.h = h, .stop = &stop};
			pthread_create(&reader[i].thread, NULL, reader_main, &reader[i]);
		}
	}
	{
		struct msg_fpm_batch *b = batch();

		add_hop(b, 7, 0xc0000201, 12);
		add_route(b, FPM_ROUTE, 0x0b000000, 8, 7);
		worker_send(&h->rib, &b->m);
	}
	assert_true(wait_for(h, 0x0b000001, PATH_ADJ, PATIENCE_S));
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < 2; i++) {
		pthread_join(reader[i].thread, NULL);
		n += reader[i].n;
		assert_int_equal(reader[i].holes, 0);
		assert_int_equal(reader[i].wrong, 0);
	}
	printf("%llu lookups beside %u replacements\n", (unsigned long long)n,
	       rounds * 256);
	house_free(h);
}

/* --- numbers of SIDs ------------------------------------------------------------------ */

#define SIDS 64u

static struct ipaddr
sid_addr(uint32_t i)
{
	struct ipaddr a = {.octet = {0xfc}};

	a.octet[14] = (uint8_t)(i >> 8);
	a.octet[15] = (uint8_t)i;
	return a;
}

/* Add SID `i` with the action End. */
static void
add_sid(struct msg_fpm_batch *b, uint32_t i)
{
	static const struct srv6_sid end = {.action = SRV6_END};
	struct fpm_hop *hop;
	struct fpm_event *ev;

	add_hop(b, 100 + i, 0, 11);
	hop = b->ev[b->n - 1].hops;
	hop->gw_family = 0;
	hop->encap = HOP_SEG6;
	hop->n_labels = srv6_sid_pack(&end, hop->label);
	ev = add(b, FPM_ROUTE);
	ev->prefix = (struct prefix){.addr = sid_addr(i), .family = 6, .len = 128};
	ev->nhid = 100 + i;
}

/*
 * A forwarder finds the number of a SID by its address as soon as thread rib publishes it.
 * No other object orders the two threads.
 */
static void
a_reader_that_finds_the_number_of_a_sid_sees_its_address(void **state)
{
	struct house *h = house_new();

	urcu_qsbr_thread_online();
	for (uint32_t i = 1; i <= SIDS; i++) {
		struct msg_fpm_batch *b = batch();
		struct ipaddr a = sid_addr(i);
		double end = monotonic_s() + PATIENCE_S;
		uint32_t number;

		add_sid(b, i);
		worker_send(&h->rib, &b->m);
		while ((number = fib_sid_number_find(h->fib, RT_TABLE_MAIN, a.octet)) ==
		       0) {
			assert_true(monotonic_s() < end);
			quiescent(h);
			sched_yield();
		}
		assert_int_equal(number, i);
	}
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	house_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_route_is_in_the_fib_at_once),
		cmocka_unit_test(a_thread_without_work_makes_no_rounds),
		cmocka_unit_test(a_replay_is_swept_by_the_threads_own_timer),
		cmocka_unit_test(readers_see_no_hole_and_no_stranger_while_all_is_replaced),
		cmocka_unit_test(a_reader_that_finds_the_number_of_a_sid_sees_its_address),
	};

	urcu_qsbr_register_thread();
	urcu_qsbr_thread_offline();
	return cmocka_run_group_tests_name("rib thread", tests, NULL, NULL);
}
