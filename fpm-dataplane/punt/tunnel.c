/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: the parts of forward.c that concern inner packets of tunnels, and packets into
 * tunnels or to VTEPs. [punt]
 */
#include "punt/tunnel.h"

#include <string.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "port/label_write.h"
#include "port/vlan_tags.h"
#include "punt/internal.h"

void
punt_tunnel_take(struct rte_mbuf *m)
{
	struct packet_meta *meta = packet_meta(m);

	rte_pktmbuf_adj(m, meta->inner_at);
	meta->inner_at = 0;
	m->ol_flags &= ~PACKET_FLAGS_OF_OUTER;
	memset(rte_pktmbuf_mtod(m, uint8_t *), 0, L2_LEN - 2);
	put_be16(rte_pktmbuf_mtod(m, uint8_t *) + L2_LEN - 2, meta->has_labels ? MPLS_TYPE
							      : meta->family == 4 ? 0x0800
										  : 0x86dd);
}

void
punt_tunnel_count(struct punt *p, const struct fib_tunnel_outer *outer, unsigned int bytes)
{
	for (unsigned int k = 0; k < outer->n; k++) {
		struct if_counters *c = &p->count->port[outer->tunnel[k]->ifidx];

		counter_add(&c->tx_packets, 1);
		counter_add(&c->tx_bytes, bytes);
		bytes += outer->tunnel[k]->tunnel.bytes;
	}
}

bool
punt_tunnel_write(struct punt *p, struct rte_mbuf *m, uint8_t family,
		  const struct fib_tunnel_outer *outer)
{
	uint8_t *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);

	if (rte_pktmbuf_headroom(m) < tunnel_room(outer) + VLAN_TAGS * VLAN_BYTES)
		return false;
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	punt_tunnel_count(p, outer, len);
	tunnel_put_all(p->fib, outer, ip, &family, &len, p->ip_id++);
	m->data_off = (uint16_t)(m->data_off - outer->bytes);
	m->data_len = (uint16_t)(m->data_len + outer->bytes);
	m->pkt_len += outer->bytes;
	put_be16(rte_pktmbuf_mtod(m, uint8_t *) + L2_LEN - 2,
		 family == 4 ? 0x0800 : 0x86dd);
	label_outer(p->fib, m, family, outer->labels);
	return true;
}

struct neigh_key
punt_tunnel_key(const struct fib_tunnel_outer *outer)
{
	return (struct neigh_key){.ifidx = (uint16_t)path_index(outer->path),
				  .family = outer->family,
				  .addr = outer->dst};
}

struct neigh_key
punt_vxlan_key(const struct punt *p, const struct fib_vxlan_hop *hop, fib_path path)
{
	uint32_t index = path_index(path);

	if (path_kind(path) == PATH_ADJ)
		return neigh_key_of_adj(p, index);
	return (struct neigh_key){
		.ifidx = (uint16_t)index, .family = hop->t.family, .addr = hop->t.remote};
}
