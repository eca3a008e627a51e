# SPDX-License-Identifier: BSD-3-Clause
"""The daemon has crashed, and the next start finds a changed machine: a device is away, the file is
half written, another program has an address, or the old daemon has not ended yet."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest

from back import HOST, NET, come_back, forwards
from lib import netns, procs
from lib.dataplane import ROOT
from lib.haste import hasty
from lib.linkwatch import LinkWatch
from lib.wait import PATIENCE, eventually

METRICS = "127.0.0.1:9468"


@pytest.fixture
def kept(own_dut):
    """A router for one test alone, under a supervisor whose waits between starts are a fifth as long
    as usual."""
    dut = own_dut(supervised=True, metrics=METRICS)
    with hasty(5):
        dut.start()
    return dut


@contextlib.contextmanager
def dead(dut):
    """Crash the daemon and keep the supervisor from a new start until the end of the block."""
    was = dut.daemon.pid()
    procs.stand_still(dut.daemon.process.pid)
    try:
        dut.daemon.crash()
        dut.zebra.close()
        dut.control.close()
        eventually(lambda: not procs.is_alive(was), 5)
        yield was
    finally:
        procs.signal_pid(dut.daemon.process.pid, signal.SIGCONT)


def renamed(dut):
    """Rename the interface of a port for a moment."""
    netns.ip_batch(["link set p-ext name p-tmp"], dut.dp)
    return lambda: netns.ip_batch(["link set p-tmp name p-ext"], dut.dp)


def misspelt(dut):
    """Save a configuration file with a misspelt key."""
    dut.edit_config("log-level:", "log-lewel:")
    return lambda: dut.edit_config("log-lewel:", "log-level:")


def squatted(dut):
    """Give the name of a port's TAP to an interface that is no TAP."""
    dut.ip("link del ext0", "link add ext0 type bridge")
    return lambda: dut.ip("link del ext0")


@pytest.mark.parametrize("harm", [renamed, misspelt, squatted])
def test_what_is_not_there_at_a_crash_is_waited_for(kept, harm):
    """The supervisor starts the daemon again and again, without a limit of time. No TAP loses its
    carrier, and the daemon is back when the missing part is back."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    with LinkWatch(dut.ctl) as watch:
        with dead(dut) as was:
            undo = harm(dut)
        eventually(lambda: dut.daemon.log(99).count("supervise: program started pid=") >= 3, 20)
        undo()
        dut.daemon.back(was)
        dut.forwarded(lan, lan.probe(HOST), wan)

    assert [name for name in watch.lost_carrier() if "ext0" not in name] == []
    assert dut.daemon.process.poll() is None


def test_starts_that_fail_are_nothing_against_the_checkpoint(kept):
    """Failed starts do not discard the checkpoint, however many there are. Here a device does not open.
    When it opens again, packets take the routes that zebra sent before the crash. Only starts that
    crash discard the checkpoint."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)

    with dead(dut) as was:
        dut.edit_config("iface=p-ext", "iface=p-ext,blocksz=1")
    eventually(lambda: dut.daemon.log(999).count("supervise: program ended code=1") >= 4, 30)
    dut.edit_config("iface=p-ext,blocksz=1", "iface=p-ext")
    dut.daemon.back(was)

    dut.forwarded(lan, lan.probe(HOST), wan)
    assert "rib: checkpoint discarded" not in dut.daemon.log(999)


def test_what_is_there_again_within_a_second_costs_no_start(kept):
    """The immediate start of the supervisor waits up to a second, so a device that is back in that
    time costs no second start."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    with dead(dut) as was:
        undo = renamed(dut)
    eventually(lambda: "1 error, nothing started yet" in dut.daemon.log(20), 10, 0.005)
    now = int(re.findall(r"supervise: program started pid=(\d+)", dut.daemon.log(99))[-1])
    procs.signal_pid(now, signal.SIGSTOP)  # its second does not pass on a busy machine
    undo()
    procs.signal_pid(now, signal.SIGCONT)
    dut.daemon.back(was)

    dut.forwarded(lan, lan.probe(HOST), wan)
    assert "config.yaml: good now" in dut.daemon.log(60)
    starts = re.findall(r"supervise: program started pid=\d+ restarts=(\d+)", dut.daemon.log(99))
    assert starts == ["0", "1"]


def test_with_what_is_kept_a_wrong_file_is_another_code(kept):
    """With TAPs that are kept, a wrong file gives exit code 77. systemd starts the daemon again,
    because its unit stops only at code 2."""
    dut = kept
    dut.edit_config("log-level:", "log-lewel:")
    start = f"LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=tap-x exec {dut.daemon.program}"

    def code(words):
        argv = ["sh", "-c", f"{words} -c {dut.config} 3</dev/null"]
        return subprocess.run(argv, capture_output=True, check=False, timeout=60 * PATIENCE).returncode

    assert (code(dut.daemon.program), code(start), code(f"{start} --check")) == (2, 77, 2)
    with open(f"{ROOT}/fpm-dataplane/dist/fpm-dataplane.service", encoding="utf-8") as file:
        assert "\nRestartPreventExitStatus=2\n" in file.read()


def test_a_port_that_another_has_taken_costs_no_transit(kept):
    """Another program has the port for zebra and the port of the metrics page. The daemon forwards
    by the routes that zebra taught, logs this once, and listens when the port is free."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    with contextlib.ExitStack() as taken:
        with dead(dut) as was, netns.entered(dut.ctl):
            for port in (2620, int(METRICS.rpartition(":")[2])):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
        dut.daemon.back(was)
        dut.forwarded(lan, lan.probe(HOST), wan)
        assert dut.fpm()["listening"] is False
        assert "the address fpm.listen is not available" in dut.fpmctl("show", "fpm").stdout
        log = dut.daemon.log(99)
        assert "fpm: listen failed address=127.0.0.1:2620" in log
        assert "ui: metrics address not opened error=\"Address" in log

    eventually(lambda: dut.fpm()["listening"], 5)
    eventually(lambda: "ui: metrics address opened" in dut.daemon.log(60), 5)
    assert dut.daemon.log(99).count("fpm: listen failed") == 1
    assert dut.daemon.log(99).count("ui: metrics address not") == 1
    assert sum(dut.forwarded_by().values()) > 0
    dut.route_row(NET)
    forwards(dut)


def test_a_start_waits_for_a_process_that_is_ending(kept):
    """Daemon and supervisor were killed. The next start waits until the kernel has ended the old
    process, and does not count it as a second daemon."""
    dut, daemon = kept, kept.daemon
    dut.zebra.close()
    was = daemon.pid()
    dut.control.close()
    procs.stand_still(was)  # the daemon keeps its sockets and answers no client
    daemon.process.kill()
    daemon.process.wait()

    argv = [daemon.supervisor, daemon.program, "-c", daemon.config]
    daemon.process = procs.start(argv, daemon.mark, daemon.log_file, dut.dp)
    try:
        eventually(lambda: waiting(dut) > 0, 10, 0.005, "the new one has asked it")
    finally:
        procs.signal_pid(was, signal.SIGKILL)

    eventually(lambda: daemon.process.poll() is not None or daemon.pid() != was, 20)
    assert daemon.process.poll() is None
    forwards(dut)


def waiting(dut):
    """Return the number of connections to the control socket that the daemon has not accepted."""
    row = netns.run(dut.dp, ["ss", "-xlH", "src", dut.socket]).split()
    return int(row[2])


def test_closed_standard_descriptors_are_not_reused(kept):
    """A daemon that starts without descriptors 0 to 2 gives their numbers to no device and no
    socket, now or later."""
    dut = kept
    dut.stop()
    dut.daemon.within = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "x"]
    dut.daemon.start()

    for crash in (False, True):
        if crash:
            dut.zebra.close()
            come_back(dut, dut.daemon.crash())
        for pid in (dut.daemon.process.pid, dut.daemon.pid()):
            found = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)]
            assert found == ["/dev/null"] * 3
    forwards(dut)


def test_a_small_soft_limit_of_the_stack_is_raised(kept):
    """RLIMIT_STACK: the daemon forwards with a soft limit that is too small for the stack of a
    forwarder, if the hard limit permits more."""
    dut = kept
    dut.stop()
    dut.daemon.within = ["prlimit", "--stack=65536:unlimited"]
    dut.daemon.start()
    forwards(dut)


def test_a_limit_of_file_sizes_costs_the_checkpoint_alone(kept):
    """RLIMIT_FSIZE also limits a memfd. The daemon logs that it has no checkpoint, and goes on."""
    dut = kept
    dut.stop()
    dut.daemon.within = ["prlimit", "--fsize=1000000"]
    dut.daemon.start()

    assert "rib: checkpoint not created error=\"File too large" in dut.daemon.log(60)
    forwards(dut)
