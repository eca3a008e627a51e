/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which devices may take VLAN tags off frames and put them in. DPDK tells what a port offers,
 * and not who does it, nor what it costs; so this goes by the driver, and by what was read there
 * (22.11) and tried. No state.
 *
 * Not here: net_virtio, net_vhost and net_af_packet, which do it in software, later than we do.
 * net_vmxnet3 takes 802.1ad's tags off, too, and does not tell them from 802.1Q's (in QEMU).
 * net_ixgbe and net_i40e send by a slower loop as soon as they may insert, VLANs or not, and
 * net_ixgbe hands out frames that come while it begins to strip without a word of their tag.
 * net_e1000_igb is as net_e1000_em by its text, and not tried. net_bonding does not pass on to
 * its members what is asked of it while it runs.
 */
#include "port/tags.h"

#include <string.h>

#include <rte_ethdev.h>

bool
tags_by_device(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_e1000_em") == 0 &&
	       (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0 &&
	       (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_VLAN_INSERT) != 0;
}
