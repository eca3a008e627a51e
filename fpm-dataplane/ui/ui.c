/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ui thread: open and close sockets, handle replies, and request a summary of rib once
 * a second (query.c sends the queries). Runs in ui.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/limits.h"
#include "port/port.h"

/* Log a lack of packet buffers. Counters have the lost packets (rx_missed, no_mbuf). */
static void
buffers_check(struct ui *ui)
{
	unsigned int n, n_free;

	port_buffers(&ui->conf.port[0], &n, &n_free);
	if (port_buffers_short(&ui->conf.port[0])) {
		log_warn("ui: packet buffers exhausted free=%u buffers=%u", n_free, n);
		ui->buffers_short = true;
	} else if (ui->buffers_short && n_free >= n / 8) {
		log_info("ui: packet buffers available again free=%u buffers=%u", n_free,
			 n);
		ui->buffers_short = false;
	}
}

/* Open the metrics address, if another program had it at the start. */
static void
metrics_open_again(struct ui *ui)
{
	if (!ui->conf.metrics_on || ui->metrics != NULL || metrics_open(ui) < 0)
		return;
	log_info("ui: metrics address opened");
}

static void
ui_on_summary_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct ui *ui = t->data;

	ctl_socket_renew(ui);
	metrics_open_again(ui);
	buffers_check(ui);
	table_tell();
	query_summary(ui);
	if (ui->conf.metrics_on)
		query_neigh_summary(ui);
}

static void
ui_on_summary(struct ui *ui, const json_t *rows)
{
	json_t *row = json_array_get(rows, 0);

	ui->summary_asked = false;
	if (json_is_object(row)) {
		json_decref(ui->summary);
		ui->summary = json_incref(row);
		ui->summary_s = monotonic_s();
	}
	answers_summary(ui);
}

static void
ui_on_neigh_summary(struct ui *ui, const json_t *rows)
{
	ui->neigh_asked = false;
	json_decref(ui->neigh_summary);
	ui->neigh_summary = json_incref(json_array_get(rows, 0));
}

static void
ui_on_reply(struct ui *ui, struct msg_query *q)
{
	struct flight *f = q->client;
	json_t *rows = q->rows;

	cds_list_del(&f->list);
	ui->n_flight--;
	clients_report(ui);
	if (f->rows != rows) /* the owner has replaced the array */
		json_decref(f->rows);
	q->rows = NULL;
	q->client = NULL;
	if (q->kind == QUERY_SUMMARY) {
		ui_on_summary(ui, rows);
		msg_free(&q->m);
	} else if (q->kind == QUERY_NEIGH_SUMMARY) {
		ui_on_neigh_summary(ui, rows);
		msg_free(&q->m);
	} else if (f->answer != NULL) {
		answer_reply(f->answer, q, rows);
	} else {
		query_drop(ui, q); /* the client has left */
	}
	json_decref(rows);
	free(f);
}

static void
ui_on_msg(struct worker *w, struct msg *m)
{
	if (m->type == MSG_REPLY)
		ui_on_reply(w->ctx, caa_container_of(m, struct msg_query, m));
	else
		msg_free(m);
}

static int
ui_init(struct worker *w)
{
	struct ui *ui = w->ctx;
	int rc = api_open(ui);

	if (rc < 0)
		return rc;
	rc = ctl_socket_open(ui);
	if (rc < 0) {
		log_error("ui: control socket not opened path=%s error=\"%s\"",
			  ui->conf.control_socket,
			  rc == -EADDRINUSE ? "another daemon answers on it"
					    : strerror(-rc));
		api_close(ui);
		return rc;
	}
	if (ui->conf.metrics_on) {
		rc = metrics_open(ui);
		if (rc < 0 && ui->conf.metrics_retry) {
			log_error("ui: metrics address not opened error=\"%s\" retry=yes",
				  strerror(-rc));
		} else if (rc < 0) {
			log_error("ui: metrics address not opened error=\"%s\" retry=no",
				  strerror(-rc));
			ctl_socket_close(ui);
			api_close(ui);
			return rc;
		}
	}
	ev_timer_init(&ui->summary_timer, ui_on_summary_timer, 0, UI_SUMMARY_EVERY_S);
	ui->summary_timer.data = ui;
	ev_timer_start(w->loop, &ui->summary_timer);
	return 0;
}

static void
ui_fini(struct worker *w)
{
	struct ui *ui = w->ctx;

	ev_timer_stop(w->loop, &ui->summary_timer);
	metrics_close(ui);
	ctl_socket_close(ui);
	api_close(ui);
}

static const struct worker_ops ui_ops = {
	.name = "ui",
	.role = ROLE_UI,
	.init = ui_init,
	.on_msg = ui_on_msg,
	.fini = ui_fini,
};

int
ui_setup(struct worker *w, const struct ui_conf *conf)
{
	struct ui *ui = calloc(1, sizeof(*ui));

	if (ui == NULL)
		return -ENOMEM;
	ui->conf = *conf;
	ui->w = w;
	ui->listen_fd = -1;
	ui->started_s = monotonic_s();
	table_begin(TABLE_clients, table_limit(conf->limits, TABLE_clients));
	CDS_INIT_LIST_HEAD(&ui->clients);
	CDS_INIT_LIST_HEAD(&ui->waiting);
	CDS_INIT_LIST_HEAD(&ui->answers);
	CDS_INIT_LIST_HEAD(&ui->flights);
	CDS_INIT_LIST_HEAD(&ui->scrapes);
	worker_init(w, &ui_ops, ui);
	return 0;
}

void
ui_teardown(struct worker *w, bool for_good)
{
	struct ui *ui = w->ctx;
	struct flight *f, *next;

	if (ui == NULL)
		return;
	if (for_good)
		ctl_socket_remove(ui);
	/*
	 * Free the rows of queries that had no reply when the threads stopped. Their
	 * messages are freed with the mailboxes.
	 */
	cds_list_for_each_entry_safe (f, next, &ui->flights, list) {
		json_decref(f->rows);
		free(f);
	}
	json_decref(ui->summary);
	json_decref(ui->neigh_summary);
	free(ui);
	w->ctx = NULL;
}
