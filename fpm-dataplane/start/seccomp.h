/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls that neither the daemon nor a driver of DPDK has any use for, refused by the
 * kernel (seccomp(2)). It is a list of what is refused, for nobody knows all that drivers call;
 * where systemd starts the daemon, the unit's list of what is allowed comes on top.
 */
#ifndef START_SECCOMP_H
#define START_SECCOMP_H

/*
 * Refuse them from now on, for good, in all threads to come and in a successor: EPERM. Asks
 * for PR_SET_NO_NEW_PRIVS before. Returns 0 or -errno; done already is fine.       [main]
 */
int syscalls_refuse(void);

#endif
