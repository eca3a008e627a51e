/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rib: routes, next hops and groups; the only writer of the tries and the group table.
 */
#ifndef RIB_RIB_H
#define RIB_RIB_H

#include "base/kernel_event.h"
#include "base/worker.h"

struct fib;
struct poptrie;
struct poptrie_retired;
struct table_limits;

struct rib_conf {
	struct fib *fib;
	struct worker *neigh; /* receives MSG_ADJ_WATCH, MSG_ADJ_UNWATCH */
	struct worker *fpm;   /* receives MSG_FEEDBACK, MSG_REPLAY */
	struct worker *rtnl;  /* receives MSG_REPLAY */
	enum routes_from from;
	bool feedback;       /* acknowledge zebra's routes: forwarded, or failed */
	bool through_kernel; /* routes to interfaces that are no ports are PATH_KERNEL */
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	bool checkpoint;   /* write one: a service manager keeps its descriptor */
	int checkpoint_fd; /* of the last daemon (rib closes it); -1: none */
	bool successor;    /* the predecessor still forwards: a failed restore ends rib */
	unsigned int checkpoint_max_age_s; /* 0: neither read nor write a checkpoint */
	uint64_t netns_id;                 /* namespace of the interface numbers */
	const struct table_limits *limits; /* sizes; must outlive rib. NULL: the defaults */
};

/*
 * Fill `w` with name, role and callbacks; worker_start() starts the thread. The FIB needs
 * the hook rib_retire() with `w`, so rib_set_fib() may set it after the setup and before
 * the start. Return 0 or -ENOMEM. [main]
 */
int rib_setup(struct worker *w, const struct rib_conf *conf);
void rib_set_fib(struct worker *w, struct fib *fib);

/*
 * Return the descriptor of the checkpoint, which rib keeps; -1: none. Call it after
 * worker_start(). [main]
 */
int rib_checkpoint_fd(const struct worker *w);

/*
 * Return how many starts have begun to read the last daemon's checkpoint; 0 if it is
 * unreadable. [main]
 */
unsigned int rib_checkpoint_attempts(int fd);

/*
 * Return CLOCK_BOOTTIME in ms when the writer of a checkpoint last ran; 0: unreadable.
 * [main]
 */
uint64_t rib_checkpoint_alive_ms(int fd);

/* Return how many routes the last daemon's checkpoint claims to have. [main] */
uint64_t rib_checkpoint_routes(int fd);

/*
 * Undo the attempt that this process added to the number of attempts of a checkpoint. Call
 * it when the process ends without a crash, because the checkpoint then caused no crash.
 * `attempts`: the number at the start of the process. No effect unless exactly one attempt
 * was added since. [main]
 */
void rib_checkpoint_reset_attempts(int fd, unsigned int attempts);

/*
 * End the session of zebra, after its last event (fpm has ended). This sweeps no routes.
 * From then on rib does not change the checkpoint, because the successor reads it. Then
 * set *done.
 * [main]
 */
void rib_quiesce(struct worker *w, _Atomic bool *done);

/*
 * Return true if a route could not get memory since the start, in the RIB or in the FIB.
 *                                                                             [any thread]
 */
bool rib_had_nomem(const struct worker *w);

/* Cancel rib_quiesce(): let rib write to the checkpoint again.                    [main] */
void rib_resume(struct worker *w);

/* Retire hook of all tries; ctx is the worker. [rib] */
void rib_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r);

/* Free everything, after worker_stop(). [main] */
void rib_teardown(struct worker *w);

#endif
