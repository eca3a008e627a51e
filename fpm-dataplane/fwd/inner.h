/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inner: the packets that came out of tunnels.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_INNER_H
#define FWD_INNER_H

#include "fwd/burst.h"

/*
 * Pass the packets that fwd_dispatch() kept through the stages, one tunnel after the other,
 * and dispatch them. A packet may be decapsulated FIB_TUNNELS_DEEP times.
 */
void fwd_tunnels_walk(struct fwd *f);

/* Dispatch a burst, and then the packets that came out of tunnels. */
static inline void
fwd_dispatch_all(struct burst *b)
{
	fwd_dispatch(b);
	if (__builtin_expect(b->fwd->n_decap != 0, 0))
		fwd_tunnels_walk(b->fwd);
}

#endif
