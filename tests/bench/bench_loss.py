#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames lost and frames that left wrong at 10 to 100 % load, on the full table: while
nothing changes, while 10,000 routes a second do, while the whole table is replayed. JSON
lines on stdout, a table on stderr.

    bench_loss.py BUILD_DIR        (options: tests/bench/README.md)
"""

import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402
from forward.measure import capacity, gaps, rated, sample, spread  # noqa: E402
from forward.page import PAGE_DEPTH  # noqa: E402
from forward.programs import Ours, Testpmd  # noqa: E402
from forward.report import verdict  # noqa: E402

LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)
LOADS_QUICK = (50, 80, 100)
DOING = ("idle", "updates", "replay")
# As a NIC has them, and so many that no absence of the machine fills them: what is lost then
# is the router's.
DEPTHS = (PAGE_DEPTH, 1 << 20)
AWAY_US = 50  # a busy round takes 10 us at the most


class Control:
    """What the control plane does meanwhile, off the core that forwards."""

    def __init__(self, bench, ours, doing):
        self.bench, self.ours, self.doing = bench, ours, doing
        self.did = {}

    def __call__(self, end):
        all_cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.bench.other_cpu})
        try:
            if self.doing == "updates":
                rate = rig.option("UPDATE_RATE", 10_000)
                n, took = self.ours.teacher.changes(rate, end)
                self.did = {"updates_s": round(n / took)}
            elif self.doing == "replay":
                self.did = {"replays": self.ours.teacher.replays(end)}
        finally:
            os.sched_setaffinity(0, all_cpus)


def point(bench, ours, most, load, doing, depth):
    """One row."""
    control = Control(bench, ours, doing)
    seconds = rig.option("SECONDS", 2.0 if rig.quick() else 60.0)
    mpps = most * load / 100
    lost, seen = rated(ours, mpps, seconds, depth=depth, during=control)
    what = {"program": "ours", "load": load, "doing": doing, "depth": depth}
    return row(what, mpps, seconds, lost, seen["polls"]) | control.did


def row(what, mpps, seconds, lost, polls):
    """One row. what: that tells it from others."""
    # The queue bridges so long an absence; a NIC's, at this rate, some 20 us.
    bridge_us = what["depth"] / mpps
    away = gaps(polls, AWAY_US)["gaps_ms"] / 1e3 / seconds
    return {
        "bench": "loss",
        "mpps": round(mpps, 2),
        **what,
        **lost,
        **gaps(polls, bridge_us),
        "bridge_us": round(bridge_us, 1),
        "away": round(away, 5),
    }


def reference(io, load, mpps, depth):
    """The same rate through a program that does nothing: what the machine loses alone."""
    seconds = rig.option("SECONDS", 2.0 if rig.quick() else 60.0)
    lost, seen = rated(io, mpps, seconds, check=0, depth=depth)
    what = {"program": "testpmd-io", "load": load, "doing": "idle", "depth": depth}
    return row(what, mpps, seconds, lost, seen["polls"])


def rate_drop(bench, ours):
    """What updates take from the rate, as fast as it goes: rounds with and without."""
    rates = {doing: [] for doing in DOING}
    for _ in range(bench.reps):
        for doing in DOING:
            control = Control(bench, ours, doing)
            got = sample(ours, 4, bench.drop_s, control)
            rates[doing].append(got["mpps"])
    for doing in DOING:
        pairs = [a / b for a, b in zip(rates[doing], rates["idle"])]
        bench.emit({
            "bench": "rate-while",
            "program": "ours",
            "doing": doing,
            "mpps": round(statistics.median(rates[doing]), 2),
            "mpps_min": round(min(rates[doing]), 2),
            "mpps_max": round(max(rates[doing]), 2),
            **spread("of_idle", pairs),
            "runs": len(pairs),
        })  # fmt: skip


def measure(bench):
    """All loads, all that the control plane does, both depths."""
    bench.use("full")
    bench.drop_s = rig.option("DROP_SECONDS", 1.0)
    ours, io = Ours("ours-full", bench), Testpmd("testpmd-io", bench, "io")
    with rig.Started(bench, rig.wanted([ours, io])) as running:
        if rig.option("DROP", 1):
            rate_drop(bench, ours)
        for depth in rig.options("DEPTHS", DEPTHS):
            for load in rig.options("LOADS", LOADS_QUICK if rig.quick() else LOADS):
                # Each time anew: the machine's own speed changes within minutes.
                most = capacity(ours)
                for doing in rig.options("DOING", DOING):
                    bench.emit(point(bench, ours, most, load, doing, depth))
                if io in running:
                    bench.emit(reference(io, load, most * load / 100, depth))


def share(part, whole):
    """Lost of offered."""
    return "0" if part == 0 else f"{part / whole * 1e6:.1f} ppm"


def goals(lines):
    """As in forward/report.py."""
    for r in lines:
        if r["bench"] == "loss" and r["program"] == "ours" and r["depth"] > PAGE_DEPTH:
            if (r["load"], r["doing"]) == (80, "replay"):
                lost = r["missed"] + r["lost_inside"]
                said = f"{lost} of {r['offered']}"
                met = verdict(lost, 0, 0, more=False)
                yield "loss from replays at 80 % load", "0", "0", said, met
        if r["bench"] == "rate-while" and r["doing"] == "updates":
            keys = ("of_idle", "of_idle_high", "of_idle_low")
            drop, low, high = (100 - 100 * r[k] for k in keys)
            said, met = f"{drop:.1f} % ({low:.1f}..{high:.1f})", verdict(
                drop, 3, 1, more=False
            )
            yield "rate lost to 10 k updates/s", "3 %", "1 %", said, met


def report(lines, out):
    """For people."""
    while_ = [r for r in lines if r["bench"] == "rate-while"]
    rows = [("rate", "Mpps", "min", "max", "of idle", "min", "max", "low", "high")]
    keys = [f"of_idle{end}" for end in ("", "_min", "_max", "_low", "_high")]
    for r in while_:
        cells = [f"{r[k]:.1f}" for k in ("mpps", "mpps_min", "mpps_max")]
        cells += [f"{r[k]:.3f}" for k in keys]
        rows.append((f"while {r['doing']}", *cells))
    if while_:
        print(
            f"\nas fast as it goes, full table, v4, medians of {while_[0]['runs']}; (low, high): "
            "95 % bounds of the median",
            file=out,
        )
        print_columns(rows, out)
    loss = [r for r in lines if r["bench"] == "loss"]
    for depth in dict.fromkeys(r["depth"] for r in loss):
        rows = [("load, control plane", "Mpps", "offered", "inside", "wrong", "missed",
                 "of offered", "gaps longer", "than us", "longest us", "away", "of its core", "stolen")]  # fmt: skip
        # Ours before what it is held against, also if they were measured in pieces.
        for r in sorted(loss, key=lambda r: (r["load"], r["program"] != "ours")):
            if r["depth"] != depth:
                continue
            what = (
                f"{r['load']} % {r['doing']}"
                if r["program"] == "ours"
                else "  testpmd io, same rate"
            )
            rows.append((what, f"{r['mpps']:.1f}", r["offered"], r["lost_inside"],
                         r["wrong_port"] + r["wrong_header"] if r["program"] == "ours" else "-",
                         r["missed"], share(r["missed"], r["offered"]), r["gaps"],
                         f"{r['bridge_us']:.0f}", f"{r['gap_max_us']:.0f}",
                         f"{r['away']:.2%}", f"{r['cpu']:.1%}", f"{r['stolen']:.1%}"))  # fmt: skip
        print(
            f"\nloss with {depth} descriptors, 100 % is the rate measured before each",
            file=out,
        )
        print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-loss", measure, report))
