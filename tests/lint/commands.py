# SPDX-License-Identifier: BSD-3-Clause
"""Rules for commands in pages: a comment before each block names the test that runs it, and that
test exists."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from lib import docs  # noqa: E402

RUNNERS = {
    "lab": "tests/system/test_docs.py",
    "vm": "tests/vm/test_manual.py",
    "noiommu": "tests/vm/test_noiommu.py",
    "bench": "tests/bench/test_commands.py",
}
# A line that begins so is a command, wherever it stands.
PROGRAMS = re.compile(
    r"^\s*(\$ |sudo |(make|fpmctl|systemctl|vtysh|apt-get|docker|podman|containerlab|"
    r"build/release/\S+|fpm-dataplane) [^|]*$)"
)


def targets():
    """The targets of the Makefile and its fragments."""
    text = docs.makefiles()
    return {
        name for row in re.findall(r"^([a-z][a-z0-9 -]*):", text, re.M) for name in row.split()
    }


def check_page(path, problem, check_claim):
    """Call problem(path, line, text) for each fault of a page."""
    known = targets()
    for block in docs.blocks(path):
        _check_block(block, path, problem, check_claim)
    blank = True
    for n, line in docs.outside_fences(path):
        if blank and re.match(r" {4,}\S", line) and not re.match(r" +([-*]|\d\.) ", line):
            problem(path, n, "an indented block: make it a fence, ```sh or ```text")
        blank = not line.strip()
        for target in re.findall(r"`(?:sudo )?make ([a-z][a-z0-9-]*)\b[^`]*`", line):
            if target not in known:
                problem(path, n, f"there is no `make {target}`")


def _check_block(block, path, problem, check_claim):
    line = block.line
    if block.language not in docs.COMMANDS:
        if block.language not in docs.OTHERS:
            problem(path, line, f"a fence of {block.language or 'no language'}")
        for row in block.text.splitlines():
            if block.language == "text" and block.how != "shown by" and PROGRAMS.match(row):
                problem(path, line, f"a command in a text: {row.strip()}")
        if block.how == "shown by":
            check_claim(path, line, block.words)
    elif docs.is_scenario(path):
        pass
    elif not block.how:
        problem(
            path,
            line,
            "commands that no test runs: put <!-- run: lab --> or the like before",
        )
    elif block.how == "run" and not (ROOT / RUNNERS.get(block.place, "nowhere")).is_file():
        problem(path, line, f"nothing runs commands in {block.place}")
    elif block.how == "shown by":
        check_claim(path, line, block.words)
    elif block.how == "not run" and len(block.words.split()) < 3:
        problem(path, line, "why is it not run?")
