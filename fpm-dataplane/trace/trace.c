/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace thread: its messages, the rings, and what it asks of others. While nobody looks
 * it sleeps, and nothing is published.                                         [trace]
 */
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "trace/internal.h"

/* --- what is looked for ------------------------------------------------------------------ */

static void
bury(void *owner, void *set)
{
	free(set);
}

static void
swap_set(struct trace *t, struct watch_set *set)
{
	struct watch_set *old = atomic_exchange(&t->conf.watch->set, set);

	if (old != NULL)
		worker_defer(t->w, bury, old);
}

void
trace_publish(struct trace *t)
{
	struct watch_set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		abort();
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		const struct session *s = &t->session[i];

		if (s->id == 0 || s->ended)
			continue;
		set->filter[i] = s->filter;
		set->points |= s->filter.points;
		set->live |= (uint8_t)(1u << i);
	}
	set->epoch = ++t->epoch;
	if (set->live == 0) {
		free(set);
		set = NULL;
	}
	swap_set(t, set);
}

/* --- the rings --------------------------------------------------------------------------- */

uint64_t
trace_lost(const struct trace *t)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < t->conf.watch->n_ring; i++)
		sum += counter_read(t->conf.watch->ring[i].n_lost);
	return sum;
}

static void
drain(struct trace *t, struct watch_ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

	for (; tail != head; tail++) {
		const struct watch_record *rec = &ring->record[tail % WATCH_RING_SLOTS];

		for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
			if ((rec->sessions & 1u << i) != 0 && t->session[i].id != 0)
				session_record(t, &t->session[i], rec);
		/* Release: the producer may write over it once it sees the tail. */
		atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	}
}

static void
on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct trace *t = timer->data;

	for (unsigned int i = 0; i < t->conf.watch->n_ring; i++)
		drain(t, &t->conf.watch->ring[i]);
	sessions_tick(t);
}

/* --- what rib and neigh know about a packet ---------------------------------------------- */

static void
ask(struct trace *t, struct subject *u, enum query_kind kind, uint16_t vrf, uint8_t family,
    const struct ipaddr *addr)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	struct question *question = calloc(1, sizeof(*question));

	if (question == NULL)
		abort();
	question->subject = u;
	question->rows = q->rows = json_array();
	cds_list_add(&question->list, &t->questions);
	u->n_waiting++;
	q->kind = kind;
	q->from = t->w;
	q->client = question;
	q->has_prefix = true;
	q->longest = kind == QUERY_ROUTES;
	q->vrf = vrf;
	q->prefix = (struct prefix){
		.addr = *addr, .family = family, .len = (uint8_t)family_bits(family)};
	q->max = 4; /* an address may be a neighbour on several links */
	worker_send(kind == QUERY_NEIGHBORS ? t->conf.neigh : t->conf.rib, &q->m);
}

/* The destination of a frame that was looked up. */
static struct ipaddr
destination(const struct watch_record *rec)
{
	struct ipaddr dst = {0};

	memcpy(dst.octet, rec->frame + 14 + (rec->family == 4 ? 16 : 24),
	       family_octets(rec->family));
	return dst;
}

struct subject *
subject_make(struct trace *t, const struct watch_record *rec, struct session *s,
	     struct msg_watch *explain)
{
	struct subject *u = calloc(1, sizeof(*u));
	struct ipaddr dst;

	if (u == NULL)
		abort();
	u->session = s;
	u->explain = explain;
	u->row = row_make(t, rec);
	if (!rec->looked_up)
		return u;
	dst = destination(rec);
	/* rib answers now, for the VRF that the interface is in now. */
	ask(t, u, QUERY_ROUTES, fib_vrf_of(t->conf.fib, rec->in_ifidx), rec->family, &dst);
	if (explain != NULL && rec->via_family != 0)
		ask(t, u, QUERY_NEIGHBORS, 0, rec->via_family, &rec->via);
	else if (explain != NULL && path_kind(rec->path) == PATH_ONLINK)
		ask(t, u, QUERY_NEIGHBORS, 0, rec->family, &dst);
	return u;
}

void
subject_free(struct subject *u)
{
	json_decref(u->row);
	free(u);
}

void
trace_reply(struct msg_watch *mw, bool done)
{
	mw->q.done = done;
	mw->q.m.type = MSG_REPLY;
	worker_send(mw->q.from, &mw->q.m);
}

static void
explained(struct subject *u)
{
	struct msg_watch *mw = u->explain;

	json_array_append(mw->q.rows, u->row);
	cds_list_del(&u->list);
	subject_free(u);
	/* Last: the row is ui's alone then. jansson orders nothing between two who let go of it. */
	trace_reply(mw, true);
}

static void
on_reply(struct trace *t, struct msg_query *q)
{
	struct question *question = q->client;
	struct subject *u = question->subject;

	row_add(u->row, q->kind, q->rows);
	if (question->rows != q->rows)
		json_decref(question->rows);
	json_decref(q->rows);
	cds_list_del(&question->list);
	free(question);
	msg_free(&q->m);
	if (--u->n_waiting > 0)
		return;
	if (u->explain != NULL)
		explained(u);
	else if (u->session != NULL)
		session_row_done(t, u->session);
	else
		subject_free(u);
}

/* --- explain ----------------------------------------------------------------------------- */

static void
explain(struct trace *t, struct msg_watch *mw)
{
	const struct watch_want *want = &mw->want;
	struct watch_record rec;
	struct subject *u;

	t->conf.explain(t->conf.fib, want->ifidx, want->frame, want->n_frame,
			want->frame_bytes, &rec);
	u = subject_make(t, &rec, NULL, mw);
	cds_list_add(&u->list, &t->explained);
	if (u->n_waiting == 0)
		explained(u);
}

/* --- the worker -------------------------------------------------------------------------- */

static void
on_msg(struct worker *w, struct msg *m)
{
	struct trace *t = w->ctx;
	struct msg_watch *mw;

	switch (m->type) {
	case MSG_REPLY:
		on_reply(t, caa_container_of(m, struct msg_query, m));
		return;
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_QUERY:
		mw = caa_container_of(m, struct msg_watch, q.m);
		if (mw->want.ask == WATCH_ASK_EXPLAIN && !mw->cancel)
			explain(t, mw);
		else
			session_ask(t, mw);
		return;
	default:
		break;
	}
	msg_free(m);
}

static int
init(struct worker *w)
{
	struct trace *t = w->ctx;

	ev_timer_init(&t->tick, on_tick, TICK_S, TICK_S);
	t->tick.data = t;
	return 0;
}

static void
fini(struct worker *w)
{
	struct trace *t = w->ctx;

	ev_timer_stop(w->loop, &t->tick);
	swap_set(t, NULL);
}

static const struct worker_ops trace_ops = {
	.name = "trace",
	.role = ROLE_TRACE,
	.init = init,
	.on_msg = on_msg,
	.fini = fini,
};

int
trace_setup(struct worker *w, const struct trace_conf *conf)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->conf = *conf;
	t->w = w;
	static_assert((int)TABLE_MOST_captures == WATCH_SESSIONS, "a bit each in a record");
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
	struct question *question, *next;
	struct subject *u, *more;

	if (t == NULL)
		return;
	sessions_free(t);
	/* Questions that travelled when the threads stopped: the message is freed with the
	 * mailbox it lies in, the rows here. */
	cds_list_for_each_entry_safe (question, next, &t->questions, list) {
		if (question->subject->explain == NULL &&
		    question->subject->session == NULL &&
		    --question->subject->n_waiting == 0)
			subject_free(question->subject); /* of a session that is gone */
		json_decref(question->rows);
		free(question);
	}
	cds_list_for_each_entry_safe (u, more, &t->explained, list) {
		msg_free(&u->explain->q.m);
		subject_free(u);
	}
	free(t);
	w->ctx = NULL;
}
