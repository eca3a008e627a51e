/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bond: several NICs as one port, by DPDK's net_bonding. The members are its own; everybody
 * else knows the bond alone.
 */
#ifndef PORT_BOND_H
#define PORT_BOND_H

#include <stdbool.h>
#include <stdint.h>

#include "pci/devargs.h"

/*
 * Attach the NICs of `device` and make a bond called `name` of them, not configured yet.
 * Returns 0 with its number and mode, or -errno, undone, with a sentence in `why`.  [main, manage]
 */
int bond_open(const char *name, const char *device, uint16_t *port_id, enum bond_mode *mode,
	      char *why, unsigned int why_size);

/*
 * Is there memory for what DPDK makes, and ends the program without, when members of 802.3ad
 * bonds that had no link yet get one? Of `n_desc` transmit descriptors a bond, and beside
 * `n_queue` queues a member that are still to be made. Returns 0, or -ENOMEM with a sentence in `why`;
 * waits for DPDK's interrupt thread.                                        [main, manage]
 */
int bond_room(unsigned int n_desc, unsigned int n_queue, char *why, unsigned int why_size);

/* Put an end to the bond and let its NICs go.                              [main, manage] */
void bond_close(uint16_t port_id);

/* Is one of the members driven by that driver?                              [any thread] */
bool bond_has_driver(uint16_t port_id, const char *driver);

/*
 * Of 802.3ad: does LACP let packets leave by one of the members? DPDK calls the link up as soon as a
 * member has one, and loses what is sent until then.                        [any thread]
 */
bool bond_lacp_up(uint16_t port_id);

struct bond_member {
	char device[DEVICE_ADDRESS_STRLEN];
	char driver[32];
	bool link;          /* as its driver tells it */
	bool active;        /* packets of ours leave by it */
	bool heard;         /* of 802.3ad: somebody speaks LACP at the other end */
	uint8_t partner[6]; /* who: the MAC of its system */
};

struct bond_state {
	unsigned int n_member;
	struct bond_member member[BOND_MEMBERS_MAX];
};

/* How the bond is now. Returns 0 or -errno.                                 [any thread] */
int bond_state(uint16_t port_id, struct bond_state *state);

#endif
