/* SPDX-License-Identifier: BSD-3-Clause */
/* subject: ask rib and neigh about a packet, and add their replies to its row. [trace] */
#include <stdlib.h>
#include <string.h>

#include "trace/internal.h"

static void
subject_ask(struct trace *t, struct subject *u, enum query_kind kind, uint16_t vrf,
	    uint8_t family, const struct ipaddr *addr)
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
	q->max = 4; /* an address may be a neighbor on several links */
	worker_send(kind == QUERY_NEIGHBORS ? t->conf.neigh : t->conf.rib, &q->m);
}

/* Return the destination of the IP packet at `ip`, which was looked up. */
static struct ipaddr
record_destination(const struct watch_record *rec, const uint8_t *ip)
{
	struct ipaddr dst = {0};

	memcpy(dst.octet, ip + (rec->family == 4 ? 16 : 24), family_octets(rec->family));
	return dst;
}

struct subject *
subject_make(struct trace *t, const struct watch_record *rec, struct session *s,
	     struct msg_watch *explain)
{
	struct subject *u = calloc(1, sizeof(*u));
	const uint8_t *ip = rec->frame + 14;
	struct ipaddr dst;
	uint16_t vrf;

	if (u == NULL)
		abort();
	u->session = s;
	u->explain = explain;
	u->row = row_make(t, rec);
	if (!rec->looked_up) {
		if (!row_labels_end(t, rec, &vrf, &ip))
			return u;
		dst = record_destination(rec, ip);
		subject_ask(t, u, QUERY_ROUTES, vrf, rec->family, &dst);
		return u;
	}
	dst = record_destination(rec, ip);
	/*
	 * The VRF of the interface is read now, and rib replies later, so both may have
	 * changed since the packet was looked up. A packet that a rule refuses has no
	 * route.
	 */
	if (rec->rule == 0)
		subject_ask(t, u, QUERY_ROUTES,
			    rec->to_main ? 0 : fib_vrf_of(t->conf.fib, rec->in_ifidx),
			    rec->family, &dst);
	else if (rec->group != 0)
		subject_ask(t, u, QUERY_ROUTES, rec->vrf, rec->family, &dst);
	if (explain != NULL && rec->via_family != 0)
		subject_ask(t, u, QUERY_NEIGHBORS, 0, rec->via_family, &rec->via);
	else if (explain != NULL && path_kind(rec->path) == PATH_ONLINK)
		subject_ask(t, u, QUERY_NEIGHBORS, 0, rec->family, &dst);
	return u;
}

struct subject *
subject_answered(struct msg_query *q)
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
	u->n_waiting--;
	return u;
}

void
subject_free(struct subject *u)
{
	json_decref(u->row);
	free(u);
}

void
subjects_free(struct trace *t)
{
	struct question *question, *next;
	struct subject *u, *more;

	/*
	 * Free the queries that were under way when the threads stopped. The message of a
	 * query is freed with its mailbox, its rows are freed here.
	 */
	cds_list_for_each_entry_safe (question, next, &t->questions, list) {
		if (question->subject->explain == NULL &&
		    question->subject->session == NULL &&
		    --question->subject->n_waiting == 0)
			subject_free(question->subject); /* its session has ended */
		json_decref(question->rows);
		free(question);
	}
	cds_list_for_each_entry_safe (u, more, &t->explained, list) {
		msg_free(&u->explain->q.m);
		subject_free(u);
	}
}

void
trace_reply(struct msg_watch *mw, bool done)
{
	mw->q.done = done;
	mw->q.m.type = MSG_REPLY;
	worker_send(mw->q.from, &mw->q.m);
}
