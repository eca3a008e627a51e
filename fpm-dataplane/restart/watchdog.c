/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check that all threads still run. The check may run at any rate, because it passes when
 * each thread has completed a round since the last passed check. So a service manager that
 * waits for 30 s ends the daemon after 30 s in which a thread has completed no round, not
 * after 16 s or 44 s. The service manager gets WATCHDOG=1 only when every worker and every
 * forwarder has completed a round, because a daemon hangs when one of its threads hangs.
 * [main]
 */
#include "restart/watchdog.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"

#define CHECKS 4 /* checks in each interval of WATCHDOG=1 */

/* A thread that counts its rounds: a worker or a forwarder. */
struct watched {
	const char *name;
	unsigned long rounds;
	bool idle; /* not checked: it announced a long task, or is not a forwarder */
};

/* Describe the i-th watched thread. Returns false when there is none. */
static bool
thread_at(struct worker *w, unsigned int n, unsigned int i, uint64_t now_ms,
	  struct watched *thread)
{
	struct counters *const *block;
	unsigned int n_block = counters_blocks(&block);

	if (i < n) {
		*thread = (struct watched){w[i].ops->name, worker_rounds(&w[i]),
					   worker_watchdog_is_suspended(&w[i], now_ms)};
		return true;
	}
	if (i - n >= n_block)
		return false;
	*thread = (struct watched){.name = block[i - n]->name,
				   .idle = !block[i - n]->forwards};
	thread->rounds = counter_read(&block[i - n]->rounds);
	return true;
}

bool
watchdog_check(struct watchdog *wd, struct worker *w, unsigned int n, uint64_t now_ms,
	       unsigned int timeout_ms)
{
	bool all = true, report = !wd->reported && now_ms - wd->since_ms >= timeout_ms;
	struct watched thread;

	for (unsigned int i = 0; thread_at(w, n, i, now_ms, &thread); i++) {
		if (i < n)
			worker_wake(&w[i]);
		if (thread.idle || thread.rounds != wd->rounds[i])
			continue;
		all = false;
		wd->reported |= report;
		if (report)
			log_warn("main: thread hangs thread=%s for_ms=%llu", thread.name,
				 (unsigned long long)(now_ms - wd->since_ms));
	}
	if (!all)
		return false;
	for (unsigned int i = 0; thread_at(w, n, i, now_ms, &thread); i++)
		wd->rounds[i] = thread.rounds;
	wd->since_ms = now_ms;
	wd->reported = false;
	return true;
}

/* Return the time until `then_ms`, 0 if it has passed. */
static struct timespec
time_until(uint64_t then_ms)
{
	uint64_t now = monotonic_ms(), ms = then_ms > now ? then_ms - now : 0;

	return (struct timespec){.tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000) * 1000000};
}

int
watchdog_sigwait(const sigset_t *set, struct worker *w, unsigned int n_worker)
{
	unsigned int timeout_ms = sd_watchdog_ms();
	static struct watchdog watchdog;
	static uint64_t check_ms; /* static: frequent signals must not delay a check */
	int sig;

	if (timeout_ms == 0) {
		sigwait(set, &sig);
		return sig;
	}
	if (check_ms == 0)
		watchdog.since_ms = monotonic_ms();
	for (;;) {
		struct timespec wait = time_until(check_ms);

		sig = sigtimedwait(set, NULL, &wait);
		if (monotonic_ms() >= check_ms) {
			if (watchdog_check(&watchdog, w, n_worker, monotonic_ms(),
					   timeout_ms))
				sd_send_nowait("WATCHDOG=1");
			check_ms = monotonic_ms() + timeout_ms / CHECKS + 1;
		}
		if (sig >= 0)
			return sig;
	}
}

int
watchdog_wait(bool (*done)(void), unsigned int most_ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t end_ms = monotonic_ms() + most_ms, notify_ms = 0;

	while (!done()) {
		uint64_t now = monotonic_ms();

		if (now >= end_ms)
			return -ETIMEDOUT;
		if (now >= notify_ms) {
			sd_send_nowait("WATCHDOG=1");
			notify_ms = now + sd_watchdog_ms() / CHECKS;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}
