# SPDX-License-Identifier: BSD-3-Clause
"""Run the commands of tests/bench/README.md in the order of the page, in a copy of the tree,
because some of them change the manual. Variables of the environment make them short. An option of
the command line takes precedence over them, as in make. The figures mean nothing. The tests check
exit codes (which depend only on right answers), the rows that each command asks for, and files.

`make test-bench` builds everything first. The tests are skipped without root, without huge pages,
and without the source of DPDK.
"""

import json
import lzma
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_quick  # noqa: E402
from bench_fib import HugePages  # noqa: E402
from forward import sources  # noqa: E402
from lib import docs  # noqa: E402
from lib.dut import why_not  # noqa: E402
from lib.wait import PATIENCE  # noqa: E402

BLOCKS = [b for b in docs.blocks(HERE / "README.md") if b.place == "bench"]
HUGE_MIB = 4096
BLOCK_S = 600
(BENCHES,) = (m.split() for m in re.findall(r"^BENCHES := (.*)$", docs.makefiles(), re.M))
SHORT = {
    "QUICK": "1", "REPS": "1", "ROUTES": "20000", "ROUTES6": "4000", "KEYS": "65536",
    "KEYS6": "65536", "FRAMES": "65536", "FRAMES6": "16384", "SECONDS": "0.05", "TRIAL_S": "0.01",
    "DROP_SECONDS": "0.05", "TURNS": "3", "TURN_US": "50", "LENS": "64", "SETS": "8,12",
    "BURSTS": "1,64", "SESSIONS": "2", "BUSY": "0", "LOADS": "80", "TABLES": "few,full", "RATES": "20000", "HUGE_MIB": str(HUGE_MIB),
    "IMPL": "poptrie-avx*,rte_fib-4B-*,rte_fib6-4B-*",
}  # fmt: skip
# For a block that has the long and the short form of all benchmarks: the long form is not QUICK.
LONG = {**SHORT, "QUICK": "", "TABLES": "full", "L3": "idle", "NEXTHOPS": "64",
        "BATCH": "64", "BGP_REPS": "1"}  # fmt: skip
# The kinds of rows that each benchmark prints at least. ROWS adds kinds.
SAYS = {
    "bench-fib": {"verify4", "fib4", "build4", "update4", "verify6", "fib6", "update6"},
    "bench-forward": set(), "bench-fpm": {"steal"}, "bench-loss": {"loss"},
    "bench-latency": {"latency"}, "bench-watch": {"watch"}, "bench-tags": {"tags", "tags-right"},
    "bench-sync": {"sync-turns", "sync"}, "bench-slow-path": {"slow-path"},
    "bench-bfd": {"bfd", "bfd-move"}, "bench-filter": set(), "bench-large": {"large"},
    "bench-quick": {"guard", "forward", "fib4", "fib6"},
}  # fmt: skip
ROWS = {
    "bench-filter": {None: {"filter", "filter-rate"}, "time": {"filter"}, "rate": {"filter-rate"}},
    "bench-forward": {None: {"forward"}, "len": {"sweep"}, "set": {"sweep"}},
    "bench-fpm": {
        None: {"ingest", "memory", "replay", "change-idle", "group-change"},
        "change": {"change-idle", "change-replay", "link-loss-replay"},
        "group": {"group-change", "link-loss"},
        "labels": {"labels-ingest", "labels-memory", "labels-reroute", "labels-shared"},
        "sids": {"sids-in-force", "sids-memory"},
        "vnis": {"vnis-in-force", "vnis-memory"},
    },
}
# Option -> the key of rows. The rows have exactly the values of the option.
KEYS = {"LOADS": "load", "DOING": "doing", "DEPTHS": "depth", "KINDS": "kind",
        "TABLES": "table", "REPS": "runs"}  # fmt: skip
MAIN = {"bench-loss": "loss", "bench-sync": "sync", "bench-watch": "watch", "bench-tags": "tags"}


@dataclass
class Command:
    """A line of a block."""

    target: str
    options: dict
    files: dict = field(default_factory=dict)  # "1", "2": the file of its output


def commands(block):
    """Return the commands of a block. All of them are commands of make."""
    found = []
    for line in block.text.splitlines():
        words = [w for w in shlex.split(line, comments=True) if w != "-s"]
        assert words[0] == "make", line
        files = [re.fullmatch(r"(\d?)>>?(.+)", w) for w in words]
        found.append(Command(
            words[1], dict(w.split("=", 1) for w in words[2:] if re.match(r"[A-Z]\w*=", w)),
            {f[1] or "1": f[2] for f in files if f},
        ))  # fmt: skip
    return found


def judge(command, lines):
    """Raise AssertionError if the rows of a benchmark differ from the rows that its command asks
    for."""
    said = [r["command"] for r in lines if r["bench"] == "command"]
    assert len(said) == 1 and said[0].split()[:2] == ["make", command.target], said
    assert command.options.items() <= {
        *(tuple(w.split("=", 1)) for w in shlex.split(said[0])[2:])
    }, said
    left_out = [r for r in lines if r["bench"] in ("skip", "skipped")]
    assert [r for r in left_out if not allowed(r)] == []

    asked = command.options.get("ROWS", "").split(",")
    kinds = ROWS.get(command.target, {})
    want = SAYS[command.target].union(*(kinds.get(name or None, set()) for name in asked))
    assert want <= {r["bench"] for r in lines}

    main = [r for r in lines if r["bench"] == MAIN.get(command.target)]
    main = [r for r in main if not r.get("program", "").startswith("testpmd")]
    for option in command.options.keys() & KEYS.keys():
        got = {str(r[KEYS[option]]) for r in main}
        assert got == set(command.options[option].split(",")), f"{option}: {got}"


def allowed(row):
    """Return True for a row that may be missing: vectors that the CPU lacks, and rows for a second
    core."""
    return row["why"] in ("not on this CPU", "one core only")


def prefixes(of):
    """Return the lines of a table, with origins."""
    dice = random.Random(4)
    found = {of(dice) for _ in range(3000)}
    return "".join(f"{prefix} {dice.randrange(1, 65000)}\n" for prefix in sorted(found))


def prefix4(dice):
    """Return a random /24."""
    return f"{dice.randrange(11, 126)}.{dice.randrange(256)}.{dice.randrange(256)}.0/24"


def prefix6(dice):
    """Return a random /48."""
    return f"2a{dice.randrange(16):02x}:{dice.randrange(1, 9999)}:{dice.randrange(1, 9999)}::/48"


def missing():
    """Return one sentence why no benchmark can run here, or None."""
    why = why_not()
    if why:
        return why
    with HugePages(HUGE_MIB) as pages:
        if not pages.enough:
            return f"no {HUGE_MIB} MiB of huge pages"
    return None


def peers(folder):
    """Build the port and the peers once. Later benchmarks use them."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        tree = sources.fetch(folder)
        sources.build_port(tree, HERE / "forward", folder / "librte_net_bench.so")
        for name in sources.L3FWD:
            sources.build_l3fwd(tree, folder, name)
    except sources.SourceError as error:
        pytest.skip(f"the source of DPDK: {error}")
    return folder


class Tree:
    """A copy of the project with its builds."""

    def __init__(self, root):
        self.root, self.took = root, {}
        build = docs.ROOT / "build"
        shutil.copytree(docs.ROOT, root, symlinks=True,
                        ignore=shutil.ignore_patterns("build", ".*", "__pycache__"))  # fmt: skip
        for folder in [build / "release", *build.glob("sync-*"), *build.glob("watch-*")]:
            shutil.copytree(folder, root / "build" / folder.name,
                            ignore=shutil.ignore_patterns("bench-peers"))  # fmt: skip
        (root / "build/release/bench-peers").symlink_to(peers(build / "release/bench-peers"))
        for name, of in (("rib", prefix4), ("rib4", prefix4), ("rib6", prefix6)):
            with lzma.open(root / f"{name}.txt.xz", "wt", preset=0) as file:
                file.write(prefixes(of))

    def text(self, name):
        """Return the text of a file."""
        return (self.root / name).read_text(encoding="utf-8")

    def do(self, block):
        """Run a block and return its output. Raises AssertionError if it fails."""
        kept = {k: v for k, v in os.environ.items() if not re.match(r"MAKE|BUILD$|VERSION$", k)}
        short = LONG if re.search(r"^make bench ", block.text, re.M) else SHORT
        begin = time.monotonic()
        done = subprocess.run(
            ["sh", "-e", "-c", block.text], cwd=self.root, env={**kept, **short}, check=False,
            capture_output=True, text=True, timeout=BLOCK_S * PATIENCE,
        )  # fmt: skip
        where = f"README.md:{block.line}"
        print(f"{where}: {time.monotonic() - begin:.0f} s")
        assert done.returncode == 0, f"{where}: {block.text}\n{done.stdout}\n{done.stderr[-5000:]}"
        return done.stdout

    def judge(self, block, printed):
        """Check the results of a block."""
        here = runs(printed)
        for command in commands(block):
            for name in command.files.values():
                assert self.text(name), name
            if command.target in SAYS:
                to = command.files.get("1")
                judge(command, list(runs(self.text(to)))[-1] if to else next(here))
            elif command.target == "bench":
                self.judge_all()
        assert next(here, None) is None

    def judge_all(self):
        """Check the results of the last `make bench`: the file of each benchmark, and the report."""
        report = self.text("build/bench/report.md")
        for target in BENCHES:
            (one,) = runs(self.text(f"build/bench/{target}.jsonl"))
            judge(Command(target, {}), one)
            assert f"make {target} " in report
        assert "has no results here" not in report


def runs(text):
    """Yield the rows of each benchmark that printed to one place."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
            if found[-1]["bench"] == "command":
                yield found
                found = []
    assert found == [], "a benchmark has not printed its command"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return the tree in which all blocks run."""
    why = missing()
    if why:
        pytest.skip(why)
    return Tree(tmp_path_factory.mktemp("bench") / "tree")


ACCEPTED, DATA, PAGE = (
    "tests/bench/accepted.json", "tests/bench/measured.json", "fpm-dataplane/manual/performance.md"
)  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.line))
def test_a_block_does_what_it_says(tree, block):
    """Each command has exit code 0, prints the rows that it asks for, and writes its files."""
    before = {name: tree.text(name) for name in (ACCEPTED, DATA, PAGE)}

    printed = tree.do(block)

    tree.judge(block, printed)
    of = {c.target for c in commands(block) if "ACCEPT" in c.options}
    changed = {name for name, text in before.items() if tree.text(name) != text}
    assert changed == {"bench-quick": {ACCEPTED}, "bench-report": {DATA, PAGE}}.get(
        "".join(of), set()
    )
    if "bench-quick" in of:
        new, old = (json.loads(x) for x in (tree.text(ACCEPTED), before[ACCEPTED]))
        ours = bench_quick.of_cpu()
        assert new[ours]["ratios"].keys() >= next(iter(old.values()))["ratios"].keys()
        assert {k: v for k, v in new.items() if k != ours} == {
            k: v for k, v in old.items() if k != ours
        }
    if "bench-report" in of:
        taken = re.findall(rf"{PAGE}: (.*)", printed)
        assert taken == ["forward, stages, tags, vrfs, loss, latency, sync, lookups, fpm", "tags, vrfs"]
        assert "`make bench-tags " in tree.text(PAGE)
        page = tree.text(PAGE)
        subprocess.run([sys.executable, "tests/bench/measured.py"], cwd=tree.root, check=True)
        assert tree.text(PAGE) == page


def test_all_blocks_with_a_benchmark_are_run():
    """Every block of the page has the mark `run`, except the reports, which other tests show, and
    the benchmarks that need a guest or another root file system."""
    found = docs.blocks(HERE / "README.md")

    assert BLOCKS == [b for b in found if b.how == "run"]
    others = [b for b in found if b.how != "run"]
    assert {b.how for b in others} <= {"shown by", "not run"}
    assert {b.text.split()[1] for b in others} == {
        "bench-report", "bench-scale", "bench-dpdk", "bench-tunnels-vm", "bench-labels-vm",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["make bench-fpm ROWS=nonsense\n", "make bench-nothing\n"])
def test_a_command_that_fails_is_found(tree, text):
    """A block with a wrong command fails. Otherwise the test above would find nothing."""
    with pytest.raises(AssertionError, match="README.md:1: "):
        tree.do(docs.Block(HERE / "README.md", 1, "sh", text, "run", "bench"))


SYNC = [{"bench": "sync-turns"}, {"bench": "sync", "kind": "none", "runs": 3},
        {"bench": "command", "command": "make bench-sync KINDS=none REPS=3"}]  # fmt: skip


@pytest.mark.parametrize(
    "options, lines",
    [
        ({"KINDS": "none", "TURN": "3"}, SYNC),
        ({"KINDS": "none"}, SYNC[1:]),
        ({"REPS": "3"}, [*SYNC, {"bench": "sync", "kind": "qsbr", "runs": 2}]),
        ({"KINDS": "none"}, [{"bench": "skipped", "why": "it failed"}, *SYNC]),
    ],
    ids=["option", "rows", "value", "skipped"],
)
def test_what_was_not_done_is_found(options, lines):
    """judge() finds an option that the benchmark ignored, missing rows, other rows than those
    asked for, and rows that were left out."""
    judge(Command("bench-sync", {"KINDS": "none", "REPS": "3"}), SYNC)
    with pytest.raises(AssertionError):
        judge(Command("bench-sync", options), lines)
