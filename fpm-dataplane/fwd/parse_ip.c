/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_ip: validate an IPv4 or IPv6 packet before forwarding, on the slow path. [fwd-n]
 */
#include "fwd/local_reason.h"
#include "fwd/parse_ip.h"

#include "base/inet.h"
#include "fwd/label.h"
#include "fwd/sid.h"

/*
 * Return true if no single host may have this address on a wire (RFC 1122, 3.2.1.3; 240/4:
 * RFC 6890, 2.2.2).
 */
static bool
ip4_src_is_martian(uint32_t src)
{
	return src >> 24 == 0 || src >> 24 == 127 || src >= 0xe0000000;
}

/*
 * Handle multicast and broadcast of Ethernet or IP: the packet is for the kernel, or
 * invalid. A packet to an IP group is valid in a unicast frame, too, because some links
 * have no group frames (RFC 6085 allows it for IPv6).
 */
static void
parse_group4(struct burst *b, unsigned int i, uint32_t src, uint32_t dst)
{
	if (src != 0 && ip4_src_is_martian(src)) {
		/*
		 * 0.0.0.0 is excepted: a host without an address sends from it (DHCP,
		 * IGMP).
		 */
		burst_leave(b, i, DROP_ip4_martian_src);
	} else if (dst == 0xffffffff || dst >> 8 == 0xe00000) {
		burst_leave(b, i, fwd_group_reason(burst_l3(b, i), burst_l3_room(b, i), 4));
	} else if (dst >> 28 == 14) { /* an application may have joined the group */
		burst_leave(b, i, PUNT_local);
	} else if ((burst_frame(b, i)[0] & 1) != 0) {
		/*
		 * Only a directed broadcast may come in a broadcast frame (RFC 1122,
		 * 3.3.6).
		 */
		struct ipaddr addr = ipaddr_from_v4(dst);
		fib_path path = fib_resolve(b->fwd->fib, b->in->vrf, 4, &addr, 0);

		burst_leave(b, i,
			    path_kind(path) == PATH_BCAST ? PUNT_group
							  : DROP_l2_not_unicast);
	}
}

/*
 * Return true if the port has verified the checksum of the header and found it good. The
 * result "bad" is ignored, because a device that parses tunnels may mean the inner packet.
 */
static bool
port_has_verified(const struct burst *b, unsigned int i)
{
	return b->rx_cksum && (burst_cksum(b, i) & RTE_MBUF_F_RX_IP_CKSUM_GOOD) != 0;
}

/*
 * Return true if the host has the destination address of the packet. Like Linux, the router
 * then accepts addresses of 240/4, which it does not forward. Packets behind labels, and
 * packets whose path an end point of SRv6 has chosen, are not looked up by their
 * destination here.
 */
static bool
ip4_is_own(const struct burst *b, unsigned int i, uint32_t dst)
{
	struct ipaddr addr = ipaddr_from_v4(dst);

	if (burst_has_labels(b, i) || burst_has_sid_path(b))
		return false;
	return path_kind(fib_resolve(b->fwd->fib, b->in->vrf, 4, &addr, 0)) == PATH_LOCAL;
}

/*
 * Validate an IPv4 packet before forwarding (RFC 1812, 5.2.2), martians included (5.3.7).
 */
void
fwd_parse_ip4(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);
	unsigned int room = burst_l3_segment(b, i);
	unsigned int frame =
		room + rte_pktmbuf_pkt_len(b->m[i]) - rte_pktmbuf_data_len(b->m[i]);
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
	else if (!port_has_verified(b, i) && !ip4_checksum_ok(ip, ihl))
		burst_leave(b, i, DROP_ip4_checksum);
	else if (dst >> 28 == 14 || dst == 0xffffffff || (burst_frame(b, i)[0] & 1) != 0)
		parse_group4(b, i, src, dst);
	if (b->verdict[i] != VERDICT_GO)
		return;
	if (ip4_src_is_martian(src) &&
	    (src < 0xf0000000 || src == 0xffffffff || !ip4_is_own(b, i, dst)))
		burst_leave(b, i, DROP_ip4_martian_src);
	else if (dst >> 24 == 0 || dst >> 24 == 127 ||
		 (dst >= 0xf0000000 && !ip4_is_own(b, i, dst)))
		burst_leave(b, i, DROP_ip4_martian_dst);
	else if ((b->labels >> i & 1) == 0 && fwd_dhcp_answer(b, i))
		burst_leave(b, i, PUNT_local_control);
}

/*
 * Return true for ::, ::1 and ::ffff:0:0/96, which may not appear on a wire (RFC 4291,
 * 2.5.2 and 2.5.3; RFC 6890, 2.2.3).
 */
static bool
ip6_is_martian(const uint8_t *a)
{
	uint64_t hi, lo;

	memcpy(&hi, a, 8);
	memcpy(&lo, a + 8, 8);
	lo = __builtin_bswap64(lo);
	return hi == 0 && (lo <= 1 || lo >> 32 == 0xffff);
}

static bool
ip6_is_unspecified(const uint8_t *a)
{
	static const uint8_t zero[16];

	return memcmp(a, zero, sizeof(zero)) == 0;
}

static bool
ip6_is_linklocal(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

/*
 * Validate an IPv6 packet before forwarding (RFC 8200, RFC 4291). If IPv6 is off on the
 * interface, the packet is dropped, because the kernel would drop it. This does not apply
 * to a packet under labels, which the interface received as MPLS, nor to a packet of a
 * member of a bridge, bond or team of the kernel. For Linux that device has received the
 * packet, and the link-local addresses of that device are not known here.
 */
void
fwd_parse_ip6(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i), *src = ip + 8, *dst = ip + 24;
	unsigned int room = burst_l3_segment(b, i);
	unsigned int frame =
		room + rte_pktmbuf_pkt_len(b->m[i]) - rte_pktmbuf_data_len(b->m[i]);
	bool l2_group = (burst_frame(b, i)[0] & 1) != 0;
	unsigned int len;

	if (b->in->ipv6_off && !b->in->member && !burst_has_labels(b, i)) {
		burst_leave(b, i, DROP_ipv6_off);
		return;
	}
	if (room < 40) {
		burst_leave(b, i, DROP_l2_short);
		return;
	}
	len = 40u + get_be16(ip + 4);
	b->family[i] = 6;
	b->l3_len[i] = (uint16_t)len;
	if (ip[0] >> 4 != 6)
		burst_leave(b, i, DROP_ip6_version);
	else if (len > frame || len > 0xffff || (len == 40 && ip[6] == 0))
		/*
		 * The last condition is a jumbogram (RFC 2675) or a missing hop-by-hop
		 * header.
		 */
		burst_leave(b, i, DROP_ip6_length);
	else if (src[0] == 0xff ||
		 (ip6_is_martian(src) && !(dst[0] == 0xff && ip6_is_unspecified(src))))
		/*
		 * A host without an address sends from ::, but only to a group (RFC 4861,
		 * 4.3).
		 */
		burst_leave(b, i, DROP_ip6_martian_src);
	else if (dst[0] == 0xff) /* in any frame: RFC 6085, 3 */
		/*
		 * Groups of a scope above link-local go to the kernel, because an
		 * application may have joined the group.
		 */
		burst_leave(b, i,
			    (dst[1] & 15) <= 2
				    ? fwd_group_reason(ip, burst_l3_room(b, i), 6)
				    : PUNT_local);
	else if (l2_group)
		burst_leave(b, i, DROP_l2_not_unicast);
	else if (ip6_is_martian(dst))
		burst_leave(b, i, DROP_ip6_martian_dst);
	else if (ip6_is_linklocal(dst))
		/*
		 * Even the kernel never forwards to a link-local address: RFC 4291, 2.5.6.
		 */
		burst_leave(b, i,
			    b->in->member || fib_iface_has_linklocal(b->in, dst)
				    ? fwd_local_reason(ip, burst_l3_room(b, i), 6)
				    : DROP_ip6_linklocal_dst);
}
