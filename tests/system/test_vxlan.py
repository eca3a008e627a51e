# SPDX-License-Identifier: BSD-3-Clause
"""IP over VXLAN, as EVPN's type-5 routes and symmetric IRB have it: a bridge of the kernel over a vxlan
device, neighbors without ARP behind VTEPs, and routes by these neighbors. scapy builds and dissects the
packets, octet by octet; then a Linux kernel is the other router, and pings go both ways. X1 to X11 number
the kinds of handling."""

import contextlib
import json
import os
import socket
from collections import Counter

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6PacketTooBig, IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from labels import entries_of
from lib import api, netns
from lib.wait import eventually
from vxlan_links import INSIDE, PORT, VNI, fdb, gateway, known, make, neighbors
from watching import Watching
from test_capture import capture
from test_ecmp import spread
from wire import token, token_of

RMAC = "02:00:5e:00:53:99"  # the router MAC of the other router; HOST is a host behind it
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
VTEP = {4: "203.0.113.66", 6: "2001:db8:ee::66"}
OWN = {4: "203.0.113.1", 6: "2001:db8:ed::1"}  # this router's VTEP
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
    netns.ip_batch([*own_addresses("add", outer)], dut.ctl)
    make(dut.ctl, OWN[outer], more=more, numbers=1)
    try:
        is_ours(dut)
        eventually(lambda: dut.route_row(OWN[outer]), 10, 0.02, "the address of the VTEP")
        neighbors(dut.ctl, VTEP[outer], RMAC, entry=entry)
        known(dut, VTEP[outer], RMAC)
        dut.route(f"{VTEP[outer]}/{32 if outer == 4 else 128}", wan.peer(outer), wan)
        for each, net in NET.items():
            dut.route(net, nhid=type_5(dut, VTEP[outer], each))
        yield dut
    finally:
        netns.ip_batch([*own_addresses("del", outer)], dut.ctl)
        unmake(dut)


@contextlib.contextmanager
def underlay(dut):
    """Let the kernel of the router reach VTEPs, too."""
    wan = dut.wires["wan"]
    lines = [f"route add default via {wan.peer4} dev wan0", f"-6 route add default via {wan.peer6} dev wan0"]
    dut.ip(*lines)
    try:
        yield
    finally:
        dut.ip(*(line.replace(" add ", " del ") for line in lines))


def own_addresses(verb, outer):
    """Return the command for the address of this router's VTEP."""
    if outer == 4:
        return [f"addr {verb} {OWN[4]}/32 dev lo"]
    return [f"-6 addr {verb} {OWN[6]}/128 dev lo" + (" nodad" if verb == "add" else "")]


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
    """Return a frame on wan from the other router with an inner IP packet."""
    wan = dut.wires["wan"]
    mac = dst_mac or netns_mac(dut)
    frame = Ether(src=src_mac, dst=mac) / inside
    checksum = ip.pop("chksum", 0)
    head = (
        IP(src=VTEP[4], dst=dst or OWN[4], **ip)
        if outer == 4
        else IPv6(src=VTEP[6], dst=dst or OWN[6], **ip)
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
    """X1: the TTL of the packet falls once. The inner Ethernet header has the router MAC and the MAC of
    the bridge. The outer headers have the VNI, the ports, the TTL and the DF of the device."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        drops = dut.counters()
        base = is_ours(dut)
        probe = lan.probe(HOST[each], size=200, **({"ttl": 40, "tos": 0xB9} if each == 4 else {"hlim": 40, "tc": 0xB9}))
        ip, inside = encapsulated(dut, probe, outer)
        assert (ip.src, ip.dst) == (OWN[outer], VTEP[outer])
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
    """X3: the inner packet passes as one that the bridge received; its TTL falls once."""
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


def test_what_a_vtep_may_not_send_has_a_reason(dut, outer):
    """X4, X6, X7: each packet is dropped and counted by its reason. Reserved bits are ignored."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        good = lambda: back(dut, 4)  # noqa: E731
        tagged = from_vtep(dut, Dot1Q(vlan=7) / good(), outer)
        group_source = from_vtep(dut, good(), outer, src_mac="03:00:5e:00:53:99")
        marked = from_vtep(dut, good(), outer, **({"tos": 3} if outer == 4 else {"tc": 3}))
        for frame, reason in (
            (from_vtep(dut, good(), outer, vni=VNI + 1), "vxlan_vni"),
            (from_vtep(dut, good(), outer, flags=0), "vxlan_flags"),
            (from_vtep(dut, good(), outer, vni=VNI + 1, flags=0), "vxlan_flags"),
            (from_vtep(dut, good(), outer, dst_mac="02:00:5e:00:53:01"), "l2_foreign"),
            (tagged, "vlan_unknown"),
            (group_source, "l2_group_source"),
            (marked, "ecn_ce"),
            (from_vtep(dut, good(), outer, chksum=0x1234), "udp_checksum"),
        ):
            assert dut.not_forwarded(wan, frame) == {reason: 1}, reason
        reserved = bytes(from_vtep(dut, back(dut, 4), outer))
        head = bytes(VXLAN(vni=VNI, flags=0x08))
        wan.send(frame := reserved.replace(head, b"\xff" * 4 + head[4:7] + b"\xff"))
        lan.expect(token_of(frame))
        # A packet with a correct checksum is accepted, and the congestion mark (ECN) is copied to
        # the inner packet.
        packet = back(dut, 4, tos=2)
        frame = from_vtep(dut, packet, outer, chksum=None, **({"tos": 3} if outer == 4 else {"tc": 3}))
        assert dut.forwarded(wan, frame, lan)[IP].tos == 3


def test_checksums_over_ipv6_are_as_the_device_says(dut):
    """X6: without udp6zerocsumrx a packet without a checksum is dropped; without udp6zerocsumtx
    each sent packet has one."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 6, more="udpcsum noudp6zerocsumtx noudp6zerocsumrx"):
        assert dut.not_forwarded(wan, from_vtep(dut, back(dut, 6), 6)) == {"udp_checksum": 1}
        dut.forwarded(wan, from_vtep(dut, back(dut, 6), 6, chksum=None), lan)
        for size in (60, 61, 700):
            ip, _ = encapsulated(dut, lan.probe(HOST[4], size=size), 6)
            checksum, ip[UDP].chksum = ip[UDP].chksum, None
            assert checksum != 0 and IPv6(bytes(ip))[UDP].chksum == checksum, size


def test_checksums_over_ipv4_are_as_the_device_says(dut):
    lan = dut.wires["lan"]
    with leaf(dut, 4, more="udpcsum"):
        ip, _ = encapsulated(dut, lan.probe(HOST[6], size=333))
        checksum, ip[UDP].chksum = ip[UDP].chksum, None
        assert checksum != 0 and IP(bytes(ip))[UDP].chksum == checksum


def test_the_kernel_gets_what_is_for_the_bridge(dut, outer):
    """X5: The kernel gets ARP, ND, frames to groups and packets to an address of the bridge with their
    outer headers, and all packets to another address or port of this host."""
    wan = dut.wires["wan"]
    with leaf(dut, outer):
        asked = ARP(op=1, hwsrc=RMAC, psrc=INSIDE[4].format(9).split("/")[0], pdst="10.9.0.1")
        ping = IP(src=HOST[4], dst="10.9.0.1") / ICMP() / Raw(token())
        ping6 = IPv6(src=HOST[6], dst="2001:db8:99::1") / ICMPv6EchoRequest(data=token())
        for inside, mac in (
            (asked / Raw(token()), "ff:ff:ff:ff:ff:ff"),
            (asked / Raw(token()), None),
            (IPv6(dst="ff02::1") / UDP(dport=9) / Raw(token()), "33:33:00:00:00:01"),
            (ping, None),
            (ping6, None),
        ):
            frame = from_vtep(dut, inside, outer, dst_mac=mac)
            wan.send(frame)
            assert dut.taps["wan"].expect_raw(token_of(frame)) == bytes(frame)
        frame = from_vtep(dut, back(dut, 4), outer)
        frame[UDP].dport = PORT + 1
        wan.send(frame)
        assert dut.taps["wan"].expect_raw(token_of(frame)) == bytes(frame)


def test_rules_and_routes_for_a_tos_obey_that_of_the_outer_packet(dut, outer):
    """X2: the outer packet is looked up with its own TOS, without the ECN bits, as in Linux."""
    lan = dut.wires["lan"]
    dut.ip("route add blackhole default table 77", "-6 route add blackhole default table 77")
    six = "-6 " if outer == 6 else ""
    rule = f"{six}rule add from {OWN[outer]} tos 0x10 lookup 77"

    def passes(tos):
        encapsulated(dut, lan.probe(HOST[4], tos=tos), outer)
        return True

    def dropped(tos):
        return dut.not_forwarded(lan, lan.probe(HOST[4], tos=tos)) == {"blackhole": 1}

    try:
        with leaf(dut, outer, more="tos inherit"):
            dut.ip(rule)
            eventually(lambda: dropped(0x10), 5, 0.05, "the rule")
            assert dropped(0x13) and passes(0) and passes(0x08)
            dut.ip(rule.replace(" add ", " del "))
            eventually(lambda: passes(0x10), 5, 0.05, "no rule")
            if outer == 4:
                dut.ip(f"route add blackhole {VTEP[4]}/32 tos 0x10")
                eventually(lambda: dropped(0x12), 5, 0.05, "the route")
                assert passes(0)
                dut.ip(f"route del blackhole {VTEP[4]}/32 tos 0x10")
                eventually(lambda: passes(0x12), 5, 0.05, "no route")
        dut.ip(rule)
        with leaf(dut, outer, more="tos 0x10"):
            eventually(lambda: dropped(0), 5, 0.05, "the TOS of the device")
    finally:
        for line in (rule.replace(" add ", " del "), "route flush table 77", "-6 route flush table 77"):
            netns.command(["ip", "-n", dut.ctl, *line.split()], check=False)


def test_ttl_tos_df_and_source_ports_follow_the_device(dut):
    """X1: outer headers have the TTL, TOS, DF and source ports of the device. A TTL that `ip link set
    type vxlan` changes is in force in later packets."""
    lan = dut.wires["lan"]
    with leaf(dut, 4, more="ttl inherit tos inherit df set srcport 6000 6003"):
        ip, _ = encapsulated(dut, lan.probe(HOST[4], ttl=40, tos=0xB9))
        assert (ip.ttl, ip.tos, ip.flags) == (39, 0xB9, "DF") and ip[UDP].sport in range(6000, 6004)
    with leaf(dut, 4, more="ttl 17 tos 0x20 df inherit"):
        ip, _ = encapsulated(dut, lan.probe(HOST[4], tos=2, flags="DF"))
        assert (ip.ttl, ip.tos, ip.flags) == (17, 0x22, "DF")
        ip, _ = encapsulated(dut, lan.probe(HOST[4], flags=0))
        assert ip.flags == 0
        # As in Linux: no router may fragment the inner packet.
        ip, _ = encapsulated(dut, lan.probe(HOST[6]))
        assert ip.flags == "DF"
        dut.ip("link set vx1 type vxlan ttl 33")
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].ttl == 33, 5, 0.02)


def test_packets_larger_than_the_vxlan(dut, outer):
    """X8: the sender of a packet that is too large learns the MTU. Without DF the inner packet is cut,
    never the outer one."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    room = 1500 - OVERHEAD[outer]
    with leaf(dut, outer):
        dut.ip("link set vx1 mtu 1500", "link set br1 mtu 1500")  # larger than the underlay
        eventually(lambda: row(dut)["mtu"] == 1500, 5, 0.01, "MTU")
        assert f"MTU 1500, but only {room} fit by wan0" in doctor(dut)["br1"]["text"]
        encapsulated(dut, lan.probe(HOST[4], size=room, flags="DF"), outer)
        error = lan.srp1(lan.probe(HOST[4], size=room + 1, flags="DF"))
        assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, room)
        error = lan.srp1(lan.probe(HOST[6], size=room + 1))
        assert error[ICMPv6PacketTooBig].mtu == room
        wan.clear()
        lan.send(lan.probe(HOST[4], size=1490))
        at = 12 + (2 + 20 if outer == 4 else 2 + 40)
        is_vxlan = lambda d: d[at + 2 : at + 4] == PORT.to_bytes(2, "big")  # noqa: E731
        pieces = [Ether(d) for d in wan.expect_many(is_vxlan, 2, 5)]
        assert all(len(bytes(p)) <= 1514 for p in pieces)
        inner = [VXLAN(bytes(p[UDP].payload))[IP] for p in pieces]
        assert sum(p.len - 20 for p in inner) == 1470
        dut.ip("link set br1 mtu 1400")
        eventually(lambda: row(dut)["mtu"] == 1400, 5, 0.01, "MTU")
        error = lan.srp1(lan.probe(HOST[4], size=1401, flags="DF"))
        assert error[ICMP].nexthopmtu == 1400 and "br1" not in doctor(dut)


def too_big(dut, sent, mtu, outer, **fields):
    """Return the ICMP error of a router on the path to a VTEP about a packet that left by wan."""
    wan = dut.wires["wan"]
    quoted = Raw(bytes(sent)[:400])
    if outer == 4:
        ip = IP(src=wan.peer4, dst=fields.pop("dst", OWN[4])) / ICMP(type=3, code=4, nexthopmtu=mtu, **fields)
    else:
        ip = IPv6(src=wan.peer6, dst=fields.pop("dst", OWN[6])) / ICMPv6PacketTooBig(mtu=mtu, **fields)
    return Ether(src=wan.mac, dst=wan.port_mac) / ip / quoted


def check_path_mtu(dut, outer):
    """Send the router the path MTU to a VTEP, and check that it is in force."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    path = 900 if outer == 4 else 1300
    room = path - OVERHEAD[outer]
    probe = lambda more: lan.probe(HOST[4], size=room + more, flags="DF")  # noqa: E731
    sent, _ = encapsulated(dut, probe(1), outer)
    other = sent.copy()
    other.src = VTEP[outer]
    wan.send(too_big(dut, other, path, outer))
    wan.send(too_big(dut, sent, path, outer, dst=wan.own(outer)))
    wan.send(too_big(dut, sent, path, outer, **{"chksum" if outer == 4 else "cksum": 0x1234}))
    dut.fence(wan)
    encapsulated(dut, probe(1), outer)
    wan.send(too_big(dut, sent, path, outer))
    error = eventually(lambda: lan.srp1(probe(1), timeout=0.2), 5, what="an ICMP error")
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, room)
    encapsulated(dut, probe(0), outer)
    # A larger path MTU does not count before the smaller one is forgotten.
    wan.send(too_big(dut, sent, path + 100, outer))
    dut.fence(wan)
    assert lan.srp1(probe(1))[ICMP].nexthopmtu == room
    wan.clear()
    lan.send(lan.probe(HOST[4], size=1480))
    at = 12 + (2 + 20 if outer == 4 else 2 + 40)
    is_vxlan = lambda d: d[at + 2 : at + 4] == PORT.to_bytes(2, "big")  # noqa: E731
    pieces = [Ether(d) for d in wan.expect_many(is_vxlan, 2, 5)]
    assert all(len(bytes(p)) <= 14 + path for p in pieces)
    # Not even 0 makes the MTU smaller than the least value.
    wan.send(too_big(dut, sent, 0, outer))
    least = (552 if outer == 4 else 1280) - OVERHEAD[outer]

    said = lambda: lan.srp1(probe(1), timeout=0.2)[ICMP].nexthopmtu  # noqa: E731
    eventually(lambda: said() == least, 5, what="the least value")


def test_the_path_mtu_that_a_router_tells_is_obeyed(own_dut):
    """X8: after an ICMP error about an outer packet, the next sender learns what fits, and a packet
    without DF is cut. An error about a packet of another host, or with a wrong checksum, is ignored."""
    dut = own_dut()
    dut.start()
    for outer in (4, 6):
        with leaf(dut, outer, more="df set" if outer == 4 else ""):
            check_path_mtu(dut, outer)


def test_time_is_up(dut):
    """A packet with TTL 1 is answered on both sides; the error to the far host goes by the VXLAN."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 4):
        error = lan.srp1(lan.probe(HOST[4], ttl=1))
        assert (error[ICMP].type, error[IP].src) == (11, lan.ip4)
        packet = back(dut, 4, ttl=1)
        wan.clear()
        wan.send(from_vtep(dut, packet))
        came = wan.expect(lambda d: token_of(packet) in d and d[:6] != bytes.fromhex(wan.port_mac.replace(":", "")), 5)
        assert came[IP].dst == VTEP[4]
        inside = VXLAN(bytes(came[UDP].payload))
        assert inside.vni == VNI and inside[Ether].dst == RMAC
        assert (inside[IP].src, inside[IP].dst) == ("10.9.0.1", HOST[4]) and inside[ICMP].type == 11


def test_changes_of_router_mac_and_vtep_are_in_the_next_packet(dut):
    """X9: neighbors and forwarding database change; routes stay. Without an entry of the database the
    gateway is the VTEP."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    other = "203.0.113.67"
    with leaf(dut, 4, entry=False):
        dut.route(f"{other}/32", wan.peer4, wan)
        ip, inside = encapsulated(dut, lan.probe(HOST[4]))
        assert (ip.dst, inside.dst) == (VTEP[4], RMAC)
        assert f"behind the VTEP {VTEP[4]}" in dut.fpmctl("show", "neighbors").stdout
        mac = "02:00:5e:00:53:77"
        dut.ip(f"neigh replace {VTEP[4]} lladdr {mac} dev br1 nud noarp extern_learn")
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[1].dst == mac, 5, 0.01, "router MAC")
        fdb(dut.ctl, "add", mac, other)
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].dst == other, 5, 0.01, "VTEP")
        fdb(dut.ctl, "replace", mac, VTEP[4])
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].dst == VTEP[4], 5, 0.01, "VTEP")
        fdb(dut.ctl, "replace", mac, other)
        fdb(dut.ctl, "del", mac, other)
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].dst == VTEP[4], 5, 0.01, "VTEP")
        # The address of the bridge is the source of frames, and the address that received frames need.
        dut.ip(
            "link set br1 address 02:00:5e:00:53:55",  # it deletes the neighbors
            f"neigh replace {VTEP[4]} lladdr {RMAC} dev br1 nud noarp extern_learn",
        )
        eventually(
            lambda: encapsulated(dut, lan.probe(HOST[4]))[1].src == "02:00:5e:00:53:55", 5, 0.01
        )
        dut.forwarded(wan, from_vtep(dut, back(dut, 4), dst_mac="02:00:5e:00:53:55"), lan)


def test_frames_to_a_former_address_of_the_bridge_are_dropped(dut):
    """X4: only the present address counts. A bridge whose address was not set takes that of its port,
    and follows it."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 4):
        for change in ("link set vx1 address 02:00:5e:00:53:61", "link set br1 address 02:00:5e:00:53:62"):
            before = netns_mac(dut)
            dut.forwarded(wan, from_vtep(dut, back(dut, 4), dst_mac=before), lan)
            dut.ip(change)
            assert netns_mac(dut) == change.split()[-1]
            eventually(lambda: row(dut)["mac"] == change.split()[-1], 5, 0.01, "router MAC")
            assert dut.not_forwarded(wan, from_vtep(dut, back(dut, 4), dst_mac=before)) == {"l2_foreign": 1}
            dut.forwarded(wan, from_vtep(dut, back(dut, 4)), lan)


def vteps(dut, lan, outs, dst=HOST[4], count=1500, outer=4):
    """Send flows. Return (counts by VTEP, counts by wire, number of source ports)."""
    probes = lan.flow_frames(dst, [(1024 + n * 7, 2000 + n % 13) for n in range(count)])
    found = spread(dut, lan, outs, probes)
    by_vtep, ports = Counter(), set()
    for wire in outs:
        for data in wire.got():
            if token_of(data) in found:
                ip = Ether(data)[IP]
                by_vtep[ip.dst] += 1
                ports.add(ip[UDP].sport)
    return by_vtep, Counter(found.values()), len(ports)


def test_flows_take_all_spines_and_all_vteps(dut):
    """X2, X10: flows of a route spread over two VTEPs by weight, and packets to each VTEP spread over
    two spines. A flow keeps its VTEP, its spine and its source port."""
    lan, wan, alt = (dut.wires[w] for w in ("lan", "wan", "alt"))
    other = "203.0.113.67"
    with leaf(dut, 4):
        neighbors(dut.ctl, other, "02:00:5e:00:53:98")
        spines = dut.zebra.group([dut.zebra.hop(w.peer4, w) for w in (wan, alt)])
        for vtep in (VTEP[4], other):
            dut.route(f"{vtep}/32", nhid=spines)
        both = [type_5(dut, vtep, 4) for vtep in (VTEP[4], other)]
        dut.route(NET[4], nhid=dut.zebra.group(dict(zip(both, (3, 1)))))
        eventually(lambda: dut.all_alive(NET[4]), 5, 0.01, "both VTEPs")
        by_vtep, by_spine, ports = vteps(dut, lan, [wan, alt])
        assert abs(by_vtep[VTEP[4]] / 1500 - 0.75) < 0.06, by_vtep
        assert abs(by_spine["wan"] / 1500 - 0.5) < 0.06, by_spine
        assert ports > 1000, ports
        seen = set()
        for _ in range(20):
            probe = lan.probe(HOST[4], sport=77)
            spread(dut, lan, [wan, alt], [bytes(probe)])
            (data,) = [d for w in (wan, alt) for d in w.got(token_of(probe))]
            frame = Ether(data)
            seen.add((frame.src, frame[IP].dst, frame[UDP].sport))
        assert len(seen) == 1


def test_from_one_vxlan_into_another(dut):
    """X11: the packet is decapsulated and encapsulated once, and its TTL falls once."""
    wan = dut.wires["wan"]
    other = "203.0.113.67"
    with leaf(dut, 4):
        make(dut.ctl, OWN[4], vni=VNI + 1, n="2")
        is_ours(dut, "br2")
        neighbors(dut.ctl, other, "02:00:5e:00:53:98", n="2")
        dut.route(f"{other}/32", wan.peer4, wan)
        dut.route("203.0.113.128/25", nhid=type_5(dut, other, 4, n="2"))
        packet = IP(src=HOST[4], dst="203.0.113.200", ttl=40) / UDP() / Raw(token())
        wan.clear()
        wan.send(from_vtep(dut, packet))
        mac = bytes.fromhex(wan.mac.replace(":", ""))
        came = wan.expect(lambda d: token_of(packet) in d and d[:6] == mac, 5)
        inside = VXLAN(bytes(came[UDP].payload))
        assert (came[IP].dst, inside.vni, inside[IP].ttl) == (other, VNI + 1, 39)
        assert inside[Ether].src == netns_mac(dut, "br2")


def doctor(dut):
    """Return {tunnel: row} of the check."""
    return {r["subject"]: r for r in json.loads(dut.fpmctl("--json", "doctor", "tunnels").stdout)}


def test_what_stays_with_the_kernel(dut):
    """A bridge with further ports, devices that learn, and so on: the log, doctor and show interfaces
    say why. When the reason goes, the forwarders take over."""
    wan = dut.wires["wan"]
    for more, lines, reason in (
        ("", ["link add x1 type veth peer name x2", "link set x1 master br1"], "ports"),
        ("learning", [], "learning"),
        ("gbp", [], "gbp"),
        ("", ["link set vx1 nomaster"], "no-bridge"),
    ):
        dut.log_from = os.path.getsize(dut.log_file)
        make(dut.ctl, wan.ip4, more=more)
        try:
            if not more:
                is_ours(dut)
            if lines:
                dut.ip(*lines)
            eventually(
                lambda r=reason: (row(dut, "vx1") or {}).get("by_kernel") == r
                and "rx_packets" not in row(dut),
                5,
                0.05,
                reason,
            )
            assert f"served by the kernel: {reason}" in dut.fpmctl("show", "interfaces", "vx1").stdout
            assert doctor(dut)["vx1"]["status"] == "warn"
            said = f"neigh: tunnel left to the kernel dev=vx1 kind=vxlan reason={reason}"
            assert (said in dut.log()) == (reason != "no-bridge")
            if reason == "ports":
                dut.ip("link del x1")
                is_ours(dut)
                assert row(dut, "vx1")["by_kernel"] is None
                assert doctor(dut)[""]["status"] == "ok"
        finally:
            unmake(dut)


def test_the_kernel_forwards_what_it_serves(dut):
    """While the bridge has a further port, the kernel forwards packets to the route and from the VTEP."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 4), underlay(dut):
        dut.ip(
            "link add x1 type veth peer name x2",
            "link set x1 master br1",
            f"route add {NET[4]} via {VTEP[4]} dev br1 onlink",
        )
        eventually(lambda: "rx_packets" not in row(dut), 5, 0.01, "left to the kernel")
        neighbors(dut.ctl, VTEP[4], RMAC)  # again: they are gone if the bridge has taken the MAC of x1
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4])), 10, 0.05, "through the kernel")
        before = dut.counter("punt", "kernel_route")
        ip, inside = encapsulated(dut, lan.probe(HOST[4], ttl=40))
        assert (ip.dst, inside.dst, inside[IP].ttl) == (VTEP[4], RMAC, 39)
        assert dut.counter("punt", "kernel_route") == before + 1
        dut.forwarded(wan, from_vtep(dut, back(dut, 4)), lan)


def test_the_forwarding_database_is_read_when_forwarders_take_over(dut):
    """Entries of devices that the kernel serves are not kept. They count when the reason has gone."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    other = "203.0.113.67"
    with leaf(dut, 4, entry=False):
        dut.route(f"{other}/32", wan.peer4, wan)
        dut.ip("link add x1 type veth peer name x2", "link set x1 master br1")
        eventually(lambda: "rx_packets" not in row(dut), 5, 0.01, "left to the kernel")
        fdb(dut.ctl, "replace", RMAC, other)
        dut.ip("link del x1")
        is_ours(dut)
        neighbors(dut.ctl, VTEP[4], RMAC, entry=False)
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].dst == other, 5, 0.02, "VTEP")


def test_each_vni_has_a_forwarding_database_of_its_own(dut):
    """The same router MAC is behind another VTEP in each of two VNIs. The database of one device is read
    again when forwarders take over the device again. The database of the other device does not
    change."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    behind = {HOST[4]: ("203.0.113.67", VNI), "203.0.113.200": ("203.0.113.68", VNI + 1)}

    def sent(host):
        """Return the VTEP and the VNI of a packet to a host."""
        came = dut.forwarded(lan, lan.probe(host), wan)
        return came[IP].dst, VXLAN(bytes(came[UDP].payload)).vni

    def right():
        return {host: sent(host) for host in behind} == behind

    with leaf(dut, 4, entry=False):
        make(dut.ctl, OWN[4], vni=VNI + 1, n="2")
        is_ours(dut, "br2")
        neighbors(dut.ctl, VTEP[4], RMAC, n="2", entry=False)
        dut.route("203.0.113.128/25", nhid=type_5(dut, VTEP[4], 4, n="2"))
        for n, (vtep, _) in zip("12", behind.values()):
            dut.route(f"{vtep}/32", wan.peer4, wan)
            fdb(dut.ctl, "replace", RMAC, vtep, n)
        eventually(right, 5, 0.02, "a VTEP for each VNI")
        dut.ip("link add x1 type veth peer name x2", "link set x1 master br2")
        eventually(lambda: "rx_packets" not in row(dut, "br2"), 5, 0.01, "left to the kernel")
        behind["203.0.113.200"] = ("203.0.113.69", VNI + 1)
        dut.route("203.0.113.69/32", wan.peer4, wan)
        fdb(dut.ctl, "replace", RMAC, "203.0.113.69", "2")
        assert sent(HOST[4]) == behind[HOST[4]]
        dut.ip("link del x1")
        is_ours(dut, "br2")
        neighbors(dut.ctl, VTEP[4], RMAC, n="2", entry=False)
        eventually(right, 5, 0.02, "the database is read again")


def explained(dut, wire, packet):
    """Return the row that explains a frame on a wire."""
    frame = bytes(packet)
    want = {"port": wire.tap, "frame": frame.hex(), "frame_bytes": len(frame)}
    (row_of_it,) = dut.control.request({"explain": want})
    api.validate([row_of_it], api.rows_schema("GET", "/explain")[1]["schema"])
    return row_of_it


def test_explain_and_trace_follow_packets_through_the_vxlan(dut):
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 4):
        into = explained(dut, lan, lan.probe(HOST[4]))
        assert (into["verdict"], into["path"], into["tunnel"], into["out"]) == ("forwarded", "tunnel", "br1", "wan0")
        assert (into["mtu"], into["via"]) == (row(dut)["mtu"], VTEP[4])
        out = explained(dut, wan, from_vtep(dut, back(dut, 4)))
        assert (out["verdict"], out["port"], out["outer_port"], out["out"]) == ("forwarded", "br1", "wan0", "lan0")
        said = dut.fpmctl("explain", "port", "lan0", "src", lan.peer4, "dst", HOST[4]).stdout
        assert "into br1" in said and "FORWARDED by wan0" in said, said
        said = dut.fpmctl("show", "interfaces", "br1").stdout
        assert f"over VXLAN: VNI {VNI} of vx1, router MAC {netns_mac(dut)}" in said
        with Watching(dut, trace={"proto": 17}) as watch:
            dut.forwarded(wan, from_vtep(dut, back(dut, 4)), lan)
            seen = watch.take(2)
        assert [(r["port"], r["verdict"]) for r in seen] == [("wan0", "decapsulated"), ("br1", "forwarded")]
        assert [r.get("tunnel") for r in seen] == ["br1", None]


def test_the_route_to_the_vtep_may_push_labels(dut, outer):
    """The outer packet gets the labels of its route (EVPN over a core of MPLS). They count in the MTU."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        hop = dut.zebra.hop(wan.peer(outer), wan, labels=[300, 301])
        dut.route(f"{VTEP[outer]}/{32 if outer == 4 else 128}", nhid=hop)
        dut.in_force(f"{VTEP[outer]}/{32 if outer == 4 else 128}", hop)
        sent = row(dut)["tx_packets"]
        for each in (4, 6):
            came = dut.forwarded(lan, lan.probe(HOST[each]), wan)
            assert [(label, s) for label, _, _, s in entries_of(came)] == [(300, 0), (301, 1)]
            ip = came[IPv6 if outer == 6 else IP]
            assert {ttl for _, ttl, _, _ in entries_of(came)} == {ip.hlim if outer == 6 else ip.ttl}
            assert (ip.dst, ip[UDP].dport) == (VTEP[outer], PORT)
            assert VXLAN(bytes(ip[UDP].payload)).vni == VNI
        assert row(dut)["tx_packets"] == sent + 2
        most = 1500 - 8 - OVERHEAD[outer]
        reply = lan.srp1(lan.probe(HOST[4], size=most + 1, flags="DF"))
        assert (reply[ICMP].type, reply[ICMP].code, reply[ICMP].nexthopmtu) == (3, 4, most)
        into = explained(dut, lan, lan.probe(HOST[4]))
        assert (into["verdict"], into["outer_push"], into["via"]) == ("forwarded", [300, 301], VTEP[outer])


def test_a_capture_has_the_outer_packet_and_the_packet_inside(dut, outer):
    """A filter is compared with the outer header of a frame that leaves, and with both headers of a frame
    that came."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, outer):
        probe, came = lan.probe(HOST[4]), from_vtep(dut, back(dut, 4), outer)
        (left,) = capture(dut, lan, [probe], 1, dst=VTEP[outer])
        sent = wan.expect_raw(token_of(probe))
        assert left[:4] == (wan.tap, "out", sent, len(sent))
        (whole,) = capture(dut, wan, [came], 1, dst=OWN[outer])
        assert whole[:3] == (wan.tap, "in", bytes(came))
        inside, left = capture(dut, wan, [came], 2, src=HOST[4])
        assert (inside[:2], left[:2]) == ((wan.tap, "in"), (lan.tap, "out"))
        assert Ether(inside[2])[IP].ttl == Ether(left[2])[IP].ttl + 1 == came[VXLAN][IP].ttl


def test_packets_wait_for_the_spine(dut):
    """The neighbor of the outer packet is not known yet: packets wait for it, and leave in order."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with leaf(dut, 4):
        dut.ip(f"neigh del {wan.peer4} dev wan0")
        eventually(lambda: (dut.neighbor_row(wan.peer4, wan) or {}).get("mac") is None, 5, 0.01)
        probes = [lan.probe(HOST[4]) for _ in range(3)]
        lan.send(*probes)
        wan.answer(wan.peer4)
        try:
            for probe in probes:
                came = wan.expect(token_of(probe), 5)
                assert VXLAN(bytes(came[UDP].payload))[IP].ttl == 63
            sent = wan.got()
            order = [sent.index(next(d for d in sent if token_of(p) in d)) for p in probes]
            assert order == sorted(order)
        finally:
            wan.silence(wan.peer4)


def test_a_host_of_the_bridges_subnet_is_resolved_through_the_vxlan(dut):
    """A connected route of the bridge: the kernel floods ARP; the answer comes from the VTEP; packets
    that waited go there, because its forwarding database has the MAC."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    host, mac = "10.9.0.77", "02:00:5e:00:53:44"
    with leaf(dut, 4), underlay(dut):
        fdb(dut.ctl, "append", "00:00:00:00:00:00", VTEP[4])
        fdb(dut.ctl, "add", mac, VTEP[4])
        wan.clear()
        probe = lan.probe(host)
        lan.send(probe)
        asked = wan.expect(lambda d: b"\x08\x06\x00\x01\x08\x00" in d and d[12:14] == b"\x08\x00", 5)
        question = VXLAN(bytes(asked[UDP].payload))[ARP]
        assert question.pdst == host
        answer = ARP(op=2, hwsrc=mac, psrc=host, hwdst=question.hwsrc, pdst=question.psrc)
        wan.send(from_vtep(dut, answer, src_mac=mac))
        came = wan.expect(token_of(probe), 5)
        inside = VXLAN(bytes(came[UDP].payload))
        assert (came[IP].dst, inside[Ether].dst, inside[IP].dst) == (VTEP[4], mac, host)
        base = is_ours(dut)["tx_packets"]
        ip, inside = encapsulated(dut, lan.probe(host))
        assert (inside.dst, is_ours(dut)["tx_packets"]) == (mac, base + 1)


# --- a Linux kernel as the other router -----------------------------------------------------


@pytest.fixture
def linux(dut):
    """Let the kernel of the far namespace be the other router, with a host behind it."""
    far, wan = dut.far, dut.wires["wan"]
    made = [
        f"addr add {wan.peer4}/26 dev wan",
        f"-6 addr add {wan.peer6}/64 dev wan nodad",
        f"addr add {HOST[4]}/32 dev lo",
        f"-6 addr add {HOST[6]}/128 dev lo nodad",
        f"addr add {VTEP[4]}/32 dev lo",
        f"-6 addr add {VTEP[6]}/128 dev lo nodad",
    ]
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 0, "net.ipv6.conf.lo.disable_ipv6": 0,
                       "net.ipv6.conf.wan.accept_dad": 0, "net.ipv4.conf.all.rp_filter": 0})  # fmt: skip
    netns.ip_batch(["link set lo up", *made], far)
    # By default routes: Linux refuses an IPv6 gateway with `onlink` to which a longer route leads.
    defaults = [f"route add default via {wan.ip4} dev wan", f"-6 route add default via {wan.ip6} dev wan"]
    netns.ip_batch(defaults, far)
    yield dut
    unmake(dut, far)
    lines = [line.replace("addr add", "addr del").removesuffix(" nodad") for line in made]
    netns.ip_batch(lines, far)
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 1})
    dut.ready()


@pytest.mark.parametrize("csum", [False, True], ids=["zero", "checksums"])
def test_a_linux_kernel_is_the_other_router(linux, outer, csum):
    """Echo requests go through the VXLAN to the far kernel, and its answers come back; forwarders do
    all of it. The far kernel also pings the bridge, which the kernel answers."""
    dut = linux
    lan, far = dut.wires["lan"], dut.far
    more = "udpcsum noudp6zerocsumtx noudp6zerocsumrx" if csum else ""
    make(far, VTEP[outer], more=more, numbers=2)
    with leaf(dut, outer, more=more), underlay(dut):
        mine = OWN[outer]
        fdb(far, "append", "00:00:00:00:00:00", mine)
        fdb(dut.ctl, "append", "00:00:00:00:00:00", VTEP[outer])
        rmac = json.loads(netns.command(["ip", "-n", far, "-j", "link", "show", "br1"]))[0]["address"]
        neighbors(dut.ctl, VTEP[outer], rmac)
        known(dut, VTEP[outer], rmac)
        neighbors(far, mine, netns_mac(dut))
        net6 = f"{lan.ip6.rpartition('::')[0]}::/64"
        flag = "inet6 " if outer == 6 else ""
        netns.ip_batch([f"route add {lan.host4} via {flag}{mine} dev br1 onlink"], far)
        netns.ip_batch([f"-6 route add {net6} via {gateway(mine, 6)} dev br1 onlink"], far)
        eventually(lambda: encapsulated(dut, lan.probe(HOST[4]), outer)[1].dst == rmac, 5, 0.02)
        assert lan.srp1(echo(lan, 4), 5)[ICMP].type == 0  # the ICMP errors about probes come before it
        drops, forwarded = dut.counters(), by_forwarders(dut)
        for each in (4, 6):
            for size in (0, 1300):
                probe = echo(lan, each, size)
                answer = lan.srp1(probe, 5)
                assert (answer[ICMP].type == 0) if each == 4 else ICMPv6EchoReply in answer
                assert (answer[IP].ttl if each == 4 else answer[IPv6].hlim) == 63
        assert [a - b for a, b in zip(by_forwarders(dut), forwarded)] == [8, 0]
        assert dut.drops(drops) == {}
        for each in (4, 6):
            to = INSIDE[each].format(1).split("/")[0]
            netns.run(far, ["ping", "-c", "2", "-i", "0.2", "-W", "5", to])


def echo(wire, family, size=0, **fields):
    """Return an echo request with a token, from the peer of a wire to the host behind the VXLAN."""
    load = token()
    load += bytes(max(0, size - len(load)))
    head = Ether(src=wire.mac, dst=wire.port_mac)
    if family == 4:
        return head / IP(src=wire.peer4, dst=HOST[4], **fields) / ICMP(id=1, seq=1) / Raw(load)
    return head / IPv6(src=wire.peer6, dst=HOST[6], **fields) / ICMPv6EchoRequest() / Raw(load)


def by_forwarders(dut):
    """Return how many packets the forwarders have sent, and how many the kernel got to route."""
    return sum(v for k, v in dut.counters("total").items() if k.startswith("forwarded")), dut.counter(
        "punt", "kernel_route"
    )


def test_a_daemon_that_starts_finds_the_vxlan(own_dut):
    """Links, neighbors and forwarding databases are there at the start."""
    dut = own_dut()
    dut.start()
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    netns.ip_batch([*own_addresses("add", 4)], dut.ctl)
    make(dut.ctl, OWN[4], numbers=1)
    neighbors(dut.ctl, VTEP[4], RMAC, entry=False)
    other = "203.0.113.67"
    fdb(dut.ctl, "replace", RMAC, other)
    dut.stop()
    dut.start()
    is_ours(dut)
    dut.route(f"{other}/32", wan.peer4, wan)
    dut.route(NET[4], nhid=type_5(dut, VTEP[4], 4))

    def right():
        ip, inside = encapsulated(dut, lan.probe(HOST[4]))
        return (ip.dst, inside.dst) == (other, RMAC)

    eventually(right, 10, 0.02, "the neighbors and the forwarding database are read")
    dut.forwarded(wan, from_vtep(dut, back(dut, 4)), lan)


def test_fragments_of_outer_packets_are_reassembled(dut, outer):
    """X8: the kernel gets the fragments of an outer packet, reassembles them, and forwards the inner packet,
    whichever fragment comes first. The TTL falls once."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    head, proto = (IP(src=VTEP[4], dst=OWN[4], proto=17, id=77), 17) if outer == 4 else (IPv6(src=VTEP[6], dst=OWN[6]), 17)
    with leaf(dut, outer), underlay(dut):
        for turned in (False, True):
            packet = back(dut, 4, ttl=40)
            body = bytes(from_vtep(dut, packet, outer)[UDP])
            pieces = []
            for at, part in ((0, body[:40]), (40, body[40:])):
                if outer == 4:
                    one = head.copy()
                    one.flags, one.frag = ("MF" if at == 0 else 0), at // 8
                else:
                    one = head / IPv6ExtHdrFragment(nh=proto, id=77 + turned, m=int(at == 0), offset=at // 8)
                pieces.append(Ether(src=wan.mac, dst=wan.port_mac) / one / Raw(part))
            before = by_forwarders(dut)[0]
            wan.send(*(pieces[::-1] if turned else pieces))
            came = lan.expect(token_of(packet), 10)
            assert (came[IP].dst, came[IP].ttl, bytes(came[UDP])) == (lan.peer4, 39, bytes(packet[UDP])), turned
            assert by_forwarders(dut)[0] == before
