# SPDX-License-Identifier: BSD-3-Clause
"""The router forwards IPv4 and IPv6: these tests check the form of a forwarded packet, and the
counter of each dropped packet. Tests of one family alone are in test_forward_headers.py."""

import struct
from collections import namedtuple

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gateways import HOST, HOST6, NET, NET6
from ipv4 import checksum, ident_for_zero
from lib.wait import eventually
from wire import token_of

N = 7  # the number of each bad packet that the tests send
# A family: its layer and field names, octets of its header, a prefix beyond the router, a host in
# this prefix, the default route.
Family = namedtuple("Family", "family layer type hops header net host default")
FAMILIES = {
    4: Family(4, IP, 0x0800, "ttl", 20, NET, HOST, "0.0.0.0/0"),
    6: Family(6, IPv6, 0x86DD, "hlim", 40, NET6, HOST6, "::/0"),
}


@pytest.fixture
def kind(family):
    """Run the test for both families."""
    return FAMILIES[family]


def by_family(**values):
    """Return the cases of both families: [(kind, value)], named IPv4-value and IPv6-value."""
    return [
        pytest.param(FAMILIES[int(name[-1])], value, id=f"{name}-{value}")
        for name, some in values.items()
        for value in some
    ]


def routed(dut, kind, wire):
    """Announce a route by a wire to the prefix beyond the router."""
    dut.route(kind.net, via=wire.peer(kind.family), wire=wire)


# -- packets that pass --


@pytest.mark.smoke
def test_one_hop_less_new_macs_and_nothing_else(dut, lan, wan, kind):
    """A forwarded packet has one hop less and new MACs. Class, identification, flow label and
    payload pass unchanged (RFC 1812, 5.3.1 and 5.2.1; RFC 8200, 3 and 7)."""
    routed(dut, kind, wan)
    more = {4: {"tos": 0xB8, "id": 4660}, 6: {"tc": 0xB8, "fl": 0xABCDE}}[kind.family]
    probe = lan.probe(kind.host, size=200, **{kind.hops: 64}, **more)

    out = dut.forwarded(lan, probe, wan)

    assert (out.dst, out.src, out.type) == (wan.mac, wan.port_mac, kind.type)
    want = Ether(bytes(probe))[kind.layer]
    setattr(want, kind.hops, 63)
    if kind.family == 4:
        del want.chksum
    assert bytes(out[kind.layer]) == bytes(want)


@pytest.mark.parametrize(
    "kind, size",
    by_family(IPv4=[42, 64, 576, 1280, 1499, 1500], IPv6=[58, 64, 1280, 1499, 1500]),
)
def test_every_size_is_forwarded_whole(dut, lan, wan, kind, size):
    """The router forwards packets of every size whole, from the smallest packet to the egress MTU
    (RFC 2544, 9.1 and RFC 8200, 5)."""
    routed(dut, kind, wan)
    probe = lan.probe(kind.host, size=size)

    out = dut.forwarded(lan, probe, wan)[kind.layer]

    assert (out.len if kind.family == 4 else out.plen + 40) == size
    assert bytes(out)[kind.header : size] == bytes(probe[kind.layer])[kind.header :]


def test_order_is_kept_within_a_flow(dut, lan, wan, kind):
    """The packets of one flow stay in order (RFC 1812, 2.2.1)."""
    routed(dut, kind, wan)
    probes = [lan.probe(kind.host) for _ in range(200)]

    lan.send(*map(bytes, probes))
    dut.fence(lan)

    tokens = [token_of(data) for data in wan.got() if token_of(data)]
    assert tokens == [token_of(p) for p in probes]


@pytest.mark.parametrize("kind, octets", by_family(IPv4=[8, 23], IPv6=[8, 40]))
def test_ethernet_padding_is_trimmed(dut, lan, wan, kind, octets):
    """The router removes Ethernet padding: octets after the packet are no data (RFC 894 and RFC
    2464, 3). IPv4 of 38 octets and 8 more make the shortest frame; a veth may fill that up again,
    with zeros."""
    routed(dut, kind, wan)
    probe = lan.probe(kind.host, size=38 if kind.family == 4 else 0)
    begin, end = 14 + kind.header, len(bytes(probe))

    lan.send(bytes(probe) + b"\xee" * octets)

    data = wan.expect_raw(token_of(probe))
    assert data[begin:end] == bytes(probe)[begin:]
    assert data[end:] == bytes(len(data) - end)


LONGEST = {
    # (prefixes in order, each with its wire), (destinations, with the wire they take)
    4: (
        {
            "0.0.0.0/0": "ext",
            NET: "wan",
            "198.51.100.128/25": "alt",
            "198.51.100.200/32": "wan",
        },
        {
            "203.0.113.1": "ext",
            "198.51.100.1": "wan",
            "198.51.100.199": "alt",
            "198.51.100.200": "wan",
            "198.51.100.201": "alt",
        },
    ),
    6: (
        {
            "::/0": "ext",
            NET6: "wan",
            "2001:db8:f000::/64": "alt",
            "2001:db8:f000::/125": "ext",
            "2001:db8:f000::1/128": "wan",
        },
        {
            "2001:db8:e000::1": "ext",
            "2001:db8:f000:1::1": "wan",
            "2001:db8:f000::8": "alt",
            "2001:db8:f000::7": "ext",
            "2001:db8:f000::1": "wan",
        },
    ),
}


@pytest.mark.smoke
def test_the_longest_prefix_wins(dut, lan, kind):
    """The longest prefix wins at any length, from the default route to one address, also when the
    prefixes overlap (RFC 1812, 5.2.4.3; RFC 4291 and RFC 7608)."""
    routes, destinations = LONGEST[kind.family]
    for prefix, name in routes.items():
        wire = dut.wires[name]
        dut.route(prefix, via=wire.peer(kind.family), wire=wire)

    for dst, name in destinations.items():
        dut.forwarded(lan, lan.probe(dst), dut.wires[name])


def test_no_packet_is_lost_while_a_longer_prefix_comes_and_goes(dut, lan, wan, alt, kind):
    """No packet is lost while a longer prefix is added and withdrawn: one of the two routes always
    matches (RFC 1812, 5.2.4.3 and RFC 7608, 2)."""
    routed(dut, kind, wan)
    nhid = dut.zebra.hop(alt.peer(kind.family), alt)
    longer = {4: "198.51.100.8/30", 6: "2001:db8:f000::/64"}[kind.family]

    with dut.stream(lan, kind.host) as stream:
        for n in range(60):
            dut.route(longer, nhid=nhid)
            if n == 0:
                eventually(lambda: stream.arrived(alt), 5, 0.002)
            dut.zebra.drop(longer)
            eventually(lambda: dut.route_row(longer) is None, 5, 0.002)

    assert stream.lost(wan, alt) == []


def test_source_equal_to_destination_is_forwarded(dut, lan, wan, kind):
    """The router forwards a packet whose source equals its destination. RFC 1812, 5.3.7 does not
    list it among the martians."""
    routed(dut, kind, wan)

    dut.forwarded(lan, lan.probe(kind.host, src=kind.host), wan)


def test_out_of_the_interface_it_came_in_by(dut, lan, kind):
    """The router forwards a packet out of the interface by which it came; redirects are off (RFC
    1812, 5.2.1)."""
    routed(dut, kind, lan)
    probe = lan.probe(kind.host)

    out = dut.forwarded(lan, probe, lan)

    assert getattr(out[kind.layer], kind.hops) == 63
    dut.fence(lan)
    assert len(lan.got(token_of(probe))) == 1


@pytest.mark.smoke
def test_a_host_on_the_connected_subnet(dut, lan, wan, kind):
    """An on-link destination is its own next hop (RFC 1812, 5.2.4.2 and RFC 4861, 5.2)."""
    assert dut.forwarded(lan, lan.probe(wan.peer(kind.family)), wan).dst == wan.mac


@pytest.mark.parametrize(
    "own, peer, prefix",
    [
        ("203.0.113.0/31", "203.0.113.1", "203.0.113.0/31"),
        ("2001:db8:77::1/127", "2001:db8:77::", "2001:db8:77::/127"),
    ],
    ids=["slash-31", "slash-127"],
)
def test_both_addresses_of_a_link_of_two_are_hosts(dut, lan, wan, own, peer, prefix):
    """Both addresses of a link of two addresses are hosts. A /31 has no broadcast address (RFC
    3021, 2.1). A /127 has no anycast address of routers: its even address is that of a host, too
    (RFC 6164, 5.1)."""
    dut.ip(f"addr add {own} dev {wan.tap} nodad")
    dut.neighbor(peer, wan)
    eventually(lambda: dut.route_row(prefix), 5, 0.005)

    assert dut.forwarded(lan, lan.probe(peer), wan).dst == wan.mac

    lan.send(probe := lan.probe(own.partition("/")[0]))
    dut.taps["lan"].expect_raw(token_of(probe))


def test_counters_of_the_good_count_what_passed(dut, lan, wan):
    """Ports count received and sent frames, and the total counts forwarded packets (RFC 2863,
    3.1)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    before = dut.counters()
    ports = {row["name"]: row for row in dut.control.ask("ports")}

    lan.send(*(lan.probe(HOST, size=100) for _ in range(50)))
    wan.expect_many(lambda d: token_of(d) is not None, 50)

    now = eventually(
        lambda: (rows := {r["name"]: r for r in dut.control.ask("ports")})
        and rows["wan0"]["tx_packets"] - ports["wan0"]["tx_packets"] >= 50
        and rows
    )
    assert now["lan0"]["rx_packets"] - ports["lan0"]["rx_packets"] == 50
    assert now["lan0"]["rx_bytes"] - ports["lan0"]["rx_bytes"] == 50 * 114
    assert now["wan0"]["tx_bytes"] - ports["wan0"]["tx_bytes"] >= 50 * 114
    assert (
        sum(dut.moved(before, "total").get(n, 0) for n in ("forwarded4", "forwarded6"))
        == 50
    )
    assert dut.drops(before) == {}


def test_udp_payload_is_left_alone(dut, lan, wan):
    """The router does not look at the UDP payload, valid or not (RFC 1812, 5.2.1)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST)
    probe[UDP].chksum = 0xBAD1
    probe = probe / Raw(b"tail")

    out = dut.forwarded(lan, probe, wan)

    assert out[UDP].chksum == 0xBAD1


# -- packets that must not pass, each under its own name --


def _cut(octets):
    return lambda data: data[:-octets]


def _set(at, value):
    def change(data):
        data = bytearray(data)
        data[at] = value
        data[24:26] = b"\0\0"
        data[24:26] = (0xFFFF - checksum(bytes(data[14:34]))).to_bytes(2, "big")
        return bytes(data)

    return change


def _bad_sum(data):
    return data[:24] + bytes([data[24] ^ 0x40]) + data[25:]


SHAPES4 = {
    "IP of 10 octets": (lambda d: d[:24], "l2_short"),
    "IP of 19 octets": (lambda d: d[:33], "l2_short"),
    "no IP at all": (lambda d: d[:14], "l2_short"),
    "version 5": (_set(14, 0x55), "ip4_version"),
    "version 6": (_set(14, 0x65), "ip4_version"),
    "version 0": (_set(14, 0x05), "ip4_version"),
    "header of 16 octets": (_set(14, 0x44), "ip4_ihl"),
    "header of 0 octets": (_set(14, 0x40), "ip4_ihl"),
    "header beyond the frame": (lambda d: _set(14, 0x4F)(d[:40]), "ip4_ihl"),
    "length below the header": (_set(17, 19), "ip4_length"),
    "length of 0": (_set(17, 0), "ip4_length"),
    "length beyond the frame": (_cut(1), "ip4_length"),
    "wrong checksum": (_bad_sum, "ip4_checksum"),
    "checksum 0xffff for 0x0000": (
        lambda d: d[:18] + ident_for_zero(d) + d[20:24] + b"\xff\xfe" + d[26:],
        "ip4_checksum",
    ),
    "another unicast MAC": (lambda d: b"\x02\0\0\0\x77\x77" + d[6:], "l2_foreign"),
    "a group as source": (lambda d: d[:6] + b"\x01" + d[7:], "l2_group_source"),
    "broadcast MAC": (lambda d: b"\xff" * 6 + d[6:], "l2_not_unicast"),
    "multicast MAC": (lambda d: b"\x01\0\x5e\0\0\x09" + d[6:], "l2_not_unicast"),
}


# Hop-by-hop header with the jumbo payload option, 65536 octets: RFC 2675, 2.
JUMBO = bytes([17, 0, 0xC2, 4, 0, 1, 0, 0])
SHAPES6 = {
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


@pytest.mark.parametrize("kind, name", by_family(IPv4=SHAPES4, IPv6=SHAPES6))
def test_bad_shape_is_dropped_and_counted(dut, lan, wan, kind, name):
    """The router drops a packet that fails one of the checks before forwarding, and each check has
    its own counter (RFC 1812, 5.2.2 and RFC 8200, 3)."""
    routed(dut, kind, wan)
    change, reason = (SHAPES4 if kind.family == 4 else SHAPES6)[name]
    probes = [change(bytes(lan.probe(kind.host, size=40 + kind.header))) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {reason: N}


MARTIANS4 = {
    "src 0.0.0.0": ("0.0.0.0", HOST, "ip4_martian_src"),
    "src 0.1.2.3": ("0.1.2.3", HOST, "ip4_martian_src"),
    "src 127.0.0.1": ("127.0.0.1", HOST, "ip4_martian_src"),
    "src 127.255.255.254": ("127.255.255.254", HOST, "ip4_martian_src"),
    "src multicast": ("233.252.0.1", HOST, "ip4_martian_src"),
    "src 240/4": ("240.0.0.1", HOST, "ip4_martian_src"),
    "src limited broadcast": ("255.255.255.255", HOST, "ip4_martian_src"),
    "dst 0.0.0.0": (None, "0.0.0.0", "ip4_martian_dst"),
    "dst 0.1.2.3": (None, "0.1.2.3", "ip4_martian_dst"),
    "dst 127.0.0.1": (None, "127.0.0.1", "ip4_martian_dst"),
    "dst 240.0.0.1": (None, "240.0.0.1", "ip4_martian_dst"),
    "dst 169.254.1.1": (None, "169.254.1.1", "ip4_linklocal"),
}
MARTIANS6 = {
    "src multicast": ("ff02::1", HOST6, "ip6_martian_src"),
    "src ::": ("::", HOST6, "ip6_martian_src"),
    "src ::1": ("::1", HOST6, "ip6_martian_src"),
    "src IPv4-mapped": ("::ffff:198.51.100.1", HOST6, "ip6_martian_src"),
    "dst IPv4-mapped": (None, "::ffff:198.51.100.1", "ip6_martian_dst"),
    "src link-local": ("fe80::99", HOST6, "ip6_linklocal"),
    "dst ::": (None, "::", "ip6_martian_dst"),
    "dst ::1": (None, "::1", "ip6_martian_dst"),
    "dst link-local of nobody here": (None, "fe80::99", "ip6_linklocal_dst"),
    "src multicast to a group": ("ff02::1", "ff02::5", "ip6_martian_src"),
    "src ::1 to a group": ("::1", "ff02::5", "ip6_martian_src"),
}


@pytest.mark.parametrize("kind, name", by_family(IPv4=MARTIANS4, IPv6=MARTIANS6))
def test_martians_are_dropped_and_counted(dut, lan, wan, kind, name):
    """The router drops packets with addresses that never pass a router, even with a default route
    (RFC 1812, 5.3.7; RFC 4291, 2.5.2, 2.5.3, 2.5.6, 2.7 and RFC 6890, 2.2.3)."""
    dut.route(kind.default, via=wan.peer(kind.family), wire=wan)
    src, dst, reason = (MARTIANS4 if kind.family == 4 else MARTIANS6)[name]
    probes = [lan.probe(dst, src=src) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {reason: N}


@pytest.mark.parametrize("mac", ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"])
def test_a_unicast_to_us_in_a_group_frame_is_dropped(dut, lan, mac):
    """The router drops a packet to its own unicast address in a broadcast or multicast frame (RFC
    1122, 3.3.6)."""
    probes = [lan.probe(lan.ip4), lan.probe(lan.ip6)]
    for probe in probes:
        probe[Ether].dst = mac

    assert dut.not_forwarded(lan, *probes) == {"l2_not_unicast": 2}

    assert [p for p in probes if dut.taps["lan"].got(token_of(p))] == []


def test_a_route_of_the_kernel_alone_is_obeyed(dut, lan, wan):
    """The dataplane forwards by a route that the operator adds with `ip route`, until it is
    deleted (test_kernel_routes and test_kernel_addresses have all kinds)."""
    dut.ip(f"route replace 203.0.113.0/24 via {wan.peer4}")
    try:
        eventually(lambda: dut.route_row("203.0.113.0/24"), 5, 0.005)
        dut.forwarded(lan, lan.probe("203.0.113.7"), wan)
    finally:
        dut.ip("route del 203.0.113.0/24")
    eventually(lambda: not dut.route_row("203.0.113.0/24"), 5, 0.005)
    assert dut.not_forwarded(lan, lan.probe("203.0.113.7")) == {"no_route": 1}


# VLAN id 7; id 0 below id 7; id 7 below a priority tag; a service tag; the reserved id 4095.
TAGS = [
    b"\x81\0\0\x07",
    b"\x81\0\0\x07\x81\0\0\0",
    b"\x81\0\xa0\0\x81\0\0\x07",
    b"\x88\xa8\0\x07",
    b"\x81\0\x0f\xff",
]


def test_a_tagged_packet_is_not_routed_as_if_it_had_no_tag(dut, lan, wan):
    """The router drops a packet with the tag of a VLAN that has no interface, because another VLAN
    is another link (IEEE 802.1Q)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST))
    tagged = [data[:12] + tag + data[12:] for tag in TAGS]

    assert dut.not_forwarded(lan, *tagged) == {"vlan_unknown": len(TAGS)}


@pytest.mark.parametrize("priority", [0, 5])
def test_a_tag_with_a_priority_and_no_vlan_is_none(dut, lan, wan, priority):
    """The router forwards a frame with VLAN id 0, because it belongs to no VLAN. It leaves without
    the tag (IEEE 802.1Q, 9.6)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST)
    data = bytes(probe)

    lan.send(data[:12] + bytes([0x81, 0, priority << 5, 0]) + data[12:])

    out = wan.expect(token_of(probe))
    assert out.type == 0x0800 and out[IP].ttl == 63
