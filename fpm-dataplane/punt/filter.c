/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: judge a packet that the punt thread forwards, unless a forwarder has judged it
 * for the same egress interface. No forwarder has judged the packet if its route changed
 * while it waited, if its link was down, or if no filter was in force. [punt]
 */
#include "base/inet.h"
#include "fib/urpf.h"
#include "punt/internal.h"
#include "ruleset/ruleset.h"

struct back_of {
	const struct fib *fib;
	const struct fib_iface *in; /* ingress interface of the packet */
};

static enum ruleset_back
packet_back(const struct ruleset_packet *p, bool iif)
{
	const struct back_of *of = p->back_of;
	struct fib_back_key key = {
		.main = &of->fib->copy[0],
		.in = of->in,
		.oif = iif ? p->oif : FIB_BACK_LOOPBACK,
		.ip = p->ip,
		.room = p->room,
		.family = p->family,
		/* Linux checks the reverse path at the hook forward for the VRF device. */
		.by_vrf = true,
		.no_ports = true,
		.proto = p->has_transport ? p->l4proto : 0};

	return (enum ruleset_back)fib_back(of->fib, &key);
}

enum punt_judgment
punt_filter(struct punt *p, struct rte_mbuf *m, uint8_t *ip, uint8_t family,
	    const struct fib_iface *out)
{
	const struct ruleset *r = fib_filter(p->fib);
	struct packet_meta *meta = packet_meta(m);
	const struct fib_iface *in = fib_iface(p->fib, meta->in_ifidx);
	struct back_of of = {p->fib, in};
	unsigned int room;
	struct ruleset_packet packet;
	enum ruleset_verdict verdict;

	if (r == NULL || family == 0 || meta->judged_ifidx == out->ifidx)
		return PUNT_PASSES;
	if (in == NULL) { /* the interface was deleted, so no rule can match the packet */
		punt_drop(p, m, DROP_filter);
		return PUNT_DROPPED;
	}
	room = rte_pktmbuf_data_len(m) -
	       (unsigned int)(ip - rte_pktmbuf_mtod(m, uint8_t *));
	packet = (struct ruleset_packet){
		.ip = ip,
		.l3_bytes =
			family == 4 ? get_be16(ip + 2) : (uint16_t)(40u + get_be16(ip + 4)),
		.family = family,
		.iif = in->hook_ifindex,
		.oif = out->ifindex,
		.iifname = in->hook_name,
		.oifname = out->name,
		.now = policer_ticks(),
		.thread = p->conf.n_fwd,
		.back = r->asks_back ? packet_back : NULL,
		.back_of = &of};
	packet.room = room < packet.l3_bytes ? room : packet.l3_bytes;
	verdict = ruleset_judge(r, &packet);
	meta->judged_ifidx = out->ifidx;
	if (verdict == RULESET_PASS)
		return PUNT_PASSES;
	if (verdict == RULESET_DROP) {
		punt_drop(p, m, r->absent ? DROP_filter_absent : DROP_filter);
		return PUNT_DROPPED;
	}
	meta->reject_type = packet.icmp_type;
	meta->reject_code = packet.icmp_code;
	punt_lost(p, m, DROP_filter);
	return PUNT_REJECTED;
}
