/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: how a forwarder waits when nothing comes: spin a while, then sleep in growing
 * steps, RCU-offline, at most 200 us, so that the first packet after idle is late by less
 * than 1 ms and an idle router leaves the CPU to others.                     [fwd-n]
 */
#ifndef BASE_IDLE_H
#define BASE_IDLE_H

#include <stdbool.h>

struct idle {
	unsigned int empty; /* polls without work in a row */
	bool never_sleep;
};

/* Once in the thread: timers as precise as the kernel gives them. */
void idle_init(struct idle *idle, bool never_sleep);

/* Slow path of idle_round(). */
void idle_sleep(struct idle *idle);

#define IDLE_SPIN 64

/* After each poll round. */
static inline void
idle_round(struct idle *idle, bool worked)
{
	if (worked)
		idle->empty = 0;
	else if (++idle->empty > IDLE_SPIN && !idle->never_sleep)
		idle_sleep(idle);
}

#endif
