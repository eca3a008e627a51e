# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that may do anything, as root, isolated from the machine: with their own process
ids, mounts, network and memory limit. When the box ends, all its processes have ended."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.memcg import memory_group  # noqa: E402

PR_SET_PDEATHSIG = 1
MEMORY = 9 << 30  # octets that all processes of a box may have
KEPT, MOST = 1 << 20, 1 << 28  # octets of output
_libc = ctypes.CDLL(None)

# Arguments: $1 the tree, $2 a memory cgroup or "", $3 the first process id, then the command. A tree
# below /tmp or /run is mounted again over the new tmpfs. The shell stays process 1 and reaps orphans.
SCRIPT = """
set -e
cd "$1"
mount -t tmpfs -o size=4g,mode=1777 plant /tmp
mount -t tmpfs -o size=256m,mode=755 plant /run
mount -t tmpfs -o size=4g,mode=1777 plant /dev/shm
case $1/ in /tmp/*|/run/*) mkdir -p "$1"; mount -c --bind . "$1"; cd "$1";; esac
ip link set lo up
[ -z "$2" ] || echo 0 >"$2/cgroup.procs"
echo "$3" >/proc/sys/kernel/ns_last_pid
mkdir -m 777 /tmp/plant-cover
shift 3
"$@"
"""


def why_not():
    """Return the reason why there can be no box here in one sentence, or None."""
    if os.geteuid() != 0:
        return "a fault runs as root, in namespaces of its own: that needs root"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount", "--net", "--ipc", "--mount-proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode else None


class Box:
    """A box. At most one box of each number runs at a time. Boxes of different numbers share no
    process id."""

    def __init__(self, number):
        self.number, self.group, self._end = number, "", None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            group = stack.enter_context(memory_group(f"plant-{os.getpid()}-{self.number}"))
            if group:
                group.limit(MEMORY)
                self.group = group.path
                stack.callback(self.sweep)
            self._end = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._end.close()

    def sweep(self):
        """Remove the memory groups that tests made in this box's group; their processes are
        ending."""
        for _ in range(100):
            for folder, _, _ in os.walk(self.group, topdown=False):
                with contextlib.suppress(OSError):
                    if folder != self.group:
                        os.rmdir(folder)
            if len(next(os.walk(self.group))[1]) == 0:
                return
            time.sleep(0.1)

    def run(self, tree, argv, limit, env=None, log=None):
        """Run a command in the folder `tree`. Return (exit code, output). Code None: it was killed,
        because it took longer than `limit` seconds. Output goes to the file `log` if named.
        """
        words = ["unshare", "--pid", "--fork", "--mount", "--net", "--ipc", "--mount-proc"]
        words += ["--kill-child=KILL", "sh", "-c", SCRIPT, "box", str(tree), self.group]
        words += [str(20000 * (1 + self.number)), *argv]
        code, said = call(words, tree, {**os.environ, **(env or {})}, limit)
        if log:
            Path(log).write_text(said, encoding="utf-8")
        return code, said


_running, _lock = set(), threading.Lock()
_stopped = threading.Event()


class Stopped(Exception):
    """The program ends: stop() killed a command."""


def stop():
    """Kill the commands that run. Prevent the start of others."""
    _stopped.set()
    with _lock:
        for process in _running:
            process.kill()


def call(argv, cwd, env, limit=None):
    """Run a command. Return (exit code, output). Code None: it took longer than `limit` seconds.
    The command ends with this process. Ctrl-C at the terminal reaches only this process."""
    with _lock:
        if _stopped.is_set():
            raise Stopped
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_us,
        )
        _running.add(process)
    said = Said(process)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        process.kill()
        process.wait()
        said.join()
        with _lock:
            _running.discard(process)
    if _stopped.is_set():
        raise Stopped
    return code, said.text.decode(errors="replace")


class Said(threading.Thread):
    """Reads the output of a process and keeps its end. Kills a process with too much output."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.text, self._process = b"", process
        self.start()

    def run(self):
        """Read until all processes have closed the pipe."""
        n = 0
        while octets := self._process.stdout.read1(1 << 16):
            n += len(octets)
            self.text = (self.text + octets)[-KEPT:]
            if n > MOST:
                self._process.kill()
        self._process.stdout.close()


def _end_with_us():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Tree:
    """A copy of the sources for builds and planted faults."""

    def __init__(self, root, make):
        self.root, self._make = root, make
        self.env = {"PYTHONPATH": f"{root}/tests/plant"}
        self._planted = None

    def copy(self, source):
        """Copy the project's files from another tree. An equal file is not written, so that make
        does not build its objects again."""
        self.root.mkdir(parents=True, exist_ok=True)
        wanted = set(files_of(source))
        for path in files_of(self.root):
            if path not in wanted:
                (self.root / path).unlink()
        for path in wanted:
            old, new = source / path, self.root / path
            if (
                new.is_file()
                and not new.is_symlink()
                and new.read_bytes() == old.read_bytes()
            ):
                continue
            # Replace a file with a new time, so that the object of its old text is older. A file
            # that did not exist has no object, and keeps its time.
            copy = shutil.copy if os.path.lexists(new) else shutil.copy2
            new.parent.mkdir(parents=True, exist_ok=True)
            new.unlink(missing_ok=True)
            copy(old, new, follow_symlinks=False)

    def make(self, *words):
        """Run make. Return (True if it succeeded, its output)."""
        code, said = call([*self._make, *words], self.root, clean_environment())
        return code == 0, said

    def plant(self, fault):
        """Plant one fault. The next restore() removes it."""
        self.restore()
        path = self.root / fault.file
        self._planted = (path, path.read_bytes())
        path.write_bytes(fault.planted(self._planted[1]))

    def restore(self):
        """Restore the file's text."""
        if self._planted:
            path, text = self._planted
            path.write_bytes(text)
            self._planted = None


def clean_environment():
    """Return our environment without the variables of a make that called us."""
    mine = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "BUILD", "N", "SEED", "T")
    mine += ("TIERS", "FOLDERS", "KINDS", "SOURCES")
    return {key: value for key, value in os.environ.items() if key not in mine}


def files_of(root):
    """Return all files of a tree, relative to it, except the built files."""
    found = []
    for folder, below, names in os.walk(root):
        here = os.path.relpath(folder, root)
        below[:] = [
            d
            for d in below
            if not (d == "build" and here == ".") and d != ".git" and d != "__pycache__"
        ]
        found += [os.path.normpath(os.path.join(here, n)) for n in names if n != ".git"]
    return found
