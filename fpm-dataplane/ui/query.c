/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries out, to the thread that knows, and what is under way of them. Runs in ui. It waits for
 * nobody: a query that rib has not answered costs its asker time and everybody else nothing.
 */
#include "ui/internal.h"

#include <stdlib.h>

#include "base/limits.h"

void
clients_told(const struct ui *ui)
{
	table_used(TABLE_clients, ui->n_client + ui->n_flight);
}

static struct worker *
query_owner(const struct ui_conf *conf, enum query_kind kind)
{
	switch (kind) {
	case QUERY_NEIGHBORS:
	case QUERY_INTERFACES:
	case QUERY_NEIGH_SUMMARY:
		return conf->neigh;
	case QUERY_WATCH:
		return conf->trace;
	case QUERY_MANAGE:
		return conf->manage;
	case QUERY_HOLD:
		return conf->fpm;
	default:
		return conf->rib;
	}
}

/* Send a query on its way; ui holds its rows and finds its answer by the flight. */
void
query_send(struct ui *ui, struct msg_query *q, struct answer *answer)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (f == NULL)
		abort();
	f->answer = answer;
	f->rows = q->rows = json_array();
	cds_list_add(&f->list, &ui->flights);
	ui->n_flight++;
	clients_told(ui);
	if (answer != NULL)
		answer->flight = f;
	q->m.type = MSG_QUERY;
	q->from = ui->w;
	q->client = f;
	q->done = false;
	worker_send(query_owner(&ui->conf, q->kind), &q->m);
}

void
query_drop(struct ui *ui, struct msg_query *q)
{
	if (q->kind != QUERY_WATCH || q->done) {
		msg_free(&q->m);
		return;
	}
	/* trace keeps a session: it goes when the question comes back for the last time. */
	caa_container_of(q, struct msg_watch, q)->cancel = true;
	q->m.type = MSG_QUERY;
	worker_send(ui->conf.trace, &q->m);
}

/* Have a thread sum up what it has, unless a question of that kind still travels. */
static void
summary_ask(struct ui *ui, enum query_kind kind, bool *asked)
{
	struct msg_query *q;

	if (*asked)
		return;
	q = msg_new(MSG_QUERY, sizeof(*q));
	q->kind = kind;
	q->max = 1;
	*asked = true;
	query_send(ui, q, NULL);
}

void
query_summary(struct ui *ui)
{
	summary_ask(ui, QUERY_SUMMARY, &ui->summary_asked);
}

void
query_neigh_summary(struct ui *ui)
{
	summary_ask(ui, QUERY_NEIGH_SUMMARY, &ui->neigh_asked);
}
