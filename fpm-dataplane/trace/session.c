/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: one a `fpmctl trace` or `capture`, from the first question of ui to the last
 * answer or until its client leaves. Bounded: rows and octets that ui does not fetch cost
 * later records, never memory without end.                                      [trace]
 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "trace/internal.h"

static struct session *
find(struct trace *t, uint64_t id)
{
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		if (t->session[i].id == id)
			return &t->session[i];
	return NULL;
}

/* How many run; says so. */
static unsigned int
count(const struct trace *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		n += t->session[i].id != 0;
	table_used(TABLE_captures, n);
	return n;
}

static void
start(struct trace *t, struct session *s, const struct watch_want *want)
{
	s->id = ++t->last_id;
	s->filter = want->filter;
	s->capture = want->ask == WATCH_ASK_CAPTURE;
	s->n_max = want->count;
	s->until_s = want->for_s > 0 ? monotonic_s() + want->for_s : 0;
	s->lost_before = trace_lost(t);
	if (s->capture)
		pcapng_header(&s->pcapng, &s->ports, &t->conf);
	watch_populate(t->conf.watch);
	trace_publish(t);
	s->epoch = t->epoch;
	ev_timer_start(t->w->loop, &t->tick);
	count(t);
}

static void
rows_free(struct session *s)
{
	struct subject *u, *next;

	cds_list_for_each_entry_safe (u, next, &s->row, list) {
		cds_list_del(&u->list);
		u->session = NULL; /* with answers to come, the last one frees it */
		if (u->n_waiting == 0)
			subject_free(u);
	}
}

/* The session is over: its place is free for another. */
static void
stop(struct trace *t, struct session *s)
{
	bool was_live = !s->ended;

	rows_free(s);
	free(s->pcapng.data);
	*s = (struct session){0};
	CDS_INIT_LIST_HEAD(&s->row);
	if (was_live)
		trace_publish(t);
	if (count(t) == 0)
		ev_timer_stop(t->w->loop, &t->tick);
}

static void
end(struct trace *t, struct session *s)
{
	if (s->ended)
		return;
	s->ended = true;
	trace_publish(t);
}

void
session_record(struct trace *t, struct session *s, const struct watch_record *rec)
{
	struct subject *u;

	/* A record for the session that had this place before may still come. */
	if (s->ended || (int32_t)(rec->epoch - s->epoch) < 0)
		return;
	if (s->capture ? s->pcapng.len >= PCAPNG_MAX : s->n_row >= ROWS_MAX) {
		s->n_lost++;
		return;
	}
	if (s->capture) {
		pcapng_packet(&s->pcapng, &s->ports, &t->conf, rec, s->filter.snap_bytes);
	} else {
		u = subject_make(t, rec, s, NULL);
		cds_list_add_tail(&u->list, &s->row);
		s->n_row++;
	}
	s->n_seen++;
	if (s->n_max != 0 && s->n_seen >= s->n_max)
		end(t, s);
}

/* Move what is complete, in order, to the answer. */
static void
rows_take(struct session *s, json_t *rows)
{
	struct subject *u, *next;

	cds_list_for_each_entry_safe (u, next, &s->row, list) {
		if (u->n_waiting > 0)
			return;
		json_array_append(rows, u->row);
		cds_list_del(&u->list);
		subject_free(u);
		s->n_row--;
	}
}

/* What the session has missed so far. */
static json_int_t
lost(const struct trace *t, const struct session *s)
{
	return (json_int_t)(trace_lost(t) - s->lost_before + s->n_lost);
}

/* Whole blocks from `at` on, up to CHUNK_BYTES: who stops in between has a whole file. */
static size_t
whole_blocks(const struct octets *o, size_t at)
{
	size_t n = 0;
	uint32_t len;

	while (at + n < o->len) {
		memcpy(&len, o->data + at + n + 4, sizeof(len));
		if (n > 0 && n + len > CHUNK_BYTES)
			break;
		n += len;
	}
	return n;
}

static void
pcapng_take(const struct trace *t, struct session *s, json_t *rows)
{
	for (size_t at = 0, n; at < s->pcapng.len; at += n) {
		char *text;

		n = whole_blocks(&s->pcapng, at);
		text = base64_encode(s->pcapng.data + at, n);
		json_array_append_new(rows, json_pack("{s:s, s:I, s:I}", "pcapng", text,
						      "packets", (json_int_t)s->n_seen,
						      "lost", lost(t, s)));
		free(text);
	}
	s->pcapng.len = 0;
}

/* Give ui what there is; the last answer says what was lost. */
static void
answer(struct trace *t, struct session *s, double now)
{
	json_t *rows = s->query->q.rows;
	struct msg_watch *mw = s->query;
	bool done;

	rows_take(s, rows);
	pcapng_take(t, s, rows);
	done = s->ended && s->n_row == 0;
	if (json_array_size(rows) == 0 && !done && now - s->asked_s < SILENCE_S)
		return;
	if (done)
		json_array_append_new(
			rows,
			json_pack(
				"{s:I, s:I}", "packets", (json_int_t)s->n_seen, "lost",
				(json_int_t)(trace_lost(t) - s->lost_before + s->n_lost)));
	s->query = NULL;
	if (done)
		stop(t, s);
	trace_reply(mw, done);
}

void
session_row_done(struct trace *t, struct session *s)
{
	if (s->query != NULL)
		answer(t, s, monotonic_s());
}

void
session_ask(struct trace *t, struct msg_watch *mw)
{
	struct session *s = mw->q.cursor[0] != 0 ? find(t, mw->q.cursor[0]) : NULL;

	if (mw->cancel) {
		if (s != NULL)
			stop(t, s);
		msg_free(&mw->q.m);
		return;
	}
	if (mw->q.cursor[0] == 0) {
		s = find(t, 0);
		if (s == NULL) {
			table_refuse(TABLE_captures);
			mw->error = "8 traces and captures are running already";
			trace_reply(mw, true);
			return;
		}
		start(t, s, &mw->want);
		mw->q.cursor[0] = s->id;
		if (!s->capture) /* whose first row is the header of the file */
			json_array_append_new(mw->q.rows,
					      json_pack("{s:b}", "watching", 1));
	}
	if (s == NULL) { /* over meanwhile */
		trace_reply(mw, true);
		return;
	}
	s->query = mw;
	s->asked_s = monotonic_s();
	if (s->pcapng.len > 0 || s->ended || json_array_size(mw->q.rows) > 0)
		answer(t, s, s->asked_s);
}

void
sessions_tick(struct trace *t)
{
	double now = monotonic_s();

	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		struct session *s = &t->session[i];

		if (s->id == 0)
			continue;
		if (s->until_s != 0 && now >= s->until_s)
			end(t, s);
		if (s->query != NULL)
			answer(t, s, now);
	}
}

void
sessions_free(struct trace *t)
{
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		rows_free(&t->session[i]);
		free(t->session[i].pcapng.data);
		if (t->session[i].query != NULL)
			msg_free(&t->session[i].query->q.m);
	}
}
