# SPDX-License-Identifier: BSD-3-Clause
"""Find the times at which a CPU of this machine did nothing for its most urgent program: a pause of a
virtual machine, or a kernel that holds interrupts off. A process with the highest real-time priority
on each CPU wakes every millisecond, and notes when it is late."""

import contextlib
import multiprocessing
import os
import time

EVERY_S = 0.001


def _watch(cpu, least_s, found):
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    due = time.monotonic()
    while True:
        due += EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic()
        if now - due > least_s:
            found.put((due, now - due, cpu))
        due = max(due, now)


class Pauses:
    """The pauses so far."""

    def __init__(self):
        self.queue, self.found = multiprocessing.SimpleQueue(), []

    def all(self):
        """Return [(monotonic time of its start, seconds, CPU)]."""
        while not self.queue.empty():
            self.found.append(self.queue.get())
        return self.found

    def near(self, when, before_s):
        """Return True if a pause began within `before_s` before a time."""
        return any(when - before_s <= begin <= when for begin, _, _ in self.all())


@contextlib.contextmanager
def watched(least_s):
    """Watch all CPUs for pauses of at least `least_s`, for the length of a with block."""
    pauses = Pauses()
    watchers = [
        multiprocessing.Process(target=_watch, args=(cpu, least_s, pauses.queue), daemon=True)
        for cpu in os.sched_getaffinity(0)
    ]
    for watcher in watchers:
        watcher.start()
    try:
        yield pauses
    finally:
        for watcher in watchers:
            watcher.kill()
            watcher.join()
