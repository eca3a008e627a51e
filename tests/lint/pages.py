# SPDX-License-Identifier: BSD-3-Clause
"""Rules for pages (Markdown): links lead to a file and a heading, lines and table cells are short,
README.md fits its limits, and no page names a file outside of the repository."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from lib import docs  # noqa: E402

README, README_LINES, README_COLUMNS = "README.md", 130, 100
CHANGELOG = "CHANGELOG.md"
MAX_COLUMNS = 150  # of prose; a URL may be longer than that
MAX_CELL = 160
# Pages that have longer lines or cells until they are rewritten. Their links are checked.
EXEMPT = (
    "tests/bench/README.md",
    "tests/system/README.md",
)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)|^\[[^\]]+\]: (?!https?:)(\S+)")
OUTSIDE = re.compile(r"\.\./shared\b|/work/|/root/wt\b")


def anchors(page):
    """The names that `#...` may have in a page: its headings, as GitHub spells them."""
    heads = [line.lstrip("#") for _, line in docs.outside_fences(page) if re.match("#+ ", line)]
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def check_link(path, line, link, problem):
    """Check a link to a file of the project, or to a heading."""
    name, _, anchor = link.partition("#")
    to = path.parent / name if name else path
    if not to.exists():
        problem(path, line, f"a link that leads nowhere: {link}")
    elif anchor and to.suffix == ".md" and anchor not in anchors(to):
        problem(path, line, f"a link to no heading: {link}")


def check_lengths(path, problem):
    """Check the width of prose and of table cells outside of code."""
    for n, line in docs.outside_fences(path):
        if line.lstrip().startswith("|"):
            longest = max(len(cell.strip()) for cell in re.split(r"(?<!\\)\|", line))
            if longest > MAX_CELL:
                problem(path, n, f"a table cell of {longest} characters (at most {MAX_CELL})")
        elif len(line) > MAX_COLUMNS and " " in line.strip():
            problem(path, n, f"{len(line)} columns (at most {MAX_COLUMNS})")


def check_readme(path, problem):
    """Check the limits of README.md, code and tables included."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > README_LINES:
        problem(path, len(lines), f"{len(lines)} lines (at most {README_LINES})")
    for n, line in enumerate(lines, 1):
        if len(line) > README_COLUMNS:
            problem(path, n, f"{len(line)} columns (at most {README_COLUMNS})")


def check_changes(path, problem):
    """Check that no version of the changelog has two entries that begin with the same line."""
    seen = {}
    for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            seen = {}
        elif line.startswith("- "):
            if line in seen:
                problem(path, n, f"an entry that is also in line {seen[line]}")
            seen.setdefault(line, n)


def check(root, paths, problem, exempt=EXEMPT):
    """Call problem(path, line, text) for each fault of the pages `paths` below `root`."""
    for name in exempt:
        if not (root / name).exists():
            problem(root / name, 1, "exempt in tests/lint/pages.py, but there is no such page")
    for path in paths:
        for n, line in docs.outside_fences(path):
            for link in LINK.findall(line):
                check_link(path, n, link[0] or link[1], problem)
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := OUTSIDE.search(line):
                problem(path, n, f"a file outside of the repository: {found[0]}")
        name = path.relative_to(root).as_posix()
        if name == README:
            check_readme(path, problem)
        if path.name == CHANGELOG:
            check_changes(path, problem)
        if name not in exempt:
            check_lengths(path, problem)
