/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: the trace thread: its messages, the rings, and its queries to other threads.
 * Without a session the thread sleeps, and no filter is published.              [trace]
 */
#include "trace/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/limits.h"
#include "trace/internal.h"

/* --- the rings ------------------------------------------------------------------------ */

static void
trace_drain(struct trace *t, struct watch_ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

	for (; tail != head; tail++) {
		const struct watch_record *rec = &ring->record[tail % WATCH_RING_SLOTS];

		for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
			if ((rec->sessions & 1u << i) != 0 && t->session[i].id != 0)
				session_record(t, &t->session[i], rec);
		/* Release: the producer may overwrite the record after it sees the tail. */
		atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	}
}

static void
trace_on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct trace *t = timer->data;

	for (unsigned int i = 0; i < t->conf.watch->n_ring; i++)
		trace_drain(t, &t->conf.watch->ring[i]);
	sessions_tick(t);
}

/* --- explain, and the replies of rib and neigh ---------------------------------------- */

static void
trace_explained(struct subject *u)
{
	struct msg_watch *mw = u->explain;

	json_array_append(mw->q.rows, u->row);
	cds_list_del(&u->list);
	subject_free(u);
	/*
	 * Reply last, because then only ui refers to the row. jansson's reference count
	 * gives no memory order between two threads that drop a reference.
	 */
	trace_reply(mw, true);
}

static void
trace_on_reply(struct trace *t, struct msg_query *q)
{
	struct subject *u = subject_answered(q);

	if (u->n_waiting > 0)
		return;
	if (u->explain != NULL)
		trace_explained(u);
	else if (u->session != NULL)
		session_row_done(t, u->session);
	else
		subject_free(u);
}

static void
trace_explain(struct trace *t, struct msg_watch *mw)
{
	const struct watch_want *want = &mw->want;
	struct watch_record rec;
	struct subject *u;

	t->conf.explain(t->conf.fib, want->ifidx, want->frame, want->n_frame,
			want->frame_bytes, &rec);
	u = subject_make(t, &rec, NULL, mw);
	cds_list_add(&u->list, &t->explained);
	if (u->n_waiting == 0)
		trace_explained(u);
}

/* --- the worker ----------------------------------------------------------------------- */

static void
trace_on_msg(struct worker *w, struct msg *m)
{
	struct trace *t = w->ctx;
	struct msg_watch *mw;

	switch (m->type) {
	case MSG_REPLY:
		trace_on_reply(t, caa_container_of(m, struct msg_query, m));
		return;
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_QUERY:
		mw = caa_container_of(m, struct msg_watch, q.m);
		if (mw->want.ask == WATCH_ASK_EXPLAIN && !mw->cancel)
			trace_explain(t, mw);
		else
			session_ask(t, mw);
		return;
	default:
		break;
	}
	msg_free(m);
}

static int
trace_init(struct worker *w)
{
	struct trace *t = w->ctx;

	ev_timer_init(&t->tick, trace_on_tick, TICK_S, TICK_S);
	t->tick.data = t;
	return 0;
}

static void
trace_fini(struct worker *w)
{
	struct trace *t = w->ctx;

	ev_timer_stop(w->loop, &t->tick);
	sessions_end(t);
}

static const struct worker_ops trace_ops = {
	.name = "trace",
	.role = ROLE_TRACE,
	.init = trace_init,
	.on_msg = trace_on_msg,
	.fini = trace_fini,
};

int
trace_setup(struct worker *w, const struct trace_conf *conf)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->conf = *conf;
	t->w = w;
	static_assert((int)TABLE_MOST_captures == WATCH_SESSIONS,
		      "a record has a bit per session");
	table_begin(TABLE_captures, WATCH_SESSIONS);
	CDS_INIT_LIST_HEAD(&t->explained);
	CDS_INIT_LIST_HEAD(&t->questions);
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		CDS_INIT_LIST_HEAD(&t->session[i].row);
	worker_init(w, &trace_ops, t);
	return 0;
}

void
trace_teardown(struct worker *w)
{
	struct trace *t = w->ctx;

	if (t == NULL)
		return;
	sessions_free(t);
	subjects_free(t);
	free(t);
	w->ctx = NULL;
}
