/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports: those that the configuration names, all of them: opened at a start, closed at an end.
 * Those that come and go in between are manage/hotplug.h's.                       [main]
 */
#ifndef MANAGE_PORTS_H
#define MANAGE_PORTS_H

#include <stdbool.h>

#include "config/config.h"
#include "manage/hotplug.h"
#include "port/port.h"

/*
 * Open all by hotplug_open(), with the TAPs of the last daemon: in slots 0, 1, ... if `h` has
 * opened none before. Those that were opened before one failed stay open; *n counts them.
 * Returns 0 or -errno, after a line in the log. For each the service manager is told that the
 * start goes on (sd_extend_timeout()).
 */
int ports_open(struct hotplug *h, const struct config *conf, unsigned int *n);

/*
 * Close all that are there. TAPs outlive a daemon that ran; a start that `failed` takes away
 * again what it made.
 */
void ports_close(struct port *port, bool failed);

/* Can two daemons have all of them open at a time: those of a file, or those that are there? */
bool ports_could_be_shared(const struct config *conf);
bool ports_are_shared(const struct port *port);

#endif
