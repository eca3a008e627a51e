# SPDX-License-Identifier: BSD-3-Clause
"""A thread stands still, a log has no reader, or a supervisor does not listen: the daemon or its
supervisor ends the process that hangs, and no other process, and the log names what hangs."""

import contextlib
import re
import signal
import socket

import pytest

from back import HOST, NET, come_back, drown, forwards
from lib import procs
from lib.freeze import frozen
from lib.haste import hasty
from lib.linkwatch import LinkWatch
from lib.wait import eventually, never

ABORTED = "supervise: program hangs"


@pytest.fixture
def watched(own_dut):
    """Make a router whose supervisor waits `seconds` for WATCHDOG=1. All other times are divided
    by `haste`; with 5, an aborted daemon has 2 s to end."""

    def make(seconds, log=None, haste=5):
        dut = own_dut(supervised=True)
        dut.daemon.supervisor_words = ["--watchdog", str(seconds)]
        dut.daemon.log_file = log or dut.daemon.log_file
        with hasty(haste):
            dut.start()
        return dut

    return make


def test_a_hanging_daemon_is_started_again(watched):
    """A daemon that sends no WATCHDOG=1 for the watchdog's time (here: SIGSTOP) is aborted, killed
    and replaced."""
    dut = watched(1)
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        procs.stand_still(was)
        dut.control.close()
        eventually(lambda: not procs.is_alive(was), 30, 0.05, "the hanging one is gone")
        dut.daemon.back(was)

    assert watch.lost_carrier() == []
    assert ABORTED in dut.daemon.log(60)


def ends_of(path):
    """Return the number of connections to a socket from this namespace, waiting ones included."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        return file.read().count(f" {path}\n")


def test_who_asks_one_that_hangs_is_told_so_within_half_a_minute(own_dut):
    """fpmctl reports a daemon that hangs within half a minute, here within a tenth of it: for every
    request, traces included, and when so many clients wait that the daemon would have to accept one
    first."""
    dut = own_dut()
    dut.start()
    asked, pid = ["show version", "-j show routes", "trace for 1", "capture -w - for 1"], dut.daemon.pid()
    procs.stand_still(pid)
    with contextlib.ExitStack() as until:
        until.callback(procs.signal_pid, pid, signal.SIGCONT)
        there = ends_of(dut.socket)
        with hasty(10):
            asking = {words: dut.fpmctl_begin(*words.split()) for words in asked}
        eventually(lambda: ends_of(dut.socket) == there + len(asked), 10, 0.01)
        with contextlib.suppress(BlockingIOError):
            while True:
                one = until.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(dut.socket)
        with hasty(10):
            asking["show ports"] = dut.fpmctl_begin("show", "ports")
        told = {words: (*one.communicate(timeout=60), one.returncode)
                for words, one in asking.items()}  # fmt: skip

    for words, (out, err, code) in told.items():
        assert (out, code, len(err.splitlines())) == ("", 1, 1), (words, err)
        assert " has not answered for 3 s" in err, (words, err)


@pytest.mark.parametrize("thread", ["fwd-0", "fdp-manage"])
def test_a_thread_that_hangs_is_found_by_its_name(watched, thread):
    """The watchdog finds a thread that stands still, a forwarder (a driver that does not return) or
    a worker, while all other threads run. The log names it, the daemon is aborted and replaced, and
    the new daemon forwards."""
    dut = watched(2)
    was = dut.daemon.pid()
    dut.control.close()

    with LinkWatch(dut.ctl) as watch:
        # The daemon is aborted while the thread is frozen, so the thread cannot be resumed.
        with contextlib.suppress(OSError), frozen(was, thread):
            eventually(lambda: ABORTED in dut.daemon.log(60), 20)
        come_back(dut, was)

    log = dut.daemon.log(100)
    assert "main: thread hangs thread=" + thread.removeprefix("fdp-") in log
    assert f"supervise: program ended signal={int(signal.SIGABRT)}" in log
    assert watch.lost_carrier() == []
    forwards(dut)


def test_a_hanging_daemon_whose_log_has_no_reader_is_started_again(watched, unread):
    """Supervisor and daemon write to one pipe, as in a container, whose reader has stopped. The
    pipe delays neither the daemon nor the end of a daemon that hangs."""
    dut = watched(2, unread.path)
    was = dut.daemon.pid()
    dut.control.close()

    with contextlib.suppress(OSError), frozen(was, "fdp-punt"):
        # All threads run but the frozen one.
        eventually(lambda: procs.states(was)[:1] in ("Z", ""), 20, 0.05, "it is aborted")
    come_back(dut, was)

    forwards(dut)
    unread.drain()
    assert dut.stop() == 0
    assert "W log: output resumed lost=" in unread.drain()


def test_a_supervisor_that_does_not_listen_holds_up_no_end(watched):
    """The supervisor reads nothing (here: SIGSTOP), and its queue is full, so that WATCHDOG=1 finds
    no room. The daemon ends on SIGTERM."""
    dut = watched(1)
    was = dut.daemon.pid()

    procs.stand_still(dut.daemon.process.pid)
    try:
        drown(dut)
        never(lambda: not procs.is_alive(was), 2)
        procs.signal_pid(was, signal.SIGTERM)
        eventually(lambda: not procs.is_alive(was), 10, 0.05, "it has ended")
    finally:
        procs.signal_pid(dut.daemon.process.pid, signal.SIGCONT)
    assert dut.daemon.process.wait(10) == 0


def test_a_restart_waits_for_what_zebra_said_and_is_no_hang(watched):
    """`fpmctl restart` waits for the routes that rib has not read yet (rib gets no CPU time here),
    for longer than the watchdog's time. The successor has all routes, and no daemon is aborted."""
    dut = watched(2)
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was, nhid = dut.daemon.pid(), dut.zebra.hop(wan.peer6, wan)

    with frozen(was, "fdp-rib"):
        dut.zebra.speaker.routes("2001:db8:e000::/64", 20000, nhid)
        restarts = dut.fpmctl_begin("restart")
        never(lambda: "supervise: " in dut.daemon.log(2), 4)
    eventually(lambda: "supervise: successor took over" in dut.daemon.log(60), 20)
    come_back(dut, was)

    assert restarts.wait(20) == 0
    assert "hangs" not in dut.daemon.log(100)
    assert dut.fpm()["checkpoint"]["restored"] == 20001
    dut.zebra.close()
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_a_successor_that_hangs_when_it_is_named_has_the_watchdogs_time(watched):
    """A successor that hangs after it took over has only the time of a running daemon (the watchdog's),
    because no daemon forwards meanwhile. Then the supervisor starts another daemon."""
    dut = watched(2)
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()

    restarts = dut.fpmctl_begin("restart")
    line = eventually(
        lambda: re.search(r"main: successor started pid=(\d+)", dut.daemon.log(60)), 20, 0.002
    )
    heir = int(line[1])
    eventually(lambda: f"successor took over pid={heir}" in dut.daemon.log(60), 20, 0.0005)
    procs.stand_still(heir)
    dut.control.close()
    # The watchdog's time is two seconds. The end takes two more (haste), because the frozen daemon
    # does not handle the signal to abort.
    eventually(lambda: not procs.is_alive(heir), 30, 0.05, "the hanging one is gone")
    dut.daemon.back(heir)

    assert f"{ABORTED} pid={heir} ready=" in dut.daemon.log(60)
    eventually(lambda: dut.route_row(NET), 10)
    dut.forwarded(lan, lan.probe(HOST), wan)
    restarts.communicate(timeout=60)


def test_a_restart_does_not_wait_for_a_thread_that_hangs(watched):
    """A forwarder of the old daemon does not end (a driver that does not return). The log names it,
    the old daemon is killed, and the new daemon forwards, in seconds."""
    dut = watched(30, haste=2)
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        # The daemon is killed while the thread is frozen, so the thread cannot be resumed.
        with contextlib.suppress(OSError), frozen(was, "fwd-0"):
            restarts = dut.fpmctl_begin("restart")
            eventually(lambda: "killing predecessor hanging=" in dut.daemon.log(60), 30)
        come_back(dut, was)

    dut.forwarded(lan, lan.probe(HOST), wan)
    assert restarts.wait(20) == 0
    assert watch.lost_carrier() == []
    log = dut.daemon.log(100)
    assert "main: thread does not end thread=fwd-0" in log
    assert "supervise: program ended" not in log and "hangs" not in log
    assert not procs.is_alive(was)


def test_a_successor_waits_for_devices_and_for_nothing_else(watched):
    """With a port that two daemons cannot open (a NIC, or net_null here), the successor waits only
    for the port. It forwards while the old daemon has not ended its other threads, here rib, which
    stands still."""
    dut = watched(30, haste=1)  # the successor waits long: no process ends by a timeout
    dut.edit_config("ports:\n", "ports:\n  - tap: alone0\n    device: net_null\n")
    assert dut.fpmctl("config", "reload").returncode == 0
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with contextlib.ExitStack() as rib_stands:
        with frozen(was, "fwd-0"):  # the old daemon waits for fwd-0 before it closes a port
            restarts = dut.fpmctl_begin("restart")
            eventually(lambda: "supervise: successor took over" in dut.daemon.log(60), 20, 0.002)
            rib_stands.enter_context(frozen(was, "fdp-rib"))
        come_back(dut, was)
        dut.forwarded(lan, lan.probe(HOST), wan)
        assert procs.is_alive(was)
    eventually(lambda: not procs.is_alive(was), 10, 0.05, "the old one has ended")

    assert restarts.wait(20) == 0
    assert "does not end" not in dut.daemon.log(100).replace("does not end thread=fwd-0", "")
