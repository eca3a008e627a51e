# SPDX-License-Identifier: BSD-3-Clause
"""What is for the kernel comes up the port's TAP as it was on the wire; what the kernel
sends leaves the port as it was sent."""

import ipaddress

import pytest
from scapy.contrib.ospf import OSPF_Hdr, OSPF_Hello
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6MLReport2,
    ICMPv6ND_NS,
    IPv6,
    IPv6ExtHdrHopByHop,
    RouterAlert,
)
from scapy.layers.l2 import ARP, Dot3, Ether, LLC
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from wire import token, token_of

LLDP = bytes.fromhex("0180c200000e")
ISIS = "01:80:c2:00:00:14"


def frames_for_us(lan):
    """{name: (frame, punt reason)}; every one holds a token."""
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
        "neighbour solicitation": (all6 / ns / Raw(token()), "group_control"),
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
        "LLDP": (Ether(LLDP + bytes(6) + b"\x88\xcc") / Raw(token()), "l2_control"),
        "IS-IS": (
            Dot3(dst=ISIS, src=lan.mac) / LLC(dsap=0xFE, ssap=0xFE) / Raw(token()),
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
        "link-local unicast": (
            eth
            / IPv6(src="fe80::2", dst="fe80::1")
            / UDP(dport=9, chksum=1)
            / Raw(token()),
            "local",
        ),
    }


NAMES = [
    "BGP", "BGP answer", "BGP over IPv6", "BFD", "OSPF unicast", "echo", "UDP",
    "UDP over IPv6", "ttl 1", "another port's address", "ARP request", "ARP reply",
    "neighbour solicitation", "OSPF hello", "OSPFv3 hello", "RIP", "IGMP", "VRRP",
    "DHCP discover", "mDNS", "a broadcast of nobody's", "MLD", "subnet-router anycast", "LLDP", "IS-IS", "LACP", "unknown EtherType", "MPLS",
    "link-local unicast",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_gets_what_was_on_the_wire(dut, lan, name):
    """RFC 1812, 5.2.3 (local delivery): the same octets on the TAP, once, under their
    punt reason; nothing dropped, nothing forwarded."""
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


def test_padding_of_a_frame_for_us_is_kept(dut, lan):
    """The same octets means all of them, padding too."""
    data = bytes(Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=lan.ip4)
                 / ICMP(type=0) / Raw(token())).ljust(60, b"\xee")  # fmt: skip

    lan.send(data)

    assert dut.taps["lan"].expect_raw(token_of(data)) == data


def test_fragments_for_us_are_all_delivered(dut, lan):
    """RFC 1812, 5.2.3 and RFC 791: reassembly is the kernel's; it needs every piece."""
    request = IP(src=lan.peer4, dst=lan.ip4, id=77) / ICMP(id=9) / Raw(bytes(3000))
    for piece in fragment(request, 1000):
        lan.send(Ether(src=lan.mac, dst=lan.port_mac) / piece)

    def echoed(data):
        # The reply comes as fragments, too.
        return data[12:14] == b"\x08\x00" and data[23] == 1 and data[26:30] == _ip(lan.ip4)

    assert len(lan.expect_many(echoed, 3)) >= 3


def _ip(text):
    return bytes(map(int, text.split(".")))


def test_the_kernel_answers_a_ping(dut, lan):
    """RFC 1812, 4.3.3.6 and RFC 4443, 4.2: both families, through both directions."""
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
    """RFC 826 and RFC 4861, 7.2.4: whoever asks learns the port's MAC."""
    arp = ARP(op=1, hwsrc=lan.mac, psrc=lan.peer4, pdst=lan.ip4)
    lan.send(Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff") / arp)
    eventually(lambda: [p for p in lan.sniffed(ARP)
                        if p[ARP].op == 2 and p[ARP].hwsrc == lan.port_mac], 2)  # fmt: skip

    ns = IPv6(src=lan.peer6, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=lan.ip6)
    lan.send(Ether(src=lan.mac, dst="33:33:ff:00:00:01") / ns)
    eventually(lambda: lan.got(lambda d: d[12:14] == b"\x86\xdd" and d[54] == 136), 2)


@pytest.mark.parametrize("size", [14, 42, 60, 590, 1514])
def test_frames_of_the_kernel_leave_unchanged(dut, lan, size):
    """Whatever is sent on the TAP is on the wire, octet by octet."""
    head = bytes.fromhex("020000000002" "020000000001" "9998")
    data = (head + token() + bytes(range(256)) * 6)[:size]
    marker = data[14:24]

    dut.taps["lan"].send(data)

    if size > 24:
        assert lan.expect_raw(marker) == data
    else:
        eventually(lambda: lan.got(lambda d: d[:14] == head))


def test_frames_of_the_kernel_keep_their_order(dut, lan):
    """TCP and routing protocols over the TAP rely on it."""
    head = bytes.fromhex("020000000002" "020000000001" "9998")
    sent = [head + token() for _ in range(300)]

    for n in range(0, 300, 50):
        dut.taps["lan"].send(*sent[n : n + 50])
        lan.expect_raw(sent[n + 49][14:24])

    assert [d for d in lan.got() if d[:14] == head] == sent


def test_a_tcp_session_with_the_kernel(dut, lan, wan):
    """A listener in FRR's namespace is reached over the wire: SYN, SYN-ACK, RST."""
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


def test_the_kernel_forwards_nothing(dut, lan, wan):
    """The packet walk is the dataplane's: the kernel beside it routes no transit packet."""
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    before = netns.forwarded(dut.ctl)

    for _ in range(20):
        dut.forwarded(lan, lan.probe("198.51.100.1"), wan)
        lan.srp1(lan.probe("198.51.100.1", ttl=1))

    assert netns.forwarded(dut.ctl) == before


@pytest.mark.parametrize("name", ["echo", "UDP", "mDNS", "unknown EtherType", "MPLS"])
def test_a_flood_for_the_kernel_does_not_starve_control(dut, lan, wan, name):
    """RFC 1812, 5.3.8 in spirit: bulk for the kernel has its own room, BGP passes."""
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
