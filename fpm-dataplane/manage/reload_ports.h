/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload_ports: change the ports from one configuration to another while packets pass.
 *                                                                              [manage]
 */
#ifndef MANAGE_RELOAD_PORTS_H
#define MANAGE_RELOAD_PORTS_H

#include "config/config.h"
#include "manage/hotplug.h"

/* Beginning of a refusal after which nothing has changed. */
#define REFUSED "refused, nothing changed: "

/*
 * Change the ports of `running` to the ports of `next`. Returns 0, or -errno with a
 * sentence in `why`. On failure all ports, and the forwarders of their queues, are as
 * before, or the sentence names the port that is lost: the configuration has it, but its
 * device could not be opened again.
 */
int reload_ports(struct hotplug *h, const struct config *running, const struct config *next,
		 char *why, unsigned int why_size);

/*
 * Open the device of a port again, with the same TAP if it has one. Returns 0, or -errno
 * with a sentence in `why`: -ENOTSUP with keep-nics.
 */
int reload_port_again(struct hotplug *h, const struct config *running,
		      const struct config_port *cp, char *why, unsigned int why_size);

#endif
