/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session: sessions of `fpmctl trace` and `capture`, from the first request of ui to the
 * last reply or to the end of the client. Memory is bounded: if ui does not fetch rows and
 * octets, later records are lost.                                               [trace]
 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "trace/internal.h"

/* --- the filters of all sessions ------------------------------------------------------ */

static void
filters_free(void *owner, void *set)
{
	free(set);
}

static void
filters_swap(struct trace *t, struct watch_set *set)
{
	struct watch_set *old = atomic_exchange(&t->conf.watch->set, set);

	if (old != NULL)
		worker_defer(t->w, filters_free, old);
}

static void
filters_publish(struct trace *t)
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
	filters_swap(t, set);
}

/* --- records without room ------------------------------------------------------------- */

/* Return the number of records lost in all rings. */
static uint64_t
rings_lost(const struct trace *t)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < t->conf.watch->n_ring; i++)
		sum += counter_read(t->conf.watch->ring[i].n_lost);
	return sum;
}

/* --- begin and end -------------------------------------------------------------------- */

static struct session *
session_find(struct trace *t, uint64_t id)
{
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		if (t->session[i].id == id)
			return &t->session[i];
	return NULL;
}

/* Return the number of sessions, and report it as the use of TABLE_captures. */
static unsigned int
sessions_count(const struct trace *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		n += t->session[i].id != 0;
	table_used(TABLE_captures, n);
	return n;
}

static void
session_start(struct trace *t, struct session *s, const struct watch_want *want)
{
	s->id = ++t->last_id;
	s->filter = want->filter;
	s->capture = want->ask == WATCH_ASK_CAPTURE;
	s->n_max = want->count;
	s->until_s = want->for_s > 0 ? monotonic_s() + want->for_s : 0;
	s->lost_before = rings_lost(t);
	if (s->capture)
		pcapng_header(&s->pcapng, &s->ports, &t->conf);
	watch_populate(t->conf.watch);
	filters_publish(t);
	s->epoch = t->epoch;
	ev_timer_start(t->w->loop, &t->tick);
	sessions_count(t);
}

static void
session_free_rows(struct session *s)
{
	struct subject *u, *next;

	cds_list_for_each_entry_safe (u, next, &s->row, list) {
		cds_list_del(&u->list);
		u->session = NULL; /* if replies are to come, the last reply frees it */
		if (u->n_waiting == 0)
			subject_free(u);
	}
}

/* Stop a session and free its place. */
static void
session_stop(struct trace *t, struct session *s)
{
	bool was_live = !s->ended;

	session_free_rows(s);
	free(s->pcapng.data);
	*s = (struct session){0};
	CDS_INIT_LIST_HEAD(&s->row);
	if (was_live)
		filters_publish(t);
	if (sessions_count(t) == 0)
		ev_timer_stop(t->w->loop, &t->tick);
}

static void
session_end(struct trace *t, struct session *s)
{
	if (s->ended)
		return;
	s->ended = true;
	filters_publish(t);
}

/* --- records and replies -------------------------------------------------------------- */

void
session_record(struct trace *t, struct session *s, const struct watch_record *rec)
{
	struct subject *u;

	/* A record for the previous session of this place may still come. */
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
		session_end(t, s);
}

/* Move the complete rows, in order, to the reply. */
static void
session_take_rows(struct session *s, json_t *rows)
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

/* Return the number of records that the session has lost so far. */
static json_int_t
session_lost(const struct trace *t, const struct session *s)
{
	return (json_int_t)(rings_lost(t) - s->lost_before + s->n_lost);
}

/*
 * Return the length of the whole blocks from `at` on, up to CHUNK_BYTES. A client that
 * stops between two chunks has a valid file.
 */
static size_t
octets_whole_blocks(const struct octets *o, size_t at)
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
session_take_pcapng(const struct trace *t, struct session *s, json_t *rows)
{
	for (size_t at = 0, n; at < s->pcapng.len; at += n) {
		char *text;

		n = octets_whole_blocks(&s->pcapng, at);
		text = base64_encode(s->pcapng.data + at, n);
		json_array_append_new(rows, json_pack("{s:s, s:I, s:I}", "pcapng", text,
						      "packets", (json_int_t)s->n_seen,
						      "lost", session_lost(t, s)));
		free(text);
	}
	s->pcapng.len = 0;
}

/*
 * Send ui the complete rows and the stored octets. The last reply has the count of lost
 * records.
 */
static void
session_answer(struct trace *t, struct session *s, double now)
{
	json_t *rows = s->query->q.rows;
	struct msg_watch *mw = s->query;
	bool done;

	session_take_rows(s, rows);
	session_take_pcapng(t, s, rows);
	done = s->ended && s->n_row == 0;
	if (json_array_size(rows) == 0 && !done && now - s->asked_s < SILENCE_S)
		return;
	if (done)
		json_array_append_new(rows, json_pack("{s:I, s:I}", "packets",
						      (json_int_t)s->n_seen, "lost",
						      session_lost(t, s)));
	s->query = NULL;
	if (done)
		session_stop(t, s);
	trace_reply(mw, done);
}

void
session_row_done(struct trace *t, struct session *s)
{
	if (s->query != NULL)
		session_answer(t, s, monotonic_s());
}

void
session_ask(struct trace *t, struct msg_watch *mw)
{
	struct session *s = mw->q.cursor[0] != 0 ? session_find(t, mw->q.cursor[0]) : NULL;

	if (mw->cancel) {
		if (s != NULL)
			session_stop(t, s);
		msg_free(&mw->q.m);
		return;
	}
	if (mw->q.cursor[0] == 0) {
		s = session_find(t, 0);
		if (s == NULL) {
			table_refuse(TABLE_captures);
			mw->error = "8 traces and captures are running already";
			trace_reply(mw, true);
			return;
		}
		session_start(t, s, &mw->want);
		mw->q.cursor[0] = s->id;
		if (!s->capture) /* a capture begins with the header of the file */
			json_array_append_new(mw->q.rows,
					      json_pack("{s:b}", "watching", 1));
	}
	if (s == NULL) { /* the session has ended meanwhile */
		trace_reply(mw, true);
		return;
	}
	s->query = mw;
	s->asked_s = monotonic_s();
	if (s->pcapng.len > 0 || s->ended || json_array_size(mw->q.rows) > 0)
		session_answer(t, s, s->asked_s);
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
			session_end(t, s);
		if (s->query != NULL)
			session_answer(t, s, now);
	}
}

void
sessions_end(struct trace *t)
{
	filters_swap(t, NULL);
}

void
sessions_free(struct trace *t)
{
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		session_free_rows(&t->session[i]);
		free(t->session[i].pcapng.data);
		if (t->session[i].query != NULL)
			msg_free(&t->session[i].query->q.m);
	}
}
