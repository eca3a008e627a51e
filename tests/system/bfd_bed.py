# SPDX-License-Identifier: BSD-3-Clause
"""A router that has the BFD sessions of its bfdd, and a peer with a bfdd of its own."""

import contextlib
import csv
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from lib import netns
from lib.frr import Frr, Neighbor
from lib.frr_at import FrrAt, present
from lib.wait import eventually
from router import Router, running

PORT = 50700
METRICS = "127.0.0.1:9620"
OURS = """\
fpm address 127.0.0.1
ip route 198.51.100.0/24 {wan.peer4}
ip route 198.51.100.0/24 {alt.peer4}
bfd
 peer {wan.peer4} interface wan0
  transmit-interval {ms}
  receive-interval {ms}
 exit
exit
"""
THEIRS = """\
bfd
 peer {wan.ip4} interface wan
  transmit-interval {ms}
  receive-interval {ms}
 exit
exit
"""


ADMIN_DOWN, DOWN, INIT, UP = range(4)

# For a session that has to stay Up while the machine has no CPU for a second: three times 300 ms is
# too short for it.
PATIENT = "detect-multiplier 10"


@dataclass
class Packet:
    """A BFD packet on the wire."""

    when: float  # monotonic, by the kernel's time stamp
    src: str
    dst: str
    ttl: int
    sport: int
    dport: int
    state: int
    diag: int
    frame: bytes


class Sniffer:
    """The BFD packets of one interface, in both directions."""

    def __init__(self, namespace, dev):
        self.packets = []
        self.sock = netns.open_capture(namespace, dev)

    def of(self, src, dst, dport=3784):
        """Return the packets from one address to another so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, [(_, _, stamp)], *_ = self.sock.recvmsg(65535, socket.CMSG_SPACE(16))
                seconds, nanoseconds = struct.unpack("qq", stamp)
                since = time.time() - (seconds + nanoseconds * 1e-9)
                self._take(Ether(data), time.monotonic() - since)
        return [p for p in self.packets if (p.src, p.dst, p.dport) == (src, dst, dport)]

    def _take(self, frame, when):
        ip = frame.getlayer(IP) or frame.getlayer(IPv6)
        if ip is None or UDP not in ip:
            return
        udp = ip[UDP]
        load = bytes(udp.payload)
        if udp.dport in (3784, 4784) and len(load) >= 24:
            ttl = ip.ttl if IP in frame else ip.hlim
            where = (ip.src, ip.dst, ttl, udp.sport, udp.dport)
            self.packets.append(Packet(when, *where, load[1] >> 6, load[0] & 31, bytes(frame)))

    def close(self):
        self.sock.close()


def dissected(packets, path):
    """Yield for each packet the fields that tshark reads, (state, diagnostic, TTL), and the texts of
    the faults that tshark finds."""
    wrpcap(path, [Ether(p.frame) for p in packets])
    fields = ["bfd.sta", "bfd.diag", "ip.ttl", "ipv6.hlim", "ip.checksum.status", "udp.checksum.status"]
    fields += ["_ws.malformed", "_ws.expert.message"]
    argv = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=|"]
    argv += ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    argv += [word for field in fields for word in ("-e", field)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    for row in csv.DictReader(said.splitlines(), fields, delimiter="|"):
        faults = [row["_ws.malformed"], row["_ws.expert.message"]]
        faults += [f"{k} is wrong" for k in fields[4:6] if row[k] not in ("", "1")]
        read = int(row["bfd.sta"], 0), int(row["bfd.diag"], 0), int(row["ip.ttl"] or row["ipv6.hlim"])
        yield read, [text for text in faults if text]


@contextlib.contextmanager
def sniffed(bfd, dev="wan"):
    """Watch an interface of the peer for the length of a with block."""
    with contextlib.closing(Sniffer(bfd.router.far, dev)) as sniffer:
        yield sniffer


def undisturbed(bfd, ends, detect_s, act):
    """Return the result of act(), which ends with a session that is Up. `ends` are our address and the
    peer's. If the CPUs are so busy that a side of the session sends no packet for too long, the
    session has to end. The kernel's time stamps show such a silence; then act() runs again.

    The peer's bfdd without a CPU also reads its packets too late. So the limit of its silence is less
    than the detection time: two of the three intervals.
    """
    with sniffed(bfd) as wire:
        for _ in range(10):
            begin = time.monotonic()
            eventually(lambda b=begin: _say_up(wire, ends, b), 30, 0.02, "both sides send packets that say Up")
            since = time.monotonic()
            said = act()
            ours, theirs = _silences(wire, ends, since)
            if ours < detect_s and theirs < detect_s * 2 / 3:
                return said
    raise AssertionError(f"no CPU in ten attempts: silent for {ours:.3f} s and {theirs:.3f} s")


def _say_up(wire, ends, since):
    """Return True if the last packet of each side after the time `since` says Up."""
    sides = [[p for p in wire.of(*pair) if p.when > since] for pair in (ends, ends[::-1])]
    return all(side and max(side, key=lambda p: p.when).state == UP for side in sides)


def _silences(wire, ends, since):
    """Yield for each side the longest time without a packet of that side. The measurement begins with
    the last packet before `since`. It ends now, or with the first packet of either side that does
    not say Up."""
    sides = [wire.of(*ends), wire.of(*reversed(ends))]
    late = [p.when for side in sides for p in side if p.when > since and p.state != UP]
    end = min(late, default=time.monotonic())
    for side in sides:
        first = max((p.when for p in side if p.when <= since), default=since)
        times = [first, *sorted(p.when for p in side if since < p.when < end), end]
        yield max(b - a for a, b in zip(times, times[1:]))


class NewerPeer(FrrAt):
    """The peer with an FRR in another root; the methods of lib.frr.Neighbor that the tests call."""

    def __init__(self, root, namespace, directory, conf, daemons):
        super().__init__(root, namespace, directory)
        self.conf, self.daemons = conf, daemons

    def start(self, daemon=None, *words):
        if daemon:
            super().start(daemon, *words)
            return
        self.start_all(*self.daemons)
        with open(self.conf, encoding="utf-8") as file:
            self.load(file.read())

    def kill(self, daemon, number=signal.SIGKILL):
        self.running[daemon].send_signal(number)

    def stop(self, *_daemons):
        self.destroy()


class Bfd:
    """Our router with its bfdd, and a peer with a bfdd of its own, whose FRR is in the root
    `peer_root`."""

    def __init__(self, router, ms=50, daemons=(), peer_root="/"):
        self.router, wan, alt = router, router.wires["wan"], router.wires["alt"]
        netns.ip_batch(
            [
                "link set lo up",
                f"addr add {wan.peer4}/26 dev wan",
                f"addr add {alt.peer4}/26 dev alt",
            ],
            router.far,
        )
        source = f"{router.dir}/frr.d"
        os.makedirs(source, exist_ok=True)
        options = f'bfdd_options="-A 127.0.0.1 --dplaneaddr ipv4:127.0.0.1:{PORT}"\n'
        fpm = 'zebra_options="-A 127.0.0.1 -s 90000000 -M dplane_fpm_nl"\n'
        words = {"wan": wan, "alt": alt, "ms": ms}
        for name, text in {
            "daemons": "".join(f"{d}=yes\n" for d in ("bfdd", *daemons)) + fpm + options,
            "vtysh.conf": "hostname r1\n",
            "frr.conf": OURS.format(**words),
            "r2.conf": THEIRS.format(**words),
        }.items():
            with open(f"{source}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        self.ours = Frr(router.ctl, source, f"{router.dir}/frr1", router.dir)
        theirs, directory = ["bfdd", *daemons], f"{router.dir}/frr2"
        if peer_root == "/":
            self.theirs = Neighbor("r2", router.far, source, theirs, directory, router.dir)
        else:
            conf = f"{source}/r2.conf"
            self.theirs = NewerPeer(peer_root, router.far, directory, conf, theirs)
        self.ours.start()
        self.theirs.start()

    def row(self, peer=None):
        """Return the row of the session with the address `peer`; without `peer`, of the session by
        port wan. Return None if there is no such session."""
        peer = peer or self.router.wires["wan"].peer4
        rows = self.router.control.ask("bfd")
        return next((row for row in rows if row["peer"] == peer), None)

    def state(self, peer=None):
        row = self.row(peer)
        return row and row["state"]

    def up(self):
        """Wait until both sides have the session Up."""
        eventually(lambda: self.state() == "up", 20, what="our side is up")
        eventually(lambda: self.peer_row()["status"] == "up", 20, what="the peer is up")

    def peer_row(self):
        """Return the row that the peer's bfdd has for the session by port wan."""
        ours = self.router.wires["wan"].ip4
        rows = self.theirs.json("show bfd peers json")
        return next(row for row in rows if row["peer"] == ours)

    def close(self):
        for frr in (self.ours, self.theirs):
            frr.stop(*frr.daemons)


def nexthops_of(rows):
    """Yield the rows of all next hops, also of the members of groups."""
    for row in rows:
        yield row
        yield from row.get("nexthops", ())


@contextlib.contextmanager
def bed(name, daemons=(), peer_root="/", before=None):
    """Run a router with its bfdd, and a peer, for the length of a with block. Both sides also run the
    daemons of `daemons`. The peer's FRR is in the root `peer_root`. before(router) runs
    before the daemon starts."""
    if not present(peer_root) and peer_root != "/":
        pytest.skip("no newer FRR: make frr-root")
    if shutil.which("vtysh") is None or not os.path.exists("/usr/lib/frr/bfdd"):
        pytest.skip("no bfdd: apt-get install frr")
    with running(Router(name=name, metrics=METRICS, supervised=True)) as made:
        made.stop()
        # A test replaces the file of the program.
        made.daemon.program = shutil.copy(made.daemon.program, f"{made.dir}/fpm-dataplane")
        made.edit_config("log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info')
        if before:
            before(made)
        made.start()
        made.zebra.close()
        both = Bfd(made, daemons=daemons, peer_root=peer_root)
        try:
            yield both
        finally:
            both.close()
