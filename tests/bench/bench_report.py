#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make one report of the benchmarks' results: read FOLDER/NAME.jsonl of `make bench`, and write
FOLDER/report.md with the tables of each benchmark and plots as PNG beside it. A file may have the
lines of several runs. If a row was measured twice, the last one counts.

    bench_report.py FOLDER     (ACCEPT=1, or ACCEPT=tags,loss: also into the manual, measured.py)
"""

import io
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_bfd  # noqa: E402
import bench_latency  # noqa: E402
import bench_loss  # noqa: E402
import bench_quick  # noqa: E402
import bench_slow_path  # noqa: E402
import bench_sync  # noqa: E402
import bench_tags  # noqa: E402
import bench_watch  # noqa: E402
import fib_report  # noqa: E402
import measured  # noqa: E402
from fib_report import print_columns, unique  # noqa: E402
from bench.fpm import report as fpm_report  # noqa: E402
from forward import plots  # noqa: E402
from forward import report as forward_report  # noqa: E402

# name -> (title, prints its tables, [(file, what it shows, draws it)])
PARTS = {
    "bench-quick": ("Ratios to the peers", bench_quick.report, []),
    "bench-forward": (
        "Forwarding on one core",
        forward_report.tables,
        [
            (
                "forward",
                "Rates; bar: median, whisker: spread",
                plots.rates,
            ),
            ("stages", "Cycles a packet by stage, from `show cycles`", plots.stages),
            ("len", "Rate by octets of a frame", plots.lengths),
            ("set", "Rate by number of destinations, each in a /24 of its own", plots.sets),
            ("burst", "Rate by frames received at once", plots.bursts),
            ("cores", "Rate by forwarding cores, each with a queue of its own", plots.cores),
        ],
    ),
    "bench-loss": (
        "Loss",
        bench_loss.report,
        [("loss", "Missed of offered frames by load", plots.loss)],
    ),
    "bench-latency": (
        "Latency",
        bench_latency.report,
        [("latency", "Latency by load; dashed: testpmd io", plots.latency)],
    ),
    "bench-sync": (
        "Synchronization of forwarders with the writer of the FIB",
        bench_sync.report,
        [("sync", "Rate, and time until all readers use a new FIB", plots.sync)],
    ),
    "bench-watch": ("Trace, capture, sFlow, filters and uRPF", bench_watch.report, []),
    "bench-tags": ("VLAN tags, VRFs and labels", bench_tags.report, []),
    "bench-slow-path": ("Slow path through the kernel", bench_slow_path.report, []),
    "bench-bfd": ("BFD", bench_bfd.report, []),
    "bench-fpm": ("From zebra to the FIB", fpm_report.tables, []),
    "bench-fib": (
        "Lookups",
        fib_report.tables,
        [("fib", "Lookups a second, in one process", fib_report.plot)],
    ),
}

NOISE = """\
Rates are medians, with the minimum and the maximum beside them. The spread is that of the
machine. A virtual machine shares its cores and its L3 with other guests. Compare only results
that were measured in turns in one run. A goal is compared, never enforced.
"""


# The keys that identify a row of a benchmark.
IDENTITY = ("bench", "table", "traffic", "program", "kind", "len", "what", "value", "load",
            "doing", "depth", "name")  # fmt: skip
# Rows of these kinds replace earlier rows. Rows of other kinds are all kept.
MERGED = (
    "forward",
    "sweep",
    "idle",
    "loss",
    "rate-while",
    "latency",
    "sync",
    "watch",
    "tags",
    "guard",
)
# Benchmarks with goals: name -> goals(lines), rows as in fib_report.HEAD.
JUDGES = {
    "bench-forward": forward_report.goals,
    "bench-loss": bench_loss.goals,
    "bench-sync": bench_sync.goals,
    "bench-tags": bench_tags.goals,
}


def read(path):
    """Return the JSON lines of a benchmark, the last one of each row, ordered by load."""
    lines = [json.loads(x) for x in path.read_text().splitlines() if x.startswith("{")]
    last = {}
    for n, row in enumerate(lines):
        merged = row["bench"] in MERGED
        last[tuple(row.get(k) for k in IDENTITY) if merged else n] = row
    return sorted(last.values(), key=lambda row: row.get("load", 0))


def machines(lines):
    """Describe the machines, a line for each. There are several if the pieces are of several
    builds."""
    keys = ("cpu", "cores", "kernel", "dpdk", "version")
    return unique(
        ", ".join(f"{key} {r[key]}" for key in keys if key in r)
        for r in lines
        if r["bench"] == "machine"
    )


def section(folder, name, lines):
    """Return the Markdown of one benchmark."""
    title, tables, pictures = PARTS[name]
    text = io.StringIO()
    tables(lines, text)
    commands = unique(r["command"] for r in lines if r["bench"] == "command")
    out = [f"## {title}", "", "```text", *machines(lines), *(commands or [f"make {name}"])]
    out += ["```", ""]
    for file, what, draw in pictures:
        png = folder / f"{file}.png"
        png.unlink(missing_ok=True)
        if draw(lines, png):
            out += [f"![{what}]({png.name})", "", f"{what}.", ""]
    return out + ["```text", text.getvalue().strip("\n"), "```", ""]


def goals(of):
    """Return the Markdown of all goals, a row for each. of: {name: lines}"""
    rows = [
        fib_report.HEAD,
        *(row for name, judge in JUDGES.items() for row in judge(of[name])),
    ]
    if len(rows) == 1:
        return []
    text = io.StringIO()
    print_columns(rows, text)
    return ["## Goals", "", "```text", text.getvalue().rstrip("\n"), "```", ""]


def accept(of, words):
    """Accept results into the manual: all of them ("1"), or the named parts."""
    try:
        taken = measured.refresh(of, JUDGES, None if words == "1" else words.split(","))
    except measured.UnknownPart as error:
        print(f"bench-report: {error}", file=sys.stderr)
        return 2
    print(f"{measured.PAGE}: {', '.join(taken) or 'nothing was measured'}")
    return 0


def main():
    """Returns the exit code."""
    folder = Path(sys.argv[1])
    paths = {name: folder / f"{name}.jsonl" for name in PARTS}
    of = {name: read(path) if path.exists() else [] for name, path in paths.items()}
    out = ["# Results of the benchmarks", "", NOISE, *goals(of)]
    for name, lines in of.items():
        if lines:
            out += section(folder, name, lines)
        else:
            out += [f"`make {name}` has no results here.", ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text("\n".join(out))
    print(folder / "report.md")
    words = os.environ.get("ACCEPT", "")
    return accept(of, words) if words else 0


if __name__ == "__main__":
    sys.exit(main())
