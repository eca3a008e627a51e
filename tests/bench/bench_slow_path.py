#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the slow path through the kernel: packets whose route leaves by an interface of the
kernel that is no port. A flood of them takes the TAP, and the kernel forwards it to a host behind.
Beside it run transit, BGP and BFD with real FRR. JSON lines on stdout, a table on stderr.

    bench_slow_path.py BUILD_DIR        (options: tests/bench/README.md)
"""

import json
import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "system")]

import command  # noqa: E402
import flooded  # noqa: E402
from fib_report import print_columns  # noqa: E402
from lib.wait import eventually  # noqa: E402

OPTIONS = {"QUICK", "RATES", "REPS", "SECONDS"}
RATES = "25000,50000,75000,100000,150000,200000"  # frames a second
ALL = "policers:\n  kernel-route: {rate: 10000000, source-rate: 10000000}\n"
DELIVERED = 0.999  # of the flood; less is a rate that the slow path does not have
GOAL, AIM = 50_000, 200_000  # packets a second


def option(name, default):
    """Return the value of an option as text."""
    return os.environ.get(name) or default


def quick():
    """Return True if the short form is asked for."""
    return option("QUICK", "0") != "0"


def one(router, rate, seconds):
    """Flood at `rate` once. Return the measured values."""
    flooded.RATE, flooded.FLOOD, flooded.SECONDS = rate, int(rate * seconds), seconds
    flooded.SECONDS_MOST = 3 * seconds + 5
    eventually(router.is_up, 20, 0.2, "the sessions are up")
    frames = flooded.Maker(router.dut.daemon.ports()["ext0"]["mac"], rate).frames("kernel_route")
    came, fwd = router.received_behind(), router.cpu_seconds("fwd-0")
    said = flooded.measure(router, "kernel-route", frames)
    fwd = router.cpu_seconds("fwd-0") - fwd
    passed = said["classes"]["kernel-route"]["passed"]
    eventually(lambda: router.received_behind() - came >= passed, 2, 0.05, "the kernel is done")
    delivered = router.received_behind() - came
    return {
        "sent_pps": said["sent"] / said["seconds"], "delivered": delivered / said["sent"],
        "punt_us": 1e6 * said["punt_cpu"] * said["seconds"] / max(delivered, 1),
        "fwd_us": 1e6 * fwd / max(delivered, 1),
        "transit_lost": said["transit_lost"], "transit": said["transit"],
        "bgp_lost": said["bgp_lost"], "bfd_lost": said["bfd_lost"], "others": said["others"],
    }  # fmt: skip


def measure(reps, seconds, rates):
    """Yield a row for each rate: medians, and the least share that was delivered."""
    with flooded.Flooded("slow") as router:
        router.dut.edit_config("control-netns:", ALL + "control-netns:")
        router.dut.fpmctl("config", "reload")
        for rate in rates:
            runs = [one(router, rate, seconds) for _ in range(reps)]
            row = {k: statistics.median(r[k] for r in runs) for k in runs[0]}
            row["delivered_min"] = min(r["delivered"] for r in runs)
            yield {"bench": "slow-path", "rate": rate, "runs": reps} | {
                k: round(v, 4) for k, v in row.items()
            }


def report(lines, out):
    """Print the rows of slow-path, and the goal."""
    rows = [r for r in lines if r["bench"] == "slow-path"]
    table = [("wanted/s", "sent/s", "delivered", "least", "punt us", "fwd us", "transit lost",
              "BGP, BFD lost")]  # fmt: skip
    for r in rows:
        table.append((
            str(r["rate"]), f"{r['sent_pps']:.0f}", f"{r['delivered']:.2%}",
            f"{r['delivered_min']:.2%}", f"{r['punt_us']:.1f}", f"{r['fwd_us']:.1f}",
            f"{r['transit_lost']:.0f} of {r['transit']:.0f}",
            f"{r['bgp_lost']:.0f}, {r['bfd_lost']:.0f}",
        ))  # fmt: skip
    print_columns(table, out)
    most = max((r["sent_pps"] for r in rows if r["delivered"] >= DELIVERED), default=0)
    verdict = "met, and the aim" if most >= AIM else "met" if most >= GOAL else "not met"
    print(f"\nslow path: {most:.0f}/s, at least {GOAL}, aim {AIM}: {verdict}", file=out)


def main():
    """Measure, and print rows and tables."""
    reps = int(option("REPS", 1 if quick() else 3))
    seconds = float(option("SECONDS", 1 if quick() else 3))
    rates = [int(r) for r in option("RATES", "50000" if quick() else RATES).split(",")]
    lines = []
    for row in measure(reps, seconds, rates):
        lines.append(row)
        print(json.dumps(row), flush=True)
    print(json.dumps(command.line("bench-slow-path", OPTIONS)), flush=True)
    report(lines, sys.stderr)


if __name__ == "__main__":
    os.environ.setdefault("BUILD", Path(sys.argv[1]).name)
    main()
