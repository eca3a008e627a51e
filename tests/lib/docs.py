# SPDX-License-Identifier: BSD-3-Clause
"""Commands in the project's pages (Markdown), and the test that runs each of them. A comment
before a block names that test: fpm-dataplane/doc/testing.md, "How the examples in pages are
tested"."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("sh", "console")
OTHERS = ("text", "yaml", "json", "c", "promql", "mermaid")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
MARK = re.compile(r"^ *<!-- (run|shown by|not run): (.*) -->\n\Z", re.M)


def makefiles():
    """Return the text of the Makefile and of the fragments that it includes."""
    fragments = [path for top in ("tests", "fpm-dataplane") for path in ROOT.glob(f"{top}/**/*.mk")]
    return "".join(path.read_text(encoding="utf-8") for path in [ROOT / "Makefile", *sorted(fragments)])


@dataclass
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # of its first line
    language: str
    text: str
    how: str  # "run", "shown by", "not run"; "": there is no comment
    words: str  # the rest of the comment

    @property
    def place(self):
        """Return the place where the block runs: "lab", "vm", "noiommu", "bench"; None: it does not
        run."""
        return self.words.split(",")[0] if self.how == "run" else None

    @property
    def codes(self):
        """Return the exit codes that count as success."""
        named = re.search(r"\bexit ([\d ]+)", self.words) if self.how == "run" else None
        return [int(code) for code in named[1].split()] if named else [0]

    @property
    def commands(self):
        """Return [(command, its output)]; a block of ```sh is one command with any output."""
        if self.language == "sh":
            return [(self.text, "...")]
        parts = re.split(r"^\$ ", self.text, flags=re.M)[1:]
        split = [part.partition("\n") for part in parts]
        return [(command, text.strip("\n")) for command, _, text in split]


def pages():
    """Return all pages of the project. This does not use git because a tarball has no
    repository."""
    found = []
    for where, folders, files in os.walk(ROOT):
        # Builds and tests that run meanwhile create and remove files in these folders.
        folders[:] = [f for f in folders if f != "build" and f[0] != "."]
        found += [ROOT / where / name for name in files if name.endswith(".md") and name[0] != "."]
    return sorted(found)


def blocks(page):
    """Return the fenced blocks of a page, in order."""
    text, found = page.read_text(encoding="utf-8"), []
    for fence in FENCE.finditer(text):
        before = text[: fence.start()]
        mark = MARK.search(before)
        how, words = mark.groups() if mark else ("", "")
        indent = re.compile("^" + fence[1], re.M)
        found.append(
            Block(page, before.count("\n") + 1, fence[2], indent.sub("", fence[3]),
                  how, " ".join(words.split()))
        )  # fmt: skip
    return found


def is_scenario(page):
    """Return True if test_scenarios runs the page as a whole."""
    return page.parent.parent.name == "frr-config" and page.name == "README.md"


def outside_fences(page):
    """Return [(line number, line)] of the text outside of fenced blocks."""
    text = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), page.read_text("utf-8"))
    return list(enumerate(text.splitlines(), 1))


def shown_by(page, test):
    """Return the commands, one line each and without comments, of the only block that `test`
    shows."""
    (block,) = [b for b in blocks(page) if b.how == "shown by" and b.words.startswith(test + ":")]
    return [line.partition(" #")[0].strip() for line in block.text.splitlines()]
