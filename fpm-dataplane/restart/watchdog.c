/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check that all threads still run. The check may run at any rate: a thread has the time
 * from one passed check to the next. Therefore a service manager that waits for 30 s ends
 * the daemon when a thread stood still for 30 s, not for 16 s and not for 44 s. The service
 * manager gets WATCHDOG=1 only when every worker and every forwarder has gone round,
 * because a daemon hangs when one of its threads hangs.                         [main]
 */
#include "restart/watchdog.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"

#define LOOKS 4 /* checks in the time within which the service manager expects WATCHDOG=1 */

/* A thread that counts its rounds: a worker or a forwarder. */
struct watched {
	const char *name;
	unsigned long rounds;
	bool rests; /* in a grace period that it announced, or not a forwarder */
};

/* Describe the i-th watched thread. Returns false when there is none. */
static bool
thread_at(struct worker *w, unsigned int n, unsigned int i, uint64_t now_ms,
	  struct watched *one)
{
	struct counters *const *block;
	unsigned int n_block = counters_blocks(&block);

	if (i < n) {
		*one = (struct watched){w[i].ops->name, worker_rounds(&w[i]),
					worker_rests(&w[i], now_ms)};
		return true;
	}
	if (i - n >= n_block)
		return false;
	*one = (struct watched){.name = block[i - n]->name,
				.rests = !block[i - n]->forwards};
	one->rounds = counter_read(&block[i - n]->rounds);
	return true;
}

bool
watchdog_look(struct watchdog *dog, struct worker *w, unsigned int n, uint64_t now_ms,
	      unsigned int patience_ms)
{
	bool all = true, tell = !dog->told && now_ms - dog->since_ms >= patience_ms;
	struct watched one;

	for (unsigned int i = 0; thread_at(w, n, i, now_ms, &one); i++) {
		if (i < n)
			worker_wake(&w[i]);
		if (one.rests || one.rounds != dog->rounds[i])
			continue;
		all = false;
		dog->told |= tell;
		if (tell)
			log_warn("main: thread hangs thread=%s for_ms=%llu", one.name,
				 (unsigned long long)(now_ms - dog->since_ms));
	}
	if (!all)
		return false;
	for (unsigned int i = 0; thread_at(w, n, i, now_ms, &one); i++)
		dog->rounds[i] = one.rounds;
	dog->since_ms = now_ms;
	dog->told = false;
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
	unsigned int patience_ms = service_watchdog_ms();
	static struct watchdog watchdog;
	static uint64_t look_ms; /* static: frequent signals do not delay a check */
	int sig;

	if (patience_ms == 0) {
		sigwait(set, &sig);
		return sig;
	}
	if (look_ms == 0)
		watchdog.since_ms = monotonic_ms();
	for (;;) {
		struct timespec wait = time_until(look_ms);

		sig = sigtimedwait(set, NULL, &wait);
		if (monotonic_ms() >= look_ms) {
			if (watchdog_look(&watchdog, w, n_worker, monotonic_ms(),
					  patience_ms))
				service_hint("WATCHDOG=1");
			look_ms = monotonic_ms() + patience_ms / LOOKS + 1;
		}
		if (sig >= 0)
			return sig;
	}
}

int
watchdog_until(bool (*done)(void), unsigned int most_ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t end_ms = monotonic_ms() + most_ms, sign_ms = 0;

	while (!done()) {
		uint64_t now = monotonic_ms();

		if (now >= end_ms)
			return -ETIMEDOUT;
		if (now >= sign_ms) {
			service_hint("WATCHDOG=1");
			sign_ms = now + service_watchdog_ms() / LOOKS;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}
