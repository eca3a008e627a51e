# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a module: the difference between a run with the dataplane and the kernel's run.

A test that passes with the kernel must pass with the dataplane. An address that answers with the
kernel must answer with the dataplane. A module with a failure runs again, in either mode. All
audits must find no difference, and no daemon may end by itself. A test that fails with the kernel
is not judged here; run.py decides whether this is a failure.
"""

import xml.etree.ElementTree
from dataclasses import dataclass, field, replace

import events


@dataclass
class Run:
    """The outcome of one run of a module."""

    outcome: dict = field(default_factory=dict)  # {test: passed, failed or skipped}
    why: dict = field(default_factory=dict)  # {test: first line of the reason}
    answered: dict = field(default_factory=dict)  # {"r1>192.0.2.1": bool} of reach.py
    faults: list = field(default_factory=list)  # of the dataplane, as sentences
    routers: list = field(default_factory=list)  # routers that got a dataplane
    killed: int = 0  # times that a dataplane was killed
    audited: int = 0  # audits that compared a zebra with its dataplane
    sessions: int = 0  # the most BFD sessions in the dataplanes after a test

    def count(self, outcome):
        """Return the number of tests with this outcome."""
        return list(self.outcome.values()).count(outcome)

    def as_dict(self):
        """Return the run for a JSON file; Run(**...) reads it."""
        return dict(vars(self))


def load(folder):
    """Read the run that left junit.xml and events.jsonl in a folder."""
    run = Run()
    try:
        cases = (
            xml.etree.ElementTree.parse(f"{folder}/junit.xml").getroot().iter("testcase")
        )
        for case in cases:
            if case.get("name"):  # else a signal ended pytest within this case
                _take_case(run, case)
    except (OSError, xml.etree.ElementTree.ParseError):
        run.faults.append(f"the run ended without a report: {folder}/pytest.log")
    for event in events.read(folder):
        _take_event(run, event)
    return run


def _take_case(run, case):
    """Take one case of junit.xml. A test that failed and whose fixture failed is listed twice."""
    name = f"{case.get('classname').rpartition('.')[2]}::{case.get('name')}"
    tags = {child.tag: child for child in case}
    bad = tags.get("failure", tags.get("error"))
    if bad is not None:
        run.outcome[name] = "failed"
        run.why[name] = ((bad.get("message") or "").splitlines() or [""])[0][:200]
    elif run.outcome.get(name) != "failed":
        run.outcome[name] = "skipped" if "skipped" in tags else "passed"


def _take_event(run, event):
    """Take one line of events.jsonl."""
    kind = event["event"]
    if kind == "test":
        test = event["test"].rpartition("/")[2]
        run.audited += len(event["audited"])
        run.sessions = max(run.sessions, event.get("sessions", 0))
        for router, said in event["audits"].items():
            run.faults.append(f"{test}: the audit of {router} is not equal: {_short(said)}")
        for router in event["dead"]:
            run.faults.append(f"{test}: the supervisor of {router} has ended")
        silent = [
            r for r, pid in event["pids"].items() if pid is None and r not in event["dead"]
        ]
        for router in silent:
            run.faults.append(f"{test}: the daemon of {router} does not answer")
    elif kind == "end" and event["audit"]:
        run.faults.append(
            f"end: the audit of {event['router']} is not equal: {_short(event['audit'])}"
        )
    elif kind == "ended" and event["code"] != 0:
        run.faults.append(
            f"end: the daemon of {event['router']} ended with {event['code']}"
        )
    elif kind == "inserted":
        run.routers += event["routers"]
    elif kind == "killed":
        run.killed += len(event["pids"])
    elif kind == "reach":
        run.answered.update(event.get("answered", {}))


def _short(text):
    return " ".join(text.split())[:300]


@dataclass
class Verdict:
    """The comparison of two runs."""

    passed: int = 0
    problems: list = field(default_factory=list)  # as sentences
    not_judged: list = field(default_factory=list)  # tests that fail with the kernel


def compare(kernel, dataplane, kill=False, bfd=False):
    """Judge a run with the dataplane by the kernel's run. With `kill` daemons have been killed;
    with `bfd` the sessions were in the dataplanes."""
    verdict = Verdict(problems=list(dataplane.faults))
    if dataplane.count("passed"):
        verdict.problems += _missing(dataplane, kill, bfd)
    for test, outcome in kernel.outcome.items():
        now = dataplane.outcome.get(test, "missing")
        if outcome == "failed":
            verdict.not_judged.append(test)
        elif outcome == "passed" and now != "passed":
            why = dataplane.why.get(test, "")
            verdict.problems.append(
                f"{test} passes with the kernel, {now} with the dataplane: {why}"
            )
        elif outcome == "passed":
            verdict.passed += 1
    # A test that fails leaves another state of the network, so the pings are not comparable.
    if not verdict.problems:
        lost = [
            p
            for p, answered in kernel.answered.items()
            if answered and dataplane.answered.get(p) is False
        ]
        verdict.problems += [
            f"ping {pair} is answered with the kernel, not with the dataplane"
            for pair in lost
        ]
    return verdict


def _missing(run, kill, bfd):
    """Return what a run with passed tests should have had: without it the run shows nothing."""
    return [
        text
        for text, there in {
            "no router got a dataplane": run.routers,
            "no audit compared anything": run.audited,
            "no dataplane was killed": run.killed or not kill,
            "no BFD session was in a dataplane": run.sessions or not bfd,
        }.items()
        if not there
    ]


def best(first, second):
    """Combine two runs of a module in one mode, because some of FRR's tests fail now and then. A
    test passes if it passes once. The faults of both count. All else is from the run with more
    passed tests, the second if they have as many."""
    one, other = sorted((second, first), key=lambda run: -run.count("passed"))
    good = {test: how for test, how in other.outcome.items() if how == "passed"}
    return replace(
        one, outcome={**one.outcome, **good}, faults=first.faults + second.faults
    )
