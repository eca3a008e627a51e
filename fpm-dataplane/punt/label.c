/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label: the parts of forward.c and icmp.c that concern packets with MPLS labels: look them
 * up, take the labels off for an ICMP error, put them back. [punt]
 */
#include <string.h>

#include "base/inet.h"
#include "punt/internal.h"
#include "punt/label.h"

/* Return the octets of a frame that are not in its first segment. */
static unsigned int
octets_behind(const struct rte_mbuf *m)
{
	return rte_pktmbuf_pkt_len(m) - rte_pktmbuf_data_len(m);
}

const uint8_t *
punt_label_ip(struct rte_mbuf *m, unsigned int *n)
{
	const uint8_t *p = l3_of(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	bool bottom = false;

	for (*n = 0; !bottom && room >= LABEL_BYTES; ++*n) {
		bottom = label_is_bottom(get_be32(p));
		p += LABEL_BYTES;
		room -= LABEL_BYTES;
	}
	return bottom && label_ip_bytes(p, room, room + octets_behind(m)) != 0 ? p : NULL;
}

uint16_t
punt_label_resolve(struct punt *p, struct rte_mbuf *m, struct label_packet *lp,
		   fib_path *path)
{
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	struct ipaddr dst = {0};
	struct label_walk walk;
	const uint8_t *ip;

	fib_label_walk(p->fib, l3_of(m), room, &walk);
	*path = walk.path;
	*lp = (struct label_packet){.m = m,
				    .pops = walk.n,
				    .ttl = walk.ttl,
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
		if (path_kind(*path) == PATH_VRF) {
			memcpy(dst.octet, ip + (walk.payload == 4 ? 16 : 24),
			       family_octets(walk.payload));
			*path = fib_resolve(
				p->fib, (uint16_t)path_index(*path), walk.payload, &dst,
				flow_hash(ip, room, walk.payload, p->fib->seed));
		}
	}
	if (path_kind(*path) == PATH_ENCAP)
		lp->encap = fib_encap(p->fib, *path);
	return N_REASON;
}

/*
 * Return the interface whose address is the source of an ICMP error to a packet that labels
 * lead to a VRF: by which it would leave, else any of the VRF. An address of the core or of
 * another VRF must not be shown to a customer.
 */
static uint16_t
source_iface(struct punt *p, struct rte_mbuf *m, uint16_t vrf, uint8_t family)
{
	const struct fib_iface *out = NULL;
	struct label_packet lp;
	fib_path path;

	if (punt_label_resolve(p, m, &lp, &path) == N_REASON) {
		if (path_kind(path) == PATH_ADJ)
			out = fib_iface(p->fib, p->fib->adj[path_index(path)].ifidx);
		else if (path_kind(path) == PATH_ONLINK)
			out = fib_iface(p->fib, path_index(path));
	}
	return out != NULL && out->vrf == vrf ? out->ifidx
					      : fib_iface_of_vrf(p->fib, vrf, family);
}

bool
punt_labels_take(struct punt *p, struct rte_mbuf *m, struct punt_labels *labels)
{
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = punt_label_ip(m, &labels->n);
	unsigned int bytes = labels->n * LABEL_BYTES;
	struct label_walk walk;
	uint8_t *eth;

	if (ip == NULL || labels->n > PUNT_LABELS_MAX)
		return false;
	memcpy(labels->entry, l3_of(m), bytes);
	fib_label_walk(p->fib, l3_of(m), rte_pktmbuf_data_len(m) - L2_LEN, &walk);
	labels->ends_here = walk.reason == N_REASON && path_kind(walk.path) == PATH_VRF;
	labels->vrf = labels->ends_here ? (uint16_t)path_index(walk.path) : 0;
	labels->out_ifidx = labels->ends_here && labels->vrf != 0
				    ? source_iface(p, m, labels->vrf, ip[0] >> 4)
				    : 0;
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
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *);

	if (rte_pktmbuf_headroom(m) < bytes + VLAN_TAGS * VLAN_BYTES)
		return false;
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
