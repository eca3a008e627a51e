#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count frames that are lost or leave wrong at 10 to 100 % load, with the full table: while no
route changes, while 10,000 routes a second change, and while the whole table is replayed. JSON
lines on stdout, a table on stderr.

    bench_loss.py BUILD_DIR        (options: tests/bench/README.md)
"""

import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402
from forward.measure import capacity, gaps, rated, sample, spread  # noqa: E402
from forward.page import LOOK, PAGE_DEPTH  # noqa: E402
from forward.programs import Ours, Testpmd  # noqa: E402
from forward.report import verdict  # noqa: E402

LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)
LOADS_QUICK = (50, 80, 100)
DOING = ("idle", "updates", "replay")
# Numbers of descriptors: that of a NIC, and one that no pause of the machine fills. A frame that is
# lost with the second number is lost by the router.
DEPTHS = (PAGE_DEPTH, 1 << 20)
PIECE_S = 5
AWAY_US = 50  # a busy round takes at most 10 us


class Control:
    """The work of the control plane during a measurement, on another core than the forwarder's."""

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


def piece(bench, program, mpps, doing, seconds, depth):
    """Measure some seconds of a row. Frames of testpmd io are not checked, because testpmd io changes
    no header."""
    control = Control(bench, program, doing)
    check = LOOK if isinstance(program, Ours) else 0
    lost, seen = rated(program, mpps, seconds, check=check, depth=depth, during=control)
    return {"lost": lost, "polls": seen["polls"], "did": control.did}


def row(what, mpps, pieces, seconds):
    """Add up the pieces of one row. what: the keys that identify the row."""
    polls = Counter()
    for p in pieces:
        polls.update(dict(p["polls"]))
    polls = sorted(polls.items())
    lost = {k: sum(p["lost"][k] for p in pieces) for k in pieces[0]["lost"]}
    for share_ in ("cpu", "stolen"):
        lost[share_] = round(lost[share_] / len(pieces), 4)
    did = {k: [p["did"][k] for p in pieces] for k in pieces[0]["did"]}
    # The queue holds the frames of a pause of this length. A NIC's queue holds some 20 us.
    bridge_us = what["depth"] / mpps
    away = gaps(polls, AWAY_US)["gaps_ms"] / 1e3 / seconds
    return {
        "bench": "loss",
        "mpps": round(mpps, 2),
        **what,
        **lost,
        "pieces": len(pieces),
        "pieces_missed": sum(p["lost"]["missed"] > 0 for p in pieces),
        **gaps(polls, bridge_us),
        "bridge_us": round(bridge_us, 1),
        "away": round(away, 5),
    } | {k: sum(v) if k == "replays" else round(statistics.mean(v)) for k, v in did.items()}


def throughput(bench, ours):
    """Return the throughput of RFC 2544, 26.1, in Mpps (the highest rate without a loss), and its
    share of the maximum rate.

    The search begins with the maximum rate, and takes 5 % less after each trial with a loss. The
    queue is the deep one, so that a pause of the machine causes no loss.
    """
    seconds = rig.option("TRIAL_S", 1.0 if rig.quick() else 10.0)
    fastest = mpps = capacity(ours)
    while piece(bench, ours, mpps, "idle", seconds, max(DEPTHS))["lost"]["missed"]:
        mpps *= 0.95
    return mpps, mpps / fastest


def at_load(bench, ours, io, load, depth):
    """Measure the rows of one load: the dataplane with each work of the control plane, io without
    any.

    The pieces of all rows take turns, so that noise of the machine affects all of them. The rate
    of the machine changes within minutes, so the throughput is measured again before each load.
    """
    seconds = rig.option("SECONDS", 2.0 if rig.quick() else 60.0)
    most, of_fastest = throughput(bench, ours)
    mpps = most * load / 100
    n = max(1, round(seconds / PIECE_S))
    wanted = [(ours, doing) for doing in rig.options("DOING", DOING)]
    wanted += [(io, "idle")] if io is not None else []
    seen = {key: [] for key in wanted}
    for _ in range(n):
        for program, doing in wanted:
            seen[program, doing].append(
                piece(bench, program, mpps, doing, seconds / n, depth)
            )
    for (program, doing), pieces in seen.items():
        name = "ours" if program is ours else "testpmd-io"
        what = {"program": name, "load": load, "doing": doing, "depth": depth}
        what["throughput_of_fastest"] = round(of_fastest, 3)
        bench.emit(row(what, mpps, pieces, seconds))


def rate_drop(bench, ours):
    """Measure how much of the maximum rate updates cost, in rounds with and without them."""
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
    """Measure all loads, with each work of the control plane, at both depths."""
    bench.use("full")
    bench.drop_s = rig.option("DROP_SECONDS", 1.0)
    ours, io = Ours("ours-full", bench), Testpmd("testpmd-io", bench, "io")
    with rig.Started(bench, rig.wanted([ours, io])) as running:
        if rig.option("DROP", 1):
            rate_drop(bench, ours)
        for depth in rig.options("DEPTHS", DEPTHS):
            for load in rig.options("LOADS", LOADS_QUICK if rig.quick() else LOADS):
                at_load(bench, ours, io if io in running else None, load, depth)


def share(part, whole):
    """Format lost frames as a share of offered frames."""
    return "0" if part == 0 else f"{part / whole * 1e6:.1f} ppm"


def goals(lines):
    """Return the goals in the form of forward/report.py."""
    for r in lines:
        if r["bench"] == "loss" and r["program"] == "ours" and r["depth"] > PAGE_DEPTH:
            if (r["load"], r["doing"]) == (80, "replay"):
                lost = r["missed"] + r["lost_inside"]
                said = (
                    f"{lost} of {r['offered']}, in {r['pieces_missed']} of {r['pieces']} pieces"
                )
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
    """Print the tables."""
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
        rows = [("load, control plane", "Mpps", "100 % of fastest", "offered", "inside", "wrong", "missed",
                 "of offered", "in pieces", "gaps longer", "than us", "longest us", "away", "of its core", "stolen")]  # fmt: skip
        # Our program comes before the program that it is compared with, even if they were measured
        # in separate runs.
        for r in sorted(loss, key=lambda r: (r["load"], r["program"] != "ours")):
            if r["depth"] != depth:
                continue
            what = (
                f"{r['load']} % {r['doing']}"
                if r["program"] == "ours"
                else "  testpmd io, same rate"
            )
            rows.append((what, f"{r['mpps']:.1f}", f"{r['throughput_of_fastest']:.2f}",
                         r["offered"], r["lost_inside"],
                         r["wrong_port"] + r["wrong_header"] if r["program"] == "ours" else "-",
                         r["missed"], share(r["missed"], r["offered"]),
                         f"{r['pieces_missed']} of {r['pieces']}", r["gaps"],
                         f"{r['bridge_us']:.0f}", f"{r['gap_max_us']:.0f}",
                         f"{r['away']:.2%}", f"{r['cpu']:.1%}", f"{r['stolen']:.1%}"))  # fmt: skip
        print(
            f"\nloss with {depth} descriptors, 100 % is the RFC 2544 throughput found before each load",
            file=out,
        )
        print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-loss", measure, report))
