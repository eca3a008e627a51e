# SPDX-License-Identifier: BSD-3-Clause
"""A memory cgroup for one test (cgroups v1 or v2). The kernel kills a process in it that exceeds
the limit, and counts the kills."""

import contextlib
import os

from lib.wait import eventually

ROOT = "/sys/fs/cgroup"
V1 = ("memory", "memory.limit_in_bytes", "memory.oom_control", "memory.usage_in_bytes")
V2 = ("", "memory.max", "memory.events", "memory.current")


def _own():
    """Return {controller: cgroup of this process}. The key of cgroups v2 is ""."""
    groups = {}
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.strip().split(":", 2)
            groups.update({name: path for name in names.split(",")})
    return groups


def _place():
    """Return (folder for a new group, files), or None if there is no memory controller."""
    groups = _own()
    if "memory" in groups and os.path.isdir(f"{ROOT}/memory"):
        inside = f"{ROOT}/memory{groups['memory']}"
        return (inside if os.path.isdir(inside) else f"{ROOT}/memory"), V1
    try:
        # The new group is not below the group of this process, because a group with processes has
        # no child with controllers.
        with open(f"{ROOT}/cgroup.subtree_control", encoding="ascii") as file:
            return (ROOT, V2) if "memory" in file.read().split() else None
    except OSError:
        return None


class MemoryGroup:
    """A cgroup with a memory limit. v1 does not count memory that a process had before it joined."""

    def __init__(self, path, files):
        self.path, (_, self._limit, self._events, self._usage) = path, files

    def limit(self, octets):
        """Limit the memory of the group to `octets` from now on."""
        self._write(self._limit, octets)

    def add(self, pid):
        """Add a process with all its threads."""
        self._write("cgroup.procs", pid)

    def killed(self):
        """Return the number of processes of this group that the OOM killer has ended."""
        with open(f"{self.path}/{self._events}", encoding="ascii") as file:
            return int(dict(line.split() for line in file)["oom_kill"])

    def usage(self):
        """Return the octets that the group uses."""
        with open(f"{self.path}/{self._usage}", encoding="ascii") as file:
            return int(file.read())

    def _write(self, name, value):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))


@contextlib.contextmanager
def memory_group(name):
    """Yield a group for the time of the test, or None if the kernel has no memory controller."""
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
