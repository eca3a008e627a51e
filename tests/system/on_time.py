# SPDX-License-Identifier: BSD-3-Clause
"""The 100 ms in which a change must be in packets, on a machine that may have other work."""

import os
import time

from lib.built import sanitized
from lib.wait import eventually

IN_TIME_S = 0.1


class Clock:
    """Seconds since it was made, but for those in which the machine had no CPU for us (this
    thread, and then the one that collects packets) or for a thread of the daemon: these say
    nothing of the daemon. At rest there are none."""

    def __init__(self, dut):
        self._pid = dut.daemon.process.pid
        self._begin, self._before = time.monotonic(), self._all()

    def _all(self):
        return _waits("self"), _waits(self._pid)

    def seconds(self):
        """How long it took so far."""
        took, (ours, its) = time.monotonic() - self._begin, self._all()
        ours, its = _since(ours, self._before[0]), _since(its, self._before[1])
        return took - (sum(ours) + max(its, default=0)) / 1e9


def _waits(pid):
    """{thread: ns that it was ready to run and did not} (proc(5), schedstat)."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
                found[tid] = int(file.read().split()[1])
        except OSError:
            pass  # a thread that has just ended
    return found


def _since(now, before):
    return [ns - before.get(tid, 0) for tid, ns in now.items()]


def in_time(dut, fn):
    """Assert that fn() becomes true within the 100 ms that a change may take; returns the time
    at which it was."""
    clock = Clock(dut)
    eventually(fn, 5, 0.002)
    now, took = time.monotonic(), clock.seconds()
    assert took < IN_TIME_S * (4 if sanitized(dut) else 1), f"{took * 1000:.0f} ms"
    return now
