# SPDX-License-Identifier: BSD-3-Clause
"""Packets for the kernel are on the port's TAP with the octets that they had on the wire.
Packets that the kernel sends leave the port unchanged."""

import functools
import ipaddress

import pytest
from scapy.contrib.ospf import OSPF_Hdr, OSPF_Hello
from scapy.layers.inet import (
    ICMP,
    IP,
    TCP,
    UDP,
    IPOption_LSRR,
    IPOption_Router_Alert,
    fragment,
)
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6MLReport2,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RS,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
    RouterAlert,
)
from scapy.layers.l2 import ARP, Dot1Q, Dot3, Ether, LLC
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from wire import token, token_of

LLDP = bytes.fromhex("0180c200000e")
ISIS = "01:80:c2:00:00:14"


@functools.cache
def frames_for_us(lan):
    """Return {name: (frame, punt reason)}. Each frame holds a token. scapy takes 0.1 s for them, so
    they are made once."""
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    ip, ip6 = IP(src=lan.peer4, dst=lan.ip4), IPv6(src=lan.peer6, dst=lan.ip6)
    group = Ether(src=lan.mac, dst="01:00:5e:00:00:05")
    group6 = Ether(src=lan.mac, dst="33:33:00:00:00:05")
    all6 = Ether(src=lan.mac, dst="33:33:ff:00:00:01")
    to = lambda dst: IP(src=lan.peer4, dst=dst, ttl=1)  # noqa: E731
    subnet = str(ipaddress.ip_network(lan.ip6 + "/64", strict=False).network_address)
    arp = ARP(op=1, hwsrc=lan.mac, psrc=lan.peer4, pdst=lan.ip4)
    ns = IPv6(src=lan.peer6, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=lan.ip6)
    return {
        "BGP": (eth / ip / TCP(dport=179, flags="A") / Raw(token()), "local_control"),
        "BGP answer": (
            eth / ip / TCP(sport=179, flags="A") / Raw(token()),
            "local_control",
        ),
        "BGP over IPv6": (
            eth / ip6 / TCP(dport=179, flags="A") / Raw(token()),
            "local_control",
        ),
        "BFD": (eth / ip / UDP(sport=49152, dport=3784) / Raw(token()), "local_control"),
        "OSPF unicast": (
            eth / ip / OSPF_Hdr() / OSPF_Hello() / Raw(token()),
            "local_control",
        ),
        "echo": (eth / ip / ICMP(type=0) / Raw(token()), "local"),
        "UDP": (eth / ip / UDP(dport=9, chksum=1) / Raw(token()), "local"),
        "UDP over IPv6": (eth / ip6 / UDP(dport=9, chksum=1) / Raw(token()), "local"),
        "ttl 1": (eth / to(lan.ip4) / ICMP(type=0) / Raw(token()), "local"),
        "another port's address": (
            eth / to("192.0.2.65") / ICMP(type=0) / Raw(token()),
            "local",
        ),
        "ARP request": (
            Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff") / arp / Raw(token()),
            "l2_control",
        ),
        "ARP reply": (
            eth / ARP(op=2, psrc=lan.peer4, hwsrc=lan.mac) / Raw(token()),
            "l2_control",
        ),
        "neighbor solicitation": (all6 / ns / Raw(token()), "group_control"),
        "OSPF hello": (
            group / to("224.0.0.5") / OSPF_Hdr() / OSPF_Hello() / Raw(token()),
            "group_control",
        ),
        "OSPFv3 hello": (
            group6 / IPv6(src="fe80::2", dst="ff02::5", hlim=1, nh=89) / Raw(token()),
            "group_control",
        ),
        "RIP": (
            group / to("224.0.0.9") / UDP(dport=520, chksum=1) / Raw(token()),
            "group_control",
        ),
        "IGMP": (
            group / IP(src=lan.peer4, dst="224.0.0.22", proto=2) / Raw(token()),
            "group_control",
        ),
        "VRRP": (
            group / IP(src=lan.peer4, dst="224.0.0.18", proto=112) / Raw(token()),
            "group_control",
        ),
        "DHCP discover": (
            Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff")
            / IP(src="0.0.0.0", dst="255.255.255.255")
            / UDP(sport=68, dport=67, chksum=1)
            / Raw(token()),
            "group_control",
        ),
        "mDNS": (
            group / to("224.0.0.251") / UDP(dport=5353, chksum=1) / Raw(token()),
            "group",
        ),
        "a broadcast of nobody's": (
            Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff")
            / IP(src=lan.peer4, dst="255.255.255.255")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "group",
        ),
        "MLD": (
            group6
            / IPv6(src="fe80::2", dst="ff02::16", hlim=1)
            / IPv6ExtHdrHopByHop(options=[RouterAlert()])
            / ICMPv6MLReport2()
            / Raw(token()),
            "group_control",
        ),
        "subnet-router anycast": (
            eth / IPv6(src=lan.peer6, dst=subnet) / UDP(dport=9, chksum=1) / Raw(token()),
            "local",
        ),
        "BFD over IPv6": (
            eth / ip6 / UDP(sport=49152, dport=3784) / Raw(token()),
            "local_control",
        ),
        "BFD multihop": (
            eth / ip / UDP(sport=49152, dport=4784) / Raw(token()),
            "local_control",
        ),
        "BFD echo": (
            eth / ip / UDP(sport=3785, dport=3785) / Raw(token()),
            "local_control",
        ),
        "LDP session": (
            eth / ip / TCP(sport=646, dport=40000, flags="A") / Raw(token()),
            "local_control",
        ),
        "LDP hello": (
            Ether(src=lan.mac, dst="01:00:5e:00:00:02")
            / to("224.0.0.2")
            / UDP(sport=646, dport=646, chksum=1)
            / Raw(token()),
            "group_control",
        ),
        "PIM hello": (
            group / IP(src=lan.peer4, dst="224.0.0.13", proto=103, ttl=1) / Raw(token()),
            "group_control",
        ),
        "PIM hello over IPv6": (
            group6 / IPv6(src="fe80::2", dst="ff02::d", hlim=1, nh=103) / Raw(token()),
            "group_control",
        ),
        "EIGRP": (
            group / IP(src=lan.peer4, dst="224.0.0.10", proto=88, ttl=1) / Raw(token()),
            "group_control",
        ),
        "RSVP with router alert": (
            eth
            / IP(src=lan.peer4, dst=lan.ip4, proto=46, options=[IPOption_Router_Alert()])
            / Raw(token()),
            "local_control",
        ),
        "VRRP over IPv6": (
            group6 / IPv6(src="fe80::2", dst="ff02::12", hlim=255, nh=112) / Raw(token()),
            "group_control",
        ),
        "DHCP answer": (
            eth / ip / UDP(sport=67, dport=68, chksum=1) / Raw(token()),
            "local_control",
        ),
        "DHCPv6 solicit": (
            group6
            / IPv6(src="fe80::2", dst="ff02::1:2", hlim=1)
            / UDP(sport=546, dport=547, chksum=1)
            / Raw(token()),
            "group_control",
        ),
        "RIPng": (
            group6
            / IPv6(src="fe80::2", dst="ff02::9", hlim=255)
            / UDP(sport=521, dport=521, chksum=1)
            / Raw(token()),
            "group_control",
        ),
        "router solicitation": (
            group6
            / IPv6(src="fe80::2", dst="ff02::2", hlim=255)
            / ICMPv6ND_RS()
            / Raw(token()),
            "group_control",
        ),
        "neighbor advertisement": (
            eth
            / IPv6(src=lan.peer6, dst=lan.ip6, hlim=255)
            / ICMPv6ND_NA(tgt=lan.peer6, S=1)
            / Raw(token()),
            "local_control",
        ),
        "echo over IPv6": (eth / ip6 / ICMPv6EchoReply() / Raw(token()), "local"),
        "first fragment": (
            eth
            / IP(src=lan.peer4, dst=lan.ip4, id=7, flags="MF")
            / UDP(dport=9)
            / Raw(token() * 4),
            "local",
        ),
        "later fragment": (
            eth / IP(src=lan.peer4, dst=lan.ip4, id=7, frag=100, proto=17) / Raw(token()),
            "local",
        ),
        "first fragment of BGP": (
            eth
            / IP(src=lan.peer4, dst=lan.ip4, id=8, flags="MF")
            / TCP(dport=179)
            / Raw(token() * 4),
            "local_control",
        ),
        "first fragment over IPv6": (
            eth
            / ip6
            / IPv6ExtHdrFragment(nh=17, m=1, id=7)
            / UDP(dport=9)
            / Raw(token() * 4),
            "local",
        ),
        "later fragment over IPv6": (
            eth / ip6 / IPv6ExtHdrFragment(nh=17, offset=9, id=7) / Raw(token()),
            "local",
        ),
        "fragment of an OSPF update": (
            eth / IP(src=lan.peer4, dst=lan.ip4, id=9, frag=50, proto=89) / Raw(token()),
            "local_control",
        ),
        "destination options for us": (
            eth / ip6 / IPv6ExtHdrDestOpt(options=[PadN()]) / UDP(dport=9) / Raw(token()),
            "local",
        ),
        "routing header 0 for us": (
            eth / ip6 / IPv6ExtHdrRouting(addresses=[lan.peer6]) / UDP() / Raw(token()),
            "local",
        ),
        "source route for us": (
            eth
            / IP(src=lan.peer4, dst=lan.ip4, options=[IPOption_LSRR(routers=[lan.peer4])])
            / UDP(dport=9)
            / Raw(token()),
            "local",
        ),
        "GRE": (eth / IP(src=lan.peer4, dst=lan.ip4, proto=47) / Raw(token()), "local"),
        "wrong UDP checksum": (
            eth / ip / UDP(dport=9, chksum=0xBAD) / Raw(token()),
            "local",
        ),
        "multicast beyond the link": (
            Ether(src=lan.mac, dst="01:00:5e:7c:00:01")
            / IP(src=lan.peer4, dst="233.252.0.1")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "local",
        ),
        "multicast beyond the link over IPv6": (
            Ether(src=lan.mac, dst="33:33:00:00:00:09")
            / IPv6(src=lan.peer6, dst="ff0e::9")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "local",
        ),
        "broadcast of our subnet": (
            Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff")
            / IP(src=lan.peer4, dst="192.0.2.63")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "group",
        ),
        "spanning tree": (
            Dot3(dst="01:80:c2:00:00:00", src=lan.mac)
            / LLC(dsap=0x42, ssap=0x42, ctrl=3)
            / Raw(token()),
            "l2_control",
        ),
        "802.1X": (
            Ether(dst="01:80:c2:00:00:03", src=lan.mac, type=0x888E) / Raw(token()),
            "l2_control",
        ),
        "VLAN 0": (
            Ether(src=lan.mac, dst=lan.port_mac)
            / Dot1Q(vlan=0, prio=6)
            / ip
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "local",
        ),
        "LLDP": (Ether(LLDP + bytes(6) + b"\x88\xcc") / Raw(token()), "l2_control"),
        "IS-IS": (
            Dot3(dst=ISIS, src=lan.mac) / LLC(dsap=0xFE, ssap=0xFE) / Raw(token()),
            "l2_control",
        ),
        "IS-IS with EtherType 0x8870": (
            Ether(dst=ISIS, src=lan.mac, type=0x8870) / LLC(dsap=0xFE, ssap=0xFE) / Raw(token()),
            "l2_control",
        ),
        "LACP": (
            Ether(dst="01:80:c2:00:00:02", src=lan.mac, type=0x8809) / Raw(token()),
            "l2_control",
        ),
        "unknown EtherType": (
            Ether(src=lan.mac, dst=lan.port_mac, type=0x9999) / Raw(token()),
            "not_ip",
        ),
        "MPLS": (
            Ether(src=lan.mac, dst=lan.port_mac, type=0x8847) / Raw(token()),
            "not_ip",
        ),
        # RFC 6085 allows it for IPv6. Links without multicast have no other way.
        "OSPF hello in a unicast frame": (
            eth / to("224.0.0.5") / OSPF_Hdr() / OSPF_Hello() / Raw(token()),
            "group_control",
        ),
        "OSPFv3 hello in a unicast frame": (
            eth / IPv6(src="fe80::2", dst="ff02::5", hlim=1, nh=89) / Raw(token()),
            "group_control",
        ),
        "DHCP discover in a unicast frame": (
            eth
            / IP(src="0.0.0.0", dst="255.255.255.255")
            / UDP(sport=68, dport=67)
            / Raw(token()),
            "group_control",
        ),
        "link-local unicast": (
            eth
            / IPv6(src="fe80::2", dst="fe80::ff:fe00:1")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "local",
        ),
    }


NAMES = [
    "BGP", "BGP answer", "BGP over IPv6", "BFD", "OSPF unicast", "echo", "UDP",
    "UDP over IPv6", "ttl 1", "another port's address", "ARP request", "ARP reply",
    "neighbor solicitation", "OSPF hello", "OSPFv3 hello", "RIP", "IGMP", "VRRP",
    "DHCP discover", "mDNS", "a broadcast of nobody's", "MLD", "subnet-router anycast", "LLDP", "IS-IS", "LACP", "unknown EtherType", "MPLS",
    "IS-IS with EtherType 0x8870",
    "link-local unicast", "BFD over IPv6", "BFD multihop", "BFD echo", "LDP session",
    "LDP hello", "PIM hello", "PIM hello over IPv6", "EIGRP", "RSVP with router alert",
    "VRRP over IPv6", "DHCP answer", "DHCPv6 solicit", "RIPng", "router solicitation",
    "neighbor advertisement", "echo over IPv6", "first fragment", "later fragment",
    "first fragment of BGP", "first fragment over IPv6", "later fragment over IPv6",
    "fragment of an OSPF update", "destination options for us", "routing header 0 for us",
    "source route for us", "GRE", "wrong UDP checksum", "multicast beyond the link",
    "multicast beyond the link over IPv6", "broadcast of our subnet", "spanning tree",
    "802.1X", "VLAN 0", "OSPF hello in a unicast frame",
    "OSPFv3 hello in a unicast frame", "DHCP discover in a unicast frame",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_gets_what_was_on_the_wire(dut, lan, name):
    """RFC 1812, 5.2.3 (local delivery): the TAP has the same octets, once, under their punt
    reason. No packet is dropped or forwarded."""
    packet, reason = frames_for_us(lan)[name]
    data = bytes(packet)
    before = dut.counters()

    lan.send(data)

    assert dut.taps["lan"].expect_raw(token_of(data)) == data
    assert dut.drops(before) == {}
    assert reason in dut.moved(before, "punt")
    dut.fence(lan)
    assert len(dut.taps["lan"].got(token_of(data))) == 1
    others = [n for n in dut.names if n != "lan" and dut.wires[n].got(token_of(data))]
    others += [n for n in dut.names if n != "lan" and dut.taps[n].got(token_of(data))]
    assert others == []


def test_a_dhcp_client_gets_the_offer_to_its_future_address(dut, lan, wan):
    """RFC 2131, 4.1: the offer is a unicast packet to an address that no host has yet, and to
    the client's MAC. A port without an address punts the offer for its own MAC, even if a route
    leads on, and forwards an offer for another client. A port with an address forwards both."""
    dut.route("0.0.0.0/0", via=wan.peer4, wire=wan)
    server = Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst="203.0.113.200")

    def offer(client):
        chaddr = bytes.fromhex(client.replace(":", ""))
        bootp = bytes([2, 1, 6, 0]) + bytes(24) + chaddr + bytes(202) + token()
        return server / UDP(sport=67, dport=68, chksum=0) / Raw(bootp)

    dut.forwarded(lan, offer(lan.port_mac), wan)
    dut.ip(f"addr del {lan.ip4}/26 dev {lan.tap}")
    # Wait for the forwarders' copy of the interface, which may lose the address after its route.
    eventually(lambda: dut.port_row(lan)["addresses4"] != lan.ip4, 3, 0.005)

    ours = bytes(offer(lan.port_mac))
    lan.send(ours)
    assert dut.taps["lan"].expect_raw(token_of(ours)) == ours
    dut.forwarded(lan, offer("02:00:00:00:77:77"), wan)
    assert wan.got(token_of(ours)) == []


def test_padding_of_a_frame_for_us_is_kept(dut, lan):
    """The TAP has all octets of the frame, including the padding."""
    data = bytes(Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=lan.ip4)
                 / ICMP(type=0) / Raw(token())).ljust(60, b"\xee")  # fmt: skip

    lan.send(data)

    assert dut.taps["lan"].expect_raw(token_of(data)) == data


def test_fragments_for_us_are_all_delivered(dut, lan):
    """RFC 1812, 5.2.3 and RFC 791: the kernel reassembles the datagram, so it needs every
    fragment."""
    request = IP(src=lan.peer4, dst=lan.ip4, id=77) / ICMP(id=9) / Raw(bytes(3000))
    for piece in fragment(request, 1000):
        lan.send(Ether(src=lan.mac, dst=lan.port_mac) / piece)

    def echoed(data):
        # The reply has fragments, too.
        return data[12:14] == b"\x08\x00" and data[23] == 1 and data[26:30] == _ip(lan.ip4)

    assert len(lan.expect_many(echoed, 3)) >= 3


def _ip(text):
    return bytes(map(int, text.split(".")))


@pytest.mark.smoke
def test_the_kernel_answers_a_ping(dut, lan):
    """RFC 1812, 4.3.3.6 and RFC 4443, 4.2: the kernel gets an echo request of each family by
    the TAP, and its reply leaves the port."""
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    for ip, echo in (
        (IP(src=lan.peer4, dst=lan.ip4), ICMP(id=4)),
        (IPv6(src=lan.peer6, dst=lan.ip6), ICMPv6EchoRequest(id=4)),
    ):
        mark = token()
        lan.send(eth / ip / echo / Raw(mark))
        reply = lan.expect(mark)
        assert (reply.src, reply.dst) == (lan.port_mac, lan.mac)
        assert reply.payload.src == ip.dst


def test_the_kernel_answers_on_its_link_local_address(dut, lan):
    """RFC 4291, 2.8: a router has a link-local address on every link."""
    own = "fe80::ff:fe00:1"  # of MAC 02:00:00:00:00:01, RFC 4291 appendix A
    lan.answer("fe80::2")
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src="fe80::2", dst=own)

    lan.send(head / ICMPv6EchoRequest(id=4) / Raw(mark))

    assert lan.expect(mark, 3)[IPv6].src == own


def test_the_kernel_answers_arp_and_nd(dut, lan):
    """RFC 826 and RFC 4861, 7.2.4: the answer has the port's MAC."""
    arp = ARP(op=1, hwsrc=lan.mac, psrc=lan.peer4, pdst=lan.ip4)
    lan.send(Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff") / arp)
    eventually(lambda: [p for p in lan.sniffed(ARP)
                        if p[ARP].op == 2 and p[ARP].hwsrc == lan.port_mac], 2)  # fmt: skip

    ns = IPv6(src=lan.peer6, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=lan.ip6)
    lan.send(Ether(src=lan.mac, dst="33:33:ff:00:00:01") / ns)
    eventually(lambda: lan.got(lambda d: d[12:14] == b"\x86\xdd" and d[54] == 136), 2)


def test_whatever_comes_up_may_go_out(dut, lan):
    """The kernel sends every frame of the catalogue above. Each leaves once, in order, with the
    same octets, and none is dropped."""
    known = frames_for_us(lan)
    frames = [bytes(known[name][0]) for name in NAMES]
    before = dut.counters()

    dut.taps["lan"].send(*frames)

    lan.expect_raw(token_of(frames[-1]))
    marks = {token_of(f) for f in frames}
    assert [d for d in lan.got() if token_of(d) in marks] == frames
    assert dut.drops(before) == {}


def test_a_datagram_of_the_kernel_leaves_in_fragments(dut, lan):
    """RFC 791, 3.2 and RFC 8200, 4.5: the kernel fragments a datagram, and all fragments
    leave."""
    data = token() + bytes(range(256)) * 16
    for family, dst in ((2, lan.peer4), (10, lan.peer6)):
        with netns.open_socket(dut.ctl, family, 2) as sock:
            sock.sendto(data, (dst, 9))

    def whole():
        pieces4 = [p[IP] for p in lan.sniffed(IP) if p[IP].flags.MF or p[IP].frag]
        pieces6 = [p[IPv6] for p in lan.sniffed(IPv6ExtHdrFragment)]
        joined4 = b"".join(
            bytes(p)[20 : p.len] for p in sorted(pieces4, key=lambda p: p.frag)
        )
        joined6 = b"".join(
            bytes(p)[48 : 40 + p.plen]
            for p in sorted(pieces6, key=lambda p: p[IPv6ExtHdrFragment].offset)
        )
        return joined4[8:] == data and joined6[8:] == data

    eventually(whole, 2, 0.01)


@pytest.mark.parametrize("size", [14, 42, 60, 590, 1514])
def test_frames_of_the_kernel_leave_unchanged(dut, lan, size):
    """A frame sent on the TAP leaves the port with the same octets."""
    head = bytes.fromhex("020000000002" "020000000001" "9998")
    data = (head + token() + bytes(range(256)) * 6)[:size]
    marker = data[14:24]

    dut.taps["lan"].send(data)

    if size > 24:
        assert lan.expect_raw(marker) == data
    else:
        eventually(lambda: lan.got(lambda d: d[:14] == head))


def test_frames_of_the_kernel_keep_their_order(dut, lan):
    """TCP and routing protocols over the TAP need frames in order."""
    head = bytes.fromhex("020000000002" "020000000001" "9998")
    sent = [head + token() for _ in range(300)]

    for n in range(0, 300, 50):
        dut.taps["lan"].send(*sent[n : n + 50])
        lan.expect_raw(sent[n + 49][14:24])

    assert [d for d in lan.got() if d[:14] == head] == sent


@pytest.mark.smoke
def test_a_tcp_session_with_the_kernel(dut, lan, wan):
    """A TCP client on the wire reaches a listener in FRR's namespace: SYN, SYN-ACK, RST."""
    with netns.open_socket(dut.ctl, 2, 1) as listener:
        listener.setsockopt(1, 2, 1)
        listener.bind((lan.ip4, 179))
        listener.listen()
        syn = IP(src=lan.peer4, dst=lan.ip4) / TCP(sport=33333, dport=179, flags="S", seq=9)
        lan.send(Ether(src=lan.mac, dst=lan.port_mac) / syn)

        def syn_ack():
            return [
                p for p in lan.sniffed(TCP) if p[TCP].flags == "SA" and p[TCP].ack == 10
            ]

        eventually(syn_ack, 2)


@pytest.mark.smoke
def test_the_kernel_forwards_nothing(dut, lan, wan):
    """The dataplane forwards all transit packets; the kernel forwards none."""
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    before = netns.forwarded(dut.ctl)

    for _ in range(20):
        dut.forwarded(lan, lan.probe("198.51.100.1"), wan)
        lan.srp1(lan.probe("198.51.100.1", ttl=1))

    assert netns.forwarded(dut.ctl) == before


@pytest.mark.parametrize("name", ["echo", "UDP", "mDNS", "unknown EtherType", "MPLS"])
def test_a_flood_for_the_kernel_does_not_starve_control(dut, lan, wan, name):
    """After RFC 1812, 5.3.8: each class of packets for the kernel has its own room, so BGP
    passes during a flood."""
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    eth = Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=lan.ip4)
    flood = [bytes(frames_for_us(lan)[name][0])] * 2000
    bgp = [bytes(eth / TCP(dport=179, flags="A", seq=n) / Raw(token())) for n in range(20)]

    with dut.stream(wan, lan.peer4, rate=500) as stream:
        for n, one in enumerate(bgp):
            lan.send(*flood[n * 100 : n * 100 + 100], one)

    for one in bgp:
        dut.taps["lan"].expect_raw(token_of(one))
    assert stream.lost(lan) == []
