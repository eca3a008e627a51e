/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: the sleep of a forwarder without packets. It spins for about the cost of a sleep
 * and a wake-up. Then it blocks, RCU-offline, on the descriptors of its receive queues and
 * on an eventfd through which other threads wake it. It polls a queue without a descriptor
 * at growing intervals of at most 800 us, so that the first packet after a silence is late
 * by less than 1 ms.
 *
 * No wake-up is lost: the sleeper stores `asleep`, *then* polls every queue once more, then
 * blocks; a thread that adds work adds it, *then* reads `asleep`. At least one of the two
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
	IDLE_LEVEL, /* readable while packets are waiting (a socket) */
	IDLE_EDGE,  /* signalled when a packet arrives (an eventfd, an interrupt) */
};

struct idle {
	alignas(64) atomic_bool asleep; /* W:owner; false by a thread that wakes it */
	int wake_fd;                    /* eventfd */
	int epoll_fd;                   /* all descriptors that end a sleep */
	/* Number of queues without a descriptor. W: the thread that assigns queues */
	atomic_int n_blind;
	bool never_sleep;

	/* Written and read by the owner only. */
	alignas(64) bool armed;
	/*
	 * CLOCK_MONOTONIC of the first round without packets; 0: the last round had
	 * packets
	 */
	uint64_t silent_ns;
	unsigned int in_vain; /* wake-ups in a row without a packet */
	uint64_t *n_sleeps;   /* counter of sleeps */
	/*
	 * Enable or disable the interrupts of queues around a sleep; NULL: no queue needs
	 * that.
	 */
	void (*arm)(void *ctx, bool on);
	void *ctx;
	/*
	 * Return the time in ns until the owner has work that no thread announces; NULL:
	 * never.
	 */
	uint64_t (*until)(void *ctx);
	void *until_ctx;
};

/* Create the descriptors. Returns 0 or -errno.                                   [main] */
int idle_open(struct idle *idle, bool never_sleep, uint64_t *n_sleeps);
void idle_close(struct idle *idle);

/*
 * Add `fd` to the descriptors that end a sleep, or remove it. fd < 0: a queue has no
 * descriptor. Returns 0 or -errno; on an error the queue counts as one without a
 * descriptor.
 *                                                                   [one thread at a time]
 */
int idle_watch(struct idle *idle, int fd, enum idle_kind kind);
void idle_unwatch(struct idle *idle, int fd);

/* Set the timer slack of the calling thread to 1 us.                      [owner, once] */
void idle_begin(void);

/*
 * Slow paths of idle_round(): for a round without packets, and for the first round with
 * packets after such a round.
 */
void idle_nothing(struct idle *idle);
void idle_something(struct idle *idle);

/*
 * Call after each round, in which the owner polled all its queues, rings and stop flags.
 *                                                                                  [owner]
 */
static inline void
idle_round(struct idle *idle, bool worked)
{
	if (!worked)
		idle_nothing(idle);
	else if (idle->silent_ns != 0)
		idle_something(idle);
}

/*
 * Wake the owner after adding work for it. Makes a system call only while it sleeps.
 *                                                                             [any thread]
 */
void idle_wake_sleeper(struct idle *idle);

static inline void
idle_wake(struct idle *idle)
{
	/*
	 * Full barrier: the work must be visible before `asleep` is read. Pairs with
	 * idle_arm().
	 */
	cmm_smp_mb();
	if (atomic_load_explicit(&idle->asleep, memory_order_relaxed))
		idle_wake_sleeper(idle);
}

#endif
