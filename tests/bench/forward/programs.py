# SPDX-License-Identifier: BSD-3-Clause
"""Run the programs that a forwarding benchmark compares. Each is a process with one generator port
and N_OUT ports that free packets. It is pinned to its cores, each with a queue of the generator.
It has a page by which the benchmark controls its ports (page.h).

All programs are started before the first measurement. All but the measured one are stopped
(SIGSTOP), so that runs can take turns although a full table takes long to load.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import command
from forward.page import Page
from forward.teacher import Teacher
from lib import netns
from lib.dataplane import Dataplane
from lib.wait import eventually

N_OUT = 4
# By command.limit(): the vector widths of the other programs. Code for x86-64-v2 has vectors of 128 bits, in l3fwd
# too; only the dataplane's scalar code has none.
SIMD_BITS = {"avx512": 512, "avx2": 256, "sse4": 128, "scalar": 128}
LOAD_S = 240


def isa():
    """Return the option ISA: the widest instructions that all programs may use; "": all."""
    command.limit()
    return os.environ.get("ISA", "")


class Program:
    """A process. Subclasses define how it is started and when it is loaded."""

    families = (4, 6, 0)  # traffic that it can be measured with; 0: mixed
    looks_up = True

    def __init__(self, name, bench, n_cores=1):
        self.name, self.bench = name, bench
        self.cpus = bench.cpus[:n_cores]
        self.page = Page(bench.dir / f"{name}.page")
        self.log = bench.dir / f"{name}.log"
        self.process = None

    def vdev(self, n, more=""):
        """Return the devargs of port n. Port 0 receives."""
        if n == 0:
            for family in (4, 6):
                path = self.bench.frames.get(family)
                more += f",frames{family}={self.bench.near(path)}" if path else ""
            more += f",len={self.bench.frame_len}"
        return f"net_bench{n},page={self.bench.near(self.page.path)},n={n}{more}"

    def eal(self, cores, n_ports):
        """Return the arguments of the EAL, for programs that take them."""
        argv = ["--lcores", cores, "--in-memory", "--no-pci", "--no-telemetry"]
        argv += ["-d", str(self.bench.plugin), f"--force-max-simd-bitwidth={SIMD_BITS[command.limit()]}"]
        for n in range(n_ports):
            argv += ["--vdev", self.vdev(n)]
        return argv

    def spawn(self, argv):
        """Start the process. Its stdin stays open, because some programs end when it closes."""
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def alive(self):
        """Return True while the process runs. Raises ProgramError if it has ended."""
        if self.process.poll() is not None:
            last = self.log.read_text(errors="replace").splitlines()[-3:]
            raise ProgramError(f"{self.name} ended: {' / '.join(last)}")
        return True

    def start(self):
        """Start the process, load it, and stop it by SIGSTOP."""
        self.launch()
        eventually(
            lambda: self.alive() and len(self.page.tids()) == len(self.cpus),
            LOAD_S,
            0.05,
            f"{self.name} polls",
        )
        self.prefer()
        self.load()
        self.process.send_signal(signal.SIGSTOP)

    def prefer(self):
        """Raise the priority of the forwarding threads. If every CPU has work, the scheduler would
        give a part of this CPU to other programs."""
        for tid in self.page.tids():
            os.setpriority(os.PRIO_PROCESS, tid, -20)
        group = Path(f"/proc/{self.process.pid}/autogroup")
        if group.exists():  # niceness counts only within a session
            group.write_text("-20", encoding="ascii")

    def load(self):
        """Send the routes to the program, if it gets them while it runs."""

    def cpu_s(self):
        """Return the mean CPU time of the forwarding threads, in seconds."""
        tids = self.page.tids()
        return sum(cpu_s(self.task / str(tid)) for tid in tids) / len(tids)

    def process_cpu_s(self):
        """Return the CPU time of all threads, in seconds."""
        return sum(cpu_s(task) for task in self.task.iterdir())

    @property
    def task(self):
        """Return the folder of the threads in /proc."""
        return Path(f"/proc/{self.process.pid}/task")

    def awake(self):
        """Return a context in which this process runs and the others do not."""
        return Awake(self)

    def stop(self):
        """End the process."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def cpu_s(task):
    """Return the CPU time of a thread, given its folder in /proc, in seconds."""
    return int((task / "schedstat").read_text().split()[0]) / 1e9


class ProgramError(BaseException):
    """A program ended by itself. This is no Exception, so that eventually() does not retry."""


class Awake:
    """Let one program run for the time of a with block."""

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        self.program.process.send_signal(signal.SIGCONT)
        return self.program.page

    def __exit__(self, *exc):
        self.program.page.end()
        time.sleep(0.01)  # the program sends the packets that it holds
        self.program.process.send_signal(signal.SIGSTOP)


class Testpmd(Program):
    """dpdk-testpmd of Debian, with one input and one output."""

    families = (4,)
    looks_up = False

    def __init__(self, name, bench, mode, n_cores=1):
        super().__init__(name, bench, n_cores)
        self.mode = mode

    def launch(self):
        n = len(self.cpus)
        # The first core only waits for a command. Give it another CPU if there is one.
        cores = [f"0@{self.bench.other_cpu}"]
        cores += [f"{1 + i}@{cpu}" for i, cpu in enumerate(self.cpus)]
        argv = ["dpdk-testpmd", *self.eal(",".join(cores), 2), "--"]
        argv += [f"--forward-mode={self.mode}", f"--nb-cores={n}", "--burst=64"]
        argv += [f"--rxq={n}", f"--txq={n}", f"--total-num-mbufs={8192 * (1 + n)}"]
        self.spawn([*argv, "--no-mlockall"])


class L3fwd(Program):
    """l3fwd of Debian's DPDK source, with higher limits."""

    def __init__(self, name, bench, lookup, program, only4=False, n_cores=1):
        super().__init__(name, bench, n_cores)
        self.lookup, self.program = lookup, program
        self.rules = dict(bench.rules)
        if only4:
            self.rules[6] = bench.dir / "few-l3fwd6"
            self.families = (4,)

    def launch(self):
        cores = ",".join(map(str, self.cpus))
        argv = [str(self.program), *self.eal(cores, N_OUT + 1), "--"]
        argv += ["-p", hex((1 << (N_OUT + 1)) - 1), "-P", f"--lookup={self.lookup}"]
        # Each core receives from all ports, as in the dataplane: a router cannot know which are
        # silent.
        queues = ",".join(
            f"({port},{i},{cpu})"
            for i, cpu in enumerate(self.cpus)
            for port in range(N_OUT + 1)
        )
        argv += [f"--config={queues}"]
        argv += [f"--rule_ipv{f}={self.rules[f]}" for f in (4, 6)]
        for n in range(1, N_OUT + 1):
            argv += [f"--eth-dest={n},02:00:00:00:{n:02x}:02"]
        self.spawn(argv)


CONFIG = """\
ports:
{ports}
cores: {cpus}
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
    """fpm-dataplane as a user runs it: TAPs, static neighbors, routes over FPM."""

    def __init__(self, name, bench, idle="adaptive", more="", build=None, n_cores=1):
        super().__init__(name, bench, n_cores)
        self.netns = f"fdp-bench-{os.getpid()}-{name}"
        self.idle, self.more = idle, more
        self.daemon = Dataplane(
            None,
            str(bench.dir / f"{name}.yaml"),
            str(bench.near(bench.dir / f"{name}.sock")),
            str(self.log),
            str(bench.dir),
            build,
        )
        self.daemon.preferred = False  # no measured program is preferred
        self.teacher = Teacher(
            self.daemon, self.netns, N_OUT, dict(bench.routes), bench.frames[4]
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
                cpus=self.cpus,
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
        self.teacher.load(LOAD_S)

    def stop(self):
        super().stop()
        self.teacher.close()
        netns.delete(self.netns)
