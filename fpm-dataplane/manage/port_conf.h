/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_conf: convert the configuration of a port (config/) to the values for port_open()
 * (port/).
 */
#ifndef MANAGE_PORT_CONF_H
#define MANAGE_PORT_CONF_H

#include "config/config.h"
#include "port/port.h"

/*
 * Return the values that port_open() needs for port `cp` of `conf`, with a transmit queue
 * for each of `n_fwd` forwarders. (conf->n_core is 0 with `cores: auto`.) The result has no
 * inherited TAP and no place yet.                                              [any thread]
 */
struct port_conf port_conf_from_config(const struct config *conf,
				       const struct config_port *cp, unsigned int n_fwd);

#endif
