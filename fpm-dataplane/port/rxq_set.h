/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_set: which forwarder serves which receive queues, changeable while packets come. A set
 * of queues is immutable; a change publishes another and waits until the forwarder has let
 * go of the old one. What comes meanwhile waits in the queue; other queues notice nothing.
 *
 * Each has two sets in turn, with equal room: what it served once fits for ever, so that to
 * take queues away, and to give them back, needs no memory.
 *
 * Changes are made by one thread at a time; each waits for a grace period.
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
	bool interrupt; /* `fd` tells only after port_rxq_arm() */
	bool lacp;      /* its port wants to be sent by, too, ten times a second at least */
	int fd;         /* tells of frames; -1: none, it has to be looked at */
};

struct rxq_set {
	unsigned int n, room;
	struct rxq q[];
};

/* One a forwarder. */
struct serving {
	_Atomic(struct rxq_set *) set; /* W:who assigns R:the forwarder; never NULL */
	struct rxq_set *spare;         /* W:who assigns  the next one; no reader has it */
	struct idle idle;              /* how it waits, and is woken */
};

/* Returns 0 or -errno, with nothing left to close.                               [main] */
int serve_open(struct serving *s, bool never_sleep, uint64_t *n_sleeps);
void serve_close(struct serving *s);

/* The queues, valid until the next quiescent state.                         [RCU reader] */
static inline const struct rxq_set *
serve_set(const struct serving *s)
{
	return atomic_load_explicit(&s->set, memory_order_consume);
}

/* It begins to serve `q`, which nobody serves. Returns 0, or -ENOMEM, all as it was. */
int serve_begin(struct serving *s, const struct rxq *q);

/*
 * It serves `queue` of interface `ifidx` no more: when this returns, it has no packet of it
 * in its hands that it has not sent on. Returns 0 or -ENOENT.
 */
int serve_end(struct serving *s, uint16_t ifidx, uint16_t queue);

/* Who of `n` serves it? Its index, `n` when nobody does. */
unsigned int serve_index(const struct serving *s, unsigned int n, uint16_t ifidx,
			 uint16_t queue);

/* From one to another. Returns 0, -ENOENT or -ENOMEM, all as it was. */
int serve_move(struct serving *from, struct serving *to, uint16_t ifidx, uint16_t queue);

#endif
