#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare the rates of two builds of this tree on this machine: of this Debian, and of Debian 13 with
its DPDK and its compiler. The program of bench-tags, which needs no network, runs from both builds in
turns. JSON lines on stdout, a table on stderr.

    bench_dpdk.py BUILD_DIR ROOT        (ROOT: the root of `make test-trixie`; options: tests/bench/README.md)
"""

import shutil
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_tags  # noqa: E402
from fib_report import print_columns  # noqa: E402
from forward import rig, sources  # noqa: E402
from forward.measure import spread  # noqa: E402
from forward.report import verdict  # noqa: E402

PROGRAM = "build/release/tests/bench/bench_tags"
IN_ROOT = HERE.parent / "lib/in_root.sh"
MACHINE = "ports alone"  # the row without our code
LEAST, AIM = 1.0, 1.05  # the rate with the newer DPDK / with the older one
ENDS = ("", "_min", "_max", "_low", "_high")


def compared(here, root):
    """Return the figures of a row: cycles a packet with both builds, and the rate of the other build
    divided by that of this machine's.

    here, root: cycles of each run; runs with the same index were neighbors
    """
    row = spread("here", here) | spread("root", root)
    return row | spread("rate", [a / b for a, b in zip(here, root)])


def cycles(rows):
    """Return {name: cycles} of a run of bench_tags."""
    return {name: bench_tags.figures(rows, name, base)["cycles"] for name, (base, _) in rows.items()}


def measure(bench):
    """Run both builds in turns. Each pair of runs begins with the build with which the last pair
    ended, so a steady change of the machine affects both builds alike."""
    root = Path(sys.argv[2]).resolve()
    inside = root / "var/build/bench-dpdk"  # build/bench-dpdk for programs in the root
    inside.mkdir(parents=True, exist_ok=True)
    bench.use("full")
    files = bench.routes[4], bench.frames[4]
    for file in files:
        shutil.copy(file, inside)
    builds = {
        "here": ([bench.build / "tests/bench/bench_tags"], files),
        "root": ([IN_ROOT, root, PROGRAM], [f"build/bench-dpdk/{x.name}" for x in files]),
    }
    query = ["dpkg-query", "-W", "-f", "${Version}", "libdpdk-dev"]
    versions = {
        "here": sources.package_version(),
        "root": sources.run([str(IN_ROOT), str(root), *query]),
    }
    bench.emit({"bench": "dpdk-versions"} | versions)
    pairs = rig.option("PAIRS", 3 if rig.quick() else 15)
    rounds = rig.option("REPS", 5 if rig.quick() else 11)
    got = {name: [] for name in builds}
    wrong = 0
    for pair in range(pairs):
        for name in sorted(builds, reverse=pair % 2 == 1):
            argv, (routes, frames) = builds[name]
            rows, more = bench_tags.rows_of(bench, argv, routes, frames, rounds)
            got[name].append(cycles(rows))
            wrong += more
        bench.say(f"pair {pair + 1} of {pairs}")
    for name in got["here"][0]:
        row = compared(*([run[name] for run in got[build]] for build in ("here", "root")))
        bench.emit({"bench": "dpdk", "name": name} | row | {"runs": pairs})
    bench.emit({"bench": "dpdk-right", "program": "ours", "wrong_port": wrong})


def goals(lines):
    """Return the goal in the form of forward/report.py: the median of the rows with our code."""
    rows = [r for r in lines if r["bench"] == "dpdk" and r["name"] != MACHINE]
    if not rows:
        return
    middle = statistics.median(r["rate"] for r in rows)
    said = f"{middle:.3f}x ({min(r['rate'] for r in rows):.3f}..{max(r['rate'] for r in rows):.3f})"
    what = "rate with the second DPDK / with the first, median of the rows (rows)"
    yield what, f"{LEAST}x", f"{AIM}x", said, verdict(middle, LEAST, AIM)


def report(lines, out):
    """Print the table."""
    rows = [r for r in lines if r["bench"] == "dpdk"]
    if not rows:
        return
    (of,) = (r for r in lines if r["bench"] == "dpdk-versions")
    table = [("frames", of["here"], of["root"], "rate", "min", "max", "95 %", "")]
    for r in rows:
        rates = (f"{r[f'rate{end}']:.3f}" for end in ENDS)
        table.append((r["name"], f"{r['here']:.1f}", f"{r['root']:.1f}", *rates))
    print(f"\ncycles a packet with both versions of DPDK, and the rate with the second relative to the first; "
          f"medians of {rows[0]['runs']} pairs of runs", file=out)  # fmt: skip
    print_columns(table, out)
    for what, least, aim, said, met in goals(lines):
        print(f"{what}: {said}; at least {least}, aim {aim}: {met}", file=out)


if __name__ == "__main__":
    if not (Path(sys.argv[2]) / "var" / PROGRAM).exists():
        print("bench-dpdk: skipped: there is no build of Debian 13, see above", file=sys.stderr)
        sys.exit(0)
    sys.exit(rig.run("bench-dpdk", measure, report, rig.Bench.tables))
