/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: tunnels of the kernel as interfaces of the dataplane: GRE (RFC 2784, 2890, 7676)
 * and IP in IP (RFC 2003, 2473, 4213).
 *
 * neigh follows the links. A tunnel has an interface number as a VLAN has, and its
 * fib_iface has a template of the outer header. A route by a tunnel is PATH_ONLINK with
 * that number. Forwarders look up the outer destination again after each quiescent state.
 * So a tunnel follows every change of the routes below it, although no table records which
 * routes it uses.
 *
 * Functions that read tables are for [RCU reader].
 */
#ifndef FIB_TUNNEL_H
#define FIB_TUNNEL_H

#include <endian.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "fib/fib.h"
#include "fib/label.h"

#define FIB_TUNNELS_DEEP 4 /* tunnels in tunnels, at most */

#define PROTO_IP4      4u
#define PROTO_IP6      41u
#define PROTO_GRE      47u
#define PROTO_IP6_OPTS 60u

/*
 * TTL of outer packets before MPLS labels, if the tunnel inherits the TTL:
 * net.ipv4.ip_default_ttl
 */
#define FIB_TUNNEL_TTL 64u

#define ECN_MASK 3u
#define ECN_ECT1 1u
#define ECN_CE   3u

/*
 * The tunnels that are up, by struct fib_tunnel_key: a hash table with open addressing. A
 * tunnel that takes IPv4 and IPv6 without GRE has two entries. neigh adds entries in place,
 * and removes none. So a reader compares the key with the interface, which may be down or
 * have another key. neigh publishes a new table if this one is full, or if tunnels share a
 * key.
 */
struct fib_tunnels {
	uint32_t mask; /* number of entries less one; the number is a power of two */
	/* W:neigh R:fwd,punt  ifidx, and FIB_TUNNEL_SHARED; 0: free */
	_Atomic uint16_t entry[];
};

/*
 * Another tunnel has the same addresses and key, and differs by its link only. The kernel
 * decides which of them a packet is for.
 */
#define FIB_TUNNEL_SHARED 0x8000u
static_assert(IFIDX_MAX <= FIB_TUNNEL_SHARED, "a bit of an entry is free");

/* Identifies the tunnel of an outer packet. */
struct fib_tunnel_key {
	struct ipaddr local, remote;
	uint32_t key; /* of GRE; 0 without */
	uint16_t vrf; /* in which the packet came */
	uint8_t family;
	uint8_t proto; /* PROTO_IP4, PROTO_IP6 or PROTO_GRE */
	bool has_key;
};

uint32_t fib_tunnel_hash(const struct fib *fib, const struct fib_tunnel_key *key);

/* Return true if a tunnel receives the outer packets with this key. */
bool fib_tunnel_is(const struct fib_tunnel *t, const struct fib_tunnel_key *key);

/* Result of the search for the tunnel of an outer packet. */
struct fib_tunnel_found {
	uint16_t ifidx; /* of the tunnel */
	uint16_t at;    /* offset of the inner packet from the outer header */
	uint8_t family; /* of the inner packet; 0: it has MPLS labels (RFC 4023) */
	uint8_t ecn;    /* of the outer header */
};

/*
 * The tunnel of the last packet, because the next packet often has the same tunnel. The
 * reader clears it at each quiescent state (ifidx: 0).
 */
struct fib_tunnel_last {
	struct fib_tunnel_words {
		uint64_t remote[2], local[2], rest;
	} words; /* its key */
	uint16_t ifidx;
	uint32_t link; /* the tunnel receives by this kernel interface only; 0: by all */
};

/*
 * Return true if packets of this IP protocol to this host may be outer packets of a tunnel.
 */
static inline bool
tunnel_proto(uint8_t proto)
{
	return proto == PROTO_GRE || proto == PROTO_IP4 || proto == PROTO_IP6 ||
	       proto == PROTO_IP6_OPTS;
}

/*
 * Find the tunnel of a packet to this host, which came by the kernel interface `ifindex` of
 * `vrf`. Its header is valid; `room` octets of it, without padding, may be read. Returns
 * false if the packet is for the kernel: there is no tunnel, the tunnel does not receive
 * packets of this interface, or only the kernel can handle the packet (fragments, GRE with a
 * checksum, a sequence number, routing or another version, payloads that are neither IP nor
 * MPLS, and MPLS if the kernel has none).
 */
bool fib_tunnel_find(const struct fib *fib, uint16_t vrf, uint32_t ifindex, uint8_t family,
		     const uint8_t *ip, unsigned int room, struct fib_tunnel_last *last,
		     struct fib_tunnel_found *found);

/*
 * Set the ECN field of the inner packet by RFC 6040, 4.2, and return true. Return false if
 * the packet must be dropped, because it met congestion and cannot carry the mark. A second
 * call with the same arguments changes nothing.
 */
bool fib_tunnel_ecn(uint8_t *ip, uint8_t family, uint8_t outer);

/* The path of a packet into a tunnel, and of its outer packet to a neighbor. */
struct fib_tunnel_outer {
	/*
	 * N_REASON: follow `path`. PUNT_kernel_route: the kernel sends the packet. Else a
	 * drop.
	 */
	uint16_t reason;
	fib_path path; /* PATH_ADJ, or PATH_ONLINK of an interface that is no tunnel */
	const struct fib_iface *tunnel[FIB_TUNNELS_DEEP]; /* innermost first */
	unsigned int n;
	unsigned int bytes; /* octets of all outer headers */
	uint8_t family;     /* of the outermost header */
	bool any6;          /* some outer headers are IPv6 */
	bool by_ds;         /* rules may choose the path by the inner packet's DS field */
	struct ipaddr dst;  /* of the outermost header */
	const struct fib_encap *labels; /* before the outermost header; NULL: none */
};

/* Find the path of packets with the DS field `ds` that leave by the tunnel `ifidx`. */
void fib_tunnel_resolve(const struct fib *fib, uint16_t ifidx, uint8_t ds,
			struct fib_tunnel_outer *outer);

/*
 * Look up an outer packet as one of this host, to which policy rules apply. `ds`: its DS
 * field, of which the ECN bits do not count.
 */
fib_path outer_look_up(const struct fib *fib, const struct fib_tunnel *t,
		       const uint8_t *head, uint8_t ds);

/*
 * Note an ICMP error about an outer packet of a tunnel, which the kernel has got as well. The
 * forwarders then give the next packet into the tunnel to the kernel. The kernel forwards it, and
 * sends its sender the ICMP error "unreachable" (ip_tunnel.err_count). At most
 * FIB_TUNNEL_TOLD_MAX errors about a tunnel wait for a packet.                      [punt]
 */
void fib_tunnel_tell(const struct fib *fib, uint16_t ifidx);
#define FIB_TUNNEL_TOLD_MAX 4

/* Return true if an ICMP error about an outer packet of one of the tunnels has arrived. */
bool fib_tunnel_is_told(const struct fib *fib, const struct fib_tunnel_outer *outer);
/* Return true if the kernel gets this packet because of an error: one packet per error. */
bool fib_tunnel_take_told(const struct fib *fib, const struct fib_tunnel_outer *outer);

/*
 * Return the length of the largest packet that may leave by `out` without fragments of the
 * outer packet. 0: no packet fits.
 */
unsigned int fib_tunnel_mtu(const struct fib *fib, const struct fib_tunnel_outer *outer,
			    const struct fib_iface *out);

/* Return true if the outer packet of this packet has DF set, or is IPv6. */
static inline bool
tunnel_sets_df(const struct fib_tunnel *t, const uint8_t *ip, uint8_t family)
{
	return t->family == 6 || t->df ||
	       (family == 4 && !t->ignore_df && (ip[6] & 0x40) != 0);
}

/*
 * Return true if the source of an IPv6 packet is the far end of a tunnel over IPv6. Like
 * Linux, forwarders drop such a packet, because it may be in a routing loop
 * (ip6_tnl_addr_conflict()).
 */
static inline bool
tunnel_conflicts(const struct fib_tunnel *t, const uint8_t *ip, uint8_t family)
{
	return t->family == 6 && family == 6 && memcmp(ip + 8, t->remote.octet, 16) == 0;
}

/*
 * Return true if the packet may go into the tunnel without a check of its options. RFC
 * 2473, 4.1.1 requires that the tunnel encapsulation limit of an IPv6 packet is obeyed. The
 * limit is in a header of options. Also return false for a packet of tunnel_conflicts().
 */
static inline bool
tunnel_takes(const struct fib_tunnel *t, const uint8_t *ip, uint8_t family)
{
	if (!(family == 4 ? t->inner4 : t->inner6))
		return false;
	return !(t->family == 6 && family == 6 &&
		 (ip[6] == 0 || ip[6] == 43 || ip[6] == PROTO_IP6_OPTS ||
		  tunnel_conflicts(t, ip, family)));
}

static inline uint8_t
ip_dsfield(const uint8_t *ip, uint8_t family)
{
	return family == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

/*
 * Write an outer IPv4 header. `first`: its first eight octets as a number, without the
 * version.
 *
 * Sum words in registers, because a sum over octets that were just stored waits for the
 * stores. The sum has the byte order of its words (RFC 1071, 2), so it needs no conversion.
 */
static inline void
tunnel_put_ip4(const struct fib_tunnel *t, uint8_t *out, uint8_t family, uint64_t first,
	       uint8_t ttl)
{
	uint8_t proto = t->head[9] != 0 ? t->head[9] : family == 4 ? PROTO_IP4 : PROTO_IP6;
	uint16_t second = htobe16((uint16_t)(ttl << 8 | proto)), check;
	uint64_t addrs, sum;

	first = htobe64(first | 0x45ull << 56);
	memcpy(&addrs, t->head + 12, sizeof(addrs));
	sum = (first & 0xffffffff) + (first >> 32) + (addrs & 0xffffffff) + (addrs >> 32) +
	      second;
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	check = (uint16_t)~inet_fold((uint32_t)((sum >> 16) + (sum & 0xffff)));
	memcpy(out, &first, sizeof(first));
	memcpy(out + 8, &second, sizeof(second));
	memcpy(out + 10, &check, sizeof(check));
	memcpy(out + 12, &addrs, sizeof(addrs));
}

/* Return the TOS of the outer header. */
static inline uint8_t
tunnel_tos(const struct fib_tunnel *t, uint8_t ds)
{
	return (uint8_t)((t->tos_inherit ? ds & ~ECN_MASK : t->tos) | (ds & ECN_MASK));
}

/* Write an outer IPv4 header: see tunnel_put_df(). */
static inline uint8_t *
tunnel_put4(const struct fib_tunnel *t, uint8_t *ip, uint8_t family, unsigned int len,
	    uint32_t id, bool df)
{
	uint8_t ttl = t->ttl != 0 ? t->ttl : ip[family == 4 ? 8 : 7];
	uint8_t tos = tunnel_tos(t, ip_dsfield(ip, family)), *out = ip - t->bytes;

	tunnel_put_ip4(t, out, family,
		       (uint64_t)tos << 48 | (uint64_t)(len + t->bytes) << 32 |
			       (id & 0xffff) << 16 | (df ? 0x4000u : 0),
		       ttl);
	if (t->bytes == 20)
		return out;
	/*
	 * Copy the headers of GRE without a key, and of VXLAN, by their length: it is
	 * faster.
	 */
	if (t->bytes == 24)
		memcpy(out + 20, t->head + 20, 4);
	else if (t->bytes == FIB_VXLAN4_BYTES)
		memcpy(out + 20, t->head + 20, FIB_VXLAN4_BYTES - 20);
	else
		memcpy(out + 20, t->head + 20, t->bytes - 20u);
	put_be16(out + t->proto_at, family == 4 ? 0x0800 : 0x86dd);
	return out;
}

/*
 * Write the fields of an outer IPv6 header that differ between packets.
 *
 * word  flow label; 0: it is made of `hash`
 * len   octets behind the header
 */
static inline void
tunnel_put_ip6(uint8_t *out, uint8_t tos, uint32_t word, uint32_t hash, unsigned int len,
	       uint8_t ttl)
{
	if (word == 0) /* 0 means that there is no label */
		word = (hash >> 12 & 0xfffff) == 0 ? 1 : hash >> 12 & 0xfffff;
	put_be32(out, 6u << 28 | (uint32_t)tos << 20 | word);
	put_be16(out + 4, (uint16_t)len);
	out[7] = ttl;
}

/* Write an outer IPv6 header: see tunnel_put_df(). */
static inline uint8_t *
tunnel_put6(const struct fib_tunnel *t, uint8_t *ip, uint8_t family, unsigned int len,
	    uint32_t hash)
{
	uint8_t ttl = t->ttl != 0 ? t->ttl : ip[family == 4 ? 8 : 7];
	uint8_t tos = tunnel_tos(t, ip_dsfield(ip, family)), *out = ip - t->bytes;
	uint32_t inner_word = get_be32(ip), word;

	if (t->bytes == FIB_VXLAN6_BYTES)
		memcpy(out, t->head, FIB_VXLAN6_BYTES);
	else
		memcpy(out, t->head, t->bytes);
	if (t->gre)
		put_be16(out + t->proto_at, family == 4 ? 0x0800 : 0x86dd);
	else
		out[t->proto_at] = family == 4 ? PROTO_IP4 : PROTO_IP6;
	word = get_be32(out) & 0xfffff;
	if (t->flow_inherit && family == 6)
		word = inner_word & 0xfffff;
	tunnel_put_ip6(out, tos, word, hash, len + t->bytes - 40, ttl);
	return out;
}

/*
 * Write the outer header of a GRE tunnel before MPLS labels (RFC 4023), and return the
 * first octet. `len`: octets of the labels and of the packet behind them. As in Linux, the
 * outer header inherits nothing from them, and has no congestion mark.
 */
static inline uint8_t *
tunnel_put_labels(const struct fib_tunnel *t, uint8_t *labels, unsigned int len,
		  uint32_t id, uint32_t hash)
{
	uint8_t ttl = t->ttl != 0 ? t->ttl : FIB_TUNNEL_TTL;
	uint8_t tos = t->tos_inherit ? 0 : t->tos, *out = labels - t->bytes;

	memcpy(out, t->head, t->bytes);
	put_be16(out + t->proto_at, MPLS_TYPE);
	if (t->family == 4)
		tunnel_put_ip4(t, out, 4,
			       (uint64_t)tos << 48 | (uint64_t)(len + t->bytes) << 32 |
				       (id & 0xffff) << 16 | (t->df ? 0x4000u : 0),
			       ttl);
	else
		tunnel_put_ip6(out, tos, get_be32(out) & 0xfffff, hash, len + t->bytes - 40,
			       ttl);
	return out;
}

/*
 * Write the outer header before the packet at `ip`, whose TTL is decremented already, and
 * return the header's first octet.
 *
 * len   octets of the packet at `ip`
 * id    the lower 16 bits are the identification of the outer IPv4 header
 * hash  of the packet's flow, for the flow label of an outer IPv6 header (RFC 6438)
 * df    set DF in an outer IPv4 header
 *
 * The ECN field is that of the packet (RFC 6040, 4.1, normal mode); Linux writes ECT(0)
 * where the packet has CE, as the older RFC 3168 says.
 */
static inline uint8_t *
tunnel_put_df(const struct fib_tunnel *t, uint8_t *ip, uint8_t family, unsigned int len,
	      uint32_t id, uint32_t hash, bool df)
{
	return t->family == 6 ? tunnel_put6(t, ip, family, len, hash)
			      : tunnel_put4(t, ip, family, len, id, df);
}

static inline uint8_t *
tunnel_put(const struct fib_tunnel *t, uint8_t *ip, uint8_t family, unsigned int len,
	   uint32_t id, uint32_t hash)
{
	return tunnel_put_df(t, ip, family, len, id, hash, tunnel_sets_df(t, ip, family));
}

/*
 * Write all outer headers of a path before the packet at `ip`, and return the first octet.
 * *family and *len are those of the packet, and on return those of the outermost packet.
 */
static inline uint8_t *
tunnel_put_all(const struct fib *fib, const struct fib_tunnel_outer *outer, uint8_t *ip,
	       uint8_t *family, unsigned int *len, uint32_t id)
{
	uint32_t hash = outer->any6 ? flow_hash(ip, *len, *family, fib->seed) : 0;

	for (unsigned int i = 0; i < outer->n; i++) {
		const struct fib_tunnel *t = &outer->tunnel[i]->tunnel;

		ip = tunnel_put(t, ip, *family, *len, id, hash);
		*len += t->bytes;
		*family = t->family;
	}
	return ip;
}

/*
 * Write the outer headers as tunnel_put_all() does, before a packet that begins with MPLS
 * labels. The first tunnel is a GRE tunnel.
 *
 * hash  of the flow
 */
static inline uint8_t *
tunnel_put_all_labels(const struct fib_tunnel_outer *outer, uint8_t *labels,
		      unsigned int *len, uint32_t id, uint32_t hash)
{
	const struct fib_tunnel *t = &outer->tunnel[0]->tunnel;
	uint8_t *ip = tunnel_put_labels(t, labels, *len, id, hash);

	for (unsigned int i = 1; i < outer->n; i++) {
		uint8_t family = t->family;

		*len += t->bytes;
		t = &outer->tunnel[i]->tunnel;
		ip = tunnel_put(t, ip, family, *len, id, hash);
	}
	*len += t->bytes;
	return ip;
}

/*
 * Return the egress interface of a path that leads to a neighbor; NULL: it leads to none.
 */
static inline const struct fib_iface *
path_out(const struct fib *fib, fib_path path)
{
	if (path_kind(path) == PATH_ADJ)
		return fib_iface(fib, fib->adj[path_index(path)].ifidx);
	return path_kind(path) == PATH_ONLINK ? fib_iface(fib, path_index(path)) : NULL;
}

/*
 * Return the path that leads to the neighbor of an outer packet, and set *labels to the MPLS
 * labels that its route pushes; NULL: none. If the route needs other headers, of SRv6 or of
 * a tunnel below the labels, return its PATH_ENCAP: only the kernel writes such headers.
 */
static inline fib_path
outer_below(const struct fib *fib, fib_path path, const struct fib_encap **labels)
{
	const struct fib_encap *e;

	*labels = NULL;
	if (path_kind(path) != PATH_ENCAP || path_is_unsupported(path))
		return path;
	e = fib_encap(fib, path);
	if (path_kind(encap_next(e)) != PATH_ADJ)
		return path;
	*labels = e;
	return path_with_mtu(encap_next(e), path_mtu_class(path));
}

/* Return the octets of the labels of outer_below(). */
static inline unsigned int
outer_label_bytes(const struct fib_encap *labels)
{
	return labels == NULL ? 0 : labels->n * LABEL_BYTES;
}

/* Return the octets of all outer headers, and of the labels before them. */
static inline unsigned int
tunnel_room(const struct fib_tunnel_outer *outer)
{
	return outer->bytes + outer_label_bytes(outer->labels);
}

/*
 * Return the length of the largest outer packet that may leave `out` by a path of
 * outer_below(). The MTU of a route excludes the labels, as in Linux. The MTU of a link
 * includes them.
 */
static inline unsigned int
outer_mtu(const struct fib *fib, fib_path path, const struct fib_encap *labels,
	  const struct fib_iface *out, uint8_t family)
{
	unsigned int bytes = outer_label_bytes(labels);

	if (labels == NULL)
		return fib_mtu(fib, path, out, family);
	return fib_mtu_of_path(
		fib, path, (uint16_t)(out->mtu_bytes > bytes ? out->mtu_bytes - bytes : 0));
}

/*
 * Return the reason why an outer packet cannot take `path`; N_REASON: it can.
 *
 * path  of outer_below()
 * out   path_out()
 * link  ifindex of the interface by which it must leave; 0: any
 */
static inline uint16_t
outer_refusal(fib_path path, const struct fib_iface *out, uint32_t link)
{
	switch (path_kind(path)) {
	case PATH_ADJ:
	case PATH_ONLINK:
		if (out == NULL || !out->up)
			return DROP_egress_down;
		/*
		 * Only the kernel writes further headers, or chooses among routes by
		 * `link`.
		 */
		return out->tunnel.family != 0 || out->vxlan.family != 0 ||
				       (link != 0 && link != out->ifindex)
			       ? PUNT_kernel_route
			       : N_REASON;
	case PATH_KERNEL:
	case PATH_LOCAL: /* the far end is this host */
	case PATH_ENCAP: /* outer_below() has left it: segments, or labels in a tunnel */
		return PUNT_kernel_route;
	default:
		return (uint16_t)path_cause(path_kind(path));
	}
}

/* Return the interface of a path if that is a tunnel, else NULL. */
static inline const struct fib_iface *
path_tunnel(const struct fib *fib, fib_path path)
{
	const struct fib_iface *iface;

	if (path_kind(path) != PATH_ONLINK)
		return NULL;
	iface = fib_iface(fib, path_index(path));
	return iface != NULL && iface->tunnel.family != 0 ? iface : NULL;
}

#endif
