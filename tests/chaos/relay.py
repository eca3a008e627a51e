#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pass FPM on from zebra to the dataplane, and add routes of MPLS labels to it: zebra ignores all
labels in a namespace whose kernel has no MPLS.

    relay.py LISTEN-PORT DATAPLANE-PORT CONTROL-SOCKET

A client of the control socket sends lines. A line has any number of changes of three words each, `KEY
FRAMES NOW`: FRAMES are the frames that each later replay has for the key, NOW the frames to send now,
both in hexadecimal, or "-" for none. In a replay, the relay sends its own routes first. While there is
no session, it does not send NOW. The answer to each line is the number of octets that were sent to the
dataplane.
"""

import contextlib
import os
import socket
import struct
import sys
import threading

PID_AT = 4 + 12  # nlmsg_pid of the first message in a frame


class Relay:
    """The routes of the relay, and the session that carries them."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()
        self.routes = {}
        self.session = self.pid = None

    def pass_on(self, zebra):
        """Serve one connection of zebra until one of its ends closes."""
        with contextlib.suppress(OSError), zebra, socket.socket() as dataplane:
            dataplane.connect(("127.0.0.1", self.port))
            for sock in (zebra, dataplane):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=self._answers, args=(dataplane, zebra))
            back.start()
            try:
                self._frames(zebra, dataplane)
            finally:
                with self.lock:
                    if self.session is dataplane:
                        self.session = None
                _end(dataplane, zebra)
                back.join()

    @staticmethod
    def _answers(dataplane, zebra):
        with contextlib.suppress(OSError):
            while data := dataplane.recv(1 << 16):
                zebra.sendall(data)
        _end(dataplane, zebra)

    def _frames(self, zebra, dataplane):
        rest = b""
        while data := zebra.recv(1 << 18):
            data = rest + data
            whole = _whole(data)
            rest = data[whole:]
            if not whole:
                continue
            with self.lock:
                if self.session is not dataplane and data[:1] == b"\1":
                    self.session, self.pid = dataplane, data[PID_AT : PID_AT + 4]
                    dataplane.sendall(b"".join(map(self._of_zebra, self.routes.values())))
                dataplane.sendall(data[:whole])

    def _of_zebra(self, frames):
        """Return the frames with the process id of zebra, one message a frame."""
        out, at = bytearray(frames), 0
        while at < len(out):
            out[at + PID_AT : at + PID_AT + 4] = self.pid
            at += int.from_bytes(out[at + 2 : at + 4], "big")
        return bytes(out)

    def change(self, routes, now):
        """Change routes. Return the number of octets that were sent."""
        with self.lock:
            self.routes.update(routes)
            if not self.session:
                return 0
            try:
                self.session.sendall(data := self._of_zebra(now))
                return len(data)
            except OSError:  # the dataplane has just died
                return 0


def _end(*socks):
    for sock in socks:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _whole(data):
    """Return the number of octets of the whole frames at the start of `data`. If `data` is no FPM, return
    the number of all octets."""
    at = 0
    while at + 4 <= len(data):
        version, _, size = struct.unpack_from("!BBH", data, at)
        if version != 1 or size < 4:
            return len(data)
        if at + size > len(data):
            return at
        at += size
    return at


def _hex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def _serve(relay, client):
    with contextlib.suppress(OSError), client, client.makefile("rw") as lines:
        for line in lines:
            words = line.split()
            routes = dict(zip(words[::3], map(_hex, words[1::3])))
            lines.write(f"{relay.change(routes, b''.join(map(_hex, words[2::3])))}\n")
            lines.flush()


def _accept(sock, function, *args):
    while True:
        conn, _ = sock.accept()
        threading.Thread(target=function, args=(*args, conn), daemon=True).start()


def main():
    """The command line."""
    port, to, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    relay = Relay(to)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with socket.create_server(("127.0.0.1", port)) as fpm, socket.socket(socket.AF_UNIX) as ctl:
        ctl.bind(path)
        ctl.listen()
        threading.Thread(target=_accept, args=(ctl, _serve, relay), daemon=True).start()
        _accept(fpm, relay.pass_on)


if __name__ == "__main__":
    main()
