# SPDX-License-Identifier: BSD-3-Clause
"""Announce and withdraw routes of MPLS labels and routes that push labels. Each announcement has
labels of its own, so that the labels of a packet show the announcement by which it was
forwarded."""

import contextlib
import itertools
import os
import random
import socket
import sys
import threading

from chaos.oracle import Cell
from lab import routes, topology
from lib import fpm_speaker as fpm
from lib import procs
from lib.wait import eventually

RELAY_PORT, DATAPLANE_PORT = 2620, 2621
LABELS = range(16, 16 + 256)
PUSH4 = [f"198.19.{n}.0/24" for n in range(128)]  # the other half of RFC 2544's prefix
PUSH6 = [f"2001:db8:{0x5000 + n:x}::/48" for n in range(128)]
TO_MAIN = 5000  # a label that leads to table main all the time
IN_USE = 12  # labels, and prefixes, that carry traffic
INSIDE = "100.64.0.9", "2001:db8:9999::9"  # behind the labels; isp and core send them nowhere
FIRST_ID = 1 << 30  # first next-hop id; zebra's ids are lower
FIRST_LABEL, LAST_LABEL = 1 << 16, 1 << 20
LO = 1
VIAS = {
    "core0": ("198.51.100.2", "2001:db8:10::2"),
    "core1": ("198.51.100.6", "2001:db8:11::2"),
    "wan": (topology.ISP4, topology.ISP6),
}
TAPS = {"core0": "core0", "core1": "core1", "wan": "wan0"}


class Labelled:
    """The labelled routes of a bed. The thread that `start` starts changes a few of them in each
    second, beside all faults."""

    def __init__(self, bed, rng):
        self.bed, self.rng, self.oracle = bed, rng, None
        self.own = random.Random(rng.random())  # the random numbers of the thread
        self.cells = {}  # key: cell
        self.ids = itertools.count(FIRST_ID)
        self.fresh = itertools.cycle(range(FIRST_LABEL, LAST_LABEL))
        self.known = {}  # key: next hop ids that are in force
        self.lock = threading.Lock()  # of the routes and the connection to the relay
        self.paused, self.ending = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.client = None
        self.changes = 0

    def start_relay(self):
        """Start the program between zebra and the dataplane."""
        path = self.bed.path("relay.sock")
        here = os.path.dirname(os.path.abspath(__file__))
        argv = [sys.executable, os.path.join(here, "relay.py")]
        argv += [str(RELAY_PORT), str(DATAPLANE_PORT), path]
        procs.start(argv, self.bed.dir, self.bed.path("relay.log"), self.bed.ns["r1"])
        sock = socket.socket(socket.AF_UNIX)

        def connected():
            sock.connect(path)
            return True

        eventually(connected, 10, 0.02, "the relay listens")
        self.client = sock.makefile("rw")
        sock.close()  # the file has a copy

    def make_cells(self, others):
        """Return the cells of labels and prefixes with traffic, and of `others` behind a label that
        leads to table main."""
        for n, label in enumerate(self.rng.sample(LABELS, IN_USE)):
            cell = Cell("lsp", "", INSIDE[n % 2])
            cell.entry, cell.hops = label, ()
            self.cells[str(label)] = cell
        for table, family in ((PUSH4, 4), (PUSH6, 6)):
            for text in self.rng.sample(table, IN_USE // 2):
                host = routes.host(routes.parse(text)[0], family, self.rng)
                cell = self.cells[text] = Cell("pushed", text, host)
                cell.hops = ()
        inside = [Cell(c.kind, c.prefix, c.host) for c in others]
        for cell in inside:
            cell.entry = TO_MAIN
        return [*self.cells.values(), *inside]

    def announce_all(self):
        """Announce the first routes. Wait until the dataplane has them."""
        self.oracle = self.bed.oracle
        to_main = fpm.frame(fpm.label_message(TO_MAIN, {"oif": LO}))
        self._tell(str(TO_MAIN), to_main, to_main)
        keys = [*map(str, LABELS), *PUSH4, *PUSH6]
        self._change({key: self._some(self.rng, True) for key in keys})
        there = lambda: len(self.bed.dp.show("labels")) == len(LABELS) + 1  # noqa: E731
        eventually(there, 20, 0.1, "the dataplane has the labels")

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

    def withdraw_all(self):
        """Withdraw all labelled routes: zebra knows none of them."""
        self._change({key: () for key in [*map(str, LABELS), *PUSH4, *PUSH6]})
        self._tell(str(TO_MAIN), b"", fpm.frame(fpm.label_del_message(TO_MAIN)))
        gone = lambda: not self.bed.dp.show("labels")  # noqa: E731
        eventually(gone, self.bed.patience(20), 0.1, "no label is left")

    def burst(self, count, rng):
        """Change `count` routes at once."""
        keys = rng.sample([*map(str, LABELS), *PUSH4, *PUSH6], count)
        self._change({key: self._some(rng) for key in keys})

    def _run(self):
        while not self.ending.wait(0.2):
            if not self.paused.is_set():
                self._change({self.own.choice(list(self.cells)): self._some(self.own)})

    def _some(self, rng, there=False):
        """Return the next hops of an announcement, (link, labels), or () for none."""
        if not there and rng.random() < 0.2:
            return ()
        links = rng.sample(sorted(VIAS), rng.choice((1, 1, 1, 2)))
        return tuple((link, self._stack(rng.choice((0, 1, 1, 2, 3)))) for link in links)

    def _stack(self, count):
        return tuple(next(self.fresh) for _ in range(count))

    def _change(self, wanted):
        """Announce {key: hops}; no hops: withdraw."""
        with self.lock:
            cells = {self.cells[key]: hops for key, hops in wanted.items() if key in self.cells}
            self.oracle.change(hops=cells)
            said = []
            for key, hops in wanted.items():
                said += [key, *(self._prefix if "/" in key else self._label)(key, hops)]
            self._tell(*said)
            self.changes += len(wanted)

    def _hops(self, hops, family):
        for link, stack in hops:
            via = VIAS[link][family == 6]
            yield via, self.bed.ifindexes[TAPS[link]], list(stack)

    def _label(self, key, hops):
        if not hops:
            return b"", fpm.frame(fpm.label_del_message(int(key)))
        some = self._hops(hops, 6 if int(key) % 3 == 0 else 4)
        some = [{"via": via, "oif": oif, "labels": stack} for via, oif, stack in some]
        frames = fpm.frame(fpm.label_message(int(key), *some))
        return frames, frames

    def _prefix(self, key, hops):
        old, new, frames = self.known.get(key, ()), [], b""
        for via, oif, stack in self._hops(hops, 6 if ":" in key else 4):
            new.append(next(self.ids))
            frames += fpm.frame(fpm.nexthop_message(new[-1], via, oif, labels=stack))
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
