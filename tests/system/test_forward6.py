# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 in, IPv6 out: what is forwarded and how it looks afterwards; what is dropped."""

import struct

import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import (
    ICMPv6ParamProblem,
    IPv6,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.wait import eventually
from wire import token, token_of

NET = "2001:db8:f000::/36"
HOST = "2001:db8:f000::9"
N = 7


def test_hop_limit_minus_one_new_macs_and_nothing_else(dut, lan, wan):
    """RFC 8200, 3 and 7: the hop limit is spent, flow label and class pass untouched."""
    dut.route(NET, via=wan.peer6, wire=wan)
    probe = lan.probe(HOST, hlim=64, tc=0xB8, fl=0xABCDE, size=200)

    out = dut.forwarded(lan, probe, wan)

    assert (out.dst, out.src, out.type) == (wan.mac, wan.port_mac, 0x86DD)
    want = Ether(bytes(probe))[IPv6]
    want.hlim = 63
    assert bytes(out[IPv6]) == bytes(want)


@pytest.mark.parametrize("size", [58, 64, 1280, 1499, 1500])
def test_every_size_is_forwarded_whole(dut, lan, wan, size):
    """RFC 8200, 5: packets up to the MTU of the way out."""
    dut.route(NET, via=wan.peer6, wire=wan)
    probe = lan.probe(HOST, size=size)

    out = dut.forwarded(lan, probe, wan)

    assert out[IPv6].plen == size - 40
    assert bytes(out[IPv6].payload)[: size - 40] == bytes(probe[IPv6].payload)


def test_ethernet_padding_is_trimmed(dut, lan, wan):
    """RFC 2464, 3: octets after the payload length are padding."""
    dut.route(NET, via=wan.peer6, wire=wan)
    probe = lan.probe(HOST)

    lan.send(bytes(probe) + b"\xee" * 40)

    data = wan.expect_raw(token_of(probe))
    assert data[54:] == bytes(probe)[54:]


def test_the_longest_prefix_wins(dut, lan, wan, alt, ext):
    """RFC 4291 and RFC 7608: longest match at any length up to /128."""
    dut.route("::/0", via=ext.peer6, wire=ext)
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)
    dut.route("2001:db8:f000::/64", via=alt.peer6, wire=alt)
    dut.route("2001:db8:f000::/125", via=ext.peer6, wire=ext)
    dut.route("2001:db8:f000::1/128", via=wan.peer6, wire=wan)

    dut.forwarded(lan, lan.probe("2001:db8:e000::1"), ext)
    dut.forwarded(lan, lan.probe("2001:db8:f000:1::1"), wan)
    dut.forwarded(lan, lan.probe("2001:db8:f000::8"), alt)
    dut.forwarded(lan, lan.probe("2001:db8:f000::7"), ext)
    dut.forwarded(lan, lan.probe("2001:db8:f000::1"), wan)


def test_no_packet_is_lost_while_a_longer_prefix_comes_and_goes(dut, lan, wan, alt):
    """RFC 7608, 2: at every moment one of the two routes matches."""
    dut.route(NET, via=wan.peer6, wire=wan)
    nhid = dut.zebra.hop(alt.peer6, alt)

    with dut.stream(lan, HOST) as stream:
        for n in range(60):
            dut.route("2001:db8:f000::/64", nhid=nhid)
            if n == 0:
                eventually(lambda: stream.arrived(alt), 5, 0.002)
            dut.zebra.drop("2001:db8:f000::/64")
            eventually(lambda: dut.route_row("2001:db8:f000::/64") is None, 5, 0.002)

    assert stream.lost(wan, alt) == []


def test_via_a_link_local_gateway(dut, lan, wan):
    """RFC 4861, 6.3.4: routers are known by their link-local addresses."""
    mac = dut.neighbor("fe80::77", wan, "02:00:00:00:77:77")
    dut.route(NET, via="fe80::77", wire=wan)

    assert dut.forwarded(lan, lan.probe(HOST), wan).dst == mac


def test_the_same_link_local_gateway_on_two_links(dut, lan, wan, alt):
    """RFC 4007, 6: a link-local address means another node on another link."""
    on_wan = dut.neighbor("fe80::78", wan, "02:00:00:00:78:01")
    on_alt = dut.neighbor("fe80::78", alt, "02:00:00:00:78:02")
    dut.route("2001:db8:f000::/48", via="fe80::78", wire=wan)
    dut.route("2001:db8:f001::/48", via="fe80::78", wire=alt)

    assert dut.forwarded(lan, lan.probe("2001:db8:f000::1"), wan).dst == on_wan
    assert dut.forwarded(lan, lan.probe("2001:db8:f001::1"), alt).dst == on_alt


def test_a_host_on_the_connected_subnet(dut, lan, wan):
    """RFC 4861, 5.2: an on-link destination is its own next hop."""
    assert dut.forwarded(lan, lan.probe(wan.peer6), wan).dst == wan.mac


def test_hop_by_hop_options_are_forwarded(dut, lan, wan):
    """RFC 8200, 4.3: a node that is not told to look passes them on."""
    dut.route(NET, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST)
    options = IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])

    lan.send(head / options / UDP(sport=1, dport=2) / Raw(mark))

    assert wan.expect(mark)[IPv6].nh == 0


@pytest.mark.parametrize(
    "kind", [0x1E, 0x5E, 0x9E, 0xDE], ids="skip drop tell tell1".split()
)
def test_hop_by_hop_options_unknown_to_us_are_passed_on(dut, lan, wan, kind):
    """RFC 8200, 4.3 and RFC 9673, 5: a router that is not configured to look at hop-by-hop
    options forwards whatever the action bits of an unknown one say."""
    dut.route(NET, via=wan.peer6, wire=wan)
    mark = token()
    options = bytes([17, 0, kind, 4]) + bytes(4)
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST, nh=0)
    frame = head / Raw(options + bytes(UDP(sport=1, dport=2) / Raw(mark)))

    lan.send(frame)

    want = bytearray(bytes(frame))
    want[21] -= 1
    assert wan.expect_raw(mark)[14:] == bytes(want[14:])


def test_a_long_chain_of_extension_headers_is_bounded_work(dut, lan, wan):
    """RFC 8200, 4.1: forwarded by the fixed header alone; no chain, right or nonsense, is
    walked to its end in the fast path, nor crashes the slow one."""
    dut.route(NET, via=wan.peer6, wire=wan)
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    chain = bytes([60, 0, 1, 4, 0, 0, 0, 0]) * 170
    for load in (chain, chain[:-5], b"\x3c\xff" + chain, b"\x33\x00" * 40):
        mark = token()
        packet = IPv6(src=lan.peer6, dst=HOST, nh=60) / Raw(mark + load)
        lan.send(eth / packet)
        wan.expect_raw(mark)
        packet.hlim = 1
        lan.send(eth / packet)
        assert lan.expect(mark).payload.nh == 58, "time exceeded"


def test_a_routing_header_0_for_us_is_refused_by_the_kernel(dut, lan, wan):
    """RFC 5095, 3: with segments left an error goes to the source, nothing to the segment."""
    dut.route(NET, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=lan.ip6)
    routing = IPv6ExtHdrRouting(addresses=[HOST])

    lan.send(head / routing / UDP(sport=1, dport=2) / Raw(mark))

    reply = lan.expect(mark)
    assert (reply[ICMPv6ParamProblem].code, reply[ICMPv6ParamProblem].ptr) == (0, 42)
    assert wan.got(mark) == []


def test_an_unknown_option_for_us_is_answered_by_the_kernel(dut, lan):
    """RFC 8200, 4.2: action bits 10, discard and tell the source: parameter problem 2."""
    mark = token()
    options = bytes([17, 0, 0x9E, 4]) + bytes(4)
    head = Ether(src=lan.mac, dst=lan.port_mac)
    packet = IPv6(src=lan.peer6, dst=lan.ip6, nh=0) / Raw(
        options + bytes(UDP() / Raw(mark))
    )

    lan.send(head / packet)

    assert lan.expect(mark)[ICMPv6ParamProblem].code == 2


def test_routing_header_0_to_another_node_is_forwarded(dut, lan, wan):
    """RFC 5095, 3 with RFC 8200, 4.4: only the node addressed looks at a routing header."""
    dut.route(NET, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST)
    routing = IPv6ExtHdrRouting(addresses=["2001:db8:f000::77"])

    lan.send(head / routing / UDP(sport=1, dport=2) / Raw(mark))

    assert wan.expect(mark)[IPv6].dst == HOST


def test_slash_127_has_no_anycast_address(dut, lan, wan):
    """RFC 6164, 5.1: both addresses of a /127 are hosts', the even one too."""
    own, peer = "2001:db8:77::1", "2001:db8:77::"
    dut.ip(f"addr add {own}/127 dev {wan.tap} nodad")
    dut.neighbor(peer, wan)
    eventually(lambda: dut.route_row(f"{peer}/127"), 5, 0.005)

    assert dut.forwarded(lan, lan.probe(peer), wan).dst == wan.mac

    lan.send(probe := lan.probe(own))
    dut.taps["lan"].expect_raw(token_of(probe))


# -- what must not pass, each under its own name --


# Hop-by-hop header with the jumbo payload option, 65536 octets: RFC 2675, 2.
JUMBO = bytes([17, 0, 0xC2, 4, 0, 1, 0, 0])
SHAPES = {
    "IP of 39 octets": (lambda d: d[:53], "l2_short"),
    "no IP at all": (lambda d: d[:14], "l2_short"),
    "version 4": (lambda d: d[:14] + b"\x45" + d[15:], "ip6_version"),
    "version 7": (lambda d: d[:14] + b"\x70" + d[15:], "ip6_version"),
    "payload beyond the frame": (lambda d: d[:-1], "ip6_length"),
    "payload far beyond the frame": (
        lambda d: d[:18] + struct.pack("!H", 65535) + d[20:],
        "ip6_length",
    ),
    "jumbogram": (lambda d: d[:18] + b"\0\0\0" + d[21:54] + JUMBO + d[62:], "ip6_length"),
    "options of no octets": (lambda d: d[:18] + b"\0\0\0" + d[21:54], "ip6_length"),
    "another unicast MAC": (lambda d: b"\x02\0\0\0\x77\x77" + d[6:], "l2_foreign"),
    "a group as source": (lambda d: d[:6] + b"\x33" + d[7:], "l2_group_source"),
    "broadcast MAC": (lambda d: b"\xff" * 6 + d[6:], "l2_not_unicast"),
    "multicast MAC": (lambda d: b"\x33\x33\0\0\0\x09" + d[6:], "l2_not_unicast"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_bad_shape_is_dropped_and_counted(dut, lan, wan, name):
    """RFC 8200, 3: the header must hold together; each failure has its own counter."""
    dut.route(NET, via=wan.peer6, wire=wan)
    change, reason = SHAPES[name]
    probes = [change(bytes(lan.probe(HOST, size=80))) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {reason: N}


MARTIANS = {
    "src multicast": ("ff02::1", HOST, "ip6_martian_src"),
    "src ::": ("::", HOST, "ip6_martian_src"),
    "src ::1": ("::1", HOST, "ip6_martian_src"),
    "src IPv4-mapped": ("::ffff:198.51.100.1", HOST, "ip6_martian_src"),
    "dst IPv4-mapped": (None, "::ffff:198.51.100.1", "ip6_martian_dst"),
    "src link-local": ("fe80::99", HOST, "ip6_linklocal"),
    "dst ::": (None, "::", "ip6_martian_dst"),
    "dst ::1": (None, "::1", "ip6_martian_dst"),
    "dst link-local of nobody here": (None, "fe80::99", "ip6_linklocal_dst"),
    "src multicast to a group": ("ff02::1", "ff02::5", "ip6_martian_src"),
    "src ::1 to a group": ("::1", "ff02::5", "ip6_martian_src"),
}


@pytest.mark.parametrize("name", MARTIANS)
def test_martians_are_dropped_and_counted(dut, lan, wan, name):
    """RFC 4291, 2.5.2, 2.5.3, 2.5.6, 2.7 and RFC 6890, 2.2.3: addresses that never pass a router."""
    dut.route("::/0", via=wan.peer6, wire=wan)
    src, dst, reason = MARTIANS[name]
    probes = [lan.probe(dst, src=src) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {reason: N}


def test_a_link_local_destination_is_never_forwarded_not_even_back(dut, lan):
    """RFC 4291, 2.5.6: nobody passes it on. The kernel would, to its own link, and send a
    redirect beside: it gets only what is for itself."""
    lan.answer("fe80::99")
    probe = lan.probe("fe80::99", src="fe80::98")

    assert dut.not_forwarded(lan, probe) == {"ip6_linklocal_dst": 1}
    assert dut.taps["lan"].got(token_of(probe)) == [] == lan.got(token_of(probe))


def test_every_link_local_address_of_a_port_is_ours_and_only_there(dut, lan, wan):
    """RFC 4291, 2.8: any number of them, each on its link; RFC 4291, 2.6.1: and that of all
    routers. One that is taken away is ours no more."""
    own = [f"fe80::5:{n}" for n in range(3)]
    dut.ip(*(f"addr add {address}/64 dev lan0 nodad" for address in own))

    def comes(wire, address):
        wire.send(probe := wire.probe(address, src="fe80::98"))
        return dut.taps[wire.name].expect_raw(token_of(probe), 0.2) == bytes(probe)

    for address in [*own, "fe80::"]:
        eventually(lambda a=address: comes(lan, a), 3)
    assert dut.not_forwarded(wan, wan.probe(own[0])) == {"ip6_linklocal_dst": 1}
    dut.ip(*(f"addr del {address}/64 dev lan0" for address in own))
    gone = lambda: dut.not_forwarded(lan, lan.probe(own[2])) == {"ip6_linklocal_dst": 1}  # noqa: E731
    eventually(gone, 3)


def test_more_link_local_addresses_than_anybody_has_are_the_kernels_to_tell(dut, lan):
    """Of a port with more than eight the kernel is asked: none of ours may be lost."""
    own = [f"fe80::6:{n}" for n in range(12)]
    dut.ip(*(f"addr add {address}/64 dev lan0 nodad" for address in own))
    try:

        def comes():
            lan.send(probe := lan.probe(own[-1], src="fe80::98"))
            return dut.taps["lan"].expect_raw(token_of(probe), 0.2) == bytes(probe)

        eventually(comes, 3)
    finally:
        dut.ip(*(f"addr del {address}/64 dev lan0" for address in own))
