# SPDX-License-Identifier: BSD-3-Clause
"""Random flow specifications and packets, and a judge that follows RFC 8955 and 8956 word by word. The
judge shares no code with fpm_flowspec."""

import ipaddress
import struct
from dataclasses import dataclass

from wire import token

PORTS, LENGTHS, DSCPS, LABELS = (53, 80, 443, 1024, 65535), (70, 100, 200), (0, 10, 46), (0, 5, 0x12345)
ICMP = {4: ((8, 0), (3, 1), (3, 3), (11, 0)), 6: ((128, 0), (1, 0), (1, 4), (3, 0))}
FLAGS = (0x02, 0x12, 0x10, 0x04, 0x01, 0x00, 0xC2, 0x3F)
NETS = {4: ("198.51.100.0", "203.0.113.0"), 6: ("2001:db8:5::", "2001:db8:6::")}
TCP, UDP, GRE, ESP = 6, 17, 47, 50
FAMILY_ICMP = {4: 1, 6: 58}
PIECES = ("whole", "whole", "whole", "first", "middle", "last")


# --- flow specifications ---


def nlri(rnd, family):
    """Return the octets of a random flow specification of four components at most."""
    kinds = rnd.sample(range(1, 13 if family == 4 else 14), rnd.choice((1, 1, 2, 2, 3, 4)))
    return b"".join(bytes([kind]) + _component(rnd, family, kind) for kind in sorted(kinds))


def _component(rnd, family, kind):
    if kind in (1, 2):
        return _prefix(rnd, family, NETS[family][kind - 1])
    terms = [_term(rnd, family, kind) for _ in range(rnd.choice((1, 1, 2, 3)))]
    out = b""
    for number, (operator, value) in enumerate(terms):
        size = rnd.choice([n for n in (0, 1, 2) if value < 1 << (8 << n)])
        operator |= size << 4 | (0x80 if number == len(terms) - 1 else 0)
        operator |= 0x40 if number and rnd.random() < 0.5 else 0
        out += bytes([operator]) + value.to_bytes(1 << size, "big")
    return out


def _prefix(rnd, family, net):
    bits = 32 if family == 4 else 128
    address = int(ipaddress.ip_address(net)) + rnd.randrange(8)
    length = rnd.choice((bits, bits - 1, bits - 2, bits // 4, 0))
    if family == 4:
        pattern = address >> (bits - length)
        size = (length + 7) // 8
        return bytes([length]) + (pattern << (size * 8 - length)).to_bytes(size, "big")
    offset = rnd.choice((0, 0, 0, 16, 100)) if length == bits else 0
    width = length - offset
    pattern, size = (address >> (bits - length)) & ((1 << width) - 1), (width + 7) // 8
    return bytes([length, offset]) + (pattern << (size * 8 - width)).to_bytes(size, "big")


def _term(rnd, family, kind):
    if kind == 9:
        return rnd.choice((0, 1, 2, 3)), rnd.choice(FLAGS)
    if kind == 12:
        return rnd.choice((0, 1, 2, 3)), rnd.choice((1, 2, 4, 8, 2, 4, 6, 10, 3))
    value = {
        3: (TCP, UDP, FAMILY_ICMP[family], GRE),
        4: PORTS,
        5: PORTS,
        6: PORTS,
        7: [t for t, _ in ICMP[family]],
        8: [c for _, c in ICMP[family]],
        10: LENGTHS,
        11: DSCPS,
        13: LABELS,
    }[kind]
    return rnd.choice((1, 1, 1, 2, 3, 4, 5, 6, 7)), rnd.choice(value)


# --- packets ---


@dataclass
class Packet:
    """A packet and the facts about it that flow specifications ask for."""

    family: int
    dst: int
    src: int
    proto: int
    dscp: int
    label: int
    piece: str
    df: bool
    ports: tuple = None  # source, destination; None: there are none
    icmp: tuple = None
    flags: int = None
    length: int = 0
    frame: bytes = b""


def packet(rnd, family, wire):
    """Return a random packet that comes in by a wire."""
    dst, src = (int(ipaddress.ip_address(net)) + rnd.randrange(8) for net in NETS[family])
    proto = rnd.choice((TCP, TCP, UDP, UDP, FAMILY_ICMP[family], GRE, ESP))
    p = Packet(family, dst, src, proto, rnd.choice(DSCPS), 0, rnd.choice(PIECES), rnd.random() < 0.3)
    if family == 6:
        p.label, p.df = rnd.choice(LABELS), False
    head = b""
    if p.piece in ("whole", "first"):
        head = _transport(rnd, p)
    extra, offset = b"", {"whole": 0, "first": 0, "middle": 100, "last": 200}[p.piece]
    more = p.piece in ("first", "middle")
    if family == 6 and (p.piece != "whole" or rnd.random() < 0.2):
        extra = struct.pack("!BBHI", proto, 0, offset << 3 | more, 7)
    body = head + token()
    bare = (20 if family == 4 else 40) + len(extra)
    body += bytes(max(0, rnd.choice(LENGTHS) - bare - len(body)))
    if more:  # all pieces but the last have a multiple of 8 octets
        body += bytes(-len(body) % 8)
    p.length = bare + len(body)
    mac = bytes.fromhex((wire.port_mac + wire.mac).replace(":", ""))
    if family == 4:
        ip = struct.pack("!BBHHHBB", 0x45, p.dscp << 2, p.length, 7, p.df << 14 | more << 13 | offset, 9, proto)
        addresses = struct.pack("!II", src, dst)
        p.frame = mac + b"\x08\0" + ip + _checksum(ip + addresses) + addresses + body
    else:
        ip = struct.pack("!IHBB", 6 << 28 | p.dscp << 22 | p.label, p.length - 40, 44 if extra else proto, 9)
        addresses = src.to_bytes(16, "big") + dst.to_bytes(16, "big")
        p.frame = mac + b"\x86\xdd" + ip + addresses + extra + body
    return p


def _transport(rnd, p):
    """Return the first octets of the header behind IP."""
    if p.proto in (TCP, UDP):
        p.ports = rnd.choice(PORTS), rnd.choice(PORTS)
    if p.proto == UDP:
        return struct.pack("!HHHH", *p.ports, 40, 0)
    if p.proto == TCP:
        p.flags = rnd.choice(FLAGS)
        return struct.pack("!HHIIBBHHH", *p.ports, 1, 1, 0x50, p.flags, 9, 0, 0)
    if p.proto == FAMILY_ICMP[p.family]:
        p.icmp = rnd.choice(ICMP[p.family])
        return struct.pack("!BBHI", *p.icmp, 0, 0)
    return b""


def _checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", total ^ 0xFFFF)


# --- the judge ---


def components(octets, family):
    """Return [(type, octets behind it)]."""
    found, at = [], 0
    while at < len(octets):
        start = at + 1
        if octets[at] in (1, 2):
            offset = octets[start + 1] if family == 6 else 0
            end = start + (1 if family == 4 else 2) + (octets[start] - offset + 7) // 8
        else:
            end = start
            while True:
                operator = octets[end]
                end += 1 + (1 << (operator >> 4 & 3))
                if operator & 0x80:
                    break
        found.append((octets[at], octets[start:end]))
        at = end
    return found


def matches(octets, p):
    """Return True if a packet matches all components."""
    return all(_holds(kind, value, p) for kind, value in components(octets, p.family))


def _holds(kind, value, p):
    if kind in (1, 2):
        return _in_prefix(value, p.dst if kind == 1 else p.src, p.family)
    if kind in (9, 12):
        bits = p.flags if kind == 9 else _fragment_bits(p)
        return bits is not None and _list_holds(value, lambda o, v: _bits_hold(o, v, bits, kind, p.family))
    fields = {
        3: [p.proto],
        4: p.ports or (),
        5: (p.ports or ())[1:],
        6: (p.ports or ())[:1],
        7: (p.icmp or ())[:1],
        8: (p.icmp or ())[1:],
        10: [p.length],
        11: [p.dscp],
        13: [p.label],
    }[kind]
    return any(_list_holds(value, lambda o, v, n=n: _number_holds(o, v, n)) for n in fields)


def _in_prefix(value, address, family):
    bits = 32 if family == 4 else 128
    length, offset = value[0], value[1] if family == 6 else 0
    text = "".join(f"{octet:08b}" for octet in value[1 if family == 4 else 2 :])
    return f"{address:0{bits}b}"[offset:length] == text[: length - offset]


def _fragment_bits(p):
    return p.df * 1 | {"whole": 0, "first": 4, "middle": 2, "last": 10}[p.piece]


def _bits_hold(operator, value, bits, kind, family):
    if kind == 12 and family == 6:
        value &= 0xFE
    found = (bits & value) == value if operator & 1 else (bits & value) != 0
    return not found if operator & 2 else found


def _number_holds(operator, value, number):
    less, greater, equal = operator & 4, operator & 2, operator & 1
    return bool((less and number < value) or (greater and number > value) or (equal and number == value))


def _list_holds(value, term):
    """Evaluate a list from left to right: AND binds stronger than OR."""
    result, group, at = False, None, 0
    while at < len(value):
        operator, size = value[at], 1 << (value[at] >> 4 & 3)
        held = term(operator, int.from_bytes(value[at + 1 : at + 1 + size], "big"))
        if group is not None and operator & 0x40:
            group = group and held
        else:
            result, group = result or bool(group), held
        at += 1 + size
    return result or bool(group)


def precedes(a, b, family):
    """Return True if the flow specification `a` has precedence over `b` (RFC 8955, 5.1)."""
    for (kind_a, x), (kind_b, y) in zip(components(a, family), components(b, family)):
        if kind_a != kind_b:
            return kind_a < kind_b
        if kind_a in (1, 2):
            head = 1 if family == 4 else 2
            if family == 6 and x[1] != y[1]:
                return x[1] < y[1]
            offset = x[1] if family == 6 else 0
            common = min(x[0], y[0]) - offset
            bits_x, bits_y = ("".join(f"{o:08b}" for o in z[head:])[:common] for z in (x, y))
            if bits_x != bits_y:
                return bits_x < bits_y
            if x[0] != y[0]:
                return x[0] > y[0]
        elif x != y:
            common = min(len(x), len(y))
            return x[:common] < y[:common] if x[:common] != y[:common] else len(x) > len(y)
    return len(components(a, family)) > len(components(b, family))
