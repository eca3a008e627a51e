/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_assign: assign receive queues to forwarders, as the configuration says or as
 * plan_queue() chooses: at the start, when a port is added, and while packets pass.
 *                                              [main before other threads run, then manage]
 *
 * With `cores: auto` all forwarders get the same number of queues. Among the forwarders
 * with the fewest queues, plan_queue() takes the nearest to the ports by which the packets
 * leave: to send from another NUMA node costs more than to receive from one ("Kamuee", its
 * comparison WRONGNUMA), and packets that arrive by a port mostly leave by the other ports.
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
	unsigned int n_queue[PLAN_MAX]; /* number that it serves already */
	unsigned int n_port;
	int port_node[PLAN_MAX]; /* NUMA node of each port's device, -1: unknown */
};

/*
 * Choose the forwarder of the next queue of port `port`, and count the queue. Return its
 * index.
 */
unsigned int plan_queue(struct plan *plan, unsigned int port);

struct deal {
	struct serving *serving;    /* array, one for each forwarder */
	const unsigned int *cpu;    /* array, the CPU of each forwarder */
	int node[CONFIG_CORES_MAX]; /* NUMA node of each forwarder, -1: unknown */
	unsigned int n_fwd;
	const struct port *port; /* array of PORT_SLOTS */
};

/*
 * Begin to serve the queues of a port for which `cp` names a CPU, or, without `named`, the
 * other queues. Returns 0 or -ENOMEM.
 */
int deal_begin(const struct deal *d, const struct port *port, const struct config_port *cp,
	       bool named);

/*
 * Begin to serve all queues of the first `n` ports, at the start. The queues for which the
 * configuration names a CPU come first, because the others go to the forwarders with the
 * fewest queues. Returns 0 or -ENOMEM.
 */
int deal_all(const struct deal *d, const struct config_port *cp, unsigned int n);

/* Stop serving all queues of a port. */
void deal_end(const struct deal *d, const struct port *port);

/*
 * Move each queue of a port to the CPU that `cp` names for it. The other queues stay, and
 * other ports are not affected. Returns 0, or -ENOMEM with all queues where they were.
 */
int deal_move(const struct deal *d, const struct port *port, const struct config_port *cp);

/* A copy of the assignment, by the names of the ports. */
struct deal_seen {
	unsigned int n_port;
	struct deal_port {
		char name[IFNAMSIZ];
		uint16_t n_rxq;
		uint8_t fwd[CONFIG_CORES_MAX]; /* forwarder of each queue; n_fwd: none */
	} port[CONFIG_PORTS_MAX];
};

/* Copy the present assignment of all ports. */
void deal_look(const struct deal *d, struct deal_seen *seen);

/*
 * Move each queue of `seen` back to its forwarder. Ports may have been added and removed
 * since. Returns 0, or -ENOMEM if some queues could not be moved.
 */
int deal_restore(const struct deal *d, const struct deal_seen *seen);

#endif
