# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests that end and start a daemon: check that the daemon is back."""

import contextlib
import os
import re
import socket

from lib import netns
from lib.wait import eventually

NET, HOST = "198.51.100.0/24", "198.51.100.9"


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
