#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One report of what the benchmarks said: FOLDER/NAME.jsonl, as `make bench` leaves them,
becomes FOLDER/report.md with the tables of each and plots as PNG beside it.

    bench_report.py FOLDER
"""

import io
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_latency  # noqa: E402
import bench_loss  # noqa: E402
import bench_quick  # noqa: E402
import bench_sync  # noqa: E402
import bench_watch  # noqa: E402
import fib_report  # noqa: E402
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


def read(path):
    """The JSON lines of a benchmark."""
    return [json.loads(x) for x in path.read_text().splitlines() if x.startswith("{")]


def machine(lines):
    """What it ran on, a list of words."""
    found = next((r for r in lines if r["bench"] == "machine"), {})
    return [f"{key} {found[key]}" for key in ("cpu", "cores", "kernel", "dpdk", "version")
            if key in found]  # fmt: skip


def section(folder, name, lines):
    """The Markdown of one benchmark."""
    title, tables, pictures = PARTS[name]
    text = io.StringIO()
    tables(lines, text)
    out = [f"## {title}", "", f"`make {name}`; {', '.join(machine(lines))}", ""]
    for file, what, draw in pictures:
        png = folder / f"{file}.png"
        png.unlink(missing_ok=True)
        if draw(lines, png):
            out += [f"![{what}]({png.name})", "", f"{what}.", ""]
    return out + ["```text", text.getvalue().strip("\n"), "```", ""]


def main():
    """Returns the exit code."""
    folder = Path(sys.argv[1])
    out = ["# What was measured", "", NOISE]
    for name in PARTS:
        path = folder / f"{name}.jsonl"
        lines = read(path) if path.exists() else []
        if lines:
            out += section(folder, name, lines)
        else:
            out += [f"`make {name}` has left nothing here.", ""]
    (folder / "report.md").write_text("\n".join(out))
    print(folder / "report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
