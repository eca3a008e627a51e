# SPDX-License-Identifier: BSD-3-Clause
"""What `make` says where something is not there: skipped with a reason, and never unseen."""

import os
import subprocess
import sys
from pathlib import Path

import abreast
import pytest

from lib.dataplane import ROOT
from lint import analyze

ALL = os.path.join(ROOT, "tests", "all.py")


def make(*words):
    """Without the words of a make that runs these tests, -j among them."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", "-s", *words], cwd=ROOT, env=env, capture_output=True, text=True)


def test_containers_are_skipped_where_no_engine_answers():
    """The image itself is an error: somebody asked for it."""
    done = make("test-image", "CONTAINERS=")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "test-image: skipped: neither docker nor podman answers here\n"
    assert make("image", "CONTAINERS=").returncode != 0


def all_lines(tmp_path, script):
    """(exit code, lines) of all parts, with a shell script for make."""
    fake = tmp_path / "make"
    fake.write_text(f'#!/bin/sh\n{script}\necho "$1: 3 passed"\n')
    fake.chmod(0o755)
    done = subprocess.run([sys.executable, ALL, fake], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def all_parts(tmp_path, script):
    """(exit code, last line) of them."""
    code, lines = all_lines(tmp_path, script)
    return code, lines[-1]


def test_the_last_line_says_what_could_not_be_fetched(tmp_path):
    """Tests of the metrics page are skipped then; all others run."""
    code, last = all_parts(
        tmp_path, '[ "$1" != prometheus ] || { echo "E: no network"; exit 1; }'
    )

    assert code == 0
    assert last.startswith("all tests passed (no prometheus, without its tests: E: no network; ")
    assert "; system: 3 passed; " in last


def test_the_end_names_what_failed_and_why(tmp_path):
    """Of parts that failed, once each, without colours, above the verdict."""
    fails = """case $1 in
    lint) echo "FAILED a.py::of_a_part_that_passed" ;;
    unit) echo "unit release  test_fib   FAILED"; echo "unit: 1 failed"; exit 1 ;;
    system) printf '\033[31mFAILED\033[0m t.py::\033[1mtest_a\033[0m - AssertionError: %s\n' it it
        echo "ERROR t.py::test_b - OSError"; printf '=== 2 failed ==='; exit 1 ;;
    esac"""
    code, (*_, empty, unit, one, other, verdict) = all_lines(tmp_path, fails)

    assert (empty, unit) == ("", "unit: unit release  test_fib   FAILED")
    assert one == "system: FAILED t.py::test_a - AssertionError: it"
    assert other == "system: ERROR t.py::test_b - OSError"
    assert code == 1 and verdict.startswith("FAILED: unit, system (")


def test_parts_that_ran_nothing_are_no_tests_that_passed(tmp_path):
    """The machine lacks what they need: the exit code is 0, and the verdict names them. A part of
    which some tests ran, or that failed, is not among them."""
    less = """case $1 in
    fuzz-quick | test-vm) echo "${1%-quick}: skipped: not installable here: it"; exit ;;
    system) echo "SKIPPED [9] tests/a.py:7: system tests need root (TAPs)"; echo
        echo "===== 9 skipped in 0.4s ====="; exit ;;
    system-asan) echo "system-asan: 9 skipped in 4 s"; exit ;;
    unit-*) echo "unit x: 0 passed, 4 skipped, 0 of 1 programs failed, 1 s"; exit ;;
    unit) echo "unit release: 10 passed, 4 skipped, 0 of 2 programs failed, 1 s"; exit ;;
    esac"""

    code, last = all_parts(tmp_path, less)

    assert code == 0
    idle = "unit-asan, unit-tsan, fuzz-quick, system, system-asan, test-vm"
    assert last.startswith(f"all tests passed, but for those not run here: {idle} (lint: 3 passed; ")
    assert "; system: 9 skipped in 0.4s: system tests need root (TAPs); system-asan: 9 s" in last

    code, last = all_parts(tmp_path, f'[ "$1" != lint ] || exit 1\n{less}')
    assert code == 1 and last.startswith(f"FAILED: lint; not run here: {idle} (lint: no output; ")


def test_of_files_abreast_each_is_run_once_and_no_failure_is_unseen(tmp_path):
    """A file of which pytest wrote no report, or that ended badly after its last test, has failed
    as well."""
    there = {f"tests/system/{p.name}" for p in (Path(ROOT) / "tests/system").glob("test_*.py")}
    path = "tests/system/test_{}.py".format
    jobs = abreast.files()
    assert all(jobs.values()) and set(abreast.ALONE + abreast.LONGEST) < set(jobs)
    assert sorted(sum(jobs.values(), [])) == sorted(there - set(map(path, abreast.NOT_HERE)))
    assert jobs["machine"] == list(map(path, abreast.TOGETHER))

    report = tmp_path / "report.xml"
    went = lambda code, words="": dict(abreast.how_it_went(report, code, words))  # noqa: E731
    none = abreast.NO_TESTS
    assert went(1) == went(none) == {"failed": 1} and went(none, "words") == {}
    assert went(0) == {"failed": 1}
    case = '<testcase classname="file" name="{}">{}</testcase>'.format
    good = case("a", "") + case("b", "") + case("c", "<skipped/>")
    report.write_text(f"<testsuites><testsuite>{good}</testsuite></testsuites>")
    assert went(0) == {"passed": 2, "skipped": 1}
    assert went(1) == went(124) == {"passed": 2, "skipped": 1, "failed": 1}
    bad = case("d", "<failure/>") + case("d", "<error/>") + case("e", "<error/>") + case("f", "")
    report.write_text(f"<testsuites><testsuite>{good}{bad}</testsuite></testsuites>")
    assert went(1) == {"passed": 3, "skipped": 1, "failed": 2}

    must = {(f"tests.system.test_{file}", f"test_{name}[x]"): "passed"
            for file, names in abreast.NEVER_SKIPPED.items() for name in names.split()}  # fmt: skip
    assert len(must) > 20 and abreast.skipped_though(must) == []
    assert len(abreast.skipped_though({**must, next(iter(must)): "skipped"})) == 1


SOURCE = "static int\nf(void)\n{\n\treturn 1;\n\treturn 2;\n}\n\nint\ng(void)\n{\n\treturn f();\n}\n"


@pytest.fixture
def analyzed(tmp_path, monkeypatch, capsys):
    """analyzed(known, gcc=..., cppcheck=..., tidy=...): (exit code, lines) of an analysis of a file
    with functions f and g, by such shell scripts; a tool without one has nothing to say."""
    programs = {"gcc": "gcc", "cppcheck": "cppcheck", "tidy": "clang-tidy-14"}
    (tmp_path / "x.c").write_text(SOURCE)
    monkeypatch.setattr(analyze, "ROOT", tmp_path)
    monkeypatch.setattr(analyze, "sources", lambda: ["x.c"])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    analyze.heads.cache_clear()

    def look(known, **scripts):
        monkeypatch.setattr(analyze, "KNOWN", dict.fromkeys(known, "why"))
        for tool, program in programs.items():
            (tmp_path / program).write_text(f"#!/bin/sh\n{scripts.get(tool, '')}\n")
            (tmp_path / program).chmod(0o755)
        code = analyze.main([str(tmp_path / "gcc"), "--"])
        return code, capsys.readouterr().out.splitlines()

    yield look
    analyze.heads.cache_clear()


SAID = {
    "gcc": ("echo 'x.c:{}:1: warning: leak of a [CWE-401] [-Wanalyzer-malloc-leak]' >&2", "malloc-leak"),
    "cppcheck": ("echo 'x.c:{}:memleak:Memory leak: a' >&2", "memleak"),
    "tidy": ('echo "$PWD/x.c:{}:1: warning: a is lost [bugprone-a]"', "bugprone-a"),
}


@pytest.mark.parametrize("tool", SAID)
def test_an_analyzer_that_fails_is_not_clean(analyzed, tool):
    """It is killed, or refuses what it is asked, whatever it found before: that is a problem, and
    what it said of it is shown."""
    finding, check = SAID[tool]
    known = [(tool, "x.c", "f", check, 1)]
    one = finding.format(4)

    assert analyzed(known, **{tool: one}) == (0, ["analyze: 1 C files, 1 known, 0 problem(s)"])
    code, lines = analyzed(known, **{tool: f"{one}; kill -SEGV $$"})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("x.c:1: exit code -11: ")
    code, lines = analyzed([], **{tool: "echo fatal error: no such file; echo end; exit 1"})
    assert code == 1
    assert lines[0] == f"x.c:1: exit code 1: fatal error: no such file [{tool}: failed]"


@pytest.mark.parametrize("tool", SAID)
def test_a_reason_is_for_one_finding(analyzed, tool):
    """The same check's in another function shows, and so does a second one in that function, and
    a reason for which there is none any more."""
    finding, check = SAID[tool]
    known = [(tool, "x.c", "f", check, 1)]
    at = lambda *lines: {tool: "; ".join(finding.format(n) for n in lines)}  # noqa: E731

    code, lines = analyzed(known, **at(4, 11))
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("x.c:11: ") and lines[0].endswith(f"[{tool}: {check} in g]")
    code, lines = analyzed(known, **at(4, 5, 5))
    assert code == 1 and [line[:6] for line in lines[:-1]] == ["x.c:4:", "x.c:5:"]
    assert lines[0].endswith(f"[{tool}: {check} in f, 1 known, 2 found]")
    code, lines = analyzed(known)
    assert code == 1 and lines[0].startswith("x.c: no such finding any more")
    assert analyzed([(tool, "x.c", "f", check, 2)], **at(4, 5))[0] == 0
