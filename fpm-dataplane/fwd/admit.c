/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admit: find the ingress interface of a burst, and refuse the burst if the interface takes
 * no packets. This stage does not read packets.                                 [fwd-n]
 */
#include "fwd/sid.h"

/*
 * Prefetch the counters and the IPv4 trie of a VRF while the burst is parsed. With hundreds
 * of VRFs they are not in the cache.
 */
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
		reason = DROP_tap_down; /* the TAP is gone: no addresses, no forwarding */
	else if (!b->in->up)
		reason = DROP_ingress_down; /* set down by the operator */
	else {
		if (__builtin_expect(b->inside, 0))
			fwd_sid_admit(b);
		if (b->in->vrf != 0)
			vrf_prefetch(b->fwd, b->in->vrf);
		return true;
	}
	if (b->in != NULL)
		burst_count_vrf(b);
	/* Clear the bits of the last burst, which may be of another port. */
	b->fast4 = b->fast6 = b->labels = b->switched = b->push = b->into = b->judged = 0;
	for (unsigned int i = 0; i < b->n; i++) {
		b->family[i] = 0;
		burst_leave(b, i, reason);
	}
	return false;
}
