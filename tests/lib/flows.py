# SPDX-License-Identifier: BSD-3-Clause
"""Flows of UDP packets with numbers. They show which receiver has each flow, in which order its
packets come and with which TTL, which packets are lost, and for how long.

A flow is a source port. Its packets have numbers from 0 on.
"""

import collections
import contextlib
import resource
import socket
import struct
import threading
import time

from lib import netns
from lib.pace import Pace
from lib.probe import IPV6_FREEBIND, SO_RCVBUFFORCE, checksum, family_of
from lib.wait import PATIENCE, eventually

IP_RECVTTL = 12  # linux/in.h
PORT = 9
FIRST = 20000  # source port of flow 0
PIECE = 32  # packets in a row: the queue of a veth is short
PIECE_S = 0.004


class Sink:
    """Receive the packets that reach an address in a namespace. `came` has the packets of each
    flow in the order of their arrival: {flow: [(number, TTL)]}. Use it in a with block."""

    def __init__(self, name, address, port=PORT):
        four = family_of(address) == 4
        family = socket.AF_INET if four else socket.AF_INET6
        self.sock = netns.open_socket(name, family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        if four:
            self.sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        else:
            self.sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        self.sock.bind((address, port))
        self.sock.setblocking(False)
        self.came = collections.defaultdict(list)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def take(self):
        """Read the packets that have come. Return the number of all packets so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, control, _, who = self.sock.recvmsg(64, 64)
                (ttl,) = struct.unpack_from("i", control[0][2])
                (number,) = struct.unpack_from("!I", data)
                self.came[who[1] - FIRST].append((number, ttl))
        return sum(map(len, self.came.values()))

    def forget(self):
        """Forget the packets that have come."""
        self.take()
        self.came.clear()


class Source:
    """Flows from a namespace to an address. `source`: their source address; "": the source of the
    route. `sent` has the time of each packet: {(flow, number): time}. Use it in a with block."""

    def __init__(self, name, address, flows, source="", port=PORT, first=0):
        family = socket.AF_INET if family_of(address) == 4 else socket.AF_INET6
        self.to, self.flows = (address, port), range(first, first + flows)
        self.sent, self._next = {}, collections.Counter()
        self.socks = {}
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a socket for each flow
        for flow in self.flows:
            self.socks[flow] = netns.open_socket(name, family, socket.SOCK_DGRAM)
            self.socks[flow].bind((source, FIRST + flow))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for sock in self.socks.values():
            sock.close()

    def send(self, flow):
        """Send the next packet of a flow."""
        number = self._next[flow]
        data = struct.pack("!I", number)
        try:
            self.socks[flow].sendto(data, self.to)
        except OSError:  # an ICMP error of an earlier packet; it is reported once
            self.socks[flow].sendto(data, self.to)
        self._next[flow] += 1
        self.sent[flow, number] = time.monotonic()

    def round(self, each=1):
        """Send `each` packets of each flow, one directly behind the other. Return the number of packets."""
        for at, flow in enumerate((flow for flow in self.flows for _ in range(each)), 1):
            self.send(flow)
            if at % PIECE == 0:
                time.sleep(PIECE_S * PATIENCE)
        return len(self.flows) * each

    def lost(self, sinks):
        """Return the packets, as (flow, number), that no sink has received."""
        came = set()
        for sink in sinks:
            sink.take()
            came |= {(flow, n) for flow, rows in sink.came.items() for n, _ in rows}
        return set(self.sent) - came

    def silence(self, lost):
        """Return the seconds from the first lost packet to the last one, by the times at which they
        were sent."""
        times = [self.sent[packet] for packet in lost]
        return max(times) - min(times) if times else 0.0


class Stream:
    """Send packets of a source, flow by flow, `rate` a second, until the with block ends."""

    def __init__(self, source, rate):
        self.source, self.rate = source, rate
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()

    def _run(self):
        flows, pace = self.source.flows, Pace(self.rate)
        at = 0
        while not self._stop.is_set():
            with contextlib.suppress(OSError):  # no route for a moment: the packet is not sent
                self.source.send(flows[at % len(flows)])
            at += 1
            pace.wait(self._stop)

    def goes_on(self, sinks, seconds=1.0):
        """Wait until each flow has a packet that was sent after now and received, then some time
        longer."""
        begin = time.monotonic()

        def whole():
            lost = self.source.lost(sinks)
            late = {packet for packet, at in list(self.source.sent.items()) if at > begin}
            return {flow for flow, _ in late - lost} == set(self.source.flows)

        eventually(whole, 60, 0.2, "a packet of each flow arrives")
        self._stop.wait(seconds * PATIENCE)


def frame(mac, source, address, flow):
    """Return the IPv4 frame of a packet of a flow, to a port with this MAC, as hexadecimal text."""
    length, octets = 20 + 8 + 4, socket.inet_aton(source) + socket.inet_aton(address)
    head = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, 64, socket.IPPROTO_UDP, 0) + octets
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    udp = struct.pack("!4HI", FIRST + flow, PORT, 8 + 4, 0, 0)
    return (bytes.fromhex(mac.replace(":", "") + "020000000000" + "0800") + head + udp).hex()


def settle(source, sinks, expected=0):
    """Wait until the sinks have all packets of the source, or until none comes for a while. Return the number of
    packets that are lost."""
    before, since = -1, time.monotonic()
    while True:
        have = sum(sink.take() for sink in sinks)
        if have >= (expected or len(source.sent)):
            return len(source.lost(sinks))
        if have != before:
            before, since = have, time.monotonic()
        if time.monotonic() - since > 0.5 * PATIENCE:
            return len(source.lost(sinks))
        time.sleep(0.02)


def owners(sinks):
    """Return {flow: name} of the packets that came. `sinks` by name. A flow with two receivers has
    both names."""
    found = collections.defaultdict(set)
    for name, sink in sinks.items():
        sink.take()
        for flow in sink.came:
            found[flow].add(name)
    return {flow: "+".join(sorted(names)) for flow, names in found.items()}


def reordered(sinks):
    """Return the number of packets that came behind a later packet of their flow."""
    late = 0
    for sink in sinks:
        for rows in sink.came.values():
            highest = -1
            for number, _ in rows:
                late += number < highest
                highest = max(highest, number)
    return late


def divided(sinks):
    """Return the flows whose packets came with different TTLs. So their paths had different lengths."""
    return sorted(
        flow for sink in sinks for flow, rows in sink.came.items() if len({ttl for _, ttl in rows}) > 1
    )


def ttls(sinks):
    """Return {TTL: packets}."""
    return dict(collections.Counter(ttl for s in sinks for rows in s.came.values() for _, ttl in rows))
