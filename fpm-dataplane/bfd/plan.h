/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: which connections to bfdd to open and to close next, so that each session of bfdd
 * comes to the daemon, with its interface and its newest values. Pure: the caller has the
 * sockets.
 *
 * Up to FRR 10.7.1 bfdd needs help with that (doc/bfd.md, sections 3 and 4):
 * - What bfdd writes to one connection in one step is lost beyond 8 KiB. A new connection
 *   gets at most PLAN_ROOM sessions; the others wait for further connections.
 * - A session that comes with a new connection has no interface (from FRR 10.3 on).
 * - bfdd hands the sessions of a connection that ends to the other ones, oldest first, in one
 *   step, with interfaces and all values.
 *
 * So the plan opens connections until one gets nothing, opens as many empty ones as all
 * sessions need, and then closes those whose sessions came at the start or may have missed a
 * message.
 *
 * A step of bfdd is over when bfdd has answered two echo requests. The first answer may come
 * in the middle of the events that bfdd had found; the second comes after all of them.
 */
#ifndef BFD_PLAN_H
#define BFD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_ROOM 58u /* sessions that one connection gets in one step */

/* A connection to bfdd. The plan sets all fields but the first three. */
struct plan_conn {
	bool open;
	bool connecting; /* `open`, and not established yet */
	uint32_t n;      /* sessions: the caller counts them before plan_next() */
	bool settled;    /* bfdd has told what it tells to a new connection */
	bool stale;      /* its sessions may lack an interface, or the last change */
	bool doubtful;   /* it may have more sessions than are known; it is stale, too */
	uint8_t asked; /* 1 + ticks since an echo request of this `age`; 0: none is on its way */
	uint8_t answers; /* to echo requests of this `age` */
	uint32_t age;    /* in the echo request; changes when bfdd may say more */
	uint32_t burst;  /* messages in this step of bfdd */
	uint32_t born;   /* its order among the events */
};

struct plan {
	struct plan_conn *conn;
	unsigned int n_conn;
	uint32_t order;  /* of the last event that has one */
	uint32_t missed; /* order of the last event in which bfdd may have lost messages */
	bool handing;    /* bfdd may still hand over the sessions of one that has ended */
	bool due;        /* something has changed: plan_next() has more to say */
};

enum plan_step {
	PLAN_REST,  /* all is well */
	PLAN_ASK,   /* send an echo request by connection `at`, with its `age` */
	PLAN_WAIT,  /* for answers */
	PLAN_OPEN,  /* open connection `at` */
	PLAN_CLOSE, /* close connection `at` */
	PLAN_FULL,  /* more connections are needed than there may be */
};

/* Connection `at` is opened. `is_old`: the last daemon had it already. */
void plan_opened(struct plan *p, unsigned int at, bool connecting, bool is_old);
/* Some sessions of the last daemon are lost: its connections may have more than are known. */
void plan_doubt(struct plan *p);
/* It has ended, by whomever; the caller has counted its sessions. */
void plan_ended(struct plan *p, unsigned int at);
/* bfdd has added, changed or deleted a session by it. */
void plan_heard(struct plan *p, unsigned int at);
/* A second has passed: after ten without an answer bfdd is asked again. */
void plan_tick(struct plan *p);
/* bfdd has answered an echo request that had this age. */
void plan_answered(struct plan *p, unsigned int at, uint32_t age);
/*
 * Return true if bfdd has answered all by this connection. Then the caller repeats its reports
 * and adds an echo request: a bfdd that reads nothing gets nothing until it has answered.
 */
bool plan_repeats(struct plan *p, unsigned int at);

/* Return what to do next. *at: the connection. */
enum plan_step plan_next(struct plan *p, unsigned int *at);

#endif
