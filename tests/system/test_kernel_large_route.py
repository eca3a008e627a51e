# SPDX-License-Identifier: BSD-3-Clause
"""Linux ends a list of its routes, without an error, at a route whose message does not fit in
32 KiB. Our router notices, says so, and deletes no route that such a list lacks."""

import errno
import ipaddress
import os
import socket
import struct

import pytest

from lib import netns
from lib.wait import eventually
from pair import EMPTY_ZEBRA

RTM_NEWROUTE, RTM_DELROUTE = 24, 25  # linux/rtnetlink.h
RTA_DST, RTA_GATEWAY, RTA_MULTIPATH = 1, 5, 9
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 0x1, 0x4, 0x400
LARGE = {4: "198.18.0.0/24", 6: "2001:db8:e000::/48"}  # lists have it before NET
NET = {4: "198.51.100.0/24", 6: "2001:db8:f000::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:f000::9"}
SMALL = {4: 600, 6: 600}  # a number of next hops whose message fits in 32 KiB
MANY = {4: 2500, 6: 1400}  # a number of next hops whose message does not fit
STATIC, UNUSED = 4, 199  # numbers of protocols: `proto static`, and one that no program uses


def attribute(kind, octets):
    """Return an attribute of netlink."""
    return struct.pack("=HH", 4 + len(octets), kind) + octets + bytes(-len(octets) % 4)


def large_route(dut, family, n, command=RTM_NEWROUTE, protocol=STATIC):
    """Add, replace or delete a route with `n` next hops. A line for `ip` has room for fewer."""
    net = ipaddress.ip_network(LARGE[family])
    first = ipaddress.ip_address({4: "10.9.0.2", 6: "2001:db8:9::2"}[family])
    index = dut.ifindex(dut.wires["ext"])
    hops = b""
    for i in range(n if command == RTM_NEWROUTE else 0):
        gateway = attribute(RTA_GATEWAY, (first + i).packed)
        hops += struct.pack("=HBBI", 8 + len(gateway), 0, 0, index) + gateway
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    body = struct.pack("=BBBBBBBBI", kind, net.prefixlen, 0, 0, 254, protocol, 0, 1, 0)
    body += attribute(RTA_DST, net.network_address.packed)
    body += attribute(RTA_MULTIPATH, hops) if hops else b""
    create = NLM_F_CREATE if command == RTM_NEWROUTE else 0
    head = struct.pack("=IHHII", 16 + len(body), command, NLM_F_REQUEST | NLM_F_ACK | create, 1, 0)
    with netns.open_socket(dut.ctl, socket.AF_NETLINK, socket.SOCK_RAW) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        sock.send(head + body)
        (code,) = struct.unpack_from("=i", sock.recv(1 << 17), 16)
    if code:
        raise OSError(-code, os.strerror(-code) if code < 0 else errno.errorcode[errno.EPROTO])


def warned(dut):
    """Return true if the router warns of a route with too many next hops."""
    return any(row["kind"] == "route-large" for row in dut.control.ask("warnings"))


def cut(dut):
    """Return the number of lists that Linux ended too early."""
    (row,) = dut.control.ask("kernel")
    return row["cut"]


@pytest.fixture
def router(own_dut, family):
    """A router with a subnet on ext for the gateways, and a route by wan."""
    dut = own_dut()
    six = "-6 " if family == 6 else ""
    dut.start()
    wan = dut.wires["wan"]
    dut.ip(f"addr add {'10.9.0.1/16' if family == 4 else '2001:db8:9::1/64 nodad'} dev ext0")
    dut.ip(f"{six}route add {NET[family]} via {wan.peer(family)} dev wan0 proto static")
    lan = dut.wires["lan"]
    eventually(lambda: dut.forwarded(lan, lan.probe(HOST[family]), wan, 0.2), 5, 0.05)
    return dut


def test_a_list_that_linux_ends_early_removes_no_route(router, family):
    """A link goes down, so the router reads the routes again, and the answer ends at the large route.
    All other routes stay in force. The router warns until the route is gone."""
    dut, (lan, wan) = router, (router.wires[n] for n in ("lan", "wan"))
    large_route(dut, family, SMALL[family])
    dut.ip("link set alt0 down", "link set alt0 up")
    dut.fpmctl("replay")
    assert not warned(dut) and cut(dut) == 0

    large_route(dut, family, 0, RTM_DELROUTE)
    large_route(dut, family, MANY[family])
    eventually(lambda: cut(dut) > 0, 5, 0.05, "the cut list is noticed")
    before = cut(dut)
    dut.ip("link set alt0 down", "link set alt0 up")
    eventually(lambda: cut(dut) > before, 10, 0.05, "another list")
    dut.fence(lan)
    for _ in range(20):
        assert dut.forwarded(lan, lan.probe(HOST[family]), wan)
    assert dut.forwarded(lan, lan.probe(wan.peer(family)), wan)
    eventually(lambda: warned(dut), 10, 0.05, "a warning")
    done = dut.fpmctl("doctor", "obeyed")
    assert "a route with too many next hops" in done.stdout, done.stdout
    vtysh = f"{dut.dir}/vtysh"
    with open(vtysh, "w", encoding="ascii") as file:
        file.write(EMPTY_ZEBRA)
    done = dut.fpmctl("audit", "--vtysh", f"sh {vtysh}")
    assert done.returncode != 0
    assert f"IPv{family} routes cannot be read: Linux ends its list" in done.stderr, done.stderr

    large_route(dut, family, 0, RTM_DELROUTE)
    eventually(lambda: not warned(dut), 20, 0.1, "no warning")
    said = f"list of routes complete again family=ipv{family}"
    eventually(lambda: said in dut.daemon.log(400), 5, 0.05, said)


def test_a_router_that_starts_beside_a_large_route_has_the_others(router, family):
    """After a start the router has the connected subnets, its own addresses, and routes of other
    protocols, although the list of all routes ends before them."""
    dut, (lan, wan) = router, (router.wires[n] for n in ("lan", "wan"))
    large_route(dut, family, MANY[family], protocol=UNUSED)
    dut.stop()
    dut.start()
    dut.ready()
    eventually(lambda: cut(dut) > 0, 5, 0.02, "the cut list is noticed")
    for dst in (wan.peer(family), HOST[family]):
        eventually(lambda d=dst: dut.forwarded(lan, lan.probe(d), wan, 0.2), 5, 0.05, dst)
