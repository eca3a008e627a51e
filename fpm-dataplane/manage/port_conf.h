/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_conf: a port as the configuration has it becomes a port as port/ opens it.
 */
#ifndef MANAGE_PORT_CONF_H
#define MANAGE_PORT_CONF_H

#include "config/config.h"
#include "port/port.h"

/*
 * Make what port_open() needs of port `cp` of `conf`, with a transmit queue for each of `n_fwd`
 * forwarders (conf->n_core is 0 if the file leaves the cores to us). It has no inherited TAP
 * and no place yet.                                              [any thread, no side effects]
 */
struct port_conf port_conf_from_config(const struct config *conf,
				       const struct config_port *cp, unsigned int n_fwd);

#endif
