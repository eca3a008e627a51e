/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inner: pass the packets that came out of tunnels through the stages.          [fwd-n]
 */
#include "fwd/inner.h"

#include "fwd/tunnel.h"
#include "fwd/walk.h"
#include "fwd/watch.h"

static void
decap_drop(struct fwd *f, const struct fwd_decap *decap, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++) {
		counter_add(&f->count->reason[DROP_encap_loop], 1);
		rte_pktmbuf_free(decap[k].m);
	}
}

void
fwd_tunnels_walk(struct fwd *f)
{
	struct fwd_decap decap[BURST_MAX];
	unsigned int n = f->n_decap;
	struct burst b;

	memcpy(decap, f->decap, n * sizeof(decap[0]));
	f->n_decap = 0;
	if (f->depth == FIB_TUNNELS_DEEP) {
		decap_drop(f, decap, n);
		return;
	}
	f->depth++;
	while (n > 0) {
		n = fwd_tunnel_enter(f, &b, decap, n);
		if (!b.by_sid) { /* else the interface has counted them */
			counter_add(&f->count->port[b.ifidx].rx_packets, b.n);
			counter_add(&f->count->port[b.ifidx].rx_bytes, b.bytes);
		}
		if (fwd_watched(f))
			fwd_walk_watched(&b);
		else
			fwd_walk(&b, NULL);
		fwd_dispatch(&b);
		if (f->n_decap != 0)
			fwd_tunnels_walk(f);
	}
	f->depth--;
}
