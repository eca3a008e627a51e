/* SPDX-License-Identifier: BSD-3-Clause */
/* sched: how soon the scheduler lets the calling thread run when it wakes up: sched(7). */
#ifndef BASE_SCHED_H
#define BASE_SCHED_H

#include <stdbool.h>

/*
 * Ask for short slices of CPU time. Then a thread that wakes up runs before busy threads of
 * the same priority have used up their slices (EEVDF, Linux 6.12; no effect in earlier
 * versions). It needs no privilege.                                           [any thread]
 */
void sched_short_slice(void);

/*
 * Request the lowest real-time priority: the thread runs before all threads without one.
 * Returns 0 or -errno (-EPERM: RLIMIT_RTPRIO is 0).                           [any thread]
 */
int sched_real_time(void);

/*
 * Give a thread of this process that has no real-time priority the lowest one, until it calls
 * sched_short_slice_again(). Returns 0 or -errno (-EBUSY: it has another policy, chosen by the
 * operator; -EPERM: RLIMIT_RTPRIO is 0 and CAP_SYS_NICE is missing; -ESRCH: it has ended).
 *                                                                             [any thread]
 */
int sched_lend(int tid);

/* Give back the priority of sched_lend(), and ask for short slices.         [any thread] */
void sched_short_slice_again(void);

/*
 * Permit sched_real_time() to this process and its children, if the process may do so
 * (CAP_SYS_RESOURCE): raise RLIMIT_RTPRIO to the lowest real-time priority. Call before
 * capabilities are dropped. Returns true if the limit permits it then.              [main]
 */
bool sched_real_time_permit(void);

#endif
