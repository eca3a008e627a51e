/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run libmicrohttpd in the event loop of ui. Runs in ui. This file does not depend on the
 * served content.
 */
#include "ui/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "ui/internal.h"

#define WAIT_MAX_MS    1000
#define ACCEPT_PAUSE_S 0.2

struct http {
	int listen_fd; /* -1: none */
	struct MHD_Daemon *mhd;
	struct ev_loop *loop;
	void (*after)(void *ctx); /* called after each run; NULL: none */
	void *after_ctx;
	ev_io io;
	ev_timer timeout;
};

static void
http_run_in(struct http *h, double seconds)
{
	ev_timer_stop(h->loop, &h->timeout);
	ev_timer_set(&h->timeout, seconds, 0);
	ev_timer_start(h->loop, &h->timeout);
}

/*
 * At its limit of connections libmicrohttpd 0.9.75 stops listening. It listens again only
 * when it runs after a connection has closed, but it does not request a run. So no wait is
 * longer than a second.
 */
static void
http_run(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(h->mhd);
	if (h->after != NULL)
		h->after(h->after_ctx);
	if (MHD_get_timeout(h->mhd, &ms) != MHD_YES || ms > WAIT_MAX_MS)
		ms = WAIT_MAX_MS;
	http_run_in(h, (double)ms / 1000);
}

/*
 * Return -errno if a connection waits and no descriptor is free for it, else 0. To find out,
 * open a file. If the system has too many open files (ENFILE), this fails, while dup() of
 * an open file would succeed.
 */
static int
http_lacks_descriptor(const struct http *h)
{
	struct pollfd p = {.fd = h->listen_fd, .events = POLLIN};
	int fd;

	if (h->listen_fd < 0 || poll(&p, 1, 0) <= 0)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/*
 * If no descriptor is free for a connection that waits, libmicrohttpd cannot accept it, and
 * epoll reports it again at once. Then pause, so that the thread does not use a whole CPU.
 */
static void
http_on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	static struct log_limit paused;
	struct http *h = io->data;
	unsigned int missed;
	int rc;

	http_run(h);
	rc = http_lacks_descriptor(h);
	if (rc == 0)
		return;
	if (log_allowed(&paused, &missed))
		log_warn("ui: accept paused error=\"%s\" missed=%u", strerror(-rc), missed);
	ev_io_stop(loop, io);
	http_run_in(h, ACCEPT_PAUSE_S);
}

static void
http_on_timeout(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct http *h = t->data;

	ev_io_start(loop, &h->io);
	http_run(h);
}

struct http *
http_open(struct ui *ui, int listen_fd, MHD_AccessHandlerCallback handler, void *ctx,
	  const struct MHD_OptionItem *options)
{
	struct http *h = calloc(1, sizeof(*h));
	const union MHD_DaemonInfo *info = NULL;
	unsigned int flags = MHD_USE_EPOLL;

	if (h == NULL)
		return NULL;
	h->loop = ui->w->loop;
	h->listen_fd = listen_fd;
	if (listen_fd < 0)
		flags |= MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
	h->mhd = MHD_start_daemon(flags, 0, NULL, NULL, handler, ctx, MHD_OPTION_ARRAY,
				  options,
				  listen_fd < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET,
				  listen_fd, MHD_OPTION_END);
	if (h->mhd != NULL)
		info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL) {
		if (h->mhd != NULL) {
			MHD_quiesce_daemon(h->mhd); /* leaves the caller's socket open */
			MHD_stop_daemon(h->mhd);
		}
		free(h);
		return NULL;
	}
	ev_io_init(&h->io, http_on_io, info->epoll_fd, EV_READ);
	ev_timer_init(&h->timeout, http_on_timeout, 0, 0);
	h->io.data = h->timeout.data = h;
	ev_io_start(h->loop, &h->io);
	http_run(h);
	return h;
}

void
http_close(struct http *h)
{
	if (h == NULL)
		return;
	ev_io_stop(h->loop, &h->io);
	ev_timer_stop(h->loop, &h->timeout);
	MHD_stop_daemon(h->mhd);
	free(h);
}

void
http_after_run(struct http *h, void (*fn)(void *ctx), void *ctx)
{
	h->after = fn;
	h->after_ctx = ctx;
}

void
http_add(struct http *h, int fd)
{
	struct sockaddr_un unnamed = {.sun_family = AF_UNIX};

	/* On failure MHD_add_connection() has closed the socket. */
	if (MHD_add_connection(h->mhd, fd, (struct sockaddr *)&unnamed, sizeof(unnamed)) ==
	    MHD_YES)
		http_run(h);
}

void
http_resume(struct http *h, struct MHD_Connection *conn)
{
	MHD_resume_connection(conn);
	http_run_in(h, 0);
}

enum MHD_Result
http_answer(struct MHD_Connection *conn, unsigned int status, const char *type,
	    const char *allow, char *data, size_t len)
{
	struct MHD_Response *resp =
		MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result rc = MHD_NO;

	if (resp == NULL) {
		free(data);
		return MHD_NO;
	}
	if (MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    (allow == NULL ||
	     MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, allow) == MHD_YES))
		rc = MHD_queue_response(conn, status, resp);
	MHD_destroy_response(resp);
	return rc;
}
