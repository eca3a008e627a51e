/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq: how a receive queue signals frames: by the socket of net_af_packet, by the interrupt
 * of a NIC, or not at all. No state of its own.
 */
#include "port/rxq.h"

#include <rte_ethdev.h>

/* Return the descriptor of a queue's interrupt; -1: the driver has none. */
static int
interrupt_fd(uint16_t port_id, uint16_t queue)
{
	/*
	 * Request the descriptor only if the driver has one, because DPDK logs an error
	 * otherwise.
	 */
	if (rte_eth_dev_rx_intr_enable(port_id, queue) < 0)
		return -1;
	rte_eth_dev_rx_intr_disable(port_id, queue);
	return rte_eth_dev_rx_intr_ctl_q_get_fd(port_id, queue);
}

void
port_rxq(const struct port *port, uint16_t queue, struct rxq *q)
{
	*q = (struct rxq){.ifidx = port->ifidx,
			  .port_id = port->port_id,
			  .queue = queue,
			  .rx_cksum = port->rx_cksum,
			  .lacp = port->bond == BOND_LACP,
			  .fd = queue < port->n_socket ? port->socket[queue] : -1};
	if (q->fd < 0 && port->interrupts) {
		q->fd = interrupt_fd(port->port_id, queue);
		q->interrupt = q->fd >= 0;
	}
}

void
port_rxqs_arm(void *serving, bool on)
{
	const struct rxq_set *set = serving_set(serving);

	for (unsigned int i = 0; i < set->n; i++) {
		const struct rxq *q = &set->q[i];

		if (q->interrupt && on)
			rte_eth_dev_rx_intr_enable(q->port_id, q->queue);
		else if (q->interrupt)
			rte_eth_dev_rx_intr_disable(q->port_id, q->queue);
	}
}
