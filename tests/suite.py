#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run a tier of the tests: builds and tests as jobs side by side, to the end even when one fails.

    suite.py TIER MAKE...    TIER: check, test or test-all; MAKE: how make is called

The output of a job is printed when it has ended: all of it if the job failed, one line if it
passed. At the end: the reasons of skipped tests, a time table, the twenty slowest cases, the
failures, and a last line `TIER: N passed, N failed, N skipped`. The same text stays in
build/suite/TIER.txt, the output of each job in build/suite/TIER/.

With RESUME=1 a job that passed in an earlier run on the same sources is not run again, and the
report says so (lib/resume.py). RESUME=COMMIT also takes what passed on that commit or a later one.

tests/tiers.py defines the content of a tier; tests/lib/beside.py decides the order of jobs.
"""

import contextlib
import datetime
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiers  # noqa: E402
from lib import beside, neigh_limits, results, resume  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLOWEST = 20
MOST_NAMED, WIDTH = 40, 500


class Report:
    """Writes text to the terminal and to a file."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def say(self, *lines):
        """Print lines, and write them to the file."""
        for line in lines:
            print(line, flush=True)
            print(line, file=self.file, flush=True)


def header(tier):
    """Return the machine and the time, so that figures of two runs can be compared."""
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()
    for line in text.splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    wide = " with AVX-512" if "avx512_vpopcntdq" in text else " without AVX-512"
    when = datetime.datetime.now().isoformat(" ", "seconds")
    return f"{tier}: {when}, {len(os.sched_getaffinity(0))} CPUs, {model}{wide}, load {os.getloadavg()[0]:.1f}"


def time_table(done, took):
    """Return lines with the time of each part, from its first job's start to its last job's end."""
    parts = {}
    for job in done:
        parts.setdefault(job.part, []).append(job)
    lines = [f"{'PART':<14}{'JOBS':>5}{'WALL S':>8}{'SUM S':>8}{'CPU S':>8}{'PASSED':>8}{'FAILED':>8}{'SKIPPED':>8}"]
    for part, jobs in parts.items():
        ran = [job for job in jobs if job.code is not None and not job.before]
        wall = max((j.begin + j.took for j in ran), default=0) - min((j.begin for j in ran), default=0)
        count = [sum(getattr(job.result, what) for job in jobs) for what in results.OUTCOMES]
        lines.append(
            f"{part:<14}{len(jobs):>5}{wall:>8.0f}{sum(j.took for j in ran):>8.0f}"
            f"{sum(j.cpu for j in ran):>8.0f}{count[0]:>8}{count[1]:>8}{count[2]:>8}"
        )
    lines.append(f"{'all':<14}{len(done):>5}{took:>8.0f}{sum(j.took for j in done):>8.0f}{sum(j.cpu for j in done):>8.0f}")
    return lines


def slowest(done):
    """Return lines with the slowest cases."""
    cases = sorted(((s, j.part, name) for j in done for s, name in j.result.cases), reverse=True)
    return [f"{s:>8.1f} s  {part}: {name}" for s, part, name in cases[:SLOWEST]]


def ended(job, report):
    """Print the result of a job, and its whole output if it failed."""
    result = job.result
    state = "not run, its build failed" if job.code is None else "FAILED" if result.failed else "ok"
    if job.before:
        state = "before"
    if result.failed and job.code is not None:
        sys.stdout.flush()
        job.show()
    report.say(
        f"{state:<7}{job.name:<28}{result.passed:>5} passed, {result.failed} failed, "
        f"{result.skipped} skipped in {job.took:.0f} s, {job.cpu:.0f} s of CPU"
        + (f" on {job.before}" if job.before else "")
    )


def main(tier, *make):
    """Returns the exit code."""
    where = f"{ROOT}/build/suite"
    shutil.rmtree(f"{where}/{tier}", ignore_errors=True)
    os.makedirs(f"{where}/{tier}")
    report = Report(f"{where}/{tier}.txt")
    report.say(header(tier))
    begin, done = time.monotonic(), []
    short = tempfile.mkdtemp(prefix="suite-")
    os.chmod(short, 0o755)  # some tests call fpmctl as another user
    jobs, absent = tiers.jobs(tier, make, f"{where}/{tier}", short)
    kept = resume.Kept(f"{where}/{tier}.passed", ROOT, os.environ.get("RESUME", ""))
    done += [job for job in jobs if kept.take(job)]
    for job in done:
        ended(job, report)
    with neigh_limits.at_least(*neigh_limits.SIDE_BY_SIDE):
        left, there = [job for job in jobs if not job.before], {job.name for job in done}
        for job in beside.run(left, beside.capacity(), ROOT, there=there):
            job.result = job.read(job)
            done.append(job)
            ended(job, report)
            kept.keep(job)
    took = time.monotonic() - begin
    tiers.finished(tier, done)
    with contextlib.suppress(OSError):  # the files of failed tests stay
        os.rmdir(short)
    wrong = tiers.not_run(tier, done)
    skips = sorted({f"{job.part}: {reason}" for job in done for reason in job.result.reasons})
    report.say("", *(f"skipped: {text}" for text in [*absent, *skips]))
    report.say("", *time_table(done, took), "", "slowest cases:", *slowest(done), "")
    named = [f"{job.name}: {name[:WIDTH]}" for job in done for name in job.result.names]
    report.say(*dict.fromkeys(named[:MOST_NAMED]), *wrong)
    count = {what: sum(getattr(job.result, what) for job in done) for what in results.OUTCOMES}
    count["failed"] += len(wrong)
    report.say(f"{tier}: took {took:.0f} s; this text: build/suite/{tier}.txt")
    report.say(f"{tier}: " + ", ".join(f"{n} {what}" for what, n in count.items()))
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    beside.end_on_signals()
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
