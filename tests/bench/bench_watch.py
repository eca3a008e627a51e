#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the cost of trace, capture, sFlow, filters and uRPF while they are off, and of sFlow while
it is on. Four daemons run in turns: one without all of them, one with sFlow, and two whose
forwarders have no code for any of them: the difference of these two is the error of the measurement.
JSON lines on stdout, a table on stderr.

    bench_watch.py BUILD_DIR        (options: tests/bench/README.md)
"""

import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402
from forward.measure import bounds, sample  # noqa: E402
from forward.programs import Ours  # noqa: E402

# The rate of samples is far above the limit of 4,000 a second; no collector takes the datagrams.
SFLOW = 'sflow: {collectors: ["127.0.0.1:6343"], rate: 1000}\n'
# Name -> the build that is linked for it, more keys of its file, the kind to compare with.
KINDS = {
    "blind": ("blind", "", "blind"),
    "blind again": ("blind", "", "blind"),
    "asking": ("asking", "", "blind"),
    "sflow 1:1000": ("asking", SFLOW, "asking"),
}


def measure_table(bench, table, reps):
    """Measure all kinds in turns on one table."""
    bench.use(table)
    programs = {
        kind: Ours(f"ours-{n}", bench, "poll", more=more, build=f"watch-{build}")
        for n, (kind, (build, more, _)) in enumerate(KINDS.items())
    }
    seen = {kind: [] for kind in KINDS}
    with rig.Started(bench, list(programs.values())):
        for turn in range(reps):
            at = turn % len(KINDS)
            order = list(KINDS)[at:] + list(KINDS)[:at]
            for kind in order:
                one = sample(programs[kind], 4, rig.option("SECONDS", 0.2))
                seen[kind].append(one["cycles"])
    for kind, cycles in seen.items():
        of = KINDS[kind][2]
        ratio, low, high = bounds([a / b for a, b in zip(cycles, seen[of])])
        row = {"bench": "watch", "table": table, "kind": kind, "of": of, "runs": reps}
        row |= {"cycles": round(statistics.median(cycles), 2)}
        row |= {"cycles_min": round(min(cycles), 2), "cycles_max": round(max(cycles), 2)}
        row |= {"ratio": round(ratio, 4), "low": round(low, 4), "high": round(high, 4)}
        bench.emit(row)


def measure(bench):
    """Measure both tables."""
    for table in rig.options("TABLES", ("few", "full")):
        measure_table(bench, table, rig.option("REPS", 15 if rig.quick() else 51))


def report(lines, out):
    """Print the tables."""
    rows = [
        ("table", "forwarders", "cycles a packet", "min", "max", "ratio", "to", "low", "high")
    ]
    for r in lines:
        if r["bench"] == "watch":
            cells = [f"{r[k]:.2f}" for k in ("cycles", "cycles_min", "cycles_max")]
            cells += [f"{r['ratio']:.4f}", r["of"]]
            cells += [f"{r[k]:.4f}" for k in ("low", "high")]
            rows.append((r["table"], r["kind"], *cells))
    if len(rows) > 1:
        print("\nv4, 64 octets, one forwarder, medians; 95 % bounds of the ratio", file=out)
        print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-watch", measure, report))
