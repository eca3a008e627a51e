# SPDX-License-Identifier: BSD-3-Clause
"""The programs that a forwarding benchmark compares: each a process with one generator port
and N_OUT ports that swallow, pinned to one core, and a page to talk to its ports (page.h).

All of them are started before the first measurement; all but the one that is measured are
stopped (SIGSTOP), so that runs can take turns although a full table takes long to load.
"""

import mmap
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from lib import netns
from lib.dataplane import Dataplane
from lib.fpm_speaker import DST_AT, PLEN_AT, FpmSpeaker, frame, route_message
from lib.wait import eventually

N_OUT = 4
LOAD_S = 240

# The struct page of page.h.
TSC_HZ, TID, RUN, CHECK, EPOCH, GAP, LIMIT, FAMILY = 0, 8, 12, 16, 20, 24, 32, 40
PORT0, PORT_BYTES, LATENCY, SLOTS = 64, 64, 64 + 16 * 64, 1024
PORT = ("rx", "missed", "tx", "wrong_port", "wrong_header", "first_tsc")


class Page:
    """The file that a program's ports map."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(LATENCY + 8 * SLOTS))
        with open(path, "r+b") as file:
            self.mem = mmap.mmap(file.fileno(), 0)

    def get(self, at, kind="I"):
        """One number."""
        return struct.unpack_from("<" + kind, self.mem, at)[0]

    def put(self, at, value, kind="I"):
        """Set one number."""
        struct.pack_into("<" + kind, self.mem, at, value)

    def begin(self, family=0, check=0, gap_q16=0, limit=0):
        """Let frames come, counted and paced from now on."""
        self.mem[LATENCY:] = bytes(8 * SLOTS)
        self.put(FAMILY, family)
        self.put(CHECK, check)
        self.put(GAP, gap_q16, "Q")
        self.put(LIMIT, limit, "Q")
        self.put(EPOCH, self.get(EPOCH) + 1)
        self.put(RUN, 1)

    def end(self):
        """No more frames."""
        self.put(RUN, 0)

    def counts(self):
        """What all ports counted, added up; first_tsc: of the first that sent."""
        rows = [
            struct.unpack_from("<6Q", self.mem, PORT0 + n * PORT_BYTES)
            for n in range(N_OUT + 1)
        ]
        total = {name: sum(row[i] for row in rows) for i, name in enumerate(PORT)}
        total["first_tsc"] = min((row[5] for row in rows if row[5]), default=0)
        return total

    def latencies(self):
        """[(ticks, frames)], rising; `ticks` is the lower end of a bucket."""
        counts = struct.unpack_from(f"<{SLOTS}Q", self.mem, LATENCY)
        return [(slot_ticks(i), n) for i, n in enumerate(counts) if n]


def slot_ticks(slot):
    """Lower end of a bucket of the histogram: 16 to an octave."""
    octave, part = divmod(slot, 16)
    return part if octave == 0 else (16 + part) << (octave - 1)


class Program:
    """One process. Subclasses say how it is started and when it is loaded."""

    families = (4, 6, 0)  # what it can be measured on; 0: mixed
    looks_up = True

    def __init__(self, name, bench):
        self.name, self.bench = name, bench
        self.page = Page(bench.dir / f"{name}.page")
        self.log = bench.dir / f"{name}.log"
        self.process = None

    def vdev(self, n, more=""):
        """Devargs of port n: 0 receives."""
        if n == 0:
            for family in (4, 6):
                path = self.bench.frames.get(family)
                more += f",frames{family}={path}" if path else ""
            more += f",len={self.bench.frame_len}"
        return f"net_bench{n},page={self.page.path},n={n}{more}"

    def eal(self, cores, n_ports):
        """Arguments of the EAL for programs that take them."""
        argv = ["-l", cores, "--in-memory", "--no-pci", "--no-telemetry"]
        argv += ["-d", str(self.bench.plugin), "--force-max-simd-bitwidth=512"]
        for n in range(n_ports):
            argv += ["--vdev", self.vdev(n)]
        return argv

    def spawn(self, argv):
        """Start it, stdin open for those who end when it closes."""
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
            )

    def alive(self):
        """The exit code is an error before the end."""
        if self.process.poll() is not None:
            last = self.log.read_text(errors="replace").splitlines()[-3:]
            raise ProgramError(f"{self.name} ended: {' / '.join(last)}")
        return True

    def start(self):
        """Start and load; it is stopped when this returns."""
        self.launch()
        eventually(
            lambda: self.alive() and self.page.get(TID), LOAD_S, 0.05, f"{self.name} polls"
        )
        self.load()
        self.process.send_signal(signal.SIGSTOP)

    def load(self):
        """Teach it the routes, if that is done while it runs."""

    def cpu_s(self):
        """Seconds that its forwarding thread has had a CPU."""
        tid = self.page.get(TID)
        text = Path(f"/proc/{self.process.pid}/task/{tid}/schedstat").read_text()
        return int(text.split()[0]) / 1e9

    def process_cpu_s(self):
        """Seconds that all its threads have had a CPU."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def awake(self):
        """Context: it runs, the others do not."""
        return Awake(self)

    def stop(self):
        """End it."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ProgramError(BaseException):
    """A program ended by itself. No Exception, so that eventually() does not retry."""


class Awake:
    """Lets one program run for the length of a with block."""

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        self.program.process.send_signal(signal.SIGCONT)
        return self.program.page

    def __exit__(self, *exc):
        self.program.page.end()
        time.sleep(0.01)  # what is in its hands goes out
        self.program.process.send_signal(signal.SIGSTOP)


class Testpmd(Program):
    """dpdk-testpmd of Debian, one input and one output."""

    families = (4,)
    looks_up = False

    def __init__(self, name, bench, mode):
        super().__init__(name, bench)
        self.mode = mode

    def launch(self):
        bench = self.bench
        argv = ["dpdk-testpmd", *self.eal(f"{bench.other_cpu},{bench.cpu}", 2), "--"]
        argv += [f"--forward-mode={self.mode}", "--nb-cores=1", "--burst=64"]
        argv += ["--total-num-mbufs=16384", "--no-mlockall"]
        self.spawn(argv)


class L3fwd(Program):
    """l3fwd of Debian's DPDK source, with its limits raised."""

    def __init__(self, name, bench, lookup, program, only4=False):
        super().__init__(name, bench)
        self.lookup, self.program = lookup, program
        self.rules = dict(bench.rules)
        if only4:
            self.rules[6] = bench.dir / "few-l3fwd6"
            self.families = (4,)

    def launch(self):
        bench = self.bench
        argv = [str(self.program), *self.eal(str(bench.cpu), N_OUT + 1), "--"]
        argv += ["-p", hex((1 << (N_OUT + 1)) - 1), "-P", f"--lookup={self.lookup}"]
        argv += [f"--config=(0,0,{bench.cpu})"]
        argv += [f"--rule_ipv{f}={self.rules[f]}" for f in (4, 6)]
        for n in range(1, N_OUT + 1):
            argv += [f"--eth-dest={n},02:00:00:00:{n:02x}:02"]
        self.spawn(argv)


CONFIG = """\
ports:
{ports}
cores: [{cpu}]
control-netns: {netns}
plugins: [{plugin}]
control-socket: {socket}
metrics: off
memory:
  hugepages: true
  size-mib: 256
idle: {idle}
log-level: info
{more}"""


class Ours(Program):
    """fpm-dataplane as a user runs it: TAPs, static neighbours, routes over FPM."""

    def __init__(self, name, bench, idle="adaptive", more="", build=None):
        super().__init__(name, bench)
        self.netns = f"fdp-bench-{os.getpid()}-{name}"
        self.idle, self.more = idle, more
        self.speaker = None
        self.daemon = Dataplane(
            None,
            str(bench.dir / f"{name}.yaml"),
            str(bench.dir / f"{name}.sock"),
            str(self.log),
            str(bench.dir),
            build,
        )

    def launch(self):
        netns.command(["ip", "netns", "add", self.netns])
        netns.sysctl(
            self.netns,
            {
                "net.ipv4.ip_forward": 1,
                "net.ipv6.conf.all.forwarding": 1,
                "net.ipv6.conf.default.accept_dad": 0,
                "net.ipv6.conf.default.router_solicitations": 0,
            },
        )
        netns.ip_batch(["link set lo up"], self.netns)
        ports = "\n".join(
            f"  - tap: port{n}\n    device: {self.vdev(n)}" for n in range(N_OUT + 1)
        )
        Path(self.daemon.config).write_text(
            CONFIG.format(
                ports=ports,
                cpu=self.bench.cpu,
                netns=self.netns,
                plugin=self.bench.plugin,
                socket=self.daemon.socket,
                idle=self.idle,
                more=self.more,
            )
        )
        self.daemon.start()
        self.process = self.daemon.process

    def load(self):
        lines = []
        for n in range(N_OUT + 1):
            dev, mac = f"port{n}", f"02:00:00:00:{n:02x}:02"
            lines += [
                f"link set {dev} up",
                f"addr add 192.0.2.{16 * n + 1}/28 dev {dev}",
                f"-6 addr add 2001:db8:{n + 1}::1/64 dev {dev} nodad",
                f"neigh replace 192.0.2.{16 * n + 2} lladdr {mac} dev {dev} nud permanent",
                f"-6 neigh replace 2001:db8:{n + 1}::2 lladdr {mac} dev {dev} nud permanent",
            ]
        netns.ip_batch(lines, self.netns)
        self.speaker = FpmSpeaker("127.0.0.1", 2620, netns=self.netns).connect()
        self.speaker.socket.settimeout(60)
        with netns.entered(self.netns):
            oif = [socket.if_nametoindex(f"port{n}") for n in range(N_OUT + 1)]
        hops = {4: [0] * (N_OUT + 1), 6: [0] * (N_OUT + 1)}
        for n in range(1, N_OUT + 1):
            hops[4][n], hops[6][n] = 10 + n, 20 + n
            self.speaker.nexthop(10 + n, gateway=f"192.0.2.{16 * n + 2}", oif=oif[n])
            self.speaker.nexthop(20 + n, gateway=f"2001:db8:{n + 1}::2", oif=oif[n])
        want = {}
        for family in (4, 6):
            want[family], octets = fpm_stream(
                self.bench.routes[family], family, hops[family]
            )
            self.speaker.send_raw(octets)
        eventually(
            lambda: all(self.daemon.fpm().get(f"zebra{f}") == want[f] for f in want),
            LOAD_S,
            0.1,
            "all routes are in the FIB",
        )

    def stop(self):
        super().stop()
        if self.speaker:
            self.speaker.close()
        netns.delete(self.netns)


def fpm_stream(path, family, hops):
    """Frames that teach the routes of a file ("PREFIX PORT" a line): (number, octets)."""
    any_prefix, kind = ("0.0.0.0/0", socket.AF_INET) if family == 4 else (
        "::/0", socket.AF_INET6)  # fmt: skip
    octets = 4 if family == 4 else 16
    parts = {}
    for port, nhid in enumerate(hops):
        one = frame(route_message(any_prefix, nhid=nhid))
        parts[str(port)] = (
            one[:PLEN_AT],
            one[PLEN_AT + 1 : DST_AT],
            one[DST_AT + octets :],
        )
    out = []
    with open(path, encoding="ascii") as file:
        for line in file:
            prefix, port = line.split()
            address, length = prefix.split("/")
            head, middle, tail = parts[port]
            packed = socket.inet_pton(kind, address)
            out.append(b"%b%c%b%b%b" % (head, int(length), middle, packed, tail))
    return len(out), b"".join(out)
