# SPDX-License-Identifier: BSD-3-Clause
"""Policy routing: the router obeys the rules of the kernel (`ip rule`) as the Linux router beside
it does. Each test gives both the same commands and the same frames."""

import time

import pytest

from lib.wait import PATIENCE, eventually
from linux_twin import Twin

TO4, TO6 = "198.51.100.9", "2001:db8:100::9"
NET4, NET6 = "198.51.100.0/24", "2001:db8:100::/48"


@pytest.fixture(scope="module")
def routers(session_dut):
    """Both routers. Table main leads to `wan`, table 100 to `ext`, table 101 to `alt`."""
    twin = Twin(session_dut)
    try:
        twin.build()
        for table, name in (("main", "wan"), ("100", "ext"), ("101", "alt")):
            wire = session_dut.wires[name]
            twin.ip(
                f"route add {NET4} via {wire.peer4} dev {wire.tap} table {table}",
                f"-6 route add {NET6} via {wire.peer6} dev {wire.tap} table {table}",
            )
        yield twin
    finally:
        twin.destroy()


@pytest.fixture
def twin(routers, dut):
    """Both routers, the one under test in its standard state."""
    return routers


@pytest.fixture
def rules(twin):
    """A function that adds rules and routes to both routers for the length of a test."""
    undo = []

    def add(*lines):
        twin.ip(*lines)
        undo.extend(line.replace(" add ", " del ", 1) for line in reversed(lines))
        return twin

    yield add
    twin.ip(*undo)


def becomes(twin, want, name="lan", within=0.1, **probe):
    """Send probes by the wire `name` until the router under test treats one as `want`. It must do
    so in time, and Linux must do the same."""
    begin = time.monotonic()
    wire = twin.dut.wires[name]
    while True:
        sent = time.monotonic()
        mine, linux = twin.outcomes(name, wire.probe(**{"dst": TO4, **probe}))
        assert linux[: len(want)] == want, f"Linux: {linux}"
        if mine[: len(want)] == want:
            assert mine == linux
            return
        assert sent - begin < within * PATIENCE, f"{mine}, Linux: {linux}"


def test_a_rule_by_source_selects_a_table(rules, twin):
    """`ip rule add from S lookup 100`: packets from S leave by the route of table 100, others by
    that of main. After `ip rule del` all take main again. Each change is in force in 100 ms."""
    becomes(twin, ("out", "wan"))
    twin.ip(f"rule add from {twin.dut.wires['lan'].peer4} lookup 100")
    becomes(twin, ("out", "ext"))
    becomes(twin, ("out", "wan"), name="alt")
    twin.ip(f"rule del from {twin.dut.wires['lan'].peer4} lookup 100")
    becomes(twin, ("out", "wan"))
