/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rib: routes, next hops and groups; the only writer of the tries and the group table.
 */
#ifndef RIB_RIB_H
#define RIB_RIB_H

#include "base/worker.h"

struct fib;
struct poptrie;
struct poptrie_retired;
struct table_limits;

struct rib_conf {
	struct fib *fib;
	struct worker *neigh; /* MSG_ADJ_WATCH, _UNWATCH go there */
	struct worker *fpm;   /* MSG_FEEDBACK goes there */
	bool feedback;        /* tell zebra what became of its routes */
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	bool checkpoint;   /* somebody keeps it: have one */
	int checkpoint_fd; /* of the last daemon (taken over); -1: none */
	bool successor;    /* that one still forwards: without memory for it do not start */
	unsigned int checkpoint_max_age_s; /* 0: none is read or kept */
	uint64_t netns_id;                 /* what interface numbers refer to */
	const struct table_limits *limits; /* of tables; outlives it. NULL: the usual */
};

/*
 * Fill `w` with name, role and callbacks; the thread starts with worker_start(). The FIB
 * may be given later than the setup (it needs rib_retire first) but before the start.
 * Returns 0 or -ENOMEM.                                                          [main]
 */
int rib_setup(struct worker *w, const struct rib_conf *conf);
void rib_set_fib(struct worker *w, struct fib *fib);

/* Our checkpoint, rib's own; -1: none. After worker_start().                     [main] */
int rib_checkpoint_fd(const struct worker *w);

/* Of the last daemon: how many starts have begun to read it; 0 where there is no telling. [main] */
unsigned int rib_checkpoint_attempts(int fd);

/* A start that found `tries` has ended, and has not crashed by it: if it read it, it did not. [main] */
void rib_checkpoint_reset_attempts(int fd, unsigned int attempts);

/*
 * Behind all that zebra has said (fpm has ended): that session is over, nothing is swept for it,
 * and the checkpoint stands still for the one who reads it; then *done is true.  [main]
 */
void rib_quiesce(struct worker *w, _Atomic bool *done);

/* Has there been no memory for a route since the start, be it in the RIB or the FIB? [any thread] */
bool rib_had_nomem(const struct worker *w);

/* Cancel rib_quiesce(): resume checkpoint updates and message processing.        [main] */
void rib_resume(struct worker *w);

/* Retire hook of both tries; ctx is the worker. */
void rib_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r);

/* After worker_stop(): free all. */
void rib_teardown(struct worker *w);

#endif
