/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to the control socket with the line protocol, from request to `end`. Runs in
 * ui. Writes never wait: an answer continues only when the client has taken the last octets
 * (answer.c). A connection that begins like HTTP goes to the API before an octet is read,
 * and counts only as an HTTP client. So a connection beyond the limit is not refused before
 * it has sent its first octets.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"

#include "ui/client.h"

enum client_state {
	CLIENT_NEW,      /* no octet was read */
	CLIENT_IDLE,     /* between requests */
	CLIENT_ANSWERED, /* its answer continues, or its end is not written yet */
};

struct client {
	struct cds_list_head list; /* ui->clients, or ui->waiting */
	struct ui *ui;
	int fd;
	ev_io io;
	enum client_state state;
	bool over_limit; /* no room: moves to the API, finds room later, or is refused */
	struct answer answer;
	bool eof;     /* no further request will arrive */
	bool closing; /* close when all output is written */
	size_t in_len;
	char in[UI_REQUEST_MAX + 1];
};

/* Add the client to the list of served clients. */
static void
client_enter(struct client *c)
{
	cds_list_add(&c->list, &c->ui->clients);
	c->ui->n_client++;
	clients_report(c->ui);
}

static void
client_leave(struct client *c)
{
	cds_list_del(&c->list);
	if (c->over_limit)
		c->ui->n_waiting--;
	else
		c->ui->n_client--;
	c->over_limit = false;
	clients_report(c->ui);
}

/* Free the client, but keep its socket open. */
static void
client_forget(struct client *c)
{
	ev_io_stop(c->ui->w->loop, &c->io);
	answer_drop(&c->answer);
	client_leave(c);
	free(c);
}

static void
client_free(struct client *c)
{
	int fd = c->fd;

	client_forget(c);
	close(fd);
}

void
clients_free(struct ui *ui)
{
	struct client *c, *next;

	cds_list_for_each_entry_safe (c, next, &ui->clients, list)
		client_free(c);
	cds_list_for_each_entry_safe (c, next, &ui->waiting, list)
		client_free(c);
}

static void
client_put_error(struct client *c, enum refusal why, const char *text)
{
	json_t *row =
		json_pack("{s:s, s:i}", "error", text, "code", refusal_info[why].code);

	buf_json(&c->answer.out.buf, row);
	buf_put(&c->answer.out.buf, "\n", 1);
	json_decref(row);
}

static void
client_put_end(struct client *c)
{
	struct answer *a = &c->answer;

	if (a->refused != REFUSED_NONE)
		client_put_error(c, a->refused, a->error);
	else
		buf_printf(&a->out.buf, "{\"end\":true,\"rows\":%llu}\n",
			   (unsigned long long)a->out.n);
	c->state = CLIENT_IDLE;
}

/* Serve the next line that was read. Returns false when there is no complete line. */
static bool
client_serve_line(struct client *c)
{
	char *nl = memchr(c->in, '\n', c->in_len);
	size_t len = nl != NULL ? (size_t)(nl - c->in) : c->in_len, used;

	if (nl == NULL && c->in_len >= UI_REQUEST_MAX) {
		client_put_error(c, REFUSED_INVALID, "request longer than 4096 octets");
		c->closing = true; /* the start of the next request is unknown */
		c->in_len = 0;
		return true;
	}
	if (nl == NULL && (!c->eof || c->in_len == 0))
		return false;
	used = nl != NULL ? len + 1 : len;
	if (strspn(c->in, " \t\r\n") < len) {
		json_t *request = request_load(c->in, len);

		answer_begin(&c->answer, request);
		json_decref(request);
		c->state = CLIENT_ANSWERED;
	}
	memmove(c->in, c->in + used, c->in_len - used);
	c->in_len -= used;
	c->in[c->in_len] = '\0';
	return true;
}

/* Write the output. Returns 0 (all written or socket full), or -errno: the client left. */
static int
client_flush(struct client *c)
{
	struct buf *out = &c->answer.out.buf;

	while (out->off < out->len) {
		ssize_t n = send(c->fd, out->data + out->off, out->len - out->off,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		out->off += (size_t)n;
	}
	buf_reset(out);
	return 0;
}

static void
client_set_events(struct client *c, int events)
{
	if (events == c->io.events && ev_is_active(&c->io))
		return;
	ev_io_stop(c->ui->w->loop, &c->io);
	ev_io_set(&c->io, c->fd, events);
	if (events != 0)
		ev_io_start(c->ui->w->loop, &c->io);
}

/* Continue as far as possible: write, request the next slice, take the next request. */
static void
client_pump(struct client *c)
{
	struct answer *a = &c->answer;

	for (;;) {
		if (c->state == CLIENT_ANSWERED && a->state == ANSWER_DONE)
			client_put_end(c);
		if (client_flush(c) < 0) {
			client_free(c);
			return;
		}
		if (a->out.buf.len != 0) {
			client_set_events(c, EV_WRITE);
			return;
		}
		if (a->state == ANSWER_SLICE) {
			/* Check this here, because a trace may have no rows for hours. */
			if (answer_client_left(a)) {
				client_free(c);
				return;
			}
			answer_more(a);
		}
		if (c->state == CLIENT_ANSWERED) {
			client_set_events(c, 0);
			return;
		}
		if (c->closing || !client_serve_line(c)) {
			if (c->closing || c->eof)
				client_free(c);
			else
				client_set_events(c, EV_READ);
			return;
		}
	}
}

static void
client_on_progress(struct answer *a)
{
	client_pump(caa_container_of(a, struct client, answer));
}

/*
 * Return true if the first octets are an HTTP method. Lines of the control protocol are
 * JSON.
 */
static bool
fd_speaks_http(int fd)
{
	static const char *const method[] = {"GET ",     "HEAD ",  "POST ",
					     "PUT ",     "PATCH ", "DELETE ",
					     "OPTIONS ", "TRACE ", "CONNECT "};
	char first[8];
	ssize_t n = recv(fd, first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);

	for (unsigned int i = 0; n > 0 && i < sizeof(method) / sizeof(method[0]); i++) {
		size_t len = strlen(method[i]);

		if (memcmp(first, method[i], (size_t)n < len ? (size_t)n : len) == 0)
			return true;
	}
	return false;
}

static bool
clients_have_room(const struct ui *ui)
{
	return ui->n_client + ui->n_flight < table_limit(ui->conf.limits, TABLE_clients);
}

static void
client_refuse(struct client *c)
{
	char why[64];

	table_refuse(TABLE_clients);
	snprintf(why, sizeof(why), "too many clients: limits.clients is %u",
		 table_limit(c->ui->conf.limits, TABLE_clients));
	client_put_error(c, REFUSED_BUSY, why);
	c->closing = true;
	client_pump(c);
}

static void
client_on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	struct client *c = io->data;
	ssize_t n;

	if (c->state == CLIENT_NEW && (revents & EV_READ) != 0) {
		if (fd_speaks_http(c->fd)) {
			struct ui *ui = c->ui;
			int fd = c->fd;

			client_forget(c);
			api_take(ui, fd);
			return;
		}
		if (c->over_limit && !clients_have_room(c->ui)) {
			client_refuse(c);
			return;
		}
		if (c->over_limit) {
			client_leave(c);
			client_enter(c);
		}
		c->state = CLIENT_IDLE;
	}
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
	answer_init(&c->answer, ui, fd, client_on_progress);
	ev_io_init(&c->io, client_on_io, fd, EV_READ);
	c->io.data = c;
	ev_io_start(ui->w->loop, &c->io);
	if (clients_have_room(ui)) {
		client_enter(c);
		return;
	}
	c->over_limit = true;
	cds_list_add(&c->list, &ui->waiting);
	/* Refuse the client that has waited longest without sending. */
	if (++ui->n_waiting > WAITING_MAX)
		client_refuse(cds_list_entry(ui->waiting.prev, struct client, list));
}
