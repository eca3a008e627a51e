# SPDX-License-Identifier: BSD-3-Clause
"""A daemon that has been away is back, for tests of its ends and its starts."""

from lib.wait import eventually

NET, HOST = "198.51.100.0/24", "198.51.100.9"


def forwards(dut):
    """A route taught now, a packet through it."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.zebra.connect()
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)


def come_back(dut, was):
    """Wait for the next daemon, and until it knows what the kernel knows."""
    dut.control.close()
    dut.daemon.back(was)
    eventually(lambda: all(r["link"] == "up" for r in dut.control.ask("ports")), 5)
    own = [f"{w.ip4}/32" for w in dut.wires.values()]
    eventually(lambda: all(dut.route_row(prefix) for prefix in own), 5)
