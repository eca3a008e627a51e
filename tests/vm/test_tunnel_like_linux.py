# SPDX-License-Identifier: BSD-3-Clause
"""Packets into and out of tunnels, sent to our router and to a Linux router beside it with the same tunnels:
TTL, TOS, ECN, DF, keys, lengths, errors. The same frames have to come out of both. DIFFERS has the packets
that both treat differently, with the reason."""

import itertools
import re
import struct

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from twins import Twins, came_out, equal
from wire import token_of

NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}
# Kind: words of `ip`, family of the outer header, families of the packets.
KINDS = {
    "gre": ("type gre", 4, (4, 6)),
    "gre, key, tos inherit": ("type gre ikey 7 okey 9 ttl 64 tos inherit", 4, (4, 6)),
    "gre, tos, nopmtudisc": ("type gre tos 0xb8 nopmtudisc", 4, (4, 6)),
    "gre, ignore-df": ("type gre nopmtudisc ignore-df ttl inherit", 4, (4, 6)),
    "ipip, ttl": ("type ipip ttl 9 tos inherit", 4, (4,)),
    "ipip, nopmtudisc": ("type ipip nopmtudisc", 4, (4,)),
    "sit": ("type sit tos inherit", 4, (6,)),
    "sit any": ("type sit mode any nopmtudisc", 4, (4, 6)),
    "ip6gre": ("type ip6gre", 6, (4, 6)),
    "ip6gre, key": ("type ip6gre key 4000000000 encaplimit none tclass inherit hoplimit 9", 6, (4, 6)),
    "ip6tnl": ("type ip6tnl mode any tclass inherit", 6, (4, 6)),
    "ip6tnl, limit 0": ("type ip6tnl mode any encaplimit 0 hoplimit 9", 6, (4, 6)),
    "ip6tnl, no limit": ("type ip6tnl mode any encaplimit none tclass 0xb8", 6, (4, 6)),
}  # fmt: skip
# Tunnels that stand for the others where a test takes long.
PLAIN = ["gre", "ipip, ttl", "ip6tnl"]
LACKS = "no route|a refusing route|no local address"
DIFFERS = {
    r"(?!ip6gre).*: IPv[46], TOS 0x(3|bb|ff)": "ours copies CE to the outer header (RFC 6040, 4.1), Linux writes ECT(0)",
    r"ip6gre: IPv[46], TOS 0x(1|2|3|bb|ff)": "ours copies the ECN field to the outer header (RFC 6040, 4.1), Linux writes 0",
    rf"(gre|ipip, ttl), ({LACKS}): .*": "ours tells the sender (RFC 1812, 4.3.3.1), Linux counts an error of the device",
    rf"ip6tnl, ({LACKS}): .*": "ours quotes the packet as it came, with the code of the route; Linux tells of an unreachable host or address",
}


@pytest.fixture(scope="module")
def both(on_veths):
    """Return both routers."""
    on_veths.ready()
    netns.command(["modprobe", "-a", "ip_gre", "ipip", "sit", "ip6_gre", "ip6_tunnel"])
    twins = Twins(on_veths)
    try:
        twins.linux.build()
        yield twins
    finally:
        twins.linux.destroy()


@pytest.fixture(params=KINDS)
def tunnel(request, both):
    """Make a tunnel in both. Return (kind, outer family, inner families)."""
    words, family, inner = KINDS[request.param]
    wan = both.ours.wires["wan"]
    both.ip(f"link add t0 {words} local {wan.own(family)} remote {wan.peer(family)}")
    for one in (both.linux, both.ours):
        netns.sysctl(one.ctl, {"net.ipv6.conf.t0.disable_ipv6": 0, "net.ipv4.conf.t0.rp_filter": 0})
    both.ip("link set t0 up", "addr add 10.9.0.1/30 dev t0", "-6 addr add 2001:db8:99::1/64 dev t0 nodad")
    both.ip(*(f"{'-6 ' * (f == 6)}route add {NET[f]} dev t0" for f in inner))
    rows = lambda: [r for r in both.ours.control.ask("interfaces") if r["name"] == "t0"]  # noqa: E731
    eventually(lambda: rows() and all(both.ours.route_row(NET[f]) for f in inner), 10, 0.05, "the tunnel")
    yield request.param, family, inner
    both.ip("link del t0")
    eventually(lambda: not rows(), 10, 0.05, "no tunnel")


def test_packets_into_a_tunnel(both, tunnel):
    """Both routers send the same outer headers, the same fragments, and the same errors to the sender."""
    kind, _, families = tunnel
    lan, frames = both.ours.wires["lan"], {}
    for family in families:
        dst, name = HOST[family], f"{kind}: IPv{family}"
        hops, tos = ("ttl", "tos") if family == 4 else ("hlim", "tc")
        for ttl in (255, 2, 1):
            frames[f"{name}, TTL {ttl}"] = lan.probe(dst, **{hops: ttl})
        for value in (0, 1, 2, 3, 0xB8, 0xBB, 0xFF):
            frames[f"{name}, TOS {value:#x}"] = lan.probe(dst, **{tos: value})
        sizes = (1280, 1400, 1423, 1424, 1436, 1440, 1444, 1448, 1452, 1456, 1460, 1472, 1476, 1480, 1481, 1500)
        for size in sizes:
            frames[f"{name}, length {size}"] = lan.probe(dst, size=size)
            if family == 4:
                frames[f"{name}, length {size}, DF"] = lan.probe(dst, size=size, flags="DF")
        if family == 4:
            frames[f"{name}, DF"] = lan.probe(dst, flags="DF")
            frames[f"{name}, fragment"] = lan.probe(dst, flags="MF", frag=0, size=100)
        else:
            # ip6_tnl_addr_conflict(): Linux drops it as one of a loop if the outer packet is IPv6.
            frames[f"{name}, from the far end"] = lan.probe(dst, src=both.ours.wires["wan"].peer6)
            frames[f"{name}, flow label"] = lan.probe(dst, fl=0x12345)
            # RFC 2473, 4.1.1: the packet is one of a tunnel, and names the number of further tunnels.
            for limit in (5, 2, 1, 0):
                packet = lan.probe(dst)
                body = bytes(packet[IPv6].payload)
                option = bytes([17, 0, 4, 1, limit, 1, 1, 0])
                packet[IPv6].remove_payload()
                packet[IPv6].nh = 60
                frames[f"{name}, encapsulation limit {limit}"] = packet / Raw(option + body)
    frames = {c: bytes(f) for c, f in frames.items()}
    equal(*both.answers(frames), DIFFERS)


def outer(both, kind, family, packet, gre=None, source=None, **fields):
    """Return a frame of the far end with an inner packet. `gre` has the octets of a GRE header to
    use in place of the tunnel's."""
    wan, six = both.ours.wires["wan"], isinstance(packet, IPv6)
    body = bytes(packet)
    proto = 41 if six else 4
    if "gre" in kind:
        key = {"gre, key, tos inherit": 7, "ip6gre, key": 4000000000}.get(kind)
        head = struct.pack("!HH", 0x2000 if key else 0, 0x86DD if six else 0x800) + (struct.pack("!I", key) if key else b"")
        body, proto = (head if gre is None else gre) + body, 47
    src = source or wan.peer(family)
    if family == 4:
        ip = IP(src=src, dst=wan.own(4), proto=proto, **fields)
    else:
        ip = IPv6(src=src, dst=wan.own(6), nh=proto, **fields)
    return bytes(Ether(src=wan.mac, dst=wan.port_mac) / ip / Raw(body))


def test_packets_out_of_a_tunnel(both, tunnel):
    """Both routers forward the same packets out of the tunnel and answer or drop the same packets:
    for each pair of ECN fields outside and inside, and for unusual addresses, TTLs, lengths and
    GRE headers."""
    kind, family, families = tunnel
    lan, wan, frames = both.ours.wires["lan"], both.ours.wires["wan"], {}
    tos_out = "tos" if family == 4 else "tc"
    for inner in families:
        name, dst = f"{kind}: IPv{inner}", lan.peer(inner)
        hops, tos = ("ttl", "tos") if inner == 4 else ("hlim", "tc")

        def packet(to=dst, family=inner, **more):
            return wan.probe(to, src=HOST[family], **more).payload

        for out, into in itertools.product(range(4), range(4)):
            frames[f"{name}, ECN {out} outside, {into} inside"] = outer(both, kind, family, packet(**{tos: into}), **{tos_out: out})
        frames[f"{name}, DSCP outside"] = outer(both, kind, family, packet(), **{tos_out: 0xB8})
        frames[f"{name}, outer hops 1"] = outer(both, kind, family, packet(), **({"ttl": 1} if family == 4 else {"hlim": 1}))
        for ttl in (1, 2):
            frames[f"{name}, inner TTL {ttl}"] = outer(both, kind, family, packet(**{hops: ttl}))
        frames[f"{name}, to nowhere"] = outer(both, kind, family, packet("100.64.7.9" if inner == 4 else "2001:db8:77::9"))
        frames[f"{name}, back into the tunnel"] = outer(both, kind, family, packet(HOST[inner]))
        frames[f"{name}, to a loopback address"] = outer(both, kind, family, packet("127.0.0.1" if inner == 4 else "::1"))
        martian = {4: "127.0.0.9", 6: "::1"}[inner]
        frames[f"{name}, from a loopback address"] = outer(both, kind, family, wan.probe(dst, src=martian).payload)
        frames[f"{name}, from a group"] = outer(both, kind, family, wan.probe(dst, src={4: "224.0.0.9", 6: "ff0e::9"}[inner]).payload)
        frames[f"{name}, from another far end"] = outer(both, kind, family, packet(), source={4: "192.0.2.77", 6: "2001:db8:1::77"}[family])
        frames[f"{name}, longer than the outer packet"] = outer(both, kind, family, packet(len=200) if inner == 4 else packet(plen=200))
        frames[f"{name}, 1400 octets"] = outer(both, kind, family, packet(size=1400))
        if "gre" in kind:
            proto = struct.pack("!H", 0x800 if inner == 4 else 0x86DD)
            own = 4000000000 if kind == "ip6gre, key" else 7
            keyed = "key" in kind
            for what, gre in {
                "no key": b"\0\0" + proto,
                "a wrong key": b"\x20\0" + proto + struct.pack("!I", 8),
                "the key": b"\x20\0" + proto + struct.pack("!I", own),
                "a sequence number": (b"\x30\0" if keyed else b"\x10\0") + proto + (struct.pack("!I", own) if keyed else b"") + struct.pack("!I", 5),
                "a wrong checksum": (b"\xa0\0" if keyed else b"\x80\0") + proto + b"\1\2\0\0" + (struct.pack("!I", own) if keyed else b""),
                "version 1": b"\0\1" + proto,
                "a routing bit": b"\x40\0" + proto + bytes(4),
                "reserved bits": b"\0\x78" + proto,
                "an unknown protocol": b"\0\0\x12\x34",
                "a cut header": b"\x20\0",
            }.items():
                frames[f"{name}, GRE with {what}"] = outer(both, kind, family, packet(), gre=gre)
        if family == 4:
            frames[f"{name}, outer DF"] = outer(both, kind, family, packet(), flags="DF")
    equal(*both.answers(frames, "wan"), DIFFERS)

def in_fragments(frame, family, at):
    """Return the two fragments of a frame whose IP packet has no extension header."""
    ip = Ether(frame)[IP if family == 4 else IPv6]
    head, body = Ether(frame[:14]), bytes(ip.payload)
    if family == 4:
        each = [(IP(src=ip.src, dst=ip.dst, proto=ip.proto, id=77, flags="MF"), 0, at), (IP(src=ip.src, dst=ip.dst, proto=ip.proto, id=77, frag=at // 8), at, None)]
        return [bytes(head / one / Raw(body[a:b])) for one, a, b in each]
    each = [(IPv6ExtHdrFragment(nh=ip.nh, id=77, m=1), 0, at), (IPv6ExtHdrFragment(nh=ip.nh, id=77, offset=at // 8), at, None)]
    return [bytes(head / IPv6(src=ip.src, dst=ip.dst) / one / Raw(body[a:b])) for one, a, b in each]


@pytest.mark.parametrize("tunnel", PLAIN, indirect=True)
def test_outer_fragments_are_reassembled(both, tunnel):
    """The kernel of our router gets the fragments of an outer packet, reassembles the packet, and
    forwards the inner packet, whichever fragment comes first. Both routers send the same frame."""
    kind, family, families = tunnel
    ours, linux = both.ours, both.linux
    for inner in families:
        for turned in (False, True):
            sent = ours.wires["wan"].probe(ours.wires["lan"].peer(inner), src=HOST[inner], size=300)
            pieces = in_fragments(outer(both, kind, family, sent.payload), family, 160)
            came = []
            for one in (linux, ours):
                one.wires["wan"].send(*(pieces[::-1] if turned else pieces))
                one.wires["lan"].expect_raw(token_of(sent), 10)
                both.fence(one, "wan")
                came.append(came_out(one, token_of(sent)))
            assert came[0] == came[1] and len(came[0]) == 1, (kind, inner, turned, came)


# Addresses of a tunnel of the next test: one of this router on lo, and a far end behind a route.
ENDS = {4: ("203.0.113.1", "203.0.113.77"), 6: ("2001:db8:ed::1", "2001:db8:ee::77")}


def became(texts):
    """Return what became of a packet, by the texts of the frames that came out."""
    if not texts:
        return "nothing"
    return "told" if re.search(r" ICMP .* quotes ", texts[0]) else "sent"


@pytest.mark.parametrize("kind", PLAIN)
def test_what_a_tunnel_lacks_is_told_to_the_sender(both, kind):
    """The sender gets "unreachable" if the tunnel is down, if its local address has gone, or if the
    outer packet has no route or a refusing one. From Linux it gets this only if the kind of
    tunnel does so."""
    words, family, families = KINDS[kind]
    lan, wan = both.ours.wires["lan"], both.ours.wires["wan"]
    (local, remote), long = ENDS[family], 32 if family == 4 else 128
    six, nodad = ("-6 ", " nodad") if family == 6 else ("", "")
    route, address = f"{six}route {{}} {remote}/{long} via {wan.peer(family)} dev wan0", f"{six}addr {{}} {local}/{long} dev lo"
    found = ({}, {})

    def judge(state, want):
        """Wait until packets in our router become `want` ("sent", "told" or "nothing"). Note what
        becomes of them in Linux, too."""

        def judged():
            frames = {f"{kind}, {state}: IPv{f}": bytes(lan.probe(HOST[f])) for f in families}
            answers = both.answers(frames)
            assert {became(texts) for texts in answers[1].values()} == {want}, answers
            for one, texts in zip(found, answers):
                one.update(texts)
            return True

        eventually(judged, 10, 0.1, state)

    both.ip(address.format("add") + nodad, f"link add t0 {words} local {local} remote {remote}")
    try:
        for one in (both.linux, both.ours):
            netns.sysctl(one.ctl, {"net.ipv6.conf.t0.disable_ipv6": 0, "net.ipv4.conf.t0.rp_filter": 0})
        both.ip("link set t0 up", *(f"{'-6 ' * (f == 6)}route add {NET[f]} dev t0" for f in families))
        both.ip(route.format("add"))
        judge("a route", "sent")
        both.ip(route.format("del"))
        judge("no route", "told")
        both.ip(f"{six}route add unreachable {remote}/{long}")
        judge("a refusing route", "told")
        both.ip(f"{six}route del unreachable {remote}/{long}", route.format("add"))
        judge("a route again", "sent")
        both.ip(address.format("del"))
        judge("no local address", "told")
        both.ip(address.format("add") + nodad)
        judge("the local address again", "sent")
        both.ip("link set t0 down")
        judge("down", "told")
        both.ip("link set t0 up", *(f"{'-6 ' * (f == 6)}route replace {NET[f]} dev t0" for f in families))
        judge("up again", "sent")
        equal(*found, DIFFERS)
    finally:
        for one in (both.linux, both.ours):
            for line in ("link del t0", f"{six}route flush {remote}/{long}", address.format("del")):
                netns.command(["ip", "-n", one.ctl, *line.split()], check=False)
