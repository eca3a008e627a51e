# SPDX-License-Identifier: BSD-3-Clause
"""The actions of a flow specification: extended communities (RFC 8955, 7; RFC 8956, 6)."""

import math
import struct
from dataclasses import dataclass

from .flow import Refused

RATE_BYTES, RATE_PACKETS, ACTION, MARKING = 0x8006, 0x800C, 0x8007, 0x8009
REDIRECTS = {0x8008, 0x8108, 0x8208, 0x0800, 0x010C, 0x000C, 0x010B, 0x000B, 0x000D}
TO_INDIRECTION = 0x09  # high octet of the types of redirects to an indirection-id
INTERFACE_SETS = {0x0702, 0x4702, 0x0802, 0x4802}
EXPERIMENTAL = {0x80, 0x81, 0x82}  # high octets of the types of all actions of RFC 8955
SAMPLE, TERMINAL = 0x02, 0x01  # bits of the last octet of 0x8007
# A rate of more than this is no limit: 100 Tbit/s, 10 billion packets a second.
UNLIMITED_BYTES, UNLIMITED_PACKETS = 12.5e12, 1e10


@dataclass(frozen=True)
class Actions:
    """The treatment of the packets of a flow."""

    bytes_s: int = None  # 0: drop; None: no limit
    packets_s: int = None
    dscp: int = None
    goes_on: bool = False  # the next flows apply to the packet, too

    def drops(self):
        """Return true if no packet passes."""
        return self.bytes_s == 0 or self.packets_s == 0

    def __str__(self):
        if self.drops():
            return "drop"
        words = [f"{self.bytes_s} bytes/s"] if self.bytes_s is not None else []
        words += [f"{self.packets_s} packets/s"] if self.packets_s is not None else []
        words += [f"dscp {self.dscp}"] if self.dscp is not None else []
        return ", ".join(words) or "accept"


def parse(communities, communities6=()):
    """Parse extended communities of 8 octets, and IPv6 extended communities of 20 octets. Skip
    communities that are no actions. Raises Refused for an action that is not supported."""
    found = {}
    for each in communities:
        (kind,) = struct.unpack_from("!H", each)
        if kind == RATE_BYTES:
            _limit(found, "bytes_s", _rate(each, UNLIMITED_BYTES))
        elif kind == RATE_PACKETS:
            _limit(found, "packets_s", _rate(each, UNLIMITED_PACKETS))
        elif kind == MARKING:
            found.setdefault("dscp", each[7] & 0x3F)
        elif kind == ACTION:
            # The bit says "not terminal" (RFC 8955, 7.3).
            found["goes_on"] = bool(each[7] & TERMINAL)
        else:
            _refuse(kind)
    for each in communities6:
        _refuse(struct.unpack_from("!H", each)[0])
    return Actions(**found)


def _refuse(kind):
    if kind in REDIRECTS or kind >> 8 == TO_INDIRECTION:
        raise Refused(f"action redirect (0x{kind:04x}) is not supported")
    if kind in INTERFACE_SETS:
        raise Refused(f"action interface-set (0x{kind:04x}) is not supported")
    if kind >> 8 in EXPERIMENTAL:
        raise Refused(f"action 0x{kind:04x} is not supported")


def _rate(community, unlimited):
    """Return the rate, rounded up: 0 for a negative one, None for no limit."""
    (rate,) = struct.unpack_from("!f", community, 4)
    if math.isnan(rate):
        raise Refused("malformed: the rate is not a number")
    return None if rate > unlimited else math.ceil(max(rate, 0.0))


def _limit(found, name, rate):
    """Store a rate. The smallest of several rates counts, because all of them are in force."""
    known = [r for r in (found.get(name), rate) if r is not None]
    found[name] = min(known) if known else None
