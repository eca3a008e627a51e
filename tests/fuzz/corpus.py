#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The corpora of the fuzzers, kept as text: one input a line, in hex.

    corpus.py unpack DIR         write the inputs of corpus/NAME.hex and the seeds of this program to
                                 DIR/corpus-NAME; those of fpm_rib, and the captures if there are any,
                                 to DIR/corpus-fpm
    corpus.py pack NAME FOLDER   write the smallest inputs of FOLDER to corpus/NAME.hex

Minimise FOLDER before `pack`: fuzz_NAME -merge=1 SMALL BIG.
"""

import hashlib
import os
import struct
import sys
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib import fpm_speaker as fpm  # noqa: E402

# The largest size of a file corpus/NAME.hex, in octets of text. OTHERS is for all other names.
LIMITS = {"fpm_rib": 96 << 10, "rules": 48 << 10, "packet": 32 << 10}
OTHERS = 24 << 10
ROUND, SETTLE, LINK, ADDR, NEIGH, SESSION, TIME, SEGMENT, ASK, HOLD, MEMORY, AUDIT, BREAK, QUEUE = range(14)  # control.h


def control(*pairs):
    payload = bytes(octet for pair in pairs for octet in pair)
    return b"\x01\xee" + (len(payload) + 4).to_bytes(2, "big") + payload


def frames(*messages):
    return b"".join(fpm.frame(m) for m in messages)


def seeds():
    """Return inputs that the mutator would find late: sequences of a few messages that belong
    together."""
    hops = frames(
        fpm.nexthop_message(1, gateway="10.0.1.2", oif=2),
        fpm.nexthop_message(2, gateway="10.0.2.2", oif=3),
    )
    group = frames(fpm.group_message(20, {1: 1, 2: 3}))
    routes = frames(
        fpm.route_message("192.0.2.0/24", nhid=20), fpm.route_message("198.51.100.0/24", nhid=1)
    )
    sentinel = frames(
        fpm.route_message("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", rtm_type=6)
    )
    everything = hops + group + routes
    settle = control((SETTLE, 0))
    yield everything + settle
    yield routes + settle + group + settle + hops + settle
    yield everything + control((LINK, 8), (SETTLE, 0), (LINK, 0), (SETTLE, 0))
    yield everything + control((NEIGH, 0), (SETTLE, 0), (ASK, 0), (NEIGH, 0x80))
    yield everything + control((SESSION, 0)) + everything + sentinel + settle
    yield everything + control((SESSION, 0)) + routes + settle + hops + group + settle
    yield everything + control((SESSION, 0)) + hops + sentinel + control((TIME, 90)) + settle
    yield everything + frames(fpm.nexthop_del_message(20), fpm.nexthop_del_message(1)) + settle
    yield everything + control((LINK, 0x10), (SETTLE, 0), (LINK, 0), (ADDR, 0), (SETTLE, 0))
    yield control((HOLD, 1)) + everything + control((ROUND, 0), (TIME, 3), (HOLD, 0), (SETTLE, 0))
    yield everything + settle + control((HOLD, 2)) + group + hops + settle
    yield control((MEMORY, 1)) + everything + control((ROUND, 0), (MEMORY, 255), (SETTLE, 0))
    yield control((SEGMENT, 7)) + everything + settle
    yield everything + control((AUDIT, 0), (BREAK, 1), (BREAK, 5), (BREAK, 10), (AUDIT, 1))
    yield everything + control((SESSION, 1)) + everything + control((TIME, 70)) + settle
    yield everything + control((SESSION, 1)) + hops + sentinel + control((TIME, 90)) + settle
    yield control((QUEUE, 200)) + everything + control((QUEUE, 0), (SETTLE, 0))
    yield control((QUEUE, 1)) + everything + routes + group + settle + everything + settle
    yield hops + frames(
        fpm.route_message("192.0.2.0/24", nhid=1, mtu=1400),
        fpm.route_message("198.51.100.0/24", nhid=1, mtu=1280),
        fpm.route_message("192.0.2.128/25", nhid=1),
    ) + settle + control((SESSION, 0)) + hops + settle
    yield hops + fpm.frame(
        fpm.route_del_message("192.0.2.0/24"), fpm.route_message("192.0.2.0/24", nhid=2)
    )


OWN = {4: IPv4Address("192.0.2.1").packed, 6: IPv6Address("2001:db8:1::1").packed}
HOST = {4: IPv4Address("198.51.100.9").packed, 6: IPv6Address("2001:db8:77::9").packed}
INTO = {4: IPv4Address("203.0.112.9").packed, 6: IPv6Address("2001:db8:7b::9").packed}
# Behind a headend of SRv6, and behind a VTEP, to which some flows get a label.
SEGMENTS = {4: IPv4Address("203.0.115.9").packed, 6: IPv6Address("2001:db8:79::9").packed}
BEHIND = {4: IPv4Address("203.0.116.9").packed, 6: IPv6Address("2001:db8:7a::9").packed}
VTEP = {4: IPv4Address("10.0.0.1").packed, 6: IPv6Address("2001:db8:77::6").packed}
VNI, VXLAN_PORT = 77, 4789  # packet_vxlan.c
SVI_MAC, ROUTER_MAC = bytes.fromhex("020000000301"), bytes.fromhex("020000000302")
PROTO = {4: 4, 6: 41}
IP4, IP6, OPTIONS, GRE, ROUTING, UDP = 4, 41, 60, 47, 43, 17


def ip(family, proto, src, dst, payload):
    """Return an IP packet. The IPv4 checksum matters in inner packets only: fuzz_packet writes the
    checksum of the outer header itself."""
    if family == 6:
        return struct.pack("!IHBB", 6 << 28, len(payload), proto, 64) + src + dst + payload
    head = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(payload), 0, 64, proto, 0) + src + dst
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:] + payload


def far(family, n):
    """Return the address of a far end: end_address() of packet_tunnels.c."""
    base = IPv4Address("10.0.1.0") if family == 4 else IPv6Address("2001:db8:e::")
    return (base + n).packed


def sid(*numbers):
    """Return an address with one SID of packet_tunnels.c, or with several compressed SIDs: RFC 9800."""
    return (struct.pack("!HH", 0xFC00, 1) + b"".join(n.to_bytes(2, "big") for n in numbers)).ljust(16, b"\0")


def inside(family, to=HOST, port=4000):
    return ip(family, UDP, far(family, 200), to[family], struct.pack("!4H", port, 53, 8, 0))


def vxlan(outer, kind, payload, dst=SVI_MAC, vni=VNI, flags=8):
    """Return a packet from a VTEP with an inner frame of this EtherType."""
    inner = struct.pack("!II", flags << 24, vni << 8) + dst + ROUTER_MAC + struct.pack("!H", kind) + payload
    head = struct.pack("!4H", 50000, VXLAN_PORT, 8 + len(inner), 0)
    return ip(outer, UDP, VTEP[outer], OWN[outer], head + inner)


def frame(family, packet, how=0):
    """Return an input of fuzz_packet: the usual port and route, our MAC, the right checksum."""
    return bytes((how, 0xC0)) + bytes(12) + (b"\x08\x00" if family == 4 else b"\x86\xdd") + packet


def segments(proto, left, *them):
    """Return a routing header of SRv6."""
    return struct.pack("!BBBBBBH", proto, 2 * len(them), 4, left, len(them) - 1, 0, 0) + b"".join(them)


def outer_seeds():
    """Return inputs of fuzz_packet with outer headers: packets to each tunnel, to each SID and from VTEPs,
    and packets that get labels and outer headers here."""
    limit = bytes((0, 4, 1, 4, 1, 1, 0))
    for each, packet in ((n, inside(n)) for n in (4, 6)):
        gre = struct.pack("!HH", 0, 0x0800 if each == 4 else 0x86DD)
        key = b"\x20" + gre[1:] + bytes((1, 2, 3, 4))
        for n, family, proto, head in (
            (0, 4, GRE, gre),
            (1, 4, GRE, key),
            (2, 4, PROTO[each], b""),
            (3, 4, PROTO[each], b""),
            (4, 6, GRE, gre),
            (4, 6, OPTIONS, bytes([GRE]) + limit + gre),
            (5, 6, GRE, key),
            (6, 6, PROTO[each], b""),
            (6, 6, OPTIONS, bytes([PROTO[each]]) + limit),
        ):
            yield frame(family, ip(family, proto, far(family, n), OWN[family], head + packet))
        yield frame(each, inside(each, INTO))
        for label in range(16, 26):  # labels behind GRE, while the kernel has MPLS
            for n, family, head in ((0, 4, gre[:2]), (1, 4, key[:2]), (4, 6, gre[:2]), (5, 6, key[:2])):
                labels = struct.pack("!I", label << 12 | (label % 2) << 8 | 9)
                labels += b"" if label % 2 else struct.pack("!I", 19 << 12 | 1 << 8 | 9)
                head += b"\x88\x47" + (key[4:] if n in (1, 5) else b"")
                yield frame(family, ip(family, GRE, far(family, n), OWN[family], head + labels + packet), 2)
        for n in range(1, 11):
            last = segments(PROTO[each], 0, HOST[6], sid(n))
            more = segments(PROTO[each], 1, HOST[6], sid(n))
            for proto, head in ((PROTO[each], b""), (ROUTING, last), (ROUTING, more)):
                yield frame(6, ip(6, proto, far(6, 0), sid(n), head + packet))
    for outer in (4, 6):
        for each, kind in ((4, 0x0800), (6, 0x86DD)):
            for more in ({}, {"vni": VNI + 1}, {"flags": 0}, {"dst": b"\xff" * 6}, {"dst": ROUTER_MAC}):
                yield frame(outer, vxlan(outer, kind, inside(each), **more))
            yield frame(outer, vxlan(outer, kind, inside(each, BEHIND)))  # out of a VXLAN and into one
        yield frame(outer, vxlan(outer, 0x0806, bytes(28)))
        yield frame(outer, vxlan(outer, 0x8100, b"\x00\x05\x08\x00" + inside(4)))
        yield frame(outer, inside(outer, SEGMENTS))
        for port in range(4000, 4008):
            yield frame(outer, inside(outer, BEHIND, port))
    yield frame(6, ip(6, IP4, far(6, 0), sid(4, 7), inside(4)))
    yield frame(6, ip(6, IP6, far(6, 0), sid(4, 5, 4, 7), inside(6)))
    # More SIDs than a packet may pass in this router.
    yield frame(6, ip(6, IP6, far(6, 0), sid(4, 4, 4, 4, 4, 7), inside(6)))
    gre = struct.pack("!HH", 0, 0x0800)
    twice = ip(4, GRE, far(4, 0), OWN[4], gre + inside(4))
    yield frame(6, ip(6, IP4, far(6, 0), sid(8), twice))


def kept(name):
    """Return the inputs of corpus/NAME.hex."""
    lines = (HERE / "corpus" / f"{name}.hex").read_text().split("\n")
    return [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]


def put(inputs, folder):
    """Write a file for each input, named by a hash of its content."""
    folder.mkdir(parents=True, exist_ok=True)
    for octets in inputs:
        if octets:
            (folder / hashlib.sha1(octets).hexdigest()).write_bytes(octets)
    print(f"fuzz: {len(inputs)} seeds in {folder}")


def unpack(work):
    captures = Path(os.environ.get("SHARED", "../shared")) / "fpm-captures"
    found = sorted(captures.glob("*.bin"))
    if not found:
        print(f"fuzz: no captures at {captures}: seeded without them")
    put([*seeds(), *kept("fpm_rib"), *(path.read_bytes() for path in found)], work / "corpus-fpm")
    for text in sorted((HERE / "corpus").glob("*.hex")):
        if text.stem != "fpm_rib":
            more = outer_seeds() if text.stem == "packet" else ()
            put([*kept(text.stem), *more], work / f"corpus-{text.stem}")


def pack(name, folder):
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda b: (len(b), b))
    text = (
        "# SPDX-License-Identifier: BSD-3-Clause\n"
        f"# Inputs of fuzz_{name}, one a line; corpus.py packs and unpacks them.\n"
    )
    n = 0
    for octets in inputs:
        if octets and len(text) + len(octets) * 2 < LIMITS.get(name, OTHERS):
            text += octets.hex() + "\n"
            n += 1
    (HERE / "corpus" / f"{name}.hex").write_text(text)
    print(f"fuzz: kept {n} of {len(inputs)} inputs, {len(text)} octets of text")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "unpack":
        unpack(Path(sys.argv[2]))
    elif len(sys.argv) == 4 and sys.argv[1] == "pack":
        pack(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
