# SPDX-License-Identifier: BSD-3-Clause
"""The 100 ms in which a change must be in packets, on a machine that may have other work."""

import os
import re
import time

from lib.built import sanitized
from lib.wait import eventually
from wire import token_of

IN_TIME_S = 0.1


class Clock:
    """Seconds since it was made, but for those in which the machine had no CPU for us or
    for a thread of the daemon, or its host none for it: these say nothing of the daemon. At
    rest there are none."""

    def __init__(self, dut):
        self._pid = dut.daemon.process.pid
        self._begin, self._before, self._stolen = time.monotonic(), self._waits(), _stolen_s()

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
        waited = (ours + max(waits.values(), default=0)) / 1e9
        stolen = (s - self._stolen.get(cpu, s) for cpu, s in _stolen_s().items())
        return took - waited - max(stolen, default=0)


def _tasks(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def _stolen_s():
    """Seconds that the host kept each CPU to itself so far (proc_stat(5), steal)."""
    with open("/proc/stat", encoding="ascii") as file:
        rows = [line.split() for line in file if re.match(r"cpu\d", line)]
    return {row[0]: int(row[8]) / os.sysconf("SC_CLK_TCK") for row in rows}


def in_time_s(dut):
    """Seconds that a change may take in this build."""
    return IN_TIME_S * (4 if sanitized(dut) else 1)


def in_time(dut, fn):
    """Assert that fn() becomes true within the 100 ms that a change may take."""
    true_in_time(Clock(dut), fn, in_time_s(dut))


def comes_in_time(dut, wire, probe, out):
    """Assert that the packets of probe(), sent one after another on `wire`, come out at `out`
    within the 100 ms that a change may take. None is waited for before the next: what is lost
    before the change is in force costs no time."""
    tokens = set()

    def comes():
        wire.send(packet := probe())
        tokens.add(token_of(packet))
        return out.got(lambda data: token_of(data) in tokens)

    in_time(dut, comes)


def dropped_in_time(dut, wire, probe, reason):
    """Assert that the packets of probe() are dropped for `reason` within the 100 ms that a change
    may take, and for no other from then on."""
    before = dut.counters()

    def dropped():
        wire.send(probe())
        return dut.drops(before).get(reason)

    in_time(dut, dropped)  # a fence may wait for longer than that
    dut.fence(wire)
    assert dut.not_forwarded(wire, probe()) == {reason: 1}


def true_in_time(clock, fn, seconds=IN_TIME_S):
    """The same of a change that was made behind `clock`, in every build; returns when it was."""
    eventually(fn, 5, 0.002)
    now, took = time.monotonic(), clock.seconds()
    assert took < seconds, f"{took * 1000:.0f} ms"
    return now
