# SPDX-License-Identifier: BSD-3-Clause
"""Decode the parts of a BGP UPDATE message that concern flow specifications (RFC 4271, 4760)."""

import contextlib
import struct
from dataclasses import dataclass, field

from . import flow

AFI = {1: 4, 2: 6}
SAFI_FLOWSPEC = 133
AS_PATH, ORIGINATOR_ID, MP_REACH, MP_UNREACH, EXT_COMMUNITIES, EXT_COMMUNITIES6 = 2, 9, 14, 15, 16, 25
AS_SEQUENCE = 2
EXTENDED_LENGTH = 0x10
LONG_NLRI = 0xF0


class Malformed(Exception):
    """A message or a part of it contradicts its format."""


@dataclass
class Update:
    """The flow specifications of one message: (family, octets without their length)."""

    announced: list = field(default_factory=list)
    withdrawn: list = field(default_factory=list)
    communities: list = field(default_factory=list)  # 8 octets each
    communities6: list = field(default_factory=list)  # 20 octets each
    as_path: list = field(default_factory=list)  # AS numbers of AS_SEQUENCE segments
    ordered: bool = True  # the path is empty or begins with an AS_SEQUENCE
    reflected: bool = False  # an ORIGINATOR_ID is present: a peer of iBGP announced the flows


def decode(body):
    """Decode the body of an UPDATE: the octets behind its header. AS numbers have four octets.

    Raises Malformed.
    """
    found = Update()
    (withdrawn,) = _unpack("!H", body, 0)
    (length,) = _unpack("!H", body, 2 + withdrawn)
    at, end = 4 + withdrawn, 4 + withdrawn + length
    if end > len(body):
        raise Malformed("attributes end beyond the message")
    while at < end:
        flags, kind = _unpack("!BB", body, at)
        form = "!H" if flags & EXTENDED_LENGTH else "!B"
        (size,) = _unpack(form, body, at + 2)
        at += 2 + struct.calcsize(form)
        if at + size > end:
            raise Malformed(f"attribute {kind} ends beyond the attributes")
        _attribute(found, kind, body[at : at + size])
        at += size
    return found


def _unpack(form, data, at):
    try:
        return struct.unpack_from(form, data, at)
    except struct.error as why:
        raise Malformed("the message ends too early") from why


def _attribute(found, kind, data):
    if kind == MP_REACH:
        afi, safi, hop = _unpack("!HBB", data, 0)
        if afi in AFI and safi == SAFI_FLOWSPEC:
            found.announced += [(AFI[afi], n) for n in split(AFI[afi], data[5 + hop :])]
    elif kind == MP_UNREACH:
        afi, safi = _unpack("!HB", data, 0)
        if afi in AFI and safi == SAFI_FLOWSPEC:
            found.withdrawn += [(AFI[afi], n) for n in split(AFI[afi], data[3:])]
    elif kind == EXT_COMMUNITIES:
        found.communities += _cut(data, 8)
    elif kind == EXT_COMMUNITIES6:
        found.communities6 += _cut(data, 20)
    elif kind == AS_PATH:
        found.as_path, found.ordered = _as_path(data)
    elif kind == ORIGINATOR_ID:
        found.reflected = True


def _cut(data, size):
    if len(data) % size:
        raise Malformed("a list of communities has a wrong length")
    return [bytes(data[i : i + size]) for i in range(0, len(data), size)]


def _as_path(data):
    path, ordered, at = [], True, 0
    while at < len(data):
        kind, count = _unpack("!BB", data, at)
        numbers = _unpack(f"!{count}I", data, at + 2)
        if kind == AS_SEQUENCE:
            path += numbers
        elif not path:
            ordered = False
        at += 2 + 4 * count
    return path, ordered


def split(family, data):
    """Split NLRIs, each with its length in one or two octets (RFC 8955, 4.1). FRR writes only the
    lowest octet of a length, even if the length needs two. Raises Malformed if no split uses all
    octets."""
    chosen, dead = [], set()  # (begin, end) of the NLRIs; places from which no split is possible
    stack = [(0, _nlris(family, data, 0))]
    while stack:
        at, some = stack[-1]
        if at == len(data):
            return [bytes(data[begin:end]) for begin, end in chosen]
        one = next((one for one in some if one[1] not in dead), None)
        if one is not None:
            chosen.append(one)
            stack.append((one[1], _nlris(family, data, one[1])))
            continue
        dead.add(at)
        stack.pop()
        del chosen[-1:]
    raise Malformed("a flow specification ends beyond its attribute")


def _nlris(family, data, at):
    """Yield (begin, end) of each NLRI that may begin at `at`, the longest NLRI first. With the short
    NLRIs first, a peer could announce a long flow whose octets also read as short flows of another
    peer. The withdrawal of the long flow would withdraw these short flows."""
    room = len(data) - at - 1
    if room < 0:
        return
    sizes = [size for size in range(data[at], room + 1, 256) if size >= LONG_NLRI]
    ends = _ends(family, data, at + 1) if sizes else ()
    for size in reversed(sizes):
        if at + 1 + size in ends:
            yield at + 1, at + 1 + size
    if data[at] < LONG_NLRI:
        size, begin = data[at], at + 1
    elif room >= 1:
        size, begin = struct.unpack_from("!H", data, at)[0] & 0x0FFF, at + 2
    else:
        return
    if begin + size <= len(data):
        yield begin, begin + size


def _ends(family, data, at):
    """Return the places where a flow specification that begins at `at` may end."""
    found = set()
    with contextlib.suppress(flow.Refused):
        for _, end in flow.components(family, data, at):
            found.add(end)
    return found
