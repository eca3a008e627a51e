/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devargs: what the name of a port's device says: the address of a NIC, a bond of NICs,
 * or something else. No DPDK here: fpmctl reads names, too.
 */
#ifndef PCI_DEVARGS_H
#define PCI_DEVARGS_H

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_ADDRESS_STRLEN 16
#define BOND_MEMBERS_MAX      8

/* Numbers of DPDK (rte_eth_bond.h). */
enum bond_mode { BOND_NONE, BOND_ACTIVE_BACKUP = 1, BOND_LACP = 4 };
enum bond_policy { BOND_L2, BOND_L23, BOND_L34 };

/* net_bonding0,mode=4,member=0000:03:00.0,member=0000:03:00.1,xmit_policy=l34 */
struct device_bond {
	enum bond_mode mode;
	enum bond_policy policy; /* of BOND_LACP: what chooses the member of a packet */
	unsigned int n_member;
	unsigned int primary; /* of BOND_ACTIVE_BACKUP: who carries when it can */
	char member[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN];
};

/*
 * The address in `text`, "0000:03:00.0" or "03:00.0,key=value", in the long form. Returns
 * false when it names no PCI device.
 */
bool device_address(const char *text, char out[DEVICE_ADDRESS_STRLEN]);

/* Is the device of a port a bond?                                     [no side effects] */
bool device_is_bond(const char *device);

/*
 * Read what `device`, a bond, is made of. Returns 0, or -EINVAL with the end of a sentence in
 * `why` ("'x' is no member; expected ..."), *bond then undefined.      [no side effects]
 */
int device_bond_parse(const char *device, struct device_bond *bond, char *why,
		      size_t why_size);

/*
 * The NICs that a port's device is made of: one, the members of a bond, or none. Returns how
 * many addresses are in out[].                                        [no side effects]
 */
unsigned int device_addresses(const char *device,
			      char out[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN]);

/* "active-backup", "802.3ad". */
const char *device_bond_mode(enum bond_mode mode);

#endif
