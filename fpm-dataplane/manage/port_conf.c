/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy the configuration of a port to the values that port_open() needs. No other file does
 * this.
 */
#include "manage/port_conf.h"

#include <stdio.h>

struct port_conf
port_conf_from_config(const struct config *conf, const struct config_port *cp,
		      unsigned int n_fwd)
{
	struct port_conf pc = {.tap_fd = -1,
			       .mtu_bytes = cp->mtu_bytes,
			       .n_rxq = config_port_queues(cp),
			       .n_txq = n_fwd,
			       .interrupts = !conf->poll_always,
			       .options = cp->options};

	snprintf(pc.tap, sizeof(pc.tap), "%s", cp->tap);
	snprintf(pc.netns, sizeof(pc.netns), "%s", conf->control_netns);
	snprintf(pc.device, sizeof(pc.device), "%s", cp->device);
	return pc;
}
