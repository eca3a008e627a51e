#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run all parts of the tests, each a target of the Makefile, to the end even when one
fails; the last line says how each went. Arguments: how make is called."""

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


def run(argv):
    """Run a command, show its output as it comes. Returns (exit code, its last line)."""
    env = dict(os.environ)
    if sys.stdout.isatty():
        env["PYTEST_ADDOPTS"] = "--color=yes " + env.get("PYTEST_ADDOPTS", "")
    tail = b""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as child:
        while data := child.stdout.read1():
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            tail = (tail + data)[-2000:]
    lines = re.sub(r"\033\[[0-9;]*m", "", tail.decode(errors="replace")).split("\n")
    lines = [line.strip("= ") for line in lines if not line.startswith("make")]
    return child.returncode, next((line for line in reversed(lines) if line), "no output")


def main():
    """Returns the exit code."""
    said, failed = [], []
    for what in FETCHED:
        code, last = run([*sys.argv[1:], what])
        if code != 0:
            said.append(f"no {what}, without its tests: {last}")
    for part in PARTS:
        code, last = run([*sys.argv[1:], part])
        said.append(last if last.startswith(part.split("-")[0]) else f"{part}: {last}")
        if code != 0:
            failed.append(part)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all tests passed"
    print(f"\n{verdict} ({'; '.join(said)})")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
