#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure a route server or route reflector with several full tables: real bgpd and zebra, several peers
that announce the same prefixes, and the configurations by which FRR can filter routes before FPM. For each:
time, memory of bgpd, zebra, the kernel and the dataplane. JSON lines on stdout, a table on stderr;
options from the environment (tests/bench/README.md). Needs root."""

import json
import os
import signal
import socket
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bench import command
from bench.fib_report import print_columns
from lab import routes
from lab.lab import Lab
from lib import netns, procs
from lib.dataplane import ROOT
from lib.dut import why_not
from lib.wait import eventually

FULL = {"ROUTES": 1_000_000, "PEERS": 4, "REPS": 1}
QUICK = {"ROUTES": 100_000, "PEERS": 2, "REPS": 1}
AS, FIRST_AS = 64500, 65541
SHORT = 20  # bits: the choice `short` installs prefixes up to this length
LOAD_S = 900
QUIET_S = 2.0  # without CPU time of bgpd and zebra: all is done
PROGRAMS = ("bgpd", "zebra", "fpm-dataplane")
FAMILY = (f"router bgp {AS}", "address-family ipv4 unicast")
# Name: the lines of vtysh before the sessions start, and a function from the length of a prefix to
# whether the prefix is installed.
CHOICES = {
    "all": ((), lambda bits: True),
    "short": (
        (f"ip prefix-list SHORT seq 5 permit 0.0.0.0/0 le {SHORT}", "route-map SHORT permit 10",
         "match ip address prefix-list SHORT", "exit", *FAMILY, "table-map SHORT"),
        lambda bits: bits <= SHORT,
    ),
    "table-map": (("route-map NONE deny 10", "exit", *FAMILY, "table-map NONE"), lambda bits: False),
    "zebra-map": (("route-map NONE deny 10", "exit", "ip protocol bgp route-map NONE"), lambda bits: False),
    "no-rib": (("bgp no-rib",), lambda bits: False),
}  # fmt: skip


def options():
    """Return the options by name, and the chosen filters."""
    default = QUICK if os.environ.get("QUICK", "0") not in ("", "0") else FULL
    found = {name: int(os.environ.get(name) or n) for name, n in default.items()}
    names = [c for c in (os.environ.get("CHOICES") or ",".join(CHOICES)).split(",") if c]
    unknown = [name for name in names if name not in CHOICES]
    if unknown:
        sys.exit(f"bench-large: CHOICES is a list of {', '.join(CHOICES)}; not {unknown[0]}")
    if not 1 <= found["PEERS"] <= 200:
        sys.exit("bench-large: PEERS is a number from 1 to 200")
    return found, names


class Peer:
    """A BGP speaker behind wan0 with a session and an AS of its own."""

    def __init__(self, lab, number):
        self.lab, self.number = lab, number
        self.ours, self.its = f"10.9.{number}.1", f"10.9.{number}.2"
        self.control = lab.path(f"peer{number}.sock")

    def start(self, n):
        """Start the speaker, which makes its table first. It stays disconnected."""
        # All addresses are local in this namespace, except those of table 100 (plan.py).
        lines = [f"addr add {self.its}/30 dev eth0", f"route add table 100 {self.ours} dev eth0"]
        netns.ip_batch(lines, self.lab.ns["isp"])
        argv = [sys.executable, os.path.join(ROOT, "tests", "lab", "bgp_speaker.py")]
        argv += ["--peer", self.ours, "--local-as", str(FIRST_AS + self.number)]
        argv += ["--next-hop4", self.its, "--next-hop6", "::", "--routes4", str(n)]
        argv += ["--control", self.control]
        procs.start(argv, self.lab.dir, self.lab.path(f"peer{self.number}.log"), self.lab.ns["isp"])

    def ask(self, cmd):
        """Give the speaker a command. Return its answer."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(self.control)
            sock.sendall(json.dumps({"cmd": cmd}).encode() + b"\n")
            return json.loads(sock.makefile().readline())

    def configuration(self):
        """Return the lines of vtysh for the session."""
        return (
            "interface wan0", f"ip address {self.ours}/30", "exit",
            f"router bgp {AS}", "no bgp ebgp-requires-policy",
            f"neighbor {self.its} remote-as {FIRST_AS + self.number}", f"neighbor {self.its} timers connect 2",
            "address-family ipv4 unicast", f"neighbor {self.its} activate",
            f"neighbor {self.its} prefix-list OURS out",
        )  # fmt: skip


class Server:
    """A lab with several peers, and one choice of a filter."""

    def __init__(self, n, peers, choice):
        self.n, self.choice = n, choice
        self.lab = Lab(f"large{os.getpid()}", "bgp-full-table")
        self.peers = [Peer(self.lab, k) for k in range(1, peers + 1)]

    def __enter__(self):
        try:
            self.lab.create()
            for peer in self.peers:
                peer.start(self.n)
            for peer in self.peers:
                eventually(lambda p=peer: p.ask("disconnect"), LOAD_S, 0.2, "a peer has its table")
            self.lab.start_dataplane()
            self.lab.r1.start()
            self.configure(CHOICES[self.choice][0])
            for peer in self.peers:
                self.configure(peer.configuration())
            eventually(lambda: self.lab.dp.fpm()["messages"], 30, 0.1, "zebra connects")
            self.idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.lab.down()
        self.lab.unlock()

    def configure(self, lines):
        """Run lines in vtysh. A line that FRR refuses is an error, not a measurement of another thing."""
        said = self.lab.r1.configure(*lines) if lines else ""
        if "%" in said:
            raise SystemExit(f"bench-large: {self.choice}: vtysh says {said.strip()}")

    def pid(self, name):
        """Return the process of a program of r1."""
        return self.lab.pids(self.lab.dp)[0] if name == "fpm-dataplane" else self.lab.r1.pid(name)

    def cpu_s(self):
        """Return the CPU seconds of each program."""
        found = {}
        for name in PROGRAMS:
            with open(f"/proc/{self.pid(name)}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            found[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def rss_mib(self):
        """Return the resident memory of each program, and the slab of the kernel, which has its routes."""
        found = {}
        for name in PROGRAMS:
            with open(f"/proc/{self.pid(name)}/status", encoding="ascii") as file:
                found[name] = next(int(x.split()[1]) for x in file if x.startswith("VmRSS")) / 1024
        with open("/proc/meminfo", encoding="ascii") as file:
            found["kernel"] = next(int(x.split()[1]) for x in file if x.startswith("Slab:")) / 1024
        return found

    def idle(self):
        """Wait until bgpd and zebra use no CPU time. Return the time of their last use."""
        last, since = self.cpu_s(), time.monotonic()
        end = since + LOAD_S
        while time.monotonic() - since < QUIET_S:
            time.sleep(0.05)
            now = self.cpu_s()
            # Timers and keepalives use a tick now and then.
            if any(now[name] - last[name] > 0.02 for name in ("bgpd", "zebra")):
                last, since = now, time.monotonic()
            if since > end:
                raise SystemExit("bench-large: bgpd and zebra never come to rest")
        return since

    def received(self):
        """Return the number of paths that bgpd has accepted."""
        peers = self.lab.r1.json("show bgp ipv4 unicast summary json")["peers"]
        return sum(peers[peer.its].get("pfxRcd", 0) for peer in self.peers)

    def run(self):
        """Connect all peers at once. Return the measured values."""
        before, rss, base = self.cpu_s(), self.rss_mib(), self.lab.dp.fpm()["zebra4"]
        expected = sum(map(CHOICES[self.choice][1], (prefix & 255 for prefix in routes.table4(self.n))))
        begin, paths = time.monotonic(), self.n * len(self.peers)
        for peer in self.peers:
            peer.ask("connect")
        eventually(lambda: self.received() == paths, LOAD_S, 0.2, f"{paths} paths in bgpd")
        whole = time.monotonic()
        eventually(lambda: self.lab.dp.fpm()["zebra4"] - base == expected, LOAD_S, 0.05, "all in the FIB")
        visible = time.monotonic()
        settled = self.idle()
        after, grown = self.cpu_s(), self.rss_mib()
        memory = self.lab.dp.show("memory")[0]
        table = self.lab.r1.json("show ip route summary json")
        return {
            "bench": "large", "choice": self.choice, "peers": len(self.peers), "prefixes": self.n, "paths": paths,
            "in_zebra": table["routesTotal"], "in_fib": expected,
            "paths_s": round(whole - begin, 2), "fib_s": round(visible - begin, 2),
            "settled_s": round(settled - begin, 2),
            "rss_mib": {name: round(grown[name] - rss[name], 1) for name in rss},
            "rib_mib": round(memory["rib_bytes"] / 2**20, 1),
            "cpu_s": {name: round(after[name] - before[name], 2) for name in before},
        }  # fmt: skip


def tables(lines, out=sys.stderr):
    """Print the table."""
    head = ("choice", "paths", "in zebra", "in the FIB", "paths in bgpd", "in the FIB", "at rest",
            "bgpd MiB", "zebra MiB", "dataplane MiB", "kernel MiB")  # fmt: skip
    rows = [
        (r["choice"], *(f"{r[k]:,}" for k in ("paths", "in_zebra", "in_fib")),
         *(f"{r[k]:.1f} s" for k in ("paths_s", "fib_s", "settled_s")),
         *(f"{r['rss_mib'][k]:.0f}" for k in ("bgpd", "zebra", "fpm-dataplane", "kernel")))
        for r in lines if r["bench"] == "large"
    ]  # fmt: skip
    print("\nbench-large: growth of memory, and time from the first session", file=out)
    print_columns([head, *rows], out)


def main():
    """Returns the exit code."""
    found, names = options()
    reason = why_not()
    if reason:
        sys.exit(f"bench-large: {reason}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    lines = []
    try:
        for _ in range(found["REPS"]):
            for choice in names:
                with Server(found["ROUTES"], found["PEERS"], choice) as server:
                    lines.append(server.run())
                print(json.dumps(lines[-1]), flush=True)
    except KeyboardInterrupt:
        print("bench-large: interrupted", file=sys.stderr)
        return 130
    lines.append(command.line("bench-large", {*FULL, "QUICK", "CHOICES"}))
    print(json.dumps(lines[-1]))
    tables(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
