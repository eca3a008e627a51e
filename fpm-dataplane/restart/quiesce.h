/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiesce: what a successor is to know of zebra rests (restart/handover.h): nobody is
 * listened to any more, and rib has digested what was said.                      [main]
 */
#ifndef RESTART_QUIESCE_H
#define RESTART_QUIESCE_H

#include "base/worker.h"

/* In the order in which they stop, rib last, which goes on. */
enum { FREEZE_UI, FREEZE_MANAGE, FREEZE_FPM, FREEZE_RIB, FREEZE_WORKERS };

/* Before the others: the workers, and rib_quiesce() and rib_resume() of rib/rib.h. */
void freeze_whom(struct worker *const w[FREEZE_WORKERS],
		 void (*rib_quiesce)(struct worker *, _Atomic bool *done),
		 void (*rib_resume)(struct worker *));

/*
 * Changes are barred (restart/restart_lock.h): manage has nothing in hand. Returns 0, or
 * -ETIMEDOUT: one of them does not come to an end, which the log names.
 */
int freeze_begin(void);

/* There is no successor: zebra and people are listened to again. Returns 0 or -errno. */
int freeze_undo(void);

#endif
