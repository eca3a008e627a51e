# SPDX-License-Identifier: BSD-3-Clause
"""Start processes that can always be found and ended, even after kill -9 of their parent.

Every process started here carries a mark in its environment (FPM_LAB=DIRECTORY), which its
children inherit. The kernel keeps that record in /proc, so that no process is lost between a
fork and the writing of a pid file. If another program gets the same process id later, it is not
ended because it has no mark. A container on this machine may have a lab of the same name: its
processes are in another pid namespace, or their DIRECTORY is another directory.
"""

import contextlib
import os
import select
import signal
import subprocess

from lib.wait import eventually

MARK = "FPM_LAB"


def start(argv, mark, log, netns=None, cwd=None):
    """Start `argv` in the background, output to the file `log`. Returns the Popen.

    `mark` is the directory that all processes of one lab share.
    The process has a session of its own, so that Ctrl-C does not reach it: the lab ends it.
    `ip netns exec` replaces itself, so the pid is that of the program.
    """
    if netns:
        argv = ["ip", "netns", "exec", netns, *argv]
    with open(log, "ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: mark},
            start_new_session=True,
            cwd=cwd,
        )


def marked(mark, name=None):
    """Return the ids of all processes that carry `mark` (and run the program `name`)."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [
        pid
        for pid in pids
        if pid != os.getpid() and carries(pid, mark) and name in (None, comm(pid))
    ]


def carries(pid, mark):
    """Return True if `pid` carries `mark` and is in the same container as this process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if f"{MARK}={mark}".encode() not in file.read().split(b"\0"):
                return False
        spaces = [os.readlink(f"/proc/{who}/ns/pid") for who in (pid, "self")]
    except OSError:
        return False  # the process has just ended
    return len(set(spaces)) == 1 and _identity(f"/proc/{pid}/root{mark}") == _identity(mark)


def _identity(path):
    """Return the identity of a directory, which differs from the identity of a later directory with
    the same name; None: there is no such directory."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def comm(pid):
    """Return the name of the program that `pid` runs (15 letters at most), or "" if it has
    ended."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def words(pid):
    """Return the command line of `pid`, or [] if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def is_alive(pid):
    """Return True if any thread of `pid` runs (a zombie does not).

    After a kill, the first thread is often a zombie while another still has the sockets open. A
    thread that another process traces stays a zombie until its tracer has waited for it.
    """
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    for tid in tids:
        with contextlib.suppress(OSError):  # this thread has ended
            with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X"):
                    return True
    return False


def states(pid):
    """Return the states of all threads of `pid`, the first thread's first, or "" if it has
    ended."""
    found = ""
    try:
        for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                found += chr(file.read().rpartition(b")")[2].split()[0][0])
    except OSError:
        pass  # it, or a thread of it, has just ended
    return found


def stand_still(pid):
    """Send SIGSTOP and wait until all threads have stopped. A thread that waits for a CPU may still
    run for a time after another thread has got the signal."""
    signal_pid(pid, signal.SIGSTOP)
    eventually(lambda: (seen := set(states(pid))) and seen <= {"T", "t"}, 10, 0.001, "all of its threads stand still")


def signal_pid(pid, number):
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_all(mark):
    """Kill every process with `mark`, and wait until each has ended: no process of a lab needs a
    graceful end. A process that is ending no longer shows its mark, but may still have its sockets."""
    while left := [pid for pid in marked(mark) if is_alive(pid)]:
        for end in [end for pid in left if (end := _killed(pid)) is not None]:
            _end_wait(end)
            os.close(end)
        _reap()


def _end_wait(end, seconds=60):
    """Wait until the process of a descriptor has ended, which a call of the kernel may delay."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    assert poll.poll(seconds * 1000), f"a killed process does not end within {seconds} s"


def _killed(pid):
    """Kill `pid`. Return a descriptor that is readable when all of its threads have ended; None: it
    has ended."""
    try:
        end = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        signal.pidfd_send_signal(end, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the descriptor is readable
    return end


def _reap():
    """Collect children of this process that have ended, so that they do not stay as zombies."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
