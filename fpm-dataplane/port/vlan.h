/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VLAN tags of a frame. A frame that belongs to a VLAN's interface has its tags taken off as
 * it comes in, so that the walk, the rules and the punt thread see an untagged frame of
 * another interface; what they were is in the mbuf, where a NIC that strips puts it. Such a NIC
 * takes no more than one tag, and only 802.1Q's; one that inserts puts no other in.
 */
#ifndef PORT_VLAN_H
#define PORT_VLAN_H

#include <rte_mbuf.h>

#include "base/inet.h"
#include "fib/fib.h"

#define VLAN_AT       12u     /* octets of a frame before its first tag: the MACs */
#define VLAN_PRIORITY 0xf000u /* of a TCI: PCP and DEI */

#define VLAN_STRIPPED (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

/* Tags that were taken off. */
static inline unsigned int
vlan_stripped(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0   ? 2
	       : (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ? 1
								  : 0;
}

/* TCI of the outer one of `stripped` (1 or 2) tags. */
static inline uint16_t
vlan_outer_tci(const struct rte_mbuf *m, unsigned int stripped)
{
	return stripped == 2 ? m->vlan_tci_outer : m->vlan_tci;
}

/* memmove() of the VLAN_AT octets of MAC addresses, which would be a call. */
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
 * Take the `n` (1 or 2) outermost tags off, of VLAN_TAGS in all; the frame must have them in its
 * first segment.
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

/* Begin the frame `n` tags earlier. The headroom has that much: no tag is put before others. */
static inline uint8_t *
vlan_room(struct rte_mbuf *m, unsigned int n)
{
	m->data_off -= n * VLAN_BYTES;
	m->data_len += n * VLAN_BYTES;
	m->pkt_len += n * VLAN_BYTES;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

/*
 * Put the tags of `out` before the EtherType of a packet about to leave by it, each with the
 * priority of its like that it came with: the inner one, or the only one, with that of the inner
 * one, or the only one. Returns the first octet of the frame, whose MACs are still to be
 * written.
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

/* The frame as it came in by `in` (NULL: it is no more), tags and all. */
static inline void
vlan_restore(struct rte_mbuf *m, const struct fib_iface *in)
{
	unsigned int n = vlan_stripped(m);
	uint8_t *eth = vlan_room(m, n);

	vlan_move_macs(eth, eth + n * VLAN_BYTES);
	for (unsigned int k = 0; k < n; k++) {
		/* One more than the interface has was a priority's. */
		uint16_t type =
			in != NULL && k < in->n_tags ? in->tag[k].type : VLAN_C_TYPE;

		put_be16(eth + VLAN_AT + k * VLAN_BYTES, type);
		put_be16(eth + VLAN_AT + k * VLAN_BYTES + 2,
			 k == 0 ? vlan_outer_tci(m, n) : m->vlan_tci);
	}
	m->ol_flags &= ~VLAN_STRIPPED;
}

/* The tag that the device was to put in, put in. */
static inline void
vlan_insert(struct rte_mbuf *m)
{
	uint8_t *eth = vlan_room(m, 1);

	vlan_move_macs(eth, eth + VLAN_BYTES);
	put_be16(eth + VLAN_AT, VLAN_C_TYPE);
	put_be16(eth + VLAN_AT + 2, m->vlan_tci);
	m->ol_flags &= ~RTE_MBUF_F_TX_VLAN;
}

/* Octets on the wire of a frame about to be sent. */
static inline uint32_t
vlan_sent_bytes(const struct rte_mbuf *m)
{
	return m->pkt_len + ((m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0 ? VLAN_BYTES : 0);
}

/* A packet made of another came with the tags of that one. */
static inline void
vlan_inherit(struct rte_mbuf *m, const struct rte_mbuf *of)
{
	m->ol_flags |= of->ol_flags & VLAN_STRIPPED;
	m->vlan_tci = of->vlan_tci;
	m->vlan_tci_outer = of->vlan_tci_outer;
}

/*
 * The interface that a frame of interface `ifidx` belongs to: itself, or a VLAN on it.
 * *at is where the EtherType is, the tags that led there passed.        [RCU reader]
 */
static inline uint16_t
vlan_find(const struct fib *fib, uint16_t ifidx, const uint8_t *frame, unsigned int len,
	  unsigned int *at)
{
	uint16_t on;

	*at = VLAN_AT;
	while (*at < VLAN_AT + VLAN_TAGS * VLAN_BYTES && len >= *at + VLAN_BYTES + 2 &&
	       (on = fib_vlan(fib, ifidx, frame + *at)) != 0) {
		ifidx = on;
		*at += VLAN_BYTES;
	}
	return ifidx;
}

#endif
