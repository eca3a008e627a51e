/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Advice for an operator, by the reason for which a packet leaves the fast path
 * (base/reason.def). One line each; reasons that need no action have none. ADDRESS stands
 * for the destination, PORT for the ingress port, [vrf NAME] for the VRF of the lookup.
 */
#include "ctl/print.h"

#include <stddef.h>
#include <string.h>

static const char *const known[][2] = {
	{"l2_short", "the sender or its link cuts frames: capture it (reason l2_short)"},
	{"l2_foreign",
	 "the sender has a wrong MAC for us, or a switch floods: look at its ARP"},
	{"l2_group_source",
	 "the sender or a bridge before us is broken: capture it (reason l2_group_source)"},
	{"l2_not_unicast",
	 "the sender puts unicast into broadcast frames: look at its ARP"},
	{"vlan_unknown",
	 "ip link add link PORT name PORT.ID type vlan id ID, or have the switch drop it"},
	{"ip4_version", "the sender is broken: capture it (reason ip4_version)"},
	{"ip4_ihl", "the sender is broken: capture it (reason ip4_ihl)"},
	{"ip4_length", "the frame was cut on its way: look at MTUs and cables before us"},
	{"ip4_checksum", "damaged on its way: look at cables, and at offloads of a veth"},
	{"ip4_martian_src",
	 "spoofed or misconfigured: fpmctl trace reason ip4_martian_src tells its MAC"},
	{"ip4_martian_dst", "the sender routes loopback or reserved addresses to us"},
	{"ip4_linklocal",
	 "169.254/16 stays on its link: the sender got no address (DHCP?)"},
	{"ip4_directed_bcast", "by design (RFC 2644); nothing turns it on"},
	{"ip6_version", "the sender is broken: capture it (reason ip6_version)"},
	{"ip6_length", "the frame was cut on its way: look at MTUs and cables before us"},
	{"ip6_martian_src",
	 "spoofed or misconfigured: fpmctl trace reason ip6_martian_src tells its MAC"},
	{"ip6_martian_dst", "the sender routes loopback addresses to us"},
	{"ip6_linklocal",
	 "the sender has no global address: look at its router advertisements"},
	{"ip6_linklocal_dst",
	 "no address of ours on PORT: the sender takes us for somebody on its link"},
	{"ttl", "a traceroute, or a loop: traceroute to the destination tells which"},
	{"no_route",
	 "has FRR one? vtysh: show ip route [vrf NAME] ADDRESS, or ipv6; fpmctl "
	 "audit"},
	{"blackhole",
	 "somebody configured it: fpmctl show routes ADDRESS, and vtysh knows who"},
	{"unreachable",
	 "somebody configured it: fpmctl show routes ADDRESS, and vtysh knows who"},
	{"prohibit",
	 "somebody configured it: fpmctl show routes ADDRESS, and vtysh knows who"},
	{"unresolved_nh", "zebra owes us a next hop: fpmctl audit, then fpmctl replay"},
	{"vrf_no_fib",
	 "a VRF that was made just now has one soon; else the log says why it cannot"},
	{"foreign_oif",
	 "the way out is no port of the dataplane: add it, or change the route"},
	{"unsupported_encap", "MPLS and SRv6 are not there yet: route it without"},
	{"mtu",
	 "the sender must send less: is ICMP filtered before it? ip link set mtu here"},
	{"forwarding_off",
	 "sysctl net.ipv4.ip_forward, net.ipv6.conf.all.forwarding, and those of PORT"},
	{"ingress_down", "ip link set PORT up, in the control namespace"},
	{"vrf_again", "leak from where the host is: fpmctl show routes [vrf NAME] ADDRESS"},
	{"egress_down", "fpmctl show ports: is the link up, and set up with ip link?"},
	{"neigh_failed",
	 "the neighbor does not answer: fpmctl show neighbors, is it alive?"},
	{"hold_full",
	 "too many silent neighbors at once: a scan? capture it (reason hold_full)"},
	{"policed",
	 "a flood, or a low rate: fpmctl show punt tells the class; set policer"},
	{"punt_ring_full", "the host is behind: fpmctl show punt tells the class"},
	{"tx_full", "more goes out than the port takes: look at its rate and queues"},
	{"inject_ring_full", "the kernel sends faster than the port takes"},
	{"tap_down", "the TAP is gone or down: ip link show, in the control namespace"},
	{"no_mbuf", "raise memory.size-mib in the configuration"},
	{"unresolved",
	 "it waits up to some seconds for the neighbor; then ICMP unreachable"},
	{"too_big", "it is cut into fragments, which are forwarded"},
};

const char *
advice(const char *reason)
{
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i][0], reason) == 0)
			return known[i][1];
	return NULL;
}
