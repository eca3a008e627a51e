/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame in a burst: the forwarder handles as many frames as a port delivers at once, in
 * each form that the CPU has. The result of each must equal its result alone by the noted
 * walk.
 */
#ifndef PACKET_BURST_H
#define PACKET_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fib/fib.h"

#define FRAME_MAX 2048u

/* VLANs that tables_make() puts on the port, for frames made here. */
#define VLAN_IN_ID  100 /* of VLAN_S_TYPE */
#define VLAN_TWO_ID 30  /* of VLAN_C_TYPE, behind that */
#define VLAN_RED_ID 40  /* of VLAN_C_TYPE, of a VRF */

/* The properties of a port that fib does not have. */
struct packet_port {
	uint16_t ifidx;
	bool strips; /* strips the first tag if its type is 802.1Q */
	bool cksum;  /* verifies the IPv4 checksum */
};

/*
 * Pass a burst of up to BURST_MAX frames: the frame (`n` octets, 14 to FRAME_MAX), changes of
 * it, and good frames of either family. Only `seed` decides the choices. Aborts at a difference.
 */
void packet_burst(struct fib *fib, const struct packet_port *port, const uint8_t *frame,
		  uint16_t n, uint64_t seed);

/*
 * Return the start of the packet, or of its first label, in a frame with at most three
 * tags.
 */
const uint8_t *packet_of(const uint8_t *frame, uint16_t n);

/* Write the checksum that an IPv4 header in a frame should have, behind its labels. */
void packet_cksum(uint8_t *frame, uint16_t n);

#endif
