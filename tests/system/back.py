# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests that end and start a daemon: check that the daemon is back."""

import contextlib
import os
import re
import signal
import socket

from lib import netns, procs
from lib.wait import eventually

NET, HOST = "198.51.100.0/24", "198.51.100.9"
BURST = 64  # packets that a forwarder takes at once, at most


def forwards(dut):
    """Announce a route and send a packet by it."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.zebra.connect()
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)


def come_back(dut, was):
    """Wait until the next daemon runs, its ports are up and it has the addresses of the router."""
    dut.control.close()
    dut.daemon.back(was)
    eventually(lambda: all(r["link"] == "up" for r in dut.control.ask("ports")), 5)
    own = [f"{w.ip4}/32" for w in dut.wires.values()]
    eventually(lambda: all(dut.route_row(prefix) for prefix in own), 5)


def end_under(dut, how, stream, outs, meanwhile=()):
    """End the daemon under a stream, by `fpmctl restart` ("restart") or by SIGKILL ("kill"), run the
    lines `meanwhile` of `ip`, and wait until the next daemon answers. It answers after its
    forwarders have begun. Return the first and the last number of the packets without a daemon."""
    was = dut.daemon.pid()
    # The packets of a burst do not leave in order.
    first = max(stream.arrived(*outs), default=0) - BURST
    dut.control.close()
    if how == "restart":
        assert dut.fpmctl("restart").returncode == 0
    else:
        procs.signal_pid(was, signal.SIGKILL)
    if meanwhile:
        dut.ip(*meanwhile)
    dut.daemon.back(was)
    return first, stream.sent


def drops_since_start(dut):
    """Return the counters of drops that are not 0."""
    drops = {reason: n for reason, n in dut.counters("drop").items() if n}
    print(f"drops of process {dut.daemon.pid()}: {drops}")
    return drops


def astray(dut, stream, egresses):
    """Return {wire: numbers} of the packets that left by another wire than that of their destination.
    `egresses` are the destinations of the stream with their wires, in order."""
    out, found = list(egresses.values()), {}
    for wire in dut.wires.values():
        wrong = sorted(n for n in stream.arrived(wire) if out[n % len(out)] is not wire)
        found.update({wire.name: wrong[:5]} if wrong else {})
    return found


@contextlib.contextmanager
def impatient_kernel(dut):
    """In the block, the kernel gives up a silent neighbor after a third of a second instead of
    three seconds: it asks three times, at intervals of 100 ms (arp(7), retrans_time_ms)."""
    keys = [f"net.ipv{n}.neigh.{w.tap}.retrans_time_ms" for n in (4, 6) for w in dut.wires.values()]
    netns.sysctl(dut.ctl, dict.fromkeys(keys, 100))
    try:
        yield
    finally:
        netns.sysctl(dut.ctl, dict.fromkeys(keys, 1000))


def drown(dut):
    """Fill the supervisor's queue with messages from a process that the supervisor does not know."""
    with open(f"/proc/{dut.daemon.pid()}/environ", encoding="ascii") as file:
        name = re.search("NOTIFY_SOCKET=@([^\0]*)", file.read())[1]
    with netns.entered(dut.dp), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                stranger.sendto(b"x", f"\0{name}")


def kept_taps(dut):
    """Return the number of TAPs that the supervisor holds open."""
    files = f"/proc/{dut.daemon.process.pid}/fd"
    paths = [f"{files}/{name}" for name in os.listdir(files)]
    return sum(os.readlink(path) == "/dev/net/tun" for path in paths)
