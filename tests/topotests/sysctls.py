# SPDX-License-Identifier: BSD-3-Clause
"""Sysctls of a topology's routers, without a process for each.

FRR's library reads and writes 30 sysctls per router, each by nsenter, bash and sysctl. In a virtual
machine without KVM this takes most of the time until the tests begin.
"""

import concurrent.futures
import ctypes
import os
import re
import subprocess

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Sysctls:
    """The commander of a router, for commands that call sysctl."""

    def __init__(self, commander):
        self.commander = commander

    def cmd_raises(self, command):
        """Run the command in the network namespace of the router, without a process. Return its output."""
        match = re.fullmatch(r'sysctl (?:-n (\S+)|-w (\S+)="(.*)")', command.strip())
        if match is None:
            return self.commander.cmd_raises(command)
        name = match[1] or match[2]
        # Use a thread that ends afterwards, because a thread stays in the namespace that it enters.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            try:
                return pool.submit(self._access, name, match[3]).result()
            except OSError as error:
                raise subprocess.CalledProcessError(255, command, stderr=str(error)) from error

    def _access(self, name, text):
        if pid := getattr(self.commander, "pid", None):
            with open(f"/proc/{pid}/ns/net", "rb") as space:
                if _libc.setns(space.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"setns to process {pid}")
        path = os.path.join("/proc/sys", *name.split("."))
        if text is None:
            with open(path, encoding="ascii") as file:
                return file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return f"{name} = {text}\n"
