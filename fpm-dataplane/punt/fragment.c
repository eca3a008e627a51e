/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets larger than the egress MTU: IPv4 without DF is cut (librte_ip_frag), all else is
 * answered with the MTU. RFC 791 2.3, RFC 1191, RFC 8200 5.                      [punt]
 */
#include <errno.h>
#include <rte_ip_frag.h>

#include "base/inet.h"
#include "port/vlan.h"
#include "punt/internal.h"

/* 1500 octets under 60 of header and an MTU of 68 are 180. */
#define PIECES_MAX 256

void
fragment_and_send(struct punt *p, struct rte_mbuf *m, uint16_t mtu)
{
	struct packet_meta meta = *packet_meta(m);
	struct rte_mbuf *piece[PIECES_MAX];
	uint8_t *ip = l3_of(m);
	unsigned int len;
	int n;

	if (meta.family == 6 || (get_be16(ip + 6) & 0x4000) != 0) {
		punt_lost(p, m, DROP_mtu);
		if (meta.family == 6)
			icmp_error(p, m, 2, 0, mtu);
		else
			icmp_error(p, m, 3, 4, mtu);
		rte_pktmbuf_free(m);
		return;
	}
	len = get_be16(ip + 2);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	rte_pktmbuf_adj(m, L2_LEN);
	n = rte_ipv4_fragment_copy_nonseg_packet(m, piece, PIECES_MAX, mtu, p->conf.pool);
	if (n < 0) {
		rte_pktmbuf_prepend(m, L2_LEN); /* whole again, for who captures it */
		punt_drop(p, m, n == -ENOMEM ? DROP_no_mbuf : DROP_mtu);
		return;
	}
	for (int i = 0; i < n; i++) {
		uint8_t *eth = (uint8_t *)rte_pktmbuf_prepend(piece[i], L2_LEN);

		ip = eth + L2_LEN;
		put_be16(ip + 10, 0); /* the library leaves the checksum to offload */
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, (ip[0] & 15u) * 4, 0)));
		*packet_meta(piece[i]) = meta;
		vlan_inherit(piece[i], m);
		punt_forward(p, piece[i], 4, false, true);
	}
	rte_pktmbuf_free(m);
}
