# SPDX-License-Identifier: BSD-3-Clause
"""Cases of the kernel's selftests for routers (net/forwarding/router.sh, router_broadcast.sh,
router_mpath_nh.sh; net/pmtu.sh), sent as frames to our router and to a Linux router beside it with
the same addresses and routes. The same frames have to come out of both, octet by octet. DIFFERS has
the frames that the two routers treat differently, with the reason."""

import struct

import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gateways import HOST, HOST6, NET, NET6
from ipv4 import checksum, ip_of
from lib.wait import eventually
from linux_router import LinuxRouter
from router import is_icmp_error
from wire import token, token_of

DEFAULTS = ("0.0.0.0/0", "::/0")
# {case: reason}. manual/behavior.md explains the decisions.
NOT_EXAMINED = "ours does not examine options of packets in transit (RFC 8200, 4.3)"
DIFFERS = {
    "source 0.1.2.3": "0/8 is a source of this host only: ours drops it (RFC 1812, 5.3.7)",
    "destination 0.1.2.3": "0/8 is no destination: ours drops it (RFC 1812, 5.3.7)",
    "source 169.254.1.1": "ours forwards no link-local address (RFC 3927, 7)",
    "destination 169.254.7.2": "ours forwards no link-local address (RFC 3927, 7)",
    "source 240.0.0.1": "ours drops 240/4 (RFC 1812, 5.3.7)",
    "destination 240.0.0.1": "ours drops 240/4 (RFC 1812, 5.3.7)",
    "source 192.0.2.1": "ours takes the router's own address as an ordinary source",
    "source 192.0.2.65": "ours takes the router's own address as an ordinary source",
    "source ::ffff:10.0.0.1": "ours drops IPv4-mapped addresses (RFC 6890, 2.2.3)",
    "destination ::ffff:10.0.0.1": "ours drops IPv4-mapped addresses (RFC 6890, 2.2.3)",
    "destination ::": "no node has the unspecified address: ours drops it (RFC 4291, 2.5.2)",
    "IPv4 from a group": "ours drops a frame whose source is a group (IEEE 802)",
    "IPv6 from a group": "ours drops a frame whose source is a group (IEEE 802)",
    "record route": NOT_EXAMINED,
    "timestamp": NOT_EXAMINED,
    "loose source route": NOT_EXAMINED,
    "strict source route": NOT_EXAMINED,
    "wrong option length": NOT_EXAMINED,
    "hop-by-hop unknown, drop": NOT_EXAMINED,
    "hop-by-hop unknown, tell": NOT_EXAMINED,
    "hop-by-hop unknown, tell unless multicast": NOT_EXAMINED,
}


@pytest.fixture(scope="module")
def linux(session_dut):
    """The Linux router."""
    router = LinuxRouter(session_dut)
    try:
        router.build()
        yield router
    finally:
        router.destroy()


@pytest.fixture
def both(dut, linux):
    """Our router and Linux with the same routes; afterwards Linux has none."""
    yield Both(dut, linux)
    linux.ip("route flush proto 99", "-6 route flush proto 99")


class Both:
    """Two routers that get the same routes and the same frames."""

    def __init__(self, dut, linux):
        self.dut, self.linux = dut, linux

    def route(self, prefix, *hops):
        """Add a route by the neighbors on these wires."""
        family = 6 if ":" in prefix else 4
        wires = [self.dut.wires[name] for name in hops]
        gates = [f"nexthop via {w.peer(family)} dev {w.tap}" for w in wires]
        self.linux.ip(
            f"{'-6 ' * (family == 6)}route add {prefix} proto 99 {' '.join(gates)}"
        )
        if len(wires) == 1:
            self.dut.route(prefix, via=wires[0].peer(family), wire=wires[0])
        else:
            nhids = [self.dut.zebra.hop(w.peer(family), w) for w in wires]
            self.dut.route(prefix, nhid=self.dut.zebra.group(nhids))

    def answers(self, frames, wire="lan"):
        """Send {case: frame} into the wire of each router. Return the frames of both, as two
        dictionaries {case: [frame]}."""
        marks = {case: token_of(frame) for case, frame in frames.items()}
        found = []
        for router in (self.linux, self.dut):
            router.wires[wire].send(*frames.values())
            router.fence(router.wires[wire])
            found.append({case: _came_out(router, mark) for case, mark in marks.items()})
        return found

    def agree(self, frames, wire="lan"):
        """Assert that both routers send the same frames, except for DIFFERS."""
        kernel, ours = self.answers(frames, wire)
        wrong = {
            c: (kernel[c], ours[c])
            for c in frames
            if kernel[c] != ours[c] and c not in DIFFERS
        }
        assert wrong == {}, "{case: (frames of Linux, frames of ours)}"
        same = [c for c in frames if c in DIFFERS and kernel[c] == ours[c]]
        assert same == [], f"Linux and ours agree about {same}: remove them from DIFFERS"


def _came_out(router, mark):
    """Return the frames that carry a token, as sorted texts."""
    seen = [(n, data) for n, wire in router.wires.items() for data in wire.got(mark)]
    return sorted(f"{name}: {_text(data)}" for name, data in seen)


def _text(data):
    """Return a frame without padding as hexadecimal text, or the important fields of an ICMP
    error: routers may quote more or less."""
    packet = Ether(data)
    if not is_icmp_error(data):
        last = (
            packet[IP].len
            if IP in packet
            else 40 + packet[IPv6].plen if IPv6 in packet else len(data)
        )
        return data[: 14 + last].hex()
    layer = packet[IP] if IP in packet else packet[IPv6]
    return f"ICMP {layer.payload.type}/{layer.payload.code} {layer.src} > {layer.dst} at {packet.dst}"


def _mac(probe, dst):
    probe[Ether].dst = dst
    return bytes(probe)


def _header(probe, at, value, right=True):
    """Return the octets of an IPv4 probe with another octet of its header, and with a right or the
    old checksum."""
    data = bytearray(bytes(probe))
    data[14 + at] = value
    if right:
        data[24:26] = b"\0\0"
        data[24:26] = (0xFFFF - checksum(ip_of(bytes(data)))).to_bytes(2, "big")
    return bytes(data)


def _extension(lan, kind, octets):
    """Return a UDP packet behind one extension header, whose first octet is the next header."""
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=HOST6, nh=kind)
    return bytes(
        head / Raw(bytes([17]) + octets + bytes(UDP(sport=1, dport=2) / Raw(token())))
    )


def test_sources_that_linux_forwards_or_drops(both, lan):
    """Each kind of source address is forwarded or dropped as by Linux (router.sh: multicast,
    loopback, class E, limited broadcast, source equal to destination; RFC 1812, 5.3.7)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    four = [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.5",
        "239.1.1.1",
        "240.0.0.1",
    ]
    four += ["255.255.255.255", "10.0.0.1", "100.64.0.1", "198.18.0.1", HOST]
    # The router's own addresses, the broadcast address of the link, another link's neighbor.
    four += [lan.ip4, both.dut.wires["wan"].ip4, "192.0.2.63", both.dut.wires["alt"].peer4]
    six = [
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "fe80::1234",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    ]
    six += [
        "fc00::1",
        "100::1",
        "2002:a00:1::1",
        "64:ff9b::1",
        HOST6,
        both.dut.wires["alt"].peer6,
    ]
    six += [lan.ip6, both.dut.wires["wan"].ip6]

    frames = {f"source {src}": bytes(lan.probe(HOST, src=src)) for src in four}
    frames |= {f"source {src}": bytes(lan.probe(HOST6, src=src)) for src in six}
    both.agree(frames)


def test_destinations_that_linux_forwards_or_drops(both, lan):
    """Each kind of destination address is forwarded, answered or dropped as by Linux, although
    there is a default route (router.sh, router_broadcast.sh)."""
    both.route(DEFAULTS[0], "wan")
    both.route(DEFAULTS[1], "wan")
    four = [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "169.254.7.2",
        "224.0.0.5",
        "239.1.1.1",
        "240.0.0.1",
    ]
    four += ["255.255.255.255", "203.0.113.7", "192.0.2.127", "192.0.2.64", "192.0.2.63"]
    six = [
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "fe80::1234",
        "fec0::1",
        "ff02::1",
        "ff05::2",
        "ff0e::1",
    ]
    six += ["fc00::1", "100::1", "2001:db8:1::"]
    four += [both.dut.wires["alt"].peer4]
    six += [both.dut.wires["alt"].peer6]

    frames = {f"destination {dst}": bytes(lan.probe(dst)) for dst in four}
    frames |= {f"destination {dst}": bytes(lan.probe(dst)) for dst in six}
    frames["unicast destination 224.0.0.5"] = _mac(lan.probe("224.0.0.5"), lan.port_mac)
    frames["unicast destination ff0e::1"] = _mac(lan.probe("ff0e::1"), lan.port_mac)
    both.agree(frames)


def test_frames_that_linux_takes_or_leaves(both, lan):
    """A packet in a frame to a group, to another station, with a VLAN tag, or behind an 802.2
    header is taken or left as by Linux (RFC 1122, 3.3.6)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    frames = {}
    for dst in (HOST, HOST6):
        name = "IPv6" if ":" in dst else "IPv4"
        for mac in (
            "ff:ff:ff:ff:ff:ff",
            "01:00:5e:00:00:05",
            "33:33:00:00:00:05",
            "02:00:00:00:77:77",
        ):
            frames[f"{name} in a frame to {mac}"] = _mac(lan.probe(dst), mac)
        probe = bytes(lan.probe(dst))
        frames[f"{name} from a group"] = probe[:6] + b"\x01" + probe[7:]
        probe = bytes(lan.probe(dst))
        frames[f"{name} in VLAN 7"] = probe[:12] + b"\x81\0\0\x07" + probe[12:]
        probe = bytes(lan.probe(dst))
        frames[f"{name} with a priority tag"] = probe[:12] + b"\x81\0\xa0\0" + probe[12:]
        for what, tags in {
            "two priority tags": b"\x81\0\xa0\0\x81\0\0\0",
            "a priority tag of IEEE 802.1ad": b"\x88\xa8\xa0\0",
            "VLAN 7 behind a priority tag": b"\x81\0\xa0\0\x81\0\0\x07",
        }.items():
            probe = bytes(lan.probe(dst))
            frames[f"{name} with {what}"] = probe[:12] + tags + probe[12:]
        probe = bytes(lan.probe(dst))
        snap = struct.pack("!H", len(probe) - 6) + b"\xaa\xaa\x03\0\0\0"
        frames[f"{name} in 802.2 SNAP"] = probe[:12] + snap + probe[12:]
        frames[f"{name} padded"] = bytes(lan.probe(dst)) + bytes(30)
    both.agree(frames)


def test_headers_that_linux_drops(both, lan):
    """A wrong header is dropped as by Linux, and an unusual right header is forwarded (RFC 1812,
    5.2.2 and RFC 8200, 3)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    frames = {
        "version 5": _header(lan.probe(HOST), 0, 0x55),
        "header of 16 octets": _header(lan.probe(HOST), 0, 0x44),
        "length below the header": _header(lan.probe(HOST), 3, 19),
        "length beyond the frame": _header(lan.probe(HOST), 3, 200),
        "length shorter than the frame": bytes(lan.probe(HOST)) + token(),
        "wrong checksum": _header(lan.probe(HOST), 1, 4, right=False),
        "checksum of ones": _checksum_of_ones(lan.probe(HOST)),
        "reserved flag": _header(lan.probe(HOST), 6, 0x80),
        "first fragment": _header(lan.probe(HOST), 6, 0x20),
        "later fragment": _header(lan.probe(HOST), 7, 0x10),
        "protocol 255": _header(lan.probe(HOST), 9, 255),
        "protocol 0": _header(lan.probe(HOST), 9, 0),
        "TOS 255": _header(lan.probe(HOST), 1, 255),
        "IPv6 traffic class and flow label": bytes(lan.probe(HOST6, tc=255, fl=0xFFFFF)),
        "IPv6 next header 59": bytes(lan.probe(HOST6, nh=59)),
        "IPv6 next header 255": bytes(lan.probe(HOST6, nh=255)),
        "IPv6 version 7": _set(lan.probe(HOST6), 14, 0x70),
        "IPv6 payload beyond the frame": _set(lan.probe(HOST6), 19, 200),
        "IPv6 payload shorter than the frame": bytes(lan.probe(HOST6)) + token(),
    }
    both.agree(frames)


def _set(probe, at, value):
    data = bytearray(bytes(probe))
    data[at] = value
    return bytes(data)


def _checksum_of_ones(probe):
    data = bytearray(bytes(probe))
    data[18:20] = data[24:26] = b"\0\0"
    data[18:20] = (0xFFFF - checksum(ip_of(bytes(data)))).to_bytes(2, "big")
    data[24:26] = b"\xff\xff"
    return bytes(data)


def test_hop_limits_and_lost_routes_as_linux_tells_of_them(both, lan):
    """An expired TTL, a destination without a route, and routes of type unreachable, prohibit and
    blackhole cause the same ICMP errors as with Linux (RFC 1812, 5.2.7 and RFC 4443, 3)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    kinds = {"unreachable": 7, "prohibit": 8, "blackhole": 6}  # RTN_*
    for n, (kind, number) in enumerate(kinds.items()):
        for prefix in (f"203.0.113.{16 * n}/28", f"2001:db8:ee:{n + 1}::/64"):
            six = "-6 " * (":" in prefix)
            both.linux.ip(f"{six}route add {kind} {prefix} proto 99")
            both.dut.route(prefix, rtm_type=number)
    frames = {f"TTL {n}": bytes(lan.probe(HOST, ttl=n)) for n in (0, 1, 2, 255)}
    frames |= {f"hop limit {n}": bytes(lan.probe(HOST6, hlim=n)) for n in (0, 1, 2, 255)}
    frames["no route"] = bytes(lan.probe("100.64.1.1"))
    frames["no IPv6 route"] = bytes(lan.probe("2001:db8:dd::1"))
    frames["TTL 1 without a route"] = bytes(lan.probe("100.64.1.1", ttl=1))
    frames["TTL 1 in a broadcast frame"] = _mac(lan.probe(HOST, ttl=1), "ff:ff:ff:ff:ff:ff")
    frames["TTL 1 of a later fragment"] = _header(lan.probe(HOST, ttl=1), 7, 0x10)
    frames["TTL 1 from 0.0.0.0"] = bytes(lan.probe(HOST, ttl=1, src="0.0.0.0"))
    frames["hop limit 1 from ::"] = bytes(lan.probe(HOST6, hlim=1, src="::"))
    for n, kind in enumerate(kinds):
        frames[f"route {kind}"] = bytes(lan.probe(f"203.0.113.{16 * n + 1}"))
        frames[f"IPv6 route {kind}"] = bytes(lan.probe(f"2001:db8:ee:{n + 1}::1"))
    both.agree(frames)


def test_out_of_the_port_by_which_it_came(both, lan):
    """A packet whose next hop is on the ingress link leaves by that link. Both routers send no
    redirects (net/icmp_redirect.sh)."""
    both.route(NET, "lan")
    both.route(NET6, "lan")

    both.agree({dst: bytes(lan.probe(dst)) for dst in (HOST, HOST6)})


def test_options_and_extension_headers_as_linux_has_them(both, lan):
    """IPv4 options and IPv6 extension headers are forwarded as by Linux, except for headers that
    our router does not read (RFC 8200, 4)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    options = {
        "no operation": bytes([1, 1, 1, 0]),
        "router alert": bytes([148, 4, 0, 0]),
        "unknown option": bytes([0x9A, 4, 0, 0]),
        "record route": bytes([7, 7, 4, 0, 0, 0, 0, 0]),
        "timestamp": bytes([68, 8, 5, 0, 0, 0, 0, 0]),
        "loose source route": bytes([131, 7, 4, 192, 0, 2, 130, 0]),
        "strict source route": bytes([137, 7, 4, 192, 0, 2, 130, 0]),
        "wrong option length": bytes([7, 60, 4, 0]),
    }
    frames = {}
    for name, octets in options.items():
        udp = UDP(sport=1, dport=2) / Raw(token())
        head = IP(src=lan.peer4, dst=HOST, proto=17, ihl=5 + len(octets) // 4)
        head.len = 4 * head.ihl + len(udp)
        data = bytearray(
            bytes(Ether(src=lan.mac, dst=lan.port_mac) / head)[:34] + octets + bytes(udp)
        )
        data[24:26] = b"\0\0"
        data[24:26] = (0xFFFF - checksum(ip_of(bytes(data)))).to_bytes(2, "big")
        frames[name] = bytes(data)
    pad = bytes([1, 4, 0, 0, 0, 0])
    frames["hop-by-hop padding"] = _extension(lan, 0, bytes([0]) + pad)
    frames["hop-by-hop router alert"] = _extension(lan, 0, bytes([0, 5, 2, 0, 0, 1, 0]))
    for name, kind in (
        ("skip", 0x1E),
        ("drop", 0x5E),
        ("tell", 0x9E),
        ("tell unless multicast", 0xDE),
    ):
        frames[f"hop-by-hop unknown, {name}"] = _extension(
            lan, 0, bytes([0, kind, 4, 0, 0, 0, 0])
        )
    frames["destination options"] = _extension(lan, 60, bytes([0]) + pad)
    frames["destination options unknown"] = _extension(
        lan, 60, bytes([0, 0x9E, 4, 0, 0, 0, 0])
    )
    segment = bytes.fromhex("20010db8f00000000000000000000077")
    frames["routing header 0"] = _extension(lan, 43, bytes([2, 0, 1, 0, 0, 0, 0]) + segment)
    frames["routing header 4"] = _extension(lan, 43, bytes([2, 4, 0, 0, 0, 0, 0]) + segment)
    frames["fragment header"] = _extension(lan, 44, bytes([0, 0, 1, 0, 0, 0, 7]))
    both.agree(frames)


def test_a_smaller_mtu_on_the_way_out(both, lan, wan):
    """A packet that is larger than the MTU of its egress is answered or cut as by Linux
    (net/pmtu.sh; RFC 1191, RFC 791, RFC 8201)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    both.linux.ip("link set wan0 mtu 1300")
    both.dut.ip("link set wan0 mtu 1300")
    eventually(lambda: both.dut.port_row(wan)["mtu"] == 1300, 5, 0.01)
    try:
        frames = {}
        for size in (1300, 1301, 1400, 1500):
            for name, more in (("DF", {"flags": "DF"}), ("no DF", {"id": size})):
                frames[f"{size} octets, {name}"] = _filled(
                    lan.probe(HOST, size=size, **more)
                )
            frames[f"IPv6, {size} octets"] = _filled(lan.probe(HOST6, size=size))
        both.agree(frames)
    finally:
        both.linux.ip("link set wan0 mtu 1500")


@pytest.mark.parametrize("mtu", [1500, 1300])
def test_fragments_in_transit(both, lan, wan, mtu):
    """Both routers forward, cut or answer fragments in the same way: fragments that overlap, are tiny,
    end beyond 65,535 octets, or have DF or options. Neither router reassembles them (RFC 1812, 5.2.6;
    RFC 8200, 4.5)."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    both.linux.ip(f"link set wan0 mtu {mtu}")
    both.dut.ip(f"link set wan0 mtu {mtu}")
    eventually(lambda: both.dut.port_row(wan)["mtu"] == mtu, 5, 0.01)
    copied, not_copied = IPOption(b"\x9e\x08" + bytes(6)), IPOption(b"\x1e\x08" + bytes(6))
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    frames = {}
    for name, at, size, mf in (
        ("first of two that overlap", 0, 64, 1),
        ("second of two that overlap", 32, 64, 0),
        ("tiny", 0, 16, 1),
        ("octets that 8 does not divide", 0, 33, 1),
        ("long octets that 8 does not divide", 0, 1333, 1),
        ("beyond 65535", 65528, 100, 0),
        ("long and beyond 65535", 64400, 1400, 0),
        ("long and later", 800, 1400, 1),
    ):
        load = token().ljust(size, b"\x55")
        head = IPv6(src=lan.peer6, dst=HOST6) / IPv6ExtHdrFragment(nh=17, offset=at // 8, m=mf, id=7)
        frames[f"IPv6, {name}"] = bytes(eth / head / Raw(load))
        for more, df, options in (
            ("", 0, []),
            (", DF", 2, []),
            (", reserved flag", 4, []),
            (", options", 0, [copied, not_copied]),
        ):
            load = token().ljust(size, b"\x55")
            head = IP(src=lan.peer4, dst=HOST, id=7, proto=17, frag=at // 8, flags=mf | df, options=options)
            frames[f"{name}{more}"] = bytes(eth / head / Raw(load))
    try:
        both.agree(frames)
    finally:
        both.linux.ip("link set wan0 mtu 1500")


def test_dhcp_of_other_relays_and_servers_passes_through(both, lan):
    """A packet of DHCP between a relay agent, a server and a client that are elsewhere is transit,
    whatever its ports are (RFC 2131, 4.1; RFC 8415, 19). A packet from 0.0.0.0 is not forwarded."""
    both.route(NET, "wan")
    both.route(NET6, "wan")
    frames = {}
    for sport, dport in ((67, 67), (68, 67), (67, 68)):
        for op, chaddr in ((1, lan.mac), (2, lan.mac), (2, lan.port_mac)):
            octets = bytes.fromhex(chaddr.replace(":", ""))
            load = BOOTP(op=op, chaddr=octets, giaddr=lan.peer4) / DHCP(options=["end"])
            for src in (lan.peer4, "0.0.0.0"):
                probe = lan.probe(HOST, src=src, sport=sport, dport=dport)
                mark = token_of(bytes(probe))
                probe[UDP].payload = Raw(bytes(load) + mark)
                frames[f"{src}, {sport} to {dport}, op {op} of {chaddr}"] = bytes(probe)
    for sport, dport in ((547, 547), (546, 547), (547, 546)):
        frames[f"IPv6, {sport} to {dport}"] = bytes(lan.probe(HOST6, sport=sport, dport=dport))
    both.agree(frames)


def _filled(probe):
    """Return the octets of a probe whose payload repeats the token, so that each fragment has it."""
    data = bytes(probe)
    mark = token_of(data)
    at = data.index(mark)
    return data[:at] + (mark * 200)[: len(data) - at]


@pytest.mark.parametrize(
    "prefix, dst", [(NET, "198.51.100.{}"), (NET6, "2001:db8:f000::{}")]
)
def test_both_use_all_members_of_a_group(both, lan, prefix, dst):
    """Flows to a group of three leave by each member, with each router's own hash, and each packet
    leaves once (router_multipath.sh, router_mpath_nh.sh)."""
    both.route(prefix, "wan", "alt", "ext")
    by_ports = {f"net.{family}.fib_multipath_hash_policy": 1 for family in ("ipv4", "ipv6")}
    both.linux.sysctl(by_ports)
    frames = {}
    for n in range(1, 91):
        frames[n] = bytes(lan.probe(dst.format(n), sport=1000 + n))
    for answer in both.answers(frames):
        left = [out for outs in answer.values() for out in outs]
        assert len(left) == len(frames)
        by = {
            name: sum(out.startswith(name) for out in left)
            for name in ("wan", "alt", "ext")
        }
        assert all(n >= 10 for n in by.values()), by
