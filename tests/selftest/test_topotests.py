# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on FRR's topotests (tests/topotests): which differences between the kernel's run and
the dataplane's run are problems."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from lib import results

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(TESTS, "topotests"))
import modules  # noqa: E402
import verdict  # noqa: E402
from sysctls import Sysctls  # noqa: E402
from verdict import Run  # noqa: E402

GOOD = {"m::a": "passed", "m::b": "passed"}


def with_dataplane(outcome, **more):
    """Return a run with a dataplane in one router."""
    return Run(dict(outcome), **{"routers": ["r1"], "audited": 1, **more})


def test_equal_runs_have_no_problem():
    """A test that passes in both runs counts."""
    result = verdict.compare(Run(GOOD), with_dataplane(GOOD))
    assert (result.passed, result.problems, result.not_judged) == (2, [], [])


@pytest.mark.parametrize("outcome", ["failed", "skipped", None])
def test_a_test_that_passes_with_the_kernel_must_pass(outcome):
    """A test that fails, is skipped or is missing with the dataplane is a problem if it passes with
    the kernel."""
    ours = {"m::a": "passed", **({"m::b": outcome} if outcome else {})}
    result = verdict.compare(Run(GOOD), with_dataplane(ours))
    assert result.passed == 1 and len(result.problems) == 1 and "m::b" in result.problems[0]


def test_a_test_that_fails_with_the_kernel_is_not_judged():
    """A failure with the kernel says nothing about the dataplane."""
    kernel = Run({"m::a": "failed", "m::b": "passed"})
    result = verdict.compare(kernel, with_dataplane(kernel.outcome))
    assert (result.passed, result.problems, result.not_judged) == (1, [], ["m::a"])


def test_a_test_passes_if_it_passes_in_one_of_two_runs():
    """A test passes if it passes in one of two runs. A fault of a daemon in either run stays."""
    first = with_dataplane(
        {"m::a": "failed", "m::b": "passed"}, faults=["the audit of r1 differs"]
    )
    second = with_dataplane(
        {"m::a": "passed", "m::b": "failed"}, answered={"r1>192.0.2.1": True}
    )
    both = verdict.best(first, second)
    assert both.outcome == GOOD and both.faults == first.faults
    assert both.answered == second.answered and both.routers == ["r1"]


def test_an_address_that_answers_with_the_kernel_must_answer():
    """A ping that only the kernel's run answered is a problem. A ping without an answer in both runs
    is none."""
    kernel = Run(GOOD, answered={"r1>192.0.2.1": True, "r1>192.0.2.2": False})
    ours = with_dataplane(GOOD, answered={"r1>192.0.2.1": False, "r1>192.0.2.2": False})
    problems = verdict.compare(kernel, ours).problems
    assert len(problems) == 1 and "r1>192.0.2.1" in problems[0]


def test_a_run_that_shows_nothing_is_a_problem():
    """Tests that pass without a dataplane, without an audit, or with KILL=1 and no kill show
    nothing."""
    count = lambda run, **more: len(
        verdict.compare(Run(GOOD), run, **more).problems
    )  # noqa: E731
    assert count(Run(GOOD)) == 2
    assert (
        count(with_dataplane(GOOD, routers=[]))
        == count(with_dataplane(GOOD, audited=0))
        == 1
    )
    assert count(with_dataplane(GOOD), kill=True) == 1
    assert count(with_dataplane(GOOD, killed=3), kill=True) == 0


def events_of(**event):
    """Return a run with one event."""
    run = with_dataplane(GOOD)
    verdict._take_event(run, event)  # pylint: disable=protected-access
    return run


FAULTS = {
    "audit": {
        "event": "test",
        "test": "x/m.py::a",
        "audited": ["r1"],
        "audits": {"r1": "differs"},
        "dead": [],
        "pids": {"r1": 1},
    },
    "ended": {
        "event": "test",
        "test": "x/m.py::a",
        "audited": [],
        "audits": {},
        "dead": ["r1"],
        "pids": {"r1": None},
    },
    "silent": {
        "event": "test",
        "test": "x/m.py::a",
        "audited": [],
        "audits": {},
        "dead": [],
        "pids": {"r1": None},
    },
    "last audit": {"event": "end", "router": "r1", "audit": "differs"},
    "exit code": {"event": "ended", "router": "r1", "code": -11},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_daemon_is_a_problem(name):
    """An audit that is not equal, a daemon that ends or does not answer: each is one problem,
    although all tests pass."""
    result = verdict.compare(Run(GOOD), events_of(**FAULTS[name]))
    assert result.passed == 2 and len(result.problems) == 1 and "r1" in result.problems[0]


def test_a_run_is_read_from_its_files(tmp_path):
    """junit.xml and events.jsonl give the outcome; a run that left no such file is a fault."""
    assert verdict.load(str(tmp_path)).faults != []
    (tmp_path / "junit.xml").write_text(
        "<testsuites><testsuite>"
        '<testcase classname="x.m" name="a"/>'
        '<testcase classname="x.m" name="b"><failure message="no route&#10;more"/></testcase>'
        '<testcase classname="x.m" name="c"><skipped message="no MPLS"/></testcase>'
        "</testsuite></testsuites>"
    )
    event = {"event": "reach", "answered": {"r1>192.0.2.1": True}}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    run = verdict.load(str(tmp_path))
    assert run.outcome == {"m::a": "passed", "m::b": "failed", "m::c": "skipped"}
    assert (
        run.why == {"m::b": "no route"}
        and run.answered == event["answered"]
        and run.faults == []
    )
    assert Run(**json.loads(json.dumps(run.as_dict()))) == run


class Ended:
    """A job of the suite that has ended."""

    def __init__(self, text, code):
        self.text, self.code = text, code

    def output(self):
        return self.text


def test_the_suite_reads_the_last_line():
    """The suite counts the tests and names the problems."""
    text = (
        "rip_topo1 kernel      4 passed, 0 failed, 0 skipped in 30 s, 5 s of CPU\n"
        "rip_topo1 dataplane   3 passed, 1 failed, 0 skipped in 31 s, 6 s of CPU: 1 problems\n"
        "skipped: m: this kernel has no VRFs\nFAILED rip_topo1: m::a\n"
        "topotests: took 61 s\ntopotests: 3 passed, 1 failed, 1 skipped\n"
    )
    result = results.of_topotests(Ended(text, 1))
    assert (result.passed, result.failed, result.skipped) == (3, 1, 1)
    assert result.names == ["rip_topo1: m::a"] and result.reasons == [
        "m: this kernel has no VRFs"
    ]
    assert result.cases == [(30.0, "rip_topo1 kernel"), (31.0, "rip_topo1 dataplane")]
    assert results.of_topotests(Ended("no Python", 1)).failed == 1


def test_a_run_with_bfd_in_the_dataplane_must_have_a_session_there():
    """A run without a BFD session in a dataplane shows nothing about BFD."""
    none = verdict.compare(Run(GOOD), with_dataplane(GOOD), bfd=True)
    assert none.problems == ["no BFD session was in a dataplane"]
    assert verdict.compare(Run(GOOD), with_dataplane(GOOD, sessions=2), bfd=True).problems == []


@pytest.fixture(name="topotests")
def _topotests(monkeypatch, tmp_path):
    """Return tests/topotests/run.py. Its runs have the outcomes of `script`: {mode: [Run, ...]}."""
    spec = importlib.util.spec_from_file_location("topotests_run", f"{TESTS}/topotests/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.script = {}

    def run(jobs, _):
        for job in jobs:
            job.took = job.cpu = 0
            yield job, module.script[job.name.split()[-1]].pop(0)

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "frr_version", lambda: "8.4")
    monkeypatch.setattr(module.Module, "kept", str(tmp_path))
    return module


@pytest.mark.parametrize("name, must", [("rip_topo1", True), ("pbr_topo1", False)])
def test_a_failure_with_the_kernel_is_no_reference(topotests, name, must):
    """A kernel run with a failure is not stored, so the next call tries again and can judge the test. In
    a module of MUST the test counts as failed, in other modules as skipped."""
    bad = {"m::a": "failed", "m::b": "passed"}
    topotests.script = {"kernel": [Run(bad), Run(bad)], "dataplane": [with_dataplane(GOOD)]}
    busy = topotests.Module(name, "")
    topotests.references([busy], "")
    passed, problems, skipped = topotests.judge([busy], "", False)

    assert passed == 1 and not os.path.exists(busy.reference_file())
    assert [bool(problems), bool(skipped)] == [must, not must]
    assert (problems or skipped)[0].startswith(f"{name}: m::a fails with the kernel")

    busy.keep_reference(Run(bad))  # as earlier versions did
    topotests.script = {"kernel": [Run(GOOD)], "dataplane": [with_dataplane(bad)] * 2}
    free = topotests.Module(name, "")
    topotests.references([free], "")
    passed, problems, skipped = topotests.judge([free], "", False)

    assert free.reference() == Run(GOOD) and (passed, skipped) == (1, [])
    assert len(problems) == 1 and "m::a passes with the kernel" in problems[0]


def test_the_lists_name_each_module_once():
    """A module is in one list. VRFs select the lists that need them."""
    names = [*modules.QUICK, *modules.MORE, *modules.VRF_QUICK, *modules.VRF_MORE, *modules.MPLS_MORE]
    assert len(names) == len(set(names)) and all(
        re.fullmatch(r"[\w/.]+(\+bfd)?", name) for name in names
    )
    for full in (False, True):
        there, absent = modules.chosen(full, has_vrf=False, has_mpls=True)
        assert modules.chosen(full, has_vrf=True, has_mpls=True) == (there + absent, [])
        without_mpls = modules.MPLS_MORE if full else []
        assert modules.chosen(full, has_vrf=True, has_mpls=False)[1] == without_mpls


def sysctl_here(*words):
    """Return the output of sysctl in this process's namespace."""
    return subprocess.run(["sysctl", *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="it makes a network namespace")
def test_a_sysctl_of_a_router_is_read_and_written_in_its_namespace():
    """A value that is written for a router is in its namespace, and this machine's value stays."""
    name = "net.ipv4.conf.all.arp_notify"
    before = sysctl_here("-n", name)
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; cat"], stdin=-1, stdout=-1) as router:
        router.stdout.readline()  # it is in its namespace
        commands = Sysctls(router)
        assert commands.cmd_raises(f"sysctl -n {name}").strip() == "0"
        commands.cmd_raises(f'sysctl -w {name}="1"\n')
        assert commands.cmd_raises(f"sysctl -n {name}").strip() == "1"
        there = ["nsenter", "-t", str(router.pid), "--net", "sysctl", "-n", name]
        assert subprocess.run(there, capture_output=True, text=True, check=True).stdout == "1\n"
        with pytest.raises(subprocess.CalledProcessError):
            commands.cmd_raises("sysctl -n net.ipv4.no_such_sysctl")
        router.stdin.close()
    assert sysctl_here("-n", name) == before
