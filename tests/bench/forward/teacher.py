# SPDX-License-Identifier: BSD-3-Clause
"""Act as zebra: send the routes of files to a dataplane, replay them, and change some thousand
routes a second without a change of the port by which a frame must leave.

Each port has two neighbors with one MAC address, each with a next hop. A change moves a route of
the table from one of them to the other. Or it adds or removes a host route for a destination of
the frames, by the port that the destination uses already. So the answer to a frame is the same
before and after each change, and any other answer is wrong.
"""

import os
import random
import socket
import struct
import time

from lib import netns
from lib.fpm_speaker import (
    DST_AT,
    PLEN_AT,
    FpmSpeaker,
    frame,
    route_del_message,
    route_message,
)
from lib.wait import eventually

N_CHANGES = 20_000  # of each kind
TICK_S = 0.01


def nhid(family, port, second=False):
    """Return the id of a port's next hop: from 11 (IPv4) or 21 (IPv6) on; the id of its second next
    hop is from 31 or 41 on."""
    return {4: 10, 6: 20}[family] + port + (20 if second else 0)


def gateway(family, port, second=False):
    """Return the neighbor's address."""
    last = 3 if second else 2
    return f"192.0.2.{16 * port + last}" if family == 4 else f"2001:db8:{port + 1}::{last}"


def links(ports):
    """Return lines for `ip -batch` that set ports up, with addresses and both neighbors."""
    lines = []
    for n in ports:
        dev, mac = f"port{n}", f"02:00:00:00:{n:02x}:02"
        lines += [
            f"link set {dev} up",
            f"addr add 192.0.2.{16 * n + 1}/28 dev {dev}",
            f"-6 addr add 2001:db8:{n + 1}::1/64 dev {dev} nodad",
        ]
        lines += [
            f"neigh replace {gateway(family, n, second)} lladdr {mac} dev {dev} nud permanent"
            for family in (4, 6)
            for second in (False, True)
        ]
    return lines


def fpm_stream(path, family, hops):
    """Return (number, octets) of FPM frames with the routes of a file ("PREFIX PORT" in each
    line)."""
    any_prefix, kind = (
        ("0.0.0.0/0", socket.AF_INET) if family == 4 else ("::/0", socket.AF_INET6)
    )
    octets = 4 if family == 4 else 16
    parts = {}
    for port, hop in hops.items():
        one = frame(route_message(any_prefix, nhid=hop))
        parts[str(port)] = (
            one[:PLEN_AT],
            one[PLEN_AT + 1 : DST_AT],
            one[DST_AT + octets :],
        )
    out = []
    with open(path, encoding="ascii") as file:
        for line in file:
            prefix, port = line.split()
            address, length = prefix.split("/")
            head, middle, tail = parts[port]
            packed = socket.inet_pton(kind, address)
            out.append(b"%b%c%b%b%b" % (head, int(length), middle, packed, tail))
    return len(out), b"".join(out)


class Teacher:
    """The FPM session of one dataplane, whose ports are in namespace `space`."""

    def __init__(self, daemon, space, n_out, routes, frames4):
        self.daemon, self.space, self.n_out = daemon, space, n_out
        self.routes, self.frames4 = routes, frames4
        self.speaker, self.table, self.oif, self.want = None, None, [], {}

    def load(self, timeout):
        """Add addresses and neighbors, send all routes, and wait until they are in the FIB."""
        netns.ip_batch(links(range(self.n_out + 1)), self.space)
        with netns.entered(self.space):
            self.oif = [socket.if_nametoindex(f"port{n}") for n in range(self.n_out + 1)]
        self.connect()
        parts = []
        for family in (4, 6):
            hops = {n: nhid(family, n) for n in range(1, self.n_out + 1)}
            self.want[family], octets = fpm_stream(self.routes[family], family, hops)
            parts.append(octets)
        self.table = b"".join(parts)
        self.say_all()
        self.settled(timeout)

    def connect(self):
        """Open a new session."""
        self.close()
        self.speaker = FpmSpeaker("127.0.0.1", 2620, netns=self.space).connect()
        self.speaker.socket.settimeout(60)

    def say_all(self):
        """Send next hops and then routes, as a replay does."""
        for family in (4, 6):
            for n in range(1, self.n_out + 1):
                for second in (False, True):
                    self.speaker.nexthop(
                        nhid(family, n, second),
                        gateway=gateway(family, n, second),
                        oif=self.oif[n],
                    )
        self.speaker.send_raw(self.table)

    def settled(self, timeout=60):
        """Wait until all messages are in the FIB."""
        eventually(self.in_step, timeout, 0.05, "all routes are in the FIB")

    def in_step(self):
        """Return True if the FIB has exactly the routes that were sent."""
        now = self.daemon.fpm()
        return now["queue_bytes"] == 0 and all(
            now.get(f"zebra{family}") == n for family, n in self.want.items()
        )

    def replays(self, end):
        """Replay the whole table in new sessions until `end`. Return their number."""
        n = 0
        while time.monotonic() < end:
            self.connect()
            self.say_all()
            self.settled()
            n += 1
        return n

    def changes(self, rate, end):
        """Send `rate` changes a second until `end`, and then undo all of them.

        Return (number of changes until `end`, seconds).
        """
        parts, at, begin = self.change_frames(), 0, time.monotonic()
        while (now := time.monotonic()) < end:
            due = int((now - begin) * rate)
            while at < due:
                first = at % len(parts)
                piece = parts[first : first + due - at]
                self.speaker.send_raw(b"".join(piece))
                at += len(piece)
            time.sleep(TICK_S)
        took = time.monotonic() - begin
        if at % len(parts):
            self.speaker.send_raw(b"".join(parts[at % len(parts) :]))
        self.settled()
        return at, took

    def change_frames(self):
        """Return the FPM frames of the changes, in order. All of them together change nothing."""
        dice = random.Random(4)
        there, back = [], []
        with open(self.routes[4], encoding="ascii") as file:
            lines = file.read().splitlines()
        hosts = {line.split()[0] for line in lines if "/32 " in line}
        for line in dice.sample(lines, min(N_CHANGES, len(lines))):
            prefix, port = line.split()
            for out, second in ((there, True), (back, False)):
                hop = nhid(4, int(port), second)
                out.append(frame(route_message(prefix, nhid=hop)))
        for address, port in self.destinations(dice):
            prefix = f"{address}/32"
            if prefix in hosts:
                continue
            hosts.add(prefix)
            there.append(frame(route_message(prefix, nhid=nhid(4, port))))
            back.append(frame(route_del_message(prefix)))
        for part in (there, back):
            dice.shuffle(part)
        return there + back

    def destinations(self, dice):
        """Return destinations of the frames: [(address, port)]."""
        n = os.path.getsize(self.frames4) // 8
        found = []
        with open(self.frames4, "rb") as file:
            for at in dice.sample(range(n), min(N_CHANGES, n)):
                file.seek(8 * at)
                address, _, port = struct.unpack("<4sHH", file.read(8))
                found.append((socket.inet_ntoa(address), port))
        return found

    def close(self):
        """Close the session. The routes stay in force."""
        if self.speaker:
            self.speaker.close()
            self.speaker = None
