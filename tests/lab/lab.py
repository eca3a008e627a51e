#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lab as a whole: start it in steps, and remove it completely from any state.

    lab.py up [--name N] [--routes N]     lab.py status [--name N]
    lab.py down [--name N]                lab.py vtysh [--name N] [NODE] [vtysh words]
    lab.py start|stop|restart [--name N] NODE|dp [DAEMON]
    lab.py birdc [--name N] [birdc words]
    lab.py fpmctl [--name N] NODE [fpmctl words]

A scenario, a folder of frr-config, defines the content of a lab. The lab called "lab" uses plain
names (r1, isp, ...); any other appends its own name, so labs run side by side. LAB=NAME in
the environment is --name. All files are below /run/fpm-lab/NAME. A lab records each object
before it makes it: `down` works after kill -9 at any moment, and removes no other object.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lab.plan import ROUTER, WIRES, Plan, wires
from lib import flowspec, netns, procs
from lib.bird import Bird
from lib.dataplane import ROOT, Dataplane
from lib.frr import Box, Frr, Neighbor
from lib.wait import eventually

RUN = "/run/fpm-lab"
SCENARIOS = os.path.join(ROOT, "frr-config")
PLAIN = "lab"  # the lab with the plain names of the READMEs


class LabError(Exception):
    """The lab cannot be made; the message is one sentence for the user."""


class Lab:
    """One lab. Use it as `with Lab("x") as lab:` to have it torn down at the end."""

    def __init__(self, name=PLAIN, scenario=None):
        self.name = name
        self.dir = os.path.join(RUN, name)
        self.scenario = scenario or self._recorded("scenario") or "demo"
        self.folder = os.path.join(SCENARIOS, self.scenario)
        self.plan = Plan(self.folder)
        suffix = "" if name == PLAIN else f"-{name}"
        self.ns = {node: node + suffix for node in self.plan.nodes}
        self.socket = (
            "/run/fpm-dataplane/control.sock" if not suffix else self.path("control.sock")
        )
        self.r1 = self._routing()
        self.neighbors = {
            node: (Box if node in self.plan.boxes else Neighbor)(
                node, self.ns[node], self.folder, daemons, self.path(node), self.dir
            )
            for node, daemons in self.plan.having("frr").items()
        }
        self.birds = {
            node: Bird(self.ns[node], f"{self.folder}/{file}", self.path(node), self.dir)
            for node, file in self.plan.having("bird").items()
        }
        self.dps = {box: self._dataplane(box) for box in self.plan.boxes}
        self.dp = self.dps[ROUTER]
        self.owned = False  # True if this program made the lab
        self._lock = None

    def _dataplane(self, box):
        """Return the dataplane of a box. The files of r1's dataplane have the names in the READMEs."""
        of = "" if box == ROUTER else box + "-"
        return Dataplane(
            self.ns[wires(box)],
            self.path(of + "fpm-dataplane.yaml"),
            self.path(of + "control.sock") if of else self.socket,
            self.path(of + "fpm-dataplane.log"),
            self.dir,
            supervised=True,
        )

    def seat(self, box):
        """Return the lab as another box than r1 sees it (see Seat)."""
        return self if box == ROUTER else Seat(self, box)

    def _routing(self):
        """Return the routing daemons of r1, or None."""
        where = self.ns[ROUTER], self.folder, self.path(ROUTER), self.dir
        if self.plan.runs == "frr":
            return Frr(*where)
        return Bird(where[0], f"{where[1]}/bird.conf", *where[2:]) if self.plan.runs else None

    @property
    def frrs(self):
        """Return every FRR by its node, r1's first."""
        return {node: x for node, x in self.routers.items() if isinstance(x, Frr)}

    @property
    def routers(self):
        """Return the routing daemons of each node that has any, r1's first."""
        return {**({ROUTER: self.r1} if self.r1 else {}), **self.neighbors}

    def path(self, *parts):
        """Return the path of a file of this lab."""
        return os.path.join(self.dir, *parts)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.down()
        self.unlock()

    def watch_r1(self):
        """Start watchfrr, which restarts r1's routing daemons when they end."""
        me = os.path.abspath(__file__)
        self.r1.watch(f"{sys.executable} {me} %VERB --name {self.name} r1")

    # -- up, in the order a router boots --------------------------------------------------

    def create(self):
        """Make namespaces and cables, after the removal of an old lab of the same name."""
        if os.geteuid() != 0:
            raise LabError("The lab makes network namespaces: please run it as root.")
        self.lock()
        self.down()
        for name in self.ns.values():
            if netns.exists(name):
                raise LabError(
                    f"There is a network namespace {name} that this lab did not make; "
                    f"`ip netns del {name}` removes it if nobody needs it."
                )
        self.owned = True
        os.makedirs(self.dir)
        for name, words in (
            ("scenario", [self.scenario]),
            ("namespaces", self.ns.values()),
        ):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write("\n".join(words) + "\n")
        self.plan.create(self.ns)

    def start_dataplane(self):
        """Start the daemon with the scenario's configuration, adapted to this lab. Then make the
        interfaces on the TAPs."""
        self.write_dataplane_config()
        self.start_again()

    def start_again(self):
        """Start the daemon after its end, with its present configuration, and the interfaces on the
        TAPs, which ended with it."""
        self.dp.start()
        self.plan.stack(self.ns[ROUTER])

    def write_dataplane_config(self):
        """Write the scenario's configuration, adapted to this lab."""
        for box, dp in self.dps.items():
            path = os.path.join(self.folder, "fpm-dataplane.yaml")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            text = text.replace("control-netns: r1\n", f"control-netns: {self.ns[box]}\n")
            text = text.replace("/run/fpm-dataplane/control.sock", dp.socket)
            with open(dp.config, "w", encoding="utf-8") as file:
                file.write(text)
            os.makedirs(os.path.dirname(dp.socket), exist_ok=True)

    def start_isp(self, n4=0, n6=0, seed=1):
        """Start the BGP speaker. It tries to connect until r1 answers."""
        ((node, about),) = self.plan.having("speaker").items()
        n6 = n6 if "hop6" in about else 0
        argv = [sys.executable, os.path.join(ROOT, "tests", "lab", "bgp_speaker.py")]
        argv += ["--peer", about["peer"], "--local-as", str(about["as"])]
        argv += ["--next-hop4", about["hop4"], "--next-hop6", about.get("hop6", "::")]
        argv += ["--routes4", str(n4), "--routes6", str(n6), "--seed", str(seed)]
        argv += ["--control", self.path("isp.sock")]
        procs.start(argv, self.dir, self.path("isp.log"), self.ns[node])

    def start_routers(self):
        """Start the dataplane, then r1's routing daemons, which need the TAPs. Start the neighbors
        meanwhile."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            hosts = [x for node, x in self.neighbors.items() if node not in self.dps]
            jobs = [pool.submit(other.start) for other in [*hosts, *self.birds.values()]]
            self.start_dataplane()
            # Start the boxes one after the other, before zebra: zebra must not see links between
            # boxes come up and go down.
            for box in (x for x in self.dps if x != ROUTER):
                self.dps[box].start()
                self.plan.stack(self.ns[box], box)
            jobs += [pool.submit(self.neighbors[box].start) for box in self.dps if box != ROUTER]
            if self.r1:
                self.r1.start()
            for job in jobs:
                job.result()
        if self.plan.of(ROUTER, "flowspec"):
            argv = flowspec.command(self.r1, self.path("flowspec"))
            procs.start(argv, self.dir, self.path("flowspec.log"), self.ns[ROUTER])

    def up(self, n4=1000, n6=200):
        """Start everything. Do not wait until routing converges."""
        self.create()
        if self.plan.having("speaker"):
            self.start_isp(n4, n6)
        self.start_routers()

    def isp(self, cmd, **args):
        """Give the BGP speaker one command, return its answer (see bgp_speaker.py)."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(self.path("isp.sock"))
            sock.sendall(json.dumps({"cmd": cmd, **args}).encode() + b"\n")
            answer = json.loads(sock.makefile().readline())
        if "error" in answer:
            raise LabError(f"isp: {answer['error']}")
        return answer

    def tail(self, name, lines=10):
        """Return the last lines of a file of this lab."""
        try:
            with open(self.path(name), errors="replace") as file:
                return "\n".join(file.read().splitlines()[-lines:])
        except OSError:
            return ""

    # -- down -----------------------------------------------------------------------------

    def down(self):
        """End and remove everything that this lab made. A second call is no error."""
        procs.end_all(self.dir)
        for name in self.namespaces():
            netns.delete(name)
        if os.path.isdir(self.dir) and self.name == PLAIN and os.path.exists(self.socket):
            os.unlink(self.socket)
        shutil.rmtree(self.dir, ignore_errors=True)

    def is_up(self):
        """Return True if this lab was made, whether or not it works."""
        return bool(self.namespaces())

    def namespaces(self):
        """Return the namespaces that were made, also those of another scenario."""
        return self._recorded("namespaces").split()

    def _recorded(self, name):
        try:
            with open(self.path(name), encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    # -- a whole box ------------------------------------------------------------------------

    def kill_box(self, box):
        """Kill all programs of a box at once. Its cables stay plugged in."""
        pids = self._programs(box)
        for pid in pids:
            procs.signal_pid(pid, signal.SIGKILL)
        self.dps[box].process.wait()
        eventually(lambda: not any(map(procs.is_alive, pids)), 10, what=f"the programs of {box} end")

    def _programs(self, box):
        """Return the processes of a box, the supervisor first: it must not start another daemon."""
        dp, frr = self.dps[box], self.routers[box]
        return [dp.process.pid, *self.pids(dp), *map(frr.pid, frr.daemons)]

    @contextlib.contextmanager
    def stopped_box(self, box):
        """Stop all programs of a box, until the with block ends. Its cables stay plugged in."""
        pids = self._programs(box)
        try:
            for pid in pids:
                procs.stand_still(pid)
            yield
        finally:
            for pid in reversed(pids):
                procs.signal_pid(pid, signal.SIGCONT)

    def boot_box(self, box):
        """Start the programs of a killed box again, in the order of a boot. Its kernel, which is a new
        namespace, has no routes."""
        self.plan.again(self.ns[box], box)
        self.dps[box].start()
        self.plan.stack(self.ns[box], box)
        self.routers[box].restart_all()

    # -- one program at a time ------------------------------------------------------------

    def lock(self):
        """Take the lock, so that two programs do not build the same lab at once. The kernel
        releases it when the program ends."""
        os.makedirs(RUN, exist_ok=True)
        path = os.path.join(RUN, self.name + ".lock")
        while self._lock is None:
            file = open(path, "a+", encoding="ascii")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise LabError(
                    f"The lab {self.name} is being built by process {file.read().strip()}: "
                    "wait until it is done, or end it with Ctrl-C, and try again."
                ) from None
            if os.fstat(file.fileno()).st_nlink:  # its last holder has not removed it
                file.truncate(0)
                print(os.getpid(), file=file, flush=True)
                self._lock = file

    def unlock(self):
        """Release the lock, so that others can build the lab. Remove its file."""
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None

    def pids(self, dp):
        """Return the processes of a dataplane, without its supervisor."""
        found = procs.marked(self.dir, "fpm-dataplane")
        return [pid for pid in found if dp.config in procs.words(pid)]

    def missing(self):
        """Return the names of the programs of this lab that do not run."""
        found = [
            f"{daemon} of {node}"
            for node, router in self.routers.items()
            for daemon in router.daemons
            if not router.runs(daemon)
        ]
        found += [
            "fpm-dataplane" + ("" if box == ROUTER else f" of {box}")
            for box, dp in self.dps.items()
            if not self.pids(dp)
        ]
        for node in self.plan.having("speaker"):
            try:
                self.isp("status")
            except OSError:
                found.append(f"{node}'s BGP speaker")
        return found


class Seat:
    """The lab with another box in place of r1: `r1` is the box's FRR, `dp` its dataplane, and the
    name of r1 stands for its namespace. So evidence.py and steps.py show the state of this box."""

    def __init__(self, lab, box):
        self.plan, self.dp, self.r1 = lab.plan, lab.dps[box], lab.neighbors[box]
        self.socket = self.dp.socket
        self.ns = {**lab.ns, ROUTER: lab.ns[box], WIRES: lab.ns[wires(box)]}


def _status(lab):
    """Print a few lines about the programs that run."""
    if not lab.is_up():
        print(f"lab {lab.name}: not there")
        return 1
    print(f"lab {lab.name}, {lab.scenario}: namespaces {' '.join(lab.namespaces())}")
    for pid in sorted(procs.marked(lab.dir)):
        print(f"  {pid:7d} {procs.comm(pid)}")
    missing = lab.missing()
    if missing:
        print(f"does not run: {', '.join(missing)}")
    return 1 if missing else 0


def _daemon(lab, verb, node, daemon):
    """Start, stop or restart a daemon: one of FRR, BIRD, or the dataplane."""
    if node == "dp":
        if verb != "start":
            for pid in lab.pids(lab.dp):
                procs.signal_pid(pid, signal.SIGTERM)
                eventually(lambda pid=pid: not procs.is_alive(pid), 10, what="it ends")
        if verb != "stop":
            lab.dp.start()
        return 0
    frr = lab.routers.get(node) or _frr(lab, node)
    if daemon in (None, "all") and verb == "restart":
        frr.restart_all()
    elif daemon not in frr.daemons:
        raise LabError(f"{node} runs {', '.join(frr.daemons)}; not {daemon}.")
    elif verb == "stop":
        frr.stop(daemon)
    else:
        frr.restart(daemon)
    return 0


def _frr(lab, node):
    """Return the FRR of a node."""
    if node not in lab.frrs:
        raise LabError(f"{node} has no FRR; these have: {', '.join(lab.frrs)}.")
    return lab.frrs[node]


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="lab.py", description="make demo's and make lab's"
    )
    sub = parser.add_subparsers(dest="what", required=True)
    names = ("up", "down", "status", "vtysh", "birdc", "fpmctl", "start", "stop", "restart")
    verbs = {v: sub.add_parser(v) for v in names}
    for verb in verbs.values():
        verb.add_argument("--name", default=os.environ.get("LAB", PLAIN))
    verbs["up"].add_argument("--routes", type=int, default=1000)
    for verb in ("start", "stop", "restart"):
        verbs[verb].add_argument("node")
        verbs[verb].add_argument("daemon", nargs="?")
    args, words = parser.parse_known_args()
    if words and args.what not in ("vtysh", "birdc", "fpmctl"):
        parser.error(f"unknown: {' '.join(words)}")
    lab = Lab(args.name)
    try:
        if args.what == "up":
            lab.up(args.routes, args.routes // 5)
        elif args.what == "down":
            there = lab.is_up()
            lab.down()
            with contextlib.suppress(LabError):
                lab.lock()  # unlock() removes the lock file of a program that was killed
            print(f"lab {lab.scenario}: removed" if there else "no lab is up")
        elif args.what == "status":
            return _status(lab)
        elif not lab.is_up():
            raise LabError(
                f"The lab {lab.name} is not up; `make demo` or `make lab` makes one."
            )
        elif args.what == "birdc":
            if not isinstance(lab.r1, Bird):
                raise LabError(f"r1 of {lab.scenario} has no BIRD.")
            argv = lab.r1.birdc_argv() + words
            os.execvp(argv[0], argv)
        elif args.what == "fpmctl":
            if not words or words[0] not in lab.dps:
                raise LabError(f"These have a dataplane: {', '.join(lab.dps)}.")
            dp = lab.dps[words.pop(0)]
            os.execvp(dp.ctl, [dp.ctl, "-s", dp.socket, *words])
        elif args.what != "vtysh":
            return _daemon(lab, args.what, args.node, args.daemon)
        else:
            node = words.pop(0) if words and not words[0].startswith("-") else ROUTER
            frr = _frr(lab, node)
            if not any(map(frr.runs, frr.daemons)):
                raise LabError(
                    f"No daemon of {node} runs any more; its logs are in {frr.dir}. "
                    f"`tests/lab/lab.py restart {node}` starts them again."
                )
            argv = frr.vtysh_argv() + words
            os.execvp(argv[0], argv)
    except (LabError, netns.CommandError) as err:
        print(err, file=sys.stderr)
        return 1
    finally:
        lab.unlock()
    return 0


if __name__ == "__main__":
    sys.exit(main())
