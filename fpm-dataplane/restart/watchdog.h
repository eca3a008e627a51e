/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog: the check that each thread still runs. Workers and forwarders count the rounds
 * of their loops; a thread whose count does not grow hangs. A forwarder without work sleeps
 * at most 100 ms (base/idle.h). A worker announces a long task with its time limit
 * (worker_suspend_watchdog()).
 * [main]
 */
#ifndef RESTART_WATCHDOG_H
#define RESTART_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/worker.h"

#define WATCHDOG_WORKERS_MAX 16

struct watchdog {
	uint64_t since_ms; /* time of the last passed check */
	bool reported;     /* hanging threads were logged since then */
	/* The rounds of each thread at the last passed check. */
	unsigned long rounds[WATCHDOG_WORKERS_MAX + COUNTERS_MAX];
};

/*
 * Check all threads: the `n` workers and all forwarders. Returns true if each has completed
 * a round since the last passed check. Wakes the workers, so that they do a round. Logs a
 * thread that has completed no round for `timeout_ms`, once until the next passed check.
 */
bool watchdog_check(struct watchdog *wd, struct worker *w, unsigned int n, uint64_t now_ms,
		    unsigned int timeout_ms);

/*
 * Wait for a signal of `set` as sigwait(3) does. Meanwhile send WATCHDOG=1 to the service
 * manager while all workers and forwarders run. Returns the signal.
 */
int watchdog_sigwait(const sigset_t *set, struct worker *w, unsigned int n_worker);

/*
 * Wait until `done` returns true, and send WATCHDOG=1 meanwhile, because a long wait does
 * not mean that the daemon hangs. Returns 0, or -ETIMEDOUT after `most_ms`.
 */
int watchdog_wait(bool (*done)(void), unsigned int most_ms);

#endif
