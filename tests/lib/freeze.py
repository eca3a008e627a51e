# SPDX-License-Identifier: BSD-3-Clause
"""One thread of a process stands still while all others go on.

    with frozen(pid, "fdp-rib"): ...

With ptrace(2), so that the program has no part in it: the thread stops wherever it is, as
one does that the machine gives no time. Freeze one that is at rest: it could hold a lock of
malloc's that others need. It goes on when the block is left, also when the test is killed.
"""

import contextlib
import ctypes
import os

from lib.wait import eventually

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, tid):
    if _libc.ptrace(request, tid, None, None) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace: {os.strerror(number)}")


def thread_of(pid, name):
    """Id of the one thread of `pid` that bears `name`."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                found.append(int(tid))
    (tid,) = found
    return tid


@contextlib.contextmanager
def frozen(pid, name):
    """Stop the thread `name` of `pid` for the time of the block. OSError: it was killed meanwhile."""
    tid = thread_of(pid, name)
    _ptrace(PTRACE_SEIZE, tid)
    try:
        _ptrace(PTRACE_INTERRUPT, tid)
        eventually(lambda: os.waitpid(tid, WALL | os.WNOHANG)[0] == tid, 5, 0.001)
        yield
    except BaseException:  # which is not to be hidden behind an OSError
        with contextlib.suppress(OSError):
            _detach(tid)
        raise
    _detach(tid)


def _detach(tid):
    try:
        _ptrace(PTRACE_DETACH, tid)
    except OSError:
        # It was killed: until we have heard of that, its parent does not.
        os.waitpid(tid, WALL)
        raise
