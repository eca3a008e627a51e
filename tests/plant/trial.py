# SPDX-License-Identifier: BSD-3-Clause
"""The tiers of tests, and the trial of a planted fault in each. Only the table TIERS has to follow
the Makefile."""

import dataclasses
import json
import re
import sys
import threading
import time
from pathlib import Path

import cover

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tiers as suite  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Tier:
    """One part of the tests, and the way to run it for a fault.

    target  the make target that has this part: check, test or test-all
    how     method of Trial that runs it
    build   the Makefile's BUILD
    make    targets to build first (unit programs are added)
    cases   of system tests: pytest's words that choose them (none: all)
    env     variables
    limit   seconds that the tier may take for a fault; 0: no limit. A hang of a single test is
            found long before.
    """

    name: str
    target: str
    how: str
    build: str = "release"
    make: tuple = ()
    cases: tuple = ()
    env: tuple = ()
    limit: int = 240


def lifetime():
    """Return pytest's arguments for the system tests that `make test` runs with
    AddressSanitizer."""
    names = [f"tests/system/test_{name}.py" for name in suite.LIFETIME_FILES]
    for file, tests in suite.LIFETIME.items():
        names += [f"tests/system/test_{file}.py::test_{test}" for test in tests.split()]
    return names


SYSTEM = ("system-bins",)
ASAN = tuple(suite.sanitized().items())
PATIENT, LONG = (("FDP_PATIENCE", "2"),), (("FDP_LONG", "1"),)  # as tests/tiers.py sets them

# In the order in which a fault is tried: the first tier that fails has found it. `make lint` is
# not here because it checks form, and the form of a planted fault comes from its tool.
TIERS = (
    Tier("unit", "check", "unit", "asan"),
    Tier("smoke", "check", "system", "asan", SYSTEM, ("-m", "smoke"), ASAN),
    Tier("tsan", "test", "unit", "tsan"),
    Tier("system", "test", "system", "release", SYSTEM, env=PATIENT),
    Tier("asan", "test", "system", "asan", SYSTEM, lifetime(), ASAN),
    Tier("fuzz", "test", "fuzz", "fuzz"),
    Tier("guest", "test", "guest", limit=1200),
    Tier("analyze", "test-all", "analyze"),
    Tier("unit-release", "test-all", "unit", "release"),
    Tier("system-asan", "test-all", "system", "asan", SYSTEM, (), ASAN + LONG, 0),
    Tier("guests", "test-all", "guest", env=LONG, limit=0),
)
GUESTS = {"guest": ("test-vm",), "guests": ("test-vm-all",)}
UNIT_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
}
FUZZ_S = 5  # for each target of the fuzzers


class Alone:
    """A lock that many threads hold together, or one thread alone."""

    def __init__(self):
        self._free, self._n, self._waits = threading.Condition(), 0, 0

    def take(self, alone):
        """Wait until the lock is free, and take it."""
        with self._free:
            self._waits += alone
            self._free.wait_for(
                lambda: self._n == 0 if alone else self._n >= 0 and not self._waits
            )
            self._waits -= alone
            self._n = -1 if alone else self._n + 1

    def give(self):
        """Release the lock."""
        with self._free:
            self._n = 0 if self._n < 0 else self._n - 1
            self._free.notify_all()


class Trial:
    """Tries one fault, which is planted in `tree`; `base` is the tree without it.

    Each method returns (test that found it or "", reason, text about the tier)."""

    def __init__(self, fault, tree, base, box, shared):
        self.fault, self.tree, self.base, self.box = fault, tree, base, box
        self.map, self.alone, self.facts = shared.map, shared.alone, shared.facts

    def run(self, tier):
        """Try a tier."""
        return getattr(self, tier.how)(tier)

    # -- unit programs --

    def unit(self, tier):
        """Run the programs that execute a line of the fault, some at a time."""
        there = self.facts["unit"][tier.build]
        names = [c.name for c in self.map.cases("unit", self.fault) if c.name in there]
        if not names:
            return "", "", "not covered"
        end, done, size = time.monotonic() + (tier.limit or 1e9), 0, 2
        while names and time.monotonic() < end:
            some, names, size = names[:size], names[size:], size * 2
            targets = [f"build/{tier.build}/tests/unit/{name}" for name in some]
            ok, said = self.tree.make(f"BUILD={tier.build}", *targets)
            if not ok:
                raise DoesNotCompile(said)
            for name in some:
                done += 1
                why = self.program(self.tree, tier, name)
                if why and not self.program(self.base, tier, name):
                    if tier.build == "tsan" or self.program(self.tree, tier, name):
                        return name, why, "found"
        return "", "", f"{done} of {done + len(names)} programs passed"

    def program(self, tree, tier, name):
        """Run a unit program. Return the reason of its failure, or ""."""
        limit = 60 + 10 * self.map.unit[name].s
        argv = [f"build/{tier.build}/tests/unit/{name}"]
        code, said = self.box.run(tree.root, argv, limit, UNIT_ENV)
        if code is None:
            return f"hangs: more than {limit:.0f} s"
        if code == 0 and re.search(r"^\[ *(OK|SKIPPED) *\]", said, re.M):
            return ""
        told = re.search(
            r"SUMMARY: .*|^.*runtime error: .*|^\[ *ERROR *\].*\n.*", said, re.M
        )
        return (told[0] if told else f"exit code {code}")[:300]

    # -- system tests --

    def system(self, tier):
        """Run the cases that execute a line of the fault."""
        chosen = self.facts["cases"][tier.name]
        cases = [c for c in self.map.cases("system", self.fault) if c.name in chosen]
        if not cases:
            return "", "", "not covered"
        slow = 3 if tier.build == "asan" else 1
        taken, left = self.within(cases, tier.limit / slow if tier.limit else 1e9)
        ok, said = self.tree.make(f"BUILD={tier.build}", *tier.make)
        if not ok:
            raise DoesNotCompile(said)
        for alone in (False, True):
            some = [c for c in taken if self.facts["alone"](c.name) == alone]
            while some:
                name, why, hung = self.pytest(self.tree, tier, some, alone)
                if not name:
                    break
                at = [c.name for c in some].index(name)
                if self.is_find(tier, some[: at + 1], alone, hung):
                    return name, why, "found"
                some = some[at + 1 :]
        return "", "", f"{len(taken)} of {len(taken) + left} cases passed"

    def is_find(self, tier, cases, alone, hung):
        """Return True if the last of the cases fails because of the fault: it passes without the
        fault, and fails with it again, alone or at least after the others."""
        last = cases[-1:]
        if self.pytest(self.base, tier, last, alone)[0]:
            return False
        if hung or self.pytest(self.tree, tier, last, alone)[0]:
            return True
        return (
            len(cases) > 1 and self.pytest(self.tree, tier, cases, alone)[0] == last[0].name
        )

    def within(self, cases, limit):
        """Return (cases that can run within the limit, number left out)."""
        took, files, taken = 0.0, set(), []
        for case in cases:
            file = case.name.split("::")[0]
            cost = case.s + (0 if file in files else self.facts["setup"].get(file, 0))
            if took + cost > limit and taken:
                continue
            took += cost
            files.add(file)
            taken.append(case)
        return taken, len(cases) - len(taken)

    def pytest(self, tree, tier, cases, alone):
        """Run cases in order until one fails. Return (its name or "", reason, True if it hangs)."""
        told = tree.root / f"build/told-{self.box.number}"
        told.unlink(missing_ok=True)
        slow = 4 if tier.build == "asan" else 1
        limit = 90 + 3 * slow * sum(c.s + c.setup for c in cases)
        self.alone.take(alone)
        try:
            code, said = self.box.run(
                tree.root,
                [*cover.PYTEST, "-x", *(c.name for c in cases)],
                limit,
                {**tree.env, **dict(tier.env), "PLANT_TOLD": str(told)},
            )
        finally:
            self.alone.give()
        rows, begun = cover.read_told(told), ""
        for row in rows:
            begun = row.get("start", "" if "end" in row else begun)
            if row.get("how") == "failed":
                return row["end"], row["why"], False
        if code is None or begun:
            return begun or cases[0].name, f"hangs: more than {limit:.0f} s", True
        if code not in (0, 1) and not rows:
            return cases[0].name, f"pytest: {said[-200:]}", False
        return "", "", False

    # -- others --

    def analyze(self, tier):
        """Run gcc -fanalyzer, cppcheck and clang-tidy on the file."""
        path = self.facts["unit_of"](self.fault.file)
        found = self.analyzed(self.tree, path)
        if found and not self.analyzed(self.base, path):
            return "analyze", found[0], "found"
        return "", "", "passed"

    def analyzed(self, tree, path):
        """Return the output of `make analyze` for a file."""
        argv = [
            sys.executable,
            "-c",
            ANALYZE,
            json.dumps([path, self.facts["cc"], self.facts["flags"]]),
        ]
        code, said = self.box.run(tree.root, argv, 600)
        return said.splitlines() if code == 0 else [f"exit code {code}: {said[-200:]}"]

    def fuzz(self, tier):
        """Run the fuzzers that link the file, with their corpus."""
        programs = self.facts["fuzzers"](self.fault.file)
        if not programs:
            return "", "", "not linked"
        ok, said = self.tree.make("BUILD=fuzz", "CC=clang-14", *programs)
        if not ok:
            raise DoesNotCompile(said)
        for path in programs:
            name = path.split("/")[-1]
            why = self.fuzzed(self.tree, name)
            if why and not self.fuzzed(self.base, name):
                return name, why, "found"
        return "", "", f"{len(programs)} passed"

    def fuzzed(self, tree, name):
        """Run a fuzzer for some seconds. Return the reason of its failure, or ""."""
        argv = ["tests/fuzz/run.sh", "--one", "/tmp", name, str(FUZZ_S)]
        code, said = self.box.run(tree.root, argv, 120 + 5 * FUZZ_S)
        if code == 0 and "FAILED" not in said:
            return ""
        told = re.search(r"SUMMARY: .*|^.*runtime error: .*", said, re.M)
        return (told[0] if told else f"exit code {code}")[:300]

    def guest(self, tier):
        """Run the tests in virtual machines. The lines that they execute are not known."""
        words = [f"{name}={value}" for name, value in tier.env]  # make passes them on
        ok, said = self.tree.make("BUILD=release", *words, *tier.make, *GUESTS[tier.name])
        if "skipped: not installable" in said:
            return "", "", "skipped: no guests here"
        failed = re.findall(r"^FAILED .*|^ERROR .*", said, re.M)
        if not ok and self.base.make("BUILD=release", *words, *GUESTS[tier.name])[0]:
            return (failed or ["guest"])[0][:200], "", "found"
        return "", "", "passed"


ANALYZE = """
import collections, json, sys
sys.path.insert(0, "tests/lint")
import analyze
path, cc, flags = json.loads(sys.argv[1])
found, skipped = collections.defaultdict(set), {}
for tool, (program, _, _) in analyze.TOOLS.items():
    if program and analyze.shutil.which(program) is None:
        skipped[tool] = program
tools = [tool for tool in analyze.TOOLS if tool not in skipped]
for tool, (rows, _) in analyze.findings_of_all(tools, cc, flags, path).items():
    for name, line, check, text in rows:
        found[tool, name, analyze.function_of(name, line), check].add((line, text))
for text in analyze.problems(found, skipped):
    if text.startswith(path + ":"):
        print(text)
"""


class DoesNotCompile(Exception):
    """A fault that the compiler or the linker refuses."""
