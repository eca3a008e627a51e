# SPDX-License-Identifier: BSD-3-Clause
"""Processes that can always be found and ended again, even after kill -9 of their parent.

Every process started here carries a mark in its environment (FPM_LAB=DIRECTORY), which
its children inherit. The kernel keeps that record in /proc, so nothing can be lost between
a fork and the writing of a pid file, and a process id used anew by a stranger is no danger:
a stranger has no mark. A container on this machine may have a lab of the same name: its
processes are in another pid namespace, or DIRECTORY is another one to them.
"""

import os
import signal
import subprocess
import time

from lib.wait import eventually

MARK = "FPM_LAB"


def start(argv, mark, log, netns=None, cwd=None):
    """Start `argv` in the background, output to the file `log`. Returns the Popen.

    `mark` is the directory that whatever belongs together has for itself.
    A session of its own keeps Ctrl-C at the terminal away: ending it is the lab's job.
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
    """The ids of all processes that carry `mark` (and run the program `name`)."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [
        pid
        for pid in pids
        if pid != os.getpid() and carries(pid, mark) and name in (None, comm(pid))
    ]


def carries(pid, mark):
    """Does `pid` run with `mark`, in the same container as we do?"""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if f"{MARK}={mark}".encode() not in file.read().split(b"\0"):
                return False
        spaces = [os.readlink(f"/proc/{who}/ns/pid") for who in (pid, "self")]
    except OSError:
        return False  # it has just ended
    return len(set(spaces)) == 1 and _identity(f"/proc/{pid}/root{mark}") == _identity(mark)


def _identity(path):
    """What tells one directory from another of the same name; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def comm(pid):
    """Name of the program that `pid` runs, "" when it is gone (15 letters at most)."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def is_alive(pid):
    """Does `pid` run, any thread of it (a zombie does not)?

    Killed, the first thread is often a zombie while another still has the sockets open.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X") or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def states(pid):
    """The states of all threads of `pid`, its first one's first; "" when it is gone."""
    found = ""
    try:
        for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                found += chr(file.read().rpartition(b")")[2].split()[0][0])
    except OSError:
        pass  # it, or a thread of it, has just ended
    return found


def stand_still(pid):
    """SIGSTOP, and until it has its effect: a thread that waits for a CPU does not know yet that
    another one has the signal, and may still do much."""
    signal_pid(pid, signal.SIGSTOP)
    eventually(lambda: (seen := set(states(pid))) and seen <= {"T", "t"}, 10, 0.001, "all of its threads stand still")


def signal_pid(pid, number):
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_all(mark):
    """Kill every process with `mark`: nothing in a lab needs to end gracefully."""
    while left := [pid for pid in marked(mark) if is_alive(pid)]:
        for pid in left:
            signal_pid(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.02)


def _reap():
    """Collect children of ours that have ended, so that they do not stay as zombies."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
