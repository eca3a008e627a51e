# SPDX-License-Identifier: BSD-3-Clause
"""A memory cgroup of a test's own (cgroups v1 or v2), in which the kernel kills who needs
more than there is, and counts whom it killed."""

import contextlib
import os

from lib.wait import eventually

ROOT = "/sys/fs/cgroup"
V1 = ("memory", "memory.limit_in_bytes", "memory.oom_control")
V2 = ("", "memory.max", "memory.events")


def _own():
    """The group that this process is in, of the memory controller or of version 2."""
    groups = {}
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.strip().split(":", 2)
            groups.update({name: path for name in names.split(",")})
    return groups


def _place():
    """(folder to make one in, files); None: there is no memory controller."""
    groups = _own()
    if "memory" in groups and os.path.isdir(f"{ROOT}/memory"):
        inside = f"{ROOT}/memory{groups['memory']}"
        return (inside if os.path.isdir(inside) else f"{ROOT}/memory"), V1
    try:
        # Beside, not below: a group that processes are in has none with controllers.
        with open(f"{ROOT}/cgroup.subtree_control", encoding="ascii") as file:
            return (ROOT, V2) if "memory" in file.read().split() else None
    except OSError:
        return None


class MemoryGroup:
    """A group with a limit; what its processes had before they came is not counted in v1."""

    def __init__(self, path, files):
        self.path, (_, self._limit, self._events) = path, files

    def limit(self, octets):
        """No more than that from now on."""
        self._write(self._limit, octets)

    def add(self, pid):
        """A process, with all its threads."""
        self._write("cgroup.procs", pid)

    def killed(self):
        """How many processes the kernel's OOM killer has ended here."""
        with open(f"{self.path}/{self._events}", encoding="ascii") as file:
            return int(dict(line.split() for line in file)["oom_kill"])

    def _write(self, name, value):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))


@contextlib.contextmanager
def memory_group(name):
    """A group for the time of the test; None where the kernel has no memory controller."""
    place = _place()
    if place is None:
        yield None
        return
    path = f"{place[0]}/{name}"
    os.mkdir(path)
    try:
        yield MemoryGroup(path, place[1])
    finally:
        eventually(lambda: os.rmdir(path) is None, 10, what="the memory group is empty")
