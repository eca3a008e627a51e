/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: the internals of the fpm thread. Private to fpm/ and its tests.
 *
 *   socket -> session.c (bytes, frames) -> decode.c (events) -> queue.c (batches) -> rib
 *      ^---- feedback.c (acknowledgements) <-------------------------------------------'
 *                 ^ server.c: one client at a time
 *                     listen.c: the socket and its accept, peer.c: which clients may connect,
 *                     hold.c: refuses the zebra of a hold
 *
 * server.c calls session.c, and both call the other files. No file calls back.
 */
#ifndef FPM_IMPL_H
#define FPM_IMPL_H

#include <ev.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fpm_event.h"
#include "base/log.h"
#include "fpm/decode.h"
#include "fpm/fpm.h"

/* Room for the largest incomplete frame, and for a large read after it. */
#define SESSION_READ_BYTES   (512u << 10)
#define SESSION_BUFFER_BYTES (SESSION_READ_BYTES + FPM_FRAME_MAX + 1)

/*
 * Events that will be sent to rib, and the account of the events that rib has not handled
 * yet.
 */
struct fpm_queue {
	struct worker *rib;
	uint64_t limit_bytes;
	bool warned; /* the depth was above 75 % of the limit; cleared below half of it */
	struct log_limit warn_log;
	unsigned int n;      /* events in `ev` */
	uint32_t hops_bytes; /* of the hops that these events own */
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
	SESSION_ACK_LIMIT, /* zebra does not read its acknowledgements */
	SESSION_REPLAY,    /* an operator or rib requested a replay */
	SESSION_HOLD,      /* FRR will be restarted: rib treats zebra as ended */
	SESSION_STOP,      /* the daemon stops: rib gets no message */
};

struct fpm_session {
	int fd; /* -1: no client is connected */
	ev_io io;
	ev_timer silence; /* announces a session that has sent nothing */
	uint8_t *buf;     /* SESSION_BUFFER_BYTES, 4-aligned; `len` octets in use */
	size_t len;
	ev_io writable; /* active while `out` holds acknowledgements */
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
	int listen_fd;            /* -1 while rib is too far behind to accept */
	bool error_logged;        /* the log has the failure to listen */
	bool logged_listening;    /* the state in the last log line */
	unsigned int n_pauses;    /* number of pauses since that line */
	uint16_t port;            /* the bound port: tests configure port 0 */
	struct mnl_socket *peers; /* sock_diag socket for peer_uid(); NULL: not open */
	bool checks_users;        /* users of peers are checked */
	bool no_sock_diag;        /* the kernel cannot report users of peers */
	bool all_users_mapped;    /* this user namespace maps all user ids */
	ev_io accept;
	ev_timer relisten; /* while paused: tries to listen, logs the state */
	struct fpm_session session;
	struct fpm_queue queue;
	struct fpm_decoded decoded;
	ev_timer hold;          /* active: the zebra with port id `hold_pid` is refused */
	uint32_t hold_pid;      /* not 0 while `hold` is active */
	uint64_t hold_until_ms; /* CLOCK_BOOTTIME; 0: no hold */
	struct log_limit bad_frame_log, malformed_log, accept_log, memory_log, address_log,
		user_log, closed_log, foreign_log, up_log, down_log, listen_log[2];
};

/*
 * Add to a counter of fpm_status. This thread is its only writer, so no atomic add is
 * needed.
 */
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
 * Make room for a frame of `len` octets, so that the events of one frame are sent in one
 * batch. rib commits between batches, so DEL and NEW of one prefix must stay together.
 * Returns 0 or -ENOMEM.
 */
int queue_begin_frame(struct fpm_queue *q, size_t len);

/* Add one event; own ev->hops also on failure. Returns 0 or -ENOMEM. */
int queue_put(struct fpm_queue *q, const struct fpm_event *ev);

/* Add FPM_SESSION_UP or _DOWN. Unlike routes, these are never dropped. */
void queue_put_session(struct fpm_queue *q, enum fpm_event_kind kind, uint32_t gen,
		       uint32_t nl_pid);

/* Add FPM_ZEBRA. It is never dropped either. */
void queue_put_zebra(struct fpm_queue *q, uint32_t nl_pid, uint32_t held_until_s);

/*
 * Send the collected events to rib and account for them. Returns 0 or -ENOMEM: then the
 * routes are lost (the session must end, the next one replays them) and session events stay
 * queued.
 */
int queue_flush(struct fpm_queue *q);

bool queue_over_limit(const struct fpm_queue *q);
bool queue_over_half(const struct fpm_queue *q);

/* Free the events that were not sent. */
void queue_drop(struct fpm_queue *q);

/* --- feedback.c                                                               [fpm] */

/*
 * Queue acknowledgements of routes. Returns 0, or -ENOMEM if memory is exhausted or if too
 * many octets wait because the client does not read.
 */
int feedback_add(struct fpm *fpm, const struct msg_feedback *m);

/* Send queued acknowledgements until the socket is full. Returns 0 or -errno of send(2). */
int feedback_push(struct fpm_session *s);

void feedback_free(struct fpm_session *s);

/* --- peer.c                                                                   [fpm] */

struct mnl_socket;

/*
 * Open a sock_diag socket in `netns` to look up the users of peers of the listening socket
 * at `listening`. Returns 0, -EOPNOTSUPP if the kernel cannot report them, or another
 * -errno if a resource is scarce.
 */
int peer_begin(struct mnl_socket **nl, const char *netns,
	       const struct sockaddr_storage *listening);
void peer_end(struct mnl_socket **nl);

/* Open fpm->peers if users of peers are checked. Returns 0 or -errno. */
int peer_query_begin(struct fpm *fpm);

/*
 * Get the user who created the socket `peer` that is connected to `own`, both on this host.
 * Returns 0 or -errno: the socket is closed, or the kernel does not know its user.
 */
int peer_uid(struct mnl_socket *nl, const struct sockaddr_storage *peer,
	     const struct sockaddr_storage *own, uid_t *uid);

/*
 * Return true if this user namespace maps all user ids. If not, PEER_OVERFLOW_UID also
 * stands for all users of other user namespaces.
 */
bool peer_users_all_mapped(void);
#define PEER_OVERFLOW_UID 65534u /* default of /proc/sys/kernel/overflowuid */

/*
 * Return true if this peer may be zebra. A peer whose source and destination address are
 * equal is a program of this host, because the kernel drops packets with our source address
 * that arrive from another host.
 */
bool peer_is_allowed(struct fpm *fpm, int fd, const struct sockaddr_storage *peer);

/* Format as "192.0.2.1:2620" or "[2001:db8::1]:2620". */
void peer_address(char *out, size_t size, const struct sockaddr_storage *addr);

/* --- listen.c                                                                 [fpm] */

/*
 * Listen at fpm->conf.listen; fpm->accept reports clients. Returns 0 or -errno. If
 * fpm->conf.retry_listen is set, an error (for example, the address is in use) is logged
 * and the function returns 0: the thread retries until it listens.
 */
int listen_begin(struct fpm *fpm);
void listen_end(struct fpm *fpm);

/* Accept a client that may connect. Returns its socket, or -1 if there is none. */
int listen_accept(struct fpm *fpm, struct sockaddr_storage *peer);

/* Refuse connections until rib has handled enough of the queue. */
void listen_pause(struct fpm *fpm);

/* --- hold.c                                                                   [fpm] */

/* Resume a hold that the predecessor began. */
void fpm_hold_begin(struct fpm *fpm);
void fpm_hold_end(struct fpm *fpm);

/*
 * Select the zebra to hold: the zebra of this session, or else of the last session. A hold
 * in force keeps its zebra. Returns false if no zebra was ever seen; ui checks that before
 * it sends the query.
 */
bool fpm_hold_select(struct fpm *fpm);

/* Refuse the selected zebra for `seconds` (QUERY_HOLD); 0 ends the hold. */
void fpm_hold_set(struct fpm *fpm, unsigned int seconds);

/*
 * Return true if the events of this session must be ignored (QUERY_HOLD): its client is the
 * zebra of the hold, or it has not sent its port id yet.
 */
static inline bool
fpm_hold_is_on(const struct fpm *fpm)
{
	return ev_is_active(&fpm->hold) &&
	       (fpm->decoded.nl_pid == 0 || fpm->decoded.nl_pid == fpm->hold_pid);
}

/* --- session.c                                                                [fpm] */

/*
 * Take over the connected, non-blocking socket `fd`. Returns 0 or -ENOMEM (fd is closed).
 */
int session_open(struct fpm *fpm, int fd, const struct sockaddr_storage *peer);

/* Send acknowledgements to zebra, if the session by which the routes came still exists. */
void session_acknowledge(struct fpm *fpm, const struct msg_feedback *m);

/* Close the session: notify rib, free all memory. No effect if there is no session. */
void session_close(struct fpm *fpm, enum session_end why, int err);

#endif
