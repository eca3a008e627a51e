/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiesce: before a successor (restart/handover.h) reads the checkpoint, the daemon stops
 * listening to other processes, and rib processes all events of zebra.              [main]
 */
#ifndef RESTART_QUIESCE_H
#define RESTART_QUIESCE_H

#include "base/worker.h"

/*
 * The workers in the order in which they stop. rib, the last, quiesces but does not stop.
 */
enum quiesce_worker {
	QUIESCE_UI,
	QUIESCE_MANAGE,
	QUIESCE_FPM,
	QUIESCE_RIB,
	QUIESCE_WORKERS
};

struct quiesce {
	struct worker *worker[QUIESCE_WORKERS];
	/* rib_quiesce() and rib_resume() of rib/rib.h. */
	void (*rib_quiesce)(struct worker *rib, _Atomic bool *done);
	void (*rib_resume)(struct worker *rib);
};

/*
 * Stop the workers and quiesce rib. The caller has restart_lock(), so manage is idle.
 * Returns 0, or -ETIMEDOUT when a worker does not stop; the log names it.
 */
int workers_quiesce(const struct quiesce *q);

/* Undo workers_quiesce(): listen to zebra and clients again. Returns 0 or -errno. */
int workers_resume(const struct quiesce *q);

#endif
