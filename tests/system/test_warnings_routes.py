# SPDX-License-Identifier: BSD-3-Clause
"""Routes of the kernel that a Linux router obeys in another way than the dataplane are reported, see
test_warnings."""

import contextlib
import json

from lib import netns
from lib.wait import eventually
from lib.warned import POLLED, gone, made, rows, told


def test_an_ipv6_route_in_table_local_is_told(dut):
    """Linux looks up table local first, even if main has a longer prefix. The dataplane does so
    only for routes without a next hop."""
    words = "2001:db8:e000::/40 dev wan0"
    what = "route-local", "routes by a next hop in table local", POLLED
    add, end = (f"ip -6 route {do} {words} table local" for do in ("add", "del"))
    with made(dut, [add], [end]):
        told(dut, *what)
    gone(dut, *what)


def test_an_expired_route_with_a_living_next_hop_is_told(dut):
    """Linux uses all next hops of a route until the last of them expires. Its messages have the
    lifetime of the first next hop only."""
    prefix = "2001:db8:e100::/48"
    hop = [f"{prefix} via {neighbour}" for neighbour in ("2001:db8:2::8", "2001:db8:2::9")]
    what = "route-life", "an expired IPv6 route with several next hops", POLLED
    dut.ip(f"-6 route add {hop[0]} expires 1")
    shown = lambda: netns.run(dut.ctl, ["ip", "-6", "route", "show", prefix])  # noqa: E731
    eventually(lambda: "expires -" in shown(), 10, 0.1, "the route expires")
    with made(dut, [f"ip -6 route append {hop[1]}"], [f"ip -6 route del {prefix}"]):
        told(dut, *what)
    gone(dut, *what)


def test_a_route_by_the_loopback_device_is_told(dut):
    """Linux sends a packet of such a route to itself until its TTL is used up."""
    what = "loopback", "routes by the interface lo", POLLED
    with made(dut, ["ip route add 198.18.77.0/24 dev lo"], ["ip route del 198.18.77.0/24"]):
        told(dut, *what)
    gone(dut, *what)


def test_an_unsupported_encapsulation_is_told(dut, wan):
    """A next hop with more labels than the dataplane can push is not used. The kernel has such
    routes, too."""
    what = "encap", "routes with an unsupported encapsulation", POLLED
    dut.zebra.add("198.18.79.0/24", dut.zebra.hop(wan.peer4, wan, labels=range(16, 33)))
    told(dut, *what)
    dut.zebra.drop("198.18.79.0/24")
    gone(dut, *what)


def test_addresses_of_the_loopback_device_are_not_told(dut):
    """zebra replays a connected route by lo for each address of lo, and Linux has such a route in table
    main for IPv6. No packet uses these routes, because table local has the addresses."""
    addresses = "192.0.2.201/32", "2001:db8:e300::1/128"
    ttl = "net.ipv4.ip_default_ttl"
    lines = [[f"ip addr {verb} {address} dev lo" for address in addresses] for verb in ("add", "del")]
    with made(dut, *lines):
        by_lo = dut.zebra.hop(oif=1)
        for address in addresses:
            dut.zebra.add(address, by_lo)
        dut.route("198.51.100.0/24", "192.0.2.66", dut.wires["wan"])  # zebra's routes are there
        with made(dut, [f"sysctl -q -w {ttl}=63"], [f"sysctl -q -w {ttl}=64"]):
            told(dut, "sysctl", f"{ttl} = 63", POLLED)  # the daemon has scanned the routes by then
            assert rows(dut, "loopback") == {}
        # The same next hop of another prefix causes a warning.
        dut.zebra.add("198.18.78.0/24", by_lo)
        what = "loopback", "routes by the interface lo", POLLED
        told(dut, *what)
        dut.zebra.drop("198.18.78.0/24")
        gone(dut, *what)


def test_a_port_without_carrier_is_told(dut, request):
    """Linux keeps the connected subnets of a link without carrier, unless the sysctl
    ignore_routes_with_linkdown is set. In the dataplane another route takes over. Without another route
    there is no warning, because both lose the packets. doctor has a line that is no warning, either."""
    what = "carrier", "ext0 without carrier", POLLED
    link = lambda state: netns.command(["ip", "-n", dut.far, "link", "set", "ext", state])  # noqa: E731
    ignore = [
        [f"sysctl -q -w net.ipv{v}.conf.ext0.ignore_routes_with_linkdown={on}" for v in (4, 6)]
        for on in (1, 0)
    ]

    request.addfinalizer(dut.kernel_defaults)
    request.addfinalizer(lambda: link("up"))
    link("down")
    eventually(lambda: dut.port_row(dut.wires["ext"])["link"] == "down", 5)
    ttl = "net.ipv4.ip_default_ttl"
    with made(dut, [f"sysctl -q -w {ttl}=63"], [f"sysctl -q -w {ttl}=64"]):
        told(dut, "sysctl", f"{ttl} = 63", POLLED)  # the daemon has scanned the ports by then
        assert rows(dut, "carrier") == {}
    default = "via 192.0.2.66 dev wan0"
    with made(dut, [f"ip route add default {default}"], [f"ip route del default {default}"]):
        told(dut, *what)
        found = json.loads(dut.fpmctl("--json", "doctor", "obeyed").stdout)
        row = next(r for r in found if "ext0 without carrier" in json.dumps(r))
        assert "warn" not in json.dumps(row).lower(), row
        with made(dut, *ignore):
            gone(dut, *what)
        told(dut, *what)
        link("up")
        gone(dut, *what)


def test_a_next_hop_without_ipv6_is_told(dut, request):
    """A next hop without a gateway that IPv4 routes share with IPv6 routes keeps its share while
    IPv6 is off on its interface."""
    what = "ipv6-off", "wan0 without IPv6", POLLED
    members = [dut.zebra.hop(None, dut.wires[name]) for name in ("wan", "alt")]
    group = dut.zebra.group(dict.fromkeys(members, 1))
    off = "net.ipv6.conf.wan0.disable_ipv6"

    request.addfinalizer(dut.kernel_defaults)
    request.addfinalizer(lambda: netns.sysctl(dut.ctl, {off: 0}))
    dut.route("2001:db8:e200::/48", nhid=group)
    dut.route("198.51.100.0/24", nhid=group)
    netns.sysctl(dut.ctl, {off: 1})
    told(dut, *what)
    netns.sysctl(dut.ctl, {off: 0})
    gone(dut, *what)


ROUTES = {
    "IPv6 routes of one metric by two interfaces": (
        "route-order",
        "IPv6 routes of one prefix and metric by several interfaces",
        [f"ip -6 route {do} 2001:db8:e400::/48 dev {dev}" for do, dev in (("add", "lan0"), ("append", "wan0"))],
        ["ip -6 route del 2001:db8:e400::/48 dev wan0"],
        ["ip -6 route del 2001:db8:e400::/48 dev lan0"],
    ),
    "next hops of two MTUs": (
        "route-mtu",
        "an IPv6 route with next hops of several MTUs",
        [f"ip -6 route {do} 2001:db8:e500::/48 via 2001:db8:2::{n} mtu {1300 + n}"
         for do, n in (("add", 8), ("append", 9))],
        ["ip -6 route del 2001:db8:e500::/48 via 2001:db8:2::8"],
        ["ip -6 route del 2001:db8:e500::/48"],
    ),
    "a route in table local for a source, beside a VRF": (
        "route-source",
        "routes for a source or a TOS in table local, beside VRFs",
        ["ip link add vrf9 type vrf table 909", "ip link set vrf9 up",
         "ip -6 route add blackhole 2001:db8:e600::/48 table local",
         "ip -6 route add throw 2001:db8:e600::/48 from 2001:db8:e7::/48 table local"],
        ["ip link del vrf9"],
        ["ip -6 route del 2001:db8:e600::/48 from 2001:db8:e7::/48 table local",
         "ip -6 route del 2001:db8:e600::/48 table local"],
    ),
}  # fmt: skip


ONE, TWO, OF_ZEBRA = "2001:db8:e800::/48", "2001:db8:e900::/48", "2001:db8:ea00::/48"
# Routes that Linux and the dataplane use alike: joined next hops of one MTU, routes of two metrics, a
# route that has replaced one of another MTU, and routes of one metric that a route of zebra precedes.
ALIKE = [
    f"ip -6 route add {ONE} via 2001:db8:2::8 mtu 1300",
    f"ip -6 route append {ONE} via 2001:db8:2::9 mtu 1300",
    f"ip -6 route add {ONE} dev lan0 metric 77",
    f"ip -6 route add {TWO} via 2001:db8:2::8 mtu 1300",
    f"ip -6 route replace {TWO} via 2001:db8:2::9 mtu 1400",
    f"ip -6 route add {OF_ZEBRA} dev lan0",
    f"ip -6 route append {OF_ZEBRA} dev wan0",
]


def test_routes_that_linux_uses_otherwise_are_told(dut):
    """The dataplane does not follow Linux in each detail of such routes. The warning ends when the first
    of the commands `end` has removed its cause. Routes that both use alike cause no warning."""
    cases = [case for name, case in ROUTES.items()
             if "VRF" not in name or netns.can_have("vrf table 909")]  # fmt: skip
    with contextlib.ExitStack() as ending:
        dut.route(OF_ZEBRA, nhid=dut.zebra.hop(None, dut.wires["wan"]))
        ending.enter_context(made(dut, ALIKE, [f"ip -6 route flush {p}" for p in (ONE, TWO, OF_ZEBRA)]))
        for _, where, do, _, undo in cases:
            assert where not in rows(dut)
            ending.enter_context(made(dut, do, undo))
        for kind, where, *_ in cases:
            told(dut, kind, where, POLLED)
        for case in cases:
            ending.enter_context(made(dut, case[3], []))
        for kind, where, *_ in cases:
            gone(dut, kind, where, POLLED)
