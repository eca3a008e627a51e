# SPDX-License-Identifier: BSD-3-Clause
"""Stop one thread of a process while all other threads run.

    with frozen(pid, "fdp-rib"): ...

It uses ptrace(2), so that the program needs no code for it: the thread stops at any instruction,
like a thread that gets no CPU. Freeze a thread that is at rest: another could hold a lock of
malloc that other threads need. The thread runs again when the block ends, or the test is killed.
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
    """Return the id of the only thread of `pid` with this name."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                found.append(int(tid))
    (tid,) = found
    return tid


@contextlib.contextmanager
def frozen(pid, name):
    """Stop the thread `name` of `pid` for the time of the block. Raise OSError if the process was
    killed meanwhile."""
    tid = thread_of(pid, name)
    _ptrace(PTRACE_SEIZE, tid)
    try:
        _ptrace(PTRACE_INTERRUPT, tid)
        eventually(lambda: os.waitpid(tid, WALL | os.WNOHANG)[0] == tid, 5, 0.001)
        yield
    except BaseException:  # an OSError of _detach() must not hide this exception
        with contextlib.suppress(OSError):
            _detach(tid)
        raise
    _detach(tid)


def _detach(tid):
    try:
        _ptrace(PTRACE_DETACH, tid)
    except OSError:
        # The process was killed. Its parent hears of its end only after this tracer has waited
        # (ptrace(2)).
        os.waitpid(tid, WALL)
        raise
