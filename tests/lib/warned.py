# SPDX-License-Identifier: BSD-3-Clause
"""Configure the kernel, and wait for the warnings of `show warnings` and of the log."""

import contextlib
import shlex

from . import netns
from .wait import eventually

SOON = 3  # seconds, if the kernel sends an event
POLLED = 15  # seconds, if the kernel sends none: the daemon reads every 5 s


def rows(dut, kind=None):
    """Return {where: row} of `show warnings`, all or those of a kind."""
    return {r["where"]: r for r in dut.control.ask("warnings") if kind in (None, r["kind"])}


@contextlib.contextmanager
def made(dut, do, undo):
    """Run the commands `do` in the control namespace, and at the end those of `undo`."""
    try:
        for line in do:
            netns.run(dut.ctl, shlex.split(line))
        yield
    finally:
        for line in undo:
            netns.run(dut.ctl, shlex.split(line), check=False)


def told(dut, kind, where, seconds):
    """Wait until `show warnings` and the log have the warning."""
    row = eventually(lambda: rows(dut).get(where), seconds, 0.05, where)
    assert (row["kind"], "packets keep their addresses" in row["dataplane"]) == (kind, kind == "nat")
    assert row["linux"].endswith(".") and row["dataplane"].endswith(".")
    line = f'warn: configuration not obeyed kind={kind} where="{where}"'
    eventually(lambda: line in dut.daemon.log(400), SOON, 0.02, line)


def gone(dut, kind, where, seconds):
    """Wait until `show warnings` lacks the warning, and the log says that it was removed."""
    eventually(lambda: where not in rows(dut), seconds, 0.05, f"gone: {where}")
    line = f'warn: configuration removed kind={kind} where="{where}"'
    eventually(lambda: line in dut.daemon.log(400), SOON, 0.02, line)
