/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd: fpm-nics, the process that keeps NICs open for the daemon over planned restarts
 * (`keep-nics: true`). port/nicd_client.h has the protocol between daemon and fpm-nics. The
 * daemon starts fpm-nics as `fpm-dataplane --nics`. fpm-nics exits with the last daemon
 * that is connected to it. Until then it runs the program version of its first daemon.
 */
#ifndef NICD_NICD_H
#define NICD_NICD_H

#include <signal.h>
#include <sys/types.h>

#include "config/config.h"

#define NICD_PIDFD_NAME "nics-process" /* fdstore name of the pidfd of fpm-nics */

/*
 * Run fpm-nics. Returns only if the start failed, with the exit code.    [main of fpm-nics]
 */
int nicd_serve(const struct config *conf);

/*
 * Connect to the fpm-nics of the predecessor `old` (0: none), or start a new fpm-nics as
 * argv[0] with the signal mask `start_mask`. First end the fpm-nics of a daemon that
 * crashed. Returns 0, also if the configuration wants no fpm-nics; -ENOMEM if the
 * predecessor has to end first, because its fpm-nics does not fit the configuration or
 * there is too little memory; or another -errno. The reason is in the log.           [main]
 */
int nicd_start(const struct config *conf, char *const argv[], pid_t old,
	       const sigset_t *start_mask);

/* Store the pidfd of fpm-nics in the fdstore, for the start after a crash.        [main] */
void nicd_store_pidfd(void);

/*
 * Exit if the daemon shares DPDK with its predecessor, which has died or was killed. The
 * predecessor may have held locks and buffers of the shared memory. The next daemon starts
 * another fpm-nics.                                                                  [main]
 */
void nicd_abandon(void);

/* Close the devices and end fpm-nics. No daemon uses it any longer.               [main] */
void nicd_stop(void);

#endif
