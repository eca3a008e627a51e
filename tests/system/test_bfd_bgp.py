# SPDX-License-Identifier: BSD-3-Clause
"""BGP with `neighbor X bfd`, between FRR on two routers, one of which has its BFD in the dataplane.
The link stays up, and bgpd learns from BFD that its neighbor is gone."""

import contextlib
import shutil
import signal
import subprocess

import pytest

from bfd_bed import bed, nexthops_of
from lib import netns
from lib.wait import eventually

PREFIX, PREFIX6 = "203.0.113.0/24", "2001:db8:64::/48"


@pytest.fixture(scope="module")
def bgp():
    with bed("bfdg", daemons=["bgpd"]) as both:
        alt = both.router.wires["alt"]
        for frr, own, other, peer in (
            (both.ours, 65001, 65002, alt.peer4),
            (both.theirs, 65002, 65001, alt.ip4),
        ):
            frr.configure(
                f"router bgp {own}",
                "no bgp ebgp-requires-policy",
                "no bgp network import-check",
                f"neighbor {peer} remote-as {other}",
                f"neighbor {peer} timers connect 1",
                f"neighbor {peer} bfd",
            )
        both.theirs.configure("router bgp 65002", f"network {PREFIX}")
        yield both


def established(bfd):
    """Wait until BFD and BGP are up on both sides and the route is in the dataplane."""
    alt = bfd.router.wires["alt"]
    for frr, peer in ((bfd.ours, alt.peer4), (bfd.theirs, alt.ip4)):
        eventually(lambda f=frr, p=peer: f.bgp_state(p) == "Established", 40, what=f"BGP to {peer}")
        eventually(
            lambda f=frr, p=peer: status(f, p) == "up", 20, what=f"the session to {peer} is up"
        )
    eventually(lambda: bfd.state(alt.peer4) == "up", 20, what="the session of the dataplane is up")
    eventually(lambda: bfd.router.route_row(PREFIX), 20, what="the route")


def status(frr, peer):
    return next((p["status"] for p in frr.json("show bfd peers json") if p["peer"] == peer), None)


def neighbor(frr, peer):
    return frr.json(f"show bgp neighbors {peer} json")[peer]


@contextlib.contextmanager
def stopped(bfd):
    """Stop the peer's bfdd."""
    bfd.theirs.kill("bfdd", signal.SIGSTOP)
    try:
        yield
    finally:
        bfd.theirs.kill("bfdd", signal.SIGCONT)


@contextlib.contextmanager
def lost(bfd, rules):
    """Drop packets on the peer's side of the link, by rules of its nft."""
    nft = ["ip", "netns", "exec", bfd.router.far, "nft"]
    subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run([*nft, "delete", "table", "inet", "t"], check=True)


ALL_OF_ITS = """table inet t {
 chain c { type filter hook output priority 0; oifname alt drop; }
}
"""
# The peer loses all our packets. It sends us no TCP either, so only its BFD packets show the loss.
ALL_OF_OURS = """table inet t {
 chain c { type filter hook prerouting priority -300; iifname alt drop; }
 chain d { type filter hook output priority 0; oifname alt meta l4proto tcp drop; }
}
"""
FAULTS = {
    "its bfdd is stopped": stopped,
    "its packets are lost": lambda bfd: lost(bfd, ALL_OF_ITS),
    "our packets are lost": lambda bfd: lost(bfd, ALL_OF_OURS),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bgp_drops_its_neighbor_when_the_session_fails_and_takes_it_back(bgp, fault):
    alt = bgp.router.wires["alt"]
    established(bgp)
    if fault != "its bfdd is stopped" and shutil.which("nft") is None:
        pytest.skip("no nft: apt-get install nftables")
    before, was = neighbor(bgp.ours, alt.peer4), bgp.row(alt.peer4)
    assert was["by"] == "forwarders", was
    with FAULTS[fault](bgp):
        # The hold time is three minutes.
        eventually(
            lambda: neighbor(bgp.ours, alt.peer4)["connectionsDropped"]
            > before["connectionsDropped"],
            20, what="bgpd drops the neighbor",
        )  # fmt: skip
        row = bgp.row(alt.peer4)
        assert row["state"] != "up" and row["downs"] == was["downs"] + 1, row
        said = neighbor(bgp.ours, alt.peer4)
        assert said["lastNotificationReason"] == "Cease/BFD Down", said
        if fault != "its bfdd is stopped":
            eventually(lambda: not bgp.router.route_row(PREFIX), 10, what="the route is gone")
        assert bgp.router.port_row(alt)["link"] == "up"
    established(bgp)


@pytest.fixture
def bgp6(bgp):
    """IPv6 BGP by both links, with sessions of the global addresses."""
    router = bgp.router
    wires = [router.wires[name] for name in ("wan", "alt")]
    for wire in wires:
        netns.run(router.far, ["sysctl", "-qw", f"net.ipv6.conf.{wire.name}.disable_ipv6=0"])
        own = ["ip", "address", "replace", f"{wire.peer6}/64", "dev", wire.name, "nodad"]
        netns.run(router.far, own)
    for frr, own, other, ends in (
        (bgp.ours, 65001, 65002, [w.peer6 for w in wires]),
        (bgp.theirs, 65002, 65001, [w.ip6 for w in wires]),
    ):
        lines = []
        for peer in ends:
            lines += [f"neighbor {peer} remote-as {other}", f"neighbor {peer} timers connect 1"]
            lines += [f"neighbor {peer} bfd"]
        lines += ["address-family ipv6 unicast", *(f"neighbor {peer} activate" for peer in ends)]
        frr.configure(f"router bgp {own}", *lines, "maximum-paths 2")
    bgp.theirs.configure("router bgp 65002", "address-family ipv6 unicast", f"network {PREFIX6}")
    yield bgp
    for frr, own, ends in (
        (bgp.ours, 65001, [w.peer6 for w in wires]),
        (bgp.theirs, 65002, [w.ip6 for w in wires]),
    ):
        frr.configure(f"router bgp {own}", *(f"no neighbor {peer}" for peer in ends))


def hops6(bfd):
    """Return {interface: state} of the next hops of PREFIX6, which are link-local addresses."""
    row = bfd.router.route_row(PREFIX6) or {}
    ends = {(hop["via"], hop["dev"]) for hop in row.get("nexthops", ())}
    assert all(via.startswith("fe80::") for via, _ in ends), row
    rows = nexthops_of(bfd.router.control.ask("nexthops"))
    return {hop["dev"]: hop["state"] for hop in rows if (hop.get("via"), hop.get("dev")) in ends}


def test_a_link_local_next_hop_is_dead_with_the_session_of_the_global_address(bgp6):
    """bgpd is stopped, so only the dataplane can change the group."""
    alt, both = bgp6.router.wires["alt"], {"wan0": "forwarding", "alt0": "forwarding"}
    if shutil.which("nft") is None:
        pytest.skip("no nft: apt-get install nftables")
    eventually(lambda: hops6(bgp6) == both, 60, what="both paths are used")
    eventually(lambda: bgp6.state(alt.peer6) == "up", 20, what="the session is up")
    bgp6.ours.kill("bgpd", signal.SIGSTOP)
    try:
        with lost(bgp6, ALL_OF_ITS):
            eventually(lambda: bgp6.state(alt.peer6) == "down", 10, what="the session fails")
            left = {"wan0": "forwarding", "alt0": "bfd-down"}
            eventually(lambda: hops6(bgp6) == left, 5, what="the hop is left out")
            # The next daemon leaves out the next hop from its start on.
            assert bgp6.router.fpmctl("restart").returncode == 0
            eventually(lambda: hops6(bgp6) == left, 20, what="the next daemon leaves it out")
        eventually(lambda: bgp6.state(alt.peer6) == "up", 20, what="the session is up again")
        eventually(lambda: hops6(bgp6) == both, 5, what="the hop is used again")
    finally:
        bgp6.ours.kill("bgpd", signal.SIGCONT)
