/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to the control socket, from request line to `end`. Runs in ui. Writes
 * never wait: rows come a slice at a time, and the next slice is asked for only when the
 * client has taken the last, so that a client that reads slowly or not at all holds one
 * slice of memory and nothing else.
 */
#include "ui/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fpm_event.h"
#include "base/log.h"
#include "base/service.h"
#include "ui/client.h"

static void client_pump(struct client *c);

static void
client_free(struct client *c)
{
	struct ui *ui = c->ui;

	ev_io_stop(ui->w->loop, &c->io);
	ev_timer_stop(ui->w->loop, &c->patience);
	if (c->flight != NULL)
		c->flight->client = NULL; /* the reply will find nobody */
	if (c->query != NULL)
		query_drop(ui, c->query);
	cds_list_del(&c->list);
	ui->n_client--;
	close(c->fd);
	buf_free(&c->out);
	free(c);
}

void
clients_free(struct ui *ui)
{
	struct client *c, *next;

	cds_list_for_each_entry_safe (c, next, &ui->clients, list)
		client_free(c);
}

static void
put_error(struct client *c, int code, const char *text)
{
	json_t *row = json_pack("{s:s, s:i}", "error", text, "code", code);

	buf_json(&c->out, row);
	json_decref(row);
	c->state = CLIENT_IDLE;
}

static void
put_end(struct client *c)
{
	buf_printf(&c->out, "{\"end\":true,\"rows\":%llu}\n",
		   (unsigned long long)c->n_rows);
	c->state = CLIENT_IDLE;
}

static void
answer_here(struct client *c)
{
	c->n_rows = show_rows(c->ui, c->req.show, &c->out);
	put_end(c);
}

static void
ask_first(struct client *c, enum query_kind kind)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));

	q->kind = kind;
	q->has_prefix = c->req.has_prefix;
	q->longest = c->req.longest;
	q->all_tables = c->req.all_tables;
	q->repair = c->req.repair;
	q->breaking = c->req.breaking;
	q->family = c->req.family;
	q->prefix = c->req.prefix;
	q->max = UI_SLICE_ROWS;
	c->state = CLIENT_ASKING;
	ui_ask(c->ui, q, c);
}

/* Does the other end still read? A trace may have nothing to say for hours. */
static bool
is_gone(const struct client *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

static void
ask_trace(struct client *c)
{
	struct msg_watch *mw = msg_new(MSG_QUERY, sizeof(*mw));
	const struct ui_conf *conf = &c->ui->conf;
	uint16_t ifidx = 0;

	for (unsigned int i = 0; i < conf->n_port; i++)
		if (port_is_there(&conf->port[i]) &&
		    strcmp(conf->port[i].name, c->req.port) == 0)
			ifidx = conf->port[i].ifidx;
	if (c->req.port[0] != '\0' && ifidx == 0) {
		put_error(c, 2, "no such port; `fpmctl show ports` lists them");
		msg_free(&mw->q.m);
		return;
	}
	mw->want = c->req.want;
	mw->want.ifidx = mw->want.filter.ifidx = ifidx;
	mw->q.kind = QUERY_WATCH;
	c->state = CLIENT_ASKING;
	ui_ask(c->ui, &mw->q, c);
}

static void
replay(struct client *c)
{
	if (atomic_load_explicit(&fpm_status.connected, memory_order_relaxed) == 0) {
		put_error(c, 3, "zebra is not connected; it will replay when it comes");
		return;
	}
	worker_send(c->ui->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
	put_end(c);
}

/* main ends as for SIGTERM, with the exit code that asks for another start. */
static void
restart(struct client *c)
{
	if (!service_is_kept()) {
		put_error(c, 3,
			  "nobody would start it again: it runs neither under systemd nor "
			  "under fpm-supervise");
		return;
	}
	log_info("ui: restart asked for");
	put_end(c);
	kill(getpid(), SERVICE_SIGNAL_RESTART);
}

/* Is the other end root, or who we are? Not only of the socket's group. */
static bool
is_owner(const struct client *c)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void
ask_manage(struct client *c)
{
	struct msg_manage *mm;

	/* The drivers of some devices write to any file. */
	if ((c->req.change.device[0] != '\0' || c->req.change.file[0] != '\0') &&
	    !is_owner(c)) {
		put_error(c, 2, "only root may name a device or a file: opened as root");
		return;
	}
	mm = msg_new(MSG_QUERY, sizeof(*mm));
	mm->want = c->req.change;
	mm->q.kind = QUERY_MANAGE;
	c->state = CLIENT_ASKING;
	ui_ask(c->ui, &mm->q, c);
}

static void
serve(struct client *c, const char *line, size_t len)
{
	char why[256];

	c->n_rows = 0;
	if (request_parse(line, len, &c->req, why, sizeof(why)) < 0) {
		put_error(c, 2, why);
		return;
	}
	if (c->req.replay) {
		replay(c);
		return;
	}
	if (c->req.restart) {
		restart(c);
		return;
	}
	if (c->req.change.op != MANAGE_NOTHING) {
		ask_manage(c);
		return;
	}
	if (c->req.breaking != BREAK_NOTHING) {
		ask_first(c, QUERY_BREAK);
		return;
	}
	if (c->req.want.ask != WATCH_ASK_NONE) {
		ask_trace(c);
		return;
	}
	switch (c->req.show) {
	case SHOW_AUDIT:
		ask_first(c, QUERY_AUDIT);
		break;
	case SHOW_ROUTES:
		ask_first(c, QUERY_ROUTES);
		break;
	case SHOW_NEXTHOPS:
		ask_first(c, QUERY_NEXTHOPS);
		break;
	case SHOW_NEIGHBORS:
		ask_first(c, QUERY_NEIGHBORS);
		break;
	case SHOW_INTERFACES:
		ask_first(c, QUERY_INTERFACES);
		break;
	case SHOW_FIB:
	case SHOW_FPM:
	case SHOW_MEMORY:
		/* Fresh if rib is quick; behind a long queue the last one known will do. */
		c->state = CLIENT_WAITING;
		ev_timer_set(&c->patience, UI_SUMMARY_WAIT_S, 0);
		ev_timer_start(c->ui->w->loop, &c->patience);
		ui_summary_ask(c->ui);
		break;
	default:
		answer_here(c);
	}
}

/* Take the next line from what has been read. Returns false when there is none yet. */
static bool
serve_line(struct client *c)
{
	char *nl = memchr(c->in, '\n', c->in_len);
	size_t len = nl != NULL ? (size_t)(nl - c->in) : c->in_len, used;

	if (nl == NULL && c->in_len >= UI_REQUEST_MAX) {
		put_error(c, 2, "request longer than 4096 octets");
		c->closing = true; /* where the next one starts is not known */
		c->in_len = 0;
		return true;
	}
	if (nl == NULL && (!c->eof || c->in_len == 0))
		return false;
	used = nl != NULL ? len + 1 : len;
	if (strspn(c->in, " \t\r\n") < len)
		serve(c, c->in, len);
	memmove(c->in, c->in + used, c->in_len - used);
	c->in_len -= used;
	c->in[c->in_len] = '\0';
	return true;
}

/* Write what there is. Returns 0 (all out or socket full), or -errno: the client left. */
static int
flush(struct client *c)
{
	while (c->out.off < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out.off, c->out.len - c->out.off,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->out.off += (size_t)n;
	}
	buf_reset(&c->out);
	return 0;
}

static void
watch(struct client *c, int events)
{
	if (events == c->io.events && ev_is_active(&c->io))
		return;
	ev_io_stop(c->ui->w->loop, &c->io);
	ev_io_set(&c->io, c->fd, events);
	if (events != 0)
		ev_io_start(c->ui->w->loop, &c->io);
}

/* Go on as far as possible: write, ask for the next slice, take the next request. */
static void
client_pump(struct client *c)
{
	for (;;) {
		if (flush(c) < 0) {
			client_free(c);
			return;
		}
		if (c->out.len != 0) {
			watch(c, EV_WRITE);
			return;
		}
		if (c->state == CLIENT_SENDING) {
			struct msg_query *q = c->query;

			if (q->kind == QUERY_WATCH && is_gone(c)) {
				client_free(c);
				return;
			}
			c->query = NULL;
			c->state = CLIENT_ASKING;
			ui_ask(c->ui, q, c);
		}
		if (c->state != CLIENT_IDLE) {
			watch(c, 0);
			return;
		}
		if (c->closing || !serve_line(c)) {
			if (c->closing || c->eof)
				client_free(c);
			else
				watch(c, EV_READ);
			return;
		}
	}
}

/* Why an answer is none; NULL: it is one. The exit code of fpmctl that goes with it. */
static const char *
error_of(struct msg_query *q, int *code)
{
	const char *text = NULL;

	*code = 1;
	if (q->kind == QUERY_WATCH)
		return caa_container_of(q, struct msg_watch, q)->error;
	if (q->kind != QUERY_MANAGE)
		return NULL;
	text = caa_container_of(q, struct msg_manage, q)->error;
	*code = 2;
	return text[0] != '\0' ? text : NULL;
}

void
client_reply(struct client *c, struct msg_query *q, const json_t *rows)
{
	size_t i;
	const json_t *row;

	json_array_foreach (rows, i, row)
		buf_json(&c->out, row);
	c->n_rows += json_array_size(rows);
	if (q->kind == QUERY_MANAGE && c->req.change.op == MANAGE_POLICER) {
		json_t *now = show_class(c->req.change.class);

		buf_json(&c->out, now);
		json_decref(now);
		c->n_rows++;
	}
	if (q->done) {
		int code;
		const char *error = error_of(q, &code);

		if (error != NULL)
			put_error(c, code, error);
		else
			put_end(c);
		msg_free(&q->m);
	} else {
		c->query = q;
		c->state = CLIENT_SENDING;
	}
	client_pump(c);
}

void
clients_summary(struct ui *ui)
{
	struct client *c, *next;

	cds_list_for_each_entry_safe (c, next, &ui->clients, list) {
		if (c->state != CLIENT_WAITING)
			continue;
		ev_timer_stop(ui->w->loop, &c->patience);
		answer_here(c);
		client_pump(c);
	}
}

static void
on_patience(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct client *c = t->data;

	answer_here(c);
	client_pump(c);
}

static void
on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	struct client *c = io->data;
	ssize_t n;

	if (revents & EV_READ) {
		n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - 1 - c->in_len,
			 MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			client_free(c);
			return;
		}
		c->eof = n == 0;
		c->in_len += (size_t)n;
		c->in[c->in_len] = '\0';
	}
	client_pump(c);
}

void
client_new(struct ui *ui, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		close(fd);
		return;
	}
	c->ui = ui;
	c->fd = fd;
	c->id = ++ui->last_id;
	ev_io_init(&c->io, on_io, fd, EV_READ);
	ev_timer_init(&c->patience, on_patience, 0, 0);
	c->io.data = c->patience.data = c;
	cds_list_add(&c->list, &ui->clients);
	ui->n_client++;
	ev_io_start(ui->w->loop, &c->io);
	if (ui->n_client + ui->n_flight > UI_CLIENTS_MAX) {
		put_error(c, 1, "too many clients");
		c->closing = true;
		client_pump(c);
	}
}
