# SPDX-License-Identifier: BSD-3-Clause
"""Announce and withdraw routes of MPLS labels and routes that push labels. Each announcement has
labels of its own, so that the labels of a packet show the announcement by which it was
forwarded."""

import itertools
import os
import sys

from chaos.announcer import Announcer
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
IN_USE = 12  # number of labels, and number of prefixes, that carry traffic
# Destinations of packets behind labels. isp and core do not forward packets to them.
INSIDE = "100.64.0.9", "2001:db8:9999::9"
FIRST_ID = 1 << 30  # first next-hop id; zebra's ids are lower
FIRST_LABEL, LAST_LABEL = 1 << 16, 1 << 20
LO = 1
VIAS = {
    "core0": ("198.51.100.2", "2001:db8:10::2"),
    "core1": ("198.51.100.6", "2001:db8:11::2"),
    "wan": (topology.ISP4, topology.ISP6),
}
TAPS = {"core0": "core0", "core1": "core1", "wan": "wan0"}


class Labelled(Announcer):
    """The labelled routes of a bed. The thread that `start` starts changes a few of these routes in each
    second, also during faults."""

    def __init__(self, bed, rng):
        super().__init__(bed, rng, FIRST_ID)
        self.fresh = itertools.cycle(range(FIRST_LABEL, LAST_LABEL))

    def start_relay(self):
        """Start the program between zebra and the dataplane. Return the path of its socket."""
        path = self.bed.path("relay.sock")
        here = os.path.dirname(os.path.abspath(__file__))
        argv = [sys.executable, os.path.join(here, "relay.py")]
        argv += [str(RELAY_PORT), str(DATAPLANE_PORT), path]
        procs.start(argv, self.bed.dir, self.bed.path("relay.log"), self.bed.ns["r1"])
        self.connect(path)
        return path

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
        self._change({key: self._some(self.rng, key, True) for key in self.keys()})
        there = lambda: len(self.bed.dp.show("labels")) == len(LABELS) + 1  # noqa: E731
        eventually(there, 20, 0.1, "the dataplane has the labels")

    def keys(self):
        return [*map(str, LABELS), *PUSH4, *PUSH6]

    def withdraw_all(self):
        """Withdraw all labelled routes: zebra knows none of them."""
        self._change({key: () for key in self.keys()})
        self._tell(str(TO_MAIN), b"", fpm.frame(fpm.label_del_message(TO_MAIN)))
        gone = lambda: not self.bed.dp.show("labels")  # noqa: E731
        eventually(gone, self.bed.patience(20), 0.1, "no label is left")

    def _some(self, rng, key, there=False):
        if not there and rng.random() < 0.2:
            return ()
        links = rng.sample(sorted(VIAS), rng.choice((1, 1, 1, 2)))
        return tuple((link, self._stack(rng.choice((0, 1, 1, 2, 3)))) for link in links)

    def _stack(self, count):
        return tuple(next(self.fresh) for _ in range(count))

    def _frames(self, key, hops):
        if "/" in key:
            six = ":" in key
            return self._route(key, [
                {"gateway": via, "oif": oif, "labels": stack} for via, oif, stack in self._hops(hops, six)
            ])  # fmt: skip
        if not hops:
            return b"", fpm.frame(fpm.label_del_message(int(key)))
        some = self._hops(hops, int(key) % 3 == 0)
        some = [{"via": via, "oif": oif, "labels": stack} for via, oif, stack in some]
        frames = fpm.frame(fpm.label_message(int(key), *some))
        return frames, frames

    def _hops(self, hops, six):
        for link, stack in hops:
            yield VIAS[link][six], self.bed.ifindexes[TAPS[link]], list(stack)
