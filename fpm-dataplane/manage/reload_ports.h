/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload_ports: the ports of one configuration become those of another while packets pass.
 * All is [manage].
 */
#ifndef MANAGE_RELOAD_PORTS_H
#define MANAGE_RELOAD_PORTS_H

#include "config/config.h"
#include "manage/hotplug.h"

/* Begins a refusal that left all as it was. */
#define REFUSED "refused, nothing changed: "

/*
 * From the ports of `running` to those of `next`. Returns 0, or -errno with a sentence in
 * `why`; then all is as before, who serves which queue included, or the sentence says which
 * port is lost: its device did not come back, it is configured and not there.
 */
int manage_ports(struct hotplug *h, const struct config *running, const struct config *next,
		 char *why, unsigned int why_size);

#endif
