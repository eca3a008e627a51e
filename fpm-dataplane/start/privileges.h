/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Give up privileges that the daemon does not need.
 */
#ifndef START_PRIVILEGES_H
#define START_PRIVILEGES_H

/*
 * Give up, for good and for all threads to come, every capability but those that
 * security.md names, the way to get any by execve(2) (PR_SET_NO_NEW_PRIVS), and system calls
 * of no use (start/seccomp.h). Before the first thread is born. What cannot be given up is
 * said in the log.                                                                [main]
 *
 * Returns 0 or -errno: it has more capabilities than it should. That system calls are not
 * refused, by a kernel without seccomp(2), is no such failure.
 */
int privilege_drop(void);

#endif
