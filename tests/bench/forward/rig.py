# SPDX-License-Identifier: BSD-3-Clause
"""Common parts of all forwarding benchmarks: build the port and the peers, make tables and frames,
reserve huge pages, print JSON lines, start and end programs, handle failures."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import command
from bench_fib import HugePages, choose_cpus, cpus_that_share
from forward import sources
from forward.programs import N_OUT, L3fwd, Ours, ProgramError, Testpmd, isa
from lib import netns
from lib.dataplane import DataplaneError

HERE = Path(__file__).resolve().parent
# Table -> the file names of its frames, routes and rules (a digit for the family follows).
FILES = {
    "none": {4: ("one", "one-routes", "one-l3fwd"), 6: ("few", "few-routes", "few-l3fwd")},
    "few": {f: ("few", "few-routes", "few-l3fwd") for f in (4, 6)},
    "full": {f: ("frames", "routes", "l3fwd") for f in (4, 6)},
    "set": {4: ("set", "routes", "l3fwd"), 6: ("frames", "routes", "l3fwd")},
    **{
        t: {f: (f"{t}/frames", f"{t}/routes", f"{t}/l3fwd") for f in (4, 6)}
        for t in ("606k", "1m")
    },
}
# Generated tables, independent of TABLE: number of IPv4 routes, of IPv6 routes.
MADE_UP = {"606k": (606_000, 30_000), "1m": (1_000_000, 200_000)}
# The routes that every program can hold: (prefix, prefix in l3fwd's form, port).
ONE = {4: [("0.0.0.0/0", "0.0.0.0/0", 1)]}
FEW = {
    4: [(f"{a}.0.0.0/2", f"{a}.0.0.0/2", 1 + i) for i, a in enumerate((0, 64, 128, 192))],
    6: [(f"{a:x}00::/5", f"{a:x}00:0:0:0:0:0:0:0/5", 1 + i)
        for i, a in enumerate((0x20, 0x28, 0x30, 0x38))],
}  # fmt: skip
ASKED = set()  # names of the options that were read


def option(name, default):
    """Return an option from the environment, with the type of the default."""
    ASKED.add(name)
    text = os.environ.get(name) or str(default)
    return type(default)(text)


def options(name, default):
    """Return a comma-separated list from the environment, with items of the default's type."""
    ASKED.add(name)
    kind = type(next(iter(default)))
    return [kind(x) for x in os.environ.get(name, "").split(",") if x] or list(default)


def quick():
    """Return True for a short run."""
    return option("QUICK", "0") not in ("", "0")


def in_order(cpu):
    """Return the CPUs for programs with several cores: `cpu` first, siblings of others last."""
    seen, cores, siblings = set(), [], []
    for one in [cpu, *sorted(os.sched_getaffinity(0) - {cpu})]:
        (siblings if one in seen else cores).append(one)
        seen |= cpus_that_share(one, "topology/thread_siblings_list")
    return cores + siblings


class Bench:
    """The common data of a run: files, CPUs, the plugin, and the results."""

    def __init__(self, name, build):
        self.name, self.build = name, build
        self.dir = build.parent / "bench-forward"
        self.dir.mkdir(parents=True, exist_ok=True)
        self.cpu, hog = choose_cpus()
        self.other_cpu = hog if hog >= 0 else self.cpu
        self.cpus = in_order(self.cpu)
        self.frame_len = option("LEN", 64)
        self.reps = option("REPS", 3 if quick() else 7)
        self.seconds = option("SECONDS", 0.4)
        self.plugin_dir = self.plugin = None
        self.l3fwd = {}
        self.lines = []
        self.frames, self.rules, self.routes = {}, {}, {}

    def say(self, text):
        """Print a message during the run."""
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def emit(self, row):
        """Print a JSON line, and keep it for the report."""
        print(json.dumps(row), flush=True)
        self.lines.append(row)

    def skip(self, what, why):
        """Record that a peer is left out."""
        self.say(f"skipped: {what}: {why}")
        self.emit({"bench": "skipped", "what": what, "why": str(why)})

    def prepare(self):
        """Build the port, the peers and the tables."""
        folder = self.build / "bench-peers"
        folder.mkdir(parents=True, exist_ok=True)
        tree = sources.fetch(folder)
        plugin = folder / "librte_net_bench.so"
        sources.build_port(tree, HERE, plugin)
        # EAL accepts no plugin from below a folder that all users can write to.
        self.plugin_dir = Path(tempfile.mkdtemp(prefix="fdp-bench-", dir="/run"))
        self.plugin = Path(shutil.copy(plugin, self.plugin_dir))
        (self.plugin_dir / "files").symlink_to(self.dir)
        for name in sources.L3FWD:
            try:
                self.l3fwd[name] = sources.build_l3fwd(tree, folder, name, isa())
            except sources.SourceError as error:
                self.skip(name, error)
        self.tables()

    def near(self, path):
        """Return a short path of a file. Devargs and names of sockets have little room, and the
        project may lie below a long path."""
        return self.plugin_dir / "files" / path.relative_to(self.dir)

    def make_table(self, folder, *routes):
        """Make routes and frames of a table below `folder`, unless they exist already.

        routes: numbers of IPv4 and of IPv6 routes to generate; then files with routes
        """
        folder.mkdir(exist_ok=True)
        argv = [str(self.build / "tests/bench/bench_frames"), str(folder), str(N_OUT)]
        argv += [str(option("FRAMES", 4194304)), str(option("FRAMES6", 1048576))]
        argv += map(str, routes)
        program = Path(argv[0]).stat().st_mtime
        known, made = folder / "made", f"{program} {' '.join(argv)}"
        if not known.exists() or known.read_text().split("\n")[0] != made:
            text = sources.run(argv)
            known.write_text(f"{made}\n{text}")
        for line in known.read_text().splitlines()[1:]:
            name, size = line.rsplit(" ", 1)
            self.say(f"table {name}: {size} routes")

    def tables(self):
        """Make the full table, and the tables that every program can hold."""
        files = option("TABLE", "").split()
        routes = option("ROUTES", 900_000), option("ROUTES6", 160_000)
        self.make_table(self.dir, *routes, *files)
        for what, routes in (("one", ONE), ("few", FEW)):
            for family in routes:
                text = "".join(f"{ours} {port}\n" for ours, _, port in routes[family])
                (self.dir / f"{what}-routes{family}").write_text(text)
                text = "".join(f"R{theirs} {port}\n" for _, theirs, port in routes[family])
                (self.dir / f"{what}-l3fwd{family}").write_text(text)

    def use(self, table):
        """Choose one of the tables of FILES."""
        if table in MADE_UP:
            self.make_table(self.dir / table, *MADE_UP[table])
        for family, names in FILES[table].items():
            paths = [self.dir / f"{name}{family}" for name in names]
            self.frames[family], self.routes[family], self.rules[family] = paths

    def clean(self):
        """Remove the files outside of build/."""
        if self.plugin_dir:
            shutil.rmtree(self.plugin_dir, ignore_errors=True)

    def machine(self):
        """Return a description of the machine."""
        text = Path("/proc/cpuinfo").read_text()
        model = [x for x in text.splitlines() if "model name" in x]
        version = subprocess.run(
            [str(self.build / "fpm-dataplane"), "--version"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        return {"bench": "machine", "cpu": model[0].split(":")[1].strip() if model else "?",
                "cores": os.cpu_count(), "kernel": os.uname().release, "version": version,
                "dpdk": sources.package_version(), "measured_cpu": self.cpu,
                "load": round(os.getloadavg()[0], 1)}  # fmt: skip


@contextlib.contextmanager
def l3(bench):
    """A context in which another core copies through the L3, with L3=contended. Emits the time of a
    load on the measuring core, before and after."""
    state = option("L3", "idle")
    if state not in ("idle", "contended"):
        raise ValueError(f"L3={state}: expected idle or contended")
    if state == "idle":
        yield
        return
    if bench.other_cpu == bench.cpu:
        raise RuntimeError("L3=contended needs a second core behind the same L3")
    program = str(bench.build / "tests/bench/bench_fib")
    argv = [program, "-S", "-c", str(bench.cpu), "-C", str(bench.other_cpu)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hog:
        before = json.loads(hog.stdout.readline())
        try:
            yield
        finally:
            hog.stdin.close()
            after = json.loads(hog.stdout.readline())
    bench.emit({"bench": "l3", "state": state, **after, "chase_8mib_ns": [d["chase_8mib_ns"] for d in (before, after)]})


def peers(bench, table, more="", n_cores=1, prompt=False):
    """Return the wanted programs of a table, in order.

    more: lines for our configuration file, before those of CONFIG
    prompt: also l3fwd changed so that it delays no packet
    """
    end = f"-{table}" if n_cores == 1 else f"-{table}-{n_cores}"
    config = more + option("CONFIG", "")
    if isa():
        config = f"instructions: {command.limit()}\n{config}"
    made = [Ours(f"ours{end}", bench, more=config, n_cores=n_cores)]
    if base := option("BASE", ""):
        made.append(Ours(f"ours-base{end}", bench, more=config, build=base, n_cores=n_cores))
    if table in ("full", "none") and shutil.which("dpdk-testpmd"):
        made += [Testpmd(f"testpmd-{m}{end}", bench, m, n_cores) for m in ("io", "macswap")]
    if table == "few" or option("LPM_FULL", 0):
        if "l3fwd-4B" in bench.l3fwd:
            program = bench.l3fwd["l3fwd-4B"]
            made.append(L3fwd(f"l3fwd-lpm{end}", bench, "lpm", program, n_cores=n_cores))
    for size in ("4B", "2B", "4B-prompt", "2B-prompt") if prompt else ("4B", "2B"):
        if f"l3fwd-{size}" in bench.l3fwd and table != "none":
            program = bench.l3fwd[f"l3fwd-{size}"]
            name, two = f"l3fwd-fib-{size}{end}", size.startswith("2B")
            made.append(L3fwd(name, bench, "fib", program, only4=two, n_cores=n_cores))
    return wanted(made)


def wanted(programs):
    """Return the programs whose names contain a word of PEERS."""
    parts = options("PEERS", [""])
    return [p for p in programs if any(x in p.name for x in parts)]


def kind(program, table):
    """Return a program's name without the suffix of peers()."""
    return program.name.partition(f"-{table}")[0]


class Started:
    """A context with started, loaded and stopped (SIGSTOP) programs. A peer that does not start is
    left out. If the dataplane does not start, that is an error. All programs end with the context."""

    def __init__(self, bench, programs):
        self.bench, self.programs = bench, programs

    def __enter__(self):
        running = []
        try:
            for program in self.programs:
                self.bench.say(f"{program.name} starts")
                try:
                    program.start()
                except (ProgramError, AssertionError, OSError) as error:
                    if isinstance(program, Ours):
                        raise
                    self.bench.skip(program.name, error)
                    program.stop()
                    continue
                running.append(program)
        except BaseException:
            self.__exit__()
            raise
        return running

    def __exit__(self, *exc):
        for program in self.programs:
            program.stop()


def run(name, measure, report, prepare=Bench.prepare):
    """Run a benchmark. Return the exit code.

    measure(bench) prints the lines, report(lines, file) the tables. prepare(bench) makes the
    files; Bench.tables is for programs without ports. argv[1] is the folder of the build. The
    benchmark fails only if a frame of ours left wrong or a lookup of ours was wrong.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    bench = Bench(name, Path(sys.argv[1]).resolve())
    if os.geteuid() != 0:
        bench.say("needs root: huge pages, namespaces, TAPs")
        return 1
    try:
        bench.emit(bench.machine())
        prepare(bench)
        with HugePages(option("HUGE_MIB", 6144)) as pages:
            if not pages.enough:
                bench.say("not enough huge pages")
                return 1
            measure(bench)
            bench.emit(command.line(name, ASKED | {"HUGE_MIB", "ISA"}))
    except (sources.SourceError, netns.CommandError, ProgramError, DataplaneError) as error:
        bench.say(f"cannot run: {error}; logs are in {bench.dir}")
        return 1
    except KeyboardInterrupt:
        bench.say("interrupted")
        return 130
    finally:
        bench.clean()
    report(bench.lines, sys.stderr)
    wrong = sum(r.get("wrong_port", 0) + r.get("wrong_header", 0)
                for r in bench.lines if str(r.get("program", "")).startswith("ours"))  # fmt: skip
    if wrong:
        bench.say(f"FAILED: {wrong} frames left wrong")
    return 1 if wrong else 0
