# SPDX-License-Identifier: BSD-3-Clause
"""Measure next hops that change below many prefixes: a member of a group, a member's link."""

import fcntl
import socket
import struct
import threading

from bench.fpm.figures import microseconds
from bench.fpm.rig import IDLE_S, Pour, now
from bench.fpm.table import MARKER, MARKER_HOST
from lab import routes
from lib import fpm_speaker as fpm
from lib import netns
from lib.wait import eventually

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
RTMGRP_LINK = 1


class Behind:
    """`n` prefixes that use a group of two next hops, by wan and by alt."""

    NHID = 20

    def __init__(self, rig, n):
        self.rig = rig
        self.wan, self.alt, self.ext = (rig.wires[w] for w in ("wan", "alt", "ext"))
        octets = b""
        for i, wire in enumerate((self.wan, self.alt, self.ext), 1):
            nhid, oif = self.NHID + i, rig.ifindex(wire)
            octets += fpm.frame(fpm.nexthop_message(nhid, gateway=wire.peer4, oif=oif))
        octets += self.group(1, 2)
        octets += fpm.table_stream(sorted(routes.table4(n)), 4, [self.NHID])
        octets += fpm.frame(fpm.route_message(MARKER, nhid=self.NHID))
        rig.speaker.send_raw(octets)

    def group(self, *members):
        """Return the frame that gives the group these next hops: 1 wan, 2 alt, 3 ext."""
        members = dict.fromkeys((self.NHID + m for m in members), 1)
        return fpm.frame(fpm.group_message(self.NHID, members))

    def flow_by(self, out):
        """Return the source port of a flow that leaves by `out` now."""

        def find():
            for sport in range(4000, 4064):
                begin = now()
                self.rig.wires["lan"].send(self.rig.probe(MARKER_HOST, sport))
                while now() < begin + 0.01:
                    if out.came(begin, sport) is not None:
                        return sport
            return None

        return eventually(find, 10, 0.01, f"a flow by {out.name}")


def next_hops(rig, n, reps):
    """Run both measurements with `n` prefixes behind the group."""
    rig.fresh()
    rig.connect()
    behind = Behind(rig, n)
    eventually(lambda: rig.fpm()["zebra4"] == n + 1, 30, what="routes are there")
    for bench, measure in (("group-change", group_change), ("link-loss", link_loss)):
        before = rig.fpm()["prefix_writes"]
        figures = measure(rig, behind, reps)
        writes = rig.fpm()["prefix_writes"] - before
        yield {"bench": bench, "routes": n, "prefix_writes": writes, **figures}


def group_change(rig, behind, reps):
    """Replace one of two members by another, and measure until its flows use the new member."""
    took, outs = [], (behind.wan, behind.ext)
    sport = behind.flow_by(behind.wan)
    frame = rig.probe(MARKER_HOST, sport)
    for i in range(reps):
        change = behind.group(*((3, 2) if i % 2 == 0 else (1, 2)))
        rig.warm(frame, outs)
        begin = now()
        rig.speaker.send_raw(change)
        took.append(rig.wait_for(frame, outs[1 - i % 2], begin, sport) - begin)
    rig.speaker.send_raw(behind.group(1, 2))
    return microseconds(took)


class LinkNews(threading.Thread):
    """Records when the kernel reports a change of a link to the daemon's namespace."""

    def __init__(self, namespace):
        super().__init__(daemon=True)
        with netns.entered(namespace):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            self.sock.bind((0, RTMGRP_LINK))
        self.came = None

    def run(self):
        """Wait for the first message."""
        self.sock.recv(65536)
        self.came = now()
        self.sock.close()


class Switch(threading.Thread):
    """Sets the far end of a wire down: one ioctl, which blocks for a grace period."""

    def __init__(self, wire):
        super().__init__(daemon=True)
        self.sock = netns.open_socket(wire.namespace, socket.AF_INET, socket.SOCK_DGRAM)
        answer = self._ioctl(SIOCGIFFLAGS, wire.ifname, 0)
        self.name, self.flags = wire.ifname, struct.unpack_from("H", answer, 16)[0]

    def _ioctl(self, number, name, flags):
        return fcntl.ioctl(self.sock, number, struct.pack("16sH14x", name.encode(), flags))

    def run(self):
        """Set the link down."""
        self._ioctl(SIOCSIFFLAGS, self.name, self.flags & ~IFF_UP)

    def back(self):
        """Set the link up again."""
        self.join()
        self._ioctl(SIOCSIFFLAGS, self.name, self.flags | IFF_UP)
        self.sock.close()


def link_lost(rig, behind, stream=None):
    """Set the far end of a member's link down, during `stream` if there is one, and wait until its
    flow leaves by the other member. Return the seconds from the call that sets the link down,
    which includes the time until the kernel reports it, and the seconds from the kernel's report.
    """
    sport = behind.flow_by(behind.wan)
    frame, news, switch = rig.probe(MARKER_HOST, sport), LinkNews(rig.dp), None
    news.start()
    switch = Switch(behind.wan)
    rig.warm(frame, (behind.wan, behind.alt))
    while stream and stream.at < len(stream.view) // 2:
        stream.step()
    begin = now()
    switch.start()
    work = stream.step if stream else lambda: IDLE_S
    at = rig.wait_for(frame, behind.alt, begin, sport, work=work)
    news.join()
    while stream and not stream.done_at:
        stream.step()
    switch.back()
    eventually(lambda: rig.port_row(behind.wan)["link"] == "up", 10, 0.01, "link up")
    return at - begin, at - news.came


def link_loss(rig, behind, reps):
    """Measure the loss of a member's link without other load."""
    took = [link_lost(rig, behind) for _ in range(reps)]
    # From the kernel's report; negative if the daemon acted before this process read the report.
    from_word = microseconds([word for _, word in took])
    return {**microseconds([call for call, _ in took]), "from_word": from_word}


def link_loss_in_replay(rig, table, reps):
    """Measure the loss of a member's link during a full replay, sent as fast as the socket takes it."""
    took = []
    for _ in range(reps):
        rig.connect()
        behind = Behind(rig, 0)
        stream = Pour(rig.speaker.socket, table.octets)
        took.append(link_lost(rig, behind, stream)[0])
        # With more than half the limit in the queue the daemon refuses connections.
        eventually(lambda: rig.fpm()["queue_bytes"] == 0, 10, 0.01, "all digested")
    yield {"bench": "link-loss-replay", "rate": 0, **microseconds(took)}
