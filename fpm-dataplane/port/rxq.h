/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq: receive queues of DPDK ports, as forwarders serve them: what tells of frames in them.
 */
#ifndef PORT_RXQ_H
#define PORT_RXQ_H

#include "port/port.h"
#include "port/rxq_set.h"

/* Queue `queue` of a started port. */
void port_rxq(const struct port *port, uint16_t queue, struct rxq *q);

/*
 * Before a forwarder sleeps, and after: interrupts of the queues it serves. `serving` is its
 * struct serving; for struct idle.                                               [fwd-n]
 */
void port_rxqs_arm(void *serving, bool on);

#endif
