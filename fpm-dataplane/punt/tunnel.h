/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: packets that came in a tunnel, and packets that go into one or to a VTEP. Private to
 * punt/. [punt]
 */
#ifndef PUNT_TUNNEL_H
#define PUNT_TUNNEL_H

#include "fib/vxlan.h"
#include "punt/internal.h"

/* Take the outer headers off a packet that came in a tunnel. Its MAC addresses are then zero. */
void punt_tunnel_take(struct rte_mbuf *m);

/*
 * Write the outer headers of a packet whose TTL has its last value, and the EtherType. Return
 * false if the buffer has no room.
 */
bool punt_tunnel_write(struct punt *p, struct rte_mbuf *m, uint8_t family,
		       const struct fib_tunnel_way *way);

/* Return the neighbor of a way whose path is PATH_ONLINK. */
struct neigh_key punt_tunnel_key(const struct fib_tunnel_way *way);

/* Return the neighbor of an outer packet to a VTEP. Its path is PATH_ADJ or PATH_ONLINK. */
struct neigh_key punt_vxlan_key(const struct punt *p, const struct fib_vxlan_hop *hop,
				fib_path path);

#endif
