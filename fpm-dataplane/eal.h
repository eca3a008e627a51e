/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal: DPDK as the configuration wants it.
 */
#ifndef EAL_H
#define EAL_H

#include "config.h"

struct rte_mempool;

/* Start DPDK, its main lcore where this thread may run. Returns 0 or -errno.     [main] */
int eal_start(const struct config *conf);

/* Packet buffers for all ports; NULL, and why in the log.                        [main] */
struct rte_mempool *eal_pool(const struct config *conf);

#endif
