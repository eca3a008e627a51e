/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet: what forwarders and the punt thread tell each other about one mbuf, in its
 * private area; and the rings between them.
 */
#ifndef PORT_PACKET_H
#define PORT_PACKET_H

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"

struct packet_meta {
	uint8_t reason; /* W:fwd  enum reason: a PUNT_ */
	uint8_t cause; /* W:fwd  enum reason: the DROP_ behind an ICMP error, already counted */
	uint8_t family;     /* W:fwd  4, 6, or 0 when not IP */
	uint8_t class;      /* W:fwd  enum punt_class: the policer that let it pass */
	uint16_t in_ifidx;  /* W:fwd  where it came in; W:punt 0 for what we originate */
	uint16_t out_ifidx; /* W:punt where an injected frame goes out; the link of our
			     * own packet to a link-local destination */
	uint16_t mtu_bytes; /* W:fwd  PUNT_too_big: of egress and route */
	uint16_t vrf;  /* W:fwd  of in_ifidx when it came; W:punt of our own: whose FIB */
	uint32_t path; /* W:fwd  PUNT_unresolved: the path that lacks a neighbor */
	uint16_t fwd;  /* W:punt by whose inject ring it leaves: the one it came from, so
		       * that it stays before what follows it */
};

static inline struct packet_meta *
packet_meta(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/*
 * Cut a frame to its first `bytes` octets, no more than it has: a padded one may be of several
 * segments, of which the last alone is what rte_pktmbuf_trim() knows.
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
 * Has a ring of one producer and one consumer something, to the consumer; has it room, to the
 * producer? rte_ring_empty() and rte_ring_full() load the other one's word as if nobody wrote it.
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

/* Between one forwarder and the punt thread; each ring has one producer, one consumer. */
struct fwd_rings {
	struct rte_ring
		*punt[N_PUNT_CLASS]; /* fwd -> punt, one a class: each has its room */
	struct rte_ring *inject;     /* punt -> fwd  finished frames */
	struct idle *idle;           /* the forwarder's: to be woken after an inject */
	/* W:punt  packets of CLASS_glean that are held, sent or dropped by now. */
	_Atomic uint32_t *n_gleaned;
};

/*
 * A ring a class: what fills one leaves the others their room. `client`: eal_client(), for the
 * rings of two daemons may be in one memory. `n_gleaned` is punt's counter
 * for this forwarder. Returns 0 or -errno, logged; what was made is freed by
 * fwd_rings_free().                                                               [main]
 */
int fwd_rings_make(struct fwd_rings *r, unsigned int fwd, unsigned int client,
		   _Atomic uint32_t *n_gleaned);
void fwd_rings_free(struct fwd_rings *r);

/* The end of the names of all rings of a daemon, by its number: eal_client(). */
#define RINGS_SUFFIX_STRLEN 12
const char *rings_suffix(unsigned int client, char buf[RINGS_SUFFIX_STRLEN]);

/* Give back what is in a ring that nobody uses any more, and the ring; NULL is none. */
void ring_end(struct rte_ring *ring);

/* The clock of base/policer.h. */
static inline uint64_t
policer_ticks(void)
{
	return rte_rdtsc() << POLICER_TICK_SHIFT;
}

#endif
