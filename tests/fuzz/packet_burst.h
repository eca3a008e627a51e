/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check a frame in a burst, because the forwarder handles the frames that a port delivers
 * together, not one by one. Each form of the code that the CPU can run handles the burst.
 * The result of each frame must equal the result of this frame alone by the noted walk,
 * fwd_walk_noted().
 */
#ifndef PACKET_BURST_H
#define PACKET_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fib/fib.h"

#define FRAME_MAX 2048u

/* VLANs that tables_make() puts on the port, for the frames of packet_frames.c. */
#define VLAN_IN_ID  100 /* of VLAN_S_TYPE */
#define VLAN_TWO_ID 30  /* of VLAN_C_TYPE, behind the tag VLAN_IN_ID */
#define VLAN_RED_ID 40  /* of VLAN_C_TYPE, a member of a VRF */

/* The properties of a port that fib does not have. */
struct packet_port {
	uint16_t ifidx;
	bool strips; /* strips the first tag if its type is 802.1Q */
	bool cksum;  /* verifies the IPv4 checksum */
};

/*
 * Pass a burst of up to BURST_MAX frames: the frame (`n` octets, 14 to FRAME_MAX), changes
 * of it, and good frames of either family. Only `seed` decides the choices. Aborts at a
 * difference.
 */
void packet_burst(struct fib *fib, const struct packet_port *port, const uint8_t *frame,
		  uint16_t n, uint64_t seed);

/*
 * Return the start of the packet, or of its first label, in a frame with at most three
 * tags.
 */
const uint8_t *packet_of(const uint8_t *frame, uint16_t n);

/* Correct the checksum of the IPv4 header of a frame, also of a header behind labels. */
void packet_cksum(uint8_t *frame, uint16_t n);

#endif
