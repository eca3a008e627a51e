/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slow walk of one packet: held ones whose neighbour came, ICMP errors of our own,
 * fragments. The same rules as the fast path, one packet at a time.              [punt]
 */
#include <string.h>

#include "base/inet.h"
#include "port/vlan.h"
#include "punt/internal.h"

/* Nowhere to go: its sender is told, unless that is us. */
static void
give_up(struct punt *p, struct rte_mbuf *m, bool originated, enum reason reason)
{
	punt_lost(p, m, reason);
	if (!originated)
		icmp_for_drop(p, m, reason);
	rte_pktmbuf_free(m);
}

static void
send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated, fib_path path,
	uint64_t hop)
{
	const struct fib_iface *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *eth, *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	uint64_t mac = __builtin_bswap64(hop);
	uint8_t *ttl = family == 4 ? ip + 8 : ip + 7;

	if (!originated && *ttl <= 1) {
		give_up(p, m, originated, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		give_up(p, m, originated, DROP_egress_down);
		return;
	}
	if (len > fib_mtu(p->fib, path, out)) {
		fragment_and_send(p, m, fib_mtu(p->fib, path, out));
		return;
	}
	if (!originated) {
		if (family == 4)
			ip4_ttl_dec(ip);
		else
			(*ttl)--;
		counter_add(&p->count->forwarded[family == 6], 1);
	}
	put_be16(ip - 2, family == 4 ? 0x0800 : 0x86dd);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	eth = vlan_push(m, out);
	memcpy(eth, &mac, 6);
	memcpy(eth + 6, out->mac, 6);
	punt_inject(p, m, out->ifidx);
}

void
punt_forward(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	     bool may_hold)
{
	const uint8_t *ip = l3_of(m);
	struct packet_meta *meta = packet_meta(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	struct ipaddr dst = {0};
	uint64_t hop = 0;
	fib_path path;
	enum path_kind kind;
	struct awaited who;

	memcpy(dst.octet, family == 4 ? ip + 16 : ip + 24, family_octets(family));
	if (originated && family == 6 && ipaddr_is_linklocal6(&dst))
		path = fib_onlink(p->fib, meta->out_ifidx, 6, &dst);
	else
		path = fib_resolve(p->fib, meta->vrf, family, &dst,
				   flow_hash(ip, room, family, p->fib->seed));
	kind = path_kind(path);
	if (kind == PATH_ADJ) {
		hop = atomic_load_explicit(&p->fib->adj[path_index(path)].hop,
					   memory_order_acquire);
		fib_adj_touch(p->fib->adj_used, path_index(path));
	}
	if (hop != 0) {
		send_by(p, m, family, originated, path, hop);
		return;
	}
	if (kind == PATH_LOCAL && !originated) {
		tap_deliver(p, m);
		return;
	}
	if (kind != PATH_ADJ && kind != PATH_ONLINK) {
		give_up(p, m, originated, originated ? DROP_no_route : path_cause(kind));
		return;
	}
	if (!may_hold) {
		give_up(p, m, originated, DROP_neigh_failed);
		return;
	}
	meta->family = family;
	if (originated)
		meta->in_ifidx = 0;
	who = (struct awaited){(uint16_t)path_index(path), family, dst, 0};
	if (kind == PATH_ADJ) {
		const struct fib_adj *adj = &p->fib->adj[path_index(path)];

		who = (struct awaited){adj->ifidx, adj->family, adj->addr,
				       path_index(path)};
	}
	hold_packet(p, m, &who);
}
