# SPDX-License-Identifier: BSD-3-Clause
"""A router with VLANs of the kernel on its TAPs, and helpers for tests of them. NICs that can
strip and insert tags give the same results with this feature and without it."""

import struct
from types import SimpleNamespace

import pytest
from scapy.layers.l2 import Ether

from labels import TAKES_LABELS, LabelRouter
from lib import netns
from lib.links import on_nics
from lib.wait import eventually
from router import running
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:a::/48", "2001:db8:a::9"
PEER, PEER6 = "203.0.113.2", "2001:db8:64::2"
ADDRESSES = ("203.0.113.1/24", "2001:db8:64::1/64")
# An object to use as a wire for routes.
VLAN = SimpleNamespace(name="wan0.100", tap="wan0.100")
C, S = 0x8100, 0x88A8


@pytest.fixture(scope="module", params=["auto", "off"] if on_nics() else ["auto"])
def machine(request):
    """Run a router on veths in a kernel that supports VLANs, or on NICs, with the tags by the
    NIC and by the dataplane."""
    offload = ("    device:", f"    vlan-offload: {request.param}\n    device:")
    with running(LabelRouter(name="vlan"), offload, TAKES_LABELS) as router:
        router.offloads = on_nics() and request.param == "auto"
        yield router


@pytest.fixture
def router(machine):
    """Return the router in its standard state, without VLANs."""
    for row in machine.links():
        if "link" in row:
            machine.ip(f"link set {row['ifname']} group 7")
    netns.command(["ip", "-n", machine.ctl, "link", "del", "group", "7"], check=False)
    eventually(lambda: vlans(machine) == {}, 10, 0.05, "VLANs are gone")
    machine.ready()
    return machine


@pytest.fixture
def lan(router):
    """Return the wire without VLANs."""
    return router.wires["lan"]


@pytest.fixture
def wan(router):
    """Return the wire with VLANs."""
    return router.wires["wan"]


def vlans(router):
    """Return {name: row of `show interfaces`} of all VLANs of the dataplane."""
    return {r["name"]: r for r in router.control.ask("interfaces") if r["vlan"]}


def add(
    router,
    name="wan0.100",
    on="wan0",
    vid=100,
    protocol="802.1Q",
    addresses=ADDRESSES,
):
    """Add a VLAN with addresses. Wait until it is up and the dataplane has it."""
    router.ip(
        f"link add link {on} name {name} type vlan protocol {protocol} id {vid}",
        f"link set {name} up",
        *(f"addr add {a} dev {name} nodad" for a in addresses),
    )

    def there():
        row = vlans(router).get(name)
        return row and row["up"] and set(addresses) <= set(row["addresses"])

    eventually(there, 5, 0.01, f"{name} is an interface")


def neighbor(router, wan, address=PEER, vlan=VLAN):
    """Add the peer of the wire as a static neighbor on a VLAN."""
    row = SimpleNamespace(tap=vlan.tap, mac=wan.mac)
    router.neighbor(address, row)


def tagged(packet, *tags):
    """Return a frame with tags: (type, id) or (type, id, priority), outermost first."""
    data = bytes(packet)
    words = [
        struct.pack("!HH", kind, vid | (more[0] if more else 0) << 13)
        for kind, vid, *more in tags
    ]
    return data[:12] + b"".join(words) + data[12:]


def untagged(data, *tags):
    """Check that a frame has exactly these tags. Return it without them, dissected."""
    end = 12 + 4 * len(tags)
    assert data[12:end] == tagged(bytes(12), *tags)[12:end], data[:26].hex()
    return Ether(data[:12] + data[end:])


def through(wire, packet, out, *tags):
    """Send a frame. Return the frame that leaves on `out` with these tags, without them."""
    wire.send(packet)
    return untagged(out.expect_raw(token_of(packet)), *tags)


@pytest.fixture
def vlan(router, wan):
    """Add wan0.100 with a neighbor and a route by it."""
    add(router)
    for prefix, peer in ((NET, PEER), (NET6, PEER6)):
        neighbor(router, wan, peer)
        router.route(prefix, via=peer, wire=VLAN)
