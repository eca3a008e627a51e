/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: the stage between adjacency and rewrite, where Linux has the hook forward. It is
 * called only while a ruleset is in force.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_FILTER_H
#define FWD_FILTER_H

#include "fwd/burst.h"

/*
 * Judge each IP packet of the burst that is to be forwarded or to wait for its neighbor. A
 * packet that does not pass gets DROP_filter or DROP_filter_absent, or PUNT_unreach if the
 * sender gets an ICMP error.
 */
void fwd_filter(struct burst *b);

/*
 * Return the egress interface of a packet that is to be sent, is too long, or is to wait
 * for its neighbor.
 */
static inline uint16_t
fwd_packet_egress(const struct burst *b, unsigned int i)
{
	fib_path path = b->path[i];

	if (b->verdict[i] != PUNT_unresolved || path_kind(path) == PATH_ENCAP)
		return b->hop[i] & 0xffff;
	return path_kind(path) == PATH_ADJ ? b->fwd->fib->adj[path_index(path)].ifidx
					   : (uint16_t)path_index(path);
}

#endif
