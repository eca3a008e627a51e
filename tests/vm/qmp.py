# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's monitor. The guest reaches it by a serial port of its own (guest.py)."""

import glob
import itertools
import json
import os

from lib import netns
from lib.wait import eventually


class Qmp:
    """Connect to the monitor: `with Qmp() as qmp: qmp("set_link", name="port0", up=False)`."""

    def __init__(self):
        self._numbers = itertools.count(1)
        netns.command(["modprobe", "virtio_console"])
        self._file = open(eventually(_device, 10, 0.05, "the monitor's port"), "r+b", 0)
        self._said = b""
        # QEMU refuses this command after an earlier connection has sent it. The refusal does no
        # harm.
        self._ask("qmp_capabilities", {})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._file.close()

    def __call__(self, command, **arguments):
        """Run a command. Return QEMU's answer."""
        reply = self._ask(command, arguments)
        assert "return" in reply, f"{command} {arguments}: {reply}"
        return reply["return"]

    def _ask(self, command, arguments):
        number = next(self._numbers)
        ask = {"execute": command, "arguments": arguments, "id": number}
        self._file.write(json.dumps(ask).encode() + b"\n")
        while True:
            while b"\n" not in self._said:
                self._said += self._file.read(4096)
            line, self._said = self._said.split(b"\n", 1)
            reply = json.loads(line)
            if reply.get("id") == number:
                return reply


def _device():
    for path in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(path, encoding="ascii") as file:
            if file.read().strip() == "qmp":
                return "/dev/" + os.path.basename(os.path.dirname(path))
    return None
