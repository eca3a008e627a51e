/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dispatch: put each packet of the burst into a transmit buffer or a punt ring, or free it.
 * Each packet is counted exactly once, by its outcome.                          [fwd-n]
 */
#include "fwd/bfd.h"
#include "fwd/cpu.h"
#include "fwd/filter.h"
#include "fwd/label.h"
#include "fwd/sample.h"
#include "fwd/sid.h"
#include "fwd/tunnel.h"
#include "fwd/tx.h"

#define SPREAD_MIN 4 /* packets for which vectors are faster than fwd_tx_put() */

/*
 * Count a dropped packet, for its VRF too, and record it if sFlow reports drops. Sent
 * packets are not counted by VRF.
 */
static void
count_drop(struct burst *b, unsigned int i, enum reason reason)
{
	if (fwd_samples_drops(b->fwd))
		fwd_sample_drop(b, i, reason);
	counter_add(&b->fwd->count->reason[reason], 1);
	if (b->in != NULL)
		counter_vrf_drop(b->fwd->count, b->in->vrf);
}

/* Take or drop a BFD packet. Return true if the caller no longer owns the packet. */
static bool
packet_is_taken_by_bfd(struct burst *b, unsigned int i)
{
	struct fwd *f = b->fwd;
	enum reason drop;
	enum bfd_fate fate = fwd_bfd_take(b, i, &drop);

	if (fate != BFD_REFUSED)
		return fate == BFD_TAKEN;
	count_drop(b, i, drop);
	if (fwd_watched(f))
		watch_lost(f->conf->watch_ring, f->watch, b->ifidx, b->m[i], drop);
	rte_pktmbuf_free(b->m[i]);
	return true;
}

/*
 * Return the offset at which a frame of an inner packet begins, its labels included. 0:
 * there are no outer headers before it.
 */
static uint16_t
packet_inner_at(const struct burst *b, unsigned int i)
{
	if (burst_labels_inside(b))
		return b->labels_at;
	return b->inside ? (uint16_t)(burst_l2(b, i) - burst_frame(b, i)) : 0;
}

/*
 * Give a packet to the punt thread if the policer of its class lets it pass. If not, and
 * the packet causes an ICMP error, the packet counts as dropped for its own cause, and the
 * error counts as limited.
 */
static void
packet_punt(struct burst *b, unsigned int i, enum reason reason)
{
	struct fwd *f = b->fwd;
	struct packet_meta *meta = packet_meta(b->m[i]);
	enum punt_class class;
	bool icmp = reason == PUNT_ttl_expired || reason == PUNT_unreach;
	enum reason drop = DROP_policed;

	/*
	 * The kernel gets BFD packets out of tunnels. Thread bfd serves such sessions by
	 * sockets.
	 */
	if (f->conf->bfd != NULL && reason == PUNT_local_control && !b->inside &&
	    packet_is_taken_by_bfd(b, i))
		return;
	class = fwd_class(b, i, reason);
	/*
	 * The ring of class bfd leads to thread bfd. A packet of a peer that is for the
	 * kernel, also of S-BFD, has another class that unknown senders cannot use.
	 */
	if (class == CLASS_bfd && f->conf->bfd != NULL)
		class = CLASS_signalling;
	if (icmp)
		count_drop(b, i, b->cause[i]);
	if (fwd_police(b, i, class)) {
		meta->reason = (uint8_t)reason;
		meta->class = (uint8_t) class;
		meta->cause = b->cause[i];
		meta->family = b->family[i];
		meta->in_ifidx = b->ifidx;
		meta->vrf = burst_icmp_vrf(b);
		meta->has_lookup_vrf =
			(f->hook_moved >> i & 1) != 0 || meta->vrf != b->in->vrf;
		meta->lookup_vrf =
			(f->hook_moved >> i & 1) != 0 ? f->hook_vrf[i] : b->in->vrf;
		meta->has_labels = burst_has_labels(b, i);
		meta->inner_at = packet_inner_at(b, i);
		meta->judged_ifidx = fwd_filters(f) && (b->judged >> i & 1) != 0
					     ? fwd_packet_egress(b, i)
					     : 0;
		/*
		 * Count before the punt thread can see the packet, because a reader that
		 * sees the result of a packet must find it in the counters. The ring still
		 * has room afterwards, because this thread is its only producer.
		 */
		if (ring_has_room(f->conf->rings.punt[class])) {
			counter_add(&f->count->reason[reason], 1);
			counter_add(&f->count->class[class].passed, 1);
			/*
			 * Record the drop here: the punt thread drops the packet, and
			 * sends the ICMP error.
			 */
			if (reason == PUNT_too_big && class != CLASS_cut &&
			    fwd_samples_drops(f))
				fwd_sample_drop(b, i, DROP_mtu);
			rte_ring_sp_enqueue(f->conf->rings.punt[class], b->m[i]);
			f->n_gleaned += class == CLASS_glean;
			f->wake_punt = true;
			return;
		}
		counter_add(&f->count->class[class].ring_full, 1);
		drop = DROP_punt_ring_full;
	}
	if (reason == PUNT_too_big && class != CLASS_cut) {
		count_drop(b, i, DROP_mtu);
		icmp = true;
	}
	if (icmp)
		counter_add(&f->count->icmp_limited, 1);
	else
		count_drop(b, i, drop);
	if (fwd_watched(f))
		watch_lost(f->conf->watch_ring, f->watch, b->ifidx, b->m[i], drop);
	rte_pktmbuf_free(b->m[i]);
}

/* Count the packets by family. *n_mpls: packets that leave with labels. */
static void
switched_count(const struct burst *b, unsigned int *n4, unsigned int *n6,
	       unsigned int *n_mpls)
{
	unsigned int four = 0, six = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		four += b->family[i] == 4;
		six += b->family[i] == 6;
	}
	/* Family 0: the packet keeps labels. */
	*n_mpls = b->n - four - six;
	*n4 = four;
	*n6 = six;
}

void
fwd_dispatch(struct burst *b)
{
	struct fwd *f = b->fwd;
	uint64_t fast = b->fast4 | b->fast6 | b->switched;
	unsigned int n4 = (unsigned int)__builtin_popcountll(b->fast4);
	unsigned int n6 = (unsigned int)__builtin_popcountll(b->fast6), n_mpls = 0;

	unsigned int n = b->n;

	if (fast == burst_all(b)) {
		uint64_t rest = b->n < SPREAD_MIN   ? fast
				: fwd_uses_avx512() ? fwd_spread_avx512(b)
				: fwd_uses_avx2()   ? fwd_spread_avx2(b)
				: fwd_uses_sse4()   ? fwd_spread_sse4(b)
						    : fast;

		for (; rest != 0; rest &= rest - 1) {
			unsigned int i = (unsigned int)__builtin_ctzll(rest);

			fwd_tx_put(f, b->hop[i] & 0xffff, b->m[i]);
		}
		if (b->switched != 0)
			switched_count(b, &n4, &n6, &n_mpls);
		n = 0;
	}
	/* Handle fast-path and slow-path packets together, in the order of arrival. */
	for (unsigned int i = 0; i < n; i++) {
		if (b->verdict[i] < N_DROP) {
			count_drop(b, i, b->verdict[i]);
			rte_pktmbuf_free(b->m[i]);
		} else if (b->verdict[i] == VERDICT_DECAPSULATED) {
			fwd_tunnel_keep(b, i);
		} else if (b->verdict[i] != VERDICT_GO) {
			packet_punt(b, i, b->verdict[i]);
		} else {
			fwd_tx_put(f, b->hop[i] & 0xffff, b->m[i]);
			if (((b->fast4 | b->fast6) >> i & 1) == 0) {
				n4 += b->family[i] == 4;
				n6 += b->family[i] == 6;
				n_mpls += b->family[i] == 0;
			}
		}
	}
	counter_add(&f->count->forwarded[0], n4);
	counter_add(&f->count->forwarded[1], n6);
	if (n_mpls != 0)
		counter_add(&f->count->forwarded[2], n_mpls);
}

/* Keep only the packets of `keep`, in order. All are on the fast path and rewritten. */
static void
burst_keep_fast(struct burst *b, uint64_t keep)
{
	unsigned int n = 0;

	for (uint64_t rest = keep; rest != 0; rest &= rest - 1, n++) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		b->m[n] = b->m[i];
		b->hop[n] = b->hop[i];
		b->out_port[n] = b->out_port[i];
	}
	b->n = (uint16_t)n;
	n = (unsigned int)__builtin_popcountll(b->fast4);
	b->fast4 = n == 64 ? UINT64_MAX : (1ull << n) - 1;
	b->fast6 = burst_all(b) & ~b->fast4;
}

uint64_t
fwd_dispatch_fast(struct burst *b)
{
	uint64_t left = burst_all(b) & ~(b->fast4 | b->fast6);

	if (left != 0)
		burst_keep_fast(b, b->fast4 | b->fast6);
	fwd_dispatch(b);
	return left;
}
