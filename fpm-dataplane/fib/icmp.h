/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp: which ICMP error tells of a drop, may it be sent about a packet, and whose address does
 * it bear? RFC 1812 4.3.2.7 and 4.3.2.4, RFC 4443 2.4 (e) and 2.2. No thread of its own: the
 * punt thread sends by it, `fpmctl explain` tells by it.
 */
#ifndef FIB_ICMP_H
#define FIB_ICMP_H

#include "fib/fib.h"

/* The packet that an error would be about. */
struct icmp_about {
	const uint8_t *ip; /* its IP header, network order */
	unsigned int
		room;   /* octets of it that may be looked at; the fixed header at least */
	uint8_t family; /* 4 or 6 */
	bool l2_group;  /* it came in a broadcast or multicast frame */
	bool too_big;   /* the error would be ICMPv6 packet too big */
	uint16_t in_ifidx; /* interface it came in by; 0: our own packet */
};

struct icmp_kind {
	uint8_t type, code;
};

/* The error that tells who sent a packet of its drop. Type 0: none, silent by design. */
struct icmp_kind icmp_of_drop(enum reason cause, uint8_t family);

/*
 * Why no error may be sent, in words that follow "because"; NULL when one may: then `src` is
 * its source. Rates are not asked.                                       [RCU reader]
 */
const char *icmp_refusal(const struct fib *fib, const struct icmp_about *about,
			 struct ipaddr *src);

#endif
