/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting and waking of forwarders, and queues that move between them. The threads of the
 * test read counters instead of ports.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/rxq_set.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "port/rxq_set.h"

#define QUEUES 8

/*
 * A forwarder. It takes the value of `given`, and counts a turn for each queue that it
 * serves.
 */
struct fake {
	struct serving serving;
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong given, taken;
	uint64_t n_sleeps;
	int drain_fd; /* read until empty; -1: none */
};

static atomic_int in_hands[QUEUES]; /* number of forwarders that hold a queue */
static atomic_ulong turns[QUEUES];
static atomic_bool shared; /* two forwarders held a queue at once */

static uint64_t
slept(const struct fake *f)
{
	return __atomic_load_n(&f->n_sleeps, __ATOMIC_RELAXED);
}

static bool
asleep(struct fake *f)
{
	return atomic_load(&f->serving.idle.asleep);
}

static void *
fake_main(void *arg)
{
	struct fake *f = arg;
	char octet[64];

	urcu_qsbr_register_thread();
	idle_begin();
	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		const struct rxq_set *set = serving_set(&f->serving);
		unsigned long given = atomic_load_explicit(&f->given, memory_order_acquire);
		bool worked = given != atomic_load(&f->taken);

		atomic_store(&f->taken, given);
		for (unsigned int i = 0; i < set->n; i++)
			if (atomic_fetch_add(&in_hands[set->q[i].queue], 1) != 0)
				atomic_store(&shared, true);
		for (unsigned int i = 0; i < set->n; i++) {
			atomic_fetch_add(&turns[set->q[i].queue], 1);
			atomic_fetch_sub(&in_hands[set->q[i].queue], 1);
		}
		while (f->drain_fd >= 0 &&
		       recv(f->drain_fd, octet, sizeof(octet), MSG_DONTWAIT) > 0)
			atomic_fetch_add(&f->given, 1);
		GRACE_QUIESCENT();
		urcu_qsbr_quiescent_state();
		idle_round(&f->serving.idle, worked);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

static void
fake_start(struct fake *f, bool never_sleep)
{
	memset(f, 0, sizeof(*f));
	f->drain_fd = -1;
	assert_int_equal(serving_open(&f->serving, never_sleep, &f->n_sleeps), 0);
}

static void
fake_run(struct fake *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

static void
fake_stop(struct fake *f)
{
	atomic_store(&f->stop, true);
	idle_wake(&f->serving.idle);
	pthread_join(f->thread, NULL);
	serving_close(&f->serving);
}

static void
wait_asleep(struct fake *f)
{
	uint64_t before = slept(f);

	while (!asleep(f) || slept(f) == before)
		sched_yield();
}

/*
 * Return the time in ms that the threads of this program were ready to run and had no CPU:
 * proc(5), schedstat.
 */
static uint64_t
waited_ms(void)
{
	uint64_t sum_ns = 0;
	glob_t tasks;

	assert_int_equal(glob("/proc/self/task/*/schedstat", 0, NULL, &tasks), 0);
	for (size_t i = 0; i < tasks.gl_pathc; i++) {
		FILE *file = fopen(tasks.gl_pathv[i], "r");
		unsigned long long ns = 0;

		if (file == NULL) /* the thread has just ended */
			continue;
		if (fscanf(file, "%*u %llu", &ns) == 1)
			sum_ns += ns;
		fclose(file);
	}
	globfree(&tasks);
	return sum_ns / 1000000;
}

/*
 * Assert that the number `late` of wake-ups that took longer than `late_ms` is small.
 * `before`: waited_ms() at the start. Subtract the wake-ups that may be late because the
 * machine had no CPU. A sleeping thread does not wait for a CPU.
 */
static void
assert_few(unsigned int late, uint64_t late_ms, uint64_t before)
{
	uint64_t waited = waited_ms() - before;

	if (late >= 10 + waited / late_ms)
		fail_msg("%u wake-ups late, threads had no CPU for %llu ms", late,
			 (unsigned long long)waited);
}

static void
a_forwarder_that_gets_work_wakes_up_every_time(void **state)
{
	unsigned int late = 0, rounds = 20000;
	uint64_t before;
	struct fake f;

	fake_start(&f, false);
	fake_run(&f);
	before = waited_ms();
	for (unsigned int i = 1; i <= rounds; i++) {
		uint64_t begin = monotonic_ms();

		/*
		 * Wake the forwarder at each point of its way to sleep, or when it sleeps.
		 */
		while (i % 64 == 0 && !asleep(&f))
			sched_yield();
		for (unsigned int j = 0; j < i % 64 * 100; j++)
			__asm__ volatile("" ::: "memory");
		atomic_store(&f.given, i);
		idle_wake(&f.serving.idle);
		while (atomic_load(&f.taken) != i)
			sched_yield();
		/* A lost wake-up would be repaired after 100 ms. */
		late += monotonic_ms() - begin > 80;
	}
	assert_true(slept(&f) > 0);
	assert_few(late, 80, before);
	fake_stop(&f);
}

static void
a_descriptor_ends_a_sleep(void **state)
{
	struct rxq q = {.ifidx = 1};
	unsigned int late = 0;
	uint64_t before;
	int pair[2];
	struct fake f;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	fake_start(&f, false);
	f.drain_fd = q.fd = pair[0];
	assert_int_equal(serving_add(&f.serving, &q), 0);
	fake_run(&f);
	before = waited_ms();
	for (unsigned int i = 1; i <= 100; i++) {
		uint64_t begin;

		wait_asleep(&f);
		begin = monotonic_ms();
		assert_int_equal(send(pair[1], "x", 1, 0), 1);
		while (atomic_load(&f.taken) != i)
			sched_yield();
		late += monotonic_ms() - begin > 80;
	}
	assert_few(late, 80, before);
	fake_stop(&f);
	close(pair[0]);
	close(pair[1]);
}

static void
a_queue_without_a_descriptor_is_looked_at(void **state)
{
	struct rxq q = {.ifidx = 1, .fd = -1};
	unsigned int late = 0;
	uint64_t before;
	struct fake f;

	fake_start(&f, false);
	assert_int_equal(serving_add(&f.serving, &q), 0);
	fake_run(&f);
	before = waited_ms();
	for (unsigned int i = 1; i <= 50; i++) {
		uint64_t begin;

		wait_asleep(&f);
		begin = monotonic_ms();
		atomic_store(&f.given, i); /* without a wake-up */
		while (atomic_load(&f.taken) != i)
			sched_yield();
		late += monotonic_ms() - begin > 50;
	}
	assert_few(late, 50, before);
	/*
	 * Without the queue the sleeps are long again, because descriptors report all
	 * events.
	 */
	assert_int_equal(serving_remove(&f.serving, 1, 0), 0);
	assert_int_equal(atomic_load(&f.serving.idle.n_blind), 0);
	fake_stop(&f);
}

static void
a_forwarder_that_must_not_sleep_does_not(void **state)
{
	struct fake f;

	fake_start(&f, true);
	fake_run(&f);
	for (unsigned int i = 1; i <= 3; i++) {
		unsigned long before = atomic_load(&turns[0]);
		struct rxq q = {.ifidx = 1, .fd = -1};

		assert_int_equal(serving_add(&f.serving, &q), 0);
		while (atomic_load(&turns[0]) < before + 100000)
			sched_yield();
		assert_int_equal(serving_remove(&f.serving, 1, 0), 0);
	}
	assert_int_equal(slept(&f), 0);
	fake_stop(&f);
}

/* Return the CPU time of a thread in ms. */
static uint64_t
cpu_ms(pthread_t thread)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
a_descriptor_that_signals_without_packets_costs_little(void **state)
{
	struct rxq q = {.ifidx = 1};
	uint64_t begin, cpu;
	int pair[2];
	struct fake f;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(send(pair[1], "x", 1, 0), 1); /* the datagram is never read */
	fake_start(&f, false);
	q.fd = pair[0];
	assert_int_equal(serving_add(&f.serving, &q), 0);
	fake_run(&f);
	wait_asleep(&f);
	begin = monotonic_ms();
	cpu = cpu_ms(f.thread);
	while (monotonic_ms() - begin < 300)
		usleep(10000);
	cpu = cpu_ms(f.thread) - cpu;
	assert_true(cpu < (monotonic_ms() - begin) * 2 / 3);
	fake_stop(&f);
	close(pair[0]);
	close(pair[1]);
}

static void
a_queue_is_never_in_two_hands(void **state)
{
	unsigned long before[QUEUES];
	struct fake f[2];

	fake_start(&f[0], false);
	fake_start(&f[1], true);
	for (uint16_t i = 0; i < QUEUES; i++) {
		struct rxq q = {.ifidx = 1, .queue = i, .fd = -1};

		assert_int_equal(serving_add(&f[i % 2].serving, &q), 0);
	}
	fake_run(&f[0]);
	fake_run(&f[1]);
	for (unsigned int n = 0; n < 300; n++) {
		uint16_t queue = (uint16_t)(n * 5 % QUEUES);
		unsigned int who = serving_index(&f[0].serving, 1, 1, queue);

		assert_int_equal(serving_move(&f[who].serving, &f[!who].serving, 1, queue),
				 0);
	}
	assert_false(atomic_load(&shared));
	for (unsigned int i = 0; i < QUEUES; i++)
		before[i] = atomic_load(&turns[i]);
	for (unsigned int i = 0; i < QUEUES; i++)
		while (atomic_load(&turns[i]) == before[i])
			sched_yield();
	assert_int_equal(serving_move(&f[0].serving, &f[1].serving, 2, 0), -ENOENT);
	fake_stop(&f[0]);
	fake_stop(&f[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forwarder_that_gets_work_wakes_up_every_time),
		cmocka_unit_test(a_descriptor_ends_a_sleep),
		cmocka_unit_test(a_queue_without_a_descriptor_is_looked_at),
		cmocka_unit_test(a_forwarder_that_must_not_sleep_does_not),
		cmocka_unit_test(a_descriptor_that_signals_without_packets_costs_little),
		cmocka_unit_test(a_queue_is_never_in_two_hands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
