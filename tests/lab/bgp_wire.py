# SPDX-License-Identifier: BSD-3-Clause
"""BGP-4 messages as octets: RFC 4271, with RFC 4760 (IPv6) and RFC 6793 (4-octet AS)."""

import ipaddress
import struct

OPEN, UPDATE, NOTIFICATION, KEEPALIVE, ROUTE_REFRESH = 1, 2, 3, 4, 5
AS_TRANS = 23456
HOLD_TIMER_EXPIRED, CEASE = 4, 6

_MARKER = b"\xff" * 16
_HEADER = struct.Struct("!16sHB")
_ORIGIN_IGP = bytes([0x40, 1, 1, 0])


def message(kind, body=b""):
    """One message with its header."""
    return _HEADER.pack(_MARKER, 19 + len(body), kind) + body


def open_message(local_as, hold_s, router_id, families=((1, 1), (2, 1))):
    """OPEN for families (AFI, SAFI), by default IPv4 and IPv6 unicast, with route refresh and 4-octet
    AS numbers."""
    capabilities = (
        *(struct.pack("!BBHBB", 1, 4, afi, 0, safi) for afi, safi in families),
        bytes([2, 0]),
        bytes([65, 4]) + struct.pack("!I", local_as),
        # RFC 4724: the peer does not keep the speaker's routes, but gets end-of-RIB marks.
        bytes([64, 2, 0, 0]),
    )
    options = b"".join(bytes([2, len(c)]) + c for c in capabilities)
    short_as = local_as if local_as < 65536 else AS_TRANS
    router = ipaddress.IPv4Address(router_id).packed
    fixed = struct.pack("!BHH4sB", 4, short_as, hold_s, router, len(options))
    return message(OPEN, fixed + options)


def open_hold_s(body):
    """The hold time a peer proposes in its OPEN."""
    return struct.unpack_from("!H", body, 3)[0]


def notification(code, subcode=0):
    """NOTIFICATION; the sender closes the session with it."""
    return message(NOTIFICATION, bytes([code, subcode]))


def attributes(as_path, communities=()):
    """ORIGIN, AS_PATH and, if any, COMMUNITIES (RFC 1997)."""
    path = struct.pack(f"!BB{len(as_path)}I", 2, len(as_path), *as_path)
    octets = _ORIGIN_IGP + bytes([0x40, 2, len(path)]) + path
    if communities:
        packed = struct.pack(f"!{len(communities)}I", *communities)
        octets += bytes([0xC0, 8, len(packed)]) + packed
    return octets


def nlri4(prefixes):
    """IPv4 prefixes (integers of lab/routes.py) as they stand in an UPDATE."""
    out = []
    for prefix in prefixes:
        addr, plen = prefix >> 8, prefix & 255
        n = (plen + 7) >> 3
        out.append((plen << 8 * n | addr >> 32 - 8 * n).to_bytes(n + 1, "big"))
    return b"".join(out)


def nlri6(prefixes):
    """IPv6 prefixes, up to /64, as they stand in an UPDATE."""
    out = []
    for prefix in prefixes:
        addr, plen = prefix >> 8, prefix & 255
        n = (plen + 7) >> 3
        out.append((plen << 8 * n | addr >> 64 - 8 * n).to_bytes(n + 1, "big"))
    return b"".join(out)


def announce4(prefixes, attrs, next_hop):
    """UPDATE that announces IPv4 prefixes; `next_hop` is packed (4 octets)."""
    attrs += bytes([0x40, 3, 4]) + next_hop
    return message(UPDATE, struct.pack("!HH", 0, len(attrs)) + attrs + nlri4(prefixes))


def announce6(prefixes, attrs, next_hop):
    """UPDATE that announces IPv6 prefixes (MP_REACH_NLRI first, RFC 7606, 5.1)."""
    reach = struct.pack("!HBB", 2, 1, len(next_hop)) + next_hop + b"\0" + nlri6(prefixes)
    attrs = bytes([0x90, 14]) + struct.pack("!H", len(reach)) + reach + attrs
    return message(UPDATE, struct.pack("!HH", 0, len(attrs)) + attrs)


def withdraw4(prefixes):
    """UPDATE that withdraws IPv4 prefixes; none: the end-of-RIB mark (RFC 4724)."""
    gone = nlri4(prefixes)
    return message(UPDATE, struct.pack("!H", len(gone)) + gone + b"\0\0")


def withdraw6(prefixes):
    """UPDATE that withdraws IPv6 prefixes; none: the end-of-RIB mark."""
    gone = struct.pack("!HB", 2, 1) + nlri6(prefixes)
    attrs = bytes([0x90, 15]) + struct.pack("!H", len(gone)) + gone
    return message(UPDATE, struct.pack("!HH", 0, len(attrs)) + attrs)


class Reader:
    """Cuts a byte stream into messages."""

    def __init__(self):
        self._buffer = b""

    def feed(self, data):
        """Yield (kind, body) of every message that is complete now."""
        self._buffer += data
        while len(self._buffer) >= 19:
            marker, length, kind = _HEADER.unpack_from(self._buffer)
            if marker != _MARKER or not 19 <= length <= 4096:
                raise ValueError("not a BGP message")
            if len(self._buffer) < length:
                return
            body, self._buffer = self._buffer[19:length], self._buffer[length:]
            yield kind, body
