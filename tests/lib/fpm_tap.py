# SPDX-License-Identifier: BSD-3-Clause
"""Read the messages that a zebra sends over FPM, on the loopback interface of its namespace."""

import collections
import ipaddress
import socket
import struct
import threading

from lib import netns

PORT = 2620
ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 3, 263, 23, 33
FIN_OR_RST, SYN = 5, 2
ROUTES = {24: "NEWROUTE", 25: "DELROUTE"}
RTA_DST, RT_TABLE_MAIN = 1, 254


class FpmTap(threading.Thread):
    """Keeps the kind of the last message about each prefix of table main."""

    def __init__(self, namespace):
        super().__init__(daemon=True, name="fpm-tap")
        self.sock = netns.open_socket(namespace, socket.AF_PACKET, socket.SOCK_RAW)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        with netns.entered(namespace):
            self.sock.bind(("lo", ETH_P_ALL))
        self.sock.settimeout(0.2)
        self.ending = threading.Event()
        self.kinds = {}  # prefix: NEWROUTE or DELROUTE
        self.recent = collections.deque(maxlen=60)  # texts of the latest messages
        self._port, self._next, self._buffer = None, 0, b""
        self.start()

    def close(self):
        """End the thread."""
        self.ending.set()
        self.join(5)
        self.sock.close()

    def run(self):
        while not self.ending.is_set():
            try:
                data = self.sock.recv(1 << 17)
            except TimeoutError:
                continue
            if data[12:14] == b"\x08\x00" and data[23] == socket.IPPROTO_TCP:
                at = 14 + (data[14] & 15) * 4
                self._segment(data[at : 14 + int.from_bytes(data[16:18], "big")])

    def _segment(self, tcp):
        src, dst, seq = struct.unpack_from("!HHI", tcp)
        if dst != PORT:
            return
        body, flags = tcp[(tcp[12] >> 4) * 4 :], tcp[13]
        if flags & SYN:
            self._port, self._next, self._buffer = src, seq + 1, b""
            self.recent.append("session begins")
        if flags & FIN_OR_RST:
            self.recent.append("session ends")
        if src != self._port or not body or seq != self._next:
            return
        self._next = seq + len(body) & 0xFFFFFFFF
        self._buffer += body
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[2:4], "big")
            if len(self._buffer) < size:
                break
            self._frame(self._buffer[4:size])
            self._buffer = self._buffer[size:]

    def _frame(self, data):
        while len(data) >= 16:
            size, kind = struct.unpack_from("=IH", data)
            if kind in ROUTES:
                self._route(ROUTES[kind], data[16:size])
            data = data[size + 3 & ~3 :]

    def _route(self, kind, body):
        family, length, _, _, table, protocol = struct.unpack_from("=6B", body)
        attrs, packed = body[12:], bytes(4 if family == socket.AF_INET else 16)
        while len(attrs) >= 4:
            size, which = struct.unpack_from("=HH", attrs)
            if which == RTA_DST:
                packed = attrs[4:size]
            attrs = attrs[size + 3 & ~3 :]
        prefix = str(ipaddress.ip_network((packed, length)))
        self.recent.append(f"{kind} {prefix} table {table} protocol {protocol}")
        if table == RT_TABLE_MAIN:
            self.kinds[prefix] = kind
