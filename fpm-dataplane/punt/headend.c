/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headend: the parts of forward.c that concern packets that get an outer header of SRv6.
 * [punt]
 */
#include "punt/headend.h"

#include <string.h>

#include "base/inet.h"
#include "port/label_write.h"
#include "port/vlan_tags.h"

static unsigned int
packet_bytes(struct rte_mbuf *m, uint8_t family)
{
	const uint8_t *ip = l3_of(m);

	return family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
}

void
punt_headend_outer(struct punt *p, struct rte_mbuf *m, uint8_t family, fib_path path,
		   struct fib_headend_outer *outer)
{
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN, len = packet_bytes(m, family);

	/* Hash the same octets as forwarders, so that a flow has one path. */
	fib_headend_resolve(p->fib, path, family, l3_of(m), len < room ? len : room, outer);
}

bool
punt_headend_write(const struct punt *p, struct rte_mbuf *m, uint8_t family,
		   const struct fib_headend_outer *outer)
{
	unsigned int bytes = outer->headend->bytes, len = packet_bytes(m, family);
	unsigned int labels = outer_label_bytes(outer->labels);

	if (!packet_make_room(m, bytes + labels + VLAN_TAGS * VLAN_BYTES))
		return false;
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	headend_put(outer, l3_of(m), family, len);
	m->data_off = (uint16_t)(m->data_off - bytes);
	m->data_len = (uint16_t)(m->data_len + bytes);
	m->pkt_len += bytes;
	put_be16(rte_pktmbuf_mtod(m, uint8_t *) + L2_LEN - 2, 0x86dd);
	label_outer(p->fib, m, 6, outer->labels);
	return true;
}

struct neigh_key
punt_headend_key(const struct punt *p, const struct fib_headend_outer *outer)
{
	struct neigh_key key = {0};

	if (outer->reason != N_REASON)
		return key;
	if (path_kind(outer->path) == PATH_ADJ)
		return neigh_key_of_adj(p, path_index(outer->path));
	key.ifidx = outer->out->ifidx;
	key.family = 6;
	memcpy(key.addr.octet, outer->head + 24, sizeof(key.addr.octet));
	return key;
}
