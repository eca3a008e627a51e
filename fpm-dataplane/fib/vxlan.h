/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vxlan: IP over VXLAN (RFC 7348), as EVPN's symmetric IRB uses it (RFC 9135, 9136).
 *
 * A bridge of the kernel whose only port is a vxlan device is an interface of the
 * dataplane, and has a number as a VLAN has. Its neighbors are routers behind VTEPs. Such a
 * neighbor has an adjacency like any other, but the adjacency's word `hop` is 0, so that
 * the loops for plain packets skip its packets. fib->vxlan_hop has all headers for it,
 * ready to be copied. The flow of a packet chooses among equal paths to the VTEP.
 *
 * Functions that read tables are for [RCU reader].
 */
#ifndef FIB_VXLAN_H
#define FIB_VXLAN_H

#include "fib/tunnel.h"

#define PROTO_UDP 17u

#define UDP_BYTES   8u
#define VXLAN_BYTES 8u
#define ETH_BYTES   14u
/* Octets from the UDP header to the inner packet. */
#define VXLAN_HEAD_BYTES (UDP_BYTES + VXLAN_BYTES + ETH_BYTES)

#define VXLAN_VNI_FLAG 0x08u /* RFC 7348, 5: in the first octet */

/*
 * The headers for one neighbor behind a VXLAN. Immutable: neigh publishes a new struct for
 * each change.
 */
struct fib_vxlan_hop {
	uint16_t ifidx; /* of the interface */
	bool csum;
	bool df6;                  /* an inner IPv6 packet sets DF of the outer header */
	uint16_t from_low, n_from; /* source ports */
	/*
	 * The outer header, with those of UDP, VXLAN and Ethernet. As for GRE, an EtherType
	 * names the inner packet. bytes 0: only the kernel knows the VTEP.
	 */
	struct fib_tunnel t;
};

/*
 * The interfaces over VXLAN that are up, by VRF, port and VNI: a hash table with open
 * addressing. neigh adds and removes entries in place, and publishes a new table if this
 * one is full.
 */
struct fib_vxlans {
	uint32_t mask; /* number of entries less one; the number is a power of two */
	/*
	 * One of the interfaces, if all of them have the same VRF, local address and port,
	 * and the kernel serves no vxlan device itself. 0: the kernel decides about unknown
	 * VNIs.
	 */
	_Atomic uint16_t one_end; /* W:neigh R:fwd,punt */
	/* W:neigh R:fwd,punt  ifidx; 0: free. A removed entry has the number of a port. */
	_Atomic uint16_t entry[];
};

uint32_t fib_vxlan_hash(const struct fib *fib, uint16_t vrf, uint16_t port, uint32_t vni);

/* A VXLAN packet to this host. */
struct fib_vxlan_found {
	/*
	 * N_REASON: the packet is for interface `ifidx`, or for the kernel if `ifidx` is 0.
	 * Else the reason of a drop.
	 */
	uint16_t reason, ifidx;
	uint16_t udp_at; /* offset of the UDP header from the outer IP header */
	uint16_t at;     /* offset of the inner packet from the outer IP header */
	uint16_t family; /* of the inner packet; an octet would be slower to return */
};

/*
 * Find the interface of a VXLAN packet to this host. Its header is valid; `room` octets of
 * it, without padding, may be read. Fragments go to the kernel, and so do inner frames to
 * multicast or broadcast MACs, of ARP and of other protocols.
 *
 * last  the interface of the last packet, because the next packet often has the same
 *       interface. The reader clears it (NULL) at each quiescent state.
 */
struct fib_vxlan_found fib_vxlan_find(const struct fib *fib, uint16_t vrf, uint8_t family,
				      const uint8_t *ip, unsigned int room,
				      const struct fib_iface **last);

/* Return the headers for the neighbor of an adjacency; NULL: it is not behind a VXLAN. */
static inline const struct fib_vxlan_hop *
fib_vxlan_hop(const struct fib *fib, uint32_t adj)
{
	return atomic_load_explicit(&fib->vxlan_hop[adj], memory_order_consume);
}

static inline const struct fib_vxlan_hop *
path_vxlan(const struct fib *fib, fib_path path)
{
	return path_kind(path) == PATH_ADJ ? fib_vxlan_hop(fib, path_index(path)) : NULL;
}

/* Return the tunnel, or the interface over VXLAN, that a path leads into; NULL: none. */
static inline const struct fib_iface *
path_enters(const struct fib *fib, fib_path path)
{
	const struct fib_vxlan_hop *hop = path_vxlan(fib, path);

	return hop == NULL ? path_tunnel(fib, path) : fib_iface(fib, hop->ifidx);
}

/* The path of an outer packet. */
struct fib_vxlan_outer {
	/*
	 * N_REASON: follow `path`. PUNT_kernel_route: the kernel sends the packet. Else a
	 * drop.
	 */
	uint16_t reason;
	fib_path path;                  /* PATH_ADJ or PATH_ONLINK */
	uint32_t hash;                  /* of the inner flow */
	const struct fib_encap *labels; /* before the outer header; NULL: none */
};

/*
 * Find the path of the outer packet for the packet at `ip`, of which `room` octets may be
 * read.
 */
void fib_vxlan_resolve(const struct fib *fib, const struct fib_vxlan_hop *hop,
		       uint8_t family, const uint8_t *ip, unsigned int room,
		       struct fib_vxlan_outer *outer);

/*
 * Find the group word of the route to the VTEP, which all packets to a neighbor have in
 * common. Return false if each packet needs fib_vxlan_resolve(). If true, for each flow
 * whose vxlan_path() is a PATH_ADJ, fib_vxlan_resolve() finds the same path. It refuses
 * such a flow only because of the egress interface.
 */
bool fib_vxlan_begin(const struct fib *fib, const struct fib_vxlan_hop *hop,
		     uint64_t *route);

/*
 * Return the length of the largest packet to a neighbor that may leave by `out` without
 * fragments of the outer packet. 0: none.
 */
unsigned int fib_vxlan_mtu(const struct fib *fib, const struct fib_vxlan_hop *hop,
			   const struct fib_vxlan_outer *outer,
			   const struct fib_iface *out);

/*
 * Return the source port of a flow, by which transit routers choose among equal paths. The
 * hash is mixed again, because all flows to one VTEP may share the bits by which this
 * router has chosen.
 */
static inline uint16_t
vxlan_source_port(const struct fib_vxlan_hop *hop, uint32_t hash)
{
	uint32_t mixed = (uint32_t)mix64(hash);

	return (uint16_t)(hop->from_low + ((uint64_t)mixed * hop->n_from >> 32));
}

/* Return the path of an outer packet. Its UDP ports choose among equal paths. */
static inline fib_path
vxlan_path(const struct fib *fib, const struct fib_vxlan_hop *hop, uint64_t route,
	   uint32_t hash)
{
	uint8_t head[FIB_TUNNEL_HEAD_MAX];

	if (!group_word_is_block(route))
		return (fib_path)route;
	memcpy(head, hop->t.head, sizeof(head));
	put_be16(head + hop->t.bytes - VXLAN_HEAD_BYTES, vxlan_source_port(hop, hash));
	return group_word_path(route,
			       flow_hash(head, hop->t.bytes, hop->t.family, fib->seed));
}

/* Write the outer headers of VXLAN as tunnel_put() does. The UDP checksum is 0. */
static inline uint8_t *
vxlan_put(const struct fib_vxlan_hop *hop, uint8_t *ip, uint8_t family, unsigned int len,
	  uint16_t id, uint32_t hash)
{
	bool df = family == 6 ? hop->t.df || hop->df6 : tunnel_sets_df(&hop->t, ip, family);
	uint8_t *out = tunnel_put_df(&hop->t, ip, family, len, id, hash, df);
	uint8_t *udp = ip - VXLAN_HEAD_BYTES;

	put_be16(udp, vxlan_source_port(hop, hash));
	put_be16(udp + 4, (uint16_t)(len + VXLAN_HEAD_BYTES));
	return out;
}

/*
 * Return the sum over the pseudo header of a UDP packet of `len` octets (RFC 768; RFC 8200,
 * 8.1).
 */
static inline uint32_t
udp_pseudo_sum(const uint8_t *ip, uint8_t family, unsigned int len)
{
	return family == 4 ? inet_sum(ip + 12, 8, PROTO_UDP + len)
			   : inet_sum(ip + 8, 32, PROTO_UDP + len);
}

#endif
