# SPDX-License-Identifier: BSD-3-Clause
"""The oracle knows the next hop that each packet must take. It derives it from the changes to the
network, never from output of the dataplane.

A cell is a destination with the path (egress link and labels) that it should have now. After a change that
moves it, the old and the new path are both right until zebra has selected the new path and LAG_S
have passed. From then on only the new path is right.
"""

import bisect
import json
import re
import threading
import time

LAG_S = 1.0  # from zebra's message to the last forwarder, on two cores that do all work
ON_THE_WAY_S = 0.5  # the longest time of a packet in a router without CPU time
FALLBACK = {4: "0.0.0.0/0", 6: "::/0"}
GONE = ""  # the path of a packet that the router must drop
VX = "vx"  # the word of a path into the VXLAN, and the entry of packets out of it


def path_name(link, labels=()):
    """Return the name of a path: the link, then the labels that a packet has there, or the words of
    its outer headers."""
    return " ".join([link, *map(str, labels)])


class Cell:
    """One destination."""

    def __init__(self, kind, prefix, host, source="lan"):
        self.kind, self.prefix, self.host, self.source = kind, prefix, host, source
        self.family = 6 if ":" in host else 4
        self.index, self.head = 0, b""
        self.entry = None  # how its packets come in: behind this label, to this SID, or by VX; None: plain
        self.hops = None  # of an announced route: (link, labels or words), () for none
        self.since, self.paths = [], []  # the times from which on the paths were right
        self.changed_at = self.agreed_at = 0.0

    def __repr__(self):
        return f"{self.kind} {self.host}"


class Oracle:
    """The state of the network, and the right paths of each cell."""

    def __init__(self, cells):
        self.cells = cells
        for index, cell in enumerate(cells):
            cell.index = index
        self.macs = {}  # egress: the MACs (octets) that its frames may go to
        self.rmacs = {}  # VTEP: the router MACs (octets) that frames in the VXLAN may go to
        self.lock = threading.Lock()
        self.up = {"wan": True, "core0": True, "core1": True, VX: True}
        self.session, self.ospf = True, True
        self.withdrawn = set()
        self.late = []
        now = time.monotonic()
        for cell in cells:
            cell.since, cell.paths = [now], [self.expected(cell)]

    def expected(self, cell):
        """Return the paths that are right when nothing changes."""
        spare = [link for link in ("core0", "core1") if self.up[link]]
        if cell.entry == VX and not self.up[VX]:
            return frozenset({GONE})
        if cell.kind == "lan":
            return frozenset({"lan"})
        if cell.kind == "sid" and cell.hops:
            # An end point looks its neighbor up, as Linux does: without the link, by the default route.
            ((link, words),) = cell.hops
            links = [link] if self.up[link] else spare[:1]
            return frozenset(path_name(link, words) for link in links) or frozenset({GONE})
        if cell.kind in ("lsp", "sid") or cell.hops:
            live = (
                path_name(link, stack)
                for link, stack in cell.hops
                if self.up[link] and (VX not in stack or self.up[VX])
            )
            return frozenset(live) or frozenset({GONE})
        if cell.kind == "core" and self.ospf and spare:
            return frozenset(spare)
        if cell.kind == "isp" and self.session and self.up["wan"]:
            if cell.prefix not in self.withdrawn:
                return frozenset({"wan"})
        return frozenset(spare[:1])

    def change(self, withdraw=(), announce=(), up=None, hops=None, **state):
        """Record the state after a change. The caller makes the change afterwards."""
        with self.lock:
            self.withdrawn.update(withdraw)
            self.withdrawn.difference_update(announce)
            self.up.update(up or {})
            for cell, some in (hops or {}).items():
                cell.hops = some
            for name, value in state.items():
                setattr(self, name, value)
            now = time.monotonic()
            fallback = frozenset([link for link in ("core0", "core1") if self.up[link]][:1])
            for cell in self.cells:
                want = may = self.expected(cell)
                if cell.kind in ("isp", "pushed") and cell.paths[-1] & {"core0", "core1"}:
                    may = want | fallback  # the cell uses it now, or is moving away from it
                # A link that is to go down already counts as down here. Until it is down, it takes
                # packets of an announced route.
                if cell in (hops or {}):
                    may = may | {path_name(link, stack) for link, stack in cell.hops}
                if not may <= cell.paths[-1]:
                    self._note(cell, now, cell.paths[-1] | may)
                if want != cell.paths[-1]:
                    cell.changed_at = now

    def flux(self, kinds=("isp", "core")):
        """Record that cells of these kinds may move to their fallback and back."""
        with self.lock:
            now = time.monotonic()
            spare = {link for link in ("core0", "core1") if self.up[link]}
            for cell in self.cells:
                if cell.kind in kinds:
                    if not spare <= cell.paths[-1]:
                        self._note(cell, now, cell.paths[-1] | spare)
                    cell.changed_at = now

    @staticmethod
    def _note(cell, now, paths):
        # A reader sees the time only after the paths.
        cell.paths.append(frozenset(paths))
        cell.since.append(now)

    def allowed(self, cell, begin, end):
        """Return all paths that were right at some moment from `begin` to `end`."""
        at = bisect.bisect_right(cell.since, begin) - 1
        paths = cell.paths[max(at, 0)]
        for later in range(at + 1, len(cell.since)):
            if cell.since[later] > end:
                break
            paths = paths | cell.paths[later]
        return paths

    def may_vanish(self, cell, when):
        """Return True if the router may drop a packet that was sent at `when`."""
        return GONE in self.allowed(cell, when, when + ON_THE_WAY_S)

    def unsettled(self):
        """Return the cells that may still take a path other than the expected paths."""
        return [c for c in self.cells if c.paths[-1] != self.expected(c)]

    def no_session(self):
        """Record that bgpd has no session with isp. bgpd needs seconds to withdraw a million routes
        of a lost session, so agree() does not accept a path by wan that was read before now."""
        with self.lock:
            now = time.monotonic()
            for cell in self.unsettled():
                if "wan" in self.expected(cell):
                    cell.changed_at = now

    def agree(self, view, seen_at):
        """Take zebra's choices, {prefix: links}, which were read at `seen_at`."""
        with self.lock:
            for cell in self.cells:
                want = self.expected(cell)
                known = view.get(cell.prefix) or view.get(FALLBACK[cell.family])
                if cell.paths[-1] == want:
                    continue
                if cell.kind in ("lan", "lsp", "sid") or cell.hops:  # zebra does not choose these
                    known = want
                if known != want or cell.changed_at > seen_at:
                    cell.agreed_at = 0.0
                elif cell.agreed_at <= cell.changed_at:
                    cell.agreed_at = seen_at
                elif time.monotonic() - cell.agreed_at > LAG_S:
                    self._note(cell, time.monotonic(), want)


class Queues:
    """Tells whether zebra has sent all its choices. zebra counts a route as selected, or as
    removed, while the change is still in one of its queues."""

    def __init__(self, frr):
        self.frr, self.before = frr, None
        self.why = ""  # the reason why the queues were not empty

    def are_empty(self):
        """Ask zebra. Return True if no entry waits and none has moved since the last call.

        zebra 8.4 counts routes that the kernel has refused (IPv6 over a link that is down) as
        queued for FPM. They never get there, and the count never falls again. So of that queue
        only its movement is compared.
        """
        text = self.frr.vtysh(
            "show zebra dplane", "show zebra dplane providers", "show fpm counters"
        )
        main = re.findall(r"Route update queue depth: +(\d+)", text)
        kernel = re.findall(r"Kernel .*?in: \d+, q: (\d+)", text)
        fpm = re.findall(r"Data plane items enqueued: +(\d+)", text)
        moved = re.findall(r"in: \d+, q: \d+, q_max: \d+, out: \d+", text)
        still, self.before = moved == self.before, moved
        waiting = main + kernel + fpm
        self.why = f"zebra's queues: {', '.join(waiting)}{'' if still else ', moving'}"
        return still and len(waiting) == 3 and not any(map(int, waiting))


def zebra_view(frr, cells, links):
    """Return {prefix: the links that zebra has selected} for all prefixes of `cells` and the
    fallback.

    links: {interface of r1: egress}. Prefixes without a route are missing.
    """
    wanted = sorted({c.prefix for c in cells if c.kind != "lan"} | set(FALLBACK.values()))
    lines = [
        f"show {'ipv6' if ':' in prefix else 'ip'} route {prefix} json" for prefix in wanted
    ]
    text, decoder, at, view = frr.vtysh(*lines), json.JSONDecoder(), 0, {}
    while (at := text.find("{", at)) >= 0:
        table, at = decoder.raw_decode(text, at)
        for prefix, routes in table.items():
            hops = [
                hop
                for route in routes
                if route.get("selected") and route.get("installed")
                for hop in route["nexthops"]
                if hop.get("fib")
            ]
            names = {links.get(hop.get("interfaceName")) for hop in hops}
            view[prefix] = frozenset(names - {None})
    return view
