/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vxlan: the stages for packets that go to VTEPs, or come from them.
 *
 * Private to fwd/. The functions read the packet and write the burst.           [fwd-n]
 */
#ifndef FWD_VXLAN_H
#define FWD_VXLAN_H

#include "fib/vxlan.h"
#include "fwd/burst.h"

/* Decapsulate a VXLAN packet to this host, as fwd_tunnel_decap() does for a tunnel. */
bool fwd_vxlan_decap(struct burst *b, unsigned int i);

/* Return true if a packet to this host may be VXLAN. */
static inline bool
burst_may_be_vxlan(const struct burst *b, unsigned int i)
{
	return burst_l3(b, i)[b->family[i] == 4 ? 9 : 6] == PROTO_UDP &&
	       atomic_load_explicit(&b->fwd->fib->vxlans, memory_order_relaxed) != NULL;
}

/*
 * Adjacency stage: find the path of the outer packet of a packet to a neighbor behind a
 * VXLAN. Return false if the packet got a drop or punt reason.
 */
bool fwd_vxlan_outer(struct burst *b, unsigned int i, const struct fib_vxlan_hop *hop,
		     struct fib_vxlan_outer *outer);
/*
 * Rewrite stage: write the headers of VXLAN. The path of the packet is that of its
 * neighbor.
 */
void fwd_vxlan_rewrite(struct burst *b, unsigned int i);

#endif
