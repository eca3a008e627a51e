/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vlan_tags: the VLAN tags of a frame. A frame that belongs to the interface of a VLAN
 * loses its tags when it comes in. So the stages and the punt thread see an untagged frame
 * of the VLAN's interface. The TCIs of the tags are kept in the mbuf, where a NIC that
 * strips tags puts them. Such a NIC strips one tag at most, and only of type 802.1Q. It
 * inserts only such a tag.
 */
#ifndef PORT_VLAN_TAGS_H
#define PORT_VLAN_TAGS_H

#include <rte_mbuf.h>

#include "base/inet.h"
#include "fib/fib.h"

#define VLAN_AT       12u     /* offset of the first tag, behind the MACs */
#define VLAN_PRIORITY 0xf000u /* PCP and DEI in a TCI */

#define VLAN_STRIPPED (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

/*
 * Flags of a device about the tags and checksums of an outer packet. The flags about
 * checksums may concern the inner packet.
 */
#define PACKET_FLAGS_OF_OUTER                                                        \
	(VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK | \
	 RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD | RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK)

/* Return the number of tags that were removed. */
static inline unsigned int
vlan_stripped(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0   ? 2
	       : (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ? 1
								  : 0;
}

/* Return the TCI of the outer one of `stripped` (1 or 2) tags. */
static inline uint16_t
vlan_outer_tci(const struct rte_mbuf *m, unsigned int stripped)
{
	return stripped == 2 ? m->vlan_tci_outer : m->vlan_tci;
}

/* Move the VLAN_AT octets of MAC addresses. memmove() would be a call. */
static inline void
vlan_move_macs(uint8_t *to, const uint8_t *from)
{
	uint32_t tail;
	uint64_t head;

	memcpy(&head, from, sizeof(head));
	memcpy(&tail, from + sizeof(head), sizeof(tail));
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), &tail, sizeof(tail));
}

/*
 * Remove the `n` (1 or 2) outermost tags, VLAN_TAGS at most in all calls. The first segment
 * must have them.
 */
static inline void
vlan_strip(struct rte_mbuf *m, unsigned int n)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *), *to = eth + n * VLAN_BYTES;

	if (n == 2 || (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) {
		m->vlan_tci_outer = n == 2 ? get_be16(eth + VLAN_AT + 2) : m->vlan_tci;
		m->ol_flags |= RTE_MBUF_F_RX_QINQ_STRIPPED;
	}
	m->vlan_tci = get_be16(to + VLAN_AT - 2);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	vlan_move_macs(to, eth);
	m->data_off += n * VLAN_BYTES;
	m->data_len -= n * VLAN_BYTES;
	m->pkt_len -= n * VLAN_BYTES;
}

/*
 * Begin the frame `n` tags earlier. The headroom suffices, because tags are never put
 * before other tags.
 */
static inline uint8_t *
vlan_room(struct rte_mbuf *m, unsigned int n)
{
	m->data_off -= n * VLAN_BYTES;
	m->data_len += n * VLAN_BYTES;
	m->pkt_len += n * VLAN_BYTES;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

/*
 * Put the tags of `out` before the EtherType of a packet that leaves by it. The priority of
 * a tag is from the tags that the packet was received with: the inner tag gets the priority
 * of the received inner tag, the outer tag that of the received outer tag. A single tag to
 * send is an inner tag. A single received tag is both inner and outer. Returns the
 * first octet of the frame. The caller writes the MACs.
 */
static inline uint8_t *
vlan_push(struct rte_mbuf *m, const struct fib_iface *out)
{
	unsigned int stripped = vlan_stripped(m);
	uint8_t *eth = vlan_room(m, out->n_tags);

	for (unsigned int k = 0; k < out->n_tags; k++) {
		bool inner = k + 1u == out->n_tags;
		uint16_t came = stripped == 0 ? 0
				: inner       ? m->vlan_tci
					      : vlan_outer_tci(m, stripped);

		put_be16(eth + VLAN_AT + k * VLAN_BYTES, out->tag[k].type);
		put_be16(eth + VLAN_AT + k * VLAN_BYTES + 2,
			 out->tag[k].id | (came & VLAN_PRIORITY));
	}
	return eth;
}

/* Restore the frame as it came in by `in`, with its tags. NULL: the interface is gone. */
static inline void
vlan_restore(struct rte_mbuf *m, const struct fib_iface *in)
{
	unsigned int n = vlan_stripped(m);
	/* 1 if the outer of two tags had only a priority and the inner tag is the VLAN's */
	unsigned int before = n == 2 && in != NULL && in->n_tags == 1 &&
			      in->tag[0].id != 0 &&
			      (vlan_outer_tci(m, n) & ~VLAN_PRIORITY) == 0;
	uint8_t *eth = vlan_room(m, n);

	vlan_move_macs(eth, eth + n * VLAN_BYTES);
	for (unsigned int k = 0; k < n; k++) {
		/* A tag beyond those of the interface was a priority tag. */
		uint16_t type = in != NULL && k >= before && k - before < in->n_tags
					? in->tag[k - before].type
					: VLAN_C_TYPE;

		put_be16(eth + VLAN_AT + k * VLAN_BYTES, type);
		put_be16(eth + VLAN_AT + k * VLAN_BYTES + 2,
			 k == 0 ? vlan_outer_tci(m, n) : m->vlan_tci);
	}
	m->ol_flags &= ~VLAN_STRIPPED;
}

/* Insert the tag that the device was to insert. */
static inline void
vlan_insert(struct rte_mbuf *m)
{
	uint8_t *eth = vlan_room(m, 1);

	vlan_move_macs(eth, eth + VLAN_BYTES);
	put_be16(eth + VLAN_AT, VLAN_C_TYPE);
	put_be16(eth + VLAN_AT + 2, m->vlan_tci);
	m->ol_flags &= ~RTE_MBUF_F_TX_VLAN;
}

/* Return the length of the frame on the wire. */
static inline uint32_t
vlan_sent_bytes(const struct rte_mbuf *m)
{
	return m->pkt_len + ((m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0 ? VLAN_BYTES : 0);
}

/* Copy the stripped tags of packet `of` to packet `m`. */
static inline void
vlan_inherit(struct rte_mbuf *m, const struct rte_mbuf *of)
{
	m->ol_flags |= of->ol_flags & VLAN_STRIPPED;
	m->vlan_tci = of->vlan_tci;
	m->vlan_tci_outer = of->vlan_tci_outer;
}

/* Return true for a tag with id 0, which has only a priority. */
static inline bool
vlan_is_priority(const uint8_t tag[VLAN_BYTES])
{
	return vlan_type_is_tag(get_be16(tag)) && (get_be16(tag + 2) & ~VLAN_PRIORITY) == 0;
}

/*
 * Return the interface that a frame of interface `ifidx` belongs to: itself, or a VLAN on
 * it. As Linux does (__netif_receive_skb_core()), pass over a tag with id 0 before another tag.
 * *at is the offset of the EtherType behind these tags.                    [RCU reader]
 */
static inline uint16_t
vlan_find(const struct fib *fib, uint16_t ifidx, const uint8_t *frame, unsigned int len,
	  unsigned int *at)
{
	uint16_t on;

	*at = VLAN_AT;
	while (*at < VLAN_AT + VLAN_TAGS * VLAN_BYTES && len >= *at + VLAN_BYTES + 2) {
		on = fib_vlan(fib, ifidx, frame + *at);
		if (on != 0)
			ifidx = on;
		else if (!vlan_is_priority(frame + *at) ||
			 !vlan_type_is_tag(get_be16(frame + *at + VLAN_BYTES)))
			break;
		*at += VLAN_BYTES;
	}
	return ifidx;
}

#endif
