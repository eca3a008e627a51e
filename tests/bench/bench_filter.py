#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the time from nft to the FIB: how long after a transaction its rules decide, for 1,000 rules
that are new and for one element of a set of 100,000 prefixes. Then measure packets that pass rules in
the kernel and in the daemon (filter_rate.py). JSON lines on stdout, tables on stderr.

    bench_filter.py BUILD_DIR        (options: tests/bench/README.md)
"""

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "system")]

import command  # noqa: E402
import filter_rate  # noqa: E402
from fib_report import print_columns  # noqa: E402
from forward.report import verdict  # noqa: E402
from lib import netns  # noqa: E402
from lib.probe import SO_RCVBUFFORCE  # noqa: E402
from router import Router, running  # noqa: E402

OPTIONS = {"QUICK", "REPS", "RULES", "PREFIXES", "ROWS", "SECONDS_A_TURN"}
ROWS = "time,rate"
TABLE = "inet transit"
NETLINK_NETFILTER, NFNLGRP_NFTABLES, NEWGEN = 12, 7, 10 << 8 | 15
GOALS = {"rules": (1000, 200), "element": (100, 10)}  # ms: at least, aim


def option(name, default):
    """Return the value of an option as a number."""
    return int(os.environ.get(name) or default)


def table(chain, more=""):
    """Return the nft text that replaces the table."""
    hook = "type filter hook forward priority 0; policy accept;"
    return f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{more}chain forward {{\n{hook}\n{chain}\n}}\n}}\n"


class Commit(threading.Thread):
    """Wait for the event of the next transaction of nf_tables in a namespace. `at` is its time."""

    def __init__(self, namespace):
        super().__init__(daemon=True)
        self.at = None
        self.sock = netns.open_socket(namespace, socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.sock.bind((0, 1 << (NFNLGRP_NFTABLES - 1)))

    def run(self):
        while self.at is None:
            try:
                message = self.sock.recv(65536)
            except OSError:  # events were lost: the last one may follow
                continue
            now = time.monotonic()
            while len(message) >= 16:
                length, kind = struct.unpack_from("IH", message)
                if kind == NEWGEN:
                    self.at = now
                message = message[(length + 3) & ~3 :]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        if exc == (None, None, None):
            self.join()
        self.sock.close()


class Filter:
    """The filter of a router."""

    def __init__(self, dut):
        self.dut = dut

    def row(self):
        """Return the row of the ruleset. While a ruleset is being built for longer than the daemon lets a
        request wait, the request is refused: return None."""
        try:
            return self.dut.control.ask("filter")[0]
        except LookupError as error:
            if "is being read and built" not in str(error):
                raise
            return None

    def timed(self, text):
        """Run a transaction. Return the milliseconds of nft, and from the commit in the kernel until the
        ruleset is in force."""
        while not (old := self.row()):
            pass  # each request waits in the daemon
        before, begin = old["generation"], time.monotonic()
        argv = ["ip", "netns", "exec", self.dut.ctl, "nft", "-f", "-"]
        with Commit(self.dut.ctl) as commit, subprocess.Popen(argv, stdin=subprocess.PIPE, text=True) as nft:
            nft.stdin.write(text)
            nft.stdin.close()
            while not (r := self.row()) or r["generation"] == before or r["state"] != "in-force":
                assert nft.poll() in (None, 0)
            force = time.monotonic()
            assert nft.wait() == 0
            ended = time.monotonic()
        return 1000 * (ended - begin), 1000 * max(0, force - commit.at)


def measure(reps, n_rules, n_prefixes):
    """Yield the rows: medians, and the extremes of the time until the ruleset is in force."""
    router = Router(name="bflt")
    with running(router, ("fpm:\n", f'filter: {{table: "{TABLE}"}}\nfpm:\n')) as dut:
        rules = Filter(dut)
        rules.timed(table("udp dport 53 drop"))
        took = []
        for n in range(reps):
            text = [f"ip daddr 198.51.100.{k % 250} udp dport {1000 + k + n} drop" for k in range(n_rules)]
            took.append(rules.timed(table("\n".join(text))))
        yield row("rules", n_rules, took)
        nets = (f"11.{k >> 8 & 255}.{k & 255}.{128 * (k >> 16 & 1)}/26" for k in range(n_prefixes))
        sets = f"set bad {{ type ipv4_addr; flags interval; elements = {{ {', '.join(nets)} }} }}\n"
        rules.timed(table("ip saddr @bad counter drop", sets))
        took = []
        for n in range(reps):
            for verb in ("add", "delete"):
                took.append(rules.timed(f"{verb} element {TABLE} bad {{ 203.0.{n % 250}.0/24 }}\n"))
        yield row("element", n_prefixes, took)


def row(kind, n, took):
    """Return the row of a kind of transaction."""
    nft, force = zip(*took)
    return {"bench": "filter", "kind": kind, "of": n, "runs": len(took)} | {
        k: round(v, 2)
        for k, v in {
            "nft_ms": statistics.median(nft), "in_force_ms": statistics.median(force),
            "in_force_ms_min": min(force), "in_force_ms_max": max(force),
        }.items()
    }  # fmt: skip


def report(rows, out):
    """Print the rows and the goals."""
    names = {"rules": "{} new rules", "element": "an element of {} prefixes"}
    lines = [("transaction", "runs", "nft ms", "in force after ms", "least", "most", "at least", "aim", "goal")]
    for r in rows:
        least, aim = GOALS[r["kind"]]
        lines.append((
            names[r["kind"]].format(r["of"]), str(r["runs"]), f"{r['nft_ms']:.1f}", f"{r['in_force_ms']:.1f}",
            f"{r['in_force_ms_min']:.1f}", f"{r['in_force_ms_max']:.1f}", f"{least} ms", f"{aim} ms",
            verdict(r["in_force_ms"], least, aim, more=False),
        ))  # fmt: skip
    print_columns(lines, out)


def main():
    """Measure, and print rows and tables."""
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    what = (os.environ.get("ROWS") or ROWS).split(",")
    if not set(what) <= set(ROWS.split(",")):
        sys.exit(f"bench-filter: ROWS are {ROWS}")
    sizes = option("RULES", 1000), option("PREFIXES", 100_000)
    if "time" in what:
        report(printed(measure(option("REPS", 3 if quick else 21), *sizes)), sys.stderr)
    if "rate" in what:
        seconds = float(os.environ.get("SECONDS_A_TURN") or 1)
        rows = printed(filter_rate.measure(option("REPS", 3 if quick else 7), seconds))
        print_columns(filter_rate.report(rows), sys.stderr)
    print(json.dumps(command.line("bench-filter", OPTIONS)), flush=True)


def printed(rows):
    """Print each row when it is there. Return all."""
    found = []
    for row_ in rows:
        found.append(row_)
        print(json.dumps(row_), flush=True)
    return found


if __name__ == "__main__":
    os.environ.setdefault("BUILD", Path(sys.argv[1]).name)
    main()
