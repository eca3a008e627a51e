/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker: a control thread: its event loop (libev), its mailbox, its place in RCU.
 *
 * A worker is born registered with liburcu (QSBR) and is *offline* whenever its loop waits
 * and *online* while callbacks run: between two waits it may follow RCU pointers, and each
 * wait is a quiescent state. A sleeper that stayed online would hold up every grace period.
 *
 * Mailboxes are unbounded queues (wfcqueue): no send ever waits or fails, so no cycle of
 * threads can block. What bounds them is the sender: each kind of message names its bound in
 * base/msg.h. There are two of them: bulk (msg_is_bulk()) comes by the million and waits for
 * all else, so that a lost link or a question does not stand behind a full table. Within each,
 * messages are taken in the order sent.
 *
 * The mutexes of the program, and in which order they are taken: DESIGN.md, section 2.
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
	ROLE_RIB,
	ROLE_NEIGH,
	ROLE_PUNT,
	ROLE_UI,
	ROLE_TRACE,
	ROLE_MANAGE,
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

/* The callbacks of a thread, in one constant table. */
struct worker_ops {
	const char *name; /* "rib": thread name too */
	enum role role;
	/* In the worker's thread, before the first wait. Returns 0 or -errno. May be NULL. */
	int (*init)(struct worker *w);
	/* One message; the callee owns it. */
	void (*on_msg)(struct worker *w, struct msg *m);
	/* After each round of events and messages (commit here). May be NULL. */
	void (*on_round)(struct worker *w);
	/* In the worker's thread, after the last round. May be NULL. */
	void (*fini)(struct worker *w);
};

struct worker {
	const struct worker_ops *ops;
	void *ctx; /* the thread's own state, given to the callbacks */
	struct ev_loop *loop;

	/* private to base/worker.c */
	pthread_t thread;
	bool launched, running;
	atomic_bool begun; /* W:the worker */
	atomic_bool busy;  /* W:the worker, by worker_busy() */
	int init_rc;
	pthread_barrier_t started;
	_Atomic unsigned long rounds; /* W:the worker */
	_Atomic uint64_t rests_ms;    /* W:the worker, by worker_takes_long(): until then */
	struct mailbox prompt, bulk;
	ev_async wake;
	ev_async stop;
	ev_prepare round;
};

/* Set the thread's callbacks and state; clear all other fields.                  [main] */
void worker_init(struct worker *w, const struct worker_ops *ops, void *ctx);

/*
 * Start the thread, unless that has been done, and wait until its init has run. Returns 0 or
 * init's -errno (the thread is then gone). Messages may be sent from worker_prepare() on. One
 * that has stopped may be started again: init and fini are to go together.
 *                                                                             [main]
 */
int worker_prepare(struct worker *w);
int worker_start(struct worker *w);

/* The first half of worker_start(), for an init that takes long: other work goes between. */
int worker_launch(struct worker *w);

/* Of one that is launched: has its init run?                                     [main] */
bool worker_has_begun(const struct worker *w);

/* In on_round: is there more to do that no message will tell of?           [the worker] */
void worker_busy(struct worker *w, bool more);

/*
 * Wait until those `n` have nothing more to do, nor to say to one another: their mailboxes have
 * stayed empty while each went round several times.                              [main]
 */
void worker_settle(struct worker *const *w, unsigned int n);

/* Ask it to stop and wait for it. Messages may still be sent to it.              [main] */
void worker_stop(struct worker *w);

/* Ask it to stop, or again. Has it stopped?                                      [main] */
bool worker_stop_try(struct worker *w);

/*
 * After worker_stop() and a urcu_qsbr_barrier(): free the loop and the unread messages;
 * unread MSG_RECLAIM still reach on_msg, so that what they carry is freed.       [main]
 */
void worker_free(struct worker *w);

/* Make the loop go round once more: on_round runs. Cheap when awake.      [any thread] */
void worker_wake(struct worker *w);

/* How often its loop has gone round: it hangs when this stands still. [any thread] */
unsigned long worker_rounds(const struct worker *w);

/*
 * The calling worker does now what may take long, `most_ms` at most: until then it does not
 * hang, should it not go round (restart/watchdog.h). 0: that is over. Of a thread that is
 * no worker nobody expects anything.                                                [the
 * worker]
 */
void worker_takes_long(unsigned int most_ms);

/* At `now_ms` (monotonic_ms()): is that so?                               [any thread] */
bool worker_rests(const struct worker *w, uint64_t now_ms);

/*
 * Call `fn(w->ctx, arg)` in the worker after a grace period: a MSG_RECLAIM carries the call.
 * urcu_qsbr_barrier() and worker_free() make the calls that are left.       [the worker]
 */
void worker_defer(struct worker *w, void (*fn)(void *owner, void *arg), void *arg);

/* Make the call of a MSG_RECLAIM and free the message.    [the worker, main at its end] */
void worker_reclaim(struct worker *w, struct msg *m);

/* Hand a message over; never blocks, never fails.                       [any thread] */
void worker_send(struct worker *to, struct msg *m);

/* The next message, now the caller's; NULL: none. For one that has no loop (tests). */
struct msg *worker_take(struct worker *w);

#endif
