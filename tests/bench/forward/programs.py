# SPDX-License-Identifier: BSD-3-Clause
"""The programs that a forwarding benchmark compares: each a process with one generator port
and N_OUT ports that swallow, pinned to its cores, each with a queue of the generator's, and a page
to talk to its ports (page.h).

All of them are started before the first measurement; all but the one that is measured are
stopped (SIGSTOP), so that runs can take turns although a full table takes long to load.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

from forward.page import Page
from forward.teacher import Teacher
from lib import netns
from lib.dataplane import Dataplane
from lib.wait import eventually

N_OUT = 4
LOAD_S = 240


class Program:
    """One process. Subclasses say how it is started and when it is loaded."""

    families = (4, 6, 0)  # what it can be measured on; 0: mixed
    looks_up = True

    def __init__(self, name, bench, n_cores=1):
        self.name, self.bench = name, bench
        self.cpus = bench.cpus[:n_cores]
        self.page = Page(bench.dir / f"{name}.page")
        self.log = bench.dir / f"{name}.log"
        self.process = None

    def vdev(self, n, more=""):
        """Devargs of port n: 0 receives."""
        if n == 0:
            for family in (4, 6):
                path = self.bench.frames.get(family)
                more += f",frames{family}={self.bench.near(path)}" if path else ""
            more += f",len={self.bench.frame_len}"
        return f"net_bench{n},page={self.bench.near(self.page.path)},n={n}{more}"

    def eal(self, cores, n_ports):
        """Arguments of the EAL for programs that take them."""
        argv = ["--lcores", cores, "--in-memory", "--no-pci", "--no-telemetry"]
        argv += ["-d", str(self.bench.plugin), "--force-max-simd-bitwidth=512"]
        for n in range(n_ports):
            argv += ["--vdev", self.vdev(n)]
        return argv

    def spawn(self, argv):
        """Start it, stdin open for those who end when it closes."""
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
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
            lambda: self.alive() and len(self.page.tids()) == len(self.cpus),
            LOAD_S,
            0.05,
            f"{self.name} polls",
        )
        self.prefer()
        self.load()
        self.process.send_signal(signal.SIGSTOP)

    def prefer(self):
        """Where every CPU has work, the scheduler would give strangers a part of this one."""
        for tid in self.page.tids():
            os.setpriority(os.PRIO_PROCESS, tid, -20)
        group = Path(f"/proc/{self.process.pid}/autogroup")
        if group.exists():  # niceness counts within a session only
            group.write_text("-20", encoding="ascii")

    def load(self):
        """Teach it the routes, if that is done while it runs."""

    def cpu_s(self):
        """Seconds that a forwarding thread has had a CPU, their mean."""
        tids = self.page.tids()
        return sum(cpu_s(self.task / str(tid)) for tid in tids) / len(tids)

    def process_cpu_s(self):
        """Seconds that all its threads have had a CPU."""
        return sum(cpu_s(task) for task in self.task.iterdir())

    @property
    def task(self):
        """Where its threads are."""
        return Path(f"/proc/{self.process.pid}/task")

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


def cpu_s(task):
    """Seconds on a CPU, of a thread's folder."""
    return int((task / "schedstat").read_text().split()[0]) / 1e9


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

    def __init__(self, name, bench, mode, n_cores=1):
        super().__init__(name, bench, n_cores)
        self.mode = mode

    def launch(self):
        n = len(self.cpus)
        # Its first core only waits for a command, wherever there is room.
        cores = [f"0@{self.bench.other_cpu}"]
        cores += [f"{1 + i}@{cpu}" for i, cpu in enumerate(self.cpus)]
        argv = ["dpdk-testpmd", *self.eal(",".join(cores), 2), "--"]
        argv += [f"--forward-mode={self.mode}", f"--nb-cores={n}", "--burst=64"]
        argv += [f"--rxq={n}", f"--txq={n}", f"--total-num-mbufs={8192 * (1 + n)}"]
        self.spawn([*argv, "--no-mlockall"])


class L3fwd(Program):
    """l3fwd of Debian's DPDK source, with its limits raised."""

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
        queues = ",".join(f"(0,{i},{cpu})" for i, cpu in enumerate(self.cpus))
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
        self.daemon.preferred = False  # nor is any other program that is measured
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
