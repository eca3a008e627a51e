# SPDX-License-Identifier: BSD-3-Clause
"""What `make` says where something is not there: skipped with a reason, and never unseen."""

import os
import subprocess
import sys
from pathlib import Path

import abreast

from lib.dataplane import ROOT

ALL = os.path.join(ROOT, "tests", "all.py")


def make(*words):
    return subprocess.run(["make", "-s", *words], cwd=ROOT, capture_output=True, text=True)


def test_containers_are_skipped_where_no_engine_answers():
    """The image itself is an error: somebody asked for it."""
    done = make("test-image", "CONTAINERS=")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "test-image: skipped: neither docker nor podman answers here\n"
    assert make("image", "CONTAINERS=").returncode != 0


def test_the_last_line_says_what_could_not_be_fetched(tmp_path):
    """Tests of the metrics page are skipped then; all others run."""
    fake = tmp_path / "make"
    fake.write_text('#!/bin/sh\n[ "$1" != prometheus ] || { echo "E: no network"; exit 1; }\n'
                    'echo "$1: 3 passed"\n')  # fmt: skip
    fake.chmod(0o755)

    done = subprocess.run([sys.executable, ALL, fake], capture_output=True, text=True)

    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert last.startswith("all tests passed (no prometheus, without its tests: E: no network; ")
    assert "; system: 3 passed; " in last


def test_of_files_abreast_each_is_run_once_and_no_failure_is_unseen(tmp_path):
    """A file of which pytest wrote no report, or that ended badly after its last test, has failed
    as well."""
    there = sorted(f"tests/system/{p.name}" for p in (Path(ROOT) / "tests/system").glob("test_*.py"))
    jobs = abreast.files()
    assert sorted(sum(jobs.values(), [])) == there
    assert jobs["machine"] == [f"tests/system/test_{name}.py" for name in abreast.TOGETHER]

    report = tmp_path / "report.xml"
    went = lambda code: dict(+abreast.how_it_went(report, code))  # noqa: E731
    assert went(0) == went(1) == {"failed": 1} and went(abreast.NO_TESTS) == {}
    suite = '<testsuite tests="9" errors="{}" failures="{}" skipped="2"/>'
    report.write_text(f"<testsuites>{suite.format(0, 0)}</testsuites>")
    assert went(0) == {"passed": 7, "skipped": 2} and went(1)["failed"] == 1
    report.write_text(f"<testsuites>{suite.format(1, 2)}</testsuites>")
    assert went(1) == {"passed": 4, "failed": 3, "skipped": 2}
