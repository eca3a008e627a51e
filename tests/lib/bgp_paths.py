# SPDX-License-Identifier: BSD-3-Clause
"""A BGP neighbor with several paths for a prefix (RFC 7911): iBGP, both families, IPv4 paths with IPv6
next hops (RFC 8950), and the link bandwidth community."""

import contextlib
import ipaddress
import selectors
import socket
import struct
import threading

from lab import bgp_wire
from lib import netns

# Capabilities: ADD-PATH to send for both families; IPv4 by next hops of IPv6.
ADD_PATH = bytes([69, 8, 0, 1, 1, 2, 0, 2, 1, 2])
EXTENDED_NEXT_HOP = bytes([5, 6, 0, 1, 0, 1, 0, 2])
ORIGIN_AND_PATH = bytes([0x40, 1, 1, 0, 0x40, 2, 0])
LOCAL_PREF = bytes([0x40, 5, 4, 0, 0, 0, 100])


def attribute(kind, value, flags=0x80):
    """Return one attribute with an extended length."""
    return struct.pack("!BBH", flags | 0x10, kind, len(value)) + value


def nlri(prefix, path):
    """Return a prefix with the id of its path."""
    net = ipaddress.ip_network(prefix)
    octets = net.network_address.packed[: (net.prefixlen + 7) // 8]
    return struct.pack("!IB", path, net.prefixlen) + octets


def update(prefix, path, value):
    """Return the UPDATE for a path: `value` is (next hop, bandwidth or None), or None to withdraw it."""
    six, which = ":" in prefix, nlri(prefix, path)
    if value is None:
        if six:
            gone = attribute(15, struct.pack("!HB", 2, 1) + which)
            return bgp_wire.message(bgp_wire.UPDATE, struct.pack("!HH", 0, len(gone)) + gone)
        return bgp_wire.message(bgp_wire.UPDATE, struct.pack("!H", len(which)) + which + b"\0\0")
    hop, bandwidth = value
    packed = ipaddress.ip_address(hop).packed
    attrs = ORIGIN_AND_PATH + LOCAL_PREF
    if bandwidth:
        attrs += attribute(16, struct.pack("!BBHf", 0x40, 4, 65001, bandwidth), 0xC0)
    if len(packed) == 4:
        attrs += bytes([0x40, 3, 4]) + packed
        tail = which
    else:
        head = struct.pack("!HBB", 2 if six else 1, 1, len(packed))
        attrs = attribute(14, head + packed + b"\0" + which) + attrs
        tail = b""
    return bgp_wire.message(bgp_wire.UPDATE, struct.pack("!HH", 0, len(attrs)) + attrs + tail)


class Neighbor(threading.Thread):
    """One session to `peer` out of a namespace. It opens again after each end, with all paths."""

    def __init__(self, namespace, peer, local_as):
        super().__init__(daemon=True, name="bgp")
        self.namespace, self.peer, self.local_as = namespace, peer, local_as
        self.paths = {}
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.sock, self.established = None, False
        self.start()

    def set(self, prefix, path, value):
        """Announce a path, or withdraw it with None."""
        with self.lock:
            if value is None:
                self.paths.pop((prefix, path), None)
            else:
                self.paths[prefix, path] = value
            if self.established:
                self._send(update(prefix, path, value))

    def clear(self):
        """Withdraw all paths."""
        for key in list(self.paths):
            self.set(*key, None)

    def reset(self):
        """End the session; it opens again."""
        with self.lock:
            if self.sock:
                self._send(bgp_wire.notification(bgp_wire.CEASE, 4))
                with contextlib.suppress(OSError):  # it is not connected, or has just ended
                    self.sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        """End the thread."""
        self.ending.set()
        self.join(5)

    def _send(self, octets):
        try:
            self.sock.sendall(octets)
        except OSError:
            self.established = False

    def run(self):
        while not self.ending.wait(0.1):
            try:
                self.sock = netns.open_socket(self.namespace, socket.AF_INET, socket.SOCK_STREAM)
                self.sock.settimeout(2)
                self.sock.connect((self.peer, 179))
                self._session()
            except (OSError, ValueError):
                pass
            with self.lock:
                self.established = False
                if self.sock:
                    self.sock.close()
                self.sock = None

    def _session(self):
        families = [struct.pack("!BBHBB", 1, 4, afi, 0, 1) for afi in (1, 2)]
        caps = [*families, bytes([2, 0]), bytes([65, 4]) + struct.pack("!I", self.local_as)]
        options = b"".join(bytes([2, len(c)]) + c for c in (*caps, ADD_PATH, EXTENDED_NEXT_HOP))
        fixed = struct.pack("!BHH4sB", 4, self.local_as, 0, b"\x0a\xff\x00\x02", len(options))
        self.sock.sendall(bgp_wire.message(bgp_wire.OPEN, fixed + options))
        reader = bgp_wire.Reader()
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            while not self.ending.is_set():
                if not selector.select(0.2):
                    continue
                data = self.sock.recv(65536)
                if not data:
                    return
                for kind, body in reader.feed(data):
                    if kind == bgp_wire.OPEN:
                        self.sock.sendall(bgp_wire.message(bgp_wire.KEEPALIVE))
                    elif kind == bgp_wire.KEEPALIVE and not self.established:
                        with self.lock:
                            self.established = True
                            self._all()
                    elif kind == bgp_wire.ROUTE_REFRESH:
                        with self.lock:
                            self._all()
                    elif kind == bgp_wire.NOTIFICATION:
                        return

    def _all(self):
        for (prefix, path), value in self.paths.items():
            self._send(update(prefix, path, value))
        for afi in (1, 2):  # the end-of-RIB marks
            self._send(bgp_wire.withdraw4([]) if afi == 1 else bgp_wire.withdraw6([]))
