/* SPDX-License-Identifier: BSD-3-Clause */
/* privileges: drop privileges that the daemon does not need. */
#ifndef START_PRIVILEGES_H
#define START_PRIVILEGES_H

#include <stdbool.h>

/*
 * Permanently drop, in this and all later threads: each capability that security.md does
 * not name, the ability to gain capabilities by execve(2) (PR_SET_NO_NEW_PRIVS), and system
 * calls that are not needed (start/seccomp.h). Call before the first thread is created.
 * Failures are logged. `real_time`: keep CAP_SYS_NICE if the limit RLIMIT_RTPRIO does not
 * permit a real-time priority.                                                      [main]
 *
 * Return 0, or -errno if the process still has more capabilities than it should. A kernel
 * that cannot refuse system calls (seccomp(2)) is not an error.
 */
int privilege_drop(bool real_time);

#endif
