/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of zebra: read octets, cut frames, decode messages, queue events. fpm's
 * thread only.
 *
 * zebra resets the session after 15 s of back-pressure, and a full buffer stalls zebra for
 * one second each time. So this file reads all available octets in large reads, and never
 * waits for rib. Any error in the byte stream ends the session: zebra connects again after
 * 3 s and replays everything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fpm/impl.h"

/* Limit per call. Other sockets and the flush follow; then libev calls again at once. */
#define ROUND_BYTES (4u << 20)
#define SILENCE_S   1.

static const char *const end_name[] = {
	[SESSION_EOF] = "eof",
	[SESSION_ERROR] = "error",
	[SESSION_REPLACED] = "replaced",
	[SESSION_BAD_FRAME] = "bad-frame",
	[SESSION_OVERFLOW] = "queue-limit",
	[SESSION_NO_MEMORY] = "no-memory",
	[SESSION_ACK_LIMIT] = "acknowledgements-not-read",
	[SESSION_REPLAY] = "replay-requested",
	[SESSION_HOLD] = "hold",
	[SESSION_STOP] = "stop",
};

/*
 * Announce the session to rib. FPM_SESSION_UP waits for the first message, because it
 * carries zebra's netlink port id, by which rib tells a reconnect from a restart. A zebra
 * that sends nothing is announced after SILENCE_S without its id: rib must remove the
 * routes of an earlier session at some time.
 */
static void
session_announce(struct fpm *fpm)
{
	struct fpm_session *s = &fpm->session;

	if (s->announced) {
		if (s->nl_pid != 0 || fpm->decoded.nl_pid == 0)
			return;
		s->nl_pid = fpm->decoded.nl_pid; /* the first message arrived late */
		queue_put_zebra(&fpm->queue, s->nl_pid, 0);
		return;
	}
	fpm_hold_set(fpm, 0); /* another zebra ends the hold */
	s->announced = true;
	s->nl_pid = fpm->decoded.nl_pid;
	queue_put_session(&fpm->queue, FPM_SESSION_UP, s->gen, s->nl_pid);
}

static void
session_on_silence(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;

	ev_timer_stop(loop, timer);
	if (fpm_hold_is_on(fpm))
		session_close(fpm, SESSION_HOLD, 0);
	else
		session_announce(fpm);
}

static int
session_on_event(void *arg, const struct fpm_event *ev)
{
	struct fpm *fpm = arg;

	if (fpm_hold_is_on(fpm)) {
		free(ev->hops);
		return -ECONNREFUSED;
	}
	session_announce(fpm);
	return queue_put(&fpm->queue, ev);
}

static void
session_publish_decoded(struct fpm *fpm)
{
	struct fpm_decoded *t = &fpm->decoded;
	unsigned int missed;

	status_add(&fpm_status.messages, t->messages);
	status_add(&fpm_status.routes, t->routes);
	status_add(&fpm_status.route_dels, t->route_dels);
	status_add(&fpm_status.nexthops, t->nexthops);
	status_add(&fpm_status.nexthop_dels, t->nexthop_dels);
	status_add(&fpm_status.labels, t->labels);
	status_add(&fpm_status.macs, t->macs);
	status_add(&fpm_status.skipped_type, t->skipped_type);
	status_add(&fpm_status.skipped_route, t->skipped_route);
	status_add(&fpm_status.malformed, t->malformed);
	if (t->nl_pid != 0)
		atomic_store_explicit(&fpm_status.nl_pid, t->nl_pid, memory_order_relaxed);
	if (t->malformed > 0 && log_allowed(&fpm->malformed_log, &missed))
		log_warn("fpm: malformed messages skipped peer=%s gen=%u messages=%llu "
			 "missed=%u",
			 fpm->session.peer, fpm->session.gen,
			 (unsigned long long)t->malformed, missed);
	*t = (struct fpm_decoded){.nl_pid = t->nl_pid};
}

/*
 * Decode all complete frames in the buffer and move the remaining octets to its front.
 * Returns 0, -EPROTO, -ENOMEM or -ECONNREFUSED; the events before the error are in the
 * queue.
 */
static int
session_decode(struct fpm *fpm)
{
	struct fpm_session *s = &fpm->session;
	struct fpm_frame frame;
	uint64_t frames = 0;
	size_t used = 0;
	int rc;

	while ((rc = fpm_frame_next(s->buf + used, s->len - used, &frame)) > 0) {
		used += (size_t)rc;
		frames++;
		rc = queue_begin_frame(&fpm->queue, frame.len);
		if (rc == 0)
			rc = fpm_decode(&frame, session_on_event, fpm, &fpm->decoded);
		if (rc < 0)
			break;
		if (fpm->decoded.nl_pid != 0 && !fpm_hold_is_on(fpm))
			session_announce(fpm);
	}
	s->len -= used;
	memmove(s->buf, s->buf + used, s->len);
	status_add(&fpm_status.frames, frames);
	session_publish_decoded(fpm);
	return rc;
}

/* Decode the buffer and close the session on an error. Returns false when it was closed. */
static bool
session_decode_or_close(struct fpm *fpm)
{
	int rc = session_decode(fpm);

	if (rc == -ECONNREFUSED) {
		session_close(fpm, SESSION_HOLD, 0);
		return false;
	}
	if (rc == -EPROTO) {
		status_add(&fpm_status.bad_frames, 1);
		session_close(fpm, SESSION_BAD_FRAME, 0);
		return false;
	}
	if (rc == 0 && !queue_over_limit(&fpm->queue))
		return true;
	status_add(&fpm_status.overflows, 1);
	listen_pause(fpm); /* before zebra sees the close and connects again */
	session_close(fpm, rc < 0 ? SESSION_NO_MEMORY : SESSION_OVERFLOW, 0);
	return false;
}

static void
session_on_readable(struct ev_loop *loop, ev_io *io, int revents)
{
	struct fpm *fpm = io->data;
	struct fpm_session *s = &fpm->session;
	size_t round = 0;

	while (round < ROUND_BYTES) {
		size_t want = SESSION_BUFFER_BYTES - s->len;
		ssize_t n = recv(s->fd, s->buf + s->len, want, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			session_close(fpm, n == 0 ? SESSION_EOF : SESSION_ERROR, errno);
			return;
		}
		s->len += (size_t)n;
		round += (size_t)n;
		status_add(&fpm_status.bytes, (uint64_t)n);
		if (!session_decode_or_close(fpm))
			return;
		if ((size_t)n < want)
			break; /* the socket is empty: recv() would return EAGAIN */
	}
	if (round > 0)
		atomic_store_explicit(&fpm_status.last_rx_ms, monotonic_ms(),
				      memory_order_relaxed);
}

/* Send acknowledgements until the socket is full. */
static void
session_push(struct fpm *fpm)
{
	struct fpm_session *s = &fpm->session;
	int rc = feedback_push(s);

	if (rc < 0)
		session_close(fpm, SESSION_ERROR, -rc);
	else if (s->out_len == 0)
		ev_io_stop(fpm->w->loop, &s->writable);
	else
		ev_io_start(fpm->w->loop, &s->writable);
}

static void
session_on_writable(struct ev_loop *loop, ev_io *io, int revents)
{
	session_push(io->data);
}

void
session_acknowledge(struct fpm *fpm, const struct msg_feedback *m)
{
	const struct fpm_session *s = &fpm->session;

	if (s->fd < 0 || s->gen != m->gen)
		return; /* the session is over; the replay will be acknowledged */
	if (feedback_add(fpm, m) < 0)
		session_close(fpm, SESSION_ACK_LIMIT, 0);
	else
		session_push(fpm);
}

int
session_open(struct fpm *fpm, int fd, const struct sockaddr_storage *peer)
{
	struct fpm_session *s = &fpm->session;
	unsigned int missed;
	uint32_t gen;

	s->buf = malloc(SESSION_BUFFER_BYTES);
	if (s->buf == NULL) {
		close(fd);
		return -ENOMEM;
	}
	gen = atomic_load_explicit(&fpm_status.gen, memory_order_relaxed) + 1;
	s->fd = fd;
	s->len = 0;
	s->gen = gen;
	s->nl_pid = 0;
	s->announced = false;
	fpm->decoded = (struct fpm_decoded){0};
	peer_address(s->peer, sizeof(s->peer), peer);
	ev_io_init(&s->io, session_on_readable, fd, EV_READ);
	s->io.data = fpm;
	ev_io_start(fpm->w->loop, &s->io);
	ev_io_init(&s->writable, session_on_writable, fd, EV_WRITE);
	s->writable.data = fpm;
	ev_timer_init(&s->silence, session_on_silence, SILENCE_S, 0.);
	s->silence.data = fpm;
	ev_timer_start(fpm->w->loop, &s->silence);

	status_add(&fpm_status.accepts, 1);
	atomic_store_explicit(&fpm_status.gen, gen, memory_order_relaxed);
	atomic_store_explicit(&fpm_status.up_since_ms, monotonic_ms(),
			      memory_order_relaxed);
	atomic_store_explicit(&fpm_status.connected, 1, memory_order_relaxed);
	/*
	 * Limited, because programs in FRR's namespace may connect and disconnect in a
	 * loop.
	 */
	if (log_allowed(&fpm->up_log, &missed))
		log_info("fpm: session up peer=%s gen=%u missed=%u", s->peer, gen, missed);
	return 0;
}

static void
session_log_close(struct fpm *fpm, enum session_end why, int err)
{
	const struct fpm_session *s = &fpm->session;
	unsigned int missed = 0;

	if (why == SESSION_BAD_FRAME && log_allowed(&fpm->bad_frame_log, &missed))
		log_warn("fpm: bad frame header peer=%s gen=%u missed=%u", s->peer, s->gen,
			 missed);
	if (why == SESSION_OVERFLOW)
		log_error("fpm: session closed reason=queue-limit bytes=%llu "
			  "limit_bytes=%llu gen=%u",
			  (unsigned long long)queue_depth(),
			  (unsigned long long)fpm->queue.limit_bytes, s->gen);
	if (why == SESSION_NO_MEMORY)
		log_error("fpm: session closed reason=no-memory gen=%u", s->gen);
	if (!log_allowed(&fpm->down_log, &missed))
		return;
	if (why == SESSION_ERROR)
		log_info("fpm: session down peer=%s gen=%u reason=error error=\"%s\" "
			 "missed=%u",
			 s->peer, s->gen, strerror(err), missed);
	else
		log_info("fpm: session down peer=%s gen=%u reason=%s missed=%u", s->peer,
			 s->gen, end_name[why], missed);
}

void
session_close(struct fpm *fpm, enum session_end why, int err)
{
	struct fpm_session *s = &fpm->session;

	if (s->fd < 0)
		return;
	session_log_close(fpm, why, err);
	ev_io_stop(fpm->w->loop, &s->io);
	ev_timer_stop(fpm->w->loop, &s->silence);
	ev_io_stop(fpm->w->loop, &s->writable);
	feedback_free(s);
	atomic_store_explicit(&fpm_status.connected, 0, memory_order_relaxed);
	if (why != SESSION_STOP)
		status_add(&fpm_status.closes, 1);
	close(s->fd);
	s->fd = -1;
	free(s->buf);
	s->buf = NULL;
	if (why == SESSION_STOP)
		return;
	if (!s->announced && fpm_hold_is_on(fpm))
		return; /* rib does not know this session */
	session_announce(fpm);
	queue_put_session(&fpm->queue, FPM_SESSION_DOWN, s->gen, s->nl_pid);
}
