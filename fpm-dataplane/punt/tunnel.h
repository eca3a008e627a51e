/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: inner packets of tunnels, and packets into tunnels or to VTEPs. Private to punt/.
 * [punt]
 */
#ifndef PUNT_TUNNEL_H
#define PUNT_TUNNEL_H

#include "fib/vxlan.h"
#include "punt/internal.h"

/* Remove the outer headers of an inner packet. Its MAC addresses are then zero. */
void punt_tunnel_take(struct rte_mbuf *m);

/* Count a packet of `bytes` octets as sent by the tunnels that it goes into. */
void punt_tunnel_count(struct punt *p, const struct fib_tunnel_outer *outer,
		       unsigned int bytes);

/*
 * Write the outer headers of a packet whose TTL is decremented already, and the EtherType.
 * Return false if the buffer has no room.
 */
bool punt_tunnel_write(struct punt *p, struct rte_mbuf *m, uint8_t family,
		       const struct fib_tunnel_outer *outer);

/* Return the neighbor of an outer packet whose path is PATH_ONLINK. */
struct neigh_key punt_tunnel_key(const struct fib_tunnel_outer *outer);

/* Return the neighbor of an outer packet to a VTEP. Its path is PATH_ADJ or PATH_ONLINK. */
struct neigh_key punt_vxlan_key(const struct punt *p, const struct fib_vxlan_hop *hop,
				fib_path path);

#endif
