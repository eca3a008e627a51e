#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run all parts of the tests, each a target of the Makefile, to the end even when one
fails; the last line says how each went, and which of them ran nothing here: a machine may lack
what they need, which is no failure. Arguments: how make is called."""

import os
import re
import signal
import subprocess
import sys

PARTS = (
    *("lint", "analyze", "unit", "unit-asan", "unit-tsan", "fuzz-quick", "system"),
    *("system-asan", "test-vm"),
)
# Fetched first. Where one cannot be, `system` skips what needs it, and the last line says so.
FETCHED = ("prometheus",)
# What says by name that a test has failed, pytest's or a program of unit tests. It is said again at
# the end, for who has no more of the output than that.
FAILURE = re.compile(r"(FAILED|ERROR) \S+::|unit \S+ +\S+ +FAILED")
MOST_NAMED, WIDTH = 40, 500


def run(argv):
    """Run a command, show its output as it comes. Returns (exit code, its last lines, those that
    name a failure)."""
    env = {**os.environ, "CI": "true"}  # or pytest cuts its reasons to the width of a terminal
    if sys.stdout.isatty():
        env["PYTEST_ADDOPTS"] = "--color=yes " + env.get("PYTEST_ADDOPTS", "")
    tail, rest, named = b"", b"", []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as child:
        while data := child.stdout.read1():
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            tail = (tail + data)[-2000:]
            *whole, rest = (rest + data).split(b"\n")
            named += filter(FAILURE.match, map(plain, whole))
    lines = [line.strip("= ") for line in plain(tail).split("\n") if not line.startswith("make")]
    return child.returncode, [line for line in lines if line] or ["no output"], named


def plain(output):
    """Text without colours."""
    return re.sub(r"\033\[[0-9;]*m", "", output.decode(errors="replace"))


def summary(lines):
    """(a part's last line, whether it ran anything). Where all was skipped, as pytest counts it,
    the last reason is said as well."""
    last = lines[-1]
    if re.match(r"[\w-]+: skipped: ", last):
        return last, False
    counts = {what: int(n) for n, what in re.findall(r"\b(\d+) (passed|skipped)\b", last)}
    if not counts.get("skipped") or counts.get("passed"):
        return last, True
    why = re.findall(r"^SKIPPED .*?:\d+: (.*)$", "\n".join(lines), re.M)
    return ": ".join([last, *why[-1:]]), False


def main():
    """Returns the exit code."""
    said, failed, idle, failures = [], [], [], []
    for what in FETCHED:
        code, lines, _ = run([*sys.argv[1:], what])
        if code != 0:
            said.append(f"no {what}, without its tests: {lines[-1]}")
    for part in PARTS:
        code, lines, named = run([*sys.argv[1:], part])
        last, ran = summary(lines)
        said.append(last if last.startswith(part.split("-")[0]) else f"{part}: {last}")
        if code != 0:
            failed.append(part)
            failures += [f"{part}: {line[:WIDTH]}" for line in dict.fromkeys(named)][:MOST_NAMED]
        elif not ran:
            idle.append(part)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all tests passed"
    if idle:
        verdict += f"{'; not' if failed else ', but for those not'} run here: {', '.join(idle)}"
    print("", *failures, f"{verdict} ({'; '.join(said)})", sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
