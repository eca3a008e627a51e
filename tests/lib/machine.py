# SPDX-License-Identifier: BSD-3-Clause
"""Measure the CPU time that the programs under test got, and the time that other programs got.

A test that judges time runs beside other tests and other programs. Time in which a thread was
ready to run and had no CPU is not the fault of that thread's program when others had the CPUs.
"""

import contextlib
import os
import re
import resource
import threading
import time

AUTOGROUP = "/proc/{}/autogroup"  # sched(7): a session has one weight, whatever is in it
OTHERS = 0.1  # a fraction of all CPU time: on a machine at rest other programs use less


def prefer(pids, nice=-10):
    """Give processes more or less weight than others have (sched(7)). Some may have ended."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for tid in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(tid), nice)
        prefer_session(pid, nice)


def prefer_session(pid, nice):
    """Give the session of a process, which may have ended, more or less weight than others have."""
    with contextlib.suppress(OSError):
        with open(AUTOGROUP.format(pid), "w", encoding="ascii") as file:
            file.write(str(nice))


def real_time(pid, name):
    """Give a thread of a process the least real-time priority, if it has none."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        thread = _word(f"/proc/{pid}/task/{tid}/comm")
        if thread == name and os.sched_getscheduler(int(tid)) == os.SCHED_OTHER:
            os.sched_setscheduler(int(tid), os.SCHED_RR, os.sched_param(1))


class Share:
    """The CPU time since the creation of this object. `pids()` returns the processes under test at
    that moment; this process and its children belong to them."""

    def __init__(self, pids):
        self.pids, self.begin = pids, time.monotonic()
        self._threads, self._own, self._cpus = self._read(), _own_s(), _cpus_s()

    def _read(self):
        """Return {(process, thread, name): (seconds that it ran, seconds that it was ready and did
        not run)} (proc(5), schedstat)."""
        found = {}
        for pid in {*self.pids(), os.getpid(), *softirq_threads()}:
            with contextlib.suppress(OSError):
                for tid in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError):
                        found[pid, tid, _word(f"/proc/{pid}/task/{tid}/comm")] = _ran(pid, tid)
        return found

    def waits(self):
        """Return {(process, thread, name): seconds that it was ready and did not run} of the
        threads that live, longest first."""
        now = self._read()
        took = {t: now[t][1] - self._threads.get(t, (0, 0))[1] for t in now}
        return dict(sorted(took.items(), key=lambda row: -row[1]))

    def longest_wait(self):
        """Return the longest time in seconds that a thread was ready and did not run."""
        return max(self.waits().values(), default=0.0)

    def others(self):
        """Return the fraction of all CPU time that other programs had or the host stole."""
        now, took = self._read(), time.monotonic() - self.begin
        ours = sum(now[t][0] - self._threads.get(t, (0, 0))[0] for t in now if t[0] != os.getpid())
        ours += _own_s() - self._own
        busy = _cpus_s() - self._cpus
        return max(busy - ours, 0) / (took * os.cpu_count())

    def was_taken(self, seconds):
        """Return True if other programs had CPUs and one of the test's threads waited `seconds` or
        longer in total."""
        return self.longest_wait() >= seconds and self.others() > OTHERS


class Watch(threading.Thread):
    """Record once a second the CPU time of the processes of `pids`, and give them more CPU weight."""

    EVERY_S = 1.0

    def __init__(self, pids):
        super().__init__(daemon=True, name="machine")
        self.pids, self.ending, self.rows = pids, threading.Event(), []  # (when, wait, others)

    def run(self):
        while not self.ending.is_set():
            prefer(self.pids())
            share = Share(self.pids)
            self.ending.wait(self.EVERY_S)
            took = time.monotonic() - share.begin  # it may be longer than EVERY_S
            self.rows.append((share.begin, share.longest_wait() / took, share.others()))

    def taken(self, since, wait):
        """Describe the worst second after `since` in which other programs had CPUs and one of the
        test's threads waited `wait` seconds or longer. Return "" if there was none."""
        rows = [row for row in self.rows if row[0] > since - 2 * self.EVERY_S]
        bad = [row for row in rows if row[1] >= wait and row[2] > OTHERS]
        _, waited, others = max(bad, key=lambda row: row[1], default=(0, 0, 0))
        return f"a thread waited {waited:.2f} s in a second, others had {others:.0%}" if bad else ""

    def end(self):
        """Stop the thread."""
        self.ending.set()
        self.join()


def _word(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _ran(pid, tid):
    ran, waited, _ = _word(f"/proc/{pid}/task/{tid}/schedstat").split()
    return int(ran) / 1e9, int(waited) / 1e9


def _own_s():
    """Return the CPU seconds of this process and of all children that it has waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def softirq_threads():
    """Return the process ids of the kernel threads that handle packets for us."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if _word(f"/proc/{pid}/comm").startswith("ksoftirqd/"):
                yield int(pid)


def _cpus_s():
    """Return the seconds that all CPUs ran programs or that the host stole (proc_stat(5))."""
    with open("/proc/stat", encoding="ascii") as file:
        rows = [line.split() for line in file if re.match(r"cpu\d", line)]
    # user, nice, system, steal
    return sum(int(row[n]) for row in rows for n in (1, 2, 3, 8)) / os.sysconf("SC_CLK_TCK")
