# SPDX-License-Identifier: BSD-3-Clause
"""The producers of labels in FRR that no scenario of frr-config has: OSPF segment routing, BGP
labelled unicast, 6PE, VPN routes between two AS (option B), static labels. asbr/topology.toml has
the network; its r1 is our router, the others forward by their kernel."""

import os
import re

import pytest

from lab import claims_mpls, evidence, steps
from lab.lab import Lab
from lib import netns, probe
from lib.frr import HAS_MGMTD
from lib.wait import eventually

HERE = os.path.dirname(os.path.abspath(__file__))
X, C, PE1, PE2 = "192.0.2.1", "192.0.2.6", "192.0.2.18", "192.0.2.132"  # neighbors of r1
NET, H1, H2, SIX = "203.0.113.0/24", "203.0.113.10", "198.51.100.10", "2001:db8:c0::10"
STATIC, SEGMENT = "192.0.2.140", "192.0.2.141"  # addresses of pe2 that pe1 reaches by a label


@pytest.fixture(scope="module")
def asbr():
    """Start the network, and wait until its routes are there."""
    with Lab("asbr", os.path.join(HERE, "asbr")) as lab:
        if HAS_MGMTD:  # bgpd 10 ends sessions with IPv6 routes by IPv4 next hops otherwise
            for frr in (lab.r1, lab.neighbors["pe2"]):
                frr.options["zebra_options"] += " --v6-with-v4-nexthops"
        lab.up()
        steps.bgp_up(lab, X, PE2)
        steps.by(lab, NET, "edge0")
        steps.by(lab, f"{PE2}/32", "core0")
        yield lab
        assert "Equal" in evidence.audit(lab)
    netns.command(["modprobe", "-r", "mpls_iptunnel", "mpls_router"], check=False)


def label_of(frr, prefix):
    """Return the label that a router gave to a prefix of BGP labelled unicast."""
    found = lambda: re.search(rf"^{prefix}\n +Label: (\d+)$", frr.vtysh("show mpls fec"), re.M)  # noqa: E731
    return int(eventually(found, 30, 0.2, f"a label for {prefix}")[1])


def version(frr):
    """Return the version of FRR as (major, minor)."""
    words = re.search(r"FRRouting (\d+)\.(\d+)", frr.vtysh("show version"))
    return int(words[1]), int(words[2])


def test_segments_of_ospf(asbr):
    """r1 swaps a label, pops a label, and takes its own segment off. pe1 pushes the label of pe2."""
    claims_mpls.switched(asbr, 16004, {(C, (16004,))})
    claims_mpls.switched(asbr, 16002, {(C, ())})
    claims_mpls.switched(asbr, 16003, {(PE1, ())})
    claims_mpls.switched(asbr, 16001, {("lo", ())})
    evidence.crossing(asbr, "pe1", [SEGMENT, PE2], "core0")
    claims_mpls.traced(asbr, "pe1", [("192.0.2.17", [16004]), claims_mpls.SILENT, (SEGMENT, [])])


def test_bgp_labelled_unicast_between_two_systems(asbr):
    """r1 swaps toward y behind x, and pops toward x. pe2 sends two labels, both of r1: its segment,
    and the label of BGP behind it."""
    x, r1 = asbr.neighbors["x"], asbr.r1
    mine, out = label_of(r1, NET), label_of(x, NET)
    claims_mpls.switched(asbr, mine, {(X, (out,))})
    claims_mpls.switched(asbr, label_of(r1, "192.0.2.131/32"), {(X, ())})
    evidence.crossing(asbr, "h2", [H1], "edge0")
    evidence.crossing(asbr, "h1", [H2], "core0")
    hops = [("198.51.100.1", []), claims_mpls.SILENT, ("192.0.2.5", [16001, mine])]
    hops += [claims_mpls.SILENT, ("192.0.2.22", []), (H1, [])]
    claims_mpls.traced(asbr, "h2", hops)


def test_static_labels(asbr):
    """`mpls lsp` swaps a label. A static route pushes one: h1 reaches h2 by this route alone."""
    asbr.r1.configure(f"mpls lsp 1500 {C} 16004")
    claims_mpls.switched(asbr, 1500, {(C, (16004,))})
    evidence.crossing(asbr, "pe1", [STATIC], "core0")
    claims_mpls.traced(asbr, "pe1", [("192.0.2.17", [1500]), claims_mpls.SILENT, (STATIC, [])])
    rows = asbr.dp.show("routes", "198.51.100.0/24", "exact")
    assert [hop["labels"] for hop in rows[0]["nexthops"]] == [[16004]], rows
    asbr.r1.configure(f"no mpls lsp 1500 {C} 16004")
    gone = lambda: 1500 not in {row["label"] for row in asbr.dp.show("labels")}  # noqa: E731
    eventually(gone, 10, 0.05, "label 1500 is gone")
    assert probe.ping(asbr.ns["pe1"], STATIC, 1, 1)[0] == 0


def test_6pe(asbr):
    """The kernel refuses an IPv6 route by an IPv4 next hop. Therefore zebra sends it only in a
    replay or, from FRR 10 on, when the kernel gets no next hops. The router pushes the label of
    pe2 on IPv6 packets, and sends them to the MAC address of its IPv4 neighbor."""
    find = lambda: [r for r in asbr.dp.show("routes") if r["prefix"] == "2001:db8:c0::/64"]  # noqa: E731
    assert not find()
    if HAS_MGMTD:
        asbr.r1.configure("no zebra nexthop kernel enable")
        for words in ("no network", "network"):
            family = ("router bgp 64500", "address-family ipv6 unicast")
            asbr.neighbors["pe2"].configure(*family, f"{words} 2001:db8:c0::/64")
    else:
        netns.command([asbr.dp.ctl, "-s", asbr.socket, "replay"])
    rows = eventually(find, 30, 0.1, "the IPv6 route is there")
    hops = [(hop["via"], hop["dev"], hop["labels"]) for hop in rows[0]["nexthops"]]
    assert hops == [(C, "core0", [16004])], rows
    before = steps.echoes(asbr, "h2")
    # pe2 has no route back, because its kernel refuses such a route, too. So the arriving requests
    # are counted.
    probe.ping(asbr.ns["x"], SIX, 3)
    assert steps.echoes(asbr, "h2") - before == 3


def test_vpn_routes_between_two_systems(asbr):
    """Option B: r1 gives the VPN routes of x and of pe2 labels of its own, and swaps them."""
    if version(asbr.r1) < (9, 1):
        pytest.skip("FRR before 9.1 gives the VPN routes of others no labels of its own")
    for name in ("edge0", "core0"):
        asbr.r1.configure(f"interface {name}", "mpls bgp l3vpn-multi-domain-switching")
    # bgpd does not announce the new labels to sessions that are up.
    asbr.r1.vtysh("clear bgp *")
    steps.bgp_up(asbr, X, PE2)
    evidence.crossing(asbr, "red1", ["10.0.2.10"], "core0")
    evidence.crossing(asbr, "red2", ["10.0.1.10"], "edge0")
