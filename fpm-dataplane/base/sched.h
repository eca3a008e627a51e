/* SPDX-License-Identifier: BSD-3-Clause */
/* sched: how soon the scheduler lets the calling thread run when it wakes up: sched(7). */
#ifndef BASE_SCHED_H
#define BASE_SCHED_H

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
 * Permit sched_real_time() to this process and its children, if the process may do so
 * (CAP_SYS_RESOURCE): raise RLIMIT_RTPRIO to the lowest real-time priority. Call before
 * capabilities are dropped.                                                         [main]
 */
void sched_real_time_permit(void);

#endif
