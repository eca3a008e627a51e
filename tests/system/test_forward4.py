# SPDX-License-Identifier: BSD-3-Clause
"""IPv4 in, IPv4 out: what is forwarded and how it looks afterwards; what is dropped, each
under its own name."""

import pytest
from scapy.layers.inet import (
    IP,
    UDP,
    IPOption_RR,
    IPOption_Router_Alert,
    IPOption_Timestamp,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.wait import eventually
from wire import token_of

NET = "198.51.100.0/24"
HOST = "198.51.100.9"
N = 7  # how many of each bad packet are sent


def checksum(header):
    """The ones' complement sum of a header whose checksum field counts as it is."""
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ip_of(data):
    """The IPv4 header of a frame."""
    return data[14 : 14 + (data[14] & 15) * 4]


def test_ttl_minus_one_new_macs_and_nothing_else(dut, lan, wan):
    """RFC 1812, 5.3.1 and 5.2.1: one hop is spent, the link layer is rewritten."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, ttl=64, tos=0xB8, id=4660, size=200)

    out = dut.forwarded(lan, probe, wan)

    assert (out.dst, out.src, out.type) == (wan.mac, wan.port_mac, 0x0800)
    assert out[IP].ttl == 63
    want = Ether(bytes(probe))[IP]
    want.ttl = 63
    del want.chksum
    assert bytes(out[IP]) == bytes(want)


@pytest.mark.parametrize("size", [42, 64, 576, 1280, 1499, 1500])
def test_every_size_is_forwarded_whole(dut, lan, wan, size):
    """RFC 2544, 9.1: frames from the smallest to the largest."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, size=size)

    out = dut.forwarded(lan, probe, wan)

    assert bytes(out[IP])[20 : out[IP].len] == bytes(probe[IP])[20:]
    assert out[IP].len == size


def test_order_is_kept_within_a_flow(dut, lan, wan):
    """RFC 1812, 2.2.1 as all expect it: one flow, one order."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probes = [lan.probe(HOST) for _ in range(200)]

    lan.send(*map(bytes, probes))
    dut.fence(lan)

    tokens = [token_of(data) for data in wan.got() if token_of(data)]
    assert tokens == [token_of(p) for p in probes]


@pytest.mark.parametrize(
    "before", [0x0000, 0x0001, 0xFEFF, 0xFF00, 0xFEFE, 0x00FF, 0xFFFE, 0x0100]
)
def test_checksum_corner_cases(dut, lan, wan, before):
    """RFC 1624, 3: an incremental update must be right where ones' complement has two
    zeros; the identification is chosen so that the checksum sent is `before`."""
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


def test_a_checksum_of_ones_is_one_of_zeros(dut, lan, wan):
    """RFC 1071, 2 (B): ones' complement has two zeros and a sum that is right with one is
    right with the other; a sender may write 0xffff."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST, size=60))
    data = data[:18] + _ident_for_zero(data) + data[20:24] + b"\xff\xff" + data[26:]

    lan.send(data)

    out = wan.expect_raw(token_of(data))
    assert checksum(ip_of(out)) == 0xFFFF and out[24:26] != b"\xff\xff"


def test_every_checksum_survives_the_walk(dut, lan, wan):
    """RFC 1624: 3,000 headers of all sums arrive with a right sum."""
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


@pytest.mark.parametrize("octets", [8, 23], ids=["to the shortest frame", "beyond it"])
def test_ethernet_padding_is_trimmed(dut, lan, wan, octets):
    """RFC 894: octets after the IP total length are padding, not data."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, size=38)
    padded = bytes(probe) + b"\xee" * octets

    lan.send(padded)

    data = wan.expect_raw(token_of(probe))
    assert b"\xee" * 8 not in data[14:]
    assert len(data) == 52 or data[52:] == bytes(len(data) - 52)


@pytest.mark.parametrize(
    "option",
    [IPOption_RR(routers=["0.0.0.0"] * 3), IPOption_Timestamp(), IPOption_Router_Alert()],
    ids=["record-route", "timestamp", "router-alert"],
)
def test_options_are_forwarded(dut, lan, wan, option):
    """RFC 1812, 4.2.2.1 and 5.3.13: options pass as they are; the sum covers the whole
    header; the host sees none of it, whatever a router alert says."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, options=[option])

    out = dut.forwarded(lan, probe, wan)

    sent, left = ip_of(bytes(probe)), ip_of(bytes(out))
    assert out[IP].ihl == Ether(bytes(probe))[IP].ihl > 5
    assert checksum(left) == 0xFFFF
    assert (left[:8], left[12:]) == (sent[:8], sent[12:])
    dut.fence(lan)
    assert dut.taps["lan"].got(token_of(probe)) == []


def test_the_longest_prefix_wins(dut, lan, wan, alt, ext):
    """RFC 1812, 5.2.4.3: longest match, from /0 to /32, under one another."""
    dut.route("0.0.0.0/0", via=ext.peer4, wire=ext)
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    dut.route("198.51.100.128/25", via=alt.peer4, wire=alt)
    dut.route("198.51.100.200/32", via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe("203.0.113.1"), ext)
    dut.forwarded(lan, lan.probe("198.51.100.1"), wan)
    dut.forwarded(lan, lan.probe("198.51.100.199"), alt)
    dut.forwarded(lan, lan.probe("198.51.100.200"), wan)
    dut.forwarded(lan, lan.probe("198.51.100.201"), alt)


def test_no_packet_is_lost_while_a_longer_prefix_comes_and_goes(dut, lan, wan, alt):
    """RFC 1812, 5.2.4.3: at every moment one of the two routes matches."""
    dut.route(NET, via=wan.peer4, wire=wan)
    nhid = dut.zebra.hop(alt.peer4, alt)

    with dut.stream(lan, HOST) as stream:
        for _ in range(60):
            dut.route("198.51.100.8/30", nhid=nhid)
            dut.zebra.drop("198.51.100.8/30")
            eventually(lambda: dut.route_row("198.51.100.8/30") is None, 5, 0.002)

    assert stream.lost(wan, alt) == []
    assert len(stream.arrived(alt)) > 0


def test_source_equal_to_destination_is_forwarded(dut, lan, wan):
    """RFC 1812, 5.3.7 does not list it among martians: it is routed."""
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe(HOST, src=HOST), wan)


def test_out_of_the_interface_it_came_in_by(dut, lan):
    """RFC 1812, 5.2.1: forwarded back; redirects are off."""
    dut.route(NET, via=lan.peer4, wire=lan)
    probe = lan.probe(HOST)

    out = dut.forwarded(lan, probe, lan)

    assert out[IP].ttl == 63
    dut.fence(lan)
    assert len(lan.got(token_of(probe))) == 1


def test_a_first_hop_on_the_connected_subnet(dut, lan, wan):
    """RFC 1812, 5.2.4.2: a destination on a connected subnet is its own next hop."""
    out = dut.forwarded(lan, lan.probe(wan.peer4), wan)

    assert out.dst == wan.mac


# -- what must not pass, each under its own name --


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


SHAPES = {
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
        lambda d: d[:18] + _ident_for_zero(d) + d[20:24] + b"\xff\xfe" + d[26:],
        "ip4_checksum",
    ),
    "another unicast MAC": (lambda d: b"\x02\0\0\0\x77\x77" + d[6:], "l2_foreign"),
    "a group as source": (lambda d: d[:6] + b"\x01" + d[7:], "l2_group_source"),
    "broadcast MAC": (lambda d: b"\xff" * 6 + d[6:], "l2_not_unicast"),
    "multicast MAC": (lambda d: b"\x01\0\x5e\0\0\x09" + d[6:], "l2_not_unicast"),
}


def _ident_for_zero(data):
    """Identification with which the right checksum is 0x0000."""
    header = bytearray(ip_of(data))
    header[4:6] = header[10:12] = b"\0\0"
    return (0xFFFF - checksum(header)).to_bytes(2, "big")


@pytest.mark.parametrize("name", SHAPES)
def test_bad_shape_is_dropped_and_counted(dut, lan, wan, name):
    """RFC 1812, 5.2.2: the tests before forwarding; each failure has its own counter."""
    dut.route(NET, via=wan.peer4, wire=wan)
    change, reason = SHAPES[name]
    probes = [change(bytes(lan.probe(HOST, size=60))) for _ in range(N)]

    drops = dut.not_forwarded(lan, *probes)

    assert drops == {reason: N}


@pytest.mark.parametrize("mac", ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"])
def test_a_unicast_to_us_in_a_group_frame_is_dropped(dut, lan, mac):
    """RFC 1122, 3.3.6: what went to many at the link is no packet to one of us."""
    probes = [lan.probe(lan.ip4), lan.probe(lan.ip6)]
    for probe in probes:
        probe[Ether].dst = mac

    assert dut.not_forwarded(lan, *probes) == {"l2_not_unicast": 2}

    assert [p for p in probes if dut.taps["lan"].got(token_of(p))] == []


def test_length_beyond_the_frame_is_not_hidden_by_padding(dut, lan, wan):
    """RFC 1812, 5.2.2 (5): the total length must fit the frame as received."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST, size=100))[:60]

    assert dut.not_forwarded(lan, *[data] * N) == {"ip4_length": N}


MARTIANS = {
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


@pytest.mark.parametrize("name", MARTIANS)
def test_martians_are_dropped_and_counted(dut, lan, wan, name):
    """RFC 1812, 5.3.7: invalid sources and destinations, even with a default route."""
    dut.route("0.0.0.0/0", via=wan.peer4, wire=wan)
    src, dst, reason = MARTIANS[name]
    probes = [lan.probe(dst, src=src) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {reason: N}


@pytest.mark.parametrize("src", ["127.0.0.1", "0.1.2.3", "224.0.0.9", "255.255.255.255"])
@pytest.mark.parametrize("dst", ["224.0.0.5", "255.255.255.255"])
def test_no_group_hears_of_martians(dut, lan, src, dst):
    """RFC 1122, 3.2.1.3: an invalid source is silently discarded, wherever it sends to."""
    mac = "ff:ff:ff:ff:ff:ff" if dst.startswith("255") else "01:00:5e:00:00:05"
    probe = Ether(src=lan.mac, dst=mac) / lan.probe(dst, src=src).payload

    assert dut.not_forwarded(lan, *[probe] * N) == {"ip4_martian_src": N}
    assert dut.taps["lan"].got(token_of(probe)) == []


@pytest.mark.parametrize("dst", ["192.0.2.127", "192.0.2.64"], ids=["ones", "zeros"])
def test_directed_broadcast_is_dropped(dut, lan, wan, dst):
    """RFC 2644 and RFC 1812, 4.2.3.1: neither form of a broadcast to a connected subnet is
    forwarded, the old one with a host part of zeros included; nor is its sender told."""
    probes = [lan.probe(dst) for _ in range(N)]

    assert dut.not_forwarded(lan, *probes) == {"ip4_directed_bcast": N}
    assert [p for p in probes if lan.got(token_of(p))] == []


def test_a_directed_broadcast_beyond_the_connected_subnets_is_a_unicast(dut, lan, wan):
    """RFC 1812, 5.3.5.2: only the last router can tell; the others forward it."""
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe("198.51.100.255"), wan)


# 7; 0 below another tag; 7 below a priority; a service tag; one cut short.
TAGS = [
    b"\x81\0\0\x07",
    b"\x81\0\0\x07\x81\0\0\0",
    b"\x81\0\xa0\0\x81\0\0\x07",
    b"\x88\xa8\0\x07",
    b"\x81\0\x0f\xff",
]


def test_a_tagged_packet_is_not_routed_as_if_it_had_no_tag(dut, lan, wan):
    """IEEE 802.1Q: another VLAN is another link, and one without an interface is nobody's."""
    dut.route(NET, via=wan.peer4, wire=wan)
    data = bytes(lan.probe(HOST))
    tagged = [data[:12] + tag + data[12:] for tag in TAGS]

    assert dut.not_forwarded(lan, *tagged) == {"vlan_unknown": len(TAGS)}


@pytest.mark.parametrize("priority", [0, 5])
def test_a_tag_with_a_priority_and_no_vlan_is_none(dut, lan, wan, priority):
    """IEEE 802.1Q, 9.6: a frame with id 0 belongs to no VLAN; it leaves without the tag."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST)
    data = bytes(probe)

    lan.send(data[:12] + bytes([0x81, 0, priority << 5, 0]) + data[12:])

    out = wan.expect(token_of(probe))
    assert out.type == 0x0800 and out[IP].ttl == 63


def test_a_far_end_of_a_point_to_point_address_is_a_host(dut, lan, wan):
    """RFC 3021 for /32: `ip addr add A peer B/32`; no address of it is a broadcast."""
    dut.ip("addr add 203.0.113.4 peer 203.0.113.7/32 dev wan0")
    dut.neighbor("203.0.113.7", wan)
    eventually(lambda: dut.route_row("203.0.113.7/32"), 5, 0.005)

    assert dut.forwarded(lan, lan.probe("203.0.113.7"), wan).dst == wan.mac
    assert dut.not_forwarded(lan, lan.probe("203.0.113.6")) == {"no_route": 1}
    probe = lan.probe("203.0.113.4")
    lan.send(probe)
    dut.taps["lan"].expect_raw(token_of(probe))


def test_the_kernels_own_routes_do_not_leak_into_the_dataplane(dut, lan):
    """No route of zebra, no forwarding: the kernel's table is not ours."""
    dut.ip("route replace 203.0.113.0/24 via 192.0.2.66")
    try:
        assert dut.not_forwarded(lan, lan.probe("203.0.113.7")) == {"no_route": 1}
    finally:
        dut.ip("route del 203.0.113.0/24")


def test_slash_31_has_no_broadcast_address(dut, lan, wan):
    """RFC 3021, 2.1: both addresses of a /31 are hosts."""
    dut.ip("addr add 203.0.113.0/31 dev wan0")
    dut.neighbor("203.0.113.1", wan)
    eventually(lambda: dut.route_row("203.0.113.0/31"), 5, 0.005)

    out = dut.forwarded(lan, lan.probe("203.0.113.1"), wan)

    assert out.dst == wan.mac


def test_counters_of_the_good_count_what_passed(dut, lan, wan):
    """RFC 2863, 3.1: ports count frames in and out, the total counts what was routed."""
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
    """RFC 1812, 5.2.1: the payload is not looked at, right or wrong."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST)
    probe[UDP].chksum = 0xBAD1
    probe = probe / Raw(b"tail")

    out = dut.forwarded(lan, probe, wan)

    assert out[UDP].chksum == 0xBAD1
