# SPDX-License-Identifier: BSD-3-Clause
"""The stream from bfdd to the daemon, from a program that plays bfdd: messages in pieces, the end of
the stream in the middle of a message, and a bfdd that does not read."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import time

import pytest

from bfd_bed import PORT
from lib import bfddp, netns
from lib.dut import Dut
from lib.wait import eventually
from router import Router, running

PEER = "192.0.2.77"
CONNECTIONS, PART = 48, 65544  # BFD_CONNS_MAX, octets of struct kept_part (bfd/impl.h)
QUESTION = bfddp.HEADER.pack(1, 0, bfddp.ASK_COUNTERS, 1, 12) + bfddp.LID.pack(7)


@pytest.fixture(scope="module")
def stream():
    """Yields the router and the listener that it connects to."""
    with running(Router(name="bfds", supervised=True)) as router:
        router.stop()
        router.zebra.close()
        with netns.entered(router.ctl):
            listener = socket.create_server(("127.0.0.1", PORT))
        with contextlib.closing(listener):
            listener.settimeout(20)
            router.edit_config(
                "log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info'
            )
            Dut.start(router)
            yield router, listener


def message(kind, peer, lid):
    """Return DP_ADD_SESSION (2) or DP_DELETE_SESSION (3) of a session by port wan."""
    session = struct.pack(
        "!I16s16sIIIIIIBBHI64s",
        0, bytes(16), socket.inet_aton(peer) + bytes(12), lid, 300000, 300000, 50000, 50000, 0,
        255, 3, 0, 0, b"wan0",
    )  # fmt: skip
    return struct.pack("!BBHHH", 1, 0, kind, 0, 8 + len(session)) + session


def peers(router):
    return [row["peer"] for row in router.control.ask("bfd")]


def add_session(router, connection):
    connection.sendall(message(2, PEER, 7))
    eventually(lambda: PEER in peers(router), 10, what="the session")


def test_a_message_in_pieces_is_taken_when_it_is_whole(stream):
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        whole = message(2, PEER, 7) + message(2, "192.0.2.78", 8)
        for at in (3, 8, 100, 150, len(whole)):
            connection.sendall(whole[:at])
            whole = whole[at:]
            if at == 100:  # the first message is not whole
                assert peers(router) == []
        eventually(lambda: sorted(peers(router)) == [PEER, "192.0.2.78"], 10, what="both sessions")
        connection.sendall(message(3, PEER, 7))
        eventually(lambda: peers(router) == ["192.0.2.78"], 10, what="one is deleted")


def taken(router, connection):
    """Return True if the service manager keeps the daemon's connection, and all octets have been
    taken from its socket. If the manager has no CPU time, it gets the connection a second later."""
    port = f":{connection.getpeername()[1]:04X}"
    rows = map(str.split, netns.read_proc(router.ctl, "/proc/net/tcp").splitlines()[1:])
    row = next(row for row in rows if row[1].endswith(port))
    manager = pathlib.Path(f"/proc/{router.daemon.process.pid}/fd")
    kept = {os.readlink(fd) for fd in manager.iterdir()}
    return row[4].endswith(":00000000") and f"socket:[{row[9]}]" in kept


def crash(router):
    was = router.daemon.crash(signal.SIGKILL)
    router.daemon.back(was)


def test_the_next_daemon_continues_within_a_message(stream):
    """The connection and the first part of a message are kept over a crash and over a restart."""
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        first, second = "192.0.2.80", "192.0.2.81"
        whole = message(2, first, 10) + message(2, second, 11) + message(3, first, 10)
        connection.sendall(whole[:100])
        eventually(lambda: taken(router, connection), 10, what="the first part is taken")
        crash(router)
        connection.sendall(whole[100:200])
        eventually(lambda: first in peers(router), 10, what="the first session")
        assert second not in peers(router)
        eventually(lambda: taken(router, connection), 10, what="a part of the second message is taken")
        assert router.fpmctl("restart").returncode == 0
        connection.sendall(whole[200:])
        eventually(lambda: second in peers(router), 10, what="the second session")
        eventually(lambda: first not in peers(router), 10, what="the first one is deleted")


def test_a_crash_while_octets_leave_the_socket_ends_the_connection(stream):
    """The next daemon closes the connection, because it does not know which octets the socket still
    has."""
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        connection.sendall(message(2, PEER, 7)[:100])
        eventually(lambda: taken(router, connection), 10, what="the first part is taken")
        set_moving(router.daemon.pid())
        crash(router)
        connection.settimeout(20)
        while connection.recv(4096):
            pass
    assert "bfd: connection closed reason=crash-while-reading" in router.log(200)
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        add_session(router, connection)


def set_moving(pid):
    """Mark the partial messages of all connections as moving, as in the instant of recv()."""
    fds = pathlib.Path(f"/proc/{pid}/fd").iterdir()
    fd = next(fd for fd in fds if os.readlink(fd).startswith("/memfd:fpm-dataplane-bfd"))
    with open(fd, "r+b") as memory:  # the memory ends with struct kept_part [CONNECTIONS]
        end = memory.seek(0, os.SEEK_END)
        for at in range(end - CONNECTIONS * PART, end, PART):
            memory.seek(at)
            memory.write(b"\1")


def test_many_messages_behind_a_partial_one_arrive(stream):
    """The daemon reads all messages behind a partial message. TCP would close its window if the octets
    of a partial message stayed in the socket."""
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        connection.settimeout(20)
        connection.sendall(message(2, PEER, 7))
        questions, segment = QUESTION * 40000, 65483  # octets that loopback takes at once
        answers, rest = 0, b""
        for at in range(0, len(questions), segment):
            connection.sendall(questions[at : at + segment])
            while answers < min(at + segment, len(questions)) // len(QUESTION):
                octets = connection.recv(1 << 16)
                assert octets, "the daemon has closed the connection"
                found, rest = bfddp.cut(rest + octets)
                answers += sum(told.kind == bfddp.COUNTERS for told in found)


def test_the_end_of_the_stream_within_a_message_is_seen(stream):
    """After the end of the stream within a message the daemon connects again."""
    router, listener = stream
    connection, _ = listener.accept()
    connection.sendall(message(2, PEER, 7)[:58])
    connection.close()
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        add_session(router, connection)


def test_a_connection_whose_bfdd_does_not_read_is_closed_and_opened_again(stream):
    """The session is not lost: the next connection gets it."""
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        connection.settimeout(20)
        connection.sendall(message(2, PEER, 7))
        with pytest.raises(ConnectionError):
            for _ in range(10000):
                connection.sendall(QUESTION * 1000)
    assert "bfd: connection closed reason=bfdd-does-not-read" in router.log(200)
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        add_session(router, connection)
        assert states(connection, 7) == bfddp.DOWN


def states(connection, lid, seconds=20):
    """Return the next state of a session that the daemon reports."""
    end, octets = time.monotonic() + seconds, b""
    while time.monotonic() < end:
        octets += connection.recv(4096)
        found, octets = bfddp.cut(octets)
        for told in found:
            if told.kind == bfddp.STATE and bfddp.LID.unpack_from(told.body)[0] == lid:
                return bfddp.STATE_BODY.unpack_from(told.body)[6]
    raise AssertionError("no state was told")


def test_a_listener_that_ends_each_connection_is_tried_once_a_second(stream):
    router, listener = stream
    listener.settimeout(5)
    listener.accept()[0].close()  # it may have waited since before this test
    listener.accept()[0].close()  # the daemon connects at ticks of one second from here on
    begin = time.monotonic()
    for _ in range(3):
        listener.accept()[0].close()
    assert time.monotonic() - begin > 1.5
    assert router.fpmctl("show", "bfd").returncode == 0


def test_after_a_crash_what_is_not_up_is_told_again(stream):
    """After a crash the daemon reports each session that is not Up again, because the last daemon may
    have been killed before it told bfdd that the session went down."""
    router, listener = stream
    connection, _ = listener.accept()
    with contextlib.closing(connection):
        connection.settimeout(20)
        connection.sendall(message(2, "192.0.2.79", 9))
        assert states(connection, 9) == bfddp.DOWN
        eventually(lambda: taken(router, connection), 10, what="the service manager keeps the connection")
        crash(router)
        assert states(connection, 9) == bfddp.DOWN
