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


def run(argv):
    """Run a command, show its output as it comes. Returns (exit code, its last lines)."""
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
    return child.returncode, [line for line in lines if line] or ["no output"]


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
    said, failed, idle = [], [], []
    for what in FETCHED:
        code, lines = run([*sys.argv[1:], what])
        if code != 0:
            said.append(f"no {what}, without its tests: {lines[-1]}")
    for part in PARTS:
        code, lines = run([*sys.argv[1:], part])
        last, ran = summary(lines)
        said.append(last if last.startswith(part.split("-")[0]) else f"{part}: {last}")
        if code != 0:
            failed.append(part)
        elif not ran:
            idle.append(part)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all tests passed"
    if idle:
        verdict += f"{'; not' if failed else ', but for those not'} run here: {', '.join(idle)}"
    print(f"\n{verdict} ({'; '.join(said)})")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
