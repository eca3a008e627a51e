# SPDX-License-Identifier: BSD-3-Clause
"""The BFD control packets on a link, and the detection times that they show."""

import contextlib
import ipaddress
import socket
import struct

from lib import netns

ETHERNET, PORT = 14, 3784
DOWN, UP = 1, 3


class Capture:
    """Record the packets of single-hop sessions that pass an interface, in both directions."""

    def __init__(self, namespace, dev):
        self.seen = []  # (seconds, source, destination, state)
        self.sock = netns.open_capture(namespace, dev)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def packets(self):
        """Return all packets so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, [(_, _, stamp)], *_ = self.sock.recvmsg(2048, socket.CMSG_SPACE(16))
                seconds, nanoseconds = struct.unpack("qq", stamp)
                packet = parse(data[ETHERNET:])
                if packet:
                    self.seen.append((seconds + nanoseconds * 1e-9, *packet))
        return self.seen

    def detection_ms(self, peers):
        """Return {peer: ms from the last Up packet of the peer to our first Down packet}; None for a
        peer whose session has not gone down."""
        return {peer: detection_ms(self.packets(), peer) for peer in peers}


def parse(data):
    """Return (source, destination, state) of an IP packet with a BFD packet, or None."""
    version = data[0] >> 4 if data else 0
    head, kind, at, size = (20, 9, 12, 4) if version == 4 else (40, 6, 8, 16)
    if version not in (4, 6) or len(data) < head + 8 + 24 or data[kind] != socket.IPPROTO_UDP:
        return None
    if version == 4:
        head = 4 * (data[0] & 15)
    if struct.unpack_from("!H", data, head + 2)[0] != PORT:
        return None
    ends = [str(ipaddress.ip_address(data[i : i + size])) for i in (at, at + size)]
    return *ends, data[head + 8 + 1] >> 6


def detection_ms(packets, peer):
    """Return the time of one peer, as Capture.detection_ms()."""
    said = min((t for t, _, dst, state in packets if dst == peer and state == DOWN), default=None)
    heard = [t for t, src, _, state in packets if src == peer and state == UP and said and t < said]
    return 1000 * (said - max(heard)) if heard else None
