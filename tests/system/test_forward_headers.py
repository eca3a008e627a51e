# SPDX-License-Identifier: BSD-3-Clause
"""Tests of one family alone: checksum, options and broadcasts of IPv4; extension headers and
link-local addresses of IPv6. Tests of both families are in test_forward.py."""

import pytest
from scapy.layers.inet import (
    IP,
    UDP,
    IPOption_RR,
    IPOption_Router_Alert,
    IPOption_Timestamp,
)
from scapy.layers.inet6 import (
    ICMPv6ParamProblem,
    IPv6,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gateways import HOST, HOST6, NET, NET6
from ipv4 import checksum, ident_for_zero, ip_of
from lib import netns
from lib.wait import eventually
from wire import token, token_of

N = 7  # the number of each bad packet that the tests send


# -- IPv4 alone --


@pytest.mark.parametrize(
    "before", [0x0000, 0x0001, 0xFEFF, 0xFF00, 0xFEFE, 0x00FF, 0xFFFE, 0x0100]
)
def test_checksum_corner_cases(dut, lan, wan, before):
    """An incremental update of the checksum is right where ones' complement has two zeros (RFC
    1624, 3). The test chooses the identification so that the sent checksum is `before`."""
    dut.route(NET, via=wan.peer4, wire=wan)
    for ttl in (2, 64, 255):
        probe = lan.probe(HOST, ttl=ttl, id=0)
        data = bytearray(bytes(probe))
        data[24:26] = b"\0\0"
        data[18:20] = (0xFFFF - (checksum(ip_of(data)) + before) % 0xFFFF).to_bytes(
            2, "big"
        )
        data[24:26] = before.to_bytes(2, "big")
        assert checksum(ip_of(data)) == 0xFFFF

        lan.send(bytes(data))

        out = wan.expect_raw(token_of(data))
        assert checksum(ip_of(out)) == 0xFFFF, f"ttl={ttl}: {ip_of(out).hex()}"
        assert out[24:26] != b"\xff\xff", "ones' complement zero is written 0x0000"
        assert out[22] == ttl - 1


@pytest.mark.smoke
def test_a_checksum_of_ones_is_one_of_zeros(dut, lan, wan):
    """The router accepts a checksum of 0xffff in place of 0, because ones' complement has two
    zeros: a sum that is right with one zero is right with the other (RFC 1071, 2 (B))."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST, size=60))
    data = data[:18] + ident_for_zero(data) + data[20:24] + b"\xff\xff" + data[26:]

    lan.send(data)

    out = wan.expect_raw(token_of(data))
    assert checksum(ip_of(out)) == 0xFFFF and out[24:26] != b"\xff\xff"


def test_every_checksum_survives_the_walk(dut, lan, wan):
    """3,000 headers, whose sums are spread over all values, leave with a right sum (RFC 1624)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = bytearray(bytes(lan.probe(HOST, id=0)))
    mark = token_of(probe)

    for ident in range(0, 65536, 22):
        probe[18:20] = ident.to_bytes(2, "big")
        probe[24:26] = b"\0\0"
        probe[24:26] = (0xFFFF - checksum(ip_of(probe))).to_bytes(2, "big")
        lan.send(bytes(probe))
        if ident % 2200 == 0:
            dut.fence(lan)

    frames = wan.expect_many(mark, len(range(0, 65536, 22)), 5)
    assert all(checksum(ip_of(data)) == 0xFFFF for data in frames)


@pytest.mark.parametrize(
    "option",
    [IPOption_RR(routers=["0.0.0.0"] * 3), IPOption_Timestamp(), IPOption_Router_Alert()],
    ids=["record-route", "timestamp", "router-alert"],
)
def test_options_are_forwarded(dut, lan, wan, option):
    """The router forwards options unchanged, with a checksum over the whole header. The kernel of
    the router sees no such packet, not even with a router alert (RFC 1812, 4.2.2.1 and 5.3.13)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, options=[option])

    out = dut.forwarded(lan, probe, wan)

    sent, left = ip_of(bytes(probe)), ip_of(bytes(out))
    assert out[IP].ihl == Ether(bytes(probe))[IP].ihl > 5
    assert checksum(left) == 0xFFFF
    assert (left[:8], left[12:]) == (sent[:8], sent[12:])
    dut.fence(lan)
    assert dut.taps["lan"].got(token_of(probe)) == []


def test_length_beyond_the_frame_is_not_hidden_by_padding(dut, lan, wan):
    """A total length larger than the received frame is an error, also when padding fills the frame
    (RFC 1812, 5.2.2 (5))."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST, size=100))[:60]

    assert dut.not_forwarded(lan, *[data] * N) == {"ip4_length": N}


@pytest.mark.parametrize("src", ["127.0.0.1", "0.1.2.3", "224.0.0.9", "255.255.255.255"])
@pytest.mark.parametrize("dst", ["224.0.0.5", "255.255.255.255"])
def test_no_group_hears_of_martians(dut, lan, src, dst):
    """The router drops a packet with an invalid source silently, also when its destination is a
    group (RFC 1122, 3.2.1.3)."""
    mac = "ff:ff:ff:ff:ff:ff" if dst.startswith("255") else "01:00:5e:00:00:05"
    probe = Ether(src=lan.mac, dst=mac) / lan.probe(dst, src=src).payload

    assert dut.not_forwarded(lan, *[probe] * N) == {"ip4_martian_src": N}
    assert dut.taps["lan"].got(token_of(probe)) == []


@pytest.mark.smoke
def test_directed_broadcast_is_dropped(dut, lan, wan):
    """The router does not forward a broadcast to a connected subnet, and sends no error (RFC
    2644)."""
    probes = [lan.probe("192.0.2.127") for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {"ip4_directed_bcast": N}
    assert [p for p in probes if lan.got(token_of(p))] == []


def test_a_host_part_of_zeros_is_a_host(dut, lan, wan):
    """The first address of a subnet is a host, as in Linux since 5.14
    (draft-ietf-intarea-schoen-lowest-address). Linux before that adds a broadcast route for it,
    which the router obeys."""
    routes = netns.command(["ip", "-n", dut.ctl, "route", "show", "table", "local"])
    if "broadcast 192.0.2.64 " in routes:
        pytest.skip("this kernel takes the first address of a subnet for a broadcast")
    wan.answer("192.0.2.64")

    dut.forwarded(lan, lan.probe("192.0.2.64"), wan)


def test_a_directed_broadcast_beyond_the_connected_subnets_is_a_unicast(dut, lan, wan):
    """The router forwards a broadcast to a subnet beyond its own as a unicast, because only the
    last router can recognize it (RFC 1812, 5.3.5.2)."""
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe("198.51.100.255"), wan)


def test_a_far_end_of_a_point_to_point_address_is_a_host(dut, lan, wan):
    """The far address of `ip addr add A peer B/32` is a host. No address of the /32 is a broadcast
    (RFC 3021)."""
    dut.ip("addr add 203.0.113.4 peer 203.0.113.7/32 dev wan0")
    dut.neighbor("203.0.113.7", wan)
    eventually(lambda: dut.route_row("203.0.113.7/32"), 5, 0.005)

    assert dut.forwarded(lan, lan.probe("203.0.113.7"), wan).dst == wan.mac
    assert dut.not_forwarded(lan, lan.probe("203.0.113.6")) == {"no_route": 1}
    probe = lan.probe("203.0.113.4")
    lan.send(probe)
    dut.taps["lan"].expect_raw(token_of(probe))


# -- IPv6 alone --


def test_via_a_link_local_gateway(dut, lan, wan):
    """A route by a link-local gateway forwards, because routers announce themselves by their
    link-local addresses (RFC 4861, 6.3.4)."""
    mac = dut.neighbor("fe80::77", wan, "02:00:00:00:77:77")
    dut.route(NET6, via="fe80::77", wire=wan)

    assert dut.forwarded(lan, lan.probe(HOST6), wan).dst == mac


def test_the_same_link_local_gateway_on_two_links(dut, lan, wan, alt):
    """One link-local address on two links names two gateways (RFC 4007, 6)."""
    on_wan = dut.neighbor("fe80::78", wan, "02:00:00:00:78:01")
    on_alt = dut.neighbor("fe80::78", alt, "02:00:00:00:78:02")
    dut.route("2001:db8:f000::/48", via="fe80::78", wire=wan)
    dut.route("2001:db8:f001::/48", via="fe80::78", wire=alt)

    assert dut.forwarded(lan, lan.probe("2001:db8:f000::1"), wan).dst == on_wan
    assert dut.forwarded(lan, lan.probe("2001:db8:f001::1"), alt).dst == on_alt


def test_hop_by_hop_options_are_forwarded(dut, lan, wan):
    """The router forwards hop-by-hop options without a look at them (RFC 8200, 4.3)."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST6)
    options = IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])

    lan.send(head / options / UDP(sport=1, dport=2) / Raw(mark))

    assert wan.expect(mark)[IPv6].nh == 0


@pytest.mark.parametrize(
    "kind", [0x1E, 0x5E, 0x9E, 0xDE], ids="skip drop tell tell1".split()
)
def test_hop_by_hop_options_unknown_to_us_are_passed_on(dut, lan, wan, kind):
    """The router forwards unknown hop-by-hop options with any action bits, because it is not
    configured to look at them (RFC 8200, 4.3 and RFC 9673, 5)."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    mark = token()
    options = bytes([17, 0, kind, 4]) + bytes(4)
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST6, nh=0)
    frame = head / Raw(options + bytes(UDP(sport=1, dport=2) / Raw(mark)))

    lan.send(frame)

    want = bytearray(bytes(frame))
    want[21] -= 1
    assert wan.expect_raw(mark)[14:] == bytes(want[14:])


@pytest.mark.smoke
def test_a_long_chain_of_extension_headers_is_bounded_work(dut, lan, wan):
    """The router forwards by the fixed header alone (RFC 8200, 4.1). The fast path walks no chain
    of extension headers to its end, right or nonsense, and no chain crashes the slow path."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    chain = bytes([60, 0, 1, 4, 0, 0, 0, 0]) * 170
    for load in (chain, chain[:-5], b"\x3c\xff" + chain, b"\x33\x00" * 40):
        mark = token()
        packet = IPv6(src=lan.peer6, dst=HOST6, nh=60) / Raw(mark + load)
        lan.send(eth / packet)
        wan.expect_raw(mark)
        packet.hlim = 1
        lan.send(eth / packet)
        assert lan.expect(mark).payload.nh == 58, "time exceeded"


def test_a_routing_header_0_for_us_is_refused_by_the_kernel(dut, lan, wan):
    """The kernel answers a routing header 0 with segments left with an error to the source, and
    nothing goes to the segment (RFC 5095, 3)."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=lan.ip6)
    routing = IPv6ExtHdrRouting(addresses=[HOST6])

    lan.send(head / routing / UDP(sport=1, dport=2) / Raw(mark))

    reply = lan.expect(mark)
    assert (reply[ICMPv6ParamProblem].code, reply[ICMPv6ParamProblem].ptr) == (0, 42)
    assert wan.got(mark) == []


def test_an_unknown_option_for_us_is_answered_by_the_kernel(dut, lan):
    """The kernel discards an unknown option with action bits 10 and sends parameter problem 2 to
    the source (RFC 8200, 4.2)."""
    mark = token()
    options = bytes([17, 0, 0x9E, 4]) + bytes(4)
    head = Ether(src=lan.mac, dst=lan.port_mac)
    packet = IPv6(src=lan.peer6, dst=lan.ip6, nh=0) / Raw(
        options + bytes(UDP() / Raw(mark))
    )

    lan.send(head / packet)

    assert lan.expect(mark)[ICMPv6ParamProblem].code == 2


def test_routing_header_0_to_another_node_is_forwarded(dut, lan, wan):
    """The router forwards a routing header 0 to another node, because only the addressed node looks
    at it (RFC 5095, 3 with RFC 8200, 4.4)."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    mark = token()
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST6)
    routing = IPv6ExtHdrRouting(addresses=["2001:db8:f000::77"])

    lan.send(head / routing / UDP(sport=1, dport=2) / Raw(mark))

    assert wan.expect(mark)[IPv6].dst == HOST6


def test_a_link_local_destination_is_never_forwarded_not_even_back(dut, lan):
    """The router drops a packet to another link-local address (RFC 4291, 2.5.6). It does not punt
    the packet, because the kernel would send it back on the link, with a redirect."""
    lan.answer("fe80::99")
    probe = lan.probe("fe80::99", src="fe80::98")

    assert dut.not_forwarded(lan, probe) == {"ip6_linklocal_dst": 1}
    assert dut.taps["lan"].got(token_of(probe)) == [] == lan.got(token_of(probe))


def test_every_link_local_address_of_a_port_is_ours_and_only_there(dut, lan, wan):
    """The kernel gets packets to any number of link-local addresses of a port, on their link only,
    and to the anycast address of routers (RFC 4291, 2.8 and 2.6.1). It gets none to a removed
    address."""
    own = [f"fe80::5:{n}" for n in range(3)]
    dut.ip(*(f"addr add {address}/64 dev lan0 nodad" for address in own))

    def comes(wire, address):
        wire.send(probe := wire.probe(address, src="fe80::98"))
        return dut.taps[wire.name].expect_raw(token_of(probe), 0.2) == bytes(probe)

    for address in [*own, "fe80::"]:
        eventually(lambda a=address: comes(lan, a), 3)
    assert dut.not_forwarded(wan, wan.probe(own[0])) == {"ip6_linklocal_dst": 1}
    dut.ip(*(f"addr del {address}/64 dev lan0" for address in own))
    gone = lambda: dut.not_forwarded(lan, lan.probe(own[2])) == {
        "ip6_linklocal_dst": 1
    }  # noqa: E731
    eventually(gone, 3)


def test_more_link_local_addresses_than_anybody_has_are_the_kernels_to_tell(dut, lan):
    """With more than eight link-local addresses on a port, the router punts the packets to
    link-local destinations, so that the kernel decides and no packet to the router is lost."""
    own = [f"fe80::6:{n}" for n in range(12)]
    dut.ip(*(f"addr add {address}/64 dev lan0 nodad" for address in own))
    try:

        def comes():
            lan.send(probe := lan.probe(own[-1], src="fe80::98"))
            return dut.taps["lan"].expect_raw(token_of(probe), 0.2) == bytes(probe)

        eventually(comes, 3)
    finally:
        dut.ip(*(f"addr del {address}/64 dev lan0" for address in own))
