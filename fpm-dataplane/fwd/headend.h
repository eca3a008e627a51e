/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headend: the stages for packets whose route puts them behind an outer header of SRv6.
 *
 * Private to fwd/. The functions read the packet and write the burst.           [fwd-n]
 */
#ifndef FWD_HEADEND_H
#define FWD_HEADEND_H

#include "fib/headend.h"
#include "fwd/burst.h"

/*
 * Adjacency stage: find the path of the outer packet, if the route of the packet is a
 * headend. Return false if the packet got a drop or punt reason.
 */
bool fwd_headend_outer(struct burst *b, unsigned int i, struct fib_headend_outer *outer);
/* Rewrite stage: write the outer headers. */
void fwd_headend_rewrite(struct burst *b, unsigned int i);

/*
 * After the rewrite stage: return the length in octets of the outer headers of a packet; 0:
 * none.
 */
static inline unsigned int
fwd_headend_written(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;

	return b->verdict[i] == VERDICT_GO && path_is_headend(fib, b->path[i])
		       ? fib->headend[path_index(b->path[i])].bytes
		       : 0;
}

#endif
