# SPDX-License-Identifier: BSD-3-Clause
"""The modules of FRR's topotests that `make topotests` runs. A module is a folder of topotests, or
a file in one. README.md says which modules are left out, and why. `T=` runs any module."""

# A module with this suffix runs with its BFD sessions in the dataplane, not in bfdd.
BFD = "+bfd"

# {module: what it adds}, the longest first, because several run at the same time.
QUICK = {
    "ospf_topo1": "OSPFv2 and OSPFv3, with link loss",
    "bgp_link_bw_ip": "BGP multipath with weights",
    "ospf6_ecmp_inter_area": "OSPFv3 with paths of equal cost",
    "rip_topo1": "RIP",
    "bgp_route_map_delay_timer": "route-maps of BGP",
    "isis_topo1": "IS-IS",
    "ospf_unnumbered": "OSPFv2 on links without subnets",
    "bgp_suppress_fib": "BGP with acknowledged routes",
    "zebra_multiple_connected": "zebra's netlink: several addresses and interfaces of a subnet",
    "bgp_default_route": "default routes of BGP",
    "bfd_topo1+bfd": "BFD sessions in the dataplane",
}
# All tests of these modules must pass with the kernel. If one fails in both runs with the kernel, the run
# of topotests has failed, because it has no verdict on that test.
MUST = [name.removesuffix(BFD) for name in QUICK]
# The modules that FULL=1 adds.
MORE = """
static_routing_with_ebgp static_routing_with_ibgp ospf_basic_functionality ospfv3_basic_functionality
bgp_ipv4_over_ipv6 bgp_default_originate bgp_route_map bgp_ecmp_topo3
bgp_basic_functionality_topo1 bgp_recursive_route_ebgp_multi_hop bgp_route_aggregation
bgp_prefix_list_topo1 bgp_path_attributes_topo1 bgp_large_community bgp_rr_ibgp bgp_distance_change
bgp_aggregate_address_route_map bgp_blackhole_community bgp_conditional_advertisement
bgp_ebgp_common_subnet_nexthop_unchanged bgp_gr_restart_retain_routes bgp_ipv4_class_e_peer
bgp_ipv6_rtadv bgp_listen_on_multiple_addresses bgp_set_local_preference_add_subtract
bgp_bfd_down_cease_notification bfd_bgp_cbit_topo3 bfd_isis_topo1 bfd_ospf_topo1 bfd_profiles_topo1
bfd_topo1 bfd_topo2 bfd_topo3 bgp_bfd_down_cease_notification+bfd bfd_bgp_cbit_topo3+bfd
bfd_isis_topo1+bfd bfd_ospf_topo1+bfd bfd_profiles_topo1+bfd bfd_topo2+bfd bfd_topo3+bfd eigrp_topo1 isis_lfa_topo1 isis_lsp_bits_topo1 nhrp_topo
ospf6_gr_topo1 ospf6_topo1 ospf6_topo2 ospf_dual_stack ospf_gr_topo1 ospf_suppress_fa pbr_topo1
ripng_topo1 zebra_opaque
""".split()
# The modules that need a kernel with VRFs: first of the quick list, then the modules that FULL=1 adds.
VRF_QUICK = ["bgp_vrf_route_leak_basic"]
VRF_MORE = """
bfd_vrflite_topo1 bgp_multi_vrf_topo1 bgp_vrf_dynamic_route_leak
bgp_vrf_leaking_5549_routes bgp_vrf_lite_best_path_test bgp_vrf_lite_ipv6_rtadv isis_topo1_vrf
ospf6_topo1_vrf ospf_multi_vrf_bgp_route_leak
""".split()


# The modules that FULL=1 adds if the kernel has VRFs and MPLS. Together they take hours.
MPLS_MORE = """
bgp_l3vpn_to_bgp_vrf bgp_lu_topo1 bgp_lu_topo2 bgp_vpnv4_ebgp bgp_vpnv4_gre isis_sr_topo1 ldp_oc_topo1 ldp_topo1 ldp_vpls_topo1 ospf_sr_topo1
""".split()


def chosen(full, has_vrf, has_mpls):
    """Return (modules to run, modules that this kernel cannot run)."""
    plain = [*QUICK, *(MORE if full else ())]
    vrf = [*VRF_QUICK, *(VRF_MORE if full else ())]
    mpls = MPLS_MORE if full else []
    lists = [(plain, True), (vrf, has_vrf), (mpls, has_vrf and has_mpls)]
    return [m for names, can in lists if can for m in names], [m for names, can in lists if not can for m in names]
