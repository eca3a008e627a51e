# SPDX-License-Identifier: BSD-3-Clause
"""The 100 ms in which a change must be in packets, on a machine that may have other work."""

import os
import time

from lib.built import sanitized
from lib.wait import eventually

IN_TIME_S = 0.1


class Clock:
    """Seconds since it was made, but for those in which the machine had no CPU for us or
    for a thread of the daemon: these say nothing of the daemon. At rest there are none."""

    def __init__(self, dut):
        self._pid = dut.daemon.process.pid
        self._begin, self._before = time.monotonic(), self._waits()

    def _waits(self):
        """{thread: ns that it was ready to run and did not} (proc(5), schedstat)."""
        found = {}
        for path in ["/proc/thread-self", *_tasks(self._pid)]:
            try:
                with open(path + "/schedstat", encoding="ascii") as file:
                    found[path] = int(file.read().split()[1])
            except OSError:
                pass  # a thread that has just ended
        return found

    def seconds(self):
        """How long it took so far."""
        took, now = time.monotonic() - self._begin, self._waits()
        waits = {path: now[path] - self._before.get(path, 0) for path in now}
        ours = waits.pop("/proc/thread-self")
        return took - (ours + max(waits.values(), default=0)) / 1e9


def _tasks(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def in_time(dut, fn):
    """Assert that fn() becomes true within the 100 ms that a change may take."""
    true_in_time(Clock(dut), fn, IN_TIME_S * (4 if sanitized(dut) else 1))


def true_in_time(clock, fn, seconds=IN_TIME_S):
    """The same of a change that was made behind `clock`, in every build; returns when it was."""
    eventually(fn, 5, 0.002)
    now, took = time.monotonic(), clock.seconds()
    assert took < seconds, f"{took * 1000:.0f} ms"
    return now
