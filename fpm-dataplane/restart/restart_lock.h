/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restart_lock: what runs is being changed, or another daemon is about to take our place,
 * never both: a successor has the configuration's file and the TAPs of the moment in which
 * it was begun, and would not know of what was changed since.
 */
#ifndef RESTART_RESTART_LOCK_H
#define RESTART_RESTART_LOCK_H

#include <stdbool.h>

/* What who asks for one is told. */
#define CHANGE_BARRED \
	"refused, nothing changed: a restart is under way; ask again when it is over"

/*
 * May a change be made now? Then none is barred before change_end(); else CHANGE_BARRED, and
 * `later` has it remembered until change_unbar().                              [manage]
 */
bool change_begin(bool later);
void change_end(void);

/* A restart begins, unless a change is being made: false then.                   [main] */
bool change_bar(void);

/* There was none. Returns whether a change was to be remembered meanwhile.       [main] */
bool change_unbar(void);

#endif
