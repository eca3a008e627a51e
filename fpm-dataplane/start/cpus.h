/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus: which CPUs forward, where the configuration leaves it open, and which CPUs are left
 * to the other threads.
 */
#ifndef START_CPUS_H
#define START_CPUS_H

#include <pthread.h>
#include <stdbool.h>

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

#endif
