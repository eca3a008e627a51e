/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes on until somebody ends it ends well then: SIGINT (Ctrl-C) and SIGTERM are a wish,
 * and the exit code tells of what there was.
 */
#ifndef CTL_STOP_H
#define CTL_STOP_H

#include <stdbool.h>

/*
 * From now on. `at_once`: what is under way is cut off; else it is completed first, as an
 * array of JSON has to be, and who cannot wait for that sends the signal again.
 */
void stop_begin(bool at_once);

/*
 * What the daemon has to say on this connection (-1: none any more) ends `at_once`, too,
 * whatever we are doing then: a read or what it read.
 */
void stop_ends(int fd);

/* Has one come? And is nothing to be completed first? */
bool stop_wanted(void);
bool stop_now(void);

/* Wait so long, or until one comes, or nobody reads stdout any more. */
void stop_pause(double seconds);

#endif
