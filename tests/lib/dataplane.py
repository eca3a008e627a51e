# SPDX-License-Identifier: BSD-3-Clause
"""The dataplane for tests: start and stop its process, and ask it with fpmctl."""

import json
import os
import signal

from lib import machine, netns, procs
from lib.wait import PATIENCE, eventually

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class DataplaneError(BaseException):
    """The daemon ended by itself. This is a BaseException, so eventually() does not retry."""


class Dataplane:
    """One fpm-dataplane on a configuration file, in namespace `namespace` (None: here)."""

    def __init__(self, namespace, config, socket, log, mark, build=None, supervised=False):
        self.namespace, self.config, self.socket = namespace, config, socket
        self.log_file, self.mark = log, mark
        self.build = build = build or os.environ.get("BUILD", "release")
        self.program = os.path.join(ROOT, "build", build, "fpm-dataplane")
        self.ctl = os.path.join(ROOT, "build", build, "fpmctl")
        self.supervisor = os.path.join(ROOT, "build", build, "fpm-supervise")
        self.supervised = supervised  # then `process` is the supervisor
        self.supervisor_words = []
        self.options = []  # options of the daemon
        self.within = []  # a command that starts the daemon, such as setpriv with its arguments
        self.preferred = True  # True: the scheduler prefers the daemon to other programs of the machine
        self.process = None

    def start(self, timeout=60):
        """Start the daemon and wait until it answers. In a guest without KVM beside other programs
        the load of DPDK's drivers alone takes a minute."""
        argv = [self.program, "-c", self.config, *self.options]
        if self.supervised:
            words = ["--start", f"{90 * max(PATIENCE, 1):.0f}", *self.supervisor_words]
            argv = [self.supervisor, *words, *argv]
        argv = [*self.within, *argv]
        self.process = procs.start(argv, self.mark, self.log_file, self.namespace)
        if self.preferred:
            machine.prefer([self.process.pid])
        eventually(self._ready, timeout, what="fpm-dataplane answers fpmctl")

    def stop(self, number=signal.SIGTERM, timeout=10):
        """End the daemon with a signal. Return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout * PATIENCE)

    def pid(self):
        """Return the process id of the daemon, not of its supervisor."""
        return self.show("version")[0]["pid"]

    def crash(self, number=signal.SIGKILL):
        """Kill the daemon, not its supervisor, with a signal. Return the pid that it had."""
        pid = self.pid()
        procs.signal_pid(pid, number)
        return pid

    def back(self, was, timeout=20):
        """Wait until another daemon than `was` answers. Returns its pid."""
        return eventually(
            lambda: (now := self.pid()) != was and now, timeout, 0.01, "a new daemon answers"
        )

    def show(self, *words):
        """Return the rows of `fpmctl --json show WORDS` (keys: dist/openapi.yaml)."""
        text = netns.command([self.ctl, "-s", self.socket, "--json", "show", *words])
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [row for row in rows if "end" not in row]

    def fpm(self):
        """Return all rows of `show fpm` and rib's summary in one dictionary."""
        merged = {}
        for row in self.show("fpm"):
            merged.update(row)
        return merged

    def ports(self):
        """Return the rows of `show ports` by name."""
        return {row["name"]: row for row in self.show("ports")}

    def counter(self, kind, name):
        """Return one counter by kind (drop, punt, total) and name; 0 if there is no such counter."""
        rows = self.show("counters")
        return sum(r["value"] for r in rows if r["kind"] == kind and r["name"] == name)

    def counters(self):
        """Return all counters as {(kind, name): value}."""
        return {(r["kind"], r["name"]): r["value"] for r in self.show("counters")}

    def log(self, lines=15):
        """Return the last lines of the daemon's log file. It is a file because a pipe would block
        us."""
        if not os.path.isfile(self.log_file):
            return ""
        try:
            with open(self.log_file, errors="replace") as file:
                return "\n".join(file.read().splitlines()[-lines:])
        except OSError:
            return ""

    def _ready(self):
        code = self.process.poll()
        if code is not None:
            raise DataplaneError(f"fpm-dataplane ended with code {code}")
        # Without a socket the daemon cannot answer; a call of fpmctl would cost a guest time.
        return os.path.exists(self.socket) and self.show("version")
