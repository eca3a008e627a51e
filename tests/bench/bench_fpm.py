#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the time from zebra's message to the forwarding of its route: JSON lines on stdout, a
readable table on stderr; options from the environment (tests/bench/README.md). Needs root."""

import json
import os
import platform
import signal
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bench import command
from bench.fpm import change, churn, frr, group, ingest, labels, overlays, report, sids
from bench.fpm.rig import Rig
from bench.fpm.table import Table
from lib.dut import sweep_leftovers, why_not

ROWS = ("ingest", "replay", "change", "group", "labels", "sids", "tunnels", "vnis", "churn", "bgp")
ZEBRA_RATE = 500_000  # routes a second: somewhat more than zebra itself replays
BEHIND = (1000, 100_000, 1_000_000)  # prefixes behind a group, as far as ROUTES goes
LABELLED = 100_000  # prefixes with a label each
SIDS = 10_000
TUNNELS, VNIS = 4000, 1000
FULL = {"ROUTES": 1_000_000, "ROUTES6": 200_000, "REPS": 7, "BGP_REPS": 3, "CHANGES": 10_000_000}
QUICK = {"ROUTES": 1_000_000, "ROUTES6": 200_000, "REPS": 3, "BGP_REPS": 0, "CHANGES": 500_000}


def options():
    """Return the options by name, and the selected rows."""
    default = QUICK if os.environ.get("QUICK", "0") not in ("", "0") else FULL
    found = {name: int(os.environ.get(name) or n) for name, n in default.items()}
    names = [r for r in (os.environ.get("ROWS") or ",".join(ROWS)).split(",") if r]
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit(f"bench-fpm: ROWS is a list of {', '.join(ROWS)}; not {unknown[0]}")
    if os.environ.get("ROWS") and "bgp" in names:
        found["BGP_REPS"] = found["BGP_REPS"] or 1
    return found, names


def measure(found, names):
    """Yield all JSON objects in the order of their measurement."""
    n4, n6, reps = found["ROUTES"], found["ROUTES6"], found["REPS"]
    with Rig() as rig:
        rig.fresh()
        yield {"bench": "machine", **machine(rig)}
        if {"ingest", "replay", "change"} & set(names):
            table = Table(rig, n4, n6)
            if "ingest" in names:
                yield from ingest.ingest(rig, table, reps)
            # The later rows find a table in the order of BGP, and replay it as zebra does.
            shuffled = Table(rig, n4, n6, "shuffled")
            yield from ingest.ingest(rig, shuffled, reps if "ingest" in names else 1)
            if "replay" in names:
                yield from ingest.replay(rig, table, reps)
            if "change" in names:
                yield from change.change_idle(rig, 40 * reps)
                yield from change.change_in_replay(rig, table, ZEBRA_RATE, reps)
                yield from change.change_in_replay(rig, table, 2 * ZEBRA_RATE, reps)
                yield from change.change_in_replay(rig, table, None, reps)
                yield from group.link_loss_in_replay(rig, table, 3 * reps)
        if "group" in names:
            for n in BEHIND:
                if n <= n4:
                    yield from group.next_hops(rig, n, 10 * reps)
        if "labels" in names:
            yield from labels.labels(rig, min(LABELLED, n4), reps)
        if "sids" in names:
            yield from sids.sids(rig, SIDS, reps)
        for name, kind, n in (("tunnels", overlays.Tunnels, TUNNELS), ("vnis", overlays.Vnis, VNIS)):
            if name in names:
                yield from overlays.overlays(rig, kind, n, reps)
        if "churn" in names:
            yield from churn.churn(rig, found["CHANGES"])
    if "bgp" in names and found["BGP_REPS"]:
        yield from frr.bgp(n4, n6, found["BGP_REPS"])


def machine(rig):
    """Return a description of the machine."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        model = next(
            (x.partition(":")[2].strip() for x in file if x.startswith("model name")), "?"
        )
    version = rig.control.ask("version")[0]
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "dpdk": version["dpdk"],
        "version": version["version"],
        "control_cpu": rig.control_cpu,
        "own_cpu": rig.own_cpu,
        "idle": "adaptive",
    }


def steal():
    """Return (ticks stolen by the host, all ticks) since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(x) for x in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def main():
    """Returns the exit code."""
    found, names = options()
    reason = why_not()
    if reason:
        sys.exit(f"bench-fpm: {reason}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    sweep_leftovers()
    lines, before = [], steal()

    def emit(line):
        print(json.dumps(line), flush=True)
        lines.append(line)

    try:
        for line in measure(found, names):
            emit(line)
    except KeyboardInterrupt:
        print("bench-fpm: interrupted", file=sys.stderr)
        return 130
    after = steal()
    share = (after[0] - before[0]) / max(1, after[1] - before[1])
    emit({"bench": "steal", "share": round(share, 5)})
    emit(command.line("bench-fpm", {*FULL, "QUICK", "ROWS"}))
    report.tables(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
