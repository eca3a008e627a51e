/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU sets of the control threads. This file does not use DPDK and starts no thread. */
#include "start/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define NODES_MAX 64

static cpu_set_t allowed; /* CPUs of the process at its start */
static cpu_set_t spared;  /* the CPUs on which control threads run */
static bool one_left;     /* control threads have a single CPU */

int
cpus_node(unsigned int cpu)
{
	char path[64];

	for (int node = 0; node < NODES_MAX; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpu%u", node,
			 cpu);
		if (access(path, F_OK) == 0)
			return node;
	}
	return 0;
}

void
cpus_layout(unsigned int *core, unsigned int *n_core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	allowed = set;
	if (*n_core == 0) {
		for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				core[0] = cpu;
		*n_core = 1;
	}
	for (unsigned int i = 0; i < *n_core; i++)
		CPU_CLR(core[i], &set);
	one_left = CPU_COUNT(&set) == 1;
	spared = CPU_COUNT(&set) > 0 ? set : allowed;
	sched_setaffinity(0, sizeof(spared), &spared);
}

void
cpus_allow_all(bool yes)
{
	sched_setaffinity(0, sizeof(cpu_set_t), yes ? &allowed : &spared);
}

void
cpus_allow_forwarding(pthread_t thread)
{
	if (one_left)
		pthread_setaffinity_np(thread, sizeof(allowed), &allowed);
}
