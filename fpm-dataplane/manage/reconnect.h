/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect: open devices again that wait for another program. One kind is a memif client
 * whose server was restarted, or was started after the daemon: DPDK's client connects only
 * when the device is started. The other kind is a device on a kernel interface that was
 * deleted and made again: AF_PACKET does not follow the name.
 * [manage]
 */
#ifndef MANAGE_RECONNECT_H
#define MANAGE_RECONNECT_H

#include <ev.h>

#include "config/config.h"
#include "manage/hotplug.h"

struct reconnect {
	struct hotplug *h;
	const struct config *running;
	struct ev_timer timer;
	uint32_t turn; /* runs of the timer so far */
	struct reconnect_of {
		/* name of a port of `running`; else the record is free */
		char tap[IFNAMSIZ];
		char device[256];
		uint32_t wait;       /* turns between attempts; 0: no attempt yet */
		uint32_t not_before; /* turn of the next attempt */
	} port[CONFIG_PORTS_MAX];
};

/* Start to check the ports of `running` once a second. */
void reconnect_begin(struct reconnect *r, struct ev_loop *loop, struct hotplug *h,
		     const struct config *running);
void reconnect_end(struct reconnect *r, struct ev_loop *loop);

#endif
