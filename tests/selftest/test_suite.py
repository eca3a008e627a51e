# SPDX-License-Identifier: BSD-3-Clause
"""The runner of the tiers loses no test, reports each failure, and gives a reason for each skip."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import alone
import shards
import suite
import tiers
from lib import beside, results, resume
from lib.dataplane import ROOT

SYSTEM = Path(ROOT, "tests/system")


def make(*words):
    """Run make without the options of a make that runs these tests, such as -j."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", "-s", *words], cwd=ROOT, env=env, capture_output=True, text=True)


def test_containers_are_skipped_where_no_engine_answers():
    """The suite skips container tests if no engine answers. `make image` fails then, because the
    user asked for it."""
    done = make("test-image", "CONTAINERS=")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "test-image: skipped: neither docker nor podman answers here\n"
    assert make("image", "CONTAINERS=").returncode != 0


REFUSED = "requested access to the resource is denied"


@pytest.mark.parametrize("has, pulls, cause", [(0, 1, ""), (1, 0, ""), (1, 1, "lookup x: no such host"), (1, 1, REFUSED)])
def test_containers_are_skipped_where_no_registry_answers(tmp_path, has, pulls, cause):
    """The suite skips container tests if the engine lacks the base image and no registry of images
    answers. If it does not get the image for another reason, that is a failure."""
    engine, builder = tmp_path / "engine", tmp_path / "make"
    engine.write_text(f"#!/bin/sh\n[ $1 = image ] && exit {has}; echo {cause}; exit {pulls}\n")
    builder.write_text('#!/bin/sh\necho "$@"\n')
    for program in (engine, builder):
        program.chmod(0o755)
    argv = ["tests/lib/image.sh", engine, "bookworm", builder, "-x"]

    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)

    if not cause:
        assert (done.returncode, done.stdout) == (0, "-x image test-image-run\n")
        return
    assert done.stderr == f"{cause}\n"
    assert done.returncode == int(cause == REFUSED)
    assert done.stdout.startswith(f"test-image: {'FAILED' if done.returncode else 'skipped'}: ")


def test_each_system_test_is_in_one_shard_or_runs_alone():
    """Each system test is in one shard or runs alone. A file that is cut has all its parts."""
    there = {path.name for path in SYSTEM.glob("test_*.py")}
    found, parts = [], {}
    for _, paths, part in shards.shards():
        for path in paths:
            if part:
                parts.setdefault(path, []).append(part)
            else:
                found.append(os.path.basename(path))
    for path, cut in parts.items():
        n = len(cut)
        assert sorted(cut) == sorted(f"{i}/{n}" for i in range(n)), path
        found.append(os.path.basename(path))
    whole, tests = shards.alone()
    assert sorted([*found, *map(os.path.basename, whole)]) == sorted(there)
    selftests = [f"tests/selftest/{key}" for key in alone.SELFTEST]
    for test in [*whole, *tests, *selftests]:
        name, _, case = test.partition("::")
        assert f"def {case}(" in Path(ROOT, name).read_text() if case else Path(ROOT, name).exists()
    assert all(len(reason) > 20 for reason in {**alone.ALONE, **alone.SELFTEST}.values())


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_parts_of_a_file_have_each_test_once(n, tmp_path):
    """The parts into which conftest.py cuts a file have each test once."""
    sys.path.insert(0, str(SYSTEM))
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = [{str(SYSTEM)!r}, {str(SYSTEM.parent)!r}]\n"
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('c', {str(SYSTEM / 'conftest.py')!r})\n"
        "c = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(c)\n"
        "pytest_collection_modifyitems = c.pytest_collection_modifyitems\n"
    )
    (tmp_path / "test_a.py").write_text("".join(f"def test_{i}():\n    pass\n" for i in range(5)))
    ran = []
    for i in range(n):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", str(tmp_path)],
            env={**os.environ, "FDP_SHARD": f"{i}/{n}"}, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        ran += [line.split("::")[1].split()[0] for line in done.stdout.splitlines() if "PASSED" in line]
    assert sorted(ran) == [f"test_{i}" for i in range(5)]


def job(code, report=None, output=""):
    """Return an ended job."""
    return SimpleNamespace(
        name="job", code=code, took=1.0, report=report, output=lambda: output, begin=0.0
    )


def test_pytest_without_a_report_or_that_ends_badly_has_failed(tmp_path):
    """pytest without a report, or with a bad exit code, has failed, even if the cases in its report
    passed."""
    report = tmp_path / "report.xml"
    count = lambda code: [getattr(results.of_pytest(job(code, report)), o) for o in results.OUTCOMES]  # noqa: E731
    assert count(1) == count(0) == count(results.NO_TESTS) == [0, 1, 0]
    case = '<testcase classname="t.test_f" name="{}" time="2.5">{}</testcase>'.format
    good = case("a", "") + case("b", "") + case("c", '<skipped message="why"/>')
    report.write_text(f"<testsuites><testsuite>{good}</testsuite></testsuites>")
    assert count(0) == [2, 0, 1]
    assert count(1) == count(124) == [2, 1, 1]
    assert results.of_pytest(job(0, report)).reasons == ["why"]
    bad = case("d", '<failure message="x&#10;y"/>') + case("d", "<error/>") + case("e", "<error/>")
    report.write_text(f"<testsuites><testsuite>{good}{bad}</testsuite></testsuites>")
    assert count(1) == [2, 2, 1]
    assert results.of_pytest(job(1, report)).names[0] == "t.test_f::d: x"


def test_a_time_limit_is_a_failure_that_names_the_test_that_ran(tmp_path):
    """The report of a pytest that a signal ended has a case without a name."""
    report = tmp_path / "report.xml"
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(SYSTEM)!r})\n"
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('c', {str(SYSTEM / 'conftest.py')!r})\n"
        "c = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(c)\n"
        "pytest_configure = c.pytest_configure\n"
    )
    (tmp_path / "test_a.py").write_text(
        "import os, signal, time\n\ndef test_ends():\n    pass\n\n"
        "def test_hangs():\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={report}", "."]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    read = results.of_pytest(job(done.returncode, report, done.stdout))
    assert (read.passed, read.failed) == (1, 1), done.stdout
    assert read.names == ["pytest ended with code 2 after 2 cases: signal 15 in test_a.py::test_hangs (call)"]


def test_unit_programs_fuzzers_and_guests_are_read_as_they_print():
    """The readers of unit programs, fuzzers and guests find the counts and the names of failures in
    their output."""
    unit = results.of_unit(job(1, output=(
        "unit asan     test_fib                     12 passed, 1 skipped, 0.4 s\n"
        "    skipped: this CPU has no AVX-512\n"
        "unit asan     test_rib                     FAILED [   LINE   ] --- x.c:5: error: Failure!\n    [ERROR]\n"
    )))  # fmt: skip
    assert (unit.passed, unit.failed, unit.skipped) == (12, 1, 1)
    assert unit.reasons == ["this CPU has no AVX-512"] and unit.names == [
        "test_rib FAILED [ LINE ] --- x.c:5: error: Failure!"
    ]
    assert results.of_unit(job(2)).failed == 1
    fuzz = results.of_fuzz(job(1, output="fuzz: fuzz_fpm clean, 12 inputs in 5 s\nfuzz: fuzz_api FAILED; again\n"))
    assert (fuzz.passed, fuzz.failed) == (1, 1)
    guests = results.of_guests(job(0, output="guests: a\ntest-vm: 30 passed, 2 skipped in 80 s; not run\n"))
    assert (guests.passed, guests.failed, guests.skipped) == (30, 0, 2)
    assert results.of_guests(job(1, output="")).failed == 1


def test_a_tier_in_a_debian_root_is_read_by_its_last_line():
    """The counts of test-trixie are those of the tier that it ran. A target that cannot run is one
    skipped case, and a run without a last line has its exit code."""
    text = "demo: 4 passed\nskipped: system: no KVM\ntest: took 9 s\ntest: 2491 passed, 7 failed, 109 skipped\n"
    inner = results.of_tier(job(1, output=text))
    assert (inner.passed, inner.failed, inner.skipped, inner.reasons) == (2491, 7, 109, ["system: no KVM"])
    assert results.of_tier(job(2, output=text.replace("7 failed", "0 failed"))).failed == 1
    assert results.of_tier(job(2, output="demo: no route\n")).failed == 1
    for read in (results.of_tier, results.of_unit):
        absent = read(job(0, output="test-x: skipped: no server answers\n"))
        assert (absent.passed, absent.failed, absent.skipped) == (0, 0, 1)
        assert absent.reasons == ["no server answers"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the targets do")
@pytest.mark.parametrize("target", ["trixie", "arm64"])
@pytest.mark.parametrize("answers", [True, False])
def test_packages_are_skipped_only_without_a_server(tmp_path, target, answers):
    """A Debian root that cannot be made is a failure if the server of packages answers, for example
    because a package's name is wrong. Without a server the target is skipped."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, code in (("debootstrap", 1), ("helper", 0 if answers else 100)):
        (bin_ / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (bin_ / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "APT_HELPER": str(bin_ / "helper")}
    argv = [f"{ROOT}/tests/lib/{target}.sh", str(tmp_path / "root")]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)

    assert done.returncode == (1 if answers else 0), done.stderr
    assert f"test-{target}: {'FAILED' if answers else 'skipped'}: " in done.stdout


def test_a_test_about_memory_that_did_not_run_is_a_failure():
    """A test of LIFETIME that did not run is a failure on a machine that ran any of them."""
    def ended(skip):
        outcome = {
            (f"tests.system.test_{file}", f"test_{name}[x]"): "passed"
            for file, names in tiers.LIFETIME.items() for name in names.split()
        }  # fmt: skip
        if skip:
            outcome[next(iter(outcome))] = "skipped"
        return [SimpleNamespace(part="asan", result=results.Result(passed=9, outcome=outcome))]

    assert tiers.not_run("test", ended(False)) == []
    assert len(tiers.not_run("test", ended(True))) == 1
    for file, names in tiers.LIFETIME.items():
        text = (SYSTEM / f"test_{file}.py").read_text()
        assert [n for n in names.split() if f"def test_{n}(" not in text] == []


def job_of(name, script, **more):
    """Return a job that runs a shell script."""
    return beside.Job(name, ["sh", "-c", script], read=results.by_exit_code, **more)


def test_load_bounds_what_runs_beside_what(tmp_path):
    """A job with load ALONE runs without another job. A job that needs a failed job does not
    run."""
    note = f"echo b $0 >>{tmp_path}/log; sleep 0.2; echo e $0 >>{tmp_path}/log"
    jobs = [job_of("alone", note.replace("$0", "alone"), load=beside.ALONE)]
    jobs += [job_of(f"j{n}", note.replace("$0", f"j{n}"), load=0.5) for n in range(6)]
    jobs += [job_of("bad", "exit 3"), job_of("after", "true", needs="bad")]

    begin = time.monotonic()
    done = {j.name: j for j in beside.run(jobs, 2.0, str(tmp_path))}

    assert len(done) == len(jobs) and done["after"].code is None and done["bad"].code == 3
    assert time.monotonic() - begin < 20
    running, most = set(), 0
    for line in (tmp_path / "log").read_text().splitlines():
        what, name = line.split()
        (running.add if what == "b" else running.remove)(name)
        most = max(most, len(running))
        assert "alone" not in running or len(running) == 1
    assert 2 <= most <= 4


def test_a_target_that_the_machine_cannot_run_is_skipped_with_its_reason(tmp_path):
    """A target prints `target: skipped: reason` and ends well. It counts as skipped, not as
    passed."""
    jobs = [job_of("test-x", "echo test-x: skipped: no packages; echo y"), job_of("ran", "echo ran")]

    done = {j.name: j.read(j) for j in beside.run(jobs, 2.0, str(tmp_path))}

    assert (done["test-x"].passed, done["test-x"].skipped) == (0, 1)
    assert done["test-x"].reasons == ["no packages"]
    assert (done["ran"].passed, done["ran"].skipped) == (1, 0)


def test_the_report_names_times_failures_and_reasons(tmp_path, monkeypatch, capsys):
    """The report has times, failures and reasons. Its last line has the counts for readers of
    CI."""
    monkeypatch.setattr(suite, "ROOT", str(tmp_path))
    bad = job_of("lint", "echo wrong; exit 1", part="lint")
    good = job_of("unit", "true", part="unit")
    monkeypatch.setattr(tiers, "jobs", lambda *_: ([bad, good], ["guest: no QEMU"]))
    monkeypatch.setattr(tiers, "finished", lambda *_: None)

    code = suite.main("test", "make")

    lines = capsys.readouterr().out.splitlines()
    assert code == 1 and lines[-1] == "test: 1 passed, 1 failed, 0 skipped"
    assert "wrong" in lines and "skipped: guest: no QEMU" in lines and "lint: exit code 1" in lines
    assert [line.split()[0] for line in lines if line.startswith(("PART", "lint ", "unit ", "all "))]
    assert (tmp_path / "build/suite/test.txt").read_text().splitlines()[-1] == lines[-1]


def test_a_unit_program_that_hangs_has_failed(tmp_path):
    (hangs := tmp_path / "hangs").write_text("#!/bin/sh\nexec sleep 100\n")
    hangs.chmod(0o755)
    done = subprocess.run(
        [f"{ROOT}/tests/unit/run.sh", "asan", hangs],
        env={**os.environ, "UNIT_LIMIT_S": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "FAILED ERROR: not ended after 1 s" in done.stdout


def run_git(where, *words):
    """Run git in a directory, and return what it prints."""
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", *names, *words], cwd=where, check=True, capture_output=True, text=True).stdout.strip()


def test_an_interrupted_run_goes_on_with_the_jobs_that_have_not_passed(tmp_path):
    """RESUME=1 takes only what passed on the same sources, RESUME=COMMIT what passed since COMMIT, and a
    run without RESUME takes nothing."""
    root, kept = tmp_path / "root", str(tmp_path / "kept")
    root.mkdir()
    run_git(root, "init", "-q")

    def commit(text):
        (root / "file").write_text(text)
        run_git(root, "add", "file")
        run_git(root, "commit", "-q", "-m", text)
        return run_git(root, "rev-parse", "--short", "HEAD")

    def ended(name, code, part="system"):
        job = beside.Job(name, ["true"], part=part)
        job.code, job.took, job.cpu = code, 12.5, 3.0
        outcome = {("test_x", "test_a"): "passed" if code == 0 else "failed"}
        job.result = results.Result(int(code == 0), int(code != 0), 0, [(1.0, "a")], [], [], outcome)
        return job

    def taken(wish):
        return [
            (job.before, job.result.passed, job.result.outcome, job.took)
            for job in (beside.Job(name, ["true"]) for name in ("one", "two", "make"))
            if resume.Kept(kept, str(root), wish).take(job)
        ]

    first = commit("1")
    store = resume.Kept(kept, str(root), "")
    for job in (ended("one", 0), ended("two", 1), ended("make", 0, "build")):
        store.keep(job)
    one = (first, 1, {("test_x", "test_a"): "passed"}, 12.5)
    assert taken("1") == [one]
    (root / "file").write_text("changed, not committed")
    assert taken("1") == []
    second = commit("2")
    assert (taken("1"), taken(first), taken(second)) == ([], [one], [])
    assert taken("") == []
    assert taken(first) == []  # removed by the run without RESUME
