/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_options: options of a port's device that pass unchanged from the configuration file to
 * the driver. struct config_port and struct port_conf contain them, so no code copies them one
 * by one.
 */
#ifndef BASE_PORT_OPTIONS_H
#define BASE_PORT_OPTIONS_H

#include <stdbool.h>

struct port_options {
	bool vlan_off;  /* VLAN tags are never the NIC's to take off and put in */
	bool cksum_off; /* IPv4 header checksums are never the NIC's to verify */
};

#endif
