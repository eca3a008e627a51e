# SPDX-License-Identifier: BSD-3-Clause
"""A Linux kernel as a process of this machine, for one command: Debian's user-mode-linux, unpacked
and not installed, with MPLS and VRFs, and this machine's root file system; the command changes only
a copy in memory.

Programs run on the CPU itself, while QEMU without KVM translates each instruction. But each system
call, and each page that a program touches for the first time, costs two switches between processes
of this machine. The kernel has one CPU and no PCI, so it is for tests that need only its network.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import guest

MIB = int(os.environ.get("UML_MIB") or 6144)  # of memory; `UML_MIB=18000 make lab-uml ...` gives it more
PR_SET_PDEATHSIG = 1
PROGRAMS = ("busybox", "modprobe")
_libc = ctypes.CDLL(None)


def why_not():
    """Return one sentence that says why no such kernel can run here, or None."""
    if os.uname().machine != "x86_64":
        return "Debian's user-mode-linux is for x86-64"
    if os.geteuid() != 0:
        return "it needs root (network namespaces)"
    if missing := [p for p in PROGRAMS if shutil.which(p) is None]:
        return f"not installed: {', '.join(missing)}"
    if guest.memory_mib() < MIB:
        return f"it needs {MIB} MiB of memory, {guest.memory_mib()} are there"
    return None


def fetch(directory):
    """Unpack Debian's package in the directory, unless it is there. Raise GuestError if that fails."""
    if os.path.exists(f"{directory}/usr/bin/linux.uml"):
        return
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as here:
        # Run as root, because apt's own user may not write here.
        guest.output(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "user-mode-linux"], here)
        (deb,) = os.listdir(here)
        guest.output(["dpkg-deb", "-x", f"{here}/{deb}", directory])


@contextlib.contextmanager
def _maps():
    """Raise this machine's limit of mappings of a process, and restore it. Each program has a process here,
    which maps each page of the program by itself unless the next page is its neighbor in memory, too. With
    the limit of 65,530 mappings a program with 1.8 GiB of memory was ended."""
    limit, pages = "/proc/sys/vm/max_map_count", MIB << 8
    with open(limit, "r+", encoding="ascii") as file:
        was = int(file.read())
        if pages <= was:
            yield
            return
        file.write(f"{pages}\n")
    try:
        yield
    finally:
        with open(limit, "w", encoding="ascii") as file:
            file.write(f"{was}\n")


def run(directory, command, seconds, shares=()):
    """Boot, run `command` (text for bash) as root and return its exit code. Its output goes to stdout.

    shares    directories of this machine that the command may change
    seconds   limit for the command, which ends a command that hangs

    Raise GuestError if the kernel ends early.
    """
    with contextlib.ExitStack() as undo:
        exchange = undo.enter_context(tempfile.TemporaryDirectory(dir=directory))
        undo.enter_context(_maps())
        for name in ("uml.sh", "uml_run.sh"):
            shutil.copy(f"{guest.HERE}/{name}", exchange)
        files = {"command": command, "seconds": str(seconds), "shares": "\n".join(shares)}
        for name, text in files.items():
            with open(f"{exchange}/{name}", "w", encoding="utf-8") as file:
                file.write(text + "\n")
        (modules,) = os.listdir(f"{directory}/usr/lib/uml/modules")
        argv = [
            *"unshare --net".split(), f"{directory}/usr/bin/linux.uml", f"mem={MIB}M",
            *"root=/dev/root rootfstype=hostfs rootflags=/ ro quiet loglevel=1".split(),
            f"init={exchange}/uml.sh", f"exchange={exchange}",
            f"modules={directory}/usr/lib/uml/modules/{modules}",
            *"con0=null,fd:1 con=null".split(),
        ]  # fmt: skip
        # Its memory is a file below TMPDIR, which must be a tmpfs.
        kernel = subprocess.Popen(
            argv,
            env={**os.environ, "TMPDIR": "/dev/shm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Otherwise the kernel would outlive a kill -9 of this process.
            preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        undo.callback(_end, kernel)
        for line in kernel.stdout:
            sys.stdout.write(line.decode(errors="replace").replace("\r", ""))
            sys.stdout.flush()
        kernel.wait()
        try:
            with open(f"{exchange}/code", encoding="ascii") as file:
                return int(file.read())
        except OSError:
            raise guest.GuestError("the kernel of user-mode-linux ended early") from None


def _end(kernel):
    """End the kernel. Its programs are its traced children, in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(kernel.pid, signal.SIGKILL)
    kernel.wait()
    kernel.stdout.close()
