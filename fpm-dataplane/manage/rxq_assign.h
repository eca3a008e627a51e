/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_assign: receive queues to forwarders, as the file says it or as plan_queue() has it; at
 * the start, when a port comes, and anew while packets pass.      [main, before the threads;
 *                                                                  then manage]
 *
 * Where the file leaves it open, every forwarder gets as many queues as the others. Among
 * those with the fewest the one is taken that is nearest to where the packets go: to send from
 * another NUMA node costs more than to receive from one ("Kamuee", its comparison WRONGNUMA),
 * and what comes in by a port mostly leaves by the others.
 */
#ifndef MANAGE_RXQ_ASSIGN_H
#define MANAGE_RXQ_ASSIGN_H

#include <stdbool.h>

#include "config/config.h"
#include "port/port.h"
#include "port/rxq_set.h"

#define PLAN_MAX 64

struct plan {
	unsigned int n_fwd;
	int fwd_node[PLAN_MAX];         /* NUMA node of each forwarder's CPU, -1: unknown */
	unsigned int n_queue[PLAN_MAX]; /* that it serves already */
	unsigned int n_port;
	int port_node[PLAN_MAX]; /* of each port's device, -1: unknown */
};

/* Who serves the next queue of port `port`? It is counted. Index of a forwarder. */
unsigned int plan_queue(struct plan *plan, unsigned int port);

struct deal {
	struct serving *serving;    /* array, one a forwarder */
	const unsigned int *cpu;    /* array, that each is pinned to */
	int node[CONFIG_CORES_MAX]; /* NUMA node of each, -1: unknown */
	unsigned int n_fwd;
	const struct port *port; /* PORT_SLOTS of them */
};

/*
 * Those queues of a port begin that `cp` names a CPU for, or (not `named`) the others.
 * Returns 0 or -ENOMEM.
 */
int deal_begin(const struct deal *d, const struct port *port, const struct config_port *cp,
	       bool named);

/*
 * At a start: all queues of the first `n` ports, those for which the file names a CPU first, for
 * the others go where there are fewest. Returns 0 or -ENOMEM.
 */
int deal_all(const struct deal *d, const struct config_port *cp, unsigned int n);

/* No queue of a port is served any more when this returns. */
void deal_end(const struct deal *d, const struct port *port);

/*
 * Each queue of a port moves to the CPU that `cp` names for it, or stays; the others notice
 * nothing. Returns 0, or -ENOMEM, each where it was.
 */
int deal_move(const struct deal *d, const struct port *port, const struct config_port *cp);

/* Who serves what, of all ports by their names. */
struct deal_seen {
	unsigned int n_port;
	struct deal_port {
		char name[IFNAMSIZ];
		uint16_t n_rxq;
		uint8_t fwd[CONFIG_CORES_MAX]; /* of each queue; n_fwd: nobody */
	} port[CONFIG_PORTS_MAX];
};

void deal_look(const struct deal *d, struct deal_seen *seen);

/*
 * Each queue that was seen moves to who served it then, whichever ports have come and gone
 * since. Returns 0, or -ENOMEM with some not there.
 */
int deal_restore(const struct deal *d, const struct deal_seen *seen);

#endif
