# SPDX-License-Identifier: BSD-3-Clause
"""Two routers with the same rules of policy routing: the router under test and Linux. The fixtures
give both the same commands; becomes() sends both the same frames."""

import time

import pytest

from lib.wait import PATIENCE
from linux_twin import Twin

TO4, TO6 = "198.51.100.9", "2001:db8:100::9"
NET4, NET6 = "198.51.100.0/24", "2001:db8:100::/48"
LAN4, LAN6 = "192.0.2.2", "2001:db8:4::2"
WAN, EXT, ALT = ("out", "wan"), ("out", "ext"), ("out", "alt")


@pytest.fixture(scope="module")
def routers(session_dut):
    """Both routers. Table main leads to `wan`, table 100 to `ext`, table 101 to `alt`."""
    twin, lines = Twin(session_dut), []
    for table, name in (("main", "wan"), ("100", "ext"), ("101", "alt")):
        wire = session_dut.wires[name]
        lines += [
            f"route add {NET4} via {wire.peer4} dev {wire.tap} table {table}",
            f"-6 route add {NET6} via {wire.peer6} dev {wire.tap} table {table}",
        ]
    try:
        twin.build()
        twin.ip(*lines)
        yield twin
        session_dut.ip(*(line.replace("route add", "route del") for line in lines))
    finally:
        twin.destroy()


@pytest.fixture
def twin(routers, dut):
    """Both routers, the one under test in its standard state."""
    return routers


@pytest.fixture
def rules(twin):
    """A function that adds rules and routes to both routers for the length of a test, or until its
    method undo() is called."""
    undo = []

    def add(*lines):
        twin.ip(*lines)
        undo.extend(line.replace(" add ", " del ", 1) for line in reversed(lines))
        return twin

    def undo_all():
        twin.ip(*undo)
        undo.clear()

    add.undo = undo_all
    yield add
    add.undo()


def becomes(twin, want, name="lan", within=5, **probe):
    """Send probes by the wire `name` until the router under test treats one as `want`, as Linux
    does. Return the seconds until that probe was sent.

    Linux limits the errors of routes and rules that refuse: to five for a source, and then one a
    second (net.ipv4.route.error_burst, which only the first network namespace has)."""
    begin = time.monotonic()
    wire = twin.dut.wires[name]
    while True:
        sent = time.monotonic()
        mine, linux = twin.outcomes(name, wire.probe(**{"dst": TO4, **probe}))
        if want[0] == "icmp" and linux == ("nothing",) and sent - begin < within * PATIENCE:
            continue
        assert linux[: len(want)] == want, f"Linux: {linux}"
        if mine[: len(want)] == want:
            assert mine == linux
            return sent - begin
        assert sent - begin < within * PATIENCE, f"{mine}, Linux: {linux}"
