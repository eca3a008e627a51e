/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker: a control thread with its event loop (libev), its mailbox and its RCU state.
 *
 * A worker is registered with liburcu (QSBR). It is *offline* while its loop waits and
 * *online* while callbacks run: between two waits it may follow RCU pointers, and each
 * wait is a quiescent state. A sleeping thread that stayed online would block every grace
 * period.
 *
 * Mailboxes are unbounded queues (wfcqueue): a send never waits or fails, so no cycle of
 * threads can deadlock. The sender bounds the queue: each type of message names its bound
 * in base/msg.h. A worker has two mailboxes, because there may be millions of bulk messages
 * (msg_is_bulk()). Bulk messages wait for all other messages, so that a lost link or a
 * query does not wait behind a full table. Messages of one mailbox are taken in the order
 * sent.
 *
 * design.md, section 2, lists the mutexes of the program and their order.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <urcu/wfcqueue.h>

#include "base/msg.h"

struct mailbox {
	struct cds_wfcq_head head;
	struct cds_wfcq_tail tail;
};

enum role {
	ROLE_NONE,
	ROLE_MAIN,
	ROLE_FPM,
	ROLE_RTNL,
	ROLE_RIB,
	ROLE_NEIGH,
	ROLE_PUNT,
	ROLE_UI,
	ROLE_TRACE,
	ROLE_MANAGE,
	ROLE_WARN,
	ROLE_FILTER,
	ROLE_SFLOW,
	ROLE_BFD,
	ROLE_FWD
};

extern __thread enum role thread_role;

/* Ownership is checked in debug and sanitizer builds. */
#ifdef DEBUG
#include <assert.h>
#define ASSERT_ROLE(r) assert(thread_role == (r) || thread_role == ROLE_NONE)
#else
#define ASSERT_ROLE(r) ((void)0)
#endif

struct worker;

/* The callbacks of a thread, as a constant table. */
struct worker_ops {
	const char *name; /* "rib"; part of the thread's name */
	enum role role;
	/*
	 * Called in the worker's thread before the first wait. Returns 0 or -errno. May be
	 * NULL.
	 */
	int (*init)(struct worker *w);
	/* Called for a message, which the callee then owns. */
	void (*on_msg)(struct worker *w, struct msg *m);
	/*
	 * Called after each round of events and messages (rib commits here). May be NULL.
	 */
	void (*on_round)(struct worker *w);
	/* Called in the worker's thread after the last round. May be NULL. */
	void (*fini)(struct worker *w);
};

/* The state of the request that a thread stops. */
enum worker_stopping {
	STOP_NONE,
	STOP_ASKED, /* main may still cancel the request: worker_start() */
	STOP_BEGUN, /* the loop has ended, or ends after this round */
};

struct worker {
	const struct worker_ops *ops;
	void *ctx; /* the thread's state, passed to the callbacks */
	struct ev_loop *loop;

	/* private to base/worker.c */
	pthread_t thread;
	bool launched, running;
	atomic_bool begun;                       /* W:the worker */
	atomic_bool busy;                        /* W:the worker, by worker_busy() */
	_Atomic enum worker_stopping stop_state; /* W:main, the worker */
	int init_rc;
	pthread_barrier_t started;
	_Atomic unsigned long rounds; /* W:the worker */
	/* W:the worker, by worker_suspend_watchdog(): end of the suspension */
	_Atomic uint64_t suspended_until_ms;
	struct mailbox prompt, bulk;
	ev_async wake;
	ev_async stop;
	ev_prepare round;
};

/* Set the thread's callbacks and state; clear all other fields.                  [main] */
void worker_init(struct worker *w, const struct worker_ops *ops, void *ctx);

/*
 * worker_prepare() creates the loop and the mailboxes; messages may be sent from then on.
 * worker_start() starts the thread, unless it is launched or runs, and waits until its init
 * has run. Returns 0 or -errno of init (the thread has then ended). A thread that was
 * stopped may be started again: init and fini must match. If the thread was asked to stop
 * and has not begun to stop, worker_start() cancels the request. If the thread has begun to
 * stop, worker_start() waits for its end, and starts it again.                      [main]
 */
int worker_prepare(struct worker *w);
int worker_start(struct worker *w);

/* Start the thread without waiting for init: the first half of worker_start().   [main] */
int worker_launch(struct worker *w);

/* Return true if the init of a launched thread has run.                          [main] */
bool worker_has_begun(const struct worker *w);

/*
 * Record whether there is work left that no message will announce (`more`). worker_settle()
 * waits for such work. Call in on_round.                                      [the worker]
 */
void worker_busy(struct worker *w, bool more);

/*
 * Wait until the `n` workers have no work and no messages for each other: their mailboxes
 * have stayed empty for several rounds of all workers.                              [main]
 */
void worker_settle(struct worker *const *w, unsigned int n);

/*
 * Ask the thread to stop after its round, without waiting for its end. Call worker_stop()
 * later.                                                                            [main]
 */
void worker_stop_ask(struct worker *w);

/* Return true if the thread is to stop: a long round then ends early.       [the worker] */
bool worker_is_ending(const struct worker *w);

/* Stop the thread and wait for its end. Messages may still be sent to it.        [main] */
void worker_stop(struct worker *w);

/* Ask the thread to stop. Return true if it has ended; if not, call again.       [main] */
bool worker_stop_try(struct worker *w);

/*
 * Free the loop and the unread messages, after worker_stop() and urcu_qsbr_barrier().
 * Unread MSG_RECLAIM still go to on_msg, which frees the objects that they carry.   [main]
 */
void worker_free(struct worker *w);

/* Let the loop run one more round with on_round. Cheap while it is awake.  [any thread] */
void worker_wake(struct worker *w);

/*
 * Return the number of rounds of the loop. If the number does not grow, the thread hangs.
 *                                                                             [any thread]
 */
unsigned long worker_rounds(const struct worker *w);

/*
 * Suspend the watchdog (restart/watchdog.h) for the calling worker for up to `most_ms`,
 * because its round may take long. 0 ends the suspension. No effect in a thread that is no
 * worker.                                                                     [the worker]
 */
void worker_suspend_watchdog(unsigned int most_ms);

/*
 * Return true if the worker is within the time of worker_suspend_watchdog() at `now_ms`
 * (monotonic_ms()).                                                           [any thread]
 */
bool worker_watchdog_is_suspended(const struct worker *w, uint64_t now_ms);

/*
 * Call `fn(w->ctx, arg)` in the worker after a grace period. A MSG_RECLAIM carries the
 * call. urcu_qsbr_barrier() and worker_free() execute the remaining calls.    [the worker]
 */
void worker_defer(struct worker *w, void (*fn)(void *owner, void *arg), void *arg);

/* Make the call of a MSG_RECLAIM and free the message.    [the worker, main at its end] */
void worker_reclaim(struct worker *w, struct msg *m);

/* Send a message. Never blocks, never fails.                               [any thread] */
void worker_send(struct worker *to, struct msg *m);

/*
 * Take the next message, which the caller then owns; NULL: none. Public for tests, whose
 * worker has no loop.
 */
struct msg *worker_take(struct worker *w);

#endif
