/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal: DPDK as the configuration wants it.
 */
#ifndef EAL_H
#define EAL_H

#include <sys/types.h>

#include "config.h"

struct rte_mempool;

/*
 * Start DPDK, its main lcore where this thread may run. `old` is the daemon whose place we take,
 * 0: none. Returns 0 or -errno, -ENOMEM when there is room for one and not for two, and why in
 * the log.                                                                       [main]
 */
int eal_start(const struct config *conf, pid_t old);

/* Packet buffers for all ports; NULL, and why in the log.                        [main] */
struct rte_mempool *eal_pool(const struct config *conf);

#endif
