#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the delay of frames at 10 to 95 % of the maximum rate, with the full table, through our
forwarder and, at the same rate, through testpmd io, which looks up nothing. A delay in both is
that of the machine. JSON lines on stdout, a table on stderr.

    bench_latency.py BUILD_DIR        (options: tests/bench/README.md)
"""

import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402
from forward.measure import TAIL, capacity, gaps, rated, tail  # noqa: E402
from forward.page import TIME  # noqa: E402
from forward.programs import Ours, Testpmd  # noqa: E402

LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95)
LOADS_QUICK = (10, 50, 90)
DEPTH = 1 << 20  # no frame is missed, so the delay of each frame counts
GAP_US = 5  # a busy round takes 2 us at the most


def run(program, mpps, seconds):
    """Return latency and gaps between polls of one run."""
    lost, seen = rated(program, mpps, seconds, check=TIME, depth=DEPTH)
    return {
        "frames": lost["offered"],
        **tail(seen["latency"], "late"),
        **tail(seen["polls"], "poll"),
        **gaps(seen["polls"], GAP_US),
        "gap_share": round(gaps(seen["polls"], GAP_US)["gaps_ms"] / 1e3 / seconds, 5),
    }


def medians(runs):
    """Return the medians of the figures, and the spread of the latencies."""
    row = {key: statistics.median(r[key] for r in runs) for key in runs[0]}
    for key, _ in TAIL:
        values = [r[f"late_{key}_us"] for r in runs]
        row[f"late_{key}_us_min"], row[f"late_{key}_us_max"] = min(values), max(values)
    return row | {"runs": len(runs)}


def measure(bench):
    """Measure all loads. The dataplane and the reference take turns."""
    bench.use("full")
    seconds = rig.option("SECONDS", 1.0 if rig.quick() else 4.0)
    reps = rig.option("REPS", 3 if rig.quick() else 5)
    ours, io = Ours("ours-full", bench), Testpmd("testpmd-io", bench, "io")
    with rig.Started(bench, [ours, io]) as running:
        for load in rig.options("LOADS", LOADS_QUICK if rig.quick() else LOADS):
            mpps = capacity(ours, check=TIME) * load / 100
            seen = {p: [] for p in running}
            for _ in range(reps):
                for program in running:
                    seen[program].append(run(program, mpps, seconds))
            for program, runs in seen.items():
                name = program.name.removesuffix("-full")
                row = {"bench": "latency", "program": name, "load": load}
                bench.emit(row | {"mpps": round(mpps, 2), **medians(runs)})


def report(lines, out):
    """Print the table."""
    rows = [("load", "Mpps", *(f"{k} us" for k, _ in TAIL), "(min", "max)",
             "gaps/s", "their share", "longest us")]  # fmt: skip
    latency = [r for r in lines if r["bench"] == "latency"]
    for r in latency:
        late = [f"{r[f'late_{k}_us']:.1f}" for k, _ in TAIL]
        spread = [f"{r[f'late_max_us_{k}']:.0f}" for k in ("min", "max")]
        seconds = r["frames"] / r["mpps"] / 1e6
        rows.append((f"{r['load']} % {r['program']}", f"{r['mpps']:.1f}", *late, *spread,
                     f"{r['gaps'] / seconds:.0f}", f"{r['gap_share']:.2%}",
                     f"{r['gap_max_us']:.0f}"))  # fmt: skip
    if latency:
        print(f"\nfrom due to left, medians of {latency[0]['runs']} runs; (min max) of the "
              f"maximum; gaps: {GAP_US} us or more without a poll", file=out)  # fmt: skip
        print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-latency", measure, report))
