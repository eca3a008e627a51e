# SPDX-License-Identifier: BSD-3-Clause
"""Processes that can always be found and ended again, even after kill -9 of their parent.

Every process started here carries a mark in its environment (FPM_LAB=...), which its
children inherit. The kernel keeps that record in /proc, so nothing can be lost between a
fork and the writing of a pid file, and a process id used anew by a stranger is no danger:
a stranger has no mark.
"""

import os
import signal
import subprocess
import time

MARK = "FPM_LAB"


def start(argv, mark, log, netns=None, cwd=None):
    """Start `argv` in the background, output to the file `log`. Returns the Popen.

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
    want = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if want not in file.read().split(b"\0"):
                    continue
            if name in (None, comm(entry)):
                found.append(int(entry))
        except OSError:
            pass  # it has just ended
    return found


def comm(pid):
    """Name of the program that `pid` runs, "" when it is gone (15 letters at most)."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def is_alive(pid):
    """Does `pid` run (a zombie does not)?"""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def signal_pid(pid, number):
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_all(mark, grace=3.0):
    """End every process with `mark`: SIGTERM, and SIGKILL for what is left after `grace`."""
    ended = set()
    end = time.monotonic() + grace
    while True:
        left = [pid for pid in marked(mark) if is_alive(pid)]
        if not left:
            return ended
        late = time.monotonic() >= end
        for pid in left:
            if late or pid not in ended:
                signal_pid(pid, signal.SIGKILL if late else signal.SIGTERM)
                ended.add(pid)
        _reap()
        time.sleep(0.02)


def _reap():
    """Collect children of ours that have ended, so that they do not stay as zombies."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
