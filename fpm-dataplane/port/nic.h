/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic: the device of a port, in the process that drives it: the daemon, or fpm-nics, which
 * keeps NICs for it (port/nicd_client.h).
 */
#ifndef PORT_NIC_H
#define PORT_NIC_H

#include <pthread.h>

#include <rte_config.h>

#include "port/port.h"

struct rte_eth_dev_info;

#define NIC_RX_DESC          1024  /* frames that a receive queue holds */
#define NIC_AF_PACKET_FRAMES 2048u /* frames that a ring of net_af_packet holds */
/* The longest queue of any device. */
#define NIC_QUEUE_MAX (NIC_RX_DESC + NIC_AF_PACKET_FRAMES)

/*
 * Serializes control operations on a running device. DPDK leaves this to its callers. Some
 * devices (vmxnet3) have one register for all results, so a link could seem down while
 * another thread reads counters.
 */
extern pthread_mutex_t nic_control[RTE_MAX_ETHPORTS];

/*
 * Attach, configure and start the device of a port, and fill in the fields of *port that
 * describe it. Returns 0, or -errno with everything undone and a sentence in `why`.
 */
int nic_open(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	     char *why, unsigned int why_size);

/* See port_could_be(). */
int nic_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
		 char *why, unsigned int why_size);

/*
 * Check the name by which the driver uses the kernel interface behind the port. Return 0 if
 * the interface still has this name, or if the port has no such interface. -ENODEV: the
 * interface was renamed or deleted, and another interface may have the name now. -EMFILE or
 * another -errno: the kernel could not be asked.
 */
int nic_check_name(const struct port *port);

/* See port_set_mtu(). */
int nic_set_mtu(const struct port *port, unsigned int mtu_bytes);
/* See port_set_link(). */
int nic_set_link(const struct port *port, bool up);
/* See port_mtu_is_beyond(). */
bool nic_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes);

/*
 * Return true if the device itself, not its driver, strips and inserts 802.1Q tags, if it
 * can begin at any time, and if this costs nothing until then.             [any thread]
 */
bool nic_takes_tags(const struct rte_eth_dev_info *info);

/*
 * Close the device and detach it, so that it can be attached again, with other devargs too.
 */
void nic_close(const struct port *port);

#endif
