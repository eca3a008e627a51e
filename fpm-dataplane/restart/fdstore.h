/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdstore: what of the daemon outlives it while a service manager stands behind it
 * (base/sd_notify.h): the TAPs' descriptors, and with them their carrier; the checkpoint of
 * what zebra taught (rib/checkpoint.h).                                          [main]
 */
#ifndef RESTART_FDSTORE_H
#define RESTART_FDSTORE_H

#include "base/sd_notify.h"
#include "base/worker.h"
#include "config/config.h"
#include "port/port.h"

#define KEEP_CHECKPOINT "checkpoint" /* name of its descriptor; not of a TAP: "tap-..." */

#define KEPT_MAX (CONFIG_PORTS_MAX + 3) /* TAPs, checkpoint, ways to NICs and a successor */

/*
 * What a successor goes on with: the TAPs and the checkpoint (-1: none). Returns how many.
 */
unsigned int keep_list(const struct port *port, unsigned int n_port, int checkpoint_fd,
		       struct named_fd *into);

/*
 * The kept descriptor of the port that `conf` calls `tap`, the caller's; -1: none. A port that
 * was given the name that somebody had given to its TAP has that one, too.
 */
int keep_take_tap(const struct config *conf, const char *tap);

/*
 * Forwarding has begun: have all TAPs kept and the checkpoint (-1: none), in place of those of
 * the last daemon, and let go of what was kept and is not wanted any more.
 */
void keep_all(const struct port *port, unsigned int n_port, int checkpoint_fd);

/*
 * Have the TAP of a port kept, in place of the one that was; or none any more, because it is to
 * go.                                                                         [manage]
 */
void keep_tap(const struct port *port);

/* Comes back when it has been let go of, or after SERVICE_TELL_MS, with a line in the log. */
void keep_forget(const char *tap);

#endif
