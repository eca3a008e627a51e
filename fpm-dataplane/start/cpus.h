/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus: which CPUs forward, and which forwarder serves which receive queue, where the
 * configuration leaves it open.
 *
 * Every forwarder gets as many queues as the others. Among those with the fewest the one is
 * taken that is nearest to where the packets go: to send from another NUMA node costs more
 * than to receive from one ("Kamuee", its comparison WRONGNUMA), and what comes in by a port
 * mostly leaves by the others.
 */
#ifndef START_CPUS_H
#define START_CPUS_H

#include <pthread.h>
#include <stdbool.h>

#define PLAN_MAX 64

/*
 * CPUs that forward, when there are none in `core` (`*n_core` 0): the last one we may run
 * on. The calling thread, and with it every one born of it, keeps off all of them, unless
 * there are no others.                                                          [main]
 */
void plan_cores(unsigned int *core, unsigned int *n_core);

/*
 * A thread that BFD waits for, and that needs a few per cent of a CPU: when one CPU is all
 * that control threads have, it may use those that forward, too. That one CPU may be busy
 * with what the scheduler cannot put elsewhere (a flood's interrupts).          [main]
 */
void plan_spare(pthread_t thread);

/* The calling thread on all CPUs that were ours at first, or where plan_cores() left it. */
void plan_everywhere(bool yes);

/* NUMA node of a CPU, 0 where the kernel tells of none. */
int plan_node(unsigned int cpu);

/* Index of the forwarder on a CPU that is one of `core`. */
unsigned int plan_on(const unsigned int *core, unsigned int n_core, unsigned int cpu);

struct plan {
	unsigned int n_fwd;
	int fwd_node[PLAN_MAX];         /* NUMA node of each forwarder's CPU, -1: unknown */
	unsigned int n_queue[PLAN_MAX]; /* that it serves already */
	unsigned int n_port;
	int port_node[PLAN_MAX]; /* of each port's device, -1: unknown */
};

/* Who serves the next queue of port `port`? It is counted. Index of a forwarder. */
unsigned int plan_queue(struct plan *plan, unsigned int port);

#endif
