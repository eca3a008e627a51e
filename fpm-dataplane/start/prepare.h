/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prepare: `fpm-dataplane --prepare`: before the daemon starts, reserve resources for which
 * the daemon itself has no privilege under the service unit.
 */
#ifndef START_PREPARE_H
#define START_PREPARE_H

#include "config/config.h"

/*
 * Reserve the hugepages for `memory:`, give the PCI devices of `ports:` to vfio-pci, and
 * turn IPv6 off on the kernel interfaces of `ports:`. A NIC that the machine uses is left
 * alone. Each change and each failure is a line of the log. Return 0, or 1 if the machine
 * does not meet the configuration. [main]
 */
int prepare_machine(const struct config *conf);

#endif
