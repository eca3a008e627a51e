/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vxlan_write: write the headers of a packet that goes to a VTEP, and its UDP checksum.
 * Forwarders and the punt thread share it.
 */
#ifndef PORT_VXLAN_WRITE_H
#define PORT_VXLAN_WRITE_H

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "fib/vxlan.h"
#include "port/packet_meta.h"

/*
 * Return true if the buffer has room for the headers, for `labels` before them (NULL: none)
 * and for two tags.
 */
static inline bool
vxlan_fits(const struct rte_mbuf *m, const struct fib_vxlan_hop *hop,
	   const struct fib_encap *labels)
{
	return rte_pktmbuf_headroom(m) >=
	       hop->t.bytes + outer_label_bytes(labels) + VLAN_TAGS * VLAN_BYTES;
}

/*
 * Return the sum over a UDP packet and its pseudo header: 0xffff if the packet's checksum
 * is right. The UDP packet has `len` octets and is at offset `at` of the buffer. Its IP
 * header is `ip`.
 */
static inline uint16_t
vxlan_udp_sum(const struct rte_mbuf *m, const uint8_t *ip, uint8_t family, unsigned int at,
	      unsigned int len)
{
	uint16_t sum = 0;

	/* This fails only for an offset or a length beyond the packet. */
	rte_raw_cksum_mbuf(m, at, len, &sum);
	return inet_fold(udp_pseudo_sum(ip, family, len) + rte_be_to_cpu_16(sum));
}

/* Write the UDP checksum of a frame without tags, whose outer IP header is at `out`. */
static inline void
vxlan_write_sum(struct rte_mbuf *m, const struct fib_vxlan_hop *hop, uint8_t *out,
		unsigned int len)
{
	const struct fib_tunnel *t = &hop->t;
	uint8_t *udp = out + t->bytes - VXLAN_HEAD_BYTES;
	uint16_t sum = (uint16_t)~vxlan_udp_sum(m, out, t->family,
						ETH_BYTES + t->bytes - VXLAN_HEAD_BYTES,
						len + VXLAN_HEAD_BYTES);

	put_be16(udp + 6, sum == 0 ? 0xffff : sum);
}

/*
 * Write the outer headers of a packet of `len` octets whose TTL is decremented already, and
 * the EtherType. The buffer begins with an Ethernet header, and has room for the outer
 * headers: vxlan_fits().
 */
static inline void
vxlan_write(struct rte_mbuf *m, const struct fib_vxlan_hop *hop, uint8_t family,
	    unsigned int len, uint16_t id, uint32_t hash)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, ETH_BYTES), *out;
	const struct fib_tunnel *t = &hop->t;

	if (rte_pktmbuf_pkt_len(m) > ETH_BYTES + len)
		packet_cut(m, ETH_BYTES + len);
	out = vxlan_put(hop, ip, family, len, id, hash);
	m->data_off = (uint16_t)(m->data_off - t->bytes);
	m->data_len = (uint16_t)(m->data_len + t->bytes);
	m->pkt_len += t->bytes;
	put_be16(out - 2, t->family == 4 ? 0x0800 : 0x86dd);
	if (hop->csum)
		vxlan_write_sum(m, hop, out, len);
}

#endif
