/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prepare: `fpm-dataplane --prepare`: what the machine has to give before the daemon starts,
 * and what the daemon itself, bounded by its unit, may not take.
 */
#ifndef START_PREPARE_H
#define START_PREPARE_H

#include "config/config.h"

/*
 * Reserve the hugepages that `memory:` asks for and give the PCI devices of `ports:` to
 * vfio-pci. What is so already stays; a NIC that the machine uses is left alone. Each step is a
 * line of the log.                                                                   [main]
 *
 * Returns 0, or 1 when something is not as the configuration needs it.
 */
int prepare_machine(const struct config *conf);

#endif
