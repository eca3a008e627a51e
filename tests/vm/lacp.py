# SPDX-License-Identifier: BSD-3-Clause
"""Record the LACP messages on the wires of a bond, with times by the kernel's clock at the far end,
and the times in which this machine was not running."""

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass

from lib import netns

ETH_P_ALL, SLOW, LACP = 3, 0x8809, 1
SO_TIMESTAMPNS = 35  # Linux's socket.h has it, Python has not
ACTOR_STATE = 32  # its offset in a frame (IEEE 802.1AX, 6.4.2.3)
SYNCHRONIZATION, COLLECTING, DISTRIBUTING = 0x08, 0x10, 0x20
TICK_S, LATE_S = 0.01, 0.02


@dataclass
class Word:
    """A LACPDU: its time, its wire, its sender (True: the dataplane, False: the kernel at the
    far end), and the actor's state."""

    time: float
    wire: str
    ours: bool
    state: int


class Watch(threading.Thread):
    """Record LACPDUs: with Watch("far", ("m1", "m2")) as watch: ...; watch.first(...),
    watch.took(begin, end)"""

    def __init__(self, namespace, wires):
        super().__init__(daemon=True)
        self._sockets, self._words, self._late = {}, [], []
        self._over = threading.Event()
        for wire in wires:
            sock = netns.open_socket(namespace, socket.AF_PACKET, socket.SOCK_RAW)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            with netns.entered(namespace):
                sock.bind((wire, ETH_P_ALL))
            sock.setblocking(False)
            self._sockets[wire] = sock

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()
        for sock in self._sockets.values():
            sock.close()

    def run(self):
        """Record each time at which this thread wakes up late."""
        while not self._over.is_set():
            due = time.time() + TICK_S
            time.sleep(TICK_S)
            late = time.time() - due
            if late > LATE_S:
                self._late.append((due, late))

    def took(self, begin, end):
        """Return the seconds between two times, without the time in which this machine was
        late."""
        late = (min(d + s, end) - max(d, begin) for d, s in list(self._late))
        return end - begin - sum(max(0, seconds) for seconds in late)

    def words(self):
        """Return all LACPDUs so far, in order."""
        for wire, sock in self._sockets.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._take(wire, *sock.recvmsg(2048, 64))
        return sorted(self._words, key=lambda word: word.time)

    def first(self, wire, since, ours, bit):
        """Return the time of the first LACPDU that has a bit of the actor's state."""
        return next(w.time for w in self.words() if (w.wire, w.ours) == (wire, ours)
                    and w.time >= since and w.state & bit)  # fmt: skip

    def story(self, since):
        """Return all LACPDUs as text for people."""
        lines = [f"LACP, late by {[f'{d - since:.2f}: {s:.2f}' for d, s in self._late if d > since]}"]
        lines += [
            f"{w.time - since:6.3f} {w.wire} {'we' if w.ours else 'they'} {w.state:#04x}"
            for w in self.words() if w.time > since
        ]  # fmt: skip
        return "\n".join(lines)

    def _take(self, wire, data, more, _, address):
        if int.from_bytes(data[12:14], "big") != SLOW or data[14] != LACP:
            return
        seconds, nanoseconds = struct.unpack("qq", more[0][2])
        ours = address[2] != socket.PACKET_OUTGOING
        self._words.append(Word(seconds + nanoseconds / 1e9, wire, ours, data[ACTOR_STATE]))
