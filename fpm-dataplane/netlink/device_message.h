/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_message: decode messages of the kernel about devices and their traffic control, as
 * far as they show configuration that forwarders do not obey.
 */
#ifndef NETLINK_DEVICE_MESSAGE_H
#define NETLINK_DEVICE_MESSAGE_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

#define DEVICE_NAME 16 /* octets of a device's name or of a kind, its terminator included */

struct device_message {
	uint32_t ifindex;
	uint32_t master; /* IFLA_MASTER; 0: none */
	char name[DEVICE_NAME];
	char master_kind[DEVICE_NAME]; /* "bridge", "vrf"; "": unknown */
	char kind[DEVICE_NAME];        /* "macvlan"; "": none */
	uint32_t on;                   /* IFLA_LINK: the device below; 0: none */
	uint8_t mac[6];                /* 0: no address, or its length is not 6 octets */
	bool admin_up;                 /* IFF_UP */
	bool xdp;                      /* an XDP program is attached */
	bool protodown;                /* IFLA_PROTO_DOWN ... */
	uint32_t protodown_by;         /* ... for these reasons (bits); 0: unknown */
	bool egress_qos;               /* a VLAN with egress-qos-map */
	uint32_t macvlan_mode;         /* of a macvlan or macvtap; 0: none */
	uint32_t txqlen;               /* IFLA_TXQLEN */
	const uint8_t *conf4, *conf6;  /* 32-bit sysctls, inside the message; NULL: none */
	uint32_t n_conf4, n_conf6;     /* how many sysctls conf4 and conf6 have */
};

/*
 * A MAC that a device receives in addition to its own, or an entry of a forwarding
 * database.
 */
struct mac_message {
	uint32_t ifindex;
	bool self; /* NTF_SELF: of the device, not of its master */
	uint8_t mac[6];
};

struct qdisc_message {
	uint32_t ifindex, handle, parent; /* as in struct tcmsg, host order */
	char kind[DEVICE_NAME];
};

/*
 * Decode RTM_NEWLINK. `nlh` is 4-aligned, and complete. Returns 0 or -EBADMSG. `m` points
 * into the message.                                                           [any thread]
 */
int device_message_decode(const struct nlmsghdr *nlh, struct device_message *m);

/*
 * Return the sysctl net.ipv4.conf.DEVICE.X, where `key` is IPV4_DEVCONF_X of linux/ip.h, or
 * net.ipv6.conf.DEVICE.X, where `key` is DEVCONF_X of linux/ipv6.h. Returns 0 if the
 * message does not have the sysctl.                                        [any thread]
 */
uint32_t device_conf4(const struct device_message *m, unsigned int key);
uint32_t device_conf6(const struct device_message *m, unsigned int key);

/*
 * Decode RTM_NEWNEIGH of AF_BRIDGE. `nlh` is 4-aligned, and complete. Returns 0 or
 * -EBADMSG.                                                                [any thread]
 */
int mac_message_decode(const struct nlmsghdr *nlh, struct mac_message *m);

/*
 * Decode RTM_NEWQDISC or RTM_NEWTFILTER. `nlh` is 4-aligned, and complete. Returns 0 or
 * -EBADMSG.                                                                [any thread]
 */
int qdisc_message_decode(const struct nlmsghdr *nlh, struct qdisc_message *m);

#endif
