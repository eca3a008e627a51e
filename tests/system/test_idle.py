# SPDX-License-Identifier: BSD-3-Clause
"""An idle router uses next to no CPU time, and an event wakes a sleeping forwarder at once.

A forwarder that sleeps, with a descriptor for every port, wakes by itself only after 100 ms. So a
median below 50 ms shows that an event woke it.
"""

import http.client
import os
import signal
import socket
import statistics
import time

import pytest

from lib import netns
from lib.wait import eventually
from on_time import Clock
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
MISSED_S = 0.05


def forwarders(dut):
    """Return the folders in /proc of the daemon's forwarders."""
    tasks = f"/proc/{dut.daemon.pid()}/task"
    found = []
    for tid in os.listdir(tasks):
        with open(f"{tasks}/{tid}/comm", encoding="ascii") as file:
            if file.read().startswith("fwd-"):
                found.append(f"{tasks}/{tid}")
    return found


def cpu_s(folder):
    """Return the CPU seconds of a thread, or of a process with all its tasks."""
    tasks = folder + "/task"
    folders = [f"{tasks}/{t}" for t in os.listdir(tasks)] if os.path.isdir(tasks) else [folder]
    total = 0
    for one in folders:
        with open(one + "/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def wait_asleep(dut):
    """Wait until all forwarders block: their state is S, and they have used no CPU between two
    reads."""

    def still():
        before = [cpu_s(f) for f in found]
        time.sleep(0.005)
        states = []
        for folder in found:
            with open(folder + "/stat", encoding="ascii") as file:
                states.append(file.read().rpartition(")")[2].split()[0])
        return set(states) == {"S"} and before == [cpu_s(f) for f in found]

    found = forwarders(dut)
    eventually(still, 10, 0.005, "forwarders sleep")


def share(dut, seconds=2.0):
    """Return the share of a core that the daemon uses while it has no work."""
    folder = f"/proc/{dut.daemon.pid()}"
    begin, used = time.monotonic(), cpu_s(folder)
    time.sleep(seconds)
    return (cpu_s(folder) - used) / (time.monotonic() - begin)


def median_s(dut, event, times=20):
    """Return the median time of an event for sleeping forwarders, less the time in which the
    machine had no CPU for them or for this process."""
    took = []
    for n in range(times):
        wait_asleep(dut)
        clock = Clock(dut)
        event(n)
        took.append(clock.seconds())
    return statistics.median(took)


def test_an_idle_router_uses_next_to_no_cpu(dut):
    """An idle router uses less than 2 % of a core in all threads; the measured share is 0.1 %. This
    includes the packets of the test bed."""
    wait_asleep(dut)
    assert share(dut) < 0.02


@pytest.mark.smoke
def test_the_first_packet_after_idle_is_forwarded_at_once(dut, lan, wan):
    """The first packet after idle time is not lost, and its descriptor wakes the forwarder."""
    dut.route(NET, via=wan.peer4, wire=wan)

    def packet(n):
        lan.send(probe := lan.probe(HOST, sport=5000 + n))
        wan.expect_raw(token_of(probe))

    assert median_s(dut, packet) < MISSED_S


def test_the_kernels_first_frame_after_idle_leaves_at_once(dut, lan):
    """The punt thread wakes the forwarder that sends the kernel's first frame."""
    with netns.entered(dut.ctl):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:

        def frame(n):
            sock.sendto(f"frame {n:06}".encode(), (lan.peer4, 4000))
            lan.expect_raw(lambda data: f"frame {n:06}".encode() in data)

        assert median_s(dut, frame) < MISSED_S
    finally:
        sock.close()


@pytest.mark.smoke
def test_what_waited_for_a_neighbor_leaves_while_forwarders_sleep(dut, lan, wan):
    """A packet that waited for a neighbor leaves while forwarders sleep, because its release is an
    inject."""
    dut.route(NET, via="192.0.2.79", wire=wan)
    lan.send(probe := lan.probe(HOST))
    eventually(lambda: wan.solicitations("192.0.2.79"), 3, 0.005, "the kernel asks")
    wait_asleep(dut)

    clock = Clock(dut)
    dut.ip(f"neigh replace 192.0.2.79 lladdr {wan.mac} dev {wan.tap} nud permanent")
    wan.expect_raw(token_of(probe))

    assert clock.seconds() < 1
    dut.ip(f"neigh del 192.0.2.79 dev {wan.tap}")


def test_an_interface_that_goes_down_is_no_endless_event(dut, lan, wan):
    """An interface that goes down does not keep forwarders awake: a packet socket reports ENETDOWN
    until a reader takes the error."""
    dut.route(NET, via=wan.peer4, wire=wan)
    try:
        netns.run(dut.dp, ["ip", "link", "set", "p-ext", "down"])
        wait_asleep(dut)
        assert share(dut) < 0.2
    finally:
        netns.run(dut.dp, ["ip", "link", "set", "p-ext", "up"])
    eventually(lambda: dut.port_row(dut.wires["ext"])["link"] == "up", 5)

    dut.forwarded(lan, lan.probe(HOST), wan)


def test_a_daemon_that_sleeps_hears_that_it_shall_stop(own_dut):
    """SIGTERM ends the daemon while all forwarders block."""
    router = own_dut()
    router.start()
    wait_asleep(router)

    assert router.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("how", ["key", "option"])
def test_poll_never_sleeps(own_dut, how):
    """With `idle: poll` and --poll a forwarder uses a whole core and never sleeps."""
    router = own_dut(metrics="127.0.0.1:9620")
    if how == "key":
        router.edit_config("log-level:", "idle: poll\nlog-level:")
    else:
        router.daemon.options = ["--poll"]
    router.start()
    thread = forwarders(router)[0]

    used = cpu_s(thread)
    eventually(lambda: cpu_s(thread) > used + 0.5, 20, 0.05, "it polls")

    assert sleeps(router) == 0
    assert "\nidle: poll\n" in router.fpmctl("config", "show").stdout
    assert router.fpmctl("config", "reload", "--dry-run").returncode == 0


def sleeps(dut):
    """Return how often the forwarder fell asleep, read from the metrics page."""
    with netns.entered(dut.ctl):
        page = http.client.HTTPConnection("127.0.0.1", 9620, timeout=5)
        page.request("GET", "/metrics")
        text = page.getresponse().read().decode()
    rows = [row.split() for row in text.splitlines() if row.startswith("fpmdp_sleeps_total{")]
    return next(int(value) for name, value in rows if "fwd-0" in name)
