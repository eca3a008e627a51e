# SPDX-License-Identifier: BSD-3-Clause
"""A daemon survives nonsense and churn, then stops with exit code 0. A daemon with AddressSanitizer
and UBSan (`make system-asan`) makes no report and has no leak: conftest.py checks this."""

import pytest

from lib import nonsense
from lib.wait import eventually
from watching import Watching

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture
def watched(own_dut):
    """A daemon with a route of each family."""
    router = own_dut()
    router.start()
    wan = router.wires["wan"]
    router.route(NET, via=wan.peer4, wire=wan)
    router.route(NET6, via=wan.peer6, wire=wan)
    return router


def ends_clean(dut):
    """Assert that the daemon lives, stop it, and assert that it ends by itself."""
    assert dut.alive() and dut.stop(timeout=30) == 0, dut.log()


def test_after_nonsense_and_churn_it_ends_clean(watched, rng):
    """The daemon ends clean on SIGTERM after random frames on every port, damaged FPM, reconnects,
    churn, neighbors that come and go, links that flap, and every show."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.zebra.group(list(dut.zebra.nexthops))

    for wire in dut.wires.values():
        for n, data in enumerate(nonsense.frames(rng, wire, 1500)):
            wire.send(data)
            if n % 100 == 99:
                dut.fence(wire)
    for _ in range(10):
        nonsense.fpm_session(dut, rng, 8000)
        dut.zebra.close()
        dut.zebra.connect()
    for n in range(60):
        dut.ip(f"neigh replace 192.0.2.{100 + n % 20} lladdr {wan.mac} dev wan0")
        lan.send(lan.probe(f"192.0.2.{100 + n}"))
        if n % 20 == 0:
            dut.ip("link set wan0 down", "link set wan0 up", "link set wan0 mtu 1400")
            dut.ip("addr add 203.0.113.1/28 dev wan0", "addr del 203.0.113.1/28 dev wan0")
    for _ in range(3):
        dut.zebra.speaker.routes("2001:db8:e000::/64", 3000, 77)
        dut.zebra.hop(wan.peer6, wan, nhid=77)
        dut.zebra.speaker.routes_del("2001:db8:e000::/64", 3000)
    for show in ("routes", "nexthops", "neighbors", "ports", "counters", "fpm", "memory"):
        dut.control.ask(show)
    eventually(lambda: not dut.alive() or dut.fpm()["queue_bytes"] == 0, 20)

    ends_clean(dut)


def test_after_forwarding_and_errors_it_ends_clean(watched):
    """The daemon ends clean on SIGTERM after every slow path once: ICMP errors, fragments, waiting
    packets."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.ip("link set wan0 mtu 1300")
    wan.answer("192.0.2.99")
    for dst in (HOST, HOST6, "203.0.113.1", "2001:db8:ffff::1", "192.0.2.99", "192.0.2.98"):
        for size in (60, 1300, 1301, 1500):
            lan.send(lan.probe(dst, size=size))
            hop = {"hlim": 1} if ":" in dst else {"ttl": 1}
            lan.send(lan.probe(dst, size=size, **hop))
    dut.fence(lan)
    dut.forwarded(lan, lan.probe("192.0.2.99"), wan, timeout=5)

    ends_clean(dut)


def test_while_packets_are_looked_at_it_ends_clean(watched, rng):
    """The daemon ends clean while traces and captures of nonsense on every port run. Some of their
    clients read, some do not read, some go away. It also explains nonsense."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    silent = [Watching(dut, trace={}), Watching(dut, capture={"snap": 64})]

    for wire in (lan, wan):
        for n, data in enumerate(nonsense.frames(rng, wire, 600)):
            want = {"port": wire.tap, "frame": data[:1900].hex(), "frame_bytes": len(data)}
            (row,) = dut.control.request({"explain": want})
            assert row["verdict"] in ("forwarded", "punted", "dropped")
            wire.send(data)
            if n % 50 == 49:
                dut.fence(wire)
                with Watching(dut, capture={"points": ["drop"]}):
                    wire.send(data)
                Watching(dut, trace={"dst": NET, "count": 1}).close()

    ends_clean(dut)
    for watch in silent:
        watch.close()
