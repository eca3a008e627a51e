# SPDX-License-Identifier: BSD-3-Clause
"""BFD in the dataplane by a VLAN and in a VRF. Many hosts that run tests have a kernel without VLANs
and VRFs, so a guest runs these tests (tests/vm/run.py)."""

import signal

import pytest

from bfd_bed import bed, nexthops_of
from lib import netns
from lib.wait import PATIENCE, eventually

VLAN, TABLE = 31, 171
# An emulated CPU has no time for 3 x 50 ms.
MS = 50 if PATIENCE == 1 else 600
FAST = (f"transmit-interval {MS}", f"receive-interval {MS}")


@pytest.fixture(scope="module")
def bfd():
    if not netns.can_have(f"vlan id {VLAN}") and not netns.can_have(f"vrf table {TABLE}"):
        pytest.skip("this kernel has no VLANs and no VRFs")
    with bed("bfdl") as both:
        yield both


def addresses(bfd, ours, theirs, dev, far):
    netns.ip_batch([f"addr add {ours} dev {dev}"], bfd.router.ctl)
    netns.ip_batch([f"addr add {theirs} dev {far}"], bfd.router.far)
    return ours.split("/")[0], theirs.split("/")[0]


def up(bfd, theirs):
    """Wait until our side has the session Up with its fast timers. Returns its row."""
    eventually(
        lambda: (row := bfd.row(theirs)) and (row["state"], row["detect_us"]) == ("up", 3000 * MS),
        30,
        what=f"{theirs} is up",
    )
    return bfd.row(theirs)


def fails_and_comes_back(bfd, theirs, far):
    """Stop the peer's packets for a while. Assert that the session fails, and comes back."""
    before = up(bfd, theirs)["downs"]
    netns.ip_batch([f"link set {far} down"], bfd.router.far)
    eventually(lambda: bfd.state(theirs) == "down", 10, what=f"{theirs} is down")
    assert bfd.row(theirs)["pruned"]
    netns.ip_batch([f"link set {far} up"], bfd.router.far)
    row = up(bfd, theirs)
    assert row["downs"] > before and not row["pruned"], row


def restarts(bfd, theirs):
    """Assert that a planned restart keeps the session."""
    was = up(bfd, theirs)
    assert bfd.router.fpmctl("restart").returncode == 0
    eventually(lambda: bfd.row(theirs) is not None, 20, what="the successor has the session")
    row = up(bfd, theirs)
    assert (row["discr"], row["downs"]) == (was["discr"], was["downs"]), row


def test_a_session_by_a_vlan(bfd):
    if not netns.can_have(f"vlan id {VLAN}"):
        pytest.skip("this kernel has no VLANs")
    for space, parent in ((bfd.router.ctl, "wan0"), (bfd.router.far, "wan")):
        lines = [f"link add link {parent} name v{VLAN} type vlan id {VLAN}", f"link set v{VLAN} up"]
        netns.ip_batch(lines, space)
    dev = f"v{VLAN}"
    ours, theirs = addresses(bfd, "10.31.0.1/24", "10.31.0.2/24", dev, dev)
    bfd.ours.configure("bfd", f"peer {theirs} interface {dev}", *FAST)
    bfd.theirs.configure("bfd", f"peer {ours} interface {dev}", *FAST)
    row = up(bfd, theirs)
    assert (row["by"], row["dev"]) == ("forwarders", dev), row
    fails_and_comes_back(bfd, theirs, dev)
    restarts(bfd, theirs)


@pytest.fixture(scope="module")
def red(bfd):
    """alt0 is in the VRF red."""
    if not netns.can_have(f"vrf table {TABLE}"):
        pytest.skip("this kernel has no VRFs")
    lines = [f"link add red type vrf table {TABLE}", "link set red up", "link set alt0 master red"]
    netns.ip_batch(lines, bfd.router.ctl)
    return bfd


@pytest.mark.parametrize("named", ["interface", "local address", "nothing"])
def test_a_session_in_a_vrf(red, named):
    """The message of bfdd has no VRF. The VRF of the session follows from the interface, from the local
    address, or from the subnet of the peer."""
    bfd = red
    net = {"interface": "10.71.0", "local address": "10.72.0", "nothing": "10.73.0"}[named]
    ours, theirs = f"{net}.1", f"{net}.2"
    addresses(bfd, f"{ours}/24", f"{theirs}/24", "alt0", "alt")
    where = {"interface": "interface alt0 ", "local address": f"local-address {ours} ", "nothing": ""}[named]
    bfd.ours.configure("bfd", f"peer {theirs} {where}vrf red", *FAST)
    bfd.theirs.configure("bfd", f"peer {ours}", *FAST)
    row = up(bfd, theirs)
    assert (row["by"], row["dev"], row["local"]) == ("forwarders", "alt0", ours), row
    told = next(p for p in bfd.ours.json("show bfd vrf red peers json") if p["peer"] == theirs)
    assert told["status"] == "up", told
    fails_and_comes_back(bfd, theirs, "alt")
    restarts(bfd, theirs)


def test_a_static_route_by_a_vrf_leaves_out_a_peer_that_hangs(red):
    """FRR 8.4 has no BFD for static routes. A session of bfdd for the next hop is enough, although the
    route is in table main and the next hop in a VRF, as in frr-config/cluster-vlb."""
    prefix, wan = "203.0.113.0/24", red.router.wires["wan"].peer4
    ours, theirs = addresses(red, "10.74.0.1/24", "10.74.0.2/24", "alt0", "alt")
    red.ours.configure(f"ip route {prefix} {wan} wan0", f"ip route {prefix} {theirs} alt0 nexthop-vrf red")
    red.ours.configure("bfd", f"peer {theirs} vrf red interface alt0", *FAST)
    red.theirs.configure("bfd", f"peer {ours} interface alt", *FAST)

    def used():
        """Return {next hop: state} of the two next hops of the route."""
        ends = {hop["via"] for hop in (red.router.route_row(prefix) or {}).get("nexthops", ())}
        rows = nexthops_of(red.router.control.ask("nexthops"))
        return {hop["via"]: hop["state"] for hop in rows if hop.get("via") in ends & {wan, theirs}}

    up(red, theirs)
    both = {wan: "forwarding", theirs: "forwarding"}
    eventually(lambda: used() == both, 20, what="both next hops are used")
    # The session by wan has the same bfdd as peer, and would fail, too.
    red.ours.configure("bfd", f"no peer {wan} interface wan0")
    red.theirs.kill("bfdd", signal.SIGSTOP)
    try:
        left = {wan: "forwarding", theirs: "bfd-down"}
        eventually(lambda: used() == left, 20, what="the next hop is left out")
    finally:
        red.theirs.kill("bfdd", signal.SIGCONT)
    eventually(lambda: used() == both, 30, what="the next hop is used again")
