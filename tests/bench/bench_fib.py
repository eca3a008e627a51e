#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run bench_fib with options from the environment, and with huge pages that are reserved for the
run. JSON lines go to stdout, a table to stderr. At the end it draws a plot.

    bench_fib.py PROGRAM        (options: tests/bench/README.md)
"""

import glob
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import command  # noqa: E402
import fib_report  # noqa: E402

HUGE_2M = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
QUICK = {
    "STREAM": "random,inprefix,zipf",
    "NEXTHOPS": "64",
    "HASH": "prefix",
    "BATCH": "64",
}
LISTS = {
    "FAMILY": "-f",
    "STREAM": "-s",
    "IMPL": "-i",
    "NEXTHOPS": "-n",
    "HASH": "-a",
    "L3": "-l",
    "BATCH": "-b",
    "REPS": "-r",
    "ROUTES": "-g",
    "ROUTES6": "-G",
    "KEYS": "-k",
    "KEYS6": "-K",
}


OPTIONS = {*LISTS, "QUICK", "LPM_ADD", "TABLE", "UPDATES", "CPU", "HUGE_MIB", "PNG", "ISA"}
BITS = {"avx512": "512", "avx2": "256", "sse4": "128", "scalar": "128"}  # by command.limit()


def say(text):
    print(f"bench-fib: {text}", file=sys.stderr, flush=True)


class HugePages:
    """Reserve 2 MiB pages until `want` MiB are free. Release the added pages at the end."""

    def __init__(self, want):
        self.want, self.added = want // 2, 0

    def count(self, name):
        return int((HUGE_2M / name).read_text())

    def set(self, number):
        (HUGE_2M / "nr_hugepages").write_text(str(number))

    def __enter__(self):
        try:
            before = self.count("nr_hugepages")
            missing = self.want - self.count("free_hugepages")
            if missing > 0:
                self.set(before + missing)
                self.added = self.count("nr_hugepages") - before
            self.enough = 0 < self.want <= self.count("free_hugepages")
        except OSError as error:
            say(f"no huge pages: {error}")
            self.enough = False
        return self

    def __exit__(self, *exc):
        if self.added:
            self.set(max(0, self.count("nr_hugepages") - self.added))


def cpus_that_share(cpu, what):
    """Return the CPUs that share a resource with `cpu`, from the kernel's lists such as 0-3,8."""
    found = set()
    for path in glob.glob(f"/sys/devices/system/cpu/cpu{cpu}/{what}"):
        for part in Path(path).read_text().strip().split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def choose_cpus():
    """Return the last CPU, which measures, and another one behind the same L3 that is no sibling,
    which copies."""
    allowed = sorted(os.sched_getaffinity(0))
    cpu = int(os.environ.get("CPU") or allowed[-1])
    others = set(allowed) - {cpu} - cpus_that_share(cpu, "topology/thread_siblings_list")
    near = others & cpus_that_share(cpu, "cache/index3/shared_cpu_list")
    return cpu, min(near or others, default=-1)


def arguments():
    env = dict(os.environ)
    cpu, hog = choose_cpus()
    args = ["-c", str(cpu), "-C", str(hog), "-V", BITS[command.limit()]]
    if hog < 0:
        say("one core only: nothing can copy through the L3, contended results left out")
    if env.get("QUICK", "0") not in ("", "0"):
        env = {**QUICK, **{k: v for k, v in env.items() if v}}
        args += ["-q"]
    chosen = [name for name in LISTS if os.environ.get(name)]
    for name, flag in LISTS.items():
        if env.get(name):
            args += [flag, env[name]]
    if any(name in chosen for name in ("STREAM", "NEXTHOPS", "HASH", "BATCH")):
        args += ["-x"]
    if env.get("LPM_ADD", "0") not in ("", "0"):
        args += ["-L"]
    tables = env.get("TABLE", "").split()
    updates = env.get("UPDATES") or next(
        (
            u
            for t in tables
            for u in glob.glob(f"{glob.escape(os.path.dirname(t) or '.')}/*update*.xz")
        ),
        None,
    )
    if updates:
        args += ["-u", updates]
    return args, tables


def run(program, args, huge):
    """Run the program and pass its lines on. Return the parsed lines, and the exit code."""
    lines = []
    if not huge:
        say("runs on 4 KiB pages: rates are lower, for all alike")
        args = ["-H", *args]
    child = subprocess.Popen([program, *args], stdout=subprocess.PIPE, text=True)
    try:
        for line in child.stdout:
            if not line.startswith("{"):
                sys.stderr.write(line)
                continue
            print(line, end="", flush=True)
            lines.append(json.loads(line))
        return lines, child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    args, tables = arguments()
    want = int(os.environ.get("HUGE_MIB") or 2560)
    try:
        with HugePages(want) as pages:
            lines, code = run(sys.argv[1], [*args, "--", *tables], pages.enough)
        print(json.dumps(command.line("bench-fib", OPTIONS)), flush=True)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:  # the reader has closed the pipe: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    fib_report.tables(lines, sys.stderr)
    png = Path(os.environ.get("PNG") or Path(sys.argv[1]).parent / "bench-fib.png")
    if fib_report.plot(lines, png):
        say(f"plot: {png}")
    if code != 0:
        say(f"died of signal {-code}" if code < 0 else "FAILED: see above")
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
