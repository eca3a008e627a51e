# SPDX-License-Identifier: BSD-3-Clause
"""Faults by input: broken frames, floods of each class, malformed data to FPM, to the control socket
and its HTTP API, to the metrics, and in the configuration file."""

import contextlib
import http.client
import os
import socket
import subprocess
import time

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6ND_NS,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from chaos import ledger
from chaos.faults import fault
from chaos.report import stamp
from lab import topology
from lib import api, fpm_speaker, netns, nonsense
from lib.wait import PATIENCE, Timeout, eventually

FLOOD_S = 1.5
EVERYBODY = "ff:ff:ff:ff:ff:ff"
# Operations that almost any request would execute, so nonsense_requests() leaves them out.
IN_EARNEST = ("/restart", "/replay", "/audit/repair")


class Attacker:
    """The sender of bad frames: the `wire` of nonsense.py, and a source of floods. Each call of a maker
    of `kinds()` returns another frame, as hosts on the lan send it."""

    def __init__(self, bed, rng):
        self.mac = bed.mac_of("lan", "eth0")
        self.port_mac = bed.mac_of("r1", "lan0")
        self.ip4, self.ip6 = topology.R1_LAN4, topology.R1_LAN6
        self.rng = rng

    def probe(self, dst, size=0, **fields):
        """Return a UDP packet through the router."""
        ip = (
            IPv6(src=topology.LAN6, dst=dst)
            if ":" in dst
            else IP(src=topology.LAN4, dst=dst, **fields)
        )
        packet = Ether(src=self.mac, dst=self.port_mac) / ip / UDP(sport=4000, dport=4001)
        return packet / Raw(bytes(max(0, size - len(ip / UDP()))))

    def _port(self):
        return self.rng.randrange(1024, 65536)

    def _eth(self, dst=None):
        mac = (b"\x02\x66" + self.rng.randbytes(4)).hex(":")
        return Ether(src=mac, dst=dst or self.port_mac)

    def _near(self):
        return f"203.0.113.{self.rng.randrange(20, 250)}"

    def _near6(self):
        return f"2001:db8:2::{self._port():x}"

    def _ip(self, dst=None, **fields):
        """Return an IP header with a source behind the lan."""
        far = f"100.{self.rng.randrange(128, 250)}.0.{self.rng.randrange(1, 250)}"
        return IP(src=far, dst=dst or self.ip4, **fields)

    def _ip6(self, dst=None, **fields):
        return IPv6(src=f"2001:db8:f000:{self._port():x}::1", dst=dst or self.ip6, **fields)

    def _arp(self, eth, who):
        return eth / ARP(op=1, hwsrc=eth.src, psrc=who, pdst=self.ip4)

    def _nd(self, eth, who):
        ns = IPv6(src=who, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=self.ip6)
        return eth / ns / ICMPv6NDOptSrcLLAddr(lladdr=eth.src)

    def _group(self, dst, **fields):
        mac = bytes([1, 0, 0x5E, *(int(n) for n in dst.split(".")[1:])])
        return self._eth(mac.hex(":")) / IP(src=self._near(), dst=dst, ttl=1, **fields)

    def kinds(self):
        """Return {name: (class of base/punt_class.def or drop reason, maker of a frame)}. Some classes are
        missing: bfd, bgp and tcp are the host's own sessions, and both scans cause unreachables."""
        known = lambda dst: Ether(src=self.mac, dst=dst)  # noqa: E731
        load, isp4, isp6 = Raw(bytes(32)), topology.ISP4, topology.ISP6
        all6, wide = "33:33:ff:00:00:01", Raw(bytes(1420))
        return {
            "arp of a neighbor": ("arp", lambda: self._arp(known(EVERYBODY), topology.LAN4)),
            "nd of a neighbor": ("nd", lambda: self._nd(known(all6), topology.LAN6)),
            "arp": ("arp-new", lambda: self._arp(self._eth(EVERYBODY), self._near())),
            "nd": ("nd-new", lambda: self._nd(self._eth(all6), self._near6())),
            "ospf": ("igp", lambda: self._group("224.0.0.5", proto=89) / load),
            "ldp": ("signalling", lambda: self._group("224.0.0.2") / UDP(sport=646, dport=646)),
            "lldp": ("l2", lambda: Ether(src=self._eth().src, dst="01:80:c2:00:00:0e",
                                         type=0x88CC) / load),
            "syn": ("bgp-new", lambda: self._eth() / self._ip(topology.R1_WAN4)
                    / TCP(sport=self._port(), dport=179, flags="S")),
            # The dataplane has the sessions, so it drops BFD of hosts that have none.
            "bfd": ("bfd_no_session", lambda: self._eth() / self._ip(ttl=255)
                    / UDP(sport=49152, dport=3784) / load),
            "ldp syn": ("control-new", lambda: self._eth() / self._ip(topology.R1_WAN4)
                        / TCP(sport=self._port(), dport=646, flags="S")),
            "igmp": ("membership", lambda: self._group("224.0.0.22", proto=2) / load),
            "dhcp": ("dhcp", lambda: self._eth(EVERYBODY)
                     / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / load),
            "echo": ("icmp", lambda: self._eth() / self._ip() / ICMP() / load),
            "echo6": ("icmp", lambda: self._eth() / self._ip6() / ICMPv6EchoRequest()),
            "fragment": ("fragment", lambda: self._eth()
                         / self._ip(id=self._port(), flags="MF") / UDP(dport=9, chksum=1) / load),
            "fragment6": ("fragment", lambda: self._eth() / self._ip6()
                          / IPv6ExtHdrFragment(nh=17, m=1, id=self._port()) / load),
            "udp": ("local", lambda: self._eth() / self._ip()
                    / UDP(sport=self._port(), dport=9)),
            "mdns": ("group", lambda: self._group("224.0.0.251") / UDP(dport=5353) / load),
            "scan": ("glean", lambda: self._eth() / self._ip(self._near()) / UDP(dport=9)),
            "scan6": ("glean", lambda: self._eth() / self._ip6(self._near6()) / UDP(dport=9)),
            "ttl": ("icmp4-ttl", lambda: self._eth() / self._ip("100.127.0.1", ttl=1)
                    / UDP(dport=33434)),
            "ttl6": ("icmp6-ttl", lambda: self._eth() / self._ip6(isp6, hlim=1) / UDP()),
            "too big": ("icmp4-too-big", lambda: self._eth() / self._ip(isp4, flags="DF")
                        / UDP(dport=7) / wide),
            "too big6": ("icmp6-too-big", lambda: self._eth() / self._ip6(isp6)
                         / UDP(dport=7) / wide),
            "cut": ("cut", lambda: self._eth() / self._ip(isp4, id=self._port())
                    / UDP(dport=7) / wide),
        }  # fmt: skip


@contextlib.contextmanager
def _room_is_counted(run, what):
    """Allow the losses that the counters of full rings report, until the counters stand still. A ring
    fills while no forwarder has CPU time."""
    before = last = ledger.read(run.bed)
    yield

    def stand_still():
        nonlocal last
        was, last = last, ledger.read(run.bed)
        return not ledger.grown(was, last)

    eventually(stand_still, 10, 0.1)
    full = ledger.grown(before, last)
    if full:
        what.may_lose(time.monotonic() - what.begin)
        what.counted = sum(full.values())
        grown = ", ".join(f"{k} {v}" for k, v in full.items())
        stamp(run, f"{what.name}: no room: {grown}")


@fault(4, sessions_stay=True)
def nonsense_frames(run):
    """3,000 broken frames by the lan."""
    what = run.note("nonsense frames", "3,000 by lan0")
    sock, before = run.bed.traffic.out["lan"], _dropped(run)
    with _room_is_counted(run, what):
        frames = nonsense.frames(run.rng, Attacker(run.bed, run.rng), 3000)
        for n, data in enumerate(frames):
            with contextlib.suppress(OSError):
                sock.send(data)
            if n % 32 == 31:
                time.sleep(0.005)
    dropped = _dropped(run) - before
    stamp(run, f"nonsense frames: {dropped} dropped")
    # Normally the dataplane drops two thirds of the frames.
    run.must(dropped > 300, f"of 3,000 broken frames {dropped} were dropped")


def _dropped(run):
    """Return the number of dropped packets, for all reasons."""
    return sum(n for (kind, _), n in run.bed.dp.counters().items() if kind == "drop")


@fault(2)
def nonsense_channels(run):
    """Send malformed data to FPM, to the control socket and to the metrics. The data to FPM ends zebra's
    session, and zebra connects again."""
    run.note("nonsense channels", "FPM, control socket, metrics")
    before = run.bed.dp.fpm()["bad_frames"]
    for _ in range(3):
        with contextlib.suppress(OSError):
            with fpm_speaker.FpmSpeaker(netns=run.bed.ns["r1"]).connect(1) as speaker:
                speaker.send_raw(run.rng.randbytes(2000))
                speaker.wait_closed(0.2)
    for head in (b"", b"GET ", b"POST /v1/"):
        for _ in range(20):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(0.2)
                sock.connect(run.bed.socket)
                end = b"\r\n\r\n" if head else b"\n"
                sock.sendall(head + run.rng.randbytes(run.rng.randrange(1, 5000)) + end)
                sock.recv(100)
    for _ in range(20):
        space = run.bed.ns["r1"]
        with contextlib.suppress(OSError), netns.open_socket(space, 2, 1) as sock:
            sock.settimeout(0.2)
            sock.connect(("127.0.0.1", 9620))
            sock.sendall(run.rng.randbytes(run.rng.randrange(1, 5000)))
            sock.recv(100)
    counted = lambda: run.bed.dp.fpm()["bad_frames"] > before  # noqa: E731
    try:
        eventually(counted, 10, 0.1)  # fpm may read the octets when their connection has closed
    except Timeout as error:
        run.must(False, f"nonsense to FPM was not counted: {error}")


@fault(2, sessions_stay=True)
def nonsense_requests(run):
    """Send malformed requests for every operation of the API: the path and the verb are right; the
    name, the parameters or the body is malformed. The daemon refuses them and changes nothing."""
    run.note("nonsense requests", "each operation of the API")
    rng, before = run.rng, _shown(run)
    names = ("\0", "%", "../../etc/passwd", "x" * 5000, "-1", "'; --", rng.randbytes(9).hex())
    bodies = (b"{", b"[]", b"null", b"7", b'{"x": 1}', b"[" * 3000, b'{"mtu": "\\u0000"}',
              b'{"mtu": -1, "rate": [], "for_s": {}, "device": 7}', rng.randbytes(200))  # fmt: skip
    for (method, path), said in api.operations().items():
        words = [api.referred(p)["name"] for p in said.get("parameters", [])]
        if path in IN_EARNEST or (method == "GET" and not words and "{name}" not in path):
            continue
        for _ in range(3):
            where = api.place(path, rng.choice(names), **{w: rng.choice(names) for w in words})
            conn = api.Connection(run.bed.socket)
            # The daemon may close the connection.
            with contextlib.suppress(OSError, http.client.HTTPException):
                conn.request(method, where, rng.choice(bodies) if method != "GET" else None)
                status = conn.getresponse().status
                refused = 400 <= status < 500
                run.must(refused, f"the API answered {status} to {method} {where[:60]}")
            conn.close()
    run.must(_shown(run) == before, "nonsense to the API changed the configuration")


@fault(2, sessions_stay=True)
def nonsense_file(run):
    """Reload a configuration that is malformed, in several ways. The daemon refuses it as a whole and
    changes nothing."""
    run.note("nonsense file", "reload of a garbage configuration")
    config, rng, before = run.bed.dp.config, run.rng, _shown(run)
    with open(config, "rb") as file:
        good = file.read()
    cut = rng.randrange(len(good))
    some = (rng.randbytes(5000) + b"\0[", good + b"nonsense: 1\n", good + good,
            good[:cut] + b"\n: [{\n", nonsense.damaged(rng, good, 40) + b"\n\0: [\n",
            good.replace(b"ports:", b"ports: 7\nmore:"))  # fmt: skip
    try:
        for text in some:
            with open(config, "wb") as file:
                file.write(text)
            argv = [run.bed.dp.ctl, "-s", run.bed.socket, "config", "reload"]
            done = subprocess.run(argv, capture_output=True, timeout=30 * PATIENCE, check=False)
            is_told = done.returncode == 2 and done.stderr
            run.must(is_told, f"reload of {text[-30:]!r}: {done.returncode}, {done.stderr!r}")
    finally:
        with open(config, "wb") as file:
            file.write(good)
    run.must(_shown(run) == before, "a configuration that was refused changed something")


def _shown(run):
    return netns.command([run.bed.dp.ctl, "-s", run.bed.socket, "config", "show"])


@fault(2, sessions_stay=True)
def questions(run):
    """A client reads all tables, captures live packets, and requests a replay."""
    run.note("questions", "dump, audit, capture, replay")
    program, path = run.bed.dp.ctl, run.bed.socket
    # zebra knows no labelled route. audit looks each of them up again, which takes minutes.
    netns.command(["timeout", "3", *run.bed.audit_argv()], check=False)
    for words in (["--json", "show", "routes"], ["replay"]):
        netns.command([program, "-s", path, *words], check=False, timeout=120)
    argv = ["timeout", "1", program, "-s", path, "capture", "-w", "/dev/null"]
    netns.command(argv, check=False)


def _judged(run, name):
    """Return the number of packets of a class, passed or not, or of those dropped for a reason."""
    if "_" in name:
        return run.bed.dp.counter("drop", name)
    (row,) = run.bed.dp.show("punt", name)
    return sum(row[k] for k in ("passed", "policed", "over_share", "ring_full"))


@fault(4, 6, sessions_stay=True)
def flood(run):
    """One class of packets as fast as a core sends them, at the lowest priority: each class that
    a frame can be of, by turns."""
    makers = Attacker(run.bed, run.rng).kinds()
    run.floods = run.floods or run.rng.sample(sorted(makers), len(makers))
    kind = run.floods.pop()
    name, make = makers[kind]
    path = run.bed.path("flood")
    with open(path, "wb") as file:
        for data in (bytes(make()) for _ in range(200)):
            file.write(len(data).to_bytes(2, "big") + data)
    what = run.note("flood", kind)
    stamp(run, f"flood: {kind}")
    program = os.path.join(os.path.dirname(run.bed.dp.program), "tests", "flood")
    cpu = str(min(os.sched_getaffinity(0)))
    argv = ["nice", "-n", "19", "taskset", "-c", cpu, program, "eth0", path]
    before = _judged(run, name)
    with _room_is_counted(run, what), _narrow(run, name):
        netns.run(run.bed.ns["lan"], [*argv, str(FLOOD_S), "0"])
    run.must(_judged(run, name) > before, f"no packet of a flood of {kind} was counted as {name}")


@contextlib.contextmanager
def _narrow(run, name):
    """Lower the MTU of the link to isp for the kinds that are to be fragmented or are too big."""
    if name != "cut" and not name.endswith("too-big"):
        yield
        return
    try:
        netns.ip_batch(["link set wan0 mtu 1400"], run.bed.ns["r1"])
        eventually(lambda: run.bed.dp.ports()["wan0"]["mtu"] == 1400, 5, 0.05)
        yield
    finally:
        netns.ip_batch(["link set wan0 mtu 1500"], run.bed.ns["r1"])
