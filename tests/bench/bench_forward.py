#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Forwarding rate of one core, ours and its peers', fed by the same port on the same tables,
taking turns in one run. JSON lines on stdout; tables and the goals on stderr.

    bench_forward.py BUILD_DIR        (options: tests/bench/README.md)
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bench_fib import HugePages, choose_cpus  # noqa: E402
from forward import report, sources  # noqa: E402
from forward.programs import (  # noqa: E402
    N_OUT,
    TSC_HZ,
    L3fwd,
    Ours,
    ProgramError,
    Testpmd,
)
from lib import netns  # noqa: E402
from lib.dataplane import DataplaneError  # noqa: E402


def say(text):
    print(f"bench-forward: {text}", file=sys.stderr, flush=True)


def option(name, default):
    """From the environment; a number where the default is one."""
    text = os.environ.get(name) or str(default)
    return type(default)(text)


class Bench:
    """What all programs of a run share: files, the core, the plugin."""

    def __init__(self, build):
        self.build = build
        self.dir = build.parent / "bench-forward"
        self.dir.mkdir(parents=True, exist_ok=True)
        self.cpu, hog = choose_cpus()
        self.other_cpu = hog if hog >= 0 else self.cpu
        self.frame_len = option("LEN", 64)
        self.reps, self.seconds = option("REPS", 7), option("SECONDS", 0.4)
        self.plugin_dir = self.plugin = None
        self.l3fwd = {}
        self.skipped = []
        self.frames, self.rules, self.routes, self.sizes = {}, {}, {}, {}

    def skip(self, what, why):
        """Leave a peer out, and say so."""
        say(f"skipped: {what}: {why}")
        self.skipped.append({"what": what, "why": str(why)})

    def prepare(self):
        """Build the port, the peers, the tables."""
        folder = self.build / "bench-peers"
        folder.mkdir(parents=True, exist_ok=True)
        tree = sources.fetch(folder)
        plugin = folder / "librte_net_bench.so"
        sources.build_port(tree, HERE / "forward/pmd.c", plugin)
        # EAL takes no plugin from below a folder that everybody may write to.
        self.plugin_dir = Path(tempfile.mkdtemp(prefix="fdp-bench-", dir="/run"))
        self.plugin = Path(shutil.copy(plugin, self.plugin_dir))
        for name, two in (("l3fwd-4B", False), ("l3fwd-2B", True)):
            try:
                self.l3fwd[name] = sources.build_l3fwd(tree, folder, name, two)
            except sources.SourceError as error:
                self.skip(name, error)
        self.tables()

    def tables(self):
        """Routes and frames; made once for the same tables."""
        argv = [str(self.build / "tests/bench/bench_frames"), str(self.dir), str(N_OUT)]
        argv += [str(option("FRAMES", 4194304)), str(option("FRAMES6", 1048576))]
        argv += [str(option("ROUTES", 900000)), str(option("ROUTES6", 160000))]
        argv += os.environ.get("TABLE", "").split()
        known, made = self.dir / "made", " ".join(argv)
        if not known.exists() or known.read_text().split("\n")[0] != made:
            text = sources.run(argv)
            known.write_text(f"{made}\n{text}")
        for line in known.read_text().splitlines()[1:]:
            name, size = line.rsplit(" ", 1)
            say(f"table {name}: {size} routes")
        few = {4: "{}.0.0.0/2", 6: "{:x}00::/5"}
        firsts = {4: (0, 64, 128, 192), 6: (0x20, 0x28, 0x30, 0x38)}
        for family in (4, 6):
            lines = [
                (few[family].format(first), 1 + i) for i, first in enumerate(firsts[family])
            ]
            text = "".join(f"{prefix} {port}\n" for prefix, port in lines)
            (self.dir / f"few-routes{family}").write_text(text)
            if family == 6:
                lines = [(f"{f:x}00:0:0:0:0:0:0:0/5", 1 + i)
                         for i, f in enumerate(firsts[6])]  # fmt: skip
            text = "".join(f"R{prefix} {port}\n" for prefix, port in lines)
            (self.dir / f"few-l3fwd{family}").write_text(text)

    def use(self, table):
        """Choose between the tables "few" and "full"."""
        few = table == "few"
        for family in (4, 6):
            self.frames[family] = self.dir / f"{'few' if few else 'frames'}{family}"
            self.routes[family] = self.dir / f"{'few-routes' if few else 'routes'}{family}"
            self.rules[family] = self.dir / f"{'few-l3fwd' if few else 'l3fwd'}{family}"

    def clean(self):
        """Remove what lies outside build/."""
        if self.plugin_dir:
            shutil.rmtree(self.plugin_dir, ignore_errors=True)


def peers(bench, table):
    """The programs of a table, in order."""
    made = [Ours(f"ours-{table}", bench, more=os.environ.get("CONFIG", ""))]
    if table == "full" and shutil.which("dpdk-testpmd"):
        made += [Testpmd(f"testpmd-{m}", bench, m) for m in ("io", "macswap")]
    if table == "few" or option("LPM_FULL", 0):
        if "l3fwd-4B" in bench.l3fwd:
            made.append(L3fwd(f"l3fwd-lpm-{table}", bench, "lpm", bench.l3fwd["l3fwd-4B"]))
    for size in ("4B", "2B"):
        if f"l3fwd-{size}" in bench.l3fwd:
            program = bench.l3fwd[f"l3fwd-{size}"]
            name, two = f"l3fwd-fib-{size}-{table}", size == "2B"
            made.append(L3fwd(name, bench, "fib", program, only4=two))
    only = [x for x in os.environ.get("PEERS", "").split(",") if x]
    return [p for p in made if not only or any(x in p.name for x in only)]


# Table -> (what comes, family to the page).
TRAFFIC = {"few": [("v4", 4)], "full": [("v4", 4), ("v6", 6), ("mixed", 0)]}


def sample(program, family, seconds):
    """One run: Mpps and cycles a packet of the forwarding thread's own CPU time."""
    with program.awake() as page:
        page.begin(family)
        time.sleep(0.05)
        before, cpu = page.counts(), program.cpu_s()
        begin = time.monotonic()
        time.sleep(seconds)
        after, cpu = page.counts(), program.cpu_s() - cpu
        wall = time.monotonic() - begin
        packets = after["tx"] - before["tx"]
        hz = page.get(TSC_HZ, "Q")
    program.alive()
    if packets == 0:
        raise RuntimeError(f"{program.name} forwards nothing: see {program.log}")
    return {"mpps": packets / cpu / 1e6, "cycles": hz * cpu / packets, "cpu": cpu / wall,
            "lost": 1 - packets / max(1, after["rx"] - before["rx"])}  # fmt: skip


def verify(program, family, seconds=0.2):
    """Does every frame leave where and as it must? Counts of a run with all looked at."""
    with program.awake() as page:
        page.begin(family, check=1)
        before = page.counts()
        time.sleep(seconds)
        after = page.counts()
    return {k: after[k] - before[k] for k in ("tx", "wrong_port", "wrong_header")}


def emit(lines, row):
    """One JSON line."""
    print(json.dumps(row), flush=True)
    lines.append(row)


def summary(samples):
    """Median, least and most of what was sampled."""
    row = {}
    for key in ("mpps", "cycles"):
        values = [s[key] for s in samples]
        row[key] = round(statistics.median(values), 2)
        row[key + "_min"], row[key + "_max"] = round(min(values), 2), round(max(values), 2)
    row["cpu_min"] = round(min(s["cpu"] for s in samples), 3)
    row["runs"] = len(samples)
    return row


def measure(bench, table, running, lines):
    """All programs on one table, in turns."""
    for traffic, family in TRAFFIC[table]:
        if traffic not in (os.environ.get("TRAFFIC") or "v4,v6,mixed").split(","):
            continue
        here = [p for p in running if family in p.families]
        seen = {p: [] for p in here}
        for _ in range(bench.reps):
            for program in here:
                seen[program].append(sample(program, family, bench.seconds))
        for program in here:
            row = {"bench": "forward", "table": table, "traffic": traffic}
            row |= {"program": program.name.removesuffix(f"-{table}")}
            row |= {"len": bench.frame_len} | summary(seen[program])
            if program.looks_up:
                row |= verify(program, family)
            if isinstance(program, Ours) and option("CYCLES", 1):
                row |= stages(program, family)
            emit(lines, row)


def stages(program, family):
    """Where its time goes, by its own counters: cycles a packet, in a run of its own."""
    with program.awake() as page:
        before = program.daemon.show("cycles")
        page.begin(family)
        time.sleep(0.5)
        page.end()
        after = program.daemon.show("cycles")
    packets = after[0]["packets"] - (before[0]["packets"] if before else 0)
    old = {row["stage"]: row["cycles"] for row in before}
    new = {row["stage"]: row["cycles"] for row in after}
    took = {name: (new[name] - old.get(name, 0)) / packets for name in new}
    return {"stages": {name: round(value, 1) for name, value in took.items()}}


IDLE_GAP_S, IDLE_FRAMES = 0.02, 100


def idle(program):
    """Nothing comes: what does it cost? Then now and then a frame: how late is it?"""
    with program.awake() as page:
        page.end()
        time.sleep(0.2)
        begin, one, all_ = time.monotonic(), program.cpu_s(), program.process_cpu_s()
        time.sleep(3)
        one, all_ = program.cpu_s() - one, program.process_cpu_s() - all_
        wall = time.monotonic() - begin
        hz, before = page.get(TSC_HZ, "Q"), page.counts()
        gap = int(IDLE_GAP_S * hz) << 16
        page.begin(4, check=2, gap_q16=gap, limit=IDLE_FRAMES)
        time.sleep(IDLE_GAP_S * (IDLE_FRAMES + 10))
        after = page.counts()
        late = [ticks * 1e6 / hz for ticks, n in page.latencies() for _ in range(n)]
    return {
        "bench": "idle",
        "forwarder_percent": round(one / wall * 100, 2),
        "process_percent": round(all_ / wall * 100, 2),
        "frames": after["rx"] - before["rx"],
        "lost": after["rx"] - before["rx"] - (after["tx"] - before["tx"]),
        "first_us": round(statistics.median(late), 1) if late else None,
        "first_max_us": round(max(late), 1) if late else None,
    }


def run_table(bench, table, lines):
    """Start everybody, measure, end everybody."""
    bench.use(table)
    running = []
    programs = peers(bench, table)
    try:
        for program in programs:
            begin = time.monotonic()
            running.append(program)
            try:
                program.start()
            except (ProgramError, AssertionError, OSError) as error:
                if isinstance(program, Ours):
                    raise
                bench.skip(program.name, error)
                running.pop().stop()
                continue
            say(f"{program.name} ready after {time.monotonic() - begin:.1f} s")
        measure(bench, table, running, lines)
        if table == "few":
            emit(lines, idle(running[0]))
    finally:
        for program in programs:
            program.stop()


def machine(bench):
    """What it ran on."""
    model = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in x]
    version = subprocess.run(
        [str(bench.build / "fpm-dataplane"), "--version"], capture_output=True, text=True
    ).stdout.strip()
    return {"bench": "machine", "cpu": model[0].split(":")[1].strip() if model else "?",
            "cores": os.cpu_count(), "kernel": os.uname().release, "version": version,
            "measured_cpu": bench.cpu}  # fmt: skip


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    if os.geteuid() != 0:
        say("needs root: huge pages, namespaces, TAPs")
        return 1
    bench = Bench(Path(sys.argv[1]).resolve())
    lines = []
    try:
        bench.prepare()
        with HugePages(option("HUGE_MIB", 6144)) as pages:
            if not pages.enough:
                say("not enough huge pages")
                return 1
            emit(lines, machine(bench))
            for table in (os.environ.get("TABLES") or "few,full").split(","):
                run_table(bench, table, lines)
    except (sources.SourceError, netns.CommandError, ProgramError, DataplaneError) as error:
        say(f"cannot run: {error}; logs are in {bench.dir}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        bench.clean()
    for row in bench.skipped:
        emit(lines, {"bench": "skipped", **row})
    report.tables(lines, sys.stderr)
    wrong = sum(r.get("wrong_port", 0) + r.get("wrong_header", 0)
                for r in lines if str(r.get("program", "")).startswith("ours"))  # fmt: skip
    if wrong:
        say(f"FAILED: {wrong} frames left wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
