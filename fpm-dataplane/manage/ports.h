/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports: open all ports of the configuration at the start, and close all ports at the end.
 * manage/hotplug.h adds and removes ports in between.                             [main]
 */
#ifndef MANAGE_PORTS_H
#define MANAGE_PORTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "manage/hotplug.h"
#include "port/port.h"

/*
 * Open all ports with hotplug_open(), with the TAPs of the previous daemon. They get the
 * slots 0, 1, ... if `h` has opened no port before. If a port fails, the ports that were
 * opened before it stay open; *n counts the open ports. Before each port the function
 * extends the start timeout of the service manager (sd_start_step()). Returns 0, or -errno
 * after a line in the log.
 */
int ports_open(struct hotplug *h, const struct config *conf, unsigned int *n);

/*
 * Claims of the kernel interfaces behind ports (port/claim.h). ports_allow() lets the
 * predecessor (0: none) keep its claims while it runs. ports_claim() claims the interfaces
 * when the predecessor has ended. ports_answer() answers other processes, once a second.
 * ports_release() releases the claims for a successor.
 */
void ports_allow(pid_t predecessor);
void ports_claim(struct port *port);
void ports_answer(struct port *port);
void ports_release(struct port *port);

/*
 * Close all ports. The TAPs stay. If the start has `failed`, delete the TAPs that it
 * created.
 */
void ports_close(struct port *port, bool failed);

/*
 * Return true if two daemons can have all ports open at once. ports_could_be_shared()
 * checks the ports of a configuration, ports_are_shared() checks the open ports.
 */
bool ports_could_be_shared(const struct config *conf);
bool ports_are_shared(const struct port *port);

#endif
