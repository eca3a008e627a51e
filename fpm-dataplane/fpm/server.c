/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread: listens where zebra connects, one client at a time; a new client replaces
 * the old one, which is a zebra that died without a word. The thread takes bytes off
 * zebra's hands and never waits for rib; it acknowledges routes when told to (feedback.c).
 *
 * While rib is more than half the queue limit behind, nobody is accepted: a replay on top of
 * that would only end at the limit again. Callers wait in the listen backlog meanwhile.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fpm/server.h"
#include "netns.h"

#define HOLD_CHECK_S 0.1
#define RCVBUF_BYTES (8 << 20)
#define LISTEN_QUEUE 4

static socklen_t
sockaddr_bytes(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					: sizeof(struct sockaddr_in);
}

static void
set_option(int fd, int level, int option, int value)
{
	/* All of these make things better, none is needed. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* Returns a listening socket or -errno. */
static int
listen_open(const struct sockaddr_storage *addr)
{
	int fd, rc;

	fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/*
	 * Before listen(), so that accepted sockets offer a window that large. Only the
	 * forced kind: a plain SO_RCVBUF is cut to rmem_max (208 KiB by default) and turns
	 * off the kernel's own growth to tcp_rmem[2], which is larger.
	 */
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF_BYTES);
	if (bind(fd, (const struct sockaddr *)addr, sockaddr_bytes(addr)) < 0 ||
	    listen(fd, LISTEN_QUEUE) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* As listen_open(), in namespace `netns`; a socket stays where it was born. */
static int
listen_open_in(const char *netns, const struct sockaddr_storage *addr)
{
	struct netns_guard guard;
	int rc;

	rc = netns_enter(netns, &guard);
	if (rc < 0)
		return rc;
	rc = listen_open(addr);
	netns_leave(&guard);
	return rc;
}

static uint16_t
bound_port(int fd)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return 0;
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
					     : ((struct sockaddr_in *)&a)->sin_port);
}

void
server_hold(struct fpm *fpm)
{
	ev_io_stop(fpm->w->loop, &fpm->accept);
	if (!ev_is_active(&fpm->hold))
		ev_timer_again(fpm->w->loop, &fpm->hold);
}

static void
on_hold(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;

	if (queue_over_half(&fpm->queue))
		return;
	ev_timer_stop(loop, timer);
	ev_io_start(loop, &fpm->accept);
}

/* A peer that vanished without a FIN is noticed after half a minute. */
static void
keepalive(int fd)
{
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

static void
on_accept(struct ev_loop *loop, ev_io *io, int revents)
{
	struct fpm *fpm = io->data;
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	unsigned int missed;
	int fd;

	if (queue_over_half(&fpm->queue)) {
		server_hold(fpm);
		return;
	}
	fd = accept4(io->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		if (log_allowed(&fpm->accept_log, &missed))
			log_error("fpm: accept failed errno=%d missed=%u", errno, missed);
		server_hold(fpm); /* out of descriptors: do not spin on it */
		return;
	}
	if (fpm->session.fd >= 0) {
		status_add(&fpm_status.replaced, 1);
		session_close(fpm, SESSION_REPLACED, 0);
	}
	keepalive(fd);
	if (session_open(fpm, fd, &peer) < 0) {
		if (log_allowed(&fpm->memory_log, &missed))
			log_error("fpm: no memory for a session missed=%u", missed);
		server_hold(fpm);
	}
}

static int
fpm_init(struct worker *w)
{
	struct fpm *fpm = w->ctx;
	int fd = listen_open_in(fpm->netns, &fpm->conf.listen);

	if (fd < 0)
		return fd;
	fpm->listen_fd = fd;
	fpm->port = bound_port(fd);
	ev_timer_init(&fpm->hold, on_hold, 0., HOLD_CHECK_S);
	ev_io_init(&fpm->accept, on_accept, fd, EV_READ);
	fpm->hold.data = fpm->accept.data = fpm;
	ev_io_start(w->loop, &fpm->accept);
	return 0;
}

/* Each round's end hands over what the round brought. */
static void
fpm_round(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	if (queue_flush(&fpm->queue) == 0)
		return;
	if (fpm->session.fd >= 0) {
		status_add(&fpm_status.overflows, 1);
		session_close(fpm, SESSION_NO_MEMORY, 0);
	}
	server_hold(fpm); /* its timer brings the next round, which tries again */
}

static void
fpm_on_msg(struct worker *w, struct msg *m)
{
	if (m->type == MSG_FEEDBACK)
		feedback_take(w->ctx, (struct msg_feedback *)m);
	else if (m->type == MSG_REPLAY)
		session_close(w->ctx, SESSION_REPLAY, 0); /* zebra comes again after 3 s */
	else
		assert(!"message not for fpm");
	msg_free(m);
}

static void
fpm_fini(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	session_close(fpm, SESSION_STOP, 0);
	queue_drop(&fpm->queue);
	ev_timer_stop(w->loop, &fpm->hold);
	ev_io_stop(w->loop, &fpm->accept);
	close(fpm->listen_fd);
	fpm->listen_fd = -1;
}

int
fpm_setup(struct worker *w, const struct fpm_conf *conf)
{
	struct fpm *fpm = calloc(1, sizeof(*fpm));

	if (fpm == NULL)
		return -ENOMEM;
	fpm->w = w;
	fpm->conf = *conf;
	if (conf->netns != NULL)
		snprintf(fpm->netns, sizeof(fpm->netns), "%s", conf->netns);
	fpm->conf.netns = fpm->netns;
	fpm->listen_fd = -1;
	fpm->session.fd = -1;
	fpm->queue.rib = conf->rib;
	fpm->queue.limit_bytes = conf->queue_limit_bytes;
	w->name = "fpm";
	w->role = ROLE_FPM;
	w->ctx = fpm;
	w->init = fpm_init;
	w->on_msg = fpm_on_msg;
	w->on_round = fpm_round;
	w->fini = fpm_fini;
	return 0;
}

void
fpm_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
