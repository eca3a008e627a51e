#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the forwarding rate of one core, of the dataplane and of other programs (peers). The same
port feeds all of them with the same tables, and they take turns in one run. JSON lines on stdout;
tables and the goals on stderr.

    bench_forward.py BUILD_DIR        (options: tests/bench/README.md)
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from forward import kernel, memif, report, rig, sweep  # noqa: E402
from forward.measure import idle, in_turns, stages, summary, verify  # noqa: E402
from forward.programs import Ours  # noqa: E402

# Table -> [(traffic, the argument `family` of Page.begin())].
ALL = [("v4", 4), ("v6", 6), ("mixed", 0)]
TRAFFIC = {"none": ALL[:1], "few": ALL, "606k": ALL[:1], "full": ALL, "1m": ALL}
ROWS = ("tables", "len", "burst", "set", "cores", "memif", "kernel")


def measure_table(bench, table, running):
    """Measure all programs on one table, in turns."""
    for traffic, family in TRAFFIC[table]:
        if traffic not in rig.options("TRAFFIC", ("v4", "v6", "mixed")):
            continue
        here = [p for p in running if family in p.families]
        for program, samples in in_turns(here, family, bench.reps, bench.seconds).items():
            row = {"bench": "forward", "table": table, "traffic": traffic}
            row |= {"program": rig.kind(program, table)}
            row |= {"len": bench.frame_len} | summary(samples)
            row["samples"] = [round(s["mpps"], 2) for s in samples]
            if program.looks_up:
                row |= verify(program, family)
            if isinstance(program, Ours) and rig.option("CYCLES", 1):
                row |= stages(program, family)
            bench.emit(row)


def measure_tables(bench):
    """Measure the dataplane and all peers on each table."""
    for table in rig.options("TABLES", ("few", "full") if rig.quick() else TRAFFIC):
        bench.use(table)
        with rig.Started(bench, rig.peers(bench, table)) as running:
            with rig.l3(bench):
                measure_table(bench, table, running)
            if table == "few" and rig.option("IDLE", 1):
                bench.emit(idle(running[0]))


def measure(bench):
    """Measure everything that ROWS names."""
    rows = rig.options("ROWS", ("tables",) if rig.quick() else ROWS)
    if "tables" in rows:
        measure_tables(bench)
    for name, what in sweep.SWEEPS.items():
        if name in rows:
            what(bench)
    if "memif" in rows:
        memif.measure(bench)
    if "kernel" in rows:
        kernel.measure(bench)


if __name__ == "__main__":
    sys.exit(rig.run("bench-forward", measure, report.tables))
