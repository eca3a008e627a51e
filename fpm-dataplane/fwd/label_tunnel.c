/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label_tunnel: packets that come with MPLS labels or get some, and leave by a tunnel. The
 * tunnel carries labels behind GRE (RFC 4023), or an IP packet that has lost its last
 * label.                                                                        [fwd-n]
 */
#include "base/inet.h"
#include "fwd/label.h"
#include "fwd/tunnel.h"
#include "port/vlan_tags.h"

/*
 * Return true if only the kernel can send the packet: its outer packet needs fragments, or
 * the tunnel does not take such packets. A packet that exceeds the MTU needs fragments if
 * DF is not set, or if it is IPv6 without labels and the MTU is below 1280.
 */
static bool
is_for_kernel(const struct burst *b, unsigned int i, const struct label_packet *p,
	      const struct fwd_outer *w)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *tunnel = w->outer.tunnel[0];
	const struct fib_tunnel *t = &tunnel->tunnel;
	unsigned int len = label_rest_bytes(p);
	const uint8_t *ip = label_packet_rest(p);
	bool keeps = label_packet_keeps(p);

	if (keeps ? !t->gre : !tunnel_takes(t, ip, p->family))
		return true;
	if (len <= label_tunnel_mtu(fib, b->path[i], tunnel, p, w->mtu) ||
	    len > label_mtu(fib, b->path[i], tunnel, p))
		return false; /* the packet fits, or is too big for the tunnel itself */
	if (keeps)
		return t->family == 4 && !t->df;
	return (p->family == 6 && w->mtu < 1280) || !tunnel_sets_df(t, ip, p->family);
}

const struct fib_tunnel_outer *
fwd_label_outer(struct burst *b, unsigned int i, uint16_t ifidx)
{
	struct label_packet p = fwd_label_packet(b, i);
	const struct fwd_outer *w;
	enum reason reason;

	/* If IPv6 is off, no IPv6 packet leaves by the tunnel, except behind labels. */
	if (!label_packet_keeps(&p) && fib_ipv6_is_off(b->fwd->fib, p.family, ifidx)) {
		fwd_label_refuse(b, i, PUNT_unreach, DROP_ipv6_off);
		return NULL;
	}
	if (label_packet_ttl(&p) == 0) {
		fwd_label_refuse(b, i, PUNT_ttl_expired, DROP_ttl);
		return NULL;
	}
	w = fwd_outer_of(b->fwd, ifidx, label_ds(&p));
	reason = (enum reason)w->outer.reason;
	if (reason == N_REASON && !label_packet_keeps(&p) &&
	    tunnel_conflicts(&w->outer.tunnel[0]->tunnel, label_packet_rest(&p), p.family))
		reason = DROP_encap_loop;
	if (reason == N_REASON &&
	    (is_for_kernel(b, i, &p, w) || fwd_outer_take_told(b->fwd, w)))
		reason = PUNT_kernel_route;
	if (reason == N_REASON)
		return &w->outer;
	fwd_outer_refuse(b, i, reason);
	return NULL;
}

void
fwd_label_enter(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *tunnel = fib_iface(fib, b->hop[i] & 0xffff);
	struct label_packet p = fwd_label_packet(b, i);
	uint8_t ttl = label_packet_ttl(&p);
	const struct fwd_outer *w = NULL;
	uint64_t hop = 0;
	unsigned int mtu;

	if (tunnel != NULL) {
		w = fwd_outer_of(b->fwd, tunnel->ifidx, label_ds(&p));
		hop = fwd_outer_hop(b->fwd, w);
	}
	if (hop == 0 || ttl == 0) { /* the path has changed within the burst */
		fwd_label_refuse(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = label_tunnel_mtu(fib, b->path[i], tunnel, &p, w->mtu);
	if (label_rest_bytes(&p) > mtu) {
		fwd_label_too_big(b, i, mtu);
		return;
	}
	label_packet_trim(&p);
	if (rte_pktmbuf_headroom(p.m) < label_room(&p, tunnel_room(&w->outer)) ||
	    !label_write(&p, ttl)) {
		burst_leave(b, i, DROP_no_headroom);
		return;
	}
	if (p.at != 0)
		p.m->ol_flags &= ~PACKET_FLAGS_OF_OUTER;
	tunnel_count_sent(b->fwd, &w->outer, rte_pktmbuf_pkt_len(p.m) - L2_LEN);
	label_enter_tunnels(fib, p.m, &w->outer, b->fwd->ip_id++);
	fwd_outer_frame(b, i, w, hop);
}
