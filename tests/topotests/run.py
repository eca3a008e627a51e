#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run FRR's topotests with the kernel and with our dataplane in every router, and compare.

    run.py [--full] [--kill] [--kept DIR] --topotests DIR [MODULE ...]

    --full           the full list of modules.py instead of the quick one
    --kill           kill each daemon with SIGKILL before each test
    --topotests DIR  FRR's folder tests/topotests, or FRR's tree
    --kept DIR       for the output of the runs; build/topotests without it

The kernel's runs without a failure stay in build/topotests/reference for later calls, by the versions
of FRR and the kernel. The output of each run stays in build/topotests/MODE/MODULE. The last line is
`topotests: N passed, M failed, K skipped`. Tests that fail with the kernel are the skipped ones, but
in the modules of modules.MUST they are failures.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
sys.path[:0] = [HERE, TESTS]
import modules  # noqa: E402
import verdict  # noqa: E402
from lib import beside, netns, procs  # noqa: E402
from lib.dut import sweep_leftovers, why_not  # noqa: E402
from lib.wait import PATIENCE  # noqa: E402

BUILD = os.environ.get("BUILD", "release")
LIMIT_S = round(3600 * PATIENCE)  # of one run of a module; the longest has twelve files
KERNEL = "kernel"  # the mode of a run without dataplanes
LOAD = 0.45  # of a run: its daemons mostly wait


class Module:
    """A module with its runs: folder(mode) has the output of each."""

    kept = os.path.join(ROOT, "build", "topotests")

    def __init__(self, name, topotests):
        self.name, self.topotests = name, topotests
        self.tests, self.bfd = name.removesuffix(modules.BFD), name.endswith(modules.BFD)
        self.of_call = None  # the kernel's run of this call, if a test failed in it
        self.word = re.sub(r"\W+", "_", self.tests.removesuffix(".py")).strip("_")

    def folder(self, mode):
        """Return the folder of the run in this mode."""
        return os.path.join(self.kept, mode, self.word)

    def mode(self, kill):
        """Return the mode of a run with the dataplane."""
        return "-".join(["dataplane", *["kill"] * kill, *["bfd"] * self.bfd])

    def reference_file(self):
        """Return the path of the kernel's outcome."""
        version = f"frr-{frr_version()}-linux-{platform.release()}"
        return os.path.join(self.kept, "reference", version, f"{self.word}.json")

    def reference(self):
        """Return the kernel's run, or None if there is none yet. Stored runs with a failure do not count:
        earlier versions stored them."""
        try:
            with open(self.reference_file(), encoding="utf-8") as file:
                stored = verdict.Run(**json.load(file))
        except OSError:
            return self.of_call
        return stored if is_clean(stored) else self.of_call

    def keep_reference(self, run):
        """Store the kernel's run for later calls."""
        os.makedirs(os.path.dirname(self.reference_file()), exist_ok=True)
        with open(self.reference_file(), "w", encoding="utf-8") as file:
            json.dump(run.as_dict(), file, indent=1)

    def job(self, mode, kill=False):
        """Return the job that runs the module."""
        out = self.folder(mode)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        argv = [
            "timeout",
            "-s",
            "INT",
            "-k",
            "60",
            str(LIMIT_S),
            sys.executable,
            "-m",
            "pytest",
        ]
        argv += ["-p", "plugin", "-p", "no:cacheprovider", "-q", f"--rundir={out}/logs"]
        argv += [f"--junitxml={out}/junit.xml", "--show-capture=no", self.tests]
        more = {
            "PYTHONPATH": f"{HERE}:{self.topotests}",
            "TOPO_MODE": mode,
            "TOPO_OUT": out,
            "TOPO_KILL": "1" if kill else "",
            "TOPO_BFD": "1" if self.bfd and mode != KERNEL else "",
            "BUILD": BUILD,
            procs.MARK: out,  # its daemons inherit it, so that all of them can be ended
        }
        job = beside.Job(
            f"{self.tests} {mode}", argv, more=more, load=LOAD, log=f"{out}/pytest.log"
        )
        job.module, job.out = self, out
        return job


def frr_version():
    """Return the version of the installed FRR."""
    argv = ["dpkg-query", "-W", "-f", "${Version}", "frr"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def run(jobs, topotests):
    """Run jobs side by side. Yield each with its Run when it has ended; none leaves a process."""
    try:
        for job in beside.run(jobs, beside.capacity(), topotests, live=False):
            end_daemons(job)
            yield job, verdict.load(job.out)
    finally:
        for job in jobs:
            end_daemons(job)
        sweep_leftovers()


def end_daemons(job):
    """End the daemons of FRR that a job has left. procs.end_all() would also collect the exit
    codes of the jobs that still run."""
    while left := [pid for pid in procs.marked(job.out) if procs.is_alive(pid)]:
        for pid in left:
            procs.signal_pid(pid, signal.SIGKILL)
        time.sleep(0.02)


def is_clean(outcome):
    """Return True if the run has a report and no failure."""
    return bool(outcome.outcome) and not outcome.count("failed")


def references(wanted, topotests):
    """Run the modules with the kernel for which there is no such run. A module with a failure
    runs twice. An outcome without a failure is kept as soon as it is known, so that a later call
    continues. Any other outcome is for this call only: the machine may have been busy, and a test
    that failed then would never be judged."""
    absent = {m.reference_file(): m for m in wanted if m.reference() is None}
    jobs = [module.job(KERNEL) for module in absent.values()]
    found = {}
    for job, outcome in run(jobs, topotests):
        say(job, outcome)
        if is_clean(outcome):
            job.module.keep_reference(outcome)
        else:
            found[job.module] = outcome
    again = [module.job(KERNEL) for module in found]
    for job, outcome in run(again, topotests):
        say(job, outcome)
        best = verdict.best(found[job.module], outcome)
        if is_clean(best):
            job.module.keep_reference(best)
        elif best.outcome:
            for module in wanted:
                if module.tests == job.module.tests:
                    module.of_call = best


def say(job, outcome, more=""):
    """Print the line of a run that has ended."""
    counts = ", ".join(
        f"{outcome.count(how)} {how}" for how in ("passed", "failed", "skipped")
    )
    print(
        f"{job.name:<44} {counts} in {job.took:.0f} s, {job.cpu:.0f} s of CPU{more}",
        flush=True,
    )


def judge(wanted, topotests, kill):
    """Run the modules with the dataplane. Return (passed, problems, tests not judged)."""
    passed, problems, skipped = 0, [], []
    ready = [module for module in wanted if module.reference() is not None]
    absent = [module.name for module in wanted if module not in ready]
    problems += [f"{name}: the run with the kernel has no report" for name in absent]
    for module, outcome in outcomes(ready, topotests, kill).items():
        result = verdict.compare(module.reference(), outcome, kill, module.bfd)
        passed += result.passed
        problems += [f"{module.name}: {text}" for text in result.problems]
        unjudged = [f"{module.name}: {test} fails with the kernel" for test in result.not_judged]
        if module.tests in modules.MUST:
            problems += [f"{text} in two runs: run again on a free machine" for text in unjudged]
        else:
            skipped += unjudged
    return passed, problems, skipped


def outcomes(ready, topotests, kill):
    """Run the modules with the dataplane, twice those with a problem that a second run may not
    have. Return {module: Run}."""
    found, again = {}, ready
    for _ in range(2):
        jobs, again = [module.job(module.mode(kill), kill) for module in again], []
        for job, outcome in run(jobs, topotests):
            module = job.module
            result = verdict.compare(module.reference(), outcome, kill, module.bfd)
            say(
                job,
                outcome,
                f": {len(result.problems)} problems" if result.problems else ": ok",
            )
            for text in result.problems:
                print(f"    {text}", flush=True)
            if result.problems and not outcome.faults:
                again.append(module)
            found[module] = (
                verdict.best(found[module], outcome) if module in found else outcome
            )
    return found


def has_vrf():
    """Return True if this kernel has VRFs."""
    return netns.can_have("vrf table 100")


def has_mpls():
    """Return True if this kernel has MPLS."""
    return os.path.exists("/proc/sys/net/mpls")


def main():
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--topotests", required=True)
    parser.add_argument("--kept", default=Module.kept)
    parser.add_argument("modules", nargs="*")
    args = parser.parse_args()
    Module.kept = os.path.abspath(args.kept)
    topotests = os.path.abspath(args.topotests)
    if os.path.isdir(os.path.join(topotests, "tests", "topotests")):
        topotests = os.path.join(topotests, "tests", "topotests")
    if reason := why_not():
        print(f"topotests: skipped: {reason}")
        return 0
    if not os.path.exists(os.path.join(topotests, "lib", "topogen.py")):
        print(f"topotests: {topotests} is not FRR's folder tests/topotests")
        return 1
    sweep_leftovers()
    begin = time.monotonic()
    names, without = args.modules, []
    if not names:
        names, without = modules.chosen(args.full, has_vrf(), has_mpls())
    wanted = [Module(name, topotests) for name in names]
    references(wanted, topotests)
    passed, problems, skipped = judge(wanted, topotests, args.kill)
    skipped += [f"{name}: this kernel has no VRFs, or no MPLS" for name in without]
    for text in skipped:
        print(f"skipped: {text}")
    for text in problems:
        print(f"FAILED {text}")
    print(f"topotests: took {time.monotonic() - begin:.0f} s")
    print(f"topotests: {passed} passed, {len(problems)} failed, {len(skipped)} skipped")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    beside.end_on_signals()
    sys.exit(main())
