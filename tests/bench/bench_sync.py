#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the cost of synchronization between a forwarder and the writer of its FIB: liburcu's
flavors, locks and none under the same forwarder (tests/bench/sync/), on the full table. Measure
also the time until all readers see only a new FIB. JSON lines on stdout, a table on stderr.

    bench_sync.py BUILD_DIR        (options: tests/bench/README.md)
"""

import mmap
import os
import statistics
import struct
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fib_report import print_columns  # noqa: E402
from forward import rig  # noqa: E402
from forward.measure import sample, spread, tail  # noqa: E402
from forward.page import SLOTS, slot_ticks  # noqa: E402
from forward.programs import Ours  # noqa: E402
from forward.report import verdict  # noqa: E402

KINDS = ("none", "qsbr", "memb", "mb", "signal", "thread-mutex", "global-mutex", "rwlock")
EVERY_US, WITHOUT, PUBLISHED, TOOK = 8, 12, 16, 24  # struct sync_page of sync.h
PUBLISH_US = 1000  # a thousand new FIBs a second
TURN_S = 0.01  # longer than a tick, shorter than the bursts of other programs


class Synced(Ours):
    """Our daemon with another synchronization, and with a publisher."""

    def __init__(self, kind, bench):
        super().__init__(f"ours-{kind}", bench, idle="poll", build=f"sync-{kind}")
        self.kind, self.path = kind, bench.dir / f"sync-{kind}.page"
        self.path.write_bytes(bytes(TOOK + 8 * SLOTS))
        with open(self.path, "r+b") as file:
            self.mem = mmap.mmap(file.fileno(), 0)

    def launch(self):
        os.environ["SYNC_PAGE"] = str(self.path)
        super().launch()

    def publish(self, every_us):
        """Publish every `every_us` from now on. Discard earlier counts."""
        self.mem[PUBLISHED:] = bytes(8 + 8 * SLOTS)
        struct.pack_into("<I", self.mem, EVERY_US, every_us)

    def took(self):
        """Return [(us, number)] since publish()."""
        (hz,) = struct.unpack_from("<Q", self.mem, 0)
        counts = struct.unpack_from(f"<{SLOTS}Q", self.mem, TOOK)
        return [(slot_ticks(i) * 1e6 / hz, n) for i, n in enumerate(counts) if n]


def turn(program, page, without):
    """Return the Mpps of one turn, with or without synchronization."""
    struct.pack_into("<I", program.mem, WITHOUT, without)
    before, begin = page.counts()["tx"], time.monotonic()
    time.sleep(TURN_S)
    return (page.counts()["tx"] - before) / (time.monotonic() - begin) / 1e6


def turns(bench):
    """Measure QSBR and none in one process, by turns: with, without, without, with."""
    program = Synced("turns", bench)
    with rig.Started(bench, [program]), program.awake() as page:
        page.begin(4)
        time.sleep(0.1)
        rounds = [
            [turn(program, page, without) for without in (0, 1, 1, 0)]
            for _ in range(rig.option("TURNS", 100 if rig.quick() else 1000))
        ]
        struct.pack_into("<I", program.mem, WITHOUT, 0)
    bench.emit({
        "bench": "sync-turns",
        "program": program.name,
        "mpps": round(statistics.median(a + b for a, _, _, b in rounds) / 2, 2),
        **spread("of_none", [(a + d) / (b + c) for a, b, c, d in rounds]),
        "runs": len(rounds),
    })  # fmt: skip


def round_of(program, seconds):
    """Return the Mpps without and with publishing, and the time that publishing took."""
    program.publish(0)
    quiet = sample(program, 4, seconds)["mpps"]
    program.publish(PUBLISH_US)
    busy = sample(program, 4, seconds)["mpps"]
    took = program.took()
    program.publish(0)
    return {"quiet": quiet, "busy": busy, "took": took}


def measure(bench):
    """Measure QSBR against none by turns; then all kinds, in a process each."""
    bench.use("full")
    turns(bench)
    # liburcu has no signal flavor from 0.15 on.
    built = [kind for kind in KINDS if os.path.exists(f"build/sync-{kind}/fpm-dataplane")]
    programs = [Synced(kind, bench) for kind in rig.options("KINDS", built)]
    reps = rig.option("REPS", 5 if rig.quick() else 15)
    seen = {p: [] for p in programs}
    with rig.Started(bench, programs):
        for _ in range(reps):
            for program in programs:
                seen[program].append(round_of(program, rig.option("SECONDS", 0.3)))
    base = seen[programs[0]]
    for program, rounds in seen.items():
        times = {}
        for us, n in (pair for r in rounds for pair in r["took"]):
            times[us] = times.get(us, 0) + n
        row = {"bench": "sync", "kind": program.kind, "program": program.name}
        for key in ("quiet", "busy"):
            rates = [r[key] for r in rounds]
            row[f"{key}_mpps"] = round(statistics.median(rates), 2)
            row[f"{key}_mpps_min"] = round(min(rates), 2)
            row[f"{key}_mpps_max"] = round(max(rates), 2)
            ratios = [a[key] / b["quiet"] for a, b in zip(rounds, base)]
            row |= spread(f"{key}_of_{programs[0].kind}", ratios)
        row |= {"published": sum(times.values())}
        if program.kind != "none":
            row |= tail(sorted(times.items()), "publish")
        bench.emit(row | {"runs": reps})


def goals(lines):
    """Return the goals in the form of forward/report.py."""
    for r in lines:
        if r["bench"] == "sync-turns":
            got, low, high = (r[f"of_none{end}"] for end in ("", "_low", "_high"))
            said, met = f"{got:.4f}x ({low:.4f}..{high:.4f})", verdict(got, 0.99, 0.998)
            yield "QSBR / no synchronisation", "0.99x", "0.998x", said, met


def report(lines, out):
    """Print the tables."""
    for r in lines:
        if r["bench"] == "sync-turns":
            print(
                f"\nQSBR relative to none, {r['runs']} times four turns of {TURN_S * 1e3:.0f} ms in one process: "
                f"{r['of_none']:.4f} (95 % bounds {r['of_none_low']:.4f}..{r['of_none_high']:.4f})",
                file=out,
            )
    all_ = [r for r in lines if r["bench"] == "sync"]
    if not all_:
        return
    base = all_[0]["kind"]
    rows = [("kind", "Mpps", "min", "max", f"of {base}", "low", "high", "publishing",
             f"of {base}", "seen after us: p50", "p99", "max")]  # fmt: skip
    for r in all_:
        cells = [f"{r[k]:.1f}" for k in ("quiet_mpps", "quiet_mpps_min", "quiet_mpps_max")]
        cells += [f"{r[f'quiet_of_{base}{end}']:.3f}" for end in ("", "_low", "_high")]
        cells += [f"{r['busy_mpps']:.1f}", f"{r[f'busy_of_{base}']:.3f}"]
        keys = (f"publish_{k}_us" for k in ("p50", "p99", "max"))
        cells += [f"{r[k]:.1f}" if k in r else "-" for k in keys]
        rows.append((r["kind"], *cells))
    print(f"\nfull table, v4, one forwarder, medians of {all_[0]['runs']}; publishing: "
          f"every {PUBLISH_US} us; low, high: 95 % bounds of the median ratio", file=out)  # fmt: skip
    print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-sync", measure, report))
