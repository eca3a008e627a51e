/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp: choose the ICMP error about a drop, decide whether it may be sent, and choose its
 * source address. RFC 1812 4.3.2.7 and 4.3.2.4, RFC 4443 2.4 (e) and 2.2. No thread of its
 * own: the punt thread sends the errors, and `fpmctl explain` shows them.
 */
#ifndef FIB_ICMP_H
#define FIB_ICMP_H

#include "fib/fib.h"

/*
 * Where the MPLS labels of a packet lead. If they end on this router, the route to the
 * sender is looked up in their VRF, and the source is an address of that VRF. If they do
 * not end here, the error follows their path, and the router at its end knows a route to
 * the sender (RFC 3032, 2.3.2).
 */
struct icmp_labels {
	bool end_here;
	uint16_t vrf; /* 0 if they do not end here */
	/* The source is an address of this interface; 0: of the ingress interface. */
	uint16_t source_ifidx;
};

/* The packet that caused the error. */
struct icmp_about {
	const uint8_t *ip; /* its IP header, network order */
	unsigned int room; /* octets of it that may be read; at least the fixed header */
	uint8_t family;    /* 4 or 6 */
	bool l2_group;     /* received in a broadcast or multicast frame */
	bool too_big;      /* the error would be ICMPv6 packet too big */
	uint16_t in_ifidx; /* interface that received it; 0: the daemon's own packet */
	const struct icmp_labels *labels; /* NULL: it came without MPLS labels */
};

/*
 * Find out where the labels at `p` lead. `room` octets of the labels and the packet behind
 * them may be read. An address of the core or of another VRF must not be shown to a
 * customer. So the source is an address of the interface by which the packet would leave,
 * else of any interface of the VRF. [RCU reader]
 */
struct icmp_labels icmp_labels_of(const struct fib *fib, const uint8_t *p,
				  unsigned int room);

/*
 * Return struct icmp_labels for a packet that an end point of SRv6 has put in a VRF. The
 * source is an address of the interface by which the error leaves (RFC 1812, 4.3.2.4; RFC
 * 4443, 2.2), if this interface is in the VRF, else of any interface of the VRF. `ip`: the
 * fixed header at least. [RCU reader]
 */
struct icmp_labels icmp_lead_in_vrf(const struct fib *fib, uint16_t vrf, uint8_t family,
				    const uint8_t *ip);

/*
 * Return the source for a packet that this router sends by `out` to an address that is not
 * link-local. All zero: the interface has no such source. RFC 6724, 5, rules 6 and 8.
 */
struct ipaddr icmp_source6(const struct fib_iface *out, const struct ipaddr *to);

struct icmp_kind {
	uint8_t type, code;
};

/*
 * Return the ICMP error about a drop. Type 0: none, because the drop is silent by design.
 */
struct icmp_kind icmp_of_drop(enum reason cause, uint8_t family);

/*
 * Return the TOS octet of an error about an IPv4 packet: precedence internetwork control
 * (RFC 1812, 4.3.2.5), and the bits 0x1e of the packet's TOS octet, as in Linux.
 */
uint8_t icmp_tos(const uint8_t *ip4);

/*
 * Return NULL if the error may be sent, and set *src to its source. Otherwise return the
 * reason, in words that follow "because". Rate limits are not checked here. [RCU reader]
 */
const char *icmp_refusal(const struct fib *fib, const struct icmp_about *about,
			 struct ipaddr *src);

#endif
