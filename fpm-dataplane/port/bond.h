/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bond: several NICs as one port, by DPDK's net_bonding. Only this file knows the members;
 * all other code knows the bond.
 */
#ifndef PORT_BOND_H
#define PORT_BOND_H

#include <stdbool.h>
#include <stdint.h>

#include "pci/devargs.h"

/*
 * Attach the NICs of `device` and make a bond with the name `name`. It is not configured
 * yet. Returns 0 with its port id and mode, or -errno with everything undone and a sentence
 * in `why`.                                                              [main, manage]
 */
int bond_open(const char *name, const char *device, uint16_t *port_id, enum bond_mode *mode,
	      char *why, unsigned int why_size);

/*
 * Check that memory is left for the members of 802.3ad bonds that have had no link yet.
 * DPDK allocates this memory at the first link of a member, and ends the program if that
 * fails. A bond has `n_desc` transmit descriptors. `n_queue` queues per member are still to
 * be made.
 * Returns 0, or -ENOMEM with a sentence in `why`. Waits for DPDK's interrupt thread.
 *                                                                        [main, manage]
 */
int bond_room(unsigned int n_desc, unsigned int n_queue, char *why, unsigned int why_size);

/* Remove the bond and close its NICs.                                     [main, manage] */
void bond_close(uint16_t port_id);

/* Return true if a member has this driver.                                  [any thread] */
bool bond_has_driver(uint16_t port_id, const char *driver);

/*
 * Return true if LACP lets packets leave by a member of an 802.3ad bond. DPDK reports a
 * link as soon as a member has one, and loses packets that are sent before LACP has agreed.
 *                                                                          [any thread]
 */
bool bond_lacp_up(uint16_t port_id);

/*
 * Take the links of all members down, or up. Returns 0, or -errno of the first member that
 * refused.                                                                        [neigh]
 */
int bond_set_link(uint16_t port_id, bool up);

struct bond_member {
	char device[DEVICE_ADDRESS_STRLEN];
	char driver[32];
	bool link;          /* as its driver reports it */
	bool active;        /* our packets leave by it */
	bool heard;         /* 802.3ad: the other end sends LACP frames */
	uint8_t partner[6]; /* the MAC address of the partner's system */
};

struct bond_state {
	unsigned int n_member;
	struct bond_member member[BOND_MEMBERS_MAX];
};

/* Get the state of the bond. Returns 0 or -errno.                           [any thread] */
int bond_state(uint16_t port_id, struct bond_state *state);

#endif
