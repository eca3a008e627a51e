# SPDX-License-Identifier: BSD-3-Clause
"""Measure frames that a process on another core sends through shared memory (memif), like another
machine. The measured program finds them in the other core's cache, and copies them."""

import time
from pathlib import Path

from forward import rig
from forward.measure import summary
from forward.page import LOOK, TSC_HZ
from forward.programs import Ours, Program, Testpmd
from lib.wait import eventually

MAC = "02:00:00:00:00:01"  # of net_bench port 0, the destination of the frames


class Sender(Program):
    """testpmd io on the other core. It forwards from a net_bench port to a memif."""

    def __init__(self, name, bench):
        super().__init__(name, bench)
        self.socket = bench.plugin_dir / f"{name}.sock"

    def launch(self):
        bench = self.bench
        argv = ["dpdk-testpmd", "--lcores", f"0@{bench.other_cpu},1@{bench.other_cpu}"]
        argv += ["--in-memory", "--no-pci", "--no-telemetry", "-d", str(bench.plugin)]
        argv += ["--vdev", self.vdev(0)]
        argv += ["--vdev", f"net_memif0,role=server,{words(self.socket)}"]
        argv += ["--", "--forward-mode=io", "--nb-cores=1", "--burst=64"]
        self.spawn([*argv, "--total-num-mbufs=16384", "--no-mlockall"])


def words(socket):
    """Return the devargs that both ends have."""
    return f"socket={socket},socket-abstract=no,rsize=11"


class OverMemif:
    """A program whose port 0 is the other end of a sender's memif."""

    worker = None  # end of the forwarding thread's name

    def vdev(self, n, more=""):
        if n != 0:
            return super().vdev(n, more)
        return f"net_memif0,role=client,mac={MAC},{words(self.sender.socket)}"

    def launch(self):
        super().launch()
        # The page has no thread, because the net_bench port is the sender's.
        tid = eventually(self.thread, 20, 0.05, f"{self.name} has its threads")
        self.page.thread_is(tid)

    def thread(self):
        """Return the thread that forwards, or None if it does not exist yet."""
        self.alive()
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text().strip().endswith(self.worker):
                return int(task.name)
        return None


class OursMemif(OverMemif, Ours):
    """Our daemon."""

    worker = "fwd-0"

    def __init__(self, name, bench, sender):
        super().__init__(name, bench, idle="poll")
        self.sender = sender


class TestpmdMemif(OverMemif, Testpmd):
    """testpmd io, which reads no packet."""

    def __init__(self, name, bench, sender):
        super().__init__(name, bench, "io")
        self.sender, self.worker = sender, "worker-1"


def sample(program, seconds, check=0):
    """Return Mpps by the wall clock and cycles a packet. The cycles include empty polls, because
    the sender may be the slower program."""
    with program.sender.awake() as source, program.awake() as page:
        page.begin(4, check=check)
        source.begin(4)
        time.sleep(0.1)
        before, cpu, begin = page.counts(), program.cpu_s(), time.monotonic()
        time.sleep(seconds)
        after, cpu = page.counts(), program.cpu_s() - cpu
        wall = time.monotonic() - begin
        hz = source.get(TSC_HZ, "Q")
    program.alive()
    took = {k: after[k] - before[k] for k in after}
    packets = max(1, took["tx"])
    return {"mpps": packets / wall / 1e6, "cycles": hz * cpu / packets, "cpu": cpu / wall,
            **{k: took[k] for k in ("tx", "wrong_port", "wrong_header")}}  # fmt: skip


def measure(bench):
    """Measure the dataplane and testpmd io, each with its own sender, in turns."""
    if bench.other_cpu == bench.cpu:
        bench.skip("memif", "one core only")
        return
    bench.use("full")
    senders = [Sender(f"sender{i}", bench) for i in range(2)]
    programs = [
        OursMemif("ours-memif", bench, senders[0]),
        TestpmdMemif("testpmd-memif", bench, senders[1]),
    ]
    with rig.Started(bench, senders), rig.Started(bench, programs) as running:
        seen = {p: [] for p in running}
        for _ in range(bench.reps):
            for program in running:
                seen[program].append(sample(program, bench.seconds))
        for program, samples in seen.items():
            row = {"bench": "forward", "table": "full", "traffic": "v4 by memif"}
            row |= {"program": program.name, "len": bench.frame_len} | summary(samples)
            if program.looks_up:
                checked = sample(program, 0.2, LOOK)
                row |= {k: checked[k] for k in ("tx", "wrong_port", "wrong_header")}
            bench.emit(row)
