/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reason: map the reasons of the dataplane to those of sFlow (sflow.org/sflow_drops.txt).
 * Values up to 15 are codes of ICMP destination unreachable. A reason without a counterpart
 * is "unknown".
 */
#include "sflow/impl.h"

/* Values of enum drop_reason of the specification. */
enum {
	NET_UNREACHABLE = 0,
	HOST_UNREACHABLE = 1,
	DST_HOST_PROHIBITED = 10,
	UNKNOWN = 256,
	TTL_EXCEEDED = 257,
	ACL = 258,
	NO_BUFFER_SPACE = 259,
	TRAFFIC_SHAPING = 261,
	PKT_TOO_BIG = 262,
	SRC_MAC_IS_MULTICAST = 263,
	INGRESS_VLAN_FILTER = 265,
	BLACKHOLE_ROUTE = 269,
	UC_DIP_OVER_MC_DMAC = 271,
	IP_HEADER_CORRUPTED = 275,
	UNRESOLVED_NEIGH = 279,
	NON_ROUTABLE_PACKET = 281,
	UNKNOWN_L2 = 284,
	UNKNOWN_L3 = 285,
	UNKNOWN_BUFFER = 287,
	UNKNOWN_TUNNEL = 288,
	DIP_IS_LINK_LOCAL = 299,
};

/* Values plus one, so that a reason that is missing here is detected. */
static const uint16_t value_of[N_DROP] = {
#define IS(reason, value) [DROP_##reason] = (value) + 1
	IS(l2_short, UNKNOWN_L2),
	IS(l2_foreign, UNKNOWN_L2),
	IS(l2_group_source, SRC_MAC_IS_MULTICAST),
	IS(l2_not_unicast, UC_DIP_OVER_MC_DMAC),
	IS(vlan_unknown, INGRESS_VLAN_FILTER),
	IS(ip4_version, IP_HEADER_CORRUPTED),
	IS(ip4_ihl, IP_HEADER_CORRUPTED),
	IS(ip4_length, IP_HEADER_CORRUPTED),
	IS(ip4_checksum, IP_HEADER_CORRUPTED),
	IS(ip4_martian_src, NON_ROUTABLE_PACKET),
	IS(ip4_martian_dst, NON_ROUTABLE_PACKET),
	IS(ip4_linklocal, NON_ROUTABLE_PACKET),
	IS(ip4_directed_bcast, NON_ROUTABLE_PACKET),
	IS(ip6_version, IP_HEADER_CORRUPTED),
	IS(ip6_length, IP_HEADER_CORRUPTED),
	IS(ip6_martian_src, NON_ROUTABLE_PACKET),
	IS(ip6_martian_dst, NON_ROUTABLE_PACKET),
	IS(ip6_linklocal, NON_ROUTABLE_PACKET),
	IS(ip6_linklocal_dst, DIP_IS_LINK_LOCAL),
	IS(ttl, TTL_EXCEEDED),
	IS(no_route, NET_UNREACHABLE),
	IS(blackhole, BLACKHOLE_ROUTE),
	IS(unreachable, HOST_UNREACHABLE),
	IS(prohibit, DST_HOST_PROHIBITED),
	IS(unresolved_nh, UNKNOWN_L3),
	IS(foreign_oif, UNKNOWN_L3),
	IS(unsupported_encap, UNKNOWN_TUNNEL),
	IS(mpls_off, UNKNOWN_TUNNEL),
	IS(mpls_no_label, UNKNOWN_TUNNEL),
	IS(mpls_reserved, UNKNOWN_TUNNEL),
	IS(mpls_malformed, UNKNOWN_TUNNEL),
	IS(mpls_multicast, UNKNOWN_TUNNEL),
	IS(mpls_stack, UNKNOWN_TUNNEL),
	IS(mpls_payload, UNKNOWN_TUNNEL),
	IS(no_headroom, UNKNOWN_BUFFER),
	IS(srv6_segments, UNKNOWN_TUNNEL),
	IS(srv6_upper, UNKNOWN_TUNNEL),
	IS(encap_loop, UNKNOWN_TUNNEL),
	IS(ecn_ce, UNKNOWN_TUNNEL),
	IS(vxlan_flags, UNKNOWN_TUNNEL),
	IS(vxlan_vni, UNKNOWN_TUNNEL),
	IS(udp_checksum, UNKNOWN_TUNNEL),
	IS(filter, ACL),
	IS(filter_absent, ACL),
	IS(hook, ACL),
	IS(urpf, ACL),
	IS(mtu, PKT_TOO_BIG),
	IS(ingress_down, UNKNOWN_L2),
	IS(forwarding_off, UNKNOWN_L3),
	IS(ipv6_off, UNKNOWN_L3),
	IS(vrf_no_fib, UNKNOWN_L3),
	IS(vrf_again, UNKNOWN_L3),
	IS(egress_down, HOST_UNREACHABLE),
	IS(neigh_failed, UNRESOLVED_NEIGH),
	IS(hold_full, UNRESOLVED_NEIGH),
	IS(policed, TRAFFIC_SHAPING),
	IS(punt_ring_full, NO_BUFFER_SPACE),
	IS(tx_full, NO_BUFFER_SPACE),
	IS(inject_ring_full, NO_BUFFER_SPACE),
	IS(tap_down, UNKNOWN_L2),
	IS(no_mbuf, NO_BUFFER_SPACE),
	IS(bfd_bad, UNKNOWN_L3),
	IS(bfd_no_session, UNKNOWN_L3),
#undef IS
};

uint32_t
sflow_reason(enum reason reason)
{
	return reason < N_DROP && value_of[reason] != 0 ? value_of[reason] - 1u : UNKNOWN;
}
