/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outer_fast: the stages for usual packets to neighbors behind a VXLAN, and behind headends
 * of SRv6.
 *
 * Private to fwd/. The functions read the packet and write the burst.             [fwd-n]
 */
#ifndef FWD_OUTER_FAST_H
#define FWD_OUTER_FAST_H

#include "fwd/burst.h"

/*
 * Return a bit for each fast-path packet of `odd` that gets an outer header of VXLAN or
 * SRv6. b->hop of the other packets does not change.
 */
uint64_t fwd_outer_fast_adjacency(struct burst *b, uint64_t odd);
/*
 * Write the headers of the packets of `which`. Return a bit for each unusual packet, which
 * is not written.
 */
uint64_t fwd_outer_fast_rewrite(struct burst *b, uint64_t which);

#endif
