#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Record the FPM messages of r1's zebra in a scenario of frr-config. There is no dataplane: r1 has
its ends of the cables in place of TAPs, and its kernel forwards.

    record.py SCENARIO    print the start and a replay in the form of tests/unit/captures

Other programs use Recorded: its `listener` gives the frames since the last call."""

import concurrent.futures
import os
import socket
import sys
import threading
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lab.fpm_text import cut_frames, text_of
from lab.lab import Lab
from lib import netns
from lib.wait import eventually

PORT = 2620
QUIET_S = 6
CONVERGED_S = 40  # LDP waits 15 s after a session that failed


class Listener:
    """Accept zebra in namespace `name` and keep every frame."""

    def __init__(self, name):
        self.frames, self.sessions, self.last = [], 0, time.monotonic()
        self._peer, self._lock = None, threading.Lock()
        self._sock = netns.open_socket(name, socket.AF_INET, socket.SOCK_STREAM)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sock.bind(("127.0.0.1", PORT))
        self._sock.listen(1)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            peer, _ = self._sock.accept()
            self._peer, rest = peer, b""
            self.sessions += 1
            while octets := self._read(peer):
                frames, rest = cut_frames(rest + octets)
                with self._lock:
                    self.frames += frames
                    self.last = time.monotonic()

    @staticmethod
    def _read(peer):
        try:
            return peer.recv(1 << 16)
        except OSError:
            return b""

    def take(self, quiet=QUIET_S):
        """Wait until nothing came for `quiet` seconds. Return the frames since the last call."""
        self.last = time.monotonic()
        eventually(lambda: time.monotonic() - self.last > quiet, 120, 0.2, "zebra is silent")
        with self._lock:
            frames, self.frames = self.frames, []
        return frames

    def again(self, quiet=QUIET_S):
        """End the session. Return the frames of the replay after it."""
        n = self.sessions
        self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()
        eventually(lambda: self.sessions > n, 30, 0.1, "zebra connects again")
        return self.take(quiet)


class Recorded(Lab):
    """A lab whose r1 has no dataplane: its kernel forwards."""

    listener = None

    def start(self):
        """Make the lab and start all routers. Routing has not converged then."""
        self.lock()
        self.create()
        name = self.ns["r1"]
        for tap, _, _ in self.plan.ports:
            # A device that moves to a namespace gets the settings of that namespace from the kernel.
            words = ["link", "set", "port-" + tap, "netns", name, "name", tap]
            netns.command(["ip", "-n", self.ns["r1-dp"], *words])
        netns.ip_batch([f"link set {tap} up" for tap, _, _ in self.plan.ports], name)
        self.plan.stack(name)
        self.listener = Listener(name)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            jobs = [pool.submit(frr.start) for frr in self.routers.values()]
            for job in jobs:
                job.result()


def print_section(title, frames):
    """Print frames in the form of tests/unit/captures: hex, and the events on the line below."""
    print(f"\n= {title}")
    for frame in frames:
        print(f"{frame.hex()}\n\t{text_of(frame) or '-'}")


def main():
    """Record the start of a scenario and a replay."""
    with Recorded("record", sys.argv[1]) as lab:
        lab.start()
        print_section("start", lab.listener.take(CONVERGED_S))
        print_section("replay", lab.listener.again())


if __name__ == "__main__":
    main()
