# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's README: its title, its picture, the commands it says to try, and whether
these print what it says. In what they print `...` is any text; a line of that alone, any
lines. Clock times and blanks may differ."""

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
        """A line on what it is."""
        return self.text.splitlines()[0].removeprefix(f"# {self.name}: ")

    @property
    def picture(self):
        """The first drawing."""
        return re.search(r"```text\n(.*?)```", self.text, re.DOTALL)[1].rstrip()

    @property
    def commands(self):
        """What to try, each with what it prints: [(command, text)]."""
        found = []
        for block in re.findall(r"```console\n(.*?)```", self.text, re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, text = part.partition("\n")
                found.append((command, text.strip("\n")))
        return found


def in_lab(lab, command):
    """A command with the names that nodes have in a lab, whatever its own."""
    for node, name in lab.ns.items():
        command = re.sub(rf"\bnetns exec {node}(?![\w-])", f"netns exec {name}", command)
    return command


def run(lab, command):
    """Run a command of a README in a lab. Returns what it prints."""
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
    """Is that what a page says is printed?"""
    return re.fullmatch(_pattern(text), _plain(seen)) is not None


def differs(lab, command, text, patience=20):
    """Run a command until it prints `text`. Returns None, or what it prints instead. A ping whose
    packet was lost takes 10 s; then there is time for another."""
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
    """Lines without what varies."""
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "".join(line + "\n" for line in lines if line)


def _pattern(text):
    """A regular expression for _plain() of what is printed."""
    found = ""
    for line in _plain(text).splitlines():
        if line == "...":
            found += r"(.*\n)*"
        else:
            found += ".*".join(map(re.escape, line.split("..."))) + "\n"
    return found
