/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VXLAN for fuzz_packet: interfaces whose packets come in frames from the wire, a neighbor
 * behind one of them, and a model of the frames that go to it (RFC 7348, 5).
 */
#ifndef PACKET_VXLAN_H
#define PACKET_VXLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/vxlan.h"

/*
 * Make interface `ifidx` over VXLAN over IPv4, and interface `ifidx` + 1 over VXLAN over
 * IPv6. 203.0.116.0/24 and 2001:db8:7a::/48 are behind interface `ifidx` + 1: their
 * neighbor is adjacency `adj`, its VTEP is in 2001:db8:77::/48. `group` is a free group,
 * `to_vtep` the group of the route to the VTEP.
 */
void vxlan_make(struct fib *fib, uint16_t ifidx, uint32_t adj, uint32_t group,
		uint32_t to_vtep);

/*
 * Write the headers of a VXLAN packet to this router, over IPv6 if `six`. Return the place
 * where the inner packet begins. vxlan_end() writes the lengths and the checksum, which
 * depend on the inner packet.
 */
uint8_t *vxlan_begin(uint8_t *ip, bool six, bool inside4);
void vxlan_end(uint8_t *ip, bool six, unsigned int inside_bytes);

/*
 * Return true if a frame may be a VXLAN packet, so that the forwarder may read an inner
 * packet.
 */
bool frame_is_vxlan(const uint8_t *frame, uint16_t n);

/*
 * Check the first octets of a frame that leaves: `ip` is the packet of `bytes` octets that
 * came.
 */
void vxlan_sent_on(const uint8_t *ip, unsigned int bytes, const uint8_t *left);

#endif
