/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sid_entry: end points of SRv6 (RFC 8754, 8986, 9800), and the headers of a packet to one.
 *
 * The path of a SID is PATH_LOCAL with the number of its entry in fib->sid, so that a
 * reader that knows no SIDs gives the packet to the kernel, which has the same end point.
 * Forwarders, too, give some packets to the kernel: ICMPv6 to a SID, fragments, and packets
 * with truncated headers.
 */
#ifndef FIB_SID_ENTRY_H
#define FIB_SID_ENTRY_H

#include "base/limits.h"
#include "base/srv6_words.h"
#include "fib/fib.h"
#include "fib/tunnel.h"

/* Different actions with their tables and next hops; 0 is none. */
#define FIB_SIDS_MAX (1u + TABLE_MOST_end_points)
#define SID_NO_IFACE UINT16_MAX
/*
 * Paths of packets that are looked up in the table of the end point alone: if this table
 * has no route, table main is not tried. ALONE: an inner packet. NEXT: a packet that End.T
 * sends to its next segment.
 */
#define SID_PATH_ALONE PATH(PATH_NONE, 1)
#define SID_PATH_NEXT  PATH(PATH_NONE, 2)

#define SRH_TYPE        4u
#define SRH_FIXED_BYTES 8u
#define SID_HEADERS_MAX 3u /* extension headers that forwarders read */

/* rib writes an entry before a path leads to it. Only `vrf` and `ifidx` change later. */
struct fib_sid {
	uint8_t action;                /* enum srv6_action */
	uint8_t flavors;               /* SRV6_PSP, ..., SRV6_TABLE_ALONE */
	uint8_t block_bits, node_bits; /* of NEXT-C-SID, whole octets */
	_Atomic uint16_t vrf; /* W:rib  of its table; FIB_VRF_NONE: no FIB has the table */
	uint8_t family;       /* of `hop`; 0: none */
	struct ipaddr hop;
	/*
	 * W:rib  the interface to `hop`. 0: the end point names none. SID_NO_IFACE: it names one that
	 * is no interface of the dataplane.
	 */
	_Atomic uint16_t ifidx;
	fib_path policy; /* End.B6.Encaps: a headend */
};

/* The headers behind the IPv6 header of a packet to a SID. Offsets are from that header. */
struct sid_packet {
	uint16_t srh_at; /* 0: there is none */
	uint16_t srh_bytes;
	uint16_t srh_next_at; /* of the octet that names the SRH as next header */
	uint16_t upper_at;
	uint8_t upper; /* protocol behind all headers that were read */
	uint8_t left;  /* segments left; 0 without a header */
	/*
	 * Only if the read fails: the octet with a wrong number of segments. 0: another
	 * reason.
	 */
	uint16_t wrong_at;
};

/*
 * Return false if a header is truncated or invalid (RFC 8754, 4.3.1.1), or if there are too
 * many.
 */
static inline bool
sid_packet_read(const uint8_t *ip, unsigned int room, struct sid_packet *p)
{
	unsigned int at = 40, next_at = 6, bytes, headers = 0;
	uint8_t proto = ip[6];

	memset(p, 0, sizeof(*p));
	while (proto == 0 || proto == PROTO_IP6_OPTS || proto == 43) {
		if (headers++ == SID_HEADERS_MAX || room < at + SRH_FIXED_BYTES)
			return false;
		bytes = (ip[at + 1] + 1u) * 8;
		if (room < at + bytes)
			return false;
		if (proto == 43) {
			if (p->srh_at != 0 || ip[at + 2] != SRH_TYPE)
				return false;
			/* If no segment is left, nothing reads the list of segments. */
			if (ip[at + 3] != 0 &&
			    (bytes < SRH_FIXED_BYTES + 16 * (ip[at + 4] + 1u) ||
			     ip[at + 3] > ip[at + 4] + 1u)) {
				p->wrong_at = (uint16_t)(at + 3);
				return false;
			}
			p->srh_at = (uint16_t)at;
			p->srh_bytes = (uint16_t)bytes;
			p->srh_next_at = (uint16_t)next_at;
			p->left = ip[at + 3];
		}
		next_at = at;
		proto = ip[at];
		at += bytes;
	}
	p->upper = proto;
	p->upper_at = (uint16_t)at;
	return true;
}

/* Return the next segment of a packet that has one left. */
static inline const uint8_t *
sid_segment(const uint8_t *ip, const struct sid_packet *p)
{
	return ip + p->srh_at + SRH_FIXED_BYTES + 16 * (p->left - 1u);
}

/*
 * Return the family of the inner packet; 0: there is no complete inner packet. `room`
 * octets from the outer header on may be read.
 */
static inline uint8_t
sid_packet_inside(const uint8_t *ip, unsigned int room, const struct sid_packet *p)
{
	uint8_t family = p->upper == PROTO_IP4 ? 4 : p->upper == PROTO_IP6 ? 6 : 0;
	unsigned int all = 40u + get_be16(ip + 4), len;
	const uint8_t *inner = ip + p->upper_at;

	if (family == 0 || room < p->upper_at + (family == 4 ? 20u : 40u) ||
	    inner[0] >> 4 != family)
		return 0;
	len = family == 4 ? get_be16(inner + 2) : 40u + get_be16(inner + 4);
	return len <= all - p->upper_at ? family : 0;
}

/* Return true if the destination contains another segment: RFC 9800, 4.1.1. */
static inline bool
sid_has_argument(const struct fib_sid *sid, const uint8_t *dst)
{
	if ((sid->flavors & SRV6_NEXT_CSID) == 0)
		return false;
	for (unsigned int at = (sid->block_bits + sid->node_bits) / 8u; at < 16; at++)
		if (dst[at] != 0)
			return true;
	return false;
}

/* Shift the argument of a destination to the place of the node and the function. */
static inline void
sid_shift(const struct fib_sid *sid, uint8_t *dst)
{
	unsigned int block = sid->block_bits / 8u, node = sid->node_bits / 8u;
	uint8_t was[32] = {0};

	memcpy(was, dst, 16);
	for (unsigned int at = block; at < 16; at++)
		dst[at] = was[at + node];
}

/*
 * Return the VRF in which an end point looks up. `own`: the VRF of the packet, for actions
 * without a table.
 */
static inline uint16_t
sid_vrf(const struct fib_sid *sid, uint16_t own)
{
	return sid->action == SRV6_END_T || srv6_is_dt(sid->action)
		       ? atomic_load_explicit(&sid->vrf, memory_order_relaxed)
		       : own;
}

/* Return true for an end point that looks up its own table alone, as Linux does. */
static inline bool
sid_is_alone(const struct fib_sid *sid)
{
	return sid->action == SRV6_END_T || (sid->flavors & SRV6_TABLE_ALONE) != 0;
}

#endif
