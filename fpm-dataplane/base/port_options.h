/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_options: options of a port's device that pass unchanged from the configuration file
 * to the driver. struct config_port and struct port_conf contain them, so no code copies
 * them one by one.
 */
#ifndef BASE_PORT_OPTIONS_H
#define BASE_PORT_OPTIONS_H

#include <stdbool.h>

struct port_options {
	bool vlan_off;  /* the NIC must not strip or insert VLAN tags */
	bool cksum_off; /* the NIC must not verify IPv4 header checksums */
};

#endif
