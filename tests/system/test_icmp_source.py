# SPDX-License-Identifier: BSD-3-Clause
"""The source address of an ICMP error, also when the port by which the packet came has no address,
and the packets that never get an error."""

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    ICMPv6ND_Redirect,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.wait import eventually
from on_time import Medians
from wire import token, token_of

HOST, HOST6 = "198.51.100.9", "2001:db8:f000::9"
LO4, LO6 = "203.0.113.255", "2001:db8:ffff::1"


@pytest.fixture
def loopback(dut):
    """Give `lo` its global addresses. They are removed afterwards."""

    def give():
        dut.ip(f"addr add {LO4}/32 dev lo", f"addr add {LO6}/128 dev lo")
        eventually(
            lambda: dut.route_row(f"{LO6}/128") and dut.route_row(f"{LO4}/32"), 3, 0.01
        )

    yield give
    dut.ip("addr flush dev lo scope global")
    eventually(
        lambda: not dut.route_row(f"{LO6}/128") and not dut.route_row(f"{LO4}/32"), 3
    )


def unnumber(dut, wire, family):
    """Remove the addresses of one family from a port and keep its neighbor. The route back leads
    out of the port, as on an unnumbered link."""
    own, peer, bits = (
        (wire.ip4, wire.peer4, "26") if family == 4 else (wire.ip6, wire.peer6, "64")
    )
    dut.ip(f"addr del {own}/{bits} dev {wire.tap}")
    dut.neighbor(peer, wire)
    hop = dut.zebra.hop(peer, wire, onlink=True)
    dut.route(f"{peer}/{32 if family == 4 else 128}", nhid=hop)


def borrows(dut, wire, family, address):
    """Return True if errors about packets of this port have this source."""
    return dut.port_row(wire)[f"addresses{family}"] == address


def source(dut, lan, family):
    """Return the source of the error about a packet without a route from `lan`."""
    reply = lan.srp1(lan.probe(HOST if family == 4 else HOST6))
    assert reply[ICMP].type == 3 if family == 4 else reply[ICMPv6DestUnreach].code == 0
    return reply[IP].src if family == 4 else reply[IPv6].src


def test_a_numbered_port_answers_with_its_own_address(dut, lan, family, loopback):
    """A numbered port answers with an address of the interface, not with the loopback's (RFC 1812,
    4.3.2.4)."""
    loopback()

    assert source(dut, lan, family) == (lan.ip4 if family == 4 else lan.ip6)


def test_an_unnumbered_port_answers_with_the_loopbacks_address(dut, lan, family, loopback):
    """An unnumbered port answers with the loopback's address, which is the router-id (RFC 1812,
    4.3.2.4 and 2.2.7). So the router has one name in every traceroute. The port may be
    IPv6-only."""
    loopback()
    unnumber(dut, lan, family)
    key, lent = ("addresses4", LO4) if family == 4 else ("addresses6", LO6)
    eventually(lambda: dut.port_row(lan)[key] == lent, 3, 0.005, "the kernel has told the address of lo")

    assert source(dut, lan, family) == (LO4 if family == 4 else LO6)


def test_without_a_loopback_address_another_port_lends(dut, lan, wan, family):
    """Without a loopback address the router answers with any unicast address of the node (RFC 4443,
    2.2 (d))."""
    unnumber(dut, lan, family)
    lent = wan.ip4 if family == 4 else wan.ip6
    eventually(lambda: borrows(dut, lan, family, lent), 3, 0.005, "its own address is gone")

    assert source(dut, lan, family) == lent


def test_a_borrowed_address_that_goes_is_not_used_any_more(dut, lan, wan, alt, family):
    """The router stops using the address of another port as soon as that port loses it (the median
    of five)."""
    unnumber(dut, lan, family)
    lent, other = (wan.ip4, alt.ip4) if family == 4 else (wan.ip6, alt.ip6)
    own = f"{lent}/26" if family == 4 else f"{lent}/64"

    medians = Medians(dut)
    for _ in range(medians.TIMES):
        eventually(lambda: borrows(dut, lan, family, lent), 3, 0.005)
        assert source(dut, lan, family) == lent
        dut.ip(f"addr del {own} dev {wan.tap}")
        medians.until("gone", lambda: borrows(dut, lan, family, other))
        assert source(dut, lan, family) == other
        dut.ip(f"addr add {own} dev {wan.tap}{'' if family == 4 else ' nodad'}")
    medians.are_in_time()


def test_without_any_ipv4_address_the_dummy_answers(dut, lan):
    """Without an IPv4 address the router answers with 192.0.0.8, because path MTU discovery breaks
    without the error (RFC 7600, 4.8)."""
    for wire in dut.wires.values():
        if wire is not lan:
            dut.ip(f"addr del {wire.ip4}/26 dev {wire.tap}")
    unnumber(dut, lan, 4)
    eventually(lambda: dut.port_row(lan)["addresses4"] is None, 3, 0.005)

    assert source(dut, lan, 4) == "192.0.0.8"


def test_an_address_of_the_link_is_the_last_resort(dut, lan, wan):
    """The router uses an address of 169.254/16 only as the last choice, because it is valid only on
    its link (RFC 3927, 2.6.2)."""
    unnumber(dut, lan, 4)
    dut.ip(f"addr add 169.254.7.1/16 dev {lan.tap}")
    eventually(lambda: dut.route_row("169.254.7.1/32"), 3, 0.005)

    assert source(dut, lan, 4) == wan.ip4


def test_a_link_local_source_is_told_that_it_reaches_no_further(dut, lan, wan):
    """A packet from a link-local source that would leave its link gets destination unreachable,
    beyond scope of source address, from a link-local address, on the link from which it came (RFC
    4007, 9 and RFC 4443, 3.1)."""
    dut.route("::/0", via=wan.peer6, wire=wan)
    lan.answer("fe80::99", "02:00:00:00:99:99")
    before = dut.counters()

    reply = lan.srp1(lan.probe(HOST6, src="fe80::99"), timeout=3)

    assert (reply[ICMPv6DestUnreach].type, reply[ICMPv6DestUnreach].code) == (1, 2)
    assert reply[IPv6].src == "fe80::ff:fe00:1", "of MAC 02:00:00:00:00:01"
    assert (reply[IPv6].dst, reply.dst) == ("fe80::99", "02:00:00:00:99:99")
    assert dut.drops(before) == {"ip6_linklocal": 1}


def test_an_expiring_packet_waits_for_no_neighbor(dut, lan, wan, family):
    """A packet at its last hop gets its error at once, and the router asks for no neighbor to which
    the packet never goes (RFC 1812, 5.3.1 and RFC 8200, 3)."""
    host = "192.0.2.111" if family == 4 else "2001:db8:1::111"

    reply = lan.srp1(lan.probe(host, **{"ttl" if family == 4 else "hlim": 1}))

    if family == 4:
        assert (reply[ICMP].type, reply[ICMP].code) == (11, 0)
    else:
        assert (reply[ICMPv6TimeExceeded].type, reply[ICMPv6TimeExceeded].code) == (3, 0)
    dut.fence(lan)
    assert wan.solicitations(host) == []


def _ip(lan, **fields):
    return IP(**{"src": lan.peer4, "dst": HOST, "ttl": 1, **fields})


def _ip6(lan, **fields):
    return IPv6(**{"src": lan.peer6, "dst": HOST6, "hlim": 1, **fields})


def _udp():
    return UDP(sport=4000, dport=4001) / Raw(token())


def _redirect():
    return ICMPv6ND_Redirect(tgt="fe80::7", dst=HOST6) / Raw(token())


NOBODY = {
    "source 127/8": (lambda lan: _ip(lan, src="127.0.0.5") / _udp(), "ip4_martian_src"),
    "source multicast": (
        lambda lan: _ip(lan, src="233.252.0.1") / _udp(),
        "ip4_martian_src",
    ),
    "source 240/4": (lambda lan: _ip(lan, src="240.0.0.1") / _udp(), "ip4_martian_src"),
    "source 255.255.255.255": (
        lambda lan: _ip(lan, src="255.255.255.255") / _udp(),
        "ip4_martian_src",
    ),
    "source 0/8": (lambda lan: _ip(lan, src="0.1.2.3") / _udp(), "ip4_martian_src"),
    "source 169.254/16": (
        lambda lan: _ip(lan, src="169.254.9.9") / _udp(),
        "ip4_linklocal",
    ),
    "source a subnet's broadcast": (
        lambda lan: _ip(lan, src="192.0.2.127") / _udp(),
        "ttl",
    ),
    "source our own": (lambda lan: _ip(lan, src=lan.ip4) / _udp(), "ttl"),
    "source without a route": (lambda lan: _ip(lan, src="203.0.113.77") / _udp(), "ttl"),
    "unknown ICMP type": (lambda lan: _ip(lan) / ICMP(type=44) / Raw(token()), "ttl"),
    "ICMP without a type": (
        lambda lan: _ip(lan, proto=1, options=[b"\x9e\x0c" + token()]),
        "ttl",
    ),
    "ICMP source quench": (lambda lan: _ip(lan) / ICMP(type=4) / Raw(token()), "ttl"),
    "ICMP parameter problem": (lambda lan: _ip(lan) / ICMP(type=12) / Raw(token()), "ttl"),
    "ICMP error behind options": (
        lambda lan: _ip(lan, options=[b"\x01\x01\x01\x00"]) / ICMP(type=3) / Raw(token()),
        "ttl",
    ),
    "later fragment": (lambda lan: _ip(lan, frag=9) / Raw(token()), "ttl"),
    "IPv6 source ::": (lambda lan: _ip6(lan, src="::") / _udp(), "ip6_martian_src"),
    "IPv6 source multicast": (
        lambda lan: _ip6(lan, src="ff02::1") / _udp(),
        "ip6_martian_src",
    ),
    "IPv6 source our own": (lambda lan: _ip6(lan, src=lan.ip6) / _udp(), "ttl"),
    "IPv6 source without a route": (
        lambda lan: _ip6(lan, src="2001:db8:abcd::7") / _udp(),
        "ttl",
    ),
    "ICMPv6 redirect": (lambda lan: _ip6(lan) / _redirect(), "ttl"),
    "ICMPv6 error behind options": (
        lambda lan: _ip6(lan)
        / IPv6ExtHdrHopByHop(options=[PadN()])
        / IPv6ExtHdrDestOpt(options=[PadN()])
        / ICMPv6TimeExceeded()
        / Raw(token()),
        "ttl",
    ),
}


@pytest.mark.parametrize("name", NOBODY)
def test_no_error_is_sent_about(dut, lan, wan, name):
    """These packets cause no error on any port, and one drop with its name (RFC 1812, 4.3.2.7 and
    RFC 4443, 2.4 (e))."""
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)
    make, reason = NOBODY[name]
    packet = Ether(src=lan.mac, dst=lan.port_mac) / make(lan)
    before = dut.counters()

    assert dut.not_forwarded(lan, packet) == {reason: 1}

    assert [w.name for w in dut.wires.values() if w.got(token_of(packet))] == []
    assert "icmp_sent" not in dut.moved(before, "total")


def test_an_error_is_sent_about_an_echo_behind_options(dut, lan, wan):
    """An echo behind options gets an error: only errors and redirects get none, wherever they stand
    (RFC 4443, 2.4 (e))."""
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)
    mark = token()
    options = IPv6ExtHdrDestOpt(options=[PadN()])
    lan.send(
        Ether(src=lan.mac, dst=lan.port_mac)
        / _ip6(lan)
        / options
        / ICMPv6EchoRequest(data=mark)
    )

    assert lan.expect(mark)[ICMPv6TimeExceeded].code == 0


def test_an_error_about_a_packet_to_an_own_ipv6_address_has_that_address(dut, lan, wan):
    """If a rule before table local refuses a packet to an address of the router, the source of the error
    is that address (RFC 4443, 2.2 (a); icmp6_send() of Linux)."""
    rules = ("-6 rule {} pref 10 lookup local", f"-6 rule {{}} pref 5 to {wan.ip6} iif {lan.tap} prohibit")
    dut.ip(*(rule.format("add") for rule in rules), "-6 rule del pref 0")
    try:
        sent = lambda: lan.srp1(lan.probe(wan.ip6))  # noqa: E731
        replies = []
        eventually(lambda: replies.append(sent()) or ICMPv6DestUnreach in replies[-1], 5, 0.02)
        assert (replies[-1][ICMPv6DestUnreach].code, replies[-1][IPv6].src) == (1, wan.ip6)
    finally:
        dut.ip("-6 rule add pref 0 lookup local", *(rule.format("del") for rule in rules))
        eventually(lambda: lan.srp1(lan.probe(wan.ip6))[ICMPv6DestUnreach].code == 4, 5, 0.02)
