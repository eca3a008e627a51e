# SPDX-License-Identifier: BSD-3-Clause
"""Read a stream of zebra's module dplane_fpm_nl: frames, netlink messages, attributes. This decoder
shares no code with the decoder of the dataplane. Both print the same text of an event (the C code is
tests/unit/test_fpm_events.h), so each checks the other."""

import socket
import struct

NEWROUTE, DELROUTE, NEWNEXTHOP, DELNEXTHOP = 24, 25, 104, 105
AF_MPLS = 28
NO_TABLE = 2**32 - 1  # printed as the table of a label
IMPLICIT_NULL = 3
MPLS_ENCAP = 1
ENCAPS = {5: "seg6", 7: "seg6"}
LABELS_MAX = 16


def cut_frames(octets):
    """Return (the whole frames at the start of a stream, the octets after them)."""
    frames = []
    while len(octets) >= 4:
        version, kind, length = struct.unpack_from("!BBH", octets)
        if (version, kind) != (1, 1) or length < 4:
            raise ValueError(f"no FPM frame: {octets[:8].hex()}")
        if len(octets) < length:
            break
        frames.append(octets[:length])
        octets = octets[length:]
    return frames, octets


def text_of(frame):
    """Return the events of a frame as text."""
    at, said = 4, ""
    while at + 16 <= len(frame):
        length, kind = struct.unpack_from("=IH", frame, at)
        said += _message(kind, frame[at + 16 : at + length])
        at += length + 3 & ~3
    return said


def _message(kind, body):
    if kind in (NEWROUTE, DELROUTE):
        return _route(kind, body)
    if kind == NEWNEXTHOP:
        return _nexthop(body)
    if kind == DELNEXTHOP:
        return f"nexthop-del {_u32(_attributes(body[8:])[1])};"
    return ""


def _route(kind, body):
    family, length, _, _, table, _, _, rtm_type = struct.unpack_from("=8B", body)
    attrs = _attributes(body[12:])
    prefix, table = _prefix(family, length, attrs.get(1, b"")), _u32(attrs.get(15, b"")) or table
    if prefix is None:
        return ""
    if family == AF_MPLS:
        table = NO_TABLE
    if kind == DELROUTE:
        return f"del {prefix} t{table};"
    said = f"route {prefix} t{table}" + (f" type{rtm_type}" if rtm_type != 1 else "")
    if 8 in attrs and (mtu := _u32(_attributes(attrs[8]).get(2, b""))):
        said += f" mtu{mtu}"
    if 30 in attrs:
        return said + f" nh{_u32(attrs[30])};"
    if 9 in attrs:
        return said + "".join(_legs(family, attrs[9])) + ";"
    if rtm_type != 1:
        return said + ";"
    return said + _hop(family, attrs, 1, body[8] & 4) + ";"


def _legs(family, octets):
    """Return the text of each next hop of RTA_MULTIPATH."""
    while len(octets) >= 8:
        length, flags, hops, oif = struct.unpack_from("=HBBI", octets)
        attrs = _attributes(octets[8:length])
        yield _hop(family, {**attrs, 4: struct.pack("=I", oif)}, hops + 1, flags & 4)
        octets = octets[length + 3 & ~3 :]


def _nexthop(body):
    family, (flags,) = body[0], struct.unpack_from("=I", body, 4)
    attrs = _attributes(body[8:])
    said = f"nexthop {_u32(attrs[1])}"
    if 4 in attrs:
        return said + " blackhole;"
    if 2 in attrs:
        rows = struct.iter_unpack("=IBBH", attrs[2])
        return said + "".join(f" [id{i} w{low + (high << 8) + 1}]" for i, low, high, _ in rows) + ";"
    same = {5: attrs.get(6), 4: attrs.get(5), 21: attrs.get(7), 22: attrs.get(8)}
    return said + _hop(family, {k: v for k, v in same.items() if v is not None}, 1, flags & 4) + ";"


def _hop(family, attrs, weight, onlink):
    """Return the text of one next hop, from attributes as those of a route."""
    gateway, encap, labels = "", "", []
    if 18 in attrs:
        (via,) = struct.unpack_from("=H", attrs[18])
        size = 4 if via == socket.AF_INET else 16
        gateway = socket.inet_ntop(via, attrs[18][2 : 2 + size]) + " "
    elif 5 in attrs:
        size = 4 if len(attrs[5]) == 4 else 16
        gateway = socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, attrs[5]) + " "
    if 21 in attrs:
        (kind,) = struct.unpack("=H", attrs[21][:2])
        encap = " mpls" if kind == MPLS_ENCAP else f" {ENCAPS.get(kind, 'other-encap')}"
        labels = _labels(_attributes(attrs[22]).get(1, b"")) if kind == MPLS_ENCAP else []
    elif family == AF_MPLS:
        labels = _labels(attrs.get(19, b""))
        encap = " mpls" if labels else " pop"
    stack = " " + "/".join(map(str, labels)) if labels else ""
    oif = _u32(attrs.get(4, b""))
    return f" [{gateway}if{oif} w{weight}{encap}{stack}{' onlink' if onlink else ''}]"


def _labels(octets):
    """Return the labels of a stack, outermost first."""
    found = [entry >> 12 for (entry,) in struct.iter_unpack("!I", octets)]
    found = [label for label in found if label != IMPLICIT_NULL]
    return found if len(found) <= LABELS_MAX else []


def _prefix(family, length, octets):
    """Return a prefix as text. None: link-local, which the dataplane ignores."""
    if family == AF_MPLS:
        return f"label {struct.unpack('!I', octets)[0] >> 12}"
    size = 4 if family == socket.AF_INET else 16
    octets = octets.ljust(size, b"\0")
    if size == 16 and length >= 10 and octets[0] == 0xFE and octets[1] & 0xC0 == 0x80:
        return None
    return f"{socket.inet_ntop(family, octets)}/{length}"


def _attributes(octets):
    """Return {type without flags: content} of netlink attributes."""
    found = {}
    while len(octets) >= 4:
        length, kind = struct.unpack_from("=HH", octets)
        if length < 4:
            break
        found[kind & 0x3FFF] = octets[4:length]
        octets = octets[length + 3 & ~3 :]
    return found


def _u32(octets):
    return struct.unpack("=I", octets)[0] if len(octets) == 4 else 0
