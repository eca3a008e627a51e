# SPDX-License-Identifier: BSD-3-Clause
"""Measure rates while one value varies: octets of a frame, frames in a burst, number of /24s of
the destinations, number of forwarding cores. All programs of a point take turns."""

import math
import os

from forward import rig
from forward.measure import in_turns, spread, stages, summary
from forward.programs import Ours

LENS = (64, 128, 256, 512, 1024, 1518)
BURSTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SETS = (8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24)
FRAME4_BYTES = 8  # frame.h
SCALED = ("ours", "testpmd-io", "l3fwd-fib-2B")  # the fastest program of each kind


FAMILIES = {"v4": 4, "v6": 6, "mixed": 0}


def points(bench, table, what, values, shape, traffic="v4", **how):
    """Measure a row for each value and program. shape(value): the arguments of Page.shape();
    traffic: a key of FAMILIES; how: as in rig.peers()."""
    family = FAMILIES[traffic]
    name = table if traffic == "v4" else f"{table} {traffic}"
    bench.use(table)
    with rig.Started(bench, rig.peers(bench, table, **how)) as running:
        for value in values:
            for program in running:
                program.page.shape(**shape(value))
            # A curve has many points, so each needs fewer rounds than a goal.
            here = [p for p in running if family in p.families]
            seen = in_turns(here, family, max(3, bench.reps // 2), bench.seconds / 2)
            for program, samples in seen.items():
                row = {"bench": "sweep", "what": what, "value": value, "table": name}
                row |= {"program": rig.kind(program, table)} | summary(samples)
                if isinstance(program, Ours) and rig.option("CYCLES", 1):
                    row |= stages(program, family)
                bench.emit(row)


def lengths(bench):
    """Vary the octets of a frame with FCS, with a default route, four routes and the full table."""
    for table in rig.options("TABLES", ("none", "few", "full")):
        points(bench, table, "len", rig.options("LENS", LENS), lambda n: {"length": n})


def bursts(bench):
    """Vary the most frames in a receive call. The limit of the program itself stays in force. l3fwd
    waits for more packets before it sends few; for short bursts the changed l3fwd is the peer."""
    values = rig.options("BURSTS", BURSTS)
    how = {"more": f"rx-burst: {max(values)}\n", "prompt": True}
    for traffic in rig.options("TRAFFIC", ("v4",)):
        points(bench, "full", "burst", values, lambda n: {"burst": n}, traffic, **how)


def sets(bench):
    """Vary the number of destinations, 2^n of them, each in a /24 of its own. The last point has
    every /24 with a route."""
    bench.use("set")
    asked = rig.options("SETS", SETS)
    most = math.log2(os.path.getsize(bench.frames[4]) / FRAME4_BYTES)
    values = [n for n in asked if n < most]
    if len(values) < len(asked):
        values.append(round(most, 2))
    points(bench, "set", "set", values, lambda n: {"window": round(2**n)})


def doubled(n):
    """Return 1, 2, 4 and so on, and `n`."""
    return [*(1 << i for i in range(n.bit_length()) if 1 << i < n), n]


def cores(bench):
    """Vary the number of cores, each with a queue of its own. Compare the rate with that of the
    fewest."""
    counts = [
        n for n in rig.options("CORES", doubled(len(bench.cpus))) if n <= len(bench.cpus)
    ]
    bench.use("full")
    programs = {p: n for n in counts for p in rig.peers(bench, "full", n_cores=n)}
    programs = {p: n for p, n in programs.items() if rig.kind(p, "full") in SCALED}
    with rig.Started(bench, list(programs)) as running:
        seen = in_turns(running, 4, bench.reps, bench.seconds)
    first = {}
    for program, samples in seen.items():
        kind, n = rig.kind(program, "full"), programs[program]
        base = first.setdefault(kind, samples)
        ratios = [a["mpps"] / b["mpps"] for a, b in zip(samples, base)]
        row = {"bench": "sweep", "what": "cores", "value": n, "table": "full"}
        row |= {"program": kind, **summary(samples), **spread("scaling", ratios)}
        bench.emit(row)


SWEEPS = {"len": lengths, "burst": bursts, "set": sets, "cores": cores}
