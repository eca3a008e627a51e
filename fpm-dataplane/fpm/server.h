/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: the inside of the fpm thread. Private to fpm/ and its tests.
 *
 *   socket -> session.c (bytes, frames) -> decode.c (events) -> queue.c (batches) -> rib
 *      ^---- feedback.c (acknowledgements) <-------------------------------------------'
 *                 ^ server.c: one client at a time
 *                     listen.c: the socket and its accept, peer.c: which clients are let in,
 *                     hold.c: a zebra that is held off
 *
 * server.c calls session.c, both call the others, and none of these calls back.
 */
#ifndef FPM_SERVER_H
#define FPM_SERVER_H

#include <ev.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fpm_event.h"
#include "base/log.h"
#include "fpm/decode.h"
#include "fpm/fpm.h"

/* Room for the largest frame that is not complete yet, and for a large read behind it. */
#define SESSION_READ_BYTES   (512u << 10)
#define SESSION_BUFFER_BYTES (SESSION_READ_BYTES + FPM_FRAME_MAX + 1)

/* Events on their way to rib, and the account of those it has not handled yet. */
struct fpm_queue {
	struct worker *rib;
	uint64_t limit_bytes;
	bool warned; /* above 75 %; again only after it was below half */
	struct log_limit warn_log;
	unsigned int n;      /* events in `ev` */
	uint32_t hops_bytes; /* behind them */
	struct fpm_event ev[FPM_BATCH_MAX];
};

#define PEER_ADDRESS_STRLEN 72

enum session_end {
	SESSION_EOF,
	SESSION_ERROR,    /* of the socket */
	SESSION_REPLACED, /* by a new client */
	SESSION_BAD_FRAME,
	SESSION_OVERFLOW, /* rib is too far behind */
	SESSION_NO_MEMORY,
	SESSION_DEAF,   /* zebra does not take its acknowledgements */
	SESSION_REPLAY, /* an operator, or rib, wants to hear it all again */
	SESSION_HELD, /* FRR is about to be restarted: zebra has gone already, so to speak */
	SESSION_STOP, /* the daemon goes down: rib is not told */
};

struct fpm_session {
	int fd; /* -1: nobody is connected */
	ev_io io;
	ev_timer silence; /* announces a session that says nothing */
	uint8_t *buf;     /* SESSION_BUFFER_BYTES, 4-aligned; `len` octets wait for more */
	size_t len;
	ev_io writable; /* while `out` holds something */
	uint8_t *out;   /* acknowledgements from out_at to out_len */
	size_t out_at, out_len, out_size;
	uint32_t gen;
	uint32_t nl_pid;
	bool announced; /* FPM_SESSION_UP was sent */
	char peer[PEER_ADDRESS_STRLEN];
};

struct fpm {
	struct worker *w;
	struct fpm_conf conf;
	char netns[256];
	int listen_fd;            /* -1 while rib is too far behind: connects are refused */
	bool told;                /* that it cannot listen */
	bool said_listens;        /* the last line about it */
	unsigned int n_stops;     /* since then */
	uint16_t port;            /* that we listen on: tests ask for port 0 */
	struct mnl_socket *peers; /* knows whose programs connect; NULL: nobody does */
	bool asks_users;          /* whose they are */
	bool blind;               /* the kernel has no answer */
	bool users_known;         /* to this user namespace, all that there are */
	ev_io accept;
	ev_timer relisten; /* looks whether to listen again, and says so */
	struct fpm_session session;
	struct fpm_queue queue;
	struct fpm_tally tally;
	ev_timer held;          /* active: the zebra of port id `held_pid` is not let in */
	uint32_t held_pid;      /* not 0 */
	uint64_t held_until_ms; /* CLOCK_BOOTTIME; 0: it is not held */
	struct log_limit bad_frame_log, malformed_log, accept_log, memory_log, stranger_log,
		user_log, gone_log, foreign_log, up_log, down_log, listen_log[2];
};

/* fpm_status has one writer, this thread: a plain add that others read whole. */
static inline void
status_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t
status_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* --- queue.c                                                                  [fpm] */

/*
 * A frame of `len` octets follows: make room, so that what came in one frame is handed over
 * in one batch (rib commits between batches; DEL+NEW of one prefix must not be torn apart).
 * Returns 0 or -ENOMEM.
 */
int queue_begin_frame(struct fpm_queue *q, size_t len);

/* Add one event; owns ev->hops whatever happens. Returns 0 or -ENOMEM. */
int queue_put(struct fpm_queue *q, const struct fpm_event *ev);

/* Add FPM_SESSION_UP or _DOWN; unlike routes, these are never given up. */
void queue_put_session(struct fpm_queue *q, enum fpm_event_kind kind, uint32_t gen,
		       uint32_t nl_pid);

/* Add FPM_ZEBRA; not given up either. */
void queue_put_zebra(struct fpm_queue *q, uint32_t nl_pid, uint32_t held_until_s);

/*
 * Hand over what is there, accounted. Returns 0 or -ENOMEM: then the routes in it are
 * gone (the session must end, its successor replays them) and session events wait on.
 */
int queue_flush(struct fpm_queue *q);

bool queue_over_limit(const struct fpm_queue *q);
bool queue_over_half(const struct fpm_queue *q);

/* Free what was never handed over. */
void queue_drop(struct fpm_queue *q);

/* --- feedback.c                                                               [fpm] */

/* Add acknowledgements of routes. Returns 0 or -ENOMEM: the client does not take them. */
int feedback_add(struct fpm *fpm, const struct msg_feedback *m);

/* Send what is there, as far as the socket takes it. Returns 0 or -errno of send(2). */
int feedback_push(struct fpm_session *s);

void feedback_free(struct fpm_session *s);

/* --- peer.c                                                                   [fpm] */

struct mnl_socket;

/*
 * Begin to ask the kernel of `netns` whose programs connect to the socket that is `listening`
 * there. Returns 0, -EOPNOTSUPP: it does not tell; or another -errno, of what is scarce.
 */
int peer_begin(struct mnl_socket **nl, const char *netns,
	       const struct sockaddr_storage *listening);
void peer_end(struct mnl_socket **nl);

/* From here on the kernel can be asked whose programs connect. Returns 0 or -errno. */
int peer_ask_begin(struct fpm *fpm);

/*
 * The user who made the socket `peer` that is connected to `own`, both within this host.
 * Returns 0 or -errno: nobody has it (any more), or nobody knows.
 */
int peer_uid(struct mnl_socket *nl, const struct sockaddr_storage *peer,
	     const struct sockaddr_storage *own, uid_t *uid);

/* Else PEER_NOBODY is, beside that user, all of other user namespaces. */
bool peer_users_are_all_known(void);
#define PEER_NOBODY 65534u /* /proc/sys/kernel/overflowuid: nobody sets it */

/*
 * May this peer be zebra? One that speaks from the very address it speaks to is a program of
 * this host: the kernel drops packets with our source that come from elsewhere.
 */
bool peer_is_welcome(struct fpm *fpm, int fd, const struct sockaddr_storage *peer);

/* "192.0.2.1:2620", "[2001:db8::1]:2620" */
void peer_address(char *out, size_t size, const struct sockaddr_storage *addr);

/* --- listen.c                                                                 [fpm] */

/*
 * Listen where fpm->conf says; fpm->accept tells of clients. Returns 0 or -errno, and 0 as well
 * when the address is to be tried until it can be had (fpm->conf.insists).
 */
int listen_begin(struct fpm *fpm);
void listen_end(struct fpm *fpm);

/* Accept a client that is let in. Returns its socket, or -1: there is none (now). */
int listen_accept(struct fpm *fpm, struct sockaddr_storage *peer);

/* Refuse connections until rib has caught up. */
void listen_pause(struct fpm *fpm);

/* --- hold.c                                                                   [fpm] */

/* Go on with a hold that the daemon before began. */
void fpm_hold_begin(struct fpm *fpm);
void fpm_hold_end(struct fpm *fpm);

/*
 * Choose the zebra to hold: that of this session, else the last one; a hold that is on keeps
 * its own. Returns false when zebra was never heard, and who asks knows (ui).
 */
bool fpm_hold_choose(struct fpm *fpm);

/* That zebra is not let in again for so many seconds (QUERY_HOLD); 0: no longer. */
void fpm_hold_set(struct fpm *fpm, unsigned int seconds);

/*
 * May whoever speaks now not be heard (QUERY_HOLD)? True as well while it has not told yet which
 * zebra it is.
 */
static inline bool
fpm_hold_is_on(const struct fpm *fpm)
{
	return ev_is_active(&fpm->held) &&
	       (fpm->tally.nl_pid == 0 || fpm->tally.nl_pid == fpm->held_pid);
}

/* --- session.c                                                                [fpm] */

/* Take over the connected, non-blocking socket `fd`. Returns 0 or -ENOMEM (fd is closed). */
int session_open(struct fpm *fpm, int fd, const struct sockaddr_storage *peer);

/* Acknowledge routes, if the session that they came by is still there. */
void session_acknowledge(struct fpm *fpm, const struct msg_feedback *m);

/* End it: tell rib, free all. Nothing when there is none. */
void session_close(struct fpm *fpm, enum session_end why, int err);

#endif
