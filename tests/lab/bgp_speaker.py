#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An upstream provider: one eBGP session that announces a full-table-like set.

All UPDATEs are built before the session opens and then sent as fast as the peer takes
them; keepalives go between whole messages. The session is opened again whenever it ends,
and all routes that are announced at that time are sent again. One thread, one selector.

Progress goes to standard output, a JSON object a line, key `event`: ready, established,
sent, down, notification. Commands come over the Unix socket --control, a JSON object a
line, each answered by one:

    {"cmd": "status"}                         state and counts
    {"cmd": "announce", "prefixes": [...]}    prefixes as text; the answer has "t", the monotonic time
    {"cmd": "withdraw", "prefixes": [...]}    the same; a new session repeats all these changes
    {"cmd": "sample", "count": 5, "seed": 1}  random announced prefixes with a host in each
    {"cmd": "lonely", "count": 1, "seed": 1}  the same, for prefixes that no other prefix covers
    {"cmd": "disconnect"}                     end the session and open no other
    {"cmd": "connect"}                        open a session again
"""

import argparse
import collections
import ipaddress
import json
import os
import random
import selectors
import socket
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lab import bgp_wire, routes

CHUNK = 65536
GROUP4 = (1, 2, 4, 8, 16, 32, 64, 120)  # numbers of prefixes that share attributes in an UPDATE
GROUP6 = (1, 2, 4, 8, 16, 32, 64)


def emit(event, **words):
    """Print one line of progress."""
    print(json.dumps({"event": event, "t": time.monotonic(), **words}), flush=True)


class Table:
    """The routes that this speaker announces, and the octets of their UPDATE messages."""

    def __init__(self, args):
        self.local_as, self.seed = args.local_as, args.seed
        self.hop4 = ipaddress.IPv4Address(args.next_hop4).packed
        self.hop6 = ipaddress.IPv6Address(args.next_hop6).packed
        self.routes = {
            4: routes.table4(args.routes4, args.seed),
            6: routes.table6(args.routes6, args.seed),
        }
        self.changes = {}  # (prefix, family) -> True if announced; the changes by commands
        self.chunks = {family: list(self._chunks(family)) for family in (4, 6)}

    def _chunks(self, family):
        """Yield the octets of one family's table in pieces of about CHUNK, cut between messages."""
        rnd = random.Random(f"attributes {family} {self.seed}")
        table, at, piece, size = self.routes[family], 0, [], 0
        sizes = GROUP4 if family == 4 else GROUP6
        while at < len(table):
            n = rnd.choice(sizes)
            piece.append(self._announce(family, table[at : at + n], self._attributes(rnd)))
            at += n
            size += len(piece[-1])
            if size >= CHUNK:
                yield b"".join(piece)
                piece, size = [], 0
        yield b"".join(piece)

    def _announce(self, family, prefixes, attrs):
        if family == 4:
            return bgp_wire.announce4(prefixes, attrs, self.hop4)
        return bgp_wire.announce6(prefixes, attrs, self.hop6)

    @staticmethod
    def _withdraw(family, prefixes):
        return (bgp_wire.withdraw4 if family == 4 else bgp_wire.withdraw6)(prefixes)

    def _attributes(self, rnd):
        hops = rnd.choice((2, 3, 3, 4, 4, 5, 6))
        path = [self.local_as, *(rnd.randrange(1000, 400000) for _ in range(hops))]
        communities = [rnd.getrandbits(32) for _ in range(rnd.choice((0, 1, 2, 4, 8)))]
        return bgp_wire.attributes(path, communities)

    def change(self, prefixes, announced):
        """Record a change by command. Return the messages that carry it."""
        parsed = [routes.parse(p) for p in prefixes]
        self.changes.update(dict.fromkeys(parsed, announced))
        return self._messages(parsed, announced)

    def last(self, family):
        """Return the messages that end a table in a new session: all changes and the end-of-RIB
        mark."""
        mine = [(k, on) for k, on in self.changes.items() if k[1] == family]
        changed = (
            self._messages([k for k, on in mine if on is want], want)
            for want in (False, True)
        )
        return b"".join([*changed, self._withdraw(family, [])])

    def _messages(self, parsed, announced):
        attrs = bgp_wire.attributes([self.local_as])
        out = []
        for family in (4, 6):
            some = [p for p, f in parsed if f == family]
            for at in range(0, len(some), 200):
                part = some[at : at + 200]
                if announced:
                    out.append(self._announce(family, part, attrs))
                else:
                    out.append(self._withdraw(family, part))
        return b"".join(out)

    def choose(self, words, lonely):
        """Return random prefixes of both families with an address inside each."""
        answer = {}
        for family, table in self.routes.items():
            rnd = random.Random(f"{words.get('seed', 1)} {family}")
            count = min(words.get("count", 1), len(table))
            if lonely:
                some = routes.lonely(table, family, count, rnd)
            else:
                some = rnd.sample(table, count)
            answer[f"ipv{family}"] = [
                {"prefix": routes.text(p, family), "host": routes.host(p, family, rnd)}
                for p in some
            ]
        return answer


class Speaker:
    """The session and the commands."""

    def __init__(self, args, table):
        self.args, self.table = args, table
        self.selector = selectors.DefaultSelector()
        self.sock = None
        self.state, self.wanted = "idle", True
        self.queue = collections.deque()
        self.retry_at = self.sent_at = self.heard_at = 0.0
        self.hold_s, self.reader, self.announcing = 0, None, False
        self.stats = {"sessions": 0, "updates_received": 0}
        if os.path.exists(args.control):
            os.unlink(args.control)
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(args.control)
        self.control.listen(8)
        self.selector.register(self.control, selectors.EVENT_READ, self._accept)

    def run(self):
        """Serve the session and the commands without end."""
        while True:
            now = time.monotonic()
            if self.sock is None and self.wanted and now >= self.retry_at:
                self._connect()
            for key, mask in self.selector.select(self._patience()):
                key.data(key.fileobj, mask)
            self._timers()

    # -- the session ----------------------------------------------------------------------

    def _connect(self):
        sock = socket.socket(socket.AF_INET)
        sock.settimeout(2)
        self.retry_at = time.monotonic() + 0.25
        try:
            sock.bind((str(ipaddress.IPv4Address(self.table.hop4)), 0))
            sock.connect((self.args.peer, self.args.port))
        except OSError:
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.state, self.reader = sock, "open-sent", bgp_wire.Reader()
        self.hold_s = self.args.hold
        self.heard_at = self.sent_at = time.monotonic()
        self.queue.clear()
        self.selector.register(sock, selectors.EVENT_READ, self._session)
        self._send(bgp_wire.open_message(self.args.local_as, self.hold_s, "192.0.2.2"))

    def _close(self, why):
        self.selector.unregister(self.sock)
        self.sock.close()
        self.sock, self.state = None, "idle"
        self.retry_at = time.monotonic() + 1.0
        emit("down", why=why)

    def _send(self, octets):
        """Queue whole messages. Send as many octets as the socket takes now."""
        self.queue.append(memoryview(octets))
        self._flush()

    def _flush(self):
        try:
            while self.queue:
                n = self.sock.send(self.queue[0])
                self.sent_at = time.monotonic()
                if n < len(self.queue[0]):
                    self.queue[0] = self.queue[0][n:]
                    break
                self.queue.popleft()
        except BlockingIOError:
            pass
        except OSError as err:
            self._close(f"send: {err.strerror}")
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.queue else 0)
        self.selector.modify(self.sock, events, self._session)
        if not self.queue and self.announcing:
            self.announcing = False
            emit("sent", **self._counts())

    def _session(self, _sock, mask):
        if mask & selectors.EVENT_READ:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                data = None
            except OSError as err:
                return self._close(f"receive: {err.strerror}")
            if data == b"":
                return self._close("closed by peer")
            for kind, body in self.reader.feed(data or b""):
                self.heard_at = time.monotonic()
                self._message(kind, body)
                if self.sock is None:
                    return None
        if mask & selectors.EVENT_WRITE:
            self._flush()
        return None

    def _message(self, kind, body):
        if kind == bgp_wire.OPEN:
            self.hold_s = min(self.hold_s, bgp_wire.open_hold_s(body))
            self.state = "open-confirm"
            self._send(bgp_wire.message(bgp_wire.KEEPALIVE))
        elif kind == bgp_wire.KEEPALIVE and self.state == "open-confirm":
            self.state = "established"
            self.stats["sessions"] += 1
            emit("established", hold_s=self.hold_s)
            self._announce_all()
        elif kind == bgp_wire.UPDATE:
            self.stats["updates_received"] += 1
        elif kind == bgp_wire.ROUTE_REFRESH and not self.announcing:
            self._announce_all((6 if body[1] == 2 else 4,))
        elif kind == bgp_wire.NOTIFICATION:
            emit("notification", code=body[0], subcode=body[1])
            self._close("notification")

    def _announce_all(self, families=(4, 6)):
        self.announcing = True
        for family in families:
            octets = [*filter(None, self.table.chunks[family]), self.table.last(family)]
            self.queue.extend(map(memoryview, octets))
        self._flush()

    def _timers(self):
        if self.sock is None or self.hold_s == 0:
            return
        now = time.monotonic()
        if now - self.heard_at > self.hold_s:
            self._send(bgp_wire.notification(bgp_wire.HOLD_TIMER_EXPIRED))
            if self.sock:
                self._close("hold timer expired")
        elif self.state == "established" and now - self.sent_at > self.hold_s / 3:
            # A queue means that updates are under way. They count as keepalives.
            if not self.queue:
                self._send(bgp_wire.message(bgp_wire.KEEPALIVE))

    def _patience(self):
        if self.sock is None:
            return max(0.0, self.retry_at - time.monotonic()) if self.wanted else 5.0
        return 1.0

    # -- commands -------------------------------------------------------------------------

    def _accept(self, _sock, _mask):
        conn, _ = self.control.accept()
        self.selector.register(conn, selectors.EVENT_READ, self._command)

    def _command(self, conn, _mask):
        """Answer one line. Wait a short time for a client that has sent half a line."""
        try:
            conn.settimeout(2)
            line = conn.makefile().readline()
            if line:
                conn.sendall(json.dumps(self._answer(line)).encode() + b"\n")
                return
        except OSError:
            pass
        self.selector.unregister(conn)
        conn.close()

    def _answer(self, line):
        try:
            words = json.loads(line)
            cmd = words["cmd"]
            if cmd in ("announce", "withdraw"):
                octets = self.table.change(words["prefixes"], cmd == "announce")
                now = time.monotonic()
                if self.state == "established":
                    self._send(octets)
                return {"t": now, "state": self.state}
            if cmd in ("sample", "lonely"):
                return self.table.choose(words, cmd == "lonely")
            if cmd == "disconnect":
                self.wanted = False
                if self.sock:
                    self._send(bgp_wire.notification(bgp_wire.CEASE, 2))
                if self.sock:
                    self._close("asked to")
            elif cmd == "connect":
                self.wanted = True
            elif cmd != "status":
                return {"error": f"unknown command {cmd!r}"}
            return {"state": self.state, **self.stats, **self._counts()}
        except (KeyError, TypeError, ValueError) as err:
            return {"error": f"{type(err).__name__}: {err}"}

    def _counts(self):
        counts = {f"routes{f}": len(t) for f, t in self.table.routes.items()}
        return {**counts, "unsent_chunks": len(self.queue)}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="announce a full-table-like set by BGP")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--port", type=int, default=179)
    parser.add_argument("--local-as", type=int, required=True)
    parser.add_argument("--next-hop4", required=True)
    parser.add_argument("--next-hop6", required=True)
    parser.add_argument("--routes4", type=int, default=0)
    parser.add_argument("--routes6", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hold", type=int, default=90)
    parser.add_argument("--control", required=True)
    args = parser.parse_args()
    start = time.monotonic()
    table = Table(args)
    octets = sum(len(c) for chunks in table.chunks.values() for c in chunks)
    emit("ready", seconds=round(time.monotonic() - start, 2), octets=octets)
    Speaker(args, table).run()


if __name__ == "__main__":
    main()
