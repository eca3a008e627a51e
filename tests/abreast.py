#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""System tests, as many files at a time as there are cores: for those builds of whose times
nothing is said. Most of a test is waiting. The last line says how many passed.

    abreast.py NAME [WORDS]    NAME: of the make target; WORDS choose tests, as pytest's -k does
"""

import collections
import glob
import os
import shutil
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import beside  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_TESTS = 5  # pytest: nothing was left to run
# What these do to the machine (its hugepages, the one table of neighbours that all namespaces
# share), others of them would feel.
TOGETHER = ("flood", "neigh", "neigh_life", "resources", "succession")
LONGEST = ("machine", "hang", "scenarios", "ports_live", "restart", "docs")


def files():
    """{name of a job: its files}, those that take longest first."""
    found = collections.defaultdict(list)
    for path in sorted(glob.glob(f"{ROOT}/tests/system/test_*.py")):
        name = os.path.basename(path)[len("test_") : -len(".py")]
        found["machine" if name in TOGETHER else name].append(os.path.relpath(path, ROOT))
    return {name: found[name] for name in [*LONGEST, *found]}


def job(where, name, paths, words):
    """pytest, whose temporary files and report are in the folder `where`."""
    argv = ["/usr/bin/python3", "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    argv += ["-rs", f"--basetemp={where}/{name}", f"--junit-xml={where}/{name}.xml", *paths]
    return beside.Job(name, [*argv, *(["-k", words] if words else [])])


def how_it_went(report, code):
    """Counter of "passed", "failed", "skipped" by pytest's report; a run without one has failed."""
    count = collections.Counter()
    if code == NO_TESTS:
        return count
    try:
        suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite").attrib
    except (OSError, xml.etree.ElementTree.ParseError):
        return collections.Counter(failed=1)
    count["failed"] = int(suite["failures"]) + int(suite["errors"])
    count["skipped"] = int(suite["skipped"])
    count["passed"] = int(suite["tests"]) - count.total()
    if code != 0 and not count["failed"]:
        count["failed"] = 1  # pytest itself, or a fixture after the last test
    return count


def main(name, words=""):
    """Returns the exit code."""
    begin, where = time.monotonic(), f"{ROOT}/build/pytest-{name}"
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    some = files()
    if words:  # few: to look into each file would take longer
        some = {"chosen": sorted(sum(some.values(), []))}
    jobs = [job(where, what, paths, words) for what, paths in some.items()]
    count, wrong = collections.Counter(), []
    for done in beside.run(jobs, len(os.sched_getaffinity(0)), ROOT):
        one = how_it_went(f"{where}/{done.name}.xml", done.code)
        count += one
        wrong += [done.name] if one["failed"] else []
    said = ", ".join(f"{count[key]} {key}" for key in ("passed", "failed", "skipped") if count[key])
    failed = f": {', '.join(wrong)}" if wrong else ""
    print(f"{name}: {said or 'no tests'} in {time.monotonic() - begin:.0f} s{failed}")
    return 1 if wrong or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
