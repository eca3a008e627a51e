# SPDX-License-Identifier: BSD-3-Clause
"""Faults that users of other routers reported, about routes, neighbors and interfaces of the kernel. Each
is tried on our router and on a Linux router of equal configuration. Packets show the outcome."""

import pytest

from lib import netns
from lib.wait import eventually
from pair import HOST, NET, line, peer, via
from pair import both, routers  # noqa: F401

LINKLOCAL = "fe80::9"


def neighbor_by_linklocal(both, name):
    """Give both routers a link-local neighbor on a wire."""
    for router in both.both:
        mac = router.wires[name].mac
        netns.ip_batch([f"neigh replace {LINKLOCAL} lladdr {mac} dev {name}0 nud permanent"], router.ctl)


@pytest.fixture
def loopback(both):
    """Set lo up again at the end."""
    yield
    for router in both.both:
        netns.ip_batch(["link set lo up"], router.ctl)


@pytest.fixture
def whole_mtu(both):
    """Give ext0 its MTU again at the end."""
    yield
    for router in both.both:
        netns.ip_batch(["link set ext0 mtu 1500"], router.ctl)


def test_a_flush_of_addresses_takes_a_default_route_with_it(both):
    """FRRouting/frr 13561: zebra kept a default route by a gateway whose subnet was flushed."""
    both.ip(f"route add default {via(both, 'ext', 4)}")
    both.agree("default route added", {HOST[4]: "ext"})
    both.ip("addr flush dev ext0 scope global")
    both.agree("addresses flushed", {HOST[4]: "no route"})


@pytest.mark.parametrize("order", ["address first", "link first"])
def test_a_second_link_into_a_subnet_comes_back(both, order):
    """FRRouting/frr 16110: a route by one of two links into a subnet was lost after the link went down, if
    the link came up before it got its address."""
    both.answer("ext", "10.9.0.254")
    both.ip("addr add 10.9.0.1/24 dev alt0", "addr add 10.9.0.2/24 dev ext0")
    route = f"route add {NET[4]} via 10.9.0.254 dev ext0"
    both.ip(route)
    both.agree("route added", {HOST[4]: "ext"})
    both.ip("link set ext0 down", "addr del 10.9.0.2/24 dev ext0")
    both.agree("link down", {HOST[4]: "no route"})
    back = ["addr add 10.9.0.2/24 dev ext0", "link set ext0 up"]
    both.ip(*(back if order == "address first" else back[::-1]), route)
    both.agree("link up", {HOST[4]: "ext"})


def test_a_route_without_next_hops_in_its_message_follows_its_object(both, family):
    """bisdn/basebox 470: the kernel sent a route with the id of its next-hop object only, and the route
    was not used."""
    both.sysctl({"net.ipv4.nexthop_compat_mode": 0})
    try:
        both.ip(line(family, f"nexthop add id 31 {via(both, 'wan', family)}"))
        both.ip(line(family, f"nexthop add id 32 {via(both, 'ext', family)}"), "nexthop add id 33 group 31")
        both.ip(line(family, f"route add {NET[family]} nhid 33"))
        both.agree("route of a group", {HOST[family]: "wan"})
        both.ip("nexthop replace id 33 group 32")
        both.agree("group replaced", {HOST[family]: "ext"})
        both.ip(line(family, f"route replace {NET[family]} nhid 31"))
        both.agree("route replaced", {HOST[family]: "wan"})
        both.ip(line(family, f"nexthop replace id 31 {via(both, 'ext', family)}"))
        both.agree("object replaced", {HOST[family]: "ext"})
        both.ip("nexthop del id 31")
        both.agree("object deleted", {HOST[family]: "no route"})
    finally:
        both.sysctl({"net.ipv4.nexthop_compat_mode": 1})


def test_ipv4_routes_over_two_ipv6_gateways_after_a_flap(both):
    """FRRouting/frr 15505: IPv4 routes over several IPv6 gateways were not there after a flap."""
    hops = " ".join(f"nexthop via inet6 {peer(both, n, 6)} dev {n}0" for n in ("alt", "ext"))
    both.ip(f"route add {NET[4]} {hops}")
    both.ip("link set alt0 down")
    both.agree("one link down", {HOST[4]: "ext"})
    both.ip("link set ext0 down")
    both.agree("both links down", {HOST[4]: "no route"})
    both.ip("link set alt0 up", "link set ext0 up")
    both.linux.kernel_defaults()
    both.ours.kernel_defaults()
    both.ip(f"route replace {NET[4]} via inet6 {peer(both, 'alt', 6)} dev alt0")
    both.agree("links up", {HOST[4]: "alt"})


def test_a_gateway_that_was_forgotten_is_asked_for_again(both, family):
    """sonic-net/SONiC 1210: when the entry of a gateway aged out, its routes stopped."""
    gateway = {4: "10.9.0.5", 6: "2001:db8:9::5"}[family]
    both.answer("ext", gateway)
    both.ip("addr add 10.9.0.1/24 dev ext0", "addr add 2001:db8:9::1/64 dev ext0 nodad")
    both.ip(line(family, f"route add {NET[family]} via {gateway} dev ext0"))
    both.agree("route added", {HOST[family]: "ext"})
    for state in ("stale", "failed"):
        both.ip(line(family, f"neigh change {gateway} dev ext0 nud {state}"))
        both.agree(f"neighbor {state}", {HOST[family]: "ext"})
    both.ip(line(family, f"neigh del {gateway} dev ext0"))
    both.agree("neighbor deleted", {HOST[family]: "ext"})


@pytest.mark.usefixtures("whole_mtu")
def test_an_mtu_below_1280_ends_ipv6_until_it_is_raised(both):
    """sonic-net/SONiC 294, FRRouting/frr 21299: an MTU below 1280 deletes the IPv6 addresses and
    routes of a link, and they were not back when it was raised."""
    neighbor_by_linklocal(both, "ext")
    route = f"-6 route add {NET[6]} via {LINKLOCAL} dev ext0"
    both.ip(route)
    both.agree("route added", {HOST[6]: "ext"})
    subnet = both.ours.wires["ext"].peer6
    both.ip("link set ext0 mtu 1279")
    both.agree("MTU too small", {HOST[6]: "no route", subnet: "no route"})
    both.ip("link set ext0 mtu 1500", f"-6 addr add {both.ours.wires['ext'].ip6}/64 dev ext0 nodad")
    neighbor_by_linklocal(both, "ext")
    both.ip(f"-6 neigh replace {subnet} lladdr {both.ours.wires['ext'].mac} dev ext0 nud permanent", route)
    both.agree("MTU raised", {HOST[6]: "ext", subnet: "ext"})


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("kind, fate", [("blackhole", "nothing"), ("unreachable", "unreachable")])
def test_the_loopback_device_goes_down_and_up(both, family, kind, fate):
    """FRRouting/frr 13770: a flap of lo removed blackhole and unreachable routes."""
    if family == 6 and kind == "unreachable":
        fate = "no route"  # Linux sends the same ICMPv6 error for a route that is unreachable

    def now():
        """Return the outcome to expect: that of the route if the Linux router still has the route."""
        shown = netns.run(both.linux.ctl, ["ip", f"-{family}", "route", "show", "type", kind])
        return fate if NET[family] in shown else "no route"

    both.ip(line(family, f"route add {kind} {NET[family]}"))
    both.agree("route added", {HOST[family]: fate})
    both.ip("link set lo down")
    both.agree("lo down", {HOST[family]: now()})
    both.ip("link set lo up")
    both.agree("lo up", {HOST[family]: now()})


def test_a_multipath_route_after_another_link_flapped(both, family):
    """FRRouting/frr 14160: routes by several next hops were lost when another link flapped."""
    hops = " ".join(f"nexthop {via(both, n, family)}" for n in ("wan", "alt"))
    both.ip(line(family, f"route add {NET[family]} {hops}"))
    both.ip("link set ext0 down", "link set ext0 up", "link set ext0 down", "link set ext0 up")
    both.ip("link set alt0 down")
    both.agree("one link down", {HOST[family]: "wan"})


def test_ten_flaps_in_a_row_end_in_the_kernels_state(both, family):
    """FRRouting/frr 23022: a group that was installed while its link flapped stayed invalid."""
    ext = both.ours.wires["ext"]
    at = {4: [], 6: [f"-6 addr replace {ext.ip6}/64 dev ext0 nodad"]}[family]
    lines = [
        line(family, f"nexthop add id 41 {via(both, 'wan', family)}"),
        *(["link set ext0 down", "link set ext0 up", *at] * 10),
        line(family, f"neigh replace {ext.peer(family)} lladdr {ext.mac} dev ext0 nud permanent"),
    ]
    both.ip(*lines)
    for router in both.both:
        shown = lambda ns=router.ctl: netns.run(ns, ["ip", "link", "show", "ext0"])  # noqa: E731
        eventually(lambda f=shown: "state UP" in f(), 5, 0.05, "Linux has seen the last flap")
    both.ip(line(family, f"nexthop add id 42 {via(both, 'ext', family)}"))
    both.ip("nexthop add id 43 group 42", line(family, f"route add {NET[family]} nhid 43"))
    both.agree("ten flaps", {HOST[family]: "ext"})
    both.ip("nexthop replace id 43 group 41")
    both.agree("group replaced", {HOST[family]: "wan"})
    both.ip("nexthop replace id 43 group 42", "link set ext0 down")
    both.agree("link down", {HOST[family]: "no route"})


def test_no_route_of_a_link_that_is_down_is_left(both, family):
    """FRRouting/frr 15395: some of many routes by a link stayed in the dataplane when the link went
    down."""
    nets = [f"198.18.{n}.0/24" if family == 4 else f"2001:db8:e0{n:02x}::/48" for n in range(1, 100)]
    hosts = [net.replace(".0/24", ".9").replace("::/48", "::9") for net in nets]
    both.ip(*[line(family, f"route add {net} {via(both, 'ext', family)}") for net in nets])
    both.agree("routes added", {hosts[-1]: "ext", hosts[0]: "ext"})
    both.ip("link set ext0 down")
    both.agree("link down", {hosts[0]: "no route", hosts[50]: "no route", hosts[-1]: "no route"})
    left = lambda: [r for r in both.ours.control.ask("routes") if r["prefix"] in nets]  # noqa: E731
    eventually(lambda: not left(), 3, 0.02, "no route is left")


def test_a_neighbor_moves_to_another_mac(both, family):
    """sonic-net/sonic-buildimage 13341: a changed MAC of a neighbor was not in the dataplane."""
    wan = both.ours.wires["wan"]
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)}"))
    both.agree("route added", {HOST[family]: "wan"})
    both.ip(line(family, f"neigh replace {wan.peer(family)} lladdr 02:00:00:00:77:01 dev wan0 nud permanent"))
    lan = both.ours.wires["lan"]

    def moved():
        wan.clear()
        lan.send(lan.probe(HOST[family]))
        both.ours.fence(lan)
        return any(data[:6] == bytes.fromhex("020000007701") for data in wan.got())

    eventually(moved, 3, 0.02, "frames to the new MAC")
