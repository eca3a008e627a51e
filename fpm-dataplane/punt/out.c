/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out: the ways by which a packet leaves the punt thread: a forwarder sends it, or it is
 * dropped and counted. The other files of punt/ call these functions. The functions call
 * none of those files.                                                           [punt]
 */
#include "base/idle.h"
#include "port/watch.h"
#include "punt/internal.h"

void
punt_lost(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	const struct watch_set *set = watch_set(p->conf.watch);

	counter_add(&p->count->reason[reason], 1);
	counter_vrf_drop(p->count, packet_meta(m)->vrf);
	if (set != NULL)
		watch_lost(p->conf.watch_ring, set, packet_meta(m)->in_ifidx, m, reason);
}

void
punt_drop(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	punt_lost(p, m, reason);
	rte_pktmbuf_free(m);
}

void
punt_inject(struct punt *p, struct rte_mbuf *m, uint16_t ifidx)
{
	struct fwd_rings *r = &p->conf.rings[packet_meta(m)->fwd];

	packet_meta(m)->out_ifidx = ifidx;
	if (rte_ring_sp_enqueue(r->inject, m) < 0)
		punt_drop(p, m, DROP_inject_ring_full);
	idle_wake(r->idle);
}
