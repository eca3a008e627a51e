/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label_write: write a packet that loses or gets MPLS labels: TTL and TC (RFC 3032, 2.4;
 * RFC 3443), labels, EtherType, and the outer headers if it leaves by a tunnel (RFC 4023).
 * Forwarders and the punt thread share it.
 */
#ifndef PORT_LABEL_WRITE_H
#define PORT_LABEL_WRITE_H

#include <rte_mbuf.h>

#include "base/inet.h"
#include "fib/label.h"
#include "fib/tunnel.h"
#include "port/packet_meta.h"

#define LABEL_L2_BYTES 14u /* of an Ethernet header without tags */

/*
 * Return the length of the IP packet behind labels. Return 0 if it is no IP packet, or if
 * its length or its header do not fit into the frame.
 *
 * room  octets from `ip` on that may be read
 * left  octets from `ip` on in all segments, with padding
 */
static inline uint16_t
label_ip_bytes(const uint8_t *ip, unsigned int room, unsigned int left)
{
	unsigned int head = 40, bytes;

	if (room < 20)
		return 0;
	if (ip[0] >> 4 == 4) {
		head = (ip[0] & 15u) * 4;
		bytes = get_be16(ip + 2);
	} else {
		bytes = 40u + get_be16(ip + 4);
	}
	if (!family_is_ip(ip[0] >> 4) || head < 20 || head > room || head > bytes ||
	    bytes > left || bytes > UINT16_MAX)
		return 0;
	return (uint16_t)bytes;
}

/*
 * Find the IP packet behind all labels of the frame that begins at offset `at` and has no
 * tags. Return NULL if there is no IP packet, if the frame has only a part of the packet,
 * or if the packet's header is not in the first segment. *n: the number of labels. *bytes:
 * the length of the packet.
 */
static inline const uint8_t *
label_ip_find(const struct rte_mbuf *m, unsigned int at, unsigned int *n, uint16_t *bytes)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at + LABEL_L2_BYTES);
	unsigned int room = rte_pktmbuf_data_len(m) - at - LABEL_L2_BYTES;
	unsigned int behind = rte_pktmbuf_pkt_len(m) - rte_pktmbuf_data_len(m);
	bool bottom = false;

	for (*n = 0; !bottom && room >= LABEL_BYTES; ++*n) {
		bottom = label_is_bottom(get_be32(p));
		p += LABEL_BYTES;
		room -= LABEL_BYTES;
	}
	*bytes = bottom ? label_ip_bytes(p, room, room + behind) : 0;
	return *bytes != 0 ? p : NULL;
}

/* A packet to send: the fields of its labels, and the labels to push. */
struct label_packet {
	/*
	 * The frame. It begins with an Ethernet header without tags or, if `at` is not 0,
	 * with the headers of a tunnel.
	 */
	struct rte_mbuf *m;
	uint16_t at;    /* offset of the frame with labels behind the headers of a tunnel */
	uint8_t family; /* 4, 6: an IP packet follows the labels to remove; or 0 */
	uint8_t pops;   /* labels to remove */
	/* as in struct label_walk; valid if pops is not 0 */
	uint8_t ttl, carried, tc;
	bool bottom;
	uint16_t l3_bytes;             /* of that IP packet */
	uint8_t uniform_ttl;           /* fib->label_ttl */
	const struct fib_encap *encap; /* labels to push; NULL: none */
};

static inline uint8_t *
label_packet_rest(const struct label_packet *p)
{
	return rte_pktmbuf_mtod_offset(p->m, uint8_t *,
				       p->at + LABEL_L2_BYTES + p->pops * LABEL_BYTES);
}

/* Return the number of octets behind the labels that are removed. */
static inline unsigned int
label_rest_bytes(const struct label_packet *p)
{
	return p->family != 0 ? p->l3_bytes
			      : rte_pktmbuf_pkt_len(p->m) - p->at - LABEL_L2_BYTES -
					p->pops * LABEL_BYTES;
}

/* Cut off the padding behind an IP packet. */
static inline void
label_packet_trim(const struct label_packet *p)
{
	unsigned int bytes = p->at + LABEL_L2_BYTES + p->pops * LABEL_BYTES + p->l3_bytes;

	if (p->family != 0 && rte_pktmbuf_pkt_len(p->m) > bytes)
		packet_cut(p->m, bytes);
}

/* Set the TTL of an IPv4 header, and update its checksum (RFC 1624, eqn. 3). */
static inline void
ip4_ttl_set(uint8_t *ip, uint8_t ttl)
{
	uint32_t sum = (uint16_t)~get_be16(ip + 10);

	sum += (uint16_t)~get_be16(ip + 8);
	ip[8] = ttl;
	sum += get_be16(ip + 8);
	put_be16(ip + 10, (uint16_t)~inet_fold(sum));
}

/*
 * Return the TTL with which the packet leaves, in its topmost header. 0: it must not leave.
 *
 * Uniform model: the TTL of removed labels is copied to the next header if it is lower than
 * the TTL there, so that the TTL never rises. Pipe model: the TTLs of labels and packet are
 * independent. fib_label_walk() tells the models apart.
 */
static inline uint8_t
label_packet_ttl(const struct label_packet *p)
{
	const uint8_t *rest = label_packet_rest(p);
	uint8_t own;

	/* A swap reads no octets behind the labels: there may be fewer than 4 of them. */
	if (p->family == 0 && p->encap != NULL)
		return p->ttl > 1 ? p->carried - 1 : 0;
	own = p->family == 4 ? rest[8] : p->family == 6 ? rest[7] : rest[3];
	if (p->pops == 0)
		return own > 0 ? own - 1 : 0;
	if (p->ttl <= 1 || own <= 1)
		return 0;
	return (p->carried < own ? p->carried : own) - 1;
}

/* Return the TC of labels that are pushed onto an IP packet: RFC 3270, uniform model. */
static inline uint8_t
label_tc_of_ip(const uint8_t *ip, uint8_t family)
{
	return family == 4 ? ip[1] >> 5 : ip[0] >> 1 & 7;
}

/* Return true if the packet leaves with labels. */
static inline bool
label_packet_keeps(const struct label_packet *p)
{
	return p->family == 0 || p->encap != NULL;
}

/*
 * Return the number of octets of room that label_write() needs before the frame: for the
 * labels, for two tags, and for `outer` octets of headers of tunnels. 0: the frame does not
 * grow.
 */
static inline unsigned int
label_room(const struct label_packet *p, unsigned int outer)
{
	unsigned int push = outer + (p->encap == NULL ? 0 : p->encap->n * LABEL_BYTES);
	unsigned int pop = p->at + p->pops * LABEL_BYTES;

	return push > pop ? push - pop + VLAN_TAGS * VLAN_BYTES : 0;
}

/*
 * Write the packet, without MAC addresses and tags, and let the buffer begin with its new
 * Ethernet header. The headers of the tunnel that it came by are cut off. `ttl` is
 * label_packet_ttl(), not 0. Return false, with the packet unchanged, if the buffer has no
 * room for the labels and for two tags.
 */
static inline bool
label_write(const struct label_packet *p, uint8_t ttl)
{
	unsigned int push = p->encap == NULL ? 0 : p->encap->n * LABEL_BYTES;
	unsigned int pop = p->at + p->pops * LABEL_BYTES;
	uint8_t *rest = label_packet_rest(p);
	struct rte_mbuf *m = p->m;
	uint16_t type = MPLS_TYPE;
	uint8_t pipe_ttl = p->encap == NULL ? 0 : encap_pipe_ttl(p->encap, p->uniform_ttl);

	if (rte_pktmbuf_headroom(m) < label_room(p, 0))
		return false;
	if (p->family == 0 && p->encap == NULL)
		rest[3] = ttl;
	else if (p->family == 4)
		ip4_ttl_set(rest, ttl);
	else if (p->family == 6)
		rest[7] = ttl;
	if (p->encap == NULL && p->family != 0)
		type = p->family == 4 ? 0x0800 : 0x86dd;
	if (p->encap != NULL && p->family == 0)
		encap_write_any(p->encap, rest - push, p->tc, p->bottom, ttl);
	else if (p->encap != NULL)
		encap_write_any(p->encap, rest - push,
				pipe_ttl == 0 ? label_tc_of_ip(rest, p->family) : 0, true,
				pipe_ttl == 0 ? ttl : pipe_ttl);
	put_be16(rest - push - 2, type);
	/*
	 * The frame grows if more labels are pushed than removed: the unsigned sums wrap.
	 */
	m->data_off = (uint16_t)(m->data_off + pop - push);
	m->data_len = (uint16_t)(m->data_len - pop + push);
	m->pkt_len = m->pkt_len - pop + push;
	return true;
}

/*
 * Push labels onto an outer packet of this router. The outer packet follows the Ethernet
 * header, and its TTL is not decremented. The buffer has room for the labels and for two
 * tags. `labels`: NULL: none.
 */
static inline void
label_outer(const struct fib *fib, struct rte_mbuf *m, uint8_t family,
	    const struct fib_encap *labels)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, LABEL_L2_BYTES);
	struct label_packet p = {.m = m, .family = family, .encap = labels};

	if (labels == NULL)
		return;
	p.uniform_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);
	label_write(&p, ip[family == 4 ? 8 : 7]);
}

/*
 * Return the length of the largest packet, without the removed labels, for a path by
 * interface `out`. The MTU of a route excludes the new labels, as in Linux. The MTU of a
 * link includes them.
 */
static inline unsigned int
label_mtu(const struct fib *fib, fib_path path, const struct fib_iface *out,
	  const struct label_packet *p)
{
	unsigned int push = p->encap == NULL ? 0 : p->encap->n * LABEL_BYTES;
	unsigned int link =
		p->encap == NULL && p->family == 6 ? out->mtu6_bytes : out->mtu_bytes;

	return fib_mtu_of_path(fib, path, (uint16_t)(link > push ? link - push : 0));
}

/*
 * Return label_mtu() for a path into a tunnel. `most` is the length of the largest packet
 * that may enter the tunnel, and includes the labels.
 */
static inline unsigned int
label_tunnel_mtu(const struct fib *fib, fib_path path, const struct fib_iface *tunnel,
		 const struct label_packet *p, unsigned int most)
{
	unsigned int push = p->encap == NULL ? 0 : p->encap->n * LABEL_BYTES;
	unsigned int mtu = label_mtu(fib, path, tunnel, p);

	most = most > push ? most - push : 0;
	return mtu < most ? mtu : most;
}

/*
 * Return the DS field by which the outer packet of a tunnel is looked up. As in Linux, it
 * is 0 if the packet in the tunnel has labels.
 */
static inline uint8_t
label_ds(const struct label_packet *p)
{
	return label_packet_keeps(p)
		       ? 0
		       : (uint8_t)(ip_dsfield(label_packet_rest(p), p->family) &
				   (uint8_t)~ECN_MASK);
}

/*
 * Write the outer headers of tunnels before a packet that label_write() has written, and
 * before them the labels of the route to the far end. The buffer has room for both.
 */
static inline void
label_enter_tunnels(const struct fib *fib, struct rte_mbuf *m,
		    const struct fib_tunnel_outer *outer, uint32_t id)
{
	uint8_t *at = rte_pktmbuf_mtod_offset(m, uint8_t *, LABEL_L2_BYTES), family;
	unsigned int len = rte_pktmbuf_pkt_len(m) - LABEL_L2_BYTES;
	unsigned int room = rte_pktmbuf_data_len(m) - LABEL_L2_BYTES;

	if (get_be16(at - 2) == MPLS_TYPE) {
		tunnel_put_all_labels(outer, at, &len, id,
				      outer->any6 ? fib_label_hash(fib, at, room) : 0);
	} else {
		family = at[0] >> 4;
		tunnel_put_all(fib, outer, at, &family, &len, id);
	}
	m->data_off = (uint16_t)(m->data_off - outer->bytes);
	m->data_len = (uint16_t)(m->data_len + outer->bytes);
	m->pkt_len += outer->bytes;
	put_be16(rte_pktmbuf_mtod_offset(m, uint8_t *, LABEL_L2_BYTES - 2),
		 outer->family == 4 ? 0x0800 : 0x86dd);
	label_outer(fib, m, outer->family, outer->labels);
}

#endif
