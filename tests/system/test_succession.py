# SPDX-License-Identifier: BSD-3-Clause
"""A planned restart fails: the successor crashes, refuses its configuration, or has too little
memory; or the predecessor ends. test_restart.py has restarts that succeed, test_hang.py has
threads that hang."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from back import HOST, NET, come_back, drown, forwards
from lib import netns, procs
from lib.built import not_sanitized
from lib.dut import Control
from lib.freeze import frozen
from lib.haste import hasty
from lib.linkwatch import LinkWatch
from lib.wait import PATIENCE, eventually, never

ROOM = 800 << 20  # octets: enough for a program and its plug-ins, but not for 800 MiB of packets, too
FAILED = "its successor did not start, code 1; the log has the reason"
BUSY = "a port is being changed, or its device starts or ends"
DEAF = "the service manager does not answer, so it would not know the successor"
UNREADABLE = "manage: configuration not reloaded"
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
PAGES_OF_ONE = 48  # size-mib: 96


def reserved(pages=None):
    """Return the number of hugepages of 2 MiB on the machine. Set it to `pages` first, if
    given."""
    if pages is not None:
        with open(PAGES, "w", encoding="ascii") as file:
            file.write(str(pages))
    with open(PAGES, encoding="ascii") as file:
        return int(file.read())


@contextlib.contextmanager
def starting(dut, name):
    """Start a device that reads a silent pipe, so that its start goes on until the block ends.
    Then the start fails."""
    path = f"{dut.dir}/{name}.pcap"
    os.mkfifo(path)
    words = ["port", "add", name, "device", f"net_pcap,rx_pcap={path}"]
    asks = dut.fpmctl_begin(*words)

    def begun():
        with contextlib.suppress(OSError):  # the daemon has not opened the pipe yet
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    pipe = eventually(begun, 10)
    try:
        yield
    finally:
        os.write(pipe, b"no pcap at all")
        os.close(pipe)
        asks.communicate(timeout=20)


@pytest.fixture
def own_program(own_dut):
    """Start a router as `kept` does, with a file of its own as the daemon's program."""
    dut = own_dut(supervised=True)
    program = dut.dir + "/fpm-dataplane"
    shutil.copy(dut.daemon.program, program)
    dut.daemon.program = program
    dut.start()
    return dut


@contextlib.contextmanager
def early(dut):
    """Yield a function that returns the process id of the successor of a restart in this block. The
    successor's program begins when the block ends."""
    program = dut.daemon.program
    real, gate = program + ".real", program + ".gate"
    os.rename(program, real)
    os.mkfifo(gate)
    with open(program, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nread go < {gate}\nexec {real} "$@"\n')
    os.chmod(program, 0o755)
    pipe = os.open(gate, os.O_RDWR)  # with O_RDWR, open() does not wait for the other end
    try:
        yield lambda: successor(dut)
        heir = successor(dut)
        # A shell that has not opened its script yet would open the program in its place.
        at_gate = lambda: os.path.samefile(f"/proc/{heir}/fd/0", gate)  # noqa: E731
        eventually(at_gate, 10, 0.001, "the script waits at its gate")
        os.rename(real, program)
        os.symlink(program, real)
        os.write(pipe, b"go\n")
        eventually(lambda: procs.comm(heir) != "sh", 10, 0.001, "it is the daemon's program")
    finally:
        os.close(pipe)


@contextlib.contextmanager
def busy(dut, port):
    """Let another program listen on the port."""
    with netns.entered(dut.ctl):
        made = socket.create_server(("127.0.0.1", port))
    with made:
        yield


@pytest.fixture
def packed(hugepages, own_dut):
    """Start a router whose daemon has all hugepages of the machine, exactly as many as it
    needs."""
    if not os.access(PAGES, os.W_OK) or reserved() != 0:
        pytest.skip("the huge pages here are not ours to reserve")
    dut = own_dut(supervised=True)
    dut.edit_config("memory:\n", "memory:\n  hugepages: true\n")
    try:
        if reserved(PAGES_OF_ONE) != PAGES_OF_ONE:
            pytest.skip("memory is in pieces")
        dut.start()
        yield dut
    finally:
        dut.destroy_daemon()
        reserved(0)


def successor(dut):
    """Return the process id of the successor as soon as the log names it."""


    def prepares():
        last = dut.daemon.log(20).rpartition("main: successor started pid=")[2].split()
        return int(last[0]) if last and procs.is_alive(int(last[0])) else None

    return eventually(prepares, 5, 0.002)


def listens(dut):
    """Return True if a process accepts connections at the control socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(dut.socket) == 0


WRONG = "the configuration is wrong; `fpmctl config reload --dry-run` shows where"


def refused(dut, restarts, why):
    """Check that `fpmctl restart` and the daemon report the refusal: exit code 3, and the same
    daemon runs on."""
    _, err = restarts.communicate(timeout=30)
    assert err == f"fpmctl: restart refused, the daemon continues: {why}\n"
    assert restarts.returncode == 3
    assert f'main: restart refused reason="{why}"' in dut.daemon.log(60)
    assert dut.daemon.log(200).count("supervise: ") == 1  # the line about the start
    assert f"restart refused: {why}" in dut.fpmctl("show", "version").stdout


def test_a_successor_that_fails_changes_nothing(kept):
    """The successor is killed while it prepares. The old daemon forwards and no packet is lost.
    The next restart succeeds."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()

    with dut.stream(lan, HOST, rate=500) as stream:
        with frozen(was, "fdp-rib"):  # the successor cannot get ready without the old rib
            restarts = dut.fpmctl_begin("restart")
            procs.signal_pid(successor(dut), signal.SIGKILL)
        refused(dut, restarts, "its successor was ended by signal 9 (perhaps no memory)")
        forwards(dut)
    assert stream.lost(wan) == []

    assert dut.daemon.pid() == was
    done = dut.fpmctl("restart")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"The successor has taken over, pid {dut.daemon.pid()}.\n"
    come_back(dut, was)


def test_a_successor_that_crashes_when_it_has_nearly_got_ready_changes_nothing(kept):
    """The successor ends after the old daemon has handed over the checkpoint. The old daemon
    opens its sockets for zebra and fpmctl again, forwards by new routes, keeps them over a
    crash, and can be restarted."""
    dut, lan, wan, alt = (kept, *(kept.wires[n] for n in ("lan", "wan", "alt")))
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()

    with dut.stream(lan, HOST, rate=500) as stream, LinkWatch(dut.ctl) as watch:
        for _ in range(2):
            with frozen(was, "fdp-rib"):
                restarts = dut.fpmctl_begin("restart")
                heir = successor(dut)
                eventually(lambda: not listens(dut), 30, 0.01, "nobody listens")
                procs.stand_still(heir)
            procs.signal_pid(heir, signal.SIGKILL)
            dut.control.close()
            dut.zebra.close()
            refused(dut, restarts, "its successor was ended by signal 9 (perhaps no memory)")
            assert dut.daemon.pid() == was
            dut.zebra.connect()
            dut.route("203.0.113.0/24", via=alt.peer4, wire=alt)
            dut.route(NET, via=wan.peer4, wire=wan)
            dut.forwarded(lan, lan.probe("203.0.113.9"), alt)
    assert stream.lost(wan) == [] and watch.lost_carrier() == []

    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 2, 5)
    dut.zebra.close()
    come_back(dut, dut.daemon.crash())
    dut.forwarded(lan, lan.probe("203.0.113.9"), alt)
    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    dut.forwarded(lan, lan.probe("203.0.113.9"), alt)


def test_a_predecessor_that_crashes_at_its_end_does_not_delay_the_successor(kept):
    """The predecessor is killed when the supervisor has the successor as the main process. The
    successor is ready and forwards."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        with contextlib.suppress(OSError), frozen(was, "fwd-0"):
            restarts = dut.fpmctl_begin("restart")
            eventually(lambda: "supervise: successor took over" in dut.daemon.log(60), 30, 0.002)
            procs.signal_pid(was, signal.SIGKILL)
        come_back(dut, was)
        dut.forwarded(lan, lan.probe(HOST), wan)

    assert restarts.wait(20) == 0 and watch.lost_carrier() == []
    log = dut.daemon.log(100)
    assert "supervise: program ended" not in log and "killing" not in log
    assert "main: predecessor died" in log


def test_no_memory_for_two_is_a_restart_all_the_same(own_program):
    """There is no memory for two daemons: the old one ends first, and the supervisor starts
    another."""
    dut, lan, wan = own_program, *(own_program.wires[n] for n in ("lan", "wan"))
    not_sanitized(dut, "no program has that little room")
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    dut.edit_config("size-mib: 96", f"size-mib: {ROOM >> 20}")
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        with early(dut) as heir:
            restarts = dut.fpmctl_begin("restart")
            resource.prlimit(heir(), resource.RLIMIT_AS, (ROOM, ROOM))
        come_back(dut, was)

    assert restarts.wait(20) == 0
    dut.forwarded(lan, lan.probe(HOST), wan)
    log = dut.daemon.log(60)
    assert "main: no memory for two daemons" in log and "supervise: restart requested" in log
    assert watch.lost_carrier() == []


def test_no_memory_for_two_and_no_supervisor_is_refused(own_program):
    """The supervisor has ended, and the log says so. The daemon does not end, because no
    program would start another. A restart with memory for two daemons succeeds nevertheless."""
    dut, lan, wan = own_program, *(own_program.wires[n] for n in ("lan", "wan"))
    not_sanitized(dut, "no program has that little room")
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()
    dut.daemon.process.kill()
    eventually(lambda: "main: supervisor ended" in dut.daemon.log(60), 10)

    dut.edit_config("size-mib: 96", f"size-mib: {ROOM >> 20}")
    with early(dut) as heir:
        restarts = dut.fpmctl_begin("restart")
        resource.prlimit(heir(), resource.RLIMIT_AS, (ROOM, ROOM))
    refused(
        dut,
        restarts,
        "there is no memory for two daemons, and its supervisor has ended, so nothing would start "
        "it again",
    )
    assert dut.daemon.pid() == was
    dut.forwarded(lan, lan.probe(HOST), wan)

    dut.edit_config(f"size-mib: {ROOM >> 20}", "size-mib: 96")
    dut.zebra.close()
    assert dut.fpmctl("restart").returncode == 0
    dut.control.close()
    heir = dut.daemon.pid()
    assert heir != was
    dut.forwarded(lan, lan.probe(HOST), wan)
    procs.signal_pid(heir, signal.SIGTERM)
    eventually(lambda: not procs.is_alive(heir), 10)


def test_a_supervisor_that_does_not_listen_is_not_waited_for(own_dut):
    """The supervisor is stopped and its socket is full of messages. It would take the end of
    the old daemon for a crash, because it does not know the successor. The daemon refuses the
    restart within seconds and opens its sockets for zebra and fpmctl again. Then it serves
    changes, and a later restart succeeds."""
    dut = own_dut(supervised=True)
    with hasty(5):
        dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was, supervisor = dut.daemon.pid(), dut.daemon.process.pid
    procs.stand_still(supervisor)
    try:
        drown(dut)
        with dut.stream(lan, HOST, rate=500) as stream:
            refused(dut, dut.fpmctl_begin("restart"), DEAF)
            dut.control.close()
        assert stream.lost(wan) == []
        dut.zebra.close()
        forwards(dut)
        assert dut.fpmctl("port", "add", "new0", "device", "net_null0,no-rx=1").returncode == 0
        eventually(lambda: "tap not stored name=new0" in dut.daemon.log(60), 10)
        assert dut.daemon.pid() == was
    finally:
        procs.signal_pid(supervisor, signal.SIGCONT)

    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)


def test_no_memory_for_the_checkpoint_is_none_for_two(own_program):
    """The successor has no memory for the checkpoint and so could not forward by zebra's
    routes: the old daemon ends first."""
    dut, lan, wan = own_program, *(own_program.wires[n] for n in ("lan", "wan"))
    not_sanitized(dut, "no program has that little room")
    dut.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)
    dut.zebra.close()
    was = dut.daemon.pid()
    with open(f"/proc/{was}/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")  # with one checkpoint

    with early(dut) as heir:
        restarts = dut.fpmctl_begin("restart")
        resource.prlimit(heir(), resource.RLIMIT_AS, (size, size))
    come_back(dut, was)

    assert restarts.wait(20) == 0
    dut.forwarded(lan, lan.probe(HOST), wan)
    assert "main: no memory for two daemons" in dut.daemon.log(60)


def test_hugepages_for_one_daemon_alone_are_no_hindrance(packed):
    """The machine has the hugepages that the unit and the doctor name, enough for one daemon:
    the old daemon ends first."""
    dut, lan, wan = packed, packed.wires["lan"], packed.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.close()
    was = dut.daemon.pid()

    with LinkWatch(dut.ctl) as watch:
        done = dut.fpmctl("restart")
        come_back(dut, was)

    assert (done.returncode, done.stderr) == (0, "")
    dut.forwarded(lan, lan.probe(HOST), wan)
    assert "main: no memory for two daemons" in dut.daemon.log(60)
    assert watch.lost_carrier() == []


def test_more_hugepages_than_the_machine_has_are_not_ended_for(packed):
    """The successor would need more hugepages than the machine has, even with those of the old
    daemon. So the restart is refused."""
    dut, lan, wan = packed, packed.wires["lan"], packed.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()

    for size in ("size-mib: 100", "size-mib: 128"):  # first no page is free, then too few are
        dut.edit_config("size-mib: 96", size)
        refused(dut, dut.fpmctl_begin("restart"), FAILED)
        assert dut.daemon.pid() == was
        dut.forwarded(lan, lan.probe(HOST), wan)
        said = f"main: too few hugepages wanted_mib={size.split()[1]} "
        assert said in dut.daemon.log(60)
        dut.edit_config(size, "size-mib: 96")
        reserved(PAGES_OF_ONE + 8)


def test_a_restart_into_a_wrong_configuration_is_refused(kept):
    """A restart into a wrong configuration is refused at once, and the daemon forwards."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()
    dut.edit_config("ports:", "harbours:")

    refused(dut, dut.fpmctl_begin("restart"), WRONG)

    said = dut.fpmctl(*re.search("`fpmctl (.*)`", WRONG)[1].split())
    assert said.returncode == 2 and "1:1: harbours" in said.stdout + said.stderr
    assert dut.daemon.pid() == was and dut.fpm()["connected"]
    dut.forwarded(lan, lan.probe(HOST), wan)


@pytest.mark.parametrize("what", ["metrics", "listen", "socket"])
def test_a_restart_into_an_address_that_cannot_be_had_is_refused(kept, what):
    """A port in use, an address that the machine does not have, a directory that the daemon
    cannot write: the successor finds the fault after the old daemon has closed its sockets. The
    old daemon forwards meanwhile and opens all its sockets again."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()
    old, new, says = {
        "metrics": (
            "metrics: off", "metrics: 127.0.0.1:2621", "key=metrics address=127.0.0.1:2621 error="
        ),
        "listen": (
            "127.0.0.1:2620", "203.0.113.1:2620", "key=fpm.listen address=203.0.113.1:2620 error="
        ),
        "socket": (dut.socket, "/proc/self/control.sock", "path=/proc/self/control.sock error="),
    }[what]  # fmt: skip
    dut.edit_config(old, new)

    with busy(dut, 2621), dut.stream(lan, HOST, rate=500) as stream:
        refused(dut, dut.fpmctl_begin("restart"), FAILED)
        dut.control.close()
    assert stream.lost(wan) == []

    assert says in dut.daemon.log(60)
    assert dut.daemon.pid() == was
    dut.zebra.close()
    forwards(dut)
    dut.edit_config(new, old)
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)


def test_a_restart_with_a_device_that_is_not_there_is_refused(kept):
    """The file names a device with an argument that the machine refuses: the restart is
    refused."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()
    dut.edit_config("iface=p-ext", "iface=p-ext,blocksz=1")

    refused(dut, dut.fpmctl_begin("restart"), FAILED)
    assert dut.daemon.pid() == was and dut.fpm()["connected"]
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_a_restart_while_a_device_starts_is_refused(kept):
    """A device's start may take minutes, and the successor would not know the port."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()

    with starting(dut, "one0"):
        refused(dut, dut.fpmctl_begin("restart"), BUSY)
        dut.forwarded(lan, lan.probe(HOST), wan)

    assert dut.daemon.pid() == was
    dut.control.close()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)


def test_questions_are_no_change_of_a_port(kept):
    """`config show` and `reload --dry-run` run all the time. They are no changes, so each
    restart succeeds."""
    dut, over = kept, threading.Event()

    def asks(request):
        control = Control(dut.socket)
        while not over.is_set():
            with contextlib.suppress(OSError, LookupError):  # while one daemon replaces the other
                control.request({"config": request})
        control.close()

    requests = [{"do": "show"}, {"do": "reload", "dry_run": True}] * 3
    askers = [threading.Thread(target=asks, args=(request,)) for request in requests]
    for asker in askers:
        asker.start()
    try:
        for _ in range(3):
            was = dut.daemon.pid()
            done = dut.fpmctl("restart")
            assert done.returncode == 0, done.stderr
            come_back(dut, was)
    finally:
        over.set()
        for asker in askers:
            asker.join(20)


def test_files_for_a_daemon_are_files_for_its_successor(kept):
    """A limit of open files that is enough for a start is enough for a restart."""
    dut, was = kept, kept.daemon.pid()
    argv = ["ip", "netns", "exec", dut.dp, "prlimit", "--nofile=64"]
    argv += [dut.daemon.program, "-c", dut.config]
    refusal = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    needed = int(re.search(r"needed=(\d+)", refusal.stderr)[1])

    resource.prlimit(was, resource.RLIMIT_NOFILE, (needed, needed))
    done = dut.fpmctl("restart")

    assert done.returncode == 0, done.stderr
    come_back(dut, was)


def test_a_damaged_checkpoint_is_no_reason_to_forward_nothing(kept):
    """The successor cannot restore a damaged checkpoint, but the running daemon has all routes.
    So the restart is refused."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)
    dut.zebra.close()
    files = Path(f"/proc/{dut.daemon.pid()}/fd").iterdir()
    checkpoint = next(file for file in files if "checkpoint" in os.readlink(file))
    with open(checkpoint, "r+b", buffering=0) as file:
        (octet,) = os.pread(file.fileno(), 1, 24)  # in the checkpoint's header
        os.pwrite(file.fileno(), bytes([octet ^ 0xFF]), 24)

    refused(dut, dut.fpmctl_begin("restart"), FAILED)

    dut.forwarded(lan, lan.probe(HOST), wan)
    assert 'rib: checkpoint discarded reason="damaged header"' in dut.daemon.log(60)


def test_who_asks_twice_is_told_once(own_program):
    """A second request during a restart that is refused does not begin another restart. Its
    signal, for which main does not wait at that moment, does not end the daemon."""
    dut, was = own_program, own_program.daemon.pid()
    dut.edit_config("ports:", "harbours:")

    with early(dut) as heir:
        restarts = dut.fpmctl_begin("restart")
        heir()
        procs.signal_pid(was, signal.SIGUSR1)
    refused(dut, restarts, WRONG)
    for n in (1, 2):  # between the two the daemon handles all other requests
        dut.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda n=n: dut.daemon.log(200).count(UNREADABLE) == n, 10)

    assert dut.daemon.log(200).count("main: successor started") == 1


@pytest.mark.parametrize("late", [False, True], ids=["prepares", "lets_go"])
def test_a_stop_in_the_middle_of_a_restart_is_told_at_once(kept, late):
    """A stop during a restart: no successor comes. fpmctl says so at once, with the exit code
    for `no daemon`."""
    dut, was = kept, kept.daemon.pid()

    with contextlib.suppress(OSError), frozen(was, "fdp-rib" if late else "fdp-fpm"):
        restarts = dut.fpmctl_begin("restart")
        procs.stand_still(successor(dut))
        if late:
            procs.signal_pid(successor(dut), signal.SIGCONT)
            eventually(lambda: not listens(dut), 30, 0.01, "it lets go")
        dut.daemon.process.send_signal(signal.SIGTERM)
    out, err = restarts.communicate(timeout=30)
    assert dut.daemon.process.wait(15) == 0

    assert (out, restarts.returncode) == ("", 1)
    assert err == "fpmctl: the daemon was stopped meanwhile, and has no successor\n"
    assert not os.path.exists(dut.socket)


def test_the_socket_stays_where_it_is_while_another_daemon_is_to_come(kept):
    """fpmctl tells a restart, in which no daemon listens for a while, from a stop by the
    socket's path. The successor puts its own socket in the place of the old one in two steps,
    which take no time."""
    dut, was = kept, kept.daemon.pid()

    with frozen(was, "fdp-rib"):
        restarts = dut.fpmctl_begin("restart")
        eventually(lambda: not listens(dut), 30, 0.01, "it lets go")
        never(lambda: not os.path.exists(dut.socket), 0.5, 0.001)
    come_back(dut, was)

    assert restarts.wait(20) == 0 and os.path.exists(dut.socket)
