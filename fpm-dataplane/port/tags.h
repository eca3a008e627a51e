/* SPDX-License-Identifier: BSD-3-Clause */
/* tags: which devices may take VLAN tags off frames and put them in. Private to port/. */
#ifndef PORT_TAGS_H
#define PORT_TAGS_H

#include <stdbool.h>

struct rte_eth_dev_info;

/*
 * Does the device, and not its driver, take 802.1Q tags off and put them in, from whatever moment
 * it is told to, and at no cost before?                                 [any thread]
 */
bool tags_by_device(const struct rte_eth_dev_info *info);

#endif
