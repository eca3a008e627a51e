/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv4 validation before forwarding, RFC 1812 5.2.2, and martians, 5.3.7.        [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"

/* No address of a single host on a wire: RFC 1122, 3.2.1.3; RFC 6890, 2.2.2 for 240/4. */
static bool
martian_src(uint32_t src)
{
	return src >> 24 == 0 || src >> 24 == 127 || src >= 0xe0000000;
}

/*
 * Multicast and broadcast at either layer: for the kernel, or wrong. To an IP group it may
 * come in a frame for us alone, too: some links have no others, as RFC 6085 says for IPv6.
 */
static void
group4(struct burst *b, unsigned int i, uint32_t src, uint32_t dst)
{
	if (src != 0 && martian_src(src)) {
		/* Only who has no address yet (DHCP, IGMP) may send from none. */
		burst_leave(b, i, DROP_ip4_martian_src);
	} else if (dst == 0xffffffff || dst >> 8 == 0xe00000) {
		burst_leave(b, i, fwd_group_class(burst_l3(b, i), burst_l3_room(b, i), 4));
	} else if (dst >> 28 == 14) { /* may interest an application */
		burst_leave(b, i, PUNT_local);
	} else if ((burst_l2(b, i)[0] & 1) != 0) {
		/* RFC 1122, 3.3.6: only a directed broadcast may come in such a frame. */
		struct ipaddr addr = ipaddr_from_v4(dst);
		fib_path path = fib_resolve(b->fwd->fib, b->in->vrf, 4, &addr, 0);

		burst_leave(b, i,
			    path_kind(path) == PATH_BCAST ? PUNT_group
							  : DROP_l2_not_unicast);
	}
}

void
fwd_parse4(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);
	unsigned int room = rte_pktmbuf_data_len(b->m[i]) - L2_LEN;
	unsigned int frame = rte_pktmbuf_pkt_len(b->m[i]) - L2_LEN;
	unsigned int ihl, len;
	uint32_t src, dst;

	if (room < 20) {
		burst_leave(b, i, DROP_l2_short);
		return;
	}
	ihl = (ip[0] & 15u) * 4;
	len = get_be16(ip + 2);
	src = get_be32(ip + 12);
	dst = get_be32(ip + 16);
	b->family[i] = 4;
	b->l3_len[i] = (uint16_t)len;
	if (ip[0] >> 4 != 4)
		burst_leave(b, i, DROP_ip4_version);
	else if (ihl < 20 || ihl > room)
		burst_leave(b, i, DROP_ip4_ihl);
	else if (len < ihl || len > frame)
		burst_leave(b, i, DROP_ip4_length);
	else if (b->rx_cksum && burst_cksum(b, i) != RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN
			 ? burst_cksum(b, i) == RTE_MBUF_F_RX_IP_CKSUM_BAD
			 : !ip4_checksum_ok(ip, ihl))
		burst_leave(b, i, DROP_ip4_checksum);
	else if (dst >> 28 == 14 || dst == 0xffffffff || (burst_l2(b, i)[0] & 1) != 0)
		group4(b, i, src, dst);
	if (b->verdict[i] != VERDICT_GO)
		return;
	if (martian_src(src))
		burst_leave(b, i, DROP_ip4_martian_src);
	else if (dst >> 24 == 0 || dst >> 24 == 127 || dst >= 0xf0000000)
		burst_leave(b, i, DROP_ip4_martian_dst);
	else if (fwd_dhcp_answer(b, i))
		burst_leave(b, i, PUNT_local_control);
}
