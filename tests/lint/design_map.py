# SPDX-License-Identifier: BSD-3-Clause
"""The map of the source in design.md: each C file has one line, which says what the file does,
and the functions that the table of questions names are in the files that it names."""

import re
from pathlib import Path

FILES, QUESTIONS = "Which file does what", "Where do I look for ...?"
DAEMON = "fpm-dataplane"
MAPPED = ("poptrie", "tap-bridge", DAEMON)  # folders of which each C file has a line
MAX_WORDS = 30


def section(text, title):
    """Yield (number, text) of each line of the section with this title; nothing if it is absent."""
    inside = False
    for n, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            inside = re.fullmatch(r"## (\d+\. )?" + re.escape(title), line) is not None
        elif inside:
            yield n, line


def find(root, name):
    """Return the file that design.md names by a path from the top or from the daemon's folder; None if
    there is none."""
    paths = (root / name, root / DAEMON / name)
    return next((path for path in paths if path.exists()), None)


def entries(text):
    """The lines of the map as (number, folder, names, sentence)."""
    folder, found = "", []
    for n, line in section(text, FILES):
        if line.startswith("### "):
            folder = line[4:].strip()
        elif m := re.match(r"- (`[^`]+`(?:, `[^`]+`)*): ?(.*)", line):
            found.append([n, folder, re.findall("`([^`]+)`", m.group(1)), m.group(2)])
        elif line.startswith("  ") and found:
            found[-1][3] += " " + line.strip()
    return found


def check_files(root, text, problem):
    """Check that each file has exactly one line, and that each line has a file and a sentence."""
    lined = set()
    for n, folder, names, sentence in entries(text):
        for name in names:
            path = find(root, folder + name)
            if path is None:
                problem(n, f"there is no {folder}{name}")
            elif path in lined:
                problem(n, f"a second line for {folder}{name}")
            lined.add(path)
        if not 2 < len(sentence.split()) <= MAX_WORDS:
            problem(n, f"a sentence of 3 to {MAX_WORDS} words says what {names[0]} does")
    for top in MAPPED:
        for path in sorted((root / top).rglob("*.[ch]")):
            if path not in lined and path.with_suffix(".c") not in lined:
                problem(1, f'no line in "{FILES}" for {path.relative_to(root)}')
    for path in sorted((root / "tests").glob("[!._]*/")):
        if path.is_dir() and path not in lined:
            problem(1, f'no line in "{FILES}" for tests/{path.name}/')


def check_questions(root, text, problem):
    """Check each `file: a, b` in the table: the file exists and defines a and b."""
    for n, line in section(text, QUESTIONS):
        for name, functions in re.findall(r"`([\w./-]+\.(?:c|h|def))(?:: ([^`]+))?`", line):
            path = find(root, name)
            if path is None:
                problem(n, f"there is no {name}")
                continue
            code = path.read_text()
            for function in filter(None, functions.split(", ")):
                if not re.search(rf"^(?:enum |struct )?{re.escape(function)}\b", code, re.M):
                    problem(n, f"{name} does not define {function}")


def check(root, problem):
    """Call problem(path, line, text) for each fault of the map in design.md below `root`."""
    path = Path(root, DAEMON, "doc/design.md")
    text = path.read_text()
    for title in (FILES, QUESTIONS):
        if not any(section(text, title)):
            problem(path, 1, f'no section "{title}"')
    check_files(root, text, lambda n, what: problem(path, n, what))
    check_questions(root, text, lambda n, what: problem(path, n, what))
