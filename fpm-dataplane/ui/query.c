/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send queries to the threads that own the data, and track them. Runs in ui. It never
 * waits: a query without a reply delays only its client.
 */
#include "ui/internal.h"

#include <stdlib.h>

#include "base/limits.h"

void
clients_report(const struct ui *ui)
{
	table_used(TABLE_clients, ui->n_client + ui->n_flight);
}

static struct worker *
query_owner(const struct ui_conf *conf, enum query_kind kind)
{
	switch (kind) {
	case QUERY_NEIGHBORS:
	case QUERY_INTERFACES:
	case QUERY_TUNNELS:
	case QUERY_NEIGH_SUMMARY:
		return conf->neigh;
	case QUERY_WATCH:
		return conf->trace;
	case QUERY_MANAGE:
		return conf->manage;
	case QUERY_WARNINGS:
		return conf->warn;
	case QUERY_FILTER:
		return conf->filter;
	case QUERY_SFLOW:
		return conf->sflow;
	case QUERY_BFD:
		return conf->bfd;
	case QUERY_HOLD:
		return conf->fpm;
	default:
		return conf->rib;
	}
}

/* Send a query. ui owns its rows, and finds the answer for the reply through the flight. */
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
	clients_report(ui);
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
	/*
	 * trace keeps a session. It ends the session when it gets the query again with
	 * `cancel`.
	 */
	caa_container_of(q, struct msg_watch, q)->cancel = true;
	q->m.type = MSG_QUERY;
	worker_send(ui->conf.trace, &q->m);
}

/* Request a summary of a thread, unless a query of that kind is pending. */
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
