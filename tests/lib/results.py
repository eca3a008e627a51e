# SPDX-License-Identifier: BSD-3-Clause
"""The result of a job of the suite: counts, cases with their times, failures by name. Each kind of
job has a reader, which takes the ended job (lib/beside.py) and returns a Result."""

import re
import xml.etree.ElementTree
from dataclasses import dataclass, field

OUTCOMES = ("passed", "failed", "skipped")
NO_TESTS = 5  # exit code of pytest: no test was left to run


@dataclass
class Result:
    """The counts of test cases, and the names and reasons for a report."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    cases: list = field(default_factory=list)  # (seconds, name)
    names: list = field(default_factory=list)  # of failures, with the first line of the reason
    reasons: list = field(default_factory=list)  # of skipped cases
    outcome: dict = field(default_factory=dict)  # {(file, test): outcome}, of pytest


def by_exit_code(job):
    """Read a job that is one case, such as lint. A target that the machine cannot run prints
    `target: skipped: reason`."""
    reasons = re.findall(r"^[\w-]+: skipped: (.*)$", job.output(), re.M)
    if job.code == 0 and reasons:
        return Result(skipped=1, reasons=reasons, cases=[(job.took, job.name)])
    if job.code == 0:
        return Result(passed=1, cases=[(job.took, job.name)])
    return Result(failed=1, names=[f"exit code {job.code}"], cases=[(job.took, job.name)])


def of_build(job):
    """Read a build, which counts only if it fails."""
    return Result() if job.code == 0 else by_exit_code(job)


def of_pytest(job):
    """Read the report that pytest wrote to job.report. A job without a report has failed."""
    result = Result()
    try:
        root = xml.etree.ElementTree.parse(job.report).getroot()
        cases = list(root.iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        cases = []
    # A case that failed and whose fixtures failed too is listed twice.
    # A case that began and did not end, because a signal ended pytest, has no name.
    for case in [case for case in cases if case.get("name")]:
        key = (case.get("classname"), case.get("name"))
        tags = {child.tag: child for child in case}
        bad = tags.get("failure", tags.get("error"))
        this = "failed" if bad is not None else "skipped" if "skipped" in tags else "passed"
        if bad is not None and result.outcome.get(key) != "failed":
            why = (bad.get("message") or "").splitlines()[:1]
            result.names.append(f"{key[0]}::{key[1]}: {' '.join(why)}")
        if this == "skipped":
            result.reasons.append(tags["skipped"].get("message") or "no reason")
        if result.outcome.get(key) != "failed":
            result.outcome[key] = this
        result.cases.append((float(case.get("time") or 0), f"{key[0].rpartition('.')[2]}::{key[1]}"))
    for outcome in OUTCOMES:
        setattr(result, outcome, list(result.outcome.values()).count(outcome))
    none = job.code in (0, NO_TESTS) and not cases
    if not result.failed and (none or job.code not in (0, NO_TESTS)):
        result.failed = 1
        by = "".join(re.findall(r": KeyboardInterrupt(: .*)$", job.output(), re.M)[:1])
        result.names.append(f"pytest ended with code {job.code} after {len(cases)} cases{by}")
    return result


def of_tier(job):
    """Read the last line of a tier (suite.py) that a target ran, as test-trixie does, and the reasons of
    skipped tests."""
    text = job.output()
    last = re.findall(r"^[\w-]+: (\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    if not last:
        return by_exit_code(job)
    result = Result(*(int(n) for n in last[-1]), [(job.took, job.name)])
    result.reasons = re.findall(r"^skipped: (.*)$", text, re.M)
    if job.code != 0 and not result.failed:
        result.failed = 1
    if result.failed:
        result.names = [f"{result.failed} failed: see the end of this job's output"]
    return result


def of_unit(job):
    """Read the output of tests/unit/run.sh. A target that the machine cannot run is one skipped case."""
    result = Result()
    text = job.output()
    if re.search(r"^[\w-]+: skipped: ", text, re.M):
        return by_exit_code(job)
    for name, passed, skipped, seconds in re.findall(
        r"^unit \S+ +(\S+) +(\d+) passed, (\d+) skipped, ([\d.]+) s$", text, re.M
    ):
        result.passed += int(passed)
        result.skipped += int(skipped)
        result.cases.append((float(seconds), name))
    result.reasons = re.findall(r"^ +skipped: (.*)$", text, re.M)
    result.names = [" ".join(name.split()) for name in re.findall(r"^unit \S+ +(\S+ +FAILED.*)$", text, re.M)]
    result.failed = len(result.names)
    if job.code != 0 and not result.failed:
        result.failed, result.names = 1, [f"exit code {job.code}"]
    return result


def of_fuzz(job):
    """Read the output of tests/fuzz/run.sh."""
    text = job.output()
    clean = re.findall(r"^fuzz: (\S+) clean, \d+ inputs in (\d+) s", text, re.M)
    bad = re.findall(r"^fuzz: (\S+ FAILED.*)$", text, re.M)
    if job.code != 0 and not bad:
        bad = [f"exit code {job.code}"]
    return Result(len(clean), len(bad), 0, [(float(s), name) for name, s in clean], bad)


def of_guests(job):
    """Read the last line of tests/vm/run.py, and the output of pytest in the guests' logs."""
    text = job.output()
    last = re.findall(r"^test-vm[\w-]*: (\d+) passed(?:, (\d+) failed)?(?:, (\d+) skipped)?", text, re.M)
    passed, failed, skipped = (int(n or 0) for n in last[-1]) if last else (0, 0, 0)
    result = Result(passed, failed, skipped, [(job.took, job.name)])
    result.names = re.findall(r"^(?:FAILED|ERROR) (\S+::.*)$", text, re.M)
    result.reasons = re.findall(r"^test-vm[\w-]*: skipped: (.*)$", text, re.M)
    if job.code != 0 and not result.failed:
        result.failed, result.names = 1, [f"exit code {job.code}"]
    return result


def of_topotests(job):
    """Read the output of tests/topotests/run.py."""
    text = job.output()
    last = re.findall(r"^topotests: (\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    result = Result(*(int(n) for n in last[-1])) if last else Result()
    runs = re.findall(r"^(\S+ (?:kernel|dataplane)\S*) .* in (\d+) s,", text, re.M)
    result.cases = [(float(seconds), name) for name, seconds in runs]
    result.names = re.findall(r"^FAILED (.*)$", text, re.M)
    result.reasons = re.findall(r"^(?:topotests: )?skipped: (.*)$", text, re.M)
    if job.code != 0 and not result.failed:
        result.failed, result.names = 1, [f"exit code {job.code}"]
    return result
