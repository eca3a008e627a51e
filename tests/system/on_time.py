# SPDX-License-Identifier: BSD-3-Clause
"""The limit of 100 ms between a change and the packets that show it, on a machine that may have
other work."""

import collections
import contextlib
import functools
import os
import re
import socket
import struct
import time
from statistics import median

from lib import netns
from lib.built import sanitized
from lib.machine import softirq_threads
from lib.wait import eventually
from wire import token_of

IN_TIME_S = 0.1
RTMGRP_LINK, RTM_NEWLINK, IFF_RUNNING = 1, 16, 0x40


class Clock:
    """Measure the seconds since the clock was made. It leaves out the time in which the machine had
    no CPU for this process, for a thread of the daemon or for the kernel's packets, and the time in
    which the host had no CPU for the machine: such time says nothing about the daemon. A change
    passes one thread of each kind after the other, so the longest wait of each kind counts. A machine
    at rest has no such time."""

    def __init__(self, dut):
        self._pid = dut.daemon.process.pid
        self._begin, self._before, self._stolen = time.monotonic(), self._waits(), _stolen_s()

    def _waits(self):
        """Return {thread: ns in which it was ready to run and did not run} (proc(5), schedstat)."""
        found = {}
        for path in ["/proc/thread-self", *_kernels(), *_tasks(self._pid)]:
            try:
                with open(path + "/schedstat", encoding="ascii") as file:
                    found[path] = int(file.read().split()[1])
            except OSError:
                pass  # a thread that has just ended
        return found

    def seconds(self):
        """Return the seconds so far."""
        took, now, longest = time.monotonic() - self._begin, self._waits(), collections.Counter()
        for path in now:
            kind = _kind(path)
            longest[kind] = max(longest[kind], now[path] - self._before.get(path, 0))
        stolen = (s - self._stolen.get(cpu, s) for cpu, s in _stolen_s().items())
        return took - longest.total() / 1e9 - max(stolen, default=0)


def _kind(path):
    """Return the name of a thread without its number: the threads that forward are of one kind, and so
    are the kernel's threads for packets."""
    try:
        with open(path + "/comm", encoding="ascii") as file:
            return file.read().rstrip("0123456789/-\n")
    except OSError:
        return path  # it has just ended


@functools.cache
def _kernels():
    """Return the folders of the kernel's threads for packets. They are the same all the time; a search
    in all processes would count as time of the daemon."""
    return [f"/proc/{pid}" for pid in softirq_threads()]


def _tasks(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def _stolen_s():
    """Return the seconds so far in which the host ran other work on each CPU (proc_stat(5),
    steal)."""
    with open("/proc/stat", encoding="ascii") as file:
        rows = [line.split() for line in file if re.match(r"cpu\d", line)]
    return {row[0]: int(row[8]) / os.sysconf("SC_CLK_TCK") for row in rows}


def slowness(dut):
    """Return the factor by which the daemon of this build may be slower."""
    return 4 if sanitized(dut) else 1


def lose_link(dut, wire):
    """Set the far end of a port down. Return a Clock that starts when the kernel has sent the message
    that the port has no carrier. The daemon reads this message, too. Before it the kernel takes its
    lock for interfaces twice, and programs in other namespaces may hold this lock for long."""
    with contextlib.closing(netns.open_socket(dut.dp, socket.AF_NETLINK, socket.SOCK_RAW)) as sock:
        sock.bind((0, RTMGRP_LINK))
        sock.settimeout(20)
        with netns.entered(dut.dp):
            port = socket.if_nametoindex("p-" + wire.name)
        netns.link_set(dut.far, wire.name, up=False)
        while not _without_carrier(sock.recv(65536), port):
            pass
        return Clock(dut)


def _without_carrier(message, port):
    """Return True if a netlink message says that the interface `port` has no carrier."""
    kind, index, flags = struct.unpack_from("4xH14xiI", message)
    return kind == RTM_NEWLINK and index == port and not flags & IFF_RUNNING


def in_time_s(dut):
    """Return the seconds that a change may take in this build."""
    return IN_TIME_S * slowness(dut)


def in_time(dut, fn):
    """Assert that fn() becomes true within the 100 ms that a change may take."""
    true_in_time(Clock(dut), fn, in_time_s(dut))


def comes_in_time(dut, wire, probe, out):
    """Assert that packets of probe(), sent one after another on `wire`, come out at `out` within
    the 100 ms that a change may take. The test does not wait for a packet before it sends the next:
    a packet that is lost before the change is in force costs no time."""
    in_time(dut, coming(wire, probe, out))


class Medians:
    """The times of changes that a test makes several times. A single change may be late, because
    other programs may hold the kernel's lock for interfaces."""

    TIMES = 5

    def __init__(self, dut):
        self.dut, self.took = dut, {}

    def until(self, what, fn, clock=None):
        """Wait until fn() is true. Add the seconds since `clock` began, or since now, to the times of
        `what`. Return when it was true (monotonic)."""
        clock = clock or Clock(self.dut)
        eventually(fn, 5, 0.002)
        now = time.monotonic()
        self.took.setdefault(what, []).append(clock.seconds())
        return now

    def are_in_time(self, seconds=None):
        """Assert that each median is within `seconds`, or within the 100 ms that a change may take in
        this build."""
        most = seconds or in_time_s(self.dut)
        late = {what: t for what, t in self.took.items() if median(t) >= most}
        assert self.took and late == {}


def outside(times, spans):
    """Return the times that are in none of the spans (begin, end)."""
    return [t for t in times if not any(begin <= t <= end for begin, end in spans)]


def coming(wire, probe, out):
    """Return a function that sends a packet of probe() on `wire`. That function returns true if one
    of its packets has left by `out`."""
    tokens = set()

    def comes():
        wire.send(packet := probe())
        tokens.add(token_of(packet))
        return out.got(lambda data: token_of(data) in tokens)

    return comes


def dropped_in_time(dut, wire, probe, reason):
    """Assert that the packets of probe() are dropped for `reason` within the 100 ms that a change
    may take, and for no other reason from then on."""
    in_time(dut, dropping(dut, wire, probe, reason))  # a fence may wait longer than 100 ms
    dut.fence(wire)
    assert dut.not_forwarded(wire, probe()) == {reason: 1}


def dropping(dut, wire, probe, reason):
    """Return a function that sends a packet of probe() on `wire`. That function returns true if one
    of its packets was dropped for `reason`."""
    before = dut.counters()

    def dropped():
        wire.send(probe())
        return dut.drops(before).get(reason)

    return dropped


def true_in_time(clock, fn, seconds=IN_TIME_S):
    """Assert that fn() becomes true within `seconds` of the start of `clock`, in every build. Returns
    when it was true (monotonic)."""
    eventually(fn, 5, 0.002)
    now, took = time.monotonic(), clock.seconds()
    assert took < seconds, f"{took * 1000:.0f} ms"
    return now
