# SPDX-License-Identifier: BSD-3-Clause
"""A collector of sFlow datagrams: it decodes them itself (sflow_version_5.txt), and by tshark."""

import ipaddress
import json
import re
import socket
import struct
import subprocess
import threading

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from lib import netns
from lib.wait import eventually

PORT = 6343
HOST, DISCARDED = 0x3FFFFFFF, 0x40000000
FLOW, COUNTERS, DISCARD = "flow", "counters", "discard"


class Reader:
    """A reader of XDR: each call takes words or octets from the front of the rest."""

    def __init__(self, octets):
        self.octets = octets

    def word(self):
        (value,) = struct.unpack("!I", self.take(4))
        return value

    def words(self, n):
        return [self.word() for _ in range(n)]

    def take(self, n):
        assert len(self.octets) >= n, "the datagram ends within a structure"
        head, self.octets = self.octets[:n], self.octets[n:]
        return head

    def opaque(self):
        """Take octets with their length before them, padded to four."""
        n = self.word()
        data = self.take(n)
        assert self.take(-n % 4) == bytes(-n % 4), "padding is zero"
        return data

    def address(self):
        return str(ipaddress.ip_address(self.take({1: 4, 2: 16}[self.word()])))

    def done(self):
        assert not self.octets, "octets are left over"


def _record(kind, r):
    """Return the fields of a record of a packet."""
    if kind == 1:
        protocol, length, stripped = r.words(3)
        assert protocol == 1, "Ethernet"
        return {"length": length, "stripped": stripped, "header": r.opaque()}
    if kind == 1001:
        return dict(zip(("vlan_in", "pri_in", "vlan_out", "pri_out"), r.words(4), strict=True))
    assert kind == 1002, f"record {kind} is not expected"
    return {"nexthop": r.address(), "src_mask": r.word(), "dst_mask": r.word()}


def _packet(names, r):
    row = dict(zip(names, r.words(len(names)), strict=True))
    for _ in range(r.word()):
        kind, inner = r.word(), Reader(r.opaque())
        row |= _record(kind, inner)
        inner.done()
    return row


def _counters(r):
    sequence, source, n = r.words(3)
    assert (n, r.word()) == (1, 1), "one record, of the interface"
    inner = Reader(r.opaque())
    row = {"sequence": sequence, "source": source, "ifindex": inner.word(), "type": inner.word()}
    (row["speed"],) = struct.unpack("!Q", inner.take(8))
    row["direction"], row["status"] = inner.words(2)
    for direction in ("in", "out"):
        (row[direction + "_octets"],) = struct.unpack("!Q", inner.take(8))
        names = ["packets", "multicast", "broadcast", "discards", "errors"]
        for name in names + ["unknown"] * (direction == "in"):
            row[f"{direction}_{name}"] = inner.word()
    row["promiscuous"] = inner.word()
    inner.done()
    return row


def _sample(kind, r):
    if kind == 1:
        names = ["sequence", "source", "rate", "pool", "drops", "input", "output"]
        return {"kind": FLOW} | _packet(names, r)
    if kind == 5:
        names = ["sequence", "class", "source", "drops", "input", "output", "reason"]
        return {"kind": DISCARD} | _packet(names, r)
    assert kind == 2, f"sample {kind} is not expected"
    return {"kind": COUNTERS} | _counters(r)


def decode(octets):
    """Return the fields of a datagram; `samples` is a list of dictionaries."""
    r = Reader(octets)
    assert r.word() == 5, "version"
    row = {"agent": r.address()}
    row["sub_agent"], row["sequence"], row["uptime"], n = r.words(4)
    row["samples"] = []
    for _ in range(n):
        kind, inner = r.word(), Reader(r.opaque())
        row["samples"].append(_sample(kind, inner))
        inner.done()
    r.done()
    return row


class Settings:
    """The keys of sflow in the file of a router: each change is a reload."""

    def __init__(self, dut):
        self.dut = dut

    def __call__(self, *, ports=(PORT,), **keys):
        """Set collectors in the namespace of the router, and the keys of `keys`. Other keys have
        the standard values of these tests."""
        words = {"collectors": [f"127.0.0.1:{port}" for port in ports]}
        words |= {"rate": 1, "counters-s": 0} | {k.replace("_", "-"): v for k, v in keys.items()}
        with open(self.dut.config, encoding="utf-8") as file:
            was = file.read()
        text = f"sflow: {json.dumps(words)}\n" + re.sub(r"^sflow: .*\n", "", was, flags=re.M)
        if text == was:
            return
        self.dut.write_config(text)
        if self.dut.alive():
            done = self.dut.fpmctl("config", "reload")
            assert done.returncode == 0, done.stderr
            self.shown()
            self._begun()

    def _begun(self):
        """Wait until each forwarder has begun a round after the reload: a round has the settings with
        which it began. The first poll without packets may belong to the previous round."""
        if self.dut.metrics == "off":
            return
        before = self._polls()
        begun = lambda: all(n > before[lcore] + 1 for lcore, n in self._polls().items())  # noqa: E731
        eventually(begun, 5, 0.01, "each forwarder has the settings")

    def _polls(self):
        """Return {forwarder: its polls without packets}, read from the metrics page."""
        row = r'^fpmdp_idle_polls_total\{lcore="(fwd-\d+)"\} (\d+)$'
        return {lcore: int(n) for lcore, n in re.findall(row, self.dut.metrics_page(), re.M)}

    def shown(self):
        """Return the rows of `show sflow`. sflow answers after it has taken the settings."""
        return self.dut.control.ask("sflow")


class Sink(threading.Thread):
    """Collect the datagrams to a UDP port of a namespace, until the with block ends."""

    def __init__(self, namespace, address="127.0.0.1", port=0):
        super().__init__(daemon=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = netns.open_socket(namespace, family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind((address, port))
        self.port = self.sock.getsockname()[1]
        self.lock, self._came, self._ended = threading.Lock(), [], False

    def run(self):
        self.sock.settimeout(0.05)
        while not self._ended:
            try:
                came = self.sock.recvfrom(65536)
            except TimeoutError:
                continue
            with self.lock:
                self._came.append(came)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self._ended = True
        self.join()
        self.sock.close()

    def clear(self):
        with self.lock:
            self._came.clear()

    def octets(self):
        with self.lock:
            return [data for data, _ in self._came]

    def sources(self):
        """Return the source addresses of the datagrams."""
        with self.lock:
            return [source for _, source in self._came]

    def datagrams(self):
        return [decode(data) for data in self.octets()]

    def samples(self, kind, **fields):
        """Return the samples of a kind whose fields have these values."""
        return [
            s
            for d in self.datagrams()
            for s in d["samples"]
            if s["kind"] == kind and all(s.get(k) == v for k, v in fields.items())
        ]

    def of(self, token, kind=FLOW):
        """Return the samples of the packet with this token."""
        return [s for s in self.samples(kind) if token in s["header"]]


def dissected(datagrams, path, fields):
    """Return what tshark shows of each datagram: {field: list of values}."""
    head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    head = head / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=6343, dport=6343)
    wrpcap(str(path), [head / Raw(data) for data in datagrams])
    argv = ["tshark", "-n", "-r", str(path), "-d", "udp.port==6343,sflow", "-T", "fields"]
    argv += ["-E", "separator=|", "-E", "occurrence=a", "-E", "aggregator=,"]
    for field in [*fields, "_ws.malformed"]:
        argv += ["-e", field]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    assert len(rows) == len(datagrams) and not any(row[-1] for row in rows), done.stdout
    return [
        {f: v.split(",") if v else [] for f, v in zip(fields, row[:-1], strict=True)}
        for row in rows
    ]
