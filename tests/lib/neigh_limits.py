# SPDX-License-Identifier: BSD-3-Clause
"""The limits of the kernel's neighbor tables. All namespaces share the tables and the limits.

Above gc_thresh2 the kernel deletes unused entries of any namespace. At gc_thresh3 it refuses new ones
(`ip neigh add` fails with ENOBUFS). Linux sets 512 and 1024, which are few for tests that run side by
side: each of several needs some hundred entries."""

import contextlib
import fcntl

LINUX = (512, 1024)
SIDE_BY_SIDE = (16384, 32768)
LOCK = "/tmp/fdp-neigh-limits.lock"


def _path(family, number):
    return f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}"


def _read(path):
    with open(path, encoding="ascii") as file:
        return int(file.read())


def _write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


@contextlib.contextmanager
def limits(second, third, choose=lambda was, wanted: wanted):
    """Set gc_thresh2 and gc_thresh3 of both families, and restore them. choose(present value, argument)
    returns the value to set. A machine whose limits cannot be written keeps its own."""
    old = {}
    try:
        with contextlib.suppress(OSError):
            for family in ("ipv4", "ipv6"):
                for number, wanted in ((2, second), (3, third)):
                    path = _path(family, number)
                    was = _read(path)
                    _write(path, choose(was, wanted))
                    old[path] = was
        yield
    finally:
        for path, was in old.items():
            _write(path, was)


@contextlib.contextmanager
def at_least(second, third):
    """Raise the limits if they are lower. If another program has raised them in this way, they stay as
    they are until it ends."""
    with open(LOCK, "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield
            return
        with limits(second, third, max):
            yield
