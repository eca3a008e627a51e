/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_assign: assign receive queues to forwarders, by the configuration or by
 * rxq_plan_queue(): at the start, when a port is added, and while packets pass.
 *                                             [main before other threads run, then manage]
 *
 * With `cores: auto` all forwarders get the same number of queues. Among the forwarders
 * with the fewest queues, rxq_plan_queue() chooses the forwarder nearest to the ports by
 * which the packets leave. To send to another NUMA node costs more than to receive from it
 * (paper on Kamuee, experiment WRONGNUMA), and packets that arrive by a port mostly leave
 * by the other ports.
 */
#ifndef MANAGE_RXQ_ASSIGN_H
#define MANAGE_RXQ_ASSIGN_H

#include <stdbool.h>

#include "config/config.h"
#include "port/port.h"
#include "port/rxq_set.h"

#define RXQ_PLAN_MAX 64

struct rxq_plan {
	unsigned int n_fwd;
	int fwd_node[RXQ_PLAN_MAX]; /* NUMA node of each forwarder's CPU, -1: unknown */
	unsigned int n_queue[RXQ_PLAN_MAX]; /* number of queues that each serves already */
	unsigned int n_port;
	int port_node[RXQ_PLAN_MAX]; /* NUMA node of each port's device, -1: unknown */
};

/*
 * Choose the forwarder of the next queue of port `port`, and count the queue. Return its
 * index.
 */
unsigned int rxq_plan_queue(struct rxq_plan *plan, unsigned int port);

struct rxq_assign {
	struct serving *serving;    /* array, one for each forwarder */
	const unsigned int *cpu;    /* array, the CPU of each forwarder */
	int node[CONFIG_CORES_MAX]; /* NUMA node of each forwarder, -1: unknown */
	unsigned int n_fwd;
	const struct port *port; /* array of PORT_SLOTS */
};

/*
 * With `named`, begin to serve the queues of a port for which `cp` names a CPU; without it,
 * begin to serve the other queues of the port. Returns 0 or -ENOMEM.
 */
int rxq_assign_begin(const struct rxq_assign *d, const struct port *port,
		     const struct config_port *cp, bool named);

/*
 * Begin to serve the queues of the open ports among the `n` ports of a configuration, at
 * the start. The open ports are in the order of the configuration. The queues for which it
 * names a CPU come first, because the other queues go to the forwarders with the fewest
 * queues. Returns 0 or -ENOMEM.
 */
int rxq_assign_all(const struct rxq_assign *d, const struct config_port *cp,
		   unsigned int n);

/* Stop serving all queues of a port. */
void rxq_assign_end(const struct rxq_assign *d, const struct port *port);

/*
 * Move each queue of a port to the CPU that `cp` names for it. The other queues stay, and
 * other ports are not affected. Returns 0, or -ENOMEM with all queues where they were.
 */
int rxq_assign_move(const struct rxq_assign *d, const struct port *port,
		    const struct config_port *cp);

/* A copy of the assignment, by the names of the ports. */
struct rxq_assign_saved {
	unsigned int n_port;
	struct rxq_assign_port {
		char name[IFNAMSIZ];
		uint16_t n_rxq;
		uint8_t fwd[CONFIG_CORES_MAX]; /* forwarder of each queue; n_fwd: none */
	} port[CONFIG_PORTS_MAX];
};

/* Copy the present assignment of all ports. */
void rxq_assign_save(const struct rxq_assign *d, struct rxq_assign_saved *seen);

/*
 * Move each queue of `seen` back to its forwarder. Ports may have been added and removed
 * since. Returns 0, or -ENOMEM if some queues could not be moved.
 */
int rxq_assign_restore(const struct rxq_assign *d, const struct rxq_assign_saved *seen);

#endif
