# SPDX-License-Identifier: BSD-3-Clause
"""Punt classes: the packets of each class, the neighbors that count as peers, and the
policers. test_flood.py has the floods."""

import socket

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from test_punt import frames_for_us
from wire import token, token_of

# The class of each packet when it comes from a stranger. The peer of lan is a static neighbor,
# and no program of the router has a session with it. (An earlier test may have had one by its
# MAC; then the class is arp or nd.)
CLASSES = {
    "BGP": "bgp-new", "BGP answer": "bgp-new", "BGP over IPv6": "bgp-new",
    "BFD": "control-new", "OSPF unicast": "control-new", "echo": "icmp", "UDP": "local",
    "UDP over IPv6": "local", "ARP request": "arp arp-new", "ARP reply": "arp arp-new",
    "neighbor solicitation": "nd nd-new", "OSPF hello": "igp", "OSPFv3 hello": "igp",
    "RIP": "igp", "IGMP": "membership", "VRRP": "signalling", "DHCP discover": "dhcp",
    "mDNS": "group", "a broadcast of nobody's": "group", "MLD": "membership",
    "LLDP": "l2", "IS-IS": "igp", "IS-IS with EtherType 0x8870": "igp", "LACP": "l2", "unknown EtherType": "group",
    "link-local unicast": "local", "LDP session": "control-new", "LDP hello": "signalling",
    "PIM hello": "signalling", "PIM hello over IPv6": "signalling", "EIGRP": "igp",
    "RSVP with router alert": "control-new", "VRRP over IPv6": "signalling",
    "BFD over IPv6": "control-new", "BFD multihop": "control-new", "BFD echo": "control-new",
    "DHCP answer": "dhcp", "DHCPv6 solicit": "dhcp", "RIPng": "igp",
    "echo over IPv6": "icmp", "first fragment": "fragment", "later fragment": "fragment",
    "first fragment of BGP": "fragment", "first fragment over IPv6": "fragment",
    "later fragment over IPv6": "fragment", "fragment of an OSPF update": "control-new",
    "destination options for us": "local", "GRE": "local", "802.1X": "l2",
    "multicast beyond the link": "group", "multicast beyond the link over IPv6": "group",
    "broadcast of our subnet": "group", "spanning tree": "l2", "VLAN 0": "local",
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_each_kind_of_packet_is_counted_in_its_class(dut, lan, name):
    """RFC 6192, 3: packets for the router itself are divided into classes, and each class has
    its own policer."""
    frame = frames_for_us(lan)[name][0]
    before = passed(dut)

    lan.send(frame)
    # Use no fence, because it is a packet of a class itself.
    dut.taps["lan"].expect(token_of(frame))

    now = passed(dut)
    assert {c: now[c] - before[c] for c in now if now[c] != before[c]} in [
        {c: 1} for c in CLASSES[name].split()
    ]


def passed(dut):
    """Return the packets that passed the policers, by class."""
    return {row["class"]: row["passed"] for row in dut.control.ask("punt")}


def moves(dut, lan, frame):
    """Return the class that counts one frame as passed (fences are of class group)."""
    dut.fence(lan)
    before = passed(dut)
    lan.send(frame)
    dut.fence(lan)
    now = passed(dut)
    return [c for c in now if now[c] != before[c] and c != "group"]


@pytest.mark.parametrize("family", [4, 6])
def test_a_neighbor_of_ours_asks_from_protected_room(dut, lan, family):
    """RFC 826, RFC 4861, 7.2.4: requests of a neighbor that the kernel has confirmed have
    protected room. An entry that exists only because the neighbor has asked is not enough."""
    host = "192.0.2.50" if family == 4 else "2001:db8:4::50"
    mac, stranger = "02:00:00:00:99:01", "02:00:00:00:99:03"

    def question(src, who):
        """Return a request for an address that no host has, so that no answer disturbs."""
        if family == 4:
            arp = ARP(op=1, hwsrc=src, psrc=who, pdst="192.0.2.61")
            return Ether(src=src, dst="ff:ff:ff:ff:ff:ff") / arp
        ip = IPv6(src=who, dst="ff02::1:ff00:99", hlim=255)
        ns = ICMPv6ND_NS(tgt="2001:db8:4::99")
        return Ether(src=src, dst="33:33:ff:00:00:99") / ip / ns

    new, known = ("arp-new", "arp") if family == 4 else ("nd-new", "nd")
    # The kernel confirms the neighbor after a second, not after five.
    netns.sysctl(dut.ctl, {f"net.ipv{family}.neigh.{lan.tap}.delay_first_probe_time": 1})
    dut.ip(f"neigh replace {host} lladdr {mac} dev {lan.tap} nud stale")
    assert moves(dut, lan, question(mac, host)) == [new]

    lan.answer(host, mac)
    mark = token()
    with netns.open_socket(dut.ctl, socket.AF_INET if family == 4 else socket.AF_INET6,
                           socket.SOCK_DGRAM) as sock:  # fmt: skip
        sock.sendto(mark, (host, 9))
        eventually(lambda: lan.solicitations(host), 8, what="the kernel makes sure")

    assert moves(dut, lan, question(mac, host)) == [known]
    assert moves(dut, lan, question(stranger, "192.0.2.52" if family == 4 else
                                    "2001:db8:4::52")) == [new]  # fmt: skip


def test_a_bgp_peer_asks_from_protected_room(dut, lan):
    """RFC 826: requests of a BGP peer have protected room. The session proves its MAC, whatever
    the kernel's table has."""
    eth = Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff")
    arp = eth / ARP(op=1, hwsrc=lan.mac, psrc=lan.peer4, pdst="192.0.2.61")
    ours = Ether(src=lan.port_mac, dst=lan.mac) / IP(src=lan.ip4, dst=lan.peer4)
    mark = token()

    dut.taps["lan"].send(ours / TCP(sport=179, dport=40009, flags="PA") / Raw(mark))
    lan.expect(mark)

    assert moves(dut, lan, arp) == ["arp"]


@pytest.mark.parametrize("family", [4, 6])
def test_the_answer_to_our_own_question_has_protected_room(dut, lan, family):
    """RFC 826, RFC 4861, 7.2: the answer of a neighbor that the kernel asks for has protected
    room while strangers flood."""
    host, name = ("192.0.2.51", "arp") if family == 4 else ("2001:db8:4::51", "nd")
    before = passed(dut)

    lan.answer(host, "02:00:00:00:99:02")
    lan.send(lan.probe(host))

    eventually(lambda: passed(dut)[name] > before[name], 3, 0.02, f"an answer in {name}")


@pytest.mark.parametrize("family", [4, 6])
def test_outer_packets_of_a_tunnel_of_the_kernel_have_their_class(dut, lan, family):
    """A tunnel that ends in the kernel may have as many packets as a route through the kernel. So its
    outer packets do not share the policer of unknown packets for the router."""
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    ip = IP(src=lan.peer4, dst=lan.ip4) if family == 4 else IPv6(src=lan.peer6, dst=lan.ip6)
    outer = eth / ip / UDP(sport=50000, dport=4794) / Raw(b"\x08" + bytes(7))
    other = eth / ip / UDP(sport=4794, dport=50000) / Raw(bytes(8))
    assert moves(dut, lan, outer) == ["local"]

    dut.ip("link add tunnel0 type vxlan external dstport 4794")  # forwarders do not serve it
    try:
        assert moves(dut, lan, outer) == ["local"], "a device that is down receives nothing"
        dut.ip("link set tunnel0 up")
        eventually(lambda: moves(dut, lan, outer) == ["kernel-tunnel"], 10, 0.05, "its class")
        assert moves(dut, lan, other) == ["local"]
    finally:
        dut.ip("link del tunnel0")
    eventually(lambda: moves(dut, lan, outer) == ["local"], 10, 0.05, "no tunnel")


def test_bfd_is_classified_by_its_peer_and_its_ttl(dut, lan):
    """RFC 5881, 5: a TTL of 255 proves that the packet passed no router. RFC 5883 (multihop)
    has no such proof: BFD packets are recognized by the peer to which the router sends."""
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    bfd = lambda ttl, port: (  # noqa: E731
        eth / IP(src=lan.peer4, dst=lan.ip4, ttl=ttl) / UDP(sport=49152, dport=port)
    )
    ours = Ether(src=lan.port_mac, dst=lan.mac) / IP(src=lan.ip4, dst=lan.peer4, ttl=255)
    mark = token()

    dut.taps["lan"].send(ours / UDP(sport=49153, dport=3784) / Raw(mark))
    lan.expect(mark)

    assert moves(dut, lan, bfd(255, 3784)) == ["bfd"]
    assert moves(dut, lan, bfd(254, 3784)) == ["control-new"]
    assert moves(dut, lan, bfd(64, 4784)) == ["bfd"]


def test_a_bgp_session_is_known_by_what_the_router_says_in_it(dut, lan):
    """A connection is a session when the router has sent data on it. A SYN is never part of a
    session, and a RST ends it (RFC 9293, 3.10.7)."""
    eth = Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=lan.ip4)
    ours = Ether(src=lan.port_mac, dst=lan.mac) / IP(src=lan.ip4, dst=lan.peer4)
    theirs = lambda flags, port=40001: (  # noqa: E731
        eth / TCP(sport=port, dport=179, flags=flags, seq=5)
    )

    def say(flags):
        mark = token()
        dut.taps["lan"].send(ours / TCP(sport=179, dport=40001, flags=flags) / Raw(mark))
        lan.expect(mark)

    say("SA")
    assert moves(dut, lan, theirs("R")) == ["bgp-new"]
    say("PA")
    assert moves(dut, lan, theirs("R")) == ["bgp"]
    assert moves(dut, lan, theirs("S")) == ["bgp-new"]
    assert moves(dut, lan, theirs("R", 40002)) == ["bgp-new"]
    say("RA")
    assert moves(dut, lan, theirs("R")) == ["bgp-new"]


@pytest.mark.smoke
def test_what_is_over_the_rate_is_dropped_and_counted_exactly(dut, lan):
    """A policer passes as many packets as its burst allows. The others are counted as policed
    by rate or by share."""
    flood = Ether(src=lan.mac, dst=lan.port_mac, type=0x9999) / Raw(token())
    done = dut.fpmctl("set", "policer", "group", "rate", "1", "burst", "100")
    assert done.returncode == 0, done.stderr
    try:
        one = lambda: next(  # noqa: E731
            r for r in dut.control.ask("punt") if r["class"] == "group"
        )
        before, drops = one(), dut.counters()
        lan.send(*[bytes(flood)] * 500)
        eventually(lambda: sum(one()[k] - before[k] for k in ("passed", "policed")) >= 500)
        now = one()
        assert 99 <= now["passed"] - before["passed"] <= 102
        assert now["over_share"] == before["over_share"]
        dropped = {"policed": now["policed"] - before["policed"]}
        eventually(lambda: dut.drops(drops) == dropped, 5, 0.01, "the drop reason is counted, too")
        dut.fpmctl("set", "policer", "group", "rate", "unlimited", "source-rate", "0")
        lan.send(*[bytes(flood)] * 50)
        eventually(lambda: one()["over_share"] - now["over_share"] == 50)
    finally:
        dut.fpmctl("set", "policer", "group", "rate", "1000", "burst", "1000",
                   "source-rate", "500")  # fmt: skip
