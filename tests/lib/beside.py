# SPDX-License-Identifier: BSD-3-Clause
"""Run jobs side by side. Each job is a process; the total load bounds the jobs that run at a time.

The load of a job is the number of CPUs that it keeps busy: 1 for a compiler or a guest, less for
a test that mostly waits. A job with load ALONE runs when no other job does. Jobs start in the
order of the list, with one exception: while fewer than half of the CPUs have a job of load 1 or
more, such a job goes first, so that compilers use the time in which tests wait.
"""

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
ALONE = float("inf")
_libc = ctypes.CDLL(None)


def end_on_signals():
    """Make SIGTERM and SIGINT end this program through run(), which ends the jobs."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: sys.exit(128 + which))


def cpus():
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def capacity():
    """Return the load at which no further job starts: more than the number of CPUs, because even a
    compiler waits at times. With 1.25, CPUs were idle for a fifth of the time."""
    return 1.6 * cpus()


class Job:
    """A command. `needs` names the jobs that have to succeed before it starts."""

    def __init__(self, name, argv, needs=(), more=None, load=1.0, part="", read=None, log=None):
        self.name, self.argv, self.part = name, argv, part or name
        self.needs = {needs} if isinstance(needs, str) else set(needs or ())
        self.more = more or {}  # additional variables of the environment
        self.load = load
        self.read, self.result = read, None  # lib/results.py
        self.report = self.temporary = None  # of pytest: its XML, the folder for files of its tests
        self.code = None  # exit code; None: it never ran
        self.before = None  # the commit on which it passed in an earlier run (lib/resume.py)
        self.begin = self.took = self.cpu = 0.0  # monotonic seconds, seconds, seconds of CPU
        self._log, self._output, self._process = log, None, None

    def start(self, cwd, live):
        """Start the process. Its output goes to stdout when `live`, else to a file."""
        if not live:
            self._output = open(self._log, "w+b") if self._log else tempfile.TemporaryFile()
        self.begin = time.monotonic()
        self._process = subprocess.Popen(
            self.argv,
            cwd=cwd,
            env={**os.environ, **self.more},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=None if live else subprocess.STDOUT,
            # Otherwise the process would continue after a kill -9 of this program.
            preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        return self._process.pid

    def ended(self, status, usage):
        """Take the status and the usage of wait4(), which counts the job's own children too."""
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.took = time.monotonic() - self.begin
        self.cpu = usage.ru_utime + usage.ru_stime

    def output(self):
        """Return the whole output of the job as text."""
        if self._output is None:
            return ""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def show(self):
        """Print the name and the output of the job."""
        print(f"--- {self.name}", flush=True)
        if self._output is not None:
            self._output.seek(0)
            shutil.copyfileobj(self._output, sys.stdout.buffer)
            sys.stdout.flush()

    def end(self):
        """Terminate the job and wait until it has ended."""
        self._process.terminate()
        with contextlib.suppress(ChildProcessError):
            self._process.wait()


def choose(waiting, running, there, limit):
    """Return the job to start next, or None if no job may start now."""
    load = sum(job.load for job in running)
    able = [j for j in waiting if j.needs <= there and (not running or load + j.load <= limit)]
    if sum(job.load >= 1 for job in running) < max(1, cpus() // 2):
        able.sort(key=lambda job: job.load < 1 or job.load == ALONE)
    return able[0] if able else None


def run(jobs, limit, cwd, live=None, there=()):
    """Run all jobs and yield each when it has ended. A job whose need has failed is yielded at the
    end without having run. `there`: needs that are met already. The output of jobs goes to stdout if
    `live`; None: if there is only one job."""
    live = len(jobs) == 1 if live is None else live
    waiting, running, there = list(jobs), {}, set(there)
    try:
        while waiting or running:
            while job := choose(waiting, running.values(), there, limit):
                waiting.remove(job)
                running[job.start(cwd, live)] = job
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
