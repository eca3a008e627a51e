# SPDX-License-Identifier: BSD-3-Clause
"""A planned restart on NICs, once for each model (run.py). Two processes cannot open a NIC at a
time, so transit stops while the old daemon closes the NICs and the new one opens them. With -s
the test prints the time, and the part of it that the drivers do not need:

    REPEAT=12 tests/vm/run.py --part virtio-net-pci "tests/vm/test_nic_restart.py -s"
"""

import os
import re

import pytest

from lib.linkwatch import LinkWatch
from lib.wait import eventually
from router import Router, running

NET, HOST = "198.51.100.0/24", "198.51.100.9"
RATE = 200
TIMES = int(os.environ.get("REPEAT") or 6)
GO_S = 30  # the new daemon waits this long for the devices, then it kills the old one


@pytest.fixture(scope="module")
def router():
    """Run a supervised router on NICs with a route."""
    cores = ("\nmemory:", f"\ncores: {os.environ['FDP_CORES']}\nmemory:")
    with running(Router(name="nics", supervised=True), cores) as router:
        router.ready()
        wan = router.wires["wan"]
        router.route(NET, via=wan.peer4, wire=wan)
        yield router


def restart(router):
    """Restart as planned when the checkpoint has all routes of zebra."""
    was = router.daemon.pid()
    eventually(lambda: router.fpm()["checkpoint"]["routes"] == 1, 10, 0.05, "a checkpoint")
    router.zebra.close()
    done = router.fpmctl("restart", timeout=240)
    assert done.returncode == 0, done.stderr
    router.control.close()
    router.daemon.back(was)


def of_devices(log):
    """Return the seconds that devices took at the last restart: the old daemon closes them, the
    new one opens them."""
    log = log[log.rindex("main: successor started") :]
    took = re.findall(r"(?:main: ports closed|main: port opened) .*took_ms=(\d+)", log)
    assert len(took) == 1 + log.count("main: port opened") > 1, log
    return sum(map(int, took)) / 1000


def rest(router):
    """Restart under a stream. Return (seconds without a packet, packets lost in them, sent)."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    with router.stream(lan, HOST, rate=RATE, flows=4) as stream:
        restart(router)
        enough = stream.sent + RATE
        eventually(lambda: any(n > enough for n in stream.arrived(wan)), 60, 0.1, "packets")
    lost, seen = stream.lost(wan), stream.arrived(wan)
    assert set(seen.values()) == {1}, "each arrives once"
    assert stream.arrived(*(w for w in router.wires.values() if w not in (lan, wan))) == {}
    came = sorted(when for when, _ in wan.timed(stream.mark))
    lan.clear()
    wan.clear()
    return max(b - a for a, b in zip(came, came[1:])), len(lost), stream.sent


def test_transit_rests_while_devices_are_closed_and_opened(router):
    """No daemon is killed, no TAP loses its carrier, and every route is in force without
    zebra."""
    took = []
    with LinkWatch(router.ctl) as watch:
        for _ in range(TIMES):
            seconds, lost, sent = rest(router)
            took.append(seconds)
            ours = seconds - of_devices(router.daemon.log(200))
            print(f"{os.environ['FDP_DRIVER']}: rested {seconds:.2f} s, {ours:.2f} beside "
                  f"the devices, {lost} of {sent} lost")  # fmt: skip
    assert watch.lost_carrier() == []
    assert router.fpm()["checkpoint"]["restored"] == 1
    assert max(took) < GO_S
    assert "predecessor" not in router.log(200)
