#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""System tests, as many files at a time as there are cores: for builds that are slow anyway. Most
of a test is waiting. The last line says how many passed.

    abreast.py NAME [WORDS]    NAME: of the make target; WORDS choose tests, as pytest's -k does
"""

import collections
import glob
import os
import shutil
import signal
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import beside  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_TESTS = 5  # pytest: nothing was left to run
LIMIT_S = 1500  # of a job; no file is meant to need that long
# What these do to the machine (the table of neighbours and the ICMP sockets that all namespaces
# share) any other would feel: nothing runs beside them.
ALONE = ("flood", "neigh", "neigh_life", "lab")
# Each other's hugepages these would feel.
TOGETHER = ("resources", "succession")
LONGEST = ("hang", "scenarios", "machine", "ports_live", "restart", "supervise", "robust")
# As a reader has them are its programs those of the release build, whatever is asked for.
NOT_HERE = ("docs",)


def files():
    """{name of a job: its files}, those first that run alone, then those that take longest."""
    found = collections.defaultdict(list)
    for path in sorted(glob.glob(f"{ROOT}/tests/system/test_*.py")):
        name = os.path.basename(path)[len("test_") : -len(".py")]
        if name not in NOT_HERE:
            found["machine" if name in TOGETHER else name].append(os.path.relpath(path, ROOT))
    order = [name for name in (*ALONE, *LONGEST) if name in found]
    return {name: found[name] for name in [*order, *found]}


def job(where, name, paths, words):
    """pytest, whose temporary files and report are in the folder `where`."""
    argv = ["timeout", "-k", "60", str(LIMIT_S), sys.executable, "-m", "pytest", "-q", "-rs"]
    argv += ["--no-header", "-p", "no:cacheprovider", f"--basetemp={where}/{name}"]
    argv += [f"--junit-xml={where}/{name}.xml", *paths]
    return beside.Job(name, [*argv, *(["-k", words] if words else [])])


def how_it_went(report, code, chosen):
    """Counter of "passed", "failed", "skipped" by pytest's report; a run without one has failed,
    and one without tests, unless some were `chosen`."""
    if code == NO_TESTS and chosen:
        return collections.Counter()
    try:
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return collections.Counter(failed=1)
    how = {}  # a test that failed, and whose fixtures did, too, is one
    for case in cases:
        tags = {child.tag for child in case}
        this = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        name = (case.get("classname"), case.get("name"))
        how[name] = "failed" if "failed" in (this, how.get(name)) else this
    count = collections.Counter(how.values())
    if code != 0 and not count["failed"]:
        count["failed"] = 1  # pytest itself, or its time was up
    return count


def run(jobs):
    """Those that run alone, one after the other, then the others; yields each when it is done."""
    yield from beside.run([j for j in jobs if j.name in ALONE], 1, ROOT)
    others = [j for j in jobs if j.name not in ALONE]
    yield from beside.run(others, len(os.sched_getaffinity(0)), ROOT)


def main(name, words=""):
    """Returns the exit code."""
    begin, where = time.monotonic(), f"{ROOT}/build/{name}"
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    some = files()
    if words:  # few: to look into each file would take longer
        some = {"chosen": sorted(sum(some.values(), []))}
    count, wrong = collections.Counter(), []
    for done in run([job(where, what, paths, words) for what, paths in some.items()]):
        one = how_it_went(f"{where}/{done.name}.xml", done.code, words)
        count += one
        wrong += [done.name] if one["failed"] else []
    said = ", ".join(f"{count[key]} {key}" for key in ("passed", "failed", "skipped") if count[key])
    failed = f": {', '.join(wrong)}" if wrong else ""
    print(f"{name}: {said or 'no tests'} in {time.monotonic() - begin:.0f} s{failed}")
    return 1 if wrong or not said else 0


def _interrupted(number, _):
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    sys.exit(main(*sys.argv[1:]))
