# SPDX-License-Identifier: BSD-3-Clause
"""Run the daemon between four wires, with its threads on chosen CPUs, and raw ports that record to
the microsecond when a packet came.

The last CPU runs the forwarder and the benchmark itself (sender of FPM, prober). All other threads
of the daemon share the first CPU. Times are CLOCK_REALTIME in seconds, because the kernel stamps
packets with it.
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
FORWARDER = "fwd-"  # name of a forwarder's thread, which only the EAL may pin
MARK, SPORT = b"bench-fpm", 4000
N_HOPS = 64  # next hops of a table for each family; it has as many groups of two next hops
IDLE_S = 20e-6  # wait of the prober between two looks


def now():
    """Return the time of the clock that all measurements use."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def mark_of(sport):
    """Return the octets that only probes of that port have."""
    return MARK + struct.pack("!H", sport)


def udp4(smac, dmac, src, dst, sport):
    """Return a frame with a UDP packet over IPv4 that has mark_of(sport)."""
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
    """The far end of a link. It sends frames, and returns the times when marked frames came in."""

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
        """Send if there is room. The loss of a probe does not matter."""
        try:
            self.sock.send(frame)
        except OSError:
            pass

    def came(self, since=0.0, sport=SPORT):
        """Return the time of the first probe after `since`, or None. Reads the frames up to it."""
        mark = mark_of(sport)
        while True:
            try:
                data, control, _, _ = self.sock.recvmsg(2048, 64)
            except BlockingIOError:
                return None
            except OSError:  # the link went down; the socket reports it once, before the earlier frames
                continue
            if mark not in data:
                continue
            seconds, ns = struct.unpack("qq", control[0][2])
            if seconds + ns / 1e9 >= since:
                return seconds + ns / 1e9

    def drain(self):
        """Discard the frames that have come so far."""
        while self.came() is not None:
            pass


def gateways4(wire):
    """Return addresses on a wire, without the peer's."""
    return [str(ipaddress.IPv4Address(wire.peer4) + n) for n in range(1, N_HOPS // 3 + 2)]


def gateways6(wire):
    """Return the same for IPv6."""
    return [str(ipaddress.IPv6Address(wire.peer6) + n) for n in range(1, N_HOPS // 3 + 2)]


class NoCollector:
    """A replacement for the thread that reads the wires of a Dut. The ports here are read
    directly."""

    def add(self, wire):
        """Ignore the wire."""

    def close(self):
        """Ignore the call."""


class Rig(Dut):
    """One daemon between four wires, and the session of one zebra."""

    def __init__(self):
        super().__init__(Port, NoCollector(), name="bench")
        cpus = sorted(os.sched_getaffinity(0))
        self.control_cpu, self.own_cpu = cpus[0], cpus[-1]
        self.speaker = None

    def __enter__(self):
        os.sched_setaffinity(0, {self.own_cpu})
        # Without this, time.sleep() takes 50 us longer.
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
        """Start a daemon that has the kernel's neighbors and no route."""
        self.close()
        if self.alive():
            self.stop()
        # A daemon that is started on our CPU would keep its threads there.
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
        """Open a new session of the same zebra."""
        before = self.fpm()["accepts"]
        self.close()
        self.speaker = FpmSpeaker(netns=self.ctl).connect()
        self.speaker.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        eventually(lambda: self.fpm()["accepts"] > before, 5, 0.001, "session up")

    def close(self):
        """Close the session as zebra does."""
        if self.speaker is not None:
            self.speaker.close()
            self.speaker = None

    def threads(self):
        """Return {tid: name} of the daemon's threads."""
        found = {}
        for tid in os.listdir(f"/proc/{self.daemon.process.pid}/task"):
            with open(f"/proc/{tid}/comm", encoding="ascii") as file:
                found[int(tid)] = file.read().strip()
        return found

    def cpu_s(self):
        """Return {thread name: CPU seconds}. Threads with the same name are added up."""
        found = {}
        for tid, name in self.threads().items():
            with open(f"/proc/{tid}/schedstat", encoding="ascii") as file:
                found[name] = found.get(name, 0.0) + int(file.read().split()[0]) / 1e9
        return found

    def memory(self):
        """Return `show memory`."""
        return json.loads(self.fpmctl("--json", "show", "memory").stdout)[0]

    def probe(self, dst, sport=SPORT):
        """Return a frame that enters by `lan`."""
        lan = self.wires["lan"]
        return udp4(lan.mac, lan.port_mac, lan.peer4, dst, sport)

    def warm(self, frame, outs):
        """Send probes for some ms, so that the forwarder is awake as under load. Then empty
        `outs`."""
        end = now() + 0.005
        while now() < end:
            self.wires["lan"].send(frame)
            time.sleep(IDLE_S)
        for out in outs:
            out.drain()

    def wait_for(self, frame, out, since, sport=SPORT, timeout=30.0, work=None):
        """Send probes until `out` receives one. Return the time when it came.

        work() is called between two looks. It returns the time until the next look.
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
    """Send a long stream as fast as the socket takes it, a piece in each step."""

    PIECE = 256 << 10

    def __init__(self, sock, octets):
        self.sock, self.view, self.at = sock, memoryview(octets), 0
        self.done_at = None
        sock.setblocking(False)

    def step(self):
        """Send as much as there is room for. Return the time to wait before the next step."""
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
