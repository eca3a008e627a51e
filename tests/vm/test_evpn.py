# SPDX-License-Identifier: BSD-3-Clause
"""EVPN of FRR: type-5 routes between two leaves over two spines. evpn/topology.toml has the network;
its r1 is our router, the others forward by their kernel. The hosts are in VRF red."""

import os

import pytest

from lab import evidence, steps
from lab.lab import Lab
from lib import probe
from lib.wait import eventually

HERE = os.path.dirname(os.path.abspath(__file__))
PE2 = "192.0.2.132"  # the VTEP of the other leaf
NETS = {"10.0.2.0/24": "10.0.2.10", "2001:db8:2::/64": "2001:db8:2::10"}
CORE = ("core0", "core1")


@pytest.fixture(scope="module")
def evpn():
    """Start the network, and wait until its routes are there."""
    with Lab("evpn", os.path.join(HERE, "evpn")) as lab:
        lab.up()
        eventually(lambda: lab.dp.show("fpm")[0]["connected"], 60, 0.2, "a session of zebra")
        steps.by(lab, f"{PE2}/32", *CORE)
        # The neighbor is activated only now; evpn/frr.conf has the reason.
        activate = f"neighbor {PE2} activate"
        lab.r1.configure("router bgp 64500", "address-family l2vpn evpn", activate)
        steps.bgp_up(lab, PE2)
        for net in NETS:
            steps.by(lab, net, "br5001", vrf="red")
        yield lab
        assert "Equal" in evidence.audit(lab)


def interface(lab, name):
    """Return the row of an interface."""
    return next(row for row in lab.dp.show("interfaces") if row["name"] == name)


def test_hosts_reach_each_other_through_the_fabric(evpn):
    """Both families, both directions, by the forwarders alone."""
    row = interface(evpn, "br5001")
    assert (row["vrf"], row["vni"], row["vxlan"]) == ("red", 5001, "vxlan5001")
    assert interface(evpn, "vxlan5001")["by_kernel"] is None
    for net, host in NETS.items():
        rows = evpn.dp.show("routes", net, "exact", "vrf", "red")
        hops = [(hop["dev"], hop["alive"]) for hop in rows[0]["nexthops"]]
        assert hops == [("br5001", True)], rows
        evidence.crossing(evpn, "red1", [host], CORE)
    now = interface(evpn, "br5001")
    assert now["tx_packets"] > row["tx_packets"] and now["rx_packets"] > row["rx_packets"]
    evidence.crossing(evpn, "red2", ["10.0.1.10", "2001:db8:1::10"], "red0")


def test_flows_take_both_spines(evpn):
    counts = evidence.spread(evpn, "red1", NETS["10.0.2.0/24"], 200, "red2", CORE)
    assert min(counts[name] for name in CORE) > 40, counts


def test_errors_come_from_the_vrf(evpn):
    """r1 and pe2 each answer a packet whose TTL is used up there, with an address of VRF red."""
    assert probe.traceroute(evpn.ns["red1"], "10.0.2.10")[0] == "10.0.1.1"
    seen = probe.traceroute(evpn.ns["red2"], "10.0.1.10")
    assert seen[-1] == "10.0.1.10" and len(seen) == 3, seen


def test_a_spine_fails(evpn):
    took = evidence.silence(evpn, "red1", list(NETS.values()), lambda: steps.cable(evpn, "core0", False))
    evidence.crossing(evpn, "red1", NETS.values(), "core1")
    steps.cable(evpn, "core0", True)
    steps.by(evpn, f"{PE2}/32", *CORE)
    assert max(took.values()) < 60_000, took


def test_a_leaf_withdraws_its_routes_and_brings_them_back(evpn):
    family = ("router bgp 64500 vrf red", "address-family l2vpn evpn")
    pe2 = evpn.neighbors["pe2"]
    pe2.configure(*family, "no advertise ipv4 unicast")
    routes = lambda: {row["prefix"] for row in evpn.dp.show("routes", "vrf", "red")}  # noqa: E731
    eventually(lambda: "10.0.2.0/24" not in routes(), 30, 0.1, "the route is gone")
    assert probe.ping(evpn.ns["red1"], "10.0.2.10", 1, 1)[0] == 0
    pe2.configure(*family, "advertise ipv4 unicast")
    steps.by(evpn, "10.0.2.0/24", "br5001", vrf="red")
    evidence.crossing(evpn, "red1", ["10.0.2.10"], CORE)
