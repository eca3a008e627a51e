# SPDX-License-Identifier: BSD-3-Clause
"""Measure the kernel as the router between two veth pairs with the same IPv4 routes: its own
forwarding, the same with 1,000 rules of nft, and XDP with bpf_fib_lookup() (xdp.c).

The NAPI of the receiving port runs as a thread of its own, pinned to the measured core, so that
its CPU time is known as that of the other programs. The sender (AF_PACKET, tests/lib/flood.c) is
on the other core and may be the slower one. Rates are by the time that the thread worked.
"""

import contextlib
import os
import struct
import subprocess
import time
from pathlib import Path

from forward import rig
from forward.measure import summary
from lib import netns

N_FRAMES = 65536
ROUTER, SINK = "02:00:00:00:ff:01", "02:00:00:00:ff:02"
LOAD_S = 240
N_RULES = 1000
RULES = f"kernel, {N_RULES:,} rules of nft"


class Kernel:
    """A context with a router made of two namespaces, with `table` in its routing table."""

    def __init__(self, bench, table):
        self.bench, self.table = bench, table
        self.router, self.host = (f"fdp-bench-{os.getpid()}-k{x}" for x in "rh")
        self.frames, self.object = bench.dir / f"flood-{table}", bench.dir / "xdp.o"
        self.sender = None
        self.others = napi_threads()

    def __enter__(self):
        try:
            self.links()
            self.routes()
            self.frames_write()
        except BaseException:
            self.__exit__()
            raise
        return self

    def links(self):
        """Make the links in0 -> in and out -> out0. An XDP program drops every frame at out0."""
        for space in (self.router, self.host):
            netns.command(["ip", "netns", "add", space])
        netns.sysctl(self.router, {"net.ipv4.ip_forward": 1})
        netns.ip_batch(
            [
                f"link add in address {ROUTER} type veth peer name in0 netns {self.host}",
                f"link add out type veth peer name out0 netns {self.host}",
                "addr add 192.0.2.1/28 dev in",
                "addr add 192.0.2.17/28 dev out",
                "link set in up",
                "link set out up",
                f"neigh replace 192.0.2.18 lladdr {SINK} dev out nud permanent",
            ],
            self.router,
        )
        xdp = f"link set out0 xdp object {self.object} program sink"
        netns.ip_batch(["link set in0 up", "link set out0 up", xdp], self.host)
        # Frames wait for the NAPI of a veth's other end only if they come from a device without
        # TSO. The veth has a NAPI for GRO or XDP.
        netns.run(self.host, ["ethtool", "-K", "in0", "tso", "off"])
        netns.run(self.router, ["ethtool", "-K", "in", "gro", "on"])
        netns.run(self.router, ["sh", "-c", "echo 1 > /sys/class/net/in/threaded"], sysfs=True)
        os.sched_setaffinity(self.thread(), {self.bench.cpu})

    def thread(self):
        """Return the NAPI thread of `in`: the only one that is newer than the namespaces."""
        (found,) = napi_threads() - self.others
        return found

    def routes(self):
        """Add all routes by one neighbor. The cost of a lookup does not depend on the neighbor."""
        with open(self.bench.routes[4], encoding="ascii") as file:
            lines = [f"route add {x.split()[0]} via 192.0.2.18" for x in file]
        netns.command(
            ["ip", "-n", self.router, "-force", "-batch", "-"],
            stdin="\n".join(lines) + "\n",
            timeout=LOAD_S,
        )

    def frames_write(self):
        """Write frames of 60 octets for flood, to the first destinations that all programs get."""
        macs = bytes.fromhex((ROUTER + SINK).replace(":", ""))
        with open(self.bench.frames[4], "rb") as file, open(self.frames, "wb") as out:
            for _ in range(N_FRAMES):
                address = file.read(8)[:4]
                head = bytearray(struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0, 64, 17, 0))
                head += bytes((192, 0, 2, 2)) + address
                head[10:12] = struct.pack("!H", checksum(head))
                udp = struct.pack("!4H", 9, 9, 26, 0) + bytes(18)
                frame = macs + b"\x08\x00" + head + udp
                out.write(struct.pack("!H", len(frame)) + frame)

    def forward_by(self, name):
        """Forward by the kernel's own code, without or with rules, or in XDP from now on."""
        rules = ruleset(N_RULES) if name == RULES else ""
        netns.run(self.router, ["nft", "-f", "-"], stdin=f"flush ruleset\n{rules}")
        words = ["object", self.object, "program", "forward"] if name == "xdp" else ["off"]
        netns.command(
            ["ip", "-n", self.router, "link", "set", "in", "xdp", *map(str, words)]
        )

    def sent(self):
        """Return the number of packets that arrived behind the router."""
        text = netns.run(self.host, ["cat", "/sys/class/net/out0/statistics/rx_packets"], sysfs=True)
        return int(text)

    def sample(self, seconds):
        """Return Mpps and cycles a packet by the CPU time of the NAPI thread."""
        stat = Path(f"/proc/{self.thread()}/schedstat")
        argv = [
            "ip",
            "netns",
            "exec",
            self.host,
            "taskset",
            "-c",
            str(self.bench.other_cpu),
        ]
        argv += [self.bench.build / "tests/flood", "in0", self.frames, seconds + 0.6, 0]
        self.sender = subprocess.Popen(list(map(str, argv)), stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        packets, cpu, begin = self.sent(), cpu_s(stat), time.monotonic()
        time.sleep(seconds)
        packets, cpu = self.sent() - packets, cpu_s(stat) - cpu
        wall = time.monotonic() - begin
        self.sender.wait()
        if packets == 0 or cpu == 0:
            raise RuntimeError(f"{packets} packets forwarded, in {cpu} s of that thread")
        hz = tsc_hz()
        return {
            "mpps": packets / cpu / 1e6,
            "cycles": hz * cpu / packets,
            "cpu": cpu / wall,
        }

    def __exit__(self, *exc):
        if self.sender and self.sender.poll() is None:
            self.sender.kill()
            self.sender.wait()
        for space in (self.router, self.host):
            netns.delete(space)


def ruleset(n):
    """Return n rules of nft as text: those of bench-tags (tags/filters.c). No frame matches one."""
    lines = [
        f"meta nfproto ipv4 ip saddr 100.{64 + i % 61}.{i * 7 % 256}.0/24 {'udp' if i % 3 else 'tcp'} dport {i} drop"
        for i in range(n)
    ]
    chain = "type filter hook forward priority 0; policy accept;"
    return "\n".join(["table inet bench {", f"chain forward {{ {chain}", *lines, "}", "}"]) + "\n"


def napi_threads():
    """Return the NAPI threads of all devices named `in`, in all namespaces."""
    found = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            if comm.read_text().startswith("napi/in-"):
                found.add(int(comm.parent.name))
    return found


def cpu_s(stat):
    """Return the CPU seconds of a thread from its schedstat."""
    return int(stat.read_text().split()[0]) / 1e9


def tsc_hz():
    """Return the TSC ticks a second as the kernel shows them in /proc/cpuinfo. The DPDK programs
    measure them instead."""
    mhz = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if "cpu MHz" in x]
    return float(mhz[0].split(":")[1]) * 1e6


def checksum(head):
    """Return the checksum of an IPv4 header whose checksum field is zero."""
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def measure(bench):
    """Measure the kernel, the kernel with rules and XDP in turns, with few routes and with all."""
    source = Path(__file__).with_name("xdp.c")
    argv = ["clang-14", "-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu"]
    try:
        netns.command([*argv, "-c", str(source), "-o", str(bench.dir / "xdp.o")])
    except (netns.CommandError, OSError) as error:
        bench.skip("kernel, xdp", error)
        return
    for table in rig.options("TABLES", ("few", "full")):
        bench.use(table)
        bench.say(f"kernel, {table} table")
        with Kernel(bench, table) as kernel:
            seen = {"kernel": [], RULES: [], "xdp": []}
            for _ in range(bench.reps):
                for name, samples in seen.items():
                    kernel.forward_by(name)
                    samples.append(kernel.sample(bench.seconds))
        for name, samples in seen.items():
            row = {"bench": "forward", "table": table, "traffic": "v4 over veth"}
            bench.emit(row | {"program": name, "len": 64} | summary(samples))
