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
 * After the rewrite stage: return the length in octets of the labels before the outer
 * header of a packet. 0: there are none, or the labels belong to the packet itself.
 */
static inline unsigned int
fwd_outer_labels_written(const struct burst *b, unsigned int i)
{
	const uint8_t *at = burst_l2(b, i) + L2_LEN;
	unsigned int bytes = 0;

	if (b->verdict[i] != VERDICT_GO || b->family[i] == 0 ||
	    get_be16(at - 2) != MPLS_TYPE ||
	    (path_kind(b->path[i]) == PATH_ENCAP &&
	     !path_is_headend(b->fwd->fib, b->path[i])))
		return 0;
	while (!label_is_bottom(get_be32(at + bytes)))
		bytes += LABEL_BYTES;
	return bytes + LABEL_BYTES;
}

/*
 * After the rewrite stage: return the length in octets of the outer headers of SRv6 of a
 * packet, and of the labels before an outer header; 0: none.
 */
static inline unsigned int
fwd_headend_written(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;

	return fwd_outer_labels_written(b, i) +
	       (b->verdict[i] == VERDICT_GO && path_is_headend(fib, b->path[i])
			? fib->headend[path_index(b->path[i])].bytes
			: 0u);
}

#endif
