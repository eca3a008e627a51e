/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog finds a worker or a forwarder that stands still. A thread that has announced
 * a long step is not reported until the announced time is over.
 * link: fpm-dataplane/base/ fpm-dataplane/restart/watchdog.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "restart/watchdog.h"
#include "base/log.h"

#define PATIENCE_MS 15000u
#define LONG_MS     300000u

static const struct timespec moment = {.tv_nsec = 100000};
static struct worker worker;
static struct counters *forwarder, *other;
static struct watchdog watchdog;
static sem_t here, go;
static unsigned int takes_ms;

/* Handle a message: block until the test allows the worker to continue. */
static void
hang(struct worker *w, struct msg *m)
{
	msg_free(m);
	worker_suspend_watchdog(takes_ms);
	urcu_qsbr_thread_offline();
	sem_post(&here);
	sem_wait(&go);
	urcu_qsbr_thread_online();
	worker_suspend_watchdog(0);
}

static void
begin_to_hang(unsigned int most_ms)
{
	takes_ms = most_ms;
	worker_send(&worker, msg_new(MSG_RECLAIM, sizeof(struct msg)));
	sem_wait(&here);
}

static bool
look(uint64_t now_ms)
{
	return watchdog_check(&watchdog, &worker, 1, now_ms, PATIENCE_MS);
}

/*
 * Check once more, so that the watchdog has seen the last round of the worker. The worker
 * makes no other round.
 */
static void
hangs_now(uint64_t now_ms)
{
	counter_add(&forwarder->rounds, 1);
	look(now_ms);
}

/* All threads make a round. The forwarder does so here, because the test plays it. */
static void
all_alive(uint64_t now_ms)
{
	counter_add(&forwarder->rounds, 1);
	while (!look(now_ms))
		nanosleep(&moment, NULL);
}

struct lines {
	const char *of;
	unsigned int n;
};

static void
on_line(void *ctx, const char *line, size_t len)
{
	struct lines *l = ctx;

	l->n += memmem(line, len, l->of, strlen(l->of)) != NULL;
}

static unsigned int
said(const char *words)
{
	struct lines l = {words, 0};

	log_recent(on_line, &l);
	return l.n;
}

static void
a_forwarder_that_stands_still_is_no_sign_of_life(void **state)
{
	uint64_t now = monotonic_ms();

	watchdog = (struct watchdog){.since_ms = now};
	all_alive(now);
	assert_false(look(now));
	while (worker_rounds(&worker) == watchdog.rounds[0])
		nanosleep(&moment, NULL);
	for (unsigned int s = 1; s <= 30; s++)
		assert_false(look(now + s * 1000));
	assert_int_equal(said("main: thread hangs thread=fwd-0 for_ms=15000"), 1);
	/* No other thread is reported, and this one is reported once. */
	assert_int_equal(said("hangs"), 1);
	all_alive(now + 31000);
	assert_false(look(now + 32000));
}

static void
a_worker_that_hangs_is_no_sign_of_life(void **state)
{
	uint64_t now = monotonic_ms();

	watchdog = (struct watchdog){.since_ms = now};
	all_alive(now);
	begin_to_hang(0);
	hangs_now(now);
	for (unsigned int s = 1; s <= 30; s++) {
		counter_add(&forwarder->rounds, 1);
		assert_false(look(now + s * 1000));
	}
	sem_post(&go);
	assert_int_equal(said("main: thread hangs thread=slow for_ms="), 1);
	all_alive(now + 31000);
}

static void
a_worker_that_announced_a_long_task_is_alive_until_its_limit(void **state)
{
	uint64_t now = monotonic_ms();

	watchdog = (struct watchdog){.since_ms = now};
	all_alive(now);
	begin_to_hang(LONG_MS);
	for (unsigned int s = 0; s < LONG_MS / 1000; s++) {
		counter_add(&forwarder->rounds, 1);
		assert_true(look(now + s * 1000));
	}
	counter_add(&forwarder->rounds, 1);
	assert_false(look(monotonic_ms() + LONG_MS + 1));
	sem_post(&go);
	all_alive(now + LONG_MS + 1000);
}

static void
two_that_pause_one_after_the_other_are_alive(void **state)
{
	uint64_t now = monotonic_ms();

	watchdog = (struct watchdog){.since_ms = now};
	all_alive(now);
	begin_to_hang(0);
	hangs_now(now);
	counter_add(&forwarder->rounds, 1); /* it stands still from now on */
	assert_false(look(now + 20000));
	sem_post(&go);
	/* The worker is back; the forwarder has made a round before. */
	while (!look(now + 20001))
		nanosleep(&moment, NULL);
	assert_false(look(now + 20002));
	counter_add(&forwarder->rounds, 1);
	all_alive(now + 40000);
}

static int
start(void **state)
{
	static const struct worker_ops ops = {.name = "slow", .on_msg = hang};

	forwarder = counters_register("fwd-0");
	forwarder->forwards = true;
	/* Counters of a worker, whose rounds are counted elsewhere. */
	other = counters_register("punt");
	sem_init(&here, 0, 0);
	sem_init(&go, 0, 0);
	worker_init(&worker, &ops, NULL);
	return worker_prepare(&worker) != 0 || worker_start(&worker) != 0;
}

static int
end(void **state)
{
	worker_stop(&worker);
	worker_free(&worker);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forwarder_that_stands_still_is_no_sign_of_life),
		cmocka_unit_test(a_worker_that_hangs_is_no_sign_of_life),
		cmocka_unit_test(
			a_worker_that_announced_a_long_task_is_alive_until_its_limit),
		cmocka_unit_test(two_that_pause_one_after_the_other_are_alive),
	};

	return cmocka_run_group_tests(tests, start, end);
}
