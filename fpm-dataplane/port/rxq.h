/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq: receive queues of DPDK ports as forwarders serve them, and how they signal frames.
 */
#ifndef PORT_RXQ_H
#define PORT_RXQ_H

#include "port/port.h"
#include "port/rxq_set.h"

/* Fill in *q for queue `queue` of a started port. */
void port_rxq(const struct port *port, uint16_t queue, struct rxq *q);

/*
 * Enable the interrupts of a forwarder's queues before it sleeps, and disable them after.
 * `serving` is its struct serving. A callback of struct idle.                   [fwd-n]
 */
void port_rxqs_arm(void *serving, bool on);

#endif
