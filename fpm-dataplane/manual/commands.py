#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: write commands.md from the help texts of the programs. No line of the page is
written by hand; tests/system/test_config_keys.py compares the page with the programs. man.py makes manual
pages from the same texts."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# An emulator that runs programs of another kind of CPU, with its arguments.
RUN_BY = os.environ.get("RUN_BY", "").split()

BEGIN = """\
# Commands

`make reference` writes this page from the help texts of the programs: `fpmctl help`, the help of each command, `fpm-dataplane --help` and
`fpm-supervise --help`. [Monitoring](monitoring.md) and [Operations](operations.md) show the commands in use. The manual pages `fpmctl(1)`,
`fpm-dataplane(8)` and `fpm-supervise(8)` have the same texts. In bash, TAB completes commands and names.

## fpmctl
"""
SHOWN = "<!-- shown by: test_config_keys: `page_of_commands` -->"


def printed(*argv):
    """Return what a program prints, without spaces at the ends of lines."""
    done = subprocess.run([*RUN_BY, *argv], capture_output=True, check=True, text=True)
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def commands(overview):
    """Return the names of the commands, in the order of `fpmctl help`."""
    table = overview.partition("\n\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z]+)\b", table, re.M)


def fence(text):
    """Return the text as a block of the page."""
    return f"\n{SHOWN}\n```text\n{text}\n```\n"


def page(folder):
    """Return the page; the programs are in `folder`."""
    fpmctl = str(Path(folder, "fpmctl"))
    overview = printed(fpmctl, "help")
    parts = [BEGIN, fence(overview)]
    for name in commands(overview):
        parts.append(f"\n## fpmctl {name}\n{fence(printed(fpmctl, 'help', name))}")
    for program in ("fpm-dataplane", "fpm-supervise"):
        parts.append(f"\n## {program}\n{fence(printed(str(Path(folder, program)), '--help'))}")
    return "".join(parts)


if __name__ == "__main__":
    (HERE / "commands.md").write_text(page(sys.argv[1]), encoding="utf-8")
