# SPDX-License-Identifier: BSD-3-Clause
"""Send packets from a namespace of the lab: ping, traceroute, many flows, a stopwatch."""

import collections
import ipaddress
import os
import re
import socket
import struct
import threading
import time

from lib import netns
from lib.wait import PATIENCE

IPV6_FREEBIND = 78  # linux/in6.h
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
SO_TIMESTAMPNS = 35  # asm-generic/socket.h


def family_of(address):
    """Return the family of an address: 4 or 6."""
    return ipaddress.ip_address(address).version


def ping(name, address, count=3, timeout=2, dev=""):
    """Run the system's ping, all requests at once, by device or VRF `dev`. Returns (answers,
    smallest round trip in ms or None).

    After the first answer, ping waits for the others no longer than its interval, whatever -W is.
    With a short interval it would lose an answer when the machine stands still for that time.
    """
    patience = str(timeout * PATIENCE)
    argv = ["ping", "-n", "-c", str(count), "-l", str(count)]
    argv += ["-i", patience, "-W", patience, *(["-I", dev] if dev else []), address]
    text = netns.run(name, argv, check=False)
    got = re.search(r"(\d+) received", text)
    best = re.search(r"= ([\d.]+)/", text)
    return int(got[1]) if got else 0, float(best[1]) if best else None


def traceroute(name, address, hops=5):
    """Run the system's traceroute with ICMP echoes. Returns the list of addresses that answer."""
    argv = ["traceroute", f"-{family_of(address)}", "-I", "-n", "-q", "1"]
    argv += ["-w", str(2 * PATIENCE)]
    text = netns.run(name, [*argv, "-m", str(hops), address], check=False)
    rows = [row.split() for row in text.splitlines()[1:]]
    return [row[1] for row in rows if len(row) > 1]


def label_trace(name, address, hops=8):
    """Run the system's traceroute with ICMP echoes. Returns [(address or "*", labels)] for each
    hop: the labels with which the packet came there, outermost first (RFC 4950)."""
    argv = ["traceroute", f"-{family_of(address)}", "-I", "-e", "-n", "-q", "1"]
    argv += ["-w", str(2 * PATIENCE)]
    text = netns.run(name, [*argv, "-m", str(hops), address], check=False)
    rows = [row.split() for row in text.splitlines()[1:]]
    return [(row[1], [int(n) for n in re.findall(r"\bL=(\d+)", row[2])] if len(row) > 2 else [])
            for row in rows if len(row) > 1]  # fmt: skip


def udp_flows(name, address, count, per_flow=1, port=9):
    """Send UDP packets from `count` source ports. Returns how many were sent."""
    family = socket.AF_INET if family_of(address) == 4 else socket.AF_INET6
    sent = 0
    for _ in range(count):
        with netns.open_socket(name, family, socket.SOCK_DGRAM) as sock:
            for _ in range(per_flow):
                try:
                    sock.sendto(b"flow", (address, port))
                    sent += 1
                except OSError:
                    pass  # an ICMP error of an earlier packet
        if not sent % 64:
            time.sleep(0.005)  # a veth's queue is short
    return sent


class UdpSink:
    """A socket that counts the UDP packets to an address (on `device`). Use it in a with block."""

    def __init__(self, name, address, port=9, device=""):
        family = socket.AF_INET if family_of(address) == 4 else socket.AF_INET6
        self.sock = netns.open_socket(name, family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        # A local route makes addresses ours without configuring each (AnyIP).
        if family == socket.AF_INET6:
            self.sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        self.sock.bind((address, port))
        self.sock.setblocking(False)
        self._n = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def count(self):
        """Return the number of packets so far."""
        try:
            while self.sock.recv(2048):
                self._n += 1
        except BlockingIOError:
            pass
        return self._n


class Stopwatch:
    """Pings one address all the time and records the answers, each with the time at which the kernel
    got it, because this process may read it late.

    with Stopwatch(...) as watch: ...; watch.first("unreachable", since=t)
    """

    ECHO = {4: (8, 0), 6: (128, 129)}  # request, reply
    ERROR = {4: 3, 6: 1}  # destination unreachable

    def __init__(self, name, address, every=0.002):
        self.address, self.every, self.family = address, every, family_of(address)
        if self.family == 4:
            kind = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        else:
            kind = (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self.sock = netns.open_socket(name, *kind)
        self.sock.settimeout(self.every)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # (time, "reply" or "unreachable", who)
        self.seen = collections.deque(maxlen=100_000)
        self.packed = ipaddress.ip_address(address).packed
        self._ident = os.getpid() & 0xFFFF
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=f) for f in (self._send, self._receive)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.sock.close()

    def first(self, what, since):
        """Return (time, sender) of the first answer of kind `what` after `since`, or None."""
        for t, kind, who in list(self.seen):
            if kind == what and t > since:
                return t, who
        return None

    def _send(self):
        request, _ = self.ECHO[self.family]
        seq = 0
        while not self._stop.wait(self.every):
            seq = (seq + 1) & 0xFFFF
            head = struct.pack("!BBHHH", request, 0, 0, self._ident, seq)
            if self.family == 4:  # the kernel computes the checksum of ICMPv6
                head = head[:2] + struct.pack("!H", checksum(head)) + head[4:]
            try:
                self.sock.sendto(head, (self.address, 0))
            except OSError:
                pass

    def _receive(self):
        while not self._stop.is_set():
            try:
                data, control, _, who = self.sock.recvmsg(2048, 64)
            except OSError:
                continue
            now = _monotonic(*struct.unpack("qq", control[0][2]))
            if self.family == 4:
                data = data[(data[0] & 15) * 4 :]
            kind, ident = struct.unpack_from("!BxxxH", data)
            if kind == self.ECHO[self.family][1] and (ident, who[0]) == (self._ident, self.address):
                self.seen.append((now, "reply", who[0]))
            elif kind == self.ERROR[self.family]:
                quoted = data[24:28] if self.family == 4 else data[32:48]
                if quoted == self.packed:
                    self.seen.append((now, "unreachable", who[0]))


def _monotonic(seconds, nanoseconds):
    """Convert a time stamp of the kernel, which is a time of day, to monotonic time."""
    while True:
        begin, today, end = time.monotonic(), time.time(), time.monotonic()
        if end - begin < 0.001:  # this process did not stand still in between
            return begin - (today - seconds - nanoseconds / 1e9)


def checksum(octets):
    """Return the checksum of the Internet (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
