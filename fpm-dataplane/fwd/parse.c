/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * First stage: Ethernet, and the class of what it carries. Frames that are not ours to
 * route go to the kernel as they are; unicast IP goes on.                        [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"
#include "fwd/plain.h"

/*
 * Neighbours, links and routing without IP: ARP, LLDP (IEEE 802.1AB), LACP and other slow
 * protocols (802.3), 802.1X, and LLC frames, which have a length in the place of the type:
 * IS-IS (ISO 10589) and spanning tree.
 */
static bool
control_type(uint16_t type)
{
	return type == 0x0806 || type == 0x88cc || type == 0x8809 || type == 0x888e ||
	       type < 0x0600;
}

static void
parse_one(struct burst *b, unsigned int i)
{
	const uint8_t *eth = burst_l2(b, i);
	uint16_t type, len = rte_pktmbuf_data_len(b->m[i]);

	b->family[i] = 0;
	if (len < L2_LEN) {
		burst_leave(b, i, DROP_l2_short);
		return;
	}
	type = get_be16(eth + 12);
	if ((eth[0] & 1) == 0 && memcmp(eth, b->in->mac, 6) != 0) {
		burst_leave(b, i, DROP_l2_foreign);
		return;
	}
	if ((eth[6] & 1) != 0) { /* IEEE 802.3, 3.2.3: a source is one station */
		burst_leave(b, i, DROP_l2_group_source);
		return;
	}
	if ((type == VLAN_C_TYPE || type == VLAN_S_TYPE) && !fwd_priority_tag(b, i)) {
		burst_leave(b, i, DROP_vlan_unknown);
		return;
	}
	type = get_be16(burst_l2(b, i) + 12);
	if (type == 0x0800)
		fwd_parse4(b, i);
	else if (type == 0x86dd)
		fwd_parse6(b, i);
	else if (type == VLAN_C_TYPE || type == VLAN_S_TYPE)
		burst_leave(b, i, DROP_vlan_unknown);
	else
		burst_leave(b, i, control_type(type) ? PUNT_l2_control : PUNT_not_ip);
}

void
fwd_parse_plain(struct burst *b)
{
	memset(b->verdict, VERDICT_GO, sizeof(b->verdict));
	fwd_plain(b);
	for (uint64_t rest = burst_all(b) & ~(b->plain4 | b->plain6);
	     rest != 0 && b->tag_bytes != 0; rest &= rest - 1)
		fwd_untag(b, (unsigned int)__builtin_ctzll(rest));
}

void
fwd_parse(struct burst *b)
{
	fwd_parse_plain(b);
	for (uint64_t rest = burst_all(b) & ~(b->plain4 | b->plain6); rest != 0;
	     rest &= rest - 1)
		parse_one(b, (unsigned int)__builtin_ctzll(rest));
}

#define CHADDR (8u + 28u) /* UDP header, and what is before it: RFC 2131, 2 */

bool
fwd_dhcp_answer(const struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);
	unsigned int ihl = (ip[0] & 15u) * 4;

	return b->in->unnumbered4 && ip[9] == 17 && (get_be16(ip + 6) & 0x1fff) == 0 &&
	       burst_l3_room(b, i) >= ihl + CHADDR + 6 && get_be16(ip + ihl) == 67 &&
	       get_be16(ip + ihl + 2) == 68 &&
	       memcmp(ip + ihl + CHADDR, b->in->mac, 6) == 0;
}

/* A port of a control protocol, either end? BGP, BFD (RFC 5881, 5883, 7881), LDP, DHCP, RIP,
 * Babel. */
static bool
control_port(uint8_t proto, uint16_t port)
{
	if (proto == 6)
		return port == 179 || port == 646;
	return port == 3784 || port == 3785 || port == 4784 || port == 7784 ||
	       port == 646 || port == 67 || port == 68 || port == 546 || port == 547 ||
	       port == 520 || port == 521 || port == 6696;
}

enum reason
fwd_local_class(const uint8_t *l3, unsigned int len, uint8_t family)
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
	case 0: /* IPv6 hop-by-hop options: MLD (RFC 3810, 5) has a router alert there */
		return family == 6 ? PUNT_local_control : PUNT_local;
	case 58: /* ICMPv6: neighbour discovery (RFC 4861) and MLD, not echo */
		if (family == 6 && len > off && l3[off] >= 130 && l3[off] <= 143)
			return PUNT_local_control;
		return PUNT_local;
	case 6:
	case 17:
		if (family == 4 && (get_be16(l3 + 6) & 0x1fff) != 0)
			return PUNT_local; /* no ports in a later fragment */
		if (len >= off + 4 && (control_port(proto, get_be16(l3 + off)) ||
				       control_port(proto, get_be16(l3 + off + 2))))
			return PUNT_local_control;
		return PUNT_local;
	default:
		return PUNT_local;
	}
}
