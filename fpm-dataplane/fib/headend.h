/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headend: headends of SRv6 (RFC 8986, 5): routes that put a packet behind an outer IPv6
 * header and a list of segments.
 *
 * The path of such a route is PATH_ENCAP, as that of a route with labels. Its entry in
 * fib->encap has no label and leads to no adjacency, so that code for labels finds no
 * neighbor and leaves the packet to the slow path. The entry with the same number in
 * fib->headend has the outer headers, ready to be copied. Forwarders look up the first
 * segment in table main again after each quiescent state, so a headend follows every change
 * of the routes below it.
 *
 * Functions that read tables are for [RCU reader].
 */
#ifndef FIB_HEADEND_H
#define FIB_HEADEND_H

#include "base/inet.h"
#include "base/srv6_words.h"
#include "fib/label.h"
#include "fib/tunnel.h"

#define HEADEND_HOP_LIMIT 64 /* of outer headers: RFC 2473, 6.3 */
#define SRH_ONE_BYTES     24 /* of a routing header with one segment */

/*
 * rib writes an entry before it publishes a path that leads here, and does not change it
 * later.
 */
struct fib_headend {
	alignas(64) uint8_t bytes; /* of head[] */
	uint8_t next_at; /* offset in head[] of the protocol of the inner packet */
	bool has_source; /* head[] has the source; else it is fib_seg6.source */
	uint8_t reserved[13];
	/* Traffic class, flow label, length and protocol of the inner packet are zero. */
	uint8_t head[SRV6_HEAD_MAX];
};
static_assert(sizeof(struct fib_headend) == 128, "two cache lines");

/*
 * The kernel's settings of SRv6 in the control namespace. Immutable: warn publishes a new
 * copy for each change.
 */
struct fib_seg6 {
	struct ipaddr source; /* `ip sr tunsrc`; all zero: chosen for each route */
};

/* Return true if a path leads to a headend. */
static inline bool
path_is_headend(const struct fib *fib, fib_path path)
{
	return path_kind(path) == PATH_ENCAP && !path_is_unsupported(path) &&
	       path_kind(fib_encap(fib, path)->next) != PATH_ADJ;
}

/* Return the number of segments behind the first one. */
static inline unsigned int
fib_headend_left(const struct fib_headend *h)
{
	return h->next_at == 40 && h->head[43] < SRV6_SEGMENTS_MAX ? h->head[43] : 0;
}

/* Return segment `i` of the list. Segment 0 is visited last. */
static inline const uint8_t *
fib_headend_segment(const struct fib_headend *h, unsigned int i)
{
	return h->head + 48 + 16 * i;
}

/*
 * Return the known path MTU of outer packets of a headend, in octets; FIB_PMTU_NONE: none
 * is known. It is the least path MTU to any of the segments, because a router behind the
 * first segment quotes an outer packet to the next segment.
 */
unsigned int fib_headend_pmtu(const struct fib *fib, const struct fib_headend *h);

/*
 * Return the path MTU of outer packets whose inner packet is of this family. `pmtu`: the
 * known path MTU. An IPv6 packet of 1280 octets is always sent, because its sender need not
 * send less.
 */
static inline unsigned int
headend_pmtu_for(const struct fib_headend *h, unsigned int pmtu, uint8_t family)
{
	return family == 6 && pmtu < 1280u + h->bytes ? 1280u + h->bytes : pmtu;
}

/*
 * Write the entry of a headend from words that srv6_headend_unpack() reads. Return false if
 * they encode no headend.
 */
bool fib_headend_write(struct fib_headend *h, const uint32_t *word, unsigned int n);

/* The path of one outer packet. */
struct fib_headend_outer {
	/*
	 * N_REASON: follow `path`. PUNT_kernel_route: the kernel sends the packet. Else a
	 * drop.
	 */
	uint16_t reason;
	fib_path path; /* PATH_ADJ, or PATH_ONLINK of an interface that is no tunnel */
	const struct fib_iface *out;
	const struct fib_headend *headend;
	uint8_t head[40];               /* outer IPv6 header without class and length */
	uint8_t family;                 /* of the inner packet */
	const struct fib_encap *labels; /* before the outer header; NULL: none */
};

/*
 * Find the path of the outer packet, for a packet whose route is a headend. `room` octets
 * of the packet may be read. The flow of the packet decides among equal routes to the first
 * segment.
 */
void fib_headend_resolve(const struct fib *fib, fib_path path, uint8_t family,
			 const uint8_t *ip, unsigned int room,
			 struct fib_headend_outer *outer);

/*
 * Write the part of the outer header that all packets of a headend have in common into
 * `head`: 40 octets, without the flow label. Find the group word of the route to the first
 * segment. Return false if each packet needs fib_headend_resolve(). If true, for each flow
 * whose headend_path() is a PATH_ADJ, fib_headend_resolve() finds the same path. It refuses
 * such a flow only because of the egress interface.
 */
bool fib_headend_begin(const struct fib *fib, const struct fib_headend *h, uint8_t *head,
		       uint64_t *route);

/*
 * Return the flow label of a packet, by its flow hash. RFC 6437: 0 means that there is
 * none.
 */
static inline uint32_t
headend_label(uint32_t hash)
{
	return hash >> 12 == 0 ? 1 : hash >> 12;
}

/*
 * Make the outer header of a packet from `of_all`, the common part: add the flow label, and
 * the protocol if no list of segments follows.
 */
static inline void
headend_head(uint8_t *head, const uint8_t *of_all, uint32_t hash, uint8_t family)
{
	memcpy(head, of_all, 40);
	put_be32(head, 6u << 28 | headend_label(hash));
	if (head[6] == 0)
		head[6] = family == 4 ? PROTO_IP4 : PROTO_IP6;
}

/*
 * Return the path of the outer packet of a flow. `of_all` and `route` are from
 * fib_headend_begin().
 */
static inline fib_path
headend_path(const struct fib *fib, const uint8_t *of_all, uint64_t route, uint32_t hash,
	     uint8_t family)
{
	uint8_t head[40];

	if (!group_word_is_block(route))
		return (fib_path)route;
	headend_head(head, of_all, hash, family);
	return group_word_path(route, ip6_flow_hash(head, sizeof(head), fib->seed));
}

/* Return the length of the largest packet that fits without fragments. 0: none fits. */
unsigned int fib_headend_mtu(const struct fib *fib, const struct fib_headend_outer *outer);

/*
 * Write the outer headers before the packet of `len` octets at `ip`, and return the first
 * octet. The traffic class is that of the packet: RFC 2473, 6.4; RFC 6040, 4.1, normal
 * mode. Linux 6.1 writes 0 if the packet is IPv4 (seg6_do_srh_encap()).
 *
 * head   the outer IPv6 header; its first four octets are not used
 * first  the first four octets to write, as a number: version and flow label
 */
static inline uint8_t *
headend_put_word(const struct fib_headend *h, const uint8_t *head, uint32_t first,
		 uint8_t *ip, uint8_t family, unsigned int len)
{
	uint8_t *out = ip - h->bytes;

	memcpy(out, head, 40);
	/* Copy a list of one segment by its length, which is faster. */
	if (h->bytes == 40 + SRH_ONE_BYTES)
		memcpy(out + 40, h->head + 40, SRH_ONE_BYTES);
	else
		memcpy(out + 40, h->head + 40, h->bytes - 40u);
	put_be32(out, first | (uint32_t)ip_dsfield(ip, family) << 20);
	put_be16(out + 4, (uint16_t)(len + h->bytes - 40));
	out[h->next_at] = family == 4 ? PROTO_IP4 : PROTO_IP6;
	return out;
}

static inline uint8_t *
headend_put(const struct fib_headend_outer *outer, uint8_t *ip, uint8_t family,
	    unsigned int len)
{
	return headend_put_word(outer->headend, outer->head, get_be32(outer->head), ip,
				family, len);
}

/*
 * Write the headers as headend_put() does, for a packet whose flow has this hash. `of_all`:
 * see fib_headend_begin(). The header is not made in memory first, because a copy of octets
 * that were just stored waits for the stores.
 */
static inline uint8_t *
headend_put_flow(const struct fib_headend *h, const uint8_t *of_all, uint32_t hash,
		 uint8_t *ip, uint8_t family, unsigned int len)
{
	return headend_put_word(h, of_all, 6u << 28 | headend_label(hash), ip, family, len);
}

#endif
