# SPDX-License-Identifier: BSD-3-Clause
"""Measure prefixes of L3VPNs that have a label each: ingest, memory, and another path to the far
provider edge router. zebra sends a next hop of its own for each of them, with the labels of the
path and of the prefix."""

from bench.fpm.figures import microseconds, spread
from bench.fpm.ingest import fill, rate
from bench.fpm.rig import now
from bench.fpm.table import MARKER, MARKER_HOST
from lab import routes
from lib import fpm_speaker as fpm
from lib import netns
from lib.wait import eventually

FIRST_ID, FIRST_LABEL = 1 << 20, 1 << 16
PATHS = ((16, "wan"), (17, "alt"))  # the transport label and the core link of each path
BATCH = 64  # prefixes in a batch of zebra's messages


MAIN, VRF = 254, 1001  # tables


class Prefixes:
    """`n` prefixes of a table with a label each, behind labels of the path if `transport` is set."""

    order = "sorted"

    def __init__(self, rig, n, transport, table=MAIN):
        self.rig, self.n, self.transport, self.table = rig, n, transport, table
        self.in_vrf = table != MAIN
        self.prefixes = {4: [routes.text(p, 4) for p in sorted(routes.table4(n))], 6: []}
        self.octets = b"".join(self.batches(0, first=True))

    def batches(self, path, first=False):
        """Yield the frames that put all prefixes on a path, in batches."""
        label, name = PATHS[path]
        wire = self.rig.wires[name]
        oif, before = self.rig.ifindex(wire), [label] if self.transport else []
        for begin in range(0, self.n, BATCH):
            out = []
            for i in range(begin, min(begin + BATCH, self.n)):
                nhid, stack = self._id(i, path), [*before, FIRST_LABEL + i]
                out.append(fpm.nexthop_message(nhid, wire.peer4, oif, labels=stack))
                out.append(fpm.route_message(self.prefixes[4][i], nhid=nhid, table=self.table))
            if not first:
                old = range(begin, min(begin + BATCH, self.n))
                out += [fpm.nexthop_del_message(self._id(i, 1 - path)) for i in old]
            yield b"".join(map(fpm.frame, out))

    def _id(self, i, path):
        return FIRST_ID + path * self.n + i


def labels(rig, n, reps):
    """Run all measurements with `n` prefixes."""
    for transport in (False, True):
        table = Prefixes(rig, n, transport)
        runs, grown = [], []
        for _ in range(reps):
            marker, run, mib = fill(rig, table)
            runs.append(run)
            grown.append(mib)
        count = {"labels": 1 + transport}
        yield {**rate("labels-ingest", table, runs), **count, "unit": "prefixes/s"}
        shown = {key: round(rig.memory()[key] / 2**20, 1) for key in ("rib_bytes", "rss_bytes")}
        grown = {"unit": "MiB", **spread(grown, 1), "shown": shown}
        yield {"bench": "labels-memory", "routes": n, **count, **grown}
    yield from reroute(rig, table, marker, reps)
    yield shared(rig, n, 10 * reps)
    if netns.can_have("vrf table 100"):
        yield from in_vrf(rig, n, reps)


def in_vrf(rig, n, reps):
    """Measure the same prefixes, with two labels each, in the table of a VRF: the VRF gets a trie of its
    own. The daemon has the VRF before the measurement begins."""
    rig.ip(f"link add red type vrf table {VRF}", "link set red up")
    table = Prefixes(rig, n, True, VRF)
    runs, grown = [], []
    for _ in range(reps):
        _, run, mib = fill(rig, table)
        runs.append(run)
        grown.append(mib)
    yield {**rate("labels-ingest", table, runs), "labels": 2, "vrf": True, "unit": "prefixes/s"}
    shown = {key: round(rig.memory()[key] / 2**20, 1) for key in ("rib_bytes", "rss_bytes")}
    yield {
        "bench": "labels-memory", "routes": n, "labels": 2, "vrf": True, "unit": "MiB", **spread(grown, 1),
        "shown": shown,
    }  # fmt: skip
    rig.ip("link del red")


def reroute(rig, table, marker, reps):
    """Put all prefixes on the other path and back, a batch at a time. Measure the time from the
    last octet of each batch until a packet obeys the route behind it, and the time for all."""
    took, whole = [], []
    for turn in range(reps):
        batches = list(table.batches(1 - turn % 2))
        rig.warm(marker.frame, marker.outs)
        start = now()
        for octets in batches:
            octets += marker.move()
            rig.speaker.send_raw(octets)
            begin = now()
            took.append(marker.wait(begin) - begin)
        whole.append(now() - start)
    eventually(lambda: rig.fpm()["queue_bytes"] == 0, 10, 0.01, "all digested")
    figures = {**microseconds(took), "batch": BATCH, "all_s": spread(whole)}
    yield {"bench": "labels-reroute", "routes": table.n, **figures}


def shared(rig, n, reps):
    """Change the labels and the neighbor of a next hop that `n` prefixes share, as with a label for
    each VRF, and measure until a packet obeys."""
    rig.fresh()
    rig.connect()
    outs = [rig.wires[name] for _, name in PATHS]

    def on(path):
        wire = outs[path]
        labels_of = [PATHS[path][0], FIRST_LABEL]
        return fpm.frame(fpm.nexthop_message(FIRST_ID, wire.peer4, rig.ifindex(wire), labels=labels_of))

    octets = on(0) + fpm.table_stream(sorted(routes.table4(n)), 4, [FIRST_ID])
    rig.speaker.send_raw(octets + fpm.frame(fpm.route_message(MARKER, nhid=FIRST_ID)))
    eventually(lambda: rig.fpm()["zebra4"] == n + 1, 30, what="routes are there")
    frame, took, before = rig.probe(MARKER_HOST), [], rig.fpm()["prefix_writes"]
    for turn in range(reps):
        path, change = 1 - turn % 2, on(1 - turn % 2)
        rig.warm(frame, outs)
        begin = now()
        rig.speaker.send_raw(change)
        took.append(rig.wait_for(frame, outs[path], begin) - begin)
    writes = rig.fpm()["prefix_writes"] - before
    return {"bench": "labels-shared", "routes": n, "prefix_writes": writes, **microseconds(took)}
