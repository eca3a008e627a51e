# SPDX-License-Identifier: BSD-3-Clause
"""The data-plane side of FRR's protocol for distributed BFD, for tests with a real bfdd.

    with DataPlane(netns="r1") as plane:
        session = plane.session("192.0.2.2")       # waits for DP_ADD_SESSION
        plane.report(session.lid, UP)
        plane.report(session.lid, DOWN, diagnostic=1)

`bfdd --dplaneaddr ipv4:127.0.0.1:50700` listens and sends its sessions. The data plane runs BFD and
reports the states. doc/bfd.md has the messages. A thread reads the connection and answers questions
for counters at once, because bfdd stands still until the answer comes. Sent messages are not
checked, so that a test can send malformed messages.
"""

import contextlib
import ipaddress
import socket
import struct
import threading
import time
from typing import NamedTuple

from lib import netns as namespaces
from lib.wait import eventually

PORT, VERSION = 50700, 1
ECHO_REQUEST, ECHO_REPLY, ADD, DELETE, STATE, ASK_COUNTERS, COUNTERS = range(7)
NAMES = ("ECHO_REQUEST", "ECHO_REPLY", "ADD", "DELETE", "STATE", "ASK_COUNTERS", "COUNTERS")
ADMIN_DOWN, DOWN, INIT, UP = range(4)
# Flags of a session.
MULTIHOP, DEMAND, CBIT, ECHO, IPV6, PASSIVE, SHUTDOWN = (1 << n for n in range(7))

HEADER = struct.Struct("!BBHHH")  # version, 0, type, id, length with the header
TIMES = struct.Struct("!QQ")  # of ECHO_REQUEST and ECHO_REPLY
# flags, src, dst, lid, min_tx, min_rx, min_echo_tx, min_echo_rx, hold_time, ttl, detect_mult, 0,
# ifindex, ifname
SESSION = struct.Struct("!I16s16s6IBBHI64s")
# lid, rid, flags, tx, rx, echo rx, state, diagnostic, detect_mult, padding of the C structure
STATE_BODY = struct.Struct("!6IBBBx")
LID = struct.Struct("!I")
COUNTERS_BODY = struct.Struct("!I4x8Q")  # lid, padding of the C structure, counters


class Message(NamedTuple):
    """One message as it came."""

    kind: int
    id: int
    body: bytes

    @property
    def session(self):
        """Return the content of ADD and DELETE."""
        return Session.of(self.body)


class Session(NamedTuple):
    """The payload of ADD and DELETE. Times are in microseconds."""

    flags: int
    src: object
    dst: object
    lid: int
    min_tx: int
    min_rx: int
    min_echo_tx: int
    min_echo_rx: int
    hold_time: int
    ttl: int
    detect_mult: int
    zero: int
    ifindex: int
    ifname: str

    @classmethod
    def of(cls, body):
        """Decode a payload."""
        flags, src, dst, *numbers, name = SESSION.unpack(body)
        addresses = (
            ipaddress.ip_address(x if flags & IPV6 else x[:4]) for x in (src, dst)
        )
        return cls(flags, *addresses, *numbers, name.rstrip(b"\0").decode())


def message(kind, body=b"", number=0, version=VERSION, length=None):
    """Return one message as octets."""
    size = HEADER.size + len(body) if length is None else length
    return HEADER.pack(version, 0, kind, number, size) + body


def state_message(
    lid, state, rid=99, flags=0, tx=300000, rx=300000, echo_rx=0, diagnostic=0, mult=3
):
    """Return a BFD_STATE_CHANGE: `state` is the local state, all others are the peer's."""
    body = STATE_BODY.pack(lid, rid, flags, tx, rx, echo_rx, state, diagnostic, mult)
    return message(STATE, body)


def counters_message(lid, number, counts=(0,) * 8):
    """Return the answer with this id. `counts` are octets and packets of control in, control out,
    echo in, echo out."""
    return message(COUNTERS, COUNTERS_BODY.pack(lid, *counts), number)


def cut(stream):
    """Return ([Message, ...], the rest) of a byte stream."""
    found = []
    while len(stream) >= HEADER.size:
        version, _, kind, number, length = HEADER.unpack_from(stream)
        assert version == VERSION and length >= HEADER.size, stream[:16].hex()
        if len(stream) < length:
            break
        found.append(Message(kind, number, stream[HEADER.size : length]))
        stream = stream[length:]
    return found, stream


class DataPlane:
    """One connection to bfdd. `messages` has all messages that came, `sessions` the sessions that
    were added and not deleted, by lid, `octets` the stream."""

    def __init__(self, netns=None, host="127.0.0.1", port=PORT):
        self.netns, self.where = netns, (host, port)
        self.socket = self.thread = None
        self.messages, self.octets, self.closed = [], b"", False
        # Answers a question for counters: a function of (lid, id) that returns octets.
        self.answer = counters_message

    def connect(self, timeout=10):
        """Connect; retry while bfdd refuses. Begin to read."""
        inside = namespaces.entered(self.netns) if self.netns else contextlib.nullcontext()
        with inside:
            self.socket = eventually(
                lambda: socket.create_connection(self.where, timeout), timeout, what="bfdd listens"
            )
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def __enter__(self):
        return self.connect()

    def __exit__(self, *exc):
        self.close()

    def close(self):
        """End the connection."""
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.thread.join()
            self.socket.close()
            self.socket = None

    def _read(self):
        rest = b""
        with contextlib.suppress(OSError):
            while octets := self.socket.recv(65536):
                self.octets += octets
                new, rest = cut(rest + octets)
                for one in new:
                    self._handle(one)
        self.closed = True

    def _handle(self, one):
        self.messages.append(one)
        if one.kind == ASK_COUNTERS:
            self.send(self.answer(*LID.unpack(one.body), one.id))

    def send(self, octets, piece=None):
        """Send octets as they are, with `piece` in writes of that size."""
        for at in range(0, len(octets), piece or len(octets) or 1):
            self.socket.sendall(octets[at : at + piece] if piece else octets)

    def report(self, lid, state, **words):
        """Report a state; words as state_message()."""
        self.send(state_message(lid, state, **words))

    def report_all(self, state, **words):
        """Report one state for all sessions of this connection."""
        self.send(b"".join(state_message(lid, state, **words) for lid in self.sessions))

    @property
    def sessions(self):
        """Return {lid: Session} of the sessions that exist after all messages so far."""
        now = {}
        for one in list(self.messages):
            if one.kind == ADD:
                now[one.session.lid] = one.session
            elif one.kind == DELETE:
                now.pop(one.session.lid, None)
        return now

    def of(self, kind, lid=None):
        """Return the sessions of all messages ADD or DELETE so far, in their order."""
        found = [m.session for m in list(self.messages) if m.kind == kind]
        return [s for s in found if lid in (None, s.lid)]

    def session(self, dst, timeout=10):
        """Wait for a session with this peer, return it."""
        dst = ipaddress.ip_address(dst)
        pick = lambda: [s for s in self.sessions.values() if s.dst == dst]  # noqa: E731
        return eventually(pick, timeout, what=f"bfdd sends the session with {dst}")[0]

    def settled(self, timeout=5):
        """Wait until bfdd has sent all that it had to send: its reply to an ECHO_REQUEST comes after
        that. Returns the two times of the reply."""
        before = sum(m.kind == ECHO_REPLY for m in self.messages)
        stamp = time.time_ns() // 1000
        self.send(message(ECHO_REQUEST, TIMES.pack(stamp, 0)))
        replies = lambda: [m for m in list(self.messages) if m.kind == ECHO_REPLY]  # noqa: E731
        eventually(lambda: len(replies()) > before, timeout, 0.01, "bfdd answers an echo")
        return TIMES.unpack(replies()[-1].body)
