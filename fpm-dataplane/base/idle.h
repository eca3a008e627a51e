/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: how a forwarder waits when nothing comes. It spins for as long as falling asleep and
 * waking up would cost; then it blocks, RCU-offline, on the descriptors of what can bring it
 * work: its receive queues, and an eventfd by which other threads wake it. A queue without
 * a descriptor is looked at now and then, ever less often, at the latest after 800 us, so
 * that the first packet after idle is late by less than 1 ms.
 *
 * No wake-up is lost: the sleeper says that it is asleep, *then* looks at everything once
 * more, then blocks; who brings work brings it, *then* asks whether it sleeps. One of the two
 * sees the other.
 */
#ifndef BASE_IDLE_H
#define BASE_IDLE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/arch.h>

enum idle_kind {
	IDLE_LEVEL, /* readable for as long as there is something (a socket) */
	IDLE_EDGE,  /* signalled when something comes (an eventfd, an interrupt) */
};

struct idle {
	alignas(64) atomic_bool asleep; /* W:owner, and who wakes it: false */
	int wake_fd;                    /* eventfd */
	int epoll_fd;                   /* all that ends a sleep */
	atomic_int n_blind; /* W:who assigns queues  of them, without a descriptor */
	bool never_sleep;

	/* The owner's. */
	alignas(64) bool armed;
	uint64_t silent_ns; /* CLOCK_MONOTONIC when nothing came first; 0: something did */
	unsigned int in_vain; /* wakes in a row after which there was nothing */
	uint64_t *n_sleeps;   /* a counter */
	/* Interrupts of queues that have to be allowed before a sleep; NULL: none. */
	void (*arm)(void *ctx, bool on);
	void *ctx;
};

/* Returns 0 or -errno.                                                           [main] */
int idle_open(struct idle *idle, bool never_sleep, uint64_t *n_sleeps);
void idle_close(struct idle *idle);

/*
 * Have `fd` end its sleeps from now on, or no more; fd < 0: a queue without a descriptor.
 * Returns 0 or -errno; then the queue counts as one without.      [one thread at a time]
 */
int idle_watch(struct idle *idle, int fd, enum idle_kind kind);
void idle_unwatch(struct idle *idle, int fd);

/* Once in the thread: timers as precise as the kernel gives them. */
void idle_begin(void);

/* Slow paths of idle_round(): nothing came; something came after nothing. */
void idle_nothing(struct idle *idle);
void idle_something(struct idle *idle);

/*
 * After each round. Whatever made the round has been looked at in it: queues, rings, signs
 * to stop.                                                                      [owner]
 */
static inline void
idle_round(struct idle *idle, bool worked)
{
	if (!worked)
		idle_nothing(idle);
	else if (idle->silent_ns != 0)
		idle_something(idle);
}

/* After something was put where the owner looks. A system call only when it sleeps. */
void idle_wake_sleeper(struct idle *idle);

static inline void
idle_wake(struct idle *idle)
{
	/* What was put must be there before we ask: pairs with idle_nothing(). */
	cmm_smp_mb();
	if (atomic_load_explicit(&idle->asleep, memory_order_relaxed))
		idle_wake_sleeper(idle);
}

#endif
