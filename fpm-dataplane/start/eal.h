/* SPDX-License-Identifier: BSD-3-Clause */
/* eal: start DPDK by the configuration. */
#ifndef START_EAL_H
#define START_EAL_H

#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"

struct rte_mempool;

#define EAL_PREFIX        "fdp%d-%08x" /* pid, and the clock in case the pid is reused */
#define EAL_PREFIX_STRLEN 32

/*
 * Start DPDK, with its main lcore on the CPUs of this thread. `old` is the predecessor; 0:
 * none. Return 0 or -errno, with the cause in the log; -ENOMEM means that there is room for
 * one daemon but not for two. [main]
 */
int eal_start(const struct config *conf, pid_t old);

/*
 * Make eal_start() join the DPDK of fpm-nics, whose files have the prefix `prefix`, as its
 * daemon number `client`. Two daemons that run at the same time share no lcore, because
 * each lcore has a cache of packet buffers in the shared memory. [main]
 */
void eal_join(const char *prefix, unsigned int client);

/*
 * eal_client() returns the number of this daemon, or 0 if it does not share DPDK.
 * eal_lcore() returns the lcore of forwarder `i`.
 */
unsigned int eal_client(void);
unsigned int eal_lcore(unsigned int i);

/* End DPDK when no thread uses it. Memory that other processes share stays. [main] */
void eal_end(struct rte_mempool *pool);

/* Start DPDK in fpm-nics. Return 0 or -errno, with the cause in the log. [nics] */
int eal_start_nics(const struct config *conf);

/* Return the prefix of the names of this process's DPDK files. */
const char *eal_prefix(void);

/* Return the packet buffers for all ports; NULL, with the cause in the log. [main] */
struct rte_mempool *eal_pool(const struct config *conf);

/*
 * Return a hash (FNV-1a) of the values that all processes must share to share DPDK: memory,
 * room in packet buffers, plugins.
 */
uint32_t eal_hash(const struct config *conf);

/*
 * For a successor of `old` that found too little memory (rc: -EACCES, -ENOMEM; another rc
 * is returned unchanged): return -ENOMEM if the memory is enough for one daemon, or -EACCES
 * if it is not. The latter is logged.
 */
int eal_memory_error(const struct config *conf, int rc, pid_t old);

#endif
