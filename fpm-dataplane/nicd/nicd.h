/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd: the process that keeps NICs for the daemon over planned restarts (`keep-nics: true`);
 * what the two say to each other is in port/nicd_client.h. The daemon starts it, as
 * `fpm-dataplane
 * --nics`, and it ends with the last daemon that speaks to it. It is the program of its first
 * daemon until then.
 */
#ifndef NICD_NICD_H
#define NICD_NICD_H

#include <signal.h>
#include <sys/types.h>

#include "config/config.h"

#define NICS_LIFE "nics-process" /* of a descriptor of it, kept by the service manager */

/* Be that process. Returns its exit code, of a start that failed. */
int nics_serve(const struct config *conf);

/*
 * The process that keeps the NICs of this daemon: that of the daemon whose place we take (`old`; 0:
 * of none), or a new one, started as argv[0] with the signals of `born_with`; one that a daemon
 * that crashed has left is ended first. Returns 0, without one where none is wanted; -ENOMEM: the
 * old daemon has to end first, its process is not what the configuration wants; or -errno; why is
 * in the log.                                                                     [main]
 */
int nics_begin(const struct config *conf, char *const argv[], pid_t old,
	       const sigset_t *born_with);

/* The service manager keeps a descriptor of the process, for a start after a crash. [main] */
void nics_keep(void);

/*
 * The predecessor died, or had to be killed, while both shared DPDK: of what it had in its hands
 * nobody knows. Where that is so the daemon ends here, to begin anew with another process. [main]
 */
void nics_mistrust(void);

/* No daemon goes on: the devices are closed, the process has ended when this returns. [main] */
void nics_end(void);

#endif
