/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread: listens where zebra connects, one client at a time; a new client replaces
 * the old one, which is a zebra that died without a word. The thread takes bytes off
 * zebra's hands and never waits for rib; it acknowledges routes when told to (feedback.c).
 *
 * While rib is more than half the queue limit behind, nobody is accepted: a replay on top of
 * that would only end at the limit again. The listening socket is closed meanwhile: zebra is
 * refused and tries again every 3 s, while a connection left in the backlog would look like
 * a session whose reader has stalled, with all that does to zebra (FPM.md, 7).
 *
 * An address that another program has taken while we were away is tried until it is free: by
 * then packets go by what zebra had taught, and would not if we ended for it.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/msg_manage.h"
#include "fpm/server.h"
#include "tap-bridge/netns.h"

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

/* Returns a listening socket of namespace `netns`, or -errno. */
static int
listen_open(const char *netns, const struct sockaddr_storage *addr)
{
	int fd = netns_socket(netns, addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK), rc;

	if (fd < 0)
		return fd;
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

/* The address that was really bound: asked for with port 0, it has one from now on. */
static void
note_bound(struct fpm *fpm)
{
	struct sockaddr_storage *a = &fpm->conf.listen;
	socklen_t len = sizeof(*a);

	if (getsockname(fpm->listen_fd, (struct sockaddr *)a, &len) < 0)
		return;
	fpm->port = ntohs(a->ss_family == AF_INET6 ? ((struct sockaddr_in6 *)a)->sin6_port
						   : ((struct sockaddr_in *)a)->sin_port);
}

static void
refusing(bool yes)
{
	atomic_store_explicit(&fpm_status.refusing, yes, memory_order_relaxed);
}

static void
listening(bool yes)
{
	atomic_store_explicit(&fpm_status.listening, yes, memory_order_relaxed);
}

/* From here on the kernel can be asked whose programs connect. Returns 0 or -errno. */
static int
peers_begin(struct fpm *fpm)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	int rc;

	if (!fpm->asks_users || fpm->blind)
		return 0;
	if (getsockname(fpm->listen_fd, (struct sockaddr *)&own, &len) < 0)
		return -errno;
	rc = peer_begin(&fpm->peers, fpm->netns, &own);
	if (rc != -EOPNOTSUPP)
		return rc;
	fpm->blind = true; /* to ask again has it look for a module, each time */
	log_warn("fpm: the kernel does not tell whose programs connect: any of this "
		 "host is let in");
	return 0;
}

/* Returns 0 or -errno. */
static int
listen_start(struct fpm *fpm)
{
	int fd = listen_open(fpm->netns, &fpm->conf.listen), rc;

	if (fd < 0)
		return fd;
	fpm->listen_fd = fd;
	note_bound(fpm);
	rc = peers_begin(fpm);
	if (rc < 0) {
		close(fd);
		fpm->listen_fd = -1;
		return rc;
	}
	ev_io_set(&fpm->accept, fd, EV_READ);
	ev_io_start(fpm->w->loop, &fpm->accept);
	refusing(false);
	listening(true);
	return 0;
}

static void
listen_stop(struct fpm *fpm)
{
	if (fpm->listen_fd < 0)
		return;
	listening(false);
	ev_io_stop(fpm->w->loop, &fpm->accept);
	close(fpm->listen_fd);
	fpm->listen_fd = -1;
	peer_end(&fpm->peers);
}

/*
 * Whether it listens, when that is not what was said last. A queue that swings about its half,
 * or no descriptors, would be twenty lines a second: what finds no room is said by the timer,
 * if it is still so. Returns whether the last line is true.
 */
static bool
listening_told(struct fpm *fpm)
{
	bool listens = fpm->listen_fd >= 0;
	unsigned int tries, missed;

	if (listens == fpm->said_listens)
		return true;
	if (!log_allowed(&fpm->listen_log[listens], &tries))
		return false;
	fpm->said_listens = listens;
	missed = fpm->n_stops - !listens; /* stops to listen that nobody heard of */
	fpm->n_stops = 0;
	log_info("fpm: %s queue_bytes=%llu missed=%u",
		 listens ? "listening again"
			 : "not listening until the queue is down to half",
		 (unsigned long long)queue_depth(), missed);
	return true;
}

void
server_hold(struct fpm *fpm)
{
	refusing(true);
	fpm->n_stops += fpm->listen_fd >= 0;
	listen_stop(fpm);
	(void)listening_told(fpm);
	if (!ev_is_active(&fpm->hold))
		ev_timer_again(fpm->w->loop, &fpm->hold);
}

/* Said once, however often it is tried. */
static void
listen_later(struct fpm *fpm, int error)
{
	char address[SESSION_ADDRESS_STRLEN];

	refusing(false);
	if (fpm->told)
		return;
	fpm->told = true;
	fpm->said_listens = false;
	session_address(address, sizeof(address), &fpm->conf.listen);
	log_error("fpm: cannot listen, tried again until it can address=%s error=%s",
		  address, strerror(error));
}

static void
on_hold(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;
	bool still = fpm->listen_fd < 0 && queue_over_half(&fpm->queue);
	int rc = still || fpm->listen_fd >= 0 ? 0 : listen_start(fpm);

	if (rc < 0) {
		listen_later(fpm, -rc);
		return;
	}
	if (!still)
		fpm->told = false;
	if (listening_told(fpm) && !still)
		ev_timer_stop(loop, timer);
}

/* As long as fpm->held_until_ms says; false: it is not held. */
static bool
held_begin(struct fpm *fpm)
{
	uint64_t now = boottime_ms();
	bool held = fpm->held_pid != 0 && fpm->held_until_ms > now &&
		    fpm->held_until_ms - now <= (FPM_HOLD_MAX_S + 1) * 1000ull;

	if (held) {
		ev_timer_set(&fpm->held, (double)(fpm->held_until_ms - now) / 1000, 0.);
		ev_timer_start(fpm->w->loop, &fpm->held);
		log_info("fpm: zebra is held off nl_pid=%u seconds=%llu", fpm->held_pid,
			 (unsigned long long)(fpm->held_until_ms - now + 999) / 1000);
	}
	atomic_store_explicit(&fpm_status.held, held, memory_order_relaxed);
	return held;
}

/* The first start of this thread: what the daemon before knew of zebra. */
static void
inherit(struct fpm *fpm)
{
	uint32_t pid = atomic_load_explicit(&fpm_status.old_nl_pid, memory_order_relaxed);

	if (atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed) != 0)
		return;
	atomic_store_explicit(&fpm_status.nl_pid, pid, memory_order_relaxed);
	fpm->held_pid = pid;
	fpm->held_until_ms = 1000ull * atomic_load_explicit(&fpm_status.old_held_until_s,
							    memory_order_relaxed);
}

void
server_hold_zebra(struct fpm *fpm, unsigned int seconds)
{
	if (seconds == 0 && !ev_is_active(&fpm->held))
		return;
	ev_timer_stop(fpm->w->loop, &fpm->held);
	fpm->held_until_ms = seconds == 0 ? 0 : boottime_ms() + seconds * 1000ull;
	/* Into the checkpoint at once: the next daemon may be asked for, or needed, at once. */
	queue_put_zebra(&fpm->queue, fpm->held_pid,
			(uint32_t)((fpm->held_until_ms + 999) / 1000));
	(void)queue_flush(&fpm->queue);
	if (!held_begin(fpm))
		log_info("fpm: zebra is let in again");
}

static void
on_held(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;

	/* libev has stopped the timer. */
	atomic_store_explicit(&fpm_status.held, 0, memory_order_relaxed);
	log_warn("fpm: zebra is let in again, no other one has come nl_pid=%u",
		 fpm->held_pid);
}

static void
zebra_is_held(struct fpm *fpm, unsigned int seconds)
{
	uint32_t last = atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed);

	if (!ev_is_active(&fpm->held))
		fpm->held_pid = fpm->tally.nl_pid != 0 ? fpm->tally.nl_pid : last;
	if (fpm->held_pid == 0)
		return; /* zebra was never heard, and who asks knows (ui) */
	if (seconds > 0)
		session_close(fpm, SESSION_HELD, 0);
	server_hold_zebra(fpm, seconds);
}

/* Answered by rib, when it has read what was flushed before. */
static void
hold_zebra(struct fpm *fpm, struct msg_hold *m)
{
	zebra_is_held(fpm, m->seconds);
	m->q.m.type = MSG_HELD;
	worker_send(fpm->queue.rib, &m->q.m);
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

/* The 16 octets of an address, IPv4 as ::ffff:0:0/96 (RFC 4291, 2.5.5.2). */
static void
address_of(const struct sockaddr_storage *ss, uint8_t out[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (ss->ss_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)ss)->sin6_addr, 16);
		return;
	}
	memcpy(out, mapped, 12);
	memcpy(out + 12, &((const struct sockaddr_in *)ss)->sin_addr, 4);
}

/* May a program of that user be zebra? */
static bool
is_user(struct fpm *fpm, uid_t uid)
{
	const struct fpm_from *from = &fpm->conf.from;
	unsigned int missed;

	if (uid == 0 || uid == geteuid())
		return true;
	for (unsigned int i = 0; i < from->n_user; i++)
		if (uid == from->user[i].uid)
			return true;
	if (uid == PEER_NOBODY && !fpm->users_known) {
		if (log_allowed(&fpm->foreign_log, &missed))
			log_info("fpm: a user of another namespace is let in uid=%u "
				 "missed=%u",
				 uid, missed);
		return true;
	}
	if (log_allowed(&fpm->user_log, &missed))
		log_warn("fpm: stranger refused, see fpm.users uid=%u missed=%u", uid,
			 missed);
	return false;
}

/* The same of one that speaks from this host. */
static bool
is_own(struct fpm *fpm, const struct sockaddr_storage *peer,
       const struct sockaddr_storage *own)
{
	unsigned int missed;
	uid_t uid;
	int rc;

	if (fpm->peers == NULL)
		return true;
	rc = peer_uid(fpm->peers, peer, own, &uid);
	if (rc == 0)
		return is_user(fpm, uid);
	/* It may have said something first, and nobody can tell whose words those are. */
	if (log_allowed(&fpm->gone_log, &missed))
		log_warn("fpm: stranger refused, it went before it was known error=%s "
			 "missed=%u",
			 strerror(-rc), missed);
	return false;
}

/*
 * May this peer be zebra? One that speaks from the very address it speaks to is a program of
 * this host: the kernel drops packets with our source that come from elsewhere.
 */
static bool
is_welcome(struct fpm *fpm, int fd, const struct sockaddr_storage *peer)
{
	const struct sockaddr_storage *zebra = &fpm->conf.from.peer;
	uint8_t from[16], to[16] = {0}, listed[16];
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	unsigned int missed;

	address_of(peer, from);
	if (getsockname(fd, (struct sockaddr *)&own, &len) == 0)
		address_of(&own, to);
	if (memcmp(from, to, sizeof(to)) == 0)
		return is_own(fpm, peer, &own);
	address_of(zebra, listed);
	if (zebra->ss_family != AF_UNSPEC && memcmp(from, listed, sizeof(listed)) == 0)
		return true;
	if (log_allowed(&fpm->stranger_log, &missed))
		log_warn("fpm: stranger refused, see fpm.peer missed=%u", missed);
	return false;
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
	if (!is_welcome(fpm, fd, &peer)) {
		status_add(&fpm_status.strangers, 1);
		close(fd);
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
	int rc;

	ev_timer_init(&fpm->hold, on_hold, 0., HOLD_CHECK_S);
	ev_init(&fpm->accept, on_accept);
	ev_init(&fpm->held, on_held);
	fpm->hold.data = fpm->accept.data = fpm->held.data = fpm;
	inherit(fpm);
	held_begin(fpm);
	fpm->said_listens = true;
	fpm->told = false;
	fpm->n_stops = 0;
	rc = listen_start(fpm);
	if (rc == 0 || !fpm->conf.insists)
		return rc;
	listen_later(fpm, -rc);
	ev_timer_again(w->loop, &fpm->hold);
	return 0;
}

/* Each round's end hands over what the round brought. */
static void
fpm_round(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	if (queue_flush(&fpm->queue) == 0)
		return;
	server_hold(fpm); /* its timer brings the next round, which tries again */
	if (fpm->session.fd >= 0) {
		status_add(&fpm_status.overflows, 1);
		session_close(fpm, SESSION_NO_MEMORY, 0);
	}
}

static void
limit_set(struct fpm *fpm, uint64_t bytes)
{
	fpm->conf.queue_limit_bytes = fpm->queue.limit_bytes = bytes;
	atomic_store_explicit(&fpm_status.queue_limit_bytes, bytes, memory_order_relaxed);
}

static void
fpm_on_msg(struct worker *w, struct msg *m)
{
	switch (m->type) {
	case MSG_FEEDBACK:
		feedback_take(w->ctx, (struct msg_feedback *)m);
		break;
	case MSG_REPLAY:
		session_close(w->ctx, SESSION_REPLAY, 0); /* zebra comes again after 3 s */
		break;
	case MSG_SETTINGS:
		limit_set(w->ctx, ((struct msg_settings *)m)->queue_limit_bytes);
		break;
	case MSG_QUERY:
		hold_zebra(w->ctx, (struct msg_hold *)m);
		return; /* rib has it */
	default:
		assert(!"message not for fpm");
		break;
	}
	msg_free(m);
}

static void
fpm_fini(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	session_close(fpm, SESSION_STOP, 0);
	queue_drop(&fpm->queue);
	ev_timer_stop(w->loop, &fpm->hold);
	ev_timer_stop(w->loop, &fpm->held);
	listen_stop(fpm);
}

static const struct worker_ops fpm_ops = {
	.name = "fpm",
	.role = ROLE_FPM,
	.init = fpm_init,
	.on_msg = fpm_on_msg,
	.on_round = fpm_round,
	.fini = fpm_fini,
};

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
	fpm->asks_users = conf->from.users == FPM_USERS_LISTED || conf->from.n_user > 0;
	fpm->users_known = peer_users_are_all_known();
	if (conf->from.users == FPM_USERS_AUTO && !fpm->asks_users)
		log_warn("fpm: there is no user frr here: any program of this host may be "
			 "zebra, see fpm.users");
	fpm->listen_fd = -1;
	fpm->session.fd = -1;
	fpm->queue.rib = conf->rib;
	limit_set(fpm, conf->queue_limit_bytes);
	worker_init(w, &fpm_ops, fpm);
	return 0;
}

void
fpm_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
