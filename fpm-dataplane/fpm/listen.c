/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listening socket: opens it, closes it while rib is too far behind, and accepts
 * clients.                                                                           [fpm]
 *
 * While the queue is above half of its limit, no client is accepted: a replay would only
 * reach the limit again. The listening socket is closed meanwhile, so that zebra is refused
 * and tries again every 3 s. A connection left in the backlog would look to zebra like a
 * session whose reader has stalled, which blocks zebra (doc/fpm.md, 7).
 *
 * If another program took the address while the daemon was down, the thread retries until
 * the address is free. The daemon does not exit, because it already forwards packets by the
 * restored routes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/sockaddr.h"
#include "fpm/impl.h"
#include "tap-bridge/netns.h"

#define RETRY_S      0.1
#define RCVBUF_BYTES (8 << 20)
#define LISTEN_QUEUE 4

static void
sock_set(int fd, int level, int option, int value)
{
	/* All of these options are optional, so errors are ignored. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* Return a listening socket in namespace `netns`, or -errno. */
static int
listen_open(const char *netns, const struct sockaddr_storage *addr)
{
	int fd = netns_socket(netns, addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return fd;
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/*
	 * Set before listen(), so that accepted sockets offer a large window.
	 * SO_RCVBUFFORCE only: a plain SO_RCVBUF is cut to rmem_max (208 KiB by default)
	 * and turns off the kernel's own growth to tcp_rmem[2], which is larger.
	 */
	sock_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF_BYTES);
	if (bind(fd, (const struct sockaddr *)addr, sockaddr_bytes(addr)) < 0 ||
	    listen(fd, LISTEN_QUEUE) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/*
 * Store the bound address, so that a socket that was requested with port 0 gets the same
 * port when the thread listens again.
 */
static void
listen_store_port(struct fpm *fpm)
{
	struct sockaddr_storage *a = &fpm->conf.listen;
	socklen_t len = sizeof(*a);

	if (getsockname(fpm->listen_fd, (struct sockaddr *)a, &len) < 0)
		return;
	fpm->port = ntohs(a->ss_family == AF_INET6 ? ((struct sockaddr_in6 *)a)->sin6_port
						   : ((struct sockaddr_in *)a)->sin_port);
}

static void
status_refusing(bool yes)
{
	atomic_store_explicit(&fpm_status.refusing, yes, memory_order_relaxed);
}

static void
status_listening(bool yes)
{
	atomic_store_explicit(&fpm_status.listening, yes, memory_order_relaxed);
}

/* Return 0 or -errno. */
static int
listen_start(struct fpm *fpm)
{
	int fd = listen_open(fpm->netns, &fpm->conf.listen), rc;

	if (fd < 0)
		return fd;
	fpm->listen_fd = fd;
	listen_store_port(fpm);
	rc = peer_query_begin(fpm);
	if (rc < 0) {
		close(fd);
		fpm->listen_fd = -1;
		return rc;
	}
	ev_io_set(&fpm->accept, fd, EV_READ);
	ev_io_start(fpm->w->loop, &fpm->accept);
	status_refusing(false);
	status_listening(true);
	return 0;
}

static void
listen_stop(struct fpm *fpm)
{
	if (fpm->listen_fd < 0)
		return;
	status_listening(false);
	ev_io_stop(fpm->w->loop, &fpm->accept);
	close(fpm->listen_fd);
	fpm->listen_fd = -1;
	peer_end(&fpm->peers);
}

/*
 * Log whether the socket listens, if the last line says otherwise. The lines are limited,
 * because a queue that oscillates about half of its limit, or a lack of descriptors, would
 * cause twenty lines a second. The timer logs a suppressed line later, if it is still true.
 * Return true if the last line tells the present state.
 */
static bool
listen_log_state(struct fpm *fpm)
{
	bool listens = fpm->listen_fd >= 0;
	unsigned int tries, missed;

	if (listens == fpm->logged_listening)
		return true;
	if (!log_allowed(&fpm->listen_log[listens], &tries))
		return false;
	fpm->logged_listening = listens;
	missed = fpm->n_pauses - !listens; /* pauses that were not logged */
	fpm->n_pauses = 0;
	log_info("fpm: listen %s queue_bytes=%llu missed=%u",
		 listens ? "resumed" : "paused", (unsigned long long)queue_depth(), missed);
	return true;
}

void
listen_pause(struct fpm *fpm)
{
	status_refusing(true);
	fpm->n_pauses += fpm->listen_fd >= 0;
	listen_stop(fpm);
	(void)listen_log_state(fpm);
	if (!ev_is_active(&fpm->relisten))
		ev_timer_again(fpm->w->loop, &fpm->relisten);
}

/* Log the error once for all retries. */
static void
listen_log_retry(struct fpm *fpm, int error)
{
	char address[PEER_ADDRESS_STRLEN];

	status_refusing(false);
	if (fpm->error_logged)
		return;
	fpm->error_logged = true;
	fpm->logged_listening = false;
	peer_address(address, sizeof(address), &fpm->conf.listen);
	log_error("fpm: listen failed address=%s error=\"%s\" retry=yes", address,
		  strerror(error));
}

static void
listen_on_retry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;
	bool behind = fpm->listen_fd < 0 && queue_over_half(&fpm->queue);
	int rc = behind || fpm->listen_fd >= 0 ? 0 : listen_start(fpm);

	if (rc < 0) {
		listen_log_retry(fpm, -rc);
		return;
	}
	if (!behind)
		fpm->error_logged = false;
	if (listen_log_state(fpm) && !behind)
		ev_timer_stop(loop, timer);
}

/* Let the kernel detect within half a minute that the peer vanished without a FIN. */
static void
sock_keepalive(int fd)
{
	sock_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	sock_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
	sock_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	sock_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int
listen_accept(struct fpm *fpm, struct sockaddr_storage *peer)
{
	socklen_t len = sizeof(*peer);
	unsigned int missed;
	int fd;

	if (queue_over_half(&fpm->queue)) {
		listen_pause(fpm);
		return -1;
	}
	*peer = (struct sockaddr_storage){0};
	fd = accept4(fpm->listen_fd, (struct sockaddr *)peer, &len,
		     SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return -1;
		if (log_allowed(&fpm->accept_log, &missed))
			log_error("fpm: accept failed error=\"%s\" missed=%u",
				  strerror(errno), missed);
		listen_pause(fpm); /* out of descriptors: do not spin */
		return -1;
	}
	if (!peer_is_allowed(fpm, fd, peer)) {
		status_add(&fpm_status.strangers, 1);
		close(fd);
		return -1;
	}
	sock_keepalive(fd);
	return fd;
}

int
listen_begin(struct fpm *fpm)
{
	int rc;

	ev_timer_init(&fpm->relisten, listen_on_retry, 0., RETRY_S);
	fpm->relisten.data = fpm;
	fpm->logged_listening = true;
	fpm->error_logged = false;
	fpm->n_pauses = 0;
	rc = listen_start(fpm);
	if (rc == 0 || !fpm->conf.retry_listen)
		return rc;
	listen_log_retry(fpm, -rc);
	ev_timer_again(fpm->w->loop, &fpm->relisten);
	return 0;
}

void
listen_end(struct fpm *fpm)
{
	ev_timer_stop(fpm->w->loop, &fpm->relisten);
	listen_stop(fpm);
}
