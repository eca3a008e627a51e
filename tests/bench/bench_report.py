#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One report of what the benchmarks said: FOLDER/NAME.jsonl, as `make bench` leaves them,
becomes FOLDER/report.md with the tables of each and plots as PNG beside it. Files may have
the lines of several runs, one behind the other: of what was measured twice the last counts.

    bench_report.py FOLDER     (ACCEPT=1, or ACCEPT=tags,loss: into the manual, too: measured.py)
"""

import io
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_latency  # noqa: E402
import bench_loss  # noqa: E402
import bench_quick  # noqa: E402
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
                "Rates; the bar is the median, the whisker the spread",
                plots.rates,
            ),
            ("stages", "Where a packet's cycles go, by `show cycles`", plots.stages),
            ("len", "By octets of a frame", plots.lengths),
            ("set", "By destinations, each in a /24 of its own", plots.sets),
            ("burst", "By frames handed out at once", plots.bursts),
            ("cores", "By forwarding cores, each with a queue of its own", plots.cores),
        ],
    ),
    "bench-loss": (
        "Loss",
        bench_loss.report,
        [("loss", "Missed of offered, by load", plots.loss)],
    ),
    "bench-latency": (
        "Latency",
        bench_latency.report,
        [("latency", "From due to left, by load; dashed: testpmd io", plots.latency)],
    ),
    "bench-sync": (
        "Keeping forwarders and the writer of the FIB apart",
        bench_sync.report,
        [("sync", "Rate, and time until a new FIB is all that is seen", plots.sync)],
    ),
    "bench-watch": ("Trace and capture, while nobody looks", bench_watch.report, []),
    "bench-tags": ("VLAN tags and VRFs", bench_tags.report, []),
    "bench-fpm": ("From zebra to the FIB", fpm_report.tables, []),
    "bench-fib": (
        "Lookups",
        fib_report.tables,
        [("fib", "Lookups a second, in a process of their own", fib_report.plot)],
    ),
}

NOISE = """\
Rates are medians, with the least and the most beside them: the spread is that of the machine,
whose cores and L3 are shared with strangers where it is a virtual one. Compare what was
measured in one run, in turns; not runs, and not machines. A goal is looked at, never enforced.
"""


# What tells rows of a benchmark apart, beside what was measured.
IDENTITY = ("bench", "table", "traffic", "program", "kind", "len", "what", "value", "load",
            "doing", "depth", "name")  # fmt: skip
# Of other benches a line stands for itself.
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
# Who judges its own figures: name -> goals(lines), rows as in fib_report.HEAD.
JUDGES = {
    "bench-forward": forward_report.goals,
    "bench-loss": bench_loss.goals,
    "bench-sync": bench_sync.goals,
    "bench-tags": bench_tags.goals,
}


def read(path):
    """The JSON lines of a benchmark, the last of each row, by load."""
    lines = [json.loads(x) for x in path.read_text().splitlines() if x.startswith("{")]
    last = {}
    for n, row in enumerate(lines):
        merged = row["bench"] in MERGED
        last[tuple(row.get(k) for k in IDENTITY) if merged else n] = row
    return sorted(last.values(), key=lambda row: row.get("load", 0))


def machines(lines):
    """What it ran on, a line each; several when pieces were not of one build."""
    keys = ("cpu", "cores", "kernel", "dpdk", "version")
    return unique(
        ", ".join(f"{key} {r[key]}" for key in keys if key in r)
        for r in lines
        if r["bench"] == "machine"
    )


def section(folder, name, lines):
    """The Markdown of one benchmark."""
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
    """The Markdown of all goals, a row each. of: {name: lines}"""
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
    """What was measured into the manual: all of it (1), or the parts that are named."""
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
    out = ["# What was measured", "", NOISE, *goals(of)]
    for name, lines in of.items():
        if lines:
            out += section(folder, name, lines)
        else:
            out += [f"`make {name}` has left nothing here.", ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text("\n".join(out))
    print(folder / "report.md")
    words = os.environ.get("ACCEPT", "")
    return accept(of, words) if words else 0


if __name__ == "__main__":
    sys.exit(main())
