/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: the steady state of BFD sessions, which forwarders maintain: they send the same
 * packet periodically, and record the arrival of the packet that changes nothing. Thread
 * bfd has the state machine, makes the packets, and gets all other BFD packets.
 *
 * A session has a slot, and a second slot for its echo packets. The low bits of our
 * discriminator are the number of the slot, so a forwarder finds the slot of a received
 * packet without a search. The forwarder with number slot % n sends the packets of a slot.
 */
#ifndef PORT_BFD_H
#define PORT_BFD_H

#include <rte_mbuf.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/due.h"
#include "base/prefix.h"

#define BFD_SLOTS  4096u /* a power of two; slot 0 is never used */
#define BFD_OCTETS 24u   /* of a control packet without authentication: RFC 5880, 4.1 */
/* An IPv6 header, a UDP header, a BFD packet. */
#define BFD_PACKET_MAX (40u + 8u + BFD_OCTETS)
#define BFD_PORT       3784u /* RFC 5881, 4 */
#define BFD_PORT_ECHO  3785u
#define BFD_PORT_MULTI 4784u /* RFC 5883, 5 */
#define BFD_YOUR_DISCR 8u    /* offset in the packet, also in our echo packets */

/*
 * The packets that a slot sends and expects. Immutable: thread bfd publishes a new struct
 * for each change.
 */
struct bfd_beat {
	/*
	 * The limits of the time between two packets, which is random and uniform
	 * (RFC 5880, 6.8.7). 0: no packets are sent.
	 */
	uint32_t least_us, most_us;
	bool at_once;      /* the first packet is sent without a wait */
	bool expects;      /* `expect` is valid */
	bool has_first;    /* `first` is sent before all others, once */
	uint8_t family;    /* 4 or 6 */
	uint8_t ttl_least; /* TTL or hop limit of expected packets */
	uint8_t n;         /* octets of `packet` */
	uint16_t port;     /* UDP port of expected packets */
	uint16_t vrf;
	/*
	 * Interface of both directions. 0: the FIB chooses the egress, and any interface
	 * may receive.
	 */
	uint16_t ifidx;
	struct ipaddr local, remote;    /* an echo packet has `local` as both addresses */
	uint8_t packet[BFD_PACKET_MAX]; /* from the IP header on, with its checksums */
	uint8_t first[BFD_PACKET_MAX];  /* as long as `packet` */
	uint8_t expect[BFD_OCTETS];     /* a packet with these octets changes nothing */
};

struct bfd_slot {
	alignas(64) _Atomic(struct bfd_beat *) beat; /* W:bfd R:fwd  NULL: none */
	_Atomic uint32_t version;                    /* W:bfd  changes with `beat` */
	/* W:the forwarder of the slot  R:bfd  the version whose packets were sent */
	_Atomic uint32_t taken;
	/* CLOCK_MONOTONIC, ns, of the last expected packet; 0: none came yet */
	alignas(64) _Atomic uint64_t heard_ns; /* W:fwd, bfd when the slot gets a session */
	_Atomic uint64_t n_heard;              /* W:fwd  expected packets */
	_Atomic uint64_t n_sent;               /* W:fwd  packets */
};

/*
 * The real-time priority that thread bfd lends to a forwarder (bfd/lend.c). The forwarder
 * gives it back after a round.
 */
struct bfd_loan {
	/* W:fwd  rounds that ended with all queues polled and due packets sent */
	alignas(64) _Atomic uint32_t rounds;
	_Atomic int tid;   /* W:fwd  of the forwarder; 0: it takes no priority */
	_Atomic bool lent; /* W:bfd, fwd */
};

struct bfd_table {
	_Atomic uint32_t epoch; /* W:bfd  changes when some slot has changed */
	_Atomic uint32_t end;   /* W:bfd  slots from here on have never been used */
	struct bfd_slot slot[BFD_SLOTS];
	struct bfd_loan loan[COUNTERS_MAX]; /* by forwarder */
};

/* The list of the slots of one forwarder. Only that forwarder uses it. */
struct bfd_pace {
	struct bfd_table *table;
	struct rte_mempool *pool;
	unsigned int index, n_fwd; /* it has the slots with slot % n_fwd == index */
	uint64_t next;             /* due_first(): time (TSC) of the next packet */
	uint32_t epoch;            /* of the table when it was last read */
	uint64_t random;
	uint64_t ticks_us; /* TSC ticks in a microsecond */
	struct due due;    /* slots by the time (TSC) of their next packet */
};

/* Make the table; NULL: out of memory.                                            [main] */
struct bfd_table *bfd_table_create(void);
void bfd_table_free(struct bfd_table *t);

/* Make the list of forwarder `index` of `n_fwd`; NULL: out of memory.             [main] */
struct bfd_pace *bfd_pace_create(struct bfd_table *t, struct rte_mempool *pool,
				 unsigned int index, unsigned int n_fwd);
void bfd_pace_free(struct bfd_pace *p);

/*
 * Return the time in ns until the next BFD packet of a forwarder is due; UINT64_MAX: no
 * packet is due. A forwarder may sleep for this time. `pace` is its struct bfd_pace.
 *                                                                                 [fwd-n]
 */
uint64_t bfd_pace_sleep_ns(void *pace);

/* Return an empty buffer for a packet, or NULL: there is none.                  [fwd-n] */
static inline struct rte_mbuf *
bfd_buffer(const struct bfd_pace *p)
{
	return rte_pktmbuf_alloc(p->pool);
}

/* Return the packets that a slot sends and expects, or NULL.                [RCU reader] */
static inline const struct bfd_beat *
bfd_beat(const struct bfd_slot *s)
{
	return atomic_load_explicit(&s->beat, memory_order_consume);
}

#endif
