# SPDX-License-Identifier: BSD-3-Clause
"""One end of a link as raw frames: the test collects received frames and sends given frames.

The test opens AF_PACKET sockets inside a namespace and uses them from outside. scapy builds and
dissects packets; it does not send or sniff. One thread collects from all wires, so that it takes
frames off the sockets while the test does other work. The thread plays the neighbors that a test
put on the wire with answer().
"""

import errno
import ipaddress
import itertools
import os
import selectors
import socket
import struct
import threading
import time

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import PATIENCE, Limit

ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA, PACKET_QDISC_BYPASS, PACKET_IGNORE_OUTGOING = 263, 8, 20, 23
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
SO_RCVBUFFORCE = 33
STOP, CATCH_UP = b"s", b"c"  # commands to a collector
# TURN: the number of frames that a collector takes from a wire before it reads other wires.
# SOCKET_HOLDS: more frames than a socket can hold (each frame takes at least half a KiB).
TURN, SOCKET_HOLDS = 64, 1 << 16
_numbers = itertools.count(1)
# The first octets of the payload of every probe: no frame of another program has them.
_SALT = os.urandom(6)


def token():
    """Return ten octets that no other probe carries."""
    return _SALT + struct.pack("!I", next(_numbers))


def token_of(packet):
    """Return the token inside a probe (scapy packet or octets), or None."""
    data = bytes(packet)
    at = data.find(_SALT)
    return data[at : at + 10] if at >= 0 else None


class Wire:
    """Send, collect and wait for frames. Answer ARP and neighbor solicitations."""

    # The topology fills these in: see lib/dut.py.
    name = tap = mac = port_mac = ip4 = peer4 = ip6 = peer6 = host4 = None

    def __init__(self, namespace, ifname):
        self.ifname = ifname
        self.sock = netns.open_socket(namespace, socket.AF_PACKET, socket.SOCK_RAW)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        # When a link has come up, the kernel gives it a queue a moment later. Until then the kernel
        # would lose all frames for that queue.
        self.sock.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        with netns.entered(namespace):
            self.sock.bind((ifname, ETH_P_ALL))
        self.sock.setblocking(False)
        self.came = threading.Condition()
        self.frames = []  # (monotonic time, octets)
        self.hosts = {}  # packed address: MAC, of the neighbors that this wire plays
        self.asked = []  # (monotonic time, address as text) solicitations seen

    def peer(self, family):
        """Return the address of the neighbor on this wire."""
        return self.peer4 if family == 4 else self.peer6

    def own(self, family):
        """Return the address of the router on this wire."""
        return self.ip4 if family == 4 else self.ip6

    # -- out --

    def send(self, *packets):
        """Send frames in this order: octets or scapy packets."""
        for packet in packets:
            data = packet if isinstance(packet, bytes) else bytes(packet)
            for _ in range(200):
                try:
                    self.sock.send(data)
                    break
                except OSError as err:
                    # The frame is lost: the socket is full for now, or the frame is larger than the
                    # MTU of the other end.
                    if err.errno not in (errno.EAGAIN, errno.ENOBUFS):
                        raise
                    time.sleep(0.001)

    def probe(self, dst, size=0, src=None, sport=4000, dport=4001, **fields):
        """Return a UDP packet with a token, from the peer of this wire through the router.

        `size` pads the IP packet to that many octets; `fields` go into the IP header.
        """
        six = ":" in dst
        if six:
            ip = IPv6(src=src or self.peer6, dst=dst, **fields)
        else:
            ip = IP(src=src or self.peer4, dst=dst, **fields)
        load = token()
        header = len(ip / UDP()) if size else 0
        load += bytes(max(0, size - header - len(load)))
        packet = Ether(src=self.mac, dst=self.port_mac) / ip
        return packet / UDP(sport=sport, dport=dport) / Raw(load)

    def flow_frames(self, dst, ports):
        """Return the octets of a probe for each (source port, destination port). It is quicker than
        scapy and leaves UDP's checksum out."""
        head = bytes(self.probe(dst, sport=0, dport=0))
        at = head.index(token_of(head)) - 8
        return [head[:at] + struct.pack("!HHHH", *pair, 18, 0) + token() for pair in ports]

    def srp1(self, probe, timeout=2):
        """Send a probe. Return the first frame that comes back with its token."""
        self.send(probe)
        return self.expect(token_of(probe), timeout)

    # -- in --

    def got(self, want=None):
        """Return the octets of all frames that match: they hold a token, or a function accepts
        them."""
        match = _matcher(want)
        with self.came:
            return [data for _, data in self.frames if match(data)]

    def timed(self, want=None):
        """Return all frames that match (see got), with their times: [(monotonic, octets)]."""
        match = _matcher(want)
        with self.came:
            return [(when, data) for when, data in self.frames if match(data)]

    def sniffed(self, layer=None):
        """Return all frames so far that hold a scapy layer, dissected."""
        packets = [Ether(data) for data in self.got()]
        return [p for p in packets if layer is None or layer in p]

    def expect(self, want, timeout=2):
        """Wait for the first frame that matches. Return it dissected."""
        return Ether(self.expect_raw(want, timeout))

    def expect_raw(self, want, timeout=2):
        """Wait for the first frame that matches. Return its octets."""
        return self.expect_many(want, 1, timeout)[0]

    def expect_many(self, want, count, timeout=2):
        """Wait until `count` frames match. Return the octets of all matching frames."""
        match, seen, found = _matcher(want), 0, []
        limit = Limit(timeout)
        with self.came:
            while True:
                found += [data for _, data in self.frames[seen:] if match(data)]
                seen = len(self.frames)
                if len(found) >= count:
                    return found
                if limit.left <= 0:
                    break
                self.came.wait(min(limit.left, limit.quarter))
                limit.step()
            what = f"{len(found)} of {count} expected frames on {self.ifname}"
            rest = [Ether(data).summary() for _, data in self.frames[-5:]]
        raise AssertionError(f"{what} within {timeout:g} s; last seen: {rest}")

    def clear(self):
        """Discard the frames that came so far."""
        with self.came:
            self.frames.clear()
            self.asked.clear()

    # -- the neighbors that the wire plays --

    def answer(self, address, mac=None):
        """Answer ARP or solicitations for an address from now on. Returns the MAC."""
        mac = mac or self.mac
        self.hosts[ipaddress.ip_address(address).packed] = _mac_octets(mac)
        return mac

    def silence(self, address=None):
        """Stop answering for one address, or for all."""
        if address is None:
            self.hosts.clear()
        else:
            self.hosts.pop(ipaddress.ip_address(address).packed, None)

    def solicitations(self, address):
        """Return the times at which the router asked for an address."""
        with self.came:
            return [when for when, who in self.asked if who == address]

    def receive(self):
        """Return one frame as it was on the wire. The kernel takes a VLAN tag out of the frame; this
        function puts the tag back."""
        data, control, _, _ = self.sock.recvmsg(65535, 64)
        for level, kind, aux in control:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, tci, tpid = struct.unpack_from("=I12xHH", aux)
                if status & TP_STATUS_VLAN_VALID:
                    tagged = status & TP_STATUS_VLAN_TPID_VALID
                    tag = struct.pack("!HH", tpid if tagged else 0x8100, tci)
                    data = data[:12] + tag + data[12:]
        return data

    def take(self, data):
        """Store a received frame and answer it.  [collector thread]"""
        now = time.monotonic()
        target = _solicited(data)
        with self.came:
            self.frames.append((now, data))
            if target:
                self.asked.append((now, str(ipaddress.ip_address(target))))
            self.came.notify_all()
        mac = self.hosts.get(target) if target else None
        if mac:
            reply = _arp_reply(data, mac) if len(target) == 4 else _advert(data, mac)
            try:
                self.sock.send(reply)
            except OSError:
                pass  # the link went down meanwhile: no host receives the answer


class Collector(threading.Thread):
    """The thread that empties the sockets of all wires."""

    def __init__(self):
        super().__init__(daemon=True, name="collector")
        self.selector = selectors.DefaultSelector()
        self.wake_r, self.wake_w = os.pipe()
        self.selector.register(self.wake_r, selectors.EVENT_READ, None)
        self.caught_up = threading.Event()
        self.start()

    def add(self, wire):
        """Collect from one more wire."""
        self.selector.register(wire.sock, selectors.EVENT_READ, wire)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is not None:
                    self._take(key.data, TURN)
                elif os.read(self.wake_r, 1) == STOP:
                    return
                else:
                    for other in list(self.selector.get_map().values()):
                        if other.data is not None:
                            self._take(other.data, SOCKET_HOLDS)
                    self.caught_up.set()

    @staticmethod
    def _take(wire, most):
        for _ in range(most):
            try:
                data = wire.receive()
            except BlockingIOError:
                break
            except OSError:
                break  # the kernel reports ENETDOWN once; the socket stays usable
            wire.take(data)

    def catch_up(self):
        """Return when all frames that have come to any wire until now have been taken."""
        self.caught_up.clear()
        os.write(self.wake_w, CATCH_UP)
        assert self.caught_up.wait(30 * PATIENCE), "the collector does not keep up"

    def close(self):
        """End the thread and close all sockets."""
        if self.is_alive():
            os.write(self.wake_w, STOP)
            self.join(5)
        for key in list(self.selector.get_map().values()):
            if key.data is not None:
                key.data.sock.close()
        self.selector.close()


def _matcher(want):
    if want is None:
        return lambda data: True
    if isinstance(want, bytes):
        return lambda data: want in data
    return want


def _mac_octets(mac):
    return bytes.fromhex(mac.replace(":", ""))


def _solicited(data):
    """Return the packed address that an ARP request or a neighbor solicitation asks for, or
    None."""
    if data[12:14] == b"\x08\x06" and data[20:22] == b"\x00\x01":
        return data[38:42]
    if (
        data[12:14] == b"\x86\xdd"
        and len(data) >= 78
        and data[20] == 58
        and data[54] == 135
    ):
        return data[62:78]
    return None


def _arp_reply(request, mac):
    asker = request[22:32]
    head = asker[:6] + mac + b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x02"
    return (head + mac + request[38:42] + asker).ljust(60, b"\0")


def _advert(solicitation, mac):
    target, asker = solicitation[62:78], solicitation[22:38]
    # Solicited, override (RFC 4861, 4.4), with the target link-layer address option.
    body = b"\x88\x00\x00\x00\x60\x00\x00\x00" + target + b"\x02\x01" + mac
    total = sum(struct.unpack("!16H", target + asker)) + len(body) + 58
    total += sum(struct.unpack(f"!{len(body) // 2}H", body))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
    head = (
        solicitation[6:12] + mac + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 32, 58, 255)
    )
    return head + target + asker + body
