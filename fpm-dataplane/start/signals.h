/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals: what may come to the process, and who takes it.
 */
#ifndef START_SIGNALS_H
#define START_SIGNALS_H

#include <signal.h>

/*
 * Block those that main waits for, which are in *waited then; before any thread is born, for all
 * inherit it. *born_with is as it was, for a successor.                           [main]
 */
void signals_begin(sigset_t *waited, sigset_t *born_with);

#endif
