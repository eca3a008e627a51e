# SPDX-License-Identifier: BSD-3-Clause
"""Measure packets that pass the same rules of nft in the kernel and in the daemon, in turns, on the
same kind of wires (veth). bench_filter.py calls it.

The rates are packets that arrived for each second of CPU time: of the kernel's thread that polls the
receiving veth, and of the daemon's forwarder, with its system calls for AF_PACKET. The forwarder polls
beside its work, so its rate is a lower limit.
"""

import contextlib
import os
from pathlib import Path

from bench_labels_vm import PLAIN, frames, sample, spread
from forward.kernel import ruleset
from fpm.rig import NoCollector, Rig
from lib import fpm_speaker as fpm
from lib import netns
from lib.wait import eventually
from linux_router import LinuxRouter

TABLE = "inet bench"  # the name in ruleset()
COUNTS = (0, 10, 1000)  # rules; no frame matches one


class Daemon:
    """The daemon as the router."""

    name = "fpm-dataplane"

    def __init__(self, rig):
        self.rig, self.far, self.ctl = rig, rig.far, rig.ctl
        rig.edit_config("fpm:\n", f'filter: {{table: "{TABLE}"}}\nfpm:\n')
        self.load(0)
        rig.fresh()
        rig.connect()
        wan = rig.wires["wan"]
        messages = [fpm.nexthop_message(10, wan.peer4, rig.ifindex(wan)), fpm.route_message(PLAIN, nhid=10)]
        rig.speaker.send_raw(b"".join(map(fpm.frame, messages)))
        (self.thread,) = [t for t, name in rig.threads().items() if name.startswith("fwd-")]

    def load(self, n):
        """Replace the rules."""
        netns.run(self.ctl, ["nft", "-f", "-"], stdin=f"flush ruleset\n{ruleset(n)}")

    def in_force(self, n):
        """Return when n rules are in force."""

        def seen():
            row = self.rig.control.ask("filter")[0]
            return (row["state"], row["rules"]) == ("in-force", n)

        eventually(seen, 20, 0.01, f"{n} rules are in force")


class Linux:
    """The kernel as the router."""

    name = "Linux"

    def __init__(self, rig):
        before = napi_threads()
        self.router = LinuxRouter(rig)
        self.router.build()
        self.router.collector.close()  # the collector would read each packet
        self.router.collector = NoCollector()
        self.far, self.ctl = self.router.far, self.router.ctl
        self.router.ip(f"route add {PLAIN} via {rig.wires['wan'].peer4} dev wan0")
        netns.sysctl(self.ctl, {"net.ipv4.ip_forward": 1})
        netns.run(self.ctl, ["ethtool", "-K", "lan0", "gro", "on"])
        netns.run(self.ctl, ["sh", "-c", "echo 1 >/sys/class/net/lan0/threaded"], sysfs=True)
        (self.thread,) = napi_threads() - before
        os.sched_setaffinity(self.thread, {rig.own_cpu})

    def load(self, n):
        """Replace the rules."""
        netns.run(self.ctl, ["nft", "-f", "-"], stdin=f"flush ruleset\n{ruleset(n)}")

    def in_force(self, n):
        """Return at once: nft returns when the rules are in force."""


def napi_threads():
    """Return the threads that poll a device lan0, in all namespaces."""
    found = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            if comm.read_text().startswith("napi/lan0-"):
                found.add(int(comm.parent.name))
    return found


def measure(reps, seconds):
    """Yield a row for each number of rules and each router."""
    with Rig() as rig, contextlib.ExitStack() as undo:
        daemon, linux = Daemon(rig), Linux(rig)
        undo.callback(linux.router.destroy)
        both = (linux, daemon)
        for router in both:
            # The far end takes no part of the measured core.
            netns.run(router.far, ["sh", "-c", "echo 1 >/sys/class/net/wan/queues/rx-0/rps_cpus"], sysfs=True)
        for wire in (*rig.wires.values(), *linux.router.wires.values()):
            wire.sock.close()
        path = Path(rig.dir) / "flood"
        path.write_bytes(frames(rig.wires["lan"], PLAIN))
        for n in COUNTS:
            turns = {router.name: [] for router in both}
            for router in both:
                router.load(n)
                router.in_force(n)
            for _ in range(reps):
                for router in both:
                    turns[router.name].append(sample(router, path, seconds, rig.control_cpu))
            for name, rows in turns.items():
                row = {"bench": "filter-rate", "of": n, "program": name}
                yield row | {k: spread([r[k] for r in rows]) for k in rows[0]}


def report(rows):
    """Return the lines of a table. The goal is a ratio for the most rules."""
    lines = [("rules, none matches", "Linux, kpps of a core", "fpm-dataplane", "ratio", "at least", "aim")]
    by = {(r["of"], r["program"]): r["kpps"] for r in rows}
    for n in COUNTS:
        both = [by[n, router.name] for router in (Linux, Daemon)]
        cells = [f"{r['median']:,} ({r['min']:,}..{r['max']:,})" for r in both]
        goal = ("5", "10") if n == COUNTS[-1] else ("", "")
        lines.append((f"{n:,}", *cells, f"{both[1]['median'] / both[0]['median']:.1f}", *goal))
    return lines
