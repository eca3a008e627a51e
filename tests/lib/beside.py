# SPDX-License-Identifier: BSD-3-Clause
"""Jobs side by side: each is a process, and so many run at a time. What one prints is shown
when it has ended, or as it comes when there is no other."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_on_signals():
    """Who ends this program ends the jobs as well: run() does, on the way out."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: sys.exit(128 + which))


class Job:
    """A command that may need another job's product."""

    def __init__(self, name, argv, needs=None, more=None):
        self.name, self.argv, self.needs, self.more = name, argv, needs, more or {}
        self.code = None  # exit code; None: never run
        self.took = self.cpu = 0.0  # seconds, from the clock and of CPU
        self._output = self._process = self._begin = None

    def start(self, cwd, live):
        """Its output goes to stdout when `live`, else to a file until it has ended."""
        self._output = None if live else tempfile.TemporaryFile()
        self._begin = time.monotonic()
        self._process = subprocess.Popen(
            self.argv,
            cwd=cwd,
            env={**os.environ, **self.more},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=None if live else subprocess.STDOUT,
            # Else it would outlive a kill -9 of ours.
            preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        return self._process.pid

    def ended(self, status, usage):
        """As wait4() tells it; `usage` has what its own processes took as well."""
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.took = time.monotonic() - self._begin
        self.cpu = usage.ru_utime + usage.ru_stime
        print(f"--- {self.name}", flush=True)
        if self._output is not None:
            self._output.seek(0)
            shutil.copyfileobj(self._output, sys.stdout.buffer)
            sys.stdout.flush()
            self._output.close()

    def end(self):
        """Now."""
        self._process.terminate()
        with contextlib.suppress(ChildProcessError):
            self._process.wait()


def run(jobs, slots, cwd):
    """Run them, `slots` at a time, in this order but for those whose need is not there yet.
    Yields each when it is done; one whose need has failed is not run."""
    waiting, running, there = list(jobs), {}, set()
    try:
        while waiting or running:
            able = [j for j in waiting if j.needs in there or j.needs is None]
            for job in able[: slots - len(running)]:
                waiting.remove(job)
                running[job.start(cwd, live=len(jobs) == 1)] = job
            if not running:
                yield from waiting
                return
            pid, status, usage = os.wait4(-1, 0)
            if job := running.pop(pid, None):
                job.ended(status, usage)
                there |= {job.name} if job.code == 0 else set()
                yield job
    finally:
        for job in running.values():
            job.end()
