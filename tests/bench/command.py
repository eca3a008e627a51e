# SPDX-License-Identifier: BSD-3-Clause
"""The command that a benchmark was started by, for the report: its options come by the
environment, so the ones that were asked for and are there are the command's."""

import os
from pathlib import Path

FILES = ("TABLE", "UPDATES", "PNG")  # where they are is this machine's affair


def line(name, options):
    """A JSON line of it; options: all names that the benchmark knows."""
    given = [f"{o}={shown(o, os.environ[o])}" for o in sorted(options) if os.environ.get(o)]
    return {"bench": "command", "command": " ".join(["make", name, *given])}


def shown(option, value):
    """As a shell takes it; files by their names alone."""
    if option in FILES:
        value = " ".join(Path(x).name for x in value.split())
    return f'"{value}"' if set(value) & set(" \n*?") else value
