# SPDX-License-Identifier: BSD-3-Clause
"""Load a full table by BGP through real bgpd and zebra. Measure the time from zebra's last octet
until the FIB is complete, and FRR's own time: that of the same load with a listener that discards
zebra's octets."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from bench.fpm.figures import spread
from lab.lab import Lab
from lib import netns, procs
from lib.dut import Control
from lib.wait import eventually

FPM_PORT = 2620
QUIET_S = 2.0  # seconds without an octet after which zebra has sent everything
LOAD_S = 240


class Sink:
    """A listener like the dataplane that discards zebra's octets."""

    def __init__(self, namespace):
        self.listener = netns.open_socket(namespace, socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", FPM_PORT))
        self.listener.listen(1)
        self.octets, self.first, self.last = 0, None, None
        self.sessions, self._ends, self._hang_up = 0, False, False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        buffer = bytearray(1 << 20)
        while not self._ends:
            if not select.select([self.listener], [], [], 0.2)[0]:
                continue
            peer, _ = self.listener.accept()
            self.octets, self.first = 0, None
            self.sessions += 1
            with peer:
                self._drain(peer, buffer)

    def _drain(self, peer, buffer):
        while not self._ends and not self._hang_up:
            if not select.select([peer], [], [], 0.2)[0]:
                continue
            n = peer.recv_into(buffer)
            if n == 0:
                return
            self.last = time.monotonic()
            self.first = self.first or self.last
            self.octets += n
        self._hang_up = False

    def again(self):
        """End the session, so that zebra connects again and sends everything again."""
        before, self._hang_up = self.sessions, True
        eventually(lambda: self.sessions > before, 20, what="zebra connects again")

    def quiet(self):
        """Return True if zebra has sent octets, and none for QUIET_S."""
        return self.first is not None and time.monotonic() - self.last > QUIET_S

    def close(self):
        """Stop listening."""
        self._ends = True
        self._thread.join()
        self.listener.close()


class Load:
    """A lab whose isp announces n4 + n6 routes on request, while zebra is connected over FPM."""

    def __init__(self, n4, n6, sink):
        self.n4, self.n6 = n4, n6
        self.lab = Lab(f"bench{os.getpid()}")
        self.with_sink, self.sink, self.control = sink, None, None

    def __enter__(self):
        lab = self.lab
        try:
            lab.create()
            lab.start_isp(self.n4, self.n6)
            eventually(lambda: lab.isp("disconnect"), 60, 0.1, "isp is there")
            self._dataplane()
            if self.with_sink:
                self.sink = Sink(lab.ns["r1"])
            lab.r1.start()
            self.control = Control(lab.socket)
            eventually(self._connected, 20, 0.1, "zebra connects")
            time.sleep(QUIET_S)  # zebra sends the routes of the lab's own links
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        if self.sink:
            self.sink.close()
        if self.control:
            self.control.close()
        self.lab.down()
        self.lab.unlock()

    def _dataplane(self):
        """Start the daemon, which makes the TAPs. With a sink it listens on another port."""
        lab, port = self.lab, FPM_PORT + 1 if self.with_sink else FPM_PORT
        lab.write_dataplane_config()
        with open(lab.dp.config, encoding="utf-8") as file:
            text = file.read()
        with open(lab.dp.config, "w", encoding="utf-8") as file:
            file.write(text.replace(f"127.0.0.1:{FPM_PORT}", f"127.0.0.1:{port}"))
        lab.dp.start()

    def _connected(self):
        if self.sink:
            return self.sink.first
        return self.fpm()["messages"]

    def fpm(self):
        """Return all rows of `show fpm` as one."""
        merged = {}
        for row in self.control.ask("fpm"):
            merged.update(row)
        return merged

    def established(self):
        """Return the time when the last BGP session was established (monotonic)."""
        with open(self.lab.path("isp.log"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.startswith("{")]
        return [row["t"] for row in rows if row["event"] == "established"][-1]

    def zebra_last_s(self):
        """Return the time when zebra last gave its kernel an octet for FPM (monotonic, accurate to
        some ms)."""
        begin = time.monotonic()
        text = netns.run(
            self.lab.ns["r1"],
            ["ss", "-tinH", "state", "established", f"dport = :{FPM_PORT}"],
        )
        ages = [int(ms) for ms in re.findall(r"lastsnd:(\d+)", text)]
        return (begin + time.monotonic()) / 2 - min(ages) / 1000

    def whole(self, base):
        """Return True if all announced routes are in force."""
        row = self.fpm()
        return (row["zebra4"] - base[0], row["zebra6"] - base[1]) == (self.n4, self.n6)

    def cpu_s(self):
        """Return the CPU seconds by program: FRR's and the dataplane's."""
        found = {}
        for pid in procs.marked(self.lab.dir):
            name = procs.comm(pid)
            if name in ("zebra", "bgpd", "fpm-dataplane"):
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    fields = file.read().rpartition(")")[2].split()
                ticks = int(fields[11]) + int(fields[12])
                found[name] = found.get(name, 0) + ticks / os.sysconf("SC_CLK_TCK")
        return found

    def run(self):
        """Announce the routes. Return the measured values."""
        base = None
        if not self.sink:
            row = self.fpm()
            base = (row["zebra4"], row["zebra6"])
        before = self.cpu_s()
        self.lab.isp("connect")
        seen = self._watch_sink() if self.sink else self._watch_fib(base)
        after = self.cpu_s()
        seen["cpu_s"] = {k: round(after[k] - before.get(k, 0), 2) for k in after}
        return seen if self.sink else {**seen, **self.audit()}

    def audit(self):
        """Measure how long the comparison of zebra, RIB and FIB takes, and how many packets are
        lost meanwhile."""
        lab = self.lab
        host = lab.isp("sample", count=1, seed=1)["ipv4"][0]["host"]
        echo = ["ping", "-n", "-q", "-i", "0.002", host]
        argv = [lab.dp.ctl, "-s", lab.socket, "audit"]
        argv += ["--vtysh", " ".join(lab.r1.vtysh_argv())]
        with netns.entered(lab.ns["lan"]):
            ping = subprocess.Popen(echo, stdout=subprocess.PIPE, text=True)
        with ping:
            begin = time.monotonic()
            code = subprocess.run(argv, stdout=sys.stderr, check=False).returncode
            seconds = time.monotonic() - begin
            ping.send_signal(signal.SIGINT)
            text = ping.communicate()[0]
        sent, came = map(int, re.search(r"(\d+) packets.*, (\d+) received", text).groups())
        return {"audit_s": seconds, "audit_code": code, "echoes": sent, "lost": sent - came}

    def _watch_sink(self):
        octets = self.sink.octets
        eventually(lambda: self.sink.octets > octets + 40 * self.n4, LOAD_S, 0.1)
        eventually(self.sink.quiet, LOAD_S, 0.1, "zebra is silent")
        last = self.sink.last - self.established()
        self.sink.again()
        eventually(lambda: self.sink.octets > 40 * self.n4, 60, 0.1, "a replay")
        eventually(self.sink.quiet, 60, 0.1, "zebra is silent")
        seconds = self.sink.last - self.sink.first
        rate = (self.n4 + self.n6) / seconds
        return {"last_octet_s": last, "replay_routes_s": rate}

    def _watch_fib(self, base):
        # Look rarely during the load, because each look costs rib time, and often at the end.
        want = self.n4 + self.n6 - 2000

        def nearly():
            row = self.fpm()
            return row["zebra4"] + row["zebra6"] > want

        eventually(nearly, LOAD_S, 0.02, "most routes are there")
        eventually(lambda: self.whole(base), 30, 0.0005, "all routes are there")
        visible = time.monotonic()
        last = self.zebra_last_s()
        return {
            "last_octet_s": last - self.established(),
            "visible_s": visible - self.established(),
            "lag_ms": (visible - last) * 1000,
            "queue_high_mib": self.fpm()["queue_high_bytes"] / 2**20,
        }


def bgp(n4, n6, reps):
    """Yield the JSON objects of the load, first with the sink, then with the dataplane."""
    for bench, sink in (("bgp-sink", True), ("bgp", False)):
        runs = []
        for _ in range(reps):
            with Load(n4, n6, sink) as load:
                runs.append(load.run())
        row = {"bench": bench, "routes": n4 + n6}
        if not sink:
            row |= {"unit": "ms", **spread([run["lag_ms"] for run in runs], 1)}
        for key in (
            *("last_octet_s", "visible_s", "replay_routes_s", "queue_high_mib"),
            *("audit_s", "audit_code", "echoes", "lost"),
        ):
            if key in runs[0]:
                row[key] = spread([run[key] for run in runs])
        row["cpu_s"] = {
            name: round(sum(run["cpu_s"][name] for run in runs) / reps, 2)
            for name in sorted(runs[0]["cpu_s"])
        }
        yield row
