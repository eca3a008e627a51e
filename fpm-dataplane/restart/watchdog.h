/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog: is every thread alive? Workers and forwarders count the rounds of their loops; who
 * stands still hangs. A forwarder without work sleeps 100 ms at most (base/idle.h); a worker
 * that is about to take long says so and until when (worker_takes_long()).        [main]
 */
#ifndef RESTART_WATCHDOG_H
#define RESTART_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/worker.h"

#define LIFE_WORKERS_MAX 8

struct life {
	uint64_t since_ms; /* when all were seen alive last */
	bool told;         /* who is not, since then */
	unsigned long rounds[LIFE_WORKERS_MAX + COUNTERS_MAX]; /* as they were then */
};

/*
 * Has everyone, the `n` workers and all forwarders, gone round since the last time that the
 * answer was yes? Wakes the workers, so that they do. Who has not for `patience_ms` is told
 * in the log, once a time.
 */
bool life_look(struct life *life, struct worker *w, unsigned int n, uint64_t now_ms,
	       unsigned int patience_ms);

#endif
