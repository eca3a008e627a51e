/* SPDX-License-Identifier: BSD-3-Clause */
/* Make the frames of a burst from one frame and random numbers. */
#ifndef PACKET_FRAMES_H
#define PACKET_FRAMES_H

#include "fwd/burst.h"
#include "packet_burst.h"

/* One frame as the port delivers it. */
struct given {
	uint8_t frame[FRAME_MAX];
	uint16_t n, first; /* octets of the frame, octets of its first segment */
	uint16_t vlan_tci;
	uint64_t ol_flags;
};

/* Set the seed of all later random decisions. */
void chance_seed(uint64_t seed);
/* Return a random number from 0 to n - 1. */
unsigned int below(unsigned int n);

/*
 * Fill `given` with equal frames, for which the vector code is made, or with a mixture.
 * `mac` is the MAC of the port. Returns the number of frames.
 */
unsigned int frames_make(struct given given[BURST_MAX], const struct packet_port *port,
			 const uint8_t *mac, const uint8_t *frame, uint16_t n);

#endif
