/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach: have the EAL take a device, and say what is wrong when it does not.
 */
#ifndef PORT_ATTACH_H
#define PORT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Attach a device by its `devargs`; `name` is what the EAL calls it, the address of a NIC.
 * Returns 0 with its port's number, or -errno with a sentence in `why`.   [main, manage]
 */
int attach(const char *devargs, const char *name, uint16_t *port_id, char *why,
	   unsigned int why_size);

/*
 * The same of a PCI device, in this process alone: rte_dev_probe() would have the other processes
 * that share its DPDK attach it, too, before it has its queues.      [main, manage, nics] */
int attach_here(const char *devargs, const char *name, uint16_t *port_id, char *why,
		unsigned int why_size);

/* Is it a NIC that uio has? Who asks that one for an interrupt a queue is refused. */
bool attach_is_by_uio(uint16_t port_id);

#endif
