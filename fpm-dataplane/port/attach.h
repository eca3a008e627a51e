/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach: attach a device to DPDK, and report the reason if this fails.
 */
#ifndef PORT_ATTACH_H
#define PORT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Attach a device by its `devargs`. `name` is its name in the EAL, for a NIC its address.
 * Returns 0 and its port id, or -errno with a sentence in `why`.         [main, manage]
 */
int attach(const char *devargs, const char *name, uint16_t *port_id, char *why,
	   unsigned int why_size);

/*
 * Attach a PCI device as attach() does, but in this process only. rte_dev_probe()
 * would attach it in the other processes that share DPDK, too, before it has its queues.
 *                                                                  [main, manage, nicd]
 */
int attach_here(const char *devargs, const char *name, uint16_t *port_id, char *why,
		unsigned int why_size);

/*
 * Return true if the port is a NIC bound to uio. Such a NIC refuses an interrupt per queue.
 */
bool attach_is_by_uio(uint16_t port_id);

#endif
