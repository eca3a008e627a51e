/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdstore: the descriptors that outlive the daemon in the service manager's descriptor
 * store (base/sd_notify.h): the TAPs, which keep their carrier this way, and the checkpoint
 * of zebra's routes (rib/checkpoint.h). A successor inherits the same list.         [main]
 */
#ifndef RESTART_FDSTORE_H
#define RESTART_FDSTORE_H

#include "base/sd_notify.h"
#include "base/worker.h"
#include "config/config.h"
#include "port/port.h"

#define FDSTORE_THREADS 49u /* descriptors of threads, at most */
#define FDSTORE_MAX             \
	(CONFIG_PORTS_MAX + 3 + \
	 FDSTORE_THREADS) /* TAPs, checkpoint, sockets to fpm-nics and a successor */

/*
 * Tell the checks of the configuration which TAPs this daemon has: the TAPs of the ports in
 * `port`, of ports that wait, and inherited TAPs. Call this before the configuration is
 * read.
 *                                                                                    [main]
 */
void fdstore_begin(const struct port *port, unsigned int n_port);

/*
 * List the descriptors of the TAPs, kept TAPs included, and of the checkpoint (-1: none).
 * Returns their number.
 */
unsigned int fdstore_list(const struct port *port, unsigned int n_port, int checkpoint_fd,
			  struct named_fd *into);

/*
 * Take the inherited checkpoint of the previous daemon; -1: none. `alive_ms` returns when
 * the writer of a checkpoint last ran. If there are two checkpoints, take the checkpoint
 * whose writer ran last.                                                             [main]
 */
int fdstore_take_checkpoint(uint64_t (*alive_ms)(int fd));

/*
 * Take the inherited descriptor of port `tap` of `conf`; the caller closes it. If the TAP
 * of a removed port was renamed to `tap`, take its descriptor. Returns -1 if there is none.
 */
int fdstore_take_tap(const struct config *conf, const char *tap);

/*
 * Keep the TAP of the previous daemon for a port that cannot be opened yet.
 * fdstore_keep_tap() takes the inherited descriptor of port `tap` of `conf`, if there is
 * one. fdstore_kept_tap() returns a copy of a kept descriptor (-1: none), and
 * fdstore_use_kept_tap() closes the original when the port is open.
 * fdstore_keep_tap_again() takes ownership of the descriptor of a port that was open and
 * waits again. fdstore_kept_carriers_off() turns off the carrier of all kept TAPs.
 * fdstore_remove_tap() removes a kept TAP.                              [main, then manage]
 */
void fdstore_keep_tap(const struct config *conf, const char *tap);
void fdstore_keep_tap_again(const char *tap, int fd);
int fdstore_kept_tap(const char *tap);
void fdstore_use_kept_tap(const char *tap);
void fdstore_kept_carriers_off(void);

/*
 * Store the descriptors of all TAPs and of the checkpoint (-1: none) in place of the
 * descriptors of the previous daemon, and remove inherited descriptors that were not taken.
 * Call it after forwarding has begun.
 */
void fdstore_put_all(const struct port *port, unsigned int n_port, int checkpoint_fd);

/*
 * Store the descriptor of a port's TAP in place of an older descriptor.     [main, manage]
 */
void fdstore_put_tap(const struct port *port);

/*
 * Remove the descriptor of a TAP from the store, and delete a TAP that is kept for the
 * port. Returns when the service manager has closed the descriptor, or after SD_SEND_MS
 * with a line in the log.
 * [manage]
 */
void fdstore_remove_tap(const char *tap);

#endif
