# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's README: its title, its picture, its commands, and the comparison of their output
with the page. In the output on the page `...` stands for any text, and a line with nothing else
stands for any number of lines. Clock times and blanks may differ."""

import os
import re
import subprocess

from lib.dataplane import ROOT
from lib.wait import PATIENCE, Timeout, eventually


class Readme:
    """The README of the scenario in `folder`."""

    def __init__(self, folder):
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
            self.text = file.read()

    @property
    def title(self):
        """Return the title of the page."""
        return self.text.splitlines()[0].removeprefix(f"# {self.name}: ")

    @property
    def picture(self):
        """Return the first drawing of the page."""
        return re.search(r"```text\n(.*?)```", self.text, re.DOTALL)[1].rstrip()

    @property
    def commands(self):
        """Return the commands of the page with their output: [(command, text)]."""
        found = []
        for block in re.findall(r"```console\n(.*?)```", self.text, re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, text = part.partition("\n")
                found.append((command, text.strip("\n")))
        return found


def in_lab(lab, command):
    """Return a command with the names of the nodes in this lab."""
    for node, name in lab.ns.items():
        command = re.sub(rf"\bnetns exec {node}(?![\w-])", f"netns exec {name}", command)
    return command


def run(lab, command):
    """Run a command of a README in a lab. Returns its output."""
    env = {**os.environ, "LAB": lab.name, "FPMCTL_SOCKET": lab.socket, "COLUMNS": "80"}
    done = subprocess.run(
        ["sh", "-c", in_lab(lab, command)],
        cwd=ROOT,
        env={k: v for k, v in env.items() if not k.startswith("MAKE")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
    )
    return done.stdout


def is_so(text, seen):
    """Return True if the output `seen` matches the text of the page."""
    return re.fullmatch(_pattern(text), _plain(seen)) is not None


def differs(lab, command, text, patience=20):
    """Run a command until it prints `text`. Returns None, or the output that differs. A ping whose
    packet was lost takes 10 s; `patience` leaves time for another ping."""
    seen = []

    def as_said():
        seen.append(run(lab, command))
        return is_so(text, seen[-1])

    try:
        eventually(as_said, patience, 0.5)
    except Timeout:
        return seen[-1]
    return None


def _plain(text):
    """Return lines without clock times and blanks."""
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "".join(line + "\n" for line in lines if line)


def _pattern(text):
    """Return a regular expression for _plain() of the output."""
    found = ""
    for line in _plain(text).splitlines():
        if line == "...":
            found += r"(.*\n)*"
        else:
            found += ".*".join(map(re.escape, line.split("..."))) + "\n"
    return found
