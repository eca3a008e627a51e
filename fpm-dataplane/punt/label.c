/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label: the parts of forward.c and icmp.c that concern packets with MPLS labels: look them
 * up, remove the labels for an ICMP error, put the labels back. [punt]
 */
#include <string.h>

#include "base/inet.h"
#include "punt/internal.h"
#include "punt/label.h"

/* Return the number of octets of a frame that are not in its first segment. */
static unsigned int
octets_behind(const struct rte_mbuf *m)
{
	return rte_pktmbuf_pkt_len(m) - rte_pktmbuf_data_len(m);
}

uint16_t
punt_label_resolve(struct punt *p, struct rte_mbuf *m, struct label_packet *lp,
		   fib_path *path)
{
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	struct label_walk walk;
	const uint8_t *ip;

	fib_label_walk(p->fib, l3_of(m), room, &walk);
	*path = walk.path;
	*lp = (struct label_packet){.m = m,
				    .pops = walk.n,
				    .ttl = walk.ttl,
				    .carried = walk.carried,
				    .tc = walk.tc,
				    .bottom = walk.bottom,
				    .uniform_ttl = atomic_load_explicit(
					    &p->fib->label_ttl, memory_order_relaxed)};
	if (walk.reason != N_REASON)
		return walk.reason;
	if (walk.payload != 0 && path_kind(*path) != PATH_ENCAP) {
		ip = label_packet_rest(lp);
		room -= walk.n * LABEL_BYTES;
		lp->family = walk.payload;
		lp->l3_bytes = label_ip_bytes(ip, room, room + octets_behind(m));
		if (lp->l3_bytes == 0)
			return DROP_mpls_payload;
		if (path_kind(*path) == PATH_VRF)
			*path = fib_resolve_ip(p->fib, (uint16_t)path_index(*path),
					       walk.payload, ip, room);
	}
	if (path_kind(*path) == PATH_ENCAP)
		lp->encap = fib_encap(p->fib, *path);
	return N_REASON;
}

bool
punt_labels_take(struct punt *p, struct rte_mbuf *m, struct punt_labels *labels)
{
	struct packet_meta *meta = packet_meta(m);
	uint16_t ip_bytes;
	const uint8_t *ip = label_ip_find(m, 0, &labels->n, &ip_bytes);
	unsigned int bytes = labels->n * LABEL_BYTES;
	uint8_t *eth;

	if (ip == NULL || labels->n > PUNT_LABELS_MAX)
		return false;
	/*
	 * The forwarder may not have verified this header. RFC 1812, 4.3.2.7 forbids an
	 * error about a packet whose header is wrong, and fragments would get a right
	 * checksum.
	 */
	if (ip[0] >> 4 == 4 && !ip4_checksum_ok(ip, (ip[0] & 15u) * 4))
		return false;
	memcpy(labels->entry, l3_of(m), bytes);
	labels->lead = icmp_labels_of(p->fib, l3_of(m), rte_pktmbuf_data_len(m) - L2_LEN);
	meta->family = ip[0] >> 4;
	meta->has_labels = false;
	eth = rte_pktmbuf_mtod(m, uint8_t *);
	memmove(eth + bytes, eth, L2_LEN - 2);
	rte_pktmbuf_adj(m, (uint16_t)bytes);
	put_be16(rte_pktmbuf_mtod(m, uint8_t *) + L2_LEN - 2,
		 meta->family == 4 ? 0x0800 : 0x86dd);
	return true;
}

bool
punt_labels_put(struct rte_mbuf *m, const struct punt_labels *labels, uint8_t ttl)
{
	unsigned int bytes = labels->n * LABEL_BYTES;
	uint8_t *eth;

	if (!packet_make_room(m, bytes + VLAN_TAGS * VLAN_BYTES))
		return false;
	eth = rte_pktmbuf_mtod(m, uint8_t *);
	m->data_off = (uint16_t)(m->data_off - bytes);
	m->data_len = (uint16_t)(m->data_len + bytes);
	m->pkt_len += bytes;
	memmove(eth - bytes, eth, L2_LEN - 2);
	eth -= bytes;
	put_be16(eth + L2_LEN - 2, MPLS_TYPE);
	memcpy(eth + L2_LEN, labels->entry, bytes);
	for (unsigned int i = 0; ttl != 0 && i < labels->n; i++)
		eth[L2_LEN + i * LABEL_BYTES + 3] = ttl;
	packet_meta(m)->has_labels = true;
	return true;
}
