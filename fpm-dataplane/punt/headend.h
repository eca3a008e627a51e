/* SPDX-License-Identifier: BSD-3-Clause */
/* headend: packets that get an outer header of SRv6. Private to punt/.            [punt] */
#ifndef PUNT_HEADEND_H
#define PUNT_HEADEND_H

#include "fib/headend.h"
#include "punt/internal.h"

/* Find the path of the outer packet, for a packet whose path is a headend. */
void punt_headend_outer(struct punt *p, struct rte_mbuf *m, uint8_t family, fib_path path,
			struct fib_headend_outer *outer);

/*
 * Write the outer headers of a packet whose TTL is decremented already, and the EtherType.
 * Return false if the buffer has no room.
 */
bool punt_headend_write(const struct punt *p, struct rte_mbuf *m, uint8_t family,
			const struct fib_headend_outer *outer);

/* Return the neighbor of an outer packet; family 0: it has none. */
struct neigh_key punt_headend_key(const struct punt *p,
				  const struct fib_headend_outer *outer);

#endif
