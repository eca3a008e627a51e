/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: which connections to bfdd to open and to close next, so that the daemon gets each
 * session of bfdd with its interface and its newest values. Pure: the caller has the
 * sockets.
 *
 * Up to FRR 10.7.1 bfdd needs help with that (doc/bfd.md, sections 3 and 4):
 * - Data that bfdd writes to one connection in one step is lost beyond 8 KiB. A new
 *   connection gets at most PLAN_ROOM sessions; the others wait for further connections.
 * - A session that bfdd sends to a new connection has no interface (from FRR 10.3 on).
 * - bfdd hands the sessions of a connection that ends to the other connections, oldest
 *   first, in one step, with interfaces and all values.
 *
 * So the plan opens connections until one gets no session, then opens as many empty
 * connections as all sessions need, and then closes the connections whose sessions arrived
 * at the start or may have missed a message.
 *
 * A step of bfdd is over when bfdd has answered two echo requests. The first answer may
 * come in the middle of the events that bfdd had found; the second comes after all of them.
 */
#ifndef BFD_PLAN_H
#define BFD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_ROOM 58u /* sessions that one connection gets in one step */

/* A connection to bfdd. The caller may change only `connecting` and `n`. */
struct plan_conn {
	bool open;
	bool connecting; /* `open`, and not established yet */
	uint32_t n;      /* sessions: the caller counts them before plan_next() */
	bool settled;    /* bfdd has sent all sessions that it gives to a new connection */
	/*
	 * The daemon may lack an interface or the last change of sessions of the
	 * connection.
	 */
	bool stale;
	/* The connection may have more sessions than are known. It is then stale, too. */
	bool doubtful;
	uint8_t asked; /* 1 + ticks since an echo request of this `age`; 0: none pending */
	uint8_t answers; /* replies to echo requests of this `age` */
	/*
	 * number in the echo request; a new one whenever bfdd may have more messages to
	 * send
	 */
	uint32_t age;
	uint32_t burst; /* messages that bfdd sent over it in the present step */
	uint32_t born;  /* plan.order of the event that opened it */
};

struct plan {
	struct plan_conn *conn;
	unsigned int n_conn;
	uint32_t order;  /* number of the last event; events are numbered in order */
	uint32_t missed; /* number of the last event in which bfdd may have lost messages */
	bool handing;    /* bfdd may still hand over sessions of a connection that ended */
	bool due;        /* something has changed: call plan_next() */
};

enum plan_step {
	PLAN_REST,  /* nothing to do */
	PLAN_ASK,   /* send an echo request by connection `at`, with its `age` */
	PLAN_WAIT,  /* wait for connections, or for answers to echo requests */
	PLAN_OPEN,  /* open connection `at` */
	PLAN_CLOSE, /* close connection `at` */
	PLAN_FULL,  /* more connections are needed than there may be */
};

/* Note that connection `at` is opened. `is_old`: the previous daemon had it already. */
void plan_opened(struct plan *p, unsigned int at, bool connecting, bool is_old);
/*
 * Note that sessions of the previous daemon are lost: its connections may have more
 * sessions than are known.
 */
void plan_doubt(struct plan *p);
/*
 * Note that connection `at` has ended, on either side. The caller has counted its sessions.
 */
void plan_ended(struct plan *p, unsigned int at);
/* Note that bfdd has added, changed or deleted a session over connection `at`. */
void plan_heard(struct plan *p, unsigned int at);
/*
 * Note that a second has passed. After ten seconds without an answer, the echo request is
 * repeated.
 */
void plan_tick(struct plan *p);
/* Note that bfdd has answered an echo request with this age. */
void plan_answered(struct plan *p, unsigned int at, uint32_t age);
/*
 * Return true if bfdd has answered all echo requests of this connection. Then the caller
 * repeats its reports and adds an echo request, so a bfdd that does not read gets no
 * further messages.
 */
bool plan_repeats(struct plan *p, unsigned int at);

/* Return true if a connection is established. */
bool plan_is_connected(const struct plan *p);

/* Return the next action. *at: its connection. */
enum plan_step plan_next(struct plan *p, unsigned int *at);

#endif
