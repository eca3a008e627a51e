#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Show the main job end to end on a terminal: FRR speaks BGP and OSPF, the dataplane forwards.
Leaves the lab up if all proofs hold; otherwise, and on Ctrl-C, removes it.

    ROUTES=N   IPv4 routes that isp announces (default 100000); IPv6: a fifth of it
    SEED=N     another Internet (default 1)
    KEEP=1     leave the lab up after a failure too
    LAB=NAME   another lab than the one with plain names (lab.py)
"""

import os
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lab import play, proofs
from lab.evidence import ProofError
from lab.lab import PLAIN, Lab
from lib.wait import eventually

PICTURE = """\
    isp  AS 65540                     lan  a host
         |  BGP                            |
    +----+---------- r1  AS 64500 ---------+----+    r1: FRR on TAPs, and
    +----+---------------------------------+----+    fpm-dataplane on the cables
         |  OSPF, two equal links          |
         +------------- core --------------+"""

NEXT = """\
The lab is up. Look around:
  make vtysh                                  the router's shell (C="show ip route ...")
  {ctl} show fpm
  {ctl} show routes {host}
  {ctl} show ports
  {ctl} audit                zebra = RIB = FIB?
  ip netns exec lan ping {host}
  ip netns exec lan traceroute -I {host}
  ip netns exec r1 curl http://127.0.0.1:9620/metrics    for Prometheus
  make demo-down                              when you have seen enough"""


PATIENCE_S = 60  # longest time without a new route


def main():
    """Returns the exit code."""
    try:
        n4 = int(os.environ.get("ROUTES") or 100000)
        seed = int(os.environ.get("SEED") or 1)
        if not 1000 <= n4 <= 1000000:
            raise ValueError
    except ValueError:
        print("ROUTES must be a number from 1000 to 1000000, SEED a number.")
        return 2

    def show(lab, screen):
        build(lab, screen, n4, n4 // 5, seed)
        prove(lab, screen, n4, n4 // 5, seed)

    return play.perform(lambda: Lab(os.environ.get("LAB", PLAIN), "demo"), show)


def build(lab, screen, n4, n6, seed):
    """Start the whole lab and wait until the routes are in the FIB."""
    screen.title("fpm-dataplane: FRR speaks BGP and OSPF, the dataplane forwards")
    screen.text(PICTURE)
    screen.title(f"Building the lab, {n4:,} IPv4 and {n6:,} IPv6 routes to come")
    lab.lock()
    if lab.is_up():
        screen.step("a lab is up already: it is removed")
    lab.create()
    screen.step("network namespaces r1, r1-dp, isp, core, lan; four cables")
    lab.start_isp(n4, n6, seed)
    lab.start_routers()
    lab.watch_r1()
    screen.step("fpm-dataplane on four ports, TAPs in r1; FRR in r1 and in core")
    watch_routes(lab, screen, n4, n6)


def watch_routes(lab, screen, n4, n6):
    """Show the progress line while routes arrive."""
    changed, before, rate = time.monotonic(), None, Rate()
    while True:
        state = proofs.tables(lab)
        if state != before:
            changed, before = time.monotonic(), state
        zebra = [state[f]["zebra"] for f in (4, 6)]
        fib = [state[f]["fib"] for f in (4, 6)]
        done = proofs.whole(state, n4, n6)
        speed = f"FIB {fib[0]:,} + {fib[1]:,}  {rate.update(sum(fib)):,.0f}/s"
        if not sum(fib):
            speed = "FIB 0: zebra connects every 3 s"
        screen.progress(f"routes: zebra {zebra[0]:,} + {zebra[1]:,}  {speed}", force=done)
        if done:
            return
        if time.monotonic() - changed > PATIENCE_S:
            raise ProofError(
                f"{n4:,} + {n6:,} routes by BGP in zebra and in the FIB",
                f"{state}, and no change for {PATIENCE_S} s",
                ("dataplane", "zebra", "bgpd", "isp"),
            )
        time.sleep(0.3 + n4 / 500_000)  # each request makes zebra walk over its table


class Rate:
    """The routes a second over the time in which many arrived; a few late routes do not count."""

    MANY = 500

    def __init__(self):
        self.last = self.begin = self.idle = (time.monotonic(), 0)

    def update(self, total):
        """Record a total. Return the rate."""
        if total - self.last[1] >= self.MANY:
            if self.last is self.begin:
                self.begin = self.idle
            self.last = (time.monotonic(), total)
        self.idle = (time.monotonic(), total)
        span = self.last[0] - self.begin[0]
        return (self.last[1] - self.begin[1]) / span if span > 0 else 0


def prove(lab, screen, n4, n6, seed):
    """Run all proofs. Then print the commands to try next."""
    screen.title("Proofs")
    screen.passed(proofs.sessions(lab))
    screen.passed(proofs.same_tables(lab, n4, n6))
    screen.passed(proofs.reachable(lab, seed))
    screen.passed(proofs.both_links(lab))
    screen.passed(proofs.withdrawal(lab, seed))
    eventually(lambda: proofs.whole(proofs.tables(lab), n4, n6), 10, what="all routes back")
    screen.text(f"\nAll proofs hold, {screen.seconds():.0f} seconds in all.\n")
    host = lab.isp("sample", count=1, seed=seed)["ipv4"][0]["host"]
    screen.text(NEXT.format(ctl=os.path.relpath(lab.dp.ctl), host=host))


if __name__ == "__main__":
    sys.exit(main())
