# SPDX-License-Identifier: BSD-3-Clause
"""A router with VRFs of the kernel, and helpers for tests of them."""

import contextlib
from types import SimpleNamespace

import pytest

from lib import netns
from lib.wait import eventually
from router import Router, running
from wire import token_of

TABLE = {"red": 100, "blue": 2000}  # the second does not fit rtm_table
RENAMED = "crimson"  # the name that red has for a short time
MEMBERS = {"red": ("lan", "wan"), "blue": ("alt", "ext")}
# Both VRFs have the same addresses: before the router, behind it, and far behind it.
BEFORE = {4: "10.0.1.{}", 6: "2001:db8:51::{}"}
BEHIND = {4: "10.0.2.{}", 6: "2001:db8:52::{}"}
PLEN = {4: 24, 6: 64}
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}


@pytest.fixture(scope="module")
def machine():
    """Run a router on veths in a kernel that supports VRFs, under a supervisor."""
    with running(Router(name="vrf", supervised=True)) as router:
        yield router


@pytest.fixture
def router(machine):
    """Return the router in its standard state, without VRFs."""
    for vrf in (*TABLE, RENAMED):
        netns.command(["ip", "-n", machine.ctl, "link", "del", vrf], check=False)
    eventually(lambda: set(vrfs(machine).values()) == {None}, 5, 0.01, "in no VRF")
    machine.ready()
    return machine


@pytest.fixture
def two(request, machine):
    """Return the router with two ports in each of two VRFs, without routes of zebra. Both VRFs have
    the same addresses. The VRFs are not made again if the last test left them in this state."""
    if not (machine.fpm().get("connected") and made(machine)):
        router = request.getfixturevalue("router")
        router.ip(*(line for vrf in MEMBERS for line in lines_of(router, vrf)))
        eventually(lambda: made(router), 20, 0.01, "two VRFs with members, addresses and neighbors")
        return router
    machine.zebra.flush()
    eventually(lambda: not routes_of_zebra(machine), 5, 0.01, "no routes of zebra")
    for wire in [*machine.wires.values(), *machine.taps.values()]:
        wire.silence()
        wire.clear()
    return machine


def lines_of(router, vrf):
    """Return the commands of `ip` that make a VRF with its members, addresses and neighbors. An
    interface that becomes a member loses its IPv6 addresses and its neighbors, and keeps its IPv4
    addresses."""
    lines = [f"link add {vrf} type vrf table {TABLE[vrf]}", f"link set {vrf} up"]
    for name, net in zip(MEMBERS[vrf], (BEFORE, BEHIND)):
        wire = router.wires[name]
        lines += [
            f"link set {wire.tap} master {vrf}",
            f"addr replace {wire.ip6}/64 dev {wire.tap} nodad",
        ]
        for family in (4, 6):
            ours, peer = net[family].format(1), net[family].format(2)
            lines += [
                f"addr replace {ours}/{PLEN[family]} dev {wire.tap} nodad",
                f"neigh replace {peer} lladdr {wire.mac} dev {wire.tap} nud permanent",
            ]
    return lines


def made(router):
    """Return True if the dataplane has all that lines_of() makes in both VRFs, and no other VRF."""
    if {r["vrf"] for r in router.control.ask("fib")} != {None, *MEMBERS}:
        return False
    members = {router.wires[name].tap: vrf for vrf, names in MEMBERS.items() for name in names}
    known = {(r["dev"], r["address"]): r["mac"] for r in router.control.ask("neighbors")}
    for vrf, names in MEMBERS.items():
        for name, net in zip(names, (BEFORE, BEHIND)):
            wire = router.wires[name]
            for family, plen in ((4, 32), (6, 128)):
                if not row(router, vrf, f"{net[family].format(1)}/{plen}"):
                    return False
                if known.get((wire.tap, net[family].format(2))) != wire.mac:
                    return False
    return {tap: vrf for tap, vrf in vrfs(router).items() if vrf} == members


def routes_of_zebra(router):
    """Return the rows of zebra's routes in all tables."""
    return [r for r in router.control.ask("routes", all_tables=True) if r["source"] == "zebra"]


def vrfs(router):
    """Return {interface: name of its VRF, or None}."""
    rows = router.control.ask("interfaces")
    return {r["name"]: r["vrf"] for r in rows if r["port"]}


def row(router, vrf, prefix):
    """Return the row of a prefix in a VRF's FIB, or None."""
    with contextlib.suppress(LookupError):
        rows = router.control.ask("routes", vrf=vrf, prefix=prefix, longest=False)
        return rows[0] if rows else None
    return None


def add(router, vrf):
    """Add a VRF to the kernel. Wait until the dataplane has a FIB for it."""
    router.ip(f"link add {vrf} type vrf table {TABLE[vrf]}", f"link set {vrf} up")
    fibs = lambda: {r["vrf"] for r in router.control.ask("fib")}  # noqa: E731
    eventually(lambda: vrf in fibs(), 5, 0.01, f"{vrf} has a FIB")


def enslave(router, vrf, wire):
    """Make a port a member of a VRF. The kernel deletes the port's IPv6 addresses and neighbors, so
    set the IPv6 address again."""
    router.ip(f"link set {wire.tap} master {vrf}")
    eventually(lambda: vrfs(router)[wire.tap] == vrf, 5, 0.01, "in the VRF")
    # The routes of the kernel come by another thread than its interfaces.
    eventually(lambda: not router.route_row(wire.host4), 5, 0.01, "its subnet has left main")
    router.ip(f"addr replace {wire.ip6}/64 dev {wire.tap} nodad")


def route(router, vrf, prefix, via, out):
    """Send a route of a VRF's table as zebra does. Wait until it is in force."""
    router.zebra.add(prefix, router.zebra.hop(via, out), table=TABLE[vrf])
    eventually(lambda: row(router, vrf, prefix), 5, 0.005, f"{prefix} in {vrf}")
    assert row(router, vrf, prefix)["state"] == "forwarding"


def goes(router, wire, out, dst, **words):
    """Check that a probe from the host before `wire` leaves by `out` to the peer there, and by
    no other port."""
    family = 6 if ":" in dst else 4
    probe = wire.probe(dst, src=BEFORE[family].format(2), **words)
    left = router.forwarded(wire, probe, out)
    assert (left.src, left.dst) == (out.port_mac, out.mac)
    for other in router.wires.values():
        assert other is out or other.got(token_of(probe)) == []


def leads(router, vrf, to, prefix, **more):
    """Send a route of a VRF that leads to another VRF. Wait until it is in force."""
    hop = router.zebra.hop(wire=SimpleNamespace(tap=to))
    router.zebra.add(prefix, hop, table=TABLE[vrf], **more)
    eventually(lambda: row(router, vrf, prefix), 5, 0.005, f"{prefix} in {vrf}")
