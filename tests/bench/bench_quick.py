#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the ratios to the peers in less than two minutes, and print them beside the ratios that
were accepted last (accepted.json). A fall is printed, and fails nothing, because machines are
noisy.

    bench_quick.py BUILD_DIR        (ACCEPT=1 accepts the measured ratios)
"""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_fib  # noqa: E402
import bench_forward  # noqa: E402
import command  # noqa: E402
import guard  # noqa: E402
from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402

ACCEPTED = HERE / "accepted.json"
# The variants of our lookups that may be the best, by the instructions of lookups.
OURS = {"avx512": "poptrie-avx*", "avx2": "poptrie-avx2", "sse4": "poptrie-scalar", "scalar": "poptrie-scalar"}
# The options with which bench_fib, and below bench_forward, run here unless the environment has others.
FIB = {
    "QUICK": "1",
    "L3": "idle",
    "KEYS": "2097152",
    "KEYS6": "1048576",
    "REPS": "21",
}
FORWARD = {
    "REPS": "9",
    "TABLES": "few,full",
    "SECONDS": "0.2",
    "PEERS": "ours,l3fwd",
    "IDLE": "0",
    "CYCLES": "0",
}


def implementations():
    """Return the implementations that bench_fib measures here."""
    ours = OURS[command.lookups(command.limit())]
    return f"{ours},rte_fib-2B-*,rte_fib-4B-*,rte_fib6-4B-*"


def defaults(words):
    """Set the options that the environment does not set."""
    for name, value in words.items():
        os.environ.setdefault(name, value)


def of_cpu():
    """Return the class of this CPU: the instructions of our code, and the model. accepted.json has
    ratios for each class, and ratios of two classes are never compared: Zen 1 splits AVX2
    instructions into halves, later models do not."""
    return f"{command.used()}, {command.model()}"


def measure(bench):
    """Measure lookups, then forwarding, then compare both with the accepted ratios."""
    program = str(bench.build / "tests/bench/bench_fib")
    before = dict(os.environ)
    defaults({**FIB, "IMPL": implementations()})
    args, tables = bench_fib.arguments()
    lines, code = bench_fib.run(program, [*args, "--", *tables], True)
    bench.lines += lines
    if code != 0:
        bench.skip("bench-fib", f"exit code {code}")
    os.environ.clear()
    os.environ.update(before)
    bench_forward.measure_tables(bench)
    ratios = guard.fib_ratios(bench.lines) | guard.forward_ratios(bench.lines)
    classes = json.loads(ACCEPTED.read_text()) if ACCEPTED.exists() else {}
    known = classes.get(of_cpu(), {"ratios": {}})
    for row in guard.compare(ratios, known["ratios"]):
        bench.emit({"bench": "guard", **row, "class": of_cpu()})
    if rig.option("ACCEPT", 0):
        machine = bench.lines[0]
        kept = {"version": machine["version"]}
        kept["ratios"] = {name: one["ratio"] for name, one in ratios.items()}
        classes[of_cpu()] = kept
        ACCEPTED.write_text(json.dumps(classes, indent=2, sort_keys=True) + "\n")
        bench.say(f"accepted: {ACCEPTED.name}")


def cell(value, form="{:.2f}"):
    """Return a number as text, or a mark that there is none."""
    return "-" if value is None else form.format(value)


def report(lines, out):
    """Print the ratios. The fallen ratios come last, where the reader sees them."""
    rows = [("ratio to the peer", "now", "min", "max", "accepted", "change", "peer")]
    all_ = [r for r in lines if r["bench"] == "guard"]
    for r in all_:
        cells = [cell(r.get(k)) for k in ("ratio", "min", "max", "accepted")]
        change = cell(r.get("change"), "{:+.0%}")
        rows.append((r["name"], *cells, change, r.get("peer", "-")))
    print("", file=out)
    print_columns(rows, out)
    if not all_:
        return
    print(f"\nCPU: {all_[0]['class']}", file=out)
    if not any(r["accepted"] for r in all_):
        print("no ratios are accepted for this CPU; ACCEPT=1 accepts the ratios above", file=out)
        return
    fell = [r for r in all_ if r["fell"]]
    if not fell:
        print(f"\nno ratio fell by more than {guard.TOLERANCE:.0%}", file=out)
        return
    bar = "!" * 78
    print(
        f"\n{bar}\n!! FELL BY MORE THAN {guard.TOLERANCE:.0%} AGAINST WHAT WAS ACCEPTED:",
        file=out,
    )
    for r in fell:
        print(
            f"!!   {r['name']}: {cell(r['ratio'])}, accepted {cell(r['accepted'])}",
            file=out,
        )
    print("!! Run again before you believe it; ACCEPT=1 if it is meant to be.", file=out)
    print(bar, file=out)


if __name__ == "__main__":
    defaults(FORWARD)
    sys.exit(rig.run("bench-quick", measure, report))
