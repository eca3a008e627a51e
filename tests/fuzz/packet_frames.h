/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a burst, made of one and of chance.
 */
#ifndef PACKET_FRAMES_H
#define PACKET_FRAMES_H

#include "fwd/burst.h"
#include "packet_burst.h"

/* One frame as the port delivers it. */
struct given {
	uint8_t frame[FRAME_MAX];
	uint16_t n, first; /* octets, and those of the first segment */
	uint16_t vlan_tci;
	uint64_t ol_flags;
};

/* Set the seed of all later random decisions. */
void chance_seed(uint64_t seed);
unsigned int below(unsigned int n);

/*
 * Fill `given`, from copies of one, which vectors are for, to a crowd. `mac` is the port's.
 * Returns how many.
 */
unsigned int frames_make(struct given given[BURST_MAX], const struct packet_port *port,
			 const uint8_t *mac, const uint8_t *frame, uint16_t n);

#endif
