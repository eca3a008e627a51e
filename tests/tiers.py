# SPDX-License-Identifier: BSD-3-Clause
"""The content of each tier of the tests.

| tier     | content |
|----------|---------|
| check    | lint; unit tests and smoke system tests under AddressSanitizer and UBSan |
| test     | check; unit tests with threads under TSan; fuzzers for seconds; all system tests once; those about the lifetime of memory under ASan; a guest |
| test-all | test; static analysis; unit tests of the release build; all system tests under ASan; all guests; packages; images; benchmark commands; Debian 13; arm64; FRR's topotests; chaos |

A fault that only test-all finds gets a small case in test (fpm-dataplane/doc/testing.md).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time

import alone as those_alone
import shards
from lib import results
from lib.beside import ALONE, Job

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_S = 900  # the time limit of a shard of system tests; no shard should need it
LONG_LIMIT_S = 7200  # the same with sanitizers and FDP_LONG
# Load of a process whose tests mostly wait. Such a process takes 0.26 of a CPU on average. With a load
# of 0.5 the CPUs were idle for 11 % of a run.
WAITS = 0.4

# System tests whose daemons use memory in ways that other tests do not: restarts, ports that are
# added and removed, tables that overflow, sessions that are swept. They run under AddressSanitizer
# in `make test`. None may be skipped on a machine that can run system tests.
LIFETIME = {
    "restart": "transit_is_back_before_zebra_is a_planned_restart_takes_no_carrier_and_is_no_crash "
    "a_tap_deleted_meanwhile_is_made_anew",
    "succession": "a_successor_that_fails_changes_nothing "
    "a_successor_that_crashes_when_it_has_nearly_got_ready_changes_nothing",
    "ports_live": "a_port_goes_and_comes_and_no_other_loses_a_packet "
    "a_device_that_was_deleted_is_opened_again_when_it_is_back a_port_that_is_lost_is_had_again "
    "another_device_behind_the_same_tap reload_adds_and_removes_ports "
    "traffic_into_a_port_that_goes_leaves_nothing_behind "
    "a_port_that_came_later_is_kept_over_a_crash",
    "kernel_side": "a_tap_moved_to_another_namespace_is_made_anew "
    "mtu_and_mac_change_under_load taps_deleted_again_and_again_under_load",
    "resources": "an_overrun_of_netlink_is_said_and_leaves_no_wrong_neighbor "
    "more_gateways_than_adjacencies",
    "config_live": "reload_applies_what_needs_no_restart reload_is_refused_as_a_whole",
    "cores": "queues_move_to_other_cores_and_no_packet_is_lost",
    "api": "changes_are_as_specified packets_are_as_specified a_long_list_is_streamed",
    "audit": "each_vrf_is_compared_and_differences_are_told_by_name "
    "a_broken_fib_is_found_and_repaired",
    "fpm_session": "what_a_zebra_that_is_ended_withdraws_is_not_heard "
    "a_zebra_without_routes_sweeps_them_all",
}
# Files of system tests that run as a whole under AddressSanitizer, besides the tests of LIFETIME.
LIFETIME_FILES = ("robust", "ends_clean", "labels", "labels_frames")
# With a release build only: these compare the output with the pages.
RELEASE_ONLY = ("test_docs.py",)


class Tier:
    """Makes the jobs of a tier. `where` is the folder for their output, `short` the folder for
    files of single tests: the path of a Unix socket in it must fit into 108 octets."""

    def __init__(self, make, where, short):
        self.make, self.where, self.short = list(make), where, short
        self.jobs, self.absent = [], []
        self.limit_s = LIMIT_S

    def add(self, name, argv, part, read, **kw):
        """Append a job whose output is kept below `where`."""
        log = os.path.join(self.where, name.replace(" ", "-") + ".log")
        self.jobs.append(job := Job(name, argv, part=part, read=read, log=log, **kw))
        return job

    def target(self, *words):
        """Return the command of make for a target, with a lower priority than tests that judge
        time."""
        return ["nice", "-n", "5", *self.make, *words]

    def build(self, name, *words, cores=1):
        """Add a build as a job."""
        self.add(name, [*self.target(f"-j{cores}"), *words], "build", results.of_build, load=cores)

    def pytest(self, name, part, words, needs, load=WAITS, **more):
        """Add a pytest process. `words` select the tests."""
        # Without blanks, because some tests give a path to a program that splits it into words.
        base = os.path.join(self.where, name.replace(" ", "-"))
        argv = ["timeout", "-k", "60", str(self.limit_s), sys.executable, "-m", "pytest", "-q", "-rfEs"]
        argv += ["--no-header", "-p", "no:cacheprovider", f"--basetemp={self.short}/{len(self.jobs)}"]
        argv += [f"--junit-xml={base}.xml", *words]
        job = self.add(name, argv, part, results.of_pytest, needs=needs, load=load, more=more)
        job.report, job.temporary = f"{base}.xml", f"{self.short}/{len(self.jobs) - 1}"

    # -- parts --

    def lint(self):
        """Add lint: layers, format, words."""
        self.add("lint", self.target("lint"), "lint", results.by_exit_code)

    def units(self, build, target, part):
        """Add the unit programs, several at a time."""
        argv = self.target(f"BUILD={build}", target)
        self.add(part, argv, part, results.of_unit, needs=f"build {build}", load=1.0)

    def smoke(self):
        """Add the quick cases of all areas, in one process with one router."""
        words = ["tests/system", "-m", "smoke"]
        self.pytest("smoke", "smoke", words, ["build asan"], **sanitized())

    def system(self, build="release", part="system", without=(), **more):
        """Add all system tests once, in shards."""
        patience = {"FDP_PATIENCE": "2", **more, "BUILD": build}
        _, tests = shards.alone()
        drop = [word for test in tests for word in ("--deselect", test)]
        for name, paths, slice_ in shards.shards(without):
            env = {**patience, **({"FDP_SHARD": slice_} if slice_ else {})}
            words = [*(os.path.relpath(p, ROOT) for p in paths), *drop]
            self.pytest(f"{part} {name}", part, words, [f"build {build}"], **env)

    def alone(self, build="release", part="system", **more):
        """Add the system tests that must run alone on the machine."""
        whole, tests = shards.alone()
        if whole or tests:
            env = {**more, "BUILD": build}
            self.pytest(f"{part} alone", part, [*whole, *tests], [f"build {build}"], ALONE, **env)

    def lifetime(self):
        """Add the system tests about the lifetime of memory, under AddressSanitizer."""
        names = [f"tests/system/test_{name}.py" for name in LIFETIME_FILES]
        tests = [
            f"tests/system/test_{file}.py::test_{test}"
            for file, tests in LIFETIME.items()
            for test in tests.split()
        ]
        half = len(tests) // 2
        for name, words in (("1", tests[:half]), ("2", tests[half:]), ("3", names)):
            self.pytest(f"asan {name}", "asan", words, ["build asan"], **sanitized())

    def selftest(self, always=False):
        """Add the tests of the test tools if the tools have changed since these tests last
        passed."""
        if always or stamp_of_tools() != kept_stamp():
            single = [f"tests/selftest/{key}" for key in those_alone.SELFTEST]
            drop = [word for test in single for word in ("--deselect", test)]
            self.pytest("selftest", "selftest", ["tests/selftest", *drop], ["build release"])
            self.pytest("selftest alone", "selftest", single, ["build release"], ALONE)
        else:
            self.absent.append("selftest: the test tools have not changed since it passed")

    def guests(self):
        """Add each guest of `make test-vm-all` and `make test-vm-package` as a job. They need the kernel
        that the job `guest` prepares, and most of a CPU of this machine each."""
        if not any(job.name == "guest" for job in self.jobs):
            return
        more = {"DEB_BUILD_OPTIONS": "noautodbgsym"}  # debug symbols take a quarter of the time
        self.add("package", self.target("deb"), "build", results.of_build, needs="build release", more=more)
        for which in ("--all", "--package"):
            run = [sys.executable, "tests/vm/run.py"]
            names = subprocess.run([*run, "--list", which], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            for name in names.stdout.split():
                argv = ["nice", "-n", "5", *run, "--part", name]
                needs = {"guest", "package"} if which == "--package" else "guest"
                self.add(f"guest {name}", argv, "guest", results.of_guests, needs=needs, load=1.5)

    def optional(self, packages):
        """Try to install these packages. Return True if they are installed; a machine may lack
        them."""
        done = subprocess.run(
            [*self.make, "deps", f"DEPS_ALL={packages}"], cwd=ROOT, capture_output=True, check=False
        )
        return done.returncode == 0


    def fetch(self, target, what):
        """Make a target that needs Debian's servers. Without it some tests skip themselves. Return
        True if it is there."""
        done = subprocess.run([*self.make, target], cwd=ROOT, capture_output=True, check=False)
        if done.returncode != 0:
            self.absent.append(f"{what}: make {target} failed")
        return done.returncode == 0


def sanitized():
    """Return the environment of system tests whose programs have sanitizers."""
    return {"BUILD": "asan", "FDP_ENDS_WELL": "1", "FDP_PATIENCE": "4"}


def stamp_of_tools():
    """Return a digest of all files of the test tools."""
    digest = hashlib.sha256()
    found = [os.path.join(ROOT, "Makefile")]
    for top, below, names in os.walk(os.path.join(ROOT, "tests")):
        below[:] = sorted(set(below) - {"__pycache__"})
        found += [os.path.join(top, n) for n in sorted(names) if n.endswith((".py", ".sh", ".mk"))]
    for path in found:
        with open(path, "rb") as file:
            digest.update(path[len(ROOT) :].encode() + b"\0" + file.read())
    return digest.hexdigest()


STAMP = os.path.join(ROOT, "build", "suite", "selftest.passed")


def kept_stamp():
    """Return the digest with which the tests of the tools passed last; None: never."""
    try:
        with open(STAMP, encoding="ascii") as file:
            return file.read()
    except OSError:
        return None


def jobs(tier, make, where, short):
    """Return (jobs of a tier, reasons of the parts that are absent here)."""
    t = Tier(make, where, short)
    {"check": check, "test": test, "test-all": test_all}[tier](t)
    return t.jobs, t.absent


def check(t):
    """Make the tier of a commit. It takes three minutes."""
    t.build("build asan", "BUILD=asan", "all", "unit-bins", "system-bins", cores=2)
    t.lint()
    t.units("asan", "unit", "unit-asan")
    t.smoke()


def test(t):
    """Make the tier of a push. It takes fifteen minutes."""
    fuzz, guest = t.optional("$(PKGS_FUZZ)"), t.optional("$(PKGS_VM)")
    t.fetch("prometheus", "tests of the metrics page by Prometheus")
    t.fetch("peers", "tests with BIRD, GoBGP and ExaBGP as peers")
    t.fetch("collectors", "tests of sFlow by nfdump and pmacct")
    t.build("build release", "BUILD=release", "all", "system-bins", cores=2)
    # The longest job comes first, because at the end it would leave a CPU without work.
    if guest:
        t.add("guest", t.target("test-vm"), "guest", results.of_guests, needs="build release")
    else:
        t.absent.append("guest: its packages cannot be installed here")
    t.build("build asan", "BUILD=asan", "all", "unit-bins", "system-bins")
    # The builds and the programs that keep a CPU busy take longer, one after the other, than the system
    # tests. So the build of the fuzzers comes before the system tests: it starts when the first build
    # ends, beside the guest.
    if fuzz:
        t.build("build fuzz", "BUILD=fuzz", "fuzz-bins")
    t.system()
    t.selftest()
    t.units("asan", "unit", "unit-asan")
    t.lint()
    t.build("build tsan", "BUILD=tsan", "tsan-bins")
    t.units("tsan", "tsan-run", "unit-tsan")
    if fuzz:
        t.add("fuzz", t.target("fuzz-run"), "fuzz", results.of_fuzz, needs="build fuzz")
    else:
        t.absent.append("fuzz: its packages cannot be installed here")
    t.build("build bench", "BUILD=release", "bench-bins")
    t.lifetime()
    t.alone()


def test_all(t):
    """Make the tier with all tests, without a limit of time."""
    os.environ["FDP_LONG"] = "1"
    t.limit_s = LONG_LIMIT_S
    t.optional("$(PKGS_DEB)")
    test(t)
    seed = time.strftime("%Y%m%d")
    t.fetch("frr-root", "tests with a newer FRR")
    t.add("analyze", t.target("analyze"), "analyze", results.by_exit_code)
    t.units("release", "unit", "unit")
    t.system("asan", "system-asan", RELEASE_ONLY, **sanitized())
    t.alone("asan", "system-asan", **sanitized())
    t.guests()
    for name in ("test-deb", "test-image", "test-bench"):
        t.add(name, t.target(name), name, results.by_exit_code, needs="build release", load=ALONE)
    # The tier `test` runs last in the Debian root, because its last line has the counts.
    trixie = t.target("test-trixie", "WHAT=demo test")
    t.add("test-trixie", trixie, "test-trixie", results.of_tier, needs="build release", load=ALONE)
    t.add("test-arm64", t.target("test-arm64"), "test-arm64", results.of_unit, needs="build release", load=ALONE)
    if t.fetch("topotests-source", "FRR's topotests"):
        full = t.target("topotests", "FULL=1")
        t.add("topotests", full, "topotests", results.of_topotests, needs="build release", load=ALONE)
    chaos = t.target("chaos", "T=600", f"SEED={seed}")
    t.add(f"chaos {seed}", chaos, "chaos", results.by_exit_code, needs="build release", load=ALONE)


def finished(tier, done):
    """Record the data that the next run uses."""
    for job in done:
        if job.name == "selftest" and not job.result.failed and job.result.passed:
            with open(STAMP, "w", encoding="ascii") as file:
                file.write(stamp_of_tools())
    if os.environ.get("RECORD") and tier != "check":
        shards.record([case for job in done if job.part == "system" for case in job.result.cases])
    for job in done:
        if job.temporary and not job.result.failed:
            shutil.rmtree(job.temporary, ignore_errors=True)


def not_run(tier, done):
    """Return lines with the tests of LIFETIME that did not run under AddressSanitizer although this
    machine can run them."""
    asan = [job for job in done if job.part == "asan"]
    if tier == "check" or not any(job.result.passed for job in asan):
        return []
    ran = {
        (file.rpartition("test_")[2], name.partition("[")[0])
        for job in asan
        for (file, name), how in job.result.outcome.items()
        if how != "skipped"
    }
    must = {(file, f"test_{name}") for file, names in LIFETIME.items() for name in names.split()}
    return [f"asan: {file}: {name} did not run" for file, name in sorted(must - ran)]
