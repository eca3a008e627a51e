/* SPDX-License-Identifier: BSD-3-Clause */
/* The listener of the metrics page. Runs in ui. It serves few and short connections. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/sockaddr.h"
#include "tap-bridge/netns.h"
#include "ui/http.h"
#include "ui/internal.h"

#define IDLE_S 10

#define TOTAL "_total"

/*
 * Convert the page to OpenMetrics 1.0, which Prometheus prefers: the name of a counter's
 * family lacks the suffix of its samples, and the page ends with a mark.
 */
static void
page_as_openmetrics(const struct buf *page, struct buf *out)
{
	const char *end = page->data + page->len;

	for (const char *line = page->data, *stop; line < end; line = stop + 1) {
		const char *rest = line;

		stop = memchr(line, '\n', (size_t)(end - line));
		if (line[0] == '#') { /* "# HELP NAME ...", "# TYPE NAME ..." */
			const char *behind =
					   memchr(line + 7, ' ', (size_t)(stop - line - 7)),
				   *ending = behind - strlen(TOTAL);

			if (strncmp(ending, TOTAL, strlen(TOTAL)) == 0) {
				buf_put(out, line, (size_t)(ending - line));
				rest = behind;
			}
		}
		buf_put(out, rest, (size_t)(stop + 1 - rest));
	}
	buf_printf(out, "# EOF\n");
}

/* --- the Accept header ---------------------------------------------------------------- */

/*
 * The header has media ranges, separated by commas, each with parameters (RFC 9110,
 * 12.5.1). The parameter q is the weight. Pure functions, any thread.
 */
#define WEIGHT_ONE 1000u /* q=1, in thousandths */

/*
 * The way in which a range matches a media type. A later kind wins over an earlier kind,
 * whatever the weights.
 */
enum accept_by { ACCEPT_BY_NONE, ACCEPT_BY_ANY, ACCEPT_BY_RANGE, ACCEPT_BY_NAME };

/* The result of lines of Accept. All zero before the first line. */
struct accepted {
	enum accept_by by;
	unsigned int weight; /* thousandths; 0: not accepted */
};

/* Return the length up to one of `ends` outside of a quoted string, or to the end. */
static size_t
header_span(const char *p, const char *ends)
{
	bool quoted = false;
	size_t n = 0;

	for (; p[n] != '\0' && (quoted || strchr(ends, p[n]) == NULL); n++) {
		if (p[n] == '"')
			quoted = !quoted;
		else if (quoted && p[n] == '\\' && p[n + 1] != '\0')
			n++;
	}
	return n;
}

/* Parse "0.5", at most three decimals. An invalid weight is 0. */
static unsigned int
weight_parse(const char *p, size_t len)
{
	unsigned int sum = 0, unit = WEIGHT_ONE;

	while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
		len--;
	if (len == 0 || len > 5 || (len > 1 && p[1] != '.'))
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (i == 1)
			continue;
		if (p[i] < '0' || p[i] > '9')
			return 0;
		sum += (unsigned int)(p[i] - '0') * unit;
		unit /= 10;
	}
	return sum <= WEIGHT_ONE ? sum : 0;
}

/* Return the weight in the parameters of a range; `p` is at its first ';' or its end. */
static unsigned int
params_weight(const char *p)
{
	unsigned int weight = WEIGHT_ONE;

	while (*p == ';') {
		p++;
		p += strspn(p, " \t");
		if (strncasecmp(p, "q=", 2) == 0)
			weight = weight_parse(p + 2, header_span(p + 2, ";,"));
		p += header_span(p, ";,");
	}
	return weight;
}

/* Add a line of Accept to the result for `type` ("text/plain"). */
static void
accept_add(struct accepted *of, const char *type, const char *line)
{
	size_t main = strcspn(type, "/") + 1;

	for (const char *p = line; *p != '\0'; p += *p == ',') {
		enum accept_by by = ACCEPT_BY_NAME;
		unsigned int weight;
		size_t len;

		p += strspn(p, " \t");
		len = strcspn(p, ";, \t");
		weight = params_weight(p + len + strspn(p + len, " \t"));
		if (len == 3 && strncmp(p, "*/*", 3) == 0)
			by = ACCEPT_BY_ANY;
		else if (len == main + 1 && strncasecmp(p, type, main) == 0 &&
			 p[main] == '*')
			by = ACCEPT_BY_RANGE;
		else if (len != strlen(type) || strncasecmp(p, type, len) != 0)
			by = ACCEPT_BY_NONE;
		/*
		 * The most specific range wins. Among ranges that are equally specific the
		 * highest weight wins.
		 */
		if (by > of->by || (by == of->by && weight > of->weight))
			*of = (struct accepted){by, by == ACCEPT_BY_NONE ? 0 : weight};
		p += header_span(p, ",");
	}
}

struct forms {
	struct accepted openmetrics, plain;
};

static enum MHD_Result
forms_add(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct forms *f = ctx;

	if (strcasecmp(key, MHD_HTTP_HEADER_ACCEPT) == 0 && value != NULL) {
		accept_add(&f->openmetrics, "application/openmetrics-text", value);
		accept_add(&f->plain, "text/plain", value);
	}
	return MHD_YES;
}

/*
 * Return true if the client prefers OpenMetrics. Without a preference it gets the plain
 * page.
 */
static bool
connection_asks_openmetrics(struct MHD_Connection *conn)
{
	struct forms f = {0};

	MHD_get_connection_values(conn, MHD_HEADER_KIND, forms_add, &f);
	if (f.openmetrics.weight != f.plain.weight)
		return f.openmetrics.weight > f.plain.weight;
	return f.openmetrics.by == ACCEPT_BY_NAME && f.openmetrics.weight > 0;
}

/* --- connections ---------------------------------------------------------------------- */

/*
 * A connection. Its age counts from its last complete request, or from its start. A new
 * client ends the oldest connection, so clients that send half a request, or nothing, do
 * not keep other clients from the page.
 */
struct scrape {
	struct cds_list_head list; /* in ui->scrapes, until the server ends it */
	int fd;
	bool answering; /* its last request is complete, but not the answer */
};

static void
scrape_unlink(struct ui *ui, struct scrape *s)
{
	cds_list_del(&s->list);
	CDS_INIT_LIST_HEAD(&s->list);
	ui->n_scrape--;
}

static void
scrape_on_connection(void *ctx, struct MHD_Connection *conn, void **scrape,
		     enum MHD_ConnectionNotificationCode code)
{
	struct ui *ui = ctx;
	struct scrape *s = *scrape;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (s != NULL && !cds_list_empty(&s->list))
			scrape_unlink(ui, s);
		free(s);
		return;
	}
	*scrape = s = calloc(1, sizeof(*s));
	if (s == NULL)
		return; /* only its timeout ends this connection */
	s->fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)
			->connect_fd;
	cds_list_add(&s->list, &ui->scrapes);
	if (++ui->n_scrape <= SCRAPES_MAX)
		return;
	s = cds_list_entry(ui->scrapes.prev, struct scrape, list);
	scrape_unlink(ui, s);
	(void)shutdown(s->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
}

static struct scrape *
scrape_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

/* Note a complete request: the connection is the newest. */
static void
scrape_renew(struct ui *ui, struct MHD_Connection *conn)
{
	struct scrape *s = scrape_of(conn);

	if (s == NULL)
		return;
	s->answering = true;
	if (!cds_list_empty(&s->list))
		cds_list_move(&s->list, &ui->scrapes);
}

static void
scrape_on_completed(void *ctx, struct MHD_Connection *conn, void **state,
		    enum MHD_RequestTerminationCode code)
{
	struct scrape *s = scrape_of(conn);

	if (s != NULL)
		s->answering = false;
}

/*
 * End connections that their clients have closed within a request. If the end of the stream
 * arrives before libmicrohttpd 0.9.75 accepts the connection, it does not notice the end,
 * because its epoll is edge-triggered. The connection would stay until its timeout.
 */
static void
scrapes_end_closed(void *ctx)
{
	struct ui *ui = ctx;
	struct scrape *s, *next;
	char octet;

	cds_list_for_each_entry_safe (s, next, &ui->scrapes, list) {
		if (s->answering || recv(s->fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
			continue;
		scrape_unlink(ui, s);
		(void)shutdown(s->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
	}
}

/* --- the listener --------------------------------------------------------------------- */

static enum MHD_Result
scrape_on_request(void *ctx, struct MHD_Connection *conn, const char *url,
		  const char *method, const char *version, const char *upload,
		  size_t *upload_size, void **state)
{
	static const char text[] = "text/plain; charset=utf-8";
	struct buf page = {0};
	bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
		   strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;

	/*
	 * libmicrohttpd makes the first call before it reads the body. Let it read the
	 * body, and ignore it.
	 */
	if (*state == NULL) {
		*state = conn;
		return MHD_YES;
	}
	if (*upload_size != 0) {
		*upload_size = 0;
		return MHD_YES;
	}
	scrape_renew(ctx, conn);
	if (strcmp(url, "/metrics") != 0 || !get) {
		buf_printf(&page, "Not found: the page is /metrics\n");
		return http_answer(conn,
				   get ? MHD_HTTP_NOT_FOUND : MHD_HTTP_METHOD_NOT_ALLOWED,
				   text, get ? NULL : "GET, HEAD", page.data, page.len);
	}
	metrics_page(ctx, &page);
	if (connection_asks_openmetrics(conn)) {
		struct buf open = {0};

		page_as_openmetrics(&page, &open);
		buf_free(&page);
		return http_answer(conn, MHD_HTTP_OK,
				   "application/openmetrics-text; version=1.0.0; "
				   "charset=utf-8",
				   NULL, open.data, open.len);
	}
	return http_answer(conn, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			   NULL, page.data, page.len);
}

/*
 * Open a listening socket in namespace `netns` here and not in libmicrohttpd, so that an
 * address in use is reported as -EADDRINUSE. Returns fd or -errno.
 */
static int
scrape_listen(const char *netns, const struct sockaddr_storage *addr)
{
	socklen_t len = sockaddr_bytes(addr);
	int fd = netns_socket(netns, addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int on = 1, rc;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)addr, len) == 0 &&
	    listen(fd, SCRAPES_MAX) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int
metrics_open(struct ui *ui)
{
	const struct MHD_OptionItem options[] = {
		{MHD_OPTION_CONNECTION_LIMIT, SCRAPES_MAX + SCRAPES_ENDING_MAX, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)scrape_on_connection, ui},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)scrape_on_completed, ui},
		{MHD_OPTION_END, 0, NULL},
	};
	int fd = scrape_listen(ui->conf.netns, &ui->conf.metrics_listen);

	if (fd < 0)
		return fd;
	ui->metrics = http_open(ui, fd, scrape_on_request, ui, options);
	if (ui->metrics == NULL) {
		close(fd);
		return -EIO;
	}
	http_after_run(ui->metrics, scrapes_end_closed, ui);
	return 0;
}

void
metrics_close(struct ui *ui)
{
	http_close(ui->metrics);
	ui->metrics = NULL;
}
