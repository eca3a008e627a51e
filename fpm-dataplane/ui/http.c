/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HTTP listener of the metrics page. Runs in ui: libmicrohttpd has no thread of its
 * own, the loop watches its epoll descriptor and its timeout. Few connections, short ones.
 */
#include "ui/internal.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netns.h"

#define CONNECTIONS_MAX 32
#define IDLE_S          10
#define WAIT_MAX_MS     1000

struct metrics {
	struct MHD_Daemon *mhd;
	struct ui *ui;
	ev_io io;
	ev_timer timeout;
};

static enum MHD_Result
answer(struct MHD_Connection *conn, unsigned int status, struct MHD_Response *resp,
       const char *type)
{
	enum MHD_Result rc = MHD_NO;

	if (resp == NULL)
		return MHD_NO;
	if (MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES)
		rc = MHD_queue_response(conn, status, resp);
	MHD_destroy_response(resp);
	return rc;
}

static enum MHD_Result
on_request(void *ctx, struct MHD_Connection *conn, const char *url, const char *method,
	   const char *version, const char *upload, size_t *upload_size, void **state)
{
	static const char lost[] = "Not here: the page is /metrics\n";
	struct buf page = {0};
	bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
		   strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;

	/* The first call comes before a body has been read: let it be read, and ignored. */
	if (*state == NULL) {
		*state = conn;
		return MHD_YES;
	}
	if (*upload_size != 0) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") != 0 || !get)
		return answer(conn, get ? MHD_HTTP_NOT_FOUND : MHD_HTTP_METHOD_NOT_ALLOWED,
			      MHD_create_response_from_buffer(sizeof(lost) - 1,
							      (void *)(uintptr_t)lost,
							      MHD_RESPMEM_PERSISTENT),
			      "text/plain; charset=utf-8");
	metrics_page(ctx, &page);
	return answer(
		conn, MHD_HTTP_OK,
		MHD_create_response_from_buffer(page.len, page.data, MHD_RESPMEM_MUST_FREE),
		"text/plain; version=0.0.4; charset=utf-8");
}

/*
 * At its limit of connections libmicrohttpd 0.9.75 stops listening, and starts again only
 * when it is run once more after one has closed, which it does not ask for: hence no wait is
 * longer than a second.
 */
static void
run(struct metrics *m)
{
	struct ev_loop *loop = m->ui->w->loop;
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(m->mhd);
	if (MHD_get_timeout(m->mhd, &ms) != MHD_YES || ms > WAIT_MAX_MS)
		ms = WAIT_MAX_MS;
	ev_timer_stop(loop, &m->timeout);
	ev_timer_set(&m->timeout, (double)ms / 1000, 0);
	ev_timer_start(loop, &m->timeout);
}

static void
on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	run(io->data);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *t, int revents)
{
	run(t->data);
}

/*
 * A listening socket of namespace `netns`, so that a busy address is told as such. Returns
 * fd or -errno.
 */
static int
listen_on(const char *netns, const struct sockaddr_storage *addr)
{
	socklen_t len = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						    : sizeof(struct sockaddr_in);
	int fd = netns_socket(netns, addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK);
	int on = 1, rc;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)addr, len) == 0 &&
	    listen(fd, CONNECTIONS_MAX) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int
metrics_open(struct ui *ui)
{
	struct metrics *m = calloc(1, sizeof(*m));
	const union MHD_DaemonInfo *info = NULL;
	int fd = m == NULL ? -ENOMEM : listen_on(ui->conf.netns, &ui->conf.metrics_listen);

	if (fd < 0) {
		free(m);
		return fd;
	}
	m->ui = ui;
	m->mhd = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, ui, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S, MHD_OPTION_END);
	if (m->mhd != NULL)
		info = MHD_get_daemon_info(m->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL) {
		if (m->mhd != NULL)
			MHD_stop_daemon(m->mhd); /* closes fd */
		else
			close(fd);
		free(m);
		return -EIO;
	}
	ev_io_init(&m->io, on_io, info->epoll_fd, EV_READ);
	ev_timer_init(&m->timeout, on_timeout, 0, 0);
	m->io.data = m->timeout.data = m;
	ev_io_start(ui->w->loop, &m->io);
	ui->metrics = m;
	run(m);
	return 0;
}

void
metrics_close(struct ui *ui)
{
	struct metrics *m = ui->metrics;

	if (m == NULL)
		return;
	ev_io_stop(ui->w->loop, &m->io);
	ev_timer_stop(ui->w->loop, &m->timeout);
	MHD_stop_daemon(m->mhd);
	free(m);
	ui->metrics = NULL;
}
