# SPDX-License-Identifier: BSD-3-Clause
"""A thread that stands still, a log that nobody reads, a supervisor that does not listen: what
hangs is ended, by name, and what does not is not."""

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

ABORTED = "supervise: program hangs, aborting it"


@pytest.fixture
def watched(own_dut):
    """Makes a router whose supervisor waits so many seconds for a sign of life, and `haste` times
    as short for all else: 2 s for the end of one that was aborted."""

    def make(seconds, log=None, haste=5):
        dut = own_dut(supervised=True)
        dut.daemon.supervisor_words = ["--watchdog", str(seconds)]
        dut.daemon.log_file = log or dut.daemon.log_file
        with hasty(haste):
            dut.start()
        return dut

    return make


def test_a_hanging_daemon_is_started_again(watched):
    """No sign of life (here: SIGSTOP) for the watchdog's time: aborted, killed, replaced."""
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
    """How many connections to a socket there are from here, those that wait among them."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        return file.read().count(f" {path}\n")


def test_who_asks_one_that_hangs_is_told_so_within_half_a_minute(own_dut):
    """Whatever is asked, a trace too; and when so many ask that it would have to let them in. Here
    within a tenth of it."""
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
    """One thread stands still, a forwarder (a driver that does not return) or a worker, and
    all others go on: named in the log, aborted, replaced; then it forwards again."""
    dut = watched(2)
    was = dut.daemon.pid()
    dut.control.close()

    with LinkWatch(dut.ctl) as watch:
        # Aborted while it is held, it can be let go of no more.
        with contextlib.suppress(OSError), frozen(was, thread):
            eventually(lambda: ABORTED in dut.daemon.log(60), 20)
        come_back(dut, was)

    log = dut.daemon.log(100)
    assert "main: thread hangs thread=" + thread.removeprefix("fdp-") in log
    assert f"supervise: program ended signal={int(signal.SIGABRT)}" in log
    assert watch.lost_carrier() == []
    forwards(dut)


def test_one_that_hangs_whose_log_nobody_reads_is_started_again(watched, unread):
    """Supervisor and daemon write to one pipe, as in a container, whose reader has stopped:
    that holds up neither the daemon nor the end of one that hangs."""
    dut = watched(2, unread.path)
    was = dut.daemon.pid()
    dut.control.close()

    with contextlib.suppress(OSError), frozen(was, "fdp-punt"):
        # All of it but the thread that is held.
        eventually(lambda: procs.states(was)[:1] in ("Z", ""), 20, 0.05, "it is aborted")
    come_back(dut, was)

    forwards(dut)
    unread.drain()
    assert dut.stop() == 0
    assert "W log: output resumed lost=" in unread.drain()


def test_a_supervisor_that_does_not_listen_holds_up_no_end(watched):
    """It hears nothing (here: SIGSTOP) and its queue is full, so that signs of life find no room:
    the daemon ends when it is told to."""
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
    """`fpmctl restart` while rib, which gets no time here, has routes to digest for longer than
    the watchdog waits: the restart comes when it has them, all, and nothing is aborted."""
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
    """Nobody forwards any more: it has no more time than one that runs, then another starts."""
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
    # Two seconds, and two more (haste), for it does not take the signal to abort.
    eventually(lambda: not procs.is_alive(heir), 30, 0.05, "the hanging one is gone")
    dut.daemon.back(heir)

    assert f"{ABORTED} pid={heir} ready=" in dut.daemon.log(60)
    eventually(lambda: dut.route_row(NET), 10)
    dut.forwarded(lan, lan.probe(HOST), wan)
    restarts.communicate(timeout=60)


def test_a_restart_does_not_wait_for_a_thread_that_hangs(watched):
    """A forwarder of the old daemon does not end (a driver that does not return): it is named,
    the old one killed, and the new one forwards, in seconds."""
    dut = watched(30, haste=2)
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        # Killed while it is held, it can be let go of no more.
        with contextlib.suppress(OSError), frozen(was, "fwd-0"):
            restarts = dut.fpmctl_begin("restart")
            eventually(lambda: "killing predecessor hanging=" in dut.daemon.log(60), 30)
        come_back(dut, was)

    dut.forwarded(lan, lan.probe(HOST), wan)
    assert restarts.wait(20) == 0
    assert watch.lost_carrier() == []
    log = dut.daemon.log(100)
    assert "main: thread does not end thread=fwd-0" in log
    assert "supervise: program" not in log and "hangs" not in log
    assert not procs.is_alive(was)


def test_a_successor_waits_for_devices_and_for_nothing_else(watched):
    """Ports that cannot be open twice (a NIC, or net_null here): the next daemon forwards while
    the old one has everything else to end still, here rib, which stands still."""
    dut = watched(30, haste=1)  # the successor has patience with the old one: nothing ends by time
    dut.edit_config("ports:\n", "ports:\n  - tap: alone0\n    device: net_null\n")
    assert dut.fpmctl("config", "reload").returncode == 0
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with contextlib.ExitStack() as rib_stands:
        with frozen(was, "fwd-0"):  # the old one waits for it before it closes a port
            restarts = dut.fpmctl_begin("restart")
            eventually(lambda: "supervise: successor took over" in dut.daemon.log(60), 20, 0.002)
            rib_stands.enter_context(frozen(was, "fdp-rib"))
        come_back(dut, was)
        dut.forwarded(lan, lan.probe(HOST), wan)
        assert procs.is_alive(was)
    eventually(lambda: not procs.is_alive(was), 10, 0.05, "the old one has ended")

    assert restarts.wait(20) == 0
    assert "does not end" not in dut.daemon.log(100).replace("does not end thread=fwd-0", "")
