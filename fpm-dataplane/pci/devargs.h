/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devargs: parse the name of a port's device: the address of a NIC, a bond of NICs, or
 * another device. It does not use DPDK, because fpmctl parses names, too. No side effects;
 * any thread.
 */
#ifndef PCI_DEVARGS_H
#define PCI_DEVARGS_H

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_ADDRESS_STRLEN 16
#define BOND_MEMBERS_MAX      8

/* The values are those of DPDK (rte_eth_bond.h). */
enum bond_mode { BOND_NONE, BOND_ACTIVE_BACKUP = 1, BOND_LACP = 4 };
enum bond_policy { BOND_L2, BOND_L23, BOND_L34 };

/* net_bonding0,mode=4,member=0000:03:00.0,member=0000:03:00.1,xmit_policy=l34 */
struct device_bond {
	enum bond_mode mode;
	enum bond_policy policy; /* with BOND_LACP: the hash that selects a member */
	unsigned int n_member;
	unsigned int primary; /* with BOND_ACTIVE_BACKUP: index of the preferred member */
	char member[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN];
};

/*
 * Write the PCI address that `text` starts with ("0000:03:00.0", "03:00.0,key=value") to
 * `out` in the long form. Return false if it is not a PCI address.
 */
bool device_address(const char *text, char out[DEVICE_ADDRESS_STRLEN]);

/*
 * Return true if `iface=` of the device does not name an interface of the kernel that
 * existed before. For net_vhost it is the path of a socket. For net_tap it is the name of
 * the interface that net_tap makes.
 */
bool device_makes_iface(const char *device);

/* Return true if the device of a port is a bond. */
bool device_is_bond(const char *device);

/*
 * Parse `device`, which is a bond. Return 0, or -EINVAL with the end of a sentence in `why`
 * ("'x' is no member; expected ..."); *bond is then undefined.
 */
int device_bond_parse(const char *device, struct device_bond *bond, char *why,
		      size_t why_size);

/*
 * Write the addresses of the NICs of a port's device to out[]: one NIC, the members of a
 * bond, or none. Return the number of addresses.
 */
unsigned int device_addresses(const char *device,
			      char out[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN]);

/* Return "active-backup" or "802.3ad". */
const char *device_bond_mode(enum bond_mode mode);

#endif
