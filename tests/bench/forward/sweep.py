# SPDX-License-Identifier: BSD-3-Clause
"""Rates over one thing that varies: octets of a frame, frames a burst, how many /24s the
destinations are in. All programs of a point take turns."""

from forward import rig
from forward.measure import in_turns, summary

LENS = (64, 128, 256, 512, 1024, 1518)
BURSTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SETS = (8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 24)


def points(bench, table, what, values, shape, more=""):
    """One row for each value and program; shape(value): the words of Page.shape(); more: as
    in rig.peers()."""
    bench.use(table)
    with rig.Started(bench, rig.peers(bench, table, more)) as running:
        for value in values:
            for program in running:
                program.page.shape(**shape(value))
            # A point is as good as its rounds; a curve needs fewer of them than a goal does.
            seen = in_turns(running, 4, max(3, bench.reps // 2), bench.seconds / 2)
            for program, samples in seen.items():
                row = {"bench": "sweep", "what": what, "value": value, "table": table}
                row |= {"program": program.name.removesuffix(f"-{table}")}
                bench.emit(row | summary(samples))


def lengths(bench):
    """Octets of a frame with FCS, on no table to speak of, four routes and the full one."""
    for table in rig.options("TABLES", ("none", "few", "full")):
        points(bench, table, "len", rig.options("LENS", LENS), lambda n: {"length": n})


def bursts(bench):
    """At most so many frames a receive: what a program asks for itself stays a limit."""
    values = rig.options("BURSTS", BURSTS)
    points(
        bench, "full", "burst", values, lambda n: {"burst": n}, f"rx-burst: {max(values)}\n"
    )


def sets(bench):
    """Destinations, each in a /24 of its own, 2^n of them."""
    points(bench, "set", "set", rig.options("SETS", SETS), lambda n: {"window": 1 << n})


SWEEPS = {"len": lengths, "burst": bursts, "set": sets}
