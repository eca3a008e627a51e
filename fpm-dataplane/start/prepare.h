/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prepare: `fpm-dataplane --prepare`: reserve resources of the machine before the daemon
 * starts, for which the service unit gives the daemon itself no privilege.
 */
#ifndef START_PREPARE_H
#define START_PREPARE_H

#include "config/config.h"

/*
 * Reserve the hugepages for `memory:`, and give the PCI devices of `ports:` to vfio-pci. A
 * NIC that the machine uses is left alone. Each change and each failure is a line of the
 * log. Return 0, or 1 if something is not as the configuration needs it. [main]
 */
int prepare_machine(const struct config *conf);

#endif
