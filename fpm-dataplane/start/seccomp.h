/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seccomp: refuse system calls that neither the daemon nor a driver of DPDK needs
 * (seccomp(2)). It is a list of refused calls, because the full list of calls that drivers
 * make is unknown. Where systemd starts the daemon, the unit's list of permitted calls also
 * applies.
 */
#ifndef START_SECCOMP_H
#define START_SECCOMP_H

/*
 * Permanently refuse the calls, most with EPERM, in this and all later threads and in a
 * successor. PR_SET_NO_NEW_PRIVS must be set before. Return 0 or -errno; a filter that is
 * already present is not an error. [main]
 */
int syscalls_refuse(void);

#endif
