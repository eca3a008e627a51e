/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control threads. The loop waits offline (RCU) and works online. A round takes at most
 * ROUND_MSGS messages, so that sockets and timers are served. A round that reaches this
 * limit also takes one bulk message, so that bulk messages proceed.
 */
#include "base/worker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/fpm_event.h"
#include "base/kernel_event.h"
#include "base/tsan.h"

#define ROUND_MSGS 256
/*
 * Rounds without work after which workers count as settled: more than the messages that one
 * query causes between two threads.
 */
#define QUIET_ROUNDS 16

__thread enum role thread_role;

static __thread struct worker *self;

void *
msg_new(enum msg_type type, size_t size)
{
	struct msg *m = calloc(1, size);

	if (m == NULL)
		/* out of memory for a small message: the process cannot continue */
		abort();
	m->type = type;
	cds_wfcq_node_init(&m->node);
	return m;
}

void
msg_free(struct msg *m)
{
	if (m->type == MSG_FPM_BATCH) {
		struct msg_fpm_batch *batch = caa_container_of(m, struct msg_fpm_batch, m);

		for (uint32_t i = 0; i < batch->n && !batch->holds_hops; i++)
			fpm_event_clear(&batch->ev[i]);
	}
	if (m->type == MSG_KERNEL_BATCH) {
		struct msg_kernel_batch *batch =
			caa_container_of(m, struct msg_kernel_batch, m);

		for (uint32_t i = 0; i < batch->n; i++)
			fpm_event_clear(&batch->ev[i].route);
	}
	free(m);
}

void
worker_send(struct worker *to, struct msg *m)
{
	struct mailbox *box = msg_is_bulk(m->type) ? &to->bulk : &to->prompt;

	cds_wfcq_node_init(&m->node);
	GRACE_RELEASE(m);
	cds_wfcq_enqueue(&box->head, &box->tail, &m->node);
	/* Cheap while the loop is awake: ev_async_send() coalesces and skips the write. */
	ev_async_send(to->loop, &to->wake);
}

/* --- calls after a grace period ------------------------------------------------------- */

struct deferred {
	struct msg_reclaim reclaim; /* first member: the message is the allocation */
	struct rcu_head rcu;
	struct worker *to;
};

/* Post the message. Runs on liburcu's thread; frees nothing. */
static void
deferred_due(struct rcu_head *head)
{
	struct deferred *d = caa_container_of(head, struct deferred, rcu);
	struct worker *to;

	GRACE_ACQUIRE(d);
	GRACE_OVER();
	to = d->to;
	worker_send(to, &d->reclaim.m);
	GRACE_RELEASE(to); /* because `to` is freed after urcu_qsbr_barrier() */
}

void
worker_defer(struct worker *w, void (*fn)(void *owner, void *arg), void *arg)
{
	struct deferred *d = msg_new(MSG_RECLAIM, sizeof(*d));

	d->reclaim.fn = fn;
	d->reclaim.arg = arg;
	d->to = w;
	GRACE_RELEASE(d);
	urcu_qsbr_call_rcu(&d->rcu, deferred_due);
}

void
worker_reclaim(struct worker *w, struct msg *m)
{
	const struct msg_reclaim *reclaim = caa_container_of(m, struct msg_reclaim, m);

	reclaim->fn(w->ctx, reclaim->arg);
	msg_free(m);
}

/* --- mailboxes ------------------------------------------------------------------------ */

static struct msg *
mailbox_take(struct mailbox *box)
{
	/* Only the owner dequeues, so no dequeue lock is needed (wfcqueue.h). */
	struct cds_wfcq_node *n = __cds_wfcq_dequeue_blocking(&box->head, &box->tail);
	struct msg *m = n == NULL ? NULL : caa_container_of(n, struct msg, node);

	if (m != NULL)
		GRACE_ACQUIRE(m);
	return m;
}

/* Take a prompt message, or a bulk message if there is no prompt message. */
struct msg *
worker_take(struct worker *w)
{
	struct msg *m = mailbox_take(&w->prompt);

	return m != NULL ? m : mailbox_take(&w->bulk);
}

static void
worker_on_wake(struct ev_loop *loop, ev_async *async, int revents)
{
	struct worker *w = async->data;
	unsigned int n = 0;
	struct msg *m;

	for (; n < ROUND_MSGS && (m = worker_take(w)) != NULL; n++)
		w->ops->on_msg(w, m);
	if (n < ROUND_MSGS)
		return;
	m = mailbox_take(&w->bulk);
	if (m != NULL)
		w->ops->on_msg(w, m);
	/* More messages wait: handle them after other events. */
	ev_async_send(loop, async);
}

static void
worker_on_stop(struct ev_loop *loop, ev_async *async, int revents)
{
	struct worker *w = async->data;
	enum worker_stopping asked = STOP_ASKED;

	/* If main has cancelled the request, the thread goes on. */
	if (atomic_compare_exchange_strong(&w->stop_state, &asked, STOP_BEGUN))
		ev_break(loop, EVBREAK_ALL);
}

/* End a round. libev calls this before each wait. */
static void
worker_on_prepare(struct ev_loop *loop, ev_prepare *prepare, int revents)
{
	struct worker *w = prepare->data;

	atomic_fetch_add_explicit(&w->rounds, 1, memory_order_relaxed);
	if (w->ops->on_round != NULL)
		w->ops->on_round(w);
}

static void
loop_release(struct ev_loop *loop) EV_NOEXCEPT
{
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
}

static void
loop_acquire(struct ev_loop *loop) EV_NOEXCEPT
{
	urcu_qsbr_thread_online();
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "fdp-%s", w->ops->name);
	pthread_setname_np(pthread_self(), name);
	thread_role = w->ops->role;
	self = w;
	urcu_qsbr_register_thread();
	rc = w->init_rc = w->ops->init != NULL ? w->ops->init(w) : 0;
	atomic_store(&w->begun, true);
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	pthread_barrier_wait(&w->started);
	urcu_qsbr_thread_online();
	if (rc == 0) {
		ev_run(w->loop, 0);
		if (w->ops->fini != NULL)
			w->ops->fini(w);
	}
	GRACE_QUIESCENT();
	urcu_qsbr_unregister_thread();
	return NULL;
}

void
worker_init(struct worker *w, const struct worker_ops *ops, void *ctx)
{
	*w = (struct worker){.ops = ops, .ctx = ctx};
}

int
worker_prepare(struct worker *w)
{
	w->loop = ev_loop_new(EVFLAG_AUTO);
	if (w->loop == NULL)
		return -ENOMEM;
	cds_wfcq_init(&w->prompt.head, &w->prompt.tail);
	cds_wfcq_init(&w->bulk.head, &w->bulk.tail);
	ev_async_init(&w->wake, worker_on_wake);
	ev_async_init(&w->stop, worker_on_stop);
	ev_prepare_init(&w->round, worker_on_prepare);
	w->wake.data = w->stop.data = w->round.data = w;
	ev_async_start(w->loop, &w->wake);
	ev_async_start(w->loop, &w->stop);
	ev_prepare_start(w->loop, &w->round);
	ev_set_loop_release_cb(w->loop, loop_release, loop_acquire);
	return 0;
}

int
worker_launch(struct worker *w)
{
	int rc;

	atomic_store(&w->stop_state, STOP_NONE);
	/* Discard stop events: a thread that was stopped may have been sent several. */
	ev_async_stop(w->loop, &w->stop);
	ev_async_start(w->loop, &w->stop);
	pthread_barrier_init(&w->started, NULL, 2);
	rc = -pthread_create(&w->thread, NULL, worker_main, w);
	w->launched = rc == 0;
	return rc;
}

static int
worker_await(struct worker *w)
{
	pthread_barrier_wait(&w->started);
	w->launched = false;
	w->running = w->init_rc == 0;
	if (!w->running)
		pthread_join(w->thread, NULL);
	return w->init_rc;
}

/*
 * Cancel a request to stop. Returns true if the thread goes on. If it has already begun to
 * stop, waits for its end and returns false.
 */
static bool
worker_stop_cancel(struct worker *w)
{
	enum worker_stopping asked = STOP_ASKED;

	if (atomic_compare_exchange_strong(&w->stop_state, &asked, STOP_NONE) ||
	    asked == STOP_NONE)
		return true;
	worker_stop(w);
	return false;
}

int
worker_start(struct worker *w)
{
	int rc;

	if (w->running && worker_stop_cancel(w))
		return 0;
	rc = w->launched ? 0 : worker_launch(w);
	return rc < 0 ? rc : worker_await(w);
}

bool
worker_has_begun(const struct worker *w)
{
	return atomic_load(&w->begun);
}

static void
worker_go_round(struct worker *w)
{
	const struct timespec pause = {.tv_nsec = 20000};
	unsigned long seen = worker_rounds(w);

	worker_wake(w);
	while (worker_rounds(w) == seen)
		nanosleep(&pause, NULL);
}

void
worker_busy(struct worker *w, bool more)
{
	atomic_store_explicit(&w->busy, more, memory_order_relaxed);
}

static bool
worker_has_work(struct worker *w)
{
	return atomic_load_explicit(&w->busy, memory_order_relaxed) ||
	       !cds_wfcq_empty(&w->prompt.head, &w->prompt.tail) ||
	       !cds_wfcq_empty(&w->bulk.head, &w->bulk.tail);
}

void
worker_settle(struct worker *const *w, unsigned int n)
{
	for (unsigned int quiet = 0; quiet < QUIET_ROUNDS; quiet++) {
		for (unsigned int i = 0; i < n; i++)
			worker_go_round(w[i]);
		for (unsigned int i = 0; i < n; i++)
			if (worker_has_work(w[i]))
				quiet = 0;
	}
}

void
worker_wake(struct worker *w)
{
	ev_async_send(w->loop, &w->wake);
}

unsigned long
worker_rounds(const struct worker *w)
{
	return atomic_load_explicit(&w->rounds, memory_order_relaxed);
}

void
worker_suspend_watchdog(unsigned int most_ms)
{
	uint64_t end = most_ms == 0 ? 0 : monotonic_ms() + most_ms;

	if (self != NULL)
		atomic_store_explicit(&self->suspended_until_ms, end, memory_order_relaxed);
}

bool
worker_watchdog_is_suspended(const struct worker *w, uint64_t now_ms)
{
	return now_ms < atomic_load_explicit(&w->suspended_until_ms, memory_order_relaxed);
}

bool
worker_is_ending(const struct worker *w)
{
	return atomic_load_explicit(&w->stop_state, memory_order_relaxed) != STOP_NONE;
}

void
worker_stop_ask(struct worker *w)
{
	enum worker_stopping none = STOP_NONE;

	if (!w->running && !w->launched)
		return;
	atomic_compare_exchange_strong(&w->stop_state, &none, STOP_ASKED);
	ev_async_send(w->loop, &w->stop);
}

void
worker_stop(struct worker *w)
{
	if (w->launched)
		worker_await(w);
	if (!w->running)
		return;
	worker_stop_ask(w);
	pthread_join(w->thread, NULL);
	w->running = false;
}

bool
worker_stop_try(struct worker *w)
{
	if (w->launched)
		worker_await(w);
	if (!w->running)
		return true;
	worker_stop_ask(w);
	w->running = pthread_tryjoin_np(w->thread, NULL) != 0;
	return !w->running;
}

void
worker_free(struct worker *w)
{
	struct msg *m;

	if (w->loop == NULL)
		return;
	GRACE_ACQUIRE(w);
	while ((m = worker_take(w)) != NULL) {
		if (m->type == MSG_RECLAIM)
			w->ops->on_msg(w, m);
		else
			msg_free(m);
	}
	ev_loop_destroy(w->loop);
	w->loop = NULL;
}
