/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inner: pass the packets that came out of tunnels through the stages.          [fwd-n]
 */
#include "fwd/inner.h"

#include "fwd/tunnel.h"
#include "fwd/walk.h"
#include "fwd/watch.h"

static void
decap_drop(struct fwd *f)
{
	for (unsigned int k = 0; k < f->n_decap; k++) {
		counter_add(&f->count->reason[DROP_encap_loop], 1);
		rte_pktmbuf_free(f->decap[k].m);
	}
	f->n_decap = 0;
}

/* Count `n` packets with `bytes` octets for the tunnel that received them. */
static void
rx_count(struct fwd *f, uint16_t ifidx, uint64_t n, uint64_t bytes)
{
	counter_add(&f->count->port[ifidx].rx_packets, n);
	counter_add(&f->count->port[ifidx].rx_bytes, bytes);
}

/* Count the packets of a joined burst for their interfaces and VRFs. */
static void
joined_count(struct burst *b, const struct fwd_decap *decap, const uint8_t *from)
{
	for (unsigned int i = 0; i < b->n; i++) {
		uint64_t bytes = rte_pktmbuf_pkt_len(b->m[i]) - decap[from[i]].at - L2_LEN;
		struct vrf_counters *c = &b->fwd->count->vrf[b->vrf[i]];

		rx_count(b->fwd, decap[from[i]].ifidx, 1, bytes);
		if (b->vrf[i] == 0)
			continue;
		counter_add(&c->rx_packets, 1);
		counter_add(&c->rx_bytes, bytes);
	}
}

/*
 * Pass the usual packets of several tunnels or VNIs through the fast path in one burst,
 * because a burst for each tunnel would have only one or two packets. Each packet that the
 * fast path refuses stays in decap[], marked as counted. Return the number of these
 * packets.
 */
static unsigned int
decap_walk_joined(struct fwd *f, struct burst *b, struct fwd_decap *decap, unsigned int n)
{
	uint8_t from[BURST_MAX];
	unsigned int kept = 0;
	uint64_t gone = 0;

	if (!fwd_tunnel_join(f, b, decap, n, from))
		return n;
	joined_count(b, decap, from);
	for (unsigned int i = 0; i < b->n; i++) {
		gone |= 1ull << from[i];
		decap[from[i]].counted = true;
	}
	f->hook_moved = 0;
	fwd_walk_fast(b, NULL);
	for (uint64_t rest = fwd_dispatch_fast(b); rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest), k = from[i];

		decap[k].at = fwd_tunnel_leave(b, i, decap[k].m);
		gone &= ~(1ull << k);
	}
	for (unsigned int k = 0; k < n; k++)
		if ((gone >> k & 1) == 0)
			decap[kept++] = decap[k];
	return kept;
}

/*
 * Pass a burst of inner packets through the stages. Some may be outer packets of another
 * tunnel.
 */
static void
burst_walk_inner(struct burst *b)
{
	struct fwd *f = b->fwd;

	/*
	 * If an end point decapsulated the packets, the interface has already counted them.
	 */
	if (!b->by_sid && !b->vrf_counted)
		rx_count(f, b->ifidx, b->n, b->bytes);
	if (fwd_watched(f))
		fwd_walk_watched(b);
	else
		fwd_walk(b, NULL);
	fwd_dispatch_all(b);
}

/* Pass the packets of several tunnels, VNIs or end points through the stages. */
static void
decap_walk_mixed(struct fwd *f, struct burst *b)
{
	struct fwd_decap decap[BURST_MAX];
	unsigned int n = f->n_decap;

	memcpy(decap, f->decap, n * sizeof(decap[0]));
	f->n_decap = 0;
	n = decap_walk_joined(f, b, decap, n);
	while (n > 0) {
		n = fwd_tunnel_enter(f, b, decap, n);
		burst_walk_inner(b);
	}
}

void
fwd_tunnels_walk(struct fwd *f)
{
	struct burst b;

	if (f->depth == FIB_TUNNELS_DEEP) {
		decap_drop(f);
		return;
	}
	f->depth++;
	if (f->decap_differs) {
		decap_walk_mixed(f, &b);
	} else {
		fwd_tunnel_enter_all(f, &b);
		burst_walk_inner(&b);
	}
	f->depth--;
}
