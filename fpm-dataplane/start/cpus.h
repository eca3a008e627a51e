/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus: select the CPUs that forward if the configuration does not, and the CPUs of the
 * other threads.
 */
#ifndef START_CPUS_H
#define START_CPUS_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Select the last CPU of this process to forward if `core` has none (`*n_core` 0). Keep the
 * calling thread, and each thread that it creates, off the CPUs that forward, unless there
 * are no other CPUs. [main]
 */
void cpus_layout(unsigned int *core, unsigned int *n_core);

/*
 * If control threads have a single CPU, let a thread that BFD waits for use the forwarding
 * CPUs, too. Such a thread needs a few percent of a CPU. The single CPU may be busy with
 * work that the scheduler cannot move, such as the interrupts of a flood. [main]
 */
void cpus_allow_forwarding(pthread_t thread);

/*
 * Let the calling thread run on all CPUs that the process started with (true), or put it
 * back to the CPUs of cpus_layout() (false).
 */
void cpus_allow_all(bool yes);

/* Return the NUMA node of a CPU; 0 if the kernel reports none. */
int cpus_node(unsigned int cpu);

#endif
