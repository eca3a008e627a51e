/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal: DPDK as the configuration wants it.
 */
#ifndef START_EAL_H
#define START_EAL_H

#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"

struct rte_mempool;

#define EAL_PREFIX        "fdp%d-%08x" /* process, and what tells it from one of that number */
#define EAL_PREFIX_STRLEN 32

/*
 * Start DPDK, its main lcore where this thread may run. `old` is the daemon whose place we take,
 * 0: none. Returns 0 or -errno, -ENOMEM when there is room for one and not for two, and why in
 * the log.                                                                       [main]
 */
int eal_start(const struct config *conf, pid_t old);

/*
 * eal_start() is to share the DPDK of a process that keeps NICs, whose files are called `prefix`,
 * as its daemon number `client`: two at a time have no lcore in common, each of which has its own
 * cache of packet buffers there.                                                  [main]
 */
void eal_join(const char *prefix, unsigned int client);

/* The number of this daemon; 0 where nothing is shared. The lcore of its forwarder number i. */
unsigned int eal_client(void);
unsigned int eal_lcore(unsigned int i);

/* Nobody uses DPDK here any more: what is ours goes, what others share stays.      [main] */
void eal_end(struct rte_mempool *pool);

/* DPDK as it is in the process that keeps NICs. Returns 0 or -errno, why in the log.    [nics] */
int eal_start_nics(const struct config *conf);

/* What the files of this process are called. */
const char *eal_prefix(void);

/* Packet buffers for all ports; NULL, and why in the log.                        [main] */
struct rte_mempool *eal_pool(const struct config *conf);

/*
 * What DPDK began with, of which whoever shares it has to have the same: memory, room in packet
 * buffers, plugins. As a sum (FNV-1a).
 */
uint32_t eal_sum(const struct config *conf);

/*
 * What it means that there is no memory (rc: -EACCES, -ENOMEM; another is returned as it is) for a
 * successor of `old`: -ENOMEM: there is room for one; or -EACCES, not even that, in the log.
 */
int eal_no_memory(const struct config *conf, int rc, pid_t old);

#endif
