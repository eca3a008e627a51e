# SPDX-License-Identifier: BSD-3-Clause
"""The device under test with the actions of the tests: routes, counters, fences, streams."""

import contextlib
import http.client
import re
import struct
import threading
import time

from scapy.layers.l2 import Ether

from lib import netns
from lib.dut import Dut
from lib.pace import Pace
from lib.wait import PATIENCE, eventually
from wire import Collector, Wire, token, token_of
from zebra import Zebra

# EtherTypes of no protocol: the kernel does not answer them. The first is the experimental type of
# IEEE 802. The kernel selects the queue of such a frame by nothing else, so that many types reach
# all queues.
MARK_TYPES = [0x88B5, *range(0x0F00, 0x0F1F)]


class Router(Dut):
    """A Dut with a Zebra (zebra.py), which sends routes as zebra does."""

    def __init__(self, **kw):
        super().__init__(Wire, Collector(), **kw)
        self.zebra = Zebra(self)
        self.marks = 0  # frames for the kernel that fences have sent

    def start(self):
        super().start()
        self.ready()

    def destroy(self):
        self.zebra.close()
        super().destroy()

    def ready(self):
        """Set the state at the start of every test: a standard kernel, a session of zebra, no
        routes."""
        self.kernel_defaults()
        if self.zebra.speaker is None or not self.fpm().get("connected"):
            self.zebra.connect()
        self.zebra.flush()
        eventually(self._is_ready, 15, 0.01, "standard neighbors and no routes of zebra")
        for wire in [*self.wires.values(), *self.taps.values()]:
            wire.silence()
            wire.clear()

    def _is_ready(self):
        rows = self.control.ask("routes")
        routes = [r["prefix"] for r in rows if r["source"] == "zebra"]
        routes += [f"label {r['label']}" for r in self.control.ask("labels")]
        known = {(r["dev"], r["address"]): r["mac"] for r in self.control.ask("neighbors")}
        wires = self.wires.values()
        missing = [w.tap for w in wires if known.get((w.tap, w.peer4)) != w.mac]
        missing += [w.tap for w in wires if known.get((w.tap, w.peer6)) != w.mac]
        down = [r["name"] for r in self.control.ask("ports") if r["link"] != "up"]
        own = {r["prefix"] for r in rows if r["source"] == "local"}
        own = [w.ip4 for w in wires if not {f"{w.ip4}/32", f"{w.ip6}/128"} <= own]
        tables = {t["table"]: t["used"] for t in self.control.ask("memory")[0]["tables"]}
        trouble = (routes[:5], missing, down, own, tables["waiting"])
        if any(trouble) or not self.fpm().get("connected"):
            raise LookupError(f"routes, neighbors, ports, addresses, waiting amiss: {trouble}")
        return True

    # -- routes --

    def route(self, prefix, via=None, wire=None, **kinds):
        """Announce a route as zebra sends it, and return when it is in force.

        With `via` and `wire` the route has a next-hop object. Otherwise `kinds` (rtm_type=, nhid=, ...)
        are for Zebra.add().
        """
        if via:
            nhid = self.zebra.route(prefix, via, wire)
        else:
            nhid = kinds.get("nhid")
            self.zebra.add(prefix, **kinds)
        self.in_force(prefix, nhid)

    def in_force(self, prefix, nhid=None):
        """Wait until forwarders have a route. With nhid, wait for the route with this next hop,
        because a route that is announced again was there before."""

        def there():
            row = self.route_row(prefix)
            is_it = row and row["source"] == "zebra" and nhid in (None, row["nexthop_id"])
            return row if is_it else None

        row = eventually(there, 5, 0.005, f"route {prefix}")
        # rib gives the row. Forwarders have the route when rib's round ends, which is before rib
        # answers again.
        return self.route_row(prefix) and row

    # -- counters and state of the router --

    def forwarded_by(self):
        """Return {forwarder: IPv4 packets that it has forwarded}, read from the metrics page."""
        row = r'^fpmdp_forwarded_packets_total\{family="ipv4",lcore="(fwd-\d+)"\} (\d+)$'
        return {lcore: int(n) for lcore, n in re.findall(row, self.metrics_page(), re.M)}

    def metrics_page(self):
        """Return the text of the metrics page."""
        with netns.entered(self.ctl):
            page = http.client.HTTPConnection(self.metrics, timeout=5 * PATIENCE)
            page.connect()
        with contextlib.closing(page):
            page.request("GET", "/metrics")
            return page.getresponse().read().decode()

    def counter(self, kind, reason):
        """Return the value of one counter."""
        return self.counters(kind)[reason]

    def drops(self, before):
        """Return the drops since `before`: {reason: count}."""
        return self.moved(before, "drop")

    def all_alive(self, prefix):
        """Return true if all next hops of a route are alive. rib answers with the state that
        forwarders use already."""
        return all(hop["alive"] for hop in self.route_row(prefix)["nexthops"])

    def fence(self, wire):
        """Return when the forwarder has judged every packet sent on `wire` before and its outcome
        is seen.

        Frames of one queue stay in order. So a mark frame that has come up the TAP shows that
        a forwarder has judged all frames before it; there is one mark for each queue. Then the
        fence waits for the punt thread. The second marks are in later bursts than the packets
        that the punt thread sent. In the end the collector takes all frames off the sockets.
        """
        self._mark(wire)
        eventually(self._host_is_done, 5, 0.005, "nothing waits for the punt thread")
        self._mark(wire)
        self.collector.catch_up()

    def _mark(self, wire):
        types = MARK_TYPES if self.port_row(wire)["queues"] > 1 else MARK_TYPES[:1]
        tap, seen, missing = self.taps[wire.name], {}, dict.fromkeys(types)
        head = bytes.fromhex((wire.port_mac + wire.mac).replace(":", ""))

        def come():
            # Send again, because a test may have used up the tokens of their class.
            for kind in missing:
                seen[mark := token()] = kind
                self.marks += 1
                wire.send(head + struct.pack("!H", kind) + mark)
            try:
                tap.expect_many(lambda data: seen.get(token_of(data)) in missing, len(missing), 0.5)
            finally:
                for data in tap.got(lambda data: token_of(data) in seen):
                    missing.pop(seen[token_of(data)], None)
            return not missing

        eventually(come, 5, 0.05, "a frame for the kernel by each queue")

    def _host_is_done(self):
        return not any(row["waiting"] for row in self.control.ask("punt"))

    def forwarded(self, wire, probe, out, timeout=2):
        """Send one probe. Return it dissected as it left on `out`."""
        wire.send(probe)
        try:
            return out.expect(token_of(probe), timeout)
        except AssertionError as err:
            raise AssertionError(f"{err}; {self._whereabouts()}") from None

    def _whereabouts(self):
        """Return text with the drops, the packets for the kernel and the ports, for a message about
        a packet that is missing."""
        counted = {f"{kind} {k}": n for kind in ("drop", "punt") for k, n in self.counters(kind).items() if n}
        ports = [(row["name"], row["link"], row["rx_packets"], row["tx_packets"]) for row in self.control.ask("ports")]
        return f"the router counted {counted}; ports (name, link, received, sent): {ports}"

    def not_forwarded(self, wire, *probes):
        """Send probes. Assert that none of them leaves on any port. Returns the drops."""
        before = self.counters()
        wire.send(*probes)
        self.fence(wire)
        tokens = [t for t in map(token_of, probes) if t]
        for out in self.wires.values():
            for data in out.got():
                if any(t in data for t in tokens) and data[:6] != out.port_mac:
                    assert is_icmp_error(data), f"left on {out.name}: {Ether(data)!r}"
        return self.drops(before)

    def rename(self, old, new):
        """Rename an interface of the kernel. It is down meanwhile, because kernels before 6.2
        require it."""
        self.ip(f"link set {old} down", f"link set {old} name {new}", f"link set {new} up")

    def stream(self, wire, dst, **kw):
        """Send numbered packets at a steady rate until stop(): see Stream."""
        return Stream(self, wire, dst, **kw)


@contextlib.contextmanager
def running(router, *edits):
    """Run `router` for the length of a with block, and leave nothing behind. `edits` of its
    configuration are (old, new)."""
    try:
        router.build()
        for edit in edits:
            router.edit_config(*edit)
        router.start()
        yield router
    finally:
        router.destroy()


class Stream(threading.Thread):
    """Send steady traffic from one wire. Every packet has a number, so the lost packets are known
    exactly.

    with dut.stream(lan, "198.51.100.1") as stream: ...; assert stream.lost(wan) == []
    """

    def __init__(self, dut, wire, dst, rate=1000, flows=1, dress=(lambda probe: probe,)):
        super().__init__(daemon=True, name="stream")
        self.dut, self.wire, self.rate, self.flows = dut, wire, rate, flows
        dsts = dst if isinstance(dst, (list, tuple)) else [dst]
        self.mark = token()
        self.templates = []
        for at in dsts:
            for flow in range(flows):
                probe = wire.probe(at, sport=10000 + flow, size=100)
                for each in dress:  # the frame of a probe, with labels for example
                    data = bytes(each(probe))
                    at_token = data.index(token_of(data))
                    tail = bytes(len(data) - at_token - len(self.mark) - 4)
                    self.templates.append((data[:at_token] + self.mark, tail))
        self.sent = 0
        self.times = []
        self.ending = threading.Event()

    def run(self):
        pace = Pace(self.rate)
        while not self.ending.is_set():
            head, tail = self.templates[self.sent % len(self.templates)]
            self.times.append(time.monotonic())
            self.wire.send(head + struct.pack("!I", self.sent) + tail)
            self.sent += 1
            pace.wait(self.ending)

    def __enter__(self):
        self.start()
        eventually(lambda: self.sent > 20, 5, 0.005, "the stream runs")
        return self

    def __exit__(self, *exc):
        self.stop()

    def stop(self):
        """End the stream. All its packets have been judged when this returns."""
        self.ending.set()
        self.join()
        if self.dut.alive():
            self.dut.fence(self.wire)

    def arrived(self, *wires):
        """Return {number: how often} of the packets seen on `wires`. ICMP errors, which quote packets, do
        not count."""
        seen = {}
        for wire in wires:
            for data in wire.got(self.mark):
                if is_icmp_error(data):
                    continue
                at = data.index(self.mark) + len(self.mark)
                number = struct.unpack("!I", data[at : at + 4])[0]
                seen[number] = seen.get(number, 0) + 1
        return seen

    def lost(self, *wires):
        """Return the numbers of the packets that came out on none of `wires`."""
        seen = self.arrived(*wires)
        return [n for n in range(self.sent) if n not in seen]

    def is_right(self, wire, shape, since):
        """Check the packets that left by `wire`: each once, each in its shape, each shape seen, and no packet
        lost from number `since` on. shape() returns which of the frames of `dress` a frame is."""
        assert set(self.arrived(wire).values()) == {1}
        seen, n = set(), len(self.templates)
        for data in wire.got(self.mark):
            at = data.index(self.mark) + len(self.mark)
            number = struct.unpack("!I", data[at : at + 4])[0]
            assert shape(Ether(data)) == number % n, (number, data.hex())
            seen.add(number % n)
        assert seen == set(range(n))
        assert not [lost for lost in self.lost(wire) if lost >= since]

    def again(self, wire):
        """Return when the first packet came out that was sent after a lost packet."""
        first = self.lost(wire)[0]
        at = lambda data: data.index(self.mark) + len(self.mark)  # noqa: E731
        return min(
            when
            for when, data in wire.timed(self.mark)
            if struct.unpack("!I", data[at(data) : at(data) + 4])[0] > first
        )

    def time_of(self, number):
        """Return when a packet was sent (monotonic)."""
        return self.times[number]


def is_icmp_error(data):
    """Return true if a frame is an ICMP error, which quotes the packet that caused it."""
    if data[12:14] == b"\x08\x00" and data[23] == 1:
        return data[14 + (data[14] & 15) * 4] in (3, 11, 12)
    return data[12:14] == b"\x86\xdd" and data[20] == 58 and data[54] < 128
