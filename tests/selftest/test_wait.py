# SPDX-License-Identifier: BSD-3-Clause
"""Waiting and sending when the machine pauses."""

import signal
import subprocess
import sys
import threading

import pytest
from lib import pace, procs, wait
from lib.freeze import frozen


class Clock:
    """A clock that a test moves, in the place of the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(wait, "time", clock)
    monkeypatch.setattr(pace, "time", clock)
    monkeypatch.setattr(wait, "PATIENCE", 1)
    return clock


def test_eventually_goes_on_after_a_pause_longer_than_its_limit(clock):
    looks = []

    def seen():
        looks.append(clock.now)
        if len(looks) == 1:
            clock.now += 100  # the machine pauses
        return clock.now > 1105

    assert wait.eventually(seen, 10)


def test_eventually_ends_when_its_limit_is_over(clock):
    with pytest.raises(wait.Timeout, match="never true: not within 10 s; last seen: 0"):
        wait.eventually(lambda: 0, 10, 0.05, "never true")
    assert 1010 <= clock.now < 1011


def test_a_function_that_hangs_is_called_five_times(clock):
    calls = []
    with pytest.raises(wait.Timeout):
        wait.eventually(lambda: calls.append(clock.sleep(60)), 10)
    assert len(calls) == 5


class Ending(threading.Event):
    """An event whose waits move the clock."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def wait(self, timeout):
        self.clock.sleep(timeout)


def test_a_sender_keeps_its_rate(clock):
    sender = pace.Pace(1000)
    for _ in range(5000):
        sender.wait(Ending(clock))
    assert clock.now == pytest.approx(1005)


def test_a_sender_that_was_paused_sends_50_ms_of_packets_at_once(clock):
    sender, ending = pace.Pace(1000), Ending(clock)
    clock.now += 3  # the machine pauses
    begin, burst = clock.now, 0
    while clock.now == begin:
        sender.wait(ending)
        burst += 1
    assert burst == pytest.approx(50, abs=2)


def test_a_killed_process_is_dead_though_its_tracer_has_not_waited():
    """The kernel keeps a traced thread as a zombie, beside the first thread."""
    code = """
import threading
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
open(f"/proc/self/task/{thread.native_id}/comm", "w").write("traced")
print(flush=True)
threading.Event().wait()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            seen = False
            with pytest.raises(OSError), frozen(child.pid, "traced"):
                assert procs.is_alive(child.pid)
                procs.signal_pid(child.pid, signal.SIGKILL)
                wait.eventually(lambda: not procs.is_alive(child.pid), 5, what="it is dead")
                seen = True
            assert seen, "frozen() has failed at its begin"
        finally:
            child.kill()
