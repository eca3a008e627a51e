# SPDX-License-Identifier: BSD-3-Clause
"""Measure a full table by one replay, the same replay again, and the memory of the table."""

import time

from bench.fpm.figures import spread
from bench.fpm.rig import Pour, now
from bench.fpm.table import Marker
from lib.wait import eventually

LOOK_S = 0.0005  # between two probes: the forwarder shares its CPU with the sender
WRITES = ("prefix_writes", "group_writes")


def pour(rig, table, marker):
    """Send one whole stream and then the marker's move. Returns (seconds, facts)."""
    octets = marker.ids() + table.octets + marker.move()
    for out in marker.outs:
        out.drain()
    before, cpu, begin = rig.fpm(), rig.cpu_s(), now()
    stream = Pour(rig.speaker.socket, octets)

    def work():
        end = now() + LOOK_S
        while now() < end:
            pause = stream.step()
            if pause:
                time.sleep(pause)
        return 0

    done = rig.wait_for(marker.frame, marker.out, begin, work=work)
    spent = rig.cpu_s()
    eventually(lambda: complete(rig, table), 10, what="all routes, none stale")
    after = rig.fpm()
    facts = {
        "sent_s": round(stream.done_at - begin, 3),
        "cpu_ns_a_route": {
            name: round((s - cpu.get(name, 0)) * 1e9 / table.n)
            for name, s in sorted(spent.items())
        },
        **{key: after[key] - before[key] for key in WRITES},
    }
    return done - begin, facts


def fill(rig, table):
    """Fill an empty daemon with a table. Return (marker, what pour() returns, MiB that the daemon
    grew)."""
    rig.fresh()
    rig.connect()
    marker = Marker(rig)
    marker.settle()
    time.sleep(0.5)  # the rest of the start is not measured
    before = rig.rss()
    run = pour(rig, table, marker)
    time.sleep(1)  # the last grace periods
    return marker, run, (rig.rss() - before) / 2**20


def complete(rig, table):
    """Return True if all routes of the table are in force and none is stale. A table with `in_vrf` is that of
    a VRF."""
    row = rig.fpm()
    own = [len(table.prefixes[4]), len(table.prefixes[6])]
    main, other = ([0, 0], sum(own)) if getattr(table, "in_vrf", False) else (own, 0)
    want = (main[0] + Marker.ROUTES, main[1], 0, other)
    return (row["zebra4"], row["zebra6"], row["stale"], row["other_tables"]) == want


def rate(bench, table, runs):
    """Return the JSON object of some runs of pour()."""
    rates = [table.n / seconds for seconds, _ in runs]
    facts = [f for _, f in runs]
    return {
        "bench": bench,
        "order": table.order,
        "routes": table.n,
        "unit": "routes/s",
        **spread(rates, 0),
        "sent_s": spread([f["sent_s"] for f in facts]),
        "cpu_ns_a_route": facts[-1]["cpu_ns_a_route"],
        **{key: max(f[key] for f in facts) for key in WRITES},
    }


def ingest(rig, table, reps):
    """Measure a full table into an empty daemon, and then the memory of the table."""
    runs, grown, shown = [], [], {}
    for _ in range(reps):
        _, run, mib = fill(rig, table)
        runs.append(run)
        grown.append(mib)
        shown = rig.memory()
    row = rate("ingest", table, runs)
    yield {**row, "queue_high_mib": round(rig.fpm()["queue_high_bytes"] / 2**20, 1)}
    fib = [shown[f][k] for f in ("fib4", "fib6") for k in ("bytes", "radix_bytes")]
    yield {
        "bench": "memory",
        "order": table.order,
        "routes": table.n,
        "unit": "MiB",
        **spread(grown, 1),
        "rss_mib": round(shown["rss_bytes"] / 2**20, 1),
        "peak_rss_mib": round(shown["peak_rss_bytes"] / 2**20, 1),
        "rib_mib": round(shown["rib_bytes"] / 2**20, 1),
        "fib_mib": round(sum(fib) / 2**20, 1),
    }


def replay(rig, table, reps):
    """Measure the same table by a new session: the FIB writes only the marker."""
    runs = []
    for _ in range(reps):
        rig.connect()
        marker = Marker(rig)
        marker.settle()
        runs.append(pour(rig, table, marker))
    yield rate("replay", table, runs)
