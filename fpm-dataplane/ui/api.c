/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP on the control socket. Runs in ui. api_request.c translates a request to the control
 * protocol and answer.c answers it. This file handles the transport only. A connection
 * whose answer is not ready is suspended: libmicrohttpd does not poll its socket until the
 * answer makes progress.
 */
#include "ui/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "ui/http.h"

#define CONNECTION_BYTES (16u << 10) /* of a request head, and of a piece of a body */
#define IDLE_S           60          /* timeout of a client that reads or sends nothing */
#define HALF_CLOSED_S    1           /* of a client that has shut down its sending side */
#define BLOCK_BYTES      (16u << 10)
#define BODY_DROP_BYTES  (64u << 10) /* a longer chunked body ends the connection */

struct api {
	struct ui *ui;
	struct http *http;
	struct cds_list_head calls, connections;
	unsigned int n_connection; /* size of the list */
	struct api_counts count;
};

struct connection {
	struct cds_list_head list; /* api->connections */
	struct MHD_Connection *conn;
	int fd;
	bool spoke;       /* it has sent valid HTTP */
	bool answering;   /* its request is complete, and the answer is not */
	bool half_closed; /* no further octets will come; it has HALF_CLOSED_S */
};

/* A request and its answer. */
struct call {
	struct cds_list_head list; /* api->calls */
	struct api *api;
	struct MHD_Connection *conn;
	struct connection *of;
	struct answer answer;
	bool begun;     /* answer_begin() was called */
	bool suspended; /* until the answer makes progress */
	bool sending;   /* the status has been sent */
	bool ended;     /* no octets follow those in answer.out */
	size_t n_body;
	char body[UI_REQUEST_MAX];
};

static const char *const type_of[] = {
	[ROWS_ARRAY] = "application/json",
	[ROWS_LINES] = "application/x-ndjson",
	[ROWS_OCTETS] = "application/x-pcapng",
};

/* Send {"error": ..., "rows": [...]}: the rows have the causes. Owns `rows`. */
static enum MHD_Result
call_answer_error(struct call *call, unsigned int status, const char *why, json_t *rows,
		  const char *allow)
{
	json_t *error = json_pack("{s:s, s:o*}", "error", why, "rows", rows);
	struct buf text = {0};

	call->api->count.refused++;
	buf_json(&text, error);
	buf_put(&text, "\n", 1);
	json_decref(error);
	return http_answer(call->conn, status, type_of[ROWS_ARRAY], allow, text.data,
			   text.len);
}

static void
call_suspend(struct call *call)
{
	call->suspended = true;
	MHD_suspend_connection(call->conn);
}

static void
call_resume(struct call *call)
{
	if (call->suspended)
		http_resume(call->api->http, call->conn);
	call->suspended = false;
}

static void
call_on_progress(struct answer *a)
{
	struct call *call = caa_container_of(a, struct call, answer);

	/*
	 * The slice of a trace is empty, or the slices so far do not have the named object:
	 * request the next slice while the client is connected. If the object is in no
	 * slice, the status is 404.
	 */
	if ((call->sending || a->out.key != NULL) && a->state == ANSWER_SLICE &&
	    a->out.buf.len == 0 && !answer_client_left(a)) {
		answer_more(a);
		return;
	}
	call_resume(call);
}

/* Give libmicrohttpd up to `max` octets. */
static ssize_t
call_on_read(void *ctx, uint64_t pos, char *to, size_t max)
{
	struct call *call = ctx;
	struct answer *a = &call->answer;
	struct buf *out = &a->out.buf;
	size_t n = out->len - out->off;

	if (n == 0) {
		buf_reset(out);
		if (call->ended)
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (a->state == ANSWER_DONE && a->refused != REFUSED_NONE)
			return MHD_CONTENT_READER_END_WITH_ERROR; /* status was sent */
		if (a->state == ANSWER_SLICE && answer_client_left(a))
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (a->state == ANSWER_SLICE)
			answer_more(a);
		if (a->state != ANSWER_DONE) {
			call_suspend(call);
			return 0;
		}
		rows_end(&a->out);
		call->ended = true;
		n = out->len;
		if (n == 0)
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	n = n < max ? n : max;
	memcpy(to, out->data + out->off, n);
	out->off += n;
	return (ssize_t)n;
}

/* Send the first rows; more will follow. */
static enum MHD_Result
call_answer_stream(struct call *call)
{
	struct MHD_Response *resp = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, call_on_read, call, NULL);
	enum MHD_Result rc = MHD_NO;

	if (resp == NULL)
		return MHD_NO;
	call->sending = true;
	if (MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE,
				    type_of[call->answer.out.form]) == MHD_YES)
		rc = MHD_queue_response(call->conn, MHD_HTTP_OK, resp);
	MHD_destroy_response(resp);
	return rc;
}

/* Send an answer that is complete. */
static enum MHD_Result
call_answer_whole(struct call *call)
{
	struct answer *a = &call->answer;
	struct buf *out = &a->out.buf;
	enum MHD_Result rc;
	json_t *rows = NULL;
	char why[128];

	if (a->refused == REFUSED_NONE && a->out.key != NULL && a->out.n == 0) {
		snprintf(why, sizeof(why), "%s has no entry %s",
			 show_info[a->req.show].name, a->req.name);
		return call_answer_error(call, MHD_HTTP_NOT_FOUND, why, NULL, NULL);
	}
	rows_end(&a->out);
	if (a->refused != REFUSED_NONE) {
		if (a->out.n > 0)
			rows = json_loadb(out->data, out->len, 0, NULL);
		return call_answer_error(call, refusal_info[a->refused].status, a->error,
					 rows, NULL);
	}
	rc = http_answer(call->conn, MHD_HTTP_OK, type_of[a->out.form], NULL, out->data,
			 out->len);
	*out = (struct buf){0}; /* libmicrohttpd owns the text now */
	return rc;
}

static enum MHD_Result
input_add_arg(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct api_input *in = ctx;

	if (in->n_arg == API_ARGS_MAX)
		return MHD_NO;
	in->arg[in->n_arg++] = (struct api_arg){.key = key, .value = value};
	return MHD_YES;
}

/* Start the answer. Returns false when the request is refused; `rc` is the result then. */
static bool
call_begin(struct call *call, const char *method, const char *path, enum MHD_Result *rc)
{
	struct api_input in = {
		.method = method, .path = path, .body = call->body, .n_body = call->n_body};
	struct api_output out;

	MHD_get_connection_values(call->conn, MHD_GET_ARGUMENT_KIND, input_add_arg, &in);
	api_request(&in, &out);
	call->begun = call->of->answering = true;
	/* From now on wait up to IDLE_S for the client. */
	MHD_set_connection_option(call->conn, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_S);
	if (out.request == NULL) {
		bool method_wrong = out.status == MHD_HTTP_METHOD_NOT_ALLOWED;

		*rc = call_answer_error(call, out.status, out.why, NULL,
					method_wrong ? out.allow : NULL);
		return false;
	}
	call->answer.out.form = out.form;
	answer_begin(&call->answer, out.request);
	json_decref(out.request);
	return true;
}

/* Create the call for a new request, after its head. NULL: no memory. */
static struct call *
call_new(struct api *api, struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->of = info->socket_context;
	call->of->spoke = true;
	api->count.requests++;
	call->api = api;
	call->conn = conn;
	answer_init(&call->answer, api->ui, call->of->fd, call_on_progress);
	cds_list_add(&call->list, &api->calls);
	return call;
}

static enum MHD_Result
call_answer_too_long(struct call *call)
{
	return call_answer_error(call, MHD_HTTP_CONTENT_TOO_LARGE,
				 "the body is longer than 4096 octets", NULL, NULL);
}

/* Refuse a request after its head if possible; otherwise wait for the body. */
static enum MHD_Result
call_check_head(struct call *call)
{
	const char *length = MHD_lookup_connection_value(call->conn, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *coding = MHD_lookup_connection_value(call->conn, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_TRANSFER_ENCODING);

	/* libmicrohttpd would read such a body until the connection ends. */
	if (coding != NULL && strcasecmp(coding, "chunked") != 0)
		return call_answer_error(call, MHD_HTTP_NOT_IMPLEMENTED,
					 "a body needs a Content-Length or chunked coding",
					 NULL, NULL);
	if (length != NULL && strtoull(length, NULL, 10) > UI_REQUEST_MAX)
		return call_answer_too_long(call);
	return MHD_YES;
}

/*
 * Store a piece of the body. A chunked body has no length in advance, and libmicrohttpd
 * sends no answer before its end. So a body that is too long is read and dropped, up to a
 * limit.
 */
static enum MHD_Result
call_take_body(struct call *call, const char *piece, size_t len)
{
	call->n_body += len;
	if (call->n_body > BODY_DROP_BYTES) {
		call->api->count.refused++;
		return MHD_NO;
	}
	if (call->n_body <= sizeof(call->body))
		memcpy(call->body + call->n_body - len, piece, len);
	return MHD_YES;
}

/*
 * Decode the percent-encoding of a path, a key or a value. A zero octet would end the
 * string and hide the rest. It is replaced by an octet that is invalid in UTF-8, so that
 * the whole request is refused.
 */
static size_t
url_unescape(void *ctx, struct MHD_Connection *conn, char *text)
{
	size_t len = MHD_http_unescape(text);

	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0')
			text[i] = (char)0xff;
	return len;
}

static enum MHD_Result
api_on_request(void *ctx, struct MHD_Connection *conn, const char *path, const char *method,
	       const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct call *call = *state;
	enum MHD_Result rc = MHD_YES;

	if (call == NULL) {
		*state = call = call_new(ctx, conn);
		if (call == NULL)
			return MHD_NO;
		return call_check_head(call);
	}
	if (*upload_size > 0) {
		rc = call_take_body(call, upload, *upload_size);
		*upload_size = 0;
		return rc;
	}
	if (call->n_body > sizeof(call->body))
		return call_answer_too_long(call);
	if (!call->begun && !call_begin(call, method, path, &rc))
		return rc;
	if (call->answer.state == ANSWER_DONE)
		return call_answer_whole(call);
	if (call->answer.state == ANSWER_SLICE)
		return call_answer_stream(call);
	call_suspend(call);
	return MHD_YES;
}

static void
api_on_completed(void *ctx, struct MHD_Connection *conn, void **state,
		 enum MHD_RequestTerminationCode code)
{
	struct call *call = *state;

	if (call == NULL)
		return;
	call->of->answering = call->of->half_closed = false;
	answer_drop(&call->answer);
	cds_list_del(&call->list);
	free(call);
	*state = NULL;
}

/*
 * Give connections that no further request can come from a short timeout, unless their
 * request is complete and is being answered. libmicrohttpd 0.9.75 reads the available octets
 * once, and then waits for an event, because its epoll is edge-triggered. If the end of the
 * stream came with these octets, libmicrohttpd does not see it, and waits for the rest of a
 * request.
 */
static void
connections_end_half_closed(void *ctx)
{
	struct api *api = ctx;
	struct connection *c;
	char octet;

	cds_list_for_each_entry (c, &api->connections, list) {
		if (c->answering || c->half_closed ||
		    recv(c->fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
			continue;
		c->half_closed = true;
		MHD_set_connection_option(c->conn, MHD_CONNECTION_OPTION_TIMEOUT,
					  HALF_CLOSED_S);
	}
}

/* Count connections, and list them. */
static void
api_on_connection(void *ctx, struct MHD_Connection *conn, void **context,
		  enum MHD_ConnectionNotificationCode code)
{
	struct api *api = ctx;
	struct connection *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = c = calloc(1, sizeof(*c));
		if (c == NULL)
			abort();
		c->conn = conn;
		c->fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		cds_list_add(&c->list, &api->connections);
		table_used(TABLE_http_clients, ++api->n_connection);
		return;
	}
	table_used(TABLE_http_clients, --api->n_connection);
	api->count.garbage += !c->spoke;
	cds_list_del(&c->list);
	free(c);
}

void
api_take(struct ui *ui, int fd)
{
	unsigned int limit = table_limit(ui->conf.limits, TABLE_http_clients);
	char body[96], full[256];
	int n;

	if (ui->api->n_connection < limit) {
		http_add(ui->api->http, fd);
		return;
	}
	ui->api->count.refused++;
	table_refuse(TABLE_http_clients);
	n = snprintf(body, sizeof(body),
		     "{\"error\":\"too many clients: limits.http-clients is %u\"}\n",
		     limit);
	n = snprintf(full, sizeof(full),
		     "HTTP/1.1 503 Service Unavailable\r\n"
		     "Content-Type: application/json\r\n"
		     "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		     n, body);
	(void)!send(fd, full, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

struct api_counts
api_counts(const struct ui *ui)
{
	return ui->api->count;
}

int
api_open(struct ui *ui)
{
	struct api *api = calloc(1, sizeof(*api));
	unsigned int most = table_limit(ui->conf.limits, TABLE_http_clients);
	const struct MHD_OptionItem options[] = {
		{MHD_OPTION_CONNECTION_LIMIT, most, NULL},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL},
		{MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)url_unescape, NULL},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)api_on_completed, api},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)api_on_connection, api},
		{MHD_OPTION_END, 0, NULL},
	};

	if (api == NULL)
		return -ENOMEM;
	api->ui = ui;
	CDS_INIT_LIST_HEAD(&api->calls);
	CDS_INIT_LIST_HEAD(&api->connections);
	table_begin(TABLE_http_clients, most);
	api->http = http_open(ui, -1, api_on_request, api, options);
	if (api->http == NULL) {
		free(api);
		return -EIO;
	}
	http_after_run(api->http, connections_end_half_closed, api);
	ui->api = api;
	return 0;
}

void
api_close(struct ui *ui)
{
	struct call *call;

	if (ui->api == NULL)
		return;
	/* libmicrohttpd cannot stop while a connection is suspended. */
	cds_list_for_each_entry (call, &ui->api->calls, list)
		call_resume(call);
	http_close(ui->api->http);
	free(ui->api);
	ui->api = NULL;
}
