/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Advice for an operator, by the reason for which a packet leaves the fast path
 * (base/reason.def). Each reason has one line; reasons that need no action have no line.
 * ADDRESS stands for the destination, PORT for the ingress port, [vrf NAME] for the VRF of
 * the lookup.
 */
#include "ctl/print_rows.h"

#include <stddef.h>
#include <string.h>

static const char *const known[][2] = {
	{"l2_short",
	 "the sender or its link truncates frames: capture them (reason l2_short)"},
	{"l2_foreign",
	 "a switch floods, or the sender has a wrong MAC for this router: check its ARP"},
	{"l2_group_source",
	 "the sender or a bridge is faulty: capture it (reason l2_group_source)"},
	{"l2_not_unicast", "the sender puts unicast into broadcast frames: check its ARP"},
	{"vlan_unknown",
	 "ip link add link PORT name PORT.ID type vlan id ID, or let the switch drop it"},
	{"ip4_version", "the sender is faulty: capture it (reason ip4_version)"},
	{"ip4_ihl", "the sender is faulty: capture it (reason ip4_ihl)"},
	{"ip4_length", "the frame was truncated on its path: check MTUs and cables"},
	{"ip4_checksum",
	 "the packet was damaged: check cables; turn off the offloads of a veth"},
	{"ip4_martian_src",
	 "spoofed or misconfigured sender; its MAC: fpmctl trace reason ip4_martian_src"},
	{"ip4_martian_dst",
	 "the sender routes loopback or reserved addresses to this router"},
	{"ip4_linklocal",
	 "169.254/16 is never routed: give the sender another address (check DHCP)"},
	{"ip4_directed_bcast", "by design (RFC 2644); there is no option for it"},
	{"ip6_version", "the sender is faulty: capture it (reason ip6_version)"},
	{"ip6_length", "the frame was truncated on its path: check MTUs and cables"},
	{"ip6_martian_src",
	 "spoofed or misconfigured sender; its MAC: fpmctl trace reason ip6_martian_src"},
	{"ip6_martian_dst", "the sender routes loopback addresses to this router"},
	{"ip6_linklocal",
	 "the sender has no global address: check the router advertisements on PORT"},
	{"ip6_linklocal_dst",
	 "not an address of PORT: the sender takes this router for another host"},
	{"ttl",
	 "traceroute causes some; if there are many, look for a loop: traceroute ADDRESS"},
	{"no_route",
	 "check FRR (vtysh: show ip route [vrf NAME] ADDRESS, or ipv6), then fpmctl audit"},
	{"blackhole", "configured: see fpmctl show routes ADDRESS, and vtysh"},
	{"unreachable", "configured: see fpmctl show routes ADDRESS, and vtysh"},
	{"prohibit", "configured: see fpmctl show routes ADDRESS, and vtysh"},
	{"unresolved_nh",
	 "zebra has not sent a next hop: fpmctl audit, then fpmctl replay"},
	{"vrf_no_fib", "a new VRF gets a FIB soon; if it does not, the log has the reason"},
	{"foreign_oif",
	 "the egress interface is no port: see the key routes.through-kernel"},
	{"hook", "fpmctl show hooks; fpmctl explain asks the program about a packet"},
	{"urpf", "check fpmctl show routes SOURCE, and net.ipv4.conf.{all,PORT}.rp_filter"},
	{"filter", "fpmctl show filter; fpmctl explain names the rule for a packet"},
	{"filter_absent",
	 "fpmctl show filter has the reason; check the key filter, and nft list table"},
	{"kernel_route",
	 "the kernel decides: ip route get ADDRESS iif PORT, and its firewall"},
	{"unsupported_encap",
	 "a VNI, SRv6, over 16 labels or limits.encaps is the cause: show routes ADDRESS"},
	{"mpls_off", "accept labels: sysctl net.mpls.conf.PORT.input=1, or mpls enable "
		     "in vtysh"},
	{"mpls_no_label", "compare fpmctl show labels with FRR (vtysh: show mpls table)"},
	{"mpls_reserved", "the sender is at fault: capture it (reason mpls_reserved)"},
	{"mpls_malformed", "the sender is at fault: capture it (reason mpls_malformed)"},
	{"mpls_multicast", "multicast with labels is not supported: capture it"},
	{"mpls_stack", "the sender pushes too many labels of this router: capture it"},
	{"mpls_payload", "a pseudowire ends here, which is not supported: capture it"},
	{"srv6_segments",
	 "the sender's list of segments does not match this end point: capture it"},
	{"srv6_upper",
	 "fpmctl show routes ADDRESS shows the end point; capture the packets"},
	{"no_headroom",
	 "the buffers of the driver have no room for more headers: fpmctl show ports"},
	{"encap_loop",
	 "route the far end by another interface, or find the sender (fpmctl capture)"},
	{"ecn_ce",
	 "the path of the tunnel is congested, or the far end copies no ECN field"},
	{"vxlan_flags", "the sender is at fault: capture it (reason vxlan_flags)"},
	{"vxlan_vni",
	 "make a vxlan device with this VNI, or remove the VNI at the far end"},
	{"udp_checksum", "packets are damaged on the path, or udp6zerocsumrx of the vxlan "
			 "device is off"},
	{"mtu",
	 "raise the MTU here (ip link set), or find the filter that drops ICMP errors"},
	{"forwarding_off",
	 "set net.ipv4.ip_forward, net.ipv6.conf.all.forwarding, and the sysctls of PORT"},
	{"ipv6_off",
	 "set sysctl net.ipv6.conf.PORT.disable_ipv6 to 0, and an MTU of 1280 or more"},
	{"ingress_down", "ip link set PORT up, in the control namespace"},
	{"vrf_again",
	 "leak it directly from the VRF of its next hop: show routes [vrf NAME] ADDRESS"},
	{"egress_down", "check the link (fpmctl show ports), and the state (ip link show)"},
	{"neigh_failed", "check that the neighbor is up: fpmctl show neighbors"},
	{"hold_full", "too many silent neighbors at once, perhaps a scan: capture it "
		      "(reason hold_full)"},
	{"policed",
	 "a flood, or the rate is too low: fpmctl show punt; fpmctl set policer"},
	{"punt_ring_full", "the host is overloaded: fpmctl show punt shows the class"},
	{"tx_full",
	 "the router sends more than the port can carry: check its rate and queues"},
	{"inject_ring_full", "the kernel sends faster than the port can carry"},
	{"tap_down", "the TAP is deleted or down: ip link show, in the control namespace"},
	{"no_mbuf", "raise memory.size-mib in the configuration"},
	{"bfd_bad",
	 "the peer is too many hops away, or faulty: capture it (reason bfd_bad)"},
	{"bfd_no_session",
	 "the peer has a session that FRR lacks: fpmctl show bfd; vtysh, show bfd peers"},
	{"unresolved",
	 "the packet waits some seconds for the neighbor, then ICMP unreachable is sent"},
	{"too_big", "the packet is fragmented, and the fragments are forwarded"},
};

const char *
advice(const char *reason)
{
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i][0], reason) == 0)
			return known[i][1];
	return NULL;
}
