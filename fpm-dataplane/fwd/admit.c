/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admit stage: the interface that a burst came in by, and whether it takes packets at all.
 * It never looks into a packet.                                                  [fwd-n]
 */
#include "fwd/burst.h"

/* Of hundreds of VRFs, what a burst will want of its own is on the way while it is parsed. */
static void
vrf_prefetch(struct fwd *f, uint16_t number)
{
	const struct poptrie *pt4 = fib_vrf_pt4(f->fib, number);

	__builtin_prefetch(&f->count->vrf[number], 1);
	if (pt4 != NULL)
		poptrie_prefetch(pt4);
}

bool
fwd_admit(struct burst *b)
{
	enum reason reason;

	b->in = fib_iface(b->fwd->fib, b->ifidx);
	if (b->in == NULL || b->in->ifindex == 0)
		reason = DROP_tap_down; /* nothing can be for us, nothing may pass */
	else if (!b->in->up)
		reason = DROP_ingress_down; /* by the operator: deaf as well as dumb */
	else {
		if (b->in->vrf != 0)
			vrf_prefetch(b->fwd, b->in->vrf);
		return true;
	}
	if (b->in != NULL)
		burst_count_vrf(b);
	b->fast4 = b->fast6 = 0; /* they are of the burst before, maybe another port's */
	for (unsigned int i = 0; i < b->n; i++) {
		b->family[i] = 0;
		burst_leave(b, i, reason);
	}
	return false;
}
