# SPDX-License-Identifier: BSD-3-Clause
"""One BIRD 2 in a network namespace. Its socket, pid file and log are in a directory of its own."""

import os
import signal

from lib import machine, netns, procs
from lib.peers import libraries, program
from lib.wait import PATIENCE, eventually


def why_not():
    """Return the reason why BIRD cannot run on this machine in one sentence, or None."""
    return None if program("bird") else "this machine has no BIRD 2 (`make peers` unpacks it)"


class Bird:
    """The daemon and its client birdc."""

    daemons = ["bird"]

    def __init__(self, namespace, config, run_dir, mark):
        self.namespace, self.config, self.dir, self.mark = namespace, config, run_dir, mark
        self.process = None

    def _path(self, suffix):
        return os.path.join(self.dir, "bird." + suffix)

    def start(self, *options):
        """Start BIRD and wait until birdc gets answers. With the option -R it keeps the routes of
        its predecessor in the kernel until its peers have sent theirs."""
        os.makedirs(self.dir, exist_ok=True)
        argv = [*libraries(), program("bird"), "-f", *options, "-c", self.config]
        argv += ["-s", self._path("ctl"), "-P", self._path("pid")]
        self.process = procs.start(argv, self.mark, self._path("log"), self.namespace)
        machine.prefer([self.process.pid])
        eventually(self.is_up, 10, what="BIRD answers birdc")

    def is_up(self):
        """Return True if BIRD has its configuration."""
        return "up and running" in self.birdc("show", "status")

    def end(self, number=signal.SIGTERM):
        """End BIRD with a signal, and wait until it has ended."""
        pid = self.pid()
        procs.signal_pid(pid, number)
        if self.process is not None and self.process.pid == pid:
            self.process.wait(20 * PATIENCE)
        eventually(lambda: not procs.is_alive(pid), 20, what="BIRD has ended")

    def stop(self, *_daemons):
        """End BIRD if it runs."""
        if self.runs():
            self.end()

    def restart(self, _daemon="bird"):
        """Start BIRD. If it runs, end it first. The routes of the first one stay in the kernel until
        the second one has its own."""
        self.stop()
        self.start("-R")

    restart_all = restart

    def pid(self):
        """Return the process id of BIRD, from its pid file."""
        with open(self._path("pid"), encoding="ascii") as file:
            return int(file.read())

    def runs(self, daemon="bird"):
        """Return True if the process of the pid file runs and belongs to this mark."""
        try:
            return procs.carries(self.pid(), self.mark)
        except (OSError, ValueError):  # no file, or an empty one
            return False

    def birdc_argv(self):
        """Return the command that opens this router's shell."""
        return [*libraries(), program("birdc"), "-s", self._path("ctl")]

    def birdc(self, *words):
        """Run a command of birdc, return the output. BIRD does not answer while it writes a full table
        into the kernel."""
        return netns.command([*self.birdc_argv(), *words], timeout=300)

    def states(self):
        """Return {protocol: (state, information)}, as `birdc show protocols` prints them."""
        rows = [line.split(maxsplit=6) for line in self.birdc("show", "protocols").splitlines()]
        rows = [row for row in rows if len(row) >= 4 and row[3] in ("up", "down", "start")]
        return {row[0]: (row[3], row[-1].strip() if len(row) > 5 else "") for row in rows}

    def log(self, daemon="bird", lines=15):
        """Return the last lines of the log."""
        try:
            with open(self._path("log"), encoding="utf-8", errors="replace") as file:
                return "\n".join(file.read().splitlines()[-lines:])
        except OSError:
            return ""
