/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic: the device of a port, in the process that drives it: the daemon, or the one that keeps
 * NICs for it (nics.h).
 */
#ifndef PORT_NIC_H
#define PORT_NIC_H

#include <pthread.h>

#include <rte_config.h>

#include "port/port.h"

struct rte_eth_dev_info;

#define NIC_RX_DESC 1024 /* frames that a receive queue holds */

/*
 * What is asked of a running device, one question at a time: DPDK leaves that to its callers,
 * and some devices (vmxnet3) have one register for all answers: a link could seem down
 * because counters were read meanwhile.
 */
extern pthread_mutex_t nic_control[RTE_MAX_ETHPORTS];

/*
 * Attach, configure and start the device of a port. What port.h tells of the device is in *port
 * then. Returns 0, or -errno with everything undone and a sentence in `why`.
 */
int nic_open(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	     char *why, unsigned int why_size);

/* As port_could_be(). */
int nic_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
		 char *why, unsigned int why_size);

/* As port_set_mtu() and port_mtu_is_beyond(). */
int nic_set_mtu(const struct port *port, unsigned int mtu_bytes);
bool nic_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes);

/*
 * Does the device, and not its driver, take 802.1Q tags off and put them in, from whatever moment
 * it is told to, and at no cost before?                                 [any thread]
 */
bool nic_takes_tags(const struct rte_eth_dev_info *info);

/* With its device, so that it can come again, as it or with other arguments. */
void nic_close(const struct port *port);

#endif
