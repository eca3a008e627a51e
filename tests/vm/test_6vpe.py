# SPDX-License-Identifier: BSD-3-Clause
"""An L3VPN of both families over a core without IPv6 (RFC 4364, RFC 4659), with real FRR and three of our
routers: sixvpe/topology.toml. Only FRR 10 and later send IPv6 routes by IPv4 next hops (doc/fpm.md, 5.2), so
with an earlier FRR these tests have IPv4 only."""

import os
import shutil

import pytest

from lab import claims_mpls, evidence, steps
from lab.lab import Lab
from lib import netns, probe
from lib.frr import HAS_MGMTD
from lib.wait import eventually

WITHOUT_IPV6 = pytest.mark.skipif(not HAS_MGMTD, reason="FRR before 10 sends no IPv6 route by an IPv4 next hop")
HERE = os.path.dirname(os.path.abspath(__file__))
R1, R2 = "192.0.2.129", "192.0.2.132"
NET = {4: "10.0.{}.0/24", 6: "2001:db8:{}::/64"}
EDGE = {4: "10.0.{}.1", 6: "2001:db8:{}::1"}
HOST = {4: "10.0.{}.10", 6: "2001:db8:{}::10"}
FAMILIES = (4, 6) if HAS_MGMTD else (4,)
MOST = FAMILIES[-1]
VPN = ("router bgp 64500 vrf red", f"address-family ipv{MOST} unicast")


def files(folder):
    """Copy the files of the network to a folder, without the line for IPv6 if FRR cannot use it. zebra 8.4
    announces no next hops with this line. Return the folder."""
    shutil.copytree(os.path.join(HERE, "sixvpe"), folder)
    for name in () if HAS_MGMTD else ("frr.conf", "r2.conf"):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("no zebra nexthop kernel enable\n", ""), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sixvpe(tmp_path_factory):
    """Start the network, and wait until both edges have each other's networks."""
    with Lab("sixvpe", str(files(tmp_path_factory.mktemp("files") / "sixvpe"))) as lab:
        for frr in (lab.r1, lab.neighbors["r2"]):
            if HAS_MGMTD:  # bgpd accepts no IPv6 route by an IPv4 next hop otherwise
                frr.options["zebra_options"] += " --v6-with-v4-nexthops"
        lab.up()
        steps.bgp_up(lab, R2)
        for box, far in (("r1", 2), ("r2", 1)):
            steps.in_fib(lab.seat(box), *(NET[family].format(far) for family in FAMILIES), vrf="red")
        yield lab
    netns.command(["modprobe", "-r", "mpls_iptunnel", "mpls_router"], check=False)


@pytest.fixture(params=[4, pytest.param(6, marks=WITHOUT_IPV6)])
def family(request):
    """The family of the customer's packets."""
    return request.param


def route(lab, box, net):
    """Return the next hops of a network in red: (gateway, interface, number of labels)."""
    rows = [row for row in lab.dps[box].show("routes", "vrf", "red") if row["prefix"] == net]
    return [(hop["via"], hop["dev"], len(hop["labels"])) for row in rows for hop in row["nexthops"]]


def both_labels(lab, box, net, hop, timeout=60):
    """Wait until a network in red has only this next hop. zebra sends the route with the label of the VRF
    alone if LDP has no label of the path yet."""
    eventually(lambda: route(lab, box, net) == [hop], timeout, 0.1, f"{hop} of {net} in {box}")


def label_of_vrf(lab, family):
    """Return the label of r2 for red, which bgpd of r1 got."""
    prefix = NET[family].format(2)
    paths = lab.r1.json(f"show bgp ipv{family} vpn {prefix} json").popitem()[1]["paths"]
    (label,) = {path["remoteLabel"] for path in paths}
    return label


def test_hosts_reach_each_other_over_a_core_without_ipv6(sixvpe):
    """Each route has an IPv4 neighbor of the core, the label of the path and that of the VRF."""
    for family in FAMILIES:
        both_labels(sixvpe, "r1", NET[family].format(2), ("192.0.2.2", "east0", 2))
        both_labels(sixvpe, "r2", NET[family].format(1), ("192.0.2.5", "west0", 2))
    hosts = {n: [HOST[family].format(n) for family in FAMILIES] for n in (1, 2)}
    evidence.crossing(sixvpe, "red1", hosts[2], "east0")
    evidence.crossing(sixvpe.seat("p"), "red1", hosts[2], "east0")
    evidence.crossing(sixvpe.seat("r2"), "red2", hosts[1], "west0")


def test_traceroute_shows_each_router_with_the_labels_that_came_there(sixvpe, family):
    """p sends its error along the path of the label to r2. p has no address for an error of IPv6."""
    of_path = claims_mpls.label_of(sixvpe.neighbors["p"], f"{R2}/32")
    of_vrf = label_of_vrf(sixvpe, family)
    middle = ("192.0.2.2", [of_path, of_vrf]) if family == 4 else claims_mpls.SILENT
    hops = [(EDGE[family].format(1), []), middle, (EDGE[family].format(2), [of_vrf])]
    claims_mpls.traced(sixvpe, "red1", [*hops, (HOST[family].format(2), [])])


def test_the_address_of_an_edge_in_the_vrf_answers_over_the_core(sixvpe):
    """The kernel of r2 receives the packet with its label, and sends the answer with labels. For
    IPv6 no answer comes, because the kernel's copy of the route to red1 has no gateway
    (manual/mpls.md)."""
    asked = lambda: probe.ping(sixvpe.ns["red1"], EDGE[4].format(2), 1, 1)[0]  # noqa: E731
    eventually(asked, 10, 0.1, "an answer of r2")


def test_a_network_that_is_withdrawn_and_announced_again_is_followed(sixvpe):
    """zebra sends the changes of these routes as they happen."""
    far, net = sixvpe.neighbors["r2"], NET[MOST].format(2)
    far.configure(*VPN, "no redistribute connected")
    eventually(lambda: not route(sixvpe, "r1", net), 30, 0.1, "the network is gone")
    assert all(route(sixvpe, "r1", NET[family].format(2)) for family in FAMILIES if family != MOST)
    far.configure(*VPN, "redistribute connected")
    both_labels(sixvpe, "r1", net, ("192.0.2.2", "east0", 2))
    evidence.crossing(sixvpe, "red1", [HOST[MOST].format(2)], "east0")


def test_a_cable_of_the_core_that_is_pulled_and_plugged_again(sixvpe):
    """The routes are gone while LDP has no path. They come back with the path, with both labels."""
    net = NET[MOST].format(2)
    steps.cable(sixvpe, "east0", False)
    eventually(lambda: not route(sixvpe, "r1", net), 60, 0.1, "the network is gone")
    steps.cable(sixvpe, "east0", True)
    both_labels(sixvpe, "r1", net, ("192.0.2.2", "east0", 2), 90)
    evidence.crossing(sixvpe, "red1", [HOST[MOST].format(2)], "east0")


def test_a_replay_keeps_the_routes_and_the_audit_is_equal(sixvpe):
    """A replay leaves the next hops as they were. The audit of all routers is equal, although
    the IPv6 routes have no gateway in the kernel."""
    before = route(sixvpe, "r1", NET[MOST].format(2))
    generation = sixvpe.dp.fpm()["generation"]
    netns.command([sixvpe.dp.ctl, "-s", sixvpe.socket, "replay"])

    def over():
        fpm = sixvpe.dp.fpm()
        return fpm["generation"] > generation and fpm["phase"] == "in-step"

    eventually(over, 90, 0.1, "the end of a replay")
    assert route(sixvpe, "r1", NET[MOST].format(2)) == before
    for box in sixvpe.dps:
        assert "Equal" in evidence.audit(sixvpe.seat(box))
