/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn: the connections to bfdd, which listens. The thread handles a message before it
 * removes the message from the socket, and writes only whole messages. It moves a partial
 * message to memory that outlives the daemon. So the next daemon continues with the same
 * connection, and bfdd does not notice a restart or a crash.
 *
 * A partial message cannot stay in the socket: the kernel does not free the buffers of its
 * octets, and these can be larger than half of the socket's receive buffer. Then TCP closes
 * the window, the rest of the message never arrives, and epoll reports the socket as
 * readable all the time.
 *
 * plan.c decides which connections are opened and closed.                            [bfd]
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sd_notify.h"
#include "base/sockaddr.h"
#include "bfd/impl.h"
#include "tap-bridge/netns.h"

#define ROOM 65536u /* octets that one round peeks at */

static void
conn_name(unsigned int number, char name[32])
{
	snprintf(name, 32, BFD_CONN_FD "%u", number);
}

/*
 * Let the service manager keep an open connection, and no other descriptor of the same
 * name. The manager may be too busy to read, and this thread must not wait for it. So
 * conns_tick() repeats a message that the manager did not take.
 */
static void
conn_store(struct bfd *b, struct conn *c)
{
	unsigned int number = (unsigned int)(c - b->conn);
	bool open = c->fd >= 0 && !b->plan.conn[number].connecting;
	char name[32];

	conn_name(number, name);
	c->to_store = sd_fdreplace_try(name, open ? c->fd : -1) == -EAGAIN;
}

static void
conn_close(struct bfd *b, struct conn *c)
{
	unsigned int number = (unsigned int)(c - b->conn);

	if (c->fd < 0)
		return;
	ev_io_stop(b->w->loop, &c->io);
	/*
	 * A successor that starts now may have inherited the connection: end it for the
	 * successor, too.
	 */
	(void)shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	c->fd = -1;
	c->broken = false;
	conn_store(b, c);
	if (!b->plan.conn[number].connecting)
		atomic_fetch_sub_explicit(&bfd_status.connections, 1, memory_order_relaxed);
	b->plan.conn[number].n = sessions_orphan(b, (int)number);
	plan_ended(&b->plan, number);
	if (!plan_is_connected(&b->plan))
		kernel_tick(b);
}

static void
counters_answer(struct bfd *b, struct conn *c, const struct bfd_dplane_msg *m)
{
	uint8_t octets[BFD_DPLANE_COUNTERS_BYTES];
	struct bfd_dplane_counters counters = {.lid = m->lid};
	struct session *s = session_by_lid(b, m->lid);

	if (s != NULL)
		session_counters(b, s, &counters);
	counters.lid = m->lid;
	/*
	 * bfdd of FRR 8.4.4 to 10.7 shows this field, the octets of sent echo packets, as
	 * the number of sent echo packets.
	 */
	counters.echo_out_octets = counters.echo_out_packets;
	conn_send(c, octets, bfd_dplane_write_counters(&counters, m->id, octets));
}

static void
message_take(struct bfd *b, struct conn *c, const struct bfd_dplane_msg *m)
{
	unsigned int number = (unsigned int)(c - b->conn);
	uint8_t octets[BFD_DPLANE_ECHO_BYTES];

	if (!m->known)
		return;
	switch (m->type) {
	case BFD_DPLANE_ADD:
		plan_heard(&b->plan, number);
		session_told(b, (int)number, &m->session);
		break;
	case BFD_DPLANE_DELETE:
		plan_heard(&b->plan, number);
		session_untold(b, &m->session);
		break;
	case BFD_DPLANE_REQUEST_COUNTERS:
		counters_answer(b, c, m);
		break;
	case BFD_DPLANE_ECHO_REQUEST:
		conn_send(c, octets, bfd_dplane_write_echo_reply(&m->echo, m->id, octets));
		break;
	case BFD_DPLANE_ECHO_REPLY:
		plan_answered(&b->plan, number, (uint32_t)m->echo.our_us);
		break;
	default:
		break;
	}
}

/* Mark the start and the end of a step after which the socket has fewer octets. */
static void
part_open(struct kept_part *p)
{
	atomic_store_explicit(&p->moving, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static void
part_close(struct kept_part *p)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&p->moving, false, memory_order_relaxed);
}

/*
 * Remove the first octets of the stream: the octets in `part`, then octets of the socket.
 */
static void
conn_remove(struct conn *c, size_t octets)
{
	struct kept_part *part = c->part;
	size_t from_socket = octets - part->n;

	/*
	 * If `part` is empty, the next daemon finds the whole message in the socket, or
	 * none of it. The message may be handled twice, so the connection can stay open
	 * after a crash and no mark is necessary.
	 */
	if (part->n > 0)
		part_open(part);
	part->n = 0;
	/* MSG_TRUNC: without a copy */
	(void)!recv(c->fd, NULL, from_socket, MSG_TRUNC | MSG_DONTWAIT);
	part_close(part);
}

/* Move the octets of a partial message from the socket to `part`. */
static void
conn_keep_part(struct conn *c, const uint8_t *octets, size_t n)
{
	struct kept_part *part = c->part;

	part_open(part);
	memcpy(part->octets + part->n, octets, n);
	part->n += (uint32_t)n;
	(void)!recv(c->fd, NULL, n, MSG_TRUNC | MSG_DONTWAIT);
	part_close(part);
}

/* Handle the messages that have arrived, one by one. */
static void
conn_read(struct bfd *b, struct conn *c)
{
	static uint8_t buf[BFD_DPLANE_MAX_BYTES + ROOM];
	size_t at = 0, n = c->part->n; /* octets of `buf` */
	ssize_t got = recv(c->fd, buf + n, ROOM, MSG_PEEK | MSG_DONTWAIT);
	struct bfd_dplane_msg m;
	int len;

	if (c->broken || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (got <= 0) {
		log_warn("bfd: connection to bfdd ended dplane=%s", b->setup.conf.name);
		/* wait a tick: bfdd may end each new connection, too */
		b->connect_failed = true;
		conn_close(b, c);
		return;
	}
	memcpy(buf, c->part->octets, n);
	n += (size_t)got;
	while ((len = bfd_dplane_next(buf + at, n - at, &m)) > 0) {
		message_take(b, c, &m);
		if (c->broken)
			return;
		conn_remove(c, (size_t)len);
		at += (size_t)len;
	}
	if (len == 0 && at < n)
		conn_keep_part(c, buf + at + c->part->n, n - at - c->part->n);
	if (len < 0) {
		log_error("bfd: malformed message of bfdd dplane=%s error=\"%s\"",
			  b->setup.conf.name, strerror(-len));
		b->connect_failed = true; /* a new connection would get the same message */
		conn_close(b, c);
	}
}

/*
 * Return true if a socket is connected to itself. That happens if no program listens at the
 * port, and the kernel chooses the same port as the local port.
 */
static bool
is_self_connected(int fd)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t len = sizeof(here), len_there = sizeof(there);

	return getsockname(fd, (struct sockaddr *)&here, &len) == 0 &&
	       getpeername(fd, (struct sockaddr *)&there, &len_there) == 0 &&
	       len == len_there && memcmp(&here, &there, len) == 0;
}

static void
conn_is_open(struct bfd *b, struct conn *c)
{
	b->plan.conn[c - b->conn].connecting = false;
	b->plan.due = true;
	atomic_fetch_add_explicit(&bfd_status.connections, 1, memory_order_relaxed);
	ev_io_stop(b->w->loop, &c->io);
	ev_io_set(&c->io, c->fd, EV_READ);
	ev_io_start(b->w->loop, &c->io);
	conn_store(b, c);
	log_info("bfd: connected to bfdd dplane=%s", b->setup.conf.name);
}

static void
conn_on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	struct conn *c = io->data;
	struct bfd *b = c->b;
	int error = 0;
	socklen_t len = sizeof(error);

	if (b->plan.conn[c - b->conn].connecting) {
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error != 0 || is_self_connected(c->fd)) {
			b->connect_failed = true;
			conn_close(b, c);
		} else {
			conn_is_open(b, c);
		}
		return;
	}
	conn_read(b, c);
}

static void
conn_watch(struct bfd *b, struct conn *c, int fd, int events)
{
	c->fd = fd;
	c->b = b;
	c->broken = false;
	ev_io_init(&c->io, conn_on_io, fd, events);
	c->io.data = c;
	ev_io_start(b->w->loop, &c->io);
}

/* Begin to connect. Returns false if the attempt failed at once. */
static bool
conn_open(struct bfd *b, struct conn *c)
{
	const struct sockaddr_storage *to = &b->setup.conf.dplane;
	socklen_t len = sockaddr_bytes(to);
	int fd =
		netns_socket(b->setup.netns, to->ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return false;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)to, len) < 0 && errno != EINPROGRESS) {
		close(fd);
		return false;
	}
	c->part->n = 0;
	c->part->moving = false;
	plan_opened(&b->plan, (unsigned int)(c - b->conn), true, false);
	conn_watch(b, c, fd, EV_WRITE);
	return true;
}

/* Send an echo request, to find out whether bfdd's step is over (plan.h). */
static void
conn_ask(struct bfd *b, struct conn *c)
{
	struct bfd_dplane_echo echo = {.our_us = b->plan.conn[c - b->conn].age};
	uint8_t octets[BFD_DPLANE_ECHO_BYTES];

	conn_send(c, octets, bfd_dplane_write_echo_request(&echo, 0, octets));
}

/*
 * Report again over this connection which sessions are Up. If a session has several clients
 * (such as bgpd and ospfd) and one of them leaves, bfdd of FRR 8.4.4 to 10.8-dev marks the
 * session Down and sends the dataplane no message. The next packet of the peer corrects a
 * session that bfdd runs itself; this report corrects a session of the dataplane.
 */
static void
conn_repeat(struct bfd *b, unsigned int at)
{
	/*
	 * Handle the messages of bfdd first, so that a session that it shuts down is not
	 * reported Up.
	 */
	if (b->conn[at].fd >= 0 && !b->plan.conn[at].connecting)
		conn_read(b, &b->conn[at]);
	if (!plan_repeats(&b->plan, at))
		return;
	for (uint32_t i = 1; i < b->high; i++) {
		struct session *s = &b->session[i];

		if (s->k != NULL && s->k->conn == (int)at && s->k->fsm.state == BFD_UP)
			session_report(b, s);
	}
	conn_ask(b, &b->conn[at]);
}

void
conns_tick(struct bfd *b)
{
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++)
		if (b->conn[i].to_store)
			conn_store(b, &b->conn[i]);
	plan_tick(&b->plan);
	for (unsigned int i = b->n_ticks % BFD_REPEAT_S; i < BFD_CONNS_MAX;
	     i += BFD_REPEAT_S)
		conn_repeat(b, i);
}

/* Close the connections that did not take a message. */
static void
conns_close_broken(struct bfd *b)
{
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++)
		if (b->conn[i].broken)
			conn_close(b, &b->conn[i]);
}

static void
full_log(struct bfd *b)
{
	if (!b->full_said)
		log_warn("bfd: too many sessions sessions=%u connections_max=%u",
			 b->n_sessions, BFD_CONNS_MAX);
	b->full_said = true;
}

void
conns_plan(struct bfd *b)
{
	enum plan_step step;
	unsigned int at;

	conns_close_broken(b);
	if (!b->plan.due)
		return;
	b->plan.due = false;
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++)
		b->plan.conn[i].n = 0;
	for (uint32_t i = 1; i < b->high; i++) {
		const struct kept *k = b->session[i].k;

		if (k != NULL && k->conn >= 0)
			b->plan.conn[k->conn].n++;
	}
	while ((step = plan_next(&b->plan, &at)) == PLAN_ASK) {
		conn_ask(b, &b->conn[at]);
		conns_close_broken(b);
	}
	keep_rest(b, step == PLAN_REST);
	if (step == PLAN_OPEN && !b->connect_failed)
		b->connect_failed = !conn_open(b, &b->conn[at]);
	else if (step == PLAN_CLOSE)
		conn_close(b, &b->conn[at]);
	if (step == PLAN_FULL)
		full_log(b);
	else if (step != PLAN_WAIT)
		b->full_said = false;
}

void
conns_begin(struct bfd *b)
{
	char name[32];

	b->plan = (struct plan){.conn = b->plan_conn, .n_conn = BFD_CONNS_MAX, .due = true};
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++) {
		int fd;

		b->conn[i].fd = -1;
		b->conn[i].part = keep_part(b, i);
		conn_name(i, name);
		fd = sd_take(name);
		if (fd < 0) {
			/*
			 * Remove the descriptor from the service manager. The last daemon
			 * may have opened the connection after it listed its descriptors
			 * for this daemon. Then the manager has the only copy, which no
			 * program reads.
			 */
			conn_store(b, &b->conn[i]);
			continue;
		}
		plan_opened(&b->plan, i, false, true);
		conn_watch(b, &b->conn[i], fd, EV_READ);
		atomic_fetch_add_explicit(&bfd_status.connections, 1, memory_order_relaxed);
		if (b->conn[i].part->moving || b->conn[i].part->n >= BFD_DPLANE_MAX_BYTES) {
			log_warn("bfd: connection closed reason=crash-while-reading");
			b->conn[i].broken = true;
		}
	}
	if (b->kept_lost)
		plan_doubt(&b->plan);
}

void
conns_end(struct bfd *b)
{
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++) {
		struct conn *c = &b->conn[i];

		if (c->fd < 0)
			continue;
		ev_io_stop(b->w->loop, &c->io);
		close(c->fd);
		c->fd = -1;
	}
}

unsigned int
bfd_descriptors(const struct worker *w, struct named_fd *into)
{
	const struct bfd *b = w->ctx;
	unsigned int n = 0;

	if (!b->setup.conf.on)
		return 0;
	for (unsigned int i = 0; i < BFD_CONNS_MAX; i++) {
		if (b->conn[i].fd < 0 || b->plan.conn[i].connecting)
			continue;
		conn_name(i, into[n].name);
		into[n++].fd = b->conn[i].fd;
	}
	snprintf(into[n].name, sizeof(into->name), BFD_KEEP_FD);
	into[n++].fd = b->kept_fd;
	return n;
}
