/* SPDX-License-Identifier: BSD-3-Clause */
/* signals: the signals of the process. main handles all of them. */
#ifndef START_SIGNALS_H
#define START_SIGNALS_H

#include <signal.h>

/*
 * Block the signals that main waits for, and write them to *waited. Call before any thread
 * is created, because all threads inherit the mask. *mask_before is the mask before, for a
 * successor. [main]
 */
void signals_begin(sigset_t *waited, sigset_t *mask_before);

#endif
