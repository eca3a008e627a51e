/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warning: configuration of the kernel that a Linux router obeys and the dataplane does
 * not. Thread warn finds it and has the list; the numbers here are for the metrics.
 */
#ifndef BASE_WARNING_H
#define BASE_WARNING_H

#include <stdint.h>

/* X(name of the enum, name in rows and metrics) */
#define WARNING_KINDS(X)            \
	X(NFT, "nft")               \
	X(NAT, "nat")               \
	X(IPTABLES, "iptables")     \
	X(TC, "tc")                 \
	X(XDP, "xdp")               \
	X(MEMBER, "member")         \
	X(MACVLAN, "macvlan")       \
	X(MIXED, "mixed-group")     \
	X(RESILIENT, "resilient")   \
	X(VRRP, "vrrp")             \
	X(TUNNEL, "tunnel")         \
	X(VNIFILTER, "vnifilter")   \
	X(VRF_DOWN, "vrf-down")     \
	X(FORWARDING, "forwarding") \
	X(NAMESPACE, "namespace")   \
	X(RULE, "rule")             \
	X(LOCAL, "route-local")     \
	X(LIFE, "route-life")       \
	X(LARGE, "route-large")     \
	X(ORDER, "route-order")     \
	X(MTU, "route-mtu")         \
	X(SOURCE, "route-source")   \
	X(CARRIER, "carrier")       \
	X(LOOPBACK, "loopback")     \
	X(ENCAP, "encap")           \
	X(IPV6_OFF, "ipv6-off")     \
	X(SRV6, "srv6")             \
	X(IPSEC, "ipsec")           \
	X(MULTICAST, "multicast")   \
	X(SYSCTL, "sysctl")         \
	X(ADDRLABEL, "addrlabel")   \
	X(UNREAD, "unread")

enum warning_kind {
#define WARNING_ENUM(name, text) WARNING_##name,
	WARNING_KINDS(WARNING_ENUM)
#undef WARNING_ENUM
		N_WARNING
};

/* Return the name of a kind, as in rows and metrics.                  [any thread] */
const char *warning_kind_name(enum warning_kind kind);

/*
 * W:warn  R:ui, relaxed. Number of present warnings of each kind, including warnings for
 * which the list has no room.
 */
extern _Atomic uint32_t warning_count[N_WARNING];

#endif
