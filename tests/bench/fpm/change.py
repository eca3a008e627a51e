# SPDX-License-Identifier: BSD-3-Clause
"""Measure the move of a route to another next hop: idle, and during a full replay."""

import time

from bench.fpm.figures import microseconds, spread
from bench.fpm.rig import IDLE_S, now
from bench.fpm.table import Marker

PIECE = 600 * 64  # octets of routes between two changes


def change_idle(rig, reps):
    """Measure from the send() of the change until the first packet leaves by the new next hop."""
    marker = Marker(rig)
    marker.settle()
    took = []
    for _ in range(reps):
        change = marker.move()
        rig.warm(marker.frame, marker.outs)
        begin = now()
        rig.speaker.send_raw(change)
        took.append(marker.wait(begin) - begin)
    yield {"bench": "change-idle", **microseconds(took)}


def change_in_replay(rig, table, rate, reps):
    """Measure the time of changes during the replay of a full table with `rate` routes a second (None:
    as many as the socket takes). Each change is sent after a packet has shown the last one."""
    took, seconds = [], []
    for _ in range(reps):
        rig.connect()
        marker = Marker(rig)
        marker.settle()
        one = Changes(rig, table, marker)
        one.run(rate)
        took += one.took
        seconds.append(one.seconds)
    yield {
        "bench": "change-replay",
        "rate": rate or 0,
        "replay_s": spread(seconds),
        **microseconds(took),
    }


class Changes:
    """The changes during one replay, one after the other."""

    def __init__(self, rig, table, marker):
        self.rig, self.table, self.marker = rig, table, marker
        self.sent_at, self.took, self.seconds = None, [], 0.0

    def run(self, rate):
        """Run one replay. Then wait for the last change."""
        sock, octets = self.rig.speaker.socket, memoryview(self.table.octets)
        at, begin, of_one = 0, now(), len(octets) / self.table.n
        for end in frame_ends(octets, PIECE):
            while rate and now() - begin < end / of_one / rate:
                self.look()
                time.sleep(IDLE_S)
            sock.sendall(octets[at:end])
            at = end
            self.look()
            if self.sent_at is None:
                change = self.marker.move()
                self.marker.out.drain()
                sock.sendall(change)
                self.sent_at = now()
        self.seconds = now() - begin
        if self.sent_at is not None:
            self.took.append(self.marker.wait(self.sent_at) - self.sent_at)

    def look(self):
        """Send a probe. Check if a probe has left by the next hop of the last change."""
        self.rig.wires["lan"].send(self.marker.frame)
        if self.sent_at is None:
            return
        at = self.marker.out.came(self.sent_at)
        if at is not None:
            self.took.append(at - self.sent_at)
            self.sent_at = None


def frame_ends(octets, piece):
    """Return offsets of frame ends, about `piece` octets apart."""
    ends, at, last = [], 0, 0
    while at < len(octets):
        at += octets[at + 2] << 8 | octets[at + 3]
        if at - last >= piece or at == len(octets):
            ends.append(at)
            last = at
    return ends
