# SPDX-License-Identifier: BSD-3-Clause
"""The shared state of all trials: the tree without faults with all builds that the tiers need, a
tree for each worker, the map of lines to tests, and facts about the tests."""

import collections
import functools
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import box
import cover
import faults
import trial
import alone  # tests/alone.py: trial.py has added that folder to sys.path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/plant"
WORKERS = max(1, len(os.sched_getaffinity(0)))
SAID = threading.Lock()


def say(text):
    """Print a line at once."""
    with SAID:
        print(text, flush=True)


class Shared:
    """Trees, coverage, and facts about the tests."""

    def __init__(self, cc, flags, full, tiers):
        cc = [word for word in cc if word != "ccache"]  # make adds ccache itself
        ccache = shutil.which("ccache")
        self.cc, self.flags, self.full = [*([ccache] if ccache else []), *cc], flags, full
        self.tiers = tiers
        make = ["make", "--no-print-directory", f"-j{WORKERS}", f"CC={' '.join(cc)}"]
        self.base = box.Tree(PLACE / "base", make)
        self.cover = box.Tree(PLACE / "cover-tree", make)
        self.trees = [
            box.Tree(PLACE / f"tree-{n}", ["make", "--no-print-directory", make[3]])
            for n in range(WORKERS)
        ]
        self.map, self.alone, self.facts = None, trial.Alone(), {}

    def build(self):
        """Build the tree without faults with all builds that the tiers need."""
        self.base.copy(ROOT)
        self.fetched(self.base)
        need = collections.defaultdict(set)
        for tier in self.tiers:
            if tier.how == "unit":
                need[tier.build].add("tsan-bins" if tier.build == "tsan" else "unit-bins")
            elif tier.how in ("system", "guest"):
                need[tier.build] |= set(trial.SYSTEM)
        for build, targets in sorted(need.items()):
            say(f"plant: building {build}")
            ok, said = self.base.make(f"BUILD={build}", *targets)
            if not ok:
                raise SystemExit(f"plant: the tree does not build:\n{said[-3000:]}")
        if self.uses("fuzz") and shutil.which("clang-14"):
            say("plant: building fuzz")
            names = sorted(self.programs("fuzz", r"build/fuzz/fuzz_\w+"))
            ok, said = self.base.make("BUILD=fuzz", "CC=clang-14", *names)
            if not ok:
                raise SystemExit(f"plant: the fuzzers do not build:\n{said[-3000:]}")
            subprocess.run(
                ["tests/fuzz/run.sh", "--each", "1"],
                cwd=self.base.root,
                check=False,
                capture_output=True,
            )

    def uses(self, how):
        """Return True if a tier of this run runs tests in this way."""
        return any(tier.how == how for tier in self.tiers)

    @staticmethod
    def fetched(tree):
        """Give a tree the files that make has fetched for some system tests."""
        (tree.root / "build").mkdir(exist_ok=True)
        for name in cover.FETCHED:
            there, link = ROOT / "build" / name, tree.root / "build" / name
            if there.exists() and not link.exists():
                link.symlink_to(there.resolve())

    def copies(self):
        """Make a tree for each worker: the sources and the objects that are already built."""
        for tree in self.trees:
            tree.copy(self.base.root)
            self.fetched(tree)
            for build in ("release", "asan", "tsan", "fuzz"):
                source, there = (
                    self.base.root / "build" / build,
                    tree.root / "build" / build,
                )
                if source.is_dir():
                    there.mkdir(exist_ok=True)
                    subprocess.run(["cp", "-au", f"{source}/.", there], check=True)

    def programs(self, build, pattern):
        """Return {program: objects that it links} from make's database."""
        _, said = self.base.make("-pn", f"BUILD={build}", "unit-bins")
        rows = re.findall(rf"^({pattern}): (.*)$", said, re.M)
        found = collections.defaultdict(set)
        for name, objects in rows:
            found[name] |= set(objects.split())
        return found

    def objects(self, build, file):
        """Return the objects that depend on a file; for a header, the objects of all files that
        include the header."""
        if file.endswith(".c"):
            return {f"build/{build}/obj/{file[:-2]}.o"}
        return {
            str(d.relative_to(self.base.root))[:-1] + "o"
            for d in self.dependents(build, file)
        }

    @functools.lru_cache(None)
    def _d(self, build):
        return {
            d: {os.path.normpath(w) for w in d.read_text().replace("\\\n", " ").split()}
            for d in (self.base.root / f"build/{build}/obj").rglob("*.d")
        }

    def dependents(self, build, header):
        """Return the .d files of the objects that include a header."""
        return sorted(d for d, words in self._d(build).items() if header in words)

    def unit_of(self, file):
        """Return the C file that compiles a file alone."""
        if file.endswith(".c"):
            return file
        found = [
            str(d.relative_to(self.base.root / "build/release/obj"))[:-1] + "c"
            for d in self.dependents("release", file)
        ]
        found = [f for f in found if f.split("/")[0] in faults.FOLDERS]
        here = os.path.dirname(file)
        # The C file of the same name, else one of the same folder.
        found.sort(key=lambda f: (f[:-2] != file[:-2], os.path.dirname(f) != here, f))
        return found[0] if found else None

    def learn(self):
        """Find the lines that each test executes, in a separate tree that is built with
        cover.FLAGS."""
        folder = PLACE / "cover" / cover.of_product(ROOT)
        for old in (PLACE / "cover").glob("*"):
            if old != folder:
                shutil.rmtree(old)
        units = sorted(p.stem for p in ROOT.glob("tests/unit/test_*.c"))
        self.cover.copy(ROOT)
        maker = cover.Maker(self.cover, folder, units)
        jobs = [job for job in maker.jobs() if self.uses(job[0])]
        if jobs:
            self.build_cover()
            say(f"plant: {len(jobs)} files of tests run, to see which lines they execute")
            jobs.sort(key=lambda job: self.is_alone(job[1] + ".py"))
            self.beside([functools.partial(self.learn_one, maker, job) for job in jobs])
        self.map = cover.Map(folder).read()

    def build_cover(self):
        """Build ordinary libraries to preload, and programs that record the blocks they execute."""
        self.fetched(self.cover)
        build = self.cover.root / "build"
        say("plant: building with notes of what is executed")
        (build / "release/tests").mkdir(parents=True, exist_ok=True)
        for path in (self.base.root / "build/release/tests").glob("*.so"):
            shutil.copy(path, build / "release/tests")  # newer than its source
        argv = [*self.cc, "-O2", "-D_GNU_SOURCE", "-c", "-o", f"{build}/notes.o"]
        subprocess.run([*argv, "tests/plant/cover.c"], cwd=self.cover.root, check=True)
        words = ("BUILD=release", cover.FLAGS, f"LDFLAGS={build}/notes.o")
        targets = [*(trial.SYSTEM if self.uses("system") else ()), "unit-bins"]
        ok, said = self.cover.make(*words, *targets)
        if not ok:
            raise SystemExit(f"plant: no build with notes:\n{said[-3000:]}")

    def learn_one(self, maker, job, number):
        """Run a file of tests."""
        kind, name, path, content = job
        self.alone.take(kind == "system" and self.is_alone(name + ".py"))
        try:
            with box.Box(number) as its:
                how, s = getattr(maker, kind)(its, name, path, content)
        finally:
            self.alone.give()
        say(f"  {kind} {name}: {how}, {s} s")

    @staticmethod
    def is_alone(name):
        """Return True if a case of the system tests, or a part of a file of them, must run
        alone."""
        file, _, test = os.path.basename(name.split("[")[0]).partition("::")
        keys = alone.alone()
        if not test:
            return any(key.split("::")[0] == file for key in keys)
        return file in keys or f"{file}::{test}" in keys

    def ask(self):
        """Collect facts about the tests: the cases of a tier, and their setup."""
        cases, setup = {}, collections.defaultdict(float)
        for tier in trial.TIERS:
            if tier.how == "system":
                cases[tier.name] = self.collected(tier.cases)
        cases["system"] -= cases["smoke"]  # these run before in the smoke tier
        for case in self.map.system.values():
            file = case.name.split("::")[0]
            setup[file] = max(setup[file], case.setup)
        unit = {
            build: {
                os.path.basename(p)
                for p in (self.base.root / f"build/{build}/tests/unit").glob("test_*")
            }
            for build in ("asan", "tsan", "release")
        }
        fuzzers = self.programs("fuzz", r"build/fuzz/fuzz_\w+")
        self.facts = {
            "cases": cases,
            "setup": setup,
            "unit": unit,
            "alone": self.is_alone,
            "unit_of": self.unit_of,
            "fuzzers": lambda file: sorted(
                p
                for p, objects in fuzzers.items()
                if objects & (self.objects("fuzz", file) | {file})
            ),
            "cc": self.cc,
            "flags": self.flags,
        }

    def collected(self, words):
        """Return the names of the system cases that pytest's arguments select."""
        where = [] if any("::" in word for word in words) else ["tests/system"]
        done = subprocess.run(
            [*cover.PYTEST, "--collect-only", *words, *where],
            cwd=self.base.root,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **self.base.env},
        )
        return set(re.findall(r"^(tests/system/\S+::.*)$", done.stdout, re.M))

    def beside(self, work):
        """Run functions of a worker's number, one at a time for each worker, in order."""
        left, lock, wrong = list(work), threading.Lock(), []

        def worker(number):
            while not wrong:
                with lock:
                    if not left:
                        return
                    job = left.pop(0)
                try:
                    job(number)
                except box.Stopped:
                    return
                except BaseException as error:  # the others end, and the error is reported once
                    wrong.append(error)
                    raise

        threads = [threading.Thread(target=worker, args=(n,)) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        except BaseException:
            box.stop()
            raise
        finally:
            for thread in threads:
                thread.join()
        if wrong:
            raise wrong[0]
