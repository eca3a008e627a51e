/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_reason: distinguish packets of control protocols from other packets to this router.
 * The parse and adjacency stages call this; classify.c chooses the policer later. [fwd-n]
 */
#include "base/inet.h"
#include "fwd/local_reason.h"

#define CHADDR (8u + 28u) /* offset of chaddr from the UDP header: RFC 2131, 2 */

bool
fwd_dhcp_answer_any(const struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);
	unsigned int ihl = (ip[0] & 15u) * 4;

	return ip[9] == 17 && (get_be16(ip + 6) & 0x1fff) == 0 &&
	       burst_l3_room(b, i) >= ihl + CHADDR + 6 && get_be16(ip + ihl) == 67 &&
	       get_be16(ip + ihl + 2) == 68;
}

bool
fwd_dhcp_answer(const struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);

	return b->in->unnumbered4 && fwd_dhcp_answer_any(b, i) &&
	       memcmp(ip + (ip[0] & 15u) * 4 + CHADDR, b->in->mac, 6) == 0;
}

/*
 * Return true for a port of a control protocol: BGP, BFD (RFC 5881, 5883, 7881), LDP, DHCP,
 * RIP, Babel.
 */
static bool
port_is_control(uint8_t proto, uint16_t port)
{
	if (proto == 6)
		return port == 179 || port == 646;
	return port == 3784 || port == 3785 || port == 4784 || port == 7784 ||
	       port == 646 || port == 67 || port == 68 || port == 546 || port == 547 ||
	       port == 520 || port == 521 || port == 6696;
}

enum reason
fwd_local_reason(const uint8_t *l3, unsigned int len, uint8_t family)
{
	unsigned int off = family == 4 ? (l3[0] & 15u) * 4 : 40;
	uint8_t proto = family == 4 ? l3[9] : l3[6];

	switch (proto) {
	case 2:   /* IGMP */
	case 46:  /* RSVP */
	case 88:  /* EIGRP */
	case 89:  /* OSPF */
	case 103: /* PIM */
	case 112: /* VRRP */
		return PUNT_local_control;
	case 0: /* IPv6 hop-by-hop options: MLD has a router alert there (RFC 3810, 5) */
		return family == 6 ? PUNT_local_control : PUNT_local;
	case 58: /* ICMPv6: neighbor discovery (RFC 4861) and MLD, not echo */
		if (family == 6 && len > off && l3[off] >= 130 && l3[off] <= 143)
			return PUNT_local_control;
		return PUNT_local;
	case 6:
	case 17:
		if (family == 4 && (get_be16(l3 + 6) & 0x1fff) != 0)
			return PUNT_local; /* a later fragment has no ports */
		if (len >= off + 4 && (port_is_control(proto, get_be16(l3 + off)) ||
				       port_is_control(proto, get_be16(l3 + off + 2))))
			return PUNT_local_control;
		return PUNT_local;
	default:
		return PUNT_local;
	}
}
