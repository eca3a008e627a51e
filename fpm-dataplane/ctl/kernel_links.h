/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_links: read the kernel's interfaces, with their counters (rtnetlink(7)). */
#ifndef CTL_KERNEL_LINKS_H
#define CTL_KERNEL_LINKS_H

#include <linux/if_link.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct kernel_link {
	uint32_t ifindex;
	uint32_t below; /* of a VLAN or macvlan: ifindex of the interface that carries it */
	bool abroad;    /* that interface is in another network namespace */
	uint32_t mtu_bytes;
	uint32_t flags;    /* IFF_ */
	uint16_t hardware; /* ARPHRD_ */
	uint8_t operstate; /* IF_OPER_ */
	bool promiscuous;
	bool proto_down;
	/* a macvlan: its mode (MACVLAN_MODE_*); a VLAN: its id; else 0 */
	uint32_t macvlan_mode;
	uint16_t vlan_id;
	/*
	 * sysctls of the link; has_ipv4, has_ipv6: the kernel has sent those of the family
	 */
	bool has_ipv4, forwarding4;
	bool has_ipv6, ipv6_off, force_forwarding6;
	uint32_t mtu6_bytes;
	char name[IF_NAMESIZE]; /* may have any octet but 0, blanks and '/' */
	char kind[16];          /* "vlan", "tun"...; "": none, for example a NIC */
	char alias[256];
	uint8_t mac[32];
	uint8_t mac_bytes;
	struct rtnl_link_stats64 count;
};

/*
 * Read all interfaces of the present network namespace, by ascending ifindex. The caller
 * frees *links. Returns their number, or -errno.
 */
int kernel_links(struct kernel_link **links);

#endif
