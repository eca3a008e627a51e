#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure BFD with a real FRR and BIRD as all its peers: sessions that go down while busy programs
have the CPUs, and the time from the last packet of a peer to the session's Down. Both are measured
with the sessions in the dataplane and with the sessions in bfdd over the TAP. BIRD has a real-time
priority, because it stands for other machines. (bfdd as the peer needs a whole CPU for 64 sessions
of 10 ms.) Then measure the time from the first Down to the last packet by the dead next hop of a
group that all routes of a full table use. JSON lines on stdout, tables on stderr.

    bench_bfd.py BUILD_DIR        (options: tests/bench/README.md)
"""

import contextlib
import datetime
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "system")]

import command  # noqa: E402
import full_table  # noqa: E402
import pauses  # noqa: E402
from fib_report import print_columns  # noqa: E402
from lab import routes  # noqa: E402
from lib import fpm_speaker as fpm  # noqa: E402
from lib import bird, frr_at, machine, netns  # noqa: E402
from lib.bird import Bird  # noqa: E402
from lib.dut import Dut  # noqa: E402
from lib.wait import eventually  # noqa: E402
from router import Router, running  # noqa: E402

OPTIONS = {"QUICK", "SESSIONS", "INTERVAL", "SECONDS", "BUSY", "MODES", "FRR", "ROUTES", "REPS"}
PORT = 50700
# A pair of addresses for each session: bfdd has one session with an address by an interface.
OURS, PEERS = "10.198", "10.199"
CONTROL = (3784).to_bytes(2, "big")
DOWN = 1
FLOWS = 512
FULL = "1000000"
NET, HOST = "198.51.100.0/24", "198.51.100.9"
PAUSE_S = 0.015  # both sides have 20 ms before a session of 3 x 10 ms is lost
PEER_DIED = 2  # seconds that are watched after the peer has stopped


def option(name, default):
    """Return the value of an option as text."""
    return os.environ.get(name) or default


def address(net, i):
    return f"{net}.{i // 250}.{1 + i % 250}"


def sessions(pairs, device, milliseconds):
    """Return the configuration of bfdd with a session for each (peer, local address)."""
    lines = ["bfd"]
    for peer, local in pairs:
        lines += [
            f" peer {peer} local-address {local} interface {device}",
            f"  transmit-interval {milliseconds}",
            f"  receive-interval {milliseconds}",
            " exit",
        ]
    return "\n".join([*lines, "exit"]) + "\n"


def peers(pairs, milliseconds):
    """Return the configuration of BIRD with the peers of these pairs."""
    lines = ["router id 192.0.2.2;", "protocol device {}", "protocol bfd {"]
    lines += [f'  interface "wan" {{ interval {milliseconds} ms; multiplier 3; }};']
    lines += [f'  neighbor {ours} dev "wan" local {theirs};' for ours, theirs in pairs]
    return "\n".join([*lines, "}"]) + "\n"


class Bed:
    """Our router with its bfdd, and the peers, which are one BIRD."""

    def __init__(self, router, mode, n, milliseconds):
        self.router, self.mode, self.n = router, mode, n
        root = {"": "/", "newer": frr_at.NEWER}[option("FRR", "")]
        self.ours = frr_at.FrrAt(root, router.ctl, f"{router.dir}/ours")
        pairs = [(address(OURS, i), address(PEERS, i)) for i in range(n)]
        netns.ip_batch([f"addr add {a}/15 dev wan0" for a, _ in pairs], router.ctl)
        netns.ip_batch(["link set lo up", *(f"addr add {a}/15 dev wan" for _, a in pairs)], router.far)
        words = ["--dplaneaddr", f"ipv4:127.0.0.1:{PORT}"] if mode == "dataplane" else []
        self.ours.start_all("bfdd", bfdd=words)
        config = f"{router.dir}/bird.conf"
        Path(config).write_text(peers(pairs, milliseconds), encoding="ascii")
        self.peer = Bird(router.far, config, f"{router.dir}/bird", router.dir)
        self.peer.start()
        self.pid = self.peer.pid()
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(50))
        self.ours.load(sessions([(b, a) for a, b in pairs], "wan0", milliseconds))
        self.version = ".".join(str(n) for n in self.ours.version)

    def up(self):
        """Return how many sessions the peers have Up."""
        said = self.peer.birdc("show", "bfd", "sessions")
        return sum(line.split()[2:3] == ["Up"] for line in said.splitlines())

    def downs(self):
        """Return how often sessions have gone down, by our or the peer's detection."""
        return sum(
            row["session-down"] for row in self.ours.json("show bfd peers counters json")
        )

    def close(self):
        self.ours.destroy()
        self.peer.stop()


@contextlib.contextmanager
def bed(mode, n, milliseconds):
    router = Router(name=f"bfd-{mode}"[:8], supervised=True)
    with running(router):
        router.stop()
        router.zebra.close()
        if mode == "dataplane":
            router.edit_config(
                "log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info'
            )
        Dut.start(router)
        # The lab of the tests gives the daemon a larger weight; the systemd unit does not.
        machine.prefer([router.daemon.pid()], 0)
        both = Bed(router, mode, n, milliseconds)
        try:
            eventually(lambda: both.up() == n, 60, 0.5, "all sessions are up")
            yield both
        finally:
            both.close()


class Churn(threading.Thread):
    """Load and withdraw a full table over FPM, again and again, until stop()."""

    def __init__(self, router, n_routes):
        super().__init__()
        self.router, self.n_routes, self.ends = router, n_routes, threading.Event()
        router.zebra.connect()
        wire, table = router.wires["alt"], routes.table4(n_routes)
        hop = [router.zebra.hop(wire.peer4, wire)]
        self.streams = [(n_routes, fpm.table_stream(table, 4, hop)),
                        (0, fpm.table_stream(table, 4, hop, delete=True))]  # fmt: skip
        self.turns = 0

    def run(self):
        while not self.ends.is_set():
            for count, octets in self.streams:
                full_table.send(self.router.zebra.speaker, octets)
                eventually(lambda: self.router.fpm()["zebra4"] == count, 120, 0.1, "routes")  # noqa: B023
            self.turns += 1

    def stop(self):
        self.ends.set()
        self.join()
        self.router.zebra.close()


@contextlib.contextmanager
def load(both, programs):
    """Run busy programs, and the load of a full table with them, for the length of a with block."""
    churn = Churn(both.router, int(option("ROUTES", FULL))) if programs else None
    busy = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(programs)]
    try:
        if churn:
            churn.start()
        yield churn
    finally:
        for program in busy:
            program.kill()
            program.wait()
        if churn:
            churn.stop()


def down_times(log_file):
    """Return the times (monotonic) at which sessions of the dataplane went down, by its log."""
    shift = time.time() - time.monotonic()
    with open(log_file, encoding="utf-8", errors="replace") as file:
        said = [line.split()[0] for line in file if " W bfd: session down " in line]
    return [datetime.datetime.fromisoformat(when).timestamp() - shift for when in said]


def hold(both, seconds, programs):
    """Let the sessions stay for some time. Return how many went down, how many of them when this
    machine had not paused in the half second before (None: not known), and the pauses. The load
    must not have ended before."""
    before, begin = both.downs(), time.monotonic()
    with pauses.watched(PAUSE_S) as watch:
        with load(both, programs) as churn:
            time.sleep(seconds)
            assert churn is None or churn.is_alive(), "the load of full tables has ended"
        downs, found = both.downs() - before, watch.all()
        alone = None
        if both.mode == "dataplane":
            times = [when for when in down_times(both.router.log_file) if when > begin]
            alone = sum(not watch.near(when, 0.5) for when in times)
    return downs, alone, [took for _, took, _ in found]


def captured(path):
    """Return (time, source, target, state) of each packet of a capture. `state` is that of a control
    packet of BFD, and None for other packets."""
    data = Path(path).read_bytes()
    at, found = 24, []
    while at + 16 <= len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        if frame[12:14] == b"\x08\x00" and len(frame) > 43:
            source, target = (".".join(map(str, frame[i : i + 4])) for i in (26, 30))
            state = frame[43] >> 6 if frame[36:38] == CONTROL else None
            found.append((seconds + nanoseconds / 1e9, source, target, state))
    return found


@contextlib.contextmanager
def capture(router, rule):
    """Capture packets of the wire to the peers for the length of a with block. Yields a function
    that ends the capture and returns the packets."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/wan.pcap"
        argv = ["tcpdump", "-i", "wan", "-w", path, "-U", "-B", "16384"]
        argv += ["--time-stamp-precision=nano", rule]
        tcpdump = subprocess.Popen(
            ["ip", "netns", "exec", router.far, *argv], stderr=subprocess.DEVNULL
        )

        def end():
            tcpdump.send_signal(signal.SIGINT)
            tcpdump.wait()
            return captured(path)

        try:
            eventually(lambda: Path(path).exists() and captured(path), 20, 0.1, "packets")
            yield end
        finally:
            tcpdump.kill()
            tcpdump.wait()


def detection(both, programs):
    """Stop the peer. Return the time from the last packet of each peer to our first Down, in
    milliseconds."""
    with load(both, programs), capture(both.router, "udp port 3784") as end:
        time.sleep(1)
        os.kill(both.pid, signal.SIGSTOP)
        time.sleep(PEER_DIED)
        packets = end()
        os.kill(both.pid, signal.SIGCONT)
    last, down = {}, {}
    for when, source, target, state in packets:
        if source.startswith(PEERS):
            last[source] = when
        elif state == DOWN:
            down.setdefault(target, when)
    return sorted(1e3 * (down[a] - last[a]) for a in last if a in down)


class Sender(threading.Thread):
    """Send packets of many flows into a wire until stop()."""

    def __init__(self, wire, frames):
        super().__init__()
        self.wire, self.frames, self.ends = wire, frames, threading.Event()

    def run(self):
        while not self.ends.is_set():
            for frame in self.frames:
                self.wire.sock.send(frame)

    def stop(self):
        self.ends.set()
        self.join()


def move(both):
    """Let the peer die once. Return the time from our first Down to the last packet that left by the
    peer as its next hop, in microseconds (0: no packet left after the Down), and the number of
    packets that left after the Down."""
    router = both.router
    eventually(lambda: both.up() == both.n, 60, 0.5, "the session is up")
    eventually(lambda: router.all_alive(NET), 20, 0.1, "both next hops are used")
    frames = router.wires["lan"].flow_frames(HOST, [(4000 + i, 4001) for i in range(FLOWS)])
    sender = Sender(router.wires["lan"], frames)
    with capture(router, "udp port 3784 or udp port 4001") as end:
        sender.start()
        time.sleep(0.5)
        os.kill(both.pid, signal.SIGSTOP)
        time.sleep(0.5)
        sender.stop()
        packets = end()
        os.kill(both.pid, signal.SIGCONT)
    down = next(when for when, source, _, state in packets
                if state == DOWN and source.startswith(OURS))  # fmt: skip
    late = [when - down for when, _, _, state in packets if state is None and when > down]
    early = sum(state is None and when < down for when, _, _, state in packets)
    assert early > FLOWS, "the next hop had packets"
    return 1e6 * max(late, default=0), len(late)


def moves(interval, n_routes, reps):
    """Return the times of move() with a table of routes by a group of two next hops."""
    with bed("dataplane", 1, interval) as both:
        router = both.router
        router.zebra.connect()
        wan, alt = router.wires["wan"], router.wires["alt"]
        peer = address(PEERS, 0)
        hops = [router.zebra.hop(peer, wan), router.zebra.hop(alt.peer4, alt)]
        group = router.zebra.group(hops)
        router.zebra.add(NET, group)
        table = fpm.table_stream(routes.table4(n_routes), 4, [group])
        full_table.send(router.zebra.speaker, table)
        eventually(lambda: router.fpm()["zebra4"] > n_routes, 120, 0.2, "all routes are there")
        took = [move(both) for _ in range(reps)]
        router.zebra.close()
        return took


def report(rows, out):
    """Print the rows as a table."""
    table = [("mode", "busy programs", "seconds", "downs", "without a pause", "detected in ms",
              "least to most", "of sessions")]  # fmt: skip
    for r in (r for r in rows if r["bench"] == "bfd"):
        table.append((
            r["mode"], str(r["busy_programs"]), f"{r['seconds']:.0f}",
            str(r["downs"]), "-" if r["downs_without_pause"] is None else str(r["downs_without_pause"]),
            f"{r['detect_ms']:.1f}",
            f"{r['detect_least_ms']:.1f} to {r['detect_most_ms']:.1f}",
            f"{r['detected']} of {r['sessions']}",
        ))  # fmt: skip
    print_columns(table, out)
    for r in (r for r in rows if r["bench"] == "bfd-move"):
        print(f"\n{r['routes']} routes by two next hops, {r['runs']} runs: the last packet by the dead "
              f"one left {r['move_us']:.0f} us (most {r['move_most_us']:.0f} us) after the session's "
              f"first Down; goal 1000 us, aim 100 us", file=out)  # fmt: skip


def main():
    if bird.why_not():
        sys.exit(f"bench_bfd: {bird.why_not()}")
    table = []
    quick = option("QUICK", "0") != "0"
    n, interval = int(option("SESSIONS", "64")), int(option("INTERVAL", "10"))
    seconds = float(option("SECONDS", "10" if quick else "60"))
    for mode in option("MODES", "dataplane,tap").split(","):
        for programs in map(int, option("BUSY", "0,2").split(",")):
            with bed(mode, n, interval) as both:
                downs, alone, paused = hold(both, seconds, programs)
                eventually(lambda: both.up() == n, 60, 0.5, "all sessions are up")  # noqa: B023
                took = detection(both, programs)
            row = {
                "bench": "bfd", "mode": mode, "sessions": n, "interval_ms": interval,
                "busy_programs": programs, "seconds": seconds, "downs": downs,
                "downs_without_pause": alone, "pauses": len(paused),
                "longest_pause_ms": round(1e3 * max(paused, default=0), 1),
                "detected": len(took), "frr": both.version,
                "detect_ms": statistics.median(took), "detect_least_ms": took[0],
                "detect_most_ms": took[-1],
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            table.append(row)
    n_routes, reps = int(option("ROUTES", FULL)), int(option("REPS", "1" if quick else "7"))
    took = moves(interval, n_routes, reps)
    row = {
        "bench": "bfd-move", "routes": n_routes, "runs": reps, "interval_ms": interval,
        "move_us": statistics.median(us for us, _ in took),
        "move_most_us": max(us for us, _ in took), "late": [late for _, late in took],
    }  # fmt: skip
    print(json.dumps(row), flush=True)
    table.append(row)
    print(json.dumps(command.line("bench-bfd", OPTIONS)), flush=True)
    report(table, sys.stderr)


if __name__ == "__main__":
    os.environ.setdefault("BUILD", Path(sys.argv[1]).name)
    main()
