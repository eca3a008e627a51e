/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_set: the assignment of receive queues to forwarders, which can change while packets
 * arrive. A set of queues is immutable. A change publishes a new set and waits until the
 * forwarder has dropped the old one. Packets wait in their queue meanwhile. Other queues
 * are not affected.
 *
 * A forwarder has two sets in turn, with equal room. The room never shrinks, so to remove
 * queues and to add them again needs no memory.
 *
 * One thread at a time makes changes. Each change waits for a grace period.
 */
#ifndef PORT_RXQ_SET_H
#define PORT_RXQ_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/idle.h"

struct rxq {
	uint16_t ifidx, port_id, queue;
	bool rx_cksum;  /* the port verifies IPv4 header checksums */
	bool interrupt; /* `fd` signals only after port_rxqs_arm() */
	bool lacp;      /* needs a transmit call ten times a second for LACP */
	int fd;         /* signals frames; -1: none, the queue has to be polled */
};

struct rxq_set {
	unsigned int n, room;
	struct rxq q[];
};

/* The queues of one forwarder. */
struct serving {
	_Atomic(struct rxq_set *) set; /* W:assigner R:the forwarder; never NULL */
	struct rxq_set *spare;         /* W:assigner the next set; it has no reader */
	struct idle idle;              /* how the forwarder waits, and is woken */
};

/* Open `s`. Returns 0, or -errno with nothing left to close.                      [main] */
int serving_open(struct serving *s, bool never_sleep, uint64_t *n_sleeps);
void serving_close(struct serving *s);

/* Return the queues, which are valid until the next quiescent state.        [RCU reader] */
static inline const struct rxq_set *
serving_set(const struct serving *s)
{
	return atomic_load_explicit(&s->set, memory_order_consume);
}

/*
 * Begin to serve `q`, which no forwarder serves. Returns 0, or -ENOMEM with nothing
 * changed.
 */
int serving_add(struct serving *s, const struct rxq *q);

/*
 * Stop serving `queue` of interface `ifidx`. After the return the forwarder holds no unsent
 * packet of this queue. Returns 0 or -ENOENT.
 */
int serving_remove(struct serving *s, uint16_t ifidx, uint16_t queue);

/* Return the index of the forwarder, of `n`, that serves a queue; `n` if none does. */
unsigned int serving_index(const struct serving *s, unsigned int n, uint16_t ifidx,
			   uint16_t queue);

/*
 * Move a queue to another forwarder. Returns 0, or -ENOENT or -ENOMEM with nothing changed.
 */
int serving_move(struct serving *from, struct serving *to, uint16_t ifidx, uint16_t queue);

#endif
