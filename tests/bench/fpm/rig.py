# SPDX-License-Identifier: BSD-3-Clause
"""The daemon between four wires, its threads on the CPUs that a measurement wants, and raw
ports that tell to the microsecond when a packet came.

The last CPU forwards and is also the benchmark's own (sender of FPM, prober); all other
threads of the daemon share the first one. Times are CLOCK_REALTIME in seconds: the kernel
stamps packets with it.
"""

import ctypes
import ipaddress
import json
import os
import select
import socket
import struct
import time

from lib import netns
from lib.dut import Dut
from lib.fpm_speaker import FpmSpeaker
from lib.wait import eventually

ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 3, 263, 23
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
PR_SET_TIMERSLACK = 29
FORWARDER = "fwd-"  # name of a forwarder's thread: the EAL pins it, nobody else may
MARK, SPORT = b"bench-fpm", 4000
N_HOPS = 64  # next hops of a table, a family; as many groups of two over them
IDLE_S = 20e-6  # what the prober waits between two looks


def now():
    """The clock of all that is measured here."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def mark_of(sport):
    """What only probes of that port carry."""
    return MARK + struct.pack("!H", sport)


def udp4(smac, dmac, src, dst, sport):
    """A UDP packet over IPv4 as a frame, to be known again by mark_of(sport)."""
    load = mark_of(sport) + bytes(9)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(load), 0, 0, 64, 17, 0)
    head += ipaddress.IPv4Address(src).packed + ipaddress.IPv4Address(dst).packed
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    macs = bytes.fromhex((dmac + smac).replace(":", ""))
    return macs + b"\x08\x00" + head + struct.pack("!4H", sport, 9, 8 + len(load), 0) + load


class Port:
    """The far end of a link: frames out, and when marked ones came in."""

    name = tap = mac = port_mac = ip4 = peer4 = ip6 = peer6 = host4 = None

    def __init__(self, namespace, ifname):
        self.namespace, self.ifname = namespace, ifname
        self.sock = netns.open_socket(namespace, socket.AF_PACKET, socket.SOCK_RAW)
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        with netns.entered(namespace):
            self.sock.bind((ifname, ETH_P_ALL))
        self.sock.setblocking(False)

    def send(self, frame):
        """Send if there is room; a probe more or less does not matter."""
        try:
            self.sock.send(frame)
        except OSError:
            pass

    def came(self, since=0.0, sport=SPORT):
        """When the first probe after `since` came, or None; takes frames up to it."""
        mark = mark_of(sport)
        while True:
            try:
                data, control, _, _ = self.sock.recvmsg(2048, 64)
            except BlockingIOError:
                return None
            except OSError:  # the link went down: said once, before what came until then
                continue
            if mark not in data:
                continue
            seconds, ns = struct.unpack("qq", control[0][2])
            if seconds + ns / 1e9 >= since:
                return seconds + ns / 1e9

    def drain(self):
        """Forget what came so far."""
        while self.came() is not None:
            pass


def gateways4(wire):
    """Hosts on a wire, the peer not among them."""
    return [str(ipaddress.IPv4Address(wire.peer4) + n) for n in range(1, N_HOPS // 3 + 2)]


def gateways6(wire):
    """The same for IPv6."""
    return [str(ipaddress.IPv6Address(wire.peer6) + n) for n in range(1, N_HOPS // 3 + 2)]


class NoCollector:
    """The Dut's wires need no thread that reads them."""

    def add(self, wire):
        """Nothing to do."""

    def close(self):
        """Nothing to do."""


class Rig(Dut):
    """One daemon between four wires, and the session of one zebra."""

    def __init__(self):
        super().__init__(Port, NoCollector(), name="bench")
        cpus = sorted(os.sched_getaffinity(0))
        self.control_cpu, self.own_cpu = cpus[0], cpus[-1]
        self.speaker = None

    def __enter__(self):
        os.sched_setaffinity(0, {self.own_cpu})
        # time.sleep() would take 50 us longer than it is told to.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
        try:
            self.build()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, *exc):
        self.close()
        self.destroy()

    def fresh(self):
        """A daemon that knows the kernel's neighbors and not one route."""
        self.close()
        if self.alive():
            self.stop()
        # A daemon born on our CPU would keep its threads there.
        os.sched_setaffinity(0, {self.control_cpu, self.own_cpu})
        self.start()
        os.sched_setaffinity(0, {self.own_cpu})
        for tid, name in self.threads().items():
            if not name.startswith(FORWARDER):
                os.sched_setaffinity(tid, {self.control_cpu})
        self.kernel_defaults()
        outs = [self.wires[name] for name in ("wan", "alt", "ext")]
        self.ip(
            *(
                f"neigh replace {host} lladdr {out.mac} dev {out.tap} nud permanent"
                for out in outs
                for host in gateways4(out) + gateways6(out)
            )
        )
        for wire in self.wires.values():
            eventually(
                lambda w=wire: (self.neighbor_row(w.peer4, w) or {}).get("mac") == w.mac,
                10,
                0.01,
                f"neighbor of {wire.name}",
            )

    def connect(self):
        """A new session of the same zebra."""
        before = self.fpm()["accepts"]
        self.close()
        self.speaker = FpmSpeaker(netns=self.ctl).connect()
        self.speaker.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        eventually(lambda: self.fpm()["accepts"] > before, 5, 0.001, "session up")

    def close(self):
        """Hang up as zebra does."""
        if self.speaker is not None:
            self.speaker.close()
            self.speaker = None

    def threads(self):
        """{tid: name} of the daemon."""
        found = {}
        for tid in os.listdir(f"/proc/{self.daemon.process.pid}/task"):
            with open(f"/proc/{tid}/comm", encoding="ascii") as file:
                found[int(tid)] = file.read().strip()
        return found

    def cpu_s(self):
        """{thread name: seconds on a CPU so far}; threads of one name are added up."""
        found = {}
        for tid, name in self.threads().items():
            with open(f"/proc/{tid}/schedstat", encoding="ascii") as file:
                found[name] = found.get(name, 0.0) + int(file.read().split()[0]) / 1e9
        return found

    def memory(self):
        """`show memory`."""
        return json.loads(self.fpmctl("--json", "show", "memory").stdout)[0]

    def probe(self, dst, sport=SPORT):
        """A frame that enters by `lan`."""
        lan = self.wires["lan"]
        return udp4(lan.mac, lan.port_mac, lan.peer4, dst, sport)

    def warm(self, frame, outs):
        """Probes for some ms: the forwarder is awake as under load; `outs` have none left."""
        end = now() + 0.005
        while now() < end:
            self.wires["lan"].send(frame)
            time.sleep(IDLE_S)
        for out in outs:
            out.drain()

    def wait_for(self, frame, out, since, sport=SPORT, timeout=30.0, work=None):
        """Probe until `out` lets a probe out. Returns when that came.

        work() is called between two looks; it returns how long until the next may begin.
        """
        end, lan = now() + timeout, self.wires["lan"]
        while True:
            lan.send(frame)
            pause = work() if work else IDLE_S
            if pause:
                time.sleep(pause)
            at = out.came(since, sport)
            if at is not None:
                return at
            if now() > end:
                raise TimeoutError(f"no probe left on {out.name}; log: {self.log()}")


class Pour:
    """Sends a long stream as fast as the socket takes it, a piece each step."""

    PIECE = 256 << 10

    def __init__(self, sock, octets):
        self.sock, self.view, self.at = sock, memoryview(octets), 0
        self.done_at = None
        sock.setblocking(False)

    def step(self):
        """Send what there is room for; returns how long to wait before the next step."""
        if self.done_at:
            return IDLE_S * 10
        try:
            self.at += self.sock.send(self.view[self.at : self.at + self.PIECE])
        except BlockingIOError:
            select.select([], [self.sock], [], 0.001)
        if self.at == len(self.view):
            self.done_at = now()
            self.sock.setblocking(True)
        return 0
