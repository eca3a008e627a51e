# SPDX-License-Identifier: BSD-3-Clause
"""Send numbered packets from the lan and from the isp, and record the result of each.

A packet carries only its number. This module keeps its send time, its cell (oracle.py) and
whether it arrived. A packet is judged when it arrives: its path must have been right at some
moment between its departure and its arrival. Both sides use raw sockets, so that the kernels of
the neighbors take no part.
"""

import array
import bisect
import ctypes
import ipaddress
import selectors
import socket
import struct
import threading
import time

from chaos.oracle import VX, path_name
from lib import netns

PORT = 7
MAGIC = 0xC4A05EED
OUR_MARK = struct.pack("!I", MAGIC)
HOPS = 64
SO_ATTACH_FILTER, SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 26, 263, 23, 33
HEAD4, HEAD6 = 42, 62  # Ethernet, IP, UDP
MPLS = b"\x88\x47"
VXLAN_PORT, VNI = 4789, 5001
IPIP, ROUTING = {4: b"\x08\x00", 41: b"\x86\xdd"}, 43  # next headers of IPv6
# Classic BPF. It accepts labels, a packet in IPv6 or in a VXLAN, or the magic number where the payload
# of IPv4 or of IPv6 begins.
FILTER = [
    (0x28, 0, 0, 12),
    (0x15, 12, 0, 0x8847),
    (0x15, 5, 0, 0x86DD),
    (0x28, 0, 0, 36),
    (0x15, 9, 0, VXLAN_PORT),
    (0x20, 0, 0, HEAD4),
    (0x15, 7, 0, MAGIC),
    (0x06, 0, 0, 0),
    (0x30, 0, 0, 20),
    (0x15, 4, 0, 4),
    (0x15, 3, 0, 41),
    (0x15, 2, 0, ROUTING),
    (0x20, 0, 0, HEAD6),
    (0x15, 0, 1, MAGIC),
    (0x06, 0, 0, 0xFFFF),
    (0x06, 0, 0, 0),
]
PENDING_S = 0.25  # after a longer time without CPU, the sender does not send the missed packets


def listener(namespace, dev):
    """Open a socket that receives the packets of this program that come in by `dev`."""
    sock = netns.open_socket(namespace, socket.AF_PACKET, socket.SOCK_RAW)
    code = b"".join(struct.pack("=HBBI", *line) for line in FILTER)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("@HxxxxxxP", len(FILTER), ctypes.addressof(held))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
    with netns.entered(namespace):
        sock.bind((dev, 3))
    sock.setblocking(False)
    return sock


def _sum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def frame_head(src_mac, dst_mac, src, dst, flow, label=None):
    """Return a packet to `dst`, behind a label if there is one, without its number. The number does
    not change the checksums."""
    source, target = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    macs = bytes.fromhex((dst_mac + src_mac).replace(":", ""))
    # The complement follows the number: the sum is always the same.
    load = struct.pack("!IIi", MAGIC, 0, -1)
    udp = struct.pack("!HHHH", 20000 + flow, PORT, 8 + len(load), 0)
    total = _sum(source + target + struct.pack("!HH", 17, len(udp) + len(load)) + udp + load)
    udp = udp[:6] + struct.pack("!H", ~total & 0xFFFF or 0xFFFF)
    if len(target) == 4:
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(load), 0, 0, HOPS, 17, 0)
        ip += source + target
        ip = ip[:10] + struct.pack("!H", ~_sum(ip) & 0xFFFF) + ip[12:]
        return macs + _label(label, b"\x08\x00") + ip + udp + load[:4]
    ip = struct.pack("!IHBB", 6 << 28, 8 + len(load), 17, HOPS) + source + target
    return macs + _label(label, b"\x86\xdd") + ip + udp + load[:4]


def _label(label, ethertype):
    """Return the octets before the IP header: the EtherType and the label."""
    return ethertype if label is None else MPLS + struct.pack("!I", label << 12 | 1 << 8 | HOPS)


def without_labels(data):
    """Return the labels of a frame, outermost first, their TTLs, and the frame without them."""
    labels, ttls, at = [], set(), 14
    if data[12:14] == MPLS:
        bottom = 0
        while not bottom and at + 4 <= len(data):
            (word,) = struct.unpack_from("!I", data, at)
            labels.append(word >> 12)
            ttls.add(word & 255)
            bottom, at = word & 256, at + 4
        ip6 = data[at : at + 1] and data[at] >> 4 == 6
        data = data[:12] + (b"\x86\xdd" if ip6 else b"\x08\x00") + data[at:]
    return labels, ttls, data


def without_segments(data):
    """Return the words of the outer IPv6 header of a frame, its hop limit, and the frame without the
    header. The words are the segments to come and, if there is a routing header, the number of the
    segments that it lists."""
    words, at, proto = [str(ipaddress.ip_address(data[38:54]))], 54, data[20]
    if proto == ROUTING:
        proto, octets, left, last = data[at], 8 + 8 * data[at + 1], data[at + 3], data[at + 4]
        listed = [data[at + 8 + 16 * n :][:16] for n in range(last + 1)]
        words += [str(ipaddress.ip_address(listed[n])) for n in reversed(range(left))]
        words.append(f"/{last + 1}")
        at += octets
    if int.from_bytes(data[18:20], "big") != len(data) - 54:
        words.append("of a wrong length")
    return words, {data[21]}, data[:12] + IPIP.get(proto, b"??") + data[at:]


def without_vxlan(data):
    """Return the words of the outer headers of a frame in a VXLAN, its TTL, the frame with the inner
    packet, and the router MAC."""
    words = [VX, str(ipaddress.ip_address(data[30:34]))]
    if data[42] != 8 or int.from_bytes(data[46:49], "big") != VNI:
        words.append("of another VNI")
    if _sum(data[14:34]) != 0xFFFF or int.from_bytes(data[16:18], "big") != len(data) - 14:
        words.append("with a wrong header")
    return words, {data[22]}, data[:12] + data[62:], data[50:56]


def unwrapped(data):
    """Return the labels of a frame or the words of its outer headers, their TTLs, the frame without the
    labels or headers, and the router MAC if the frame is in a VXLAN."""
    kind = data[12:14]
    if kind == b"\x86\xdd" and (data[20] in IPIP or data[20] == ROUTING):
        return (*without_segments(data), None)
    if kind == b"\x08\x00" and data[23] == 17 and data[36:38] == struct.pack("!H", VXLAN_PORT):
        return without_vxlan(data)
    return (*without_labels(data), None)


class Traffic:
    """sources: {name: (namespace, dev)}; sinks: {egress: (namespace, dev)}."""

    def __init__(self, oracle, sources, sinks, rate):
        self.oracle, self.rate = oracle, rate
        self.out = {}
        for name, (space, dev) in sources.items():
            sock = netns.open_socket(space, socket.AF_PACKET, socket.SOCK_RAW)
            with netns.entered(space):
                sock.bind((dev, 0))
            sock.setblocking(False)
            self.out[name] = sock
        self.selector = selectors.DefaultSelector()
        self.sinks = []
        for egress, (space, dev) in sinks.items():
            sock = listener(space, dev)
            self.sinks.append(sock)
            self.selector.register(sock, selectors.EVENT_READ, egress)
        self.sent_at = array.array("d")  # by number
        self.cell = array.array("H")
        self.came = bytearray()  # 0: the packet has not arrived, 1: it has, 255: its link refused it
        # For each arrival: the time, and the highest number that had arrived by then.
        self.seen_at, self.newest = array.array("d"), array.array("I")
        self.refused = 0  # packets that the sender's own link refused
        self.wrong, self.mangled, self.twice = [], [], []
        self.ending, self.closing = threading.Event(), threading.Event()
        self.threads = [
            threading.Thread(target=f, name=f.__name__, daemon=True)
            for f in (self._send, self._receive)
        ]

    def start(self):
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def stop(self, patience=3.0):
        """Stop sending, wait for packets in transit, and close."""
        self.ending.set()
        self.threads[0].join()
        time.sleep(patience)  # a packet that arrives later counts as lost
        self.closing.set()
        self.threads[1].join()
        for sock in [*self.out.values(), *self.sinks]:
            sock.close()

    def lost(self):
        """Return (send time, cell) of each packet that never arrived."""
        return [
            (self.sent_at[n], self.cell[n]) for n, times in enumerate(self.came) if not times
        ]

    def none_newer_came(self, at):
        """Return the send time of the newest packet that had arrived by `at`."""
        seen = bisect.bisect_right(self.seen_at, at)
        return self.sent_at[self.newest[seen - 1]] if seen else at

    def sent_between(self, begin, end):
        """Return the number of packets that were sent from `begin` to `end`."""
        return bisect.bisect_right(self.sent_at, end) - bisect.bisect_left(
            self.sent_at, begin
        )

    def _send(self):
        cells = self.oracle.cells
        begin, due_from, turn = time.monotonic(), 0, 0
        while not self.ending.wait(0.002):
            due = int((time.monotonic() - begin) * self.rate)
            due_from = max(due_from, due - int(PENDING_S * self.rate))
            for _ in range(due_from, due):
                cell = cells[turn % len(cells)]
                turn += 1
                number = len(self.came)
                self.sent_at.append(time.monotonic())
                self.cell.append(cell.index)
                self.came.append(0)
                try:
                    self.out[cell.source].send(
                        cell.head + struct.pack("!Ii", number, ~number)
                    )
                except OSError:
                    self.came[number] = 255
                    self.refused += 1
            due_from = due

    def _receive(self):
        while not self.closing.is_set():
            for key, _ in self.selector.select(0.1):
                for _ in range(256):
                    try:
                        data = key.fileobj.recv(256)
                    except OSError:  # no packet is left; ENETDOWN is reported once
                        break
                    self._judge(key.data, data)

    def _judge(self, egress, data):
        now = time.monotonic()
        if OUR_MARK not in data:
            return  # a frame of others
        words, ttls, data, mac = unwrapped(data)
        head = HEAD4 if data[12] == 8 else HEAD6
        if data[head : head + 4] != OUR_MARK:
            return  # labels, or an outer header, of a broken frame
        number = struct.unpack_from("!I", data, head + 4)[0]
        if number >= len(self.came):
            self.mangled.append((now, egress, data))
            return
        self.seen_at.append(now)
        self.newest.append(max(number, self.newest[-1]) if self.newest else number)
        cell = self.oracle.cells[self.cell[number]]
        hops = data[22] if head == HEAD4 else data[21]
        # The IP header is untouched if a label was swapped, or a segment ended.
        untouched = bool(words) and cell.entry is not None
        fresh = words and isinstance(words[0], str) and not untouched  # an outer header is new
        if (
            hops != HOPS - (0 if untouched else 1)
            or ttls - {HOPS if fresh else HOPS - 1}
            or (mac and mac not in self.oracle.rmacs[words[1]])
            or data[head - 8 : head + 4] != cell.head[-12:]
            or data[head + 8 : head + 12] != struct.pack("!i", ~number)
            or data[:6] not in self.oracle.macs[egress]
            or (head == HEAD4 and _sum(data[14:34]) != 0xFFFF)
        ):
            self.mangled.append((now, egress, data))
        if self.came[number]:
            self.twice.append((now, egress, cell, self.sent_at[number]))
        else:
            self.came[number] = 1
        allowed = self.oracle.allowed(cell, self.sent_at[number], now)
        out = path_name(egress, words)
        if out not in allowed:
            self.wrong.append((now, out, allowed, cell, self.sent_at[number]))
