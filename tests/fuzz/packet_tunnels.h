/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tunnels and SIDs of SRv6 for fuzz_packet: interfaces and end points whose packets come in
 * frames from the wire (RFC 2003, 2473, 2784, 2890, 4213, 8754, 8986, 9800). They remove
 * outer headers or change the destination, and the packet passes the stages once more.
 */
#ifndef PACKET_TUNNELS_H
#define PACKET_TUNNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/sid_entry.h"

#define TUNNELS      7u
#define TUNNEL_SENDS 4u /* index of the tunnel into which packets with labels are sent */
#define SIDS         11u

/* Make an interface without a port that is up and forwards both families. */
struct fib_iface *packet_iface(struct fib *fib, uint16_t ifidx, uint32_t mtu_bytes);
/*
 * Add the route of `len` bits of `net`, of family 4 or 6, to table main. No other route has
 * this prefix.
 */
void packet_route(struct fib *fib, uint8_t family, const uint8_t *net, unsigned int len,
		  uint32_t group);
/*
 * Make TUNNELS interfaces from `ifidx` on. `group`: the group of the route to the far end
 * of TUNNEL_SENDS.
 */
void tunnels_make(struct fib *fib, uint16_t ifidx, uint32_t group);
/*
 * Make SIDS - 1 end points, whose first is number 1. `vrf`: the table of the end points
 * that are in a VRF. `policy`: the headend of End.B6.Encaps. `group`: the first of SIDS
 * free groups.
 */
void sids_make(struct fib *fib, uint16_t vrf, fib_path policy, uint32_t group);

/*
 * Write the headers of a packet to a random tunnel or a random SID. Set `*six` if the
 * outermost header is IPv6, and `*labels` if MPLS labels follow the headers. Return the
 * place where the inner packet begins. outer_end() writes the length into the outer header;
 * `bytes` includes this header.
 */
uint8_t *tunnel_begin(uint8_t *ip, bool *six, bool inside4, bool *labels);
uint8_t *sid_begin(uint8_t *ip, bool inside4);
void outer_end(uint8_t *ip, bool six, unsigned int bytes);

/* Return true if an inner packet of this frame may be read. */
bool frame_has_inside(const uint8_t *frame, uint16_t n);

#endif
