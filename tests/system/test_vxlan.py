# SPDX-License-Identifier: BSD-3-Clause
"""IP over VXLAN, as EVPN's type-5 routes and symmetric IRB have it: a bridge of the kernel over a vxlan
device, neighbors without ARP behind VTEPs, routes by them. scapy builds and dissects the packets, octet
by octet; then a Linux kernel is the other router, and pings go both ways."""

import contextlib
import json
import socket

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from lib import api, netns
from lib.wait import eventually
from watching import Watching
from wire import token, token_of

VNI, PORT = 5001, 4789
# Of the other router: its router MAC, and a host behind it.
RMAC = "02:00:5e:00:53:99"
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
VTEP = {4: "203.0.113.66", 6: "2001:db8:ee::66"}
INSIDE = {4: "10.9.0.{}/24", 6: "2001:db8:99::{}/64"}
OVERHEAD = {4: 50, 6: 70}  # octets of the outer headers, that of Ethernet not counted


def row(dut, name="br1"):
    """Return the row of an interface, or None."""
    rows = dut.control.ask("interfaces")
    api.validate(rows, api.rows_schema("GET", "/interfaces")[1]["schema"])
    return next((r for r in rows if r["name"] == name), None)


def is_ours(dut, name="br1"):
    """Wait until the forwarders serve a bridge over a vxlan device. Return its row."""

    def served():
        found = row(dut, name)
        assert found and found["up"] and "rx_packets" in found, found
        return found

    return eventually(served, 10, 0.05, f"interface {name} over vxlan")


def gateway(vtep, each):
    """Return the next hop of a route of a family, as zebra has it."""
    return f"::ffff:{vtep}" if each == 6 and ":" not in vtep else vtep


def make(where, local, vni=VNI, more="", n="1", numbers=None):
    """Make a bridge over a vxlan device in a namespace."""
    csum = "" if "csum" in more else "noudpcsum udp6zerocsumtx udp6zerocsumrx"
    netns.ip_batch(
        [
            f"link add vx{n} type vxlan id {vni} local {local} dstport {PORT} nolearning {csum} {more}",
            f"link add br{n} type bridge",
            f"link set vx{n} master br{n} addrgenmode none",
            f"link set br{n} addrgenmode none",
        ],
        where,
    )
    netns.sysctl(
        where,
        {
            f"net.ipv6.conf.br{n}.disable_ipv6": 0,
            f"net.ipv6.conf.br{n}.accept_dad": 0,
            f"net.ipv4.conf.br{n}.rp_filter": 0,
        },
    )
    lines = [f"link set vx{n} up", f"link set br{n} up"]
    if numbers:
        lines.append(f"addr add {INSIDE[4].format(numbers)} dev br{n}")
        lines.append(f"-6 addr add {INSIDE[6].format(numbers)} dev br{n} nodad")
    netns.ip_batch(lines, where)


def fdb(where, verb, mac, vtep, n="1"):
    """Change the forwarding database of a vxlan device."""
    words = ["dev", f"vx{n}", "dst", vtep] if verb != "del" else ["dev", f"vx{n}"]
    netns.command(["bridge", "-n", where, "fdb", verb, mac, *words])


def neighbors(where, vtep, mac, n="1", entry=True):
    """Make the neighbors of another router, as zebra writes them for both families of routes."""
    lines = []
    for each in (4, 6):
        to = gateway(vtep, each)
        six = "-6 " if ":" in to else ""
        lines.append(f"{six}neigh replace {to} lladdr {mac} dev br{n} nud noarp extern_learn")
    if entry:
        fdb(where, "replace", mac, vtep, n)
    netns.ip_batch(lines, where)


def ifindex(dut, name):
    """Return the index of an interface of the control namespace."""
    with netns.entered(dut.ctl):
        return socket.if_nametoindex(name)


def type_5(dut, vtep, each, n="1"):
    """Announce a next hop as zebra does for a type-5 route. Returns its id."""
    return dut.zebra.hop(gateway(vtep, each), oif=ifindex(dut, f"br{n}"), onlink=True)


def unmake(dut, *places):
    """Remove the bridges over vxlan devices."""
    for where in places or (dut.ctl,):
        for link in json.loads(netns.command(["ip", "-n", where, "-j", "link"])):
            if link["ifname"] in ("br1", "vx1", "br2", "vx2", "x1"):
                netns.command(["ip", "-n", where, "link", "del", link["ifname"]], check=False)
    eventually(lambda: row(dut) is None and row(dut, "br2") is None, 5, 0.01, "no bridge")
    dut.ready()


@pytest.fixture(params=[4, 6], ids=["over4", "over6"])
def outer(request):
    """Run the test with outer packets of both families."""
    return request.param


@contextlib.contextmanager
def leaf(dut, outer, more="", entry=True):
    """Let the router reach the other router, whose VTEP is behind the peer of wan."""
    wan = dut.wires["wan"]
    make(dut.ctl, wan.own(outer), more=more, numbers=1)
    try:
        is_ours(dut)
        neighbors(dut.ctl, VTEP[outer], RMAC, entry=entry)
        dut.route(f"{VTEP[outer]}/{32 if outer == 4 else 128}", wan.peer(outer), wan)
        for each, net in NET.items():
            dut.route(net, nhid=type_5(dut, VTEP[outer], each))
        yield dut
    finally:
        unmake(dut)


def encapsulated(dut, probe, outer=4, out="wan"):
    """Send a probe from lan. Return (the outer packet, the frame inside) as they leave."""
    lan, wan = dut.wires["lan"], dut.wires[out]
    came = dut.forwarded(lan, probe, wan)
    assert (came.src, came.dst) == (wan.port_mac, wan.mac)
    ip = came[IPv6 if outer == 6 else IP]
    assert ip[UDP].dport == PORT
    inside = VXLAN(bytes(ip[UDP].payload))
    assert inside.vni == VNI and inside.flags == "Instance", inside
    return ip, inside[Ether]


def from_vtep(dut, inside, outer=4, vni=VNI, flags=0x08, src_mac=RMAC, dst_mac=None, dst=None, **ip):
    """Return a frame on wan from the other router with an IP packet inside."""
    wan = dut.wires["wan"]
    mac = dst_mac or netns_mac(dut)
    frame = Ether(src=src_mac, dst=mac) / inside
    checksum = ip.pop("chksum", 0)
    head = (
        IP(src=VTEP[4], dst=dst or wan.ip4, **ip)
        if outer == 4
        else IPv6(src=VTEP[6], dst=dst or wan.ip6, **ip)
    )
    udp = UDP(sport=50000, dport=PORT, chksum=checksum)
    return Ether(src=wan.mac, dst=wan.port_mac) / head / udp / VXLAN(vni=vni, flags=flags) / frame


def netns_mac(dut, name="br1"):
    """Return the MAC address of an interface of the control namespace."""
    return dut.link_row(name)["address"]


def back(dut, each, **fields):
    """Return an IP packet with a token, from the host behind the other router to the peer of lan."""
    lan = dut.wires["lan"]
    if each == 4:
        ip = IP(src=HOST[4], dst=lan.peer4, **fields)
    else:
        ip = IPv6(src=HOST[6], dst=lan.peer6, **fields)
    return ip / UDP(sport=4000, dport=4001) / Raw(token())


@pytest.mark.parametrize("each", [4, 6], ids=["IPv4", "IPv6"])
def test_a_packet_to_a_type_5_route_gets_all_headers(dut, outer, each):
    """X1: the TTL falls once; router MAC, MAC of the bridge, VNI, ports, TTL and DF of the device."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        drops = dut.counters()
        base = is_ours(dut)
        probe = lan.probe(HOST[each], size=200, **({"ttl": 40, "tos": 0xB9} if each == 4 else {"hlim": 40, "tc": 0xB9}))
        ip, inside = encapsulated(dut, probe, outer)
        assert (ip.src, ip.dst) == (wan.own(outer), VTEP[outer])
        assert (inside.src, inside.dst) == (netns_mac(dut), RMAC)
        assert ip[UDP].sport in range(49152, 65536) and ip[UDP].chksum == 0
        assert ip[UDP].len == 200 + 30
        if outer == 4:
            assert (ip.ttl, ip.flags, ip.tos, ip.len) == (64, 0, 0x01, 250)
            checksum, ip.chksum = ip.chksum, None
            assert IP(bytes(ip)).chksum == checksum
        else:
            assert (ip.hlim, ip.tc, ip.plen) == (64, 0x01, 230) and ip.fl != 0
        packet = inside.payload
        assert (packet.ttl if each == 4 else packet.hlim) == 39
        assert bytes(packet[UDP]) == bytes(probe[UDP])
        now = is_ours(dut)
        assert (now["tx_packets"] - base["tx_packets"], now["tx_bytes"] - base["tx_bytes"]) == (1, 200)
        assert dut.drops(drops) == {}


@pytest.mark.parametrize("each", [4, 6], ids=["IPv4", "IPv6"])
def test_a_packet_from_a_vtep_is_routed(dut, outer, each):
    """X3: the packet inside passes as one that the bridge received; its TTL falls once."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        drops, base = dut.counters(), is_ours(dut)
        packet = back(dut, each, **({"ttl": 40} if each == 4 else {"hlim": 40}))
        came = dut.forwarded(wan, from_vtep(dut, packet, outer), lan)
        assert (came.src, came.dst) == (lan.port_mac, lan.mac)
        inside = came.payload
        assert (inside.ttl if each == 4 else inside.hlim) == 39
        assert bytes(inside[UDP]) == bytes(packet[UDP])
        if each == 4:
            checksum, inside.chksum = inside.chksum, None
            assert IP(bytes(inside)).chksum == checksum
        assert is_ours(dut)["rx_packets"] - base["rx_packets"] == 1
        assert dut.drops(drops) == {}
