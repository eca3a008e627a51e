# SPDX-License-Identifier: BSD-3-Clause
"""`keep-nics: true`: a separate process has the NICs, so that a planned restart of the daemon
loses no packet. One of the two processes ends, the next daemon needs other settings of the
NICs, or both end. Once for each model of NIC (run.py)."""

import glob
import os
import shutil
import signal
import socket
import stat
import statistics
import subprocess

import pytest

from lib import procs
from lib.linkwatch import LinkWatch
from lib.privileges import assert_dropped
from lib.wait import eventually
from router import Router, running

NET, HOST = "198.51.100.0/24", "198.51.100.9"
RATE = 400
TIMES = int(os.environ.get("REPEAT") or 3)
# A program that prints each of its arguments that is a path it can read, write or connect to.
REACH = """
import contextlib, os, socket, sys
for path in sys.argv[1:]:
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        with contextlib.suppress(OSError):
            os.open(path, flags)
            print(path)
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.connect(path)
        print(path)
"""
NOBODY = 65534
A_FEW = 64  # packet buffers: the kernel's frames may have some at any moment


@pytest.fixture(scope="module")
def kept():
    """Run a supervised router whose NICs are kept."""
    keys = ("\nmemory:", f"\ncores: {os.environ['FDP_CORES']}\nkeep-nics: true\nmemory:")
    with running(Router(name="kept", supervised=True), keys) as router:
        yield router


@pytest.fixture
def router(kept):
    """Return the router with a route, when the checkpoint has all routes of zebra."""
    kept.ready()
    wan = kept.wires["wan"]
    kept.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: kept.fpm()["checkpoint"]["routes"] == 1, 10, 0.05, "a checkpoint")
    return kept


def keeper(router):
    """Return the process id of the process that keeps the NICs; None if there is none or more
    than one."""
    found = [p for p in procs.marked(router.dir, "fpm-nics") if procs.is_alive(p)]
    return found[0] if len(found) == 1 else None


def restart(router):
    """Restart as planned. Return the log of the restart."""
    was = router.daemon.pid()
    router.zebra.close()
    done = router.fpmctl("restart", timeout=240)
    assert done.returncode == 0, done.stderr
    router.control.close()
    router.daemon.back(was)
    log = router.daemon.log(300)
    return log[log.rindex("main: successor started") :]


def forwards(router):
    """Check that a packet is forwarded by the route, which zebra need not have sent again."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    eventually(lambda: router.forwarded(lan, lan.probe(HOST), wan, 0.5), 60, 0.05, "a packet")


def buffers_free(router):
    return router.control.ask("memory")[0]["packet_buffers_free"]


@pytest.mark.quick
def test_no_packet_is_lost_in_a_planned_restart(router):
    """No packet arrives twice, and the same process keeps the NICs all the time."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    process = keeper(router)
    with LinkWatch(router.ctl) as watch, router.stream(lan, HOST, rate=RATE, flows=8) as stream:
        for _ in range(TIMES):
            log = restart(router)
            assert log.count(" E ") == 0, log
            enough = stream.sent + RATE
            eventually(lambda n=enough: any(a > n for a in stream.arrived(wan)), 30, 0.1, "packets")
            router.zebra.connect()
            eventually(lambda: router.fpm()["checkpoint"]["routes"] == 1, 10, 0.05, "a checkpoint")
    eventually(lambda: stream.lost(wan) == [], 5, 0.1, "all arrive")
    assert set(stream.arrived(wan).values()) == {1}
    came = sorted(when for when, _ in wan.timed(stream.mark))
    took = sorted((b - a for a, b in zip(came, came[1:])), reverse=True)[:TIMES]
    print(f"{os.environ['FDP_DRIVER']}: {TIMES} restarts, {stream.sent} sent, none lost, "
          f"longest silences {', '.join(f'{t:.3f}' for t in took)} s")  # fmt: skip
    lan.clear()
    wan.clear()
    assert watch.lost_carrier() == []
    assert keeper(router) == process is not None
    # The median, because a guest without KVM may stand still for a time.
    assert statistics.median(took) < 1.5, "packets wait in the rings for a short time only"


@pytest.mark.quick
def test_no_packet_buffer_is_lost_in_planned_restarts(router):
    """The old daemon gives back all packet buffers that it held or cached. (A transmit ring
    frees a sent packet only when another takes its place, so no stream runs.)"""
    restart(router)
    free = buffers_free(router)
    for _ in range(TIMES):
        router.zebra.connect()
        restart(router)
    eventually(lambda: buffers_free(router) > free - A_FEW, 10, 0.1, f"{free} are free again")


def reached(paths, user):
    """Return the paths that this user can open."""
    argv = ["/usr/bin/python3", "-c", REACH, *paths]
    said = subprocess.run(
        argv, user=user, group=user, extra_groups=[], capture_output=True, text=True, check=True
    )
    return set(said.stdout.split())


@pytest.mark.quick
def test_it_may_do_no_more_than_the_daemon_and_is_closed_to_others(router):
    """security.md: the process has no more capabilities and system calls than the daemon.
    DPDK's files of both processes are closed to other users."""
    process = keeper(router)
    assert_dropped(process)
    # The files of the replaced daemon go when it ends.
    eventually(lambda: is_closed(process), 20, 0.1, "closed to others")


def is_closed(process):
    """Return True if the files of the process exist and are closed to all users but root."""
    (runtime,) = glob.glob(f"/var/run/dpdk/fdp{process}-*")
    pages = glob.glob(f"/dev/hugepages/fdp{process}-*map_*")
    files = glob.glob(f"{runtime}/*")
    assert sum(stat.S_ISSOCK(os.stat(f).st_mode) for f in files) >= 2, "a socket of fpm-nics and one of the daemon"
    assert len(pages) * 2 >= int(os.environ.get("FDP_MIB", "96")), "hugepages of 2 MiB for all of FDP_MIB"
    for path in (runtime, *files, *pages):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (0, 0), path
    for path in (runtime, *pages):
        assert os.stat(path).st_mode & 0o077 == 0, path
    assert reached([*files, *pages], 0) == {*files, *pages}
    assert reached([runtime, *files, *pages], NOBODY) == set()
    # The sockets by which daemons speak to it have no name.
    with open(f"/proc/{process}/net/unix", encoding="ascii") as file:
        named = {words[6]: words[7] for words in map(str.split, file) if len(words) > 7}
    inodes = [os.readlink(fd)[8:-1] for fd in glob.glob(f"/proc/{process}/fd/*")]
    own = {named[n] for n in inodes if n in named}
    assert own and all(os.path.realpath(path) in map(os.path.realpath, files) for path in own)
    return True


@pytest.mark.quick
def test_it_gives_that_up_by_itself(router):
    """The test starts fpm-nics as the daemon does, but with all privileges. fpm-nics gives up its
    privileges by itself, and it ends when the last connection closes."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    shell = f'exec 3<&{its.fileno()}; LISTEN_PID=$$ exec "$@"'
    argv = ["bash", "-c", shell, "bash", router.daemon.program, "-c", router.config, "--nics"]
    words = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "nics"}
    process = subprocess.Popen(argv, env={**os.environ, **words}, pass_fds=[its.fileno()])
    files, pages = (f"{d}/fdp{process.pid}-*" for d in ("/var/run/dpdk", "/dev/hugepages"))
    try:
        its.close()
        eventually(lambda: glob.glob(f"{files}/mp_socket"), 30, 0.05, "DPDK has begun")
        assert_dropped(process.pid)
        ours.close()
        assert process.wait(60) == 0
        assert glob.glob(files) == glob.glob(pages) == []
    finally:
        process.kill()
        process.wait()
        for path in glob.glob(files):
            shutil.rmtree(path)
        for path in glob.glob(pages):
            os.unlink(path)


@pytest.mark.quick
def test_a_crash_has_them_opened_anew_by_another_process(router):
    """After a kill -9 no process knows the buffers that the daemon held. Another process opens
    the NICs again."""
    was, process = router.daemon.pid(), keeper(router)
    with LinkWatch(router.ctl) as watch:
        router.daemon.crash()
        router.control.close()
        router.daemon.back(was, 60)
    forwards(router)
    assert watch.lost_carrier() == []
    assert not procs.is_alive(process)
    assert keeper(router) is not None


@pytest.mark.quick
def test_the_process_that_keeps_them_dies_and_the_daemon_begins_anew(router):
    was = router.daemon.pid()
    procs.signal_pid(keeper(router), signal.SIGKILL)
    router.control.close()
    router.daemon.back(was, 60)
    forwards(router)
    assert "port: fpm-nics died" in router.daemon.log(300)
    assert keeper(router) is not None


def test_a_daemon_that_hangs_does_not_prevent_a_start(router):
    """The daemon and fpm-nics are stopped, then the daemon is killed. The next daemon starts nevertheless."""
    was, process = router.daemon.pid(), keeper(router)
    for pid in (was, process):
        procs.signal_pid(pid, signal.SIGSTOP)
    procs.signal_pid(was, signal.SIGKILL)
    router.control.close()
    router.daemon.back(was, 60)
    forwards(router)
    assert not procs.is_alive(process)


def test_a_successor_that_dies_leaves_the_old_one_as_it_was(router):
    """The successor is killed when it has opened all ports and made its rings. The old daemon
    loses no packet, and the next restart succeeds."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    was, process, before = router.daemon.pid(), keeper(router), router.daemon.log(300)
    with router.stream(lan, HOST, rate=RATE, flows=8) as stream:
        procs.signal_pid(was, signal.SIGUSR1)
        heir = eventually(lambda: heir_of(router, before), 60, 0.005, "a successor")
        procs.signal_pid(heir, signal.SIGKILL)
        eventually(lambda: "restart refused" in news(router, before), 20, 0.05, "it is refused")
        router.control.close()  # the daemon closed its sockets for the successor
    eventually(lambda: stream.lost(wan) == [], 5, 0.1, "all arrive")
    assert (router.daemon.pid(), keeper(router)) == (was, process)
    lan.clear()
    wan.clear()
    restart(router)
    forwards(router)
    assert keeper(router) == process


def test_a_restart_right_after_another(router):
    """The predecessor may not have ended yet. Then the restart is refused, and the router
    continues to forward."""
    process = keeper(router)
    restart(router)
    done = router.fpmctl("restart", timeout=240)
    assert done.returncode == 0 or "has not ended yet" in done.stderr, done.stderr
    router.control.close()
    eventually(router.daemon.pid, 60, 0.05, "a daemon answers")
    forwards(router)
    assert keeper(router) == process


def news(router, before):
    """Return the log lines since `before`."""
    log = router.daemon.log(300)
    return log[len(os.path.commonprefix([log, before])) :]


def heir_of(router, before):
    """Return the process id of a successor whose last port is up."""
    log = news(router, before)
    words = log.partition("main: successor started pid=")[2].split()
    return int(words[0]) if words and log.count("main: port opened") == len(router.names) else None


def test_what_the_next_daemon_wants_otherwise_is_opened_anew(router):
    """The same process opens the NICs again if the next daemon wants another number of queues
    (virtio) or a larger MTU (the other models, which keep the MTU of their start)."""
    virtio, process, n = os.environ["FDP_DRIVER"] == "net_virtio", keeper(router), len(router.names)
    was, now = "    device:", "    mtu: 1600\n    device:"
    if virtio:
        was, now = f"cores: {os.environ['FDP_CORES']}", "cores: [1]"
    router.edit_config(was, now)
    try:
        log = restart(router)
        assert "no memory for two" not in log
        assert log.count("nics: device opened") == n
        assert keeper(router) == process
        forwards(router)
    finally:
        router.edit_config(now, was)
    log = restart(router)
    assert log.count("nics: device opened") == (n if virtio else 0), "the other models accept a smaller MTU"
    forwards(router)


def test_other_memory_takes_another_process(router):
    """If the memory settings have changed, the old daemon ends first, as it does without memory for
    two daemons."""
    process = keeper(router)
    mib = os.environ.get("FDP_MIB", "96")
    router.edit_config(f"size-mib: {mib}", f"size-mib: {int(mib) + 16}")
    try:
        log = restart(router)
        assert "memory.size-mib, the largest MTU or plugins have changed" in log
        assert keeper(router) not in (process, None)
        assert router.daemon.show("version")[0]["memory_mib"] == int(mib) + 16
        forwards(router)
    finally:
        router.edit_config(f"size-mib: {int(mib) + 16}", f"size-mib: {mib}")
    restart(router)
    forwards(router)


def test_keep_nics_is_turned_off_and_on(router):
    router.edit_config("keep-nics: true", "keep-nics: false")
    try:
        restart(router)
        assert procs.marked(router.dir, "fpm-nics") == []
        forwards(router)
    finally:
        router.edit_config("keep-nics: false", "keep-nics: true")
    restart(router)
    forwards(router)
    assert keeper(router) is not None


def test_ports_go_and_come_with_restarts(router):
    """A running daemon refuses to add or delete ports and says so. A restart closes a NIC that
    is not in the file."""
    device = router.wiring.device("ext")
    done = router.fpmctl("port", "del", "ext0")
    assert done.returncode != 0 and "added, removed and changed only by a restart" in done.stderr
    block = f"  - tap: ext0\n    device: {device}"
    router.edit_config("\n" + block, "")
    try:
        restart(router)
        gone = f"nics: device closed device={device}"
        eventually(lambda: gone in router.daemon.log(300), 20, 0.1, "it is closed")
        assert "ext0" not in router.daemon.ports()
        forwards(router)
    finally:
        router.edit_config("ports:\n", f"ports:\n{block}\n")
    restart(router)
    forwards(router)
    router.taps["ext"] = router._wire(router.ctl, "ext0")
    router.collector.add(router.taps["ext"])
    router.ready()
    lan, ext = router.wires["lan"], router.wires["ext"]
    router.route("203.0.113.0/24", via=ext.peer4, wire=ext)
    assert router.forwarded(lan, lan.probe("203.0.113.9"), ext)


@pytest.mark.quick
def test_nothing_is_left_of_them(router):
    """After the end no file or process of fpm-nics is left, also of the processes that were killed
    above."""
    router.zebra.close()
    assert router.stop(timeout=60) == 0
    assert procs.marked(router.dir, "fpm-nics") == []
    assert glob.glob("/dev/hugepages/fdp*") == glob.glob("/var/run/dpdk/fdp*") == []
