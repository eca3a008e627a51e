/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarders together with the real threads rib, neigh, punt, trace and sflow. The test
 * plays the kernel, the ports and zebra. All data that forwarders read changes while
 * packets pass. Each packet leaves once, by a next hop that was in force, and all buffers
 * return to their pool. The seed is printed.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/rib/ fpm-dataplane/neigh/ fpm-dataplane/punt/
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/sflow/
 * link: fpm-dataplane/trace/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/port/watch.c fpm-dataplane/port/rxq.c fpm-dataplane/port/rxq_set.c
 * link: fpm-dataplane/port/rings.c tap-bridge/tap.c tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/clock.h"
#include "base/msg_manage.h"
#include "base/tsan.h"
#include "eal.h"
#include "fib/fib.h"
#include "fwd/cpu.h"
#include "fwd/fwd.h"
#include "poptrie/impl.h"
#include "neigh/neigh.h"
#include "patience.h"
#include "port/rxq_set.h"
#include "port/watch.h"
#include "punt/punt.h"
#include "rib/rib.h"
#include "sflow/sflow.h"
#include "threads_kernel.h"
#include "threads_zebra.h"
#include "trace/trace.h"

#define STEPS     80
#define AT_A_TIME 4 /* most changes in progress */
#define TRACED    40

static struct worker neigh, punt, trace, sflow, ui;
static struct port port[N_PORT];
static struct watch *looked_for, *sampler;
static struct fwd_rings rings[N_FWD];
static _Atomic uint32_t n_gleaned[N_FWD];
static struct serving serving[N_FWD];
static struct fwd_conf fwd_conf[N_FWD];
static struct counters *count[N_FWD], *punt_count;
static pthread_t forwarder[N_FWD], manage;
static atomic_bool stop, managed;
static atomic_uint n_moves;
static unsigned int n_asked, n_done, n_rows;
static struct queue chance;  /* random numbers of main */
static unsigned int awaited; /* fact whose change main waited for last */
/*
 * The threads of a test run. A failed test does not stop them, so no other test may start.
 */
static bool stands;

/* --- sFlow ---------------------------------------------------------------------- */

/* The device of a port counts nothing. */
int
port_stats(const struct port *its, struct port_stats *st)
{
	*st = (struct port_stats){0};
	return 0;
}

bool
port_takes_all(const struct port *its)
{
	return false;
}

/* Turn sFlow on, off, or give it other settings. Its collector refuses the datagrams. */
static void
sflow_change(unsigned int i)
{
	struct msg_sflow *m = msg_new(MSG_SFLOW, sizeof(*m));
	struct sockaddr_in *to = (struct sockaddr_in *)&m->conf.collector[0].addr;

	*to = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_port = htons(9),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	m->conf.n_collector = i % 4 != 0;
	m->conf.rate = 1 + i % 3 * 20;
	m->conf.header_bytes = 128;
	m->conf.counters_s = 1;
	m->conf.drops = i % 2 != 0;
	worker_send(&sflow, &m->m);
}

/* --- traces and captures -------------------------------------------------------- */

static void
ask_trace(enum watch_ask ask)
{
	struct msg_watch *mw = msg_new(MSG_QUERY, sizeof(*mw));
	struct ipaddr src = nbr_addr(SENDERS), dst = route_prefix(N_ROUTE, 4).addr;

	mw->q.kind = QUERY_WATCH;
	mw->q.from = &ui;
	mw->q.rows = json_array();
	mw->want.ask = (uint8_t)ask;
	mw->want.count = TRACED;
	mw->want.filter =
		(struct watch_filter){.points = 1u << WATCH_WALK | 1u << WATCH_LOST,
				      .verdicts = WATCH_ANY,
				      .reason = N_REASON,
				      .snap_bytes = 160};
	if (ask == WATCH_ASK_CAPTURE)
		mw->want.filter.points = 1u << WATCH_SENT;
	mw->want.ifidx = 1;
	mw->want.n_frame = (uint16_t)frame_make(mw->want.frame, 4, &src, &dst, 1024);
	versioned_mac(mw->want.frame, OUR_MAC(1), 0);
	mw->want.frame_bytes = mw->want.n_frame;
	worker_send(&trace, &mw->q.m);
	n_asked++;
}

/* Handle messages to ui. A trace that has its packets ends; some are cancelled before. */
static void
ui_pump(void)
{
	struct msg *m;

	while ((m = worker_take(&ui)) != NULL) {
		struct msg_watch *mw = (struct msg_watch *)m;

		must(mw->error == NULL);
		n_rows += (unsigned int)json_array_size(mw->q.rows);
		json_decref(mw->q.rows);
		if (mw->q.done) {
			n_done++;
			msg_free(m);
			continue;
		}
		mw->q.rows = json_array();
		m->type = MSG_QUERY;
		mw->cancel = n_asked % 4 == 0;
		if (mw->cancel) {
			json_decref(mw->q.rows);
			mw->q.rows = NULL;
			n_done++;
		}
		worker_send(&trace, m);
	}
}

/* Run one round of main, which is an RCU reader and plays ui. */
static void
go_round(void)
{
	for (uint16_t p = 1; p <= N_PORT; p++)
		tap_pump(p);
	ui_pump();
	GRACE_QUIESCENT();
	urcu_qsbr_quiescent_state();
	sched_yield();
}

#define wait_for(what)                                                                   \
	do {                                                                             \
		uint64_t end_ms = monotonic_ms() + PATIENCE_MS;                          \
                                                                                         \
		while (!(what) && monotonic_ms() < end_ms && !atomic_load(&wrong))       \
			go_round();                                                      \
		if (!(what))                                                             \
			print_message("fact %u, version %u\n", awaited, begun[awaited]); \
		assert_false(atomic_load(&wrong));                                       \
		assert_true(what);                                                       \
	} while (0)

/* --- changes -------------------------------------------------------------------------- */

static void
change(unsigned int fact)
{
	uint32_t version = atomic_load(&begun[fact]) + 1;
	unsigned int n = fact - FACT_NBR;

	atomic_store(&begun[fact], version);
	if (fact >= FACT_LABEL)
		label_change(fact, version);
	else if (fact < FACT_NBR || fact >= FACT_VRF_ROUTE)
		route_change(fact, version);
	else if (fact < FACT_IFACE && below(&chance, 2))
		/*
		 * A host fails and is resolved again. The entry of a neighbor in use is
		 * deleted.
		 */
		news_send(n >= HOSTS && n < SENDERS ? NBR_FAILED : NBR_GONE, n, version);
	else if (fact < FACT_IFACE)
		news_send(NBR_MAC, n, version);
	else if (fact < FACT_LINK)
		news_send(LINK_CHANGES, fact - FACT_IFACE, version);
	else if (fact == FACT_LINK)
		news_send(version % 2 == 0 ? LINK_UP : LINK_DOWN, 4, 0);
	else
		news_send(version % 2 == 0 ? VRF_GOES : VRF_COMES, 2, 0);
}

static unsigned int
fact_choose(void)
{
	switch (below(&chance, 13)) {
	case 0:
		return FACT_LINK;
	case 1:
		return FACT_IFACE + 1 + below(&chance, N_PORT);
	case 2:
	case 3:
		return FACT_NBR + below(&chance, SENDERS);
	case 4:
		return FACT_VRF;
	case 5:
	case 6:
		return FACT_VRF_ROUTE + below(&chance, N_ROUTE);
	case 7:
	case 8:
	case 9:
		return FACT_LABEL + below(&chance, N_LABEL);
	default:
		return FACT_ROUTE + below(&chance, N_ROUTE);
	}
}

/*
 * Return true if a fact can change now: its last change is settled. The routes of a VRF can
 * be seen only while the VRF exists, because zebra's message may reach rib after the
 * kernel's.
 */
static bool
may_change(unsigned int fact)
{
	bool vrf_changes = begun[FACT_VRF] != settled[FACT_VRF];

	if (begun[fact] != settled[fact])
		return false;
	if (fact >= FACT_LABEL)
		return true;
	if (fact >= FACT_VRF_ROUTE)
		return !vrf_changes && begun[FACT_VRF] % 2 != 0;
	for (unsigned int k = 0; fact == FACT_VRF && k < N_ROUTE; k++)
		if (begun[FACT_VRF_ROUTE + k] != settled[FACT_VRF_ROUTE + k])
			return false;
	return true;
}

/* Move queues and change policers. */
static void *
manage_main(void *arg)
{
	struct queue its = {.random = (uint32_t)(uintptr_t)arg};

	urcu_qsbr_register_thread();
	while (!atomic_load(&managed)) {
		struct policer_conf conf = {POLICER_UNLIMITED, 1, POLICER_UNLIMITED, 1};
		unsigned int i = below(&its, N_QUEUE), from;
		uint16_t ifidx = queue[i].port;

		if (below(&its, 2))
			conf = (struct policer_conf){POLICER_RATE_MAX, POLICER_BURST_MAX,
						     POLICER_RATE_MAX, POLICER_BURST_MAX};
		policer_set((enum punt_class)below(&its, N_PUNT_CLASS), &conf);
		from = serving_index(serving, N_FWD, ifidx, (uint16_t)(i % 2));
		must(serving_move(&serving[from], &serving[!from], ifidx,
				  (uint16_t)(i % 2)) == 0);
		atomic_fetch_add(&n_moves, 1);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

static bool
all_are_so(void)
{
	if (!batch_is_heard())
		return false;
	for (unsigned int fact = 0; fact < N_FACT; fact++)
		if (begun[fact] != settled[fact] && !is_so(fact, begun[fact])) {
			awaited = fact;
			return false;
		}
	return true;
}

static void
step(unsigned int i)
{
	uint64_t before = atomic_load(&n_left);

	for (unsigned int n = 1 + below(&chance, AT_A_TIME); n > 0; n--) {
		unsigned int fact = fact_choose();

		if (may_change(fact))
			change(fact);
	}
	/* Many label stacks at once, so that their entries are soon written again. */
	for (unsigned int k = 0; i % 4 == 0 && k < N_LABEL; k++)
		if (may_change(FACT_LABEL + k))
			change(FACT_LABEL + k);
	batch_send();
	if (i % 2 == 0 && n_asked - n_done < WATCH_SESSIONS)
		ask_trace(1 + (i / 2) % 3);
	sflow_change(i);
	kernel_sends((uint16_t)(1 + i % N_PORT));
	wait_for(all_are_so());
	for (unsigned int fact = 0; fact < N_FACT; fact++)
		settled[fact] = begun[fact];
	wait_for(atomic_load(&n_left) > before + 200);
}

/* --- set up, tear down ---------------------------------------------------------------- */

static void
ports_up(void)
{
	for (uint16_t p = 1; p <= N_PORT; p++) {
		struct port *its = &port[p - 1];
		int pair[2];

		/* Like a TAP: whole frames, without blocking. */
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
		*its = (struct port){.ifidx = p,
				     .port_id = FIRST_PORT + p,
				     .mtu_bytes = 1500,
				     .mtu_max_bytes = 1500,
				     .pool = pool};
		versioned_mac(its->mac, OUR_MAC(p), 0);
		snprintf(its->name, sizeof(its->name), "p%u", p);
		its->tap.fd = pair[0];
		its->tap.ifindex = TAP_IFINDEX(p);
		kernel_end[p] = pair[1];
	}
}

static void
workers_make(void)
{
	static const struct worker_ops ui_ops = {.name = "ui"};
	struct rib_conf rib_conf = {.checkpoint_fd = -1, .neigh = &neigh};
	struct neigh_conf neigh_conf = {.rib = &rib,
					.punt = &punt,
					.manage = &ui,
					.count = counters_register("neigh"),
					.port = port,
					.n_port = N_PORT,
					.mpls_all = true};
	struct punt_conf punt_conf = {.neigh = &neigh,
				      .port = port,
				      .n_port = N_PORT,
				      .rings = rings,
				      .n_fwd = N_FWD,
				      .pool = pool,
				      .raw = {-1, -1},
				      .count = punt_count,
				      .watch = looked_for};
	struct trace_conf trace_conf = {.rib = &rib,
					.neigh = &neigh,
					.watch = looked_for,
					.port = port,
					.n_port = N_PORT,
					.version = "test",
					.explain = fwd_explain};
	struct sflow_setup sflow_setting = {.rib = &rib, .watch = sampler, .port = port};

	worker_init(&ui, &ui_ops, NULL);
	assert_int_equal(rib_setup(&rib, &rib_conf), 0);
	assert_int_equal(fib_create(&fib, &(struct fib_conf){.retire = rib_retire,
							     .retire_ctx = &rib}),
			 0);
	rib_set_fib(&rib, fib);
	neigh_conf.fib = punt_conf.fib = trace_conf.fib = fib;
	sflow_setting.fib = fib;
	punt_conf.watch_ring = watch_ring_add(looked_for, &punt_count->watch_lost);
	assert_int_equal(neigh_setup(&neigh, &neigh_conf), 0);
	assert_int_equal(punt_setup(&punt, &punt_conf), 0);
	assert_int_equal(trace_setup(&trace, &trace_conf), 0);
	assert_int_equal(sflow_setup(&sflow, &sflow_setting), 0);
	kernel_make(&neigh, &rib);
}

static void *
forwarder_main(void *conf)
{
	fwd_main(conf);
	return NULL;
}

static void
forwarders_start(void)
{
	for (unsigned int f = 0; f < N_FWD; f++) {
		fwd_conf[f] = (struct fwd_conf){
			.fib = fib,
			.tries = fib_copy_for(fib, -1),
			.punt = &punt,
			.rings = rings[f],
			.count = count[f],
			.watch = looked_for,
			.watch_ring = watch_ring_add(looked_for, &count[f]->watch_lost),
			.sampler = sampler,
			.sample_ring = watch_ring_add(sampler, NULL),
			.index = f,
			.rx_burst = f == 0 ? 32 : 128,
			.tx_burst = 32,
			.serving = &serving[f],
			.stop = &stop};
		assert_int_equal(
			pthread_create(&forwarder[f], NULL, forwarder_main, &fwd_conf[f]),
			0);
	}
}

static void
queues_serve(void)
{
	urcu_qsbr_thread_offline();
	for (unsigned int i = 0; i < N_QUEUE; i++) {
		struct rxq q = {.ifidx = queue[i].port,
				.port_id = FIRST_PORT + queue[i].port,
				.queue = (uint16_t)(i % 2),
				.fd = -1};

		assert_int_equal(serving_add(&serving[i % 2], &q), 0);
	}
	urcu_qsbr_thread_online();
}

static void
house_up(enum pt_isa isa)
{
	struct poptrie_conf pc = {.family = POPTRIE_IP4, .retire = rib_retire, .ctx = &rib};

	assert_false(stands);
	stands = true;
	memset((void *)begun, 0, sizeof(begun));
	memset((void *)settled, 0, sizeof(settled));
	memset(kernel_last, 0, sizeof(kernel_last));
	memset(kernel_seq, 0, sizeof(kernel_seq));
	n_came = n_left = n_dropped = n_to_us = n_read_to_us = n_of_kernel = n_icmp = 0;
	n_swapped = n_popped = n_pushed = 0;
	n_sent_of_kernel = n_asked = n_done = n_rows = 0;
	quiet = stop = managed = false;
	n_moves = 0;
	for (unsigned int i = 0; i < N_QUEUE; i++) {
		queue[i].random = (uint32_t)random();
		queue[i].seq = queue[i].steady_last = 0;
	}
	looked_for = watch_create();
	sampler = watch_create();
	ports_up();
	workers_make();
	/*
	 * The tries have the lookup of this CPU. Replace it if the portable lookup is
	 * wanted.
	 */
	if (isa != pt_isa_best()) {
		poptrie_destroy(fib->copy[0].pt4);
		poptrie_destroy(fib->copy[0].pt6);
		assert_int_equal(pt_create(&fib->copy[0].pt4, &pc, PT_FUSED, isa), 0);
		pc.family = POPTRIE_IP6;
		assert_int_equal(pt_create(&fib->copy[0].pt6, &pc, PT_WIDE, isa), 0);
	}
	for (unsigned int f = 0; f < N_FWD; f++) {
		n_gleaned[f] = 0;
		assert_int_equal(fwd_rings_make(&rings[f], f, 0, &n_gleaned[f]), 0);
		assert_int_equal(serving_open(&serving[f], false, &count[f]->sleeps), 0);
		rings[f].idle = &serving[f].idle;
	}
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(worker_prepare((struct worker *[]){
					 &ui, &rib, &neigh, &punt, &trace, &sflow}[i]),
				 0);
	forwarders_start();
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(worker_start((struct worker *[]){&rib, &neigh, &punt,
								  &trace, &sflow}[i]),
				 0);
}

/* Stop all threads, in the order of daemon/threads.c. */
static void
house_down(void)
{
	atomic_store(&stop, true);
	for (unsigned int f = 0; f < N_FWD; f++) {
		idle_wake(&serving[f].idle);
		pthread_join(forwarder[f], NULL);
	}
	urcu_qsbr_thread_offline();
	worker_stop(&sflow);
	worker_stop(&trace);
	worker_stop(&punt);
	worker_stop(&neigh);
	worker_stop(&rib);
	urcu_qsbr_barrier();
	worker_free(&sflow);
	worker_free(&trace);
	worker_free(&punt);
	worker_free(&neigh);
	worker_free(&rib);
	worker_free(&ui);
	sflow_teardown(&sflow);
	trace_teardown(&trace);
	punt_teardown(&punt);
	neigh_teardown(&neigh);
	rib_teardown(&rib);
	fib_destroy(fib);
	watch_free(looked_for);
	watch_free(sampler);
	for (unsigned int f = 0; f < N_FWD; f++) {
		serving_close(&serving[f]);
		fwd_rings_free(&rings[f]);
	}
	for (uint16_t p = 1; p <= N_PORT; p++) {
		close(kernel_end[p]);
		close(port[p - 1].tap.fd);
	}
	stands = false;
	urcu_qsbr_thread_online();
}

/*
 * Return how many packets the forwarders counted as forwarded or with a reason. Each packet
 * is counted once: a packet that causes an ICMP error has the reason of its drop.
 */
static uint64_t
marks(void)
{
	uint64_t n = 0;

	for (unsigned int f = 0; f < N_FWD; f++) {
		for (unsigned int i = 0; i < 3; i++)
			n += counter_read(&count[f]->forwarded[i]);
		for (unsigned int r = 0; r < N_REASON; r++)
			if (r != PUNT_unreach)
				n += counter_read(&count[f]->reason[r]);
	}
	return n;
}

static void
all_is_well(enum pt_isa isa)
{
	uint64_t marks_before = marks(), icmp_before = punt_count->icmp_sent, held;

	house_up(isa);
	held = counter_read(&punt_count->held);
	for (unsigned int n = 0; n < HOSTS; n++)
		gateway_say(n);
	for (unsigned int k = 0; k < N_ROUTE; k++) {
		route_change(FACT_ROUTE + k, 0);
		route_change(FACT_VRF_ROUTE + k, 0);
	}
	for (unsigned int k = 0; k < N_LABEL; k++)
		label_change(FACT_LABEL + k, 0);
	route_say(N_ROUTE, RT_TABLE_MAIN, NH_GATEWAY + STEADY);
	route_say(MARK_OF_LINK, RT_TABLE_MAIN, NH_GATEWAY + 1);
	batch_send();
	wait_for(batch_is_heard() && link_is(true) && labels_are() &&
		 gateways_seen(N_ROUTE, 4, false) == 1u << STEADY &&
		 gateways_seen(N_ROUTE, 6, false) == 1u << STEADY);
	for (unsigned int n = 0; n < N_NBR; n++)
		wait_for(neighbor_is(n, 0));
	queues_serve();
	assert_int_equal(
		pthread_create(&manage, NULL, manage_main, (void *)(uintptr_t)random()), 0);
	for (unsigned int i = 0; i < STEPS; i++)
		step(i);
	wait_for(n_moves > 10);
	atomic_store(&managed, true);
	urcu_qsbr_thread_offline();
	pthread_join(manage, NULL);
	urcu_qsbr_thread_online();

	wait_for(n_done == n_asked);
	atomic_store(&quiet, true);
	wait_for(atomic_load(&in_flight) == 0);
	/*
	 * The pool has all buffers when the ICMP errors about dropped packets have been
	 * sent.
	 */
	wait_for(n_of_kernel == n_sent_of_kernel && n_to_us == n_read_to_us &&
		 stack_count(pool) == N_BUFFER);
	assert_true(n_icmp <= counter_read(&punt_count->icmp_sent) - icmp_before);
	assert_int_equal(n_left + n_dropped + n_to_us, n_came);
	assert_int_equal(n_to_us, n_read_to_us);
	assert_true(n_left > 1000 && n_dropped > 0 && n_to_us > 0 && n_icmp > 0);
	assert_true(n_swapped > 100 && n_popped > 100 && n_pushed > 100);
	assert_true(counter_read(&punt_count->held) > held);
	assert_true(n_rows > TRACED);
	house_down();
	assert_int_equal(marks() - marks_before, n_came);
	assert_int_equal(stack_count(pool), N_BUFFER);
	assert_false(atomic_load(&wrong));
	print_message("%llu packets, %llu labels swapped, %llu popped, %llu pushed, %llu "
		      "dropped, %llu waited, %u rows, %u moves\n",
		      (unsigned long long)n_came, (unsigned long long)n_swapped,
		      (unsigned long long)n_popped, (unsigned long long)n_pushed,
		      (unsigned long long)n_dropped,
		      (unsigned long long)(punt_count->held - held), n_rows, n_moves);
}

static void
packets_pass_while_all_changes(void **state)
{
	assert_int_equal(fwd_cpu_choose(INSTRUCTIONS_AUTO), 0);
	all_is_well(pt_isa_best());
}

static void
packets_pass_while_all_changes_without_vectors(void **state)
{
	fwd_isa = FWD_SCALAR;
	all_is_well(PT_SCALAR);
}

static int
set_up(void **state)
{
	static struct policer_conf unlimited[N_PUNT_CLASS];
	unsigned int seed = (unsigned int)getpid();
	cpu_set_t cpus;

	print_message("seed %u\n", seed);
	srandom(seed);
	chance.random = (uint32_t)random();
	/* The EAL would keep all threads on one CPU. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ||
	    eal_begin("test_fwd_threads", "net_null0", "net_null1") < 0 ||
	    sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		return -1;
	ports_make();
	if (pool == NULL)
		return -1;
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
		unlimited[c] =
			(struct policer_conf){POLICER_UNLIMITED, 1, POLICER_UNLIMITED, 1};
	policer_init(rte_get_tsc_hz(), unlimited);
	count[0] = counters_register("fwd-0");
	count[1] = counters_register("fwd-1");
	punt_count = counters_register("punt");
	urcu_qsbr_register_thread();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_pass_while_all_changes),
		cmocka_unit_test(packets_pass_while_all_changes_without_vectors),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
