/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * freeze: what a successor is to know of zebra rests (succeed.h): nobody is listened to any
 * more, and rib has digested what was said.                                       [main]
 */
#ifndef FREEZE_H
#define FREEZE_H

#include "base/worker.h"

/* In the order in which they stop, rib last, which goes on. */
enum { FREEZE_UI, FREEZE_MANAGE, FREEZE_FPM, FREEZE_RIB, FREEZE_WORKERS };

/* Is a port being changed? A device may take minutes, and manage with it. */
bool freeze_must_wait(const struct worker *manage);

/*
 * Returns 0, or, when freeze_undo() is due: -EBUSY: freeze_must_wait(), -ETIMEDOUT: one of them
 * does not come to an end, which the log names.
 */
int freeze_begin(struct worker *const w[FREEZE_WORKERS]);

/* There is no successor: zebra and people are listened to again. Returns 0 or -errno. */
int freeze_undo(struct worker *const w[FREEZE_WORKERS]);

#endif
