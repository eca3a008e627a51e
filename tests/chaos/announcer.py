# SPDX-License-Identifier: BSD-3-Clause
"""Announce routes that zebra does not know to the dataplane, by the relay (relay.py). Change a few of these
routes in each second, also during faults."""

import contextlib
import itertools
import random
import socket
import threading

from lib import fpm_speaker as fpm
from lib.wait import eventually


class Announcer:
    """Routes by key. A subclass has `_frames` and `_some`, and calls `_change`."""

    def __init__(self, bed, rng, first_id):
        self.bed, self.rng, self.oracle = bed, rng, None
        self.own = random.Random(rng.random())  # the random numbers of the thread
        self.cells = {}  # key: cell
        self.ids = itertools.count(first_id)  # of next hops
        self.known = {}  # key: next hop ids that are in force
        self.lock = threading.Lock()  # of the routes and the connection to the relay
        self.paused, self.ending = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.client = None
        self.changes = 0

    def connect(self, path):
        """Connect to the relay."""
        sock = socket.socket(socket.AF_UNIX)

        def connected():
            sock.connect(path)
            return True

        eventually(connected, 10, 0.02, "the relay listens")
        self.client = sock.makefile("rw")
        sock.close()  # the file has a copy

    def keys(self):
        """Return the keys of all routes that change."""
        raise NotImplementedError

    def start(self):
        """Start the thread."""
        self.thread.start()

    def end(self):
        """End the thread."""
        self.ending.set()
        self.thread.join()

    @contextlib.contextmanager
    def still(self):
        """Change nothing while this lasts."""
        self.paused.set()
        try:
            yield
        finally:
            self.paused.clear()

    def burst(self, count, rng):
        """Change `count` routes at once."""
        keys = rng.sample(self.keys(), count)
        self._change({key: self._some(rng, key) for key in keys})

    def _run(self):
        while not self.ending.wait(0.2):
            if not self.paused.is_set():
                key = self.own.choice(list(self.cells))
                self._change({key: self._some(self.own, key)})

    def _some(self, rng, key, there=False):
        """Return random next hops of an announcement, each (link, words of the path), or () for a
        withdrawal. With `there`, never return ()."""
        raise NotImplementedError

    def _frames(self, key, hops):
        """Return (the frames of a replay, the frames to send now)."""
        raise NotImplementedError

    def _change(self, wanted):
        """Announce {key: hops}; no hops: withdraw."""
        with self.lock:
            cells = {self.cells[key]: hops for key, hops in wanted.items() if key in self.cells}
            self.oracle.change(hops=cells)
            said = []
            for key, hops in wanted.items():
                said += [key, *self._frames(key, hops)]
            self._tell(*said)
            self.changes += len(wanted)

    def _route(self, key, hops):
        """Return what _frames() returns, for a prefix. Each next hop is a dict of keywords of
        fpm.nexthop_message()."""
        old, new, frames = self.known.get(key, ()), [], b""
        for hop in hops:
            new.append(next(self.ids))
            frames += fpm.frame(fpm.nexthop_message(new[-1], **hop))
        if len(new) > 1:
            new.append(next(self.ids))
            frames += fpm.frame(fpm.group_message(new[-1], new[:-1]))
        if new:
            frames += fpm.frame(fpm.route_message(key, nhid=new[-1]))
        now = frames or fpm.frame(fpm.route_del_message(key))
        now += b"".join(fpm.frame(fpm.nexthop_del_message(nhid)) for nhid in reversed(old))
        self.known[key] = new
        return frames, now

    def _tell(self, *words):
        """Send the words of one line, which are texts and octets."""
        words = (w if isinstance(w, str) else w.hex() or "-" for w in words)
        self.client.write(" ".join(words) + "\n")
        self.client.flush()
        return int(self.client.readline())
