#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure packets with MPLS labels in a virtual machine, whose kernel has mpls_router: the kernel
against the daemon, in turns, on the same kind of wires (veth). JSON lines on stdout, a table on
stderr.

    bench_labels_vm.py BUILD_DIR        (options: tests/bench/README.md)

The rates are packets that arrived for each second of CPU time: of the kernel's thread that polls the
receiving veth, and of the daemon's forwarder, with its system calls for AF_PACKET. The forwarder polls
beside its work, so its rate is a lower limit. Without KVM the guest runs emulated code: only the
ratios of one run have a meaning.
"""

import contextlib
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "system"), str(HERE.parent / "vm")]

PLAIN, PUSHED = "198.18.0.0/16", "198.19.0.0/16"
# For each action on a packet: the label of its packets, or the network of their addresses.
WORKS = {"IPv4": PLAIN, "swap": 100, "pop": 101, "push": PUSHED}
MODULES = ("mpls_router", "mpls_iptunnel")
FRAMES = 256
MARK = "bench-labels-vm: "  # start of a line for the program outside the guest


def frames(wire, work):
    """Return frames of 62 octets, or 66 with a label, as flood reads them."""
    from bench.fpm.rig import udp4

    out = b""
    for n in range(FRAMES):
        net = work if isinstance(work, str) else PLAIN
        dst = f"{net.rpartition('.0.')[0]}.{n}.9"
        frame = udp4(wire.mac, wire.port_mac, wire.peer4, dst, 4000 + n)
        if isinstance(work, int):
            frame = frame[:12] + b"\x88\x47" + struct.pack("!I", work << 12 | 0x140) + frame[14:]
        out += struct.pack("!H", len(frame)) + frame
    return out


class Daemon:
    """The daemon as the router."""

    name = "fpm-dataplane"

    def __init__(self, rig):
        from lib import fpm_speaker as fpm

        self.rig, self.far = rig, rig.far
        rig.edit_config("fpm:\n", "mpls:\n  input: all\nfpm:\n")
        rig.fresh()
        rig.connect()
        wan = rig.wires["wan"]
        oif = rig.ifindex(wan)
        messages = [
            fpm.label_message(100, {"via": wan.peer4, "oif": oif, "labels": [200]}),
            fpm.label_message(101, {"via": wan.peer4, "oif": oif}),
        ]
        for nhid, (net, labels) in enumerate(((PLAIN, None), (PUSHED, [300])), 10):
            messages.append(fpm.nexthop_message(nhid, wan.peer4, oif, labels=labels))
            messages.append(fpm.route_message(net, nhid=nhid))
        rig.speaker.send_raw(b"".join(map(fpm.frame, messages)))
        (self.thread,) = [t for t, name in rig.threads().items() if name.startswith("fwd-")]


class Linux:
    """The kernel as the router."""

    name = "Linux"

    def __init__(self, rig):
        from lib import netns
        from bench.fpm.rig import NoCollector
        from linux_router import LinuxRouter

        self.router = LinuxRouter(rig)
        self.router.build()
        self.router.collector.close()  # the collector would read each packet
        self.router.collector = NoCollector()
        self.far, wan = self.router.far, rig.wires["wan"]
        sysctls = {"net.mpls.platform_labels": 1000, "net.mpls.conf.lan0.input": 1}
        self.router.sysctl({**sysctls, "net.ipv4.ip_forward": 1})
        via = f"via inet {wan.peer4} dev wan0"
        for words in (f"100 as 200 {via}", f"101 {via}"):
            netns.command(["ip", "-n", self.router.ctl, "-f", "mpls", "route", "add", *words.split()])
        hop = f"via {wan.peer4} dev wan0"
        self.router.ip(f"route add {PLAIN} {hop}", f"route add {PUSHED} encap mpls 300 {hop}")
        netns.run(self.router.ctl, ["ethtool", "-K", "lan0", "gro", "on"])
        netns.run(self.router.ctl, ["sh", "-c", "echo 1 >/sys/class/net/lan0/threaded"], sysfs=True)
        (self.thread,) = [
            comm.parent.name
            for comm in Path("/proc").glob("[0-9]*/comm")
            if comm.read_text().startswith("napi/lan0-")
        ]
        os.sched_setaffinity(int(self.thread), {rig.own_cpu})


def arrived(namespace):
    """Return the packets that have arrived behind a router."""
    from lib import netns

    return int(netns.run(namespace, ["cat", "/sys/class/net/wan/statistics/rx_packets"], sysfs=True))


def so_far(router):
    """Return (packets that arrived, CPU seconds of the router's thread, time)."""
    stat = Path(f"/proc/{router.thread}/schedstat").read_text(encoding="ascii")
    return arrived(router.far), int(stat.split()[0]) / 1e9, time.monotonic()


def sample(router, path, seconds, cpu):
    """Send for some time. Return the figures of a turn."""
    argv = ["ip", "netns", "exec", router.far, "taskset", "-c", str(cpu)]
    argv += [ROOT / "build/release/tests/flood", "lan", path, str(seconds + 1), "0"]
    with subprocess.Popen(list(map(str, argv)), stdout=subprocess.DEVNULL) as sender:
        time.sleep(0.5)
        before = so_far(router)
        time.sleep(seconds)
        packets, cpu, wall = (b - a for a, b in zip(before, so_far(router)))
        sender.wait()
    if packets == 0:
        raise RuntimeError(f"{router.name}: no packet was forwarded, in {cpu} s of its thread")
    return {"kpps": packets / cpu / 1e3, "came_kpps": packets / wall / 1e3, "cpu": cpu / wall}


def inside(reps, seconds):
    """Measure in the guest."""
    from bench.fpm.rig import Rig
    from lib import netns

    netns.command(["modprobe", "-a", *MODULES])
    with Rig() as rig, contextlib.ExitStack() as undo:
        linux, daemon = Linux(rig), Daemon(rig)
        undo.callback(linux.router.destroy)
        for router in (linux, daemon):
            # The far end takes no part of the measured core.
            netns.run(router.far, ["sh", "-c", "echo 1 >/sys/class/net/wan/queues/rx-0/rps_cpus"], sysfs=True)
        for wire in (*rig.wires.values(), *linux.router.wires.values()):
            wire.sock.close()
        for work, what in WORKS.items():
            path = Path(rig.dir) / f"flood-{work}"
            path.write_bytes(frames(rig.wires["lan"], what))
            turns = {router.name: [] for router in (linux, daemon)}
            for _ in range(reps):
                for router in (linux, daemon):
                    turns[router.name].append(sample(router, path, seconds, rig.control_cpu))
            for name, rows in turns.items():
                row = {"bench": "labels-vm", "work": work, "program": name}
                print(MARK + json.dumps(row | {k: spread([r[k] for r in rows]) for k in rows[0]}))


def spread(values):
    """Return the median and the range of some values."""
    return {
        "median": round(statistics.median(values), 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
        "n": len(values),
    }


def main(argv):
    """Returns the exit code."""
    from bench import command
    import run
    from fib_report import print_columns

    reps = int(os.environ.get("REPS") or (3 if os.environ.get("QUICK") else 7))
    seconds = float(os.environ.get("SECONDS_A_TURN") or 2)
    if argv[:1] == ["--inside"]:
        inside(reps, seconds)
        return 0
    kernel = run.guest.Kernel(f"{ROOT}/build/vm")
    if not run.can_run("bench-labels-vm: skipped", kernel):
        return 0
    kernel.prepare()
    words = f"REPS={reps} SECONDS_A_TURN={seconds} {sys.executable} {__file__} --inside"
    with contextlib.redirect_stdout(sys.stderr):
        code = run.in_guest(kernel, "bench-labels", words)
    text = Path(f"{ROOT}/build/vm/bench-labels.log").read_text(encoding="utf-8", errors="replace")
    lines = [json.loads(x) for x in re.findall(rf"^{MARK}(.*)$", text, re.M)]
    for line in [*lines, command.line("bench-labels-vm", {"REPS", "QUICK"})]:
        print(json.dumps(line), flush=True)
    rows = {(x["work"], x["program"]): x for x in lines}
    table = [("kpps of a core", "Linux", "fpm-dataplane", "ratio", "arrived: Linux", "fpm-dataplane")]
    for work in WORKS:
        both = [rows.get((work, name)) for name in ("Linux", "fpm-dataplane")]
        if all(both):
            rates = [x["kpps"] for x in both]
            cells = [f"{r['median']:,} ({r['min']:,}..{r['max']:,})" for r in rates]
            ratio = f"{rates[1]['median'] / rates[0]['median']:.2f}"
            table.append((work, *cells, ratio, *(f"{x['came_kpps']['median']:,}" for x in both)))
    print_columns(table, sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] if sys.argv[1:2] == ["--inside"] else []))
