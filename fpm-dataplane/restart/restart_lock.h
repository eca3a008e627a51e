/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restart_lock: a change of the running daemon and a restart exclude each other. A
 * successor uses the configuration file and the TAPs as they were at its start, so it would
 * miss a later change.
 */
#ifndef RESTART_RESTART_LOCK_H
#define RESTART_RESTART_LOCK_H

#include <stdbool.h>

/* The error for a client whose change is refused during a restart. */
#define CHANGE_REFUSED \
	"refused, nothing changed: a restart is under way; ask again when it is over"

/*
 * Begin a change. Returns true: no restart begins before change_unlock(). Returns false
 * during a restart: the caller replies CHANGE_REFUSED; with `later`, restart_unlock()
 * reports the refused change. [manage]
 */
bool change_lock(bool later);
void change_unlock(void);

/* Begin a restart. Returns false while a change is being made.                [main] */
bool restart_lock(void);

/*
 * End a restart that failed. Returns true if a change was refused `later` meanwhile.
 *                                                                               [main]
 */
bool restart_unlock(void);

#endif
