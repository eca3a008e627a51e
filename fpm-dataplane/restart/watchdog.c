/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signs of life, looked for as often as one likes: a thread has time from one yes to the
 * next. So a service manager that waits for 30 s ends who stood still for 30 s, neither a
 * thread that did for 16 nor one that did for 44. The service manager is told only when every
 * worker and every forwarder has gone round: a thread that hangs is a daemon that hangs.
 *                                                                                 [main]
 */
#include "restart/watchdog.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"

#define LOOKS 4 /* at all threads, while the service manager wants to hear once */

/* A thread that counts its rounds: a worker or a forwarder. */
struct watched {
	const char *name;
	unsigned long rounds;
	bool rests; /* as it said that it would */
};

/* Describe the i-th watched thread; false: there are no more. */
static bool
thread_at(struct worker *w, unsigned int n, unsigned int i, uint64_t now_ms,
	  struct watched *one)
{
	struct counters *const *block;
	unsigned int n_block = counters_blocks(&block);

	if (i < n) {
		*one = (struct watched){w[i].ops->name, worker_rounds(&w[i]),
					worker_watchdog_is_suspended(&w[i], now_ms)};
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
			log_warn("main: no sign of life thread=%s for_ms=%llu", one.name,
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

/* The time until `then_ms`; 0 when it is over. */
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
	unsigned int patience_ms = sd_watchdog_ms();
	static struct watchdog watchdog;
	static uint64_t look_ms; /* kept: signals that come often hold up no look */
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
				sd_send_nowait("WATCHDOG=1");
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
			sd_send_nowait("WATCHDOG=1");
			sign_ms = now + sd_watchdog_ms() / LOOKS;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}
