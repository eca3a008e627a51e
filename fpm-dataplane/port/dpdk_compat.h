/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Defines the names that DPDK changed, so that one source serves DPDK 22.11 and later. The
 * code has the newer names. No other file checks the version of DPDK.
 */
#ifndef PORT_DPDK_COMPAT_H
#define PORT_DPDK_COMPAT_H

#include <rte_eth_bond.h>
#include <rte_eth_bond_8023ad.h>
#include <rte_version.h>

/*
 * DPDK 23.11 renamed the slaves of a bond to members, in functions and in the names of the
 * pools and rings that a bond makes. The compiler does not see the names of pools and
 * rings.
 */
#if RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)
#define rte_eth_bond_member_add         rte_eth_bond_slave_add
#define rte_eth_bond_members_get        rte_eth_bond_slaves_get
#define rte_eth_bond_active_members_get rte_eth_bond_active_slaves_get
#define rte_eth_bond_8023ad_member_info rte_eth_bond_8023ad_slave_info
#define DPDK_BOND_MEMBER                "slave"
#else
#define DPDK_BOND_MEMBER "member"
#endif

/*
 * An IPv6 address, or an array of them, as an argument of rte_fib6 and rte_lpm6: arrays of
 * 16 octets in 22.11, struct rte_ipv6_addr in 24.11.
 */
#define DPDK_IP6(octets) ((void *)(uintptr_t)(octets))

#endif
