/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet_meta: the metadata of a packet that forwarders and the punt thread exchange, in
 * the mbuf's private area, and the rings between them.
 */
#ifndef PORT_PACKET_META_H
#define PORT_PACKET_META_H

#include <assert.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/counters.h"

struct packet_meta {
	uint8_t reason; /* W:fwd enum reason: a PUNT_ reason */
	uint8_t cause;  /* W:fwd enum reason: the counted drop that causes an ICMP error */
	uint8_t family; /* W:fwd 4, 6, or 0: not IP */
	uint8_t class;  /* W:fwd enum punt_class: the class whose policer it passed */
	uint16_t in_ifidx; /* W:fwd ingress interface; W:punt 0 for our own packets */
	/*
	 * W:punt egress of an injected frame; the link of our own packet to a link-local
	 * address
	 */
	uint16_t out_ifidx;
	/*
	 * W:fwd PUNT_too_big: MTU of egress and route; of an ICMPv6 parameter problem: the
	 * offset of the octet at fault
	 */
	uint16_t mtu_bytes;
	uint16_t vrf; /* W:fwd VRF of in_ifidx at arrival; W:punt VRF of our own packet */
	/* W:fwd the filter passed it for this egress interface; 0: not judged */
	uint16_t judged_ifidx;
	uint8_t reject_type, reject_code; /* W:fwd,punt DROP_filter: of the ICMP error */
	/*
	 * W:fwd an inner packet of a tunnel: the offset at which its frame would begin, and
	 * the interface that received the outer packet. in_ifidx is the tunnel. 0: no inner
	 * packet
	 */
	uint16_t inner_at, outer_ifidx;
	bool has_labels; /* W:fwd the frame has MPLS labels before the packet */
	bool on_link; /* W:fwd our own packet to a neighbor on out_ifidx: no route decides */
	/*
	 * W:fwd `lookup_vrf` is valid: a program of the interface chose it, or End.T of
	 * SRv6
	 */
	bool has_lookup_vrf;
	/*
	 * W:punt the forwarder that sends it, by its inject ring. For a punted packet this
	 * is the forwarder that punted it, so that packets keep their order.
	 */
	uint16_t fwd;
	/*
	 * W:fwd  VRF in which the destination is looked up, without rules. `vrf` stays the VRF
	 * of the ingress interface, for ICMP errors.
	 */
	uint16_t lookup_vrf;
};
static_assert(sizeof(struct packet_meta) == 28, "at most half a cache line");

static inline struct packet_meta *
packet_meta(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/*
 * Cut a frame to its first `bytes` octets; it has at least as many. A padded frame may have
 * several segments, and rte_pktmbuf_trim() shortens only the last one.
 */
static inline void
packet_cut(struct rte_mbuf *m, uint32_t bytes)
{
	struct rte_mbuf *last = m, *rest;

	m->pkt_len = bytes;
	m->nb_segs = 1;
	for (; bytes > last->data_len; m->nb_segs++) {
		bytes -= last->data_len;
		last = last->next;
	}
	last->data_len = (uint16_t)bytes;
	rest = last->next;
	last->next = NULL;
	rte_pktmbuf_free(rest);
}

/*
 * Move a short packet towards the end of its buffer, so that `bytes` octets fit before it.
 * This is for fragments made by DPDK's library and ICMP errors made by the punt thread,
 * which begin at the same offset as received frames. Return false if the octets do not fit.
 */
static inline bool
packet_make_room(struct rte_mbuf *m, unsigned int bytes)
{
	unsigned int lacks;

	if (rte_pktmbuf_headroom(m) >= bytes)
		return true;
	lacks = bytes - rte_pktmbuf_headroom(m);
	if (m->nb_segs != 1 || rte_mbuf_refcnt_read(m) != 1 ||
	    rte_pktmbuf_tailroom(m) < lacks)
		return false;
	memmove(rte_pktmbuf_mtod_offset(m, uint8_t *, lacks),
		rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m));
	m->data_off = (uint16_t)(m->data_off + lacks);
	return true;
}

/*
 * Return true if a ring with one producer and one consumer has a packet (for the consumer),
 * or has room (for the producer). These functions replace rte_ring_empty() and
 * rte_ring_full(), which load the word of the other thread without an atomic load.
 */
static inline bool
ring_has_some(const struct rte_ring *r)
{
	return __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) != r->cons.tail;
}

static inline bool
ring_has_room(const struct rte_ring *r)
{
	return r->prod.tail - __atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE) <
	       r->capacity;
}

#define PACKET_PRIV_BYTES RTE_ALIGN(sizeof(struct packet_meta), RTE_MBUF_PRIV_ALIGN)

struct idle;

/*
 * The rings between one forwarder and the punt thread. Each has one producer and one
 * consumer.
 */
struct fwd_rings {
	struct rte_ring *punt[N_PUNT_CLASS]; /* fwd -> punt, one per class */
	struct rte_ring *inject;             /* punt -> fwd, finished frames */
	struct idle *idle;                   /* the forwarder's; woken after an inject */
	/* W:punt number of CLASS_glean packets queued, sent or dropped so far */
	_Atomic uint32_t *n_gleaned;
};

/*
 * Make the rings of a forwarder. A class has a ring of its own, so that a full ring leaves
 * room for other classes. `client` is eal_client(), because the rings of two daemons may be
 * in one memory. `n_gleaned` is punt's counter for this forwarder. Returns 0 or -errno,
 * logged; fwd_rings_free() frees the rings in both cases.                        [main]
 */
int fwd_rings_make(struct fwd_rings *r, unsigned int fwd, unsigned int client,
		   _Atomic uint32_t *n_gleaned);
void fwd_rings_free(struct fwd_rings *r);

/* Return the suffix of the names of a daemon's rings, by its eal_client(). */
#define RINGS_SUFFIX_STRLEN 12
const char *rings_suffix(unsigned int client, char buf[RINGS_SUFFIX_STRLEN]);

/* Free a ring that no thread uses any longer, and its packets. NULL is allowed. */
void ring_end(struct rte_ring *ring);

/* Return the clock of base/policer.h. */
static inline uint64_t
policer_ticks(void)
{
	return rte_rdtsc() << POLICER_TICK_SHIFT;
}

#endif
