/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog: is every thread alive? Workers and forwarders count the rounds of their loops; who
 * stands still hangs. A forwarder without work sleeps 100 ms at most (base/idle.h); a worker
 * that is about to take long says so and until when (worker_suspend_watchdog()).  [main]
 */
#ifndef RESTART_WATCHDOG_H
#define RESTART_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/worker.h"

#define WATCHDOG_WORKERS_MAX 8

struct watchdog {
	uint64_t since_ms; /* when all were seen alive last */
	bool told;         /* who is not, since then */
	/* As they were then. */
	unsigned long rounds[WATCHDOG_WORKERS_MAX + COUNTERS_MAX];
};

/*
 * Has everyone, the `n` workers and all forwarders, gone round since the last time that the
 * answer was yes? Wakes the workers, so that they do. Who has not for `patience_ms` is told
 * in the log, once a time.
 */
bool watchdog_look(struct watchdog *dog, struct worker *w, unsigned int n, uint64_t now_ms,
		   unsigned int patience_ms);

/*
 * Wait for a signal of `set` as sigwait(3) does, telling the service manager meanwhile that
 * all workers and forwarders are alive, while they are. Returns the signal.
 */
int watchdog_sigwait(const sigset_t *set, struct worker *w, unsigned int n_worker);

/*
 * Wait until `done` says so, with signs of life meanwhile: that it takes long is no hang.
 * Returns 0, or -ETIMEDOUT after `most_ms`.
 */
int watchdog_until(bool (*done)(void), unsigned int most_ms);

#endif
